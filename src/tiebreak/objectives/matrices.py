"""Data matrices, dense and sparse, as the losses see them: one row at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from tiebreak import checks
from tiebreak.engine import generic


class Dense(NamedTuple):
    """A matrix stored row by row."""

    array: np.ndarray  # (n, d), C order

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape

    @property
    def entries(self) -> int:
        return self.array.size

    @property
    def longest_row(self) -> int:
        return self.array.shape[1]

    @property
    def largest(self) -> float:
        return float(np.abs(self.array).max())

    @property
    def row_norms(self) -> np.ndarray:
        return np.linalg.norm(self.array, axis=1)

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self.array @ x

    def rmatvec(self, x: np.ndarray) -> np.ndarray:
        return x @ self.array


class CSR(NamedTuple):
    """A matrix of which only the non-zeros are stored, row by row."""

    data: np.ndarray  # (nnz,)
    columns: np.ndarray  # (nnz,)
    starts: np.ndarray  # (n + 1,): row i is data[starts[i]:starts[i + 1]]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.starts.size - 1, self.n_columns

    @property
    def entries(self) -> int:
        return self.data.size

    @property
    def longest_row(self) -> int:
        return int(np.diff(self.starts).max())

    def to_scipy(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array((self.data, self.columns, self.starts), shape=self.shape)

    @property
    def largest(self) -> float:
        return float(np.abs(self.data).max(initial=0.0))

    @property
    def row_norms(self) -> np.ndarray:
        return scipy.sparse.linalg.norm(self.to_scipy(), axis=1)

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self.to_scipy() @ x

    def rmatvec(self, x: np.ndarray) -> np.ndarray:
        return x @ self.to_scipy()


def as_matrix(value: Any, name: str) -> Dense | CSR:
    """Return a validated matrix. Float arrays in C order are not copied, and float32 stays float32."""
    if scipy.sparse.issparse(value):
        sparse = _rows_of(value, name)
        if not sparse.has_canonical_format:  # duplicates would be read as two features
            sparse = sparse.copy()
            sparse.sum_duplicates()
        shape, entries = sparse.shape, _floats(sparse.data, name)
        matrix: Dense | CSR = CSR(entries, sparse.indices, sparse.indptr, int(shape[-1]))
    else:
        entries = _floats(value, name)
        shape, matrix = entries.shape, Dense(entries)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"`{name}` must be a non-empty matrix (samples × features), got an array of shape {shape}")
    checks.data(entries, name)
    return matrix


def _rows_of(value: Any, name: str) -> scipy.sparse.csr_array:
    """Return a sparse matrix row by row, its indices checked first: SciPy would follow wrong ones out of its arrays."""
    if value.ndim != 2:
        raise ValueError(f"`{name}` must be a non-empty matrix (samples × features), got an array of shape {value.shape}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # SciPy warns of indices that are no integers, and then takes them
            if value.format == "coo":
                for indices, size in zip(value.coords, value.shape, strict=True):
                    if indices.min(initial=0) < 0 or indices.max(initial=0) >= size:
                        raise ValueError("its indices must lie within its shape")
            elif value.format in ("csc", "bsr"):
                getattr(scipy.sparse, f"{value.format}_array")(value).check_format(full_check=True)
            rows = scipy.sparse.csr_array(value)
            rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, UserWarning) as error:
        raise ValueError(f"`{name}` must be a valid sparse matrix, and it is not: {error}") from None
    return rows


_curvatures: ContextVar[dict[tuple[int, ...], tuple[Any, float]] | None] = ContextVar("curvatures", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Find each largest curvature only once in this block, during which no data may change."""
    token = _curvatures.set({})
    try:
        yield
    finally:
        _curvatures.reset(token)


def largest_curvature(matrix: Dense | CSR, weights: np.ndarray) -> float:
    """Return λ_max(Aᵀ diag(weights) A), which takes some tens of passes over A."""
    known = _curvatures.get()
    if known is None:
        return _largest_curvature(matrix, weights)
    key = tuple(id(part) for part in (*matrix, weights))
    if key not in known:
        known[key] = (matrix, weights), _largest_curvature(matrix, weights)  # what is held keeps its id
    return known[key][1]


def _largest_curvature(matrix: Dense | CSR, weights: np.ndarray) -> float:
    """Find it by Lanczos' refinement of the power iteration."""
    d = matrix.shape[1]
    unit = matrix.largest or 1.0  # squares of huge data overflow

    def gram(x: np.ndarray) -> np.ndarray:
        return matrix.rmatvec(weights * matrix.matvec(x.ravel() / unit)) / unit

    start = np.random.default_rng(0).standard_normal(d)  # fixed: the result must not depend on a hidden state
    if not gram(start).any():
        largest = 0.0
    elif d <= 2:
        largest = np.linalg.eigvalsh(np.stack([gram(e) for e in np.eye(d)]))[-1]
    else:
        operator = LinearOperator((d, d), matvec=gram, dtype=np.float64)
        largest = eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0]
    return float(max(largest, 0.0)) * unit * unit


def _floats(value: Any, name: str) -> np.ndarray:
    array = checks.numbers(value, name)
    if array.ndim == 0:
        raise ValueError(f"`{name}` must be a non-empty matrix (samples × features), got a single number")
    kind = np.float32 if array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(np.asarray(array), dtype=kind)


@generic(reorder=True)
def row_dots(matrix, i, x, y):
    """Return ⟨row i, x⟩ and ⟨row i, y⟩."""


@generic(reorder=True)
def row_dot(matrix, i, x):
    """Return ⟨row i, x⟩."""


@generic(reorder=True)
def add_row(matrix, i, weight, out):
    """Set out ← out + weight · row i."""


@generic(reorder=True)
def row_dot_and_size(matrix, i, x, y):
    """Return ⟨row i, x⟩ and Σ_j |row_ij| y_j."""


@generic(reorder=True)
def add_row_and_size(matrix, i, weight, size, out):
    """Set out[0] ← out[0] + weight · row i and out[1] ← out[1] + size · |row i|."""


@row_dots.register(Dense)
def _(matrix, i, x, y):
    row = matrix.array[i]
    at_x = 0.0
    at_y = 0.0
    for j in range(row.size):
        at_x += row[j] * x[j]
        at_y += row[j] * y[j]
    return at_x, at_y


@row_dot.register(Dense)
def _(matrix, i, x):
    row = matrix.array[i]
    total = 0.0
    for j in range(row.size):
        total += row[j] * x[j]
    return total


@add_row.register(Dense)
def _(matrix, i, weight, out):
    row = matrix.array[i]
    for j in range(row.size):
        out[j] += weight * row[j]


@row_dot_and_size.register(Dense)
def row_dot_and_size_dense(matrix, i, x, y):
    """One look at the row for both sums."""
    row = matrix.array[i]
    total = 0.0
    size = 0.0
    for j in range(row.size):
        total += row[j] * x[j]
        size += abs(row[j]) * y[j]
    return total, size


@add_row_and_size.register(Dense)
def add_row_and_size_dense(matrix, i, weight, size, out):
    """One look at the row for both sums."""
    row = matrix.array[i]
    sums, sizes = out[0], out[1]
    for j in range(row.size):
        sums[j] += weight * row[j]
        sizes[j] += size * abs(row[j])


@row_dots.register(CSR)
def _(matrix, i, x, y):
    at_x = 0.0
    at_y = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        at_x += matrix.data[k] * x[matrix.columns[k]]
        at_y += matrix.data[k] * y[matrix.columns[k]]
    return at_x, at_y


@row_dot.register(CSR)
def _(matrix, i, x):
    total = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        total += matrix.data[k] * x[matrix.columns[k]]
    return total


@add_row.register(CSR)
def _(matrix, i, weight, out):
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        out[matrix.columns[k]] += weight * matrix.data[k]


@row_dot_and_size.register(CSR)
def row_dot_and_size_csr(matrix, i, x, y):
    """One look at the row for both sums."""
    total = 0.0
    size = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        total += matrix.data[k] * x[matrix.columns[k]]
        size += abs(matrix.data[k]) * y[matrix.columns[k]]
    return total, size


@add_row_and_size.register(CSR)
def add_row_and_size_csr(matrix, i, weight, size, out):
    """One look at the row for both sums."""
    sums, sizes = out[0], out[1]
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        sums[matrix.columns[k]] += weight * matrix.data[k]
        sizes[matrix.columns[k]] += size * abs(matrix.data[k])
