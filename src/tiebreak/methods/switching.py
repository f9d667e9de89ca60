"""Switching gradient: a step on f where g is small enough, a step on g elsewhere.

Polyak, A general method of solving extremum problems, 1967; for simple bilevel problems Chen, Xu and Zhang, On bilevel
optimization without lower-level strong convexity, 2023.

    d_t = ∇f(x_t) if g(x_t) ≤ g(x_0) + K_t, else ∇g(x_t);   x_{t+1} = Π(x_t − γ_t d_t / ‖d_t‖)
    answer:  the mean, with weights γ_t, of the points at which the step was one on f

In the papers: γ_t is ``step(t)``, K_t is ``slack(t)``, g(x_0), which should be nearly g*, is ``anchor``. For near ties the
level that g may reach takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import dot, move
from tiebreak.estimates import Exact, Memory, estimate, exact
from tiebreak.methods.base import (
    DONE,
    LOWER_NOT_FINITE,
    UPPER_NOT_FINITE,
    Budget,
    Method,
    initial,
    smoothness,
)
from tiebreak.methods.fista import FISTA
from tiebreak.methods.parameters import declared, flag, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, power, squared


class State(NamedTuple):
    """The state of the switching gradient method."""

    x: Point  # x_t
    room: Room  # x_{t+1} before its projection
    upper: Memory  # ∇f(x_t), where it is needed
    lower: Memory  # ∇g(x_t)
    mean: Point  # the weighted mean of the points with a step on f
    weight: Number  # the sum of their weights, one number
    anchor: Number  # g(x_0), one number
    rise: Number  # how far the level is above that, for near ties
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Exact  # all samples of f
    lower: Exact  # all samples of g
    step: Any  # γ_t
    slack: Any  # K_t


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    x, upper, lower = state.x, state.upper, state.lower
    for k in range(iterations):
        t = state.iteration[0]
        estimate(plan.lower, problem.lower, lower, x, x, k, Moment(keys.lower, t, 0, 0))
        if not math.isfinite(lower.value[0]):
            return LOWER_NOT_FINITE
        if t == 0:
            state.anchor[0] = lower.value[0]
        if lower.value[0] <= state.anchor[0] + state.rise[0] + plan.slack[k]:
            estimate(plan.upper, problem.upper, upper, x, x, k, Moment(keys.upper, t, 0, 0))
            if not math.isfinite(upper.value[0]):
                return UPPER_NOT_FINITE
            state.weight[0] += plan.step[k]
            if state.weight[0] > 0.0:
                move(state.mean, x, plan.step[k] / state.weight[0])
            step_along(problem.domain, state, upper.direction, plan.step[k])
        else:
            step_along(problem.domain, state, lower.direction, plan.step[k])
        state.iteration[0] += 1
    return DONE


@kernel
def step_along(domain, state, gradient, step):
    """Set x ← Π(x − step · gradient / ‖gradient‖)."""
    x, room, length = state.x, state.room, math.sqrt(dot(gradient, gradient))
    if length > 0.0:
        for i in range(x.size):
            room[i] = x[i] - step / length * gradient[i]
        project(domain, room, x)


@declared
class SwitchingGradient(Method):
    """A step on f where g is small enough, a step on g elsewhere.

    Examples
    --------
    >>> SwitchingGradient(step=0.1, slack=1e-3).initial.level
    'lower'
    """

    step: ScheduleLike | None = schedule(
        "γ_t, the length of a step; a hundredth of the diameter of Z over √(t + 1) if not given."
    )
    slack: ScheduleLike | None = schedule(
        "K_t, by how much g may exceed g(x_0); ½ L_g γ_t² if not given, as much as one step can add to the least g."
    )
    average: bool = flag(
        "Whether the answer is the weighted mean of the points with a step on f, for which the rates hold, or the last"
        " point.",
        True,
    )
    initial: Method | None = initial(FISTA(level="lower"))

    name = "switching-gradient"
    citation = "Chen, Xu, Zhang (2023)"
    setting = "exact gradients"
    needs = "projection, f convex"
    rates = "t^-1/2; t^-1/2"
    loop = advance
    state = State
    projects = True
    convex = True
    near_ties = True

    def allow(self, state: State, level: float, rise: float) -> None:
        state.rise[0] = rise

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        step = power(0.01 * problem.domain.diameter, 0.5) if self.step is None else self.step
        return {
            "step": lambda: step,
            "slack": lambda: squared(0.5 * smoothness(problem, "lower", self, "slack=..."), step),  # type: ignore[arg-type]
        }

    def plan(self, problem: Problem) -> Plan:
        return Plan(exact(problem.upper), exact(problem.lower), self.given("step"), self.given("slack"))

    def answer(self, state: State) -> np.ndarray:
        return state.mean if self.average else state.x
