"""PB-APG: penalty-based accelerated projected gradient on f + w g, through stages of growing w.

Chen, Shi, Jiang and Wang, Penalty-based methods for simple bilevel optimization under Hölderian error bounds, NeurIPS 2024.

    y_t = x_t + θ_t (x_t − x_{t−1});   x_{t+1} = Π(y_t − γ_t (∇f(y_t) + w_t ∇g(y_t)))

w_t grows from stage to stage, and θ_t = k / (k + 3) restarts with each stage, k being the step within it. The paper leaves
open how long a stage is. If no penalty is given, the k-th stage takes at most N = 20 · 2^k steps, and ends earlier if
‖x_{t+1} − y_t‖ falls to 1/(10 N) of its largest value in the stage: f + w g is nearly solved then.

For near ties the w at which g has its level is sought, from stage to stage (``levels.py``).

In the paper: w_t is ``penalty(t)``. Constants that are too small are raised, as in ``accelerated.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import distance
from tiebreak.estimates import Memory, exact
from tiebreak.methods.accelerated import (
    Accelerated,
    Curvature,
    Glide,
    given_smoothness,
    glide_on,
    look_at_both,
    shortened,
    step_down,
)
from tiebreak.methods.base import DONE, Budget, Method, initial
from tiebreak.methods.fista import FISTA
from tiebreak.methods.levels import LARGEST, Ends, begin_search, next_weight, note_end
from tiebreak.methods.parameters import declared, other, real, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.methods.unknown import beginning, checked_pair
from tiebreak.problem import Problem
from tiebreak.schedules import Given, ScheduleLike, constant, safe_step

GROWTH = 2.0  # factor of the penalty and of the largest length, from one stage to the next
FIRST_LENGTH = 20  # steps that the first stage takes at most
SETTLED = 0.1  # share of a stage's longest step, divided by the steps it may take: shorter ones end it
PATIENCE = 1.2  # factor of the largest length of a stage in the search for a level
LONGEST = 10**9  # that length at most: where rounding ends stages at once, it must not overflow


class State(NamedTuple):
    """The state of PB-APG."""

    x: Point  # x_t
    glide: Glide
    upper: Memory  # ∇f(y_t)
    lower: Memory  # ∇g(y_t)
    upper_curvature: Curvature
    lower_curvature: Curvature
    room: Room  # x_{t+1} before its projection
    penalty: Number  # the largest weight of g so far, one number
    longest: Number  # the longest step of this stage, one number
    length: Count  # steps that this stage may take at most, one number
    ends: Ends  # of the search for a level, for near ties
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Any  # all samples of f
    lower: Any  # all samples of g
    step: Any  # γ_t; with Stages, a share of the longest safe one
    penalty: Any  # Scheduled or Stages
    inertia: float  # α
    upper_smoothness: float  # L_f as it is given; 0 if steps do not depend on it
    lower_smoothness: float  # L_g likewise


class Scheduled(NamedTuple):
    """w_t as it is given."""

    values: Any


class Stages(NamedTuple):
    """w_t grows whenever f + w g is nearly solved."""


class Search(NamedTuple):
    """w_t changes whenever f + w g is nearly solved, so that g comes to the level of a near tie."""


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
    """Set w_t and make y_t."""
    open_stage(plan.penalty, plan, state, k)
    glide_on(state.x, state.glide, plan.inertia)


@kernel
def take_step(domain, state, plan, k):
    """Make x_{t+1}, and see whether the stage ends."""
    step = safe_length(plan.penalty, plan, state, k)
    step_down(domain, state, step, step * state.penalty[0])
    close_stage(plan.penalty, plan, state)


@generic(light=True)
def open_stage(penalty, plan, state, k):
    """Set the weight of g for the next step; the momentum restarts when it grows."""


@generic(light=True)
def safe_length(penalty, plan, state, k):
    """Return the length of the next step."""


@generic(light=True)
def close_stage(penalty, plan, state):
    """End a stage that is solved or has lasted long enough."""


@open_stage.register(Scheduled)
def open_by_schedule(penalty, plan, state, k):
    if penalty.values[k] > state.penalty[0]:
        state.glide.since[0] = 0
    state.penalty[0] = penalty.values[k]


@safe_length.register(Scheduled)
def length_by_schedule(penalty, plan, state, k):
    return shortened(plan.step[k], plan, state, 1.0, state.penalty[0])


@close_stage.register(Scheduled)
def close_nothing(penalty, plan, state):
    pass


@open_stage.register(Stages)
def open_first_stage(penalty, plan, state, k):
    if state.iteration[0] == 0:
        state.penalty[0], state.length[0] = plan.upper_smoothness / plan.lower_smoothness, FIRST_LENGTH


@safe_length.register(Stages)
def longest_safe_length(penalty, plan, state, k):
    lower = state.penalty[0] * state.lower_curvature.smoothness[0]
    return plan.step[k] / (state.upper_curvature.smoothness[0] + lower)


@close_stage.register(Stages)
def close_solved_stage(penalty, plan, state):
    moved = distance(state.x, state.glide.y)
    state.longest[0] = max(state.longest[0], moved)
    solved = moved * state.length[0] <= SETTLED * state.longest[0]
    grows = state.penalty[0] * plan.lower_smoothness < LARGEST * plan.upper_smoothness
    if (solved or state.glide.since[0] >= state.length[0]) and grows:
        state.penalty[0] *= GROWTH
        state.length[0] *= int(GROWTH)
        state.glide.since[0] = 0
        state.longest[0] = 0.0


@open_stage.register(Search)
def open_search(penalty, plan, state, k):
    if state.iteration[0] == 0:
        state.penalty[0], state.length[0] = plan.upper_smoothness / plan.lower_smoothness, FIRST_LENGTH


@safe_length.register(Search)
def search_and_longest_safe_length(penalty, plan, state, k):
    if state.iteration[0] == 0:
        begin_search(state.ends, state.lower.value[0])
    elif state.longest[0] == 0.0:  # a stage begins, at y = x
        note_end(state.ends, state.x, state.lower.value[0], state.penalty[0])
        state.penalty[0] = next_weight(state.ends, state.penalty[0], plan.upper_smoothness / plan.lower_smoothness)
    lower = state.penalty[0] * state.lower_curvature.smoothness[0]
    return plan.step[k] / (state.upper_curvature.smoothness[0] + lower)


@close_stage.register(Search)
def close_searched_stage(penalty, plan, state):
    moved = distance(state.x, state.glide.y)
    state.longest[0] = max(state.longest[0], moved)
    solved = moved * state.length[0] <= SETTLED * state.longest[0]
    if solved or state.glide.since[0] >= state.length[0]:
        state.length[0] = min(int(PATIENCE * state.length[0]), LONGEST)
        state.glide.since[0] = 0
        state.longest[0] = 0.0


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
        " doubles whenever f + w g is nearly solved, at the latest after 20, 40, 80, … steps."
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
            penalty: Any = Search() if problem.is_near else Stages()
        else:
            known, step, penalty = given_smoothness(self.step), self.given("step"), Scheduled(self.given("penalty"))
        return Plan(exact(problem.upper), exact(problem.lower), step, penalty, self.inertia, **known)

    def allow(self, state: State, level: float, rise: float) -> None:
        state.ends.rise[0] = rise

    def answer(self, state: State) -> np.ndarray:
        return state.ends.best if state.ends.weights[0] > 0.0 else state.x

    def hints(self, state: State) -> tuple[tuple[float, np.ndarray | None], ...]:
        return ((float(state.penalty[0]), None),) if state.ends.weights[0] > 0.0 else ()
