"""Accelerated projected gradient, on both levels together: FISTA, bi-FISTA and PB-APG.

Beck and Teboulle, A fast iterative shrinkage-thresholding algorithm, SIAM Journal on Imaging Sciences 2009 (FISTA); Boţ,
Chenchene, Csetnek and Hulett, Accelerating diagonal methods for bilevel optimization, 2025, and Merchav, Sabach and
Teboulle, A fast algorithm for convex composite bi-level optimization, 2024 (bi-FISTA); Chen, Shi, Jiang and Wang,
Penalty-based methods for simple bilevel optimization under Hölderian error bounds, NeurIPS 2024 (PB-APG).

    y_t = x_t + θ_t (x_t − x_{t−1});   x_{t+1} = Π(y_t − γ_t (u_t ∇f(y_t) + w_t ∇g(y_t)))

    FISTA:     one of u_t, w_t is 1 and the other 0
    bi-FISTA:  w_t = 1, u_t = c (t + 1)^−δ, θ_t = t / (t + α)
    PB-APG:    u_t = 1, w_t grows from stage to stage, and θ_t = k / (k + 3) starts anew with the k-th step of each stage

The paper of PB-APG leaves open how long a stage is. If no penalty is given, the k-th stage takes at most N = 20 · 2^k steps,
and ends before when ‖x_{t+1} − y_t‖ has become 1/(10 N) of its largest value in the stage: f + w g is nearly solved then.

Steps of their own go by smoothness constants, which may be slightly too small. Two gradients show a lower bound of them,
‖∇F(y_t) − ∇F(y_{t−1})‖ / ‖y_t − y_{t−1}‖ ≤ L: a constant below it is raised, and the momentum starts anew.

In the papers: u_t is ``regularization(t)``, w_t is ``penalty(t)``, α is ``inertia``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak import schedules
from tiebreak.domains import project
from tiebreak.engine import Kernel, kernel
from tiebreak.engine.vectors import copy, distance, dot, extrapolate
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
from tiebreak.methods.fw import OneLevel
from tiebreak.methods.projecting import Full, full, full_cost
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power, safe_step

GROWTH = 2.0  # of the penalty and of the largest length, from one stage of PB-APG to the next
FIRST_LENGTH = 20  # steps that the first stage of PB-APG takes at most
SETTLED = 0.1  # of a stage's longest step, divided by the steps it may take: shorter ones end it
SHOWN = 1.001  # times a smoothness constant: a larger ratio of gradients shows that it is too small …
RAISED = 1.05  # … and is multiplied by this to become the next one
SHORT = 1e-7  # relative to y: steps so short that their ratios are rounding errors
LARGEST = 1e10  # penalty, in units of the first one: f is lost in rounding then


class Level(NamedTuple):
    """What is known of one objective F."""

    gradient: np.ndarray  # ∇F(y_t)
    last: np.ndarray  # ∇F(y_{t−1})
    smoothness: np.ndarray  # L, one number; 0: steps do not go by it


class State(NamedTuple):
    """The state of an accelerated method."""

    x: np.ndarray  # x_t
    previous: np.ndarray  # x_{t−1}
    y: np.ndarray  # y_t
    last_y: np.ndarray  # y_{t−1}
    upper: Level
    lower: Level
    room: np.ndarray  # x_{t+1} before its projection
    since: np.ndarray  # k, the steps since the last restart, one number
    penalty: np.ndarray  # the largest weight of g so far, one number
    longest: np.ndarray  # of the steps of this stage, one number
    length: np.ndarray  # steps that this stage may take at most, one number
    iteration: np.ndarray  # t, one number


class Constants(NamedTuple):
    """What the loop takes besides its schedules."""

    full: Full  # all samples
    inertia: float  # α
    upper_smoothness: float = 0.0  # L_f as it is given; 0 if steps do not go by it
    lower_smoothness: float = 0.0  # L_g likewise


def first_state(x: np.ndarray, constants: Constants) -> State:
    """Return the state at x_0 = x."""
    upper, lower = (
        Level(np.zeros_like(x), np.zeros_like(x), np.full(1, smoothness))
        for smoothness in (constants.upper_smoothness, constants.lower_smoothness)
    )
    return State(
        x=x.copy(),
        previous=x.copy(),
        y=x.copy(),
        last_y=x.copy(),
        upper=upper,
        lower=lower,
        room=np.zeros_like(x),
        since=counter(),
        penalty=np.zeros(1),
        longest=np.zeros(1),
        length=counter(),
        iteration=counter(),
    )


@kernel
def glide(state, inertia):
    """Make y_t, with θ = k / (k + α), and let x_t become x_{t−1}."""
    k = state.since[0]
    extrapolate(state.x, state.previous, k / (k + inertia), state.y)
    copy(state.x, state.previous)
    state.since[0] = k + 1


@kernel
def look(objective, batch, level, state):
    """Find ∇F(y_t) and raise L where it is shown to be too small; return whether all is finite."""
    copy(level.gradient, level.last)
    value = gradient_at(objective, batch, state.y, level.gradient)
    if level.smoothness[0] > 0.0 and state.iteration[0] > 0:
        moved = distance(state.y, state.last_y)
        if moved > SHORT * math.sqrt(dot(state.y, state.y)):
            shown = distance(level.gradient, level.last) / moved
            if shown > SHOWN * level.smoothness[0]:
                level.smoothness[0] = RAISED * shown
                state.since[0] = 0
    return math.isfinite(value)


@kernel
def look_at_both(problem, constants, state):
    """Do so at both levels; return DONE or which is not finite."""
    if not look(problem.upper, constants.full.upper, state.upper, state):
        return UPPER_NOT_FINITE
    if not look(problem.lower, constants.full.lower, state.lower, state):
        return LOWER_NOT_FINITE
    return DONE


@kernel
def descend(domain, state, upper_step, lower_step):
    """Set x ← Π(y − upper_step ∇f(y) − lower_step ∇g(y))."""
    upper, lower = state.upper.gradient, state.lower.gradient
    for i in range(state.y.size):
        state.room[i] = state.y[i] - upper_step * upper[i] - lower_step * lower[i]
    project(domain, state.room, state.x)
    copy(state.y, state.last_y)
    state.iteration[0] += 1


@kernel
def shortened(step, constants, state, upper_weight, lower_weight):
    """Return a step that was made for the constants that were given as one for those that are known now."""
    given = upper_weight * constants.upper_smoothness + lower_weight * constants.lower_smoothness
    known = upper_weight * state.upper.smoothness[0] + lower_weight * state.lower.smoothness[0]
    return step * given / known if known > given else step


@kernel
def advance(problem, state, constants, step, upper_weight, lower_weight, keys):
    """Take one step for each entry of the schedules; the momentum starts anew when the weight of g grows."""
    for k in range(step.size):
        if lower_weight[k] > state.penalty[0]:
            state.since[0] = 0
            state.penalty[0] = lower_weight[k]
        glide(state, constants.inertia)
        outcome = look_at_both(problem, constants, state)
        if outcome != DONE:
            return outcome
        safe = shortened(step[k], constants, state, upper_weight[k], lower_weight[k])
        descend(problem.domain, state, safe * upper_weight[k], safe * lower_weight[k])
    return DONE


@kernel
def advance_stages(problem, state, constants, share, keys):
    """Take one step for each entry of ``share``, a part of the longest safe one; the stages end when they are solved."""
    x, y, since, penalty, longest, length = state.x, state.y, state.since, state.penalty, state.longest, state.length
    upper, lower = constants.upper_smoothness, constants.lower_smoothness
    for k in range(share.size):
        if state.iteration[0] == 0:
            penalty[0], length[0] = upper / lower, FIRST_LENGTH
        glide(state, constants.inertia)
        outcome = look_at_both(problem, constants, state)
        if outcome != DONE:
            return outcome
        step = share[k] / (state.upper.smoothness[0] + penalty[0] * state.lower.smoothness[0])
        descend(problem.domain, state, step, step * penalty[0])
        moved = distance(x, y)
        longest[0] = max(longest[0], moved)
        solved = moved * length[0] <= SETTLED * longest[0]
        if (solved or since[0] >= length[0]) and penalty[0] * lower < LARGEST * upper:
            penalty[0] *= GROWTH
            length[0] *= int(GROWTH)
            since[0] = 0
            longest[0] = 0.0
    return DONE


@kernel
def advance_one(objective, batch, domain, level, state, inertia, given, step):
    """Take one step for each entry of the schedule on one level; return whether all numbers stayed finite."""
    for k in range(step.size):
        glide(state, inertia)
        if not look(objective, batch, level, state):
            return False
        known = level.smoothness[0]
        safe = step[k] * given / known if known > given else step[k]
        for i in range(state.y.size):
            state.room[i] = state.y[i] - safe * level.gradient[i]
        project(domain, state.room, state.x)
        copy(state.y, state.last_y)
        state.iteration[0] += 1
    return True


@kernel
def advance_upper(problem, state, constants, step, keys):
    """Take steps on f."""
    batch, inertia, given = constants.full.upper, constants.inertia, constants.upper_smoothness
    done = advance_one(problem.upper, batch, problem.domain, state.upper, state, inertia, given, step)
    return DONE if done else UPPER_NOT_FINITE


@kernel
def advance_lower(problem, state, constants, step, keys):
    """Take steps on g."""
    batch, inertia, given = constants.full.lower, constants.inertia, constants.lower_smoothness
    done = advance_one(problem.lower, batch, problem.domain, state.lower, state, inertia, given, step)
    return DONE if done else LOWER_NOT_FINITE


def given_smoothness(step: Any) -> tuple[float, float]:
    """Return L_f and L_g that steps were made for; 0 if they were given."""
    return (step.upper_lipschitz, step.lower_lipschitz) if isinstance(step, safe_step) else (0.0, 0.0)


@dataclass(frozen=True)
class FISTA(OneLevel):
    """Accelerated projected gradient on one level. On g it finds the first point of other methods.

    Parameters
    ----------
    step : number or function of t, optional
        The length of a gradient step; 1 / L if not given.
    level : "upper" or "lower"
        Which objective to minimise; the other one is ignored.

    Examples
    --------
    >>> FISTA(step=0.1, level="lower").name
    'fista'
    """

    step: ScheduleLike | None = None
    level: str = "upper"

    name = "fista"
    citation = "Beck, Teboulle (2009)"
    setting = "exact gradients, one level only"
    needs = "projection, convexity"
    rates = "t^-2, of the one level"
    loops: ClassVar[dict[str, Kernel]] = {"upper": advance_upper, "lower": advance_lower}
    projects = True
    limits: ClassVar = {"step": np.inf}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: self._safe(smoothness(problem, self.level, self, "step=..."))}

    def _safe(self, lipschitz: float) -> safe_step:
        upper, lower = (lipschitz, 0.0) if self.level == "upper" else (0.0, lipschitz)
        return safe_step(1.0, lower, constant(1.0), upper, constant(1.0))

    def constants(self, problem: Problem) -> Constants:
        return Constants(full(problem), 3.0, *given_smoothness(self.step))

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        return first_state(x, constants)

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        queries = np.full(t.shape, getattr(constants.full, self.level).size)
        return self.cost_of(queries, queries)


class Accelerated(Method):
    """The common part of the accelerated methods for both levels."""

    setting = "exact gradients"
    needs = "projection, f convex"
    loop = advance
    projects = True
    inertia: float
    reals: ClassVar = {"inertia": {"above": 0.0}}

    step: ScheduleLike | None

    def constants(self, problem: Problem) -> Constants:
        return Constants(full(problem), self.inertia, *given_smoothness(self.step))

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        return first_state(x, constants)

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        return full_cost(constants.full, t)


@dataclass(frozen=True)
class BiFISTA(Accelerated):
    """Accelerated projected gradient on g + u_t f with a weight u_t that vanishes.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the length of a gradient step; 0.95 / (L_g + u_t L_f) if not given.
    regularization : number or function of t, optional
        u_t, the weight of f; (L_g / L_f) (t + 1)^−3/2 if not given. Theory asks for a power between 1 and 2.
    inertia : float
        α, which sets the momentum t / (t + α).

    Examples
    --------
    >>> BiFISTA(step=0.1, regularization=lambda t: (t + 1) ** -1.5).inertia
    4.0
    """

    step: ScheduleLike | None = None
    regularization: ScheduleLike | None = None
    inertia: float = 4.0

    name = "bi-fista"
    citation = "Boţ, Chenchene, Csetnek, Hulett (2025); Merchav, Sabach, Teboulle (2024)"
    rates = "converges; t^-δ, 1 < δ < 2"
    limits: ClassVar = {"step": np.inf, "regularization": np.inf}

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"regularization": lambda: power(self._ratio(problem), 1.5), "step": lambda: self._safe(problem)}

    def _ratio(self, problem: Problem) -> float:
        upper, lower = (smoothness(problem, level, self, "regularization=...") for level in ("upper", "lower"))
        return lower / upper

    def _safe(self, problem: Problem) -> safe_step:
        upper, lower = (smoothness(problem, level, self, "step=...") for level in ("upper", "lower"))
        weight = power(lower / upper, 1.5) if self.regularization is None else self.regularization
        return safe_step(0.95, lower, constant(1.0), upper, weight)  # type: ignore[arg-type]

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        step, regularization = super().schedule_values(t)
        return step, regularization, np.ones(t.shape)


@dataclass(frozen=True)
class PBAPG(Accelerated):
    """Accelerated projected gradient on f + w_t g, warm-started through stages of growing penalty w_t.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the length of a gradient step; 1 / (L_f + w_t L_g) if not given. If no penalty is given, it is a part of
        that, at most 1.
    penalty : number or function of t, optional
        w_t, the weight of g; the momentum starts anew whenever it grows. If not given, it begins with L_f / L_g and doubles
        whenever f + w g is nearly solved, at the latest after 20, 40, 80, … steps.
    inertia : float
        α, which sets the momentum k / (k + α) at the k-th step of a stage.

    Examples
    --------
    >>> from tiebreak.schedules import stages
    >>> PBAPG(step=0.1, penalty=stages(1.0, 10.0, 100)).inertia
    3.0
    """

    step: ScheduleLike | None = None
    penalty: ScheduleLike | None = None
    inertia: float = 3.0

    name = "pb-apg"
    citation = "Chen, Shi, Jiang, Wang (2024)"
    rates = "t^-1; t^-1 (under a quadratic error bound of g)"
    limits: ClassVar = {"step": np.inf, "penalty": np.inf}

    @property
    def loop(self) -> Kernel:  # type: ignore[override]
        return advance_stages if self.penalty is None else advance

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        if self.penalty is None:
            self._smoothness(problem, "penalty=...")
        return super().for_problem(problem, budget)

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {"step": lambda: constant(1.0) if self.penalty is None else self._safe(problem)}

    def _smoothness(self, problem: Problem, instead: str) -> tuple[float, float]:
        return smoothness(problem, "upper", self, instead), smoothness(problem, "lower", self, instead)

    def _safe(self, problem: Problem) -> safe_step:
        upper, lower = self._smoothness(problem, "step=...")
        return safe_step(1.0, lower, self.penalty, upper, constant(1.0))  # type: ignore[arg-type]

    def constants(self, problem: Problem) -> Constants:
        known = self._smoothness(problem, "penalty=...") if self.penalty is None else given_smoothness(self.step)
        return Constants(full(problem), self.inertia, *known)

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        if self.penalty is None:
            return (schedules.evaluate(self.step, t, "step", 1.0),)  # type: ignore[arg-type]
        step, penalty = super().schedule_values(t)
        return step, np.ones(t.shape), penalty
