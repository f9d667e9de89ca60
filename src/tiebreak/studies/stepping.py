"""Runs of methods that cut, one iteration at a time: what the cut was, and what it should have been."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tiebreak
from tiebreak.engine.randomness import keys_of
from tiebreak.methods.base import DONE, Budget


class Step(NamedTuple):
    """One iteration: the cut {s : ĝ_t + ⟨∇ĝ_t, s − x_t⟩ ≤ g(x_0) + K_t}."""

    x: np.ndarray  # x_t
    value: float  # ĝ_t
    gradient: np.ndarray  # ∇ĝ_t
    anchor: float  # g(x_0)
    slack: float  # K_t, standard errors included
    upper_gradient: np.ndarray  # ∇f̂_t

    def needed(self, points: np.ndarray) -> float:
        """Return the slack with which the cut keeps all points, the rows of a matrix."""
        return float((points @ self.gradient).max() - self.gradient @ self.x + self.value - self.anchor)


def steps(problem: tiebreak.Problem, method: Any, x0: np.ndarray, iterations: int, seed: int) -> Iterator[Step]:
    """Yield each iteration of SBCGI, SBCGF or a variant of them.

    Parameters
    ----------
    problem : Problem
    method : Method
        Its horizon, if it has none of its own, is the number of iterations.
    x0 : array
    iterations : int
    seed : int

    Examples
    --------
    >>> from tiebreak.studies.known import known
    >>> case = known(0)
    >>> taken = list(steps(case.problem, tiebreak.SBCGF(preset="auto"), case.x0, iterations=3, seed=0))
    >>> taken[0].needed(case.vertices) <= taken[0].slack + 1e-12  # the first estimates are exact
    True
    """
    method = method.for_problem(problem, Budget(math.inf, iterations))
    plan, keys = method.plan(problem), keys_of([seed])
    state = method.start(problem, plan, x0)
    slack = plan.slack.values(np.arange(iterations))
    for t in range(iterations):
        outcome = method.advance(problem, state, plan, 1, keys)
        if outcome != DONE:
            raise tiebreak.NonFiniteError(f"an objective became NaN or infinite at iteration {t}")
        lower, upper = state.lower, state.upper
        yield Step(
            state.previous.copy(),
            float(lower.value[0]),
            lower.factor[0] * lower.direction,
            float(state.anchor[0]),
            float(slack[t] + (method.margin or 0.0) * math.sqrt(state.variance[0])),
            upper.factor[0] * upper.direction,
        )
