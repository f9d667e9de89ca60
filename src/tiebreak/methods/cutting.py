"""What the methods that cut share: a step towards the minimiser of f's linear model over Z and the cut, and its slack.

The slack K_t is ``slack(t)`` and ``margin`` standard errors of the cut's estimate. What the cut must not exclude is known
to satisfy it with exact estimates: the error that counts is that of m_t = ĝ_t + ⟨∇ĝ_t, x_0 − x_t⟩, a number. In a step it
moves by I_t = m_t − m'_{t−1}, m' being that of the last estimates at the new x_t. If these are right the fresh sample moves
it by nothing but its own error, which is independent of the past, and keep = 1 − momentum of the old error stays. So V_t =
keep² V_{t−1} + I_t² estimates the variance of m_t, from exact estimates with V = 0 on, whatever the value of g.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.base import EMPTY, INVALID, cut_lmo, cut_step, projects
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import copy, dot_and_copy, move
from tiebreak.estimates import Estimate, no_estimate
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Method
from tiebreak.methods.fista import FISTA
from tiebreak.methods.fw import SpiderFW, StormFW
from tiebreak.methods.theory import Theory
from tiebreak.problem import Problem
from tiebreak.schedules import Schedule, constant, falling, power

LARGEST_SHARE = 4.0  # the sum of all steps, if none is shortened: e^−4 of x_0 is left then
NOT_CONVEX = 0.5  # times T^−ω is the first step if f is not convex
ALLOWED = 1e-3  # of g at the centre of Z: by how much g may rise before steps become shorter, if f is not convex
LEAST_SHARE = 0.05  # of the largest step, that is made however little f has to gain
SHORTEST = 0.01  # of a step, that is made however far g has risen
ROUNDING = 1e-12  # of the terms of the cut: without any slack it is empty by rounding in every tenth iteration


class State(NamedTuple):
    """The state of a method that cuts."""

    x: np.ndarray  # x_t
    previous: np.ndarray  # x_{t−1}
    target: np.ndarray  # room for s_t
    upper: Estimate  # ∇f̂_t
    lower: Estimate  # ∇ĝ_t and ĝ_t
    anchor: np.ndarray  # g(x_0), one number
    origin: np.ndarray  # x_0
    variance: np.ndarray  # V_t, one number
    iteration: np.ndarray  # t, one number
    empty_cuts: np.ndarray  # how often the cut left nothing of Z, one number
    best: np.ndarray  # the point of least stationarity, if it is watched
    least: np.ndarray  # ⟨∇f̂, x − s⟩ there, one number
    unused: np.ndarray  # samples that were set aside for g(x_0) and not needed, one number


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
        origin=x.copy(),
        variance=np.zeros(1),
        iteration=np.zeros(1, dtype=np.int64),
        empty_cuts=np.zeros(1, dtype=np.int64),
        best=x.copy(),
        least=np.full(1, np.inf),
        unused=np.zeros(1, dtype=np.int64),
    )


@kernel
def minus(x, y):
    """Return x − y; a kernel of its own, so that a reordered sum does not take the difference apart."""
    return x - y


@kernel(reorder=True)
def model_at(estimate, origin, x):
    """Return m = ĝ + ⟨∇ĝ, x_0 − x⟩."""
    total = 0.0
    for i in range(x.size):
        total += estimate.direction[i] * minus(origin[i], x[i])
    return estimate.value[0] + estimate.factor[0] * total


@kernel
def size_of_terms(lower, x):
    """Return |g(x)| + Σ |∇g(x)_i x_i|, in which the terms of the cut are rounded."""
    total = abs(lower.value[0])
    for i in range(x.size):
        total += abs(lower.direction[i] * x[i])
    return total


@kernel
def cut_and_move(domain, state, slack, margin, step, curvature, allowance, watch):
    """Make x_{t+1} from the estimates at x_t and count the iteration; return DONE or which level is not finite.

    s_t = argmin ⟨∇f̂_t, s⟩ over s ∈ Z, ⟨∇ĝ_t, s − x_t⟩ ≤ g(x_0) − ĝ_t + K_t;  x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t,
    K_t being ``slack`` and ``margin`` standard errors. An empty cut gives the point of Z that violates it least, the
    direction that lowers g most. Where ĝ_t has risen above g(x_0) by more than slack and allowance, the step is shorter by
    the ratio, but no less than a share: what a step adds to g grows with its square, what the cut takes away with the step.
    """
    x, previous, target, upper, lower, anchor, _, variance, t, empty_cuts, _, _, _ = state
    risen = lower.value[0] - anchor[0]
    room = slack + margin * math.sqrt(variance[0]) - risen
    bound = room / lower.factor[0] + dot_and_copy(lower.direction, x, previous)
    if not math.isfinite(bound):
        return LOWER_NOT_FINITE
    if not math.isfinite(upper.value[0]):
        return UPPER_NOT_FINITE
    if allowance > 0.0 and risen > allowance + slack:
        step *= max((allowance + slack) / risen, SHORTEST)
    if curvature > 0.0 or watch > 0:
        status, _ = cut_lmo(domain, upper.direction, lower.direction, bound, target)
        if status != INVALID:
            if status != EMPTY:
                gap, square = gap_towards(upper, x, target)
                if watch > 0:
                    remember(state, gap, watch)
                step = deserved_step(gap, square, step, curvature)
            move(x, target, step)
    else:
        status, _ = cut_step(domain, upper.direction, lower.direction, bound, step, x, target)
    if status == INVALID:
        return UPPER_NOT_FINITE
    if status == EMPTY:
        empty_cuts[0] += 1
    t[0] += 1
    return DONE


@kernel
def remember(state, gap, watch):
    """Keep x_t if it has the least stationarity of the second half: since t was last 1, 2, 4, … times ``watch``."""
    t = state.iteration[0]
    if t < watch:
        return
    since = t // watch
    if t % watch == 0 and since & (since - 1) == 0:
        state.least[0] = np.inf
    if gap < state.least[0]:
        state.least[0] = gap
        copy(state.x, state.best)


@kernel
def deserved_step(gap, square, step, curvature):
    """Return the step that lowers f most at a curvature, between a share of a step and all of it."""
    if curvature == 0.0 or square == 0.0:
        return step
    return min(max(gap / (curvature * square), LEAST_SHARE * step), step)


@kernel(reorder=True)
def gap_towards(upper, x, target):
    """Return ⟨∇f̂, x − s⟩ and ‖x − s‖²."""
    gap = 0.0
    square = 0.0
    for i in range(x.size):
        way = minus(x[i], target[i])
        gap += upper.direction[i] * way
        square += way * way
    return upper.factor[0] * gap, square


def offered(state: State) -> np.ndarray:
    """Return the point of least stationarity, if it is watched and there is one, else the last one."""
    return state.best if np.isfinite(state.least[0]) else state.x


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
        return StormFW(step=power(2.0, 1.0, shift=2.0), momentum=power(1.0, 2 / 3), batch_size=8, level="lower")
    known = math.isfinite(problem.lower.lipschitz) and problem.lower.lipschitz > 0.0
    if known and projects(problem.domain):
        return FISTA(level="lower")
    return SpiderFW(step=power(2.0, 1.0, shift=2.0), period=1, batch_size=1, level="lower")


def check_theory(value: Any) -> None:
    """Raise if what is given for the constants of theory is none."""
    if value is not None and not isinstance(value, Theory):
        raise ValueError(f"`theory` must be a Theory, such as Theory(delta=0.05), got {checks.shown(value)}")


def with_theory(method: Any, problem: Problem, budget: Budget) -> Any:
    """Return a method with the constants of theory, if it goes by them: estimated where they are not given."""
    if method.preset != "theory":
        if method.theory is not None:
            raise ValueError(f'`theory` is for preset="theory" only, and the preset is {method.preset!r}')
        return method
    method.check(problem)
    given = method.theory or Theory()
    horizon = method.horizon(problem, budget) if given.horizon is None else given.horizon
    return replace(method, theory=given.for_problem(problem, horizon))


def lazily(schedules: dict[str, Schedule], problem: Problem) -> dict[str, Callable[[], Any]]:
    """Return schedules as the defaults of a method, and what finds its first point."""
    found: dict[str, Callable[[], Any]] = {name: partial(schedules.get, name) for name in schedules}
    return {**found, "initial": lambda: first_points(problem)}


def without_slack(presets: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the presets of a method for its ablation with K_t = 0, of which no theory is known."""
    return {name: {**preset, "slack": constant(0.0), "margin": 0.0} for name, preset in presets.items() if name != "theory"}
