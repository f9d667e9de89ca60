"""What losses ask of a matrix of data: one row at a time, whatever form it is stored in."""

from __future__ import annotations

import math

import numpy as np

from tiebreak.engine import generic


@generic
def draw_rows(matrix, moment, batch):
    """Fill an array with codes of rows, all equally likely, and return it: a function of the moment alone."""


@generic
def located(matrix, batch):
    """Return codes of rows that are in memory, given those that :func:`draw_rows` returned, or the numbers of any rows.

    They are those of the whole batch, or of as many from its beginning as there is room for.
    """


@generic
def in_memory(matrix):
    """Return the matrix of the rows that are in memory, and the code of its first row."""


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


@generic(reorder=True)
def row_square(matrix, i, unit):
    """Return ‖row i / unit‖²."""


def smallest_size(array: np.ndarray) -> float:
    """Return the size of the smallest number of an array that is not 0; infinite if there is none."""
    sizes = np.abs(array)
    return float(np.min(sizes, initial=math.inf, where=sizes > 0.0))
