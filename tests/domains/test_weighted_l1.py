"""The weighted ℓ1 ball: the ℓ1 ball in other units."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import CutStatus
from tiebreak.domains import L1Ball, WeightedL1Ball, cut_lmo, cut_step
from tiebreak.domains.base import INVALID


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightedL1Ball([1.0, 0.0, -1.0], 1.0), r"`weights` must be positive, got 0.0 at \[1\]"),
        (lambda: WeightedL1Ball([1.0, math.nan], 1.0), "`weights` must hold finite numbers"),
        (lambda: WeightedL1Ball(2.0, 1.0), "`weights` must be a non-empty vector"),
        (lambda: WeightedL1Ball([1.0], 0.0), "`radius` must be a finite number > 0, got 0.0"),
        (lambda: WeightedL1Ball([1.0, 1e-200], 1e200), r"`radius` / `weights` must be finite, got .* at \[1\]"),
        (lambda: WeightedL1Ball([1.0, 2.0], 1.0).lmo([1.0]), "`c` must be a vector of 2 numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_equal_weights_are_the_l1_ball():
    rng = np.random.default_rng(0)
    ball, same = WeightedL1Ball(np.full(30, 4.0), 2.0), L1Ball(0.5)
    for _ in range(50):
        c, a, x = rng.standard_normal((3, 30))
        b = -0.5 * rng.random() * np.abs(a).max()
        one, other = ball.cut_lmo(c, a, b), same.cut_lmo(c, a, b)
        np.testing.assert_allclose(one.point, other.point, atol=1e-14)
        assert one.multiplier == pytest.approx(other.multiplier, rel=1e-13)
        np.testing.assert_allclose(ball.project(x), same.project(x), atol=1e-14)


def test_a_change_of_units_changes_the_points_alone():
    rng = np.random.default_rng(1)
    weights = 10.0 ** rng.uniform(-3, 3, 30)
    ball, same = WeightedL1Ball(weights, 2.0), L1Ball(2.0)
    for _ in range(50):
        c, a = rng.standard_normal((2, 30))
        b = -2.0 * rng.random() * np.abs(a).max()
        cut = ball.cut_lmo(weights * c, weights * a, b)
        np.testing.assert_allclose(weights * cut.point, same.cut_lmo(c, a, b).point, atol=1e-12)


def test_projection_is_a_shift_in_proportion_to_the_weights():
    rng = np.random.default_rng(2)
    for d in (1, 5, 1000):
        for spread in (0.0, 1.0, 4.0):
            weights = 10.0 ** rng.uniform(-spread, spread, d)
            x = rng.standard_normal(d) / weights
            ball = WeightedL1Ball(weights, 0.25 * np.abs(weights * x).sum())
            p = ball.project(x)
            assert np.abs(weights * p).sum() == pytest.approx(ball.radius, rel=1e-11)
            shift = (np.abs(x) - np.abs(p)) / weights
            level = shift[p != 0].max()
            np.testing.assert_allclose(shift[p != 0], level, rtol=1e-9)
            assert (np.abs(x)[p == 0] / weights[p == 0] <= level * (1 + 1e-9)).all()


def test_projection_of_a_huge_vector_keeps_its_digits_and_an_inner_one_stays():
    assert WeightedL1Ball([1.0, 1.0], 1.0).project([1e20, -1e20]).tolist() == [0.5, -0.5]
    assert WeightedL1Ball([1.0, 2.0], 1.0).project([1e200, -1.0]).tolist() == [1.0, 0.0]
    assert WeightedL1Ball([1.0, 2.0], 1.0).project([0.5, -0.25]).tolist() == [0.5, -0.25]


@pytest.mark.parametrize("size_c", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize("size_a", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_subnormal_and_huge_numbers_give_points_of_the_ball(size_c, size_a):
    c, a = np.array([0.5, -1.0, 0.0]), np.array([0.25, 1.0, -1.0])
    ball = WeightedL1Ball([1.0, 2.0, 0.5], 1.0)
    for b in (-0.5, 0.0, 0.25):
        cut = ball.cut_lmo(c * size_c, a * size_a, b * size_a)
        assert ball.contains(cut.point)
        if size_c > 1e-290 and size_a > 1e-290:
            assert c @ cut.point == pytest.approx(c @ ball.cut_lmo(c, a, b).point, abs=1e-12)


def test_a_step_needs_no_point_and_invalid_numbers_move_nothing():
    ball, c, a = WeightedL1Ball([1.0, 2.0, 0.5], 1.0), np.array([1.0, -3.0, 0.5]), np.array([1.0, 2.0, 3.0])
    x, work = np.array([0.1, 0.2, 0.3]), np.empty(3)
    cut = ball.cut_lmo(c, a, 0.5)
    assert cut.status is CutStatus.ACTIVE
    moved = x.copy()
    assert cut_step(ball, c, a, 0.5, 0.25, moved, work)[0] == CutStatus.ACTIVE
    np.testing.assert_allclose(moved, 0.75 * x + 0.25 * cut.point, atol=1e-15)
    for bad_c, bad_a in [(c * math.inf, a), (c, a * [1.0, 1.0, math.inf])]:
        assert cut_step(ball, bad_c, bad_a, 0.5, 0.25, moved, work)[0] == INVALID
        assert cut_lmo(ball, bad_c, bad_a, 0.5, moved)[0] == INVALID
    np.testing.assert_allclose(moved, 0.75 * x + 0.25 * cut.point, atol=1e-15)


def test_size_and_membership():
    ball = WeightedL1Ball([1.0, 4.0], 2.0)
    assert ball.diameter == 4.0
    assert ball.dimension == 2
    assert ball.contains([1.0, -0.25])
    assert not ball.contains([1.0, -0.3])
    assert ball.contains([1.0, -0.3], tol=0.11)
