"""The way to the minimisers of g along x_λ, where g alone takes many cycles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import Box, L1Ball, LeastSquares, Problem, SquaredNorm, Status, minimize
from tiebreak.active import detour
from tiebreak.active.course import Course
from tiebreak.engine import interpreted

SIDE = 100


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


def smoothing(lower: float = -1.0) -> Problem:
    """An integral equation with a smooth kernel: g is nearly flat along most directions. The tie is that next to 1."""
    grid = (np.arange(SIDE) + 0.5) / SIDE
    kernel = np.exp(-30.0 * (grid[:, None] - grid) ** 2)
    b = kernel @ np.sin(3.0 * grid)
    return Problem(SquaredNorm(np.ones(SIDE)), LeastSquares(kernel, b), Box(lower, 2.0, dimension=SIDE))


def followed(problem: Problem) -> tuple[Course, list[float]]:
    """Return a course at its end, and λ where it arrived."""
    course, weights = Course(problem, problem.center), []
    for _ in range(2000):
        course.cycle()
        if course.arrived:
            weights.append(course.weight)
        if course.finished:
            return course, weights
    raise AssertionError("it does not end")


def test_where_g_alone_stalls_growing_weights_come_before_its_minimiser():
    course, weights = followed(smoothing())
    again = weights.index(math.inf, 1)
    assert weights[0] == math.inf
    assert again >= 3
    np.testing.assert_allclose(np.diff(np.log(weights[1:again])), math.log(detour.GROWTH))
    assert weights[again + 1] == weights[again - 1]  # it continues where the detour ended
    assert course.detour.kept is None


def passes_until_close(problem: Problem, f: float) -> int:
    """Return the passes over g after which the answer was first good at both levels."""
    course = Course(problem, problem.center)
    while not course.finished:
        course.cycle()
        x = course.answer
        if abs(problem.upper.value(x) - f) <= 0.01 * f and problem.lower.value(x) <= 1e-3:
            return int(course.solver.passes[1])
    raise AssertionError("it never was")


def test_a_detour_leads_to_the_same_answer_and_sooner_near_to_it(monkeypatch):
    problem = smoothing()
    answers, passes = [], []
    for patience in (detour.PATIENCE, 10**9):
        monkeypatch.setattr(detour, "PATIENCE", patience)
        course, _ = followed(problem)
        assert (course.detour.weight > 0.0) == (patience < 10**9)
        assert problem.lower.value(course.answer) <= 1e-14
        answers.append(problem.upper.value(course.answer))
        passes.append(passes_until_close(problem, answers[0]))
    assert answers[0] == pytest.approx(answers[1], rel=1e-4)
    assert passes[0] < passes[1]


def test_the_answer_on_the_way_back_to_g_alone_is_that_at_the_end_of_the_detour():
    course = Course(smoothing(), np.full(SIDE, 0.5))
    seen, at_end = 0, None
    while not course.finished:
        course.cycle()
        if course.detour.kept is None:
            continue
        at_end = course.answer.copy() if at_end is None else at_end
        if not course.arrived:
            seen += 1
            np.testing.assert_array_equal(course.answer, at_end)
    assert seen > 0


def test_a_course_that_was_stored_on_a_detour_goes_on_with_the_same_bits():
    problem = smoothing()
    whole, _ = followed(problem)
    course, stages = Course(problem, problem.center), set()
    while not course.finished:
        course.cycle()
        stages.add((course.detour.taken, course.detour.kept is not None))
        arrays = {name: array.copy() for name, array in course.stored().items()}
        course = Course(problem, np.zeros(SIDE))
        course.restore(arrays)
    assert {(True, False), (False, True), (False, False)} <= stages
    assert course.answer.tobytes() == whole.answer.tobytes()
    assert course.solver.passes.tolist() == whole.solver.passes.tolist()


@pytest.mark.parametrize("change", [{"tolerance": 1e-3}, {"keep": 0.9}])
def test_near_ties_and_g_alone_take_no_detour(change):
    assert not Course(smoothing()._replace(**change), np.zeros(SIDE)).detour.possible
    assert not Course(smoothing(), np.zeros(SIDE), alone=True).detour.possible


def test_there_is_no_detour_where_g_alone_arrives_soon():
    rng = np.random.default_rng(0)
    problem = Problem(SquaredNorm(), LeastSquares(rng.standard_normal((4, 8)), rng.standard_normal(4)), L1Ball(1.0))
    _, weights = followed(problem)
    assert weights[0] == math.inf
    assert all(math.isfinite(weight) for weight in weights[1:])


def test_there_is_no_detour_where_f_is_least_already():
    problem = smoothing()
    flat = problem._replace(upper=0.0 * problem.upper)
    course, weights = followed(flat)
    assert all(math.isinf(weight) or weight == 0.0 for weight in weights)
    assert problem.lower.value(course.answer) <= 1e-14


def test_a_run_with_a_detour_proves_as_much_as_one_without(monkeypatch):
    problem, bounds = smoothing(), []
    for patience in (detour.PATIENCE, 10**9):
        monkeypatch.setattr(detour, "PATIENCE", patience)
        result = minimize(problem, "active-set", max_queries=30_000)
        assert result.status is Status.SOLVED
        bounds.append(result.lower_gap_bound)
    assert bounds[0] <= max(10.0 * bounds[1], 1e-13)
