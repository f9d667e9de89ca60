"""What every set promises, tested on every set that is listed in ``cases.py``."""

from __future__ import annotations

import copy
import functools
import math
import pickle
from contextlib import nullcontext
from typing import Any

import cvxpy
import numpy as np
import pytest
from cases import CASES, COMPOSED, Case
from hypothesis import given, settings
from hypothesis import strategies as st
from solvers import ConicModel, LinearModel, stated

from tiebreak import SBCGF, CutStatus, LeastSquares, Problem, SpiderFW, SquaredNorm, domains, minimize, power
from tiebreak.domains import Columns, Hull, Product, cut_lmo, cut_step, least_value, lmo, projects, settle
from tiebreak.domains.base import INVALID
from tiebreak.engine import interpreted

EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
EVERYWHERE = pytest.mark.parametrize(
    "case", CASES + COMPOSED, ids=lambda case: case.name
)  # also inside columns and products
SCALES = [1.0, 1.0, 1.0, 1e-12, 1e-6, 1e6, 1e12]
POOL = 24  # sets of each case and size


@pytest.fixture
def way(case):
    """Columns and products of every set run interpreted: compiling each of them takes long."""
    with interpreted() if case.composed else nullcontext():
        yield


@functools.cache
def made(case: Case, seed: int, size: int) -> tuple[Any, int, LinearModel | ConicModel]:
    """Return one of a pool of sets, its dimension, and its statement to a solver: that takes longer than many cuts."""
    domain, d = case.make(np.random.default_rng([seed, size]), size)
    return domain, d, stated(case, domain, d)


@st.composite
def questions(draw, case: Case):
    """Cuts of all kinds: random, with ties and zeros, parallel, at the ends of what the set allows, scaled."""
    domain, d, model = made(case, draw(st.integers(0, POOL - 1)), draw(st.integers(1, case.largest)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def vector():
        match draw(st.integers(0, 3)):
            case 0:
                return rng.integers(-2, 3, d).astype(float)  # ties and zeros
            case 1:
                return rng.standard_normal(d) * (rng.random(d) < 0.5)
            case _:
                return rng.standard_normal(d)

    c, a = vector(), vector()
    match draw(st.integers(0, 11)):
        case 0:
            c = np.zeros(d)
        case 1:
            a = np.zeros(d)
        case 2:
            a = 2.0 * c
        case 3:
            a = -c
    low, high = case.minimum(domain, a), -case.minimum(domain, -a)
    share = draw(st.one_of(st.floats(-0.2, 1.2), st.sampled_from([0.0, 1.0, 0.5])))
    b = low + share * (high - low)
    if draw(st.integers(0, 19)) == 0:
        b = float(np.nextafter(low, -math.inf))  # empty by a hair
    return domain, model, c, a, b, draw(st.sampled_from(SCALES)), draw(st.sampled_from(SCALES))


def spread(case: Case, domain, c) -> float:
    """How much ⟨c, s⟩ varies over the set, and how large it gets."""
    low, high = case.minimum(domain, c), -case.minimum(domain, -c)
    return max(high - low, abs(low), abs(high))


@EVERY
def test_the_cut_is_feasible_and_optimal(case):
    """2000 cuts per set: feasible to 1e-10, optimal to 1e-9 by weak duality, and to 1e-9 of what an independent solver says.

    The solver is asked about each of them. It is right up to its own doubt (its duality gap and residuals), which is added
    to what is allowed. Where a cut all but misses the set a tiny slack is worth much: the multiplier tells how much.
    """
    close = 0

    @settings(max_examples=2000)
    @given(questions(case))
    def check(question):
        nonlocal close
        domain, model, c, a, b, scale_c, scale_a = question
        cut = domain.cut_lmo(c * scale_c, a * scale_a, b * scale_a)
        size_a, size_c = spread(case, domain, a), spread(case, domain, c)
        low = case.minimum(domain, a)
        solved = model.solve(c, a, b)
        hair = 1e-7 * size_a + 1e-9  # what the solver may allow itself where nothing or little is left
        assert case.violation(domain, cut.point) <= 1e-10
        if cut.status is CutStatus.EMPTY:
            assert b <= low + 1e-10 * size_a
            assert a @ cut.point <= low + 1e-10 * size_a  # as near as it gets
            assert solved is None or solved.doubt == math.inf or b >= low - hair
            return
        value = c @ cut.point
        assert a @ cut.point <= b + 1e-10 * size_a + 1e-300
        multiplier = cut.multiplier * scale_a / scale_c
        allowed = 1e-9 * (size_c + multiplier * size_a)
        if math.isfinite(multiplier):
            dual = case.minimum(domain, c + multiplier * a) - multiplier * b
            assert value - dual <= allowed
        if cut.status is CutStatus.FREE:
            assert value <= case.minimum(domain, c) + 1e-9 * size_c
        if solved is None:
            assert b <= low + hair
            return
        assert value <= solved.value + solved.doubt + allowed
        lowest = 1e-9 * (size_c + solved.multiplier * size_a) + solved.doubt
        assert value >= solved.value - lowest
        close += max(allowed, lowest) <= 1e-8 * size_c

    check()
    assert close >= 800  # comparisons that leave no room for an error that matters


@pytest.mark.parametrize("case", COMPOSED, ids=lambda case: case.name)
def test_the_cut_of_columns_and_products_of_a_set_is_feasible_and_attains_its_dual(case, way):
    rng = np.random.default_rng(8)
    for k, share in enumerate([0.0, 0.1, 0.5, 0.9, 1.0, -0.1] * 2):
        domain, d = case.make(rng, 1 + k % case.largest)
        c, a = rng.standard_normal((2, d)) if k < 6 else rng.integers(-2, 3, (2, d)).astype(float)
        low, high = case.minimum(domain, a), -case.minimum(domain, -a)
        cut = domain.cut_lmo(c, a, low + share * (high - low))
        size_c, size_a = spread(case, domain, c), spread(case, domain, a)
        assert case.violation(domain, cut.point) <= 1e-10
        if cut.status is CutStatus.EMPTY:
            assert share <= 0.0
            assert a @ cut.point <= low + 1e-10 * size_a
            continue
        b = low + max(share, 0.0) * (high - low)
        assert a @ cut.point <= b + 1e-10 * size_a
        if math.isfinite(cut.multiplier):
            dual = case.minimum(domain, c + cut.multiplier * a) - cut.multiplier * b
            assert c @ cut.point - dual <= 1e-9 * (size_c + cut.multiplier * size_a)


@pytest.mark.parametrize("case", COMPOSED, ids=lambda case: case.name)
def test_what_is_proven_of_columns_and_products_of_a_set_holds_and_is_tight(case, way):
    rng = np.random.default_rng(9)
    for k in range(6):
        domain, d = case.make(rng, 1 + k % case.largest)
        c, atom, x, off = rng.standard_normal(d), np.empty(d), domain.random_point(rng, d), np.empty(d)
        size = spread(case, domain, c)
        lmo(domain, c, atom)
        least, reach = least_value(domain, c, atom), domains.spread(domain, np.abs(c))
        assert -1e-9 * reach <= least - case.minimum(domain, c) <= 1e-12 * size
        assert reach >= np.abs(c) @ np.abs(x)
        settled = x.copy()
        if settle(domain, settled, off):
            np.testing.assert_allclose(settled, x, atol=1e-9 * np.abs(x).max())
            assert off.max() <= 1e-9 * np.abs(x).max()
        else:
            assert "Polytope" in case.name  # whose equations may leave no room
            assert (off == math.inf).all()


def test_a_hull_compiles_inside_columns_inside_a_product():
    rng = np.random.default_rng(10)
    hull = Hull(rng.standard_normal((6, 3)))
    domain = Product(matrix=Columns(hull, (3, 2)))
    c, a = rng.standard_normal((2, 6))
    b = a @ (0.5 * domain.lmo(a) + 0.5 * domain.lmo(c))
    compiled = domain.cut_lmo(c, a, b)
    with interpreted():
        plain = domain.cut_lmo(c, a, b)
    assert compiled.status is plain.status is CutStatus.ACTIVE
    assert c @ compiled.point == pytest.approx(c @ plain.point, rel=1e-12)
    assert domain.contains(compiled.point)
    assert not domain.contains(compiled.point + 1.0)


@EVERY
def test_the_statement_to_the_solver_is_that_of_cvxpy(case):
    for seed, size in [(0, 1), (1, min(5, case.largest)), (2, case.largest)]:
        domain, d, model = made(case, seed, size)
        rng = np.random.default_rng(size)
        c, a = rng.standard_normal(d), rng.standard_normal(d)
        b = a @ domain.random_point(rng, d)
        s = cvxpy.Variable(d)
        convex = cvxpy.Problem(cvxpy.Minimize(c @ s), [*case.constraints(domain, s), a @ s <= b])
        convex.solve(solver=cvxpy.CLARABEL)
        solved = model.solve(c, a, b)
        assert solved is not None
        assert solved.value == pytest.approx(convex.value, abs=1e-5 * spread(case, domain, c) + 1e-7)


@EVERY
def test_interpreted_and_compiled_cuts_agree_and_a_step_goes_to_the_point(case):
    rng = np.random.default_rng(0)
    for k in range(12):
        domain, d = case.make(rng, 1 + k % case.largest)
        c, a, x = rng.standard_normal(d), rng.standard_normal(d), domain.random_point(rng, d)
        b = a @ x
        compiled = domain.cut_lmo(c, a, b)
        with interpreted():
            plain = domain.cut_lmo(c, a, b)
        assert plain.status is compiled.status
        assert c @ plain.point == pytest.approx(c @ compiled.point, abs=1e-10 * spread(case, domain, c))
        moved = x.copy()
        cut_step(domain, c, a, b, 0.3, moved, np.empty(d))
        np.testing.assert_allclose(moved, 0.7 * x + 0.3 * compiled.point, atol=1e-9)


@EVERYWHERE
def test_linear_minimisation_attains_the_minimum(case, way):
    rng = np.random.default_rng(1)
    for k in range(12 if case.composed else 60):
        domain, d = case.make(rng, 1 + k % case.largest)
        c = np.zeros(d) if k == 0 else rng.standard_normal(d) * 10.0 ** rng.integers(-8, 9)
        s = domain.lmo(c)
        assert case.violation(domain, s) <= 1e-12
        assert c @ s == pytest.approx(case.minimum(domain, c), abs=1e-10 * spread(case, domain, c))


@EVERYWHERE
def test_numbers_that_are_not_finite_are_refused(case, way):
    domain, d = case.make(np.random.default_rng(2), 4)
    good, bad, out = np.ones(d), np.ones(d), np.full(d, 7.0)
    bad[-1] = math.nan
    for c, a, b in [(bad, good, 0.0), (good, good, math.nan)]:
        assert cut_lmo(domain, c, a, b, out)[0] == INVALID
    assert out.tolist() == [7.0] * d
    with pytest.raises(ValueError, match="`c` must hold finite numbers"):
        domain.lmo(bad)


@EVERYWHERE
def test_projection_is_the_nearest_point_or_says_that_there_is_none(case, way):
    rng = np.random.default_rng(3)
    for k in range(8 if case.composed else 40):
        domain, d = case.make(rng, 1 + k % case.largest)
        x = rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 1)
        if not projects(domain):
            with pytest.raises(NotImplementedError, match="has no `project`"):
                domain.project(x)
            return
        p = domain.project(x)
        assert case.violation(domain, p) <= 1e-10
        # ⟨x − p, s − p⟩ ≤ 0 for all s in the set.
        residual = x - p
        assert -case.minimum(domain, -residual) - residual @ p <= 1e-9 * (1 + np.abs(x).max()) * spread(
            case, domain, residual
        )
        np.testing.assert_allclose(domain.project(p), p, atol=1e-9)


@EVERYWHERE
def test_random_points_lie_inside_and_within_the_diameter(case, way):
    rng = np.random.default_rng(4)
    for k in range(8 if case.composed else 30):
        domain, d = case.make(rng, 1 + k % case.largest)
        x, y = domain.random_point(rng, d), domain.lmo(rng.standard_normal(d))
        assert case.violation(domain, x) <= 1e-10
        assert case.violation(domain, domain.middle(d)) <= 1e-10
        assert domain.contains(x)
        assert np.linalg.norm(x - y) <= domain.diameter * (1 + 1e-12) + 1e-12 * np.abs(x).max()
        assert np.linalg.norm(domain.lmo(x - y) - domain.lmo(y - x)) <= domain.diameter * (1 + 1e-12)
        assert not domain.contains(x + 10.0 * domain.diameter * np.ones(d) + 1.0)
        assert domain.dimension in (None, d)
        parts = domain.parts(x)
        assert sum(part.size for part in parts.values()) == d
        assert all(np.shares_memory(part, x) for part in parts.values())


@EVERYWHERE
def test_sets_survive_copies_and_pickles(case, way):
    domain, d = case.make(np.random.default_rng(6), 4)
    c = np.random.default_rng(7).standard_normal(d)
    for copied in (pickle.loads(pickle.dumps(domain)), copy.deepcopy(domain)):
        assert type(copied) is type(domain)
        assert c @ copied.lmo(c) == pytest.approx(c @ domain.lmo(c), rel=1e-12)


@EVERY
def test_sbcgf_finds_the_known_solution_of_a_small_bilevel_problem(case):
    """g = ½ (⟨a, x⟩ − ⟨a, p⟩)² is least on a plane through an inner point p; f = ½ ‖x − p‖² picks p there."""
    rng = np.random.default_rng(5)
    domain, d = case.make(rng, min(6, case.largest))
    p = np.mean([domain.random_point(rng, d) for _ in range(8)], axis=0)
    a = rng.standard_normal(d)
    a /= np.linalg.norm(a)
    problem = Problem(SquaredNorm(p), LeastSquares(a[None], [a @ p]), domain)
    start = SpiderFW(step=power(2.0, 1.0, 2.0), level="lower")
    unit = domain.diameter**2
    method = SBCGF(step=3e-4, slack=1e-12 * unit, initial=start)
    with interpreted():  # the cut and its step are compared with their compiled versions above
        result = minimize(problem, method, max_queries=12_000)
    assert result.lower <= 1e-4 * unit
    assert result.upper <= 1e-3 * unit
    assert case.violation(domain, result.x) <= 1e-9
