"""SPIDER-FW: Frank-Wolfe on one level, with SPIDER estimates. On g it finds the first point of the bilevel methods.

Yurtsever, Sra and Cevher, Conditional gradient methods via stochastic path-integrated differential estimator, ICML 2019.

    t mod q = 0:  ∇F̂_t = ∇F(x_t);   otherwise  ∇F̂_t = ∇F̂_{t−1} + ∇F_S(x_t) − ∇F_S(x_{t−1})
    s_t = argmin ⟨∇F̂_t, s⟩ over s ∈ Z;   x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t

In the paper: γ_{t+1} is ``step(t)``, S is ``batch_size``, q is ``period``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tiebreak import checks
from tiebreak.domains import lmo
from tiebreak.engine import Kernel, kernel
from tiebreak.estimators import Estimate, Sampling, no_estimate, spider, spider_cost, spider_sampling
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Cost, Method
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, power
from tiebreak.vectors import abs_argmax, copy, move


class State(NamedTuple):
    """The state of SPIDER-FW."""

    x: np.ndarray  # x_t
    previous: np.ndarray  # x_{t−1}
    target: np.ndarray  # s_t
    estimate: Estimate  # ∇F̂_t
    iteration: np.ndarray  # t, one number
    empty_cuts: np.ndarray  # there is no cut: 0


class Constants(NamedTuple):
    """What the loop takes besides its schedules."""

    sampling: Sampling  # S and q


@kernel
def advance(objective, domain, state, sampling, step, rng):
    """Take one step for each entry of the schedule; return whether all numbers stayed finite."""
    for k in range(step.size):
        spider(objective, state.estimate, sampling, state.iteration[0], rng, state.x, state.previous)
        gradient = state.estimate.direction
        if not (math.isfinite(state.estimate.value[0]) and math.isfinite(gradient[abs_argmax(gradient)])):
            return False
        lmo(domain, gradient, state.target)
        copy(state.x, state.previous)
        move(state.x, state.target, step[k])
        state.iteration[0] += 1
    return True


@kernel
def advance_upper(problem, state, constants, step, rng):
    """Take steps on f."""
    return DONE if advance(problem.upper, problem.domain, state, constants.sampling, step, rng) else UPPER_NOT_FINITE


@kernel
def advance_lower(problem, state, constants, step, rng):
    """Take steps on g."""
    return DONE if advance(problem.lower, problem.domain, state, constants.sampling, step, rng) else LOWER_NOT_FINITE


@dataclass(frozen=True)
class SpiderFW(Method):
    """Frank-Wolfe on one level, with SPIDER estimates.

    Parameters
    ----------
    step : number or function of t, optional
        The weight of s_t in x_{t+1}, between 0 and 1.
    batch_size : int, optional
        S, the samples drawn in an iteration; ⌊√n⌋ if not given.
    period : int, optional
        q, the iterations from one exact gradient to the next; ⌊√n⌋ if not given.
    level : "upper" or "lower"
        Which objective to minimise; the other one is ignored.
    preset : str
        Where a step that is not given comes from. ``"paper"``: the initialisation of the paper's regression experiment.

    Examples
    --------
    >>> SpiderFW().step
    power(scale=0.1, exponent=1.0, shift=2.0)
    """

    step: ScheduleLike | None = None
    batch_size: int | None = None
    period: int | None = None
    level: str = "upper"
    preset: str = "paper"

    name = "spider-fw"
    citation = "Yurtsever, Sra, Cevher (2019)"
    setting = "finite sum, one level only"
    needs = "linear minimisation over Z"
    rates = "1/t (convex), t^-1/2 (not convex)"
    limits: ClassVar = {"step": 1.0}
    presets: ClassVar = {"paper": {"step": power(0.1, 1.0, shift=2.0)}}

    def __post_init__(self) -> None:
        if self.level not in ("upper", "lower"):
            raise ValueError(f"`level` must be 'upper' or 'lower', got {self.level!r}")
        for name in ("batch_size", "period"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else checks.whole(value, name))
        self._settle()

    @property
    def loop(self) -> Kernel:  # type: ignore[override]
        return advance_upper if self.level == "upper" else advance_lower

    def constants(self, problem: Problem) -> Constants:
        objective = problem.upper if self.level == "upper" else problem.lower
        return Constants(spider_sampling(objective, self.batch_size, self.period))

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        return State(
            x=x.copy(),
            previous=x.copy(),
            target=np.zeros_like(x),
            estimate=no_estimate(x.size, constants.sampling.batch_size),
            iteration=np.zeros(1, dtype=np.int64),
            empty_cuts=np.zeros(1, dtype=np.int64),
        )

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        queries, evaluations = spider_cost(t, constants.sampling)
        nothing = np.zeros_like(queries)
        if self.level == "upper":
            return Cost(queries, nothing, evaluations, nothing)
        return Cost(nothing, queries, nothing, evaluations)
