"""a-IRG: averaged iteratively regularised gradient.

Kaushik and Yousefian, A method with convergence rates for optimization problems with variational inequality constraints,
SIAM Journal on Optimization 2021.

    x_{t+1} = Π(x_t − γ_t (∇g(x_t) + η_t ∇f(x_t)));   answer:  the mean of x_0 … x_t with weights γ_0^r … γ_t^r

In the paper: γ_t = γ_0 / √(t + 1) is ``step(t)``, η_t = η_0 (t + 1)^−1/4 is ``regularization(t)``, r is ``average_power``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak import schedules
from tiebreak.engine import kernel
from tiebreak.engine.vectors import move
from tiebreak.methods.base import DONE, Budget, Cost, Method, counter, smoothness
from tiebreak.methods.projecting import Full, descend, full, full_cost
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, power


class State(NamedTuple):
    """The state of a-IRG."""

    x: np.ndarray  # x_t
    room: np.ndarray  # x_{t+1} before its projection
    mean: np.ndarray  # the weighted mean of x_0 … x_t
    weight: np.ndarray  # the sum of their weights, one number
    iteration: np.ndarray  # t, one number


@kernel
def advance(problem, state, constants, step, regularization, weight, keys):
    """Take one step for each entry of the schedules."""
    x, room, mean, total, t = state
    for k in range(step.size):
        outcome = descend(problem, constants.upper, constants.lower, x, step[k] * regularization[k], step[k], x, room, x)
        if outcome != DONE:
            return outcome
        total[0] += weight[k]
        if total[0] > 0.0:
            move(mean, x, weight[k] / total[0])
        t[0] += 1
    return DONE


@dataclass(frozen=True)
class AIRG(Method):
    """Averaged iteratively regularised gradient.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the length of a gradient step; 1 / (L_g √(t + 1)) if not given.
    regularization : number or function of t, optional
        η_t, the weight of f; (L_g / L_f) (t + 1)^−1/4 if not given.
    average : bool
        Whether the answer is the weighted mean of the points, for which the rates hold, or the last one.
    average_power : float
        r < 1, the power of γ_t that weighs x_t in the mean.

    Examples
    --------
    >>> AIRG(step=0.1, regularization=lambda t: (t + 1) ** -0.25).average_power
    0.5
    """

    step: ScheduleLike | None = None
    regularization: ScheduleLike | None = None
    average: bool = True
    average_power: float = 0.5

    name = "a-irg"
    citation = "Kaushik, Yousefian (2021)"
    setting = "exact gradients"
    needs = "projection, f convex"
    rates = "t^-1/4; t^-1/4"
    loop = advance
    projects = True
    convex = True
    reals: ClassVar = {"average_power": {}}
    flags = ("average",)
    limits: ClassVar = {"step": np.inf, "regularization": np.inf}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        def lower(instead: str) -> float:
            return smoothness(problem, "lower", self, instead)

        def upper(instead: str) -> float:
            return smoothness(problem, "upper", self, instead)

        return {
            "step": lambda: power(1.0 / lower("step=..."), 0.5),
            "regularization": lambda: power(lower("regularization=...") / upper("regularization=..."), 0.25),
        }

    def constants(self, problem: Problem) -> Full:
        return full(problem)

    def start(self, problem: Problem, constants: Full, x: np.ndarray) -> State:
        return State(x.copy(), np.zeros_like(x), x.copy(), self._weights(np.zeros(1, dtype=np.int64)), counter())

    def answer(self, state: State) -> np.ndarray:
        return state.mean if self.average else state.x

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        step, regularization = super().schedule_values(t)
        return step, regularization, self._weights(t + 1)

    def _weights(self, t: np.ndarray) -> np.ndarray:
        return schedules.evaluate(self.step, t, "step") ** self.average_power  # type: ignore[arg-type]

    def cost(self, problem: Problem, constants: Full, t: np.ndarray) -> Cost:
        return full_cost(constants, t)
