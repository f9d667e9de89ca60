"""Least squares at the lower level, dense, over ℓ1 balls: the paper's regressions, tall, wide, badly scaled, uneven rows."""

from __future__ import annotations

import numpy as np

from bank.cases import Case, planted, problem
from bank.files import found
from bank.planting import fitted, inside_l1, low_rank, nearest, on_l1, opposite, pressed_squares, squares
from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm, data

RADIUS = 10.0


def two_levels(matrix: np.ndarray) -> Problem:
    """Return validation loss over the minimisers of training loss."""
    parts = data.split(matrix, 0)
    return Problem(LeastSquares(*parts.validation), LeastSquares(*parts.train), L1Ball(RADIUS))


@problem(15, 60, 300)
def page_views() -> Case:
    return Case(two_levels(data.pageviews(0)))


@problem(100, 300)
def montevideo() -> Case:
    return Case(two_levels(data.montevideo(found("montevideo_bus.json"))))


@problem(5, 30, 100)
def tall() -> Case:
    rng = np.random.default_rng(1)
    A, spot = low_rank(rng, 20_000, 100, 60), inside_l1(rng, 100, RADIUS)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x), spot.domain), spot.x)


@problem(10, 60)
def tall_with_validation() -> Case:
    rng = np.random.default_rng(2)
    A, spot = low_rank(rng, 20_000, 100, 60), on_l1(rng, 100, RADIUS, 20)
    return planted(Problem(fitted(rng, 2000, A, spot), squares(rng, A, spot.x), spot.domain), spot.x)


@problem(3, 20)
def taller() -> Case:
    rng = np.random.default_rng(3)
    A, spot = low_rank(rng, 100_000, 50, 30), on_l1(rng, 50, RADIUS, 10)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x), spot.domain), spot.x)


@problem(10, 60)
def tall_on_the_boundary() -> Case:
    rng = np.random.default_rng(4)
    spot = on_l1(rng, 80, RADIUS, 20)
    lower, A = pressed_squares(rng, 10_000, 80, 40, spot, push=0.3)
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)


@problem(30, 300)
def wide() -> Case:
    rng = np.random.default_rng(5)
    A, spot = rng.standard_normal((200, 2000)) / 10.0, on_l1(rng, 2000, RADIUS, 40)
    return planted(Problem(nearest(rng, A, spot), LeastSquares(A, A @ spot.x), spot.domain), spot.x)


@problem(100)
def wide_with_validation() -> Case:
    rng = np.random.default_rng(6)
    spot = on_l1(rng, 400, RADIUS, 30)
    lower, A = pressed_squares(rng, 300, 400, 100, spot, push=0.1)
    return planted(Problem(fitted(rng, 600, A, spot), lower, spot.domain), spot.x)


@problem(30, 300)
def scaled_columns() -> Case:
    """Columns of lengths from 0.1 to 10."""
    rng = np.random.default_rng(7)
    A, spot = low_rank(rng, 10_000, 100, 60) * 10.0 ** rng.uniform(-1.0, 1.0, 100), inside_l1(rng, 100, RADIUS)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x), spot.domain), spot.x)


@problem(30)
def uneven_rows() -> Case:
    """One row in a hundred is ten times as long as the others."""
    rng = np.random.default_rng(8)
    rows = low_rank(rng, 10_000, 100, 60)[:5000] * np.where(np.arange(5000) % 100 == 0, 10.0, 1.0)[:, None]
    A, spot = np.vstack([rows, rows]), inside_l1(rng, 100, RADIUS)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x), spot.domain), spot.x)


@problem(100, 3000)
def least_norm() -> Case:
    """The solution of least norm of equations that many points solve."""
    rng = np.random.default_rng(9)
    A = rng.standard_normal((60, 150))
    x = np.linalg.lstsq(A, A @ rng.standard_normal(150), rcond=None)[0]
    return planted(Problem(SquaredNorm(), LeastSquares(A, A @ x), L1Ball(2.0 * np.abs(x).sum())), x)


@problem(30)
def one_minimiser() -> Case:
    """G is strongly convex: f has nothing to choose."""
    rng = np.random.default_rng(10)
    rows, spot = rng.standard_normal((2500, 50)), inside_l1(rng, 50, RADIUS)
    A = np.vstack([rows, rows])
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x), spot.domain), spot.x)


@problem(1000)
def slow_decay() -> Case:
    """Singular values that fall from 1 to 1e-3."""
    rng = np.random.default_rng(11)
    d, rank = 100, 60
    left, right = np.linalg.qr(rng.standard_normal((150, rank)))[0], np.linalg.qr(rng.standard_normal((d, rank)))[0]
    rows = 10.0 * left * np.geomspace(1.0, 1e-3, rank) @ right.T
    A, spot = np.vstack([rows, rows]), inside_l1(rng, d, RADIUS)
    lower = LeastSquares(A, A @ spot.x + opposite(rng, 300, 0.1))
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)
