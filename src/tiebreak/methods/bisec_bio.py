"""Bisec-BiO: bisection of the optimal upper value, with accelerated steps on g over the level sets of f.

Wang, Shi and Jiang, Near-optimal convex simple bilevel optimization with a bisection method, AISTATS 2024.

    f* is the least τ for which the least g over {x ∈ Z : f(x) ≤ τ} is g*. A bracket of it is halved:
    τ is its middle;  y = x_k + k/(k + 3) (x_k − x_{k−1});  x_{k+1} = projection of y − ∇g(y) / L_g onto {x ∈ Z : f(x) ≤ τ}

It is for f whose level sets are balls, f(x) = h/2 ‖x − c‖² + a constant, such as a squared norm: the nearest point of Z
within a ball is a projection onto Z for one multiplier (``domains/within.py``). The bracket, and when a τ is left, are those
of FC-BiO (``fcbio.py``): g(x_0) stands for g*, or, for near ties, the level that g may reach.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.domains import Around, project, project_within
from tiebreak.engine import kernel
from tiebreak.methods.fcbio import FCBiO, descend, least_upper
from tiebreak.methods.parameters import declared
from tiebreak.problem import Problem


class LevelSets(NamedTuple):
    """Steps on g over the level sets of f(x) = h/2 ‖x − center‖² + least."""

    curvature: float  # h
    center: np.ndarray
    least: float


@kernel
def upper_value(steps, x):
    """Return f(x)."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] - steps.center[i]) * (x[i] - steps.center[i])
    return steps.least + 0.5 * steps.curvature * total


@least_upper.register(LevelSets)
def least_upper_on_level_sets(steps, domain, state):
    project(domain, steps.center, state.room)
    return upper_value(steps, state.room)


@descend.register(LevelSets)
def descend_in_level_set(steps, domain, state, plan, upper_room, lower_room):
    x, y, room = state.x, state.y, state.room
    for i in range(x.size):
        room[i] = y[i] - plan.weight * state.lower.direction[i] / plan.lipschitz
    level = 0.5 * (state.bracket[0] + state.bracket[1]) - steps.least
    radius = math.sqrt(max(2.0 * level / steps.curvature, 0.0))
    project_within(domain, Around(radius, steps.center), room, x)


@declared
class BisecBiO(FCBiO):
    """Bisection of the optimal upper value, with accelerated steps on g over the level sets of f, which are balls.

    Examples
    --------
    >>> BisecBiO(tolerance=1e-4).inner_iterations
    20
    """

    name = "bisec-bio"
    citation = "Wang, Shi, Jiang (2024)"
    needs = "projection, f a squared distance"

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if not isinstance(problem.upper.hessian(), float):
            raise ValueError(
                "the method 'bisec-bio' needs an upper objective whose level sets are balls, such as SquaredNorm(), and"
                f" {problem.upper!r} is not known to have such: take a method for others, such as 'fc-bio' or 'pb-apg'"
            )

    def _steps(self, problem: Problem) -> LevelSets:
        curvature = float(problem.upper.hessian())
        _, gradient = problem.upper.value_and_gradient(np.zeros(problem.dimension))
        center = -gradient / curvature
        return LevelSets(curvature, center, problem.upper.value(center))
