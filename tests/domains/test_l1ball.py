"""The ℓ1 ball against HiGHS, brute force and the optimality conditions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from tiebreak import CutStatus, L1Ball
from tiebreak.domains import cut_lmo, cut_step
from tiebreak.domains.base import INVALID
from tiebreak.domains.cuts.search import dual_search
from tiebreak.engine import interpreted

# Small whole numbers make ties, zeros, duplicates and parallel vectors; floats make everything else.
# (HiGHS drops coefficients below 1e-9, so those have tests of their own.)
ENTRIES = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4).map(lambda v: v if abs(v) > 1e-3 else 0.0))
SCALES = st.sampled_from([1e-12, 1e-6, 1.0, 1e6, 1e12])


@st.composite
def cuts(draw):
    d = draw(st.integers(1, 12))
    c, a = draw(arrays(float, d, elements=ENTRIES)), draw(arrays(float, d, elements=ENTRIES))
    if draw(st.integers(0, 9)) == 0:
        a = c * draw(st.sampled_from([-2.0, 1.0, 0.0]))
    radius = draw(st.sampled_from([0.25, 1.0, 3.0]))
    reach = radius * np.abs(a).max()
    b = draw(st.one_of(st.floats(-1.5, 1.5).map(lambda share: share * reach), st.sampled_from([0.0, -reach, reach])))
    return radius, c, a, b


def highs(radius, c, a, b):
    """The LP in 2d variables of the paper: s = s⁺ − s⁻."""
    d = c.size
    rows = np.vstack([np.r_[a, -a], np.ones(2 * d)])
    return linprog(np.r_[c, -c], A_ub=rows, b_ub=[b, radius], bounds=(0, None), method="highs")


def check_point(radius, c, a, b, cut):
    """Feasible, or the least violation; and optimal, by weak duality with the returned multiplier."""
    size = radius * max(np.abs(a).max(), 1e-300)
    assert np.abs(cut.point).sum() <= radius * (1 + 1e-12)
    if cut.status is CutStatus.EMPTY:
        assert b < -radius * np.abs(a).max() * (1 - 1e-12)
        assert a @ cut.point == pytest.approx(-radius * np.abs(a).max(), rel=1e-12)
        return
    assert a @ cut.point <= b + 1e-12 * size
    assert cut.multiplier >= 0.0
    dual = -radius * np.abs(c + cut.multiplier * a).max() - cut.multiplier * b
    scale = radius * np.abs(c).max() + cut.multiplier * (size + abs(b))
    assert c @ cut.point - dual <= 1e-12 * scale


@settings(max_examples=3000)
@given(cuts())
@example((1.0, np.array([0.0]), np.array([0.0]), 0.0))
@example((1.0, np.array([1.0]), np.array([-1.0]), 0.5))
@example((1.0, np.array([1.0, 1.0]), np.array([0.0, 0.0]), -1.0))
@example((3.0, np.array([1.0, -1.0, 1.0]), np.array([-1.0, -1.0, -1.0]), -3.0))
def test_the_cut_agrees_with_highs(case):
    radius, c, a, b = case
    cut = L1Ball(radius).cut_lmo(c, a, b)
    check_point(radius, c, a, b, cut)
    solved = highs(radius, c, a, b)
    if abs(b + radius * np.abs(a).max()) < 1e-6:
        return  # empty by a hair, or nearly so: HiGHS allows violations of 1e-7
    assert (solved.status == 2) == (cut.status is CutStatus.EMPTY)
    if cut.status is not CutStatus.EMPTY:
        assert c @ cut.point == pytest.approx(solved.fun, rel=1e-9, abs=2e-6)


@settings(max_examples=500)
@given(cuts())
def test_the_generic_search_finds_the_same_value_as_the_special_one(case):
    radius, c, a, b = case
    ball, out = L1Ball(radius), np.empty_like(c)
    status, _ = dual_search(ball, c, a, b, out)
    special = ball.cut_lmo(c, a, b)
    if (status == CutStatus.EMPTY) == (special.status is CutStatus.EMPTY):
        assert c @ out == pytest.approx(c @ special.point, rel=1e-10, abs=1e-12)
    else:
        assert b == pytest.approx(-radius * np.abs(a).max(), rel=1e-14)  # empty by a hair


@settings(max_examples=200)
@given(cuts(), st.floats(0, 1))
def test_interpreted_and_compiled_cuts_are_the_same_and_a_step_moves_towards_the_point(case, step):
    radius, c, a, b = case
    ball = L1Ball(radius)
    compiled = ball.cut_lmo(c, a, b)
    with interpreted():
        plain = ball.cut_lmo(c, a, b)
    assert plain.status is compiled.status
    np.testing.assert_allclose(plain.point, compiled.point, rtol=1e-14, atol=1e-300)
    x = np.linspace(-radius, radius, c.size) / c.size
    moved = x.copy()
    assert cut_step(ball, c, a, b, step, moved, np.empty_like(x))[0] == compiled.status
    np.testing.assert_allclose(moved, (1 - step) * x + step * compiled.point, atol=1e-15 * radius)


@settings(max_examples=1000)
@given(cuts(), SCALES, SCALES, SCALES)
def test_scales_change_nothing_but_units(case, scale_c, scale_a, scale_r):
    radius, c, a, b = case
    plain = L1Ball(radius).cut_lmo(c, a, b)
    scaled = L1Ball(radius * scale_r).cut_lmo(c * scale_c, a * scale_a, b * scale_a * scale_r)
    check_point(radius * scale_r, c * scale_c, a * scale_a, b * scale_a * scale_r, scaled)
    if plain.status is not CutStatus.EMPTY and scaled.status is not CutStatus.EMPTY:
        assert c @ scaled.point / scale_r == pytest.approx(c @ plain.point, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("size_c", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize("size_a", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_subnormal_and_huge_numbers_give_points_of_the_ball(size_c, size_a):
    c, a = size_c * np.array([0.5, -1.0, 0.0]), size_a * np.array([0.25, 1.0, -1.0])
    for b in (-size_a / 2, 0.0, size_a / 4):
        cut = L1Ball(1.0).cut_lmo(c, a, b)
        assert np.isfinite(cut.point).all()
        assert np.abs(cut.point).sum() <= 1.0 + 1e-12
        if cut.status is not CutStatus.EMPTY and size_a > 1e-290:
            assert (a / size_a) @ cut.point <= b / size_a + 1e-12


def test_a_large_ball_does_not_overflow():
    cut = L1Ball(1e300).cut_lmo([1.0, 2.0], [1.0, -1.0], 0.0)
    assert cut.status is CutStatus.ACTIVE
    np.testing.assert_allclose(cut.point, [-0.5e300, -0.5e300])


def test_a_cut_at_its_least_value_is_a_vertex_and_a_hair_below_is_empty():
    ball, a = L1Ball(2.0), np.array([1.0, -3.0])
    at = ball.cut_lmo([5.0, 1.0], a, -6.0)
    assert at.status is CutStatus.ACTIVE
    assert at.point.tolist() == [0.0, 2.0]
    below = ball.cut_lmo([5.0, 1.0], a, np.nextafter(-6.0, -7.0))
    assert below.status is CutStatus.EMPTY
    assert below.point.tolist() == [0.0, 2.0]
    assert below.multiplier == math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_kernel_says_invalid_where_numbers_are_not_finite_and_touches_nothing(bad):
    ball, good = L1Ball(1.0), np.array([1.0, 2.0])
    out = np.array([7.0, 7.0])
    for c, a, b in [(good * [1, bad], good, -9.0), (good, good * [bad, 1], -9.0), (good * [1, bad], good, 9.0)]:
        assert cut_lmo(ball, c, a, b, out)[0] == INVALID
    assert cut_lmo(ball, good, good, math.nan, out)[0] == INVALID
    assert out.tolist() == [7.0, 7.0]


@settings(max_examples=1000)
@given(
    arrays(float, st.integers(1, 30), elements=st.one_of(ENTRIES, st.floats(-1e12, 1e12))),
    st.sampled_from([1e-9, 0.5, 1.0, 50.0]),
)
def test_projection_satisfies_its_optimality_conditions(x, radius):
    ball = L1Ball(radius)
    nearest = ball.project(x)
    if np.abs(x).sum() <= radius:
        np.testing.assert_array_equal(nearest, x)
        return
    scale = max(np.abs(x).max(), radius)
    assert np.abs(nearest).sum() == pytest.approx(radius, abs=1e-12 * scale * x.size)
    # ⟨x − p, s − p⟩ ≤ 0 for all s in the ball: it is enough to look at the vertices.
    residual = x - nearest
    assert radius * np.abs(residual).max() - residual @ nearest <= 1e-11 * scale * scale * x.size


def test_projection_is_right_on_a_long_vector_and_on_spread_ones():
    rng = np.random.default_rng(0)
    for x in (rng.standard_normal(100_000), 1.0 - 10.0 ** -np.arange(16.0), 2.0 ** np.arange(-20, 20)):
        nearest = L1Ball(1.0).project(x)
        # The definition by sorting (Held, Wolfe and Crowder 1974).
        magnitude = np.sort(np.abs(x))[::-1]
        thresholds = (np.cumsum(magnitude) - 1.0) / np.arange(1, x.size + 1)
        threshold = thresholds[np.nonzero(magnitude > thresholds)[0][-1]]
        np.testing.assert_allclose(nearest, np.sign(x) * np.maximum(np.abs(x) - threshold, 0), atol=1e-12 * magnitude[0])


def test_projection_of_a_huge_vector_is_a_vertex():
    assert L1Ball(1.0).project([1e308, -1e308 / 2, 1e-308]).tolist() == [1.0, 0.0, 0.0]
    assert L1Ball(1.0).project([1e20, -1e20]).tolist() == [0.5, -0.5]
    assert np.abs(L1Ball(5e-324).project([1.0, 1.0])).sum() <= 1e-323


def test_linear_minimisation_takes_the_largest_entry():
    assert L1Ball(2.0).lmo([1.0, -3.0, 2.0]).tolist() == [0.0, 2.0, 0.0]
    assert np.abs(L1Ball(2.0).lmo(np.zeros(3))).sum() == 2.0
    rng = np.random.default_rng(0)
    for d in (1, 63, 64, 65, 128, 200, 1000):
        c = rng.standard_normal(d)
        assert c @ L1Ball(1.0).lmo(c) == -np.abs(c).max()


def test_size_and_membership():
    ball = L1Ball(2.0)
    assert ball.diameter == 4.0
    assert ball.contains([1.0, -1.0])
    assert not ball.contains([1.0, -1.1])
    assert ball.contains([1.0, -1.1], tol=0.06)
    assert ball.dimension is None


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf, "big", None])
def test_a_radius_that_is_not_positive_is_refused(radius):
    with pytest.raises(ValueError, match="`radius` must be a finite number > 0, got"):
        L1Ball(radius)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda ball: ball.lmo([1.0, math.nan]), "`c` must hold finite numbers"),
        (lambda ball: ball.cut_lmo([1.0], [1.0, 2.0], 0.0), "`a` must be a vector of 1 numbers"),
        (lambda ball: ball.cut_lmo([1.0], [1.0], math.nan), "`b` must be a finite number"),
        (lambda ball: ball.project([]), "`x` must be a non-empty vector"),
    ],
)
def test_bad_questions_are_named(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(L1Ball(1.0))
