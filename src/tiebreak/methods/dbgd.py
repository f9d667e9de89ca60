"""DBGD: dynamic barrier gradient descent, and its stochastic version.

Gong, Liu and Liu, Bi-objective trade-off with dynamic barrier gradient descent, NeurIPS 2021; with a projection onto Z, as
in Cao et al. (2023).

    φ_t = min{α (g(x_t) − ĝ), β ‖∇g(x_t)‖²}
    λ_t = max{(φ_t − ⟨∇f(x_t), ∇g(x_t)⟩) / ‖∇g(x_t)‖², 0},  0 where ∇g(x_t) = 0
    x_{t+1} = Π(x_t − γ_t (∇f(x_t) + λ_t ∇g(x_t)))

In the paper Z is the whole space; where it binds at the solution, the projection undoes what λ_t is made for, and the
method ends short of it. γ_t is ``step(t)``, α and β are ``alpha`` and ``beta``, ĝ ≤ g* is ``floor``. The stochastic version
puts sampled gradients and values in place of exact ones; it has no theory, and its g stays above g* by an error that the
noise leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.randomness import moment_of
from tiebreak.engine.vectors import dot
from tiebreak.estimates import gradient_at
from tiebreak.methods.base import (
    DONE,
    LOWER_NOT_FINITE,
    UPPER_NOT_FINITE,
    Budget,
    Cost,
    Method,
    counter,
    known_floor,
    smoothness,
)
from tiebreak.methods.projecting import Full, full, full_cost
from tiebreak.objectives.base import draw
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power


class State(NamedTuple):
    """The state of DBGD."""

    x: np.ndarray  # x_t
    room: np.ndarray  # a point before its projection
    upper: np.ndarray  # ∇f(x_t)
    lower: np.ndarray  # ∇g(x_t)
    upper_batch: np.ndarray  # the samples of this iteration
    lower_batch: np.ndarray
    iteration: np.ndarray  # t, one number


class Constants(NamedTuple):
    """What the loop takes besides its schedules."""

    full: Full  # all samples
    alpha: float
    beta: float
    floor: float  # ĝ


@kernel
def barrier_step(problem, state, constants, upper_batch, lower_batch, step):
    """Make x_{t+1} from the gradients of two batches at x_t; return DONE or which level is not finite."""
    x, room, upper, lower = state.x, state.room, state.upper, state.lower
    if not math.isfinite(gradient_at(problem.upper, upper_batch, x, upper)):
        return UPPER_NOT_FINITE
    value = gradient_at(problem.lower, lower_batch, x, lower)
    if not math.isfinite(value):
        return LOWER_NOT_FINITE
    square = dot(lower, lower)
    barrier = min(constants.alpha * (value - constants.floor), constants.beta * square)
    multiplier = max((barrier - dot(upper, lower)) / square, 0.0) if square > 0.0 else 0.0
    for i in range(x.size):
        room[i] = x[i] - step * (upper[i] + multiplier * lower[i])
    project(problem.domain, room, x)
    state.iteration[0] += 1
    return DONE


@kernel
def advance_exact(problem, state, constants, step, keys):
    """Take one step for each entry of the schedule, with exact gradients."""
    for k in range(step.size):
        outcome = barrier_step(problem, state, constants, constants.full.upper, constants.full.lower, step[k])
        if outcome != DONE:
            return outcome
    return DONE


@kernel
def advance_sampled(problem, state, constants, step, keys):
    """Take one step for each entry of the schedule, with sampled gradients."""
    for k in range(step.size):
        upper_batch = draw(problem.upper, moment_of(keys.upper, state.iteration[0]), state.upper_batch)
        lower_batch = draw(problem.lower, moment_of(keys.lower, state.iteration[0]), state.lower_batch)
        outcome = barrier_step(problem, state, constants, upper_batch, lower_batch, step[k])
        if outcome != DONE:
            return outcome
    return DONE


@dataclass(frozen=True)
class DBGD(Method):
    """Dynamic barrier gradient descent.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the length of a gradient step; 1 / ((L_f + L_g) √(t + 1)) if not given. With a constant one an error at the
        lower level that is proportional to its square remains.
    alpha, beta : float, optional
        How fast g is to fall: at the rate α (g − ĝ), but no faster than β ‖∇g‖².
    floor : float, optional
        ĝ, a lower bound of g*; that of the lower objective, 0 for a loss, if not given.

    Examples
    --------
    >>> DBGD(step=0.1).alpha
    1.0
    """

    step: ScheduleLike | None = None
    alpha: float = 1.0
    beta: float = 1.0
    floor: float | None = None

    name = "dbgd"
    citation = "Gong, Liu, Liu (2021)"
    setting = "exact gradients"
    needs = "projection, a lower bound of g*"
    rates = "converges to a stationary point; converges"
    loop = advance_exact
    projects = True
    reals: ClassVar = {"alpha": {"above": 0.0}, "beta": {"above": 0.0}, "floor": {}}
    limits: ClassVar = {"step": np.inf}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: self._safe_step(problem), "floor": lambda: known_floor(problem, self)}

    def _safe_step(self, problem: Problem) -> power:
        upper, lower = (smoothness(problem, level, self, "step=...") for level in ("upper", "lower"))
        return power(1.0 / (upper + lower), 0.5)

    def constants(self, problem: Problem) -> Constants:
        assert self.floor is not None
        return Constants(full(problem), float(self.alpha), float(self.beta), float(self.floor))

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        room, upper, lower = np.zeros((3, x.size))
        upper_batch, lower_batch = np.zeros((2, getattr(self, "batch_size", None) or 1), dtype=np.int64)
        return State(x.copy(), room, upper, lower, upper_batch, lower_batch, counter())

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        return full_cost(constants.full, t)


@dataclass(frozen=True)
class DBGDSto(DBGD):
    """Dynamic barrier gradient descent with sampled gradients: a baseline of Cao et al. (2023), without theory.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the length of a gradient step.
    alpha, beta : float, optional
        How fast g is to fall: at the rate α (g − ĝ), but no faster than β ‖∇g‖².
    floor : float, optional
        ĝ, a lower bound of g*; that of the lower objective, 0 for a loss, if not given.
    batch_size : int, optional
        Samples drawn at each level in an iteration.
    preset : str
        Where parameters that are not given come from: the regression (``"paper"``) or the dictionary experiment
        (``"paper-dictionary"``) of Cao et al. (2023), the latter for means of 250 samples.

    Examples
    --------
    >>> DBGDSto(preset="paper-dictionary").batch_size
    8
    """

    alpha: float | None = None  # type: ignore[assignment]
    beta: float | None = None  # type: ignore[assignment]
    batch_size: int | None = None
    preset: str = "paper"

    name = "dbgd-sto"
    citation = "Gong, Liu, Liu (2021); Cao et al. (2023)"
    setting = "stream or finite sum"
    streams = True
    rates = "none known"
    loop = advance_sampled
    counts = ("batch_size",)
    presets: ClassVar = {
        "paper": {"step": constant(1e-6), "alpha": 1.0, "beta": 1.0, "batch_size": 1},
        "paper-dictionary": {"step": constant(250 * 5e-3), "alpha": 100.0 / 250, "beta": 100.0, "batch_size": 8},
    }

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        drawn = np.full(t.shape, self.batch_size)
        return Cost(drawn, drawn, drawn, drawn)
