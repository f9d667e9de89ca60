"""Matrices with a column of ones behind their own, which is not stored: a model with an intercept, of data used in place."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.objectives.matrices.csr import CSR
from tiebreak.objectives.matrices.dense import Dense
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


class WithOnes(NamedTuple):
    """The columns of a matrix, and one of ones."""

    features: Dense | CSR
    last: int  # the place of the column of ones

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape[0], self.last + 1

    def __str__(self) -> str:
        return f"{self.features}, and a column of ones"

    def between(self, low: int, high: int) -> WithOnes:
        """Return the rows from ``low`` to ``high``, whose numbers are not copied."""
        return WithOnes(self.features.between(low, high), self.last)

    @property
    def longest_row(self) -> int:
        return self.features.longest_row + 1

    @property
    def numbers(self) -> int:
        """How many numbers the rows hold."""
        return self.features.numbers + self.shape[0]

    @property
    def largest(self) -> float:
        return max(self.features.largest, 1.0)

    @property
    def smallest(self) -> float:
        """The size of the smallest number that is not 0."""
        return min(self.features.smallest, 1.0)

    @property
    def row_norms(self) -> np.ndarray:
        return np.hypot(self.features.row_norms, 1.0)

    @property
    def depth(self) -> int:
        """How often a number is rounded on its way into a sum over all rows, at most."""
        return self.features.depth

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Return Aᵀ diag(weights) A in float64."""
        return self._bordered(self.features.gram(weights), weights)

    def combined(self, factors: np.ndarray) -> np.ndarray:
        """Return Aᵀ factors, in float64."""
        return np.append(self.features.combined(factors), math.fsum(factors))

    def products(self, x: np.ndarray) -> np.ndarray:
        """Return A x, in float64."""
        return self.features.products(x[: self.last]) + x[self.last]

    def small_gram(self, weights: np.ndarray, unit: float, of_rows: bool) -> np.ndarray:
        """Return W A Aᵀ W, or Aᵀ W² A, with W = diag(√weights) / unit; its upper triangle may be missing."""
        products = self.features.small_gram(weights, unit, of_rows)
        if of_rows:
            roots = np.sqrt(weights) / unit
            return products + np.outer(roots, roots)
        return self._bordered(products, weights, unit)

    def compile_gram(self, weights: np.ndarray) -> None:
        """Compile what :meth:`small_gram` needs."""
        self.features.compile_gram(weights)

    def _bordered(self, products: np.ndarray, weights: np.ndarray, unit: float = 1.0) -> np.ndarray:
        """Return products of columns together with those of the column of ones."""
        own, scaled = self.last, weights / unit
        out = np.empty((own + 1, own + 1))
        out[:own, :own] = products
        out[own, :own] = out[:own, own] = self.features.combined(scaled) / unit
        out[own, own] = math.fsum(scaled) / unit
        return out


@draw_rows.register(WithOnes)
def draw_rows_with_ones(matrix, moment, batch):
    return draw_rows(matrix.features, moment, batch)


@located.register(WithOnes)
def located_with_ones(matrix, batch):
    return located(matrix.features, batch)


@in_memory.register(WithOnes)
def with_ones_in_memory(matrix):
    return matrix, 0


@row_dots.register(WithOnes)
def row_dots_with_ones(matrix, i, x, y):
    at_x, at_y = row_dots(matrix.features, i, x, y)
    return at_x + x[matrix.last], at_y + y[matrix.last]


@row_dot.register(WithOnes)
def row_dot_with_ones(matrix, i, x):
    return row_dot(matrix.features, i, x) + x[matrix.last]


@row_square.register(WithOnes)
def row_square_with_ones(matrix, i, unit):
    return row_square(matrix.features, i, unit) + 1.0 / unit / unit


@add_row.register(WithOnes)
def add_row_with_ones(matrix, i, weight, out):
    add_row(matrix.features, i, weight, out)
    out[matrix.last] += weight


@row_dot_and_size.register(WithOnes)
def row_dot_and_size_with_ones(matrix, i, x, y):
    total, size = row_dot_and_size(matrix.features, i, x, y)
    return total + x[matrix.last], size + y[matrix.last]


@add_row_and_size.register(WithOnes)
def add_row_and_size_with_ones(matrix, i, weight, size, out):
    add_row_and_size(matrix.features, i, weight, size, out)
    out[0, matrix.last] += weight
    out[1, matrix.last] += size
