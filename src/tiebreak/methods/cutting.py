"""The step that SBCGI and SBCGF share: minimise the linear model of f over Z and the cut, and move towards it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.domains.base import INVALID, cut_step
from tiebreak.engine import kernel
from tiebreak.estimators import Estimate, no_estimate
from tiebreak.methods.base import LOWER_NOT_FINITE, UPPER_NOT_FINITE
from tiebreak.problem import Problem
from tiebreak.vectors import dot_and_copy


class State(NamedTuple):
    """The state of a method that cuts."""

    x: np.ndarray  # x_t
    previous: np.ndarray  # x_{t−1}
    target: np.ndarray  # room for s_t
    upper: Estimate  # ∇f̂_t
    lower: Estimate  # ∇ĝ_t and ĝ_t
    anchor: np.ndarray  # g(x_0), one number
    iteration: np.ndarray  # t, one number
    empty_cuts: np.ndarray  # how often the cut left nothing of Z, one number


def start_state(problem: Problem, x: np.ndarray, upper_batch: int, lower_batch: int) -> State:
    """Return the state at x_0 = x, before anything is sampled."""
    d = problem.dimension
    return State(
        x=x.copy(),
        previous=x.copy(),
        target=np.zeros(d),
        upper=no_estimate(d, upper_batch),
        lower=no_estimate(d, lower_batch),
        anchor=np.zeros(1),
        iteration=np.zeros(1, dtype=np.int64),
        empty_cuts=np.zeros(1, dtype=np.int64),
    )


@kernel
def cut_and_move(domain, x, previous, target, upper, lower, anchor, slack, step):
    """Make x_{t+1} from the estimates at x_t; return the cut's status, or which level's estimates are not finite.

    s_t = argmin ⟨∇f̂_t, s⟩ over s ∈ Z, ⟨∇ĝ_t, s − x_t⟩ ≤ g(x_0) − ĝ_t + K_t;  x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t.
    An empty cut gives the point of Z that violates it least, the direction that lowers g most.
    """
    room = (anchor - lower.value[0] + slack) / lower.factor[0]
    bound = room + dot_and_copy(lower.direction, x, previous)
    if not math.isfinite(bound):
        status = LOWER_NOT_FINITE
    elif not math.isfinite(upper.value[0]):
        status = UPPER_NOT_FINITE
    else:
        status, _ = cut_step(domain, upper.direction, lower.direction, bound, step, x, target)
        if status == INVALID:
            status = UPPER_NOT_FINITE
    return status
