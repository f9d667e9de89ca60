"""What is special about simplices: closed forms, ties, caps and numbers of all sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tiebreak import CutStatus
from tiebreak.domains import CappedSimplex, Simplex, UnitSimplex, cut_lmo
from tiebreak.domains.base import INVALID
from tiebreak.engine import interpreted
from tiebreak.engine.vectors import select

ENTRIES = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4), st.floats(-1e12, 1e12))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Simplex(0.0), "`scale` must be a finite number > 0, got 0.0"),
        (lambda: Simplex("one"), "`scale` must be a finite number > 0, got 'one'"),
        (lambda: UnitSimplex(math.inf), "`scale` must be a finite number > 0, got inf"),
        (lambda: CappedSimplex(-1.0, 1.0, 2), "`total` must be a finite number > 0, got -1.0"),
        (lambda: CappedSimplex(1.0, math.nan, 2), "`cap` must be a finite number > 0, got nan"),
        (lambda: CappedSimplex(1.0, 1.0, 0), "`dimension` must be a whole number ≥ 1, got 0"),
        (lambda: CappedSimplex(3.0, 0.5, 4), r"`total` must be at most `cap` \* `dimension`, .* got 3 > 0.5 \* 4"),
        (lambda: CappedSimplex(1.0, 0.5, 4).lmo([1.0, 2.0]), "`c` must be a vector of 4 numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_linear_minimisation_takes_the_smallest_entry_wherever_it_is():
    rng = np.random.default_rng(0)
    for d in (1, 3, 63, 64, 65, 128, 200, 1000):
        for _ in range(20):
            c = rng.standard_normal(d)
            assert np.argmax(Simplex(2.0).lmo(c)) == np.argmin(c)
            assert c @ UnitSimplex(2.0).lmo(c) == min(2.0 * c.min(), 0.0)


@pytest.mark.parametrize("d", [2, 5, 130])
def test_a_cut_has_at_most_two_entries_and_stays_on_its_boundary(d):
    rng = np.random.default_rng(1)
    for _ in range(50):
        c, a = rng.standard_normal(d), rng.standard_normal(d)
        b = 0.5 * (a.min() + a[np.argmin(c)])
        cut = Simplex().cut_lmo(c, a, b)
        assert np.count_nonzero(cut.point) <= 2
        assert cut.point.sum() == pytest.approx(1.0, abs=1e-15)
        if cut.status is CutStatus.ACTIVE:
            assert a @ cut.point == pytest.approx(b, abs=1e-14)


def test_the_unit_simplex_mixes_an_atom_with_the_origin():
    cut = UnitSimplex(2.0).cut_lmo([-1.0, 3.0], [1.0, 5.0], 0.5)
    assert cut.point.tolist() == [0.5, 0.0]
    assert cut.multiplier == 1.0
    empty = UnitSimplex(2.0).cut_lmo([-1.0, 3.0], [1.0, 5.0], -1e-9)
    assert empty.status is CutStatus.EMPTY
    assert empty.point.tolist() == [0.0, 0.0]


def test_a_cut_at_its_least_value_is_a_vertex_and_a_hair_below_is_empty():
    a = np.array([1.0, -3.0])
    assert Simplex(2.0).cut_lmo([-5.0, 1.0], a, -6.0).status is CutStatus.ACTIVE
    below = Simplex(2.0).cut_lmo([-5.0, 1.0], a, np.nextafter(-6.0, -7.0))
    assert below.status is CutStatus.EMPTY
    assert below.point.tolist() == [0.0, 2.0]
    assert below.multiplier == math.inf


@pytest.mark.parametrize("make", [Simplex, UnitSimplex, lambda scale: CappedSimplex(scale, 0.6 * scale, 3)])
@pytest.mark.parametrize("size_c", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize("size_a", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_subnormal_and_huge_numbers_give_points_of_the_set(make, size_c, size_a):
    c, a = size_c * np.array([0.5, -1.0, 0.0]), size_a * np.array([0.25, 1.0, -1.0])
    for b in (-size_a / 2, 0.0, size_a / 4):
        cut = make(1.0).cut_lmo(c, a, b)
        assert make(1.0).contains(cut.point, tol=1e-12)
        if cut.status is not CutStatus.EMPTY and size_a > 1e-290:
            assert (a / size_a) @ cut.point <= b / size_a + 1e-12


@pytest.mark.parametrize("make", [Simplex, UnitSimplex, lambda scale: CappedSimplex(scale, 0.6 * scale, 3)])
@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e12, 1e200])
def test_the_scale_of_the_set_changes_nothing_but_units(make, scale):
    rng = np.random.default_rng(2)
    for _ in range(20):
        c, a, x = rng.standard_normal((3, 3))
        plain, scaled = make(1.0).cut_lmo(c, a, 0.1), make(scale).cut_lmo(c, a, 0.1 * scale)
        assert plain.status is scaled.status
        np.testing.assert_allclose(scaled.point / scale, plain.point, atol=1e-12)
        np.testing.assert_allclose(make(scale).project(x * scale) / scale, make(1.0).project(x), atol=1e-12)


def test_a_common_offset_of_the_objective_does_not_move_the_answer():
    c, a = np.array([0.3, -0.2, 0.1]), np.array([0.0, 1.0, -1.0])
    plain, offset = Simplex().cut_lmo(c, a, 0.25), Simplex().cut_lmo(c + 2.0**20, a, 0.25)
    np.testing.assert_allclose(offset.point, plain.point, atol=1e-15)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_seen_wherever_they_are(bad):
    rng = np.random.default_rng(3)
    for domain in (Simplex(), UnitSimplex()):
        for k in (0, 63, 64, 69):
            c, a, out = rng.standard_normal(70), rng.standard_normal(70), np.full(70, 7.0)
            b = -0.9 * np.abs(a).max()
            spoilt = c.copy()
            spoilt[k] = bad
            assert cut_lmo(domain, spoilt, a, b, out)[0] == INVALID
            spoilt = a.copy()
            spoilt[k] = bad
            if a[np.argmin(c)] > b:
                assert cut_lmo(domain, c, spoilt, b, out)[0] == INVALID
            assert (out == 7.0).all()


def by_sorting(x, scale):
    """The projection onto a simplex as Held, Wolfe and Crowder (1974) define it."""
    ordered = np.sort(x)[::-1]
    thresholds = (np.cumsum(ordered) - scale) / np.arange(1, x.size + 1)
    return np.maximum(x - thresholds[np.nonzero(ordered > thresholds)[0][-1]], 0.0)


@settings(max_examples=500)
@given(arrays(float, st.integers(1, 30), elements=ENTRIES), st.sampled_from([1e-3, 1.0, 50.0]))
def test_projections_agree_with_the_definition_by_sorting(x, scale):
    tolerance = 1e-13 * max(np.abs(x).max(), scale) * x.size
    np.testing.assert_allclose(Simplex(scale).project(x), by_sorting(x, scale), atol=tolerance)
    inside = np.maximum(x, 0.0).sum() <= scale
    expected = np.maximum(x, 0.0) if inside else by_sorting(x, scale)
    np.testing.assert_allclose(UnitSimplex(scale).project(x), expected, atol=tolerance)


@settings(max_examples=1000)
@given(arrays(float, st.integers(1, 30), elements=ENTRIES), st.floats(0.01, 1.0), st.sampled_from([1e-3, 1.0, 50.0]))
def test_capped_projection_satisfies_its_optimality_conditions(x, share, cap):
    total = share * cap * x.size
    nearest = CappedSimplex(total, cap, x.size).project(x)
    assert nearest.sum() == pytest.approx(total, rel=1e-12)
    assert nearest.min() >= 0.0
    assert nearest.max() <= cap
    # x − p is the same where 0 < p < cap, at most that where p = 0, at least that where p = cap.
    residual, rounding = x - nearest, 1e-12 * max(np.abs(x).max(), cap)
    can_grow, can_shrink = nearest < cap, nearest > 0.0
    if can_grow.any() and can_shrink.any():
        assert residual[can_grow].max() <= residual[can_shrink].min() + rounding


def test_projection_of_numbers_far_apart_is_exact():
    assert Simplex().project([1e308, -1e308, 0.0]).tolist() == [1.0, 0.0, 0.0]
    assert Simplex().project([1e20, 1e20]).tolist() == [0.5, 0.5]
    assert CappedSimplex(1.0, 0.75, 3).project([1e20, 0.0, -1e20]).tolist() == [0.75, 0.25, 0.0]
    assert CappedSimplex(1.0, 0.75, 3).project([1e200, 5e199, -1e200]).tolist() == [0.75, 0.25, 0.0]


def test_capped_minimisation_agrees_with_sorting_whatever_the_ties():
    rng = np.random.default_rng(4)
    for _ in range(300):
        d = int(rng.integers(1, 40))
        c, cap = rng.integers(-3, 4, d).astype(float), 0.25
        total = cap * rng.choice([rng.uniform(0.01, d), rng.integers(1, d + 1)])
        domain = CappedSimplex(total, cap, d)
        s = domain.lmo(c)
        assert domain.contains(s, tol=1e-13)
        assert c @ s == pytest.approx(np.sort(c) @ np.clip(total - cap * np.arange(d), 0, cap), abs=1e-12)
        assert np.count_nonzero((s > 0) & (s < cap)) <= 1


def test_selection_is_right_on_sorted_constant_and_random_numbers():
    rng = np.random.default_rng(5)
    for x in (np.arange(50.0), np.arange(50.0)[::-1].copy(), np.zeros(50), rng.standard_normal(50)):
        for rank in range(50):
            assert select(x.copy(), rank) == np.sort(x)[rank]
    assert np.isnan(select(np.full(3, math.nan), 1))  # it ends


def test_a_capped_simplex_of_one_point_is_that_point():
    for total, cap, d in [(1.0, 1 / 49, 49), (3.0, 1.0, 3), (0.3, 0.5, 1)]:
        domain = CappedSimplex(total, cap, d)
        point = np.full(d, total / d)
        rng = np.random.default_rng(6)
        c, a, x = rng.standard_normal((3, d))
        assert domain.diameter <= 1e-12
        np.testing.assert_allclose(domain.lmo(c), point, rtol=1e-12)
        np.testing.assert_allclose(domain.project(x), point, rtol=1e-12)
        np.testing.assert_allclose(domain.cut_lmo(c, a, a @ point + 1.0).point, point, rtol=1e-12)
        assert domain.cut_lmo(c, a, a @ point - 1.0).status is CutStatus.EMPTY


def test_the_diameter_of_a_capped_simplex_is_attained():
    for total, cap, d in [(1.0, 0.4, 4), (1.0, 2.0, 3), (2.5, 1.0, 3), (0.7, 0.3, 8)]:
        domain = CappedSimplex(total, cap, d)
        c = np.arange(d, dtype=float)
        assert domain.diameter == pytest.approx(np.linalg.norm(domain.lmo(c) - domain.lmo(-c)), rel=1e-12)
    assert Simplex(3.0).diameter == UnitSimplex(3.0).diameter == pytest.approx(3.0 * math.sqrt(2.0))


def test_membership_looks_at_signs_sums_and_caps():
    for compiled in (True, False):
        with interpreted() if not compiled else np.errstate():
            assert Simplex(2.0).contains([0.5, 1.5])
            assert not Simplex(2.0).contains([0.5, 1.4])
            assert not Simplex(2.0).contains([-0.5, 2.5])
            assert Simplex(2.0).contains([0.5, 1.4], tol=0.06)
            assert UnitSimplex(2.0).contains([0.5, 1.4])
            assert not UnitSimplex(2.0).contains([0.5, 1.6])
            assert not UnitSimplex(2.0).contains([-0.5, 0.6])
            assert CappedSimplex(1.0, 0.75, 2).contains([0.25, 0.75])
            assert not CappedSimplex(1.0, 0.75, 2).contains([0.2, 0.8])
            assert not CappedSimplex(1.0, 0.75, 2).contains([0.25, 0.7])


def test_dimensions():
    assert Simplex().dimension is None
    assert UnitSimplex().dimension is None
    assert CappedSimplex(1.0, 0.5, 4).dimension == 4


def test_a_sign_is_measured_by_the_total_where_the_cap_is_far_beyond_it():
    assert not CappedSimplex(1.0, 1e6, 2).contains([1.0 + 1e-4, -1e-4])
