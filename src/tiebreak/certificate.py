"""Two-sided bounds on both gaps from full gradients at a point.

Lower level: g is convex, so g(x) − g* ≤ max_{s ∈ Z} ⟨∇g(x), x − s⟩.

Upper level: for any y in Z, the cut {s ∈ Z : ⟨∇g(x), s − x⟩ ≤ g(y) − g(x)} contains every minimiser of g. If f is convex,
f* ≥ f(x) + min over that cut of ⟨∇f(x), s − x⟩, which is bounded from below by its dual at any multiplier λ ≥ 0:
min_{s ∈ Z} ⟨∇f(x) + λ ∇g(x), s − x⟩ − λ (g(y) − g(x)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.domains import cut_lmo, lmo
from tiebreak.objectives.base import Objective, accumulate, everything
from tiebreak.problem import Problem

ROUNDING = 1e-13  # relative: moves a cut outwards, so that rounding cannot cut off a minimiser


class Floors(NamedTuple):
    """The best that is proven so far about the optimal values, and the smallest g seen."""

    upper: float = -math.inf  # ≤ f*
    lower: float = -math.inf  # ≤ g*
    best_lower: float = math.inf  # ≥ g*


NOTHING = Floors()


class Certificate(NamedTuple):
    """Exact values at a point and what they prove."""

    upper: float  # f(x)
    lower: float  # g(x)
    upper_bound_gap: float  # ≥ f(x) − f*, may be negative; NaN if f is not known to be convex
    lower_bound_gap: float  # ≥ g(x) − g*
    stationarity: float  # max of ⟨∇f(x), x − s⟩ over the cut
    multiplier: float  # λ of the cut
    floors: Floors

    @property
    def finite(self) -> bool:
        """Whether both values are finite."""
        return math.isfinite(self.upper) and math.isfinite(self.lower)


def evaluate(problem: Problem, x: np.ndarray, floors: Floors = NOTHING) -> Certificate:
    """Return the certificate of a point of the domain; what was proven at other points is in ``floors``."""
    f, f_gradient = _value_and_gradient(problem.upper, x)
    g, g_gradient = _value_and_gradient(problem.lower, x)
    atom = np.empty_like(x)
    if not (math.isfinite(f) and math.isfinite(g)):
        return Certificate(f, g, math.nan, math.nan, math.nan, math.nan, floors)

    lower_floor = g + min(_minimum(problem, g_gradient, x, atom), 0.0)
    floors = Floors(floors.upper, max(floors.lower, lower_floor), min(floors.best_lower, g))

    at_x = float(g_gradient @ x)
    room = floors.best_lower - g + ROUNDING * (abs(g) + float(np.abs(g_gradient) @ np.abs(x)))
    _, multiplier = cut_lmo(problem.domain, f_gradient, g_gradient, at_x + room, atom)
    if math.isfinite(multiplier):
        stationarity = multiplier * room - _minimum(problem, f_gradient + multiplier * g_gradient, x, atom)
    else:
        stationarity = math.inf
    if problem.upper.convex:
        floors = floors._replace(upper=max(floors.upper, f - stationarity))
    return Certificate(
        upper=f,
        lower=g,
        upper_bound_gap=f - floors.upper if problem.upper.convex else math.nan,
        lower_bound_gap=g - floors.lower,
        stationarity=stationarity,
        multiplier=float(multiplier),
        floors=floors,
    )


def _value_and_gradient(objective: Objective, x: np.ndarray) -> tuple[float, np.ndarray]:
    gradient = np.zeros_like(x)
    value, _ = accumulate(objective, everything(objective), x, 1.0, x, 0.0, gradient)
    return float(value), gradient


def _minimum(problem: Problem, c: np.ndarray, x: np.ndarray, atom: np.ndarray) -> float:
    """Return min ⟨c, s − x⟩ over s ∈ Z."""
    lmo(problem.domain, c, atom)
    return float(c @ (atom - x))
