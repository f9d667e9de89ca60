"""Sets whose atoms give the same to a number of coordinates, those that rank first, and nothing to the others.

Their cut is the search for any set, which ranks all coordinates for each λ that it tries. Where there are many, most of them
stay on one side of the threshold for all λ that come into question. A cut for a sample of the coordinates tells about where
λ and the threshold are; a cut for those near the threshold, with the others where they belong, gives the two atoms, which
are optimal if no other coordinate is on the wrong side at their λ. If the sample misleads, all are ranked after all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.domains.base import lmo
from tiebreak.domains.cuts.search import CUT_ROUNDING, approach, combine, narrow, next_atom
from tiebreak.engine import kernel
from tiebreak.engine.vectors import copy, dot, ordered_bits, select

LAST = 0x7FFF_FFFF_FFFF_FFFF  # largest integer of 64 bits
MANY = 300  # coordinates from which on a sample pays
SAMPLE = 1.5  # number of coordinates drawn, divided by d^(2/3): more cost more, and fewer leave more of the others open
SPREAD = 0.28  # ranks from the threshold up to which a coordinate is open, divided by sample^(3/4): two deviations or more
LOOKS = 4  # looks at the sample, which is not worth more
ROUNDS = 3  # rounds at most: one is enough, or a second one that begins where the first one ended …
CLOSER = 4  # … divisor of the number of open coordinates from one round to the next …
FEW = 16  # … down to this number


class Ranking(NamedTuple):
    """A set as this module sees it: its atoms give ``most`` to the first coordinates, and what is left to the next one.

    If it is folded, coordinates rank by size, and each is given its part against its sign.
    """

    folded: bool
    full: int  # how many are given most
    most: float
    left: float


@lmo.register(Ranking)
def lmo_ranking(domain, c, out):
    threshold = first_threshold(c, domain.folded, domain.full, out) if domain.full < c.size else math.inf
    place(domain, c, threshold, out)


@next_atom.register(Ranking)
def next_atom_ranking(domain, c, a, out):
    threshold = next_threshold(c, domain.folded, domain.full, out) if domain.full < c.size else math.inf
    place(domain, c, threshold, out)


@kernel(inline=False)
def place(domain, c, threshold, out):
    """Set out to the atom that gives most to those before a threshold, and to as many at it as are to get it."""
    tied = domain.full
    for i in range(c.size):
        first = key_of(c[i], domain.folded) < threshold
        out[i] = signed(domain.most, c[i], domain.folded) if first else 0.0
        tied -= 1 if first else 0
    for i in range(c.size):
        if tied < 0 or (tied == 0 and domain.left == 0.0):
            return
        if key_of(c[i], domain.folded) == threshold:
            out[i] = signed(domain.most if tied > 0 else domain.left, c[i], domain.folded)
            tied -= 1


@kernel
def signed(part, value, folded):
    """Return a coordinate's part, if folded against the sign of its value."""
    return -math.copysign(part, value) if folded else part


# The cut


@approach.register(Ranking)
def approach_ranking(domain, bound, excess, work):
    c, a, outside, inside = work[0], work[1], work[2], work[3]
    if c.size < MANY:
        return False, 1.0, 0.0, 0.0, 0.0
    found, p, q, first, last = survey(domain, c, a, excess)
    for _ in range(ROUNDS):
        if not found:
            break
        found, p, q, first, threshold, last = settle_and_solve(domain, bound, p, q, first, last, work)
        a_outside, a_inside = dot(a, outside), dot(a, inside)
        if not (found and a_inside <= bound < a_outside):  # by rounding, if it is found
            break
        if gap_at(domain, c, a, p, q, threshold, inside) <= CUT_ROUNDING * (p * abs(dot(c, inside)) + q * abs(a_inside)):
            return True, p, q, a_outside, a_inside
    lmo(domain, c, outside)  # the sample misled
    return False, p, q, 0.0, 0.0


@kernel
def settle_and_solve(domain, bound, p, q, first, last, work):
    """Set the two atoms to what is optimal if all coordinates not between two keys for p c + q a are where they belong.

    Return whether there are such atoms, the ray of λ, and closer keys with the threshold between them.
    """
    c, a, outside, inside = work[0], work[1], work[2], work[3]
    where, threshold = work[4].view(np.int64), 0.0
    settled, count, value = settle(domain, c, a, p, q, first, last, inside, where)
    if not 0 <= domain.full - settled <= count:
        return False, p, q, first, threshold, last
    room = np.empty((6, count))
    for k in range(count):
        room[0, k], room[1, k] = c[where[k]], a[where[k]]
    others = Ranking(domain.folded, domain.full - settled, domain.most, domain.left)
    lmo(others, room[0], room[2])
    found, p, q = pinch(others, bound - value, room)
    if found:
        copy(inside, outside)
        for k in range(count):
            outside[where[k]], inside[where[k]] = room[2, k], room[3, k]
        first, threshold, last = keys_about(others, p, q, max(count // CLOSER, FEW), first, last, room)
    return found, p, q, first, threshold, last


@kernel(reorder=True)
def gap_at(domain, c, a, p, q, threshold, atom):
    """Return a bound on how much ⟨p c + q a, atom⟩ exceeds the least value.

    The threshold τ is the multiplier of the sum that atoms have, and the least value is not below that of the dual,
    (full · most + left) τ − most Σ max(τ − key_i, 0). What each coordinate adds to the difference is not negative, and zero
    if it is on the right side.
    """
    gap = 0.0
    for i in range(c.size):
        own = p * c[i] + q * a[i]
        given = -math.copysign(1.0, own) * atom[i] if domain.folded else atom[i]
        beyond = key_of(own, domain.folded) - threshold
        gap += beyond * (given - domain.most if beyond < 0.0 else given)
    return gap


@kernel
def survey(domain, c, a, excess):
    """Solve the cut for a sample, roughly, at which ⟨a, s⟩ has to fall by its share of an excess.

    Return whether it can, the ray of λ, and the keys between which the threshold for all coordinates is expected.
    """
    count = int(SAMPLE * c.size ** (2.0 / 3.0))
    work = np.empty((6, count))
    draw(c, a, work)
    share = count / c.size
    sample = Ranking(domain.folded, int(domain.full * share + 0.5), domain.most, domain.left)
    lmo(sample, work[0], work[2])
    lmo(sample, work[1], work[3])
    low, high = share * excess, dot(work[1], work[3]) - dot(work[1], work[2]) + share * excess
    if not high < 0.0 < low:
        return False, 1.0, 0.0, 0.0, 0.0
    t = root(sample, low, high, work)
    first, _, last = keys_about(sample, 1.0 - t, t, int(SPREAD * count**0.75), -math.inf, math.inf, work)
    return True, 1.0 - t, t, first, last


@kernel(inline=False)
def root(domain, low, high, work):
    """Return about where ⟨a, s⟩ at the minimiser for (1 − t) c + t a meets a bound that it exceeds by ``low`` at t = 0.

    ``high``, which is negative, is what it is at t = 1. The secant, where an end that stays counts half (Illinois).
    """
    bound = dot(work[1], work[2]) - low
    t_low, t_high, side = 0.0, 1.0, 0
    for _ in range(LOOKS):
        t = t_low + (t_high - t_low) * (low / (low - high))
        combine(1.0 - t, work[0], t, work[1], work[4])
        next_atom(domain, work[4], work[1], work[3])
        excess = dot(work[1], work[3]) - bound
        if excess > 0.0:
            t_low, low = t, excess
            high *= 0.5 if side > 0 else 1.0
            side = 1
        else:
            t_high, high = t, excess
            low *= 0.5 if side < 0 else 1.0
            side = -1
    return t_low + (t_high - t_low) * (low / (low - high))


@kernel(inline=False)
def keys_about(domain, p, q, spread, first, last, work):
    """Return the keys of p c + q a so many ranks before the threshold, at it and after it.

    Where there are fewer ranks, the first and the last are what is given.
    """
    combine(p, work[0], q, work[1], work[4])
    count = work.shape[1]
    if domain.full - spread >= 0:
        first = first_threshold(work[4], domain.folded, domain.full - spread, work[5])
    # If there is enough for all, the sum of sizes is no constraint.
    threshold = first_threshold(work[4], domain.folded, domain.full, work[5]) if domain.full < count else min(last, 0.0)
    if domain.full + spread < count:
        last = first_threshold(work[4], domain.folded, domain.full + spread, work[5])
    return first, threshold, last


@kernel
def draw(c, a, work):
    """Draw entries of c and a, one from each stretch of the same length, so that no pattern in them is missed."""
    count = work.shape[1]
    stretch = c.size / count
    lot = 1
    for k in range(count):
        lot = lot * 48271 % 2147483647
        i = min(int((k + lot / 2147483647.0) * stretch), c.size - 1)
        work[0, k], work[1, k] = c[i], a[i]


@kernel(inline=False)
def pinch(domain, bound, work):
    """Set work[2] and work[3] to the atoms about the boundary, for c = work[0] and a = work[1]; the rest of it is room.

    work[2] holds the minimiser of ⟨c, s⟩. Return whether the boundary is between it and the minimiser of ⟨a, s⟩, and the
    ray of λ.
    """
    lmo(domain, work[1], work[3])
    if not dot(work[1], work[3]) <= bound < dot(work[1], work[2]):
        return False, 1.0, 0.0
    copy(work[3], work[5])
    p, q, _, _ = narrow(domain, work[0], work[1], bound, work[2], work[3], work[4], work[5])
    return True, p, q


@kernel(inline=False)
def settle(domain, c, a, p, q, first, last, out, where):
    """Give most to the coordinates that p c + q a ranks before ``first``, and list those from there to ``last``.

    Return how many there are of both, and ⟨a, out⟩.
    """
    settled = 0
    count = 0
    value = 0.0
    for i in range(c.size):
        own = p * c[i] + q * a[i]
        key = key_of(own, domain.folded)
        entry = signed(domain.most, own, domain.folded) if key < first else 0.0
        out[i] = entry
        value += a[i] * entry
        settled += 1 if key < first else 0
        where[count] = i
        count += 1 if (key >= first) & (key <= last) else 0
    return settled, count, value


# Thresholds


@kernel
def key_of(value, folded):
    """Return what coordinates are ranked by, the smallest first: their values, or if folded, the largest sizes first."""
    return -abs(value) if folded else value


@kernel(inline=False)
def first_threshold(c, folded, rank, out):
    """Return the key that has ``rank`` smaller or equal ones before it in order; ``out`` is room."""
    for i in range(c.size):
        out[i] = key_of(c[i], folded)
    return select(out, rank)


@kernel(inline=False)
def next_threshold(c, folded, rank, out):
    """Return what :func:`first_threshold` does, where ``out`` is not zero for those that came first in another ranking.

    They are ``rank`` or ``rank`` + 1. The key lies between the first of the others and the last of them, and so do few more
    if the rankings are alike. ``out`` may be overwritten.
    """
    last_in, first_out, taken = ends(c, folded, out)
    if last_in <= first_out:
        return last_in if taken == rank + 1 else first_out
    before, between = count_keys(c, folded, first_out, last_in)
    if 2 * between > c.size:
        return first_threshold(c, folded, rank, out)
    keys = np.empty(between + 1)
    k = 0
    for i in range(c.size):  # without a branch, as in `select`
        key = key_of(c[i], folded)
        keys[k] = key
        k += 1 if (first_out <= key) & (key <= last_in) else 0
    return select(keys[:between], rank - before)


@kernel
def ends(c, folded, out):
    """Return the last key of the coordinates that ``out`` marks, the first of the others, and how many are marked.

    A maximum of integers is computed in vector registers, where one of doubles is not, because of NaN.
    """
    last_in, first_out = np.int64(-LAST - 1), np.int64(LAST)
    taken = 0
    for i in range(c.size):
        bits = ordered_bits(key_of(c[i], folded))
        mark = out[i] != 0.0
        last_in = max(last_in, bits if mark else np.int64(-LAST - 1))
        first_out = min(first_out, np.int64(LAST) if mark else bits)
        taken += 1 if mark else 0
    # The map of the bits is its own inverse.
    low = np.int64(last_in ^ ((last_in >> 63) & LAST)).view(np.float64) if taken > 0 else -np.inf
    high = np.int64(first_out ^ ((first_out >> 63) & LAST)).view(np.float64) if taken < c.size else np.inf
    return low, high, taken


@kernel(reorder=True)
def count_keys(c, folded, low, high):
    """Return how many keys are below low, and how many from low to high."""
    before = 0
    between = 0
    for i in range(c.size):
        key = key_of(c[i], folded)
        before += 1 if key < low else 0
        between += 1 if (key >= low) & (key <= high) else 0
    return before, between
