"""The rules for the half-space of a method that cuts: its anchor g(x_0) and its slack K_t.

Each is a value whose type chooses what the loop compiles: what a method does without is absent from its loop.

A slack may follow the error of the estimate. With exact estimates, the points that the cut must keep satisfy it.
So the error that counts is that of the number m_t = ĝ_t + ⟨∇ĝ_t, x_0 − x_t⟩. A step moves it by I_t = m_t − m'_{t−1}, where
m' is made of the last estimates at the new x_t. If these are right, the fresh sample moves it only by its own error, which
is independent of the past. The estimate tells how much of the old error stays. So V_t = keep² V_{t−1} + I_t² estimates the
variance of m_t, whatever the value of g. It begins with V = 0 if the first estimates are exact.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import minus
from tiebreak.estimates import Exact, renewed_variance
from tiebreak.objectives.base import pass_over


class FromEstimate(NamedTuple):
    """g(x_0) is ĝ_0, some standard errors, and what rounding may make of the terms of the cut."""

    errors: float
    rounding: float  # relative to the terms


class FromAll(NamedTuple):
    """g(x_0) is the mean over all samples, whatever ĝ_0 is."""

    plan: Exact


class Fixed(NamedTuple):
    """K_t as it is given."""

    values: Any


class Watched(NamedTuple):
    """K_t as it is given, and some standard errors √V_t of the cut's estimate."""

    values: Any
    errors: float


# The anchor


@generic(light=True)
def set_anchor(anchor, objective, state):
    """Set g(x_0), and V_0."""


@set_anchor.register(FromEstimate)
def set_anchor_from_estimate(anchor, objective, state):
    error = state.lower.error[0]
    state.variance[0] = error * error
    state.anchor[0] = state.lower.value[0] + anchor.errors * error
    if anchor.rounding > 0.0:
        state.anchor[0] += anchor.rounding * size_of_terms(state.lower, state.x)


@kernel
def size_of_terms(lower, x):
    """Return |g(x)| + Σ |∇g(x)_i x_i|, in which the terms of the cut are rounded."""
    total = abs(lower.value[0])
    for i in range(x.size):
        total += abs(lower.direction[i] * x[i])
    return total


@set_anchor.register(FromAll)
def set_anchor_from_all(anchor, objective, state):
    whole = anchor.plan.whole
    state.anchor[0] = pass_over(whole, objective, state.x, state.target)
    state.lower.spent[0] += whole.size
    state.lower.spent[1] += whole.size


# The slack


@generic(light=True)
def margin(slack, state):
    """Return what is added to the slack that is given."""


@generic(light=True)
def watch_error(slack, plan, state, k, moment):
    """Renew V_t after an estimate, if the error is watched."""


@generic(light=True)
def watch_move(slack, state):
    """Keep m'_t, the model of the estimates at x_{t+1}, if the error is watched."""


@margin.register(Fixed)
def no_margin(slack, state):
    return 0.0


@watch_error.register(Fixed)
def watch_no_error(slack, plan, state, k, moment):
    pass


@watch_move.register(Fixed)
def watch_no_move(slack, state):
    pass


@margin.register(Watched)
def margin_of_error(slack, state):
    return slack.errors * math.sqrt(state.variance[0])


@watch_error.register(Watched)
def watch_innovation(slack, plan, state, k, moment):
    if moment.iteration > 0:
        innovation = model_at(state.lower, state.origin, state.x) - state.model[0]
        state.variance[0] = renewed_variance(plan, state.variance[0], innovation, k, moment)


@watch_move.register(Watched)
def watch_model(slack, state):
    state.model[0] = model_at(state.lower, state.origin, state.x)


@kernel(reorder=True)
def model_at(lower, origin, x):
    """Return m = ĝ + ⟨∇ĝ, x_0 − x⟩."""
    total = 0.0
    for i in range(x.size):
        total += lower.direction[i] * minus(origin[i], x[i])
    return lower.value[0] + lower.factor[0] * total
