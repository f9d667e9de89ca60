"""What the methods that project share: estimates of both gradients at a point, and one step along both."""

from __future__ import annotations

import math

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.estimates import estimate
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE


@kernel
def estimate_both(problem, plan, state, x, previous, k, keys, turn):
    """Estimate both gradients at x, in the turn of that number in this iteration; return DONE or which is not finite."""
    t = state.iteration[0]
    estimate(plan.upper, problem.upper, state.upper, x, previous, k, Moment(keys.upper, t, turn, 0))
    if not math.isfinite(state.upper.value[0]):
        return UPPER_NOT_FINITE
    estimate(plan.lower, problem.lower, state.lower, x, previous, k, Moment(keys.lower, t, turn, 0))
    if not math.isfinite(state.lower.value[0]):
        return LOWER_NOT_FINITE
    return DONE


@kernel
def descend(domain, state, x, upper_step, lower_step, out):
    """Set out ← Π(x − upper_step ∇f̂ − lower_step ∇ĝ)."""
    upper, lower = state.upper.direction, state.lower.direction
    p, q = upper_step * state.upper.factor[0], lower_step * state.lower.factor[0]
    for i in range(x.size):
        state.room[i] = x[i] - p * upper[i] - q * lower[i]
    project(domain, state.room, out)
