"""FISTA: accelerated projected gradient on one level. On g it finds the first points of other methods.

Beck and Teboulle, A fast iterative shrinkage-thresholding algorithm, SIAM Journal on Imaging Sciences 2009.

    y_t = x_t + k / (k + 3) (x_t − x_{t−1});   x_{t+1} = Π(y_t − γ_t ∇F(y_t))

k counts the steps since the momentum last started anew: when L is shown to be too small (``accelerated.py``), and where a
step goes against it, ⟨y_t − x_{t+1}, x_{t+1} − x_t⟩ > 0 (O'Donoghue and Candès, Adaptive restart for accelerated gradient
schemes, 2015). Where F grows as a square from its minimisers, gaps fall geometrically with that, and else about as without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import compilable, kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy
from tiebreak.estimates import Memory, exact
from tiebreak.methods.accelerated import Curvature, Glide, against, begin_curvature, glide_on, look, remark_on, stay_inside
from tiebreak.methods.base import DONE, Budget
from tiebreak.methods.one_level import OneLevel, objective_of
from tiebreak.methods.parameters import declared, schedule
from tiebreak.methods.states import Count, Point, Room
from tiebreak.methods.unknown import smoothness_of
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, safe_step


class State(NamedTuple):
    """The state of FISTA."""

    x: Point  # x_t
    glide: Glide
    memory: Memory  # ∇F(y_t)
    curvature: Curvature
    room: Room  # x_{t+1} before its projection
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop of FISTA uses."""

    level: Any  # Upper or Lower
    failure: int  # what the loop returns when F is not finite
    estimate: Any  # all samples
    step: Any  # γ_t
    inertia: float  # α
    smoothness: float  # L as it is given; 0 if steps do not depend on it


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps of FISTA."""
    objective, glide, gradient = objective_of(plan.level, problem), state.glide, state.memory.direction
    for k in range(iterations):
        glide_on(state.x, glide, plan.inertia)
        stay_inside(problem.domain, glide, state.room)
        moment = Moment(keys.lower, state.iteration[0], 0, 0)  # nothing is drawn
        if not look(plan.estimate, objective, state.memory, state.curvature, glide, moment):
            return plan.failure
        known, step = state.curvature.smoothness[0], plan.step[k]
        if known > plan.smoothness:
            step = step * plan.smoothness / known
        for i in range(state.x.size):
            state.room[i] = glide.y[i] - step * gradient[i]
        project(problem.domain, state.room, state.x)
        if against(glide.y, state.x, glide.previous):
            glide.since[0] = 0
        copy(glide.y, glide.last_y)
        state.iteration[0] += 1
    return DONE


@declared
class FISTA(OneLevel):
    """Accelerated projected gradient on one level. On g it finds the first point of other methods.

    Examples
    --------
    >>> FISTA(step=0.1, level="lower").name
    'fista'
    """

    step: ScheduleLike | None = schedule("The length of a gradient step; 1 / L if not given.")

    name = "fista"
    citation = "Beck, Teboulle (2009)"
    setting = "exact gradients, one level only"
    needs = "projection, convexity"
    rates = "t^-2 between restarts, of the one level"
    loop = advance
    state = State
    projects = True

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: self._safe(smoothness_of(problem, self.level, single=False).whole)}

    def _safe(self, lipschitz: float) -> safe_step:
        return safe_step(1.0, lipschitz, constant(1.0), 0.0, constant(1.0))

    def plan(self, problem: Problem) -> Plan:
        known = self.step.lower_lipschitz if isinstance(self.step, safe_step) else 0.0
        return Plan(self.mark, self.failure, exact(getattr(problem, self.level)), self.given("step"), 3.0, known)

    def start(self, problem: Problem, plan: Plan, x: np.ndarray) -> State:
        state: State = super().start(problem, plan, x)
        state.glide.inside[0] = not compilable(getattr(problem, self.level))
        begin_curvature(state.curvature, problem, self.level, plan.smoothness)
        return state

    def remark(self, problem: Problem, state: State) -> str:
        return remark_on(problem, self.level, state.curvature, int(state.iteration[0]))
