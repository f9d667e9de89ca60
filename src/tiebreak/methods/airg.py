"""a-IRG: averaged iteratively regularised gradient.

Kaushik and Yousefian, A method with convergence rates for optimization problems with variational inequality constraints,
SIAM Journal on Optimization 2021.

    x_{t+1} = Π(x_t − γ_t (∇g(x_t) + η_t ∇f(x_t)));   answer:  the mean of x_0 … x_t with weights γ_0^r … γ_t^r

In the paper: γ_t = γ_0 / √(t + 1) is ``step(t)``, η_t = η_0 (t + 1)^−1/4 is ``regularization(t)``, r is ``average_power``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.vectors import move
from tiebreak.estimates import Exact, Memory, exact
from tiebreak.methods.base import DONE, Budget, Method, smoothness, smoothnesses
from tiebreak.methods.descent import descend, estimate_both
from tiebreak.methods.parameters import declared, flag, real, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import Derived, ScheduleLike, power


class State(NamedTuple):
    """The state of a-IRG."""

    x: Point  # x_t
    room: Room  # x_{t+1} before its projection
    upper: Memory  # ∇f(x_t)
    lower: Memory  # ∇g(x_t)
    mean: Point  # the weighted mean of x_0 … x_t
    weight: Number  # the sum of their weights, one number
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Exact  # all samples of f
    lower: Exact  # all samples of g
    step: Any  # γ_t
    regularization: Any  # η_t
    weight: Any  # γ_{t+1}^r


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    x = state.x
    for k in range(iterations):
        outcome = estimate_both(problem, plan, state, x, x, k, keys, 0)
        if outcome != DONE:
            return outcome
        descend(problem.domain, state, x, plan.step[k] * plan.regularization[k], plan.step[k], x)
        state.weight[0] += plan.weight[k]
        if state.weight[0] > 0.0:
            move(state.mean, x, plan.weight[k] / state.weight[0])
        state.iteration[0] += 1
    return DONE


@declared
class AIRG(Method):
    """Averaged iteratively regularised gradient.

    Examples
    --------
    >>> AIRG(step=0.1, regularization=lambda t: (t + 1) ** -0.25).average_power
    0.5
    """

    step: ScheduleLike | None = schedule("γ_t, the length of a gradient step; 1 / (L_g √(t + 1)) if not given.")
    regularization: ScheduleLike | None = schedule("η_t, the weight of f; (L_g / L_f) (t + 1)^−1/4 if not given.")
    average: bool = flag(
        "Whether the answer is the weighted mean of the points, for which the rates hold, or the last one.", True
    )
    average_power: float = real("r < 1, the power of γ_t that weighs x_t in the mean.", 0.5)

    name = "a-irg"
    citation = "Kaushik, Yousefian (2021)"
    setting = "exact gradients"
    needs = "projection, f convex"
    rates = "t^-1/4; t^-1/4"
    loop = advance
    state = State
    projects = True
    convex = True

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        def ratio() -> float:
            upper, lower = smoothnesses(problem, self, "regularization=...")
            return lower / upper

        return {
            "step": lambda: power(1.0 / smoothness(problem, "lower", self, "step=..."), 0.5),
            "regularization": lambda: power(ratio(), 0.25),
        }

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            upper=exact(problem.upper),
            lower=exact(problem.lower),
            step=self.given("step"),
            regularization=self.given("regularization"),
            weight=Derived(lambda t: self._weights(t + 1)),
        )

    def _weights(self, t: np.ndarray) -> np.ndarray:
        return self.given("step")(t) ** self.average_power

    def start(self, problem: Problem, plan: Plan, x: np.ndarray) -> State:
        state: State = super().start(problem, plan, x)
        state.weight[:] = self._weights(np.zeros(1, dtype=np.int64))
        return state

    def answer(self, state: State) -> np.ndarray:
        return state.mean if self.average else state.x
