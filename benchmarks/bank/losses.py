"""Losses that are Python functions, whose smoothness constants are not given; and Huber's."""

from __future__ import annotations

from typing import Any

import numpy as np

from bank.cases import Case, planted, problem
from bank.planting import Spot, inside_l1, low_rank, nearest, on_l1, opposite, robust
from tiebreak import FiniteSum, L2Ball, Problem

QUANTILE, WIDTH = 0.3, 0.5  # of the smoothed quantile loss


def of_rows(A: np.ndarray, targets: np.ndarray, loss: Any, slope: Any) -> FiniteSum:
    """Return the mean of a loss of residuals as a sum of which only values and gradients are known."""

    def value_and_grad(x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        rows = A[indices]
        residual = targets[indices] - rows @ x
        return float(loss(residual).mean()), -(slope(residual) @ rows) / indices.size

    return FiniteSum(targets.size, A.shape[1], value_and_grad, convex=True, floor=0.0)


def quantile_slope(residual: np.ndarray) -> np.ndarray:
    """Return the derivative of the quantile loss, smoothed near 0."""
    return np.clip(residual / WIDTH, QUANTILE - 1.0, QUANTILE)


def quantile_loss(residual: np.ndarray) -> np.ndarray:
    slope = quantile_slope(residual)
    return slope * residual - 0.5 * WIDTH * slope**2


def quantiles(rng: np.random.Generator, n: int, d: int, rank: int, spot: Spot) -> Case:
    """Return a distance above and a smoothed quantile loss below: the slopes of two equal rows cancel at the solution."""
    A = low_rank(rng, n, d, rank)
    half = QUANTILE * WIDTH * rng.uniform(0.5, 3.0, n // 2)
    residual = np.concatenate([half, -WIDTH * quantile_slope(half)])
    order = rng.permutation(n)
    lower = of_rows(A[order], (A @ spot.x + residual)[order], quantile_loss, quantile_slope)
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)


@problem(30, 300)
def quantile() -> Case:
    rng = np.random.default_rng(71)
    return quantiles(rng, 200, 30, 15, inside_l1(rng, 30, 5.0))


@problem(300)
def quantile_on_a_ball() -> Case:
    rng = np.random.default_rng(72)
    x = rng.standard_normal(30)
    x *= 2.0 / np.linalg.norm(x)
    return quantiles(rng, 200, 30, 15, Spot(L2Ball(2.0), x, x / 2.0))


@problem(100)
def squares_without_constants() -> Case:
    rng = np.random.default_rng(73)
    A, spot = low_rank(rng, 200, 30, 15), on_l1(rng, 30, 5.0, 8)
    lower = of_rows(A, A @ spot.x + opposite(rng, 200, 0.5), lambda r: 0.5 * r**2, lambda r: r)
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)


@problem(100)
def huber() -> Case:
    rng = np.random.default_rng(74)
    A, spot = low_rank(rng, 2000, 100, 50), on_l1(rng, 100, 10.0, 20)
    return planted(Problem(nearest(rng, A, spot), robust(rng, A, spot.x), spot.domain), spot.x)
