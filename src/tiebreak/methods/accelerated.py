"""Accelerated projected gradient on both levels: bi-FISTA, and what FISTA and PB-APG share with it.

Boţ, Chenchene, Csetnek and Hulett, Accelerating diagonal methods for bilevel optimization, 2025; Merchav, Sabach and
Teboulle, A fast algorithm for convex composite bi-level optimization, 2024.

    y_t = x_t + θ_t (x_t − x_{t−1});   x_{t+1} = Π(y_t − γ_t (u_t ∇f(y_t) + w_t ∇g(y_t)))

    bi-FISTA:  w_t = 1, u_t = c (t + 1)^−δ, θ_t = t / (t + α)
    FISTA:     one of u_t, w_t is 1 and the other 0 (``fista.py``)
    PB-APG:    u_t = 1, and w_t grows from stage to stage (``penalised.py``)

Steps that are not given follow from smoothness constants, which may be slightly too small. Two gradients show a lower bound
of them, ‖∇F(y_t) − ∇F(y_{t−1})‖ / ‖y_t − y_{t−1}‖ ≤ L: a constant below it is raised, and the momentum restarts.

In the papers: u_t is ``regularization(t)``, α is ``inertia``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, distance, dot, extrapolate
from tiebreak.estimates import Memory, estimate, exact
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Method, smoothnesses
from tiebreak.methods.descent import descend
from tiebreak.methods.parameters import declared, real, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power, safe_step

SHOWN = 1.001  # factor of a smoothness constant: a larger ratio of gradients shows that it is too small …
RAISED = 1.05  # … and is multiplied by this to become the next one
SHORT = 1e-7  # length of a step relative to y, below which ratios of gradients are rounding errors


class Glide(NamedTuple):
    """Where the accelerated points are."""

    previous: Point  # x_{t−1}
    y: Point  # y_t
    last_y: Point  # y_{t−1}
    since: Count  # k, the steps since the last restart, one number


class Curvature(NamedTuple):
    """What is known of the smoothness of one objective F."""

    last: Room  # ∇F(y_{t−1})
    smoothness: Number  # L, one number; 0: steps do not depend on it


class State(NamedTuple):
    """The state of an accelerated method on both levels."""

    x: Point  # x_t
    glide: Glide
    upper: Memory  # ∇f(y_t)
    lower: Memory  # ∇g(y_t)
    upper_curvature: Curvature
    lower_curvature: Curvature
    room: Room  # x_{t+1} before its projection
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop of bi-FISTA uses."""

    upper: Any  # all samples of f
    lower: Any  # all samples of g
    step: Any  # γ_t
    regularization: Any  # u_t
    inertia: float  # α
    upper_smoothness: float  # L_f as it is given; 0 if steps do not depend on it
    lower_smoothness: float  # L_g likewise


@kernel
def glide_on(x, glide, inertia):
    """Make y_t, with θ = k / (k + α), and let x_t become x_{t−1}."""
    k = glide.since[0]
    extrapolate(x, glide.previous, k / (k + inertia), glide.y)
    copy(x, glide.previous)
    glide.since[0] = k + 1


@kernel
def look(plan, objective, memory, known, glide, moment):
    """Find ∇F(y_t) and raise L where it is shown to be too small; return whether all is finite."""
    copy(memory.direction, known.last)
    estimate(plan, objective, memory, glide.y, glide.y, 0, moment)
    if known.smoothness[0] > 0.0 and moment.iteration > 0:
        moved = distance(glide.y, glide.last_y)
        if moved > SHORT * math.sqrt(dot(glide.y, glide.y)):
            shown = distance(memory.direction, known.last) / moved
            if shown > SHOWN * known.smoothness[0]:
                known.smoothness[0] = RAISED * shown
                glide.since[0] = 0
    return math.isfinite(memory.value[0])


@kernel
def look_at_both(problem, plan, state, keys):
    """Do so at both levels; return DONE or which is not finite."""
    t = state.iteration[0]
    moment = Moment(keys.upper, t, 0, 0)
    if not look(plan.upper, problem.upper, state.upper, state.upper_curvature, state.glide, moment):
        return UPPER_NOT_FINITE
    moment = Moment(keys.lower, t, 0, 0)
    if not look(plan.lower, problem.lower, state.lower, state.lower_curvature, state.glide, moment):
        return LOWER_NOT_FINITE
    return DONE


@kernel
def step_down(domain, state, upper_step, lower_step):
    """Set x_{t+1} ← Π(y_t − upper_step ∇f(y_t) − lower_step ∇g(y_t))."""
    descend(domain, state, state.glide.y, upper_step, lower_step, state.x)
    copy(state.glide.y, state.glide.last_y)
    state.iteration[0] += 1


@kernel
def shortened(step, plan, state, upper_weight, lower_weight):
    """Return a step that was made for the constants that were given as one for those that are known now."""
    given = upper_weight * plan.upper_smoothness + lower_weight * plan.lower_smoothness
    known = upper_weight * state.upper_curvature.smoothness[0] + lower_weight * state.lower_curvature.smoothness[0]
    return step * given / known if known > given else step


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps of bi-FISTA."""
    for k in range(iterations):
        glide_on(state.x, state.glide, plan.inertia)
        outcome = look_at_both(problem, plan, state, keys)
        if outcome != DONE:
            return outcome
        weight = plan.regularization[k]
        step = shortened(plan.step[k], plan, state, weight, 1.0)
        step_down(problem.domain, state, step * weight, step)
    return DONE


@declared
class Accelerated(Method):
    """The common part of the accelerated methods for both levels."""

    setting = "exact gradients"
    needs = "projection, f convex"
    projects = True

    def start(self, problem: Problem, plan: Any, x: np.ndarray) -> Any:
        state = super().start(problem, plan, x)
        state.upper_curvature.smoothness[0] = plan.upper_smoothness
        state.lower_curvature.smoothness[0] = plan.lower_smoothness
        return state


def given_smoothness(step: Any) -> dict[str, float]:
    """Return L_f and L_g that steps were made for; 0 if they were given."""
    known = (step.upper_lipschitz, step.lower_lipschitz) if isinstance(step, safe_step) else (0.0, 0.0)
    return {"upper_smoothness": known[0], "lower_smoothness": known[1]}


@declared
class BiFISTA(Accelerated):
    """Accelerated projected gradient on g + u_t f with a weight u_t that vanishes.

    Examples
    --------
    >>> BiFISTA(step=0.1, regularization=lambda t: (t + 1) ** -1.5).inertia
    4.0
    """

    step: ScheduleLike | None = schedule("γ_t, the length of a gradient step; 0.95 / (L_g + u_t L_f) if not given.")
    regularization: ScheduleLike | None = schedule(
        "u_t, the weight of f; (L_g / L_f) (t + 1)^−3/2 if not given. Theory asks for a power between 1 and 2."
    )
    inertia: float = real("α, which sets the momentum t / (t + α).", 4.0, above=0.0)

    name = "bi-fista"
    citation = "Boţ, Chenchene, Csetnek, Hulett (2025); Merchav, Sabach, Teboulle (2024)"
    rates = "converges; t^-δ, 1 < δ < 2"
    loop = advance
    state = State

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"regularization": lambda: self._weight(problem, "regularization=..."), "step": lambda: self._safe(problem)}

    def _weight(self, problem: Problem, instead: str) -> Any:
        upper, lower = smoothnesses(problem, self, instead)
        return power(lower / upper, 1.5) if self.regularization is None else self.regularization

    def _safe(self, problem: Problem) -> safe_step:
        upper, lower = smoothnesses(problem, self, "step=...")
        return safe_step(0.95, lower, constant(1.0), upper, self._weight(problem, "step=..."))

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            upper=exact(problem.upper),
            lower=exact(problem.lower),
            step=self.given("step"),
            regularization=self.given("regularization"),
            inertia=self.inertia,
            **given_smoothness(self.step),
        )
