"""Certificates along the path of minimisers of f + λ g: true at any point, and sharp."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from conftest import make_objective

from tiebreak import (
    Box,
    FiniteSum,
    Huber,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    Problem,
    Result,
    Simplex,
    SquaredNorm,
    certify,
    minimize,
)
from tiebreak.active import solver
from tiebreak.active.course import Course
from tiebreak.engine import interpreted
from tiebreak.proofs import along


def data(seed: int, n: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


B, b = data(1, 12)
A, a = data(2, 4)
NORM = SquaredNorm(np.ones(18))
PROBLEMS = {
    "squares over squares": Problem(LeastSquares(B, b), LeastSquares(A, a), L1Ball(1.0)),
    "norm over squares": Problem(SquaredNorm(np.ones(8)), LeastSquares(A, a), Simplex(1.0)),
    "huber over logistic": Problem(Huber(B, b, delta=0.3), Logistic(A, a > 0), L1Ball(2.0)),
    "logistic over squares": Problem(Logistic(B, b > 0), LeastSquares(A, a), Box(-np.ones(8), 0.5 * np.ones(8))),
    "sum over csr": Problem(
        SquaredNorm(np.ones(18)) + 0.5 * make_objective("huber"), make_objective("logistic", "csr"), L1Ball(2.0)
    ),
}
EPSILONS = (0.0, 1e-3)
CHOICES = [(name, share) for name in PROBLEMS for share in EPSILONS]


@functools.cache
def solved(name: str, share: float) -> Result:
    """Return the solution with a tolerance that is a share of g at the middle of the set."""
    problem = PROBLEMS[name]
    with interpreted():
        return minimize(problem._replace(tolerance=share * problem.lower.value(problem.center)), "active-set")


@pytest.mark.parametrize(("name", "share"), CHOICES)
def test_the_solution_is_certified_sharply_without_what_its_run_proved(name, share):
    result = solved(name, share)
    problem, unit = result.problem, result.problem.upper.value(result.problem.center)
    with interpreted():
        found = certify(problem, result.x, bundle=20)
    assert found.lower_gap_bound <= share * problem.lower.value(problem.center) + 1e-10
    assert abs(found.upper_gap_bound) <= 1e-5 * unit
    assert found.floors.upper == pytest.approx(result.certificate.floors.upper, abs=1e-5 * unit)
    assert found.within is (True if share > 0.0 else found.within)
    assert (found.upper, found.lower) == pytest.approx((result.upper, result.lower), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("name", "share"), CHOICES)
def test_bounds_of_any_point_are_true_and_nearly_what_they_bound(name, share):
    result = solved(name, share)
    problem = result.problem
    best, least = result.certificate.floors.upper, result.certificate.floors.lower
    f_unit, g_unit = problem.upper.value(problem.center), problem.lower.value(problem.center)
    rng = np.random.default_rng(0)
    for step in (1.0, 1e-2, 1e-4, 1e-8):
        x = result.x + step * (problem.domain.random_point(rng, problem.dimension) - result.x)
        with interpreted():
            found = certify(problem, x, bundle=20)
        f_gap, g_gap = problem.upper.value(x) - best, problem.lower.value(x) - least
        assert found.upper_gap_bound >= f_gap - 1e-5 * f_unit
        assert found.lower_gap_bound >= g_gap - 1e-12 * g_unit
        assert abs(found.upper_gap_bound - f_gap) <= 10.0 * max(abs(f_gap), 1e-6 * f_unit)
        assert found.lower_gap_bound <= 10.0 * g_gap + 1e-10 * g_unit
        np.testing.assert_array_equal(found.x, x)


def test_more_looks_prove_no_less_and_soon_all():
    problem = PROBLEMS["squares over squares"]
    x = np.full(8, 0.05)
    with interpreted():
        bounds = [certify(problem, x, bundle=looks) for looks in (1, 2, 3, 5, 10, 40)]
    upper, lower = ([getattr(found, f"{name}_gap_bound") for found in bounds] for name in ("upper", "lower"))
    assert (np.diff(upper) <= 0.0).all()
    assert (np.diff(lower) <= 0.0).all()
    best = solved("squares over squares", 0.0)
    assert upper[-1] == pytest.approx(problem.upper.value(x) - best.upper, abs=1e-5)
    assert lower[1] == pytest.approx(problem.lower.value(x) - best.lower, abs=1e-10)  # the first look minimises g


def test_passes_are_limited_by_the_bundle(monkeypatch):
    cycles, cycle = [], Course.cycle
    monkeypatch.setattr(Course, "cycle", lambda self: cycles.append(1) or cycle(self))
    with interpreted():
        for bundle in (2, 3, 6):
            cycles.clear()
            certify(PROBLEMS["huber over logistic"], np.zeros(8), bundle=bundle)
            assert 0 < len(cycles) <= along.CYCLES_PER_LOOK * (bundle - 1)
        cycles.clear()
        certify(PROBLEMS["huber over logistic"], np.zeros(8))
        assert not cycles  # one half-space is that of the point


def test_half_spaces_and_multipliers_prove_the_bound():
    problem = PROBLEMS["squares over squares"]
    best = solved("squares over squares", 0.0)
    with interpreted():
        found = certify(problem, np.full(8, 0.05), bundle=10)
    assert len(found.cuts) == len(found.multipliers) > 0
    for normal, offset in found.cuts:
        assert normal @ best.x <= offset + 1e-9
    assert (found.multipliers >= 0.0).all()
    assert found.multipliers.max() > 0.0


def test_what_is_known_already_is_kept():
    problem, best = PROBLEMS["squares over squares"], solved("squares over squares", 0.0)
    floors = best.certificate.floors
    with interpreted():
        found = certify(problem, np.zeros(8), bundle=2, floors=floors)
        again = certify(problem, best, bundle=3)
    assert found.floors.upper >= floors.upper
    assert found.floors.lower >= floors.lower
    assert again.upper_gap_bound <= best.upper_gap_bound
    assert again.lower_gap_bound <= best.lower_gap_bound


def test_points_that_are_given_are_looked_at_and_counted(monkeypatch):
    problem, best = PROBLEMS["squares over squares"], solved("squares over squares", 0.0)
    looks, examine = [], along.examine
    monkeypatch.setattr(along, "examine", lambda *arguments: looks.append(1) or examine(*arguments))
    with interpreted():
        found = certify(problem, np.zeros(8), bundle=4, points=[best.x])
    assert len(looks) <= 2
    assert found.floors.best_lower <= best.lower + 1e-12


def test_that_a_point_is_within_its_tolerance_is_decided_where_one_look_cannot():
    problem = PROBLEMS["squares over squares"]
    least = solved("squares over squares", 0.0).certificate.floors.lower
    outer = np.full(8, 0.05)
    excess = problem.lower.value(outer) - least
    with interpreted():
        for factor, decided in ((1.01, True), (0.99, False)):
            near = problem._replace(tolerance=factor * excess)
            assert certify(near, outer).within is None
            assert certify(near, outer, bundle=5).within is decided


def test_more_atoms_than_can_be_kept_leave_it_to_a_bundle(monkeypatch):
    monkeypatch.setattr(solver, "MOST_ATOMS", 1)
    problem, best = PROBLEMS["squares over squares"], solved("squares over squares", 0.0)
    with interpreted():
        one, found = certify(problem, np.zeros(8)), certify(problem, np.zeros(8), bundle=4)
    assert found.upper_gap_bound <= one.upper_gap_bound
    assert found.floors.upper <= best.upper + 1e-6
    assert len(found.cuts) == 4


@pytest.mark.parametrize(
    "problem",
    [
        Problem(LeastSquares(B, b), LeastSquares(A, a), L2Ball(1.0)),
        Problem(FiniteSum(1, 8, lambda x, i: (float(x @ x), 2.0 * x), convex=True), LeastSquares(A, a), L1Ball(1.0)),
    ],
    ids=["no corners", "a function"],
)
def test_problems_that_the_active_set_does_not_take_are_left_to_a_bundle(problem, monkeypatch):
    def never(*arguments):
        raise AssertionError("a path was followed")

    monkeypatch.setattr(along, "Course", never)
    with interpreted():
        found = certify(problem, np.zeros(8), bundle=4)
    assert len(found.cuts) == 4
    assert math.isfinite(found.upper_gap_bound)
