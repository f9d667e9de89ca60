"""PAVR: penalised accelerated variance reduction, for finite sums of many rows and few passes over them.

    x_t = θ₁ z_t + θ₂ x̃ + (1 − θ₁ − θ₂) y_t
    z_{t+1} = Π(z_t − v_t / (c θ₁ L)),  v_t an estimate of ∇f(x_t) / w + ∇g(x_t) from a batch and the exact one at x̃
    y_{t+1} = Π(x_t − v_t / (c L))

An epoch is as many steps as go through all rows once; the first ones are shorter. At its end x̃ becomes the mean of its y,
and both gradients are found there exactly. For a fixed weight w these are the steps of Katyusha: Allen-Zhu, Katyusha: the
first direct acceleration of stochastic gradient methods, STOC 2017, with θ₁ = min(½, 2 / (e + 3)) in the e-th epoch, about
as in Lan, Li and Zhou, A unified variance-reduced accelerated gradient method for convex optimization, NeurIPS 2019. As in
PB-APG (``penalised.py``), w grows from stage to stage, each of which begins anew at x̃: a stage ends when the projected
gradient of f / w + g at x̃ is a share of ∇f / w, 0.3 at first and less from stage to stage. No version for two levels, and
no rate for this one, is known. For near ties the w at which g has its level is sought, from stage to stage (``levels.py``).

L = L_f / w + L_g + (M_f / S_f) / w + M_g / S_g, where M is a smoothness constant of single samples and S the batch size.
Rows of a linear model that differ much are drawn in proportion to their squared lengths, of which M is then a mean. Batches
are as small as 2 M / L_g asks for. Katyusha's constants, c = 3 and θ₂ = ½, are for single samples; batches leave less noise,
and θ₂ = ¼ of its share in L and c = 1.5 were better on all problems measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import generic, kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, distance, dot, fill
from tiebreak.estimates import Memory, cost, memory_for
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Method, initial, smoothness, smoothnesses
from tiebreak.methods.fitting import first_points
from tiebreak.methods.levels import LARGEST, Ends, begin_search, next_weight, note_end
from tiebreak.methods.parameters import declared, real, whole
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.objectives.base import accumulate, draw, everything
from tiebreak.problem import Problem

LARGEST_FIRST = 10.0  # first w, in units of L_f / L_g, if there are few passes; 1 if there are …
MANY = 100.0  # … as many, and in between in proportion
GROWTH = 20.0  # factor of w from one stage to the next
SETTLED = 0.3  # share of ∇f / w, at x̃, to which the projected gradient of f / w + g has fallen when the first stage ends
STRICTER = 0.7  # factor of that share from one stage to the next, so that f settles along the ties of g
SHORT_EPOCHS = np.array([1, 1, 1, 1, 2, 2, 2, 2])  # lengths of the first epochs, in quarters of that of later ones
ENOUGH = 0.5  # share of an epoch whose mean is worth more than x̃
LEAST_MIX, MIX = 0.05, 0.25  # θ₂, the weight of x̃: at least, and in units of the share of single samples in L
SHORTER = 1.5  # c, by which steps are shorter than 1 / L
LEAST_BATCH = 8  # rows of as many numbers as there are variables in a step, whose own work is then less than theirs


class Snapshot(NamedTuple):
    """F̂_t = F(x̃) + F_B(x_t) − F_B(x̃), with a fresh batch B, and x̃ renewed at the beginning of each epoch."""

    samples: np.ndarray  # the batch of all samples
    objective: Any  # F, perhaps with samples that are not equally likely, from which B is drawn
    batch_size: int  # S
    quarter: int  # steps of the first epochs, a quarter of those of later ones


class SnapshotMemory(NamedTuple):
    """What is known of one objective."""

    direction: np.ndarray  # ∇F̂_t
    exact: np.ndarray  # ∇F(x̃)
    value: np.ndarray  # F(x̃), one number
    batch: np.ndarray
    spent: np.ndarray


@memory_for.register
def memory_of_snapshot(plan: Snapshot, dimension: int) -> SnapshotMemory:
    batch, spent = np.zeros(plan.batch_size, dtype=np.int64), np.zeros(2, dtype=np.int64)
    return SnapshotMemory(np.zeros(dimension), np.zeros(dimension), np.zeros(1), batch, spent)


@cost.register
def cost_of_snapshot(plan: Snapshot, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    short = plan.quarter * SHORT_EPOCHS.sum()  # steps of all short epochs
    first = plan.quarter * np.append(0, SHORT_EPOCHS.cumsum())
    begins = np.where(t < short, np.isin(t, first), (t - short) % (4 * plan.quarter) == 0)
    exactly = np.where(begins, plan.samples.size, 0)
    return exactly + plan.batch_size, exactly + 2 * plan.batch_size


@kernel
def take_snapshot(plan, objective, memory, x):
    """Find the value and the gradient at x̃."""
    fill(memory.exact, 0.0)
    memory.value[0], _ = accumulate(objective, plan.samples, x, 1.0, x, 0.0, memory.exact)
    memory.spent[0] += plan.samples.size
    memory.spent[1] += plan.samples.size
    return math.isfinite(memory.value[0])


@kernel
def estimate_from(plan, memory, x, snapshot, moment):
    """Estimate the gradient at x."""
    copy(memory.exact, memory.direction)
    batch = draw(plan.objective, moment, memory.batch)
    accumulate(plan.objective, batch, x, 1.0, snapshot, -1.0, memory.direction)
    memory.spent[0] += plan.batch_size
    memory.spent[1] += 2 * plan.batch_size


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
    ends: Ends  # of the search for a level, for near ties
    epochs: Count  # of the whole run, one number
    epoch: Count  # e, one number, of this stage
    period: Count  # steps of an epoch, one number
    steps: Count  # steps of this epoch so far, one number
    iteration: Count  # t, one number


class Growing(NamedTuple):
    """w grows from stage to stage."""

    factor: float


class Sought(NamedTuple):
    """w changes from stage to stage, so that g comes to the level of a near tie."""


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Snapshot
    lower: Snapshot
    weight: float  # the first w
    penalty: Any  # how w changes: Growing or Sought
    upper_smoothness: float  # L_f + M_f / S_f
    lower_smoothness: float  # L_g + M_g / S_g
    mix: float  # θ₂


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    x, upper, lower = state.x, state.upper, state.lower
    for _ in range(iterations):
        t = state.iteration[0]
        if state.steps[0] == state.period[0]:
            if t > 0:
                scaled(state.total, 1.0 / state.period[0], x)
            if not take_snapshot(plan.upper, problem.upper, upper, x):
                return UPPER_NOT_FINITE
            if not take_snapshot(plan.lower, problem.lower, lower, x):
                return LOWER_NOT_FINITE
            open_epoch(problem.domain, state, plan)
        share = min(0.5, 2.0 / (state.epoch[0] + 3.0))
        mix(state, share, plan.mix)
        estimate_from(plan.upper, upper, state.point, x, Moment(keys.upper, t, 0, 0))
        estimate_from(plan.lower, lower, state.point, x, Moment(keys.lower, t, 0, 0))
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
    quarters = SHORT_EPOCHS[state.epochs[0]] if state.epochs[0] < SHORT_EPOCHS.size else 4
    state.period[0], state.steps[0] = quarters * plan.lower.quarter, 0
    state.epochs[0] += 1
    if state.iteration[0] == 0:
        state.weight[0], state.settled[0] = plan.weight, SETTLED
        begin(plan.penalty, state)
        open_stage(domain, state, plan)
        return
    upper, weight = state.upper.exact, state.weight[0]
    done = projected_slope(domain, state) <= state.settled[0] * math.sqrt(dot(upper, upper)) / weight
    if done:
        change_weight(plan.penalty, plan, state)
    if state.weight[0] != weight:
        state.settled[0] *= STRICTER
        open_stage(domain, state, plan)
    else:
        state.epoch[0] += 1


@generic(light=True)
def begin(penalty, state):
    """Take note of the values at x_0."""


@generic(light=True)
def change_weight(penalty, plan, state):
    """Set the weight of the next stage; if it is the same, the stage goes on."""


@begin.register(Growing)
def begin_to_grow(penalty, state):
    pass


@change_weight.register(Growing)
def grow(penalty, plan, state):
    if state.weight[0] < LARGEST * plan.weight:
        state.weight[0] *= penalty.factor


@begin.register(Sought)
def begin_to_seek(penalty, state):
    begin_search(state.ends, state.lower.value[0])


@change_weight.register(Sought)
def seek(penalty, plan, state):
    note_end(state.ends, state.x, state.lower.value[0], state.weight[0])
    state.weight[0] = next_weight(state.ends, state.weight[0], plan.weight)


@kernel
def open_stage(domain, state, plan):
    """Begin a stage at x̃."""
    state.smoothness[0] = plan.upper_smoothness / state.weight[0] + plan.lower_smoothness
    state.epoch[0] = 1
    copy(state.x, state.y)
    copy(state.x, state.z)


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
        "The first w; L_f / L_g if not given and there is a budget of a hundred passes or more, up to ten times as much for"
        " fewer.",
        above=0.0,
    )
    growth: float = real("The factor of w from one stage to the next; for near ties w is sought.", GROWTH, above=1.0)
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

    def allow(self, state: State, level: float, rise: float) -> None:
        state.ends.rise[0] = rise

    def answer(self, state: State) -> np.ndarray:
        return state.ends.best if state.ends.weights[0] > 0.0 else state.x

    def hints(self, state: State) -> tuple[tuple[float, np.ndarray | None], ...]:
        return ((float(state.weight[0]), None),) if state.ends.weights[0] > 0.0 else ()

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            "batch_size": lambda: fitting_batch(problem.lower, smoothness(problem, "lower", self), problem.dimension),
            "weight": lambda: self._first_weight(problem, budget),
            "initial": lambda: first_points(problem) if problem.is_near else None,
        }

    def _first_weight(self, problem: Problem, budget: Budget) -> float:
        """Return the first w. A larger one lets g settle sooner, and f later, where g has ties."""
        upper, lower = smoothnesses(problem, self)
        passes = min(budget.queries / (problem.upper.n_samples + problem.lower.n_samples), budget.passes)
        return min(max(MANY / passes, 1.0), LARGEST_FIRST) * upper / lower

    def plan(self, problem: Problem) -> Plan:
        assert self.batch_size is not None and self.weight is not None
        f, g = problem.upper, problem.lower
        size = min(self.batch_size, g.n_samples)
        quarter = -(-g.n_samples // (4 * size))
        sizes = -(-f.n_samples // (4 * quarter)), size
        upper, lower = (
            Snapshot(everything(level), level.evened(), each, quarter) for level, each in zip((f, g), sizes, strict=True)
        )
        whole_constants = smoothnesses(problem, self)
        constants = [
            known + _per_sample(snapshot.objective, known) / snapshot.batch_size
            for snapshot, known in zip((upper, lower), whole_constants, strict=True)
        ]
        noise = max(1.0 - known / constant for known, constant in zip(whole_constants, constants, strict=True))
        penalty = Sought() if problem.is_near else Growing(self.growth)
        first, second = constants
        return Plan(upper, lower, self.weight, penalty, first, second, max(MIX * noise, LEAST_MIX))

    def conclude(self, state: State) -> None:
        """Take the mean of the last epoch, if it is nearly complete, for x̃."""
        steps = int(state.steps[0])
        if steps > ENOUGH * state.period[0]:
            state.x[:] = state.total / steps


def _per_sample(objective: Any, constant: float) -> float:
    """Return a smoothness constant of single samples; where none is known, √n times that of their mean."""
    if objective.n_samples == 1:
        return 0.0
    known = float(objective.sample_lipschitz)
    return known if math.isfinite(known) else constant * math.sqrt(objective.n_samples)


def fitting_batch(objective: Any, constant: float, dimension: int) -> int:
    """Return a batch size: 2 M / L if rows of that number tell enough, √n / 2 at most, but as many as a step is worth.

    A step takes as long as there are variables, whatever rows it draws.
    """
    n = objective.n_samples
    matrix = getattr(objective, "matrix", None)
    together = 1 if matrix is None else math.ceil(dimension * n / max(matrix.numbers, 1))
    enough = 2.0 * _per_sample(objective.evened(), constant) / constant
    return int(min(max(min(math.isqrt(n) / 2, enough), LEAST_BATCH, together), n))
