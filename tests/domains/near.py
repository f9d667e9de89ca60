"""Random small near ties on every set, solved by CVXPY too: what bounds are held against."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cvxpy
import numpy as np
from cases import Case

from tiebreak import LeastSquares, Logistic, Problem, Result

TIGHT = {"solver": cvxpy.CLARABEL, "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
DOUBT = 1e-6  # of the values of a conic solver, in units of f and g
KEPT = 1e-9  # in units of g: by how much the solver may miss the level without saying so
BARELY = 1e-2  # gain of g, in units of it, below which a share of it is too little for the solver
SIZE = 6  # variables, about


class Near(NamedTuple):
    """A near tie, and what CVXPY finds."""

    problem: Problem
    epsilon: float
    lower: float  # g*
    upper: float  # f*(ε)
    doubt: float  # by how much it may be wrong because the level is not quite kept
    units: tuple[float, float]  # f and g at the centroid of the set, from which `keep` measures


def near_tie(case: Case, seed: int) -> Near:
    """Return a near tie on a set: squares or a logistic loss at either level, ``tolerance`` or ``keep``, by the seed."""
    rng = np.random.default_rng([seed, sum(map(ord, case.name))])
    domain, d = case.make(rng, min(SIZE, case.largest))
    (upper, f), (lower, g) = (loss(bool(seed >> bit & 1), d, float(domain.diameter), rng) for bit in (0, 1))
    share = 10.0 ** rng.uniform(-3.0, -1.0)
    start = domain.centroid(d)
    units = upper.value(start), lower.value(start)
    x = float(domain.diameter) * cvxpy.Variable(d)
    rows = case.constraints(domain, x)
    least = min(solve(g(x), rows, units[1]), units[1])
    if seed >> 2 & 1 and units[1] - least > BARELY * units[1]:
        problem, epsilon = Problem(upper, lower, domain, keep=1.0 - share), share * (units[1] - least)
    else:
        problem, epsilon = Problem(upper, lower, domain, tolerance=share * units[1]), share * units[1]
    level = g(x) / units[1] <= (least + epsilon) / units[1]
    best = solve(f(x), [*rows, level], units[0])
    price = abs(float(np.sum(level.dual_value))) * units[0]
    return Near(problem, epsilon, least, best, price * (float(np.max(level.violation())) + KEPT), units)


def loss(logistic: bool, d: int, size: float, rng: np.random.Generator) -> tuple[Any, Callable[[Any], Any]]:
    """Return a loss whose values on a set of some size are about one, and the same for CVXPY."""
    n = int(rng.integers(2, 2 * d + 2))
    A, b = rng.standard_normal((n, d)) * 3.0 / max(size, 1e-300), rng.standard_normal(n)
    if not logistic:
        return LeastSquares(A, b), lambda x: cvxpy.sum_squares(A @ x - b) / (2 * n)
    sign = np.where(b > 0.0, 1.0, -1.0)
    return Logistic(A, sign), lambda x: cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(sign, A @ x))) / n


def solve(objective: Any, constraints: list[Any], unit: float) -> float:
    """Return the least value, as accurately as the solver can find it."""
    stated = cvxpy.Problem(cvxpy.Minimize(objective / unit), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        return unit * float(stated.solve(**TIGHT))


def violations(near: Near, result: Result) -> Iterator[str]:
    """Yield what a result claims that CVXPY contradicts, in words; nothing if all holds."""
    found, (f_unit, g_unit) = result.certificate, near.units
    f_room, g_room = DOUBT * f_unit + near.doubt, 0.1 * DOUBT * g_unit
    excess = found.lower - near.lower - near.epsilon
    for claim, by in {
        "f* ≥ floor": found.floors.upper - near.upper - f_room,
        "g* ≥ floor": found.floors.lower - near.lower - g_room,
        "f(x) − f* ≤ bound": found.upper - near.upper - found.upper_gap_bound - f_room,
        "g(x) − g* ≤ bound": found.lower - near.lower - found.lower_gap_bound - g_room,
        "f* ≤ ceiling": near.upper - found.ceiling - f_room,
        "within": excess - g_room if found.within is True else -1.0,
        "beyond": -excess - g_room if found.within is False else -1.0,
        "ε": result.tolerance - near.epsilon - g_room,
    }.items():
        if not by <= 0.0:
            yield f"{claim} is violated by {by:.2g}"
