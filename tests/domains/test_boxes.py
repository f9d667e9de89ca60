"""Boxes, the ℓ∞ ball and k-sparse atoms: the knapsack, ties, bounds that meet, and selection without a sort."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import CutStatus
from tiebreak.domains import Box, KSparse, L1Ball, LInfBall, cut_lmo, lmo
from tiebreak.domains.base import INVALID
from tiebreak.domains.cuts.search import dual_search


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box([0.0, 2.0, 5.0], [1.0, 1.0, 4.0]), r"`lower` must be ≤ `upper`, got 2.0 > 1.0 at \[1\] \(2 such"),
        (lambda: Box([0.0], [1.0, 2.0]), "`upper` must be a vector of 1 numbers"),
        (lambda: Box([0.0, -math.inf], [1.0, 2.0]), "`lower` must hold finite numbers, got -inf"),
        (
            lambda: Box(0.0, 1.0),
            r"`dimension` must be given if `lower` and `upper` are numbers: Box\(-1.0, 1.0, dimension\)",
        ),
        (lambda: Box(0.0, 1.0, 0), "`dimension` must be a whole number ≥ 1, got 0"),
        (lambda: Box(0.0, [1.0, 2.0], 3), "`upper` must be a vector of 3 numbers"),
        (lambda: Box(0.0, math.nan, 3), "`upper` must be a finite number, got nan"),
        (lambda: Box(2.0, [3.0, 1.0]), r"`lower` must be ≤ `upper`, got 2.0 > 1.0 at \[1\]"),
        (lambda: Box([], 1.0), "`lower` must be a non-empty vector"),
        (lambda: LInfBall(0.0, 3), "`radius` must be a finite number > 0, got 0.0"),
        (lambda: LInfBall(1.0, 0), "`dimension` must be a whole number ≥ 1, got 0"),
        (lambda: KSparse(0, 1.0, 3), "`k` must be a whole number ≥ 1, got 0"),
        (lambda: KSparse(4, 1.0, 3), "`k` must be at most `dimension` = 3, got 4"),
        (lambda: KSparse(2, math.nan, 3), "`radius` must be a finite number > 0, got nan"),
        (lambda: KSparse(2, 1.0, 3).lmo([1.0]), "`c` must be a vector of 3 numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def sorted_knapsack(box: Box, c: np.ndarray, a: np.ndarray, b: float) -> float:
    """The value of a cut that binds, by sorting."""
    point = np.where(c > 0, box.lower, box.upper)
    ratio = np.full(c.size, math.inf)
    np.divide(-c, a, out=ratio, where=c * a < 0)
    for i in np.argsort(ratio):
        excess = a @ point - b
        if excess <= 0 or not math.isfinite(ratio[i]):
            break
        other = box.lower[i] + box.upper[i] - point[i]
        point[i] += min(1.0, excess / (a[i] * (point[i] - other))) * (other - point[i])
    return c @ point


def test_the_cut_is_the_knapsack_by_sorting_and_has_at_most_one_free_coordinate():
    rng = np.random.default_rng(0)
    for d in (1, 2, 10, 300):
        for _ in range(40):
            lower = rng.standard_normal(d)
            box = Box(lower, lower + rng.random(d))
            c, a = rng.standard_normal((2, d))
            least = np.minimum(a * box.lower, a * box.upper).sum()
            at_start = a @ box.lmo(c)
            b = least + rng.random() * (at_start - least)
            cut = box.cut_lmo(c, a, b)
            assert c @ cut.point == pytest.approx(sorted_knapsack(box, c, a, b), abs=1e-11)
            assert a @ cut.point <= b + 1e-12 * d
            assert np.count_nonzero((cut.point != box.lower) & (cut.point != box.upper)) <= 1


def test_equal_prices_are_filled_one_after_the_other():
    cut = LInfBall(1.0, 5).cut_lmo(np.ones(5), -np.ones(5), 0.0)
    assert cut.status is CutStatus.ACTIVE
    assert cut.multiplier == 1.0
    assert sorted(cut.point) == [-1.0, -1.0, 0.0, 1.0, 1.0]


def test_coordinates_that_cost_nothing_serve_the_cut_for_free():
    cut = LInfBall(1.0, 3).cut_lmo([1.0, 0.0, 0.0], [-1.0, 5.0, -5.0], -9.0)
    assert cut.status is CutStatus.FREE
    assert cut.point.tolist() == [-1.0, -1.0, 1.0]
    nothing = LInfBall(1.0, 3).cut_lmo([0.0, 0.0, 0.0], [-1.0, 5.0, -5.0], -11.0)
    assert nothing.point.tolist() == [1.0, -1.0, 1.0]


def test_coordinates_outside_the_cut_keep_their_bound():
    cut = LInfBall(1.0, 3).cut_lmo([1.0, 2.0, -3.0], [-1.0, 0.0, 0.0], 0.25)
    assert cut.point.tolist() == [-0.25, -1.0, 1.0]


def test_an_empty_cut_is_violated_least():
    box = Box([0.0, 1.0, 2.0], [1.0, 1.0, 3.0])
    cut = box.cut_lmo([-1.0, 1.0, 1.0], [1.0, 1.0, 0.0], 0.5)
    assert cut.status is CutStatus.EMPTY
    assert cut.multiplier == math.inf
    assert cut.point.tolist() == [0.0, 1.0, 2.0]


def test_a_box_of_one_point_has_one_answer():
    box = Box([1.5, -2.0], [1.5, -2.0])
    assert box.diameter == 0.0
    for c, a, b in [([1.0, 1.0], [1.0, 0.0], 2.0), ([1.0, 1.0], [1.0, 0.0], 1.5), ([1.0, -1.0], [-1.0, 1.0], -4.0)]:
        assert box.cut_lmo(c, a, b).point.tolist() == [1.5, -2.0]
    assert box.project([9.0, 9.0]).tolist() == [1.5, -2.0]
    assert box.contains([1.5 * (1 + 1e-15), -2.0])
    assert not box.contains([1.5 * (1 + 1e-13), -2.0])


@pytest.mark.parametrize("size_c", [5e-324, 1e-310, 1e-200, 1e200, 1e307])
@pytest.mark.parametrize("size_a", [5e-324, 1e-310, 1e-200, 1e200, 1e307])
def test_subnormal_and_huge_numbers_give_the_points_of_ordinary_ones(size_c, size_a):
    c, a = np.array([0.5, -1.0, 0.0, 1.0]), np.array([0.25, 1.0, -1.0, -0.5])
    for domain in (Box(-np.ones(4), [1.0, 2.0, 3.0, 4.0]), LInfBall(1.0, 4), KSparse(2, 1.0, 4)):
        for b in (-1.0, 0.0, 0.5):
            plain = domain.cut_lmo(c, a, b)
            cut = domain.cut_lmo(c * size_c, a * size_a, b * size_a)
            assert domain.contains(cut.point)
            if size_c > 1e-300 and size_a > 1e-300:
                assert cut.status is plain.status
                assert c @ cut.point == pytest.approx(c @ plain.point, abs=1e-12)


def test_infinity_anywhere_is_invalid():
    good, bad, out = np.ones(3), np.array([0.0, math.inf, 0.0]), np.full(3, 7.0)
    for domain in (Box(-good, good), LInfBall(1.0, 3), KSparse(2, 1.0, 3)):
        assert cut_lmo(domain, bad, good, 0.0, out)[0] == INVALID
        assert cut_lmo(domain, good, bad, 9.0, out)[0] == INVALID
    assert out.tolist() == [7.0] * 3


def test_the_knapsack_and_the_search_for_any_set_find_the_same_value():
    rng = np.random.default_rng(1)
    ball, out = LInfBall(2.0, 200), np.empty(200)
    for _ in range(30):
        c, a = rng.integers(-3, 4, (2, 200)).astype(float)
        b = -2.0 * rng.random() * np.abs(a).sum()
        dual_search(ball, c, a, b, out)
        assert c @ ball.cut_lmo(c, a, b).point == pytest.approx(c @ out, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("data", ["normal", "heavy", "one sign", "tied", "one price", "opposite", "a few in the cut"])
def test_a_cut_of_many_coordinates_attains_its_dual_whatever_the_data_are(data):
    d = 1003
    rng = np.random.default_rng(2)
    c, a = rng.standard_normal((2, d))
    c, a = {
        "normal": (c, a),
        "heavy": (c**7, a**7),
        "one sign": (np.abs(c), -np.abs(a)),
        "tied": (np.round(c), np.round(2.0 * a)),
        "one price": (np.where(np.arange(d) % 3 > 0, a, c), -2.0 * a),
        "opposite": (c, -c + 1e-9 * a),
        "a few in the cut": (c, np.where(np.arange(d) < 5, a, 0.0)),
    }[data]
    lower = -rng.random(d)
    for domain in (LInfBall(1.0, d), Box(lower, lower + rng.integers(0, 3, d))):
        least, at_start = a @ domain.lmo(a), a @ domain.lmo(c)
        for share in (0.001, 0.3, 0.8, 0.999):
            b = least + share * (at_start - least)
            cut = domain.cut_lmo(c, a, b)
            dual = (c + cut.multiplier * a) @ domain.lmo(c + cut.multiplier * a) - cut.multiplier * b
            unit = np.abs(c).sum() + cut.multiplier * np.abs(a).sum()
            assert domain.contains(cut.point)
            assert a @ cut.point <= b + 1e-13 * np.abs(a).sum()
            assert abs(c @ cut.point - dual) <= 1e-13 * unit
            assert cut.status is CutStatus.ACTIVE or (data == "tied" and cut.status is CutStatus.FREE)


@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal", "pipe"])
def test_the_largest_entries_are_selected_in_any_order(order):
    d = 2001
    rising = np.arange(1.0, d + 1)
    c = {
        "random": np.random.default_rng(2).standard_normal(d),
        "rising": rising,
        "falling": -rising[::-1],
        "equal": np.ones(d),
        "pipe": np.minimum(rising, rising[::-1]),
    }[order]
    for k in (1, 2, 1000, d):
        s = KSparse(k, 0.5, d).lmo(c)
        assert np.count_nonzero(s) == k
        assert c @ s == pytest.approx(-0.5 * np.sort(np.abs(c))[d - k :].sum(), rel=1e-12)


def test_selection_ends_even_on_numbers_that_are_not_numbers():
    out = np.empty(5)
    lmo(KSparse(2, 1.0, 5), np.full(5, math.nan), out)
    assert np.count_nonzero(out) <= 2


def test_one_sparse_is_the_l1_ball_and_all_sparse_the_linf_ball():
    rng = np.random.default_rng(3)
    for scale in (0.1, 1.0, 100.0):
        x = scale * rng.standard_normal(50)
        np.testing.assert_allclose(KSparse(1, 2.0, 50).project(x), L1Ball(2.0).project(x), atol=1e-13)
        np.testing.assert_allclose(KSparse(50, 2.0, 50).project(x), LInfBall(2.0, 50).project(x), atol=1e-13)


@pytest.mark.parametrize("k", [1, 3, 17, 39])
def test_k_sparse_projection_is_a_shift_that_is_clipped(k):
    rng = np.random.default_rng(k)
    for x in (rng.standard_normal(40), rng.integers(-3, 4, 40).astype(float), 10.0 ** rng.uniform(-6, 6, 40), np.ones(40)):
        domain = KSparse(k, 0.3, 40)
        p = domain.project(x)
        assert np.abs(p).sum() == pytest.approx(min(k * 0.3, np.minimum(np.abs(x), 0.3).sum()), rel=1e-9)
        shift = np.abs(x) - np.abs(p)
        free = (np.abs(p) > 0) & (np.abs(p) < 0.3)
        if free.any():
            level = shift[free].mean()
            np.testing.assert_allclose(shift[free], level, atol=1e-12 * np.abs(x).max())
            assert (np.abs(x)[p == 0] <= level + 1e-12 * np.abs(x).max()).all()
            assert (shift[np.abs(p) == 0.3] >= level - 1e-12 * np.abs(x).max()).all()


def test_projections_of_huge_vectors_stay_inside():
    assert KSparse(1, 1.0, 2).project([1e20, -1e20]).tolist() == [0.5, -0.5]
    assert KSparse(2, 1.0, 3).project([1e200, -1e200, 1.0]).tolist() == [1.0, -1.0, 0.0]
    assert Box([0.0, 0.0], [1.0, 1.0]).project([1e308, -1e308]).tolist() == [1.0, 0.0]


def test_a_cut_through_a_face_finds_the_best_of_its_atoms():
    c, a = np.array([0.0, 2.0, -1.0, 1.0, -1.0, 0.0]), np.array([2.0, -2.0, 1.0, 0.0, 1.0, 1.0])
    radius = 1.358177174533346
    cut = KSparse(3, radius, 6).cut_lmo(c, a, -5.0 * radius)
    assert c @ cut.point == pytest.approx(2.0 * radius)


def test_size_and_membership():
    box = Box([0.0, -1.0], [3.0, 3.0])
    assert box.dimension == 2
    assert box.diameter == 5.0
    assert box.contains([3.0, -1.0])
    assert not box.contains([3.1, -1.0])
    assert box.contains([3.1, -1.0], tol=0.04)
    assert LInfBall(2.0, 9).diameter == 12.0
    assert LInfBall(2.0, 9).dimension == 9
    assert not LInfBall(2.0, 2).contains([2.1, 0.0])
    assert KSparse(4, 2.0, 9).diameter == 8.0
    assert KSparse(4, 2.0, 9).dimension == 9
    assert KSparse(2, 1.0, 3).contains([1.0, 0.5, -0.5])
    assert not KSparse(2, 1.0, 3).contains([1.0, 0.6, -0.5])
    assert not KSparse(2, 1.0, 3).contains([1.1, 0.0, 0.0])
    assert Box([1e200], [3e200]).diameter == pytest.approx(2e200)


@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0])
def test_large_boxes_agree_with_a_sort_of_the_prices(spread):
    """Prices of one size, spread as usual, and over many powers of ten, where looks at a few of them help little."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        d = 3000
        lower, width = rng.standard_normal(d), rng.random(d)
        c = rng.choice([-1.0, 1.0], d) * np.exp(spread * rng.standard_normal(d))
        a = -np.sign(c) * rng.choice([0.0, 1.0, 2.0], d)
        box = Box(lower, lower + width)
        free, low = a @ box.lmo(c), a @ box.lmo(a)
        b = low + rng.random() * (free - low)
        gains, prices = np.abs(a) * width, np.abs(c) / np.where(a == 0.0, 1.0, np.abs(a))
        order = np.argsort(prices)
        taken = np.diff(np.minimum(np.cumsum(gains[order]), free - b), prepend=0.0)
        cost = prices[order] @ taken
        cut = box.cut_lmo(c, a, b)
        assert a @ cut.point <= b + 1e-12 * np.abs(a).sum()
        assert c @ cut.point - c @ box.lmo(c) == pytest.approx(cost, rel=1e-9, abs=1e-12 * np.abs(c).max())


def test_each_side_of_a_box_is_measured_in_its_own_unit():
    box = Box([0.0, 0.0, 1e6], [1e6, 1e-4, 1e6])
    assert not box.contains([0.0, 1e-3, 1e6])
    assert not box.contains([0.0, 1e-4 * (1.0 + 1e-8), 1e6])
    assert not box.contains([0.0, 0.0, 1e6 + 1e-5])
    assert box.contains([1e6 * (1.0 + 1e-10), 1e-4 * (1.0 + 1e-10), math.nextafter(1e6, 2e6)])


def test_a_number_bounds_all_coordinates_of_a_box():
    for box in (Box(-1, 1, 3), Box(-1.0, np.ones(3)), Box(-np.ones(3), 1.0, 3)):
        assert box.lower.tolist() == [-1.0] * 3
        assert box.upper.tolist() == [1.0] * 3
        assert box.dimension == 3
