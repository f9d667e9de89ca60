"""Rows on the workers of a Dask cluster, in partitions that stay where they are."""

from __future__ import annotations

import hashlib
import math
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tiebreak.engine import checks
from tiebreak.rows import pieces
from tiebreak.rows.blocks import BLOCK_ROWS
from tiebreak.rows.cluster import Cluster, bytes_of
from tiebreak.rows.pieces import Facts, Unfit, merged

AHEAD = 2  # takes at the same time in the background
LITTLE_BYTES = 1 << 26  # results of a pass that are all fetched, and added here
MOST_BYTES = 1 << 28  # results of a pass that are fetched together
FEW = 16  # partitions whose results are fetched together as long as their size is not known
VECTOR_CHUNK = 1 << 20  # entries of the chunks that targets and weights in memory are sent in
LEAST_WEIGHT = 1e-140  # smallest weight, relative to the largest, that has enough digits left in a mean


def is_dask(value: Any) -> bool:
    """Return whether a value is a Dask array, dataframe or series; Dask is not imported for it."""
    return type(value).__module__.startswith(("dask.array", "dask.dataframe"))


def as_array(value: Any) -> Any:
    """Return a Dask dataframe or series as an array, of which nothing is computed; anything else as it is."""
    return value.to_dask_array() if type(value).__module__.startswith("dask.dataframe") else value


class Partitions:
    """Rows of a matrix, targets and weights that live on Dask workers.

    They are loaded by the workers, looked at and joined to partitions that hold whole summation blocks, once. From then on
    functions go to the rows, and only sampled rows and sums travel. A partition that is lost with its worker is computed
    again from the arrays' own tasks.

    Parameters
    ----------
    A : dask.array or dask.dataframe, (n, d)
        Chunks may be arrays or SciPy sparse matrices, and of unknown size.
    b : dask.array, series or array, (n,)
        Targets.
    sample_weight : dask.array or array, (n,), optional
        Non-negative weights, not all zero; only their ratios matter.
    client : distributed.Client, optional
        The current one if it is not given.
    grain : int, or callable of (rows, columns, numbers)
        Rows of which each partition but the last holds a multiple.
    timeout : float, optional
        Seconds without any task finishing after which a :class:`~tiebreak.rows.errors.RowsError` is raised. If it is not
        given, ``tiebreak.timeout`` of Dask's configuration, or else 120.
    name : str
        What users call the targets.
    coding : callable, optional
        Given the distinct targets, the first six, it returns a factor and a shift of all targets, or raises.
    ones : bool
        Whether the rows count as having a 1 behind their numbers, which is not stored.

    Attributes
    ----------
    matrix, targets, weights : Facts
        What all rows hold. ``weights`` is None if none were given.
    edges : list of int
        Where partitions begin, and where the last one ends.
    """

    def __init__(
        self,
        A: Any,
        b: Any,
        sample_weight: Any = None,
        *,
        client: Any = None,
        grain: int | Callable[[int, int, int], int] = 4096,
        timeout: float | None = None,
        name: str = "b",
        coding: Callable[[Sequence[float]], tuple[float, float]] | None = None,
        ones: bool = False,
    ) -> None:
        A, b, sample_weight = as_array(A), as_array(b), as_array(sample_weight)
        self.cluster = Cluster(client, timeout)
        self._pool: ThreadPoolExecutor | None = None
        self._fingerprint: str | None = None
        self._sizes: dict[Any, float] = {}  # bytes that passes return for a partition, by function
        kind = _kind(A)
        given = {"A": A, name: b} if sample_weight is None else {"A": A, name: b, "sample_weight": sample_weight}
        chunks = self._loaded(given, kind)
        sizes, facts = self._examined(chunks)
        self.ones = ones
        self.matrix = facts["A"].with_ones() if ones else facts["A"]
        self.targets, self.weights = facts[name], facts.get("sample_weight")
        self.shape, self.dtype, self.sparse = (self.matrix.rows, self.matrix.columns), kind, self.matrix.sparse
        for each, found in facts.items():
            if found.rows != self.shape[0]:
                raise ValueError(
                    f"`{each}` must have one entry for each of the {self.shape[0]} rows of `A`, got {found.rows}"
                )
        mean = 0.0 if self.weights is None else mean_weight(self.weights)
        factor, shift = (1.0, 0.0) if coding is None else coding(self.targets.distinct)
        if callable(grain):
            grain = grain(*self.shape, self.matrix.numbers)
        self.grain = checks.whole(grain, "grain")
        self.edges = partition_edges(sizes["A"], self.grain)
        self._futures = self._joined(list(chunks.values()), list(sizes.values()), (factor, shift, mean))

    def passes(
        self, function: Callable[..., list[Any]], *arguments: Any, step: int = 1, width: float = 0.0
    ) -> Iterator[Any]:
        """Call a function on each partition, where it is, and yield all results in the order of rows.

        Where results are large, only some of them are there at a time.

        Parameters
        ----------
        function : callable
            ``function(A, b, w, first_row, *arguments)`` returns a list, one result per summation block. It is imported by
            the workers, has no effect but its result, and uses one thread.
        arguments
            They are sent once.
        step : int
            Rows of a summation block. Where partitions do not hold whole ones, rows move for this pass.
        width : float
            About how many numbers the result of a block has; known after the first pass with the same functions.
        """
        kind = _kind_of(function, arguments)
        for futures, what in self._groups(function, arguments, step, self._size(kind, step, width)):
            found = self.cluster.collect(futures, what)
            self._sizes[kind] = bytes_of(found) / len(found)
            for part in found:
                yield from part

    def fold(
        self,
        add: Callable[[Any, Any], Any],
        total: Any,
        function: Callable[..., list[Any]],
        *arguments: Any,
        step: int = 1,
        width: float = 0.0,
    ) -> Any:
        """Add up what :meth:`passes` would yield, one after the other: on the workers, if it is much.

        Parameters
        ----------
        add : callable
            ``add(total, result)`` returns the next total, which may be the same object, changed.
        total
            What to begin with.
        function, arguments, step, width
            As in :meth:`passes`.
        """
        kind, count = _kind_of(function, arguments), len(self._futures)
        size = self._size(kind, step, width)
        if count == 1 or size * count <= LITTLE_BYTES:
            for result in self.passes(function, *arguments, step=step, width=width):
                total = add(total, result)
            return total
        total = self.cluster.share(total)
        waiting: tuple[Any, Any] | None = None
        for futures, what in self._groups(function, arguments, step, size):
            for future in futures:  # each total is moved to where the next results are
                total = self.cluster.start("tiebreak-add", pieces.folded, [future], [total], [add])[0]
            if waiting is not None:
                self.cluster.finish(*waiting)
            waiting = futures, what
        assert waiting is not None
        self.cluster.finish(*waiting)
        return self.cluster.collect([total], lambda _: "the sum over all partitions")[0]

    def _size(self, kind: Any, step: int, width: float) -> float:
        """Return how many bytes a pass returns for a partition, or about how many."""
        return self._sizes.get(kind, 8.0 * width * self.shape[0] / (min(step, self.shape[0]) * len(self._futures)))

    def _groups(
        self, function: Callable[..., list[Any]], arguments: tuple[Any, ...], step: int, size: float
    ) -> Iterator[tuple[list[Any], Callable[[int], str]]]:
        """Yield futures of a pass, some partitions at a time, and what they are called; the next ones run meanwhile."""
        parts: list[Any] = self._futures
        edges = self.edges
        if step > self.grain and len(parts) > 1:
            edges = [*range(0, self.shape[0], step), self.shape[0]]
            parts = self._regrouped([high - low for low, high in pairwise(self.edges)], edges)
        shared = self.cluster.share((function, arguments))
        together = max(int(MOST_BYTES / max(size, 1.0)), 1)
        if _kind_of(function, arguments) not in self._sizes:
            together = min(together, FEW)
        lows = list(range(0, len(parts), together))
        started = [self.cluster.start("tiebreak-pass", pieces.run, parts[:together], shared=shared)]
        for low in lows:
            after = parts[low + together : low + 2 * together]
            if after:
                started.append(self.cluster.start("tiebreak-pass", pieces.run, after, shared=shared))
            yield started.pop(0), partial(_name, edges, low)

    def fingerprint(self) -> str:
        """Return a hash of all rows, which does not depend on partitions; it takes a pass over them, once."""
        if self._fingerprint is None:
            hasher = hashlib.blake2b(f"{self.shape} {self.dtype} {self.sparse}".encode(), digest_size=12)
            for part in self.passes(pieces.hashes, BLOCK_ROWS, step=BLOCK_ROWS):
                hasher.update(part)
            self._fingerprint = hasher.hexdigest()
        return self._fingerprint

    def _regrouped(self, sizes: list[int], edges: list[int]) -> list[Any]:
        """Return futures of rows between other edges, made of partitions."""
        groups = [covering(sizes, low, high) for low, high in pairwise(edges)]
        columns = zip(*(place for spans in groups for place in spans), strict=True)
        chunks, lows, highs = map(list, columns)
        cuts = iter(self.cluster.start("tiebreak-cut", pieces.between, [self._futures[k] for k in chunks], lows, highs))
        return self.cluster.start("tiebreak-regroup", pieces.rejoin, [[next(cuts) for _ in spans] for spans in groups])

    def take(self, indices: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return rows, in any order and with repetitions, as one block in memory: matrix, targets and weights."""
        return self._take(indices, waited=True)

    def ahead(self, indices: np.ndarray, then: Callable[..., Any] = lambda _, *rows: rows) -> Ahead:
        """Begin to take rows, in the background; ``then`` says what becomes of their numbers and of what they hold."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(AHEAD, thread_name_prefix="tiebreak-take")
        return Ahead(self.cluster, self._pool.submit(lambda: then(indices, *self._take(indices, False))))

    def _take(self, indices: np.ndarray, waited: bool) -> tuple[Any, np.ndarray, np.ndarray]:
        owners = np.searchsorted(self.edges, indices, side="right") - 1
        order = np.argsort(owners, kind="stable")
        touched, starts = np.unique(owners[order], return_index=True)
        groups = np.split(indices[order], starts[1:])
        futures = self.cluster.start(
            "tiebreak-take",
            pieces.pick,
            [self._futures[k] for k in touched],
            [group - self.edges[k] for group, k in zip(groups, touched, strict=True)],
        )
        found = self.cluster.collect(futures, lambda k: self.what(touched[k]), waited)
        return pieces.placed(found, order)

    def what(self, k: int) -> str:
        """Return what partition k is called in errors."""
        return _name(self.edges, 0, k)

    @property
    def bytes_moved(self) -> int:
        """Bytes of arguments and results so far."""
        return self.cluster.bytes_sent + self.cluster.bytes_received

    @property
    def seconds_waited(self) -> float:
        """Seconds in which the caller waited for rows and sums."""
        return self.cluster.seconds_waited

    def __repr__(self) -> str:
        count = len(self.edges) - 1
        return f"{self.shape[0]} × {self.shape[1]}{' sparse' * self.sparse} in {count} partition{'s' * (count != 1)}"

    # How they are made

    def _loaded(self, given: dict[str, Any], kind: Any) -> dict[str, list[Any]]:
        """Return futures of the chunks of all arrays, in the order of rows; what several are made of is computed once."""
        import dask

        own = all(map(is_dask, given.values()))
        tasks, token = {}, uuid.uuid4().hex
        for name, value in given.items():
            grid = _array(name, value).to_delayed(optimize_graph=False)  # which would fuse what they share with each
            load, rows = dask.delayed(pieces.load_vector), [(each, name) for each in grid.reshape(-1)]
            if name == "A":
                load, rows = dask.delayed(pieces.load_matrix), [(list(row), kind == np.float32) for row in grid]
            keys = (f"tiebreak-load-{token}-{name}-{k}" for k in range(len(rows)))
            tasks[name] = [load(*row, dask_key_name=key) for row, key in zip(rows, keys, strict=True)]
        futures = iter(self.cluster.compute([task for each in tasks.values() for task in each], own))
        return {name: [next(futures) for _ in each] for name, each in tasks.items()}

    def _examined(self, chunks: dict[str, list[Any]]) -> tuple[dict[str, list[int]], dict[str, Facts]]:
        """Return how many rows chunks have, and what is known of all rows; raise if they are no data."""
        names = [name for name, futures in chunks.items() for _ in futures]
        futures = [future for each in chunks.values() for future in each]
        summed = [name == "sample_weight" for name in names]
        found = self.cluster.collect(
            self.cluster.start("tiebreak-examine", pieces.examine, futures, summed), lambda k: f"a chunk of `{names[k]}`"
        )
        for each in found:
            if isinstance(each, Unfit):
                raise ValueError(each.reason)
        sizes, facts = {}, {}
        for name in chunks:
            own = [each for each, owner in zip(found, names, strict=True) if owner == name]
            sizes[name], facts[name] = [each.rows for each in own], merged(own)
            _check(name, facts[name], {each.columns for each in own}, {each.sparse for each in own if each.rows})
        return sizes, facts

    def _joined(self, chunks: list[list[Any]], sizes: list[list[int]], plan: tuple[float, float, float]) -> list[Any]:
        """Return futures of the partitions. Chunks that are partitions already are neither moved nor copied."""
        wanted = [[covering(own, low, high) for low, high in pairwise(self.edges)] for own in sizes]
        parts = [(k, place) for k, own in enumerate(wanted) for spans in own for place in spans]
        partial = list(dict.fromkeys((k, place) for k, place in parts if place[1:] != (0, sizes[k][place[0]])))
        cuts: dict[Any, Any] = {}
        if partial:
            columns = zip(*((chunks[k][chunk], low, high) for k, (chunk, low, high) in partial), strict=True)
            cuts = dict(zip(partial, self.cluster.start("tiebreak-cut", pieces.cut, *map(list, columns)), strict=True))
        lists = [
            [[cuts.get((k, place), chunks[k][place[0]]) for place in spans] for spans in own] for k, own in enumerate(wanted)
        ]
        if len(lists) == 2:
            lists.append([[] for _ in self.edges[1:]])
        futures = self.cluster.start("tiebreak-rows", pieces.join, *lists, self.edges[:-1], [plan] * (len(self.edges) - 1))
        self.cluster.finish(futures, self.what)
        return futures


def _kind_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the functions of a pass, on which the size of its results depends."""
    return function, *(each for each in arguments if callable(each))


def _name(edges: list[int], low: int, k: int) -> str:
    return f"partition {low + k} (rows {edges[low + k]} to {edges[low + k + 1] - 1})"


class Ahead:
    """Rows that are on their way."""

    def __init__(self, cluster: Cluster, future: Future[Any]) -> None:
        self._cluster, self._future = cluster, future

    def result(self) -> Any:
        """Return what has become of them. The time until they are there counts as waited."""
        began = time.perf_counter()
        try:
            return self._future.result()
        finally:
            self._cluster.waited(time.perf_counter() - began)

    def when_done(self, call: Callable[[Any], Any]) -> None:
        """Have a function called once they are there, or cannot come; at once if that is so."""
        self._future.add_done_callback(call)


def partition_edges(sizes: Sequence[int], grain: int) -> list[int]:
    """Return where partitions begin and end: at the multiples of ``grain`` that are nearest to the ends of chunks.

    Examples
    --------
    >>> partition_edges([10, 10, 1, 9], 4)
    [0, 12, 20, 30]
    """
    ends = np.cumsum(sizes)
    rows = int(ends[-1])
    inner = {int((end + grain // 2) // grain * grain) for end in ends[:-1]}
    return [0, *sorted(edge for edge in inner if 0 < edge < rows), rows]


def covering(sizes: Sequence[int], low: int, high: int) -> list[tuple[int, int, int]]:
    """Return the pieces (chunk, from, to) of chunks that the rows from ``low`` to ``high`` consist of.

    Examples
    --------
    >>> covering([10, 10, 5], 8, 22)
    [(0, 8, 10), (1, 0, 10), (2, 0, 2)]
    """
    start, found = 0, []
    for k, size in enumerate(sizes):
        first, last = max(low, start), min(high, start + size)
        if first < last:
            found.append((k, first - start, last - start))
        start += size
    return found


def mean_weight(weights: Facts) -> float:
    """Return the mean of weights, correctly rounded but for the division, or raise if they are none."""
    check_weights(weights.least, weights.largest, weights.smallest)
    return math.fsum(weights.exact_sum) / weights.rows


def check_weights(least: float, largest: float, smallest: float) -> None:
    """Raise if weights are negative, all zero or too far apart; ``smallest`` is the smallest one that is not 0."""
    if least < 0.0 or largest == 0.0:
        raise ValueError(f"`sample_weight` must be non-negative and not all zero, got a minimum of {least:g}")
    if smallest < LEAST_WEIGHT * largest:
        raise ValueError(
            f"`sample_weight` must be 0 or at least {LEAST_WEIGHT:g} of the largest, got {smallest:g} beside {largest:g};"
            " set such weights to 0"
        )


def _array(name: str, value: Any) -> Any:
    """Return a Dask array; of a vector in memory, one that is sent with its tasks."""
    import dask.array

    if not is_dask(value):
        return dask.array.from_array(checks.vector(value, name), chunks=VECTOR_CHUNK, name=False)
    if name != "A" and (value.ndim not in (1, 2) or (value.ndim == 2 and value.shape[1] != 1)):
        raise ValueError(f"`{name}` must be a vector, got an array of shape {value.shape}")
    return value


def _kind(A: Any) -> Any:
    """Return the type of the numbers that a matrix is used in, or raise if it is no matrix of numbers."""
    if not is_dask(A):
        raise ValueError(f"`A` must be a Dask array, got {checks.shown(A)}")
    if A.ndim != 2:
        raise ValueError(f"`A` must be a non-empty matrix (samples × features), got an array of shape {A.shape}")
    if A.dtype.kind not in "fiub":
        raise ValueError(f"`A` must hold real numbers, got a Dask array of type {A.dtype}")
    return np.dtype(np.float32 if A.dtype == np.float32 else np.float64)


def _check(name: str, facts: Facts, columns: set[int], sparse: set[bool]) -> None:
    if len(columns) > 1 or len(sparse) > 1:
        raise ValueError(f"`{name}` must have chunks of one kind and with the same number of columns, and it has not")
    if facts.rows == 0 or facts.columns == 0:
        raise ValueError(f"`{name}` must not be empty, got an array of shape {(facts.rows, facts.columns)}")
    if facts.bad_entries:
        place = ", ".join(map(str, facts.bad_place))
        raise ValueError(
            f"`{name}` must hold finite numbers, got {facts.bad_value} at [{place}] ({facts.bad_entries} such entries);"
            " remove or impute them first"
        )
    checks.extent(max(facts.largest, -facts.least, 0.0), name)
