"""Passes over the rows of data: blocks of rows in threads, whose results come back in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

BLOCKS = 8  # blocks at most; a fixed number, as sums over blocks must not depend on how many processors there are
LEAST_NUMBERS = 1 << 18  # numbers per block; threads cost more than they save on fewer

Sums = TypeVar("Sums")


def over_blocks(rows: int, numbers: int, run: Callable[[int, int], Sums], blocks: int | None = None) -> list[Sums]:
    """Return ``run(low, high)`` for each of several blocks of rows, in the order of the rows.

    Parameters
    ----------
    rows : int
        The number of rows.
    numbers : int
        How many numbers all rows hold together, which tells whether threads are worth it.
    run : callable
        What to do with the rows from ``low`` to ``high``. Compiled kernels run at the same time in several threads.
    blocks : int, optional
        How many blocks; if it is not given, a few where there are many numbers, else one.

    Examples
    --------
    >>> over_blocks(10, 10, lambda low, high: high - low)
    [10]
    """
    threaded = max(1, min(BLOCKS, rows, numbers // LEAST_NUMBERS))
    blocks = blocks or threaded
    edges = [rows * k // blocks for k in range(blocks + 1)]
    if threaded == 1:
        return list(map(run, edges[:-1], edges[1:]))
    with ThreadPoolExecutor(min(blocks, processors())) as pool:  # made anew: threads do not survive a fork
        return list(pool.map(run, edges[:-1], edges[1:]))


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
