"""Which coordinates rank first: for sets whose atoms give the same to a number of coordinates and nothing to the others."""

from __future__ import annotations

import numpy as np

from tiebreak.engine import kernel
from tiebreak.vectors import ordered_bits, select

LAST = 0x7FFF_FFFF_FFFF_FFFF


@kernel
def key_of(value, folded):
    """Return what coordinates are ranked by, the smallest first: their values, or if folded, the largest sizes first."""
    return -abs(value) if folded else value


@kernel
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
