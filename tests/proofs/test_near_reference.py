"""Near ties on random small problems, over all sets that a conic solver can state: no bound of any method is false."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cvxpy
import numpy as np
import pytest
from cases import CASES, COMPOSED
from stated import Stated, logistic, solve, squares

from tiebreak import Certificate, Problem, Status, certify, minimize
from tiebreak.domains import projects
from tiebreak.engine import interpreted

PROBLEMS, PARTS = 200, 20  # in as many tests
FREE = ("sbcgi", "sbcgf", "cg-bio", "sbcgf-m")  # of projections
PROJECTING = ("pb-apg", "fc-bio", "switching-gradient", "dbgd", "dbgd-storm", "dbgd-spider")
SHARES = (0.0, 0.5, 0.9, 0.99, 0.999)
LEAST = 1e-5  # tolerance, as a share of g in the middle of the set, below which the solver's error counts


class Reference(NamedTuple):
    """A problem, and what a conic solver says of it."""

    problem: Problem
    violation: Any
    f: float  # f*(ε)
    g: float  # g*
    epsilon: float
    units: tuple[float, float]  # f and g in the middle of the set


def reference(seed: int) -> Reference:
    """Return a random problem; every set, both losses, weights and all ways to say a tolerance take turns."""
    rng, every = np.random.default_rng(seed), [*CASES, *COMPOSED]
    case = every[seed % len(every)]
    domain, d = case.make(rng, int(rng.integers(1, 7)))
    while not 1e-2 < domain.diameter < 1e2:  # a size that is no trouble for the solver
        domain, d = case.make(rng, int(rng.integers(2, 7)))
    upper, lower = (loss(rng, d, float(domain.diameter), squared) for squared in (seed % 2 == 0, seed // 2 % 2 == 0))
    problem = Problem(upper.objective, lower.objective, domain)
    units = problem.upper.value(problem.center), problem.lower.value(problem.center)
    x = float(domain.diameter) * cvxpy.Variable(problem.dimension)
    rows = case.constraints(domain, x)
    solve(lower.expression(x) / units[1], rows)
    least = problem.lower.value(x.value)
    keep = SHARES[seed // 4 % len(SHARES)]
    epsilon = (1.0 - keep) * (problem.lower.value(problem.reference) - least)
    if seed // 3 % 2 == 0 or epsilon < LEAST * units[1]:
        epsilon = units[1] * 10.0 ** rng.uniform(-4.0, 0.3)
        problem = problem._replace(tolerance=epsilon)
    else:
        problem = problem._replace(keep=keep)
    solve(upper.expression(x) / units[0], [*rows, lower.expression(x) / units[1] <= (least + epsilon) / units[1]])
    return Reference(problem, case.violation, problem.upper.value(x.value), least, epsilon, units)


def loss(rng: np.random.Generator, d: int, size: float, squared: bool) -> Stated:
    n = int(rng.integers(1, 8))
    A, b = rng.standard_normal((n, d)), rng.standard_normal(n)
    weight = rng.uniform(0.2, 2.0, n) if rng.random() < 0.3 else None
    return squares(A, size * b, weight=weight) if squared else logistic(A / size, b, weight=weight)


def assert_true(case: Reference, found: Certificate) -> None:
    """Assert that nothing is claimed that the reference contradicts, up to the accuracy of its solver."""
    f_room, g_room = 3e-6 * case.units[0], 1e-7 * case.units[1] + 1e-6 * case.epsilon
    assert found.floors.lower <= case.g + g_room
    assert found.floors.best_lower >= case.g - g_room
    assert found.floors.upper <= case.f + f_room
    assert found.upper - case.f <= found.upper_gap_bound + f_room
    assert found.lower - case.g <= found.lower_gap_bound + g_room
    assert found.ceiling >= case.f - f_room
    assert 0.0 <= found.tolerance <= case.epsilon + g_room
    excess = found.lower - case.g - case.epsilon
    assert {True: excess <= g_room, False: excess >= -g_room, None: True}[found.within]
    assert not math.isnan(found.upper_gap_bound)


def methods_for(case: Reference, seed: int) -> list[str]:
    """Return the default method, and another one by turns."""
    others = (*FREE, *PROJECTING) if projects(case.problem.domain) else FREE
    return ["auto", others[seed % len(others)]]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_of_a_run_is_false(part):
    for seed in range(part, PROBLEMS, PARTS):
        case = reference(seed)
        for method in methods_for(case, seed):
            with interpreted():
                result = minimize(case.problem, method, max_queries=300, seed=seed)
                again = certify(case.problem, result, points=[case.problem.center] if seed % 5 == 0 else ())
            assert case.violation(case.problem.domain, result.x) <= 1e-9
            for found in (result.certificate, again):
                assert_true(case, found)
            if result.status is Status.SOLVED:
                assert result.within is True
                assert abs(result.upper - case.f) <= 1e-5 * case.units[0]


@pytest.mark.parametrize("seed", range(0, PROBLEMS, 17))
def test_floors_of_one_allowance_hold_for_the_others_that_they_are_kept_for(seed):
    case, rng = reference(seed), np.random.default_rng(seed)
    exact = case.problem.exact
    others = [{"tolerance": 0.3 * case.epsilon}, {"tolerance": 3.0 * case.epsilon}, {"keep": 0.3}, {"keep": 0.9999}, {}]
    start = case.problem.domain.random_point(rng, exact.dimension)
    with interpreted():
        x = minimize(case.problem, max_queries=300).x
        floors = certify(case.problem, x, points=[start]).floors
        for allowed in others:  # there and back again: each takes over what the last one knows
            other = exact._replace(**allowed)
            floors = certify(other, start, floors=floors).floors
            assert (floors.tolerance, floors.keep) == (other.tolerance, other.keep)
            assert_true(case, certify(case.problem, start, floors=floors))
            assert_true(case, certify(case.problem, x, floors=floors))
