"""PAVR: penalised accelerated variance reduction, for finite sums of many rows and few passes over them.

    x_t = θ₁ z_t + θ₂ x̃ + (1 − θ₁ − θ₂) y_t
    z_{t+1} = Π(z_t − v_t / (c θ₁ L)),  v_t an estimate of ∇f(x_t) / w + ∇g(x_t) from a batch and the exact one at x̃
    y_{t+1} = Π(x_t − v_t / (c L))

An epoch is as many steps as go through all rows once; the first ones are shorter. At its end x̃ becomes the mean of its y,
and both gradients are found there exactly. Far from a solution a part of the rows says as much: for exact ties, the first
epochs go through an eighth, a quarter and a half of them, and begin with a gradient of as many rows, drawn as batches are
(Harikandeh et al., Stop wasting my gradients: practical SVRG, NeurIPS 2015; Frostig et al., Competing with the empirical
risk minimizer in a single pass, COLT 2015). For a fixed weight w these are the steps of Katyusha: Allen-Zhu, Katyusha: the
first direct acceleration of stochastic gradient methods, STOC 2017, with θ₁ = min(½, 2 / (e + 3)) in the e-th epoch, about
as in Lan, Li and Zhou, A unified variance-reduced accelerated gradient method for convex optimization, NeurIPS 2019. As in
PB-APG (``penalised.py``), w grows from stage to stage, each of which begins anew at x̃: a stage ends when the projected
gradient of f / w + g at x̃ is a share of ∇f / w, 0.3 at first and less from stage to stage. No version for two levels, and
no rate for this one, is known. For near ties the w at which g has its level is sought, from stage to stage (``levels.py``),
from a point that the same steps on g alone lead to.

L = L_f / w + L_g + (M_f / S_f) / w + M_g / S_g, where M is a smoothness constant of single samples and S the batch size.
Rows of a linear model that differ much are drawn in proportion to their squared lengths, of which M is then a mean. Batches
are as small as 2 M / L_g asks for. Katyusha's constants, c = 3 and θ₂ = ½, are for single samples; batches leave less noise,
and θ₂ = ¼ of its share in L and c = 1.5 were better on all problems measured.

Where an objective knows no constants, L begins with estimates (``unknown.py``). A batch shows, at no cost, a lower bound of
it, ‖∇F_B(x_t) − ∇F_B(x̃)‖ / ‖x_t − x̃‖ with F = f / w + g: an L below it is raised, and the stage restarts at x̃.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, distance, dot, fill
from tiebreak.estimates import Memory
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Method, initial
from tiebreak.methods.fitting import first_points, is_round
from tiebreak.methods.levels import Ends, Growing, Sought, begin, changed
from tiebreak.methods.parameters import declared, option, other, real, whole
from tiebreak.methods.snapshots import Ignored, Snapshot, estimate_from, snapshot_of, take_snapshot
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.methods.unknown import NOISE, checked_constants, say_estimated, smoothness_of
from tiebreak.problem import Problem

LARGEST_FIRST = 10.0  # first w, in units of L_f / L_g, if there are few passes; 1 if there are …
MANY, MANY_WIDE = 1000.0, 100.0  # … as many, the latter where g has fewer samples than variables; in proportion between
GROWTH = 20.0  # factor of w from one stage to the next
SETTLED = 0.3  # share of ∇f / w, at x̃, to which the projected gradient of f / w + g has fallen when the first stage ends
STRICTER = 0.7  # factor of that share from one stage to the next, so that f settles along the ties of g
ENOUGH = 0.5  # share of an epoch whose mean is worth more than x̃
LEAST_MIX, MIX = 0.05, 0.25  # θ₂, the weight of x̃: at least, and in units of the share of single samples in L
SHOWN = 1.001  # factor of L: if gradients of a batch differ by more, it is too small …
RAISED, TWICE = 1.05, 2.0  # … and becomes so many times what they show, and at least so many times what it was
SHORT = 1e-7  # distance of x_t from x̃ relative to x̃, below which ratios of gradients are rounding errors
SHORTER = 1.5  # c, by which steps are shorter than 1 / L
MANY_ROWS = 1000  # samples of g from which on its own steps find the first point, unless g is round
LEAST_BATCH = 8  # rows of as many numbers as there are variables in a step, whose own work is then less than theirs


class State(NamedTuple):
    """The state of PAVR."""

    x: Point  # x̃, the answer
    y: Point
    z: Point
    point: Point  # x_t
    total: Room  # the sum of the y of this epoch
    room: Room
    upper: Memory  # of f
    lower: Memory  # of g
    weight: Number  # w, one number
    settled: Number  # share of ∇f / w at which this stage ends, one number
    smoothness: Number  # L, one number, of f / w + g
    raised: Number  # the factor by which constants were found to be too small, one number
    longest: Number  # ‖∇F‖ at x̃, the largest so far, one number
    ends: Ends  # of the search for a level, for near ties
    epochs: Count  # of the whole run, one number
    epoch: Count  # e, one number, of this stage
    period: Count  # steps of an epoch, one number
    steps: Count  # steps of this epoch so far, one number
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Any  # Snapshot or Ignored
    lower: Snapshot
    weight: float  # the first w
    penalty: Any  # how w changes: Growing or Sought
    upper_smoothness: float  # L_f + M_f / S_f
    lower_smoothness: float  # L_g + M_g / S_g
    mix: float  # θ₂
    error: float  # share of a gradient by which it may differ from another one by rounding


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    x, upper, lower = state.x, state.upper, state.lower
    for _ in range(iterations):
        t = state.iteration[0]
        if state.steps[0] == state.period[0]:
            if t > 0:
                scaled(state.total, 1.0 / state.period[0], x)
            epoch = state.epochs[0]
            if not take_snapshot(plan.upper, problem.upper, upper, x, epoch, Moment(keys.upper, t, 1, 0)):
                return UPPER_NOT_FINITE
            if not take_snapshot(plan.lower, problem.lower, lower, x, epoch, Moment(keys.lower, t, 1, 0)):
                return LOWER_NOT_FINITE
            open_epoch(problem.domain, state, plan)
        share = min(0.5, 2.0 / (state.epoch[0] + 3.0))
        mix(state, share, plan.mix)
        estimate_from(plan.upper, upper, state.point, x, Moment(keys.upper, t, 0, 0))
        estimate_from(plan.lower, lower, state.point, x, Moment(keys.lower, t, 0, 0))
        check_smoothness(state, plan)
        step(problem.domain, state, share)
        state.steps[0] += 1
        state.iteration[0] += 1
    return DONE


@kernel
def scaled(x, factor, out):
    """Set out ← factor · x."""
    for i in range(x.size):
        out[i] = factor * x[i]


@kernel
def open_epoch(domain, state, plan):
    """Begin an epoch at x̃, and a stage of a larger weight, if this one has done its work."""
    fill(state.total, 0.0)
    lower, number = plan.lower, state.epochs[0]
    state.period[0] = lower.first[number] if number < lower.first.size else lower.period
    state.steps[0] = 0
    state.epochs[0] += 1
    if state.iteration[0] == 0:
        state.weight[0], state.settled[0] = plan.weight, SETTLED
        begin(plan.penalty, state.ends, state.lower.value[0])
        open_stage(state, plan)
        return
    upper, weight = state.upper.exact, state.weight[0]
    done = projected_slope(domain, state) <= state.settled[0] * math.sqrt(dot(upper, upper)) / weight
    if done:
        state.weight[0] = changed(plan.penalty, state.ends, state.x, state.lower.value[0], weight, plan.weight)
    if state.weight[0] != weight:
        state.settled[0] *= STRICTER
        open_stage(state, plan)
    else:
        state.epoch[0] += 1


@kernel
def open_stage(state, plan):
    """Begin a stage at x̃."""
    state.smoothness[0] = state.raised[0] * (plan.upper_smoothness / state.weight[0] + plan.lower_smoothness)
    state.epoch[0] = 1
    copy(state.x, state.y)
    copy(state.x, state.z)


@kernel
def check_smoothness(state, plan):
    """Raise L, if the batch shows that it is too small, and begin the stage anew at x̃."""
    x, point, upper, lower = state.x, state.point, state.upper, state.lower
    bend = longest = 0.0
    for i in range(x.size):
        change = (upper.direction[i] - upper.exact[i]) / state.weight[0] + lower.direction[i] - lower.exact[i]
        slope = upper.exact[i] / state.weight[0] + lower.exact[i]
        bend, longest = bend + change * change, longest + slope * slope
    bend, moved = math.sqrt(bend), distance(point, x)
    state.longest[0] = max(state.longest[0], math.sqrt(longest))
    if moved <= SHORT * math.sqrt(dot(x, x)) or bend <= plan.error * state.longest[0]:
        return
    if bend > SHOWN * state.smoothness[0] * moved:
        state.raised[0] *= max(RAISED * bend / (moved * state.smoothness[0]), TWICE)
        open_stage(state, plan)
        copy(x, point)
        copy(upper.exact, upper.direction)
        copy(lower.exact, lower.direction)


@kernel
def projected_slope(domain, state):
    """Return L ‖x̃ − Π(x̃ − ∇F(x̃) / L)‖, F = f / w + g."""
    x, room, large = state.x, state.room, state.smoothness[0]
    for i in range(x.size):
        room[i] = x[i] - (state.upper.exact[i] / state.weight[0] + state.lower.exact[i]) / large
    project(domain, room, state.point)
    return large * distance(x, state.point)


@kernel
def mix(state, share, own):
    """Make x_t."""
    x, y, z, point = state.x, state.y, state.z, state.point
    for i in range(x.size):
        point[i] = share * z[i] + own * x[i] + (1.0 - share - own) * y[i]


@kernel
def step(domain, state, share):
    """Make z_{t+1} and y_{t+1}."""
    y, z, point, room, total = state.y, state.z, state.point, state.room, state.total
    upper, lower = state.upper.direction, state.lower.direction
    length = 1.0 / (SHORTER * state.smoothness[0])
    for i in range(z.size):
        slope = upper[i] / state.weight[0] + lower[i]
        room[i] = z[i] - length / share * slope
        point[i] -= length * slope
    project(domain, room, z)
    project(domain, point, y)
    for i in range(z.size):
        total[i] += y[i]


@declared
class PAVR(Method):
    """Penalised accelerated variance reduction: accelerated variance-reduced steps on f / w + g, for growing w.

    Examples
    --------
    >>> PAVR(batch_size=32).growth
    20.0
    """

    batch_size: int | None = whole(
        "Samples of g drawn in a step. If not given, 2 M / L_g, with the smoothness constants of single samples and of g,"
        " but √n / 2 of n at most, and more where rows are sparse. Of f as many as pass through it in as many steps."
    )
    weight: float | None = real(
        "The first w; L_f / L_g if not given and there is a budget of a thousand passes or more, of a hundred if g has fewer"
        " samples than variables; up to ten times as much for fewer passes.",
        above=0.0,
    )
    growth: float = real("The factor of w from one stage to the next; for near ties w is sought.", GROWTH, above=1.0)
    smoothness: tuple[float, float, float, float] | None = other(
        "four floats",
        None,
        "L_f and L_g to begin with, and M_f and M_g, those of single samples. If not given they are what the objectives"
        " know, and estimates where they know nothing.",
        checked_constants,
    )
    level: str = option(
        'Which objectives to minimise: both, or "lower" for g alone, as other methods want of their first point.',
        "both",
        ("both", "lower"),
    )
    initial: Method | None = initial()

    name = "pavr"
    citation = "new; Allen-Zhu (2017) and Lan, Li, Zhou (2019) for one level"
    setting = "finite sum"
    needs = "projection, f convex"
    rates = "none known"
    loop = advance
    state = State
    projects = True
    convex = True
    near_ties = True

    @property
    def levels(self) -> tuple[str, ...]:
        return ("lower",) if self.level == "lower" else ("upper", "lower")

    def allow(self, state: State, level: float, rise: float) -> None:
        state.ends.rise[0] = rise

    def answer(self, state: State) -> np.ndarray:
        return state.ends.best if state.ends.weights[0] > 0.0 else state.x

    def hints(self, state: State) -> tuple[tuple[float, np.ndarray | None], ...]:
        return ((float(state.weight[0]), None),) if state.ends.weights[0] > 0.0 else ()

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            "smoothness": lambda: constants_of(problem, self.levels),
            "batch_size": lambda: fitting_batch(problem.lower, problem.dimension, *self._constants(problem)[1::2]),
            "weight": lambda: self._first_weight(problem, budget),
            "initial": lambda: self._first_points(problem) if problem.is_near and self.level == "both" else None,
        }

    def _first_points(self, problem: Problem) -> Method:
        """Return what minimises g: its own steps, unless rows are few or g is known to be so round that all do as well."""
        simple = problem.lower.n_samples < MANY_ROWS or is_round(problem.lower)
        return first_points(problem) if simple else PAVR(level="lower")

    def _constants(self, problem: Problem) -> tuple[float, float, float, float]:
        return self.smoothness or constants_of(problem, self.levels)

    def _first_weight(self, problem: Problem, budget: Budget) -> float:
        """Return the first w. A larger one lets g settle sooner, and f later, where g has many ties."""
        upper, lower = self._constants(problem)[:2]
        passes = min(budget.queries / (problem.upper.n_samples + problem.lower.n_samples), budget.passes)
        many = MANY if problem.lower.n_samples >= problem.dimension else MANY_WIDE
        return min(max(many / passes, 1.0), LARGEST_FIRST) * upper / lower

    def plan(self, problem: Problem) -> Plan:
        assert self.batch_size is not None and self.weight is not None
        f, g = problem.upper, problem.lower
        size = min(self.batch_size, g.n_samples)
        period = 8 * -(-g.n_samples // (8 * size))
        upper, lower, upper_single, lower_single = self._constants(problem)
        above: Any
        above, upper_smoothness, shares = Ignored(), 0.0, [lower_single / (size * lower + lower_single)]
        if self.level == "both":
            own = -(-f.n_samples // period)
            above, upper_smoothness = snapshot_of(problem, f, own, period), upper + upper_single / own
            shares.append(upper_single / (own * upper + upper_single))
        return Plan(
            upper=above,
            lower=snapshot_of(problem, g, size, period),
            weight=self.weight,
            penalty=Sought() if problem.is_near and self.level == "both" else Growing(self.growth),
            upper_smoothness=upper_smoothness,
            lower_smoothness=lower + lower_single / size,
            mix=max(MIX * max(shares), LEAST_MIX),
            error=NOISE * max(float(getattr(problem, name).accuracy) for name in self.levels),
        )

    def start(self, problem: Problem, plan: Plan, x: np.ndarray) -> State:
        state: State = super().start(problem, plan, x)
        state.raised[0] = 1.0
        return state

    def remark(self, problem: Problem, state: State) -> str:
        return "".join(say_estimated(level) for level in self.levels if math.isnan(getattr(problem, level).lipschitz))

    def conclude(self, state: State) -> None:
        """Take the mean of the last epoch, if it is nearly complete, for x̃."""
        steps = int(state.steps[0])
        if steps > ENOUGH * state.period[0]:
            state.x[:] = state.total / steps


def constants_of(problem: Problem, levels: tuple[str, ...]) -> tuple[float, float, float, float]:
    """Return L_f, L_g, M_f and M_g: what the objectives know, and estimates where they know nothing; 1 and 0 if ignored."""
    lower = smoothness_of(problem, "lower", single=False).whole, _per_sample(problem, "lower")
    upper = 1.0, 0.0
    if "upper" in levels:
        upper = smoothness_of(problem, "upper", single=False).whole, _per_sample(problem, "upper")
    return upper[0], lower[0], upper[1], lower[1]


def _per_sample(problem: Problem, level: str) -> float:
    """Return a smoothness constant of single samples, as they are drawn; an estimate where none is known."""
    objective = getattr(problem, level)
    if objective.n_samples == 1:
        return 0.0
    known = float(objective.evened().sample_lipschitz)
    return known if math.isfinite(known) else smoothness_of(problem, level).sample


def fitting_batch(objective: Any, dimension: int, constant: float, single: float) -> int:
    """Return a batch size: 2 M / L if rows of that number tell enough, √n / 2 at most, but as many as a step is worth.

    A step takes as long as there are variables, whatever rows it draws.
    """
    n = objective.n_samples
    matrix = getattr(objective, "matrix", None)
    together = 1 if matrix is None else math.ceil(dimension * n / max(matrix.numbers, 1))
    enough = 2.0 * single / constant
    return int(min(max(min(math.isqrt(n) / 2, enough), LEAST_BATCH, together), n))
