"""What is special about doubly stochastic matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from tiebreak import CutStatus
from tiebreak.domains import Birkhoff, cut_lmo, lmo
from tiebreak.domains.base import INVALID
from tiebreak.engine import interpreted


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Birkhoff(0), "`rows` must be a whole number ≥ 1, got 0"),
        (lambda: Birkhoff(2.5), "`rows` must be a whole number ≥ 1, got 2.5"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 30])
def test_the_assignment_agrees_with_scipy(n):
    rng = np.random.default_rng(n)
    for k in range(10):
        cost = rng.integers(0, 4, (n, n)).astype(float) if k % 2 else rng.standard_normal((n, n)) * 10.0 ** (k - 5)
        matrix = Birkhoff(n).lmo(cost.ravel()).reshape(n, n)
        assert set(matrix.ravel()) <= {0.0, 1.0}
        assert (matrix.sum(axis=0) == 1.0).all()
        assert (matrix.sum(axis=1) == 1.0).all()
        assert (cost * matrix).sum() == pytest.approx(cost[linear_sum_assignment(cost)].sum(), rel=1e-12, abs=1e-12)


def test_the_assignment_ends_where_numbers_are_not_finite():
    cost = np.full(9, math.nan)
    out = np.full(9, 7.0)
    assert cut_lmo(Birkhoff(3), cost, np.ones(9), 0.0, out)[0] == INVALID
    lmo(Birkhoff(3), cost, out)
    assert out.sum() == 3.0


def test_the_cut_of_two_permutations_lies_between_them():
    cut = Birkhoff(2).cut_lmo([1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], 0.25)
    np.testing.assert_allclose(Birkhoff(2).parts(cut.point)["x"], [[0.75, 0.25], [0.25, 0.75]])
    assert cut.multiplier == pytest.approx(2.0)


def test_size_and_membership_of_doubly_stochastic_matrices():
    assert Birkhoff(3).dimension == 9
    assert Birkhoff(8).diameter == 4.0
    assert Birkhoff(1).diameter == 0.0
    assert Birkhoff(1).cut_lmo([1.0], [1.0], 0.5).status is CutStatus.EMPTY
    assert Birkhoff(2).contains([0.5, 0.5, 0.5, 0.5])
    assert not Birkhoff(2).contains([1.5, -0.5, -0.5, 1.5])
    assert not Birkhoff(2).contains([0.5, 0.5, 0.6, 0.4])  # a column
    assert not Birkhoff(2).contains([0.5, 0.6, 0.5, 0.4])  # a row
    with interpreted():
        assert Birkhoff(2).lmo([0.0, 1.0, 1.0, 0.0]).tolist() == [1.0, 0.0, 0.0, 1.0]
