"""The convex hull of some points."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import Atom, atom_of, decomposed, distinct, has_vertices, has_vertices_always, vertices
from tiebreak.domains.base import (
    FREE,
    INVALID,
    Domain,
    contains,
    cut_lmo,
    diameter,
    least_value,
    lmo,
    settle,
    spread,
    unsettled,
)
from tiebreak.domains.cuts.vertices import Vertices, vertex_cut
from tiebreak.domains.rounding import quiet, raised
from tiebreak.engine import checks, kernel
from tiebreak.engine.rounding import SUBNORMAL, UNIT
from tiebreak.engine.vectors import copy, dot

NEAR = 1e-13  # distance, in units of the largest coordinate, within which a mean of the points is taken for x
MANY_POINTS = 2000  # number of points up to which each two of them are compared


class _Hull(NamedTuple):
    points: np.ndarray


class Hull(_Hull, Domain):
    """The convex hull of some points.

    A linear minimisation is one pass over the points, and a cut at most two. The diameter is exact for up to 2000 points;
    for more it is an upper bound, twice the largest distance from their mean. There is no projection.

    Parameters
    ----------
    points : array of shape (number of points, dimension)

    Examples
    --------
    >>> triangle = Hull([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> triangle.lmo([1.0, -1.0])
    array([0., 2.])
    >>> triangle.cut_lmo([1.0, -1.0], [0.0, 1.0], 1.0).point
    array([0., 1.])
    """

    __slots__ = ()

    def __new__(cls, points: Any) -> Hull:
        array = checks.numbers(points, "points")
        if array.ndim != 2 or array.size == 0:
            raise ValueError(f"`points` must be a non-empty matrix, one point per row, got an array of shape {array.shape}")
        array = np.array(array, dtype=np.float64, order="C")
        checks.finite(array, "points")
        return super().__new__(cls, array)

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return self.points.shape[1]

    def centroid(self, dimension: int) -> np.ndarray:
        return self.points.mean(axis=0)


@lmo.register(Hull)
def lmo_hull(domain, c, out):
    copy(domain.points[best_point(domain.points, c)], out)


@kernel
def best_point(points, c):
    """Return the index of the point for which ⟨c, point⟩ is smallest."""
    least = math.inf
    best = 0
    for i in range(points.shape[0]):
        value = dot(points[i], c)
        if value < least:
            least = value
            best = i
    return best


@cut_lmo.register(Hull)
def cut_lmo_hull(domain, c, a, b, out):
    # A cut over the simplex of the weights of the points. Its two vectors need room, as the points may be more than the
    # variables; the second is computed only if the cut is active.
    points = domain.points
    i = best_point(points, c)
    value_c, value_a = dot(points[i], c), dot(points[i], a)
    if not (math.isfinite(value_c) and math.isfinite(value_a)) or math.isnan(b):
        return INVALID, math.nan
    if value_a <= b:
        copy(points[i], out)
        return FREE, 0.0
    values = np.empty((2, points.shape[0]))
    for k in range(points.shape[0]):
        values[0, k] = dot(points[k], c)
        values[1, k] = dot(points[k], a)
    status, multiplier, i, weight_i, j, weight_j = vertex_cut(Vertices(1.0, False), values[0], values[1], b)
    if status != INVALID:
        for k in range(out.size):
            out[k] = weight_i * points[i, k] + weight_j * points[j, k]
    return status, multiplier


@contains.register(Hull)
def contains_hull(domain: Hull, x: np.ndarray, tol: float) -> bool:
    # Each coordinate may be off by tol of its width; the mean of the points that is nearest to x decides.
    width = np.ptp(domain.points, axis=0)
    rounding = 1e-14 * np.abs(domain.points).max(axis=0)
    weights = mean_weights(domain.points, x)
    return bool((np.abs(weights @ (domain.points - x)) <= tol * width + rounding).all())


@diameter.register(Hull)
def diameter_hull(domain):
    points = domain.points
    count, d = points.shape
    largest = 0.0
    if count <= MANY_POINTS:
        for i in range(count):
            for j in range(i):
                largest = max(largest, squared_distance(points[i], points[j]))
        return math.sqrt(largest)
    mean = np.zeros(d)
    for i in range(count):
        for k in range(d):
            mean[k] += points[i, k] / count
    for i in range(count):
        largest = max(largest, squared_distance(points[i], mean))
    return 2.0 * math.sqrt(largest)


@kernel(reorder=True)
def squared_distance(x, y):
    """Return ‖x − y‖²."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] - y[i]) * (x[i] - y[i])
    return total


def mean_weights(points: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the weights of the mean of the points that is nearest to x, each coordinate in units of its width."""
    from scipy.optimize import nnls  # slow to import, and rarely needed

    width = np.ptp(points, axis=0)
    units = np.where(width > 0.0, width, np.maximum(np.abs(points).max(axis=0), 1e-300))
    shifted = (points - x) / units
    rows = np.vstack([shifted.T, np.full(len(points), max(float(np.abs(shifted).max()), 1.0))])
    weights, _ = nnls(rows, np.append(np.zeros(x.size), rows[-1, 0]), maxiter=30 * len(points) + 300)
    return weights / weights.sum()


# Atoms


@vertices.register(Hull)
@quiet
def vertices_hull(domain: Hull, c: np.ndarray, count: int) -> list[Atom]:
    order = np.argsort(domain.points @ c, kind="stable")
    return distinct((atom_of(domain.points[i]) for i in order), count)


@decomposed.register(Hull)
@quiet
def decomposed_hull(domain: Hull, x: np.ndarray) -> list[tuple[float, Atom]]:
    weights = mean_weights(domain.points, x)
    sizes = np.abs(domain.points).max(axis=0)
    if not (np.abs(weights @ domain.points - x) <= NEAR * sizes).all():
        return [(1.0, atom_of(x))]
    return [(float(weights[i]), atom_of(domain.points[i])) for i in np.flatnonzero(weights)]


has_vertices.register(Hull)(has_vertices_always)


# Proofs


@least_value.register(Hull)
@quiet
def least_value_hull(domain: Hull, c: np.ndarray, atom: np.ndarray) -> float:
    margins = raised((c.size + 8) * UNIT * (np.abs(domain.points) @ np.abs(c)), c.size + 4) + 2 * c.size * SUBNORMAL
    least = float(np.min(domain.points @ c - margins))
    return -math.inf if math.isnan(least) else math.nextafter(least, -math.inf)


@spread.register(Hull)
@quiet
def spread_hull(domain: Hull, e: np.ndarray) -> float:
    return float(raised((np.abs(domain.points) @ e).max(), e.size + 1))


@settle.register(Hull)
@quiet
def settle_hull(domain: Hull, x: np.ndarray, off: np.ndarray) -> bool:
    weights = mean_weights(domain.points, x)
    mean = weights @ domain.points
    sizes = weights @ np.abs(domain.points)
    rounding = 4.0 * (len(domain.points) + 8) * UNIT * sizes + SUBNORMAL
    if not np.isfinite(mean).all():
        return unsettled(off)
    if (np.abs(mean - x) > 1e-13 * np.abs(domain.points).max(axis=0) + rounding).any():
        x[:] = mean
    off[:] = raised(np.abs(mean - x) + rounding, 4)
    return True
