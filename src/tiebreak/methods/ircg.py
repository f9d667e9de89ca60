"""IR-CG, IR-SCG and IR-FSCG: iteratively regularised conditional gradient, with exact, STORM and SPIDER gradients.

Giang-Tran, Ho-Nguyen and Lee, A projection-free method for solving convex bilevel optimization problems, Mathematical
Programming 2025; Giang-Tran, Shafiee and Ho-Nguyen, Projection-free algorithms for (stochastic) simple bilevel
optimization, NeurIPS 2025.

    v_t = argmin ⟨σ_t ∇f̂_t + ∇ĝ_t, v⟩ over v ∈ Z;   x_{t+1} = x_t + α_t (v_t − x_t)
    answer:  z_t = (w_t x_t + Σ_{i ≤ t} u_i x_i) / (w_t + Σ_{i ≤ t} u_i),  w_t = (t+1) t σ_t,  u_i = (i+1) i (σ_{i−1} − σ_i)

In the papers: α_t is ``step(t)``, σ_t is ``regularization(t)``, ς in σ_t = ς (t+1)^−p is ``strength``; the estimates are
those of SBCGI and SBCGF (``estimators.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains import lmo_step
from tiebreak.engine import kernel
from tiebreak.engine.randomness import moment_of
from tiebreak.engine.vectors import copy, copy_and_move
from tiebreak.estimates import Estimate, Sampling, no_estimate, spider, spider_cost, spider_sampling, storm, storm_cost
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Cost, Method, counter
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleError, ScheduleLike, evaluate, power


class State(NamedTuple):
    """The state of the three methods."""

    x: np.ndarray  # x_t
    previous: np.ndarray  # x_{t−1}
    room: np.ndarray  # for σ_t ∇f̂_t + ∇ĝ_t and v_t
    upper: Estimate  # ∇f̂_t
    lower: Estimate  # ∇ĝ_t
    mean: np.ndarray  # Σ u_i x_i / Σ u_i, over i < t
    weight: np.ndarray  # Σ u_i, one number
    iteration: np.ndarray  # t, one number


@kernel
def regularised_step(domain, state, step, regularization, weight):
    """Make x_{t+1} from the estimates at x_t; return DONE or which level is not finite."""
    x, upper, lower = state.x, state.upper, state.lower
    if not math.isfinite(upper.value[0]):
        return UPPER_NOT_FINITE
    if not math.isfinite(lower.value[0]):
        return LOWER_NOT_FINITE
    if weight > 0.0:
        state.weight[0] += weight
        copy_and_move(x, state.previous, state.mean, weight / state.weight[0])
    else:
        copy(x, state.previous)
    p, q = regularization * upper.factor[0], lower.factor[0]
    lmo_step(domain, p, upper.direction, q, lower.direction, step, x, state.room)
    state.iteration[0] += 1
    return DONE


class StormConstants(NamedTuple):
    """IR-SCG's loop needs nothing besides its schedules."""


@kernel
def advance_storm(problem, state, constants, step, regularization, momentum, weight, keys):
    """Take one step of IR-SCG for each entry of the schedules."""
    for k in range(step.size):
        keep = 1.0 - momentum[k] if state.iteration[0] > 0 else 0.0
        storm(problem.upper, state.upper, moment_of(keys.upper, state.iteration[0]), state.x, state.previous, keep)
        storm(problem.lower, state.lower, moment_of(keys.lower, state.iteration[0]), state.x, state.previous, keep)
        outcome = regularised_step(problem.domain, state, step[k], regularization[k], weight[k])
        if outcome != DONE:
            return outcome
    return DONE


class SpiderConstants(NamedTuple):
    """What the loop of IR-FSCG and IR-CG takes besides its schedules."""

    upper: Sampling  # S and q of f; q = 1 for exact gradients
    lower: Sampling  # S and q of g


@kernel
def advance_spider(problem, state, constants, step, regularization, weight, keys):
    """Take one step of IR-FSCG for each entry of the schedules, or of IR-CG if every estimate is exact."""
    for k in range(step.size):
        t = state.iteration[0]
        spider(problem.upper, state.upper, constants.upper, t, moment_of(keys.upper, t), state.x, state.previous)
        spider(problem.lower, state.lower, constants.lower, t, moment_of(keys.lower, t), state.x, state.previous)
        outcome = regularised_step(problem.domain, state, step[k], regularization[k], weight[k])
        if outcome != DONE:
            return outcome
    return DONE


class Regularised(Method):
    """The common part: the schedule of the weights, and the answer."""

    regularization: Any
    strength: float | None
    average: bool | None

    needs = "linear minimisation"
    reals: ClassVar = {"strength": {"above": 0.0}}
    flags = ("average",)

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        values = super().schedule_values(t)
        if not self.average:
            return (*values, np.zeros(t.shape))
        return (*values, self.weights(t))

    def weights(self, t: np.ndarray) -> np.ndarray:
        """Return u_t, the weights of the points in the mean."""
        before, now = self._regularization(np.maximum(t - 1, 0)), self._regularization(t)
        if (now > before).any():
            k = t[int(np.argmax(now - before))]
            message = f"`regularization` must not grow, for the weights of the mean, and does at iteration {k}"
            raise ScheduleError(message, int(k))
        return (t + 1.0) * t * (before - now)

    def _regularization(self, t: np.ndarray) -> np.ndarray:
        return evaluate(self.regularization, t, "regularization")

    def answer(self, state: State) -> np.ndarray:
        if not self.average:
            return state.x
        t = state.iteration
        last = float(((t + 1.0) * t * self._regularization(t) + self.weights(t))[0])
        total = last + float(state.weight[0])
        return state.x if total == 0.0 else state.mean + last / total * (state.x - state.mean)

    def first_state(self, x: np.ndarray, upper_batch: int, lower_batch: int) -> State:
        """Return the state at x_0 = x."""
        estimates = no_estimate(x.size, upper_batch), no_estimate(x.size, lower_batch)
        return State(x.copy(), x.copy(), np.zeros((2, x.size)), *estimates, x.copy(), np.zeros(1), counter())


@dataclass(frozen=True)
class IRCG(Regularised):
    """Iteratively regularised conditional gradient with exact gradients.

    Parameters
    ----------
    step : number or function of t, optional
        α_t, the weight of v_t in x_{t+1}, between 0 and 1; 2 / (t + 2) if not given.
    regularization : number or function of t, optional
        σ_t, the weight of f; it must not grow. ``strength`` · (t + 1)^−1/2 if not given.
    strength : float
        ς, the first weight of f.
    average : bool
        Whether the answer is the weighted mean of the points, for which the rates hold, or the last one.

    Examples
    --------
    >>> IRCG(strength=0.1).average
    True
    """

    step: ScheduleLike | None = None
    regularization: ScheduleLike | None = None
    strength: float = 1.0
    average: bool = True

    name = "ir-cg"
    citation = "Giang-Tran, Ho-Nguyen, Lee (2025)"
    setting = "exact gradients"
    needs = "linear minimisation, f convex"
    rates = "t^-1/2; t^-1/2"
    loop = advance_spider
    limits: ClassVar = {"step": 1.0, "regularization": np.inf}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: power(2.0, 1.0, shift=2.0), "regularization": lambda: power(self.strength, 0.5)}

    def constants(self, problem: Problem) -> SpiderConstants:
        return SpiderConstants(spider_sampling(problem.upper, 1, 1), spider_sampling(problem.lower, 1, 1))

    def start(self, problem: Problem, constants: SpiderConstants, x: np.ndarray) -> State:
        return self.first_state(x, 1, 1)

    def cost(self, problem: Problem, constants: SpiderConstants, t: np.ndarray) -> Cost:
        upper, lower = spider_cost(t, constants.upper), spider_cost(t, constants.lower)
        return Cost(upper[0], lower[0], upper[1], lower[1])


@dataclass(frozen=True)
class IRSCG(Regularised):
    """Iteratively regularised stochastic conditional gradient, with STORM estimates.

    Parameters
    ----------
    step : number or function of t, optional
        α_t, the weight of v_t in x_{t+1}, between 0 and 1. If not given: 2 / (t + 2) if f is known to be convex, else
        (t + 1)^−6/7.
    regularization : number or function of t, optional
        σ_t, the weight of f; it must not grow. If not given: ``strength`` · (t + 1)^−p, p = 1/4 if f is convex, else 2/7.
    momentum : number or function of t, optional
        The weight of a fresh sample in the estimates; the step if not given. At t = 0 it is 1.
    batch_size : int
        Samples drawn at each level in an iteration.
    strength : float, optional
        ς, the first weight of f.
    average : bool, optional
        Whether the answer is the weighted mean of the points, as the rates for convex f have it, or the last one, which is
        taken if f is not known to be convex.
    preset : str
        Where the strength comes from: the regression (``"paper"``) or the dictionary experiment (``"paper-dictionary"``) of
        the paper.

    Examples
    --------
    >>> IRSCG().strength
    10.0
    """

    step: ScheduleLike | None = None
    regularization: ScheduleLike | None = None
    momentum: ScheduleLike | None = None
    batch_size: int = 1
    strength: float | None = None
    average: bool | None = None
    preset: str = "paper"

    name = "ir-scg"
    citation = "Giang-Tran, Shafiee, Ho-Nguyen (2025), Algorithm 1"
    setting = "stream or finite sum"
    streams = True
    rates = "t^-1/4; t^-1/4 (f convex), t^-1/7 (f not convex)"
    loop = advance_storm
    counts = ("batch_size",)
    limits: ClassVar = {"step": 1.0, "regularization": np.inf, "momentum": 1.0}
    presets: ClassVar = {"paper": {"strength": 10.0}, "paper-dictionary": {"strength": 0.1}}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        convex, strength = bool(problem.upper.convex), self.strength or 1.0
        step = self.step or (power(2.0, 1.0, shift=2.0) if convex else power(1.0, 6 / 7))
        return {
            "step": lambda: step,
            "regularization": lambda: power(strength, 1 / 4 if convex else 2 / 7),
            "momentum": lambda: step,
            "average": lambda: convex,
        }

    def constants(self, problem: Problem) -> StormConstants:
        return StormConstants()

    def start(self, problem: Problem, constants: StormConstants, x: np.ndarray) -> State:
        return self.first_state(x, self.batch_size, self.batch_size)

    def cost(self, problem: Problem, constants: StormConstants, t: np.ndarray) -> Cost:
        queries, evaluations = storm_cost(t, self.batch_size)
        return Cost(queries, queries, evaluations, evaluations)


@dataclass(frozen=True)
class IRFSCG(Regularised):
    """Iteratively regularised stochastic conditional gradient for finite sums, with SPIDER estimates.

    Parameters
    ----------
    step : number or function of t, optional
        α_t, the weight of v_t in x_{t+1}, between 0 and 1. If not given: log q / q for t < q, then 2 / (t + 2), if f is
        known to be convex; else log(q + 1) / (q + 1) for t ≤ q, then (t + 1)^−3/4; q is the longer of the two periods.
    regularization : number or function of t, optional
        σ_t, the weight of f; it must not grow. If not given: ``strength`` · (max{t, q} + 1)^−1/2.
    upper_batch_size, lower_batch_size : int, optional
        S, the samples drawn at a level in an iteration; ⌊√n⌋ of that level's n if not given.
    upper_period, lower_period : int, optional
        q, the iterations from one exact gradient of a level to the next; ⌊√n⌋ if not given.
    strength : float, optional
        ς, the first weight of f.
    average : bool, optional
        Whether the answer is the weighted mean of the points, as the rates for convex f have it, or the last one, which is
        taken if f is not known to be convex.
    preset : str
        Where the strength comes from: the regression (``"paper"``) or the dictionary experiment (``"paper-dictionary"``) of
        the paper.

    Examples
    --------
    >>> IRFSCG(preset="paper-dictionary").strength
    0.1
    """

    step: ScheduleLike | None = None
    regularization: ScheduleLike | None = None
    upper_batch_size: int | None = None
    lower_batch_size: int | None = None
    upper_period: int | None = None
    lower_period: int | None = None
    strength: float | None = None
    average: bool | None = None
    preset: str = "paper"

    name = "ir-fscg"
    citation = "Giang-Tran, Shafiee, Ho-Nguyen (2025), Algorithm 2"
    setting = "finite sum"
    rates = "t^-1/2; t^-1/2 (f convex), t^-1/4 (f not convex)"
    loop = advance_spider
    counts = ("upper_batch_size", "lower_batch_size", "upper_period", "lower_period")
    limits: ClassVar = {"step": 1.0, "regularization": np.inf}
    presets: ClassVar = {"paper": {"strength": 10.0}, "paper-dictionary": {"strength": 0.1}}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        convex, constants = bool(problem.upper.convex), self.constants(problem)
        first = max(constants.upper.period, constants.lower.period) + int(not convex)
        opening = min(math.log(first) / first, 1.0) if first > 1 else 1.0
        later = power(2.0, 1.0, shift=2.0) if convex else power(1.0, 3 / 4)
        return {
            "step": lambda: opened(opening, first, later),
            "regularization": lambda: held(power(self.strength or 1.0, 0.5), first),
            "average": lambda: convex,
        }

    def constants(self, problem: Problem) -> SpiderConstants:
        return SpiderConstants(
            upper=spider_sampling(problem.upper, self.upper_batch_size, self.upper_period),
            lower=spider_sampling(problem.lower, self.lower_batch_size, self.lower_period),
        )

    def start(self, problem: Problem, constants: SpiderConstants, x: np.ndarray) -> State:
        return self.first_state(x, constants.upper.batch_size, constants.lower.batch_size)

    def cost(self, problem: Problem, constants: SpiderConstants, t: np.ndarray) -> Cost:
        upper, lower = spider_cost(t, constants.upper), spider_cost(t, constants.lower)
        return Cost(upper[0], lower[0], upper[1], lower[1])


@dataclass(frozen=True)
class opened:
    """A schedule that has one value at first: before iteration ``until``."""

    value: float
    until: int
    then: power

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return np.where(np.asarray(t) < self.until, self.value, self.then(t))


@dataclass(frozen=True)
class held:
    """A schedule that is held at first at its value at iteration ``until``."""

    schedule: power
    until: int

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.schedule(np.maximum(t, self.until))
