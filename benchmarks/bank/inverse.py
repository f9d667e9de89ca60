"""Integral equations of the first kind, discretised: Phillips, Foxgood and Baart, in the form that Hansen gives them.

The solution of least norm with 0 ≤ x ≤ bound. Their singular values fall quickly, so that many points solve them up to
rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bank.cases import Case, problem
from tiebreak import Box, LeastSquares, Problem, SquaredNorm

SIZE = 1000


def solved_by(A: np.ndarray, x: np.ndarray, bound: float) -> Case:
    """Return the equations A z = A x with bounds on z."""
    problem = Problem(SquaredNorm(), LeastSquares(A, A @ x), Box(0.0, bound, x.size))
    return Case(problem, ceiling=problem.upper.value(x))


def midpoints(low: float, high: float) -> np.ndarray:
    """Return the midpoints of equal parts of an interval."""
    return low + (np.arange(SIZE) + 0.5) * (high - low) / SIZE


def quadrature(kernel: Callable[[np.ndarray, np.ndarray], np.ndarray], s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the matrix of an integral operator, by the midpoint rule."""
    return kernel(s[:, None], t[None, :]) * (t[1] - t[0])


@problem(300)
def phillips() -> Case:
    """K(s, t) = φ(s − t) and x = φ, with φ(u) = 1 + cos(π u / 3) for |u| < 3 and 0 else, on [−6, 6]."""

    def bump(u: np.ndarray) -> np.ndarray:
        return np.where(np.abs(u) < 3.0, 1.0 + np.cos(np.pi * u / 3.0), 0.0)

    t = midpoints(-6.0, 6.0)
    return solved_by(quadrature(lambda s, t: bump(s - t), t, t), bump(t), 4.0)


@problem(300)
def foxgood() -> Case:
    """K(s, t) = √(s² + t²) and x = t, on [0, 1]."""
    t = midpoints(0.0, 1.0)
    return solved_by(quadrature(lambda s, t: np.sqrt(s**2 + t**2), t, t), t, 2.0)


@problem(300)
def baart() -> Case:
    """K(s, t) = exp(s cos t) and x = sin t, s in [0, π/2], t in [0, π]."""
    s, t = midpoints(0.0, np.pi / 2.0), midpoints(0.0, np.pi)
    return solved_by(quadrature(lambda s, t: np.exp(s * np.cos(t)), s, t), np.sin(t), 2.0)
