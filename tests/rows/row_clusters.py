"""Dask clusters of real processes on this machine, and what their workers run."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

GRAIN = 512


@contextlib.contextmanager
def local_cluster(workers: int, **options):
    """A scheduler in this process, workers in others, each with somebody who starts it again."""
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
        **options,
    )
    with cluster, Client(cluster) as client:
        yield client


@contextlib.contextmanager
def separate_cluster(folder: Path, *options: str, failures: int = 3):
    """A scheduler and a worker that are processes of their own: yields the address and the scheduler's process."""
    place = folder / "scheduler.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures),
        "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "50ms",
    }
    tail = ["--scheduler-file", str(place), "--no-dashboard"]
    scheduler = started(folder, environment, "scheduler", "--port", "0", *tail)
    worker = started(folder, environment, "worker", "--nthreads", "1", "--death-timeout", "20", *tail, *options)
    try:
        until(place.exists)
        yield str(place), scheduler
    finally:
        for process in (worker, scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with whatever it has started
            process.wait()


def started(folder: Path, environment: dict[str, str], kind: str, *options: str) -> subprocess.Popen:
    with open(folder / f"{kind}.log", "w") as log:
        run = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        return subprocess.Popen(run, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def until(condition, seconds: float = 30.0):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def pids(client) -> list[int]:
    return list(client.run(os.getpid).values())


def sums(A, b, w, first, x):
    """The squared error of each block of rows, and its gradient."""
    found = []
    for low in range(0, b.size, GRAIN):
        rows, weights = A[low : low + GRAIN], w[low : low + GRAIN]
        residual = rows @ x - b[low : low + GRAIN]
        found.append(np.append((weights * residual) @ rows, weights @ residual**2))
    return found


def die_once(A, b, w, first, x, marker):
    """The same, but the first worker that looks at the rows after the first partition is killed."""
    if first > 0:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    return sums(A, b, w, first, x)


def slowly(A, b, w, first, x):
    time.sleep(0.2)
    return sums(A, b, w, first, x)


def endlessly(A, b, w, first, marker):
    Path(marker).touch()
    time.sleep(60)
    return []


def fail_at(A, b, w, first, row):
    if first <= row < first + b.size:
        raise ArithmeticError("a number is missing")
    return []


def take_all_memory(A, b, w, first):
    kept = []
    for _ in range(400):
        kept.append(np.ones(4_000_000))
        time.sleep(0.01)
    return [len(kept)]
