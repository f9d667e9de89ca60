"""Samples are counted by one rule for all methods: as many as the objectives are asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import linear_data, make_objective

from tiebreak import FiniteSum, L1Ball, LeastSquares, Problem, SquaredNorm, Stream, minimize
from tiebreak.active.levels import Level
from tiebreak.active.terms import Rows
from tiebreak.engine import interpreted
from tiebreak.methods import METHODS
from tiebreak.objectives import draw, uniform_indices


class Counting(FiniteSum):
    """A Python function that writes down what it is asked, and knows its second derivatives, for MNG."""

    def hessian(self):
        A = linear_data(1, n=30)[0]
        return A.T @ A / len(A)


@draw.register(Counting)
def draw_and_count(objective, moment, batch):
    if isinstance(objective.value_and_grad, Function):  # not in the rehearsal, in which nothing is asked
        objective.value_and_grad.drawn += batch.size
    return uniform_indices(moment, objective.n, batch)


class Function:
    """A function that counts the samples that are drawn of it, those that it is asked for, and the calls for all."""

    def __init__(self, objective):
        self.objective, self.drawn, self.asked, self.passes = objective, 0, 0, 0

    def __call__(self, x, indices):
        self.asked += len(indices)
        self.passes += len(indices) == self.objective.n_samples
        return self.objective.value_and_gradient(x, indices)


def counting(objective):
    facts = {name: getattr(objective, name) for name in ("convex", "lipschitz", "strong_convexity", "floor")}
    return Counting(objective.n_samples, objective.dimension, Function(objective), **facts)


@pytest.fixture
def problem():
    upper, lower = LeastSquares(*linear_data(1, n=30)), make_objective("least-squares", seed=2)
    return Problem(counting(upper), counting(lower), L1Ball(2.0))


NO_FUNCTIONS = {"active-set", "bisec-bio", "sample-average"}  # methods that take no Python functions


@pytest.mark.parametrize("start", ["given", "sought"])
@pytest.mark.parametrize("name", sorted(METHODS.keys() - NO_FUNCTIONS))
def test_as_many_samples_are_counted_as_are_drawn_and_asked_for(problem, name, start):
    x0 = problem.domain.project(np.ones(18)) if start == "given" else None
    with interpreted():
        result = minimize(problem, name, x0=x0, max_iterations=23, seed=1, check=False)  # whose calls are no queries
    assert result.iterations == 23
    assert result.queries.total > 0
    for level in ("upper", "lower"):
        objective, records = getattr(problem, level), len(result.history) + (result.last is not result.x)
        n, seen = objective.n, objective.value_and_grad
        assert getattr(result.evaluations, level) == seen.asked - n * records
        assert getattr(result.queries, level) == seen.drawn + n * (seen.passes - records)


def test_the_active_set_is_charged_for_all_its_passes(monkeypatch):
    upper, lower = LeastSquares(*linear_data(1, n=15)), LeastSquares(*linear_data(2, n=12))
    asked = []  # of an objective, by its number of rows
    look, bend_along = Rows.look, Level.bend_along
    monkeypatch.setattr(Rows, "look", lambda rows, *given: asked.append(rows.size) or look(rows, *given))
    monkeypatch.setattr(
        Level, "bend_along", lambda level, way: asked.extend(term.size for term in level.terms) or bend_along(level, way)
    )
    result = minimize(Problem(upper, lower, L1Ball(2.0)), "active-set", check=False)
    surveys = 1  # of f with bounds of its error, where g is least
    assert result.queries == (15 * (asked.count(15) + surveys), 12 * asked.count(12)) == result.evaluations
    assert result.iterations > 3


def test_a_switching_method_is_charged_for_the_level_that_it_asks(problem):
    with interpreted():
        result = minimize(problem, "switching-gradient", max_queries=20_000)
    n, m = problem.upper.n_samples, problem.lower.n_samples
    assert 0 < result.queries.upper < n * result.iterations
    assert result.queries.upper % n == 0
    assert result.queries.lower >= m * result.iterations
    assert result.queries.total > 20_000 - (n + m)
    assert math.isfinite(result.upper)


def rows(rng, size):
    A = rng.standard_normal((size, 4))
    return A, A @ [0.5, 0.0, -0.5, 0.25] + 0.1 * rng.standard_normal(size)


@pytest.mark.parametrize("level", ["upper", "lower"])
@pytest.mark.parametrize("name", ["sbcgi", "sbcgi-m", "ir-scg", "dbgd-sto", "dbgd-storm", "arip-seg"])
def test_nothing_is_drawn_of_what_is_known_exactly(name, level):
    known, stream = SquaredNorm(), Stream.of_rows(rows, 4, lipschitz=1.0)
    upper, lower = (known, stream) if level == "upper" else (stream, known)
    result = minimize(Problem(upper, lower, L1Ball(2.0)), name, max_queries=4000, seed=1, x0=np.zeros(4))
    other = "lower" if level == "upper" else "upper"
    seeks = level == "lower" and name.startswith("sbcgi")  # a first point, by evaluations of g, which count there
    assert getattr(result.queries, level) <= (0.11 * 4000 if seeks else 0)
    assert 3000 <= getattr(result.queries, other) <= 4000
    assert getattr(result.evaluations, level) > 0


def test_where_nothing_is_sampled_evaluations_count_so_that_budgets_end():
    problem = Problem(SquaredNorm(), SquaredNorm([1.0, 0.0]), L1Ball(2.0))
    assert minimize(problem, "dbgd-sto", max_queries=1000).queries.total <= 1000
