"""The ℓ1 ball and its kin: atoms on one coordinate."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.base import (
    ACTIVE,
    EMPTY,
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
from tiebreak.domains.cuts.search import LIFT, MAX_PASSES, TINY, boundary_weight, crossing, improves, multiplier_of, opening
from tiebreak.domains.rounding import SUBNORMAL, gauge_rounding, least_or_nothing, quiet, raised, settle_by_gauge
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import abs_argmax, abs_argmax_of_sum, abs_sum, copy, fill, scale


class _L1Ball(NamedTuple):
    radius: float


class L1Ball(Domain, _L1Ball):
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
def _(domain, c, out):
    fill(out, 0.0)
    i = abs_argmax(c)
    out[i] = -math.copysign(domain.radius, c[i])


@lmo_step.register(L1Ball)
def _(domain, p, c, q, a, step, x, work):
    i = abs_argmax_of_sum(p, c, q, a)
    scale(1.0 - step, x)
    x[i] -= step * math.copysign(domain.radius, p * c[i] + q * a[i])


@cut_lmo.register(L1Ball)
def _(domain, c, a, b, out):
    status, multiplier, i, at_i, j, at_j = l1_cut(domain, c, a, b)
    if status != INVALID:
        fill(out, 0.0)
        out[i] += at_i
        out[j] += at_j
    return status, multiplier


@cut_step.register(L1Ball)
def _(domain, c, a, b, step, x, work):
    status, multiplier, i, at_i, j, at_j = l1_cut(domain, c, a, b)
    if status != INVALID:
        scale(1.0 - step, x)
        x[i] += step * at_i
        x[j] += step * at_j
    return status, multiplier


@kernel
def l1_cut(domain, c, a, b):
    """Return (status, multiplier, i, s_i, j, s_j) of the cut's minimiser s, which is zero elsewhere.

    It is the dual search of ``cut.py`` in units of the radius, with atoms kept as a coordinate and a sign.
    """
    r = domain.radius
    i = abs_argmax(c)
    size_c = abs(c[i])
    if not (math.isfinite(size_c) and math.isfinite(a[i])) or math.isnan(b):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    sign_i = -math.copysign(1.0, c[i])
    if sign_i * r * a[i] <= b:
        return FREE, 0.0, i, sign_i * r, i, 0.0
    return l1_dual_search(r, c, a, b, i)


@kernel(inline=False)
def l1_dual_search(r, c, a, b, i):
    """Return what :func:`l1_cut` does, if the atom of c at coordinate i violates the cut."""
    sign_i = -math.copysign(1.0, c[i])  # the atom that violates the cut
    j = abs_argmax(a)
    sign_j = -math.copysign(1.0, a[j])  # the atom that satisfies it
    if not math.isfinite(a[j]):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    if -r * abs(a[j]) > b:
        return EMPTY, math.inf, j, sign_j * r, j, 0.0
    lift_c, lift_a = 1.0, 1.0
    if 0.0 < abs(c[i]) < TINY:
        lift_c = LIFT
        c = c * lift_c
    if 0.0 < abs(a[j]) < TINY:
        lift_a = LIFT
        a = a * lift_a
    size_c, size_a = abs(c[i]), abs(a[j])
    per_c = 1.0 / size_c if size_c > 0.0 else 0.0
    per_a = 1.0 / size_a if size_a > 0.0 else 0.0
    bound = b * lift_a / size_a / r if size_a > 0.0 else b
    c_outside, a_outside = sign_i * c[i] * per_c, sign_i * a[i] * per_a
    c_inside, a_inside = sign_j * c[j] * per_c, -abs(a[j]) * per_a
    bound = max(bound, a_inside)  # the cut is not empty, though it may seem so by rounding
    if a_outside <= bound:
        return FREE, 0.0, i, sign_i * r, i, 0.0

    for _ in range(MAX_PASSES):
        p, q = crossing(c_outside, a_outside, c_inside, a_inside)
        k = abs_argmax_of_sum(p * per_c, c, q * per_a, a)
        sign_k = -math.copysign(1.0, p * per_c * c[k] + q * per_a * a[k])
        c_new, a_new = sign_k * c[k] * per_c, sign_k * a[k] * per_a
        known = (k == i and sign_k == sign_i) or (k == j and sign_k == sign_j)
        if known or not improves(p, q, c_inside, a_inside, c_new, a_new):
            break
        if a_new > bound:
            i, sign_i, c_outside, a_outside = k, sign_k, c_new, a_new
        else:
            j, sign_j, c_inside, a_inside = k, sign_k, c_new, a_new

    weight = boundary_weight(a_outside, a_inside, bound)
    found = multiplier_of(c_outside, a_outside, c_inside, a_inside, size_c / lift_c, size_a / lift_a)
    return ACTIVE, found, i, weight * sign_i * r, j, (1.0 - weight) * sign_j * r


@project.register(L1Ball)
def _(domain, x, out):
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
def _(domain):
    return 2.0 * domain.radius


@contains.register(L1Ball)
def _(domain, x, tol):
    return abs_sum(x) <= domain.radius * (1.0 + tol)


class _WeightedL1Ball(NamedTuple):
    weights: np.ndarray
    radius: float
    reach: float  # of the longest atom: radius / min w
    share: np.ndarray  # how much of it the atom of each coordinate has: min w / w_i


class WeightedL1Ball(Domain, _WeightedL1Ball):
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
    def dimension(self) -> int:  # type: ignore[override]
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
def _(domain, c, out):
    fill(out, 0.0)
    i = longest_atom(domain.share, c)
    out[i] = -math.copysign(domain.reach * domain.share[i], c[i])


@cut_lmo.register(WeightedL1Ball)
def _(domain, c, a, b, out):
    status, multiplier, i, at_i, j, at_j = weighted_l1_cut(domain, c, a, b, out)
    if status != INVALID:
        fill(out, 0.0)
        out[i] += at_i
        out[j] += at_j
    return status, multiplier


@cut_step.register(WeightedL1Ball)
def _(domain, c, a, b, step, x, work):
    status, multiplier, i, at_i, j, at_j = weighted_l1_cut(domain, c, a, b, work)
    if status != INVALID:
        scale(1.0 - step, x)
        x[i] += step * at_i
        x[j] += step * at_j
    return status, multiplier


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
    status, multiplier, i, at_i, j, at_j = l1_dual_search(domain.reach, work, scaled_a, b, i)
    return status, multiplier, i, share[i] * at_i, j, share[j] * at_j


@project.register(WeightedL1Ball)
def _(domain, x, out):
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
def _(domain):
    return 2.0 * domain.reach


@contains.register(WeightedL1Ball)
def _(domain, x, tol):
    return weighted_abs_sum(domain.weights, x) <= domain.radius * (1.0 + tol)


# Proofs


@least_value.register(L1Ball)
@quiet
def _least_value_over_l1_ball(domain: L1Ball, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(-raised(domain.radius * float(np.abs(c).max()), 1))


@least_value.register(WeightedL1Ball)
@quiet
def _least_value_over_weighted_l1_ball(domain: WeightedL1Ball, c: np.ndarray, atom: np.ndarray) -> float:
    reach = raised(domain.radius / domain.weights, 1)
    values = np.where(c == 0.0, 0.0, raised(reach * np.abs(c), 1))  # 0 · ∞ is 0 here
    return least_or_nothing(-float(values.max()))


spread.register(L1Ball)(spread_by_signs)
spread.register(WeightedL1Ball)(spread_by_signs)


@settle.register(L1Ball)
@quiet
def _settle_in_l1_ball(domain: L1Ball, x: np.ndarray, off: np.ndarray) -> bool:
    gauge = float(np.abs(x).sum()) / domain.radius
    return settle_by_gauge(x, 0.0, gauge, gauge_rounding(x.size, domain.radius), off)


@settle.register(WeightedL1Ball)
@quiet
def _settle_in_weighted_l1_ball(domain: WeightedL1Ball, x: np.ndarray, off: np.ndarray) -> bool:
    per_radius = domain.weights / domain.radius
    gauge = float((per_radius * np.abs(x)).sum())
    lost = 4.0 * SUBNORMAL * float(per_radius.sum()) + (0.0 if per_radius.min() > 1e-307 else 1.0)
    return settle_by_gauge(x, 0.0, gauge, gauge_rounding(x.size, 1.0) + lost, off)
