"""Feeds: rows of a Dask cluster for the loops that draw them, fetched ahead in large blocks."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.callouts import handle_for
from tiebreak.engine.randomness import Key, Moment, uniform_indices
from tiebreak.objectives.matrices import CSR, WithOnes
from tiebreak.objectives.matrices.distant import (
    COUNT,
    FIELDS,
    FIRST,
    HIGH,
    LOW,
    PATH,
    SIZE,
    START,
    TRACKS,
    TURN,
    Distant,
    buffer_of,
    matrix_of,
)
from tiebreak.objectives.summed import MOST_SIDE, width_of_sums
from tiebreak.objectives.uneven import shared
from tiebreak.rows import LEAST_NUMBERS, rows_per_block
from tiebreak.rows.blocks import BLOCK_ROWS
from tiebreak.rows.partitions import Ahead, Partitions

MOST_ROWS, MOST_BYTES = 8192, 1 << 25  # of rows that are fetched together
FIRST_ROWS = 1024  # rows that are fetched at first; each block is twice as long as the one before
AHEAD = 2  # blocks that are on their way while one is in use
MOST_NUMBERS = 1 << 26  # numbers of the least partition
LEAST_ROWS = 64  # rows that a block may always have

Indices = Callable[[Moment, int, np.ndarray], None]  # sets an array to the rows of successive iterations


def fed(
    A: Any,
    targets: Any,
    sample_weight: Any,
    name: str,
    client: Any,
    coding: Callable[[Sequence[float]], tuple[float, float]] | None,
    ones: bool = False,
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return matrix, targets and weights of a linear model whose rows are a Dask array; few rows are taken into memory.

    Parameters
    ----------
    A, targets, sample_weight
        Dask arrays; targets and weights may be in memory.
    name : str
        What users call the targets.
    client : distributed.Client or None
        None for the current one.
    coding : callable or None
        How labels become targets.
    ones : bool
        Whether there is a column of ones behind those of A.
    """
    partitions = Partitions(
        A, targets, sample_weight, client=client, grain=partition_rows, name=name, coding=coding, ones=ones
    )
    if partitions.matrix.numbers < LEAST_NUMBERS:
        rows, *vectors = partitions.take(np.arange(partitions.shape[0]))
        return matrix_of(rows, ones), vectors[0], vectors[1]
    return Feed(partitions).seen()


def partition_rows(rows: int, columns: int, numbers: int) -> int:
    """Return how many rows partitions hold a multiple of: those of the largest blocks that passes have, within reason."""
    width = 3.0 * columns if columns > MOST_SIDE else max(3.0 * columns, width_of_sums(rows, columns, numbers))
    step = rows_per_block(rows, width * rows / max(numbers, 1))
    while step > BLOCK_ROWS and step * numbers / rows > MOST_NUMBERS:
        step //= 2
    return step


class Block(NamedTuple):
    """Rows of successive iterations, as they came from the workers."""

    first: int  # iteration
    batches: int  # how many iterations
    matrix: Any
    targets: np.ndarray
    weights: np.ndarray


class Track:
    """The draws of one level by batches of one size: the block in use, and those that are on their way."""

    def __init__(self, feed: Feed, whose: tuple[int, ...], number: int) -> None:
        self.feed, self.whose, self.number = feed, whose, number
        self.block: Block | None = None
        self._coming: deque[tuple[int, int, np.ndarray, Ahead]] = deque()
        self._rows = FIRST_ROWS

    def block_at(self, iteration: int) -> Block:
        """Return a block with the rows of an iteration, and begin to fetch those after it."""
        block = self.block
        if block is not None and block.first <= iteration < block.first + block.batches:
            return block
        if not self._coming or self._coming[0][0] != iteration:
            self._coming.clear()
            self._coming.append(self._begun(iteration))
        first, count, indices, ahead = self._coming.popleft()
        matrix, targets, weights = ahead.result()
        block = self.block = Block(first, count, matrix, targets, self.feed.weights_of(indices, weights))
        while len(self._coming) < AHEAD:
            self._coming.append(self._begun(sum(self._coming[-1][:2]) if self._coming else first + count))
        return block

    def _begun(self, first: int) -> tuple[int, int, np.ndarray, Ahead]:
        low, high, turn, path, size = self.whose
        count = max(1, min(self._rows, self.feed.most) // size)
        self._rows = min(2 * self._rows, self.feed.most)
        indices = np.empty(count * size, dtype=np.int64)
        self.feed.indices(Moment(Key(low, high), first, turn, path), size, indices)
        return first, count, indices, self.feed.partitions.ahead(indices)


class Feed:
    """Answers loops that draw rows which are not in their buffer.

    Parameters
    ----------
    partitions : Partitions
        Where the rows are.
    indices : callable, optional
        Which rows are drawn; all are equally likely if it is not given.
    shares : array, (n,), optional
        Numbers in proportion to which rows are drawn, by which their weights are divided.
    """

    def __init__(self, partitions: Partitions, indices: Indices | None = None, shares: np.ndarray | None = None) -> None:
        self.partitions, self.indices, self._shares = partitions, indices or self._evenly, shares
        (n, d), facts = partitions.shape, partitions.matrix
        per_row, longest = facts.numbers / n, max(facts.longest_row, 1)
        usual = min(MOST_ROWS, int(MOST_BYTES / max(12.0 * per_row, 1.0)))
        self.most = max(usual, 2 * math.isqrt(n), math.ceil(d / max(per_row, 1.0)), LEAST_ROWS)
        self._room = min(max(math.ceil(2.0 * self.most * per_row), LEAST_ROWS * longest), self.most * longest)
        rows = (TRACKS + 1) * (self.most + 1) + 1  # the last ones are for guests
        self._buffer = buffer_of(partitions, rows, (TRACKS + 1) * self._room)
        self._row_targets, self._row_weights = np.zeros(rows), np.zeros(rows)
        self._row_targets[0] = math.nan
        self._tracks: list[Track] = []  # the one that was used last is last
        self.lock = threading.RLock()  # of the buffer

    def seen(self) -> tuple[Distant, np.ndarray, np.ndarray]:
        """Return the matrix, targets and weights that loops see."""
        tracks, asked = np.zeros(TRACKS * FIELDS, dtype=np.int64), np.zeros(FIELDS, dtype=np.int64)
        guests = np.zeros(self.most, dtype=np.int64)
        buffer = WithOnes(self._buffer, self.partitions.shape[1] - 1) if self.partitions.ones else self._buffer
        distant = Distant(buffer, handle_for(self), tracks, asked, guests, self.partitions.shape[0])
        return distant, self._row_targets, self._row_weights

    def weights_of(self, indices: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the weights that rows have here."""
        return own if self._shares is None else shared(own, self._shares[indices])

    def __call__(self, asked: np.ndarray, known: np.ndarray, what: int, *_: int) -> float:
        """Answer a loop: fetch what it draws, or the rows of some numbers; or tell the numbers of what it draws."""
        with self.lock:
            return float((self._feed, self._invite, self._tell)[what](asked, known) or 0)

    def _tell(self, asked: np.ndarray, numbers: np.ndarray) -> None:
        """Set the numbers of the rows that an iteration draws."""
        low, high, turn, path, size, iteration = (int(asked[k]) for k in (LOW, HIGH, TURN, PATH, SIZE, FIRST))
        self.indices(Moment(Key(low, high), iteration, turn, path), size, numbers)

    def _invite(self, indices: np.ndarray, guests: np.ndarray) -> int:
        """Put rows of given numbers into the buffer, set their codes, and return how many had room."""
        matrix, targets, weights = self.partitions.take(indices.copy())
        block = Block(0, 1, matrix, targets, self.weights_of(indices, weights))
        start = TRACKS * (self.most + 1) + 1
        count = self._put(block, 0, 1, start, TRACKS * self._room)
        guests[:count] = self.partitions.shape[0] + start + np.arange(count)
        return count

    def _feed(self, asked: np.ndarray, tracks: np.ndarray) -> None:
        """Put the rows of an iteration, and of as many after it as there is room for, into the buffer."""
        *whose, iteration = (int(asked[k]) for k in (LOW, HIGH, TURN, PATH, SIZE, FIRST))
        size = whose[-1]
        track = self._track(tuple(whose))
        entry = tracks[track.number * FIELDS : (track.number + 1) * FIELDS]
        entry[COUNT] = 0
        block = track.block_at(iteration)
        start = track.number * (self.most + 1) + 1
        low = (iteration - block.first) * size
        high = self._put(block, low, size, start, track.number * self._room)
        entry[[LOW, HIGH, TURN, PATH, SIZE]] = whose
        entry[[FIRST, COUNT, START]] = iteration, (high - low) // size, start

    def _track(self, whose: tuple[int, ...]) -> Track:
        track = next((each for each in self._tracks if each.whose == whose), None)
        if track is None:
            number = len(self._tracks) if len(self._tracks) < TRACKS else self._tracks.pop(0).number
            track = Track(self, whose, number)
        else:
            self._tracks.remove(track)
        self._tracks.append(track)
        return track

    def _put(self, block: Block, low: int, size: int, start: int, place: int) -> int:
        """Copy rows of a block, from ``low`` on, into the buffer; return where in the block those end that had room."""
        high, buffer = block.targets.size, self._buffer
        if isinstance(buffer, CSR):
            starts = block.matrix.indptr
            high = int(np.searchsorted(starts, starts[low] + self._room, side="right")) - 1
            high = low + (min(high, block.targets.size) - low) // size * size
            if high == low:
                raise ValueError(
                    f"`batch_size` must be smaller for these rows on Dask, whose longest has"
                    f" {self.partitions.matrix.longest_row} numbers, got {size}"
                )
            numbers = slice(starts[low], starts[high])
            into = slice(place, place + starts[high] - starts[low])
            buffer.data[into], buffer.columns[into] = block.matrix.data[numbers], block.matrix.indices[numbers]
            buffer.starts[start : start + high - low + 1] = place + (starts[low : high + 1] - starts[low])
        else:
            buffer.array[start : start + high - low] = block.matrix[low:high]
        self._row_targets[start : start + high - low] = block.targets[low:high]
        self._row_weights[start : start + high - low] = block.weights[low:high]
        return high

    def _evenly(self, moment: Moment, size: int, out: np.ndarray) -> None:
        draw_batches(moment, self.partitions.shape[0], size, out)


@kernel
def draw_batches(moment, count, size, out):
    """Set an array to the rows of successive iterations, all equally likely."""
    for k in range(0, out.size, size):
        later = Moment(moment.key, moment.iteration + k // size, moment.turn, moment.path)
        uniform_indices(later, count, out[k : k + size])
