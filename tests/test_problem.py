"""Problems are checked when they are made."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import FiniteSum, L1Ball, LeastSquares, Problem, SquaredNorm

LOSS = LeastSquares(np.ones((2, 3)), np.ones(2))


def test_the_dimension_comes_from_whatever_fixes_it():
    assert Problem(LOSS, SquaredNorm(), L1Ball(1.0)).dimension == 3
    assert Problem(SquaredNorm(), LOSS, L1Ball(1.0)).dimension == 3
    assert Problem(SquaredNorm(np.zeros(4)), SquaredNorm(), L1Ball(1.0)).dimension == 4


def test_a_python_function_makes_a_problem_interpreted():
    assert Problem(LOSS, LOSS, L1Ball(1.0)).compiled
    assert not Problem(FiniteSum(2, 3, lambda x, i: (0.0, x)), LOSS, L1Ball(1.0)).compiled


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((LOSS, LeastSquares([[1.0]], [1.0]), L1Ball(1.0)), "must agree, but `upper` has 3, `lower` has 1"),
        ((LOSS, lambda x: x, L1Ball(1.0)), "`lower` must be an objective such as LeastSquares\\(A, b\\), got function"),
        ((np.ones(3), LOSS, L1Ball(1.0)), "`upper` must be an objective"),
        ((LOSS, LOSS, 1.0), "`domain` must be a set such as L1Ball\\(radius\\), got float"),
        ((LOSS, FiniteSum(2, 3, lambda x, i: (0.0, x), convex=False), L1Ball(1.0)), "`lower` must be convex"),
        ((SquaredNorm(), SquaredNorm(), L1Ball(1.0)), "the dimension is unknown"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        Problem(*parts)
