"""Estimates of gradients from a point at which they were found exactly, or nearly: what variance reduction is made of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import generic
from tiebreak.engine.vectors import copy, fill
from tiebreak.estimates import cost, memory_for
from tiebreak.objectives.base import Whole, accumulate, draw, pass_over, whole_of
from tiebreak.problem import Problem

MOST_ROWS = 2**20  # samples of which a part has no more: it is kept in memory
FIRST_EPOCHS = (1 / 8, 1 / 4, 1 / 2)  # lengths of epochs, and shares of the samples in their snapshots, for exact ties; …
SHORT_EPOCHS = (1 / 4, 1 / 4, 1 / 2, 1 / 2)  # … lengths of the next ones, with all samples …
NEAR_EPOCHS = (1 / 4, 1 / 4, *SHORT_EPOCHS, 1 / 2, 1 / 2)  # … and of the first ones for near ties, whose g must be known


class Snapshot(NamedTuple):
    """F̂_t = F(x̃) + F_B(x_t) − F_B(x̃), with a fresh batch B, and x̃ renewed at the beginning of each epoch."""

    whole: Whole
    objective: Any  # F, perhaps with samples that are not equally likely, from which B is drawn
    batch_size: int  # S
    first: np.ndarray  # steps of the first epochs
    parts: np.ndarray  # samples of their snapshots
    period: int  # steps of later ones


class SnapshotMemory(NamedTuple):
    """What is known of one objective."""

    direction: np.ndarray  # ∇F̂_t
    exact: np.ndarray  # ∇F(x̃)
    value: np.ndarray  # F(x̃), one number
    batch: np.ndarray
    part: np.ndarray  # what one of the first snapshots is made of
    spent: np.ndarray


@memory_for.register
def memory_of_snapshot(plan: Snapshot, dimension: int) -> SnapshotMemory:
    largest = plan.parts[plan.parts < plan.whole.size].max(initial=0)
    batch, part, spent = (np.zeros(size, dtype=np.int64) for size in (plan.batch_size, largest, 2))
    return SnapshotMemory(np.zeros(dimension), np.zeros(dimension), np.zeros(1), batch, part, spent)


@cost.register
def cost_of_snapshot(plan: Snapshot, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ends = plan.first.cumsum()  # of the first epochs
    since = t - ends[-1]
    at_snapshot = np.where((since >= 0) & (since % plan.period == 0), plan.whole.size, 0)
    for first, size in zip(ends - plan.first, plan.parts, strict=True):
        at_snapshot = np.where(t == first, size, at_snapshot)
    return at_snapshot + plan.batch_size, at_snapshot + 2 * plan.batch_size


class Ignored(NamedTuple):
    """F̂_t = 0: nothing is asked of f where g alone is minimised."""


@memory_for.register
def memory_of_nothing(plan: Ignored, dimension: int) -> SnapshotMemory:
    none = np.zeros(0, dtype=np.int64)
    return SnapshotMemory(np.zeros(dimension), np.zeros(dimension), np.zeros(1), none, none, np.zeros(2, dtype=np.int64))


@cost.register
def cost_of_nothing(plan: Ignored, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(t.shape, dtype=np.int64), np.zeros(t.shape, dtype=np.int64)


@generic(light=True)
def take_snapshot(plan, objective, memory, x, epoch, moment):
    """Find the value and the gradient at x̃, with which an epoch of this number begins; return whether all is finite."""


@generic(light=True)
def estimate_from(plan, memory, x, snapshot, moment):
    """Estimate the gradient at x."""


@take_snapshot.register(Ignored)
def take_no_snapshot(plan, objective, memory, x, epoch, moment):
    return True


@estimate_from.register(Ignored)
def estimate_nothing(plan, memory, x, snapshot, moment):
    pass


@take_snapshot.register(Snapshot)
def take_snapshot_of_samples(plan, objective, memory, x, epoch, moment):
    fill(memory.exact, 0.0)
    n = plan.parts[epoch] if epoch < plan.parts.size else plan.whole.size
    if n < plan.whole.size:
        part = draw(plan.objective, moment, memory.part[:n])
        memory.value[0], _ = accumulate(plan.objective, part, x, 1.0, x, 0.0, memory.exact)
    else:
        memory.value[0] = pass_over(plan.whole, objective, x, memory.exact)
    memory.spent[0] += n
    memory.spent[1] += n
    return math.isfinite(memory.value[0])


@estimate_from.register(Snapshot)
def estimate_from_snapshot(plan, memory, x, snapshot, moment):
    copy(memory.exact, memory.direction)
    batch = draw(plan.objective, moment, memory.batch)
    accumulate(plan.objective, batch, x, 1.0, snapshot, -1.0, memory.direction)
    memory.spent[0] += plan.batch_size
    memory.spent[1] += 2 * plan.batch_size


def snapshot_of(problem: Problem, objective: Any, batch_size: int, period: int) -> Snapshot:
    """Return how the gradient of a level is estimated, with epochs of so many steps, a multiple of 8."""
    n = int(objective.n_samples)
    partial, whole = ((), NEAR_EPOCHS) if problem.is_near else (FIRST_EPOCHS, SHORT_EPOCHS)
    steps = np.array([int(period * length) for length in (*partial, *whole)])
    parts = np.array([*(min(math.ceil(n * share), MOST_ROWS) for share in partial), *(n for _ in whole)])
    return Snapshot(whole_of(objective), objective.evened(), batch_size, steps, parts, period)
