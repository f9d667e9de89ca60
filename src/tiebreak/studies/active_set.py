"""Least squares over an ℓ1 ball to rounding error: Wolfe's method for the point of a polytope that is nearest to 0.

With x = Σ λ_j v_j, weights λ ≥ 0 of sum 1 of some atoms v_j (±R e_i and 0), the residuals (A x − b)/√n are the same mean of
the images w_j = (A v_j − b)/√n, and g(x) = ½ ‖Σ λ_j w_j‖². Few atoms are kept, with linearly independent (w_j, c):

1. The weights of sum 1 that minimise ‖Σ λ_j w_j‖, whatever their signs: the least-squares solution of Σ λ_j (w_j, c) =
   (0, c), scaled, from a QR factorisation to which columns are added and from which they are taken.
2. If one of them is ≤ 0: go towards them as far as all weights stay ≥ 0, take the atom whose weight vanishes away, and
   return to 1.
3. One pass over the data prices all atoms, ⟨∇g(x), v⟩. The cheapest ones enter one by one, each with its steps 1 and 2. If
   none is cheaper than x, x is a minimiser.

Wolfe, Finding the nearest point in a polytope, 1976.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

CANDIDATES = 20  # atoms that may enter after a pass
WORTHWHILE = 0.15  # share of the gap by which an atom must be cheaper than x to enter
DEPENDENT = 1e-12  # relative distance from the span of the others at which an image adds nothing to it
ENOUGH = 4.0  # gap, in units of rounding
MAX_PASSES = 1000


class Solution(NamedTuple):
    """A minimiser, as exact as rounding allows."""

    x: np.ndarray
    gradient: np.ndarray  # ∇g(x)
    gap: float  # g(x) − g* is at most this
    rounding: float  # by how much the price of an atom may be wrong


def least_squares(A: np.ndarray, b: np.ndarray, radius: float) -> Solution:
    """Minimise g(x) = ‖A x − b‖² / 2n over the ℓ1 ball.

    Examples
    --------
    >>> found = least_squares(np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([3.0, 1.0]), radius=2.0)
    >>> found.x.round(12), found.gap < 1e-14
    (array([1.6, 0.4]), True)
    """
    active = _Active(A, b, radius)
    found = _priced(A, b, radius, active.x)
    for _ in range(MAX_PASSES):
        if found.gap <= ENOUGH * found.rounding or not active.extend(found):
            break
        better = _priced(A, b, radius, active.x)
        if better.gap >= found.gap and _value(A, b, active.x) >= _value(A, b, found.x):  # all that is left is rounding
            break
        found = better
    return found


def _value(A: np.ndarray, b: np.ndarray, x: np.ndarray) -> float:
    return 0.5 * float(np.mean((A @ x - b) ** 2))


def _priced(A: np.ndarray, b: np.ndarray, radius: float, x: np.ndarray) -> Solution:
    gradient = A.T @ (A @ x - b) / b.size
    gap = float(gradient @ x) + radius * float(np.abs(gradient).max())
    residual_error = np.finfo(float).eps * (np.abs(A) @ np.abs(x) + np.abs(b))
    rounding = radius * float((np.abs(A).T @ residual_error).max()) / b.size
    return Solution(x, gradient, gap, rounding)


class _Active:
    """The atoms that x is a mean of, their weights, and a QR factorisation of their images (w_j, c, 0).

    There are more rows than columns always, thanks to the 0: of a square factor SciPy could not tell that it is a thin one.
    """

    def __init__(self, A: np.ndarray, b: np.ndarray, radius: float) -> None:
        self.matrix, self.target, self.radius = A / math.sqrt(b.size), b / math.sqrt(b.size), radius
        self.c = float(np.linalg.norm(self.target)) or 1.0
        self.atoms = [(0, 0.0)]  # coordinate and sign; the first one is the centre
        self.weights = np.ones(1)
        self.q, self.r = scipy.linalg.qr(self._image(*self.atoms[0])[:, None], mode="economic")

    @property
    def x(self) -> np.ndarray:
        x = np.zeros(self.matrix.shape[1])
        for (j, sign), weight in zip(self.atoms, self.weights, strict=True):
            x[j] += weight * sign * self.radius
        return x

    def extend(self, found: Solution) -> bool:
        """Let the cheapest atoms enter; return whether one did."""
        entered = False
        for j in np.argsort(-np.abs(found.gradient))[:CANDIDATES]:
            residual = self.q[:-2] @ (self.r @ self.weights)
            price = float(self.matrix[:, j] @ residual)
            saved = float(residual @ (residual + self.target)) + self.radius * abs(price)
            atom = (int(j), -float(np.sign(price)))
            if saved > WORTHWHILE * found.gap and atom not in self.atoms and self._enter(atom):
                self._settle()
                entered = True
        return entered

    def _enter(self, atom: tuple[int, float]) -> bool:
        image = self._image(*atom)
        rest = image - self.q @ (self.q.T @ image)
        if np.linalg.norm(rest) <= DEPENDENT * np.linalg.norm(image):
            return False
        self.q, self.r = scipy.linalg.qr_insert(self.q, self.r, image, len(self.atoms), which="col")
        self.atoms.append(atom)
        self.weights = np.append(self.weights, 0.0)
        return True

    def _settle(self) -> None:
        """Steps 1 and 2."""
        while True:
            wanted = scipy.linalg.solve_triangular(self.r, self.q[-2])
            wanted /= wanted.sum()
            if wanted.min() > 0.0:
                self.weights = wanted
                return
            falling = wanted <= 0.0
            share = np.full(wanted.size, math.inf)
            share[falling] = self.weights[falling] / np.maximum(self.weights - wanted, np.finfo(float).tiny)[falling]
            first = int(np.argmin(share))
            moved = np.maximum(self.weights + min(share[first], 1.0) * (wanted - self.weights), 0.0)
            self._leave(first, moved)

    def _leave(self, k: int, weights: np.ndarray) -> None:
        self.q, self.r = scipy.linalg.qr_delete(self.q, self.r, k, which="col")
        del self.atoms[k]
        self.weights = np.delete(weights, k)
        self.weights /= self.weights.sum()

    def _image(self, j: int, sign: float) -> np.ndarray:
        return np.r_[sign * self.radius * self.matrix[:, j] - self.target, self.c, 0.0]
