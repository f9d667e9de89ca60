"""IR-CG, IR-SCG and IR-FSCG: iteratively regularised conditional gradient, with exact, STORM and SPIDER estimates.

Giang-Tran, Ho-Nguyen and Lee, A projection-free method for solving convex bilevel optimization problems, Mathematical
Programming 2025; Giang-Tran, Shafiee and Ho-Nguyen, Projection-free algorithms for (stochastic) simple bilevel
optimization, NeurIPS 2025.

    v_t = argmin ⟨σ_t ∇f̂_t + ∇ĝ_t, v⟩ over v ∈ Z;   x_{t+1} = x_t + α_t (v_t − x_t)
    answer:  z_t = (w_t x_t + Σ_{i ≤ t} u_i x_i) / (w_t + Σ_{i ≤ t} u_i),  w_t = (t+1) t σ_t,  u_i = (i+1) i (σ_{i−1} − σ_i)

In the papers: α_t is ``step(t)``, σ_t is ``regularization(t)``, ς in σ_t = ς (t+1)^−p is ``strength``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains import lmo_step
from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, copy_and_move
from tiebreak.estimates import Memory, OneBatch, Storm, drawing_what_is_sampled, estimate, exact, spider
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Method, preset
from tiebreak.methods.parameters import declared, flag, real, schedule, whole
from tiebreak.methods.states import Count, Number, Point, Rooms
from tiebreak.problem import Problem
from tiebreak.schedules import Derived, ScheduleError, ScheduleLike, evaluate, held, opened, power


class State(NamedTuple):
    """The state of the three methods."""

    x: Point  # x_t
    previous: Point  # x_{t−1}
    room: Rooms  # for σ_t ∇f̂_t + ∇ĝ_t and v_t
    upper: Memory  # ∇f̂_t
    lower: Memory  # ∇ĝ_t
    mean: Point  # Σ u_i x_i / Σ u_i, over i < t
    weight: Number  # Σ u_i, one number
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Any  # how ∇f̂ is estimated
    lower: Any  # how ∇ĝ is
    step: Any  # α_t
    regularization: Any  # σ_t
    weight: Any  # u_t, 0 if the answer is the last point


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    # All in one kernel: another one that took the state would count references to its arrays in every iteration.
    x, previous, upper, lower = state.x, state.previous, state.upper, state.lower
    for k in range(iterations):
        t = state.iteration[0]
        estimate(plan.upper, problem.upper, upper, x, previous, k, Moment(keys.upper, t, 0, 0))
        if not math.isfinite(upper.value[0]):
            return UPPER_NOT_FINITE
        estimate(plan.lower, problem.lower, lower, x, previous, k, Moment(keys.lower, t, 0, 0))
        if not math.isfinite(lower.value[0]):
            return LOWER_NOT_FINITE
        if plan.weight[k] > 0.0:
            state.weight[0] += plan.weight[k]
            copy_and_move(x, previous, state.mean, plan.weight[k] / state.weight[0])
        else:
            copy(x, previous)
        p, q = plan.regularization[k] * upper.factor[0], lower.factor[0]
        lmo_step(problem.domain, p, upper.direction, q, lower.direction, plan.step[k], x, state.room)
        state.iteration[0] += 1
    return DONE


@declared
class Regularised(Method):
    """The common part of the three methods: the schedule of the weights, and the answer."""

    step: ScheduleLike | None = schedule("α_t, the weight of v_t in x_{t+1}, between 0 and 1.", largest=1.0)
    regularization: ScheduleLike | None = schedule(
        "σ_t, the weight of f; it must not grow. If not given, it falls from ``strength`` on by the power of t that the"
        " rates are for."
    )
    strength: float | None = real("ς, the first weight of f.", above=0.0)
    average: bool | None = flag(
        "Whether the answer is the weighted mean of the points, as the rates for convex f have it, or the last one. If not"
        " given, it is the mean where f is known to be convex."
    )
    preset: str = preset(
        '``"auto"``: strength L_g / L_f, which has the right unit, or 1 where one of them is not known; ``"paper"`` and'
        ' ``"paper-dictionary"``: the strengths of the regression and the dictionary experiment of the paper.'
    )

    needs = "linear minimisation"
    loop = advance
    state = State
    presets: ClassVar = {"auto": {}, "paper": {"strength": 10.0}, "paper-dictionary": {"strength": 0.1}}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"strength": lambda: unit_strength(problem), "average": lambda: bool(problem.upper.convex)}

    def first_weight(self, problem: Problem) -> float:
        """Return ς."""
        return self.strength or unit_strength(problem)

    def schedules(self) -> dict[str, Any]:
        """Return the plan's schedules."""
        weight = self.weights if self.average else lambda t: np.zeros(t.shape)
        return {**{name: self.given(name) for name in ("step", "regularization")}, "weight": Derived(weight)}

    def weights(self, t: np.ndarray) -> np.ndarray:
        """Return u_t, the weights of the points in the mean."""
        before, now = self._regularization(np.maximum(t - 1, 0)), self._regularization(t)
        if (now > before).any():
            k = t[int(np.argmax(now - before))]
            message = f"`regularization` must not grow, for the weights of the mean, and does at iteration {k}"
            raise ScheduleError(message, int(k))
        return (t + 1.0) * t * (before - now)

    def _regularization(self, t: np.ndarray) -> np.ndarray:
        return evaluate(self.regularization, t, "regularization")  # type: ignore[arg-type]

    def answer(self, state: State) -> np.ndarray:
        if not self.average:
            return state.x
        t = state.iteration
        last = float(((t + 1.0) * t * self._regularization(t) + self.weights(t))[0])
        total = last + float(state.weight[0])
        return state.x if total == 0.0 else state.mean + last / total * (state.x - state.mean)


def unit_strength(problem: Problem) -> float:
    """Return L_g / L_f, or 1 if one of them is not known."""
    ratio = float(problem.lower.lipschitz) / (float(problem.upper.lipschitz) or math.nan)
    return ratio if math.isfinite(ratio) and ratio > 0.0 else 1.0


@declared
class IRCG(Regularised):
    """Iteratively regularised conditional gradient with exact gradients.

    If they are not given, α_t = 2 / (t + 2) and σ_t = ς (t + 1)^−1/2.

    Examples
    --------
    >>> IRCG(strength=0.1).strength
    0.1
    """

    name = "ir-cg"
    citation = "Giang-Tran, Ho-Nguyen, Lee (2025)"
    setting = "exact gradients"
    needs = "linear minimisation, f convex"
    rates = "t^-1/2; t^-1/2"
    presets: ClassVar = {"auto": {"average": True}, "paper": {"strength": 1.0, "average": True}}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            **super().defaults(problem, budget),
            "step": lambda: power(2.0, 1.0, shift=2.0),
            "regularization": lambda: power(self.first_weight(problem), 0.5),
        }

    def plan(self, problem: Problem) -> Plan:
        return Plan(upper=exact(problem.upper), lower=exact(problem.lower), **self.schedules())


@declared
class IRSCG(Regularised):
    """Iteratively regularised stochastic conditional gradient, with STORM estimates.

    If they are not given: α_t = 2 / (t + 2) and σ_t = ς (t + 1)^−1/4 if f is known to be convex, else (t + 1)^−6/7 and
    ς (t + 1)^−2/7.

    Examples
    --------
    >>> IRSCG(preset="paper").strength
    10.0
    """

    momentum: ScheduleLike | None = schedule(
        "The weight of a fresh sample in the estimates; the step if not given. At t = 0 it is 1.", largest=1.0
    )
    batch_size: int = whole("Samples drawn at each level in an iteration.", 1)

    name = "ir-scg"
    citation = "Giang-Tran, Shafiee, Ho-Nguyen (2025), Algorithm 1"
    setting = "stream or finite sum"
    streams = True
    rates = "t^-1/4; t^-1/4 (f convex), t^-1/7 (f not convex)"

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        convex = bool(problem.upper.convex)
        step = self.step or (power(2.0, 1.0, shift=2.0) if convex else power(1.0, 6 / 7))
        return {
            **super().defaults(problem, budget),
            "step": lambda: step,
            "regularization": lambda: power(self.first_weight(problem), 1 / 4 if convex else 2 / 7),
            "momentum": lambda: step,
        }

    def plan(self, problem: Problem) -> Plan:
        storm = Storm(self.given("momentum"), self.batch_size, OneBatch())
        upper, lower = drawing_what_is_sampled(problem, storm, storm)
        return Plan(upper=upper, lower=lower, **self.schedules())


@declared
class IRFSCG(Regularised):
    """Iteratively regularised stochastic conditional gradient for finite sums, with SPIDER estimates.

    With q the longer of the two periods, if they are not given: σ_t = ς (max{t, q} + 1)^−1/2, and α_t = log q / q for t < q,
    then 2 / (t + 2), if f is known to be convex; else log(q + 1) / (q + 1) for t ≤ q, then (t + 1)^−3/4.

    Examples
    --------
    >>> IRFSCG(preset="paper-dictionary").strength
    0.1
    """

    upper_batch_size: int | None = whole("S, the samples of f drawn in an iteration; ⌊√n⌋ of that level's n if not given.")
    lower_batch_size: int | None = whole("The same for g.")
    upper_period: int | None = whole("q, the iterations from one exact gradient of f to the next; ⌊√n⌋ if not given.")
    lower_period: int | None = whole("The same for g.")

    name = "ir-fscg"
    citation = "Giang-Tran, Shafiee, Ho-Nguyen (2025), Algorithm 2"
    setting = "finite sum"
    rates = "t^-1/2; t^-1/2 (f convex), t^-1/4 (f not convex)"

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        convex, plan = bool(problem.upper.convex), self.plan(problem)
        first = max(plan.upper.period, plan.lower.period) + int(not convex)
        opening = min(math.log(first) / first, 1.0) if first > 1 else 1.0
        later = power(2.0, 1.0, shift=2.0) if convex else power(1.0, 3 / 4)
        return {
            **super().defaults(problem, budget),
            "step": lambda: opened(opening, first, later),
            "regularization": lambda: held(power(self.first_weight(problem), 0.5), first),
        }

    def plan(self, problem: Problem) -> Plan:
        upper = spider(problem.upper, self.upper_batch_size, self.upper_period)
        lower = spider(problem.lower, self.lower_batch_size, self.lower_period)
        return Plan(upper=upper, lower=lower, **self.schedules())
