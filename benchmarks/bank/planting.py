"""Problems around a solution that is chosen first.

g is a loss of a linear model, strictly convex in A x near A x*, so that its minimisers over Z are the points of Z with
A x = A x*, once x* is one of them. x* is best for a convex f among these if −∇f(x*) = Aᵀν + n for some ν and a normal n of Z
at x*. So x*, n and ν are drawn, and the data of both levels are made to fit them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tiebreak import Huber, L1Ball, LeastSquares, Logistic, SquaredNorm


class Spot(NamedTuple):
    """A set, a point of it, and a normal of the set at that point."""

    domain: Any
    x: np.ndarray
    normal: np.ndarray


def inside_l1(rng: np.random.Generator, d: int, radius: float, share: float = 0.5) -> Spot:
    """Return a point inside of an ℓ1 ball, where no normal but 0 exists."""
    x = rng.standard_normal(d)
    return Spot(L1Ball(radius), share * radius * x / np.abs(x).sum(), np.zeros(d))


def on_l1(rng: np.random.Generator, d: int, radius: float, support: int) -> Spot:
    """Return a sparse point on the boundary of an ℓ1 ball."""
    x, normal = np.zeros(d), rng.uniform(-0.9, 0.9, d)
    places = rng.choice(d, support, replace=False)
    x[places] = rng.uniform(0.5, 1.5, support) * rng.choice([-1.0, 1.0], support)
    normal[places] = np.sign(x[places])
    return Spot(L1Ball(radius), radius * x / np.abs(x).sum(), normal)


def low_rank(rng: np.random.Generator, n: int, d: int, rank: int) -> np.ndarray:
    """Return a matrix of given rank with entries of size 1, whose rows come in pairs: n / 2 different ones, twice."""
    rows = rng.standard_normal((n // 2, rank)) @ (rng.standard_normal((rank, d)) / np.sqrt(rank))
    return np.vstack([rows, rows])


def paired_sparse(rng: np.random.Generator, n: int, d: int, per_row: int) -> sp.csr_matrix:
    """Return a sparse matrix whose rows come in pairs, and whose columns do too, so that models tie."""
    half = rng.integers(0, d // 2, size=(n // 2, per_row))
    data = rng.standard_normal(half.size)
    rows = sp.csr_matrix((data, half.ravel(), np.arange(0, half.size + 1, per_row)), shape=(n // 2, d // 2))
    rows.sum_duplicates()
    doubled = sp.hstack([rows, rows]).tocsr()
    return sp.vstack([doubled, doubled]).tocsr()


def opposite(rng: np.random.Generator, n: int, noise: float) -> np.ndarray:
    """Return residuals that are opposite on the two rows of a pair, so that no model explains any of them."""
    half = noise * rng.standard_normal(n // 2)
    return np.concatenate([half, -half])


def squares(rng: np.random.Generator, A: Any, x: np.ndarray, noise: float = 1.0) -> LeastSquares:
    """Return squares that x minimises over all of ℝᵈ; the rows of A come in pairs."""
    order = rng.permutation(A.shape[0])
    return LeastSquares(A[order], (A @ x + opposite(rng, A.shape[0], noise))[order])


def pressed_squares(rng: np.random.Generator, n: int, d: int, rank: int, spot: Spot, push: float) -> tuple[Any, np.ndarray]:
    """Return squares that x minimises over Z alone: their gradient at x is −push · normal; and their matrix."""
    mixing = rng.standard_normal((rank, d)) / np.sqrt(rank)
    mixing[0] = spot.normal
    left = rng.standard_normal((n, rank))
    pull = left @ np.linalg.solve(left.T @ left, np.eye(rank)[0])
    noise = rng.standard_normal(n)
    noise -= left @ np.linalg.lstsq(left, noise, rcond=None)[0]
    A = left @ mixing
    return LeastSquares(A, A @ spot.x + n * push * pull + noise), A


def robust(rng: np.random.Generator, A: np.ndarray, x: np.ndarray) -> Huber:
    """Return a Huber loss (δ = 1) that x minimises over all of ℝᵈ, with residuals small and large."""
    order = rng.permutation(A.shape[0])
    return Huber(A[order], (A @ x + opposite(rng, A.shape[0], 0.7))[order])


LABELS = 4  # rows that are equal, of which one to three are positive


def labelled(
    rng: np.random.Generator, n: int, d: int, rank: int, x: np.ndarray, spread: Any = 1.0
) -> tuple[Any, np.ndarray]:
    """Return a logistic loss that x minimises over all of ℝᵈ; and its matrix.

    Each row comes four times, k of them with a positive label, and x gives it the odds k : 4 − k.
    """
    positive = rng.integers(1, LABELS, n // LABELS)
    logits = np.log(positive / (LABELS - positive))
    left, mixing = rng.standard_normal((n // LABELS, rank)), rng.standard_normal((rank, d)) / np.sqrt(rank) * spread
    image = mixing @ x
    left += np.outer(logits - left @ image, image / (image @ image))
    A = np.repeat(left @ mixing, LABELS, axis=0)
    y = np.where(np.tile(np.arange(LABELS), n // LABELS) < np.repeat(positive, LABELS), 1.0, -1.0)
    order = rng.permutation(y.size)
    return Logistic(A[order], y[order]), A


def nearest(rng: np.random.Generator, A: Any, spot: Spot, pull: float = 1.0, press: float = 1.0) -> SquaredNorm:
    """Return half the squared distance to a point from which x is the nearest one of Z with the same A x."""
    along = A.T @ rng.standard_normal(A.shape[0])
    along *= pull * np.linalg.norm(spot.x) / np.linalg.norm(along)
    size = np.linalg.norm(spot.normal)
    across = press * np.linalg.norm(spot.x) / size * spot.normal if size > 0.0 else spot.normal
    return SquaredNorm(spot.x + along + across)


def fitted(rng: np.random.Generator, n: int, A: Any, spot: Spot, noise: float = 1.0, pull: float = 1.0) -> LeastSquares:
    """Return squares on n other rows, for which x is the best point of Z with the same A x."""
    d = spot.x.size
    B = rng.standard_normal((n, d))
    along = A.T @ rng.standard_normal(A.shape[0])
    along *= pull / np.linalg.norm(along)
    size = np.linalg.norm(spot.normal)
    against = along + (pull / size * spot.normal if size > 0.0 else 0.0)
    residual = noise * rng.standard_normal(n)
    residual -= B @ np.linalg.lstsq(B, residual, rcond=None)[0]
    return LeastSquares(B, B @ spot.x + residual + n * B @ np.linalg.solve(B.T @ B, against))
