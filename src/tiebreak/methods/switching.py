"""Switching gradient: a step on f where g is small enough, a step on g elsewhere.

Polyak, A general method of solving extremum problems, 1967; for simple bilevel problems Chen, Xu and Zhang, On bilevel
optimization without lower-level strong convexity, 2023.

    d_t = ∇f(x_t) if g(x_t) ≤ g(x_0) + K_t, else ∇g(x_t);   x_{t+1} = Π(x_t − γ_t d_t / ‖d_t‖)
    answer:  the mean, with weights γ_t, of the points at which the step was one on f

In the papers: γ_t is ``step(t)``, K_t is ``slack(t)``, g(x_0), which should be nearly g*, is ``anchor``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.vectors import dot, move
from tiebreak.estimates import gradient_at
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Cost, Method, counter, smoothness
from tiebreak.methods.fista import FISTA
from tiebreak.methods.projecting import Full, full, full_cost
from tiebreak.problem import Problem
from tiebreak.schedules import Schedule, ScheduleLike, power


class State(NamedTuple):
    """The state of the switching gradient method."""

    x: np.ndarray  # x_t
    room: np.ndarray  # x_{t+1} before its projection
    gradient: np.ndarray  # d_t
    mean: np.ndarray  # the weighted mean of the points with a step on f
    weight: np.ndarray  # the sum of their weights, one number
    anchor: np.ndarray  # g(x_0), one number
    unasked: np.ndarray  # samples of f that steps on g made needless, one number
    iteration: np.ndarray  # t, one number


@kernel
def advance(problem, state, constants, step, slack, keys):
    """Take one step for each entry of the schedules."""
    x, room, gradient, mean, total, anchor, unasked, t = state
    for k in range(step.size):
        lower = gradient_at(problem.lower, constants.lower, x, gradient)
        if not math.isfinite(lower):
            return LOWER_NOT_FINITE
        if t[0] == 0:
            anchor[0] = lower
        if lower <= anchor[0] + slack[k]:
            if not math.isfinite(gradient_at(problem.upper, constants.upper, x, gradient)):
                return UPPER_NOT_FINITE
            total[0] += step[k]
            if total[0] > 0.0:
                move(mean, x, step[k] / total[0])
        else:
            unasked[0] += constants.upper.size
        length = math.sqrt(dot(gradient, gradient))
        if length > 0.0:
            for i in range(x.size):
                room[i] = x[i] - step[k] / length * gradient[i]
            project(problem.domain, room, x)
        t[0] += 1
    return DONE


@dataclass(frozen=True)
class SwitchingGradient(Method):
    """A step on f where g is small enough, a step on g elsewhere.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the length of a step; a hundredth of the diameter of Z over √(t + 1) if not given.
    slack : number or function of t, optional
        K_t, by how much g may exceed g(x_0); ½ L_g γ_t² if not given, as much as one step can add to the least g.
    average : bool
        Whether the answer is the weighted mean of the points with a step on f, for which the rates hold, or the last point.
    initial : Method, optional
        What finds the first point, which should nearly minimise g, if none is given to ``minimize``.

    Examples
    --------
    >>> SwitchingGradient(step=0.1, slack=1e-3).initial.level
    'lower'
    """

    step: ScheduleLike | None = None
    slack: ScheduleLike | None = None
    average: bool = True
    initial: Method | None = FISTA(level="lower")

    name = "switching-gradient"
    citation = "Chen, Xu, Zhang (2023)"
    setting = "exact gradients"
    needs = "projection, f convex"
    rates = "t^-1/2; t^-1/2"
    loop = advance
    projects = True
    convex = True
    limits: ClassVar = {"step": np.inf, "slack": np.inf}
    flags = ("average",)

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        step = power(0.01 * problem.domain.diameter, 0.5) if self.step is None else self.step
        return {
            "step": lambda: step,
            "slack": lambda: squared(0.5 * smoothness(problem, "lower", self, "slack=..."), step),  # type: ignore[arg-type]
        }

    def constants(self, problem: Problem) -> Full:
        return full(problem)

    def start(self, problem: Problem, constants: Full, x: np.ndarray) -> State:
        return State(x.copy(), np.zeros_like(x), np.zeros_like(x), x.copy(), np.zeros(1), np.zeros(1), counter(), counter())

    def answer(self, state: State) -> np.ndarray:
        return state.mean if self.average else state.x

    def cost(self, problem: Problem, constants: Full, t: np.ndarray) -> Cost:
        return full_cost(constants, t)

    def unspent(self, state: State) -> np.ndarray:
        return int(state.unasked[0]) * np.array([1, 0, 1, 0])


@dataclass(frozen=True)
class squared:
    """A factor times the square of a schedule."""

    factor: float
    schedule: Schedule

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.factor * np.square(self.schedule(t))
