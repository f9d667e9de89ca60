"""Tasks on Dask workers: named, tried again where workers die, and never waited for without end."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse

from tiebreak.engine import checks
from tiebreak.rows.errors import RowsError

RETRIES = 2  # times that a task that raises is run again
TIMEOUT = "120 s"  # time without any task finishing after which to give up
TICKS = 16  # looks at what has finished, per time-out
SMALL = 1 << 15  # bytes of arguments that are sent with each task; larger ones are a task of their own, sent once
HOW = "client = distributed.Client(distributed.LocalCluster()) makes one on this machine"


class Cluster:
    """A Dask client, and what is done through it.

    Parameters
    ----------
    client : distributed.Client or None
        None for the current one.
    timeout : float or None
        Seconds without any task finishing after which to give up. None for what Dask's configuration says of
        ``tiebreak.timeout``, or else 120.

    Attributes
    ----------
    bytes_sent, bytes_received : int
        Arguments that went out, and results that came back.
    seconds_waited : float
        Time that callers spent waiting for results.
    """

    def __init__(self, client: Any = None, timeout: float | None = None) -> None:
        self.client = checked_client(client)
        self.timeout = checks.real(_configured() if timeout is None else timeout, "timeout", above=0.0)
        self.bytes_sent = self.bytes_received = 0
        self.seconds_waited = 0.0
        self._lock = threading.Lock()

    def start(self, name: str, function: Callable[..., Any], *columns: Sequence[Any], shared: Any = None) -> list[Any]:
        """Return futures of ``function(*row)``, or ``function(*row, shared)``, for each row of the columns.

        Parameters
        ----------
        name : str
            What the dashboard shows.
        function : callable
            It must have no effect but its result: it may run more than once.
        columns : sequences
            Arguments, of which futures are replaced by their results.
        shared : optional
            One more argument, the same for all. It goes to the scheduler once.
        """
        if self.client.status != "running" or any(getattr(each, "status", "") == "cancelled" for each in columns[0]):
            raise self._gone(f"the client is {self.client.status}")
        token, count = uuid.uuid4().hex, len(columns[0])
        keys = [f"{name}-{token}-{k}" for k in range(count)]
        with self._explaining():
            if shared is not None:
                size = bytes_of(shared)
                if size > SMALL:
                    with _without_warning():
                        shared = self.client.submit(
                            _same, shared, key=f"tiebreak-point-{token}", retries=RETRIES, pure=False
                        )
                    self._count(sent=size)
                else:
                    self._count(sent=size * count)
                columns = (*columns, [shared] * count)
            return self.client.map(function, *columns, key=keys, retries=RETRIES, pure=False)

    def compute(self, tasks: list[Any], own: bool) -> list[Any]:
        """Return futures of delayed values; if numbers in them are not the user's ``own``, Dask does not warn of many."""
        with self._explaining(), nullcontext() if own else _without_warning():
            return self.client.compute(tasks, retries=RETRIES)

    def collect(self, futures: list[Any], what: Callable[[int], str], waited: bool = True) -> list[Any]:
        """Return the results of futures, fetched directly from the workers, or raise a :class:`RowsError`.

        Parameters
        ----------
        futures : list
        what : callable
            What a future is of, for errors.
        waited : bool
            Whether the caller has nothing else to do meanwhile, so that the time counts.
        """
        began = time.perf_counter()
        try:
            self.finish(futures, what)
            with self._explaining():
                results = self.client.sync(self.client.gather, futures, direct=True, callback_timeout=self.timeout)
        finally:
            self._count(seconds=time.perf_counter() - began if waited else 0.0)
        self._count(received=bytes_of(results))
        return results

    def finish(self, futures: list[Any], what: Callable[[int], str]) -> None:
        """Wait until all have finished; raise if one fails, or if none finishes for as long as the time-out."""
        from distributed import wait

        done, since = -1, time.monotonic()
        while True:
            with self._explaining():
                try:
                    wait(futures, timeout=self.timeout / TICKS)
                    finished = True
                except TimeoutError:
                    finished = False
                self._raise_first(futures, what)
            if finished:
                return
            count = sum(future.done() for future in futures)
            if count > done:
                done, since = count, time.monotonic()
            elif time.monotonic() - since >= self.timeout:
                waiting = [what(k) for k, future in enumerate(futures) if not future.done()]
                raise RowsError(
                    f"nothing was heard for {self.timeout:g} s of {waiting[0]}"
                    + (f" and {len(waiting) - 1} more" if len(waiting) > 1 else "")
                    + f"; {self._workers()}. dask.config.set({{'tiebreak.timeout': '10 min'}}) waits longer"
                )

    def waited(self, seconds: float) -> None:
        """Count time that somebody else spent waiting."""
        self._count(seconds=seconds)

    def _raise_first(self, futures: list[Any], what: Callable[[int], str]) -> None:
        for k, future in enumerate(futures):
            if future.status == "error":
                raise _failed(what(k), future.exception()) from future.exception()

    def _workers(self) -> str:
        """Return how many workers there are, if the scheduler still answers."""
        try:
            count = len(self.client.sync(self.client.nthreads, callback_timeout=2.0))
        except Exception:
            return f"the scheduler at {self._address()} does not answer"
        return f"the scheduler at {self._address()} knows {count} worker" + "s" * (count != 1)

    def _gone(self, why: str) -> RowsError:
        return RowsError(
            f"the scheduler at {self._address()} is gone, or has lost rows that it cannot compute again: make a new"
            f" client, the arrays and the objective anew, and continue from a checkpoint ({why})"
        )

    def _address(self) -> str:
        return str(getattr(self.client.scheduler, "address", "an unknown address"))

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn what Dask raises into a RowsError with a sentence."""
        try:
            yield
        except (RowsError, KeyboardInterrupt):
            raise
        except (CancelledError, asyncio.CancelledError) as error:
            raise self._gone(_told(error)) from error
        except TimeoutError as error:
            raise RowsError(f"results did not arrive within {self.timeout:g} s; {self._workers()}") from error
        except Exception as error:
            raise RowsError(f"the scheduler at {self._address()} cannot be reached: {_told(error)}") from error

    def _count(self, sent: int = 0, received: int = 0, seconds: float = 0.0) -> None:
        with self._lock:
            self.bytes_sent += sent
            self.bytes_received += received
            self.seconds_waited += seconds


def checked_client(client: Any) -> Any:
    """Return a running client: the given one, or the current one."""
    try:
        import distributed
    except ImportError:
        raise ImportError("Dask arrays need the package `distributed`: pip install 'tiebreak[dask]'") from None
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise ValueError(f"Dask arrays need a client, and there is none: {HOW}") from None
    if not isinstance(client, distributed.Client):
        raise ValueError(f"`client` must be a distributed.Client, got {checks.shown(client)}; {HOW}")
    if client.asynchronous:
        raise ValueError("`client` must not be asynchronous: leave asynchronous=True out")
    if client.status != "running":
        raise ValueError(f"`client` must be connected to a scheduler, got one that is {client.status}; {HOW}")
    return client


def _configured() -> float:
    """Return the time-out that Dask's configuration asks for, in seconds."""
    import dask

    return dask.utils.parse_timedelta(dask.config.get("tiebreak.timeout", TIMEOUT))


def bytes_of(value: Any) -> int:
    """Return how many bytes the arrays in a value take."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if scipy.sparse.issparse(value):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if isinstance(value, (tuple, list)):
        return sum(map(bytes_of, value))
    return 8


def _failed(what: str, error: BaseException) -> RowsError:
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return RowsError(
            f"{what} cannot be computed: {error.allowed_failures + 1} workers died trying, most often for want of memory;"
            " use smaller chunks, or workers with more memory"
        )
    return RowsError(f"{what} cannot be computed: {_told(error)}")


def _told(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {' '.join(text)}" if text else type(error).__name__


def _without_warning() -> Any:
    """Return a context in which Dask does not warn of numbers that are sent with tasks."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"})


def _same(value: Any) -> Any:
    return value
