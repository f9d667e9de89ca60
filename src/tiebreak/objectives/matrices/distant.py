"""Matrices whose rows are elsewhere, in partitions of a Dask cluster: loops see those that they have drawn.

A loop draws rows from a *buffer* in memory, where rows that have come stay, as many as there is room for. The rows of an
iteration are a function of the seed alone, so those of many iterations are fetched together, and ahead. A *track* tells
where they are: the draws of one level by batches of one size, for successive iterations. If the rows of an iteration are not
there, the loop calls Python, which fills a track. Rows that are asked for by their numbers are *guests*.

The code of a row in the buffer is its place there plus the number of all rows, so that it is not taken for the number of a
row. The first place holds a row without a target: whatever is made of it is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.callouts import answering, call_out
from tiebreak.engine.vectors import fill
from tiebreak.objectives.matrices.csr import CSR
from tiebreak.objectives.matrices.dense import Dense
from tiebreak.objectives.matrices.ones import WithOnes
from tiebreak.objectives.matrices.parts import Rows
from tiebreak.objectives.matrices.rows import (
    add_row,
    add_row_and_size,
    draw_rows,
    in_memory,
    located,
    row_dot,
    row_dot_and_size,
    row_dots,
    row_square,
)
from tiebreak.rows import one_thread, rows_per_block
from tiebreak.rows.maps import unlocked
from tiebreak.rows.partitions import Partitions

Sums = TypeVar("Sums")

TRACKS = 4  # draws that have room at the same time
# Of a track: whose draws, which iterations, the first code, and the iteration that was drawn last.
LOW, HIGH, TURN, PATH, SIZE, FIRST, COUNT, START, LAST, FIELDS = range(10)


class Distant(NamedTuple):
    """A matrix whose rows are elsewhere, with those of the next iterations in memory."""

    buffer: Dense | CSR | WithOnes  # rows that were fetched
    handle: np.ndarray  # by which Python knows the matrix
    tracks: np.ndarray  # (TRACKS · FIELDS,): which draws have codes
    codes: np.ndarray  # of the rows of these draws
    asked: np.ndarray  # room for what Python is asked
    guests: np.ndarray  # codes of the rows that were asked for by their numbers
    n_rows: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.buffer.shape[1]

    @property
    def feed(self) -> Any:
        """Who answers when rows are missing."""
        return answering(self.handle)

    @property
    def partitions(self) -> Partitions:
        """Where the rows are."""
        return self.feed.partitions

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        return self.partitions.matrix.numbers

    def __str__(self) -> str:
        return f"{self.partitions!r}"

    def __reduce__(self) -> Any:
        raise TypeError(
            "rows that stay on Dask workers cannot be copied or pickled: make the objective anew where it is used"
        )


class DistantRows:
    """All rows of data that are elsewhere: the same questions as those of :class:`Rows`."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions, facts = partitions, partitions.matrix
        self.shape, self.numbers, self.longest_row = partitions.shape, facts.numbers, facts.longest_row
        self.largest = max(facts.largest, -facts.least, 0.0)

    def passes(self, run: Callable[..., Sums], *arguments: Any, width: float) -> Iterator[Sums]:
        """Yield ``run(rows, low, high, *arguments)`` for each block of rows, in their order, computed where they are."""
        step = rows_per_block(self.shape[0], self.worth(width))
        return self._partitions.passes(_run_blocks, run, step, self._partitions.ones, arguments, step=step, width=width)

    def fold(
        self, add: Callable[[Any, Sums], Any], total: Any, run: Callable[..., Sums], *arguments: Any, width: float
    ) -> Any:
        """Return a total to which what :meth:`passes` would yield was added, block after block, where the rows are."""
        step = rows_per_block(self.shape[0], self.worth(width))
        own = self._partitions
        return own.fold(add, total, _run_blocks, run, step, own.ones, arguments, step=step, width=width)

    worth: Any = Rows.worth
    blocks: Any = Rows.blocks


def matrix_of(rows: Any, ones: bool) -> Dense | CSR | WithOnes:
    """Return an array, or a sparse one of SciPy, as kernels see it, with a column of ones if there is one."""
    matrix: Dense | CSR
    if isinstance(rows, np.ndarray):
        matrix = Dense(unlocked(rows))
    else:
        matrix = CSR(unlocked(rows.data), unlocked(rows.indices), unlocked(rows.indptr), rows.shape[1])
    return WithOnes(matrix, rows.shape[1]) if ones else matrix


def _run_blocks(
    A: Any, b: np.ndarray, w: np.ndarray, first: int, run: Callable[..., Any], step: int, ones: bool, arguments: Any
) -> list[Any]:
    rows, arguments = Rows(matrix_of(A, ones), unlocked(b), unlocked(w)), _unlocked_all(arguments)
    with one_thread():
        return [run(rows, low, min(low + step, b.size), *arguments) for low in range(0, b.size, step)]


def _unlocked_all(value: Any) -> Any:
    """Return a value whose arrays all look writeable: what was sent is not, and kernels would be compiled once more."""
    if isinstance(value, np.ndarray):
        return unlocked(value)
    if not isinstance(value, tuple):
        return value
    parts = [_unlocked_all(part) for part in value]
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)


@kernel
def found(tracks, moment, size):
    """Return where the codes of the rows of a moment begin, or −1; note that they are in use."""
    for k in range(0, tracks.size, FIELDS):
        if (
            tracks[k + LOW] == moment.key.low
            and tracks[k + HIGH] == moment.key.high
            and tracks[k + TURN] == moment.turn
            and tracks[k + PATH] == moment.path
            and tracks[k + SIZE] == size
        ):
            ahead = moment.iteration - tracks[k + FIRST]
            if 0 <= ahead < tracks[k + COUNT]:
                tracks[k + LAST] = moment.iteration
                return tracks[k + START] + ahead * size
    return -1


@draw_rows.register(Distant)
def draw_distant_rows(matrix, moment, batch):
    asked = matrix.asked
    if batch.size == 0:  # a term of a sum may have none of its samples
        return batch
    asked[LOW], asked[HIGH], asked[TURN], asked[PATH] = moment.key.low, moment.key.high, moment.turn, moment.path
    asked[SIZE], asked[FIRST] = batch.size, moment.iteration
    if batch.size > matrix.guests.size:  # too many for the buffer: their numbers
        if not math.isfinite(call_out(matrix.handle[0], 2, 0, 0, 0, asked, batch)):
            fill(batch, matrix.n_rows)
        return batch
    place = found(matrix.tracks, moment, batch.size)
    if place < 0:
        call_out(matrix.handle[0], 0, 0, 0, 0, asked, matrix.tracks)
        place = found(matrix.tracks, moment, batch.size)
    for k in range(batch.size):
        batch[k] = matrix.codes[place + k] if place >= 0 else matrix.n_rows
    return batch


@located.register(Distant)
def located_distant(matrix, batch):
    if batch.size == 0 or batch[0] >= matrix.n_rows:
        return batch
    some = batch[: matrix.guests.size]
    count = call_out(matrix.handle[0], 1, 0, 0, 0, some, matrix.guests)
    if not math.isfinite(count):
        fill(matrix.guests, matrix.n_rows)
        return matrix.guests[: some.size]
    return matrix.guests[: int(count)]


@in_memory.register(Distant)
def distant_in_memory(matrix):
    return matrix.buffer, matrix.n_rows


@row_dots.register(Distant)
def row_dots_distant(matrix, i, x, y):
    return row_dots(matrix.buffer, i, x, y)


@row_dot.register(Distant)
def row_dot_distant(matrix, i, x):
    return row_dot(matrix.buffer, i, x)


@row_square.register(Distant)
def row_square_distant(matrix, i, unit):
    return row_square(matrix.buffer, i, unit)


@add_row.register(Distant)
def add_row_distant(matrix, i, weight, out):
    add_row(matrix.buffer, i, weight, out)


@row_dot_and_size.register(Distant)
def row_dot_and_size_distant(matrix, i, x, y):
    return row_dot_and_size(matrix.buffer, i, x, y)


@add_row_and_size.register(Distant)
def add_row_and_size_distant(matrix, i, weight, size, out):
    add_row_and_size(matrix.buffer, i, weight, size, out)
