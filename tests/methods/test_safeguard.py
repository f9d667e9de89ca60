"""Accelerated methods find out that a smoothness constant is too small."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import linear_data

from tiebreak import FISTA, PBAPG, BiFISTA, FiniteSum, L1Ball, LeastSquares, Problem, minimize
from tiebreak.engine.randomness import keys_of
from tiebreak.schedules import stages

METHODS = [FISTA(level="upper"), FISTA(level="lower"), BiFISTA(), PBAPG(), PBAPG(penalty=stages(1.0, 10.0, 100))]
IDS = ["fista-upper", "fista-lower", "bi-fista", "pb-apg", "pb-apg-penalty"]


def told(objective, share):
    """Return an objective that says its smoothness constant is some part of what it is."""
    known = {"convex": True, "lipschitz": share * objective.lipschitz, "floor": 0.0}
    return FiniteSum(objective.n_samples, objective.dimension, objective.value_and_gradient, **known)


def problem(share):
    upper, lower = (told(LeastSquares(*linear_data(seed)), share) for seed in (2, 1))
    return Problem(upper, lower, L1Ball(4.0))


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_a_constant_four_times_too_small_is_raised_and_the_method_converges(method):
    right, wrong = (minimize(problem(share), method, max_iterations=400) for share in (1.0, 0.25))
    for level in method.levels:
        assert getattr(wrong, level) == pytest.approx(getattr(right, level), abs=1e-2 * getattr(right.history, level)[0])


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_a_right_constant_is_left_as_it_is(method):
    well = problem(1.0)
    configured = method.for_problem(well)
    plan = configured.plan(well)
    state = configured.start(well, plan, np.zeros(well.dimension))
    configured.advance(well, state, plan, 500, keys_of([0]))
    assert state.iteration[0] == 500
    if isinstance(configured, FISTA):
        assert state.curvature.smoothness[0] == plan.smoothness > 0.0
    else:
        assert state.upper_curvature.smoothness[0] == plan.upper_smoothness > 0.0
        assert state.lower_curvature.smoothness[0] == plan.lower_smoothness > 0.0


def test_steps_that_are_given_are_kept():
    well = problem(0.25)
    method = BiFISTA(step=0.1, regularization=0.1)
    plan = method.plan(well)
    state = method.start(well, plan, np.zeros(well.dimension))
    method.advance(well, state, plan, 50, keys_of([0]))
    assert state.upper_curvature.smoothness[0] == state.lower_curvature.smoothness[0] == 0.0
