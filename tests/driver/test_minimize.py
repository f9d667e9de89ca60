"""The driver: results, counts, records, reproducibility, and which arguments are refused."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from conftest import QUICK, callable_copy, make_objective

import tiebreak
from tiebreak import SBCGF, SBCGI, FiniteSum, L1Ball, LeastSquares, Problem, SquaredCovariance, Status, minimize
from tiebreak.driver import phases, run
from tiebreak.engine import interpreted

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
    storm = minimize(problem, SBCGI(batch_size=4, preset="paper"), x0=x0, max_iterations=10, max_queries=None)
    assert storm.queries == (40, 40 + n)  # and a pass for g(x₀)
    assert storm.evaluations == (4 + 2 * 36, 4 + 2 * 36 + n)
    sizes = {"upper_batch_size": 2, "lower_batch_size": 3, "upper_period": 4, "lower_period": 5}
    spider = minimize(problem, SBCGF(**sizes, preset="paper"), x0=x0, max_iterations=9, max_queries=None)
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
    monkeypatch.setattr(run, "CHUNK_SECONDS", 1e-6)
    pieces = minimize(problem, method, max_queries=20_000, seed=3)
    assert pieces.x.tobytes() == whole.x.tobytes()
    assert pieces.history.upper.tobytes() == whole.history.upper.tobytes()
    assert minimize(problem, method, max_queries=20_000, seed=4).x.tobytes() != whole.x.tobytes()


def test_a_run_longer_than_a_block_of_schedules_is_the_same_in_any_block(problem, monkeypatch):
    method = SBCGI(step=lambda t: 0.5 / (t + 10.0), slack=1e-3)
    whole = minimize(problem, method, max_queries=40_000)
    monkeypatch.setattr(phases, "BLOCK", 97)
    assert minimize(problem, method, max_queries=40_000).x.tobytes() == whole.x.tobytes()


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


def test_a_callback_is_heard_at_the_end_of_the_first_phase_too(problem):
    whole = minimize(problem, QUICK, max_queries=3000)
    last = int((whole.history.phase == 0).sum())
    seen = []
    stopped = minimize(problem, QUICK, max_queries=3000, callback=lambda s: seen.append(s) or len(seen) == last)
    assert stopped.status is Status.CALLBACK
    assert len(stopped.history) == last
    assert stopped.iterations == 0


def test_records_cost_a_small_part_of_a_long_run(problem):
    result = minimize(problem, "pb-apg", max_iterations=300)
    full = problem.upper.n_samples + problem.lower.n_samples
    assert list(result.history.iteration[:6]) == [0, 1, 3, 7, 15, 23]
    for passes in (50, 100, 300):
        assert (result.history.queries <= passes * full).sum() <= 0.25 * passes
    assert len(result.history) <= 0.1 * 300


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
    assert "3000/3000 samples" in shown


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


def test_warnings_are_errors_here_and_none_is_raised_by_a_plain_run(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert minimize(problem, "sbcgi", max_queries=2000).success


def test_a_method_may_be_given_by_name_class_or_value(problem):
    configured = [minimize(problem, m, max_queries=1000).method for m in ("sbcgf", "SBCGF", SBCGF, SBCGF())]
    assert all(method == configured[0] for method in configured)
    paper = SBCGF(preset="paper")
    assert minimize(problem, paper, max_queries=1000).method == paper


def test_the_upper_objective_may_be_exact():
    lower = make_objective("least-squares", seed=2, weighted=False)
    problem = Problem(tiebreak.SquaredNorm(), lower, L1Ball(6.0))
    result = minimize(problem, SBCGF(step=1e-5, slack=1e-9), max_queries=2_000_000)
    least_norm = np.linalg.lstsq(lower.matrix.array, lower.targets, rcond=None)[0]
    assert np.abs(least_norm).sum() < 6.0  # the constraint does not bind: the answer is known in closed form
    np.testing.assert_allclose(result.x, least_norm, atol=0.03)
    assert result.upper == pytest.approx(0.5 * least_norm @ least_norm, rel=0.05)


def test_a_result_shows_the_stationarity_where_f_is_not_convex():
    rng = np.random.default_rng(0)
    lower = LeastSquares(rng.standard_normal((9, 4)), rng.standard_normal(9))
    problem = Problem(SquaredCovariance(rng.standard_normal((9, 4)), np.arange(9) % 2.0), lower, L1Ball(1.0))
    with interpreted():
        text = str(minimize(problem, "cg-bio", max_iterations=5))
    assert "stationarity" in text
    assert "nan" not in text
