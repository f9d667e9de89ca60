"""Inputs at the edge: one atom, one variable, one row, copies and zeros, and optima in the interior or at a corner."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest
from stated import assert_accurate, assert_agrees, best, huber, logistic, norm, squares

from tiebreak import (
    Box,
    CappedSimplex,
    Columns,
    Huber,
    Hull,
    L1Ball,
    LeastSquares,
    Logistic,
    Problem,
    Product,
    Simplex,
    SquaredNorm,
    Status,
    UnitSimplex,
    minimize,
)
from tiebreak.engine import interpreted


@pytest.fixture(autouse=True)
def in_python():
    """Small problems over many sets and losses would take long to compile."""
    with interpreted():
        yield


def data(seed: int = 0, n: int = 4, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def ball(x):
    return [cvxpy.norm1(x) <= 1.0]


def solve(upper, lower, domain, epsilon=0.0, **arguments):
    return minimize(Problem(upper, lower, domain, epsilon), "active-set", **arguments)


# One point, one variable, one row

POINT = np.array([1.0, -2.0, 0.5])
POINTS = {
    "hull": Hull(POINT[None]),
    "hull of copies": Hull(np.tile(POINT, (4, 1))),
    "box": Box(POINT, POINT),
    "product": Product(first=(Hull(POINT[None, :2]), 2), second=(Simplex(0.5), 1)),
}


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_a_set_of_one_point_has_that_solution(name, epsilon):
    A, a = data(0, 4, 3)
    result = solve(LeastSquares(A, a), Logistic(A, a > 0), POINTS[name], epsilon)
    np.testing.assert_array_equal(result.x, POINT)
    assert_accurate(result)
    assert result.upper == pytest.approx(result.certificate.floors.upper, rel=1e-13)


@pytest.mark.parametrize(
    "domain", [L1Ball(2.0), Simplex(2.0), UnitSimplex(2.0), Box([-1.0], [2.0]), Hull([[-1.0], [0.3], [2.0]])]
)
@pytest.mark.parametrize("target", [-5.0, 0.1, 5.0])
def test_one_variable(domain, target):
    """g = ½ (3 x − 3 t)² is least at t, moved into the interval."""
    low, high = (float(domain.lmo(np.array([sign]))[0]) for sign in (1.0, -1.0))
    solution = min(max(target, low), high)
    result = solve(SquaredNorm([1.0]), LeastSquares([[3.0]], [3.0 * target]), domain)
    assert result.status is Status.SOLVED
    assert result.x[0] == pytest.approx(solution, abs=1e-5)
    assert result.lower_gap_bound <= 1e-10 * max(result.problem.lower.value([low]), result.problem.lower.value([high]))
    near = solve(SquaredNorm([0.1]), LeastSquares([[1.0]], [target]), domain, 0.02)
    best_lower = 0.5 * (solution - target) ** 2
    reach = math.sqrt(2.0 * (best_lower + 0.02))
    expected = min(max(0.1, target - reach), target + reach)
    assert near.x[0] == pytest.approx(min(max(expected, low), high), abs=1e-6)
    assert near.within is True


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
def test_one_row_above_and_below(epsilon):
    A, a = data(1, 1, 5)
    B, b = data(2, 1, 5)
    for lower in (squares(A, a), logistic(A, a)):
        upper = squares(B, b)
        result = solve(upper.objective, lower.objective, L1Ball(1.0), epsilon)
        assert_accurate(result)
        assert_agrees(result, best(upper, lower, result.problem, ball))


# Copies and zeros


def spoiled(A: np.ndarray, how: str) -> np.ndarray:
    A = A.copy()
    match how:
        case "copied columns":
            A[:, 3] = A[:, 4] = A[:, 1]
        case "opposite columns":
            A[:, 3] = -A[:, 1]
        case "zero columns":
            A[:, [0, 3, 5]] = 0.0
        case "zero rows":
            A[[0, 2]] = 0.0
        case "copied rows":
            A[2:] = A[0]
        case "rank one":
            A[:] = np.outer(A[:, 0], A[0])
        case "zeros alone":
            A[:] = 0.0
        case "whole numbers":
            A = np.sign(A)
    return A


SPOILS = [
    "copied columns",
    "opposite columns",
    "zero columns",
    "zero rows",
    "copied rows",
    "rank one",
    "zeros alone",
    "whole numbers",
]


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
@pytest.mark.parametrize("where", ["above", "below", "both"])
@pytest.mark.parametrize("how", SPOILS)
def test_copies_and_zeros_in_the_data(how, where, epsilon):
    A, a = data(3)
    B, b = data(4, 8)
    lower = squares(spoiled(A, how) if where != "above" else A, a)
    upper = squares(spoiled(B, how) if where != "below" else B, b)
    for domain in (L1Ball(1.0), Columns(L1Ball(1.0), (3, 2))):
        result = solve(upper.objective, lower.objective, domain, epsilon)
        assert_accurate(result)
        if isinstance(domain, L1Ball):
            assert_agrees(result, best(upper, lower, result.problem, ball))


@pytest.mark.parametrize("make", [huber, logistic], ids=["huber", "logistic"])
@pytest.mark.parametrize("how", SPOILS)
def test_copies_and_zeros_in_the_data_of_other_losses(make, how):
    A, a = data(5)
    B, b = data(6, 8)
    for upper, lower in ((make(spoiled(B, how), b), squares(A, a)), (norm(B[0]), make(spoiled(A, how), a))):
        for epsilon in (0.0, 1e-3):
            result = solve(upper.objective, lower.objective, L1Ball(1.0), epsilon)
            assert_accurate(result)
            if epsilon > 0.0:
                assert_agrees(result, best(upper, lower, result.problem, ball))


def test_ties_between_atoms_everywhere():
    """All corners of a simplex are alike to both levels: the middle is the only answer."""
    result = solve(SquaredNorm(np.zeros(7)), LeastSquares(np.ones((1, 7)), [2.0]), Simplex(1.0))
    np.testing.assert_allclose(result.x, 1 / 7, atol=1e-9)
    assert_accurate(result)
    flat = solve(LeastSquares(np.ones((2, 7)), [3.0, 1.0]), LeastSquares(np.ones((1, 7)), [2.0]), Simplex(1.0))
    assert_accurate(flat)
    assert flat.lower == pytest.approx(0.5, rel=1e-14)


# Where the optimum is


def test_an_optimum_in_the_interior():
    A, a = data(7, 9, 4)
    inner = np.linalg.lstsq(A, a, rcond=None)[0]
    result = solve(SquaredNorm(), LeastSquares(A, a), L1Ball(50.0))
    np.testing.assert_allclose(result.x, inner, rtol=1e-5)
    assert_accurate(result, f_unit=1.0)
    tied = solve(SquaredNorm(), LeastSquares(A[:2], a[:2]), L1Ball(50.0))
    np.testing.assert_allclose(tied.x, np.linalg.pinv(A[:2]) @ a[:2], rtol=1e-5)
    assert_accurate(tied, f_unit=1.0)


def test_an_optimum_at_a_corner():
    corner = np.array([0.0, -1.0, 0.0])
    A = np.eye(3)
    result = solve(SquaredNorm([1.0, 1.0, 1.0]), LeastSquares(A, 4.0 * corner), L1Ball(1.0))
    np.testing.assert_array_equal(result.x, corner)
    assert_accurate(result)
    assert result.iterations <= 6


def test_a_first_point_that_is_optimal_already():
    A, a = data(8)
    problem = Problem(SquaredNorm(), LeastSquares(A, a), L1Ball(1.0))
    first = minimize(problem, "active-set")
    again = minimize(problem, "active-set", x0=first.x)
    assert_accurate(again, f_unit=1.0)
    np.testing.assert_allclose(again.x, first.x, atol=1e-7)
    corner = minimize(problem._replace(lower=LeastSquares(np.eye(6), 9.0 * np.eye(6)[2])), "active-set", x0=np.eye(6)[2])
    np.testing.assert_array_equal(corner.x, np.eye(6)[2])


# Levels without shape


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
def test_a_constant_below_leaves_f_alone(epsilon):
    A, a = data(9, 8)
    result = solve(LeastSquares(A, a), LeastSquares(np.zeros((3, 6)), [1.0, 2.0, 3.0]), L1Ball(1.0), epsilon)
    alone = solve(SquaredNorm(), LeastSquares(A, a), L1Ball(1.0))
    assert_accurate(result)
    assert result.upper == pytest.approx(alone.lower, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
def test_a_constant_above_leaves_g_alone(epsilon):
    A, a = data(10, 8)
    result = solve(LeastSquares(np.zeros((1, 6)), [2.0]), LeastSquares(A, a), L1Ball(1.0), epsilon)
    alone = solve(SquaredNorm(), LeastSquares(A, a), L1Ball(1.0))
    assert_accurate(result)
    assert result.upper == 2.0
    assert result.lower <= alone.lower + epsilon + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 1e-2])
def test_zero_everywhere_above_and_below(epsilon):
    nothing = LeastSquares(np.zeros((2, 3)), np.zeros(2))
    result = solve(nothing, nothing, Simplex(1.0), epsilon)
    assert result.status is Status.SOLVED
    assert (result.upper, result.lower) == (0.0, 0.0)
    assert result.upper_gap_bound <= 1e-30


@pytest.mark.parametrize("epsilon", [0.0, 1e-2])
def test_the_same_objective_above_and_below(epsilon):
    A, a = data(11)
    g = LeastSquares(A, a)
    result = solve(g, g, L1Ball(0.5), epsilon)
    assert_accurate(result)
    assert result.upper == result.lower
    assert result.lower_gap_bound <= 1e-6 * g.value(np.zeros(6))  # f asks for more than the tolerance does


def test_a_tolerance_above_all_that_g_varies_by_leaves_f_alone():
    A, a = data(12)
    B, b = data(13, 9)
    result = solve(LeastSquares(B, b), LeastSquares(A, a), L1Ball(1.0), 1e3)
    assert_accurate(result)
    alone = solve(SquaredNorm(), LeastSquares(B, b), L1Ball(1.0))
    assert result.upper == pytest.approx(alone.lower, rel=1e-9)
    assert result.within is True


@pytest.mark.parametrize("epsilon", [1e-14, 1e-18])
def test_a_tolerance_below_rounding_gives_the_exact_tie(epsilon):
    A, a = data(14)
    exact = solve(SquaredNorm(), LeastSquares(A, a), L1Ball(0.7))
    result = solve(SquaredNorm(), LeastSquares(A, a), L1Ball(0.7), epsilon)
    assert result.status is Status.SOLVED
    assert result.lower_gap_bound <= 1e-10
    assert result.upper == pytest.approx(exact.upper, rel=1e-3)
    assert result.certificate.floors.upper <= exact.upper * (1.0 + 1e-5)


# Units


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize("what", ["data", "set", "both levels", "f", "g"])
@pytest.mark.parametrize("share", [0.0, 1e-3])
def test_units_of_ten_to_the_eighth(what, unit, share):
    A, a = data(15)
    B, b = data(16, 8)
    radius, f, g = 1.0, 1.0, 1.0
    match what:
        case "data":
            A, B, radius = A * unit, B * unit, radius / unit
        case "set":
            radius, a, b = radius * unit, a * unit, b * unit
        case "both levels":
            f = g = unit
        case "f":
            f = unit
        case "g":
            g = unit
    upper, lower = f * LeastSquares(B, b), g * LeastSquares(A, a)
    result = solve(upper, lower, L1Ball(radius), share * lower.value(np.zeros(6)))
    assert_accurate(result)


@pytest.mark.parametrize("share", [0.0, 1e-3])
@pytest.mark.parametrize("radius", [1e2, 1e4, 1e6])
def test_a_ball_that_is_much_larger_than_the_solution(radius, share):
    A, a = data(15)
    B, b = data(16, 8)
    lower = LeastSquares(A, a)
    assert_accurate(solve(LeastSquares(B, b), lower, L1Ball(radius), share * lower.value(np.zeros(6))))


@pytest.mark.parametrize(("unit", "share"), [(1e-8, 0.0), (1e-5, 0.0), (1e-5, 1e-3)])
def test_targets_that_are_much_further_away_than_the_set_reaches(unit, share):
    """Both levels are nearly linear, and vary little beside their values."""
    A, a = data(15)
    B, b = data(16, 8)
    upper, lower = LeastSquares(B * unit, b), LeastSquares(A * unit, a)
    result = solve(upper, lower, L1Ball(1.0), share * unit * lower.value(np.zeros(6)))
    assert_accurate(result, f_unit=unit * upper.value(np.zeros(6)))


@pytest.mark.parametrize("share", [0.0, 1e-3])
@pytest.mark.parametrize("decades", [2, 3, 4])
def test_columns_of_very_different_sizes(decades, share):
    A, a = data(17, 5, 8)
    B, b = data(18, 9, 8)
    sizes = 10.0 ** np.linspace(-decades, decades, 8)
    upper, lower = LeastSquares(B * sizes, b), LeastSquares(A * sizes, a)
    result = solve(upper, lower, L1Ball(1.0), share * lower.value(np.zeros(8)))
    assert_accurate(result, f_unit=(10.0 if decades == 4 else 1.0) * upper.value(np.zeros(8)))


def test_huber_with_all_rows_on_its_lines():
    """f is linear wherever it is looked at: its curvature is 0."""
    A, a = data(19)
    B, b = data(20, 8)
    upper = Huber(B, 100.0 * b, delta=0.1)
    result = solve(upper, LeastSquares(A, a), L1Ball(1.0))
    assert_accurate(result)
    below = solve(SquaredNorm(), upper, L1Ball(1.0))
    assert_accurate(below, f_unit=1.0)
    corner = L1Ball(1.0).lmo(upper.value_and_gradient(np.zeros(6))[1])
    np.testing.assert_allclose(below.x, corner, atol=1e-9)


def test_logistic_data_that_can_be_told_apart():
    """g tends to 0 in the direction that tells them apart, and is flat there."""
    rng = np.random.default_rng(21)
    A = rng.standard_normal((10, 3))
    y = np.where(A @ [1.0, -1.0, 0.5] > 0.0, 1, -1)
    for radius in (1.0, 10.0, 30.0):
        result = solve(SquaredNorm(), Logistic(A, y), L1Ball(radius))
        assert result.status is Status.SOLVED
        assert_accurate(result, f_unit=radius**2)


def test_a_capped_simplex_without_room_is_a_point():
    result = solve(SquaredNorm(), LeastSquares([[1.0, 2.0, 3.0]], [1.0]), CappedSimplex(3.0, 1.0, 3))
    np.testing.assert_allclose(result.x, 1.0)
    assert_accurate(result)


def test_a_loss_that_has_all_but_vanished_at_the_first_point():
    """Its gradient is some 1e-109 there, and the cube of that underflows."""
    lower, start = Logistic([[1e4, 0.0]], [1.0]), np.array([0.02591, 0.0])
    assert 0.0 < lower.value(start) < 1e-112
    result = solve(SquaredNorm(np.array([1.0, 0.0])), lower, Columns(L1Ball(1.0), (1, 2)), x0=start)
    np.testing.assert_allclose(result.x, [1.0, 0.0], atol=1e-9)
