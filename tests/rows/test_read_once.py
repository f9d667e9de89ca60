"""Squares of many rows are read once: their sums give the answer, and a proof that holds for the rows themselves."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm, minimize
from tiebreak.objectives import linear
from tiebreak.objectives.matrices import Dense
from tiebreak.objectives.matrices.parts import Rows


@pytest.fixture
def passes(monkeypatch):
    """Passes over rows, by what they do; data count as many."""
    monkeypatch.setattr(linear, "MANY_NUMBERS", 1)
    made, plain = Counter(), Rows.passes

    def counted(self, run, *arguments, width):
        made[run.__name__] += 1
        return plain(self, run, *arguments, width=width)

    monkeypatch.setattr(Rows, "passes", counted)
    return made


def data(n=20_000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A[:, d // 2 :] = A[:, : d // 2]  # ties
    return A, A[:, 0] - A[:, 1] + rng.standard_normal(n)


def test_a_regression_takes_one_pass_for_its_sums_and_proves_its_answer(passes):
    A, b = data()
    problem = Problem(SquaredNorm(), LeastSquares(A, b), L1Ball(10.0))
    result = minimize(problem, progress=False)
    assert result.method.name == "active-set"
    assert passes == {"_smallest_of_block": 1, "_sums_of_block": 1}
    truth = np.linalg.lstsq(A, b, rcond=None)[0]  # the one of least norm
    np.testing.assert_allclose(result.x, truth, atol=1e-9)
    least = 0.5 * np.mean((A @ truth - b) ** 2)
    assert 0.0 <= result.lower_gap_bound <= 1e-9 * least
    assert result.lower_gap_bound >= 0.5 * np.mean((A @ result.x - b) ** 2) - least - 1e-15
    assert 0.0 <= result.upper_gap_bound <= 1e-3 * result.upper


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_doubt_of_sums_covers_the_rows_in_exact_arithmetic(passes, offset):
    A, b = data(300, 3, seed=1)
    A = A + offset  # values cancel
    objective = LeastSquares(A, b)
    assert objective.read_once
    x = np.array([1.0, -1.0, 1e-3])
    exact = Fraction(0)
    for row, target in zip(A, b, strict=True):
        exact += (sum(Fraction(a) * Fraction(v) for a, v in zip(row, x, strict=True)) - Fraction(target)) ** 2
    exact /= 2 * len(b)
    for found in (objective.survey(x), objective.sharp(x).survey):
        assert abs(Fraction(found.value) - exact) <= Fraction(found.value_error)
        assert found.value_error <= 1e-11 * (1.0 + offset) ** 2


def test_blocks_are_added_without_losing_digits():
    total = linear.Summation()
    A, b = data(50_000, 4)
    for low in range(0, 50_000, 10):
        total.add(Dense(A[low : low + 10]), b[low : low + 10])
    assert total.mean().roundings <= 20
    np.testing.assert_allclose(total.mean().quadratic, A.T @ A / 50_000, rtol=1e-13, atol=1e-14)
