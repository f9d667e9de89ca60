"""Numbers that are proven to be large or small enough, whatever rounding and underflow did to them.

A double is rounded by at most the share UNIT of its size or, where numbers run out of digits near zero, by less than
SUBNORMAL.
NumPy may sum in any order: the bounds here hold for all of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tiebreak.engine.rounding import SUBNORMAL, UNIT

ATTEMPTS = 30  # factorisations at most, each with four times the shift of the one before

quiet = np.errstate(over="ignore", under="ignore", invalid="ignore")  # what overflows proves nothing, which is an answer


def raised(value: Any, roundings: int) -> Any:
    """Return an upper bound of a number ≥ 0 that was computed with this many roundings, in sums and products of such."""
    return value * (1.0 + (roundings + 4) * 2.0 * UNIT) + (roundings + 2) * SUBNORMAL


def least_or_nothing(value: float) -> float:
    """Return a lower bound, or −∞ if it is not a number."""
    return -math.inf if math.isnan(value) else float(value)


def dot_margin(c: np.ndarray, s: np.ndarray) -> float:
    """Return by how much the computed ⟨c, s⟩ may be wrong."""
    return raised((c.size + 8) * UNIT * float((np.abs(c) * np.abs(s)).sum()), 4) + 2 * c.size * SUBNORMAL


def dot_floor(c: np.ndarray, s: np.ndarray) -> float:
    """Return a number that does not exceed ⟨c, s⟩."""
    return least_or_nothing(sum_floor(np.array([float((c * s).sum()), -dot_margin(c, s)])))


def sum_floor(values: np.ndarray) -> float:
    """Return a number that does not exceed Σ values."""
    margin = raised((values.size + 2) * UNIT * float(np.abs(values).sum()), 4)
    return least_or_nothing(math.nextafter(float(values.sum()) - margin, -math.inf))


def norm_ceiling(x: np.ndarray) -> float:
    """Return a number that is at least ‖x‖₂."""
    size = float(np.abs(x).max(initial=0.0))
    if size == 0.0 or not math.isfinite(size):
        return size
    return raised(raised(math.sqrt(float(((x / size) ** 2).sum())), x.size + 4) * size, 1)


def eigenvalue_floor(matrix: np.ndarray) -> float:
    """Return a number that does not exceed the least eigenvalue of a symmetric matrix.

    If a Cholesky factorisation of M ends in floating-point arithmetic, the least eigenvalue of M is at least −γ trace M,
    with γ = (n + 1) UNIT / (1 − 2 (n + 1) UNIT) (Rump, Verification of positive definiteness, 2006). M is the matrix less
    the eigenvalue that LAPACK finds, and less a little more, which grows until the factorisation ends.
    """
    n = matrix.shape[0]
    size = float(np.abs(matrix).max())
    if size == 0.0:
        return 0.0
    if not math.isfinite(size):
        return -math.inf
    unit = 2.0 ** max(math.frexp(size)[1] - 1, -1000)
    scaled = matrix / unit  # exactly, but for parts of it that vanish next to the largest
    least = float(np.linalg.eigvalsh(scaled)[0])
    shift = 4.0 * (n + 2) * UNIT * float(np.linalg.norm(scaled))
    for _ in range(ATTEMPTS):
        moved = scaled.copy()
        moved[np.diag_indices(n)] -= least - shift
        diagonal = np.abs(np.diagonal(moved))
        try:
            np.linalg.cholesky(moved)
        except np.linalg.LinAlgError:
            shift *= 4.0
            continue
        rounding = raised((2 * n + 8) * UNIT * float(diagonal.sum()), n) + 1e-290
        return least_or_nothing(math.nextafter((least - shift - rounding) * unit, -math.inf))
    return -math.inf


def singular_value_ceiling(matrix: np.ndarray) -> float:
    """Return a number that is at least the largest singular value, by the least eigenvalue of the smaller −MᵀM or −MMᵀ."""
    size = float(np.abs(matrix).max())
    if size == 0.0 or not math.isfinite(size):
        return size
    scaled = matrix / size
    wide = scaled if scaled.shape[0] <= scaled.shape[1] else scaled.T
    gram = wide @ wide.T
    gram = 0.5 * (gram + gram.T)
    square = -eigenvalue_floor(-gram) + raised((wide.shape[1] + 8) * UNIT * float((wide**2).sum()), wide.size)
    return raised(raised(math.sqrt(raised(max(square, 0.0), 1)), 4) * size, 1)


def gauge_rounding(d: int, radius: float) -> float:
    """Return the relative error of the norm of d numbers divided by a radius, for a norm that is at least max |x_j|."""
    return 4.0 * (d + 8) * UNIT + 4.0 * d * SUBNORMAL / radius if radius > 1e-300 else 1.0


def settle_by_gauge(x: np.ndarray, center: Any, gauge: float, rounding: float, off: np.ndarray) -> bool:
    """Settle x in a set {x : gauge(x − center) ≤ 1} of a norm, by moving it towards the centre; see ``base.settle``.

    Parameters
    ----------
    gauge : float
        The computed gauge of x − center.
    rounding : float
        The relative error of the gauge, at most; with that of a point of gauge 1 whose entries are rounded to SUBNORMAL.
    """
    if not math.isfinite(gauge):
        off.fill(math.inf)
        return False
    if gauge * (1.0 + 2.0 * rounding) <= 1.0:
        off.fill(0.0)
        return True
    way = x - center
    if rounding > 0.01:  # a set so small that its points have no digits: the centre is near enough
        off[:] = raised(np.abs(way), 1)
        return True
    moved = gauge > 1.0 + 4.0 * rounding
    if moved:
        way /= gauge
        x[:] = center + way
    # The gauge of x is at most 1 + excess, and x / (1 + excess) lies inside.
    excess = 2.0 * rounding + 8.0 * UNIT if moved else max(gauge - 1.0, 0.0) + 2.0 * rounding + 8.0 * UNIT
    off[:] = raised(np.abs(way) * excess, 4)
    if moved:
        off += 2.0 * UNIT * np.abs(x) + SUBNORMAL
    return True
