"""Near ties: f over the points of Z with g ≤ g* + ε."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bank.cases import Case, planted, problem
from bank.planting import Spot, inside_l1, labelled, on_l1
from bank.regression import two_levels
from tiebreak import L2Ball, LeastSquares, Problem, Simplex, SquaredNorm, data

WEIGHT = 20.0  # multiplier of g ≤ g* + ε in units of what f gains


def allowed(lower: Any, least: float, spot: Spot, by_keep: bool = False) -> Case:
    """Return the distance to a point from which x is the nearest one with g no larger than at x."""
    value, slope = lower.value_and_gradient(spot.x)
    size = np.linalg.norm(spot.normal)
    press = np.linalg.norm(slope) / size * spot.normal if size > 0.0 else spot.normal
    upper = SquaredNorm(spot.x + WEIGHT * (slope + press))
    exact = Problem(upper, lower, spot.domain)
    epsilon = value - least
    share = 1.0 - epsilon / (lower.value(exact.reference) - least)
    near = Problem(upper, lower, spot.domain, **({"keep": share} if by_keep else {"tolerance": epsilon}))
    return planted(near, spot.x, tolerance=epsilon, lower=least)


def away(spot: Spot, share: float) -> np.ndarray:
    """Return another point of the set, on the way from x to its middle."""
    return (1.0 - share) * spot.x + share * spot.domain.middle(spot.x.size)


@problem(10, 60)
def near_tall() -> Case:
    rng = np.random.default_rng(61)
    spot = inside_l1(rng, 80, 10.0)
    A = rng.standard_normal((5000, 40)) @ rng.standard_normal((40, 80)) / np.sqrt(40.0)
    best = spot.x + 0.1 * (inside_l1(rng, 80, 10.0).x - spot.x)
    return allowed(LeastSquares(A, A @ best), 0.0, spot)


@problem(300)
def near_wide_by_share() -> Case:
    rng = np.random.default_rng(62)
    spot = on_l1(rng, 400, 10.0, 30)
    A = rng.standard_normal((200, 400)) / np.sqrt(20.0)
    return allowed(LeastSquares(A, A @ away(spot, 0.1)), 0.0, spot, by_keep=True)


@problem(100)
def near_on_a_ball() -> Case:
    rng = np.random.default_rng(63)
    x = rng.standard_normal(100)
    x *= 3.0 / np.linalg.norm(x)
    spot, A = Spot(L2Ball(3.0), x, x / 3.0), rng.standard_normal((2000, 100))
    return allowed(LeastSquares(A, A @ away(spot, 0.1)), 0.0, spot)


@problem(30, 300)
def near_logistic_on_a_ball() -> Case:
    rng = np.random.default_rng(65)
    x = rng.standard_normal(60)
    x *= 3.0 / np.linalg.norm(x)
    spot = Spot(L2Ball(3.0), x, x / 3.0)
    best = away(spot, 0.3)
    lower, _ = labelled(rng, 4000, 60, 60, best)
    return allowed(lower, lower.value(best), spot)


@problem(100)
def near_on_a_simplex() -> Case:
    rng = np.random.default_rng(64)
    x, normal = np.zeros(100), -rng.random(100)
    x[:15], normal[:15] = rng.dirichlet(np.ones(15)), 0.0
    spot, A = Spot(Simplex(1.0), x, normal), rng.standard_normal((1000, 100))
    return allowed(LeastSquares(A, A @ away(spot, 0.1)), 0.0, spot)


def loosened(make: Callable[[], Case], share: float) -> Case:
    """Return a problem with exact ties as one of which a share is kept."""
    return Case(make().problem._replace(keep=share))


@problem(100)
def near_page_views() -> Case:
    return loosened(lambda: Case(two_levels(data.pageviews(0))), 0.99)
