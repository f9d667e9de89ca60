"""The rules for the step γ_t of a method that cuts, and the guard that shortens it where g has risen.

Each is a value whose type chooses what the loop compiles: what a method does without is absent from its loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.base import EMPTY, INVALID, cut_lmo, cut_step
from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import copy, minus, move

LEAST_SHARE = 0.05  # share of the largest step that is made however little f has to gain
SHORTEST = 0.01  # share of a step that is made however far g has risen


class Plain(NamedTuple):
    """γ_t as it is given."""

    values: Any


class Fitted(NamedTuple):
    """γ_t as it is given at most: shortened to the step that lowers f most at a curvature, or to a share of itself."""

    values: Any
    curvature: float  # L_f


class Watching(NamedTuple):
    """γ_t as it is given; the point of least stationarity is kept from iteration ``since`` on."""

    values: Any
    since: int


class Unguarded(NamedTuple):
    """Steps do not depend on how far g has risen."""


class Guarded(NamedTuple):
    """Steps become shorter where ĝ_t exceeds g(x_0) and K_t by more than ``allowance``.

    What a step adds to g grows with its square, what the cut takes away with the step.
    """

    allowance: float


@generic(light=True)
def guarded(guard, step, risen, slack):
    """Return a step, shorter if g has risen too far."""


@guarded.register(Unguarded)
def step_as_it_is(guard, step, risen, slack):
    return step


@guarded.register(Guarded)
def step_by_rise(guard, step, risen, slack):
    allowed = guard.allowance + slack
    return step * max(allowed / risen, SHORTEST) if risen > allowed else step


@generic(light=True)
def go_towards(rule, domain, state, bound, step):
    """Find s_t over the cut and make x_{t+1}; return the status of the cut."""


@go_towards.register(Plain)
def go_plainly(rule, domain, state, bound, step):
    status, _ = cut_step(domain, state.upper.direction, state.lower.direction, bound, step, state.x, state.target)
    return status


@go_towards.register(Fitted)
@go_towards.register(Watching)
def go_measuring(rule, domain, state, bound, step):
    status, _ = cut_lmo(domain, state.upper.direction, state.lower.direction, bound, state.target)
    if status != INVALID:
        if status != EMPTY:
            gap, square = gap_towards(state.upper, state.x, state.target)
            step = measured(rule, state, gap, square, step)
        move(state.x, state.target, step)
    return status


@generic(light=True)
def measured(rule, state, gap, square, step):
    """Return the step towards s_t, given ⟨∇f̂, x − s⟩ and ‖x − s‖²."""


@measured.register(Fitted)
def step_by_curvature(rule, state, gap, square, step):
    return min(max(gap / (rule.curvature * square), LEAST_SHARE * step), step) if square > 0.0 else step


@measured.register(Watching)
def step_and_remember(rule, state, gap, square, step):
    remember(state, gap, rule.since)
    return step


@kernel
def remember(state, gap, since):
    """Keep x_t if it has the least stationarity of the second half: since t was last 1, 2, 4, … times ``since``."""
    t = state.iteration[0]
    if t < since:
        return
    doubled = t // since
    if t % since == 0 and doubled & (doubled - 1) == 0:
        state.least[0] = np.inf
    if gap < state.least[0]:
        state.least[0] = gap
        copy(state.x, state.best)


@kernel(reorder=True)
def gap_towards(upper, x, target):
    """Return ⟨∇f̂, x − s⟩ and ‖x − s‖²."""
    gap = 0.0
    square = 0.0
    for i in range(x.size):
        way = minus(x[i], target[i])
        gap += upper.direction[i] * way
        square += way * way
    return upper.factor[0] * gap, square
