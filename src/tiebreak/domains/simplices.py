"""Simplices: non-negative numbers with a given sum, or at most that, or with a cap on each."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
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
    project,
    settle,
    spread,
    spread_by_signs,
    unsettled,
)
from tiebreak.domains.cuts.ranking import Ranking, ranked_cut
from tiebreak.domains.cuts.search import (
    LIFT,
    MAX_PASSES,
    TINY,
    boundary_weight,
    crossing,
    improves,
    multiplier_of,
    next_atom,
)
from tiebreak.domains.l1 import shrinkage_level
from tiebreak.domains.rounding import (
    SUBNORMAL,
    UNIT,
    gauge_rounding,
    least_or_nothing,
    quiet,
    raised,
    settle_by_gauge,
    sum_floor,
)
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import abs_argmax, argmin, argmin_of_sum, copy, fill, plain_sum, scale

ORIGIN = -1  # stands for the atom 0 where others are known by their coordinate
LARGEST = sys.float_info.max  # in place of a difference that overflows


class _Scale(NamedTuple):
    scale: float


class Simplex(Domain, _Scale):
    """The set {x ≥ 0 : Σ xᵢ = scale}. Its atoms are ``scale`` on one coordinate.

    Its diameter is √2 · scale; for a single variable, where the set is a point, that is an upper bound.

    Parameters
    ----------
    scale : float, positive

    Examples
    --------
    >>> simplex = Simplex(2.0)
    >>> simplex.lmo([1.0, -3.0, 0.0])
    array([0., 2., 0.])
    >>> simplex.cut_lmo([1.0, -3.0, 0.0], [0.0, 1.0, 0.0], 1.0).point
    array([0., 1., 1.])
    >>> simplex.project([1.0, 2.0, -1.0])
    array([0.5, 1.5, 0. ])
    """

    __slots__ = ()

    def __new__(cls, scale: Any = 1.0) -> Simplex:
        return super().__new__(cls, checks.real(scale, "scale", above=0.0))


class UnitSimplex(Domain, _Scale):
    """The set {x ≥ 0 : Σ xᵢ ≤ scale}. Its atoms are 0 and ``scale`` on one coordinate.

    Its diameter is √2 · scale; for a single variable, where it is ``scale``, that is an upper bound.

    Parameters
    ----------
    scale : float, positive

    Examples
    --------
    >>> simplex = UnitSimplex(2.0)
    >>> simplex.lmo([1.0, 3.0])
    array([0., 0.])
    >>> simplex.cut_lmo([1.0, -3.0], [0.0, 1.0], 1.0).point
    array([0., 1.])
    """

    __slots__ = ()

    def __new__(cls, scale: Any = 1.0) -> UnitSimplex:
        return super().__new__(cls, checks.real(scale, "scale", above=0.0))


class _CappedSimplex(NamedTuple):
    total: float
    cap: float
    size: int


class CappedSimplex(Domain, _CappedSimplex):
    """The set {0 ≤ xᵢ ≤ cap : Σ xᵢ = total}. In an atom all coordinates but one are 0 or ``cap``.

    Parameters
    ----------
    total : float, positive
        At most ``cap * dimension`` (up to rounding), where the set is a single point.
    cap : float, positive
    dimension : int

    Examples
    --------
    >>> portfolio = CappedSimplex(1.0, 0.4, 4)
    >>> portfolio.lmo([1.0, -3.0, 0.0, -1.0])
    array([0. , 0.4, 0.2, 0.4])
    """

    __slots__ = ()

    def __new__(cls, total: Any, cap: Any, dimension: Any) -> CappedSimplex:
        total = checks.real(total, "total", above=0.0)
        cap = checks.real(cap, "cap", above=0.0)
        dimension = checks.whole(dimension, "dimension")
        if total > cap * dimension * (1.0 + 1e-12):
            raise ValueError(
                f"`total` must be at most `cap` * `dimension`, or the set is empty, got {total:g} > {cap:g} * {dimension}"
            )
        total = min(total, cap * dimension)
        while Fraction(total) > Fraction(cap) * dimension:  # by rounding, and in exact arithmetic no point would be left
            total = math.nextafter(total, 0.0)
        return super().__new__(cls, total, cap, dimension)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Number of variables."""
        return self.size


# Linear minimisation


@lmo.register(Simplex)
def _(domain, c, out):
    fill(out, 0.0)
    out[argmin(c)] = domain.scale


@lmo.register(UnitSimplex)
def _(domain, c, out):
    fill(out, 0.0)
    i = argmin(c)
    if c[i] < 0.0:
        out[i] = domain.scale


@lmo.register(CappedSimplex)
def _(domain, c, out):
    lmo(portions(domain), c, out)


@next_atom.register(CappedSimplex)
def _(domain, c, a, out):
    next_atom(portions(domain), c, a, out)


@cut_lmo.register(CappedSimplex)
def _(domain, c, a, b, out):
    return ranked_cut(portions(domain), c, a, b, out)


@kernel
def portions(domain):
    """Return how many coordinates get the cap, and what the next one gets."""
    full = min(int(domain.total / domain.cap), domain.size)
    return Ranking(False, full, domain.cap, min(max(domain.total - full * domain.cap, 0.0), domain.cap))


# The cut of sets with an atom for each coordinate


@cut_lmo.register(Simplex)
def _(domain, c, a, b, out):
    return two_atoms(vertex_cut(c, a, b, domain.scale, False), domain.scale, out)


@cut_lmo.register(UnitSimplex)
def _(domain, c, a, b, out):
    return two_atoms(vertex_cut(c, a, b, domain.scale, True), domain.scale, out)


@cut_step.register(Simplex)
def _(domain, c, a, b, step, x, work):
    return step_to_two_atoms(vertex_cut(c, a, b, domain.scale, False), domain.scale, step, x)


@cut_step.register(UnitSimplex)
def _(domain, c, a, b, step, x, work):
    return step_to_two_atoms(vertex_cut(c, a, b, domain.scale, True), domain.scale, step, x)


@kernel
def two_atoms(cut, size, out):
    """Set ``out`` to the point that :func:`vertex_cut` found."""
    status, multiplier, i, at_i, j, at_j = cut
    if status != INVALID:
        fill(out, 0.0)
        if i != ORIGIN:
            out[i] += size * at_i
        if j != ORIGIN:
            out[j] += size * at_j
    return status, multiplier


@kernel
def step_to_two_atoms(cut, size, step, x):
    """Move x towards the point that :func:`vertex_cut` found."""
    status, multiplier, i, at_i, j, at_j = cut
    if status != INVALID:
        scale(1.0 - step, x)
        if i != ORIGIN:
            x[i] += step * size * at_i
        if j != ORIGIN:
            x[j] += step * size * at_j
    return status, multiplier


@kernel
def vertex_cut(c, a, b, size, with_origin):
    """Return (status, multiplier, i, w_i, j, w_j): the minimiser of the cut is w_i times vertex i plus w_j times vertex j.

    ``size`` times c and a are the values of ⟨c, s⟩ and ⟨a, s⟩ at the vertices, one an entry; with ``with_origin`` there is
    one more, ORIGIN, where both are zero.
    """
    size_c = abs(c[abs_argmax(c)])
    i = argmin(c)
    if with_origin and c[i] >= 0.0:
        i = ORIGIN
    a_i = value_at(a, i)
    if not (math.isfinite(size_c) and math.isfinite(a_i)) or math.isnan(b):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    if size * a_i <= b:
        return FREE, 0.0, i, 1.0, i, 0.0
    return vertex_search(c, a, b, size, with_origin, i, size_c)


@kernel(inline=False)
def vertex_search(c, a, b, size, with_origin, i, size_c):
    """Return what :func:`vertex_cut` does, if vertex i, the best for c, violates the cut: the dual search of ``cut.py``."""
    size_a = abs(a[abs_argmax(a)])
    j = argmin(a)  # the vertex that satisfies the cut
    if with_origin and a[j] >= 0.0:
        j = ORIGIN
    if not math.isfinite(size_a):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    if size * value_at(a, j) > b:
        return EMPTY, math.inf, j, 1.0, j, 0.0
    lift_c, lift_a = 1.0, 1.0
    if 0.0 < size_c < TINY:
        lift_c = LIFT
        c = c * lift_c
    if 0.0 < size_a < TINY:
        lift_a = LIFT
        a = a * lift_a
    size_c *= lift_c
    size_a *= lift_a
    per_c = 1.0 / size_c if size_c > 0.0 else 0.0
    per_a = 1.0 / size_a if size_a > 0.0 else 0.0
    bound = b * lift_a / size_a / size if size_a > 0.0 else b
    c_outside, a_outside = value_at(c, i) * per_c, value_at(a, i) * per_a
    c_inside, a_inside = value_at(c, j) * per_c, value_at(a, j) * per_a
    bound = max(bound, a_inside)  # in these units rounding may put it a hair below
    if a_outside <= bound:
        return FREE, 0.0, i, 1.0, i, 0.0

    for _ in range(MAX_PASSES):
        p, q = crossing(c_outside, a_outside, c_inside, a_inside)
        k = argmin_of_sum(p * per_c, c, q * per_a, a)
        c_new, a_new = c[k] * per_c, a[k] * per_a
        if with_origin and p * c_new + q * a_new >= 0.0:
            k, c_new, a_new = ORIGIN, 0.0, 0.0
        if k in (i, j) or not improves(p, q, c_inside, a_inside, c_new, a_new):
            break
        if a_new > bound:
            i, c_outside, a_outside = k, c_new, a_new
        else:
            j, c_inside, a_inside = k, c_new, a_new

    weight = boundary_weight(a_outside, a_inside, bound)
    found = multiplier_of(c_outside, a_outside, c_inside, a_inside, size_c / lift_c, size_a / lift_a)
    return ACTIVE, found, i, weight, j, 1.0 - weight


@kernel
def value_at(x, i):
    """Return x_i, or 0 at the origin."""
    return 0.0 if i == ORIGIN else x[i]


# Projection


@project.register(Simplex)
def _(domain, x, out):
    project_to_simplex(x, domain.scale, out)


@project.register(UnitSimplex)
def _(domain, x, out):
    total = 0.0
    for i in range(x.size):
        out[i] = max(x[i], 0.0)
        total += out[i]
    if total > domain.scale:
        project_to_simplex(x, domain.scale, out)


@kernel
def project_to_simplex(x, size, out):
    """Set ``out`` to the point of {s ≥ 0 : Σ s_i = size} that is nearest to x.

    It is max(level − gap_i, 0) with gap_i = max x − x_i and the level that gives the right sum.
    """
    largest = x[argmin_of_sum(-1.0, x, 0.0, x)]
    for i in range(x.size):
        out[i] = min(largest - x[i], LARGEST)
    level = shrinkage_level(size, out, x.size)
    for i in range(x.size):
        out[i] = max(level - (largest - x[i]), 0.0)


@project.register(CappedSimplex)
def _(domain, x, out):
    # The answer is x_i − τ clipped to [0, cap], with the τ that gives the right sum. Variable fixing (Bitran and Hax, 1981):
    # take the τ of all coordinates without the clipping. If the clipped sum is too small, τ must fall, and what is at the
    # cap stays there; if it is too large, what is at zero stays. Fix these and go on with the others, which ``out`` holds.
    # The sum decides rightly for any τ, so rounding of τ does no harm before the end, when all numbers left are close.
    copy(x, out)
    left, total = x.size, domain.total
    top, bottom = math.inf, -math.inf  # what is not between them is fixed
    largest, level = 0.0, 0.0
    while left > 0:
        largest, level = common_level(out, left, total)
        found, capped, lowest_capped, highest_zero = clipped_sum(out, left, largest, level, domain.cap)
        if found < total and capped > 0:
            top = lowest_capped
            total = max(total - capped * domain.cap, 0.0)
        elif found > total and highest_zero > -math.inf:
            bottom = highest_zero
        else:
            break
        kept = 0
        for i in range(left):
            if bottom < out[i] < top:
                out[kept] = out[i]
                kept += 1
        left = kept
    for i in range(x.size):
        if x[i] >= top:
            out[i] = domain.cap
        elif x[i] <= bottom:
            out[i] = 0.0
        else:
            out[i] = min(max(level - (largest - x[i]), 0.0), domain.cap)


@kernel
def common_level(values, count, total):
    """Return the largest of the first values v, and the level such that level − (largest − v) sum to the total."""
    largest = -math.inf
    for i in range(count):
        largest = max(largest, values[i])
    gaps = 0.0
    for i in range(count):
        gaps += largest - values[i]
    return largest, total / count + gaps / count


@kernel
def clipped_sum(values, count, largest, level, cap):
    """Return the sum of the first values level − (largest − v), clipped, and what is clipped.

    That is, how many are at the cap, the smallest v of these (or ∞) and the largest v that is at zero (or −∞).
    """
    total = 0.0
    capped = 0
    lowest_capped, highest_zero = math.inf, -math.inf
    for i in range(count):
        value = level - (largest - values[i])
        if value >= cap:
            capped += 1
            lowest_capped = min(lowest_capped, values[i])
        elif value <= 0.0:
            highest_zero = max(highest_zero, values[i])
        total += min(max(value, 0.0), cap)
    return total, capped, lowest_capped, highest_zero


# Size and membership


@diameter.register(Simplex)
def _(domain):
    return math.sqrt(2.0) * domain.scale


@diameter.register(UnitSimplex)
def _(domain):
    return math.sqrt(2.0) * domain.scale


@diameter.register(CappedSimplex)
def _(domain):
    # Atoms are permutations of one vector, and those are farthest apart that are sorted in opposite orders.
    share = domain.total / domain.cap
    total = 0.0
    for i in range(domain.size):
        difference = min(max(share - i, 0.0), 1.0) - min(max(share - (domain.size - 1 - i), 0.0), 1.0)
        total += difference * difference
    return math.sqrt(total) * domain.cap


@contains.register(Simplex)
def _(domain, x, tol):
    return within(x, math.inf, tol * domain.scale) and abs(plain_sum(x) - domain.scale) <= tol * domain.scale


@contains.register(UnitSimplex)
def _(domain, x, tol):
    return within(x, math.inf, tol * domain.scale) and plain_sum(x) <= domain.scale * (1.0 + tol)


@contains.register(CappedSimplex)
def _(domain, x, tol):
    return (
        within(x, domain.cap, tol * min(domain.cap, domain.total)) and abs(plain_sum(x) - domain.total) <= tol * domain.total
    )


@kernel
def within(x, cap, margin):
    """Return whether all entries of x are in [0, cap], up to a margin."""
    inside = True
    for i in range(x.size):
        inside = inside and -margin <= x[i] <= cap + margin
    return inside


# Proofs


@least_value.register(Simplex)
@quiet
def _least_value_over_simplex(domain: Simplex, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(math.nextafter(domain.scale * float(c.min()), -math.inf))


@least_value.register(UnitSimplex)
@quiet
def _least_value_over_unit_simplex(domain: UnitSimplex, c: np.ndarray, atom: np.ndarray) -> float:
    least = float(c.min())
    return 0.0 if least >= 0.0 else least_or_nothing(math.nextafter(domain.scale * least, -math.inf))


@least_value.register(CappedSimplex)
@quiet
def _least_value_over_capped_simplex(domain: CappedSimplex, c: np.ndarray, atom: np.ndarray) -> float:
    # For any level τ, ⟨c, s⟩ = τ · total + Σ (c_j − τ) s_j ≥ τ · total + Σ cap · min(c_j − τ, 0); the best τ is the first
    # c_j that does not get the full cap.
    full = min(int(domain.total / domain.cap), c.size - 1)
    level = float(np.partition(c, full)[full])
    below = np.maximum(level - c, 0.0)
    gains = raised(domain.cap * raised(float(below.sum()), c.size + 1), 1)
    return sum_floor(np.array([math.nextafter(level * domain.total, -math.inf), -gains]))


spread.register(Simplex)(spread_by_signs)
spread.register(UnitSimplex)(spread_by_signs)
spread.register(CappedSimplex)(spread_by_signs)


@settle.register(Simplex)
@quiet
def _settle_in_simplex(domain: Simplex, x: np.ndarray, off: np.ndarray) -> bool:
    np.maximum(x, 0.0, out=x)
    return settle_total(x, domain.scale, math.inf, off)


@settle.register(UnitSimplex)
@quiet
def _settle_in_unit_simplex(domain: UnitSimplex, x: np.ndarray, off: np.ndarray) -> bool:
    np.maximum(x, 0.0, out=x)
    return settle_by_gauge(x, 0.0, float(x.sum()) / domain.scale, gauge_rounding(x.size, domain.scale), off)


@settle.register(CappedSimplex)
@quiet
def _settle_in_capped_simplex(domain: CappedSimplex, x: np.ndarray, off: np.ndarray) -> bool:
    np.clip(x, 0.0, domain.cap, out=x)
    return settle_total(x, domain.total, domain.cap, off)


def settle_total(x: np.ndarray, total: float, cap: float, off: np.ndarray) -> bool:
    """Settle x, which is between 0 and the cap, where its sum is the total.

    Where it is too large all entries shrink by one factor; where it is too small they grow by one, or with a cap by one
    share of what is missing to it.
    """
    rounding = gauge_rounding(x.size, total)
    found = float(x.sum())
    if rounding > 0.01 or not 0.5 * total < found < 2.0 * total:
        return unsettled(off)
    if abs(found - total) > rounding * total:
        if found > total or cap == math.inf:
            x *= total / found
        else:
            x += min((total - found) / float((cap - x).sum()), 1.0) * (cap - x)
        np.minimum(x, cap, out=x)
        found = float(x.sum())
    doubt = raised(abs(found - total) + rounding * total, 4)  # how far the exact sum may be from the total
    if doubt > 0.5 * total:
        return unsettled(off)
    off[:] = raised(doubt / (total - doubt) * x, 8)
    if cap < math.inf:
        room = raised(cap - x, 1)
        missing = float(room.sum()) * (1.0 - rounding) - (x.size + 2) * UNIT * cap
        share = min(raised(doubt / missing, 4), 1.0) if missing > 0.0 else 1.0
        off[:] = np.maximum(off, raised(share * room, 4)) + SUBNORMAL
    return True
