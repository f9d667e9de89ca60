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
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.estimates import gradient_at
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Cost, Method, counter, smoothness
from tiebreak.methods.projecting import Full, full, full_cost
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, capped, constant, power


class State(NamedTuple):
    """The state of BiG-SAM."""

    x: np.ndarray  # x_t
    y: np.ndarray  # y_t
    room: np.ndarray  # y_{t+1} before its projection
    upper: np.ndarray  # ∇f(x_t)
    lower: np.ndarray  # ∇g(x_t)
    iteration: np.ndarray  # t, one number


@kernel
def advance(problem, state, constants, step, upper_step, mixing, keys):
    """Take one step for each entry of the schedules."""
    f, g, domain = problem
    x, y, room, upper, lower, t = state
    for k in range(step.size):
        if not math.isfinite(gradient_at(f, constants.upper, x, upper)):
            return UPPER_NOT_FINITE
        if not math.isfinite(gradient_at(g, constants.lower, x, lower)):
            return LOWER_NOT_FINITE
        for i in range(x.size):
            room[i] = x[i] - step[k] * lower[i]
        project(domain, room, y)
        for i in range(x.size):
            x[i] = mixing[k] * (x[i] - upper_step[k] * upper[i]) + (1.0 - mixing[k]) * y[i]
        t[0] += 1
    return DONE


@dataclass(frozen=True)
class BiGSAM(Method):
    """Bilevel gradient sequential averaging.

    Parameters
    ----------
    step : number or function of t, optional
        The length of a gradient step on g; 1 / L_g if not given.
    upper_step : number or function of t, optional
        The length of a gradient step on f; 2 / (L_f + μ_f) if not given.
    mixing : number or function of t, optional
        α_t, the weight of the step on f, between 0 and 1. If not given it follows from L_f and μ_f, which must be positive.

    Examples
    --------
    >>> BiGSAM(step=0.1, upper_step=0.1, mixing=lambda t: 1 / (t + 1)).name
    'big-sam'
    """

    step: ScheduleLike | None = None
    upper_step: ScheduleLike | None = None
    mixing: ScheduleLike | None = None

    name = "big-sam"
    citation = "Sabach, Shtern (2017)"
    setting = "exact gradients"
    needs = "projection, f strongly convex"
    rates = "converges; t^-1"
    loop = advance
    projects = True
    convex = True
    limits: ClassVar = {"step": np.inf, "upper_step": np.inf, "mixing": 1.0}

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

    def constants(self, problem: Problem) -> Full:
        return full(problem)

    def start(self, problem: Problem, constants: Full, x: np.ndarray) -> State:
        return State(x.copy(), x.copy(), np.zeros_like(x), np.zeros_like(x), np.zeros_like(x), counter())

    def answer(self, state: State) -> np.ndarray:
        return state.y

    def cost(self, problem: Problem, constants: Full, t: np.ndarray) -> Cost:
        return full_cost(constants, t)
