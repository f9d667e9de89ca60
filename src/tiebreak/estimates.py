"""How an estimate of a value and a gradient moves from x_{t−1} to x_t.

STORM: Cutkosky and Orabona, Momentum-based variance reduction in non-convex SGD, NeurIPS 2019.
SPIDER: Fang, Li, Lin and Zhang, SPIDER: near-optimal non-convex optimization, NeurIPS 2018.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.randomness import turn_of
from tiebreak.engine.vectors import fill, scale
from tiebreak.objectives.base import accumulate, draw, everything

SMALLEST_FACTOR = 1e-6  # below it the factor is multiplied into the vector


class Estimate(NamedTuple):
    """What is known of one objective F at the current point.

    The gradient is kept as factor · direction, so that a step of STORM need not rescale the whole vector: on sparse data it
    costs as much as the sampled rows have non-zeros.
    """

    direction: np.ndarray  # ∇F̂_t / factor
    factor: np.ndarray  # one positive number
    value: np.ndarray  # F̂_t, one number
    batch: np.ndarray  # the samples of this iteration


def no_estimate(dimension: int, batch_size: int) -> Estimate:
    """Return an estimate that has not seen a sample."""
    return Estimate(np.zeros(dimension), np.ones(1), np.zeros(1), np.zeros(batch_size, dtype=np.int64))


@kernel
def storm(objective, estimate, moment, x, previous, keep):
    """Set F̂_t ← F_B(x_t) + keep · (F̂_{t−1} − F_B(x_{t−1})), keep = 1 − momentum, and its gradient likewise."""
    batch = draw(objective, moment, estimate.batch)
    factor = keep * estimate.factor[0]
    if factor < SMALLEST_FACTOR:
        scale(factor, estimate.direction)
        factor = 1.0
    at_x, at_previous = accumulate(objective, batch, x, 1.0 / factor, previous, -keep / factor, estimate.direction)
    estimate.factor[0] = factor
    estimate.value[0] = at_x + keep * (estimate.value[0] - at_previous)


@kernel
def gradient_at(objective, batch, x, out):
    """Set out to the gradient at x of the mean over a batch, and return the mean."""
    fill(out, 0.0)
    value, _ = accumulate(objective, batch, x, 1.0, x, 0.0, out)
    return value


class First(NamedTuple):
    """What a first estimate is made of."""

    batch: np.ndarray  # all samples; of a stream, room for as many as are drawn at once
    draws: int  # how often at most; 0: the estimate is exact
    error: float  # the standard error of the value at which no more are drawn


LEAST_DRAWS = 8  # from which a standard error is found


@kernel
def first_estimate(objective, estimate, first, moment, x):
    """Set F̂_0 to F(x_0), or for a stream to the mean over several batches, and its gradient likewise.

    Return the standard error of the value and the number of batches that were not needed.
    """
    fill(estimate.direction, 0.0)
    mean, squares, error, k = 0.0, 0.0, 0.0, 0
    while k < max(first.draws, 1):
        batch = draw(objective, turn_of(moment, k), first.batch) if first.draws > 0 else first.batch
        value, _ = accumulate(objective, batch, x, 1.0, x, 0.0, estimate.direction)
        k += 1
        change = value - mean
        mean += change / k
        squares += change * (value - mean)  # Welford's recursion
        if k > 1:
            error = math.sqrt(squares / (k * (k - 1)))
        if k >= LEAST_DRAWS and error <= first.error:
            break
    if k > 1:
        scale(1.0 / k, estimate.direction)
    estimate.factor[0] = 1.0
    estimate.value[0] = mean
    return error, max(first.draws, 1) - k


class Sampling(NamedTuple):
    """How SPIDER samples one objective."""

    everything: np.ndarray  # the batch of all samples
    batch_size: int  # S
    period: int  # q: every q-th estimate is exact


def spider_sampling(objective: Any, batch_size: int | None, period: int | None) -> Sampling:
    """Return how to sample an objective; S and q are ⌊√n⌋ if they are not given."""
    root = math.isqrt(objective.n_samples)
    return Sampling(everything(objective), batch_size or root, period or root)


@kernel
def spider(objective, estimate, sampling, t, moment, x, previous):
    """Set F̂_t ← F(x_t) if q divides t, else F̂_{t−1} + F_B(x_t) − F_B(x_{t−1}); and its gradient likewise."""
    if t % sampling.period == 0:
        fill(estimate.direction, 0.0)
        at_x, at_previous = accumulate(objective, sampling.everything, x, 1.0, x, 0.0, estimate.direction)
        estimate.value[0] = at_x
    else:
        batch = draw(objective, moment, estimate.batch)
        at_x, at_previous = accumulate(objective, batch, x, 1.0, previous, -1.0, estimate.direction)
        estimate.value[0] += at_x - at_previous


def storm_cost(t: np.ndarray, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples drawn and the gradients evaluated in each iteration t."""
    queries = np.full(t.shape, batch_size)
    return queries, queries * np.where(t == 0, 1, 2)


def spider_cost(t: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples drawn and the gradients evaluated in each iteration t; an exact estimate reads each sample once."""
    exact = t % sampling.period == 0
    queries = np.where(exact, sampling.everything.size, sampling.batch_size)
    return queries, queries * np.where(exact, 1, 2)
