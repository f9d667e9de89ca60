"""Rows of data in memory: a matrix with a target and a weight per row, and passes over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tiebreak.objectives.matrices.csr import CSR
from tiebreak.objectives.matrices.dense import Dense
from tiebreak.objectives.matrices.ones import WithOnes
from tiebreak.rows import over_blocks, rows_per_block

Sums = TypeVar("Sums")


NO_TARGETS = np.zeros(0)  # of rows that have none


class Rows(NamedTuple):
    """Rows of data, each with a target and a weight."""

    matrix: Dense | CSR | WithOnes
    targets: np.ndarray
    weights: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def numbers(self) -> int:
        """How many numbers the matrix stores."""
        return self.matrix.numbers

    @property
    def largest(self) -> float:
        """The size of the largest number of the matrix."""
        return self.matrix.largest

    @property
    def longest_row(self) -> int:
        """How many numbers a row has at most."""
        return self.matrix.longest_row

    def passes(self, run: Callable[..., Sums], *arguments: Any, width: float) -> Iterator[Sums]:
        """Yield ``run(rows, low, high, *arguments)`` for each block of rows, in their order.

        Parameters
        ----------
        run : callable
            A function of a module, which other processes can import: what to do with the rows from ``low`` to ``high``.
        *arguments
            What it takes besides.
        width : float
            How much work it is to add the sums of one block, in units of one number of a row.
        """
        return over_blocks(
            self.shape[0], self.numbers, lambda low, high: run(self, low, high, *arguments), self.worth(width)
        )

    def fold(
        self, add: Callable[[Any, Sums], Any], total: Any, run: Callable[..., Sums], *arguments: Any, width: float
    ) -> Any:
        """Return a total to which what :meth:`passes` yields was added, block after block.

        ``add(total, sums)`` is a function of a module, which other processes can import. It returns the next total, which
        may be the same object, changed.
        """
        for sums in self.passes(run, *arguments, width=width):
            total = add(total, sums)
        return total

    def worth(self, width: float) -> float:
        """Return how many rows are as much work as to add the sums of a block."""
        return width * self.shape[0] / max(self.numbers, 1)

    def blocks(self, width: float) -> tuple[int, int]:
        """Return how many rows a block has at most, and how many blocks there are."""
        n = self.shape[0]
        step = min(rows_per_block(n, self.worth(width)), n)
        return step, -(-n // step)


def plus(total: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Add an array to another one, which is returned."""
    total += part
    return total
