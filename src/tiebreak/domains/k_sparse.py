"""The polytope whose atoms have k entries of one size: bounds on each coordinate and on the sum of their sizes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import Atom, Block, blocks, has_vertices, has_vertices_always, vertices, whole
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
from tiebreak.domains.boxes import LInfBall
from tiebreak.domains.cuts.ranking import Ranking
from tiebreak.domains.cuts.search import CUT_ROUNDING, dual_search, next_atom
from tiebreak.domains.exchanges import exchanged
from tiebreak.domains.l1 import L1Ball
from tiebreak.domains.rounding import gauge_rounding, least_or_nothing, quiet, raised, settle_by_gauge
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import abs_argmax, abs_sum

STEPS = 1000  # steps at most; data take about five
EQUAL = 1e-14  # relative difference of two sums that rounding alone may explain


class _KSparse(NamedTuple):
    k: int
    radius: float
    dimension: int


class KSparse(_KSparse, Domain):
    """The set {x : ‖x‖∞ ≤ radius, ‖x‖₁ ≤ k · radius}. Its atoms have k entries ±radius and zeros else.

    It is the ℓ1 ball for k = 1 and the ℓ∞ ball for k = dimension.

    Parameters
    ----------
    k : int
        From 1 to ``dimension``.
    radius : float, positive
    dimension : int

    Examples
    --------
    >>> KSparse(2, 1.5, 3).lmo([1.0, -3.0, 2.0])
    array([ 0. ,  1.5, -1.5])
    >>> KSparse(2, 1.0, 3).project([3.0, 0.5, -0.7])
    array([ 1. ,  0.4, -0.6])
    """

    __slots__ = ()

    def __new__(cls, k: Any, radius: Any, dimension: Any) -> KSparse:
        k, dimension = checks.whole(k, "k"), checks.whole(dimension, "dimension")
        if k > dimension:
            raise ValueError(f"`k` must be at most `dimension` = {dimension}, got {k}")
        return super().__new__(cls, k, checks.real(radius, "radius", above=0.0), dimension)


@lmo.register(KSparse)
def lmo_k_sparse(domain, c, out):
    lmo(Ranking(True, domain.k, domain.radius, 0.0), c, out)


@next_atom.register(KSparse)
def next_atom_k_sparse(domain, c, a, out):
    next_atom(Ranking(True, domain.k, domain.radius, 0.0), c, a, out)


@cut_lmo.register(KSparse)
def cut_lmo_k_sparse(domain, c, a, b, out):
    # The search for any set is exact on a polytope, but for rounding: atoms with the same ⟨a, s⟩ sum it in different orders.
    # An error of that size is allowed: otherwise a cut through a face of the set could hit only some of its atoms.
    slack = CUT_ROUNDING * domain.k * domain.radius * abs(a[abs_argmax(a)])
    return dual_search(Ranking(True, domain.k, domain.radius, 0.0), c, a, b + slack, out)


@project.register(KSparse)
def project_k_sparse(domain, x, out):
    # If the projection onto the ℓ∞ ball will not do, the answer is sign(x_i) · clip(level − gap_i, 0, radius) with
    # gap_i = max|x| − |x_i|, as on the ℓ1 ball, and the level that gives it the right ℓ1 norm.
    for i in range(x.size):
        out[i] = min(max(x[i], -domain.radius), domain.radius)
    if abs_sum(out) <= domain.k * domain.radius:
        return
    largest = abs(x[abs_argmax(x)])
    for i in range(x.size):
        out[i] = largest - abs(x[i])
    level = clipping_level(domain.radius, domain.k * domain.radius, out, largest)
    for i in range(x.size):
        out[i] = math.copysign(min(max(level - out[i], 0.0), domain.radius), x[i])


@kernel(inline=False)
def clipping_level(radius, wanted, gaps, most):
    """Return the level at which Σ clip(level − gap_i, 0, radius) is as wanted, if it is less at 0 and more at ``most``.

    Newton's method on a function that grows in straight pieces: it is exact on the right piece. From a flat piece it goes to
    the next kink. Where it leaves the bracket, and each third time, the middle takes its place, so that it cannot be slow.
    """
    low, high = 0.0, most
    level = min(radius, 0.5 * most)
    for step in range(STEPS):
        total, left, right = clipped_sum(radius, gaps, level)
        if abs(total - wanted) <= EQUAL * wanted:
            break
        if total < wanted:
            low = level
            proposed = level + (wanted - total) / right if right > 0 else kink_after(gaps, level, high)
        else:
            high = level
            proposed = level - (total - wanted) / left if left > 0 else kink_before(radius, gaps, level, low)
        if step % 3 == 2 or not low < proposed < high:
            proposed = 0.5 * (low + high)
        if not low < proposed < high:
            break
        level = proposed
    return level


@kernel(reorder=True)
def clipped_sum(radius, gaps, level):
    """Return Σ clip(level − gap_i, 0, radius) and its slopes to the left and to the right."""
    total = 0.0
    left = 0
    right = 0
    for i in range(gaps.size):
        height = level - gaps[i]
        total += min(max(height, 0.0), radius)
        left += 1 if (height > 0.0) & (height <= radius) else 0
        right += 1 if (height >= 0.0) & (height < radius) else 0
    return total, left, right


@kernel
def kink_after(gaps, level, high):
    """Return the next level above at which an entry leaves zero."""
    for i in range(gaps.size):
        if level < gaps[i] < high:
            high = gaps[i]
    return high


@kernel
def kink_before(radius, gaps, level, low):
    """Return the next level below at which an entry is cut off."""
    for i in range(gaps.size):
        if low < gaps[i] + radius < level:
            low = gaps[i] + radius
    return low


@diameter.register(KSparse)
def diameter_k_sparse(domain):
    return 2.0 * domain.radius * math.sqrt(domain.k)


@contains.register(KSparse)
@kernel
def contains_k_sparse(domain, x, tol):
    largest = abs(x[abs_argmax(x)])
    return largest <= domain.radius * (1.0 + tol) and abs_sum(x) <= domain.k * domain.radius * (1.0 + tol)


# Atoms


@blocks.register(KSparse)
def blocks_k_sparse(domain: KSparse, dimension: int) -> list[Block]:
    if domain.k == 1:
        return [whole(L1Ball(domain.radius), dimension)]
    return blocks(LInfBall(domain.radius, dimension), dimension) if domain.k == dimension else [whole(domain, dimension)]


@vertices.register(KSparse)
def vertices_k_sparse(domain: KSparse, c: np.ndarray, count: int) -> list[Atom]:
    return exchanged(Ranking(True, domain.k, domain.radius, 0.0), c, count)


has_vertices.register(KSparse)(has_vertices_always)


# Proofs


@least_value.register(KSparse)
@quiet
def least_value_k_sparse(domain: KSparse, c: np.ndarray, atom: np.ndarray) -> float:
    largest = np.partition(np.abs(c), c.size - domain.k)[c.size - domain.k :]
    return least_or_nothing(-raised(domain.radius * float(largest.sum()), domain.k + 1))


spread.register(KSparse)(spread_by_signs)


@settle.register(KSparse)
@quiet
def settle_k_sparse(domain: KSparse, x: np.ndarray, off: np.ndarray) -> bool:
    gauge = max(float(np.abs(x).max()), float(np.abs(x).sum()) / domain.k) / domain.radius
    return settle_by_gauge(x, 0.0, gauge, gauge_rounding(x.size, domain.radius), off)
