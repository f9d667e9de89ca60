"""Bounds are never violated, and shrink."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest
from test_reference import random_problem, two_stages

from tiebreak import SBCGF, FiniteSum, L1Ball, LeastSquares, Problem, SpiderFW, minimize, power
from tiebreak.certificate import evaluate


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(40, 50))
def test_no_bound_is_violated_anywhere_in_the_domain(seed):
    problem, *data = random_problem(seed)
    best_upper, best_lower = two_stages(*data)
    rng = np.random.default_rng(seed)
    units = problem.upper.value(np.zeros(problem.dimension)), problem.lower.value(np.zeros(problem.dimension))
    good = minimize(problem, SpiderFW(step=power(2.0, 1.0, 2.0), level="lower"), max_queries=100_000).x
    floors = evaluate(problem, good).floors
    for k in range(20):
        x = problem.domain.project(good + rng.standard_normal(problem.dimension) * 10.0 ** -rng.uniform(0, 5))
        alone, helped = evaluate(problem, x), evaluate(problem, x, floors)
        for certificate in (alone, helped):
            assert certificate.upper == problem.upper.value(x)
            assert certificate.lower == problem.lower.value(x)
            assert certificate.lower - best_lower <= certificate.lower_bound_gap + 1e-9 * units[1]
            assert certificate.upper - best_upper <= certificate.upper_bound_gap + 1e-6 * units[0]
        assert helped.lower_bound_gap <= alone.lower_bound_gap
        assert helped.upper_bound_gap <= alone.upper_bound_gap + 1e-12
        floors = helped.floors


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_cut_of_one_point_gives_the_bound_of_a_conic_solver():
    problem, *_, radius = random_problem(3)
    x = problem.domain.project(np.random.default_rng(0).standard_normal(problem.dimension))
    f, df = problem.upper.value_and_gradient(x)
    _, dg = problem.lower.value_and_gradient(x)
    s = cvxpy.Variable(x.size)
    model = cvxpy.Problem(cvxpy.Minimize(df @ (s - x)), [cvxpy.norm1(s) <= radius, dg @ (s - x) <= 0])
    model.solve(solver=cvxpy.CLARABEL)
    certificate = evaluate(problem, x)
    assert certificate.stationarity == pytest.approx(-model.value, rel=1e-6)
    assert certificate.upper_bound_gap == pytest.approx(certificate.stationarity)
    assert f == certificate.upper


def test_bounds_shrink_on_a_long_run(problem):
    start = SpiderFW(step=power(2.0, 1.0, 2.0), level="lower")
    history = minimize(problem, SBCGF(step=3e-5, slack=1e-9, initial=start), max_queries=3_000_000).history
    assert history.lower_bound_gap[-1] < 1e-2 * history.lower_bound_gap[0]
    assert history.upper_bound_gap[-1] < 1e-1 * history.upper_bound_gap[0]


def test_an_optimal_point_has_bounds_of_zero():
    # g = ½ (x₁ − 1)² has the minimisers x₁ = 1; f = ½ (x₂ − ½)² picks one of them.
    problem = Problem(LeastSquares([[0.0, 1.0]], [0.5]), LeastSquares([[1.0, 0.0]], [1.0]), L1Ball(3.0))
    certificate = evaluate(problem, np.array([1.0, 0.5]))
    assert (certificate.lower, certificate.upper) == (0.0, 0.0)
    assert certificate.lower_bound_gap == 0.0
    assert certificate.upper_bound_gap == pytest.approx(0.0, abs=1e-15)


def test_f_of_unknown_convexity_gets_no_upper_bound(problem):
    unknown = FiniteSum(12, 18, problem.upper.value_and_gradient)
    certificate = evaluate(problem._replace(upper=unknown), np.zeros(18))
    assert math.isnan(certificate.upper_bound_gap)
    assert certificate.floors.upper == -math.inf
    assert certificate.stationarity > 0
