"""Bisec-BiO on problems with known answers: squared distances of any centre and factor, exact ties and near ones."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import L1Ball, L2Ball, LeastSquares, Problem, SquaredNorm, minimize
from tiebreak.engine import interpreted

rng = np.random.default_rng(2)
A, CENTER = rng.standard_normal((5, 9)), rng.standard_normal(9)
B = A @ rng.standard_normal(9)
LOWER = LeastSquares(A, B)


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


FROM_CENTER = SquaredNorm(CENTER)


@pytest.mark.parametrize(
    ("upper", "center"),
    [(FROM_CENTER, CENTER), (3.0 * FROM_CENTER, CENTER), (SquaredNorm() + 2.0 * FROM_CENTER, 2.0 / 3.0 * CENTER)],
)
def test_the_nearest_minimiser_of_g_to_a_centre_is_found(upper, center):
    nearest = center - np.linalg.pinv(A) @ (A @ center - B)
    problem = Problem(upper, LOWER, L2Ball(20.0))
    result = minimize(problem, "bisec-bio", max_queries=None, max_iterations=1500, progress=False)
    np.testing.assert_allclose(result.x, nearest, atol=2e-3)
    assert result.lower <= 1e-7


def test_a_near_tie_is_that_of_the_active_set():
    problem = Problem(SquaredNorm(), LOWER, L1Ball(30.0), tolerance=1e-2)
    exact = minimize(problem, "active-set", progress=False)
    result = minimize(problem, "bisec-bio", max_queries=None, max_iterations=800, progress=False)
    assert result.within is True
    assert exact.upper - 1e-9 <= result.upper <= 1.001 * exact.upper
