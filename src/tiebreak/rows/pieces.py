"""What workers do with rows: load chunks, look at them, join them to partitions, and take rows out of these.

These functions run as tasks. They have no effect but their result.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.engine import checks

LABELS = 6  # distinct targets that are told; more are no labels


class Unfit(NamedTuple):
    """What a chunk is instead of rows: a sentence that says why it cannot be used."""

    reason: str


class Facts(NamedTuple):
    """What a chunk of a matrix, of targets or of weights holds; that of all rows is made of those of its chunks."""

    rows: int
    columns: int
    numbers: int  # how many are stored
    longest_row: int
    least: float
    largest: float
    smallest: float  # size of the smallest number that is not 0; infinite if there is none
    distinct: tuple[float, ...]  # of a vector: its numbers in ascending order, the first few of them
    exact_sum: tuple[float, ...]  # of weights: numbers that add up to its sum without error
    bad_entries: int
    bad_place: tuple[int, ...]
    bad_value: float
    sparse: bool

    def with_ones(self) -> Facts:
        """Return what is known of these rows with a 1 behind each."""
        return self._replace(
            columns=self.columns + 1,
            numbers=self.numbers + self.rows,
            longest_row=self.longest_row + 1,
            least=min(self.least, 1.0),
            largest=max(self.largest, 1.0),
            smallest=min(self.smallest, 1.0),
        )


class Partition(NamedTuple):
    """Some successive rows."""

    matrix: Any  # array in C order or SciPy CSR array, (n, d), float32 or float64
    targets: np.ndarray  # (n,), float64
    weights: np.ndarray  # (n,), float64, of mean 1 over all partitions
    first: int  # the number of the first row


def load_matrix(columns: list[Any], single: bool) -> Any:
    """Return a chunk of rows, given as blocks of columns, as kernels want it."""
    try:
        blocks = [_matrix(block, np.float32 if single else np.float64) for block in columns]
    except ValueError as error:
        return Unfit(str(error))
    if len(blocks) == 1:
        return blocks[0]
    if scipy.sparse.issparse(blocks[0]):
        return scipy.sparse.hstack(blocks, format="csr")
    return np.concatenate(blocks, axis=1)


def _matrix(block: Any, kind: Any) -> Any:
    if scipy.sparse.issparse(block):
        try:
            sparse = scipy.sparse.csr_array(block)
            sparse.check_format(full_check=True)
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"`A` must have chunks that are valid sparse matrices, and one is not: {error}") from None
        if not sparse.has_canonical_format:
            sparse = sparse.copy()
            sparse.sum_duplicates()
        return sparse if sparse.dtype == kind else sparse.astype(kind)
    array = checks.numbers(block, "A")
    if array.ndim != 2:
        raise ValueError(f"`A` must be a non-empty matrix (samples × features), got a chunk of shape {array.shape}")
    return np.ascontiguousarray(array, dtype=kind)


def load_vector(chunk: Any, name: str) -> Any:
    """Return a chunk of targets or weights."""
    try:
        array = checks.numbers(chunk, name)
    except ValueError as error:
        return Unfit(str(error))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        return Unfit(f"`{name}` must be a vector, got a chunk of shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def examine(chunk: Any, summed: bool) -> Facts | Unfit:
    """Return what is known of a chunk; the sum of a vector only if it is asked for."""
    if isinstance(chunk, Unfit):
        return chunk
    sparse, vector = scipy.sparse.issparse(chunk), chunk.ndim == 1
    numbers = chunk.data if sparse else chunk
    rows, columns = chunk.shape[0], 1 if vector else chunk.shape[1]
    longest = int(np.diff(chunk.indptr).max(initial=0)) if sparse else columns
    least, largest, smallest, bad = math.inf, -math.inf, math.inf, 0
    flat = numbers.reshape(-1)
    for start in range(0, flat.size, checks.AT_ONCE):
        part = flat[start : start + checks.AT_ONCE]
        least, largest = min(least, float(part.min())), max(largest, float(part.max()))
        sizes = np.abs(part)
        smallest = min(smallest, float(np.min(sizes, initial=math.inf, where=sizes > 0.0)))
        bad += 0 if checks.all_finite(part) else int(np.count_nonzero(~np.isfinite(part)))
    place, value = _first_bad(chunk, flat) if bad else ((), 0.0)
    distinct = tuple(np.unique(chunk)[:LABELS].tolist()) if vector and not bad else ()
    exact = exact_sum(chunk) if summed and not bad else ()
    return Facts(rows, columns, flat.size, longest, least, largest, smallest, distinct, exact, bad, place, value, sparse)


def _first_bad(chunk: Any, flat: np.ndarray) -> tuple[tuple[int, ...], float]:
    at = int(np.argmin(np.isfinite(flat)))
    if scipy.sparse.issparse(chunk):
        row = int(np.searchsorted(chunk.indptr, at, side="right")) - 1
        return (row, int(chunk.indices[at])), float(flat[at])
    return tuple(int(i) for i in np.unravel_index(at, chunk.shape)), float(flat[at])


def exact_sum(vector: np.ndarray) -> tuple[float, ...]:
    """Return a few numbers that add up to the sum of a vector without any error.

    ``math.fsum`` rounds the exact sum once. What is left over is again a sum of numbers, until nothing is.

    Examples
    --------
    >>> exact_sum(np.array([1.0, 1e-17, -1.0, 2.0]))
    (2.0, 1e-17)
    """
    parts: list[float] = []
    entries = vector.tolist()
    while True:
        total = math.fsum(entries)
        if total == 0.0 or not math.isfinite(total):
            return tuple(parts) if math.isfinite(total) else (*parts, total)
        parts.append(total)
        entries.append(-total)


def merged(all_facts: list[Facts]) -> Facts:
    """Return what is known of all chunks together, in the order of rows."""
    first_row, value = 0, 0.0
    place: tuple[int, ...] = ()
    for facts in all_facts:
        if facts.bad_entries:
            place, value = (facts.bad_place[0] + first_row, *facts.bad_place[1:]), facts.bad_value
            break
        first_row += facts.rows
    distinct = sorted({label for facts in all_facts for label in facts.distinct})
    return Facts(
        sum(facts.rows for facts in all_facts),
        all_facts[0].columns,
        sum(facts.numbers for facts in all_facts),
        max(facts.longest_row for facts in all_facts),
        min(facts.least for facts in all_facts),
        max(facts.largest for facts in all_facts),
        min(facts.smallest for facts in all_facts),
        tuple(distinct[:LABELS]),
        tuple(part for facts in all_facts for part in facts.exact_sum),
        sum(facts.bad_entries for facts in all_facts),
        place,
        value,
        all_facts[0].sparse,
    )


def cut(chunk: Any, low: int, high: int) -> Any:
    """Return some rows of a chunk."""
    return chunk[low:high]


def join(matrices: list[Any], targets: list[np.ndarray], weights: list[np.ndarray], first: int, plan: Any) -> Partition:
    """Return a partition made of pieces of rows; one piece alone is not copied.

    ``plan`` holds the factor and the shift of targets, and the mean weight, or 0 if all rows weigh the same.
    """
    factor, shift, mean = plan
    matrix = matrices[0] if len(matrices) == 1 else stacked(matrices)
    b = targets[0] if len(targets) == 1 else np.concatenate(targets)
    if (factor, shift) != (1.0, 0.0):
        b = factor * b + shift
    w = np.ones(b.size) if mean == 0.0 else np.concatenate(weights) / mean
    return Partition(matrix, b, w, first)


def stacked(matrices: list[Any]) -> Any:
    """Return matrices, all dense or all sparse, one below the other."""
    if scipy.sparse.issparse(matrices[0]):
        return scipy.sparse.vstack(matrices, format="csr")
    return np.concatenate(matrices)


def between(partition: Partition, low: int, high: int) -> Partition:
    """Return some rows of a partition."""
    matrix, targets, weights, first = partition
    return Partition(matrix[low:high], targets[low:high], weights[low:high], first + low)


def rejoin(parts: list[Partition]) -> Partition:
    """Return successive partitions as one."""
    if len(parts) == 1:
        return parts[0]
    matrices, targets, weights, firsts = zip(*parts, strict=True)
    return Partition(stacked(list(matrices)), np.concatenate(targets), np.concatenate(weights), firsts[0])


def run(partition: Partition, shared: tuple[Callable[..., list[Any]], tuple[Any, ...]]) -> list[Any]:
    """Return what a function says of the blocks of a partition, one result per block."""
    function, arguments = shared
    return function(*partition, *arguments)


def folded(results: list[Any], total: Any, add: Callable[[Any, Any], Any]) -> Any:
    """Return a total to which results were added in their order; the total itself stays as it is."""
    total = copy.deepcopy(total)
    for result in results:
        total = add(total, result)
    return total


def hashes(A: Any, b: np.ndarray, w: np.ndarray, first: int, step: int) -> list[bytes]:
    """Return a hash of each block of rows."""
    found = []
    for low in range(0, b.size, step):
        part = A[low : low + step]
        arrays = (
            [part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64)] if scipy.sparse.issparse(A) else [part]
        )
        hasher = hashlib.blake2b(digest_size=12)
        for array in (*arrays, b[low : low + step], w[low : low + step]):
            hasher.update(np.ascontiguousarray(array).data)
        found.append(hasher.digest())
    return found


def pick(partition: Partition, indices: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return some rows of a partition, counted from its first one."""
    return partition.matrix[indices], partition.targets[indices], partition.weights[indices]


def placed(picked: list[tuple[Any, np.ndarray, np.ndarray]], order: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows that were picked from several partitions as one block; row k of them goes to place order[k]."""
    places = np.empty(order.size, dtype=np.int64)
    places[order] = np.arange(order.size)
    matrices, *vectors = zip(*picked, strict=True)
    if scipy.sparse.issparse(matrices[0]):
        matrix = stacked(list(matrices))[places]
    else:  # written where they belong, so that they are copied once
        matrix, start = np.empty((order.size, matrices[0].shape[1]), dtype=matrices[0].dtype), 0
        for each in matrices:
            matrix[order[start : start + len(each)]] = each
            start += len(each)
    targets, weights = (np.concatenate(each)[places] for each in vectors)
    return matrix, targets, weights
