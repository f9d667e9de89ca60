"""STORM-FW and SPIDER-FW: Frank-Wolfe on one level with variance-reduced gradients. On g they find first points.

Xie, Shen, Zhang, Wang and Qian, Efficient projection-free online methods with stochastic recursive gradient, AAAI 2020;
Yurtsever, Sra and Cevher, Conditional gradient methods via stochastic path-integrated differential estimator, ICML 2019.

    STORM:   ∇F̂_t = (1 − α_t) ∇F̂_{t−1} + ∇F_S(x_t) − (1 − α_t) ∇F_S(x_{t−1})
    SPIDER:  t mod q = 0:  ∇F̂_t = ∇F(x_t);   otherwise  ∇F̂_t = ∇F̂_{t−1} + ∇F_S(x_t) − ∇F_S(x_{t−1})
    s_t = argmin ⟨∇F̂_t, s⟩ over s ∈ Z;   x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t

In the papers: γ_{t+1} is ``step(t)``, α_t is ``momentum(t)``, S is ``batch_size``, q is ``period``. On f they are SBCGI and
SBCGF without the cut. SPIDER-FW with q = 1 is Frank-Wolfe with exact gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains import lmo_step
from tiebreak.engine import Kernel, checks, kernel
from tiebreak.engine.randomness import moment_of
from tiebreak.engine.vectors import copy
from tiebreak.estimates import Estimate, Sampling, no_estimate, spider, spider_cost, spider_sampling, storm, storm_cost
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Cost, Method, counter
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, power


class State(NamedTuple):
    """The state of Frank-Wolfe on one level."""

    x: np.ndarray  # x_t
    previous: np.ndarray  # x_{t−1}
    room: np.ndarray  # for s_t
    estimate: Estimate  # ∇F̂_t
    iteration: np.ndarray  # t, one number


class StormConstants(NamedTuple):
    """STORM-FW's loop needs nothing besides its schedules."""


class SpiderConstants(NamedTuple):
    """What SPIDER-FW's loop takes besides its schedules."""

    sampling: Sampling  # S and q


@kernel
def frank_wolfe(domain, state, step):
    """Make x_{t+1} from the estimate at x_t; return whether the estimate is finite."""
    if not math.isfinite(state.estimate.value[0]):
        return False
    copy(state.x, state.previous)
    gradient = state.estimate.direction
    lmo_step(domain, 1.0, gradient, 0.0, gradient, step, state.x, state.room)
    state.iteration[0] += 1
    return True


@kernel
def advance_storm(objective, domain, state, step, momentum, key):
    """Take one step for each entry of the schedules; return whether all numbers stayed finite."""
    for k in range(step.size):
        keep = 1.0 - momentum[k] if state.iteration[0] > 0 else 0.0
        storm(objective, state.estimate, moment_of(key, state.iteration[0]), state.x, state.previous, keep)
        if not frank_wolfe(domain, state, step[k]):
            return False
    return True


@kernel
def advance_spider(objective, domain, state, sampling, step, key):
    """Take one step for each entry of the schedule; return whether all numbers stayed finite."""
    for k in range(step.size):
        spider(
            objective,
            state.estimate,
            sampling,
            state.iteration[0],
            moment_of(key, state.iteration[0]),
            state.x,
            state.previous,
        )
        if not frank_wolfe(domain, state, step[k]):
            return False
    return True


@kernel
def storm_upper(problem, state, constants, step, momentum, keys):
    """Take steps on f."""
    return DONE if advance_storm(problem.upper, problem.domain, state, step, momentum, keys.upper) else UPPER_NOT_FINITE


@kernel
def storm_lower(problem, state, constants, step, momentum, keys):
    """Take steps on g."""
    return DONE if advance_storm(problem.lower, problem.domain, state, step, momentum, keys.lower) else LOWER_NOT_FINITE


@kernel
def spider_upper(problem, state, constants, step, keys):
    """Take steps on f."""
    done = advance_spider(problem.upper, problem.domain, state, constants.sampling, step, keys.upper)
    return DONE if done else UPPER_NOT_FINITE


@kernel
def spider_lower(problem, state, constants, step, keys):
    """Take steps on g."""
    done = advance_spider(problem.lower, problem.domain, state, constants.sampling, step, keys.lower)
    return DONE if done else LOWER_NOT_FINITE


class OneLevel(Method):
    """The common part of methods that minimise one objective and ignore the other."""

    level: str
    loops: ClassVar[dict[str, Kernel]]

    def __post_init__(self) -> None:
        if not isinstance(self.level, str) or self.level not in ("upper", "lower"):
            raise ValueError(f"`level` must be 'upper' or 'lower', got {checks.shown(self.level)}")
        super().__post_init__()

    @property
    def loop(self) -> Kernel:  # type: ignore[override]
        return self.loops[self.level]

    @property
    def levels(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.level,)

    def objective(self, problem: Problem) -> Any:
        """Return the objective that is minimised."""
        return getattr(problem, self.level)

    def cost_of(self, queries: np.ndarray, evaluations: np.ndarray) -> Cost:
        """Return the cost from that of the one level."""
        nothing = np.zeros_like(queries)
        if self.level == "upper":
            return Cost(queries, nothing, evaluations, nothing)
        return Cost(nothing, queries, nothing, evaluations)


@dataclass(frozen=True)
class StormFW(OneLevel):
    """Frank-Wolfe on one level, with STORM estimates.

    Parameters
    ----------
    step : number or function of t, optional
        The weight of s_t in x_{t+1}, between 0 and 1.
    momentum : number or function of t, optional
        The weight of a fresh sample in the estimates; at t = 0 it is 1 whatever is given here.
    batch_size : int, optional
        Samples drawn in an iteration.
    level : "upper" or "lower"
        Which objective to minimise; the other one is ignored.
    preset : str
        Where parameters that are not given come from: those of SBCGI in the paper's regression (``"paper"``) or dictionary
        experiment (``"paper-dictionary"``).

    Examples
    --------
    >>> StormFW(batch_size=8).step
    power(scale=0.01, exponent=1.0, shift=2.0)
    """

    step: ScheduleLike | None = None
    momentum: ScheduleLike | None = None
    batch_size: int | None = None
    level: str = "upper"
    preset: str = "paper"

    name = "storm-fw"
    citation = "Xie, Shen, Zhang, Wang, Qian (2020)"
    setting = "stream or finite sum, one level only"
    streams = True
    needs = "linear minimisation"
    rates = "t^-1/2 (convex), t^-1/3 (not convex), of the one level"
    loops: ClassVar = {"upper": storm_upper, "lower": storm_lower}
    counts = ("batch_size",)
    limits: ClassVar = {"step": 1.0, "momentum": 1.0}
    presets: ClassVar = {
        "paper": {"step": power(0.01, 1.0, shift=2.0), "momentum": power(1.0, 1.0), "batch_size": 1},
        "paper-dictionary": {"step": power(0.1, 2 / 3, shift=2.0), "momentum": power(1.0, 2 / 3), "batch_size": 8},
    }

    def constants(self, problem: Problem) -> StormConstants:
        return StormConstants()

    def start(self, problem: Problem, constants: StormConstants, x: np.ndarray) -> State:
        assert self.batch_size is not None
        return State(x.copy(), x.copy(), np.zeros((2, x.size)), no_estimate(x.size, self.batch_size), counter())

    def cost(self, problem: Problem, constants: StormConstants, t: np.ndarray) -> Cost:
        assert self.batch_size is not None
        return self.cost_of(*storm_cost(t, self.batch_size))


@dataclass(frozen=True)
class SpiderFW(OneLevel):
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
        Where a step that is not given comes from: the initialisation of the paper's regression experiment (``"paper"``), or
        SBCGF in its dictionary experiment (``"paper-dictionary"``).

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
    needs = "linear minimisation"
    rates = "t^-1 (convex), t^-1/2 (not convex), of the one level"
    loops: ClassVar = {"upper": spider_upper, "lower": spider_lower}
    counts = ("batch_size", "period")
    limits: ClassVar = {"step": 1.0}
    presets: ClassVar = {
        "paper": {"step": power(0.1, 1.0, shift=2.0)},
        "paper-dictionary": {"step": power(1e-3, 0.0)},
    }

    def constants(self, problem: Problem) -> SpiderConstants:
        return SpiderConstants(spider_sampling(self.objective(problem), self.batch_size, self.period))

    def start(self, problem: Problem, constants: SpiderConstants, x: np.ndarray) -> State:
        estimate = no_estimate(x.size, constants.sampling.batch_size)
        return State(x.copy(), x.copy(), np.zeros((2, x.size)), estimate, counter())

    def cost(self, problem: Problem, constants: SpiderConstants, t: np.ndarray) -> Cost:
        return self.cost_of(*spider_cost(t, constants.sampling))
