"""PB-APG: penalty-based accelerated projected gradient on f + w g, through stages of growing w.

Chen, Shi, Jiang and Wang, Penalty-based methods for simple bilevel optimization under Hölderian error bounds, NeurIPS 2024.

    y_t = x_t + θ_t (x_t − x_{t−1});   x_{t+1} = Π(y_t − γ_t (∇f(y_t) + w_t ∇g(y_t)))

w_t grows from stage to stage, and θ_t = k / (k + 3) restarts with each stage, k being the step within it. If no penalty is
given, w grows by a factor of 20, as in the authors' experiments. How a stage ends is our choice: when L ‖y_t − x_{t+1}‖, the
projected slope of f + w g, is at most a share of ‖∇f(y_t)‖: 0.3 in the first stage, and less from one to the next as 1 / √w.
A larger share leaves f unsettled along the ties of g, a smaller one delays the next stage. Within a stage the momentum
restarts where a step goes against it, ⟨y_t − x_{t+1}, x_{t+1} − x_t⟩ > 0 (O'Donoghue and Candès, Adaptive restart for
accelerated gradient schemes, 2015).

For near ties the w at which g has its level is sought, from stage to stage (``levels.py``): the share is 0.2 until there
are points on both sides of the level, and half as much from one stage to the next then. A stage takes 20 steps at most, and
1.2 times as many from one to the next.

In the paper: w_t is ``penalty(t)``. Constants that are too small are raised, as in ``accelerated.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import distance, dot
from tiebreak.estimates import Memory, exact
from tiebreak.methods.accelerated import (
    Accelerated,
    Curvature,
    Glide,
    against,
    given_smoothness,
    glide_on,
    look_at_both,
    shortened,
    step_down,
)
from tiebreak.methods.base import DONE, Budget, Method, initial
from tiebreak.methods.fista import FISTA
from tiebreak.methods.levels import Ends, Growing, Sought, begin, changed, jumps
from tiebreak.methods.parameters import declared, other, real, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.methods.unknown import beginning, checked_pair
from tiebreak.problem import Problem
from tiebreak.schedules import Given, ScheduleLike, constant, safe_step

GROWTH = 20.0  # factor of the penalty from one stage to the next
LONGEST = 10**9  # steps of a stage at most, so that nothing overflows


class State(NamedTuple):
    """The state of PB-APG."""

    x: Point  # x_t
    glide: Glide
    upper: Memory  # ∇f(y_t)
    lower: Memory  # ∇g(y_t)
    upper_curvature: Curvature
    lower_curvature: Curvature
    room: Room  # x_{t+1} before its projection
    penalty: Number  # w, one number; the weight of g in the last step
    settled: Number  # share of ∇f at which this stage ends, one number
    steps: Count  # steps of this stage so far, one number
    length: Count  # steps that it takes at most, one number
    ends: Ends  # of the search for a level, for near ties
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Any  # all samples of f
    lower: Any  # all samples of g
    step: Any  # γ_t; if Staged, a share of the longest safe one
    penalty: Any  # Scheduled or Staged
    inertia: float  # α
    upper_smoothness: float  # L_f as it is given; 0 if steps do not depend on it
    lower_smoothness: float  # L_g likewise


class Scheduled(NamedTuple):
    """w_t as it is given."""

    values: Any


class Staged(NamedTuple):
    """w changes whenever f + w g is nearly solved."""

    change: Any  # Growing or Sought
    settled: float  # share of ∇f to which the projected slope of f + w g has fallen when the first stage ends
    stricter: float  # factor of that share from one stage to the next
    length: int  # steps that the first stage takes at most
    patience: float  # factor of that number from one stage to the next


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    for k in range(iterations):
        prepare_step(state, plan, k)
        outcome = look_at_both(problem, plan, state, keys)
        if outcome != DONE:
            return outcome
        take_step(problem.domain, state, plan, k)
    return DONE


@kernel
def prepare_step(state, plan, k):
    """Make y_t."""
    read_weight(plan.penalty, state, k)
    glide_on(state.x, state.glide, plan.inertia)


@kernel
def take_step(domain, state, plan, k):
    """Make x_{t+1}, and see whether the stage ends."""
    step = next_length(plan.penalty, plan, state, k)
    step_down(domain, state, step, step * state.penalty[0])
    close_stage(plan.penalty, state, step)


@generic(light=True)
def read_weight(penalty, state, k):
    """Set the weight of g for the next step, if it is given; the momentum restarts when it grows."""


@generic(light=True)
def next_length(penalty, plan, state, k):
    """Return the length of the next step; set the weight of g, if a stage begins."""


@generic(light=True)
def close_stage(penalty, state, step):
    """See whether the stage ends, or its momentum, after a step of this length."""


@read_weight.register(Scheduled)
def read_scheduled(penalty, state, k):
    if penalty.values[k] > state.penalty[0]:
        state.glide.since[0] = 0
    state.penalty[0] = penalty.values[k]


@next_length.register(Scheduled)
def length_by_schedule(penalty, plan, state, k):
    return shortened(plan.step[k], plan, state, 1.0, state.penalty[0])


@close_stage.register(Scheduled)
def close_nothing(penalty, state, step):
    pass


@read_weight.register(Staged)
def read_nothing(penalty, state, k):
    pass


@next_length.register(Staged)
def longest_safe_length(penalty, plan, state, k):
    value, first = state.lower.value[0], plan.upper_smoothness / plan.lower_smoothness
    if state.iteration[0] == 0:
        state.penalty[0], state.settled[0], state.length[0] = first, penalty.settled, penalty.length
        begin(penalty.change, state.ends, value)
    elif state.steps[0] == 0:  # a stage begins, at y = x
        state.penalty[0] = changed(penalty.change, state.ends, state.x, value, state.penalty[0], first)
    lower = state.penalty[0] * state.lower_curvature.smoothness[0]
    return plan.step[k] / (state.upper_curvature.smoothness[0] + lower)


@close_stage.register(Staged)
def close_solved_stage(penalty, state, step):
    x, glide, upper = state.x, state.glide, state.upper
    state.steps[0] += 1
    slope = upper.factor[0] * math.sqrt(dot(upper.direction, upper.direction))
    solved = distance(x, glide.y) <= step * state.settled[0] * slope
    if solved or state.steps[0] >= state.length[0]:
        if not jumps(state.ends):
            state.settled[0] *= penalty.stricter
        state.length[0] = min(int(penalty.patience * state.length[0]), LONGEST)
        state.steps[0] = glide.since[0] = 0
    elif against(glide.y, x, glide.previous):
        glide.since[0] = 0


@declared
class PBAPG(Accelerated):
    """Accelerated projected gradient on f + w_t g, warm-started through stages of growing penalty w_t.

    Examples
    --------
    >>> from tiebreak.schedules import stages
    >>> PBAPG(step=0.1, penalty=stages(1.0, 10.0, 100)).inertia
    3.0
    """

    step: ScheduleLike | None = schedule(
        "γ_t, the length of a gradient step; 1 / (L_f + w_t L_g) if not given. If no penalty is given, it is a part of that,"
        " at most 1."
    )
    penalty: ScheduleLike | None = schedule(
        "w_t, the weight of g; the momentum restarts whenever it grows. If not given, it begins with L_f / L_g and"
        " grows whenever f + w g is nearly solved."
    )
    growth: float = real(
        "The factor of w_t from one stage to the next, if no penalty is given; for near ties w_t is sought.",
        GROWTH,
        above=1.0,
    )
    inertia: float = real("α, which sets the momentum k / (k + α) at the k-th step of a stage.", 3.0, above=0.0)
    smoothness: tuple[float, float] | None = other(
        "pair of float",
        None,
        "L_f and L_g to begin with. If not given they are what the objectives know, and estimates where they know nothing.",
        checked_pair,
    )
    initial: Method | None = initial()

    name = "pb-apg"
    citation = "Chen, Shi, Jiang, Wang (2024)"
    rates = "t^-1; t^-1 (under a quadratic error bound of g)"
    loop = advance
    state = State
    near_ties = True

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if problem.is_near and self.penalty is not None:
            raise ValueError(f"`penalty` must be left out where the problem has {problem.allowed}: it is sought then")

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            "step": lambda: constant(1.0) if self.penalty is None else self._safe(problem),
            "smoothness": lambda: beginning(problem) if self.penalty is None else None,
            "initial": lambda: FISTA(level="lower") if problem.is_near else None,
        }

    def _safe(self, problem: Problem) -> safe_step:
        upper, lower = self.smoothness or beginning(problem)
        return safe_step(1.0, lower, self.penalty, upper, constant(1.0))  # type: ignore[arg-type]

    def plan(self, problem: Problem) -> Plan:
        if self.penalty is None:
            upper, lower = self.smoothness or beginning(problem)
            known = {"upper_smoothness": upper, "lower_smoothness": lower}
            step = Given(self.step, "step", 1.0)  # type: ignore[arg-type]
            penalty: Any = self._staged(problem)
        else:
            known, step, penalty = given_smoothness(self.step), self.given("step"), Scheduled(self.given("penalty"))
        return Plan(exact(problem.upper), exact(problem.lower), step, penalty, self.inertia, **known)

    def _staged(self, problem: Problem) -> Staged:
        if problem.is_near:
            return Staged(Sought(), settled=0.2, stricter=0.5, length=20, patience=1.2)
        return Staged(Growing(self.growth), settled=0.3, stricter=self.growth**-0.5, length=LONGEST, patience=1.0)

    def allow(self, state: State, level: float, rise: float) -> None:
        state.ends.rise[0] = rise

    def answer(self, state: State) -> np.ndarray:
        return state.ends.best if state.ends.weights[0] > 0.0 else state.x

    def hints(self, state: State) -> tuple[tuple[float, np.ndarray | None], ...]:
        return ((float(state.penalty[0]), None),) if state.ends.weights[0] > 0.0 else ()
