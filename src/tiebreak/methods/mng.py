"""MNG: minimal norm gradient.

Beck and Sabach, A first order method for finding minimal norm-like solutions of convex optimization problems, Mathematical
Programming 2014.

    y_t = Π(x_t − γ ∇g(x_t)),   G_t = (x_t − y_t) / γ
    x_{t+1} = argmin f(x)  over  ⟨G_t, x_t − x⟩ ≥ ¾ γ ‖G_t‖²,  ⟨∇f(x_t), x − x_t⟩ ≥ 0
    answer:  y_t

In the paper: γ = 1/M ≤ 1/L_g is ``step``, and x_0 is the minimiser of f without constraint, whatever point is given. For a
quadratic f with second derivatives H the minimiser over two half-spaces is x_t − H⁻¹(μ ∇f(x_t) + λ G_t), with λ ≥ 0 and μ ≤
1 from two linear equations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import dot, fill
from tiebreak.estimates import Exact, Memory, Once, estimate, exact
from tiebreak.methods.base import DONE, NO_BUDGET, Budget, Method, smoothness
from tiebreak.methods.descent import estimate_both
from tiebreak.methods.parameters import declared, schedule
from tiebreak.methods.states import Count, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant

PARALLEL = 1e-14  # squared sine of the angle at which two half-spaces count as one


class State(NamedTuple):
    """The state of MNG."""

    x: Point  # x_t
    y: Point  # y_t
    room: Room  # y_t before its projection
    upper: Memory  # ∇f(x_t)
    upper_step: Room  # H⁻¹ ∇f(x_t)
    lower: Memory  # ∇g(x_t), then G_t
    lower_step: Room  # H⁻¹ G_t
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Exact  # all samples of f
    lower: Exact  # all samples of g
    step: Any  # γ
    inverse: np.ndarray  # H⁻¹; one entry: that multiple of the identity


@kernel
def apply(inverse, vector, out):
    """Set out ← H⁻¹ vector."""
    if inverse.size == 1:
        for i in range(vector.size):
            out[i] = inverse[0, 0] * vector[i]
    else:
        for i in range(vector.size):
            out[i] = dot(inverse[i], vector)


@kernel
def weights(a, b, e, c):
    """Return (μ, λ) for a = ⟨∇f, H⁻¹∇f⟩, b = ⟨G, H⁻¹∇f⟩, e = ⟨G, H⁻¹G⟩, and c = ¾ γ ‖G‖², how deep the first cut is."""
    if e <= 0.0:
        return 0.0, 0.0  # G = 0: x_t is optimal at the lower level, and no point nearer to the minimiser of f is allowed
    alone = (c - b) / e  # if the first half-space binds alone, μ = 1
    if alone >= 0.0 and a + alone * b <= 0.0:
        return 1.0, alone
    angle = a * e - b * b
    if angle <= PARALLEL * a * e:
        return 0.0, c / e
    return -c * b / angle, a * c / angle


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    x = state.x
    for k in range(iterations):
        if state.iteration[0] == 0:
            estimate(plan.upper, problem.upper, state.upper, x, x, k, Moment(keys.upper, 0, 0, 0))
            minimise_upper(state, plan)
        outcome = estimate_both(problem, plan, state, x, x, k, keys, 0)
        if outcome != DONE:
            return outcome
        step_on(problem.domain, state, plan, k)
    return DONE


@kernel
def minimise_upper(state, plan):
    """Make x_0 the minimiser of f without constraint, by one step of Newton's method."""
    apply(plan.inverse, state.upper.direction, state.upper_step)
    for i in range(state.x.size):
        state.x[i] -= state.upper_step[i]


@kernel
def step_on(domain, state, plan, k):
    """Make y_t and x_{t+1} from the gradients at x_t."""
    x, y, room, step = state.x, state.y, state.room, plan.step[k]
    upper, lower, upper_step, lower_step = state.upper.direction, state.lower.direction, state.upper_step, state.lower_step
    if state.iteration[0] == 0:
        fill(upper, 0.0)  # at the minimiser of f; what rounding leaves of it would be a half-space of any direction
    for i in range(x.size):
        room[i] = x[i] - step * lower[i]
    project(domain, room, y)
    for i in range(x.size):
        lower[i] = (x[i] - y[i]) / step
    apply(plan.inverse, upper, upper_step)
    apply(plan.inverse, lower, lower_step)
    depth = 0.75 * step * dot(lower, lower)
    mu, lam = weights(dot(upper, upper_step), dot(lower, upper_step), dot(lower, lower_step), depth)
    for i in range(x.size):
        x[i] -= mu * upper_step[i] + lam * lower_step[i]
    state.iteration[0] += 1


@declared
class MNG(Method):
    """Minimal norm gradient: among the minimisers of g, the one that minimises a strongly convex quadratic f.

    Examples
    --------
    >>> MNG(step=0.1).name
    'mng'
    """

    step: ScheduleLike | None = schedule("γ = 1/M, at most 1 / L_g, which it is if not given.")

    name = "mng"
    citation = "Beck, Sabach (2014)"
    setting = "exact gradients"
    needs = "projection, f quadratic and strongly convex"
    rates = "converges; t^-1/2"
    loop = advance
    state = State
    projects = True

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        if problem.upper.hessian() is None or not problem.upper.strong_convexity > 0.0:
            raise ValueError(
                "the method 'mng' needs an upper objective that is quadratic and strongly convex, such as SquaredNorm() or a"
                f" least-squares loss of full column rank, and {problem.upper!r} is not known to be"
            )
        return super().for_problem(problem, budget)

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: constant(1.0 / smoothness(problem, "lower", self, "step=..."))}

    def plan(self, problem: Problem) -> Plan:
        step = self.given("step")
        if not (step(np.arange(1)) > 0.0).all():
            raise ValueError("`step` of MNG must be positive, got 0")
        inverse = np.linalg.inv(np.atleast_2d(problem.upper.hessian()))
        return Plan(exact(problem.upper), exact(problem.lower), step, inverse)

    def estimates(self, plan: Plan) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return (plan.upper, Once(plan.upper)), (plan.lower,)

    def answer(self, state: State) -> np.ndarray:
        return state.y
