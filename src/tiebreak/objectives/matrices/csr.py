"""Matrices of which only the non-zeros are stored, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.engine.randomness import uniform_indices
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
    smallest_size,
)


class CSR(NamedTuple):
    """A matrix of which only the non-zeros are stored, row by row."""

    data: np.ndarray  # (nnz,)
    columns: np.ndarray  # (nnz,)
    starts: np.ndarray  # (n + 1,): row i is data[starts[i]:starts[i + 1]]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.starts.size - 1, self.n_columns

    def __str__(self) -> str:
        return "{} × {} sparse".format(*self.shape)

    def between(self, low: int, high: int) -> CSR:
        """Return the rows from ``low`` to ``high``, whose numbers are not copied."""
        starts = self.starts[low : high + 1]
        own = slice(starts[0], starts[-1])
        return CSR(self.data[own], self.columns[own], starts - starts[0], self.n_columns)

    @property
    def longest_row(self) -> int:
        return int(np.diff(self.starts).max())

    def to_scipy(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array((self.data, self.columns, self.starts), shape=self.shape)

    def scaled(self, factors: np.ndarray) -> scipy.sparse.csr_array:
        """Return the matrix with row i multiplied by factors[i], in float64."""
        data = self.data * np.repeat(factors, np.diff(self.starts))
        return scipy.sparse.csr_array((data, self.columns, self.starts), shape=self.shape)

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        return self.data.size

    @property
    def largest(self) -> float:
        return float(max(self.data.max(initial=0.0), -self.data.min(initial=0.0)))

    @property
    def smallest(self) -> float:
        """The size of the smallest number that is not 0; infinite if there is none."""
        return smallest_size(self.data)

    @property
    def row_norms(self) -> np.ndarray:
        return scipy.sparse.linalg.norm(self.to_scipy().astype(np.float64), axis=1)

    @property
    def depth(self) -> int:
        """How often a number is rounded on its way into a sum over all rows, at most."""
        return self.starts.size - 1

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Return Aᵀ diag(weights) A in one pass over A, in float64."""
        scaled = self.scaled(np.sqrt(weights))
        return (scaled.T @ scaled).toarray()

    def combined(self, factors: np.ndarray) -> np.ndarray:
        """Return Aᵀ factors, in float64."""
        return self.to_scipy().T @ np.asarray(factors, dtype=np.float64)

    def products(self, x: np.ndarray) -> np.ndarray:
        """Return A x, in float64."""
        return self.to_scipy() @ x

    def small_gram(self, weights: np.ndarray, unit: float, of_rows: bool) -> np.ndarray:
        """Return W A Aᵀ W, or Aᵀ W² A, with W = diag(√weights) / unit."""
        scaled = self.scaled(np.sqrt(weights) / unit)
        return (scaled @ scaled.T if of_rows else scaled.T @ scaled).toarray()

    def compile_gram(self, weights: np.ndarray) -> None:
        """SciPy needs nothing compiled."""


@draw_rows.register(CSR)
def draw_rows_csr(matrix, moment, batch):
    return uniform_indices(moment, matrix.starts.size - 1, batch)


@located.register(CSR)
def located_csr(matrix, batch):
    return batch


@in_memory.register(CSR)
def csr_in_memory(matrix):
    return matrix, 0


@row_dots.register(CSR)
def row_dots_csr(matrix, i, x, y):
    at_x = 0.0
    at_y = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        at_x += matrix.data[k] * x[matrix.columns[k]]
        at_y += matrix.data[k] * y[matrix.columns[k]]
    return at_x, at_y


@row_dot.register(CSR)
def row_dot_csr(matrix, i, x):
    total = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        total += matrix.data[k] * x[matrix.columns[k]]
    return total


@row_square.register(CSR)
def row_square_csr(matrix, i, unit):
    total = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        entry = matrix.data[k] / unit
        total += entry * entry
    return total


@add_row.register(CSR)
def add_row_csr(matrix, i, weight, out):
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        out[matrix.columns[k]] += weight * matrix.data[k]


@row_dot_and_size.register(CSR)
def row_dot_and_size_csr(matrix, i, x, y):
    total = 0.0
    size = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        total += matrix.data[k] * x[matrix.columns[k]]
        size += abs(matrix.data[k]) * y[matrix.columns[k]]
    return total, size


@add_row_and_size.register(CSR)
def add_row_and_size_csr(matrix, i, weight, size, out):
    sums, sizes = out[0], out[1]
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        sums[matrix.columns[k]] += weight * matrix.data[k]
        sizes[matrix.columns[k]] += size * abs(matrix.data[k])
