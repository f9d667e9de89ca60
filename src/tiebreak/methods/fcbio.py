"""FC-BiO: a functionally constrained method; it bisects the optimal upper value.

Zhang, Chen, Xu and Zhang, Functionally constrained algorithm solves convex simple bilevel problems, NeurIPS 2024.

    f* is the least τ for which ψ_τ(x) = max{f(x) − τ, ω (g(x) − g(x_0))} reaches 0 over Z. A bracket [l, u] of it is halved:
    τ = (l + u)/2;  minimise ψ_τ by accelerated steps;  if ψ_τ(x) ≤ ε/2 then u = τ and x is the new answer, else l = τ

    y = x_k + k/(k + 3) (x_k − x_{k−1});  x_{k+1} = argmin over Z of the larger of the two linear models at y, + L/2 ‖x − y‖²

In the paper: ω = 1; here L_f / L_g, so that both terms are equally smooth (L = L_f) and the units of g do not matter. The
bracket begins with f(x_0) and a bound from its linear model there; ε is ``tolerance`` times its width. The accelerated steps
for one τ end when a step shows that ψ_τ(x) ≤ ε/2, or that ψ_τ is positive on all of Z, and after ``inner_iterations`` of
them. When the bracket is as small as ε, the answer is accepted, and ε/4 is aimed at with twice as many steps. So answers
become better with the iterations, for as long as there are any. For near ties the level that g may reach takes the place of
g(x_0).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from tiebreak.domains import diameter, lmo, project
from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import copy, distance, dot, extrapolate
from tiebreak.estimates import Exact, Memory, exact
from tiebreak.methods.base import DONE, Method, initial, smoothnesses
from tiebreak.methods.descent import estimate_both
from tiebreak.methods.fista import FISTA
from tiebreak.methods.parameters import declared, real, whole
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.problem import Problem

MAX_ROUNDS = 60  # rounds of the search for the weight of the two linear models
PRECISE = 1e-12  # relative difference of the two models at which the search ends


Counts = Annotated[np.ndarray, lambda x: np.zeros(3, dtype=np.int64)]  # three whole numbers
Numbers = Annotated[np.ndarray, lambda x: np.zeros(4)]  # four numbers

REACHED, IMPOSSIBLE = 1, -1  # what a step can show about τ


class State(NamedTuple):
    """The state of FC-BiO."""

    x: Point  # x_k
    previous: Point  # x_{k−1}
    y: Point  # the point of the linear models
    room: Room  # x_{k+1} before its projection
    upper: Memory  # ∇f(y)
    lower: Memory  # ∇g(y)
    trial: Point  # the last point that brought u down
    best: Point  # the answer: trial when the bracket was last as small as ε
    anchor: Number  # g(x_0), one number; for near ties the level that g may reach
    rise: Number  # how far that is above g(x_0)
    bracket: Numbers  # l, u, f(x_0) and a number that f* is not below
    tolerance: Number  # ε, one number
    rounds: Counts  # how often u came down for this ε, how often l rose, and how many ε were reached
    inner: Counts  # steps made for this τ, how many are to be made, and what the last one has shown
    iteration: Count  # t, one number


class LargerModel(NamedTuple):
    """Steps on the larger of the two linear models."""


class Plan(NamedTuple):
    """What the loop uses."""

    steps: Any  # how a step is made: LargerModel, or that of another method that bisects
    upper: Exact  # all samples of f
    lower: Exact  # all samples of g
    weight: float  # ω
    lipschitz: float  # L
    tolerance: float  # the first ε, relative to the width of the first bracket


@generic(light=True)
def least_upper(steps, domain, state):
    """Return a number that f is not below on Z, from its value and gradient at x_0."""


@generic(light=True)
def descend(steps, domain, state, plan, upper_room, lower_room):
    """Make x_{k+1} from the values, up to τ and the level of g, and the gradients at y."""


@kernel
def open_bracket(domain, state, plan):
    """Begin at x_0, with f* ≤ f(x_0) and the least that f can be on Z."""
    upper_value = state.upper.value[0]
    state.anchor[0] = state.lower.value[0] + state.rise[0]
    state.bracket[0] = state.bracket[3] = min(least_upper(plan.steps, domain, state), upper_value)
    state.bracket[1] = state.bracket[2] = upper_value
    state.tolerance[0] = plan.tolerance * (state.bracket[1] - state.bracket[0])


@kernel
def narrow_bracket(state, plan):
    """Decide about τ from the values at x; when the bracket is as small as ε, accept the answer and aim at a smaller ε.

    A smaller ε allows less of g and so only larger values of f: u may be too small for it. l is too large if steps for a τ
    were too few. Whether an end is right is seen from the τ beside it: if none brings the other end there, the end is taken
    back to where it is known to be right.
    """
    low, high, first, known = state.bracket[0], state.bracket[1], state.bracket[2], state.bracket[3]
    tolerance, rounds = state.tolerance, state.rounds
    middle = 0.5 * (low + high)
    excess = max(state.upper.value[0] - middle, plan.weight * (state.lower.value[0] - state.anchor[0]))
    if excess <= 0.5 * tolerance[0]:
        high = middle
        rounds[0] += 1
        copy(state.x, state.trial)
        if rounds[2] == 0:
            copy(state.x, state.best)
    else:
        low = middle
        rounds[1] += 1
        if state.inner[2] == IMPOSSIBLE:
            known = max(known, middle)
    if high - low <= tolerance[0]:
        if rounds[0] == 0 and first - low > tolerance[0]:
            high = first
        elif rounds[1] == 0 and low - known > tolerance[0]:
            low = known
        else:
            if rounds[0] > 0:
                copy(state.trial, state.best)
            high = min(high + 4.0 * tolerance[0], first)
            tolerance[0] *= 0.25
            state.inner[1] *= 2
            rounds[0] = rounds[1] = 0
            rounds[2] += 1
    state.bracket[0], state.bracket[1], state.bracket[3] = low, high, known


@kernel
def difference(domain, state, plan, upper_room, lower_room, share):
    """Set x to the minimiser for the models' mean with weights share and 1 − share; return how much f's model is larger."""
    x, y, room, upper, lower = state.x, state.y, state.room, state.upper.direction, state.lower.direction
    for i in range(x.size):
        direction = share * upper[i] + (1.0 - share) * plan.weight * lower[i]
        room[i] = y[i] - direction / plan.lipschitz
    project(domain, room, x)
    upper_model, lower_model = upper_room, lower_room
    for i in range(x.size):
        upper_model += upper[i] * (x[i] - y[i])
        lower_model += plan.weight * lower[i] * (x[i] - y[i])
    return upper_model - lower_model


@least_upper.register(LargerModel)
def least_linear_model(steps, domain, state):
    gradient = state.upper.direction
    lmo(domain, gradient, state.room)
    return state.upper.value[0] + dot(gradient, state.room) - dot(gradient, state.x)


@descend.register(LargerModel)
def descend_on_larger_model(steps, domain, state, plan, upper_room, lower_room):
    descend_on_both(domain, state, plan, upper_room, lower_room)


@kernel(inline=False)
def descend_on_both(domain, state, plan, upper_room, lower_room):
    """Set x to the minimiser of the larger linear model + L/2 ‖x − y‖² over Z.

    Its dual is concave in the weight of f's model; the derivative is the difference of the models, whose zero is sought by
    false position with halving (Illinois).
    """
    high = difference(domain, state, plan, upper_room, lower_room, 1.0)
    if high >= 0.0:
        return
    low = difference(domain, state, plan, upper_room, lower_room, 0.0)
    if low <= 0.0:
        return
    a, b = 0.0, 1.0
    goal = PRECISE * (low - high)
    side = 0
    for _ in range(MAX_ROUNDS):
        share = (a * high - b * low) / (high - low)
        found = difference(domain, state, plan, upper_room, lower_room, share)
        if abs(found) <= goal or b - a <= PRECISE:
            return
        if found > 0.0:
            a, low = share, found
            if side == 1:
                high *= 0.5
            side = 1
        else:
            b, high = share, found
            if side == -1:
                low *= 0.5
            side = -1


@kernel
def verdict(domain, state, plan, upper_room, lower_room):
    """Return what the last step shows: that ψ_τ(x) ≤ ε/2, that ψ_τ is positive on all of Z, or nothing, 0.

    With the larger linear model m, ψ_τ(x) ≤ m(x) + L/2 ‖x − y‖², and ψ_τ ≥ m(x) − L ‖x − y‖ D on Z, of diameter D.
    """
    x, y = state.x, state.y
    for i in range(x.size):
        upper_room += state.upper.direction[i] * (x[i] - y[i])
        lower_room += plan.weight * state.lower.direction[i] * (x[i] - y[i])
    model, moved = max(upper_room, lower_room), distance(x, y)
    if model + 0.5 * plan.lipschitz * moved * moved <= 0.5 * state.tolerance[0]:
        return REACHED
    return IMPOSSIBLE if model > plan.lipschitz * moved * diameter(domain) else 0


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps, or looks at a point."""
    for k in range(iterations):
        glide(state)
        outcome = estimate_both(problem, plan, state, state.y, state.y, k, keys, 0)
        if outcome != DONE:
            return outcome
        decide_and_step(problem.domain, state, plan)
    return DONE


@kernel
def glide(state):
    """Make y: x itself where τ is decided about."""
    inner = state.inner
    if inner[0] == 0 or inner[0] == inner[1]:
        copy(state.x, state.y)
    else:
        extrapolate(state.x, state.previous, inner[0] / (inner[0] + 3.0), state.y)


@kernel
def decide_and_step(domain, state, plan):
    """Decide about τ, if it is time, and take a step for it."""
    inner = state.inner
    if state.iteration[0] == 0:
        open_bracket(domain, state, plan)
    elif inner[0] == 0 or inner[0] == inner[1]:
        narrow_bracket(state, plan)
        inner[0] = 0
    copy(state.x, state.previous)
    upper_room = state.upper.value[0] - 0.5 * (state.bracket[0] + state.bracket[1])
    lower_room = plan.weight * (state.lower.value[0] - state.anchor[0])
    descend(plan.steps, domain, state, plan, upper_room, lower_room)
    inner[2] = verdict(domain, state, plan, upper_room, lower_room)
    inner[0] = inner[0] + 1 if inner[2] == 0 else inner[1]
    state.iteration[0] += 1


@declared
class FCBiO(Method):
    """Bisection of the optimal upper value, with accelerated steps for both levels.

    Examples
    --------
    >>> FCBiO(tolerance=1e-4).inner_iterations
    20
    """

    tolerance: float = real(
        "ε, the accuracy at both levels that is aimed at first, relative to what is known of f* at the beginning; when it is"
        " reached, a quarter of it is aimed at.",
        1e-5,
        above=0.0,
    )
    inner_iterations: int = whole("Accelerated steps for each value that is tried, at most and at first.", 20)
    initial: Method | None = initial(FISTA(level="lower"))

    name = "fc-bio"
    citation = "Zhang, Chen, Xu, Zhang (2024)"
    setting = "exact gradients"
    needs = "projection, f convex"
    rates = "t^-2; t^-2, up to log t"
    loop = advance
    state = State
    projects = True
    convex = True
    near_ties = True

    def allow(self, state: State, level: float, rise: float) -> None:
        if state.iteration[0] == 0:  # the bracket is one for this level
            state.rise[0] = rise

    def plan(self, problem: Problem) -> Plan:
        upper, lower = smoothnesses(problem, self)
        return Plan(self._steps(problem), exact(problem.upper), exact(problem.lower), upper / lower, upper, self.tolerance)

    def _steps(self, problem: Problem) -> Any:
        return LargerModel()

    def start(self, problem: Problem, plan: Plan, x: np.ndarray) -> State:
        state: State = super().start(problem, plan, x)
        state.inner[1] = self.inner_iterations
        return state

    def answer(self, state: State) -> np.ndarray:
        return state.best
