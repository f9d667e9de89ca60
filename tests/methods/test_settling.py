"""Methods that cut leave g at the end about where it was at their first point, or lower."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from conftest import linear_data

import tiebreak
from tiebreak import (
    FISTA,
    SBCGF,
    SBCGI,
    CGBiO,
    CheckpointError,
    FiniteSum,
    Hull,
    L2Ball,
    LeastSquares,
    Problem,
    SpiderFW,
    SquaredNorm,
    Status,
    minimize,
)
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import keys_of

KINDS = pytest.mark.parametrize("kind", [CGBiO, SBCGF, SBCGI])


def least_squares(seed: int = 0, ties: bool = False, radius: float = 5.0) -> Problem:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((15, 6))
    if ties:
        A[:, 3:] = A[:, :3]
    return Problem(SquaredNorm(), LeastSquares(A, A @ rng.standard_normal(6) * 0.3), L2Ball(radius))


def least_norm(problem: Problem) -> np.ndarray:
    """Return the minimiser of g of least norm, by normal equations."""
    center = np.zeros(6)
    gradients = [problem.lower.value_and_gradient(x)[1] for x in (center, *np.eye(6))]
    return -np.linalg.pinv(np.array(gradients[1:]) - gradients[0], rcond=1e-9) @ gradients[0]


def hull() -> Problem:
    rng = np.random.default_rng(1)
    atoms, A = rng.standard_normal((60, 12)), rng.standard_normal((6, 12))
    return Problem(SquaredNorm(), LeastSquares(A, A @ atoms.mean(axis=0)), Hull(atoms))


def first_of(result: tiebreak.Result) -> tiebreak.Record:
    return next(row for row in reversed(result.history.records) if row.phase == 0)


@KINDS
@pytest.mark.parametrize("ties", [False, True])
def test_a_good_first_point_is_not_spoiled(kind, ties):
    problem = least_squares(ties=ties)
    result = minimize(problem, kind(), max_queries=5000)
    scale = problem.lower.value(np.zeros(6))
    solution = least_norm(problem)
    assert first_of(result).lower < 1e-4 * scale
    assert result.lower < 1e-4 * scale
    assert result.upper == pytest.approx(0.5 * solution @ solution, rel=1e-2)
    assert set(result.history.phase) == {0, 1, 2}
    assert max(result.history.lower[result.history.phase == 1]) > 0.01 * scale  # the steps for f alone would spoil it
    assert [phase.name for phase in result.settings["phases"]] == ["fista", kind.name, "fista"]


@KINDS
@pytest.mark.parametrize("passes", [10, 30, 100])
@pytest.mark.parametrize("make", [least_squares, hull, lambda: least_squares(2, ties=True, radius=50.0)])
def test_g_rises_by_at_most_a_thousandth_of_what_it_had_gained(kind, passes, make):
    problem = make()
    result = minimize(problem, kind(), max_queries=passes * (problem.lower.n_samples + 1))
    first, history = first_of(result), result.history
    worst = max(history.lower.max(), problem.lower.value(problem.center))
    assert result.lower <= first.lower + 1.001e-3 * (worst - first.lower) + 1e-15


def test_g_may_rise_by_half_of_its_tolerance():
    problem = least_squares(2, ties=True, radius=50.0)
    asked = 0.2 * problem.lower.value(np.zeros(6))
    settings = {"max_queries": 1500, "x0": least_norm(problem)}
    results = [
        minimize(problem, CGBiO(settle=SpiderFW(level="lower", step=0.0)), tol=tol, **settings)
        for tol in (None, (1e-9, asked))
    ]
    assert results[0].lower < 0.02 * results[1].lower
    assert 0.1 * asked < results[1].lower <= 0.5 * asked


@pytest.mark.parametrize("kind", [CGBiO, SBCGF])
def test_both_levels_gain_where_nothing_can_be_projected(kind):
    problem = hull()
    result = minimize(problem, kind(), max_queries=3000)
    before = [row for row in result.history.records if row.phase == 1][-1]
    assert result.method.settle.curvature == problem.lower.lipschitz
    assert result.lower < 0.05 * before.lower
    best = minimize(problem, "active-set", max_queries=10**6)
    assert abs(result.upper - best.upper) < 0.5 * abs(before.upper - best.upper)


@KINDS
def test_given_steps_and_slacks_and_the_presets_of_papers_are_left_alone(kind):
    problem = least_squares()
    for method in (kind(preset="paper"), kind(step=1e-2), kind(slack=0.1)):
        result = minimize(problem, method, max_queries=3000)
        assert 2 not in result.history.phase
        assert result.method.settle is None
    without = minimize(problem, kind(settle=False), max_queries=3000)
    assert 2 not in without.history.phase
    assert without.lower > 1e-3 * problem.lower.value(np.zeros(6))
    assert kind(slack=0.0).for_problem(problem).settle is not None


def test_near_ties_streams_and_runs_without_an_end_have_no_such_phase():
    problem = least_squares()
    near = minimize(problem._replace(tolerance=0.01), SBCGF(), max_queries=3000)
    assert 2 not in near.history.phase
    proven = minimize(problem, CGBiO(), tol=(0.5, 0.05))
    assert proven.status is Status.CERTIFIED
    assert 2 not in proven.history.phase


def test_a_run_that_is_proven_when_its_method_ends_ends_there():
    rng = np.random.default_rng(16)
    A = rng.standard_normal((15, 6))
    A[:, 3:] = A[:, :3]
    upper = SquaredNorm(rng.standard_normal(6))
    problem = Problem(upper, LeastSquares(A, A @ rng.standard_normal(6) * 0.3), L2Ball(5.0))
    method = CGBiO(step=0.02, slack=0.05, settle=FISTA(level="lower"))
    arguments = {"x0": problem.center, "max_queries": 300}
    history = minimize(problem, method, **arguments).history
    *earlier, last = history.upper_gap_bound[history.phase == 1]
    assert last < min(earlier)
    result = minimize(problem, method, tol=(0.5 * (last + min(earlier)), 1e9), **arguments)
    assert result.status is Status.CERTIFIED
    assert 2 not in result.history.phase


def test_limits_hold_with_the_last_phase():
    problem = least_squares()
    few = minimize(problem, SBCGF(), max_queries=3000)
    assert few.status is Status.QUERIES
    assert 2800 < few.queries.total <= 3000
    counted = minimize(problem, SBCGF(), max_iterations=200)
    assert counted.status is Status.ITERATIONS
    assert counted.iterations == 200
    assert counted.history.phase[-1] == 2
    timed = minimize(problem, SBCGF(), time_limit=0.3)
    assert timed.status is Status.TIME
    assert timed.history.phase[-1] == 2


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_a_run_resumes_in_each_phase_with_the_same_bits(tmp_path, phase):
    problem, path = least_squares(1), tmp_path / "run.npz"
    whole = minimize(problem, SBCGF(), max_queries=4000)
    first = minimize(problem, SBCGF(), max_queries=4000, checkpoint=path, callback=lambda seen: seen.phase == phase)
    assert first.status is Status.CALLBACK
    resumed = minimize(problem, SBCGF(), max_queries=4000, checkpoint=path)
    assert resumed.status is whole.status
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert (resumed.iterations, resumed.queries, resumed.empty_cuts) == (whole.iterations, whole.queries, whole.empty_cuts)
    assert resumed.history.lower.tobytes() == whole.history.lower.tobytes()


@pytest.mark.parametrize("limit", ["max_iterations", "max_queries", "time_limit"])
def test_a_run_whose_method_has_ended_cannot_be_given_more(tmp_path, limit):
    problem, path = least_squares(1), tmp_path / "run.npz"
    method = CGBiO(step=0.02, slack=0.05, settle=FISTA(level="lower"))
    budget = {"max_iterations": 50, "max_queries": 900, "time_limit": 0.2}[limit]
    ended = minimize(problem, method, checkpoint=path, **{limit: budget})
    assert ended.history.phase[-1] == 2
    with pytest.raises(CheckpointError, match=r"has spent the budget of its method .* x0=result continues"):
        minimize(problem, method, checkpoint=path, **{limit: 10 * budget})
    again = minimize(problem, method, checkpoint=path, **{limit: budget})
    assert (again.iterations, again.status) == (ended.iterations, ended.status)


@pytest.mark.parametrize("known", [True, False])
def test_short_steps_lower_g_from_a_good_point_whether_or_not_its_curvature_is_known(known):
    A, b = linear_data(3)
    loss = LeastSquares(A, b)
    lower = loss if known else FiniteSum(12, 18, loss.value_and_gradient, convex=True)
    problem = Problem(SquaredNorm(), lower, Hull(np.vstack([np.eye(18), -np.eye(18)])))
    start = minimize(problem, SpiderFW(level="lower", period=1), max_iterations=300).x
    method = CGBiO().for_problem(problem).settle
    assert (method.curvature == loss.lipschitz) is known
    plan = method.plan(problem)
    state = method.start(problem, plan, start)
    method.advance(problem, state, plan, 100, keys_of([0]))
    plain = minimize(problem, SpiderFW(level="lower", period=1), x0=start, max_iterations=100)
    assert lower.value(state.x) < lower.value(start)
    assert lower.value(state.x) <= lower.value(plain.last)


def test_short_steps_are_the_same_interpreted_and_compiled():
    problem = hull()
    method = CGBiO().for_problem(problem).settle
    plan, ends = method.plan(problem), []
    for context in (contextlib.nullcontext(), interpreted()):
        state = method.start(problem, plan, problem.center)
        with context:
            method.advance(problem, state, plan, 40, keys_of([0]))
        ends.append((state.x, state.curvature))
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-6)


def test_what_lowers_g_must_look_at_it():
    with pytest.raises(ValueError, match="`settle` must be a configured method that minimises the lower objective"):
        CGBiO(settle=FISTA(level="upper"))
