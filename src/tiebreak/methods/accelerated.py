"""Accelerated projected gradient on both levels: bi-FISTA, and what FISTA and PB-APG share with it.

Boţ, Chenchene, Csetnek and Hulett, Accelerating diagonal methods for bilevel optimization, 2025; Merchav, Sabach and
Teboulle, A fast algorithm for convex composite bi-level optimization, 2024.

    y_t = x_t + θ_t (x_t − x_{t−1});   x_{t+1} = Π(y_t − γ_t (u_t ∇f(y_t) + w_t ∇g(y_t)))

    bi-FISTA:  w_t = 1, u_t = c (t + 1)^−δ, θ_t = t / (t + α)
    FISTA:     one of u_t, w_t is 1 and the other 0 (``fista.py``)
    PB-APG:    u_t = 1, and w_t grows from stage to stage (``penalised.py``)

Steps that are not given follow from smoothness constants, which may be slightly too small, or estimates where objectives
know none (``unknown.py``). Two gradients show a lower bound of them, ‖∇F(y_t) − ∇F(y_{t−1})‖ / ‖y_t − y_{t−1}‖ ≤ L: a
constant below it is raised, and the momentum restarts. No step is tried twice, and none costs more than without.

An objective with kinks has no constant, and what gradients show grows without end. An estimate is therefore raised to
G (t + 1)^3/2 / D at most, with the longest gradient G so far and the diameter D of Z: there the error of smooth steps,
L D² / t², is as large as that of steps on an objective with kinks, G D / √t, and a larger L gains nothing.

y_t may lie outside Z. A Python function may be defined on Z alone: where a level is one, y_t is projected.

In the papers: u_t is ``regularization(t)``, α is ``inertia``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import compilable, kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, distance, dot, extrapolate
from tiebreak.estimates import Memory, estimate, exact
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Method
from tiebreak.methods.descent import descend
from tiebreak.methods.parameters import declared, real, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.methods.unknown import NOISE, beginning, knows_smoothness, say_estimated
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power, safe_step

SHOWN = 1.001  # factor of a smoothness constant: a larger ratio of gradients shows that it is too small …
RAISED = 1.05  # … and is multiplied by this to become the next one; …
ESTIMATE_RAISED = 2.0  # … an estimate is at least multiplied by this, so that few restarts lead to any constant
JUDGED, JUMPING = 100, 0.25  # steps after which, and share of the largest estimate at which, a gradient seems to jump
SHORT = 1e-7  # length of a step relative to y, below which ratios of gradients are rounding errors


class Glide(NamedTuple):
    """Where the accelerated points are."""

    previous: Point  # x_{t−1}
    y: Point  # y_t
    last_y: Point  # y_{t−1}
    since: Count  # k, the steps since the last restart, one number
    inside: Count  # 1 if y_t must stay in Z, else 0, one number


class Curvature(NamedTuple):
    """What is known of the smoothness of one objective F."""

    last: Room  # ∇F(y_{t−1})
    smoothness: Number  # L, one number; 0: steps do not depend on it
    longest: Number  # ‖∇F‖, the largest so far, one number
    error: Number  # share of that by which a gradient may differ from another one by rounding, one number
    width: Number  # the diameter of Z, one number; 0 if L was not estimated


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
def against(y, x, previous):
    """Return whether a step from y_t to x_{t+1} goes against the momentum: ⟨y_t − x_{t+1}, x_{t+1} − x_t⟩ > 0."""
    total = 0.0
    for i in range(x.size):
        total += (y[i] - x[i]) * (x[i] - previous[i])
    return total > 0.0


@kernel
def stay_inside(domain, glide, room):
    """Project y_t, if it must stay in Z."""
    if glide.inside[0] == 1 and glide.since[0] > 1:
        copy(glide.y, room)
        project(domain, room, glide.y)


@kernel
def look(plan, objective, memory, known, glide, moment):
    """Find ∇F(y_t) and raise L where it is shown to be too small; return whether all is finite."""
    copy(memory.direction, known.last)
    estimate(plan, objective, memory, glide.y, glide.y, 0, moment)
    known.longest[0] = max(known.longest[0], math.sqrt(dot(memory.direction, memory.direction)))
    if known.smoothness[0] > 0.0 and moment.iteration > 0:
        moved, changed = distance(glide.y, glide.last_y), distance(memory.direction, known.last)
        if moved > SHORT * math.sqrt(dot(glide.y, glide.y)) and changed > known.error[0] * known.longest[0]:
            raised = raised_to(known, changed / moved, moment.iteration)
            if raised > known.smoothness[0]:
                known.smoothness[0] = raised
                glide.since[0] = 0
    return math.isfinite(memory.value[0])


@kernel
def raised_to(known, shown, t):
    """Return L, or a larger one if gradients show that it is too small."""
    L = known.smoothness[0]
    if shown <= SHOWN * L:
        return L
    if known.width[0] == 0.0:
        return RAISED * shown
    most = known.longest[0] * (t + 1.0) ** 1.5 / known.width[0]
    return max(min(max(RAISED * shown, ESTIMATE_RAISED * L), most), L)


@kernel
def look_at_both(problem, plan, state, keys):
    """Do so at both levels; return DONE or which is not finite."""
    stay_inside(problem.domain, state.glide, state.room)
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
        state.glide.inside[0] = not (compilable(problem.upper) and compilable(problem.lower))
        begin_curvature(state.upper_curvature, problem, "upper", plan.upper_smoothness)
        begin_curvature(state.lower_curvature, problem, "lower", plan.lower_smoothness)
        return state

    def remark(self, problem: Problem, state: Any) -> str:
        steps = int(state.iteration[0])
        upper = remark_on(problem, "upper", state.upper_curvature, steps)
        return upper + remark_on(problem, "lower", state.lower_curvature, steps)


def begin_curvature(known: Curvature, problem: Problem, level: str, smoothness: float) -> None:
    """Fill in what is known of an objective at t = 0."""
    objective = getattr(problem, level)
    known.smoothness[0], known.error[0] = smoothness, NOISE * float(objective.accuracy)
    known.width[0] = 0.0 if smoothness == 0.0 or knows_smoothness(objective) else problem.domain.diameter


def remark_on(problem: Problem, level: str, known: Curvature, steps: int) -> str:
    """Return what would help where L was estimated; nothing where it was not."""
    L, width, longest = float(known.smoothness[0]), float(known.width[0]), float(known.longest[0])
    if L == 0.0 or width == 0.0 or not math.isnan(getattr(problem, level).lipschitz):
        return ""
    if steps >= JUDGED and 0.0 < JUMPING * longest * steps**1.5 <= L * width:
        return (
            f"; the gradient of the {level} objective seems to jump, and methods for smooth objectives end far from the"
            " solution: round its kinks, as HuberLoss does those of the absolute value"
        )
    return say_estimated(level)


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
        return {"regularization": lambda: self._weight(problem), "step": lambda: self._safe(problem)}

    def _weight(self, problem: Problem) -> Any:
        if self.regularization is not None:
            return self.regularization
        upper, lower = beginning(problem)
        return power(lower / upper, 1.5)

    def _safe(self, problem: Problem) -> safe_step:
        upper, lower = beginning(problem)
        return safe_step(0.95, lower, constant(1.0), upper, self._weight(problem))

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            upper=exact(problem.upper),
            lower=exact(problem.lower),
            step=self.given("step"),
            regularization=self.given("regularization"),
            inertia=self.inertia,
            **given_smoothness(self.step),
        )
