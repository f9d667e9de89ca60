"""How an objective's value and gradient at x_t are estimated: exactly, from one batch, by STORM or by SPIDER.

An estimate is a *plan*, a value whose type chooses the update, and a *memory*, which carries what is known from one
iteration to the next. The loops of the methods call :func:`estimate` and know no plan by name. A plan also has a
:func:`cost`, from which budgets are planned; what was really spent is counted in the memory. A new plan needs one file: its
class, :func:`estimate` and :func:`cost` registered for it, and, if it must remember more, :func:`memory_for`.

STORM: Cutkosky and Orabona, Momentum-based variance reduction in non-convex SGD, NeurIPS 2019.
SPIDER: Fang, Li, Lin and Zhang, SPIDER: near-optimal non-convex optimization, NeurIPS 2018.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import generic, kernel
from tiebreak.engine.callouts import call_out
from tiebreak.engine.randomness import turn_of
from tiebreak.engine.vectors import fill, scale
from tiebreak.objectives.base import Whole, accumulate, draw, pass_over, whole_of

SMALLEST_FACTOR = 1e-6  # factor of a memory below which it is multiplied into the direction
LEAST_DRAWS = 8  # draws from which a standard error is found


class Memory(NamedTuple):
    """What is known of one objective F at the current point.

    The gradient is kept as factor · direction, so that a step of STORM need not rescale the whole vector: on sparse data it
    costs as much as the sampled rows have non-zeros.
    """

    direction: np.ndarray  # ∇F̂_t / factor
    factor: np.ndarray  # one positive number
    value: np.ndarray  # F̂_t, one number
    error: np.ndarray  # the standard error of F̂_0, one number; 0 if it is exact or not known
    batch: np.ndarray  # the samples of this iteration
    spent: np.ndarray  # samples drawn and gradients evaluated so far


class Exact(NamedTuple):
    """F̂_t = F(x_t)."""

    whole: Whole
    queries: int  # how many samples count as drawn


class Sampled(NamedTuple):
    """F̂_t = F_B(x_t), with a fresh batch B."""

    batch_size: int


class Storm(NamedTuple):
    """F̂_t = F_B(x_t) + (1 − α_t) (F̂_{t−1} − F_B(x_{t−1})), with a fresh batch B."""

    momentum: Any  # α_t
    batch_size: int
    first: Any  # how F̂_0 is made: OneBatch, Exact or Several


class Spider(NamedTuple):
    """F̂_t = F(x_t) if q divides t, else F̂_{t−1} + F_B(x_t) − F_B(x_{t−1}), with a fresh batch B."""

    whole: Whole
    batch_size: int  # S
    period: int  # q


class OneBatch(NamedTuple):
    """STORM begins with F_B(x_0)."""


class Several(NamedTuple):
    """STORM on a stream begins with the mean over batches, as many as the error of the value asks for."""

    batch: np.ndarray  # room for the samples of one draw
    draws: int  # draws at most
    error: float  # the standard error of the value at which no more are drawn


class Once(NamedTuple):
    """An estimate that is made in the first iteration only; of interest for its cost."""

    plan: Any


@generic
def estimate(plan, objective, memory, x, previous, k, moment):
    """Make F̂_t in the memory and count what it takes; k is the place of t in the schedules, ``previous`` is x_{t−1}."""


@generic(light=True)
def renewed_variance(plan, variance, innovation, k, moment):
    """Return the variance of a number made of F̂_t, from that of F̂_{t−1} and by how much the fresh samples moved it."""


@functools.singledispatch
def cost(plan: Any, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples drawn and the gradients evaluated in each iteration t, at most."""
    raise NotImplementedError(f"`cost` is not registered for {type(plan).__name__}")


@functools.singledispatch
def memory_for(plan: Any, dimension: int) -> Any:
    """Return the memory of a plan that has not seen a sample."""
    return Memory(
        direction=np.zeros(dimension),
        factor=np.ones(1),
        value=np.zeros(1),
        error=np.zeros(1),
        batch=np.zeros(getattr(plan, "batch_size", 1), dtype=np.int64),
        spent=np.zeros(2, dtype=np.int64),
    )


@kernel
def look_at_all(whole, objective, memory, x):
    """Set F̂ to the mean over all samples at x."""
    fill(memory.direction, 0.0)
    memory.value[0] = pass_over(whole, objective, x, memory.direction)
    memory.factor[0] = 1.0


# Exact


def exact(objective: Any) -> Exact:
    """Return the plan of exact estimates."""
    whole = whole_of(objective)
    return Exact(whole, whole.size)


def drawing_what_is_sampled(problem: Any, upper: Any, lower: Any) -> tuple[Any, Any]:
    """Return plans that sample both levels; if one is known exactly, and the other is not, it is evaluated, and draws none.

    Where neither is sampled an evaluation counts as a sample: a budget of queries must come to its end.
    """
    f, g = problem.upper, problem.lower
    if f.n_samples == 1 < g.n_samples:
        return Exact(whole_of(f), 0), lower
    if g.n_samples == 1 < f.n_samples:
        return upper, Exact(whole_of(g), 0)
    return upper, lower


@estimate.register(Exact)
def estimate_exactly(plan, objective, memory, x, previous, k, moment):
    look_at_all(plan.whole, objective, memory, x)
    memory.spent[0] += plan.queries
    memory.spent[1] += plan.whole.size


@renewed_variance.register(Exact)
def exact_variance(plan, variance, innovation, k, moment):
    return 0.0


@cost.register
def exact_cost(plan: Exact, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.full(t.shape, plan.queries), np.full(t.shape, plan.whole.size)


@cost.register
def cost_of_once(plan: Once, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    queries, evaluations = cost(plan.plan, t)
    return np.where(t == 0, queries, 0), np.where(t == 0, evaluations, 0)


# One batch


@estimate.register(Sampled)
def estimate_from_batch(plan, objective, memory, x, previous, k, moment):
    fill(memory.direction, 0.0)
    batch = draw(objective, moment, memory.batch)
    memory.value[0], _ = accumulate(objective, batch, x, 1.0, x, 0.0, memory.direction)
    memory.factor[0] = 1.0
    memory.spent[0] += plan.batch_size
    memory.spent[1] += plan.batch_size


@cost.register
def sampled_cost(plan: Sampled, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    queries = np.full(t.shape, plan.batch_size)
    return queries, queries


# STORM


@estimate.register(Storm)
def estimate_by_storm(plan, objective, memory, x, previous, k, moment):
    if moment.iteration == 0 and begin(plan.first, objective, memory, x, moment):
        return
    keep = 1.0 - plan.momentum[k] if moment.iteration > 0 else 0.0
    factor = keep * memory.factor[0]
    if factor < SMALLEST_FACTOR:
        scale(factor, memory.direction)
        factor = 1.0
    batch = draw(objective, moment, memory.batch)
    at_x, at_previous = accumulate(objective, batch, x, 1.0 / factor, previous, -keep / factor, memory.direction)
    memory.factor[0] = factor
    memory.value[0] = at_x + keep * (memory.value[0] - at_previous)
    memory.spent[0] += memory.batch.size
    memory.spent[1] += memory.batch.size if moment.iteration == 0 else 2 * memory.batch.size


@renewed_variance.register(Storm)
def storm_variance(plan, variance, innovation, k, moment):
    keep = 1.0 - plan.momentum[k]
    return keep * keep * variance + innovation * innovation


@cost.register
def storm_cost(plan: Storm, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = {OneBatch: lambda: plan.batch_size, Exact: lambda: plan.first.whole.size}
    at_first = first.get(type(plan.first), lambda: plan.first.batch.size * plan.first.draws)()
    queries = np.where(t == 0, at_first, plan.batch_size)
    return queries, queries * np.where(t == 0, 1, 2)


@generic(inline=False)
def begin(first, objective, memory, x, moment):
    """Make F̂_0 and its standard error, unless it is made of one batch like the others; return whether it is made."""


@begin.register(OneBatch)
def begin_with_batch(first, objective, memory, x, moment):
    return False


@begin.register(Exact)
def begin_exactly(first, objective, memory, x, moment):
    look_at_all(first.whole, objective, memory, x)
    memory.spent[0] += first.whole.size
    memory.spent[1] += first.whole.size
    return True


@begin.register(Several)
def begin_with_several(first, objective, memory, x, moment):
    fill(memory.direction, 0.0)
    mean, squares, error, k = 0.0, 0.0, 0.0, 0
    while k < first.draws:
        batch = draw(objective, turn_of(moment, k), first.batch)
        value, _ = accumulate(objective, batch, x, 1.0, x, 0.0, memory.direction)
        k += 1
        change = value - mean
        mean += change / k
        squares += change * (value - mean)  # Welford's recursion
        if k > 1:
            error = math.sqrt(squares / (k * (k - 1)))
        if k >= LEAST_DRAWS and error <= first.error:
            break
    scale(1.0 / k, memory.direction)
    memory.factor[0], memory.value[0], memory.error[0] = 1.0, mean, error
    memory.spent[0] += k * first.batch.size
    memory.spent[1] += k * first.batch.size
    return True


# SPIDER


def spider(objective: Any, batch_size: int | None, period: int | None) -> Spider:
    """Return the plan of SPIDER; S and q are ⌊√n⌋ if they are not given."""
    root = math.isqrt(objective.n_samples)
    return Spider(whole_of(objective), batch_size or root, period or root)


@estimate.register(Spider)
def estimate_by_spider(plan, objective, memory, x, previous, k, moment):
    exactly = moment.iteration % plan.period == 0
    memory.spent[0] += plan.whole.size if exactly else plan.batch_size
    memory.spent[1] += plan.whole.size if exactly else 2 * plan.batch_size
    if exactly:
        fill(memory.direction, 0.0)
        if plan.whole.samples.size == 0:
            memory.value[0] = call_out(plan.whole.handle[0], 0, 0, 0, 0, x, memory.direction)
            return
    # One call of `accumulate`, whether the estimate is exact or not: its code becomes part of this one.
    batch = plan.whole.samples if exactly else draw(objective, moment, memory.batch)
    weight = 0.0 if exactly else -1.0
    at_x, at_previous = accumulate(objective, batch, x, 1.0, x if exactly else previous, weight, memory.direction)
    memory.value[0] = at_x if exactly else memory.value[0] + (at_x - at_previous)


@renewed_variance.register(Spider)
def spider_variance(plan, variance, innovation, k, moment):
    return 0.0 if moment.iteration % plan.period == 0 else variance + innovation * innovation


@cost.register
def spider_cost(plan: Spider, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    exactly = t % plan.period == 0
    queries = np.where(exactly, plan.whole.size, plan.batch_size)
    return queries, queries * np.where(exactly, 1, 2)
