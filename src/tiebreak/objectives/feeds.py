"""Feeds: rows of a Dask cluster for the loops that draw them, fetched ahead in large blocks."""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.callouts import handle_for
from tiebreak.engine.randomness import Key, Moment, uniform_indices
from tiebreak.objectives.matrices import CSR, Dense, WithOnes
from tiebreak.objectives.matrices.distant import (
    COUNT,
    FIELDS,
    FIRST,
    HIGH,
    LAST,
    LOW,
    PATH,
    SIZE,
    START,
    TRACKS,
    TURN,
    Distant,
    matrix_of,
)
from tiebreak.objectives.summed import MOST_SIDE, width_of_sums
from tiebreak.objectives.uneven import shared
from tiebreak.rows import LEAST_NUMBERS, rows_per_block
from tiebreak.rows.blocks import BLOCK_ROWS
from tiebreak.rows.kept import Kept
from tiebreak.rows.partitions import Ahead, Partitions

MOST_ROWS, MOST_BYTES = 1 << 16, 1 << 26  # of rows that are fetched together
FIRST_ROWS = 1024  # rows that are fetched at first; each block is twice as long as the one before
DRAWS = 16  # times as many rows as are fetched together may be drawn together, where most of them are here
FEEDS = 3  # ways to draw the same rows at the same time
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


class Arrived(NamedTuple):
    """Rows as they came from the workers."""

    numbers: np.ndarray  # which they are, each once, in ascending order
    matrix: Any
    targets: np.ndarray
    weights: np.ndarray


class Block(NamedTuple):
    """Draws of successive iterations, and those of their rows that do not stay."""

    first: int  # iteration
    batches: int  # how many iterations
    drawn: np.ndarray  # the numbers of the rows
    guests: Arrived  # rows that found no room among those that stay


NOBODY = Arrived(np.zeros(0, dtype=np.int64), None, np.zeros(0), np.zeros(0))


class Track:
    """The draws of one level by batches of one size: the block in use, and those that are on their way."""

    def __init__(self, feed: Feed, whose: tuple[int, ...], number: int) -> None:
        self.feed, self.whose, self.number = feed, whose, number
        self.block: Block | None = None
        self._coming: deque[tuple[int, int, np.ndarray, Ahead | None]] = deque()
        self._rows = FIRST_ROWS

    def block_at(self, iteration: int) -> Block:
        """Return a block with the rows of an iteration, and begin to fetch those after it."""
        block = self.block
        if block is not None and block.first <= iteration < block.first + block.batches:
            return block
        if not self._coming or self._coming[0][0] != iteration:
            self._coming.clear()
            self._coming.append(self._begun(iteration))
        first, count, drawn, ahead = self._coming.popleft()
        guests = NOBODY if ahead is None else ahead.result()
        absent = self.feed.kept.absent(drawn)
        if not np.isin(absent, guests.numbers, assume_unique=True).all():  # they are on their way, or found no room
            absent = self.feed.kept.awaited(drawn)
            if not np.isin(absent, guests.numbers, assume_unique=True).all():
                guests = self.feed.settle(absent, *self.feed.partitions.take(absent))
        only = count == 1 and self.block is None  # a large batch, perhaps the only one
        self.block = block = Block(first, count, drawn, guests)
        while len(self._coming) < AHEAD and not only:
            self._coming.append(self._begun(sum(self._coming[-1][:2]) if self._coming else first + count))
        return block

    def _begun(self, first: int) -> tuple[int, int, np.ndarray, Ahead | None]:
        """Draw the rows of some iterations, and begin to fetch those that are neither here nor on their way."""
        feed, (low, high, turn, path, size) = self.feed, self.whose
        count = max(1, int(min(self._rows / max(1.0 - feed.kept.share, 1.0 / DRAWS), feed.most * DRAWS)) // size)
        self._rows = min(2 * self._rows, feed.most)
        drawn = np.empty(count * size, dtype=np.int64)
        feed.indices(Moment(Key(low, high), first, turn, path), size, drawn)
        numbers = feed.kept.unexpected(drawn, feed.longest)
        return first, count, drawn, feed.ahead(numbers) if numbers.size else None


class Feed:
    """Answers loops that draw rows of which they do not know where they are.

    Parameters
    ----------
    partitions : Partitions
        Where the rows are.
    indices : callable, optional
        Which rows are drawn; all are equally likely if it is not given.
    shares : array, (n,), optional
        Numbers in proportion to which rows are drawn, by which their weights are divided.
    kept : Kept, optional
        Rows that are here already, and room for others.
    """

    def __init__(
        self,
        partitions: Partitions,
        indices: Indices | None = None,
        shares: np.ndarray | None = None,
        kept: Kept | None = None,
    ) -> None:
        self.partitions, self.indices, self._shares = partitions, indices or self._evenly, shares
        (n, d), facts = partitions.shape, partitions.matrix
        per_row, self.longest = facts.numbers / n, max(facts.longest_row, 1)
        usual = min(MOST_ROWS, int(MOST_BYTES / max(12.0 * per_row, 1.0)))
        self.most = max(usual, 2 * math.isqrt(n), math.ceil(d / max(per_row, 1.0)), LEAST_ROWS)
        room = min(max(math.ceil(2.0 * self.most * per_row), LEAST_ROWS * self.longest), self.most * self.longest)
        region = None if kept is None else kept.lend()
        if kept is None or region is None:
            beyond = None if kept is None else 0  # what may stay here stays with those who came first
            kept = Kept(partitions, FEEDS, TRACKS + 1, self.most, room, beyond)
            region = kept.lend()
        self.kept, self._first_region = kept, region or 0
        self._row_weights = kept.weights if shares is None else np.zeros(kept.weights.size)
        self._codes = np.zeros(TRACKS * self.most * DRAWS, dtype=np.int64)
        self._tracks: list[Track] = []  # the one that was used last is last
        self.lock = threading.RLock()  # of the buffer

    def drawing(self, indices: Indices, shares: np.ndarray) -> Feed:
        """Return another one for the same rows, drawn in another way. What is kept here is kept for both."""
        return Feed(self.partitions, indices, shares, self.kept)

    def seen(self) -> tuple[Distant, np.ndarray, np.ndarray]:
        """Return the matrix, targets and weights that loops see."""
        tracks, asked = np.zeros(TRACKS * FIELDS, dtype=np.int64), np.zeros(FIELDS, dtype=np.int64)
        handle, guests = handle_for(self), np.zeros(self.most, dtype=np.int64)
        weakref.finalize(handle, self.kept.take_back, self._first_region)
        d, stored = self.partitions.shape[1] - self.partitions.ones, self.kept.matrix
        rows: Any = CSR._make((*stored, d)) if self.partitions.sparse else Dense(stored)
        buffer = WithOnes(rows, d) if self.partitions.ones else rows
        distant = Distant(buffer, handle, tracks, self._codes, asked, guests, self.partitions.shape[0])
        return distant, self.kept.targets, self._row_weights

    def ahead(self, numbers: np.ndarray) -> Ahead:
        """Begin to fetch rows, each of them once; those that draw in other ways know of it."""
        ahead = self.partitions.ahead(numbers, self.settle)
        self.kept.expect(numbers, ahead)
        return ahead

    def settle(self, numbers: np.ndarray, *rows: Any) -> Arrived:
        """Let rows that have come, each of them once, stay if there is room; return those that cannot."""
        self.kept.keep(numbers, *rows)
        left = self.kept.places(numbers) == 0
        if not left.any():
            return NOBODY
        return Arrived(numbers, *rows) if left.all() else Arrived(*(each[left] for each in (numbers, *rows)))

    def __call__(self, asked: np.ndarray, known: np.ndarray, what: int, *_: int) -> float:
        """Answer a loop: fetch what it draws, or the rows of some numbers; or tell the numbers of what it draws."""
        with self.lock:
            return float((self._feed, self._invite, self._tell)[what](asked, known) or 0)

    def _tell(self, asked: np.ndarray, numbers: np.ndarray) -> None:
        """Set the numbers of the rows that an iteration draws."""
        low, high, turn, path, size, iteration = (int(asked[k]) for k in (LOW, HIGH, TURN, PATH, SIZE, FIRST))
        self.indices(Moment(Key(low, high), iteration, turn, path), size, numbers)
        self._fetch(self.kept.awaited(numbers))

    def _invite(self, numbers: np.ndarray, codes: np.ndarray) -> int:
        """Have rows of given numbers in the buffer, set their codes, and return how many had room."""
        numbers = numbers.copy()
        absent = self.kept.awaited(numbers)
        guests = self.settle(absent, *self.partitions.take(absent)) if absent.size else NOBODY
        return self._place(numbers, guests, 1, TRACKS, codes)

    def _fetch(self, numbers: np.ndarray) -> None:
        """Fetch rows that will soon be asked for, if they can stay."""
        if self.kept.has_room(numbers.size, self.longest):
            pieces = (numbers[low : low + self.most] for low in range(0, numbers.size, self.most))
            for each in [self.ahead(piece) for piece in pieces]:
                each.result()

    def _feed(self, asked: np.ndarray, tracks: np.ndarray) -> None:
        """Have the rows of an iteration, and of as many after it as there is room for, in the buffer."""
        *whose, iteration = (int(asked[k]) for k in (LOW, HIGH, TURN, PATH, SIZE, FIRST))
        size = whose[-1]
        track = self._track(tuple(whose), iteration, tracks)
        entry = tracks[track.number * FIELDS : (track.number + 1) * FIELDS]
        entry[COUNT] = 0
        block, room = track.block_at(iteration), self.most * DRAWS
        start = track.number * room
        drawn = block.drawn[(iteration - block.first) * size :]
        count = self._place(drawn, block.guests, size, track.number, self._codes[start : start + room])
        entry[[LOW, HIGH, TURN, PATH, SIZE]] = whose
        entry[[FIRST, COUNT, START]] = iteration, count // size, start

    def _track(self, whose: tuple[int, ...], iteration: int, tracks: np.ndarray) -> Track:
        """Return the track of some draws: if it is new, in place of one that the same draw of a sum has not just used."""
        track = next((each for each in self._tracks if each.whose == whose), None)
        if track is None:
            number = len(self._tracks)
            if number == TRACKS:
                last = tracks.reshape(TRACKS, FIELDS)[:, LAST]
                idle = [each for each in self._tracks if each.whose[:3] != whose[:3] or last[each.number] != iteration]
                if not idle:
                    raise ValueError(
                        f"a sum must not have the same objective on Dask as more than {TRACKS} of its terms: add their"
                        " factors instead"
                    )
                self._tracks.remove(idle[0])
                number = idle[0].number
            track = Track(self, whose, number)
        else:
            self._tracks.remove(track)
        self._tracks.append(track)
        return track

    def _place(self, drawn: np.ndarray, guests: Arrived, size: int, region: int, codes: np.ndarray) -> int:
        """Set the codes of rows, whole batches of them, as many as there is room for, and return how many those are."""
        places, count = self.kept.places(drawn).astype(np.int64), drawn.size
        absent = np.flatnonzero(places == 0)
        if absent.size:
            numbers, firsts, which = np.unique(drawn[absent], return_index=True, return_inverse=True)
            order = np.argsort(firsts)  # by the batch that needs them first
            ranks = np.argsort(order)
            wanted = np.searchsorted(guests.numbers, numbers[order])
            first, fit = self.kept.lay(self._first_region + region, wanted, *guests[1:])
            if fit < numbers.size:
                count = int(absent[firsts[order[fit]]]) // size * size
            places[absent] = first + ranks[which]
        if count == 0:
            raise ValueError(
                f"`batch_size` must be smaller for these rows on Dask, whose longest has {self.longest} numbers, got {size}"
            )
        places = places[:count]
        if self._shares is not None:
            self._row_weights[places] = shared(self.kept.weights[places], self._shares[drawn[:count]])
        codes[:count] = self.partitions.shape[0] + places
        return count

    def _evenly(self, moment: Moment, size: int, out: np.ndarray) -> None:
        draw_batches(moment, self.partitions.shape[0], size, out)


@kernel
def draw_batches(moment, count, size, out):
    """Set an array to the rows of successive iterations, all equally likely."""
    for k in range(0, out.size, size):
        later = Moment(moment.key, moment.iteration + k // size, moment.turn, moment.path)
        uniform_indices(later, count, out[k : k + size])
