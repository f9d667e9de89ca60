"""Every method with a level takes near ties: what it finds there, and what is proven of it."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from cases import CASES
from stated import solve, squares

from tiebreak import METHODS, PBAPG, Box, L1Ball, LeastSquares, Problem, Simplex, SquaredNorm, Status, certify, minimize
from tiebreak.engine import interpreted

NEAR = {  # methods, and how much of what a tolerance buys is left at most, after 6000 samples
    "active-set": 1e-6,
    "pb-apg": 0.3,
    "pavr": 0.3,
    "fc-bio": 0.15,
    "cg-bio": 0.03,
    "sbcgf": 0.2,
    "sbcgi": 0.7,
    "sbcgf-m": 0.05,
    "sbcgi-m": 0.95,
    "dbgd": 0.8,
    "dbgd-sto": 0.95,
    "dbgd-storm": 0.8,
    "dbgd-spider": 0.8,
    "switching-gradient": 0.4,
}
PLACES = [(L1Ball(1.0), {"tolerance": 1e-3}), (Simplex(1.0), {"keep": 0.98}), (Box(-0.3, 0.4, 6), {"keep": 0.98})]
rng = np.random.default_rng(4)
UPPER, LOWER = (squares(rng.standard_normal((n, 6)), rng.standard_normal(n)) for n in (8, 5))


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


def test_all_methods_that_say_so_are_looked_at():
    assert {name for name, method in METHODS.items() if method.near_ties} >= {*NEAR, "auto"}


def truth(problem: Problem) -> tuple[float, float, float]:
    """Return f*(ε), g* and ε, by a conic solver."""
    case = next(case for case in CASES if case.name == type(problem.domain).__name__)
    x = cvxpy.Variable(problem.dimension)
    rows = case.constraints(problem.domain, x)
    solve(LOWER.expression(x), rows)
    least = problem.lower.value(x.value)
    epsilon = problem.tolerance or (1.0 - problem.keep) * (problem.lower.value(problem.reference) - least)
    solve(UPPER.expression(x), [*rows, LOWER.expression(x) <= least + epsilon])
    return problem.upper.value(x.value), least, epsilon


@pytest.mark.parametrize(("domain", "allowed"), PLACES, ids=["L1Ball", "Simplex", "Box"])
def test_every_method_comes_near_the_optimum_and_is_proven_to_keep_the_level(domain, allowed):
    problem = Problem(UPPER.objective, LOWER.objective, domain, **allowed)
    best, least, epsilon = truth(problem)
    unit, bought = problem.upper.value(problem.center), minimize(problem.exact, "active-set").upper - best
    assert bought > 0.01 * unit
    for name, share in NEAR.items():
        result = minimize(problem, name, max_queries=6000)
        assert result.within is True, name
        assert result.lower <= least + epsilon * (1.0 + 1e-6), name
        assert result.tolerance == pytest.approx(epsilon, rel=1e-3), name
        assert -1e-6 * unit <= result.upper - best <= share * bought + 1e-8 * unit, name
        assert result.upper - best <= result.upper_gap_bound + 1e-6 * unit, name
        assert result.certificate.ceiling >= best - 1e-6 * unit, name
        assert certify(problem, result).within is True, name
        # The level is part of its steps, and not only of what is done at the end.
        assert result.history.lower[result.history.phase == 1].max() >= least + 0.5 * epsilon, name


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
@pytest.mark.parametrize("name", [name for name in NEAR if not name.startswith("dbgd")])  # whose α and β have units
def test_the_units_of_both_levels_do_not_matter(name, unit):
    plain = Problem(UPPER.objective, LOWER.objective, Simplex(1.0), keep=0.95)
    scaled = Problem((1.0 / unit) * UPPER.objective, unit * LOWER.objective, Simplex(1.0), keep=0.95)
    one, other = (minimize(problem, name, max_queries=2000) for problem in (plain, scaled))
    assert other.within is one.within is True
    np.testing.assert_allclose(other.upper * unit, one.upper, rtol=0.1)
    assert other.tolerance / unit == pytest.approx(one.tolerance, rel=1e-3)


# The search for the weight


def test_stages_that_end_at_once_do_not_grow_without_end():
    """x rests at a vertex, which is best for both levels: a stage takes one step, and there are hundreds of them."""
    problem = Problem(SquaredNorm(np.full(3, 9.0)), LeastSquares(np.eye(3), np.array([4.0, 0.0, 0.0])), Box(0.0, 1.0, 3))
    result = minimize(problem._replace(keep=0.999), "pb-apg", max_iterations=3000)
    assert result.status is Status.ITERATIONS
    assert result.within is True
    assert result.upper_gap_bound <= 1e-6 * result.upper


def test_the_search_for_a_weight_ends_between_the_nearest_points_on_either_side():
    problem = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0), tolerance=0.02)
    result = minimize(problem, PBAPG(), max_iterations=400)
    total = 1.0 - np.sqrt(0.04)  # x₁ + x₂ where g is 0.02
    np.testing.assert_allclose(result.x, 0.5 * total, rtol=1e-6)
    assert result.within is True
    assert result.upper_gap_bound <= 1e-9


# A first point that is given


@pytest.mark.parametrize("name", NEAR)
def test_a_given_point_that_does_not_keep_the_level_is_left(name):
    problem = Problem(UPPER.objective, LOWER.objective, L1Ball(1.0), keep=0.95)
    least = minimize(problem.exact, "active-set").certificate.floors.lower
    far, looser = np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0]), minimize(problem._replace(keep=0.8), "active-set")
    for x0 in (far, looser):
        result = minimize(problem, name, max_queries=6000, x0=x0)
        assert result.within is True
        assert result.lower <= least + 0.05 * (problem.lower.value(problem.reference) - least) * (1.0 + 1e-6)


@pytest.mark.parametrize("name", [name for name in NEAR if name != "active-set"])
def test_a_given_point_that_is_proven_to_keep_the_level_is_where_the_run_begins(name):
    problem = Problem(UPPER.objective, LOWER.objective, L1Ball(1.0), keep=0.95)
    tighter = minimize(problem._replace(keep=0.96), "active-set")
    result = minimize(problem, name, max_queries=6000, x0=tighter)
    history = result.history
    assert history.phase.tolist().count(0) == 1
    assert history.lower_queries[history.phase == 0].tolist() == [0]
    assert history.upper[0] == pytest.approx(tighter.upper, rel=1e-12)
    assert result.within is True
    assert result.certificate.floors.lower >= tighter.certificate.floors.lower
