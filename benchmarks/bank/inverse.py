"""Integral equations of the first kind: the solution of least norm with 0 ≤ x ≤ bound.

Their singular values fall quickly, so that many points solve them up to rounding.
"""

from __future__ import annotations

from bank.cases import Case, problem
from tiebreak import Box, LeastSquares, Problem, SquaredNorm
from tiebreak.data import integral_equation


def bounded(name: str, bound: float) -> Case:
    """Return an integral equation with bounds on x."""
    A, b, x = integral_equation(name)
    problem = Problem(SquaredNorm(), LeastSquares(A, b), Box(0.0, bound, x.size))
    return Case(problem, ceiling=problem.upper.value(x))


@problem(300)
def phillips() -> Case:
    return bounded("phillips", 4.0)


@problem(300)
def foxgood() -> Case:
    return bounded("foxgood", 2.0)


@problem(300)
def baart() -> Case:
    return bounded("baart", 2.0)
