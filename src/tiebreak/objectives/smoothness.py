"""Smoothness constants: the largest curvature of a quadratic form of data, exact or bounded in few passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are used
from scipy.linalg import eigvalsh_tridiagonal

from tiebreak.engine import kernel
from tiebreak.objectives.constants import current_bill, remembered
from tiebreak.objectives.matrices import Rows, add_row, row_dot, row_square
from tiebreak.objectives.matrices.parts import plus

EXACT_SIDE, EXACT_PRODUCTS = 400, 1e8  # size of Gram matrices whose largest eigenvalue is cheaper than ten passes
HURRIED_STEPS = 2  # steps that are made even if there is no time
LANCZOS_STEPS = 9  # steps, each a pass over the data; another pass finds the trace
FAILURE = 0.01  # probability that a bound of the largest curvature is too small, and then by little
CLOSED = 1e-13  # residual that rounding leaves of nothing, relative to the largest Ritz value


def curvature_of(objective: Any, rows: Any) -> float:
    """Return the largest curvature of the data of an objective, which is found once."""
    bill = current_bill()

    def find() -> tuple[float, int]:
        return largest_curvature(rows, bill.hurry) if bill else largest_curvature(rows)

    if isinstance(rows, Rows):  # all kernels are compiled before the clock starts
        matrix, weights = rows.matrix, rows.weights
        add_products(matrix, weights, 0, 0, weights[:0], weights[:0])
        squares(matrix, weights, 1.0, 0, 0)
        matrix.compile_gram(weights)
    return remembered(objective, "curvature", find)


def largest_curvature(rows: Any, hurry: Callable[[], bool] = lambda: False) -> tuple[float, int]:
    """Return λ_max(Aᵀ diag(weights) A), or a number slightly above it, and the passes over A that it took: at most ten.

    Where a Gram matrix is cheap its largest eigenvalue is exact. Else it is bounded by :func:`lanczos_bound`.
    """
    n, d = rows.shape
    side = min(n, d)
    if side <= EXACT_SIDE and rows.numbers * side <= EXACT_PRODUCTS:
        with np.errstate(over="ignore", invalid="ignore"):
            found, unit = _gram(rows, 1.0), 1.0
        if not 1e-300 < np.trace(found) < math.inf:  # squares overflow or vanish
            unit = rows.largest or 1.0
            found = _gram(rows, unit)
        return float(max(np.linalg.eigvalsh(found)[-1], 0.0)) * unit * unit, 1
    trace, unit = math.fsum(rows.passes(_squares_of_block, 1.0, width=0.0)), 1.0
    if not 1e-100 < trace < 1e100:  # squares of products overflow or vanish
        unit = rows.largest or 1.0
        trace = math.fsum(rows.passes(_squares_of_block, unit, width=0.0))

    def product(x: np.ndarray) -> np.ndarray:
        return rows.fold(plus, np.zeros(d), _products_of_block, x / unit, width=d) / unit

    value, steps = lanczos_bound(product, d, trace, hurry) if trace > 0.0 else (0.0, 0)
    return value * unit * unit, 1 + steps


def _gram(rows: Any, unit: float) -> np.ndarray:
    """Return the smaller one of Aᵀ W² A and W A Aᵀ W, W = diag(√weights) / unit; its upper triangle may be missing."""
    n, d = rows.shape
    if d > n:
        return next(rows.passes(_gram_of_block, unit, True, width=math.inf))  # one block
    width = d * d * n / max(rows.numbers, 1)
    return rows.fold(plus, np.zeros((d, d)), _gram_of_block, unit, False, width=width)


def _gram_of_block(rows: Rows, low: int, high: int, unit: float, of_rows: bool) -> np.ndarray:
    return rows.matrix.between(low, high).small_gram(rows.weights[low:high], unit, of_rows)


def _squares_of_block(rows: Rows, low: int, high: int, unit: float) -> float:
    return squares(rows.matrix, rows.weights, unit, low, high)


def _products_of_block(rows: Rows, low: int, high: int, x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    add_products(rows.matrix, rows.weights, low, high, x, out)
    return out


def lanczos_bound(
    product: Callable[[np.ndarray], np.ndarray], d: int, trace: float, hurry: Callable[[], bool] = lambda: False
) -> tuple[float, int]:
    """Return a bound of the largest eigenvalue of a positive semidefinite matrix H, and how many products it took.

    After k steps of Lanczos' recursion from a random unit vector v the next vector is p(H) v, with p(s) = Π (s − θ_i) /
    Π β_i for the Ritz values θ and the off-diagonal entries β. It has length 1, so that |γ p(λ)| ≤ 1 for the component γ of
    v along the eigenvector of the largest eigenvalue λ. Except with probability ε, |γ| ≥ ε √(π / 2d): then λ is at most the
    number right of all θ at which p reaches √(2d / π) / ε. (Van Dorsselaer, Hochstenbach and van der Vorst, Numerische
    Mathematik 2000.)

    Parameters
    ----------
    product : callable
        Returns H x.
    d : int
        The side of H.
    trace : float
        That of H, which is a bound as well.
    hurry : callable
        Whether few steps must do, whose bound is larger.
    """
    basis = np.empty((min(LANCZOS_STEPS, d) + 1, d))
    start = np.random.default_rng(0).standard_normal(d)  # fixed: the result must not depend on a hidden state
    basis[0] = start / np.linalg.norm(start)
    diagonal: list[float] = []
    beside: list[float] = []
    for k in range(len(basis) - 1):
        image = product(basis[k])
        diagonal.append(float(basis[k] @ image))
        for _ in range(2):  # once leaves what rounding makes of it
            image -= (basis[: k + 1] @ image) @ basis[: k + 1]
        ritz = eigvalsh_tridiagonal(diagonal, beside) if beside else np.array(diagonal)
        length = float(np.linalg.norm(image))
        if length <= CLOSED * ritz[-1]:  # all that H makes of v is known
            return min(float(max(ritz[-1], 0.0)), trace), k + 1
        beside.append(length)
        basis[k + 1] = image / length
        if k + 1 >= HURRIED_STEPS and hurry():
            break
    goal = math.log(math.sqrt(2.0 * d / math.pi) / FAILURE) + float(np.log(beside).sum())

    def excess(t: float) -> float:
        return float(np.log(t - ritz).sum()) - goal

    low = float(np.nextafter(ritz[-1], math.inf))
    if trace <= low or excess(trace) <= 0.0:
        return trace, len(diagonal)
    return float(scipy.optimize.brentq(excess, low, trace, rtol=1e-9)) if excess(low) < 0.0 else low, len(diagonal)


@kernel(reorder=True)
def add_products(matrix, weights, low, high, x, out):
    """Add Σ weights_i ⟨row i, x⟩ row i over the rows from low to high to ``out``: each is read once."""
    for i in range(low, high):
        add_row(matrix, i, weights[i] * row_dot(matrix, i, x), out)


@kernel(reorder=True)
def squares(matrix, weights, unit, low, high):
    """Return Σ weights_i ‖row i / unit‖² over the rows from low to high."""
    total = 0.0
    for i in range(low, high):
        total += weights[i] * row_square(matrix, i, unit)
    return total
