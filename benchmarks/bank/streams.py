"""Samples without end. A pass counts 10,000 of them; values are those of the distribution, which is known here."""

from __future__ import annotations

from typing import Any

import numpy as np

from bank.cases import Case, planted, problem
from bank.planting import Spot, inside_l1, labelled, nearest
from tiebreak import L2Ball, Problem, Stream

NOISE = 0.5


def gaussian(rng: np.random.Generator, spot: Spot, rank: int) -> Case:
    """Return a distance over squares of Gaussian rows of low rank with noisy targets."""
    d = spot.x.size
    mixing = rng.standard_normal((rank, d)) / np.sqrt(rank)

    def draw(source: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        rows = source.standard_normal((size, rank)) @ mixing
        return rows, rows @ spot.x + NOISE * source.standard_normal(size)

    upper = nearest(rng, mixing, spot)

    def values(x: np.ndarray) -> tuple[float, float]:
        return upper.value(x), 0.5 * (float(np.sum((mixing @ (x - spot.x)) ** 2)) + NOISE**2)

    return planted(Problem(upper, Stream.of_rows(draw, d), spot.domain), spot.x, values=values)


@problem(10, 100)
def rows_of_a_stream() -> Case:
    rng = np.random.default_rng(81)
    return gaussian(rng, inside_l1(rng, 20, 5.0), 10)


@problem(30)
def rows_of_a_stream_on_a_ball() -> Case:
    rng = np.random.default_rng(82)
    x = rng.standard_normal(20)
    x *= 2.0 / np.linalg.norm(x)
    return gaussian(rng, Spot(L2Ball(2.0), x, x / 2.0), 10)


@problem(10)
def logistic_stream() -> Case:
    """Rows that are drawn again and again from 2,000."""
    rng = np.random.default_rng(83)
    spot = inside_l1(rng, 20, 5.0)
    pool, A = labelled(rng, 2000, 20, 10, spot.x)
    upper, (rows, labels) = nearest(rng, A, spot), (pool.matrix.array, pool.targets)

    def draw(source: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = source.integers(0, labels.size, size)
        return rows[chosen], labels[chosen]

    def values(x: np.ndarray) -> tuple[float, float]:
        return upper.value(x), pool.value(x)

    lower: Any = Stream.of_rows(draw, 20, "logistic")
    return planted(Problem(upper, lower, spot.domain), spot.x, values=values)
