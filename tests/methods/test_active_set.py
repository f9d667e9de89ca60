"""The active set as a method among others: budgets, records, warm starts, checkpoints, and what it refuses."""

from __future__ import annotations

import signal

import cvxpy
import numpy as np
import pytest
from conftest import linear_data, make_objective

import tiebreak
from tiebreak import (
    ActiveSet,
    CheckpointError,
    FiniteSum,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    Problem,
    Simplex,
    SquaredNorm,
    Status,
    minimize,
)
from tiebreak.active import solver
from tiebreak.driver import limits
from tiebreak.engine import interpreted

SQUARES = Problem(make_objective("least-squares", seed=1), make_objective("least-squares", seed=2), L1Ball(6.0))
ROWS, TARGETS = linear_data(3)
MANY = LeastSquares(np.vstack([ROWS, ROWS[::-1] + 1.0, ROWS - 1.0]), np.tile(TARGETS, 3))  # squares that are summed up first
PROBLEMS = {
    "squares": SQUARES,
    "squares, near": SQUARES._replace(tolerance=1e-3),
    "many rows": Problem(MANY, LeastSquares(np.tile(ROWS, (8, 1)), np.arange(96.0) % 7.0), L1Ball(6.0)),
    "logistic": Problem(make_objective("huber", seed=1), make_objective("logistic", "csr", seed=2), L1Ball(3.0)),
    "logistic, near": Problem(make_objective("huber", seed=1), make_objective("logistic", "csr", seed=2), L1Ball(3.0), 1e-3),
}


def same(a: tiebreak.Result, b: tiebreak.Result) -> None:
    """Assert that two runs have the same bits."""
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.queries, a.evaluations, a.iterations, a.status) == (b.queries, b.evaluations, b.iterations, b.status)
    assert a.certificate.floors == b.certificate.floors
    for column in set(tiebreak.Record._fields) - {"seconds"}:
        assert getattr(a.history, column).tobytes() == getattr(b.history, column).tobytes()


# Runs


@pytest.mark.parametrize("name", PROBLEMS)
def test_interpreted_and_compiled_runs_agree(name):
    compiled = minimize(PROBLEMS[name], "active-set")
    with interpreted():
        plain = minimize(PROBLEMS[name], "active-set")
    assert plain.status is compiled.status is Status.SOLVED
    np.testing.assert_allclose(plain.x, compiled.x, atol=1e-5)
    assert plain.upper == pytest.approx(compiled.upper, rel=1e-6)
    assert plain.lower == pytest.approx(compiled.lower, rel=1e-9, abs=1e-12)
    assert abs(plain.iterations - compiled.iterations) <= 8


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_run_is_recorded_and_counted_by_passes(name):
    problem = PROBLEMS[name]
    result = minimize(problem, ActiveSet())
    assert result.status is Status.SOLVED
    assert result.success
    history = result.history
    assert len(history) >= 3
    assert (np.diff(history.iteration) > 0).all()
    assert (np.diff(history.queries) >= 0).all()
    assert history.iteration[-1] == result.iterations
    assert (history.upper[-1], history.lower[-1]) == (result.upper, result.lower)
    n = problem.lower.n_samples
    assert result.queries.lower % n == result.queries.upper % problem.upper.n_samples == 0
    assert 0 < result.queries.lower <= n * (result.iterations + 5)
    assert result.upper == pytest.approx(problem.upper.value(result.x), rel=1e-14)
    assert result.lower == pytest.approx(problem.lower.value(result.x), rel=1e-14, abs=1e-20)
    assert "active-set" in str(result)


def test_the_same_run_has_the_same_bits():
    for problem in PROBLEMS.values():
        same(minimize(problem, "active-set"), minimize(problem, "active-set", seed=5))


def test_g_alone_is_minimised_if_so_asked():
    lower, domain = PROBLEMS["logistic"].lower, L1Ball(3.0)
    problem = Problem(FiniteSum(1, 18, lambda x, indices: (float(x @ x), 2.0 * x), convex=True), lower, domain)
    result = minimize(problem, ActiveSet(level="lower"))
    assert result.status is Status.SOLVED
    assert result.queries.upper == 0
    assert result.lower_gap_bound <= 1e-12 * lower.value(np.zeros(18))
    A = lower.matrix.to_scipy().toarray()
    x = cvxpy.Variable(18)
    losses = cvxpy.logistic(-cvxpy.multiply(lower.targets, A @ x))
    best = cvxpy.Problem(cvxpy.Minimize(lower.weights @ losses / 12), [cvxpy.norm1(x) <= 3.0]).solve(solver=cvxpy.CLARABEL)
    assert result.lower == pytest.approx(best, rel=1e-6)
    with pytest.raises(ValueError, match="`level` must be"):
        ActiveSet(level="upper")


def test_other_methods_take_it_for_their_first_point():
    method = tiebreak.CGBiO(initial=ActiveSet(level="lower"))
    result = minimize(SQUARES, method, max_queries=20_000)
    seeking = result.history.phase == 0
    assert seeking.any()
    best = minimize(SQUARES, "active-set")
    assert result.history.lower[seeking][-1] - best.lower <= 1e-10


# Limits


@pytest.mark.parametrize("passes", [5, 6, 9])
def test_no_more_samples_are_drawn_than_are_allowed(passes):
    n = 24  # of both levels
    for name in ("squares", "logistic, near"):
        result = minimize(PROBLEMS[name], "active-set", max_queries=passes * n)
        assert result.queries.total <= passes * n
        assert result.status is Status.QUERIES
        assert result.lower_gap_bound >= 0.0
        assert PROBLEMS[name].domain.contains(result.x)


def test_iterations_and_callbacks_end_it():
    stopped = minimize(SQUARES, "active-set", max_iterations=3)
    assert (stopped.iterations, stopped.status) == (3, Status.ITERATIONS)
    seen = []
    halted = minimize(SQUARES, "active-set", callback=lambda snapshot: seen.append(snapshot) or len(seen) == 2)
    assert halted.status is Status.CALLBACK
    assert len(seen) == 2
    assert halted.x.tobytes() == seen[-1].x.tobytes()


class Hours:
    """A clock of which every look takes some time."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def perf_counter(self):
        self.now += self.tick
        return self.now


def test_a_time_limit_ends_it(monkeypatch):
    minimize(SQUARES, "active-set")  # nothing is left to compile
    monkeypatch.setattr(limits, "time", Hours(0.1))
    result = minimize(SQUARES, "active-set", time_limit=3.0)
    assert result.status is Status.TIME
    assert result.wall_seconds <= 4.0
    assert SQUARES.domain.contains(result.x)


def test_tolerances_end_it_when_they_are_proven():
    rough = minimize(SQUARES, "active-set", tol=(1e-1, 1e-1))
    fine = minimize(SQUARES, "active-set", tol=(1e-5, 1e-8))
    assert rough.status is fine.status is Status.CERTIFIED
    assert rough.iterations <= fine.iterations
    assert fine.upper_gap_bound <= 1e-5
    assert fine.lower_gap_bound <= 1e-8
    missed = minimize(SQUARES, "active-set", tol=(1e-30, 1e-30))
    assert missed.status is Status.SOLVED
    assert not missed.success


def test_ctrl_c_keeps_the_best_point_so_far():
    def press(snapshot):
        if snapshot.iteration >= 2:
            signal.raise_signal(signal.SIGINT)

    result = minimize(SQUARES, "active-set", callback=press)
    assert result.status is Status.INTERRUPTED
    assert not result.success
    assert SQUARES.domain.contains(result.x)
    assert 2 <= result.iterations < minimize(SQUARES, "active-set").iterations


def test_more_atoms_than_can_be_kept_end_the_run_and_name_other_methods(monkeypatch):
    monkeypatch.setattr(solver, "MOST_ATOMS", 4)
    with pytest.warns(RuntimeWarning, match="more than 4 active atoms, .*take 'pb-apg' or 'cg-bio'"):
        result = minimize(SQUARES, "active-set")
    assert result.status is Status.FAILED
    assert isinstance(result.error, solver.TooManyAtomsError)
    assert np.isfinite(result.x).all()


def test_numbers_whose_products_overflow_are_refused():
    A, b = linear_data(1)
    problem = Problem(LeastSquares(A, b), LeastSquares(1e139 * A, 1e139 * b), L1Ball(1e30))
    with interpreted(), pytest.raises(ValueError, match="take 'pb-apg' or 'cg-bio'"):
        minimize(problem, "active-set", max_queries=10_000)


# Warm starts


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_result_to_begin_with_saves_passes(name):
    problem = PROBLEMS[name]
    cold = minimize(problem, "active-set")
    for x0 in (cold, cold.x):
        warm = minimize(problem, "active-set", x0=x0)
        assert warm.status is Status.SOLVED
        # The way to a near tie leads by the minimiser of g, wherever it begins; and rows that are summed up cost no passes.
        assert warm.iterations < cold.iterations + 3 * (problem.tolerance > 0.0 or name == "many rows")
        assert warm.upper == pytest.approx(cold.upper, rel=1e-5)
    proven = minimize(problem, "active-set", x0=cold).certificate.floors
    assert proven.upper >= cold.certificate.floors.upper
    assert proven.lower >= cold.certificate.floors.lower


def test_an_iterate_of_another_method_is_a_first_point():
    rough = minimize(SQUARES, tiebreak.PBAPG(), max_queries=5000)
    result = minimize(SQUARES, "active-set", x0=rough)
    assert result.status is Status.SOLVED
    assert result.upper == pytest.approx(minimize(SQUARES, "active-set").upper, rel=1e-5)


def wide_problem(center: float = 0.3) -> Problem:
    """Fewer rows than columns: many minimisers of g, and the one next to a point is wanted."""
    rng = np.random.default_rng(5)
    A, x = rng.standard_normal((20, 120)), rng.standard_normal(120)
    return Problem(SquaredNorm(center * rng.standard_normal(120)), LeastSquares(A, A @ x), L1Ball(60.0))


def test_it_begins_at_the_minimiser_of_a_squared_distance_unless_a_point_is_given():
    problem, method = wide_problem(), ActiveSet()
    plan, nearest = method.plan(problem), problem.domain.project(problem.upper.center)
    state = method.start(problem, plan, problem.center)
    np.testing.assert_allclose(state.course.solver.x, nearest, atol=1e-14)
    np.testing.assert_array_equal(method.answer(state), problem.center)  # which the first record is of
    given = np.full(120, 0.1)
    np.testing.assert_allclose(method.start(problem, plan, given).course.solver.x, given, atol=1e-14)
    alone = ActiveSet(level="lower").start(problem, plan, problem.center)
    np.testing.assert_array_equal(alone.course.solver.x, problem.center)


def test_beginning_at_the_minimiser_of_f_saves_passes_where_the_set_binds():
    rng, n, d, support = np.random.default_rng(5), 20, 120, 12
    A, x, normal = rng.standard_normal((n, d)), np.zeros(d), rng.uniform(-0.9, 0.9, d)
    x[:support], normal[:support] = rng.uniform(0.5, 1.5, support), 1.0
    center = x + 10.0 * normal + 0.1 * A.T @ rng.standard_normal(n)
    problem = Problem(SquaredNorm(center), LeastSquares(A, A @ x), L1Ball(x.sum()))
    near = minimize(problem, "active-set")
    far = minimize(problem, "active-set", x0=np.nextafter(problem.center, 1.0))
    assert near.status is far.status is Status.SOLVED
    assert near.upper == pytest.approx(far.upper, rel=1e-6)
    passes = []
    for result in (near, far):
        close = np.abs(result.history.upper - near.upper) <= 1e-4 * near.upper
        good = close & (result.history.lower <= 1e-4 * result.history.lower[0])
        passes.append(result.history.lower_queries[np.argmax(good)])
    assert passes[0] < 0.5 * passes[1]


# Another method before it


def test_another_method_may_find_its_first_point_in_few_passes():
    problem = wide_problem()
    plain = minimize(problem, "active-set", max_queries=60_000)
    result = minimize(problem, ActiveSet(initial=tiebreak.PBAPG()), max_queries=60_000)
    assert [phase.name for phase in result.settings["phases"]] == ["pb-apg", "active-set"]
    seeking = result.history.phase == 0
    drawn = (result.history.upper_queries + result.history.lower_queries)[seeking]
    assert 20 * 21 <= drawn[-1] <= 24 * 21
    assert result.status is Status.SOLVED
    assert result.upper == pytest.approx(plain.upper, rel=1e-6)
    assert result.lower_gap_bound <= 1e-12


@pytest.mark.parametrize("stop", [2, 4, 8])
def test_a_run_that_is_stopped_before_or_after_its_first_point_ends_with_the_same_bits(stop, tmp_path):
    problem, method, records, path = wide_problem(), ActiveSet(initial=tiebreak.PAVR()), [], tmp_path / "run.npz"
    whole = minimize(problem, method, max_queries=60_000)
    minimize(
        problem, method, max_queries=60_000, callback=lambda s: records.append(s) or len(records) == stop, checkpoint=path
    )
    same(minimize(problem, method, max_queries=60_000, checkpoint=path), whole)


@pytest.mark.parametrize(("before", "after"), [(1e-3, 2e-3), (2e-3, 1e-3), (0.0, 1e-3), (1e-3, 0.0)])
def test_a_result_for_another_tolerance_saves_passes(before, after):
    first = minimize(SQUARES._replace(tolerance=before), "active-set")
    problem = SQUARES._replace(tolerance=after)
    cold, warm = minimize(problem, "active-set"), minimize(problem, "active-set", x0=first)
    assert warm.iterations <= 0.7 * cold.iterations
    assert warm.queries.total <= 0.7 * cold.queries.total
    assert warm.upper == pytest.approx(cold.upper, abs=1e-6 * SQUARES.upper.value(np.zeros(18)))
    assert warm.certificate.floors.upper <= cold.certificate.ceiling + 1e-12
    assert warm.certificate.ceiling - warm.certificate.floors.upper <= 1e-6 or after == 0.0
    assert warm.within is True or after == 0.0


def test_a_result_for_the_same_tolerance_is_at_its_end():
    problem = SQUARES._replace(tolerance=1e-3)
    first = minimize(problem, "active-set")
    again = minimize(problem, "active-set", x0=first)
    assert again.iterations == 0
    assert again.x.tobytes() == first.x.tobytes()
    assert again.certificate.floors.upper >= first.certificate.floors.upper


def test_a_run_that_was_stopped_goes_on_where_it_was():
    problem = SQUARES._replace(tolerance=1e-3)
    whole = minimize(problem, "active-set")
    part = minimize(problem, "active-set", max_iterations=whole.iterations - 3)
    rest = minimize(problem, "active-set", x0=part)
    assert rest.iterations == 3
    assert rest.x.tobytes() == whole.x.tobytes()


def test_what_was_remembered_is_of_the_same_problem_alone():
    first = minimize(SQUARES._replace(tolerance=1e-3), "active-set")
    other = SQUARES._replace(lower=2.0 * SQUARES.lower, tolerance=2e-3)  # the same points are within this tolerance
    cold, warm = minimize(other, "active-set"), minimize(other, "active-set", x0=first)
    assert warm.upper == pytest.approx(cold.upper, rel=1e-5)
    assert warm.iterations > 0
    assert minimize(SQUARES, ActiveSet(level="lower"), x0=first).lower <= first.lower


def test_a_run_that_continues_from_a_result_resumes_bit_for_bit(tmp_path):
    first = minimize(SQUARES._replace(tolerance=1e-3), "active-set")
    problem, path = SQUARES._replace(tolerance=1e-2), tmp_path / "run.npz"
    whole = minimize(problem, "active-set", x0=first)
    minimize(problem, "active-set", x0=first, max_iterations=2, checkpoint=path)
    resumed = minimize(problem, "active-set", x0=first, checkpoint=path, max_iterations=10**6)
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert resumed.iterations == whole.iterations
    with pytest.raises(CheckpointError, match="`x0`"):
        minimize(problem, "active-set", x0=first.x, checkpoint=path, max_iterations=10**6)


# Checkpoints


@pytest.mark.parametrize("stop", [1, 2, 4])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_stopped_run_ends_where_the_uninterrupted_one_does(name, stop, tmp_path):
    problem, records, path = PROBLEMS[name], [], tmp_path / "run.npz"
    whole = minimize(problem, "active-set")
    first = minimize(problem, "active-set", callback=lambda s: records.append(s) or len(records) == stop, checkpoint=path)
    assert first.status is Status.CALLBACK
    same(minimize(problem, "active-set", checkpoint=path), whole)
    same(minimize(problem, "active-set", checkpoint=path), whole)  # a finished run is just read


def test_a_run_that_is_stopped_at_every_record_ends_there_too(tmp_path):
    for name, problem in PROBLEMS.items():
        whole, path = minimize(problem, "active-set"), tmp_path / f"{name}.npz"
        for _ in range(200):
            seen = []
            result = minimize(problem, "active-set", checkpoint=path, callback=lambda s, seen=seen: seen.append(s) or True)
            if result.status is not Status.CALLBACK:
                break
        same(minimize(problem, "active-set", checkpoint=path), whole)


def test_a_run_of_another_level_or_problem_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    minimize(SQUARES, "active-set", checkpoint=path)
    with pytest.raises(CheckpointError, match="`parameters`"):
        minimize(SQUARES, ActiveSet(level="lower"), checkpoint=path)
    with pytest.raises(CheckpointError, match="`tolerance`"):
        minimize(PROBLEMS["squares, near"], "active-set", checkpoint=path)


# Refusals


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            SQUARES._replace(domain=L2Ball(1.0)),
            "needs a set that is the hull of its corners, and L2Ball is not known to be one: take 'pb-apg' or 'cg-bio'",
        ),
        (
            SQUARES._replace(upper=FiniteSum(1, 18, lambda x, i: (float(x @ x), 2.0 * x), convex=True)),
            "needs the curvature of the upper objective, and FiniteSum has none that it knows: take 'pb-apg' or 'cg-bio'",
        ),
        (
            SQUARES._replace(lower=FiniteSum(1, 18, lambda x, i: (float(x @ x), 2.0 * x), convex=True)),
            "needs the curvature of the lower objective, and FiniteSum has none that it knows: take 'pb-apg' or 'cg-bio'",
        ),
    ],
    ids=["set", "above", "below"],
)
def test_what_it_does_not_take_is_refused_and_an_alternative_named(problem, message):
    with pytest.raises(ValueError, match=f"^the method 'active-set' {message}$"):
        minimize(problem, "active-set")


def test_a_first_point_outside_of_the_set_is_refused():
    with pytest.raises(ValueError, match="`x0`"):
        minimize(SQUARES, "active-set", x0=np.full(18, 9.0))


# Beside other methods


def test_it_is_as_good_as_thousands_of_passes_of_others():
    exact = minimize(SQUARES, "active-set")
    other = minimize(SQUARES, "pb-apg", max_queries=200_000)
    assert exact.lower <= other.lower + 1e-12
    assert exact.queries.total < 0.05 * other.queries.total
    assert exact.upper_gap_bound <= other.upper_gap_bound


def test_logistic_regression_over_a_simplex_in_few_passes():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((200, 40))
    lower = Logistic(A, np.sign(A @ rng.random(40) + rng.standard_normal(200)))
    with interpreted():
        result = minimize(Problem(SquaredNorm(), lower, Simplex(5.0)), "active-set")
    assert result.status is Status.SOLVED
    assert result.iterations <= 60
    assert result.lower_gap_bound <= 1e-12
