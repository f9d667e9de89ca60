"""What is special about linear inequalities."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import scipy.sparse

from tiebreak import CutStatus
from tiebreak.domains import Birkhoff, Hull, Polytope, Simplex, least_value
from tiebreak.engine.digest import digest


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polytope(), "the dimension is unknown: `A_ub`, `A_eq` or a vector in `bounds` must fix it"),
        (lambda: Polytope(bounds=(0.0, 1.0)), "the dimension is unknown"),
        (lambda: Polytope(A_ub=[[1.0]]), "`A_ub` is given without `b_ub`"),
        (lambda: Polytope(b_eq=[1.0]), "`b_eq` is given without `A_eq`"),
        (lambda: Polytope([1.0, 2.0], [1.0]), r"`A_ub` must be a matrix with one column per variable, .* shape \(2,\)"),
        (lambda: Polytope([[1.0, 2.0]], [1.0, 2.0]), "`b_ub` must be a vector of 1 numbers"),
        (lambda: Polytope([[1.0, math.inf]], [1.0]), "`A_ub` must hold finite numbers"),
        (lambda: Polytope([[1.0]], [math.nan]), "`b_ub` must hold finite numbers"),
        (lambda: Polytope([[1.0]], [1.0], [[1.0, 1.0]], [1.0]), "must agree, but `A_ub` has 1, `A_eq` has 2"),
        (lambda: Polytope(bounds=([0.0, 0.0], [1.0])), r"must agree, but `bounds\[0\]` has 2, `bounds\[1\]` has 1"),
        (lambda: Polytope([[1.0]], [1.0], bounds=3.0), r"`bounds` must be a pair \(lower, upper\), got 3.0"),
        (lambda: Polytope(bounds=([0.0, 2.0], 1.0)), r"lower ≤ upper everywhere, got \(2.0, 1.0\) for variable 1"),
        (lambda: Polytope(bounds=([0.0, math.nan], 1.0)), r"lower ≤ upper everywhere, got \(nan, 1.0\) for variable 1"),
        (lambda: Polytope([[1.0, 1.0]], [-1.0], bounds=(0.0, 1.0)), "the polytope is empty"),
        (lambda: Polytope([[0.0, 0.0]], [-1.0], bounds=(0.0, 1.0)), "the polytope is empty"),
        (lambda: Polytope([[1.0, 0.0]], [1.0], bounds=(0.0, None)), "the polytope is unbounded in variable 1"),
        (lambda: Polytope(A_eq=[[1.0, 1.0]], b_eq=[1.0]), "the polytope is unbounded in variable 0"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def simplex_by_rows(unit=1.0, **options):
    return Polytope(A_eq=np.ones((1, 4)), b_eq=[unit], bounds=(0.0, None), **options)


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1.0, 1e4, 1e9])
def test_a_polytope_of_any_size_is_solved_to_the_last_digits(unit):
    rng = np.random.default_rng(3)
    rows, plain = simplex_by_rows(unit), Simplex(unit)
    for _ in range(30):
        c, a = rng.standard_normal((2, 4))
        b = unit * rng.uniform(a.min(), a.max())
        found, expected = rows.cut_lmo(1e-9 * c, 1e9 * a, 1e9 * b), plain.cut_lmo(1e-9 * c, 1e9 * a, 1e9 * b)
        assert found.status is expected.status
        np.testing.assert_allclose(found.point / unit, expected.point / unit, atol=1e-12)
        assert found.multiplier == pytest.approx(expected.multiplier, rel=1e-9)


def test_loose_rows_and_rows_of_other_sizes_change_nothing():
    rows = np.array([[1e6, 1e6], [1e-6, 0.0], [0.0, 0.0], [1.0, 0.0]])
    triangle = Polytope(scipy.sparse.csr_array(rows), [1e6, 1e-6, 0.0, 1e9], bounds=(0.0, None))
    np.testing.assert_allclose(triangle.lmo([-1.0, -2.0]), [0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(triangle.cut_lmo([-1.0, -2.0], [0.0, 1.0], 0.25).point, [0.75, 0.25], atol=1e-12)
    assert triangle.diameter == pytest.approx(math.sqrt(2.0))  # of the box around it
    assert triangle.contains([0.25, 0.75])
    assert not triangle.contains([0.25, 0.751])
    assert not triangle.contains([-0.001, 0.5])


def test_an_empty_cut_gives_the_point_that_violates_it_least_however_low_it_is():
    square = Polytope(bounds=([0.0, 0.0], 1.0))
    for b in (-1e-6, -1.0, -1e30, -1e300):
        cut = square.cut_lmo([-1.0, -1.0], [1.0, 2.0], b)
        assert cut.status is CutStatus.EMPTY
        np.testing.assert_allclose(cut.point, 0.0, atol=1e-12)
        assert cut.multiplier == math.inf
    at = square.cut_lmo([-1.0, -1.0], [1.0, 2.0], 0.0)
    np.testing.assert_allclose(at.point, 0.0, atol=1e-10)


def test_a_polytope_of_one_point_is_that_point():
    point = Polytope(A_eq=np.eye(2), b_eq=[1.0, 2.0])
    assert point.diameter <= 1e-9
    assert point.lmo([3.0, -1.0]).tolist() == [1.0, 2.0]
    assert point.cut_lmo([3.0, -1.0], [1.0, 0.0], 0.5).status is CutStatus.EMPTY


@pytest.mark.parametrize("again", [lambda domain: domain, copy.deepcopy])
def test_without_warm_start_the_answer_depends_on_the_question_alone(again):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((6, 5))
    questions = rng.integers(-1, 2, (12, 2, 5)) * 10.0 ** rng.integers(-3, 4, (12, 2, 1))  # with ties
    questions[:, 1] *= rng.choice([1.0, 1e-5], (12, 5))
    answers = []
    for order in (range(12), reversed(range(12))):
        domain = again(Polytope(A, np.ones(6), bounds=(-1.0, 1.0), warm_start=False))
        answers.append({k: domain.cut_lmo(*questions[k], -0.1).point.tobytes() for k in order})
    assert answers[0] == answers[1]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda domain: pickle.loads(pickle.dumps(domain))])
def test_a_copy_answers_alike_and_has_a_solver_of_its_own(again):
    first = Polytope([[1.0, 2.0, 0.0]], [1.0], bounds=(0.0, [1.0, 1.0, 2.0]))
    second = again(first)
    c, a = np.array([-1.0, -1.5, 1.0]), np.array([1.0, -1.0, 0.5])
    expected = first.cut_lmo(c, a, 0.1)
    second.cut_lmo(a, c, -0.5)
    np.testing.assert_allclose(first.cut_lmo(c, a, 0.1).point, expected.point, atol=1e-12)
    np.testing.assert_allclose(second.cut_lmo(c, a, 0.1).point, expected.point, atol=1e-12)
    assert second.diameter == first.diameter
    assert repr(second) == "Polytope(dimension=3, rows=1)"


def test_a_cut_next_to_the_free_minimiser_is_the_minimiser():
    """The free atom violates the cut by the last digit, so that there is no number between."""
    matchings, c = Birkhoff(3), np.array([-0.7, 0.4, -1.6, -0.1, 0.9, 0.5, 1.1, -0.3, -0.3])
    rng = np.random.default_rng(0)
    for _ in range(50):
        a = rng.standard_normal(9) * 1e12
        best = matchings.lmo(c)
        cut = matchings.cut_lmo(c, a, float(np.nextafter(a @ best, -np.inf)))
        assert c @ cut.point == pytest.approx(c @ best, rel=1e-12)
        assert not np.isnan(cut.multiplier)


def test_polytopes_of_the_same_size_have_different_fingerprints():
    rows = np.vstack([np.eye(2), -np.eye(2)])
    one, same, other = (Polytope(A_ub=rows, b_ub=np.full(4, side)) for side in (1.0, 1.0, 2.0))
    assert digest(one) == digest(same) != digest(other)


def test_a_hull_and_a_polytope_measure_each_coordinate_in_its_own_unit():
    hull = Hull([[0.0, 0.0], [1e6, 0.0], [0.0, 1e-4], [1e6, 1e-4]])
    polytope = Polytope(bounds=([0.0, 0.0], [1e6, 1e-4]))
    rows = Polytope(np.vstack([np.eye(2), -np.eye(2)]), [1e6, 1e-4, 0.0, 0.0])
    for domain in (hull, polytope, rows):
        assert domain.contains([5e5, 1e-4])
        assert not domain.contains([0.0, 1e-3])
        assert not domain.contains([0.0, 1.0001e-4])
        assert not domain.contains([1e6 + 1.0, 0.0])


@pytest.mark.parametrize("far", [0, 3, 5, 6, 8, 12])
def test_units_of_the_variables_change_nothing(far):
    rng = np.random.default_rng(far)
    for k in range(12):
        A, c, a = rng.standard_normal((3, 4)), rng.standard_normal(4), rng.standard_normal(4)
        inner = rng.uniform(-0.5, 0.5, 4)
        sides = A @ inner + rng.uniform(0.1, 1.0, 3)
        units = 10.0 ** rng.uniform(-far, far, 4)
        equation = {"A_eq": np.ones((1, 4)), "b_eq": [inner.sum()]} if k % 2 else {}
        plain = Polytope(A, sides, **equation, bounds=(-np.ones(4), 1.0))
        if k % 2:
            equation["A_eq"] = np.ones((1, 4)) / units
        scaled = Polytope(A / units, sides, **equation, bounds=(-units, units))
        value = c @ plain.lmo(c)
        assert (c / units) @ scaled.lmo(c / units) == pytest.approx(value, abs=1e-9)
        assert least_value(scaled, c / units, scaled.lower) == pytest.approx(value, abs=1e-9)
        first, second = plain.cut_lmo(c, a, a @ inner), scaled.cut_lmo(c / units, a / units, a @ inner)
        assert first.status is second.status
        assert (c / units) @ second.point == pytest.approx(c @ first.point, abs=1e-9)
        assert first.multiplier == pytest.approx(second.multiplier, abs=1e-7)
        np.testing.assert_allclose(scaled._box / units, plain._box, atol=1e-9)


def test_variables_without_bounds_find_their_units():
    units = np.array([1e7, 1e-7])
    polytope = Polytope(np.vstack([np.eye(2), -np.eye(2), [[0.6, -0.4]]]) / units, [1.0, 1.0, 1.0, 1.0, 0.2])
    assert np.array([-0.2, -0.2]) / units @ polytope.lmo(np.array([-0.2, -0.2]) / units) == pytest.approx(-0.4)
    np.testing.assert_allclose(polytope._box[0] / units, [-1.0, -1.0], rtol=1e-9)
    assert polytope.diameter >= np.linalg.norm(2.0 * units)


def test_an_answer_that_is_none_is_an_error(monkeypatch):
    polytope = Polytope(bounds=(np.zeros(2), 1.0))
    monkeypatch.setattr("tiebreak.domains.polytope.DOUBT", -1.0)
    with pytest.raises(RuntimeError, match="could not minimise over the polytope to seven digits"):
        polytope.lmo([1.0, 1.0])


def test_rows_may_be_none_at_all():
    box = Polytope(np.zeros((0, 2)), np.zeros(0), bounds=(np.zeros(2), 1.0))
    assert box.lmo([1.0, -1.0]).tolist() == [0.0, 1.0]


def test_a_single_point_and_mixed_units_are_polytopes():
    """HiGHS is in doubt of both at first."""
    point = Polytope([[-3.0, 1], [1, -3], [1, 2], [1, 0], [0, 1], [-1, 0], [0, -1]], [-15.0, 5, 5, 6, 6, 6, 6])
    np.testing.assert_allclose(point.lmo(np.array([1.0, 2.0])), [5.0, 0.0], atol=1e-7)
    rows = [
        [-2.86102294921875e-06, 8192.0, 2.0, 524288.0, 12582912.0, -0.015625],
        [0.0, -4096.0, -2.0, 131072.0, -8388608.0, -0.0234375],
        [1.9073486328125e-06, -12288.0, 1.0, 0.0, 8388608.0, 0.03125],
    ]
    low = [122848.0, -0.0004585571587085724, 13.106307983398438, 1.868186518549919e-05, -9.668656275607646e-08, 622.1875]
    high = [
        627952.0,
        -0.0003605969250202179,
        14.088729858398438,
        2.226221840828657e-05,
        -1.801163307391107e-08,
        693.748046875,
    ]
    mixed = Polytope(rows, [20.411605834960938, -37.0289306640625, 40.35093688964844], bounds=(low, high))
    assert mixed.contains(mixed.lmo(np.ones(6)))
    assert mixed.contains(mixed.lmo(-np.ones(6)))


def test_the_middle_does_not_depend_on_earlier_calls():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((3, 4)), rng.uniform(0.1, 1.0, 3)
    polytope = Polytope(A_ub=A, b_ub=b, A_eq=np.ones((1, 4)), b_eq=[0.0], bounds=(-1.0, 1.0))  # Σ x_i is 0 on all of it
    middle = polytope.middle(4)
    for _ in range(5):
        polytope.lmo(rng.standard_normal(4))
    np.testing.assert_array_equal(polytope.middle(4), middle)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(polytope)).middle(4), middle)
    middle[:] = np.nan  # it is the caller's
    assert polytope.contains(polytope.middle(4))
