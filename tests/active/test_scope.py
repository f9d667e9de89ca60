"""Which problems the active set takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import (
    Birkhoff,
    Box,
    Columns,
    FiniteSum,
    KSparse,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    Problem,
    Product,
    Simplex,
    SquaredNorm,
)
from tiebreak.active import scope
from tiebreak.active.scope import LEAST_PASSES, SOME_BLOCKS, fits, nearest, refusal, takes_long
from tiebreak.domains.spectral import NuclearBall

A, a = np.random.default_rng(0).standard_normal((5, 6)), np.ones(5)
SQUARES = LeastSquares(A, a)
FUNCTION = FiniteSum(3, 6, lambda x, indices: (float(x @ x), 2.0 * x), convex=True)


@pytest.mark.parametrize(
    "domain", [L1Ball(1.0), Simplex(1.0), Box(np.zeros(6), np.ones(6)), Columns(L1Ball(1.0), (2, 3))], ids=str
)
def test_what_it_takes_needs_no_reason(domain):
    problem = Problem(SquaredNorm() + 2.0 * Logistic(A, a > 0), SQUARES, domain)
    assert refusal(problem) == ""
    assert fits(problem, math.inf)
    assert fits(problem, LEAST_PASSES + 2)


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Problem(SquaredNorm(), SQUARES, L2Ball(1.0)), "a set that is the hull of its corners, and L2Ball is not"),
        (Problem(SquaredNorm(), SQUARES, NuclearBall((2, 3), 1.0)), "corners, and NuclearBall is not known to be one"),
        (
            Problem(SquaredNorm(), SQUARES, Product(v=(L2Ball(1.0), 2), w=(L1Ball(1.0), 4))),
            "corners, and Product is not known to be one",
        ),
        (Problem(FUNCTION, SQUARES, L1Ball(1.0)), "the curvature of the upper objective, and FiniteSum has none"),
        (Problem(SquaredNorm(), FUNCTION, L1Ball(1.0)), "the curvature of the lower objective, and FiniteSum has none"),
        (Problem(-1.0 * SquaredNorm(), SQUARES, L1Ball(1.0)), "the upper objective, and -1 times SquaredNorm has none"),
    ],
    ids=["ball", "nuclear", "product", "function above", "function below", "not convex"],
)
def test_why_it_does_not_take_a_problem_is_told(problem, reason):
    assert reason in refusal(problem)
    assert not fits(problem, math.inf)


def test_a_level_that_is_not_minimised_may_be_anything():
    assert refusal(Problem(FUNCTION, SQUARES, L1Ball(1.0)), ("lower",)) == ""


def test_products_of_too_many_sets_are_left_to_others(monkeypatch):
    monkeypatch.setattr(scope, "MOST_BLOCKS", 5)
    problem = Problem(SquaredNorm(), SQUARES, Box(np.zeros(6), np.ones(6)))
    assert "a product of at most 5 sets, and `domain` is one of 6" in refusal(problem)
    assert not fits(problem, math.inf)


def test_few_passes_many_atoms_and_numbers_that_overflow_do_not_fit(monkeypatch):
    problem = Problem(SquaredNorm(), SQUARES, L1Ball(1.0))
    assert not fits(problem, 0.5 * LEAST_PASSES)
    assert not fits(Problem(SquaredNorm(), SQUARES, L1Ball(1e80)), math.inf)
    assert not fits(Problem(SquaredNorm(), LeastSquares(1e80 * A, a), L1Ball(1.0)), math.inf)
    assert not fits(Problem(SquaredNorm(np.full(6, 1e80)), SQUARES, L1Ball(1.0)), math.inf)
    monkeypatch.setattr(scope, "MOST_ATOMS", 3)
    assert not fits(problem, math.inf)


def test_sets_of_very_many_corners_are_left_to_others():
    assert refusal(Problem(SquaredNorm(), SQUARES, KSparse(2, 1.0, 6))) == ""
    assert not fits(Problem(SquaredNorm(), SQUARES, KSparse(2, 1.0, 6)), math.inf)


# Where it begins


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_minimiser_of_a_squared_distance_is_the_projection_of_its_centre(factor):
    center = np.linspace(-2.0, 3.0, 6)
    x = nearest(Problem(factor * SquaredNorm(center), SQUARES, L1Ball(1.0)))
    np.testing.assert_array_equal(x, L1Ball(1.0).project(center))
    np.testing.assert_array_equal(nearest(Problem(SquaredNorm(), SQUARES, Box(np.ones(6), np.full(6, 2.0)))), np.ones(6))


def test_no_minimiser_of_f_is_taken_where_it_costs_passes_or_saves_none(monkeypatch):
    tall = LeastSquares(np.random.default_rng(1).standard_normal((100, 6)), np.ones(100))
    norm = SquaredNorm(np.ones(6))
    assert nearest(Problem(norm, tall, L1Ball(1.0))) is None
    assert nearest(Problem(SQUARES, SQUARES, L1Ball(1.0))) is None
    assert nearest(Problem(norm + SQUARES, SQUARES, L1Ball(1.0))) is None
    assert nearest(Problem(0.5 * SQUARES, SQUARES, L1Ball(1.0))) is None
    assert nearest(Problem(SquaredNorm(np.ones(9)), LeastSquares(np.ones((1, 9)), [1.0]), Birkhoff(3))) is None
    assert nearest(Problem(norm, SQUARES, L1Ball(9.0))) is not None
    monkeypatch.setattr(scope, "MOST_FIRST_ATOMS", 5)
    assert nearest(Problem(norm, SQUARES, L1Ball(9.0))) is None


def test_cycles_take_long_over_many_factors_unless_rows_are_summed_up():
    rng, d = np.random.default_rng(0), SOME_BLOCKS
    wide, tall = (LeastSquares(rng.standard_normal((n, d)), np.ones(n)) for n in (10, 2 * d))
    assert takes_long(Problem(SquaredNorm(), wide, Box(0.0, 1.0, d)))
    assert not takes_long(Problem(SquaredNorm(), tall, Box(0.0, 1.0, d)))
    assert not takes_long(Problem(SquaredNorm(), wide, L1Ball(1.0)))
