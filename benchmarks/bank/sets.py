"""Other sets than ℓ1 balls: with and without a projection, with and without corners."""

from __future__ import annotations

import numpy as np

from bank.cases import Case, planted, problem
from bank.planting import Spot, fitted, low_rank, nearest, pressed_squares, squares
from tiebreak import (
    Birkhoff,
    Box,
    CappedSimplex,
    GroupBall,
    Hull,
    KSparse,
    L2Ball,
    LeastSquares,
    NuclearBall,
    Problem,
    Simplex,
    Spectrahedron,
)


def on_set(rng: np.random.Generator, spot: Spot, n: int, rank: int) -> Case:
    """Return a distance above and squares of low rank below, whose solution is a given point on the boundary."""
    A = low_rank(rng, n, spot.x.size, rank)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x, 0.3), spot.domain), spot.x)


@problem(30, 300)
def simplex() -> Case:
    rng = np.random.default_rng(41)
    x, normal = np.zeros(200), -rng.random(200)
    x[:20], normal[:20] = rng.dirichlet(np.ones(20)), 0.0
    return on_set(rng, Spot(Simplex(1.0), x, normal), 2000, 40)


@problem(300)
def capped_simplex() -> Case:
    rng = np.random.default_rng(42)
    x, normal = np.full(100, 0.02), np.zeros(100)
    x[:10], normal[:10] = 0.05, rng.random(10)
    x[10:30], normal[10:30] = 0.0, -rng.random(20)
    return on_set(rng, Spot(CappedSimplex(float(x.sum()), 0.05, 100), x, normal), 1000, 30)


@problem(60, 300)
def ball() -> Case:
    rng = np.random.default_rng(43)
    x = rng.standard_normal(100)
    x *= 3.0 / np.linalg.norm(x)
    return on_set(rng, Spot(L2Ball(3.0), x, x / 3.0), 2000, 40)


@problem(20, 100)
def tall_ball() -> Case:
    rng = np.random.default_rng(44)
    x = rng.standard_normal(60)
    x *= 3.0 / np.linalg.norm(x)
    spot = Spot(L2Ball(3.0), x, x / 3.0)
    lower, A = pressed_squares(rng, 20_000, 60, 30, spot, push=0.2)
    return planted(Problem(fitted(rng, 2000, A, spot), lower, spot.domain), spot.x)


@problem(300)
def box() -> Case:
    rng = np.random.default_rng(45)
    x, normal = rng.uniform(-1.0, 1.0, 150), np.zeros(150)
    x[:30], normal[:30] = 1.0, rng.random(30)
    x[30:60], normal[30:60] = -1.0, -rng.random(30)
    return on_set(rng, Spot(Box(-1.0, 1.0, 150), x, normal), 1000, 50)


def in_groups(rng: np.random.Generator, count: int, size: int, used: int, radius: float) -> Spot:
    """Return a point on the boundary of a group ball that uses some of its groups."""
    x, normal = np.zeros((count, size)), rng.standard_normal((count, size))
    normal *= 0.8 * rng.random((count, 1)) / np.linalg.norm(normal, axis=1, keepdims=True)
    x[:used] = rng.standard_normal((used, size))
    x *= radius / np.linalg.norm(x, axis=1).sum()
    normal[:used] = x[:used] / np.linalg.norm(x[:used], axis=1, keepdims=True)
    return Spot(GroupBall(np.repeat(np.arange(count), size), radius), x.ravel(), normal.ravel())


@problem(1000)
def groups() -> Case:
    rng = np.random.default_rng(46)
    return on_set(rng, in_groups(rng, 20, 5, 5, 5.0), 1000, 40)


@problem(10, 60)
def tall_groups() -> Case:
    rng = np.random.default_rng(53)
    return on_set(rng, in_groups(rng, 25, 4, 8, 8.0), 20_000, 50)


@problem(300)
def k_sparse() -> Case:
    rng = np.random.default_rng(47)
    x, normal = np.zeros(150), rng.uniform(-0.9, 0.9, 150)
    x[:10], normal[:10] = 1.0, 1.0 + rng.random(10)
    x[10:30], normal[10:30] = -0.5, -1.0
    return on_set(rng, Spot(KSparse(20, 1.0, 150), x, normal), 1000, 50)


@problem(300)
def nuclear_ball() -> Case:
    rng = np.random.default_rng(48)
    left, right = (np.linalg.qr(rng.standard_normal((size, 6)))[0] for size in (20, 15))
    values = rng.dirichlet(np.full(3, 5.0)) * 4.0
    x = left[:, :3] * values @ right[:, :3].T
    normal = left[:, :3] @ right[:, :3].T + 0.5 * left[:, 3:] @ right[:, 3:].T
    return on_set(rng, Spot(NuclearBall((20, 15), 4.0), x.ravel(), normal.ravel()), 1000, 80)


@problem(300)
def spectrahedron() -> Case:
    rng = np.random.default_rng(49)
    vectors = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    x = vectors[:, :3] * rng.dirichlet(np.full(3, 5.0)) @ vectors[:, :3].T
    normal = -vectors[:, 3:] * rng.uniform(0.5, 1.5, 9) @ vectors[:, 3:].T
    return on_set(rng, Spot(Spectrahedron(12, 1.0), x.ravel(), normal.ravel()), 600, 40)


@problem(30, 300)
def hull() -> Case:
    """300 points, 15 of which span the face of the solution."""
    rng = np.random.default_rng(50)
    points, normal = rng.standard_normal((300, 60)), rng.standard_normal(60)
    normal /= np.linalg.norm(normal)
    heights = rng.uniform(-2.0, 0.5, 300)
    heights[:15] = 1.0
    points += np.outer(heights - points @ normal, normal)
    return on_set(rng, Spot(Hull(points), rng.dirichlet(np.ones(15)) @ points[:15], normal), 1000, 20)


@problem(100)
def birkhoff() -> Case:
    rng = np.random.default_rng(51)
    size = 10
    x = sum(share * np.eye(size)[rng.permutation(size)] for share in rng.dirichlet(np.full(4, 3.0)))
    normal = np.where(x > 0.0, 0.0, -rng.random((size, size)))
    return on_set(rng, Spot(Birkhoff(size), x.ravel(), normal.ravel()), 1000, 40)


@problem(30, 1000)
def small_ball() -> Case:
    """Fewer rows than variables, as many as iterations are cheap for."""
    rng = np.random.default_rng(52)
    x = rng.standard_normal(40)
    x *= 2.0 / np.linalg.norm(x)
    spot, A = Spot(L2Ball(2.0), x, x / 2.0), rng.standard_normal((20, 40))
    return planted(Problem(nearest(rng, A, spot), LeastSquares(A, A @ x), spot.domain), x)
