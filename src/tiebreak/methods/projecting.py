"""What the methods that project share: batches of all samples, and one step along both gradients."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.vectors import copy
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Cost
from tiebreak.objectives.base import accumulate, everything
from tiebreak.problem import Problem


class Full(NamedTuple):
    """The batches of all samples, for exact gradients."""

    upper: np.ndarray
    lower: np.ndarray


def full(problem: Problem) -> Full:
    """Return the batches of all samples of both levels; empty ones of streams, which only methods that sample meet."""
    upper, lower = (np.arange(0) if level.endless else everything(level) for level in problem[:2])
    return Full(upper, lower)


def full_cost(constants: Full, t: np.ndarray) -> Cost:
    """Return the cost of one exact gradient at each level in each iteration t."""
    upper, lower = np.full(t.shape, constants.upper.size), np.full(t.shape, constants.lower.size)
    return Cost(upper, lower, upper, lower)


@kernel
def descend(problem, upper_batch, lower_batch, at, upper_step, lower_step, x, room, out):
    """Set out ← Π(x − upper_step ∇f(at) − lower_step ∇g(at)), gradients of batches; return DONE or which is not finite."""
    copy(x, room)
    upper, _ = accumulate(problem.upper, upper_batch, at, -upper_step, at, 0.0, room)
    lower, _ = accumulate(problem.lower, lower_batch, at, -lower_step, at, 0.0, room)
    if not math.isfinite(upper):
        return UPPER_NOT_FINITE
    if not math.isfinite(lower):
        return LOWER_NOT_FINITE
    project(problem.domain, room, out)
    return DONE
