"""aR-IP-SeG: averaged randomly-projected iteratively penalised stochastic extra-gradient.

Jalilzadeh, Yousefian and Ebrahimi, Stochastic approximation for estimating the price of stability in stochastic Nash games,
ACM Transactions on Modeling and Computer Simulation, 2024 (arXiv 2203.01271).

    y_{t+1} = Π(x_t − γ_t (∇f~(x_t, θ_t) + ρ_t ∇g~(x_t, ξ_t)))
    x_{t+1} = Π(x_t − γ_t (∇f~(y_{t+1}, θ'_t) + ρ_t ∇g~(y_{t+1}, ξ'_t)))                          with fresh samples
    answer:  the mean of the y's with weights (γ_t ρ_t)^r

In the paper: γ_t is ``step(t)``, ρ_t is ``penalty(t)``, r is ``average_power``. As printed by Cao et al. the parentheses
would ascend on g, and the second step would start from y; this is the method of the paper that they cite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.randomness import moment_of, turn_of
from tiebreak.engine.vectors import move
from tiebreak.methods.base import DONE, Cost, Method, counter
from tiebreak.methods.projecting import descend
from tiebreak.objectives.base import draw
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, power


class State(NamedTuple):
    """The state of aR-IP-SeG."""

    x: np.ndarray  # x_t
    y: np.ndarray  # y_t
    room: np.ndarray  # a point before its projection
    mean: np.ndarray  # the weighted mean of y_1 … y_t
    weight: np.ndarray  # the sum of their weights, one number
    upper_batch: np.ndarray  # θ
    lower_batch: np.ndarray  # ξ
    iteration: np.ndarray  # t, one number


class Constants(NamedTuple):
    """The loop needs nothing besides its schedules."""


@kernel
def advance(problem, state, constants, step, penalty, weight, keys):
    """Take one extra-gradient step for each entry of the schedules."""
    f, g, _ = problem
    x, y, room, mean, total, upper_batch, lower_batch, t = state
    for k in range(step.size):
        at_f, at_g = moment_of(keys.upper, t[0]), moment_of(keys.lower, t[0])
        theta, xi = draw(f, at_f, upper_batch), draw(g, at_g, lower_batch)
        outcome = descend(problem, theta, xi, x, step[k], step[k] * penalty[k], x, room, y)
        if outcome != DONE:
            return outcome
        theta, xi = draw(f, turn_of(at_f, 1), upper_batch), draw(g, turn_of(at_g, 1), lower_batch)
        outcome = descend(problem, theta, xi, y, step[k], step[k] * penalty[k], x, room, x)
        if outcome != DONE:
            return outcome
        total[0] += weight[k]
        if total[0] > 0.0:
            move(mean, y, weight[k] / total[0])
        t[0] += 1
    return DONE


@dataclass(frozen=True)
class ARIPSeG(Method):
    """Averaged iteratively penalised stochastic extra-gradient.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the length of a gradient step.
    penalty : number or function of t, optional
        ρ_t, the weight of g.
    batch_size : int, optional
        Samples drawn at each level for each of the two gradients of an iteration.
    average : bool
        Whether the answer is the weighted mean of the points y, for which the rates hold, or the last x.
    average_power : float
        r, the power of γ_t ρ_t that weighs y_{t+1} in the mean.
    preset : str
        Where parameters that are not given come from: the regression (``"paper"``) or the dictionary experiment
        (``"paper-dictionary"``) of Cao et al. (2023), the latter for means of 250 samples.

    Examples
    --------
    >>> ARIPSeG(batch_size=8).penalty
    power(scale=1000.0, exponent=-0.25, shift=1.0)
    """

    step: ScheduleLike | None = None
    penalty: ScheduleLike | None = None
    batch_size: int | None = None
    average: bool = True
    average_power: float = 0.5
    preset: str = "paper"

    name = "arip-seg"
    citation = "Jalilzadeh, Yousefian, Ebrahimi (2024)"
    setting = "stream or finite sum"
    streams = True
    needs = "projection, f convex"
    rates = "t^-1/4; t^-1/4"
    loop = advance
    projects = True
    reals: ClassVar = {"average_power": {}}
    flags = ("average",)
    counts = ("batch_size",)
    limits: ClassVar = {"step": np.inf, "penalty": np.inf}
    presets: ClassVar = {
        "paper": {"step": power(1e-7, 0.75), "penalty": power(1e3, -0.25), "batch_size": 1},
        "paper-dictionary": {"step": power(250 * 1e-4, 0.75), "penalty": power(1.0, -0.25), "batch_size": 8},
    }

    def constants(self, problem: Problem) -> Constants:
        return Constants()

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        upper_batch, lower_batch = (np.zeros(self.batch_size or 1, dtype=np.int64) for _ in range(2))
        return State(x.copy(), x.copy(), np.zeros_like(x), x.copy(), np.zeros(1), upper_batch, lower_batch, counter())

    def answer(self, state: State) -> np.ndarray:
        return state.mean if self.average else state.x

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        step, penalty = super().schedule_values(t)
        return step, penalty, (step * penalty) ** self.average_power

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        drawn = np.full(t.shape, 2 * (self.batch_size or 1))
        return Cost(drawn, drawn, drawn, drawn)
