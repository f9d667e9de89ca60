"""The weights of the atoms that a point is a mean of: the arithmetic of an active set, in kernels.

x = Σ_j w_j v_j over *slots* j, each of one *block* (the factors of a product of sets), with w ≥ 0 and Σ w_j = 1 within each
block. One atom per block, its *base*, keeps that sum: the others move by v_j − v_base. A quadratic model of the objective
at the point where a cycle began has the prices q_j = ⟨∇F, v_j⟩ there and the curvature G = Vᵀ H V, so that after moves Δw
the prices are q + G Δw. The reduced curvature Ĝ_ij = ⟨v_i − v_base, H (v_j − v_base)⟩ of the atoms that are no base, in some
order, is L Lᵀ. L is extended by a row, loses one (by Givens rotations), and survives a change of the base, all in O(k²).

- :func:`settle` minimises the model over the means of these atoms: it goes to the minimiser over their affine hull if its
  weights are positive, else as far as they are, where the atom whose weight vanishes leaves, and on.
- :func:`improve` lets more atoms in, one by one, and settles after each.

Wolfe, Finding the nearest point in a polytope, Mathematical Programming 1976, for one block and squares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

from tiebreak.engine import kernel

DEPENDENT = 1e-13  # square of the distance of an atom from the span of the others, in units of its curvature, that is none


class Corral(NamedTuple):
    """The active atoms by slot; arrays are longer than what is in use."""

    weights: np.ndarray  # (s,): w, 0 where an atom has left
    moved: np.ndarray  # (s,): Δw since the cycle began
    prices: np.ndarray  # (s,): q, at the point where the cycle began
    gram: np.ndarray  # (s, s): G
    block: np.ndarray  # (s,) int: of each slot
    base: np.ndarray  # (b,) int: slot of the base of each block
    order: np.ndarray  # (s,) int: slots of the other atoms, in the order of the factor
    factor: np.ndarray  # (s, s): L
    right: np.ndarray  # (s,): room for reduced prices
    way: np.ndarray  # (s,): room for a direction
    base_way: np.ndarray  # (b,): the same of bases
    counts: np.ndarray  # (2,) int: atoms in the factor, slots in use


def empty(slots: int, blocks: int) -> Corral:
    """Return a corral without atoms."""
    return Corral(
        weights=np.zeros(slots),
        moved=np.zeros(slots),
        prices=np.zeros(slots),
        gram=np.zeros((slots, slots)),
        block=np.zeros(slots, dtype=np.int64),
        base=np.full(blocks, -1, dtype=np.int64),
        order=np.zeros(slots, dtype=np.int64),
        factor=np.zeros((slots, slots)),
        right=np.zeros(slots),
        way=np.zeros(slots),
        base_way=np.zeros(blocks),
        counts=np.zeros(2, dtype=np.int64),
    )


def rehearse() -> None:
    """Compile all that a cycle needs."""
    state, none = empty(1, 1), np.zeros(0, dtype=np.int64)
    state.base[:] = 0
    factor_error(state)
    rebuild(state)
    improve(state, none, np.zeros(1))


def copy(old: Corral, new: Corral) -> None:
    """Copy what one corral knows to one with more room."""
    s, m = old.weights.size, old.counts[0]
    new.gram[:s, :s], new.factor[:m, :m], new.order[:m] = old.gram, old.factor[:m, :m], old.order[:m]
    new.base[:], new.counts[:] = old.base, old.counts


def factorised(state: Corral, others: np.ndarray) -> bool:
    """Set the factor to that of some atoms; return False if they depend on each other."""
    bases = state.base[state.block[others]]
    gram = state.gram
    reduced = (gram[np.ix_(others, others)] - gram[np.ix_(others, bases)]) - (
        gram[np.ix_(bases, others)] - gram[np.ix_(bases, bases)]
    )
    factor, failed = scipy.linalg.lapack.dpotrf(reduced, lower=1)
    size = gram[others, others] + gram[bases, bases]
    if failed or (np.diag(factor) ** 2 <= DEPENDENT * size).any():
        return False
    m = others.size
    state.factor[:m, :m], state.order[:m], state.counts[0] = factor, others, m
    return True


@kernel(inline=False, reorder=True)
def factor_error(c):
    """Return the largest relative error of the diagonal of L Lᵀ."""
    worst = 0.0
    for i in range(c.counts[0]):
        total = 0.0
        for j in range(i + 1):
            total += c.factor[i, j] * c.factor[i, j]
        wanted = reduced_gram(c, c.order[i], c.order[i])
        if not wanted > 0.0:
            return math.inf
        worst = max(worst, abs(total - wanted) / wanted)
    return worst


@kernel(inline=False)
def improve(c, candidates, worth):
    """Settle, and let atoms enter one by one: those of some slots that are cheaper by enough.

    ``worth`` is, for each block, by how much an atom must be cheaper than x.
    """
    settle(c)
    for k in range(candidates.size):
        slot = candidates[k]
        b = c.block[slot]
        saved = price(c, c.base[b]) - price(c, slot)
        if saved > worth[b] and join(c, slot):
            last = c.counts[0] - 1
            if last >= 0 and c.order[last] == slot:  # the others are settled: their reduced prices are 0
                for i in range(last):
                    c.right[i] = 0.0
                c.right[last] = -saved
                descend(c)
            else:
                settle(c)


@kernel(inline=False)
def rebuild(c):
    """Make the factor anew, of all atoms with a weight; those that depend on others leave, or others do."""
    c.counts[0] = 0
    for slot in range(c.counts[1]):
        if c.weights[slot] > 0.0 and c.base[c.block[slot]] != slot:
            join(c, slot)


@kernel(inline=False)
def join(c, slot):
    """Extend the factor by an atom; return False if it leaves instead.

    While it depends on the others, the model has no curvature along one direction: the point moves down it, until the weight
    of an atom vanishes, which leaves.
    """
    b = c.block[slot]
    while not extend(c, slot):
        reduce_prices(c)
        slope = price(c, slot) - price(c, c.base[b])
        for i in range(c.counts[0]):
            slope -= c.way[i] * c.right[i]
        own = 1.0 if slope < 0.0 else -1.0
        for i in range(c.counts[0]):
            c.way[i] *= -own
        balance(c)
        c.base_way[b] -= own
        step, first = longest(c, math.inf)
        if own < 0.0 and c.weights[slot] <= step:
            move(c, c.weights[slot])
            clear(c, slot)
            return False
        move(c, step)
        shift(c, slot, own * step)
        if first >= c.counts[0] and first - c.counts[0] == b and not has_others(c, b):
            clear(c, c.base[b])
            c.base[b] = slot
            return True
        leave(c, first)
    return True


@kernel(inline=False)
def settle(c):
    """Minimise the model over the means of the atoms; those whose weights vanish on the way leave."""
    reduce_prices(c)
    descend(c)


@kernel(inline=False)
def descend(c):
    """Do so from reduced prices that are known."""
    while c.counts[0] > 0:
        solve(c)
        balance(c)
        step, first = longest(c, 1.0)
        move(c, step)
        if first < 0:
            break
        for i in range(c.counts[0]):
            c.right[i] *= 1.0 - step
        leave(c, first)


@kernel
def balance(c):
    """Set the moves of the bases to what keeps the sums of weights."""
    for b in range(c.base.size):
        c.base_way[b] = 0.0
    for i in range(c.counts[0]):
        c.base_way[c.block[c.order[i]]] -= c.way[i]


@kernel(inline=False)
def longest(c, most):
    """Return how far weights stay positive along the way, at most so far, and whose ends it: −1 if none does.

    Atoms are numbered as in the factor, and bases by their blocks after these.
    """
    step = most
    first = -1
    for i in range(c.counts[0]):
        w = c.weights[c.order[i]]
        if w + most * c.way[i] <= 0.0 or (c.way[i] < 0.0 and math.isinf(most)):
            share = w / -c.way[i] if c.way[i] < 0.0 else 0.0
            if share < step or first < 0:
                step, first = min(share, most), i
    for b in range(c.base.size):
        w = c.weights[c.base[b]]
        if c.base_way[b] < 0.0 and (math.isinf(most) or w + most * c.base_way[b] <= 0.0):
            share = w / -c.base_way[b]
            if share < step or first < 0:
                step, first = min(share, most), c.counts[0] + b
    return step, first


@kernel(inline=False)
def move(c, step):
    """Move all weights by a step along the way."""
    for i in range(c.counts[0]):
        shift(c, c.order[i], step * c.way[i])
    for b in range(c.base.size):
        if c.base_way[b] != 0.0:
            shift(c, c.base[b], step * c.base_way[b])


@kernel
def shift(c, slot, by):
    """Change a weight, which stays ≥ 0."""
    after = max(c.weights[slot] + by, 0.0)
    c.moved[slot] += after - c.weights[slot]
    c.weights[slot] = after


@kernel
def clear(c, slot):
    """Set a weight to 0."""
    c.moved[slot] -= c.weights[slot]
    c.weights[slot] = 0.0


@kernel(reorder=True)
def price(c, slot):
    """Return the price of an atom at the current point of the model."""
    total = c.prices[slot]
    for j in range(c.counts[1]):
        total += c.gram[slot, j] * c.moved[j]
    return total


@kernel(inline=False, reorder=True)
def reduce_prices(c):
    """Set the right-hand side to the prices of the atoms in the factor, less those of their bases."""
    for b in range(c.base.size):
        c.base_way[b] = price(c, c.base[b])
    for i in range(c.counts[0]):
        slot = c.order[i]
        c.right[i] = price(c, slot) - c.base_way[c.block[slot]]


@kernel
def has_others(c, b):
    """Return whether a block has atoms besides its base."""
    for i in range(c.counts[0]):  # noqa: SIM110 (compiled)
        if c.block[c.order[i]] == b:
            return True
    return False


@kernel
def reduced_gram(c, i, j):
    """Return the curvature between two atoms, both relative to their bases."""
    p, q = c.base[c.block[i]], c.base[c.block[j]]
    return (c.gram[i, j] - c.gram[i, q]) - (c.gram[p, j] - c.gram[p, q])


@kernel(inline=False, reorder=True)
def extend(c, slot):
    """Extend the factor by an atom; if it depends on the others, set the way to the combination that it is instead."""
    m = c.counts[0]
    row = c.factor[m]
    for i in range(m):
        total = reduced_gram(c, c.order[i], slot)
        other = c.factor[i]
        for j in range(i):
            total -= other[j] * row[j]
        row[i] = total / other[i]
    pivot = reduced_gram(c, slot, slot)
    for j in range(m):
        pivot -= row[j] * row[j]
    base = c.base[c.block[slot]]
    if pivot > DEPENDENT * (c.gram[slot, slot] + c.gram[base, base]):
        row[m] = math.sqrt(pivot)
        c.order[m] = slot
        c.counts[0] = m + 1
        return True
    for i in range(m):
        c.way[i] = row[i]
    back_substitute(c, m)
    return False


@kernel(inline=False, reorder=True)
def solve(c):
    """Set the way to the step to the minimiser, −(L Lᵀ)⁻¹ right."""
    m = c.counts[0]
    first = 0
    while first < m and c.right[first] == 0.0:
        c.way[first] = 0.0
        first += 1
    for i in range(first, m):
        total = -c.right[i]
        row = c.factor[i]
        for j in range(first, i):
            total -= row[j] * c.way[j]
        c.way[i] = total / row[i]
    back_substitute(c, m)


@kernel
def back_substitute(c, m):
    """Set the way to L⁻ᵀ way."""
    for i in range(m - 1, -1, -1):
        row = c.factor[i]
        c.way[i] /= row[i]
        for j in range(i):
            c.way[j] -= row[j] * c.way[i]


@kernel(inline=False)
def leave(c, which):
    """Let an atom leave, numbered as by :func:`longest`."""
    if which < c.counts[0]:
        clear(c, c.order[which])
        remove(c, which)
        return
    b = which - c.counts[0]
    clear(c, c.base[b])
    first = 0
    while c.block[c.order[first]] != b:
        first += 1
    # Relative to the new base, the others of the block lose its row: none of it is right of the diagonal.
    row = c.factor[first]
    for i in range(first + 1, c.counts[0]):
        if c.block[c.order[i]] == b:
            c.right[i] -= c.right[first]
            for j in range(first + 1):
                c.factor[i, j] -= row[j]
    c.base[b] = c.order[first]
    remove(c, first)


@kernel(inline=False)
def remove(c, which):
    """Take a row out of the factor, and make it triangular again."""
    m = c.counts[0]
    for i in range(which, m - 1):
        c.order[i] = c.order[i + 1]
        c.right[i] = c.right[i + 1]
        for j in range(i + 2):
            c.factor[i, j] = c.factor[i + 1, j]
    for i in range(which, m - 1):
        a, b = c.factor[i, i], c.factor[i, i + 1]
        length = math.hypot(a, b)
        cosine, sine = a / length, b / length
        c.factor[i, i] = length
        for j in range(i + 1, m - 1):
            x, y = c.factor[j, i], c.factor[j, i + 1]
            c.factor[j, i], c.factor[j, i + 1] = cosine * x + sine * y, cosine * y - sine * x
    c.counts[0] = m - 1
