"""aR-IP-SeG: averaged randomly-projected iteratively penalised stochastic extra-gradient.

Jalilzadeh, Yousefian and Ebrahimi, Stochastic approximation for estimating the price of stability in stochastic Nash games,
ACM Transactions on Modeling and Computer Simulation, 2024 (arXiv 2203.01271).

    y_{t+1} = Π(x_t − γ_t (∇f~(x_t, θ_t) + ρ_t ∇g~(x_t, ξ_t)))
    x_{t+1} = Π(x_t − γ_t (∇f~(y_{t+1}, θ'_t) + ρ_t ∇g~(y_{t+1}, ξ'_t)))                          with fresh samples
    answer:  the mean of the y's with weights (γ_t ρ_t)^r

In the paper: γ_t is ``step(t)``, ρ_t is ``penalty(t)``, r is ``average_power``. As printed by Cao et al. the parentheses
would ascend on g, and the second step would start from y; this is the method of the paper that they cite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.vectors import move
from tiebreak.estimates import Memory, Sampled, drawing_what_is_sampled
from tiebreak.methods.base import DONE, Budget, Method, preset, smoothnesses
from tiebreak.methods.descent import descend, estimate_both
from tiebreak.methods.parameters import declared, flag, real, schedule, whole
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import Derived, ScheduleLike, power


class State(NamedTuple):
    """The state of aR-IP-SeG."""

    x: Point  # x_t
    y: Point  # y_t
    room: Room  # a point before its projection
    upper: Memory  # ∇f~ at x_t, then at y_{t+1}
    lower: Memory  # ∇g~ likewise
    mean: Point  # the weighted mean of y_1 … y_t
    weight: Number  # the sum of their weights, one number
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Sampled  # how ∇f~ is estimated
    lower: Sampled  # how ∇g~ is
    step: Any  # γ_t
    penalty: Any  # ρ_t
    weight: Any  # (γ_t ρ_t)^r


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many extra-gradient steps."""
    x, y = state.x, state.y
    for k in range(iterations):
        step = plan.step[k]
        for turn in range(2):
            at, out = (x, y) if turn == 0 else (y, x)
            outcome = estimate_both(problem, plan, state, at, at, k, keys, turn)
            if outcome != DONE:
                return outcome
            descend(problem.domain, state, x, step, step * plan.penalty[k], out)
        state.weight[0] += plan.weight[k]
        if state.weight[0] > 0.0:
            move(state.mean, y, plan.weight[k] / state.weight[0])
        state.iteration[0] += 1
    return DONE


@declared
class ARIPSeG(Method):
    """Averaged iteratively penalised stochastic extra-gradient.

    Examples
    --------
    >>> ARIPSeG(preset="paper", batch_size=8).penalty
    power(scale=1000.0, exponent=-0.25, shift=1.0)
    """

    step: ScheduleLike | None = schedule("γ_t, the length of a gradient step.")
    penalty: ScheduleLike | None = schedule("ρ_t, the weight of g.")
    batch_size: int | None = whole("Samples drawn at each level for each of the two gradients of an iteration.")
    average: bool = flag(
        "Whether the answer is the weighted mean of the points y, for which the rates hold, or the last x.", True
    )
    average_power: float = real("r, the power of γ_t ρ_t that weighs y_{t+1} in the mean.", 0.5)
    preset: str = preset(
        '``"auto"``: γ_t = (t + 1)^−3/4 / (2 L_f) and ρ_t = (L_f / L_g) (t + 1)^1/4, so that units do not matter;'
        ' ``"paper"`` and ``"paper-dictionary"``: the regression and the dictionary experiment of Cao et al. (2023), the'
        " latter for means of 250 samples."
    )

    name = "arip-seg"
    citation = "Jalilzadeh, Yousefian, Ebrahimi (2024)"
    setting = "stream or finite sum"
    streams = True
    needs = "projection, f convex"
    rates = "t^-1/4; t^-1/4"
    loop = advance
    state = State
    projects = True
    presets: ClassVar = {
        "auto": {"batch_size": 8},
        "paper": {"step": power(1e-7, 0.75), "penalty": power(1e3, -0.25), "batch_size": 1},
        "paper-dictionary": {"step": power(250 * 1e-4, 0.75), "penalty": power(1.0, -0.25), "batch_size": 8},
    }

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        def constants() -> tuple[float, float]:
            return smoothnesses(problem, self, "step=... and penalty=...")

        return {
            "step": lambda: power(0.5 / constants()[0], 0.75),
            "penalty": lambda: power(constants()[0] / constants()[1], -0.25),
        }

    def plan(self, problem: Problem) -> Plan:
        assert self.batch_size is not None
        step, penalty, sampled = self.given("step"), self.given("penalty"), Sampled(self.batch_size)
        weight = Derived(lambda t: (step(t) * penalty(t)) ** self.average_power)
        return Plan(*drawing_what_is_sampled(problem, sampled, sampled), step, penalty, weight)

    def estimates(self, plan: Plan) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return (plan.upper, plan.upper), (plan.lower, plan.lower)

    def answer(self, state: State) -> np.ndarray:
        return state.mean if self.average else state.x
