"""What proofs ask of every set: least values, spreads and settled points, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from cases import CASES, Case
from exact import exact, is_least, minimum, point_near
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak import (
    Birkhoff,
    Box,
    CappedSimplex,
    Columns,
    Domain,
    Hull,
    KSparse,
    L1Ball,
    L2Ball,
    Polytope,
    Simplex,
    Spectrahedron,
    WeightedL1Ball,
)
from tiebreak.domains import contains, diameter, least_value, lmo, project, settle, spread
from tiebreak.domains.rounding import eigenvalue_floor
from tiebreak.engine import interpreted

EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
SIZES = [1.0, 1.0, 1e-8, 1e8, 1e-150, 1e150, 1e-320]
OUTSIDE = [0.0, 1e-16, 4e-16, 1e-14, 1e-12, 5e-10]


def without_equations(domain: Any) -> bool:
    return not isinstance(domain, Polytope) or not np.isfinite(domain._least).any()


@st.composite
def directions(draw, case: Case):
    """A set, and a vector with ties, zeros, units of its own in each coordinate, or of an extreme size."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    domain, d = case.make(rng, draw(st.integers(1, min(case.largest, 6))))
    match draw(st.integers(0, 3)):
        case 0:
            c = rng.integers(-2, 3, d).astype(float)
        case 1:
            c = rng.standard_normal(d) * 10.0 ** rng.uniform(-8, 8, d)
        case _:
            c = rng.standard_normal(d) * (rng.random(d) < 0.8)
    return domain, c * draw(st.sampled_from(SIZES)), rng


def least(domain: Any, c: np.ndarray) -> float:
    atom = np.empty_like(c)
    lmo(domain, c, atom)
    return least_value(domain, c, atom)


@EVERY
def test_the_least_value_is_a_lower_bound_in_exact_arithmetic_and_tight(case):
    @settings(max_examples=60)
    @given(directions(case))
    def check(question):
        domain, c, _ = question
        if not without_equations(domain):
            return
        with interpreted():
            value, reach = least(domain, c), spread(domain, np.abs(c))
        assert is_least(domain, c, value)
        assert not is_least(domain, c, value + 1e-9 * reach + 1e-315)

    check()


@EVERY
def test_the_spread_bounds_all_atoms_and_is_tight(case):
    @settings(max_examples=40)
    @given(directions(case))
    def check(question):
        domain, c, rng = question
        e, largest = np.abs(c), Fraction(0)
        with interpreted():
            bound = spread(domain, e)
            for _ in range(20):
                atom = domain.lmo(e * rng.choice([-1.0, 1.0], e.size))
                # An atom is in the set up to rounding, which is not what the bound is about.
                largest = max(largest, sum(a * abs(s) for a, s in zip(exact(e), exact(atom), strict=True)))
        assert Fraction(bound) * (1 + Fraction(1, 10**12)) + Fraction(1, 10**300) >= largest
        assert bound <= (100.0 if isinstance(domain, Polytope) else 4.0) * float(largest) + 1e-300

    check()


@EVERY
def test_a_settled_point_is_as_near_to_the_set_as_it_says_and_one_inside_stays(case):
    @settings(max_examples=60)
    @given(directions(case), st.sampled_from(OUTSIDE))
    def check(question, outside):
        domain, c, rng = question
        with interpreted():
            d = c.size
            inner = np.mean([domain.random_point(rng, d) for _ in range(3)], axis=0)
            settled, off = inner.copy(), np.empty(d)
            known = settle(domain, settled, off)
            if not isinstance(domain, Box):  # which clips to its bounds what is outside by rounding
                np.testing.assert_array_equal(settled, inner)
            if not known:
                assert not without_equations(domain)
                assert (off == math.inf).all()
                return
            atom = domain.lmo(c)
            x, size = inner + (atom - inner) * (1.0 + outside), max(np.abs(inner).max(), np.abs(atom).max())
            if not domain.contains(x):
                return
            settled = x.copy()
            assert settle(domain, settled, off)
        assert np.abs(settled - x).max() <= 1e-7 * size
        assert off.max() <= 1e-9 * size
        near = point_near(domain, settled)
        if near is not None:
            hair = Fraction(1, 10**40)  # the roots of the exact answer have sixty digits
            for z, own, room in zip(near, exact(settled), exact(off), strict=True):
                assert abs(z - own) <= room + hair * abs(own)

    check()


def test_a_point_of_a_hull_settles_on_a_mean_of_its_points():
    rng = np.random.default_rng(0)
    for units in (np.ones(3), np.array([1e8, 1.0, 1e-8])):
        hull = Hull(rng.standard_normal((7, 3)) * units)
        for outside in OUTSIDE:
            x = hull.points[2] * (1.0 + outside)
            off = np.empty(3)
            assert settle(hull, x, off)
            assert (np.abs(x - hull.points[2]) <= 2e-9 * np.abs(hull.points[2])).all()
            assert (off <= 1e-12 * np.abs(hull.points).max(axis=0)).all()


class OutOfTheLibrary(NamedTuple):
    radius: float


class Disk(Domain, OutOfTheLibrary):
    """A set as a user registers it."""

    __slots__ = ()
    dimension = 2


class BareDisk(Disk):
    """The same without a projection."""

    __slots__ = ()


@lmo.register(Disk)
def disk_lmo(domain, c, out):
    norm = math.hypot(c[0], c[1])
    for i in range(2):
        out[i] = -domain.radius * c[i] / norm if norm > 0.0 else 0.0


@diameter.register(Disk)
def disk_diameter(domain):
    return 2.0 * domain.radius


@contains.register(Disk)
def disk_contains(domain, x, tol):
    return math.hypot(x[0], x[1]) <= domain.radius * (1.0 + tol)


class Projected(Disk):
    """The same with one."""

    __slots__ = ()


@project.register(Projected)
def disk_project(domain, x, out):
    factor = min(1.0, domain.radius / max(math.hypot(x[0], x[1]), 1e-300))
    for i in range(2):
        out[i] = factor * x[i]


def test_a_set_that_registers_no_proofs_has_safe_ones():
    c, off = np.array([3.0, -4.0]), np.empty(2)
    with interpreted():
        assert Fraction(least(BareDisk(2.0), c)) <= -10
        assert least(BareDisk(2.0), c) == pytest.approx(-10.0, rel=1e-14)
        assert 10.0 <= spread(BareDisk(2.0), np.abs(c)) <= 20.1
        x = np.array([1.0, 0.5])
        assert not settle(BareDisk(2.0), x, off)
        assert (off == math.inf).all()
        assert settle(Projected(2.0), x, off)
        assert x.tolist() == [1.0, 0.5]
        x = np.array([2.0 + 1e-9, 0.0])
        assert settle(Projected(2.0), x, off)
        assert x[0] == pytest.approx(2.0, abs=1e-15)
        assert 0.0 < off.max() < 1e-13


def test_proofs_do_not_depend_on_units():
    units = np.array([1e8, 1.0, 1e-8])
    c = np.array([1.0, -2.0, 0.5])
    corners = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [-1.0, 1.0, 1.0]])
    A = np.array([[0.3, 0.4, -0.5]])
    for made in (
        lambda u: Box(-u, 2.0 * u),
        lambda u: WeightedL1Ball(1.0 / u, 2.0),
        lambda u: Hull(corners * u),
        lambda u: Polytope(A / u, [0.2], bounds=(-u, u)),
    ):
        plain, scaled = made(np.ones(3)), made(units)
        with interpreted():
            assert spread(scaled, np.abs(c / units)) == pytest.approx(spread(plain, np.abs(c)), rel=1e-8)
            assert least(scaled, c / units) == pytest.approx(least(plain, c), rel=1e-8)


def test_numbers_beyond_all_measure_prove_nothing_rather_than_something_false():
    huge = np.array([1e308, -1e308, 1e308, 1.0])
    with interpreted():
        for domain in (L1Ball(1e200), L2Ball(1e200), Box(-huge * np.sign(huge), np.abs(huge)), KSparse(2, 1e200, 4)):
            assert least(domain, huge) == -math.inf
            assert spread(domain, np.abs(huge)) == math.inf
        assert least_value(Spectrahedron(2, 1e200), huge, huge) == -math.inf
        assert least_value(Birkhoff(2), huge, huge) <= minimum(Birkhoff(2), exact(huge))


def test_the_least_eigenvalue_is_bounded_where_lapack_is_wrong_by_rounding():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
        values = np.sort(rng.standard_normal(n))
        matrix = Q @ (values[:, None] * Q.T)
        matrix = 0.5 * (matrix + matrix.T)
        for size in (1.0, 1e-300, 1e300):
            floor = eigenvalue_floor(matrix * size) / size
            assert values[0] - 1e-11 <= floor <= values[0] + 1e-13
    assert eigenvalue_floor(np.zeros((3, 3))) == 0.0
    assert eigenvalue_floor(np.full((2, 2), math.inf)) == -math.inf


def test_points_of_polytopes_with_equations_are_settled_unless_these_depend_on_each_other():
    rng = np.random.default_rng(0)
    for d, unit in [(2, 1.0), (5, 1e-6), (5, 1e6)]:
        units = unit * 10.0 ** rng.integers(-5, 6, d)
        rows = np.vstack([np.ones(d), rng.random(d)])[: d - 1]
        inner = rng.dirichlet(np.ones(d))
        polytope = Polytope(A_eq=rows / units, b_eq=rows @ inner, bounds=(np.zeros(d), np.full(d, np.inf)))
        for _ in range(30):
            x = polytope.random_point(rng) * (1.0 + rng.choice([0.0, 1e-16, 1e-12, 3e-10]))
            if polytope.contains(x):
                settled, off = x.copy(), np.empty(d)
                assert settle(polytope, settled, off)
                assert (off <= 1e-8 * units).all()
                for z, own, room in zip(point_near(polytope, settled), exact(settled), exact(off), strict=True):
                    assert abs(z - own) <= room
    twice = Polytope(A_eq=[[1.0, 1.0], [1.0, 1.0]], b_eq=[1.0, 1.0], bounds=(np.zeros(2), 1.0))
    assert not settle(twice, np.full(2, 0.5), np.empty(2))


def test_parts_that_cannot_be_settled_leave_the_whole_unsettled():
    segment = Polytope(A_eq=[[1.0, 1.0], [1.0, 1.0]], b_eq=[1.0, 1.0], bounds=(np.zeros(2), 1.0))
    x, off = np.full(4, 0.5), np.zeros(4)
    assert not settle(Columns(segment, (2, 2)), x, off)
    assert (off == math.inf).all()


def test_a_capped_simplex_is_never_empty_by_rounding():
    full = CappedSimplex(0.1 * 3, 0.1, 3)
    assert Fraction(full.total) <= 3 * Fraction(full.cap)
    x, off = np.full(3, 0.1), np.empty(3)
    assert settle(full, x, off)
    assert off.max() <= 1e-15


def test_a_simplex_so_small_that_its_points_have_no_digits_is_not_settled():
    off = np.empty(2)
    assert not settle(Simplex(1e-320), np.array([5e-321, 5e-321]), off)
    assert (off == math.inf).all()
