"""Frank-Wolfe on one level, with STORM and SPIDER estimates. On g it finds first points.

Xie, Shen, Zhang, Wang and Qian, Efficient projection-free online methods with stochastic recursive gradient, AAAI 2020;
Yurtsever, Sra and Cevher, Conditional gradient methods via stochastic path-integrated differential estimator, ICML 2019.

    s_t = argmin ⟨∇F̂_t, s⟩ over s ∈ Z;   x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t

In the papers: γ_{t+1} is ``step(t)``, α_t is ``momentum(t)``, S is ``batch_size``, q is ``period``. On f they are SBCGI and
SBCGF without the cut. SPIDER-FW with q = 1 is Frank-Wolfe with exact gradients. Its steps may be shortened to the one that
lowers F most at a curvature, ⟨∇F, x − s⟩ / (M ‖x − s‖²), so that it leaves a good point for a better one only. M follows the
curvature that the last step met (in the manner of Pedregosa, Negiar, Askari and Jaggi, Linearly convergent Frank-Wolfe with
backtracking line-search, AISTATS 2020).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from tiebreak.domains import lmo, lmo_step
from tiebreak.engine import generic, kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, move
from tiebreak.estimates import Memory, OneBatch, Storm, estimate, spider
from tiebreak.methods.base import DONE, UPPER_NOT_FINITE, preset
from tiebreak.methods.one_level import OneLevel, objective_of
from tiebreak.methods.parameters import declared, real, schedule, whole
from tiebreak.methods.states import Count, Number, Point, Rooms
from tiebreak.methods.step_rules import Plain, gap_towards
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, power

EASE = 0.7  # factor by which M falls after a step, unless the step met a larger curvature


class State(NamedTuple):
    """The state of Frank-Wolfe on one level."""

    x: Point  # x_t
    previous: Point  # x_{t−1}
    room: Rooms  # for s_t
    memory: Memory  # ∇F̂_t
    curvature: Number  # M, one number, if steps are shortened
    foreseen: Number  # F at x_t without curvature, one number …
    stretch: Number  # … and ‖x_t − x_{t−1}‖² / 2
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    level: Any  # Upper or Lower
    failure: int  # what the loop returns when F is not finite
    estimate: Any  # how ∇F̂ is estimated
    step: Any  # γ_t: Plain or Short


class Short(NamedTuple):
    """γ_t as it is given at most: shortened to the step that lowers F most at the curvature M."""

    values: Any
    curvature: float  # M at first


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    objective = objective_of(plan.level, problem)
    key = keys.upper if plan.failure == UPPER_NOT_FINITE else keys.lower
    for k in range(iterations):
        moment = Moment(key, state.iteration[0], 0, 0)
        estimate(plan.estimate, objective, state.memory, state.x, state.previous, k, moment)
        if not math.isfinite(state.memory.value[0]):
            return plan.failure
        copy(state.x, state.previous)
        go_towards(plan.step, problem.domain, state, plan.step.values[k])
        state.iteration[0] += 1
    return DONE


@generic(light=True)
def go_towards(rule, domain, state, step):
    """Make x_{t+1} from the estimate at x_t."""


@go_towards.register(Plain)
def go_plainly(rule, domain, state, step):
    gradient = state.memory.direction
    lmo_step(domain, 1.0, gradient, 0.0, gradient, step, state.x, state.room)


@go_towards.register(Short)
def go_shortly(rule, domain, state, step):
    value = state.memory.value[0]
    if state.iteration[0] == 0:
        state.curvature[0] = rule.curvature
    elif state.stretch[0] > 0.0:
        met = (value - state.foreseen[0]) / state.stretch[0]
        state.curvature[0] = max(met, EASE * state.curvature[0])
    target = state.room[0]
    lmo(domain, state.memory.direction, target)
    gap, square = gap_towards(state.memory, state.x, target)
    if gap <= 0.0:  # x_t minimises F, up to rounding
        step = 0.0
    elif gap < step * state.curvature[0] * square:
        step = gap / (state.curvature[0] * square)
    state.foreseen[0], state.stretch[0] = value - step * gap, 0.5 * step * step * square
    move(state.x, target, step)


@declared
class FrankWolfe(OneLevel):
    """The common part of the two methods."""

    step: ScheduleLike | None = schedule("γ_{t+1}, the weight of s_t in x_{t+1}, between 0 and 1.", largest=1.0)

    needs = "linear minimisation"
    loop = advance
    state = State


@declared
class StormFW(FrankWolfe):
    """Frank-Wolfe on one level, with STORM estimates.

    Examples
    --------
    >>> StormFW(batch_size=4).step
    power(scale=2.0, exponent=1.0, shift=2.0)
    """

    momentum: ScheduleLike | None = schedule(
        "The weight of a fresh sample in the estimates; at t = 0 it is 1 whatever is given here.", largest=1.0
    )
    batch_size: int | None = whole("Samples drawn in an iteration.")
    preset: str = preset(
        '``"auto"``: steps 2 / (t + 2); ``"paper"`` and ``"paper-dictionary"``: those of SBCGI in the experiments of Cao et'
        " al. (2023)."
    )

    name = "storm-fw"
    citation = "Xie, Shen, Zhang, Wang, Qian (2020)"
    setting = "stream or finite sum, one level only"
    streams = True
    rates = "t^-1/2 (convex), t^-1/3 (not convex), of the one level"
    presets: ClassVar = {
        "auto": {"step": power(2.0, 1.0, shift=2.0), "momentum": power(1.0, 2 / 3), "batch_size": 8},
        "paper": {"step": power(0.01, 1.0, shift=2.0), "momentum": power(1.0, 1.0), "batch_size": 1},
        "paper-dictionary": {"step": power(0.1, 2 / 3, shift=2.0), "momentum": power(1.0, 2 / 3), "batch_size": 8},
    }

    def plan(self, problem: Problem) -> Plan:
        assert self.batch_size is not None
        storm = Storm(self.given("momentum"), self.batch_size, OneBatch())
        return Plan(self.mark, self.failure, storm, Plain(self.given("step")))


@declared
class SpiderFW(FrankWolfe):
    """Frank-Wolfe on one level, with SPIDER estimates.

    Examples
    --------
    >>> SpiderFW(preset="paper").step
    power(scale=0.1, exponent=1.0, shift=2.0)
    """

    batch_size: int | None = whole("S, the samples drawn in an iteration; ⌊√n⌋ if not given.")
    period: int | None = whole("q, the iterations from one exact gradient to the next; ⌊√n⌋ if not given.")
    curvature: float = real(
        "If it is positive, a step is shortened to the one that lowers F most at this curvature, which then follows what"
        " steps meet. 0: steps are not shortened.",
        0.0,
        least=0.0,
    )
    preset: str = preset(
        '``"auto"``: steps 2 / (t + 2); ``"paper"``: the initialisation of the regression experiment of Cao et al. (2023);'
        ' ``"paper-dictionary"``: SBCGF in their dictionary experiment.'
    )

    name = "spider-fw"
    citation = "Yurtsever, Sra, Cevher (2019)"
    setting = "finite sum, one level only"
    rates = "t^-1 (convex), t^-1/2 (not convex), of the one level"
    presets: ClassVar = {
        "auto": {"step": power(2.0, 1.0, shift=2.0)},
        "paper": {"step": power(0.1, 1.0, shift=2.0)},
        "paper-dictionary": {"step": power(1e-3, 0.0)},
    }

    def plan(self, problem: Problem) -> Plan:
        objective = getattr(problem, self.level)
        step = Short(self.given("step"), self.curvature) if self.curvature else Plain(self.given("step"))
        return Plan(self.mark, self.failure, spider(objective, self.batch_size, self.period), step)
