"""Functions that fail, and Ctrl-C: a run ends with what it has reached."""

from __future__ import annotations

import math
import signal
import threading
import warnings

import numpy as np
import pytest
from conftest import QUICK

from tiebreak import SBCGI, FiniteSum, L1Ball, LeastSquares, OracleError, Problem, Status, minimize


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
        limit[:] = [k + 10]
        with pytest.warns(RuntimeWarning, match="gone"):
            result = minimize(parts, SBCGI(step=1e-2, slack=1e-3), max_queries=1000, check=False)
        assert result.iterations == (result.history.iteration[-1] if result.history.phase[-1] else 0)
        if len(result.history) > seeking.sum():
            break
