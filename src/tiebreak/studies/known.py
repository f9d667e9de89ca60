"""A small problem of which everything is known: g*, f*, and the whole solution set of the lower level, a polygon.

g is a loss of a linear model whose data have two dimensions fewer than its variable, with targets that no model meets, so
that its samples disagree at every minimiser. Over an ℓ1 ball that the minimiser of least norm lies inside of, the minimisers
are the points of a plane in the ball: a polygon. A linear function is largest over it at one of its vertices, and a convex
quadratic is least inside of it or on an edge.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, HalfspaceIntersection

import tiebreak

DIMENSION, FLAT = 8, 2  # dimensions of the variable and of the solution set
SAMPLES = 400  # samples of each level
RADIUS, INSIDE = 3.0, 0.4  # radius of the ball; share of it at which the solution of least norm lies
NOISE, LABEL_NOISE = 0.5, 2.0  # deviations of the targets, in units of what models explain
NEWTON = 50  # iterations, of which some ten are needed


class Known(NamedTuple):
    """A problem and its solution."""

    problem: tiebreak.Problem
    x0: np.ndarray  # the minimiser of g of least norm
    vertices: np.ndarray  # (k, d): of the set of all minimisers of g
    lower: float  # g*
    upper: float  # f*; NaN if f is not convex

    def upper_gap(self, x: np.ndarray) -> float:
        """Return f(x) − f*, or for f not convex max ⟨∇f(x), x − s⟩ over the minimisers s of g."""
        value, gradient = self.problem.upper.value_and_gradient(x)
        return float(gradient @ x - (self.vertices @ gradient).min()) if np.isnan(self.upper) else value - self.upper

    def lower_gap(self, x: np.ndarray) -> float:
        """Return g(x) − g*."""
        return self.problem.lower.value(x) - self.lower


def known(seed: int, convex: bool = True) -> Known:
    """Return the problem of a seed: two least-squares losses or, with f not convex, a covariance and a logistic loss.

    Examples
    --------
    >>> case = known(0)
    >>> max(abs(case.lower_gap(vertex)) for vertex in case.vertices) < 1e-12
    True
    >>> min(case.upper_gap(vertex) for vertex in case.vertices) >= -1e-12
    True
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((SAMPLES, DIMENSION - FLAT)) @ rng.standard_normal((DIMENSION - FLAT, DIMENSION))
    A /= np.std(A)
    answers = A @ rng.standard_normal(DIMENSION)
    answers += (NOISE if convex else LABEL_NOISE) * np.std(answers) * rng.standard_normal(SAMPLES)
    B, other = rng.standard_normal((SAMPLES, DIMENSION)), rng.standard_normal(DIMENSION)
    upper: tiebreak.Objective
    lower: tiebreak.Objective
    if convex:
        x0 = np.linalg.pinv(A) @ answers
        units = INSIDE * RADIUS / np.abs(x0).sum()
        x0, lower = units * x0, tiebreak.LeastSquares(A, units * answers)
        upper = tiebreak.LeastSquares(B, B @ other + NOISE * rng.standard_normal(SAMPLES))
    else:
        x0 = logistic_minimiser(A, np.sign(answers))
        units = INSIDE * RADIUS / np.abs(x0).sum()
        x0, lower = units * x0, tiebreak.Logistic(A / units, np.sign(answers))
        # The attribute is told by what all minimisers of g share, so that none of them is fair.
        upper = tiebreak.SquaredCovariance(B, (B @ x0 > 0.0).astype(float))
    vertices = polygon(x0, np.linalg.svd(A)[2][-FLAT:], RADIUS)
    best = least_on_polygon(upper, vertices) if convex else np.nan
    return Known(tiebreak.Problem(upper, lower, tiebreak.L1Ball(RADIUS)), x0, vertices, lower.value(x0), best)


def logistic_minimiser(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the minimiser of least norm of mean log(1 + exp(−b_i ⟨a_i, x⟩)), by Newton's method with halved steps."""
    loss, x = tiebreak.Logistic(A, b), np.zeros(A.shape[1])
    for _ in range(NEWTON):
        value, gradient = loss.value_and_gradient(x)
        chance = 0.5 * (1.0 + np.tanh(0.5 * A @ x))
        way = (
            -np.linalg.pinv(A.T @ ((chance * (1.0 - chance))[:, None] * A) / b.size, rcond=1e-10, hermitian=True) @ gradient
        )
        step = 1.0
        while step > 1e-3 and loss.value(x + step * way) > value:
            step /= 2
        x = x + step * way
    return x


def polygon(x: np.ndarray, plane: np.ndarray, radius: float) -> np.ndarray:
    """Return the vertices, in order, of the points of an ℓ1 ball in the plane through x that two directions span.

    Examples
    --------
    >>> polygon(np.zeros(3), np.eye(3)[:2], 1.0).shape
    (4, 3)
    """
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=x.size)))
    sides = np.column_stack([signs @ plane.T, signs @ x - radius])
    corners = HalfspaceIntersection(sides, np.zeros(2)).intersections
    corners = corners[ConvexHull(corners).vertices]
    steps = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    return x + corners[steps > 1e-9 * radius] @ plane


def least_on_polygon(f: tiebreak.Objective, vertices: np.ndarray) -> float:
    """Return the least value of a convex quadratic over a polygon."""
    centre, (first, second) = vertices.mean(axis=0), np.linalg.svd(vertices - vertices.mean(axis=0))[2][:2]
    plane = np.column_stack([first, second])
    at_centre = f.value_and_gradient(centre)[1]
    bend = np.column_stack([f.value_and_gradient(centre + way)[1] - at_centre for way in plane.T])
    inner = centre + plane @ np.linalg.solve(plane.T @ bend, -plane.T @ at_centre)
    if _inside(inner - centre, (vertices - centre) @ plane, plane):
        return f.value(inner)
    ends = np.roll(vertices, -1, axis=0)
    return min(f.value(_least_on_edge(f, start, end)) for start, end in zip(vertices, ends, strict=True))


def _inside(offset: np.ndarray, corners: np.ndarray, plane: np.ndarray) -> bool:
    point, ways = offset @ plane, np.roll(corners, -1, axis=0) - corners
    turns = ways[:, 0] * (point - corners)[:, 1] - ways[:, 1] * (point - corners)[:, 0]
    return bool((turns >= 0.0).all() or (turns <= 0.0).all())


def _least_on_edge(f: tiebreak.Objective, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    way = end - start
    slope, later = f.value_and_gradient(start)[1] @ way, f.value_and_gradient(end)[1] @ way
    share = np.clip(-slope / (later - slope), 0.0, 1.0) if later != slope else 0.0
    return start + share * way
