"""MNG: minimal norm gradient.

Beck and Sabach, A first order method for finding minimal norm-like solutions of convex optimization problems, Mathematical
Programming 2014.

    y_t = Π(x_t − γ ∇g(x_t)),   G_t = (x_t − y_t) / γ
    x_{t+1} = argmin f(x)  over  ⟨G_t, x_t − x⟩ ≥ ¾ γ ‖G_t‖²,  ⟨∇f(x_t), x − x_t⟩ ≥ 0
    answer:  y_t

In the paper: γ = 1/M ≤ 1/L_g is ``step``, and x_0 is the minimiser of f without constraint, whatever point is given. For a
quadratic f with second derivatives H the minimiser over two half-spaces is x_t − H⁻¹(μ ∇f(x_t) + λ G_t), with λ ≥ 0 and μ ≤
1 from two linear equations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.vectors import dot, fill
from tiebreak.estimates import gradient_at
from tiebreak.methods.base import (
    DONE,
    LOWER_NOT_FINITE,
    NO_BUDGET,
    UPPER_NOT_FINITE,
    Budget,
    Cost,
    Method,
    counter,
    smoothness,
)
from tiebreak.methods.projecting import Full, full, full_cost
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant

PARALLEL = 1e-14  # of the angle at which two half-spaces count as one


class State(NamedTuple):
    """The state of MNG."""

    x: np.ndarray  # x_t
    y: np.ndarray  # y_t
    room: np.ndarray  # y_t before its projection
    upper: np.ndarray  # ∇f(x_t)
    upper_step: np.ndarray  # H⁻¹ ∇f(x_t)
    lower: np.ndarray  # G_t
    lower_step: np.ndarray  # H⁻¹ G_t
    iteration: np.ndarray  # t, one number


class Constants(NamedTuple):
    """What MNG's loop takes besides its schedule."""

    full: Full  # all samples
    inverse: np.ndarray  # H⁻¹; one entry: that multiple of the identity


@kernel
def apply(inverse, vector, out):
    """Set out ← H⁻¹ vector."""
    if inverse.size == 1:
        for i in range(vector.size):
            out[i] = inverse[0, 0] * vector[i]
    else:
        for i in range(vector.size):
            out[i] = dot(inverse[i], vector)


@kernel
def weights(a, b, e, c):
    """Return (μ, λ) for a = ⟨∇f, H⁻¹∇f⟩, b = ⟨G, H⁻¹∇f⟩, e = ⟨G, H⁻¹G⟩, and c = ¾ γ ‖G‖², how deep the first cut is."""
    if e <= 0.0:
        return 0.0, 0.0  # G = 0: x_t is optimal at the lower level, and no point nearer to the minimiser of f is allowed
    alone = (c - b) / e  # if the first half-space binds alone, μ = 1
    if alone >= 0.0 and a + alone * b <= 0.0:
        return 1.0, alone
    angle = a * e - b * b
    if angle <= PARALLEL * a * e:
        return 0.0, c / e
    return -c * b / angle, a * c / angle


@kernel
def advance(problem, state, constants, step, keys):
    """Take one step for each entry of the schedule."""
    x, y, room, upper, upper_step, lower, lower_step, t = state
    for k in range(step.size):
        if not math.isfinite(gradient_at(problem.upper, constants.full.upper, x, upper)):
            return UPPER_NOT_FINITE
        if not math.isfinite(gradient_at(problem.lower, constants.full.lower, x, lower)):
            return LOWER_NOT_FINITE
        if t[0] == 0:
            fill(upper, 0.0)  # at the minimiser of f; what rounding leaves of it would be a half-space of any direction
        for i in range(x.size):
            room[i] = x[i] - step[k] * lower[i]
        project(problem.domain, room, y)
        for i in range(x.size):
            lower[i] = (x[i] - y[i]) / step[k]
        apply(constants.inverse, upper, upper_step)
        apply(constants.inverse, lower, lower_step)
        depth = 0.75 * step[k] * dot(lower, lower)
        mu, lam = weights(dot(upper, upper_step), dot(lower, upper_step), dot(lower, lower_step), depth)
        for i in range(x.size):
            x[i] -= mu * upper_step[i] + lam * lower_step[i]
        t[0] += 1
    return DONE


@dataclass(frozen=True)
class MNG(Method):
    """Minimal norm gradient: among the minimisers of g, the one that minimises a strongly convex quadratic f.

    Parameters
    ----------
    step : number or function of t, optional
        γ = 1/M, at most 1 / L_g, which it is if not given.

    Examples
    --------
    >>> MNG(step=0.1).name
    'mng'
    """

    step: ScheduleLike | None = None

    name = "mng"
    citation = "Beck, Sabach (2014)"
    setting = "exact gradients"
    needs = "projection, f quadratic and strongly convex"
    rates = "converges; t^-1/2"
    loop = advance
    projects = True
    limits: ClassVar = {"step": np.inf}

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        if problem.upper.hessian() is None or not problem.upper.strong_convexity > 0.0:
            raise ValueError(
                "the method 'mng' needs an upper objective that is quadratic and strongly convex, such as SquaredNorm() or a"
                f" least-squares loss of full column rank, and {problem.upper!r} is not known to be"
            )
        return super().for_problem(problem, budget)

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: constant(1.0 / smoothness(problem, "lower", self, "step=..."))}

    def constants(self, problem: Problem) -> Constants:
        if not (self.schedule_values(np.arange(1))[0] > 0.0).all():
            raise ValueError("`step` of MNG must be positive, got 0")
        return Constants(full(problem), np.linalg.inv(np.atleast_2d(problem.upper.hessian())))

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        step = np.empty_like(x)
        apply(constants.inverse, problem.upper.value_and_gradient(x)[1], step)
        room, upper, upper_step, lower, lower_step = np.zeros((5, x.size))
        return State(x - step, x.copy(), room, upper, upper_step, lower, lower_step, counter())

    def answer(self, state: State) -> np.ndarray:
        return state.y

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        cost = full_cost(constants.full, t)
        first = np.where(t == 0, constants.full.upper.size, 0)  # the gradient that leads to the minimiser of f
        return cost._replace(upper_queries=cost[0] + first, upper_evaluations=cost[2] + first)
