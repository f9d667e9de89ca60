"""Samples of streams, summed up block by block: what the active set makes a finite problem of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiebreak.engine.randomness import Keys, Moment, generator
from tiebreak.objectives import EndOfStream, Stream
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


class Gathering:
    """The levels of a problem that are streams, and the sums over what was drawn of them so far.

    Parameters
    ----------
    problem : Problem
    samples : int
        How many to draw of each level that is a stream; fewer where it ends before.
    levels : tuple of str
        The levels that count.
    """

    def __init__(self, problem: Problem, samples: int, levels: Sequence[str] = LEVELS) -> None:
        self._problem, self._samples = problem, samples
        self.sums = {name: Summation() for name in levels if getattr(problem, name).endless}
        self._ended = dict.fromkeys(self.sums, False)
        self._blocks = 0

    @property
    def drawn(self) -> np.ndarray:
        """Samples drawn so far, by level."""
        return np.array([self.sums[name].rows if name in self.sums else 0 for name in LEVELS], dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether there are enough of all levels, or no more."""
        return all(sums.rows >= self._samples or self._ended[name] for name, sums in self.sums.items())

    def settle(self) -> bool:
        """Make do with what there is; return False if a level has nothing."""
        self._ended = dict.fromkeys(self.sums, True)
        return all(sums.rows > 0 for sums in self.sums.values())

    @property
    def problem(self) -> Problem:
        """The problem of the means over what was drawn."""
        means: dict[str, Any] = {name: sums.mean() for name, sums in self.sums.items()}
        return self._problem._replace(**means)

    def draw(self, keys: Keys) -> None:
        """Draw one block of each stream of which more is wanted, and add it up."""
        low, high = rows_before(np.array([self._blocks, self._blocks + 1])).tolist()
        for name, sums in self.sums.items():
            size = min(high, self._samples) - low
            if size <= 0 or self._ended[name]:
                continue
            stream, moment = getattr(self._problem, name), Moment(getattr(keys, name), self._blocks, 0, 0)
            batch, count = stream.available(generator(moment), size)
            if count > 0 and isinstance(stream.value_and_grad, RowLoss):  # else it stands in for one
                A, b = stream.value_and_grad.rows(batch)
                sums.add(Dense(A), b)
            elif count == 0 and sums.rows == 0:
                raise EndOfStream(f"a stream of the {name} objective has no samples", stream)
            self._ended[name] = count < size
        self._blocks += 1

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return all of this as arrays."""
        kept = {"gathering.numbers": np.array([self._blocks, *self._ended.values()], dtype=np.int64)}
        for name, sums in self.sums.items():
            kept |= {f"gathering.{name}.{what}": array for what, array in sums.stored().items()}
        return kept

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        self._blocks, *ended = arrays["gathering.numbers"].tolist()
        self._ended = dict(zip(self._ended, map(bool, ended), strict=True))
        for name, sums in self.sums.items():
            start = f"gathering.{name}."
            sums.restore({key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)})
