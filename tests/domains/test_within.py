"""The nearest point of a set within a half-space or a ball, for every set that has a projection."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest
from cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak import Birkhoff, Box, L1Ball, L2Ball, Simplex
from tiebreak.domains import Around, CutStatus, project_cut, project_within, projects
from tiebreak.domains.base import INVALID
from tiebreak.engine import interpreted

PROJECTING = [case for case in CASES if projects(case.make(np.random.default_rng(0), 3)[0])]
EVERY = pytest.mark.parametrize("case", PROJECTING, ids=lambda case: case.name)
SCALES = [1.0, 1.0, 1.0, 1e-12, 1e12]


@pytest.fixture
def plainly():
    """Compiling the search for every set takes long; some of them are compiled below."""
    with interpreted():
        yield


@st.composite
def questions(draw, case):
    """Sets, points near and far, normals with zeros, and bounds from where nothing is left to where nothing is cut off."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    domain, d = case.make(rng, draw(st.integers(1, min(case.largest, 8))))
    x = rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 2)
    a = rng.standard_normal(d) if draw(st.booleans()) else rng.integers(-2, 3, d).astype(float)
    low, high = case.minimum(domain, a), -case.minimum(domain, -a)
    share = draw(st.one_of(st.floats(-0.2, 1.2), st.sampled_from([0.0, 1e-10, 0.5, 1.0])))
    return domain, x, a, low + share * (high - low), max(high - low, abs(low), abs(high)), draw(st.sampled_from(SCALES))


@EVERY
def test_the_nearest_point_in_a_cut_is_feasible_and_a_projection_from_its_multiplier(case, plainly):
    @settings(max_examples=25)
    @given(questions(case))
    def check(question):
        domain, x, a, b, size, unit = question
        cut = domain.project_cut(x, a * unit, b * unit)
        least = case.minimum(domain, a)
        assert case.violation(domain, cut.point) <= 1e-9
        if cut.status is CutStatus.EMPTY:
            assert b <= least + 1e-9 * size
            assert a @ cut.point <= least + 1e-8 * size
            return
        assert a @ cut.point <= b + 1e-9 * size
        multiplier = cut.multiplier * unit
        if multiplier * np.abs(a).max() <= 1e4 * (1.0 + np.abs(x).max()):  # else rounding is all that is left of x
            np.testing.assert_allclose(cut.point, domain.project(x - multiplier * a), atol=1e-8)
        if cut.status is CutStatus.ACTIVE:
            assert a @ cut.point >= b - 1e-8 * size

    check()


def nearest(case, domain, x, constraint):
    s = cvxpy.Variable(x.size)
    model = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(s - x)), [*case.constraints(domain, s), constraint(s)])
    model.solve(solver=cvxpy.CLARABEL)
    return s.value


@EVERY
def test_a_solver_finds_the_same_nearest_points(case, plainly):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        domain, d = case.make(rng, 6)
        x, a = 3.0 * rng.standard_normal(d), rng.standard_normal(d)
        inner = domain.random_point(rng, d)
        first = domain.project(x)
        b = 0.5 * (a @ inner + a @ first)
        cut = domain.project_cut(x, a, b)
        np.testing.assert_allclose(cut.point, nearest(case, domain, x, lambda s, a=a, b=b: a @ s <= b), atol=2e-4)
        assert np.linalg.norm(x - cut.point) >= np.linalg.norm(x - first) - 1e-12
        radius, point = 0.7 * float(np.linalg.norm(first - inner)), np.empty(d)
        status, _ = project_within(domain, Around(radius, inner), x, point)
        assert status == CutStatus.ACTIVE
        assert case.violation(domain, point) <= 1e-9
        assert np.linalg.norm(point - inner) <= radius * (1.0 + 1e-12)
        ball = nearest(case, domain, x, lambda s, inner=inner, radius=radius: cvxpy.norm2(s - inner) <= radius)
        np.testing.assert_allclose(point, ball, atol=2e-4)


SOME = [L1Ball(2.0), L2Ball(1.5), Box(-1.0, 2.0, 6)]


@pytest.mark.parametrize("domain", SOME, ids=lambda domain: type(domain).__name__)
def test_interpreted_and_compiled_searches_agree(domain):
    rng = np.random.default_rng(0)
    for share in (-0.1, 0.0, 0.3, 0.9):
        x, a = 2.0 * rng.standard_normal(6), rng.standard_normal(6)
        low, high = a @ domain.lmo(a), a @ domain.lmo(-a)
        compiled = domain.project_cut(x, a, low + share * (high - low))
        with interpreted():
            plain = domain.project_cut(x, a, low + share * (high - low))
        assert compiled.status == plain.status
        np.testing.assert_allclose(compiled.point, plain.point, rtol=1e-9, atol=1e-9)
        outs = np.empty(6), np.empty(6)
        region = Around(0.5, x / 10.0)
        first = project_within(domain, region, x, outs[0])
        with interpreted():
            assert project_within(domain, region, x, outs[1])[0] == first[0]
        np.testing.assert_allclose(*outs, rtol=1e-9, atol=1e-9)


def test_a_half_space_that_does_not_meet_the_set_gives_the_nearest_of_the_points_that_violate_it_least(plainly):
    # The minimisers of s₁ over the box are an edge; the nearest of them keeps the other coordinate of x.
    cut = Box(-1.0, 1.0, 2).project_cut([3.0, 0.25], [1.0, 0.0], -1.0 - 1e-13)
    assert cut.status is CutStatus.EMPTY
    np.testing.assert_allclose(cut.point, [-1.0, 0.25])
    touching = Box(-1.0, 1.0, 2).project_cut([3.0, 0.25], [1.0, 0.0], -1.0)
    assert touching.status is CutStatus.ACTIVE
    np.testing.assert_allclose(touching.point, [-1.0, 0.25])


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e-150, 1e150, 1e300])
def test_the_length_of_the_normal_does_not_matter(unit, plainly):
    cut = L2Ball(1.0).project_cut([2.0, 1.0], [unit, 0.0], 0.5 * unit if unit > 1e-320 else 0.0)
    assert cut.status is CutStatus.ACTIVE
    limit = 0.5 if unit > 1e-320 else 0.0
    np.testing.assert_allclose(cut.point, [limit, math.sqrt(1.0 - limit**2)] if limit else [0.0, 1.0], atol=1e-12)


def test_a_normal_of_zero_cuts_all_or_nothing(plainly):
    inside, outside = (L2Ball(1.0).project_cut([3.0, 4.0], [0.0, 0.0], b) for b in (0.0, -1.0))
    assert (inside.status, outside.status) == (CutStatus.FREE, CutStatus.EMPTY)
    for cut in (inside, outside):
        np.testing.assert_allclose(cut.point, [0.6, 0.8])


def test_a_ball_of_radius_zero_around_a_point_of_the_set_is_that_point(plainly):
    out = np.empty(3)
    project_within(Simplex(1.0), Around(0.0, np.full(3, 1 / 3)), np.array([5.0, 0.0, -1.0]), out)
    np.testing.assert_allclose(out, 1 / 3, atol=1e-6)


def test_numbers_that_are_not_finite_leave_the_answer_untouched(plainly):
    out = np.full(2, 7.0)
    for x, a, b in [(math.nan, 1.0, 0.0), (0.0, math.inf, 0.0), (0.0, 1.0, math.nan)]:
        status, _ = project_cut(L2Ball(1.0), np.array([x, 0.0]), np.array([a, 0.0]), b, out)
        assert status == INVALID
    np.testing.assert_array_equal(out, 7.0)


def test_a_set_without_a_projection_says_so():
    with pytest.raises(NotImplementedError, match="has no `project`"):
        Birkhoff(2).project_cut(np.ones(4), np.ones(4), 1.0)
