"""Samples of streams, block by block, summed up or kept: what a finite problem is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tiebreak.engine.digest import digest
from tiebreak.engine.randomness import Keys, Moment, generator
from tiebreak.objectives import EndOfStream, Stream
from tiebreak.objectives.adapters.keeping import stream_in, with_mean
from tiebreak.objectives.adapters.row_losses import RowLoss
from tiebreak.objectives.losses import Square
from tiebreak.objectives.matrices import Dense
from tiebreak.objectives.summed import Summation
from tiebreak.problem import Problem

FIRST_ROWS, ROWS_PER_DRAW = 256, 8192  # rows that are drawn together, at first and from some draws on: they double
LEVELS = ("upper", "lower")


def rows_before(t: np.ndarray) -> np.ndarray:
    """Return how many rows are drawn before draw number t of a stream that does not end."""
    doubled = int(math.log2(ROWS_PER_DRAW // FIRST_ROWS))  # draws that are each twice as long as the one before
    first = FIRST_ROWS * (2 ** np.minimum(t, doubled) - 1)
    return first + ROWS_PER_DRAW * np.maximum(t - doubled, 0)


def is_summable(objective: Any) -> bool:
    """Return whether an objective is a stream of rows of which squares can be summed up."""
    return (
        isinstance(objective, Stream)
        and isinstance(objective.value_and_grad, RowLoss)
        and isinstance(objective.value_and_grad.scalar, Square)
    )


class Sums(Summation):
    """The sums over rows of a stream of squares."""

    capacity = math.inf

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    def take(self, batch: Any, count: int) -> None:
        """Add up a batch."""
        if isinstance(self._stream.value_and_grad, RowLoss):  # else it stands in for one
            A, b = self._stream.value_and_grad.rows(batch)
            self.add(Dense(A), b)

    @property
    def digest(self) -> str:
        """A hash of all sums."""
        return digest(tuple(self.stored().values()))


class Gathering:
    """The levels of a problem that are streams, and what was drawn of them so far.

    Parameters
    ----------
    problem : Problem
    samples : int
        How many to draw of each level that is a stream; fewer where it ends before.
    levels : tuple of str
        The levels that count.
    collect : callable
        Makes of a stream what takes its batches: sums, or a ``Keeping``.

    Attributes
    ----------
    collected : dict
        What was made of the samples, by level.
    blocks : int
        Blocks drawn so far.
    exhausted : bool
        Whether a stream came to its end.
    """

    def __init__(
        self,
        problem: Problem,
        samples: int,
        levels: Sequence[str] = LEVELS,
        collect: Callable[[Stream], Any] = Sums,
    ) -> None:
        self._problem, self._samples = problem, samples
        self._streams = {name: stream_in(getattr(problem, name)) for name in levels if getattr(problem, name).endless}
        self.collected = {name: collect(stream) for name, stream in self._streams.items()}
        self._ended = dict.fromkeys(self._streams, False)
        self.blocks = 0
        self.exhausted = False

    @property
    def drawn(self) -> np.ndarray:
        """Samples drawn so far, by level."""
        return np.array([self.collected[name].rows if name in self.collected else 0 for name in LEVELS], dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether there are enough of all levels, or no more."""
        return all(part.rows >= self._wanted(name) or self._ended[name] for name, part in self.collected.items())

    def _wanted(self, name: str) -> float:
        """Return how many samples of a level there are to be: fewer where there is no room for more."""
        return min(self._samples, self.collected[name].capacity)

    def settle(self) -> bool:
        """Make do with what there is; return False if a level has nothing."""
        self._ended = dict.fromkeys(self._streams, True)
        return all(part.rows > 0 for part in self.collected.values())

    @property
    def problem(self) -> Problem:
        """The problem of the means over what was drawn."""
        means: dict[str, Any] = {
            name: with_mean(getattr(self._problem, name), part.mean()) for name, part in self.collected.items()
        }
        return self._problem._replace(**means)

    def draw(self, keys: Keys) -> None:
        """Draw one block of each stream of which more is wanted, and collect it."""
        low, high = rows_before(np.array([self.blocks, self.blocks + 1])).tolist()
        for name, stream in self._streams.items():
            size = int(min(high, self._wanted(name))) - low
            if size <= 0 or self._ended[name]:
                continue
            moment = Moment(getattr(keys, name), self.blocks, 0, 0)
            batch, count = stream.available(generator(moment), size)
            if count > 0:
                self.collected[name].take(batch, count)
            elif self.collected[name].rows == 0:
                raise EndOfStream(f"a stream of the {name} objective has no samples", stream)
            self._ended[name] = count < size
            self.exhausted |= count < size
        self.blocks += 1

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return all of this as arrays."""
        kept = {"gathering.numbers": np.array([self.blocks, *self._ended.values()], dtype=np.int64)}
        for name, sums in self.collected.items():
            kept |= {f"gathering.{name}.{what}": array for what, array in sums.stored().items()}
        return kept

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        self.blocks, *ended = arrays["gathering.numbers"].tolist()
        self._ended = dict(zip(self._ended, map(bool, ended), strict=True))
        for name, sums in self.collected.items():
            start = f"gathering.{name}."
            sums.restore({key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)})
