"""Passes over vectors that the compiled loops share. Only :func:`tame` allocates, for numbers of extreme size.

A loop that sums in any order writes nothing. If it did, the compiler would sum in another order where the written array lies
close to one that is read, as they might overlap, and the last digit would depend on where arrays lie in memory.
"""

from __future__ import annotations

import math

import numpy as np

from tiebreak.engine import kernel

SMALLEST = 1e-300  # smallest number whose reciprocal is sure not to overflow
MODEST = 1e-75  # limit, with its reciprocal, between which no product of four numbers overflows, in any order

_BLOCK = 64
_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF  # all bits of a double but its sign


@kernel(reorder=True)
def dot(x, y):
    """Return ⟨x, y⟩."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel(reorder=True)
def abs_sum(x):
    """Return ‖x‖₁."""
    total = 0.0
    for i in range(x.size):
        total += abs(x[i])
    return total


@kernel
def fill(x, value):
    """Set all entries of x to one value; assignment to a slice does it too, but takes Numba half a second to compile."""
    for i in range(x.size):
        x[i] = value


@kernel
def distance(x, y):
    """Return ‖x − y‖."""
    total = 0.0
    for i in range(x.size):
        way = x[i] - y[i]
        total += way * way
    return math.sqrt(total)


@kernel
def copy(x, out):
    """Set out ← x."""
    for i in range(x.size):
        out[i] = x[i]


@kernel
def scale(factor, x):
    """Set x ← factor · x."""
    for i in range(x.size):
        x[i] *= factor


@kernel
def copy_and_move(x, out, mean, step):
    """Set out ← x and mean ← (1 − step) mean + step · x."""
    for i in range(x.size):
        out[i] = x[i]
        mean[i] += step * (x[i] - mean[i])


@kernel
def extrapolate(x, previous, inertia, out):
    """Set out ← x + inertia (x − previous)."""
    for i in range(x.size):
        out[i] = x[i] + inertia * (x[i] - previous[i])


@kernel
def move(x, target, step):
    """Set x ← (1 − step) x + step · target."""
    for i in range(x.size):
        x[i] += step * (target[i] - x[i])


@kernel
def abs_argmax(x):
    """Return the first index of the largest |x_i|; a NaN counts as the largest of all.

    Without their sign, doubles are ordered as their bits are, and a maximum of integers is computed in vector registers
    where one of doubles is not, because of NaN.
    """
    bits = x.view(np.int64)
    largest = np.int64(-1)
    start = 0
    whole = x.size // _BLOCK * _BLOCK
    for low in range(0, whole, _BLOCK):
        within = np.int64(0)
        for i in range(_BLOCK):
            within = max(within, bits[low + i] & _MAGNITUDE)
        if within > largest:
            largest = within
            start = low
    for i in range(whole, x.size):
        if bits[i] & _MAGNITUDE > largest:
            largest = bits[i] & _MAGNITUDE
            start = i
    for i in range(start, x.size):
        if bits[i] & _MAGNITUDE == largest:
            return i
    return 0


@kernel
def abs_argmax_of_sum(p, x, q, y):
    """Return the first index of the largest |p x_i + q y_i|, for finite numbers; by their bits, as in :func:`abs_argmax`."""
    largest = np.int64(-1)
    start = 0
    whole = x.size // _BLOCK * _BLOCK
    for low in range(0, whole, _BLOCK):
        within = np.int64(0)
        for i in range(_BLOCK):
            within = max(within, magnitude(p * x[low + i] + q * y[low + i]))
        if within > largest:
            largest = within
            start = low
    # The sums are compared, not looked for: the compiler may round them once here and twice there.
    end = min(start + _BLOCK, whole)
    index = start
    best = -1.0
    for i in range(start, end):
        size = abs(p * x[i] + q * y[i])
        if size > best:
            best = size
            index = i
    for i in range(whole, x.size):
        size = abs(p * x[i] + q * y[i])
        if size > best:
            best = size
            index = i
    return index


@kernel
def magnitude(value):
    """Return the bits of |value| as an integer, in the order of the values."""
    return np.float64(value).view(np.int64) & _MAGNITUDE


@kernel
def ordered_bits(value):
    """Return the bits of a number as an integer, in the order of the values."""
    bits = np.float64(value).view(np.int64)
    return bits ^ ((bits >> 63) & _MAGNITUDE)


@kernel
def argmin(x):
    """Return the index of the smallest entry of x."""
    return argmin_of_sum(1.0, x, 0.0, x)


@kernel
def argmin_of_sum(p, x, q, y):
    """Return the index of the smallest p x_i + q y_i, for finite numbers.

    Minima in four lanes, because each comparison waits for the one before; then a look at the best block for the place.
    """
    best = math.inf
    start = 0
    whole = x.size // _BLOCK * _BLOCK
    for low in range(0, whole, _BLOCK):
        lane_0, lane_1, lane_2, lane_3 = math.inf, math.inf, math.inf, math.inf
        for i in range(low, low + _BLOCK, 4):
            lane_0 = smaller(p * x[i] + q * y[i], lane_0)
            lane_1 = smaller(p * x[i + 1] + q * y[i + 1], lane_1)
            lane_2 = smaller(p * x[i + 2] + q * y[i + 2], lane_2)
            lane_3 = smaller(p * x[i + 3] + q * y[i + 3], lane_3)
        within = smaller(smaller(lane_0, lane_1), smaller(lane_2, lane_3))
        if within < best:
            best = within
            start = low
    for i in range(whole, x.size):
        if p * x[i] + q * y[i] < best:
            best = p * x[i] + q * y[i]
            start = i
    index = start
    best = p * x[start] + q * y[start]
    for i in range(start + 1, min(start + _BLOCK, x.size)):
        if p * x[i] + q * y[i] < best:
            best = p * x[i] + q * y[i]
            index = i
    return index


@kernel
def smaller(value, least):
    """Return the smaller one; unlike ``min``, it is one instruction, because a NaN for the first is passed over."""
    return value if value < least else least


@kernel(inline=False)
def select(x, rank):
    """Return the entry of x that has ``rank`` smaller or equal ones before it in order; x is overwritten.

    Hoare (1961), without a branch that depends on the entries, because half of the guesses would be wrong; O(d) expected.
    """
    left = x.size
    pivot = x[0]
    lot = 1
    while left > 0:
        if left > _BLOCK:
            lot = lot * 48271 % 2147483647  # pivots from random places, so that no order of the entries is a bad one
            pivot = middle_of(x[lot % left], x[lot // 7 % left], x[lot // 49 % left])
        else:  # divisions take longer than a bad order
            pivot = middle_of(x[0], x[left // 2], x[left - 1])
        below = 0
        same = 0
        for i in range(left):
            below += 1 if x[i] < pivot else 0
            same += 1 if x[i] == pivot else 0
        if below <= rank < below + same:
            break
        smaller_ones = rank < below
        kept = 0
        for i in range(left):
            own = x[i]
            x[kept] = own
            kept += 1 if (own < pivot if smaller_ones else own > pivot) else 0
        left = kept
        rank -= 0 if smaller_ones else below + same
    return pivot


@kernel
def middle_of(x, y, z):
    """Return the median of three numbers."""
    return max(min(x, y), min(max(x, y), z))


@kernel(reorder=True)
def plain_sum(x):
    """Return Σ x_i."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@kernel
def reciprocal(size):
    """Return a finite factor that brings numbers of this size to about 1, and subnormal ones well above them."""
    if size == 0.0:
        return 1.0
    return 1.0 / size if size > SMALLEST else 1.0 / SMALLEST


@kernel
def is_modest(size):
    """Return whether products of a few numbers of this size stay far from the largest and the smallest numbers."""
    return MODEST <= size <= 1.0 / MODEST


@kernel
def tame(x, size):
    """Return x, whose largest entry has this size, and 1; or a multiple, if its products could overflow, and the factor."""
    if size == 0.0 or is_modest(size):
        return x, 1.0
    return x * reciprocal(size), reciprocal(size)


@kernel
def minus(x, y):
    """Return x − y; a kernel of its own, so that a reordered sum does not take the difference apart."""
    return x - y
