"""The simplex with a cap on each coordinate."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import Atom, has_vertices, has_vertices_always, vertices
from tiebreak.domains.base import (
    Domain,
    contains,
    cut_lmo,
    diameter,
    least_value,
    lmo,
    project,
    settle,
    spread,
    spread_by_signs,
)
from tiebreak.domains.cuts.ranking import Ranking
from tiebreak.domains.cuts.search import dual_search, next_atom
from tiebreak.domains.exchanges import exchanged
from tiebreak.domains.rounding import quiet, raised, sum_floor
from tiebreak.domains.simplices import settle_total, within
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import copy, plain_sum


class _CappedSimplex(NamedTuple):
    total: float
    cap: float
    dimension: int


class CappedSimplex(_CappedSimplex, Domain):
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

    def centroid(self, dimension: int) -> np.ndarray:
        return np.full(self.dimension, self.total / self.dimension)


@lmo.register(CappedSimplex)
def lmo_capped_simplex(domain, c, out):
    lmo(portions(domain), c, out)


@next_atom.register(CappedSimplex)
def next_atom_capped_simplex(domain, c, a, out):
    next_atom(portions(domain), c, a, out)


@cut_lmo.register(CappedSimplex)
def cut_lmo_capped_simplex(domain, c, a, b, out):
    return dual_search(portions(domain), c, a, b, out)


@kernel
def portions(domain):
    """Return how many coordinates get the cap, and what the next one gets."""
    full = min(int(domain.total / domain.cap), domain.dimension)
    return Ranking(False, full, domain.cap, min(max(domain.total - full * domain.cap, 0.0), domain.cap))


@project.register(CappedSimplex)
def project_capped_simplex(domain, x, out):
    # The answer is x_i − τ clipped to [0, cap], with the τ that gives the right sum. Variable fixing (Bitran and Hax, 1981):
    # take the τ of all coordinates without the clipping. If the clipped sum is too small, τ must fall, and what is at the
    # cap stays there; if it is too large, what is at zero stays. Fix these and treat the others, which ``out`` holds.
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


@diameter.register(CappedSimplex)
def diameter_capped_simplex(domain):
    # Atoms are permutations of one vector, and those are farthest apart that are sorted in opposite orders.
    share = domain.total / domain.cap
    total = 0.0
    for i in range(domain.dimension):
        difference = min(max(share - i, 0.0), 1.0) - min(max(share - (domain.dimension - 1 - i), 0.0), 1.0)
        total += difference * difference
    return math.sqrt(total) * domain.cap


@contains.register(CappedSimplex)
@kernel
def contains_capped_simplex(domain, x, tol):
    return (
        within(x, domain.cap, tol * min(domain.cap, domain.total)) and abs(plain_sum(x) - domain.total) <= tol * domain.total
    )


# Atoms


@vertices.register(CappedSimplex)
def vertices_capped_simplex(domain: CappedSimplex, c: np.ndarray, count: int) -> list[Atom]:
    return exchanged(portions(domain), c, count)


has_vertices.register(CappedSimplex)(has_vertices_always)


# Proofs


@least_value.register(CappedSimplex)
@quiet
def least_value_capped_simplex(domain: CappedSimplex, c: np.ndarray, atom: np.ndarray) -> float:
    # For any level τ, ⟨c, s⟩ = τ · total + Σ (c_j − τ) s_j ≥ τ · total + Σ cap · min(c_j − τ, 0); the best τ is the first
    # c_j that does not get the full cap.
    full = min(int(domain.total / domain.cap), c.size - 1)
    level = float(np.partition(c, full)[full])
    below = np.maximum(level - c, 0.0)
    gains = raised(domain.cap * raised(float(below.sum()), c.size + 1), 1)
    return sum_floor(np.array([math.nextafter(level * domain.total, -math.inf), -gains]))


spread.register(CappedSimplex)(spread_by_signs)


@settle.register(CappedSimplex)
@quiet
def settle_capped_simplex(domain: CappedSimplex, x: np.ndarray, off: np.ndarray) -> bool:
    np.clip(x, 0.0, domain.cap, out=x)
    return settle_total(x, domain.total, domain.cap, off)
