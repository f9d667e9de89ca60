"""The driver: budgets, records, statuses, failures, reproducibility."""

from __future__ import annotations

import math
import signal
import sys
import threading
import warnings

import numpy as np
import pytest
from conftest import QUICK, callable_copy, make_objective

import tiebreak
from tiebreak import SBCGF, SBCGI, FiniteSum, L1Ball, LeastSquares, OracleError, Problem, SquaredCovariance, Status, minimize
from tiebreak.engine import interpreted
from tiebreak.proofs.prover import ExactProver

DRIVER = sys.modules["tiebreak.driver.minimize"]  # the package has a function of that name
BOTH = pytest.mark.parametrize("method", [SBCGI(step=1e-2, slack=1e-3), QUICK], ids=lambda m: m.name)


@BOTH
def test_a_result_holds_exact_values_and_counts(problem, method):
    result = minimize(problem, method, max_queries=5000)
    assert result.status is Status.QUERIES
    assert result.success
    assert result.upper == pytest.approx(problem.upper.value(result.x), rel=1e-13)
    assert result.lower == pytest.approx(problem.lower.value(result.x), rel=1e-13)
    assert problem.domain.contains(result.x)
    assert 0 < result.queries.total <= 5000
    assert result.queries.total > 4900
    assert result.queries.lower > result.queries.upper > 0  # the first point is sought at the lower level
    assert result.iterations == result.history.iteration[-1]
    assert result.seconds > 0
    assert result.history.queries[-1] == result.queries.total
    assert (np.diff(result.history.queries) > 0).all()
    assert (np.diff(result.history.seconds) >= 0).all()
    assert len(result.history) > 10
    assert result.history.phase[0] == 0
    assert result.history.phase[-1] == 1


def test_queries_are_counted_by_the_rule(problem):
    """One sample drawn at one level is a query; an exact estimate is n of them; a pair of points is two evaluations."""
    n, x0 = problem.upper.n_samples, np.zeros(problem.dimension)
    storm = minimize(problem, SBCGI(batch_size=4), x0=x0, max_iterations=10, max_queries=None)
    assert storm.queries == (40, 40 + n)  # and a pass for g(x₀)
    assert storm.evaluations == (4 + 2 * 36, 4 + 2 * 36 + n)
    spider = minimize(problem, SBCGF(None, None, 2, 3, 4, 5), x0=x0, max_iterations=9, max_queries=None)
    assert spider.queries == (3 * n + 6 * 2, 2 * n + 7 * 3)  # exact at t = 0, 4, 8 and at t = 0, 5
    assert spider.evaluations == (3 * n + 12 * 2, 2 * n + 14 * 3)


def test_functions_are_called_on_as_many_samples_as_are_counted(problem):
    seen = {"upper": 0, "lower": 0}

    def counting(name, objective):
        def ask(x, indices):
            seen[name] += len(indices)
            return objective.value_and_gradient(x, indices)

        return FiniteSum(objective.n_samples, objective.dimension, ask)

    counted = Problem(counting("upper", problem.upper), counting("lower", problem.lower), problem.domain)
    result = minimize(counted, QUICK, max_queries=3000, check=False)  # whose calls are no queries
    records = len(result.history) * problem.upper.n_samples
    assert seen["upper"] == result.evaluations.upper + records
    assert seen["lower"] == result.evaluations.lower + records


@BOTH
def test_the_same_seed_gives_the_same_bits_however_the_run_is_cut(problem, method, monkeypatch):
    whole = minimize(problem, method, max_queries=20_000, seed=3)
    assert minimize(problem, method, max_queries=20_000, seed=3).x.tobytes() == whole.x.tobytes()
    monkeypatch.setattr(DRIVER, "CHUNK_SECONDS", 1e-6)
    pieces = minimize(problem, method, max_queries=20_000, seed=3)
    assert pieces.x.tobytes() == whole.x.tobytes()
    assert pieces.history.upper.tobytes() == whole.history.upper.tobytes()
    assert minimize(problem, method, max_queries=20_000, seed=4).x.tobytes() != whole.x.tobytes()


def test_a_run_longer_than_a_block_of_schedules_is_the_same_in_any_block(problem, monkeypatch):
    method = SBCGI(step=lambda t: 0.5 / (t + 10.0), slack=1e-3)
    whole = minimize(problem, method, max_queries=40_000)
    monkeypatch.setattr(DRIVER, "BLOCK", 97)
    assert minimize(problem, method, max_queries=40_000).x.tobytes() == whole.x.tobytes()


def test_each_budget_ends_the_run(problem):
    assert minimize(problem, QUICK, max_iterations=7).iterations == 7
    assert minimize(problem, QUICK, max_iterations=7).status is Status.ITERATIONS
    only = minimize(problem, QUICK, max_iterations=2000, max_queries=None)
    seeking = only.history.phase == 0
    assert only.history.queries[seeking][-1] == pytest.approx(only.queries.total / 10, rel=0.1)
    timed = minimize(problem, QUICK, time_limit=2.0)
    assert timed.status is Status.TIME
    assert timed.iterations > 0


def test_a_tolerance_ends_the_run_when_it_is_proven(problem):
    result = minimize(problem, SBCGF(step=1e-4, slack=1e-9), tol=(0.1, 0.01), max_queries=10_000_000)
    assert result.status is Status.CERTIFIED
    assert result.queries.total < 10_000_000
    assert result.upper_gap_bound <= 0.1
    assert result.lower_gap_bound <= 0.01


def test_x0_is_where_the_method_starts(problem):
    x0 = problem.domain.project(np.ones(problem.dimension))
    result = minimize(problem, QUICK, x0=x0, max_iterations=3)
    assert result.history.lower[0] == pytest.approx(problem.lower.value(x0))
    assert set(result.history.phase) == {1}
    assert result.iterations == 3


def test_the_first_point_nearly_minimises_the_lower_objective(problem):
    result = minimize(problem, QUICK, max_queries=50_000)
    found = result.history.lower[result.history.phase == 0]
    assert found[-1] < 0.05 * found[0]


def test_a_callback_sees_read_only_snapshots_and_may_stop(problem):
    seen = []

    def watch(snapshot):
        seen.append(snapshot)
        with pytest.raises(ValueError, match="read-only"):
            snapshot.x[0] = 1.0
        return len(seen) == 5

    result = minimize(problem, QUICK, callback=watch)
    assert result.status is Status.CALLBACK
    assert len(seen) == 5 == len(result.history)
    assert seen[-1].x.tobytes() == result.x.tobytes()
    assert seen[-1].upper == result.upper
    assert seen[0].x.tobytes() != seen[-1].x.tobytes()


class Faulty:
    """A function that fails from a given call on."""

    def __init__(self, objective, at, how):
        self.objective, self.left, self.how = objective, at, how

    def __call__(self, x, indices):
        self.left -= 1
        value, gradient = self.objective.value_and_gradient(x, indices)
        return (value, gradient) if self.left > 0 else self.how(value, gradient)


def fail(value, gradient):
    raise RuntimeError("the disk is gone")


@pytest.mark.parametrize("level", ["upper", "lower"])
@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        (fail, Status.FAILED, "raised RuntimeError: the disk is gone"),
        (lambda v, g: (math.nan, g), Status.NOT_FINITE, "returned NaN or infinity in the value"),
        (lambda v, g: (v, np.full_like(g, math.inf)), Status.NOT_FINITE, "returned NaN or infinity in the gradient"),
        (lambda v, g: (v, g[:-1]), Status.FAILED, "must return a gradient of shape"),
    ],
)
def test_a_function_that_fails_ends_the_run_with_what_was_reached(problem, level, how, status, words):
    faulty = Faulty(getattr(problem, level), 700, how)
    broken = FiniteSum(12, 18, faulty, convex=True)
    parts = {**problem._asdict(), level: broken}
    with pytest.warns(RuntimeWarning, match=words):
        result = minimize(Problem(**parts), QUICK, max_queries=100_000, check=False)
    assert result.status is status
    assert not result.success
    assert words in result.message
    assert f"{level}: " in result.message
    assert "after iteration" in result.message
    assert isinstance(result.error, OracleError)
    assert np.isfinite(result.x).all()
    assert problem.domain.contains(result.x)
    assert len(result.history) > 3
    assert result.upper == pytest.approx(problem.upper.value(result.x))


def test_a_function_that_fails_at_once_raises(problem):
    broken = FiniteSum(12, 18, Faulty(problem.upper, 0, fail))
    with pytest.raises(OracleError, match="the disk is gone"):
        minimize(problem._replace(upper=broken), QUICK)


def test_a_compiled_objective_that_overflows_is_caught():
    # ½ r² overflows beyond 1e154: finite data, finite x, infinite loss.
    A = np.array([[1e139, 1.0], [1.0, 2.0]])
    problem = Problem(LeastSquares(A, [1.0, 1.0]), LeastSquares([[1.0, 1.0]], [1e21]), L1Ball(2e21))
    assert problem.compiled
    with pytest.warns(RuntimeWarning, match="upper objective"):
        result = minimize(problem, QUICK, max_queries=10_000)
    assert result.status is Status.NOT_FINITE
    assert "the upper objective" in result.message
    assert np.isfinite(result.x).all()
    assert math.isfinite(result.upper)


def test_a_callback_that_fails_loses_nothing(problem):
    def broken(snapshot):
        if snapshot.queries_made > 0:
            return True

    with pytest.warns(RuntimeWarning, match="AttributeError"):
        result = minimize(problem, QUICK, callback=broken)
    assert result.status is Status.FAILED
    assert isinstance(result.error, AttributeError)


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_ctrl_c_returns_the_result_so_far(problem, callable_problem, kind):
    chosen = problem if kind == "compiled" else callable_problem
    minimize(chosen, QUICK, max_queries=2000)  # nothing is left to compile
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    result = minimize(chosen, QUICK, max_queries=10**10)
    timer.join()
    assert result.status is Status.INTERRUPTED
    assert "interrupted" in result.message
    assert result.queries.total > 0
    assert result.upper == pytest.approx(problem.upper.value(result.x))


class Impatient:
    """A function during which Ctrl-C is pressed, from a given call on."""

    def __init__(self, objective, at):
        self.objective, self.left = objective, at

    def __call__(self, x, indices):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.objective.value_and_gradient(x, indices)


def test_ctrl_c_again_and_again_still_returns_the_last_record(problem):
    result = minimize(problem._replace(upper=FiniteSum(12, 18, Impatient(problem.upper, 300))), QUICK)
    assert result.status is Status.INTERRUPTED
    assert len(result.history) > 3
    with pytest.raises(KeyboardInterrupt):  # before anything is found
        minimize(problem._replace(upper=FiniteSum(12, 18, Impatient(problem.upper, 0))), QUICK)


def test_a_result_is_not_lost_where_warnings_are_errors(problem):
    broken = FiniteSum(12, 18, Faulty(problem.upper, 300, fail))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert minimize(problem._replace(upper=broken), QUICK).status is Status.FAILED


def test_a_failure_between_two_phases_leaves_the_first_point(problem):
    # SBCGI makes a pass for g(x₀) when the first point is found: let just that call fail.
    calls, limit = [], []

    def lower(x, indices):
        calls.append(len(indices))
        if limit and len(calls) == limit[0]:
            raise OSError("gone")
        return problem.lower.value_and_gradient(x, indices)

    parts = problem._replace(lower=FiniteSum(12, 18, lower))
    whole = minimize(parts, SBCGI(step=1e-2, slack=1e-3), max_queries=1000, check=False)
    seeking = whole.history.phase == 0
    for k in range(len(calls)):
        calls.clear()
        limit[:] = [k + 5]
        with pytest.warns(RuntimeWarning, match="gone"):
            result = minimize(parts, SBCGI(step=1e-2, slack=1e-3), max_queries=1000, check=False)
        assert result.iterations == (result.history.iteration[-1] if result.history.phase[-1] else 0)
        if len(result.history) > seeking.sum():
            break


def test_a_callback_is_heard_at_the_end_of_the_first_phase_too(problem):
    whole = minimize(problem, QUICK, max_queries=3000)
    last = int((whole.history.phase == 0).sum())
    seen = []
    stopped = minimize(problem, QUICK, max_queries=3000, callback=lambda s: seen.append(s) or len(seen) == last)
    assert stopped.status is Status.CALLBACK
    assert len(stopped.history) == last
    assert stopped.iterations == 0


def test_limits_may_be_beyond_all_measure(problem):
    assert minimize(problem, QUICK, max_queries=10**30, max_iterations=50).iterations == 50
    many = minimize(problem, QUICK, max_iterations=10**15, time_limit=0.5)
    assert many.status is Status.TIME


def test_a_million_queries_are_the_limit_only_if_no_other_end_is_given(problem):
    def limits(**given):
        return DRIVER._limits(*(given.get(name) for name in ("max_queries", "max_iterations", "time_limit", "tol")))

    assert limits().queries == 1_000_000
    assert limits(max_queries=10).queries == 10
    for given in ({"max_iterations": 5}, {"time_limit": 5.0}, {"tol": (1.0, 1.0)}):
        assert limits(**given).queries == math.inf
        assert limits(**given, max_queries=10).queries == 10


class Hours:
    """A clock of which every look takes some time."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def perf_counter(self):
        self.now += self.tick
        return self.now

    def monotonic(self):
        return self.now


def test_a_time_limit_is_wall_time_and_leaves_out_bounds_that_there_is_no_time_for(problem, monkeypatch):
    minimize(problem, QUICK, max_queries=2000)  # nothing is left to compile
    monkeypatch.setattr(DRIVER, "time", hours := Hours(0.01))
    proofs = []
    monkeypatch.setattr(ExactProver, "improved", lambda self, certificate: proofs.append(certificate) or certificate)
    short = minimize(problem, QUICK, time_limit=2.0)
    assert short.status is Status.TIME
    assert short.iterations > 0
    assert not proofs  # 120 looks at an oracle that takes 0.01 s
    assert 1.7 <= short.wall_seconds <= 2.2
    assert hours.now <= 2.3
    monkeypatch.setattr(DRIVER, "time", Hours(0.01))
    long = minimize(problem, QUICK, time_limit=20.0)
    assert len(proofs) == 1
    assert 17.5 <= long.wall_seconds <= 20.5  # the mock takes no time, which was kept for it


@pytest.mark.parametrize(("tick", "chosen"), [(1.0, "sbcgf"), (0.01, "pb-apg")])
def test_the_choice_of_a_method_goes_by_the_passes_that_a_time_limit_allows(tick, chosen, monkeypatch):
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((40, 5)), rng.standard_normal(40)) for _ in range(2))
    monkeypatch.setattr(DRIVER, "time", Hours(tick))
    with interpreted():
        result = minimize(Problem(upper, lower, L1Ball(1.0)), time_limit=50.0, max_iterations=2000)
    assert result.method.name == chosen


def test_a_run_without_time_for_a_step_says_so(problem, monkeypatch):
    minimize(problem, QUICK, max_queries=2000)  # nothing is left to compile
    monkeypatch.setattr(DRIVER, "time", Hours(1.0))
    result = minimize(problem, QUICK, time_limit=0.5)
    assert result.iterations == 0
    assert result.message == (
        "budget spent: `time_limit` has passed before a step of the method could be made; x is the point to begin with"
    )
    assert len(result.history) == 1
    assert result.lower_gap_bound >= 0.0


def test_no_clock_decides_anything_without_a_time_limit(problem, monkeypatch):
    plain = minimize(problem, "pb-apg", max_queries=20_000)
    monkeypatch.setattr(DRIVER, "time", Hours(1.0))
    slow = minimize(problem, "pb-apg", max_queries=20_000)
    assert slow.x.tobytes() == plain.x.tobytes()
    assert slow.evaluations == plain.evaluations
    for name in ("iteration", "upper", "lower", "upper_gap_bound", "lower_gap_bound"):
        assert getattr(slow.history, name).tobytes() == getattr(plain.history, name).tobytes()


def test_both_clocks_are_shown_and_the_wall_has_all(problem):
    result = minimize(problem, QUICK, max_queries=3000)
    assert result.wall_seconds > result.seconds > 0.0
    assert f"{result.seconds:.3g} of the method, {result.wall_seconds:.3g} in all" in str(result)


def test_records_cost_a_small_part_of_a_long_run(problem):
    result = minimize(problem, "pb-apg", max_iterations=300)
    full = problem.upper.n_samples + problem.lower.n_samples
    assert list(result.history.iteration[:6]) == [0, 1, 3, 7, 15, 23]
    for passes in (50, 100, 300):
        assert (result.history.queries <= passes * full).sum() <= 0.25 * passes
    assert len(result.history) <= 0.1 * 300


def test_time_spent_compiling_is_not_counted(callable_problem):
    result = minimize(callable_problem, QUICK, time_limit=1.0, x0=np.zeros(18))
    assert result.iterations > 20


def test_non_convex_and_unknown_objectives_get_no_bound_but_a_stationarity(problem):
    unknown = callable_copy(problem.upper, 12, 18)
    object.__setattr__(unknown, "convex", None)
    result = minimize(problem._replace(upper=unknown), QUICK, max_queries=3000)
    assert math.isnan(result.upper_gap_bound)
    assert result.stationarity >= 0
    assert result.lower_gap_bound >= 0


def test_progress_is_shown_when_asked_for_and_silent_otherwise(problem, capfd):
    minimize(problem, QUICK, max_queries=3000)
    assert capfd.readouterr().err == ""
    minimize(problem, QUICK, max_queries=3000, progress=True)
    shown = capfd.readouterr().err
    assert "compiling" in shown
    assert "sbcgf" in shown
    assert "100%" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "sbgcf"}, "`method` must be one of auto, sbcgi, sbcgf.*got 'sbgcf'; did you mean 'sbcgf'"),
        ({"method": 3}, "`method` must be one of"),
        ({"max_queries": 0}, "`max_queries` must be a whole number ≥ 1, got 0"),
        ({"max_queries": -5}, "`max_queries` must be a whole number ≥ 1, got -5"),
        ({"max_queries": 2.5}, "`max_queries` must be a whole number"),
        ({"max_iterations": -1}, "`max_iterations` must be a whole number ≥ 1, got -1"),
        ({"time_limit": 0}, "`time_limit` must be a finite number > 0, got 0"),
        ({"tol": 1e-3}, "`tol` must be a pair"),
        ({"tol": [[1], [1, 2]]}, "`tol` must be a finite number"),
        ({"checkpoint": 3}, "`checkpoint` must be the path of a file, got 3"),
        ({"checkpoint": "."}, "`checkpoint` must be a file, and . is a folder"),
        ({"tol": (1e-3, -1.0)}, "`tol` must be a finite number > 0, got -1.0"),
        ({"seed": -1}, "`seed` must be a whole number ≥ 0"),
        ({"x0": np.ones(18)}, "`x0` must lie in the domain.*project"),
        ({"x0": np.zeros(3)}, "`x0` must be a vector of 18 numbers, got an array of shape \\(3,\\)"),
        ({"x0": np.full(18, np.nan)}, "`x0` must hold finite numbers"),
        ({"callback": 3}, "`callback` must be a function"),
        ({"checkpoint": "no/such/folder/run.npz"}, "`checkpoint` must be a file in an existing folder"),
        ({"method": SBCGF(step=lambda t: t - 1.0)}, "`step` must be between 0 and 1, got -1 at iteration 0"),
        ({"method": SBCGF(slack=lambda t: np.nan)}, "`slack` must be finite and ≥ 0, got nan"),
    ],
)
def test_bad_arguments_are_named(problem, arguments, message):
    with pytest.raises(ValueError, match=message):
        minimize(problem, **arguments)


def test_something_else_than_a_problem_is_refused():
    with pytest.raises(ValueError, match="`problem` must be a Problem"):
        minimize(lambda x: x)


def test_a_million_may_be_written_as_a_float(problem):
    assert minimize(problem, QUICK, max_queries=1e3).queries.total <= 1000


def test_warnings_are_errors_here_and_none_is_raised_by_a_plain_run(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert minimize(problem, "sbcgi", max_queries=2000).success


def test_a_method_may_be_given_by_name_class_or_value(problem):
    for method in ("sbcgf", "SBCGF", SBCGF, SBCGF()):
        assert minimize(problem, method, max_queries=1000).method == SBCGF()


def test_the_upper_objective_may_be_exact():
    lower = make_objective("least-squares", seed=2, weighted=False)
    problem = Problem(tiebreak.SquaredNorm(), lower, L1Ball(6.0))
    result = minimize(problem, SBCGF(step=1e-5, slack=1e-9), max_queries=2_000_000)
    least_norm = np.linalg.lstsq(lower.matrix.array, lower.targets, rcond=None)[0]
    assert np.abs(least_norm).sum() < 6.0  # the constraint does not bind: the answer is known in closed form
    np.testing.assert_allclose(result.x, least_norm, atol=0.03)
    assert result.upper == pytest.approx(0.5 * least_norm @ least_norm, rel=0.05)


@pytest.mark.parametrize(("method", "least"), [("auto", 667), ("sbcgf", 667), ("sbcgi", 336), ("bi-fista", 600)])
def test_a_budget_below_one_iteration_is_an_error(method, least):
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((300, 5)), rng.standard_normal(300)) for _ in range(2))
    problem = Problem(upper, lower, L1Ball(1.0))
    with interpreted():
        with pytest.raises(ValueError, match=f"^`max_queries` must be at least {least} for one iteration of '"):
            minimize(problem, method, max_queries=least - 1)
        assert minimize(problem, method, max_queries=least).iterations >= 1


def test_bounds_that_only_the_last_record_proves_are_certified():
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((12, 20)), rng.standard_normal(12)) for _ in range(2))
    problem = Problem(upper, lower, L1Ball(2.0))
    reached = minimize(problem, "bi-fista", max_iterations=100)
    tol = 1.0001 * reached.upper_gap_bound, 1.0001 * reached.lower_gap_bound
    result = minimize(problem, "bi-fista", max_iterations=100, tol=tol)
    assert result.iterations == 100
    assert result.upper_gap_bound <= tol[0]
    assert result.lower_gap_bound <= tol[1]
    assert result.status is Status.CERTIFIED


def test_a_result_shows_the_stationarity_where_f_is_not_convex():
    rng = np.random.default_rng(0)
    lower = LeastSquares(rng.standard_normal((9, 4)), rng.standard_normal(9))
    problem = Problem(SquaredCovariance(rng.standard_normal((9, 4)), np.arange(9) % 2.0), lower, L1Ball(1.0))
    with interpreted():
        text = str(minimize(problem, "cg-bio", max_iterations=5))
    assert "stationarity" in text
    assert "nan" not in text


def test_a_time_limit_holds_where_nothing_is_proven_of_g():
    waves = FiniteSum(1, 2, lambda x, i: (float(np.cos(x.sum())), -np.sin(x.sum()) * np.ones(2)), lipschitz=2.0)
    with interpreted():
        result = minimize(Problem(tiebreak.SquaredNorm(), waves, L1Ball(2.0)), QUICK, time_limit=0.3)
    assert result.status is Status.TIME
    assert result.iterations > 0
