"""The path of minimisers of f + λ g: monotone, proven, and with an end."""

from __future__ import annotations

import functools
import math
import signal
import warnings

import cvxpy
import numpy as np
import pytest
from conftest import make_objective
from test_reference import TIGHT

import tiebreak
from tiebreak import Box, FiniteSum, L1Ball, L2Ball, LeastSquares, Logistic, Path, Problem, Simplex, SquaredNorm, minimize
from tiebreak.active.course import Course
from tiebreak.engine import interpreted

RNG = np.random.default_rng(0)
A, a = RNG.standard_normal((5, 9)), RNG.standard_normal(5)
B, b = RNG.standard_normal((12, 9)), RNG.standard_normal(12)
PROBLEM = Problem(LeastSquares(B, b), LeastSquares(A, a), L1Ball(1.5))
LOGISTIC = Problem(make_objective("huber", seed=1), make_objective("logistic", "csr", seed=2), L1Ball(3.0))
TOY = Problem(SquaredNorm(), LeastSquares([[1.0, 3.0]], [1.0]), L1Ball(2.0))


@pytest.fixture(scope="module")
def found() -> Path:
    return tiebreak.path(PROBLEM)


@functools.cache
def least(epsilon: float) -> float:
    """Return f*(ε) of the problem by a conic solver."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        return solved(epsilon)


def solved(epsilon: float) -> float:
    x = cvxpy.Variable(9)
    lower, rows = cvxpy.sum_squares(A @ x - a) / 10, [cvxpy.norm1(x) <= 1.5]
    cvxpy.Problem(cvxpy.Minimize(lower), rows).solve(**TIGHT)
    fit, value = A @ x.value, PROBLEM.lower.value(x.value)
    rows.append(lower <= value + epsilon if epsilon > 0.0 else A @ x == fit)
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(B @ x - b) / 24), rows).solve(**TIGHT)
    return PROBLEM.upper.value(x.value)


# What is on it


@pytest.mark.parametrize("problem", [PROBLEM, LOGISTIC, TOY], ids=["squares", "logistic", "toy"])
def test_f_grows_and_g_falls_with_the_weight(problem):
    walked = tiebreak.path(problem)
    assert len(walked.points) >= 5
    assert (np.diff(walked.weights) > 0.0).all()
    assert math.isinf(walked.weights[-1])
    f_unit, g_unit = problem.upper.value(problem.center) + 1e-3, problem.lower.value(problem.center)
    assert (np.diff(walked.upper[:-1]) >= -1e-9 * f_unit).all()
    assert (np.diff(walked.lower) <= 1e-12 * g_unit).all()
    assert walked.x.shape == (len(walked.points), problem.dimension)
    for point in walked.points:
        assert problem.domain.contains(point.x)
        assert point.upper == pytest.approx(problem.upper.value(point.x), rel=1e-12, abs=1e-18)
        assert point.lower == pytest.approx(problem.lower.value(point.x), rel=1e-12, abs=1e-18)
        assert 1 <= point.atoms <= problem.dimension + 1
    passes = {point.weight: point.passes for point in walked.points}
    assert list(passes.values())[:-1] == sorted(list(passes.values())[:-1])  # in the order in which they were found
    assert passes[math.inf] == min(passes.values())


def test_each_point_is_proven_to_minimise_its_sum(found):
    for point in found.points[:-1]:
        value = point.upper + point.weight * point.lower
        assert point.floor <= value
        assert value - point.floor <= 1e-9 * (
            PROBLEM.upper.value(np.zeros(9)) + point.weight * PROBLEM.lower.value(np.zeros(9))
        )
    assert found.points[-1].floor == -math.inf
    assert found.points[-1].lower_gap_bound <= 1e-12


def test_the_floor_of_every_tolerance_is_true_and_meets_the_frontier(found):
    unit = PROBLEM.upper.value(np.zeros(9))
    for epsilon in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 1.0):
        best = least(epsilon)
        assert found.floor(epsilon) <= best + 1e-6 * unit
        assert found.floor(epsilon) >= best - 0.2 * unit  # between two weights
    floors = [found.floor(epsilon) for epsilon in np.geomspace(1e-9, 1.0, 50)]
    assert (np.diff(floors) <= 0.0).all()
    for point in found.points[1:-1]:  # at their own tolerances the points of the path are the solutions
        epsilon = max(point.lower - found.floors.lower, 0.0)
        assert found.floor(epsilon) <= point.upper + 1e-12 * unit
        assert found.floor(epsilon) >= point.upper - 1e-6 * unit


def test_its_end_is_the_exact_tie(found):
    unit = PROBLEM.upper.value(np.zeros(9))
    assert found.status == "solved: the exact tie is reached, up to the tolerance"
    best = least(0.0)
    assert found.floor() <= best + 1e-6 * unit
    assert found.floor() == pytest.approx(best, abs=1e-5 * unit)
    assert found.floors.upper >= found.floor() - 1e-12
    assert found.upper[-2] == pytest.approx(minimize(PROBLEM, "active-set").upper, abs=2e-5 * unit)


def test_points_of_the_path_are_what_near_ties_ask_for(found):
    unit = PROBLEM.upper.value(np.zeros(9))
    for point in found.points[1:4]:
        epsilon = point.lower - found.floors.lower
        near = minimize(PROBLEM._replace(tolerance=epsilon), "active-set")
        assert near.upper == pytest.approx(point.upper, abs=2e-6 * unit)


def test_closed_form_of_a_toy():
    """x_λ = s (1, 3) with 10 s + 10 λ (10 s − 1) = 0."""
    weights = [0.01, 0.1, 1.0, 10.0, 1e4]
    walked = tiebreak.path(TOY, weights)
    for weight, x in zip(weights, walked.x, strict=False):
        np.testing.assert_allclose(x, weight / (1.0 + 10.0 * weight) * np.array([1.0, 3.0]), rtol=1e-9)
    assert walked.floor() <= 0.05
    for epsilon in (0.0, 1e-6, 1e-3, 0.1):
        assert walked.floor(epsilon) <= 0.05 * (1.0 - math.sqrt(2.0 * epsilon)) ** 2


# What is asked for


def test_weights_are_followed_in_order_and_once():
    walked = tiebreak.path(PROBLEM, weights=[10.0, 0.1, 10.0, 1.0])
    assert walked.weights.tolist() == [0.1, 1.0, 10.0, math.inf]
    assert walked.status == "ended: all weights are done"
    one = tiebreak.path(PROBLEM, weights=[1.0])
    np.testing.assert_allclose(one.x[0], walked.x[1], atol=1e-10)


def test_the_tolerance_of_the_problem_is_left_aside(found):
    near = tiebreak.path(PROBLEM._replace(tolerance=0.1))
    assert near.problem.tolerance == 0.0
    np.testing.assert_array_equal(near.x, found.x)


def test_tolerances_end_the_path_early(found):
    rough = tiebreak.path(PROBLEM, tol=(1e-1, 1e-1))
    assert len(rough.points) < len(found.points)
    assert rough.status.startswith("solved")
    last = rough.points[-2]
    assert abs(last.upper - rough.floors.upper) <= 1e-1
    assert last.lower_gap_bound <= 1e-1


def test_rounding_ends_a_path_whose_tolerances_cannot_be_reached():
    walked = tiebreak.path(PROBLEM, tol=(1e-300, 1e-300))
    assert walked.status in ("ended by rounding: a larger λ proves no more", "ended: all weights are done")
    assert walked.floor() <= least(0.0) + 1e-6
    assert walked.floor() >= least(0.0) - 1e-5


def test_a_first_point_saves_passes(found):
    warm = tiebreak.path(PROBLEM, x0=found.points[-1].x)
    assert warm.points[-1].passes < found.points[-1].passes
    np.testing.assert_allclose(warm.upper, found.upper, atol=1e-8)
    result = minimize(PROBLEM, "active-set")
    again = tiebreak.path(PROBLEM, x0=result)
    np.testing.assert_allclose(again.upper, found.upper, atol=1e-8)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_units_do_not_matter(found, unit):
    scaled = tiebreak.path(Problem(unit * PROBLEM.upper, (1.0 / unit) * PROBLEM.lower, PROBLEM.domain))
    assert len(scaled.points) == len(found.points)
    np.testing.assert_allclose(scaled.upper / unit, found.upper, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(scaled.weights[:-1] / unit**2, found.weights[:-1], rtol=1e-6)


OTHERS = {
    "simplex": Problem(SquaredNorm(), LeastSquares(A, a), Simplex(1.0)),
    "box": Problem(Logistic(B, b > 0), LeastSquares(A, a), Box(-np.ones(9), np.ones(9))),
    "slack ball": Problem(Logistic(B, b > 0), LeastSquares(A, a), L1Ball(9.0)),
}


@pytest.mark.parametrize("problem", OTHERS.values(), ids=OTHERS.keys())
def test_other_sets(problem):
    with interpreted():
        walked = tiebreak.path(problem)
        result = minimize(problem, "active-set")
    assert walked.status == "solved: the exact tie is reached, up to the tolerance"
    assert walked.floor() == pytest.approx(result.upper, abs=1e-4)


# Degenerate ones


def test_levels_that_are_alike_or_constant():
    with interpreted():
        same = tiebreak.path(Problem(PROBLEM.lower, PROBLEM.lower, PROBLEM.domain))
        constant = tiebreak.path(Problem(PROBLEM.upper, LeastSquares(np.zeros((1, 9)), [1.0]), PROBLEM.domain))
        point = tiebreak.path(Problem(PROBLEM.upper, PROBLEM.lower, Box(np.ones(9), np.ones(9))))
    assert np.ptp(same.lower) <= 1e-9
    np.testing.assert_allclose(constant.lower, 0.5)
    assert constant.floor() == pytest.approx(constant.upper[0], rel=1e-6)
    assert point.floor() == pytest.approx(PROBLEM.upper.value(np.ones(9)), rel=1e-9)
    for walked in (same, constant, point):
        assert walked.table()


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": []}, "`weights` must be a non-empty vector, got"),
        ({"weights": [0.0, 1.0]}, "`weights` must be positive numbers, got"),
        ({"weights": [-1.0]}, "`weights` must be positive numbers, got"),
        ({"weights": [math.inf]}, "`weights`"),
        ({"weights": [math.nan]}, "`weights`"),
        ({"weights": "many"}, "`weights`"),
        ({"weights": 3.0}, "`weights`"),
        ({"tol": (0.0, 1.0)}, "`tol`"),
        ({"tol": (1.0, -1.0)}, "`tol`"),
        ({"tol": 1.0}, "`tol`"),
        ({"tol": (1.0,)}, "`tol`"),
        ({"x0": np.full(9, 7.0)}, "`x0`"),
        ({"progress": "yes"}, "`progress`"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        tiebreak.path(PROBLEM, **arguments)


def test_bad_tolerances_of_floors_are_named(found):
    for value in (-1.0, math.nan, "small"):
        with pytest.raises(ValueError, match="`tolerance`"):
            found.floor(value)


def test_problems_that_the_active_set_does_not_take_are_refused():
    with pytest.raises(ValueError, match="the method 'active-set' needs a set that is the hull of its corners"):
        tiebreak.path(PROBLEM._replace(domain=L2Ball(1.0)))
    function = FiniteSum(1, 9, lambda x, indices: (float(x @ x), 2.0 * x), convex=True)
    with pytest.raises(ValueError, match="the curvature of the upper objective"):
        tiebreak.path(PROBLEM._replace(upper=function))
    with pytest.raises(ValueError, match="`problem`"):
        tiebreak.path("this")


# Ctrl-C


@pytest.mark.parametrize("stage", [2, 5])
def test_ctrl_c_keeps_the_points_that_are_done(stage, found, monkeypatch):
    aims, aim = [], Course.aim

    def pressed(self, weight):
        aims.append(weight)
        if len(aims) == stage + 1:
            signal.raise_signal(signal.SIGINT)
        aim(self, weight)

    monkeypatch.setattr(Course, "aim", pressed)
    walked = tiebreak.path(PROBLEM)
    assert walked.status == "interrupted: Ctrl-C was pressed"
    assert len(walked.points) == stage
    np.testing.assert_array_equal(walked.x[:-1], found.x[: stage - 1])
    assert walked.floor(0.1) <= least(0.1) + 1e-6


def test_ctrl_c_before_the_first_point_is_raised(monkeypatch):
    def pressed(self, weight):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Course, "aim", pressed)
    with pytest.raises(KeyboardInterrupt):
        tiebreak.path(PROBLEM)


# How it is shown


def test_it_prints_as_a_table(found):
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["λ", "f", "g"]
    assert len(lines) == len(found.points) + 2
    assert lines[-1] == found.status
    assert repr(found) == found.table() == str(found)
    assert {len(line) for line in lines[:-1]} == {len(lines[0])}
    assert lines[-2].split()[0] == "inf"
    assert "–" in lines[-2]


def test_it_is_drawn(found):
    curve_label, floor_label = "f at the points of the path", "proven: f is no less"
    figure = found.plot()
    axes = figure.axes[0]
    assert {line.get_label() for line in axes.lines} == {curve_label, floor_label, "the same for the exact tie"}
    curve = next(line for line in axes.lines if line.get_label() == curve_label)
    np.testing.assert_array_equal(curve.get_ydata(), found.upper[:-1])
    floor = next(line for line in axes.lines if line.get_label() == floor_label)
    assert (np.diff(floor.get_ydata()) <= 0.0).all()


def test_progress_is_shown_when_asked_for_and_silent_otherwise(capfd):
    tiebreak.path(TOY, [1.0], progress=False)
    assert capfd.readouterr().err == ""
    tiebreak.path(TOY, [1.0], progress=True)
    assert "2/2 weights" in capfd.readouterr().err
