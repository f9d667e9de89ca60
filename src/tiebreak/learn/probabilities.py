"""The covariances of predicted probabilities with attributes: not convex, and lowered by one convex problem after another.

The probabilities σ(⟨a_i, x⟩) are replaced by their tangents at the current x, which makes the covariances linear. Of the
points within the tolerance the one where their squares are least is found exactly. It gives a direction; the step along it
is halved until the covariances themselves fall. All points on the way are within the tolerance, as g is convex.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from tiebreak.driver.result import Result
from tiebreak.learn.sensitive import Contrasts
from tiebreak.objectives import LeastSquares, SquaredCovariance, Sum
from tiebreak.problem import Problem

MOST_ROUNDS = 20
SETTLED = 1e-3  # relative decrease of unfairness below which it has settled
LEAST_STEP = 1e-3
SATURATED = 1e-100  # largest slope of a covariance below which all probabilities are 0 or 1


def squared_covariances(rows: Any, contrasts: Contrasts) -> Any:
    """Return the sum of squared covariances of σ(⟨a_i, x⟩), with a_i the rows; not convex."""
    n = rows.shape[0]
    first = SquaredCovariance(rows, np.arange(n) == 0)  # checked once; the attributes are put in below
    terms = [first._replace(centred=n * row) for row in contrasts.rows]
    return Sum(*terms) if len(terms) > 1 else terms[0]


def tangent(rows: Any, contrasts: Contrasts, x: np.ndarray) -> Any:
    """Return the same with probabilities replaced by their tangents at x; convex. None if these are flat."""
    scores = rows @ x
    at = expit(scores)
    slopes = at * expit(-scores)
    count = len(contrasts.names)
    weighted = contrasts.rows * slopes
    covariances = np.ascontiguousarray((rows.T @ weighted.T).T)  # of rows that may be sparse
    if np.abs(covariances).max() < SATURATED:
        return None
    return 2.0 * count * LeastSquares(covariances, weighted @ scores - contrasts.rows @ at)  # it is half a mean


class Descent(NamedTuple):
    """Where it has led."""

    x: np.ndarray
    results: list[Result]  # one per round


def descend(near: Problem, rows: Any, contrasts: Contrasts, x: np.ndarray, solve: Callable[..., Result]) -> Descent:
    """Lower the covariances from a point x, as long as it is worth a further round.

    Parameters
    ----------
    near : Problem
        With the squared covariances as its upper objective.
    rows, contrasts
        As for :func:`squared_covariances`.
    x : array, (d,)
        A point within the tolerance.
    solve : callable
        Called with a problem and ``x0``, to solve it.
    """
    value, results = float(near.upper.value(x)), []
    for _ in range(MOST_ROUNDS):
        if (linear := tangent(rows, contrasts, x)) is None:
            break
        result = solve(Problem(linear, *near[1:]), x0=x)
        way, step = result.x - x, 1.0
        while (found := float(near.upper.value(x + step * way))) >= value and step > LEAST_STEP:
            step *= 0.5
        results.append(result)
        if found >= value:
            break
        x, settled, value = x + step * way, found > (1.0 - SETTLED) * value, found
        if settled:
            break
    return Descent(x, results)
