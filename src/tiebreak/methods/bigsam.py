"""BiG-SAM: bilevel gradient sequential averaging.

Sabach and Shtern, A first order method for solving convex bilevel optimization problems, SIAM Journal on Optimization 2017.

    y_{t+1} = Π(x_t − s_g ∇g(x_t)),   z_{t+1} = x_t − s_f ∇f(x_t),   x_{t+1} = α_t z_{t+1} + (1 − α_t) y_{t+1}
    answer:  y_t

In the paper: s_g ≤ 1/L_g is ``step``, s_f ≤ 2/(L_f + μ_f) is ``upper_step``, α_t = min{2γ / ((1 − β)(t + 1)), 1} with γ ∈
(0, 1] and β = √(1 − 2 s_f μ_f L_f / (μ_f + L_f)) is ``mixing(t)``. The points x need not lie in Z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.estimates import Exact, Memory, exact
from tiebreak.methods.base import DONE, Budget, Method, smoothness
from tiebreak.methods.descent import estimate_both
from tiebreak.methods.parameters import declared, schedule
from tiebreak.methods.states import Count, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, capped, constant, power


class State(NamedTuple):
    """The state of BiG-SAM."""

    x: Point  # x_t
    y: Point  # y_t
    room: Room  # y_{t+1} before its projection
    upper: Memory  # ∇f(x_t)
    lower: Memory  # ∇g(x_t)
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Exact  # all samples of f
    lower: Exact  # all samples of g
    step: Any  # s_g
    upper_step: Any  # s_f
    mixing: Any  # α_t


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    x, y, room = state.x, state.y, state.room
    for k in range(iterations):
        outcome = estimate_both(problem, plan, state, x, x, k, keys, 0)
        if outcome != DONE:
            return outcome
        upper, lower, mixing = state.upper.direction, state.lower.direction, plan.mixing[k]
        for i in range(x.size):
            room[i] = x[i] - plan.step[k] * lower[i]
        project(problem.domain, room, y)
        for i in range(x.size):
            x[i] = mixing * (x[i] - plan.upper_step[k] * upper[i]) + (1.0 - mixing) * y[i]
        state.iteration[0] += 1
    return DONE


@declared
class BiGSAM(Method):
    """Bilevel gradient sequential averaging.

    Examples
    --------
    >>> BiGSAM(step=0.1, upper_step=0.1, mixing=lambda t: 1 / (t + 1)).name
    'big-sam'
    """

    step: ScheduleLike | None = schedule("The length of a gradient step on g; 1 / L_g if not given.")
    upper_step: ScheduleLike | None = schedule("The length of a gradient step on f; 2 / (L_f + μ_f) if not given.")
    mixing: ScheduleLike | None = schedule(
        "α_t, the weight of the step on f, between 0 and 1. If not given it follows from L_f and μ_f, which must be"
        " positive.",
        largest=1.0,
    )

    name = "big-sam"
    citation = "Sabach, Shtern (2017)"
    setting = "exact gradients"
    needs = "projection, f strongly convex"
    rates = "converges; t^-1"
    loop = advance
    state = State
    projects = True
    convex = True

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            "step": lambda: constant(1.0 / smoothness(problem, "lower", self, "step=...")),
            "upper_step": lambda: constant(2.0 / (self._upper_lipschitz(problem) + float(problem.upper.strong_convexity))),
            "mixing": lambda: self._mixing(problem),
        }

    def _upper_lipschitz(self, problem: Problem) -> float:
        return smoothness(problem, "upper", self, "upper_step=... and mixing=...")

    def _mixing(self, problem: Problem) -> Any:
        modulus = float(problem.upper.strong_convexity)
        if not modulus > 0.0:
            raise ValueError(
                "the method 'big-sam' needs an upper objective that is strongly convex, and it is not known to be"
                f" (strong_convexity = {modulus:g}): pass mixing=..., say lambda t: 1 / (t + 1), to run it without theory"
            )
        lipschitz = self._upper_lipschitz(problem)
        step = 2.0 / (lipschitz + modulus)
        contraction = math.sqrt(max(1.0 - 2.0 * step * modulus * lipschitz / (modulus + lipschitz), 0.0))
        return capped(power(2.0 / (1.0 - contraction), 1.0), 1.0)

    def plan(self, problem: Problem) -> Plan:
        schedules = (self.given(name) for name in ("step", "upper_step", "mixing"))
        return Plan(exact(problem.upper), exact(problem.lower), *schedules)

    def answer(self, state: State) -> np.ndarray:
        return state.y
