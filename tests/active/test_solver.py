"""Minimisers of weighted sums of two levels: gaps that are true, atoms that come and go, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, COMPOSED
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak import Box, Huber, L1Ball, LeastSquares, Logistic, Problem, Simplex, SquaredNorm
from tiebreak.active import solver as module
from tiebreak.active.solver import Solver, TooManyAtomsError
from tiebreak.domains.atoms import has_vertices
from tiebreak.domains.rounding import quiet
from tiebreak.engine import interpreted

SETS = [case for case in [*CASES, *COMPOSED] if has_vertices(case.make(np.random.default_rng(0), 4)[0])]


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


def data(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


@quiet
def run(solver: Solver, most: int = 300) -> int:
    """Cycle to the end; return the number of cycles."""
    for k in range(most):
        if solver.cycle():
            return k + 1
    raise AssertionError("it does not end")


def gap(problem: Problem, x: np.ndarray, weight: tuple[float, float]) -> float:
    """Return the Frank-Wolfe gap of α f + β g at a point."""
    slope = sum(
        w * level.value_and_gradient(x)[1]
        for w, level in zip(weight, (problem.upper, problem.lower), strict=True)
        if w > 0.0
    )
    return float(slope @ (x - problem.domain.lmo(slope)))


def span(problem: Problem, weight: tuple[float, float]) -> float:
    """Return how much α f + β g varies between the middle of the set and some corners."""
    d = problem.dimension
    points = [problem.center, *(problem.domain.lmo(c) for c in (*np.eye(d), *-np.eye(d)))]
    values = [weight[0] * problem.upper.value(x) + weight[1] * problem.lower.value(x) for x in points]
    return max(np.ptp(values), 1e-12 * max(map(abs, values)))


def make_loss(draw: np.random.Generator, d: int, size: float) -> object:
    """Return a loss of data with copies, zeros and whole numbers now and then."""
    n = int(draw.choice([1, 2, 5, 12]))
    A, b = draw.standard_normal((n, d)) / size, draw.standard_normal(n)
    if draw.random() < 0.3:
        A = np.sign(A) / size
    if draw.random() < 0.3:
        A[:, draw.integers(d)] = A[:, draw.integers(d)]
    if draw.random() < 0.2:
        A[draw.integers(n)] = 0.0
    if draw.random() < 0.2:
        b[:] = 0.0
    match int(draw.integers(5)):
        case 0:
            return SquaredNorm(size * draw.standard_normal(d))
        case 1:
            return Huber(A, b, delta=float(10.0 ** draw.uniform(-2, 1)))
        case 2:
            return Logistic(A, np.where(b > 0.0, 1.0, -1.0))
        case 3:
            return 2.0 * LeastSquares(A, b) + 0.1 * SquaredNorm(np.zeros(d))
    return LeastSquares(A, b)


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_the_minimiser_of_any_sum_has_no_gap(seed):
    rng = np.random.default_rng(seed)
    case = SETS[rng.integers(len(SETS))]
    domain, d = case.make(rng, int(rng.integers(1, min(7, case.largest) + 1)))
    size = float(domain.diameter)
    problem = Problem(make_loss(rng, d, size or 1.0), make_loss(rng, d, size or 1.0), domain)
    solver = Solver(problem, domain.random_point(rng, d))
    for weight in ((0.0, 1.0), (1.0, 10.0 ** rng.uniform(-3, 3)), (10.0 ** rng.uniform(-6, 0), 1.0)):
        solver.aim(weight)
        run(solver)
        x = solver.x
        assert case.violation(domain, x) <= 1e-11
        assert gap(problem, x, weight) <= 1e-9 * span(problem, weight) + 1e-13 * weight[0] + 1e-13 * weight[1]


@pytest.mark.parametrize("kind", ["squares", "logistic", "huber"])
def test_the_gap_of_each_cycle_is_that_of_its_point_and_bounds_the_distance_from_the_minimum(kind):
    A, a = data(0, 9, 12)
    lower = {"squares": LeastSquares(A, a), "logistic": Logistic(A, a > 0), "huber": Huber(A, a, delta=0.2)}[kind]
    problem = Problem(SquaredNorm(np.linspace(-1.0, 1.0, 12)), lower, L1Ball(3.0))
    weight, seen = (0.3, 1.0), []
    solver = Solver(problem, problem.center)
    solver.aim(weight)
    done = False
    while not done:
        x = solver.x
        done = solver.cycle()
        assert solver.gap == pytest.approx(gap(problem, x, weight), rel=1e-9, abs=1e-14)
        assert solver.seen.f == pytest.approx(problem.upper.value(x), rel=1e-12)
        assert solver.seen.g == pytest.approx(problem.lower.value(x), rel=1e-12)
        seen.append((weight[0] * solver.seen.f + weight[1] * solver.seen.g, solver.gap))
    values, gaps = np.array(seen).T
    assert (np.diff(values) <= 1e-12).all()
    assert (values - values[-1] <= gaps + 1e-12).all()
    assert len(values) <= 30


def test_squares_end_in_few_cycles_and_a_new_weight_is_warm():
    problem = Problem(LeastSquares(*data(1, 30, 80)), LeastSquares(*data(2, 40, 80)), L1Ball(3.0))
    solver = Solver(problem, problem.center)
    first = run(solver)
    assert first <= 25
    solver.aim((1e-3, 1.0))
    assert run(solver) <= first
    assert solver.passes[1] >= solver.passes[0] > 0


def test_a_level_of_no_weight_is_not_looked_at():
    problem = Problem(LeastSquares(*data(1, 5, 8)), LeastSquares(*data(2, 6, 8)), L1Ball(1.0))
    solver = Solver(problem, problem.center)
    run(solver)
    assert solver.passes[0] == 0
    assert solver.passes[1] > 0
    solver.aim((1.0, 0.0))
    before = solver.passes[1]
    run(solver)
    assert solver.passes[1] == before
    assert gap(problem, solver.x, (1.0, 0.0)) <= 1e-13


def test_x_is_a_mean_of_atoms_with_weights_that_sum_to_one_in_each_block():
    problem = Problem(SquaredNorm(np.full(5, 0.4)), LeastSquares(*data(3, 2, 5)), Box(-np.ones(5), np.ones(5)))
    solver = Solver(problem, problem.domain.random_point(np.random.default_rng(0), 5))
    for weight in ((0.0, 1.0), (1.0, 1.0)):
        solver.aim(weight)
        run(solver)
        np.testing.assert_allclose(np.bincount(solver.slots.blocks, solver.weights), 1.0, rtol=1e-14)
        assert (solver.weights >= 0.0).all()
        assert 5 <= solver.atoms <= 10
        np.testing.assert_array_equal(solver.x, solver.slots.point(solver.weights))


def test_a_first_point_is_where_it_begins():
    problem = Problem(SquaredNorm(), LeastSquares(*data(4, 3, 6)), L1Ball(2.0))
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = problem.domain.random_point(rng, 6)
        np.testing.assert_allclose(Solver(problem, x).x, x, atol=1e-15)


def test_idle_atoms_are_forgotten_when_there_are_many(monkeypatch):
    problem = Problem(SquaredNorm(), LeastSquares(*data(5, 20, 60)), L1Ball(1.0))
    monkeypatch.setattr(module, "LEAST_IDLE", 4)
    monkeypatch.setattr(module, "IDLE_SHARE", 0.1)
    solver = Solver(problem, problem.center)
    plain = Solver(problem, problem.center)
    run(solver)
    assert len(solver.slots) - solver.atoms <= 5
    monkeypatch.undo()
    run(plain)
    np.testing.assert_allclose(solver.x, plain.x, atol=1e-9)


def test_more_atoms_than_can_be_kept_are_an_error_that_names_other_methods(monkeypatch):
    monkeypatch.setattr(module, "MOST_ATOMS", 5)
    problem = Problem(SquaredNorm(), LeastSquares(*data(6, 20, 20)), L1Ball(100.0))
    with pytest.raises(TooManyAtomsError, match="more than 5 active atoms, .*: take 'pb-apg' or 'cg-bio'"):
        run(Solver(problem, problem.center))


def test_a_gap_that_is_small_enough_ends_the_cycles_earlier():
    problem = Problem(SquaredNorm(), Logistic(data(7, 40, 30)[0], data(7, 40, 30)[1] > 0), L1Ball(5.0))
    rough, fine = Solver(problem, problem.center), Solver(problem, problem.center)
    rough.aim((0.0, 1.0), enough=1e-3)
    assert run(rough) < run(fine)
    assert rough.gap <= 1e-3
    assert fine.gap <= 1e-12


@pytest.mark.parametrize("kind", ["squares", "logistic"])
def test_what_is_stored_goes_on_with_the_same_bits(kind):
    A, a = data(8, 12, 20)
    lower = LeastSquares(A, a) if kind == "squares" else Logistic(A, a > 0)
    problem = Problem(SquaredNorm(np.ones(20)), lower, Simplex(4.0))
    solver, whole = (Solver(problem, problem.center) for _ in range(2))
    for each in (solver, whole):
        each.aim((1e-2, 1.0))
    run(whole)
    done = False
    while not done:
        done = solver.cycle()
        arrays = {name: array.copy() for name, array in solver.stored().items()}
        solver = Solver(problem, np.full(20, 0.2))
        solver.restore(arrays)
    assert solver.x.tobytes() == whole.x.tobytes()
    assert solver.gap == whole.gap
    assert solver.passes.tolist() == whole.passes.tolist()
