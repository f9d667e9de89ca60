"""Parameters of the methods that cut, found from the problem and the budget."""

from __future__ import annotations

import math
from dataclasses import replace

from tiebreak.domains import projects
from tiebreak.methods.base import Method
from tiebreak.methods.fista import FISTA
from tiebreak.methods.frank_wolfe import SpiderFW, StormFW
from tiebreak.objectives import Objective
from tiebreak.problem import Problem
from tiebreak.schedules import Schedule, constant, falling, opened, power

LARGEST_SHARE = 4.0  # sum of all steps, if none is shortened: e^−4 of x_0 is left then
NOT_CONVEX = 0.5  # factor of T^−ω in the first step if f is not convex
ALLOWED = 1e-3  # share of g at the centre of Z by which g may rise before steps become shorter, if f is not convex

FIRST_SHORT_STEP = 1e-3  # the first step of Frank-Wolfe from a good point at most: it meets the curvature of g
UNKNOWN_CURVATURE = 1e-300  # less than any
ROUND = 10.0  # ratio of curvatures up to which steps with full gradients are as good as any


def known_convexity(problem: Problem, method: Method) -> bool:
    """Return whether f is convex; raise if it is not known."""
    if problem.upper.convex is None:
        raise ValueError(
            f"the method {method.name!r} chooses its steps by whether the upper objective is convex, and that is not known:"
            " say so where it is made (convex=True or convex=False), or give the step"
        )
    return bool(problem.upper.convex)


def fitting_step(problem: Problem, method: Method, horizon: float, exponent: float) -> Schedule:
    """Return the largest steps for a number of iterations T.

    For f convex they are such that little is left of x_0 at the end. For f not convex they begin with the order T^−ω that
    theory wants, ω being ``exponent``, and fall to 0.
    """
    endless = math.isinf(horizon)
    if known_convexity(problem, method):
        return power(2.0, 1.0, shift=1000.0) if endless else constant(min(LARGEST_SHARE / horizon, 1.0))
    return power(NOT_CONVEX, exponent) if endless else falling(NOT_CONVEX * horizon**-exponent, horizon)


def curvature_of(problem: Problem) -> float:
    """Return the smoothness constant of a convex f, or 0 if it is not known or f is not convex."""
    curvature = float(problem.upper.lipschitz) if problem.upper.convex else 0.0
    return curvature if math.isfinite(curvature) else 0.0


def allowance_of(problem: Problem) -> float:
    """Return by how much g may rise before steps become shorter; 0, which is no limit, if f is convex or nothing is known.

    Steps for f not convex are of an order that is right for all of Z. Where Z is much larger than what matters, g would rise
    too far with them.
    """
    if problem.upper.convex or problem.lower.endless or not math.isfinite(problem.lower.floor):
        return 0.0
    return ALLOWED * max(problem.lower.value(problem.center) - problem.lower.floor, 0.0)


def first_points(problem: Problem) -> Method:
    """Return a method that finds a point at which g is nearly least: accelerated if it can project, else Frank-Wolfe."""
    if problem.lower.endless:
        return StormFW(level="lower")
    if projects(problem.domain):
        return FISTA(level="lower")
    return SpiderFW(period=1, batch_size=1, level="lower")


def is_round(objective: Objective) -> bool:
    """Return whether an objective is known, at little cost, to bend in all directions about as much."""
    return ROUND * float(objective.known_convexity) >= float(objective.lipschitz)


def settling(problem: Problem) -> Method | None:
    """Return a method that lowers g from a good point on: accelerated if it can project, else Frank-Wolfe with short steps.

    None where g is never known exactly, and for near ties, where g may be above its least value.
    """
    if problem.lower.endless or problem.is_near:
        return None
    first = first_points(problem)
    if not isinstance(first, SpiderFW):
        return first
    lipschitz = float(problem.lower.lipschitz)
    curvature = lipschitz if math.isfinite(lipschitz) and lipschitz > 0.0 else UNKNOWN_CURVATURE
    return replace(first, step=opened(FIRST_SHORT_STEP, 1, constant(1.0)), curvature=curvature)
