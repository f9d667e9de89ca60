"""Passes over vectors that the compiled loops share. None of them allocates."""

from __future__ import annotations

import numpy as np

from tiebreak.engine import kernel

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


@kernel(reorder=True)
def dot_and_copy(x, y, out):
    """Set out ← y and return ⟨x, y⟩."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
        out[i] = y[i]
    return total


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
    """Return the first index of the largest |p x_i + q y_i|, for finite numbers."""
    largest = -1.0
    index = 0
    for i in range(x.size):
        size = abs(p * x[i] + q * y[i])
        if size > largest:
            largest = size
            index = i
    return index
