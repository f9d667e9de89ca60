"""The rule with a dynamic barrier: DBGD with exact gradients, and its products with other estimates.

Gong, Liu and Liu, Bi-objective trade-off with dynamic barrier gradient descent, NeurIPS 2021; with a projection onto Z, as
in Cao et al. (2023).

    φ_t = min{α (ĝ_t − g̲), β ‖∇ĝ_t‖²}
    λ_t = max{(φ_t − ⟨∇f̂_t, ∇ĝ_t⟩) / ‖∇ĝ_t‖², 0},  0 where ∇ĝ_t = 0
    x_{t+1} = Π(x_t − γ_t (∇f̂_t + λ_t ∇ĝ_t))

In the paper Z is the whole space and estimates are exact; where Z binds at the solution, the projection undoes what λ_t is
made for, and the method ends short of it. γ_t is ``step(t)``, α and β are ``alpha`` and ``beta``, g̲ ≤ g* is ``floor``. For
near ties the level that g may reach takes its place, and the first point nearly minimises g, so that points are known which
keep the level. The version with sampled gradients is a baseline of Cao et al.; its g stays above g* by an error that the
noise leaves. With STORM or SPIDER estimates the noise vanishes. Only the exact version has a theory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.vectors import copy, dot
from tiebreak.estimates import Memory, OneBatch, Sampled, Storm, drawing_what_is_sampled, exact, spider
from tiebreak.methods.base import (
    DONE,
    Budget,
    Method,
    initial,
    known_floor,
    preset,
    smoothnesses,
)
from tiebreak.methods.descent import estimate_both
from tiebreak.methods.fitting import first_points
from tiebreak.methods.parameters import declared, real, schedule, whole
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power


class State(NamedTuple):
    """The state of DBGD."""

    x: Point  # x_t
    previous: Point  # x_{t−1}
    room: Room  # a point before its projection
    upper: Memory  # ∇f̂_t
    lower: Memory  # ∇ĝ_t
    rise: Number  # how far the level is above g̲, for near ties
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Any  # how ∇f̂ is estimated
    lower: Any  # how ∇ĝ is
    step: Any  # γ_t
    alpha: float
    beta: float
    floor: float  # g̲


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    x, previous = state.x, state.previous
    for k in range(iterations):
        outcome = estimate_both(problem, plan, state, x, previous, k, keys, 0)
        if outcome != DONE:
            return outcome
        barrier_step(problem.domain, state, plan, k)
    return DONE


@kernel
def barrier_step(domain, state, plan, k):
    """Make x_{t+1} from the estimates at x_t."""
    x, room, upper, lower = state.x, state.room, state.upper.direction, state.lower.direction
    p, q = state.upper.factor[0], state.lower.factor[0]
    square = q * q * dot(lower, lower)
    barrier = min(plan.alpha * (state.lower.value[0] - plan.floor - state.rise[0]), plan.beta * square)
    multiplier = max((barrier - p * q * dot(upper, lower)) / square, 0.0) if square > 0.0 else 0.0
    for i in range(x.size):
        room[i] = x[i] - plan.step[k] * (p * upper[i] + multiplier * q * lower[i])
    copy(x, state.previous)
    project(domain, room, x)
    state.iteration[0] += 1


@declared
class Barrier(Method):
    """The common part of the products of this rule."""

    step: ScheduleLike | None = schedule(
        "γ_t, the length of a gradient step; 1 / ((L_f + L_g) √(t + 1)) if not given. A constant step leaves an error at"
        " the lower level, proportional to its square."
    )
    alpha: float | None = real("α: how fast g is to fall is α (g − g̲) …", above=0.0)
    beta: float | None = real("… but no faster than β ‖∇g‖².", above=0.0)
    floor: float | None = real("g̲, a lower bound of g*; that of the lower objective, 0 for a loss, if not given.")
    initial: Method | None = initial()

    needs = "projection, a lower bound of g*"
    rates = "none known"
    loop = advance
    state = State
    projects = True
    near_ties = True

    def allow(self, state: State, level: float, rise: float) -> None:
        floor = 0.0 if self.floor is None else float(self.floor)
        state.rise[0] = max(level - floor, 0.0)

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            "step": lambda: power(1.0 / sum(smoothnesses(problem, self, "step=...")), 0.5),
            "floor": lambda: known_floor(problem, self),
            "initial": lambda: first_points(problem) if problem.is_near else None,
        }

    def plan(self, problem: Problem) -> Plan:
        assert self.alpha is not None and self.beta is not None
        upper, lower = self.both(problem)
        floor = 0.0 if self.floor is None else float(self.floor)
        return Plan(upper, lower, self.given("step"), float(self.alpha), float(self.beta), floor)

    def both(self, problem: Problem) -> tuple[Any, Any]:
        """Return how both gradients are estimated."""
        raise NotImplementedError


AUTO: dict[str, Any] = {"alpha": 1.0, "beta": 1.0}


@declared
class DBGD(Barrier):
    """Dynamic barrier gradient descent, with exact gradients.

    Examples
    --------
    >>> DBGD(step=0.1).alpha
    1.0
    """

    preset: str = preset('There is one, ``"auto"``: α = β = 1.')

    name = "dbgd"
    citation = "Gong, Liu, Liu (2021)"
    setting = "exact gradients"
    rates = "converges to a stationary point; converges"
    presets: ClassVar = {"auto": AUTO}

    def both(self, problem: Problem) -> tuple[Any, Any]:
        return exact(problem.upper), exact(problem.lower)


@declared
class DBGDSto(Barrier):
    """Dynamic barrier gradient descent with sampled gradients: a baseline of Cao et al. (2023), without theory.

    Examples
    --------
    >>> DBGDSto(preset="paper-dictionary").batch_size
    8
    """

    batch_size: int | None = whole("Samples drawn at each level in an iteration.")
    preset: str = preset(
        '``"auto"``: α = β = 1 and batches of 8; ``"paper"`` and ``"paper-dictionary"``: the regression and the dictionary'
        " experiment of Cao et al. (2023), the latter for means of 250 samples."
    )

    name = "dbgd-sto"
    citation = "Gong, Liu, Liu (2021); Cao et al. (2023)"
    setting = "stream or finite sum"
    streams = True
    presets: ClassVar = {
        "auto": {**AUTO, "batch_size": 8},
        "paper": {**AUTO, "step": constant(1e-6), "batch_size": 1},
        "paper-dictionary": {"step": constant(250 * 5e-3), "alpha": 100.0 / 250, "beta": 100.0, "batch_size": 8},
    }

    def both(self, problem: Problem) -> tuple[Any, Any]:
        assert self.batch_size is not None
        return drawing_what_is_sampled(problem, Sampled(self.batch_size), Sampled(self.batch_size))


@declared
class DBGDStorm(Barrier):
    """Dynamic barrier gradient descent with STORM estimates, for streams: a new product, without theory.

    Examples
    --------
    >>> DBGDStorm(batch_size=4).momentum
    power(scale=1.0, exponent=0.6666666666666666, shift=1.0)
    """

    momentum: ScheduleLike | None = schedule(
        "The weight of a fresh sample in the estimates; at t = 0 it is 1 whatever is given here.", largest=1.0
    )
    batch_size: int | None = whole("Samples drawn at each level in an iteration.")
    preset: str = preset('There is one, ``"auto"``: α = β = 1, batches of 8, momentum (t + 1)^−2/3.')

    name = "dbgd-storm"
    citation = "Gong, Liu, Liu (2021) with STORM estimates"
    setting = "stream or finite sum"
    streams = True
    presets: ClassVar = {"auto": {**AUTO, "batch_size": 8, "momentum": power(1.0, 2 / 3)}}

    def both(self, problem: Problem) -> tuple[Any, Any]:
        assert self.batch_size is not None
        storm = Storm(self.given("momentum"), self.batch_size, OneBatch())
        return drawing_what_is_sampled(problem, storm, storm)


@declared
class DBGDSpider(Barrier):
    """Dynamic barrier gradient descent with SPIDER estimates, for finite sums: a new product, without theory.

    Examples
    --------
    >>> DBGDSpider(period=10).alpha
    1.0
    """

    batch_size: int | None = whole("S, the samples drawn at each level in an iteration; ⌊√n⌋ of its n if not given.")
    period: int | None = whole("q, the iterations from one exact gradient of a level to the next; ⌊√n⌋ if not given.")
    preset: str = preset('There is one, ``"auto"``: α = β = 1.')

    name = "dbgd-spider"
    citation = "Gong, Liu, Liu (2021) with SPIDER estimates"
    setting = "finite sum"
    presets: ClassVar = {"auto": AUTO}

    def both(self, problem: Problem) -> tuple[Any, Any]:
        return spider(problem.upper, self.batch_size, self.period), spider(problem.lower, self.batch_size, self.period)
