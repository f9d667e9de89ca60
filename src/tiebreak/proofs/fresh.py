"""Fresh samples of streams, and what batches of them say about a point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import cut_lmo
from tiebreak.engine.randomness import Moments
from tiebreak.engine.rounding import UNIT
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.surveys import FEW_OPERATIONS
from tiebreak.problem import Problem

SHARES = 2.0 ** np.arange(-8, 5)  # multiples of the estimated half-space's multiplier that are tried
SAMPLES_PER_DRAW = 4096  # samples drawn by one call
KEPT_BYTES = 256_000_000  # size of the samples that are kept for the end of a stream
FRESH = 0xF1E5  # part of the seed that sets the samples of certificates apart from those of runs

Take = Callable[[Any, int], Any]  # (objective, size) -> batch


class Fresh:
    """A source of fresh samples that keeps what it gave, if that is not too much and says how large it is."""

    def __init__(self, moments: Moments) -> None:
        self.moments, self.room = moments, float(KEPT_BYTES)
        self.kept: list[Any] = []

    def __call__(self, objective: Any, size: int) -> Any:
        batch = draw(objective, next(self.moments), np.zeros(size, dtype=np.int64))
        self.room -= bytes_of(batch)
        if self.room >= 0.0:
            self.kept.append(batch)
        else:
            self.kept.clear()
        return batch

    def again(self) -> Take | None:
        """Return a source of the same samples in the same order, if they were kept."""
        batches: Iterator[Any] = iter(self.kept)
        return (lambda objective, size: next(batches)) if self.kept else None


def bytes_of(batch: Any) -> float:
    """Return the size of a batch in memory, ∞ if it does not say."""
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if isinstance(batch, (tuple, list)):
        return math.fsum(map(bytes_of, batch))
    return float(getattr(batch, "nbytes", math.inf))


class Sample(NamedTuple):
    """What one batch says of both levels."""

    f: float
    f_gradient: np.ndarray
    g: float
    g_gradient: np.ndarray
    other: np.ndarray  # g at each of the other points


class Choice(NamedTuple):
    """What is chosen on the first half of the samples."""

    multiplier: float  # λ
    point: int  # y among the other points; −1: y = x


def rise_at(problem: Problem, rises: np.ndarray, point: int) -> float:
    """Return how far the level may be above g(x), given g(y) − g(x) of each y, of which one is chosen, rounded up.

    Where a share is to be kept, the last y is the middle of Z.
    """
    rise = float(rises[point]) if point >= 0 else 0.0
    if problem.keep == 1.0:
        return rise + problem.tolerance * (1.0 + FEW_OPERATIONS * UNIT)
    middle = float(rises[-1])
    return problem.keep * rise + (1.0 - problem.keep) * middle + FEW_OPERATIONS * UNIT * (abs(rise) + abs(middle))


def sample_at(
    problem: Problem,
    x: np.ndarray,
    take: Take,
    size: int,
    points: Sequence[np.ndarray],
    exact: Sequence[Any],
    others: np.ndarray | None,
) -> Sample:
    """Return what the next batch says at x, and of g at the other points; what is known exactly is given."""
    f, g = problem[:2]
    f_value, f_gradient = exact[0] or value_and_gradient(f, [take(f, part) for part in pieces(size)], x)
    batches = [take(g, part) for part in pieces(size)] if g.endless else []
    g_value, g_gradient = exact[1] or value_and_gradient(g, batches, x)
    if others is None:
        others = np.array([value_and_gradient(g, batches, point)[0] for point in points])
    return Sample(f_value, f_gradient, g_value, g_gradient, others)


def pieces(size: int) -> list[int]:
    """Return about as many samples as equal numbers that are not too large."""
    count = -(-size // SAMPLES_PER_DRAW)
    return [size // count] * count


def value_and_gradient(objective: Any, batches: Sequence[Any], x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean over some batches of one size."""
    gradient, value = np.zeros_like(x), 0.0
    for batch in batches:
        value += float(accumulate(objective, batch, x, 1.0, x, 0.0, gradient)[0])
    return value / len(batches), gradient / len(batches)


def choices(problem: Problem, x: np.ndarray, f_gradient: np.ndarray, g_gradient: np.ndarray, falls: Any) -> list[Choice]:
    """Return the multipliers and points that are worth trying, given mean gradients and the mean g(y) − g(x) of each y."""
    point = int(np.argmin(falls)) if falls.size and falls.min() < 0.0 else -1
    offset = float(g_gradient @ x) + rise_at(problem, falls, point)
    _, found = cut_lmo(problem.domain, f_gradient, g_gradient, offset, np.empty_like(x))
    if not (math.isfinite(found) and found > 0.0):
        sizes = np.linalg.norm(f_gradient), np.linalg.norm(g_gradient)
        found = sizes[0] / sizes[1] if sizes[1] > 0.0 else 0.0
    tried = [Choice(0.0, -1)]
    if found > 0.0:
        tried += [Choice(float(found * share), where) for share in SHARES for where in sorted({point, -1})]
    return tried
