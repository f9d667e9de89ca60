"""The ℓ2 ball and the group ball: closed forms, cancellation, and how groups may be given."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import CutStatus
from tiebreak.domains import GroupBall, L1Ball, L2Ball, cut_lmo
from tiebreak.domains.base import INVALID
from tiebreak.engine import interpreted

GROUPS = [[0, 3], [1], [2, 4, 5]]


def both(d: int) -> list:
    """A ball in two guises: with one group for all variables it is the same set."""
    return [L2Ball(2.0), GroupBall(np.zeros(d, int), 2.0)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L2Ball(0.0), "`radius` must be a finite number > 0, got 0.0"),
        (lambda: L2Ball(1.0, [[1.0]]), "`center` must be a non-empty vector"),
        (lambda: L2Ball(1.0, [math.nan]), "`center` must hold finite numbers"),
        (lambda: L2Ball(1.0, [1.0, 2.0]).lmo([1.0]), "`c` must be a vector of 2 numbers"),
        (lambda: GroupBall(GROUPS, -1.0), "`radius` must be a finite number > 0, got -1.0"),
        (lambda: GroupBall([[0, 1], [2, 1]], 1.0), "`groups` .* index 1 is in group 0 and in group 1"),
        (lambda: GroupBall([[0, 2], [1, 2, 2]], 1.0), "`groups` .* index 2 is in group 0 and in group 1"),
        (lambda: GroupBall([[0], [1, 1]], 1.0), "`groups` .* index 1 is twice in group 1"),
        (lambda: GroupBall([[0, 1], [5, 3]], 1.0), "`groups` .* index 2 is in no group, while 5 is in group 1"),
        (lambda: GroupBall([[0, 1], [-1]], 1.0), "`groups` .* group 1 holds -1"),
        (lambda: GroupBall([[0, 1], []], 1.0), "`groups` .* group 1 is empty"),
        (lambda: GroupBall([], 1.0), "`groups` .* got none"),
        (lambda: GroupBall([[0.0, 1.5]], 1.0), "`groups` .* got \\[0.0, 1.5\\] at 0"),
        (lambda: GroupBall(["a", "b"], 1.0), "`groups` .* got 'a' at 0"),
        (lambda: GroupBall([0, [1]], 1.0), "`groups` must be lists of indices"),
        (lambda: GroupBall(3, 1.0), "`groups` .* got 3"),
        (lambda: GroupBall(GROUPS, 1.0).lmo([1.0]), "`c` must be a vector of 6 numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_lists_of_indices_and_labels_make_the_same_ball():
    listed = GroupBall(GROUPS, 1.0)
    labelled = GroupBall([4, 7, 9, 4, 9, 9], 1.0)
    assert listed.groups == labelled.groups == GROUPS
    assert listed.dimension == labelled.dimension == 6


def test_the_cut_of_a_disc_is_where_line_and_circle_meet():
    for ball in both(2):
        cut = ball.cut_lmo([0.0, 1.0], [0.0, -1.0], 1.0)
        assert cut.status is CutStatus.ACTIVE
        assert cut.point[1] == pytest.approx(-1.0)
        cut = ball.cut_lmo([0.0, 1.0], [1.0, -1.0], 0.0)
        np.testing.assert_allclose(cut.point, [-math.sqrt(2.0), -math.sqrt(2.0)], rtol=1e-14)
        assert cut.multiplier == pytest.approx(0.5)


@pytest.mark.parametrize("share", [0.0, 1e-15, 1e-13, 1e-10, 1e-6])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nearly_parallel_vectors_lose_neither_feasibility_nor_value(share, sign):
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, other = rng.standard_normal(30), rng.standard_normal(30)
        c = sign * a + share * other
        a_unit = a / np.linalg.norm(a)
        across = np.linalg.norm(share * (other - (other @ a_unit) * a_unit))
        for ball in both(30):
            for tau in (-1.0, -0.9, 0.0, 0.9):
                cut = ball.cut_lmo(c, a, 2.0 * tau * np.linalg.norm(a))
                assert a_unit @ cut.point <= 2.0 * tau + 1e-14
                assert np.linalg.norm(cut.point) <= 2.0 * (1 + 1e-14)
                if cut.status is CutStatus.ACTIVE:
                    best = 2.0 * (tau * (c @ a_unit) - math.sqrt(1 - tau**2) * across)
                    assert c @ cut.point == pytest.approx(best, abs=1e-12 * np.linalg.norm(c))


def test_a_cut_at_its_least_value_is_against_a_and_a_hair_below_is_empty():
    for ball in both(2):
        at = ball.cut_lmo([1.0, 0.0], [3.0, 4.0], -10.0)
        np.testing.assert_allclose(at.point, [-1.2, -1.6], atol=1e-12)
        below = ball.cut_lmo([1.0, 0.0], [3.0, 4.0], np.nextafter(-10.0, -11.0))
        np.testing.assert_allclose(below.point, [-1.2, -1.6], rtol=1e-14)
        assert below.status is CutStatus.EMPTY
        assert below.multiplier == math.inf


@pytest.mark.parametrize("size_c", [5e-324, 1e-310, 1e-200, 1e-80, 1e80, 1e200, 1e307])
@pytest.mark.parametrize("size_a", [5e-324, 1e-310, 1e-200, 1e-80, 1e80, 1e200, 1e307])
def test_subnormal_and_huge_numbers_give_the_points_of_ordinary_ones(size_c, size_a):
    c, a = np.array([0.5, -1.0, 0.0, 0.0, 0.5, 1.0]), np.array([0.25, 1.0, -1.0, 0.5, 0.0, 0.5])
    for ball in (L2Ball(2.0), L2Ball(2.0, np.linspace(-1, 1, 6)), GroupBall(GROUPS, 2.0)):
        for b in (-1.0, 0.0, 0.5):
            plain = ball.cut_lmo(c, a, b)
            cut = ball.cut_lmo(c * size_c, a * size_a, b * size_a)
            assert ball.contains(cut.point)
            if size_c > 1e-300 and size_a > 1e-300:
                assert cut.status is plain.status
                np.testing.assert_allclose(cut.point, plain.point, atol=1e-12)


def test_nothing_to_minimise_and_nothing_to_cut():
    zero, one = np.zeros(6), np.ones(6)
    for ball in (L2Ball(2.0), GroupBall(GROUPS, 2.0)):
        assert ball.cut_lmo(zero, zero, 0.0).status is CutStatus.FREE
        assert ball.cut_lmo(one, zero, 0.0).status is CutStatus.FREE
        assert ball.cut_lmo(one, zero, -1e-300).status is CutStatus.EMPTY
        bound = ball.cut_lmo(zero, one, -1.0)
        assert bound.status is CutStatus.ACTIVE
        assert bound.multiplier == 0.0
        assert one @ bound.point <= -1.0 + 1e-14


def test_infinity_anywhere_is_invalid():
    good, bad, out = np.ones(6), np.array([0.0, 0.0, 0.0, 0.0, math.inf, 0.0]), np.full(6, 7.0)
    for ball in (L2Ball(2.0), GroupBall(GROUPS, 2.0)):
        assert cut_lmo(ball, bad, good, 0.0, out)[0] == INVALID
        assert cut_lmo(ball, good, bad, 9.0, out)[0] == INVALID
    assert out.tolist() == [7.0] * 6


def test_groups_of_single_variables_are_the_l1_ball():
    rng = np.random.default_rng(1)
    ball, same = GroupBall(np.arange(40), 2.0), L1Ball(2.0)
    for _ in range(50):
        c, a, x = rng.standard_normal((3, 40))
        b = -2.0 * rng.random() * np.abs(a).max()
        assert c @ ball.cut_lmo(c, a, b).point == pytest.approx(c @ same.cut_lmo(c, a, b).point, rel=1e-12)
        np.testing.assert_allclose(ball.project(x), same.project(x), atol=1e-14)


def test_many_groups_are_cut_to_the_dual_value():
    rng = np.random.default_rng(2)
    for n_groups in (30, 1000):
        ball = GroupBall(rng.permutation(np.repeat(np.arange(n_groups), 3)), 1.5)
        groups = np.array(ball.groups)
        for _ in range(20):
            c, a = rng.standard_normal((2, 3 * n_groups))
            b = -1.5 * rng.random() * np.linalg.norm(a[groups], axis=1).max()
            cut = ball.cut_lmo(c, a, b)
            dual = -1.5 * np.linalg.norm((c + cut.multiplier * a)[groups], axis=1).max() - cut.multiplier * b
            assert c @ cut.point == pytest.approx(dual, rel=1e-12)
            assert a @ cut.point <= b + 1e-13
            assert np.count_nonzero(np.linalg.norm(cut.point[groups], axis=1)) <= 2


def test_projection_keeps_what_is_inside_and_shortens_what_is_outside():
    ball = L2Ball(5.0, [1.0, 1.0])
    assert ball.project([2.0, 3.0]).tolist() == [2.0, 3.0]
    np.testing.assert_allclose(ball.project([7.0, 9.0]), [4.0, 5.0], rtol=1e-15)
    np.testing.assert_allclose(L2Ball(5.0).project([3e200, -4e200]), [3.0, -4.0], rtol=1e-15)
    groups = GroupBall([[0, 1], [2]], 5.0)
    assert groups.project([0.3, 0.4, -1.0]).tolist() == [0.3, 0.4, -1.0]
    np.testing.assert_allclose(groups.project([6.0, 8.0, -7.0]), [2.4, 3.2, -1.0], rtol=1e-14)
    np.testing.assert_allclose(groups.project([3e200, 4e200, 1.0]), [3.0, 4.0, 0.0], rtol=1e-14)


def test_size_and_membership():
    assert L2Ball(2.0).dimension is None
    assert L2Ball(2.0, [1.0, 0.0]).dimension == 2
    assert L2Ball(2.0).diameter == GroupBall(GROUPS, 2.0).diameter == 4.0
    assert L2Ball(5.0, [1.0, 0.0]).contains([4.0, 4.0])
    assert not L2Ball(5.0, [1.0, 0.0]).contains([4.0, 4.001])
    assert GroupBall([[0, 1], [2]], 6.0).contains([3.0, -4.0, 1.0])
    assert not GroupBall([[0, 1], [2]], 6.0).contains([3.0, -4.0, 1.1])
    assert GroupBall([[0, 1], [2]], 6.0).contains([3.0, -4.0, 1.1], tol=0.02)


@pytest.mark.parametrize("scale_c", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("scale_a", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("center", [None, [0.5, -0.25, 1.0, 0.0]])
def test_a_cut_of_the_l2_ball_does_not_feel_the_sizes_of_its_vectors(scale_c, scale_a, center):
    """Squares of such numbers overflow or vanish: in a sum that the compiler may reorder, factors must not come last."""
    ball = L2Ball(2.0, center)
    rng = np.random.default_rng(0)
    for _ in range(20):
        c, a = rng.standard_normal(4), rng.standard_normal(4)
        b = a @ ball.random_point(rng, 4)
        plain, scaled = ball.cut_lmo(c, a, b), ball.cut_lmo(scale_c * c, scale_a * a, scale_a * b)
        assert scaled.status is plain.status
        np.testing.assert_allclose(scaled.point, plain.point, atol=1e-9)
        assert scaled.multiplier == pytest.approx(plain.multiplier * scale_c / scale_a, rel=1e-9)  # of 1e400 it is ∞


def test_a_group_ball_of_a_subnormal_radius_holds_its_points():
    ball = GroupBall([0, 0, 1], 1e-310)
    assert ball.contains([0.0, 1e-310, 0.0])
    assert not ball.contains([0.0, 1e-310, 1e-311])


def test_the_cut_of_a_group_ball_is_optimal_where_its_normal_is_subnormal():
    """Its known minimiser is x: c = −ν − λ a with ν normal to the ball at x."""
    ball = GroupBall([3, 4, 6, 0, 3, 2, 7, 9, 1, 0], 16.5 * 2**25)
    x = np.array([1.5, 3.5, 2.5, -2.0, 2.0, 0.0, 3.0, -0.5, 2.5, 0.0]) * 2**25
    c = [-1.3701561352996271e-98, -1.4301629733419466e-98, 3.2860887499365406e-100, -1.1301287831303494e-98]
    c += [-6.686476239001309e-99, 8.246866105840231e-99, -1.6130409559471106e-98, 6.986510429212906e-99]
    c = np.array([*c, 3.2860887499365406e-100, 9.1438991302582e-99])
    a = np.array([7.0, 7.0, -1.0, 7.0, 3.0, -4.0, 8.0, -3.0, -1.0, -5.0]) * 2.0**-1070
    with interpreted():
        cut = ball.cut_lmo(c, a, a @ x)
    assert cut.status is CutStatus.ACTIVE
    assert (c @ cut.point) / (c @ x) == pytest.approx(1.0, rel=1e-9)
