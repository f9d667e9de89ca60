"""Passes over the rows of data: blocks of rows in threads, whose sums are added in the order of the rows.

How rows are grouped depends on the size of the data alone. So sums have the same bits whether one thread makes them or many,
in memory or on other machines.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

BLOCK_ROWS = 4096  # rows of a block at least: rounding errors grow with them and with the blocks, not with all rows
LEAST_NUMBERS = 1 << 18  # numbers of data from which on threads are worth it
WORTH = 4.0  # times that a block is more work than its sums are to add

Sums = TypeVar("Sums")


def rows_per_block(rows: int, worth: float = 0.0) -> int:
    """Return how many rows are summed up as one block: 4096 times a power of two.

    Parameters
    ----------
    rows : int
        The number of rows.
    worth : float
        How many rows are as much work as adding the sums of a block.
    """
    step = BLOCK_ROWS
    while step < WORTH * worth and step < rows:
        step *= 2
    return step


def over_blocks(rows: int, numbers: int, run: Callable[[int, int], Sums], worth: float = 0.0) -> Iterator[Sums]:
    """Yield ``run(low, high)`` for each block of rows, in the order of the rows.

    Parameters
    ----------
    rows, numbers : int
        The number of rows, and how many numbers they hold, which tells whether threads are worth it.
    run : callable
        What to do with the rows from ``low`` to ``high``. Compiled kernels run at the same time in several threads.
    worth : float
        How many rows are as much work as adding the sums of a block.

    Examples
    --------
    >>> list(over_blocks(10, 10, lambda low, high: high - low))
    [10]
    """
    edges = [*range(0, rows, rows_per_block(rows, worth)), rows]
    threads = min(len(edges) - 1, threads_allowed()) if numbers >= LEAST_NUMBERS else 1
    if threads <= 1:
        yield from map(run, edges[:-1], edges[1:])
        return
    pool, waiting = _pool(threads), deque[Future[Sums]]()
    try:
        for low, high in itertools.pairwise(edges):
            if len(waiting) > 2 * threads:  # sums wait for those before them, and take memory
                yield waiting.popleft().result()
            waiting.append(pool.submit(run, low, high))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for each in waiting:
            each.cancel()


_own = threading.local()


def _pool(threads: int) -> ThreadPoolExecutor:
    """Return threads that wait for work. None survives a fork, and two passes at the same time have their own."""
    key = os.getpid(), threads
    if getattr(_own, "key", None) != key:
        _own.key, _own.pool = key, ThreadPoolExecutor(threads, thread_name_prefix="tiebreak-pass")
    return _own.pool


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_allowed() -> int:
    """Return how many threads a pass may use.

    ``TIEBREAK_THREADS`` says so, if it is set. Else it is as many as there are processors that this process may use, but no
    more than what linear algebra is allowed: by ``threadpoolctl``, by joblib in its workers, or by variables such as
    ``OMP_NUM_THREADS``.
    """
    given = os.environ.get("TIEBREAK_THREADS", "")
    if given:
        if not given.isdecimal() or int(given) == 0:
            raise ValueError(f"TIEBREAK_THREADS must be a whole number ≥ 1, got {given!r}")
        return int(given)
    if (known := getattr(_own, "threads", None)) is not None:
        return known
    return max(1, min([processors(), *(library["num_threads"] for library in _libraries().info())]))


def one_thread() -> Any:
    """Return a context in which libraries of linear algebra have one thread each, and passes those that they had."""
    return _OneThread()


class _OneThread:
    lock, depth = threading.Lock(), 0  # threads that are inside: the limit is one of the process
    limit: Any = None

    def __enter__(self) -> None:
        with _OneThread.lock:
            self._before, _own.threads = getattr(_own, "threads", None), threads_allowed()
            if _OneThread.depth == 0:
                _OneThread.limit = _libraries().limit(limits=1, user_api="blas")
            _OneThread.depth += 1

    def __exit__(self, *failure: object) -> None:
        with _OneThread.lock:
            _own.threads = self._before
            _OneThread.depth -= 1
            if _OneThread.depth == 0:
                _OneThread.limit.restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
