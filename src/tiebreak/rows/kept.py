"""Rows that have come from workers: kept here, as many as a share of memory holds, so that they do not come again."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np

from tiebreak.rows.errors import RowsError
from tiebreak.rows.partitions import Ahead, Partitions

SHARE = 0.25  # share of the memory that is available here which rows may take
KEY = "tiebreak.cache"  # what Dask's configuration calls the number of bytes
MOST_NUMBERS = 2**31 - 1  # numbers of a sparse matrix whose places are 32 bits wide


class Kept:
    """Room for rows in one array, or in one sparse matrix: for those that stay, and for guests.

    Place 0 is an empty row. Rows that stay follow, in the order in which they came: samples are drawn at random, so those
    that came first are as good as any, and none is dropped for another. Behind them are regions for rows that found no room.
    Memory that nothing was written to is not taken.

    Parameters
    ----------
    partitions : Partitions
        Where the rows are.
    borrowers, regions, rows, room : int
        Who may have regions of their own at the same time, how many each of them has, how many rows a region has room for,
        and for how many numbers, if rows are sparse.
    budget : int, optional
        Bytes that the rows that stay may take; :func:`configured` if it is not given.

    Attributes
    ----------
    matrix : array, or (data, columns, starts)
        All places; the same arrays for as long as this lives.
    targets, weights : array
        Those of all places.
    capacity, count : int
        How many rows may stay, and how many do.
    """

    def __init__(
        self, partitions: Partitions, borrowers: int, regions: int, rows: int, room: int, budget: int | None = None
    ) -> None:
        (n, d), numbers, self.sparse = partitions.shape, partitions.matrix.numbers, partitions.sparse
        if partitions.ones:  # which are not stored
            d, numbers = d - 1, numbers - n
        self._rows, self._room, self._lock = rows, room, threading.Lock()
        self._lendable, total = list(range(0, borrowers * regions, regions)), borrowers * regions
        whole, kind = np.int32 if n <= MOST_NUMBERS else np.int64, partitions.dtype
        budget = (configured() if budget is None else budget) - n * np.dtype(whole).itemsize
        per_row = numbers / n * (kind.itemsize + 4 * self.sparse) + 16 + 4 * self.sparse
        self.capacity = min(n, max(int(budget / per_row), 0))
        self._most_numbers = 0
        if self.sparse:
            fair = numbers if self.capacity == n else int(self.capacity * (numbers / n))
            self._most_numbers = max(min(fair, MOST_NUMBERS - total * room), 0)
        self._holds_all = self.capacity == n and (not self.sparse or self._most_numbers == numbers)
        try:
            self._allocate(d, kind, total)
        except MemoryError:  # the process may have less than what is free
            self.capacity, self._most_numbers, self._holds_all = 0, 0, False
            self._allocate(d, kind, total)
        self._places = np.zeros(n, dtype=whole)  # of each row: 0 if it is not here
        self.count = self._numbers = 0
        self._coming: dict[int, tuple[np.ndarray, Ahead]] = {}  # rows that somebody has asked for

    def _allocate(self, d: int, kind: Any, regions: int) -> None:
        places = self._place(regions)
        self.matrix: Any
        if self.sparse:
            numbers = self._most_numbers + regions * self._room
            whole = np.int32 if max(numbers, d) <= MOST_NUMBERS else np.int64
            self.matrix = np.zeros(numbers, kind), np.zeros(numbers, whole), np.zeros(places + 1, whole)
        else:
            self.matrix = np.zeros((places, d), kind)
        self.targets, self.weights = np.zeros(places), np.zeros(places)
        self.targets[0] = np.nan  # whatever is made of the empty row is not finite

    def _place(self, region: int) -> int:
        """Return the first place of a region; a place before it ends what is there."""
        return 2 + self.capacity + region * (self._rows + 1)

    def lend(self) -> int | None:
        """Return the first of the regions of a borrower, or None if there are too many borrowers."""
        try:
            return self._lendable.pop()
        except IndexError:
            return None

    def take_back(self, region: int) -> None:
        """Give regions to others."""
        self._lendable.append(region)

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Return the places of rows that stay, and 0 for others."""
        return self._places[numbers]

    def absent(self, numbers: np.ndarray) -> np.ndarray:
        """Return those rows that are not here, each once, in ascending order."""
        return np.unique(numbers[self._places[numbers] == 0])

    def expect(self, numbers: np.ndarray, ahead: Ahead) -> None:
        """Know of rows, each once, that are on their way."""
        self._coming[id(ahead)] = numbers, ahead
        ahead.when_done(lambda _: self._coming.pop(id(ahead), None))

    def unexpected(self, numbers: np.ndarray, longest: int) -> np.ndarray:
        """Return those rows that are neither here nor on their way, if all that are on their way can stay."""
        coming = [each for each, _ in list(self._coming.values())]  # first: what comes after this is not absent then
        absent = self.absent(numbers)
        if not coming or not self.has_room(sum(each.size for each in coming), longest):
            return absent
        return np.setdiff1d(absent, np.concatenate(coming))

    def awaited(self, numbers: np.ndarray) -> np.ndarray:
        """Return those rows that are not here, after those that are on their way have come."""
        for coming, ahead in list(self._coming.values()):
            if np.isin(self.absent(numbers), coming, assume_unique=True).any():
                with suppress(RowsError):  # whoever has asked for them is told
                    ahead.result()
        return self.absent(numbers)

    @property
    def share(self) -> float:
        """The share of all rows that is here."""
        return self.count / self._places.size

    def has_room(self, rows: int, longest: int) -> bool:
        """Return whether that many rows could stay, however long they are."""
        enough = not self.sparse or self._numbers + rows * longest <= self._most_numbers
        return self._holds_all or (self.count + rows <= self.capacity and enough)

    def keep(self, numbers: np.ndarray, matrix: Any, targets: np.ndarray, weights: np.ndarray) -> None:
        """Let rows stay, as many of them as there is room for.

        Parameters
        ----------
        numbers : array
            Which rows they are, each once.
        matrix, targets, weights
            What they hold.
        """
        with self._lock:
            new = self._places[numbers] == 0  # others may have brought them meanwhile
            if not new.all():
                numbers, matrix, targets, weights = numbers[new], matrix[new], targets[new], weights[new]
            first, size = 1 + self.count, min(numbers.size, self.capacity - self.count)
            if self.sparse:
                ends = matrix.indptr
                size = min(size, int(np.searchsorted(ends, self._most_numbers - self._numbers, side="right")) - 1)
            if size == 0:
                return
            self._write(first, self._numbers, matrix[:size], targets[:size], weights[:size])
            self._places[numbers[:size]] = np.arange(first, first + size)
            self.count += size
            self._numbers += int(matrix.indptr[size]) if self.sparse else 0

    def lay(self, region: int, which: np.ndarray, matrix: Any, targets: np.ndarray, weights: np.ndarray) -> tuple[int, int]:
        """Put some of the given rows into a region; return the place of the first, and how many had room."""
        place, at, which = self._place(region), self._most_numbers + region * self._room, which[: self._rows]
        if self.sparse:
            ends = np.cumsum(np.diff(matrix.indptr)[which])
            which = which[: int(np.searchsorted(ends, self._room, side="right"))]
        self._write(place, at, matrix[which], targets[which], weights[which])
        return place, which.size

    def _write(self, place: int, at: int, matrix: Any, targets: np.ndarray, weights: np.ndarray) -> None:
        into = slice(place, place + targets.size)
        if self.sparse:
            data, columns, starts = self.matrix
            own = slice(at, at + matrix.data.size)
            data[own], columns[own] = matrix.data, matrix.indices
            starts[place : place + targets.size + 1] = at + matrix.indptr
        else:
            self.matrix[into] = matrix
        self.targets[into], self.weights[into] = targets, weights


def configured() -> int:
    """Return how many bytes of rows may stay here: what Dask's configuration says, or a quarter of what is available."""
    import dask

    given = dask.config.get(KEY, None)
    if given is None:
        return int(SHARE * available())
    try:
        found = dask.utils.parse_bytes(given)
        if found < 0:
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f"`{KEY}` of Dask's configuration must be a size such as '2 GiB', or 0, got {given!r}") from None
    return found


def available() -> int:
    """Return how many bytes of memory this process could still take, by the system and by its container."""
    import psutil
    from distributed.system import MEMORY_LIMIT

    return max(0, min(psutil.virtual_memory().available, MEMORY_LIMIT - psutil.Process().memory_info().rss))
