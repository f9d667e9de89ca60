"""SBCGI and SBCGF against their algorithm boxes, written down independently with an LP solver for the subproblem."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import Draws, make_objective
from scipy.optimize import linprog

from tiebreak import SBCGF, SBCGI, L1Ball, Problem, SpiderFW, power
from tiebreak.engine.randomness import keys_of

RADIUS, ROUNDS = 2.0, 60


def terms(objective):
    """(A, b, w) of a least-squares objective."""
    return objective.matrix.array, objective.targets, objective.weights


def sampled(objective, x, indices):
    A, b, w = (part[indices] for part in terms(objective))
    residual = A @ x - b
    return 0.5 * np.mean(w * residual**2), A.T @ (w * residual) / len(indices)


def best_vertex(c, a, b):
    """The subproblem as in the paper's appendix: an LP in s⁺, s⁻."""
    rows = np.vstack([np.r_[a, -a], np.ones(2 * c.size)])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(np.r_[c, -c], A_ub=rows, b_ub=[b, RADIUS], bounds=(0, None), method="highs", options=tight)
    if solved.status == 2:
        return best_vertex(a, np.zeros_like(a), 0.0)
    return solved.x[: c.size] - solved.x[c.size :]


def box_sbcgi(problem, x, step, slack, momentum, batch, seed):
    draws, f, g = Draws(problem, seed), problem.upper, problem.lower
    anchor = sampled(g, x, np.arange(g.n_samples))[0]
    previous = x
    for t in range(ROUNDS):
        theta, xi = draws.indices(f, t, batch), draws.indices(g, t, batch)
        (_, df), (value, dg) = sampled(f, x, theta), sampled(g, x, xi)
        if t == 0:
            f_hat, g_hat, value_hat = df, dg, value
        else:
            keep = 1.0 - momentum(t)
            f_hat = keep * f_hat + df - keep * sampled(f, previous, theta)[1]
            g_hat = keep * g_hat + dg - keep * sampled(g, previous, xi)[1]
            value_hat = keep * value_hat + value - keep * sampled(g, previous, xi)[0]
        s = best_vertex(f_hat, g_hat, anchor - value_hat + slack(t) + g_hat @ x)
        previous, x = x, (1.0 - step(t)) * x + step(t) * s
    return x


def box_sbcgf(problem, x, step, slack, sizes, periods, seed):
    draws, levels = Draws(problem, seed), (problem.upper, problem.lower)
    hats, previous = [None, None], x
    for t in range(ROUNDS):
        for k, objective in enumerate(levels):
            if t % periods[k] == 0:
                hats[k] = sampled(objective, x, np.arange(objective.n_samples))
            else:
                batch = draws.indices(objective, t, sizes[k])
                new, old = sampled(objective, x, batch), sampled(objective, previous, batch)
                hats[k] = (hats[k][0] + new[0] - old[0], hats[k][1] + new[1] - old[1])
        if t == 0:
            anchor = hats[1][0]
        (_, f_hat), (value_hat, g_hat) = hats
        s = best_vertex(f_hat, g_hat, anchor - value_hat + slack(t) + g_hat @ x)
        previous, x = x, (1.0 - step(t)) * x + step(t) * s
    return x


@pytest.fixture
def problem():
    return Problem(make_objective("least-squares", seed=1), make_objective("least-squares", seed=2), L1Ball(RADIUS))


@pytest.fixture
def x0(problem):
    return problem.domain.project(np.random.default_rng(5).standard_normal(problem.dimension))


def run(method, problem, x0, seed, rounds=ROUNDS):
    method = method.for_problem(problem)
    plan = method.plan(problem)
    state = method.start(problem, plan, x0)
    assert method.advance(problem, state, plan, rounds, keys_of([seed])) == 0
    return state


@pytest.mark.parametrize("batch", [1, 5])
def test_sbcgi_is_its_box(problem, x0, batch):
    step, slack, momentum = power(0.3, 0.7, shift=2.0), power(1e-2, 0.5), power(1.0, 0.8)
    state = run(SBCGI(preset="paper", step=step, slack=slack, momentum=momentum, batch_size=batch), problem, x0, seed=3)
    expected = box_sbcgi(problem, x0, step, slack, momentum, batch, seed=3)
    np.testing.assert_allclose(state.x, expected, atol=1e-7)
    assert state.iteration[0] == ROUNDS


@pytest.mark.parametrize("sizes", [{}, {"upper_batch_size": 2, "lower_batch_size": 4, "upper_period": 3, "lower_period": 5}])
def test_sbcgf_is_its_box(problem, x0, sizes):
    step, slack = power(0.1, 0.5, shift=2.0), power(1e-3, 0.5)
    state = run(SBCGF(preset="paper", step=step, slack=slack, **sizes), problem, x0, seed=3)
    root = math.isqrt(problem.upper.n_samples)
    batches = [sizes.get(name, root) for name in ("upper_batch_size", "lower_batch_size")]
    periods = [sizes.get(name, root) for name in ("upper_period", "lower_period")]
    expected = box_sbcgf(problem, x0, step, slack, batches, periods, seed=3)
    np.testing.assert_allclose(state.x, expected, atol=1e-7)


def test_an_empty_cut_is_counted_and_moves_to_lower_g(problem, x0):
    # A cut that asks for far less than g(x₀) cannot be met by any point: the anchor is lowered by hand.
    method = SBCGF(preset="paper", step=0.2, slack=0.0)
    plan = method.plan(problem)
    state = method.start(problem, plan, x0)
    method.advance(problem, state, plan, 1, keys_of([0]))
    state.anchor[0] -= 1e3
    before = problem.lower.value(state.x)
    method.advance(problem, state, plan, 3, keys_of([0]))
    assert state.empty_cuts[0] == 3
    assert problem.lower.value(state.x) < before


def test_spider_fw_is_frank_wolfe_when_every_estimate_is_exact(problem, x0):
    state = run(SpiderFW(step=power(2.0, 1.0, shift=2.0), period=1, level="lower"), problem, x0, seed=0)
    x = x0
    for t in range(ROUNDS):
        gradient = problem.lower.value_and_gradient(x)[1]
        x = x + 2.0 / (t + 2) * (problem.domain.lmo(gradient) - x)
    np.testing.assert_allclose(state.x, x, atol=1e-12)


def test_storm_without_memory_is_the_sampled_gradient_and_with_all_of_it_a_running_difference(problem, x0):
    forget = run(SBCGI(preset="paper", step=0.1, slack=1e3, momentum=1.0, batch_size=3), problem, x0, seed=1, rounds=9)
    value, gradient = sampled(problem.lower, forget.previous, forget.lower.batch)
    np.testing.assert_allclose(forget.lower.factor * forget.lower.direction, gradient, atol=1e-12)
    assert forget.lower.value[0] == pytest.approx(value)


def test_a_momentum_that_shrinks_the_factor_far_keeps_the_gradient_right(problem, x0):
    # 0.5^60 is far below the smallest factor kept, so that it is multiplied in several times on the way.
    step, slack = power(0.1, 0.7, shift=2.0), power(1e3, 0.0)
    state = run(SBCGI(preset="paper", step=step, slack=slack, momentum=0.5), problem, x0, seed=2)
    np.testing.assert_allclose(state.x, box_sbcgi(problem, x0, step, slack, lambda t: 0.5, 1, seed=2), atol=1e-8)
    assert state.upper.factor[0] >= 1e-6
