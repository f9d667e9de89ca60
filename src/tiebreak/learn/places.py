"""Where samples are: in memory, mapped, in a store or on Dask workers. Few are brought into memory, many stay in place.

Whether they are few depends on their number alone, so that a model is the same wherever its samples are. Samples in place
are neither copied nor centred, nor are some of them taken out: where others would be left out, their weight is 0.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.engine import checks
from tiebreak.objectives.matrices import CSR, Dense, as_matrix
from tiebreak.objectives.tables import data_of
from tiebreak.rows.blocks import BLOCK_ROWS
from tiebreak.rows.cluster import Cluster
from tiebreak.rows.partitions import as_array, is_dask
from tiebreak.rows.pieces import Unfit, load_matrix, stacked
from tiebreak.rows.store import SparseRows, Store

MOST_COPIED = 1 << 25  # numbers of features that are copied, a quarter of a gigabyte; more stay in place


class Given(NamedTuple):
    """Samples as they were given, but for those that were brought into memory."""

    X: Any  # array, sparse matrix, Dask array, or rows of a store
    y: Any
    sample_weight: Any
    names: list[str] | None = None  # of the features, if X does not tell them itself


def is_in_place(X: Any) -> bool:
    """Return whether features are used where they are: a matrix of this package or a Dask array."""
    return isinstance(X, (Dense, CSR)) or is_dask(X)


def are_many(X: Any) -> bool:
    """Return whether features, an array or a sparse matrix, are so many that they stay in place."""
    return (X.nnz if scipy.sparse.issparse(X) else X.size) > MOST_COPIED


def brought(X: Any, y: Any, sample_weight: Any) -> Given:
    """Return samples: those of stores and on Dask workers in memory, if they are few."""
    if isinstance(X, Store):
        return _stored(X, y, sample_weight)
    if is_dask(X):
        return _from_workers(X, y, sample_weight)
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if is_dask(value):
            raise ValueError(f"`{name}` must be in memory where `X` is, got {checks.shown(value)}: compute it first")
    if isinstance(X, np.memmap) and are_many(X) and not (X.flags.c_contiguous and X.dtype.char in "fd"):
        raise ValueError(
            f"`X` must be in C order and float32 or float64 to be used in place, got a memory map of type {X.dtype};"
            " tiebreak.data.store writes it so"
        )
    return Given(X, y, sample_weight)


def too_many(estimator: Any) -> str:
    """Return what to do where an estimator needs all samples in memory, and they stay in place."""
    name = type(estimator).__name__
    some = (
        f"{name} takes samples in memory, up to {MOST_COPIED:,} numbers of a Dask collection or a store: fit it to some rows"
    )
    if not name.endswith("CV"):
        return f"{some}, or all of them to a TieBreakClassifier, which takes any number, without regard to fairness"
    plain = name.removesuffix("CV")
    return f"{some}, and then all of them to a {plain}, which takes any number, with the radius_ and keep_ that were found"


def _stored(store: Store, y: Any, sample_weight: Any) -> Given:
    if not (y is None or isinstance(y, str)):
        raise ValueError(f"`y` must be left out where `X` is a store, or name a column of it, got {checks.shown(y)}")
    matrix, targets, weights = data_of(store, None, sample_weight, "y", y, None)
    taken = (y or store.target, sample_weight if isinstance(sample_weight, str) else None)
    names = None if store.names is None else [name for name in store.names if name not in taken]
    whole = as_matrix(matrix, "X")
    if whole.numbers > MOST_COPIED:
        return Given(whole, targets, weights, names)
    rows: Any = getattr(matrix, "rows", matrix)
    if isinstance(rows, SparseRows):
        rows = scipy.sparse.csr_array(tuple(map(np.asarray, rows)), shape=store.shape)
    return Given(rows, targets, weights, names)


# Dask


def _from_workers(X: Any, y: Any, sample_weight: Any) -> Given:
    from dask import delayed

    cluster, names = Cluster(), names_of(X)
    X, y, sample_weight = (_array(each) for each in (X, y, sample_weight))
    if X.ndim != 2:
        raise ValueError(f"`X` must be a matrix (samples × features), got a Dask array of shape {X.shape}")
    X = cluster.client.persist(X)
    rows = [list(row) for row in X.to_delayed()]
    sizes = _collected(cluster, [delayed(_size)(row) for row in rows], "X")
    if sum(numbers for _, numbers in sizes) <= MOST_COPIED:
        blocks = _collected(cluster, [delayed(load_matrix)(row, X.dtype == np.float32) for row in rows], "X")
        for block in blocks:
            if isinstance(block, Unfit):
                raise ValueError(block.reason.replace("`A`", "`X`"))
        return Given(stacked(blocks), _in_memory(cluster, y), _in_memory(cluster, sample_weight), names)
    X._chunks = (tuple(count for count, _ in sizes), *X.chunks[1:])
    return Given(X, _sized(cluster, y), _sized(cluster, sample_weight), names)


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame; none of an array."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _array(value: Any) -> Any:
    """Return a data frame or a series as a Dask array; all else as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # texts become objects
        return as_array(value)


def _collected(cluster: Cluster, tasks: list[Any], name: str) -> list[Any]:
    return cluster.collect(cluster.compute(tasks, True), lambda k: f"chunk {k} of `{name}`")


def _size(blocks: list[Any]) -> tuple[int, int]:
    """Return how many rows, and how many numbers, the blocks of columns of some rows have."""
    return blocks[0].shape[0], sum(int(block.nnz if scipy.sparse.issparse(block) else block.size) for block in blocks)


def _in_memory(cluster: Cluster, vector: Any) -> Any:
    if not is_dask(vector):
        return vector
    return np.concatenate(_collected(cluster, list(vector.to_delayed().reshape(-1)), "y"))


def _sized(cluster: Cluster, vector: Any) -> Any:
    """Return a vector on the workers, the sizes of its chunks known."""
    if not is_dask(vector):
        return vector
    vector = cluster.client.persist(vector)
    return vector.compute_chunk_sizes() if np.isnan(vector.shape[0]) else vector


def on_blocks(function: Callable[..., np.ndarray], vector: Any, *arguments: Any) -> Any:
    """Return a function of a vector, where it is: function(vector, *arguments), a vector of float64."""
    if not is_dask(vector):
        return function(np.asarray(vector), *arguments)
    return vector.map_blocks(function, *arguments, dtype=np.float64, meta=np.empty(0))


def distinct(vector: Any) -> np.ndarray:
    """Return the different entries of a vector, in ascending order; those of a Dask array are found by its workers."""
    if not is_dask(vector):
        return np.unique(vector)
    from dask import delayed

    blocks = [delayed(np.unique)(block) for block in vector.to_delayed().reshape(-1)]
    return np.unique(np.concatenate(_collected(Cluster(), blocks, "y")))


# Held-out samples


def shares(X: Any, weights: Any, fraction: float, seed: int) -> tuple[Any, Any]:
    """Return the weights of samples to fit, and of those that are held out: each of them has 0 in one of the two.

    Each sample is held out with the given probability. That of a row depends on the seed and on its number alone.
    """
    if fraction >= 1.0:
        raise ValueError(f"`validation_fraction` must be below 1, got {fraction:g}")
    held: Any
    if is_dask(X):
        import dask.array
        from dask import delayed

        edges = [0, *accumulate(X.chunks[0])]
        held = dask.array.concatenate(
            [
                dask.array.from_delayed(delayed(held_rows)(low, high, fraction, seed), (high - low,), np.float64)
                for low, high in pairwise(edges)
            ]
        )
    else:
        held = held_rows(0, X.shape[0], fraction, seed)
    return (1.0 - held, held) if weights is None else ((1.0 - held) * weights, held * weights)


def held_rows(low: int, high: int, fraction: float, seed: int) -> np.ndarray:
    """Return 1 for rows from ``low`` to ``high`` that are held out, and 0 for others."""
    first, last = low // BLOCK_ROWS, -(-high // BLOCK_ROWS)
    draws = [np.random.default_rng([seed, block]).random(BLOCK_ROWS) for block in range(first, last)]
    drawn = np.concatenate([*draws, np.zeros(0)])[low - first * BLOCK_ROWS :][: high - low]
    return (drawn < fraction).astype(np.float64)


# Predictions

HEAVY = ("result_", "certificate_", "history_", "frontier_", "feature_names_in_")  # what predictions do not need


def lazily(method: Callable[[Any, Any], np.ndarray]) -> Callable[[Any, Any], Any]:
    """Make a method of a fitted estimator one that takes Dask collections, too, and returns a Dask array for them."""

    @functools.wraps(method)
    def of_any(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        rows = self._lazy_features(X)
        light = copy.copy(self)
        for name in HEAVY:
            light.__dict__.pop(name, None)
        some = method(light, np.zeros((1, rows.shape[1])))
        columns = {"drop_axis": 1} if some.ndim == 1 else {"chunks": (rows.chunks[0], (some.shape[1],))}
        call = functools.partial(_of_block, method.__name__, light)
        return rows.map_blocks(call, dtype=some.dtype, meta=some[:0], token=f"tiebreak-{method.__name__}", **columns)

    return of_any


def _of_block(name: str, estimator: Any, block: Any) -> np.ndarray:
    some = block if block.shape[0] else np.zeros((1, block.shape[1]))
    return getattr(estimator, name)(some)[: block.shape[0]]


def lazy_rows(X: Any) -> Any:
    """Return features as a Dask array whose chunks hold whole rows."""
    rows = _array(X)
    return rows if rows.numblocks[1] == 1 else rows.rechunk({1: -1})


def accuracy(predicted: Any, y: Any, sample_weight: Any) -> float:
    """Return the share of right predictions, of Dask arrays."""
    predicted, y, weights = _alike(predicted, y, sample_weight)
    return float(((weights * (predicted == y)).sum() / weights.sum()).compute())


def explained(predicted: Any, y: Any, sample_weight: Any) -> float:
    """Return the share of the variance of targets that predictions explain, of Dask arrays."""
    predicted, y, weights = _alike(predicted, y, sample_weight)
    mean = (weights * y).sum() / weights.sum()
    left, total = (float((weights * (y - middle) ** 2).sum().compute()) for middle in (predicted, mean))
    return 1.0 - left / total if total > 0.0 else float(left == 0.0)


def _alike(predicted: Any, *vectors: Any) -> tuple[Any, ...]:
    """Return Dask arrays with the same chunks; a vector that is None is one of ones."""
    import dask.array

    cluster = Cluster()
    predicted, found = _sized(cluster, predicted), []
    for vector in vectors:
        vector = _sized(cluster, _array(1.0 if vector is None else vector))
        if not is_dask(vector):
            vector = dask.array.from_array(np.broadcast_to(np.asarray(vector), predicted.shape), chunks=predicted.chunks)
        found.append(vector.rechunk(predicted.chunks))
    return predicted, *found
