"""Which point a run returns: none that is worse at both levels than one with a record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak import FISTA, Box, L1Ball, L2Ball, LeastSquares, Problem, SquaredNorm, Status, Stream, minimize
from tiebreak.driver import records
from tiebreak.driver.records import Candidate
from tiebreak.engine import interpreted
from tiebreak.methods import METHODS
from tiebreak.proofs.prover import ExactProver

ROUNDING = 1e-12
CHOSEN = sorted(set(METHODS) - {"active-set"})  # which is not interpreted in a reasonable time
NORM_ONLY = ("big-sam", "bisec-bio", "mng")  # they need a strongly convex f, or a squared distance


def problem_of(seed: int, domain, norm: bool = True) -> Problem:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 5)) * 10.0 ** rng.uniform(-1.0, 1.0, 5)
    A[:, 4] = A[:, 3]
    upper = SquaredNorm(rng.standard_normal(5)) if norm else LeastSquares(rng.standard_normal((6, 5)), np.ones(6))
    return Problem(upper, LeastSquares(A, rng.standard_normal(8)), domain)


def dominated(result) -> bool:
    """Return whether a record is better than the result at both levels by more than rounding."""
    history = result.history
    upper, lower = (ROUNDING * max(1.0, np.abs(column).max()) for column in (history.upper, history.lower))
    return bool(((history.upper < result.upper - upper) & (history.lower < result.lower - lower)).any())


@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from(CHOSEN),
    domain=st.sampled_from([L1Ball(3.0), L2Ball(3.0), Box(-2.0, 2.0, 5)]),
    norm=st.booleans(),
    iterations=st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_no_record_is_better_than_the_result_at_both_levels(seed, name, domain, norm, iterations):
    problem = problem_of(seed, domain, norm=norm or name in NORM_ONLY)
    with interpreted():
        result = minimize(problem, name, max_iterations=iterations, max_queries=4000, seed=seed)
    assert not dominated(result)
    assert problem.domain.contains(result.x)
    assert result.upper == pytest.approx(problem.upper.value(result.x), rel=1e-9, abs=1e-12)
    assert result.lower == pytest.approx(problem.lower.value(result.x), rel=1e-9, abs=1e-12)


@pytest.fixture
def worse_and_worse():
    """A run whose last point is worse than its first one: FISTA with steps that are far too long."""
    problem = problem_of(0, L2Ball(100.0))
    return problem, FISTA(level="lower", step=3.0 / problem.lower.lipschitz)


def test_a_run_that_gets_worse_returns_the_record_of_least_g_that_is_better(worse_and_worse):
    problem, method = worse_and_worse
    result = minimize(problem, method, max_iterations=30, x0=np.zeros(5))
    history = result.history
    last = history.records[-1]
    assert not np.array_equal(result.x, result.last)
    assert problem.lower.value(result.last) == pytest.approx(last.lower)  # the history tells what happened
    better = (history.upper <= last.upper) & (history.lower <= last.lower)
    assert result.lower == history.lower[better].min() < last.lower
    again = minimize(problem, method, max_iterations=30, x0=result)
    assert not dominated(again)
    assert again.lower <= result.lower or again.upper <= result.upper


def test_a_run_that_is_resumed_goes_back_to_the_same_point(worse_and_worse, tmp_path):
    problem, method = worse_and_worse
    arguments = {"max_iterations": 30, "x0": np.zeros(5)}
    whole = minimize(problem, method, **arguments)
    for stop in (1, 3, 6):
        path, left = tmp_path / f"{stop}.npz", iter([False] * (stop - 1))
        first = minimize(problem, method, callback=lambda _, left=left: next(left, True), checkpoint=path, **arguments)
        assert first.status is Status.CALLBACK
        resumed = minimize(problem, method, checkpoint=path, **arguments)
        assert resumed.x.tobytes() == whole.x.tobytes()
        assert resumed.history.lower.tobytes() == whole.history.lower.tobytes()


def test_for_near_ties_the_better_record_of_least_f_is_returned():
    problem = problem_of(3, L2Ball(3.0))._replace(tolerance=0.05)
    for name in ("sbcgf", "switching-gradient"):
        result = minimize(problem, name, max_queries=3000)
        assert not dominated(result)
        assert result.within is not False


def test_values_of_a_stream_are_not_compared():
    def squares(x, rows):
        errors = rows @ (x - 1.0)
        return 0.5 * np.mean(errors**2), rows.T @ errors / len(rows)

    stream = Stream(lambda rng, size: rng.standard_normal((size, 3)), squares, 3, convex=True)
    result = minimize(Problem(SquaredNorm(), stream, L2Ball(3.0)), "sbcgi", max_queries=4000)
    assert result.last is result.x


def test_points_beyond_the_memory_are_those_of_largest_g(monkeypatch):
    kept = records.Records(ExactProver(problem_of(0, L2Ball(3.0))), None, True, False)
    monkeypatch.setattr(records, "KEPT_BYTES", 3 * 8)
    for k in range(6):
        kept._keep(Candidate(np.array([float(k)]), -float(k), float(k)))
    assert [each.lower for each in kept._front] == [0.0, 1.0, 2.0]
    kept._keep(Candidate(np.array([9.0]), -5.0, 0.5))  # matches those of larger g
    assert [each.lower for each in kept._front] == [0.0, 0.5]
    kept._keep(Candidate(np.array([8.0]), -4.0, 0.6))  # is matched
    assert [each.lower for each in kept._front] == [0.0, 0.5]
