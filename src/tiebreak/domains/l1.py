"""The ℓ1 ball and its kin: atoms on one coordinate."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import (
    Atom,
    decomposed,
    distinct,
    extent,
    has_vertices,
    has_vertices_always,
    least,
    mean_of_axes,
    near,
    on_axes,
    vertices,
)
from tiebreak.domains.base import (
    FREE,
    INVALID,
    Domain,
    contains,
    cut_lmo,
    cut_step,
    diameter,
    least_value,
    lmo,
    lmo_step,
    project,
    settle,
    spread,
    spread_by_signs,
)
from tiebreak.domains.cuts.search import opening
from tiebreak.domains.cuts.vertices import SignedVertices, place_vertices, step_to_vertices, vertex_cut, vertex_search
from tiebreak.domains.rounding import gauge_rounding, least_or_nothing, quiet, raised, settle_by_gauge
from tiebreak.engine import checks, kernel
from tiebreak.engine.printing import named
from tiebreak.engine.rounding import SUBNORMAL
from tiebreak.engine.vectors import abs_argmax, abs_argmax_of_sum, abs_sum, copy, fill, scale


class _L1Ball(NamedTuple):
    radius: float


class L1Ball(_L1Ball, Domain):
    """The set {x : ‖x‖₁ ≤ radius}. Its atoms are ±radius on one coordinate, so that solutions tend to be sparse.

    Parameters
    ----------
    radius : float, positive

    Examples
    --------
    >>> ball = L1Ball(2.0)
    >>> ball.lmo([1.0, -3.0])
    array([0., 2.])
    >>> ball.cut_lmo([1.0, -3.0], [0.0, 1.0], 1.0).point
    array([-1.,  1.])
    """

    __slots__ = ()

    def __new__(cls, radius: Any) -> L1Ball:
        return super().__new__(cls, checks.real(radius, "radius", above=0.0))


@lmo.register(L1Ball)
def lmo_l1_ball(domain, c, out):
    fill(out, 0.0)
    i = abs_argmax(c)
    out[i] = -math.copysign(domain.radius, c[i])


@lmo_step.register(L1Ball)
def lmo_step_l1_ball(domain, p, c, q, a, step, x, work):
    i = abs_argmax_of_sum(p, c, q, a)
    scale(1.0 - step, x)
    x[i] -= step * math.copysign(domain.radius, p * c[i] + q * a[i])


@cut_lmo.register(L1Ball)
def cut_lmo_l1_ball(domain, c, a, b, out):
    return place_vertices(vertex_cut(SignedVertices(domain.radius), c, a, b), out)


@cut_step.register(L1Ball)
def cut_step_l1_ball(domain, c, a, b, step, x, work):
    return step_to_vertices(vertex_cut(SignedVertices(domain.radius), c, a, b), step, x)


@project.register(L1Ball)
def project_l1_ball(domain, x, out):
    # The answer is sign(x_i) · max(level − gap_i, 0) with gap_i = max|x| − |x_i| and the level that gives it the right norm.
    if abs_sum(x) <= domain.radius:
        copy(x, out)
        return
    largest = abs(x[abs_argmax(x)])
    for i in range(x.size):
        out[i] = largest - abs(x[i])
    level = shrinkage_level(domain.radius, out, x.size)
    for i in range(x.size):
        out[i] = math.copysign(max(level - (largest - abs(x[i])), 0.0), x[i])


@kernel
def shrinkage_level(radius, gaps, left):
    """Return the level at which Σ max(level − gap_i, 0) = radius, for this many gaps ≥ 0, one of them 0; it overwrites them.

    Michelot (1986): take the level of all coordinates, drop those that it leaves at zero, and again. A gap beyond the radius
    never survives. Doubles allow some fifty rounds at worst; on data it is about five.
    """
    level = radius
    while True:
        total, kept = sum_below(gaps, left, level)
        if kept == 0:  # a radius so small that parts of it vanish
            return level
        if 8 * kept < left:
            left = keep_below(gaps, left, level)
        before, level = level, radius / kept + total / kept
        if level >= before:
            return level


@kernel(reorder=True)
def sum_below(gaps, left, level):
    """Return the sum and the number of the gaps below a level; without branches, for vector registers."""
    total = 0.0
    kept = 0
    for i in range(left):
        kept += gaps[i] < level
        total += gaps[i] * (gaps[i] < level)
    return total, kept


@kernel
def keep_below(gaps, left, level):
    """Move the gaps below a level to the front and return how many they are."""
    kept = 0
    for i in range(left):
        if gaps[i] < level:
            gaps[kept] = gaps[i]
            kept += 1
    return kept


@diameter.register(L1Ball)
def diameter_l1_ball(domain):
    return 2.0 * domain.radius


@contains.register(L1Ball)
@kernel
def contains_l1_ball(domain, x, tol):
    return abs_sum(x) <= domain.radius * (1.0 + tol)


class _WeightedL1Ball(NamedTuple):
    weights: np.ndarray
    radius: float
    reach: float  # of the longest atom: radius / min w
    share: np.ndarray  # how much of it the atom of each coordinate has: min w / w_i


class WeightedL1Ball(_WeightedL1Ball, Domain):
    """The set {x : Σ w_i |x_i| ≤ radius}. Its atoms are ±radius / w_i on coordinate i: the larger w_i, the dearer x_i.

    Parameters
    ----------
    weights : vector of d positive numbers
    radius : float, positive

    Examples
    --------
    >>> ball = WeightedL1Ball([1.0, 4.0], 2.0)
    >>> ball.lmo([1.0, -3.0])
    array([-2.,  0.])
    >>> ball.cut_lmo([1.0, -3.0], [-1.0, 0.0], 1.0).point
    array([-1.  ,  0.25])
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return named("WeightedL1Ball", {"weights": self.weights, "radius": self.radius})

    def __new__(cls, weights: Any, radius: Any) -> WeightedL1Ball:
        weights = checks.vector(weights, "weights")
        if weights.min() <= 0.0:
            i = int(np.argmax(weights <= 0.0))
            raise ValueError(f"`weights` must be positive, got {weights[i]} at [{i}]")
        radius = checks.real(radius, "radius", above=0.0)
        least = weights.min()
        reach = radius / float(least)
        if not math.isfinite(reach):
            raise ValueError(f"`radius` / `weights` must be finite, got {radius} / {least} at [{int(np.argmin(weights))}]")
        return super().__new__(cls, weights, radius, reach, least / weights)

    @property
    def dimension(self) -> int:
        return self.weights.size


@kernel
def longest_atom(share, c):
    """Return the first index of the largest |share_i c_i|, for finite numbers."""
    largest = -1.0
    index = 0
    for i in range(c.size):
        size = abs(share[i] * c[i])
        if size > largest:
            largest = size
            index = i
    return index


@lmo.register(WeightedL1Ball)
def lmo_weighted_l1_ball(domain, c, out):
    fill(out, 0.0)
    i = longest_atom(domain.share, c)
    out[i] = -math.copysign(domain.reach * domain.share[i], c[i])


@cut_lmo.register(WeightedL1Ball)
def cut_lmo_weighted_l1_ball(domain, c, a, b, out):
    return place_vertices(weighted_l1_cut(domain, c, a, b, out), out)


@cut_step.register(WeightedL1Ball)
def cut_step_weighted_l1_ball(domain, c, a, b, step, x, work):
    return step_to_vertices(weighted_l1_cut(domain, c, a, b, work), step, x)


@kernel
def weighted_l1_cut(domain, c, a, b, work):
    """Return (status, multiplier, i, s_i, j, s_j) of the cut's minimiser s, which is zero elsewhere; ``work`` is room.

    In the coordinates x_i / share_i the set is an ℓ1 ball of radius ``reach``, and c_i and a_i become share_i c_i and
    share_i a_i: no larger, so that nothing overflows.
    """
    if not opening(c, a, b)[0]:
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    share = domain.share
    i = longest_atom(share, c)
    at_i = -math.copysign(domain.reach, c[i]) * share[i]
    if at_i * a[i] <= b:
        return FREE, 0.0, i, at_i, i, 0.0
    scaled_a = np.empty(a.size)  # the room given suffices for c alone
    for k in range(c.size):
        work[k] = share[k] * c[k]
        scaled_a[k] = share[k] * a[k]
    atoms = SignedVertices(domain.reach)
    status, multiplier, i, at_i, j, at_j = vertex_search(
        atoms, work, scaled_a, b, i, -math.copysign(1.0, work[i]), abs(work[i])
    )
    return status, multiplier, i, share[i] * at_i, j, share[j] * at_j


@project.register(WeightedL1Ball)
def project_weighted_l1_ball(domain, x, out):
    # As for the ℓ1 ball, with gap_i = max_j |x_j|/w_j − |x_i|/w_i: the answer is sign(x_i) · w_i · max(level − gap_i, 0),
    # and the level of a set of coordinates is (radius + Σ w_i² gap_i) / Σ w_i². ``out`` holds the gaps.
    if weighted_abs_sum(domain.weights, x) <= domain.radius:
        copy(x, out)
        return
    weights = domain.weights
    top = 0
    for i in range(x.size):
        out[i] = abs(x[i]) / weights[i]
        if out[i] > out[top]:
            top = i
    largest = out[top]
    for i in range(x.size):
        out[i] = largest - out[i]
    level = domain.radius / weights[top] / weights[top]
    while True:
        total = domain.radius
        squares = 0.0
        for i in range(x.size):
            if out[i] < level:
                total += weights[i] * weights[i] * out[i]
                squares += weights[i] * weights[i]
        before, level = level, total / squares if squares > 0.0 else level
        if not level < before:
            break
    for i in range(x.size):
        out[i] = math.copysign(weights[i] * max(level - out[i], 0.0), x[i])


@kernel(reorder=True)
def weighted_abs_sum(weights, x):
    """Return Σ w_i |x_i|."""
    total = 0.0
    for i in range(x.size):
        total += weights[i] * abs(x[i])
    return total


@diameter.register(WeightedL1Ball)
def diameter_weighted_l1_ball(domain):
    return 2.0 * domain.reach


@contains.register(WeightedL1Ball)
@kernel
def contains_weighted_l1_ball(domain, x, tol):
    return weighted_abs_sum(domain.weights, x) <= domain.radius * (1.0 + tol)


# Atoms


@vertices.register(L1Ball)
def vertices_l1_ball(domain: L1Ball, c: np.ndarray, count: int) -> list[Atom]:
    where = least(-np.abs(c), count)
    return on_axes(where, np.where(c[where] > 0.0, -domain.radius, domain.radius))


@vertices.register(WeightedL1Ball)
@quiet
def vertices_weighted_l1_ball(domain: WeightedL1Ball, c: np.ndarray, count: int) -> list[Atom]:
    where = least(-np.abs(domain.share * c), count)
    reach = domain.reach * domain.share[where]
    return distinct(on_axes(where, np.where(c[where] > 0.0, -reach, reach)), count)  # atoms that underflow are the origin


@decomposed.register(L1Ball)
@quiet
def decomposed_l1_ball(domain: L1Ball, x: np.ndarray) -> list[tuple[float, Atom]]:
    return mean_of_axes(x, domain.radius, origin=True)


@decomposed.register(WeightedL1Ball)
@quiet
def decomposed_weighted_l1_ball(domain: WeightedL1Ball, x: np.ndarray) -> list[tuple[float, Atom]]:
    return mean_of_axes(x, domain.reach * domain.share, origin=True)


@near.register(L1Ball)
def near_l1_ball(domain: L1Ball, x: np.ndarray, reach: float) -> L1Ball:
    radius = float(np.abs(x).sum()) + reach
    return L1Ball(radius) if radius < 0.5 * domain.radius else domain


@extent.register(L1Ball)
def extent_l1_ball(domain: L1Ball, x: np.ndarray) -> tuple[float, float]:
    return float(np.abs(x).sum()), domain.radius


has_vertices.register(L1Ball)(has_vertices_always)
has_vertices.register(WeightedL1Ball)(has_vertices_always)


# Proofs


@least_value.register(L1Ball)
@quiet
def least_value_l1_ball(domain: L1Ball, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(-raised(domain.radius * float(np.abs(c).max()), 1))


@least_value.register(WeightedL1Ball)
@quiet
def least_value_weighted_l1_ball(domain: WeightedL1Ball, c: np.ndarray, atom: np.ndarray) -> float:
    reach = raised(domain.radius / domain.weights, 1)
    values = np.where(c == 0.0, 0.0, raised(reach * np.abs(c), 1))  # 0 · ∞ is 0 here
    return least_or_nothing(-float(values.max()))


spread.register(L1Ball)(spread_by_signs)
spread.register(WeightedL1Ball)(spread_by_signs)


@settle.register(L1Ball)
@quiet
def settle_l1_ball(domain: L1Ball, x: np.ndarray, off: np.ndarray) -> bool:
    gauge = float(np.abs(x).sum()) / domain.radius
    return settle_by_gauge(x, 0.0, gauge, gauge_rounding(x.size, domain.radius), off)


@settle.register(WeightedL1Ball)
@quiet
def settle_weighted_l1_ball(domain: WeightedL1Ball, x: np.ndarray, off: np.ndarray) -> bool:
    per_radius = domain.weights / domain.radius
    gauge = float((per_radius * np.abs(x)).sum())
    lost = 4.0 * SUBNORMAL * float(per_radius.sum()) + (0.0 if per_radius.min() > 1e-307 else 1.0)
    return settle_by_gauge(x, 0.0, gauge, gauge_rounding(x.size, 1.0) + lost, off)
