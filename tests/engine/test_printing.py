"""How values print: briefly, and without arrays."""

from __future__ import annotations

import numpy as np
import pytest

import tiebreak
from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm
from tiebreak.engine.printing import brief

MANY = np.arange(1.0, 201.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2.0"),
        (1.0 / 3.0, "0.333333"),
        (np.float64(0.5), "0.5"),
        (np.ones(2), "[1.0, 1.0]"),
        (np.ones((3, 4)), "3 × 4 numbers"),
        (len, "len"),
        ("a\nb", "'a\\nb'"),
    ],
)
def test_parts_of_values_are_brief(value, text):
    assert brief(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tiebreak.Box(np.zeros(200), MANY), "Box(lower=200 times 0, upper=200 numbers from 1 to 200)"),
        (tiebreak.L2Ball(2.0), "L2Ball(radius=2.0)"),
        (tiebreak.L2Ball(2.0, MANY), "L2Ball(radius=2.0, center=200 numbers from 1 to 200)"),
        (tiebreak.WeightedL1Ball(MANY, 2.0), "WeightedL1Ball(weights=200 numbers from 1 to 200, radius=2.0)"),
        (tiebreak.Hull(np.eye(30)), "Hull(points=30 × 30 numbers)"),
        (tiebreak.GroupBall(np.arange(200) // 10, 1.0), "GroupBall(20 groups of 200 variables, radius=1.0)"),
        (tiebreak.Columns(tiebreak.L2Ball(1.0), (5, 4)), "Columns(set=L2Ball(radius=1.0), rows=5, columns=4)"),
        (
            tiebreak.Product(w=tiebreak.Box(np.zeros(9), np.ones(9)), b=tiebreak.LInfBall(1.0, 2)),
            "Product(w=Box(lower=9 times 0, upper=9 times 1), b=LInfBall(radius=1.0, dimension=2))",
        ),
    ],
)
def test_sets_print_on_one_line(value, text):
    assert repr(value) == text


def test_functions_print_by_name_and_what_was_said_of_them():
    def squares(x, rows):
        return 0.5 * x @ x, x

    assert repr(tiebreak.FiniteSum(3, 2, squares)) == "FiniteSum(n=3, dimension=2, value_and_grad=squares)"
    assert repr(tiebreak.FiniteSum(3, 2, squares, convex=True)).endswith("value_and_grad=squares, convex=True)")
    stream = tiebreak.Stream(lambda rng, size: rng.random(size), squares, dimension=2, lipschitz=1.0)
    assert repr(stream) == "Stream(draw=<lambda>, value_and_grad=squares, dimension=2, lipschitz=1.0)"


def test_nothing_of_a_run_writes_out_an_array_or_more_than_a_screen():
    rng = np.random.default_rng(0)
    lower = LeastSquares(rng.standard_normal((20, 60)), rng.standard_normal(20))
    problem = Problem(SquaredNorm(MANY[:60] / 60.0), lower, L1Ball(5.0))
    seen = []
    result = tiebreak.minimize(problem, callback=seen.append)
    front = tiebreak.frontier(problem, points=2)
    line = tiebreak.path(problem, [1.0])
    for value in (
        problem,
        result,
        result.certificate,
        result.history,
        seen[-1],
        front,
        front.points[0],
        front.lower_alone,
        front.band,
        line,
        line.points[0],
        tiebreak.ties(problem),
    ):
        text = repr(value)
        assert "array" not in text and "object at" not in text, text
        assert text == str(value)
        assert len(text.splitlines()) <= 20 and max(map(len, text.splitlines())) <= 200, text


def test_a_snapshot_says_where_the_run_is():
    problem = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0))
    seen = []
    tiebreak.minimize(problem, "sbcgf", max_queries=2000, callback=seen.append)
    assert repr(seen[0]).startswith("Snapshot after 0 samples, iteration 0, while a first point is sought: f 0, g 0.5,")
    assert "samples, iteration" in repr(seen[-1])
