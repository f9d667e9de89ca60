"""Objectives stated twice, for the library and for CVXPY; what a conic solver says of a problem; what accuracy means."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy
import numpy as np
import scipy.sparse
from test_reference import TIGHT

from tiebreak import Huber, LeastSquares, Logistic, Problem, Result, SquaredNorm, Status

Expression = Callable[[cvxpy.Variable], Any]


class Stated(NamedTuple):
    """An objective, and the same as an expression of a variable of CVXPY."""

    objective: Any
    expression: Expression
    fit: Expression | None = None  # an expression that is the same at all minimisers

    def __add__(self, other: Stated) -> Stated:
        fits = [fit for fit in (self.fit, other.fit) if fit is not None]
        return Stated(
            self.objective + other.objective,
            lambda x: self.expression(x) + other.expression(x),
            (lambda x: cvxpy.hstack([fit(x) for fit in fits])) if len(fits) == 2 else None,
        )

    def __rmul__(self, factor: float) -> Stated:
        return Stated(factor * self.objective, lambda x: factor * self.expression(x), self.fit)


def as_kind(A: np.ndarray, kind: str) -> Any:
    match kind:
        case "csr":
            return scipy.sparse.csr_array(A)
        case "float32":
            return A.astype(np.float32)
    return A


def shares(weight: np.ndarray | None, n: int) -> np.ndarray:
    return np.full(n, 1.0 / n) if weight is None else weight / weight.sum()


def squares(A: np.ndarray, b: np.ndarray, kind: str = "dense", weight: np.ndarray | None = None) -> Stated:
    data = as_kind(A, kind)
    A = np.float64(data.toarray() if kind == "csr" else data)
    root = np.sqrt(shares(weight, len(b)) / 2)
    return Stated(
        LeastSquares(data, b, sample_weight=weight),
        lambda x: cvxpy.sum_squares(cvxpy.multiply(root, A @ x - b)),
        lambda x: A @ x,
    )


def norm(center: np.ndarray) -> Stated:
    return Stated(SquaredNorm(center), lambda x: 0.5 * cvxpy.sum_squares(x - center), lambda x: x)


def logistic(A: np.ndarray, b: np.ndarray, kind: str = "dense", weight: np.ndarray | None = None) -> Stated:
    sign = np.where(b > 0.0, 1.0, -1.0)
    own = shares(weight, len(b))
    return Stated(
        Logistic(as_kind(A, kind), sign, sample_weight=weight),
        lambda x: own @ cvxpy.logistic(-cvxpy.multiply(sign, A @ x)),
        lambda x: A @ x,
    )


def huber(A: np.ndarray, b: np.ndarray, kind: str = "dense", weight: np.ndarray | None = None, delta: float = 0.5) -> Stated:
    """Its minimisers may differ in the rows whose residuals are larger than δ: it has no fit."""
    own = shares(weight, len(b)) / 2
    return Stated(
        Huber(as_kind(A, kind), b, delta=delta, sample_weight=weight), lambda x: own @ cvxpy.huber(A @ x - b, M=delta)
    )


class Best(NamedTuple):
    """What a conic solver finds: g* and f*."""

    lower: float
    upper: float


def best(upper: Stated, lower: Stated, problem: Problem, constraints: Callable[[Any], list[Any]]) -> Best:
    """Solve by CVXPY in two stages, in units of the problem.

    Of exact ties the second stage asks for the same fit: g ≤ g* has no interior.
    """
    size, (f_unit, g_unit) = float(problem.domain.diameter), units(problem)
    x = size * cvxpy.Variable(problem.dimension)
    rows = constraints(x)
    solve(lower.expression(x) / g_unit, rows)
    least = lower.objective.value(x.value)
    if problem.tolerance > 0.0:
        rows = [*rows, lower.expression(x) / g_unit <= (least + problem.tolerance) / g_unit]
    else:
        assert lower.fit is not None
        rows = [*rows, lower.fit(x) / size == lower.fit(x).value / size]
    solve(upper.expression(x) / f_unit, rows)
    assert x.value is not None
    return Best(least, upper.objective.value(x.value))


def solve(objective: Any, constraints: list[Any]) -> None:
    """Minimise by CVXPY, as accurately as the solver can."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        cvxpy.Problem(cvxpy.Minimize(objective), constraints).solve(**TIGHT)


def units(problem: Problem) -> tuple[float, float]:
    """Return f and g at the middle of the set."""
    return problem.upper.value(problem.center), problem.lower.value(problem.center)


def assert_accurate(result: Result, f_unit: float | None = None, g_unit: float | None = None) -> None:
    """Assert that a result is proven to be as accurate as the active set promises."""
    f, g = units(result.problem)
    f_unit, g_unit = max(f, result.upper) if f_unit is None else f_unit, g if g_unit is None else g_unit
    assert result.status is Status.SOLVED
    assert result.success
    if result.tolerance > 0.0:
        assert result.within is True
        assert result.upper_gap_bound <= 1e-6 * f_unit
    else:
        assert result.lower_gap_bound <= 1e-10 * g_unit
        assert abs(result.upper_gap_bound) <= 1e-5 * f_unit


def assert_agrees(result: Result, known: Best, doubt: float = 1e-6) -> None:
    """Assert that a result has the known values, and that nothing is proven that they contradict."""
    (f_unit, g_unit), floors = units(result.problem), result.certificate.floors
    assert floors.lower <= known.lower + 1e-3 * doubt * g_unit
    assert floors.upper <= known.upper + doubt * f_unit
    assert result.lower <= known.lower + result.tolerance + 1e-3 * doubt * g_unit
    assert abs(result.upper - known.upper) <= max(doubt, 1e-5) * f_unit
