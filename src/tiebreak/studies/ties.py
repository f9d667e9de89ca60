"""Is there a tie at all? How many minimisers a least-squares loss has over an ℓ1 ball.

More features than samples do not make many minimisers. All minimisers have the same fit A x, so the same gradient ∇g. Where
it does not vanish they are means of the atoms ±R e_i of least price ⟨∇g, v⟩, a face of the ball that mostly has fewer atoms
than there are samples; and if the images of these atoms are affinely independent, one mean alone has that fit. Where ∇g
vanishes, as it must if g* = 0, every point of the ball of that fit is a minimiser, and there are many if A has a kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import linprog

import tiebreak
from tiebreak.studies.tracing import solved

SURE, PERHAPS = 100.0, 10_000.0  # units of accuracy: prices this near are equal; between these two it cannot be told
INSIDE = 1e-3  # share of the radius by which a minimiser is looked for inside the ball
MOVES = 1e-6  # relative size to which weights must be able to grow from 0


class Solution(NamedTuple):
    """A minimiser, as exact as rounding allows."""

    x: np.ndarray
    gradient: np.ndarray  # ∇g(x)
    value: float  # g(x)
    gap: float  # proven: g(x) − g* is at most this
    rounding: float  # by how much the price of an atom may be wrong


class Minimisers(NamedTuple):
    """The set of all minimisers of g."""

    dimension: int | None  # 0: there is one; None: it cannot be told at this accuracy
    lower: float  # g*
    gap: float  # proven: it is less by at most this
    atoms: int  # of least price; of the whole ball if the gradient vanishes
    rank: int  # of their images: as many as atoms if there is one minimiser

    @property
    def words(self) -> str:
        """What is found, in words."""
        if self.dimension is None:
            return "an unknown number of minimisers: it cannot be told at this accuracy"
        return "one minimiser" if self.dimension == 0 else f"many minimisers, a face of dimension {self.dimension}"


def minimisers(A: np.ndarray, b: np.ndarray, radius: float) -> Minimisers:
    """Return how many minimisers ‖A x − b‖² / 2n has over the ℓ1 ball.

    Examples
    --------
    One sample and two features: the target is out of reach of the first ball, and not of the second.

    >>> A, b = np.array([[2.0, 1.0]]), np.array([4.0])
    >>> minimisers(A, b, radius=1.0).words
    'one minimiser'
    >>> minimisers(A, b, radius=3.0).words
    'many minimisers, a face of dimension 1'
    """
    found = least_squares(A, b, radius)
    dimension, atoms, rank = _whole_ball(A, b, radius, found) if _vanishes(found, radius) else _face(A, b, radius, found)
    return Minimisers(dimension, found.value, found.gap, atoms, rank)


def least_squares(A: np.ndarray, b: np.ndarray, radius: float) -> Solution:
    """Minimise g(x) = ‖A x − b‖² / 2n over the ℓ1 ball by the active set, and price its atoms.

    Examples
    --------
    >>> found = least_squares(np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([3.0, 1.0]), radius=2.0)
    >>> found.x.round(12), found.gap < 1e-13
    (array([1.6, 0.4]), True)
    """
    problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares(A, b), tiebreak.L1Ball(radius))
    result = solved(problem, tiebreak.ActiveSet(level="lower"))
    gradient = A.T @ (A @ result.x - b) / b.size
    residual_error = np.finfo(float).eps * (np.abs(A) @ np.abs(result.x) + np.abs(b))
    rounding = radius * float((np.abs(A).T @ residual_error).max()) / b.size
    return Solution(result.x, gradient, float(result.lower), float(result.lower_gap_bound), rounding)


def _vanishes(found: Solution, radius: float) -> bool:
    return radius * float(np.abs(found.gradient).max()) <= SURE * found.rounding


def _whole_ball(A: np.ndarray, b: np.ndarray, radius: float, found: Solution) -> tuple[int | None, int, int]:
    """All points of one fit: as many dimensions as the kernel of A has, if one of them lies inside the ball."""
    d, (rank, clear) = A.shape[1], _rank(A)
    inside = np.abs(found.x).sum() < (1.0 - INSIDE) * radius
    if not inside:
        smaller = (1.0 - 2.0 * INSIDE) * radius
        inside = _vanishes(least_squares(A, b, smaller), smaller)
    one = rank == d  # wherever it lies
    return (d - rank if clear and (inside or one) else None), 2 * d, rank


def _face(A: np.ndarray, b: np.ndarray, radius: float, found: Solution) -> tuple[int | None, int, int]:
    """The means of the atoms of least price that have the fit of x."""
    prices = -radius * np.abs(found.gradient)
    active = found.x != 0.0
    own = radius * np.sign(found.x[active]) * found.gradient[active]
    accuracy = max(float(own.max() - prices.min()), found.rounding)
    dearer = prices - prices.min()
    perhaps = np.flatnonzero((dearer <= PERHAPS * accuracy) | active)
    images = _images(A, b, radius, -np.sign(found.gradient), perhaps)
    rank, clear = _rank(images)
    if clear and rank == perhaps.size:  # then those that are of least price for certain are independent too
        return 0, perhaps.size, rank
    told = clear and bool((dearer[perhaps] <= SURE * accuracy).all()) and _all_can_grow(images, found.x[perhaps] != 0.0)
    return (perhaps.size - rank if told else None), perhaps.size, rank


def _images(A: np.ndarray, b: np.ndarray, radius: float, signs: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return the residuals of atoms with one more entry, so that linear independence is affine independence of the fits."""
    residuals = radius * signs[which] * A[:, which] - b[:, None]
    images = np.vstack([residuals, np.full(which.size, np.linalg.norm(b) or 1.0)])
    return images / np.linalg.norm(images, axis=0)


def _rank(matrix: np.ndarray) -> tuple[int, bool]:
    """Return the rank, and whether it is clear: no singular value is near the limit below which all are rounding."""
    values = np.linalg.svd(matrix, compute_uv=False)
    limit = values[0] * max(matrix.shape) * np.finfo(float).eps
    return int((values > limit).sum()), not bool(((values > 0.1 * limit) & (values < SURE * limit)).any())


def _all_can_grow(images: np.ndarray, positive: np.ndarray) -> bool:
    """Whether all weights that are 0 can grow at once while the fit stays the same: then all directions are open."""
    kernel = scipy.linalg.null_space(images)
    zero = kernel[~positive]
    if not len(zero):
        return True
    k = kernel.shape[1]
    program = linprog(
        np.r_[np.zeros(k), -1.0],
        A_ub=np.column_stack([-zero, np.ones(len(zero))]),
        b_ub=np.zeros(len(zero)),
        bounds=[(-1.0, 1.0)] * k + [(None, 1.0)],
        method="highs",
    )
    return program.x is not None and -program.fun > MOVES
