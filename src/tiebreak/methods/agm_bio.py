"""AGM-BiO: an accelerated gradient method whose projections are onto Z within a half-space that contains the ties of g.

Cao, Jiang, Yazdandoost Hamedani and Mokhtari, An accelerated gradient method for convex smooth simple bilevel optimization,
NeurIPS 2024, Algorithm 1.

    y_k = (A_k x_k + a_k z_k) / A_{k+1}
    z_{k+1} = projection of z_k − a_k ∇f(y_k) onto {z ∈ Z : g(y_k) + ⟨∇g(y_k), z − y_k⟩ ≤ g_k}
    x_{k+1} = (A_k x_k + a_k z_{k+1}) / A_{k+1}

    a_k = γ_k (k + 1) / (4 L_f),  A_{k+1} = A_k + a_k,  A_0 = 0

g_k ≥ g* keeps all minimisers of g in the half-space. It is the least g at the points of Z at which gradients were found:
those y_k, and those of accelerated steps on g alone beside, of the same form with 1 / (2 L_g) for γ_k / (4 L_f). So an
iteration takes two gradients of g and one of f.

In the paper γ_k = γ ≤ 1 is constant, ``step``. What is proven needs a_k² L_f ≤ A_{k+1}, which holds for all γ_k ≤ 1 that do
not grow: f(x_k) − f* ≤ ‖x_0 − x*‖² / (2 A_k), and g(x_k) − g* is at most the mean of g_j − g* with weights a_j plus
Σ_j (a_j² / A_{j+1}) L_g ‖z_{j+1} − z_j‖² / (2 A_k), which is of order 1 / k for every γ. A smaller γ makes z move less, and
that sum smaller: if not given, γ_k falls as k^−2/3, so that both gaps fall together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from tiebreak.domains import project, project_cut
from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, dot, move
from tiebreak.estimates import Exact, Memory, estimate, exact
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, Budget, Method, smoothnesses
from tiebreak.methods.descent import estimate_both
from tiebreak.methods.parameters import declared, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, power


class Run(NamedTuple):
    """The points of an accelerated method."""

    y: Point
    z: Point


class State(NamedTuple):
    """The state of AGM-BiO."""

    x: Point  # x_k
    run: Run  # y_k and z_k
    best: Point  # x_k of the steps on g alone
    lower_run: Run  # y_k and z_k of these
    room: Room  # z_{k+1} before its projection
    upper: Memory  # ∇f(y_k)
    lower: Memory  # ∇g, of either run
    level: Number  # g_k, one number
    weight: Number  # L_f A_k, one number
    iteration: Count  # k, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Exact  # all samples of f
    lower: Exact  # all samples of g
    step: Any  # γ_k
    upper_smoothness: float  # L_f
    lower_smoothness: float  # L_g


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    for i in range(iterations):
        k = state.iteration[0]
        share = 2.0 / (k + 2.0)  # a_k / A_{k+1} of the steps on g alone
        y = mixed(state.best, state.lower_run, share)
        estimate(plan.lower, problem.lower, state.lower, y, y, i, Moment(keys.lower, k, 0, 0))
        if not math.isfinite(state.lower.value[0]):
            return LOWER_NOT_FINITE
        step_on_lower(problem.domain, state, (k + 1.0) / (2.0 * plan.lower_smoothness), share)
        length = 0.25 * plan.step[i] * (k + 1.0)  # L_f a_k
        share = length / (state.weight[0] + length)
        y = mixed(state.x, state.run, share)
        outcome = estimate_both(problem, plan, state, y, y, i, keys, 1)
        if outcome != DONE:
            return outcome
        step_on_upper(problem.domain, state, length / plan.upper_smoothness, share)
        state.weight[0] += length
        state.iteration[0] += 1
    return DONE


@kernel
def mixed(x, run, share):
    """Return y_k, between x_k and z_k."""
    copy(x, run.y)
    move(run.y, run.z, share)
    return run.y


@kernel
def step_on_lower(domain, state, length, share):
    """Take a step on g alone; g at its y, which is in Z, is an upper bound of g*."""
    z, value = state.lower_run.z, state.lower.value[0]
    state.level[0] = value if state.iteration[0] == 0 else min(state.level[0], value)
    for i in range(z.size):
        state.room[i] = z[i] - length * state.lower.direction[i]
    project(domain, state.room, z)
    move(state.best, z, share)


@kernel
def step_on_upper(domain, state, length, share):
    """Make z_{k+1} and x_{k+1} from the gradients at y_k."""
    z, lower, value = state.run.z, state.lower.direction, state.lower.value[0]
    state.level[0] = min(state.level[0], value)
    for i in range(z.size):
        state.room[i] = z[i] - length * state.upper.direction[i]
    project_cut(domain, state.room, lower, state.level[0] - value + dot(lower, state.run.y), z)
    move(state.x, z, share)


@declared
class AGMBiO(Method):
    """Accelerated gradient steps on f, projected onto Z within a half-space that contains all minimisers of g.

    Examples
    --------
    >>> AGMBiO(step=0.5).name
    'agm-bio'
    """

    step: ScheduleLike | None = schedule(
        "γ_k, which scales the steps: at most 1, not growing; (k + 1)^−2/3 / 2 if not given. A constant is the method as it"
        " was published, with the rates t^-2; t^-1.",
        largest=1.0,
    )

    name = "agm-bio"
    citation = "Cao, Jiang, Yazdandoost Hamedani, Mokhtari (2024)"
    setting = "exact gradients"
    needs = "projection, f convex"
    rates = "t^-4/3; t^-1"
    loop = advance
    state = State
    projects = True
    convex = True

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: power(0.5, 2.0 / 3.0)}

    def plan(self, problem: Problem) -> Plan:
        upper, lower = smoothnesses(problem, self)
        return Plan(exact(problem.upper), exact(problem.lower), self.given("step"), upper, lower)

    def estimates(self, plan: Plan) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return (plan.upper,), (plan.lower, plan.lower)
