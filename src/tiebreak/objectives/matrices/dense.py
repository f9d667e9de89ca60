"""Matrices stored row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.engine import kernel
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

SUMMED_ROWS = 256  # rows that a product of matrices adds up, at least
BLOCK_NUMBERS = 1 << 19  # numbers of the data that are turned into float64 at once


class Dense(NamedTuple):
    """A matrix stored row by row."""

    array: np.ndarray  # (n, d), C order

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape

    def __str__(self) -> str:
        return "{} × {}".format(*self.shape)

    def between(self, low: int, high: int) -> Dense:
        """Return the rows from ``low`` to ``high``, which are not copied."""
        return Dense(self.array[low:high])

    @property
    def longest_row(self) -> int:
        return self.array.shape[1]

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        return self.array.size

    @property
    def largest(self) -> float:
        return float(max(self.array.max(), -self.array.min()))

    @property
    def smallest(self) -> float:
        """The size of the smallest number that is not 0; infinite if there is none."""
        parts = (self.array[low : low + self.rows_at_once] for low in range(0, self.array.shape[0], self.rows_at_once))
        return min(smallest_size(part) for part in parts)

    @property
    def row_norms(self) -> np.ndarray:
        parts = (self.array[low : low + self.rows_at_once] for low in range(0, self.array.shape[0], self.rows_at_once))
        return np.concatenate([np.linalg.norm(np.asarray(part, dtype=np.float64), axis=1) for part in parts])

    @property
    def rows_at_once(self) -> int:
        return max(1, BLOCK_NUMBERS // self.array.shape[1])

    @property
    def rows_per_sum(self) -> int:
        """How many rows a product of matrices adds up: few, as rounding errors grow with them, and enough to be fast."""
        return max(SUMMED_ROWS, self.array.shape[1] // 4)

    @property
    def depth(self) -> int:
        """How often a number is rounded on its way into a sum over all rows, at most: within its block, and per block."""
        n, rows = self.array.shape[0], self.rows_per_sum
        return min(n, rows) + -(-n // rows)

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Return Aᵀ diag(weights) A in one pass over A, in float64."""
        roots = np.sqrt(weights)
        n, d = self.shape
        total, rows = np.zeros((d, d)), self.rows_per_sum
        for low in range(0, n, rows):
            block = roots[low : low + rows, None] * self.array[low : low + rows]
            total += block.T @ block
        return total

    def combined(self, factors: np.ndarray) -> np.ndarray:
        """Return Aᵀ factors, in float64."""
        n, d = self.shape
        total, rows = np.zeros(d), self.rows_per_sum
        for low in range(0, n, rows):
            total += factors[low : low + rows] @ np.asarray(self.array[low : low + rows], dtype=np.float64)
        return total

    def products(self, x: np.ndarray) -> np.ndarray:
        """Return A x, in float64."""
        parts = (self.array[low : low + self.rows_at_once] for low in range(0, self.array.shape[0], self.rows_at_once))
        return np.concatenate([part @ x for part in parts])

    def small_gram(self, weights: np.ndarray, unit: float, of_rows: bool) -> np.ndarray:
        """Return W A Aᵀ W, or Aᵀ W² A, with W = diag(√weights) / unit; its upper triangle is missing.

        It is compiled: the threads of a library would wait for each other on a busy machine longer than so small a matrix
        takes.
        """
        roots = np.sqrt(weights)
        array = self.array if unit == 1.0 else self.array / unit
        side = array.shape[0 if of_rows else 1]
        out = np.zeros((side, side))
        if of_rows:
            multiply_rows(array, roots, out)
        else:
            add_outer_products(array, roots, out)
        return out

    def compile_gram(self, weights: np.ndarray) -> None:
        """Compile what :meth:`small_gram` needs."""
        add_outer_products(self.array[:0], weights, np.zeros((0, 0)))
        multiply_rows(self.array[:0], weights, np.zeros((0, 0)))


@kernel(reorder=True)
def add_outer_products(array, roots, out):
    """Add Σ (roots_i row i) (roots_i row i)ᵀ to the lower triangle of ``out``."""
    for i in range(array.shape[0]):
        row = array[i]
        for j in range(row.size):
            factor = roots[i] * roots[i] * row[j]
            target = out[j]
            for k in range(j + 1):
                target[k] += factor * row[k]


@kernel(reorder=True)
def multiply_rows(array, roots, out):
    """Set the lower triangle of ``out`` to the products ⟨roots_i row i, roots_j row j⟩."""
    for i in range(array.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(array.shape[1]):
                total += float(array[i, k]) * array[j, k]
            out[i, j] = roots[i] * roots[j] * total


@draw_rows.register(Dense)
def draw_rows_dense(matrix, moment, batch):
    return uniform_indices(moment, matrix.array.shape[0], batch)


@located.register(Dense)
def located_dense(matrix, batch):
    return batch


@in_memory.register(Dense)
def dense_in_memory(matrix):
    return matrix, 0


@row_dots.register(Dense)
def row_dots_dense(matrix, i, x, y):
    row = matrix.array[i]
    at_x = 0.0
    at_y = 0.0
    for j in range(row.size):
        at_x += row[j] * x[j]
        at_y += row[j] * y[j]
    return at_x, at_y


@row_dot.register(Dense)
def row_dot_dense(matrix, i, x):
    row = matrix.array[i]
    total = 0.0
    for j in range(row.size):
        total += row[j] * x[j]
    return total


@row_square.register(Dense)
def row_square_dense(matrix, i, unit):
    row = matrix.array[i]
    total = 0.0
    for j in range(row.size):
        entry = row[j] / unit
        total += entry * entry
    return total


@add_row.register(Dense)
def add_row_dense(matrix, i, weight, out):
    row = matrix.array[i]
    for j in range(row.size):
        out[j] += weight * row[j]


@row_dot_and_size.register(Dense)
def row_dot_and_size_dense(matrix, i, x, y):
    row = matrix.array[i]
    total = 0.0
    size = 0.0
    for j in range(row.size):
        total += row[j] * x[j]
        size += abs(row[j]) * y[j]
    return total, size


@add_row_and_size.register(Dense)
def add_row_and_size_dense(matrix, i, weight, size, out):
    row = matrix.array[i]
    sums, sizes = out[0], out[1]
    for j in range(row.size):
        sums[j] += weight * row[j]
        sizes[j] += size * abs(row[j])
