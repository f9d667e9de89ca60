"""Data matrices, dense and sparse, as the losses see them: one row at a time."""

from tiebreak.objectives.matrices.accepted import as_matrix
from tiebreak.objectives.matrices.csr import CSR
from tiebreak.objectives.matrices.dense import Dense
from tiebreak.objectives.matrices.ones import WithOnes
from tiebreak.objectives.matrices.parts import NO_TARGETS, Rows
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

__all__ = [
    "CSR",
    "NO_TARGETS",
    "Dense",
    "Rows",
    "WithOnes",
    "add_row",
    "add_row_and_size",
    "as_matrix",
    "draw_rows",
    "in_memory",
    "located",
    "row_dot",
    "row_dot_and_size",
    "row_dots",
    "row_square",
]
