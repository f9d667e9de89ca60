"""What happens to rows on Dask when processes die, stop or run out of memory: real processes, and real signals."""

from __future__ import annotations

import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
from row_clusters import (
    GRAIN,
    die_once,
    endlessly,
    fail_at,
    local_cluster,
    pids,
    separate_cluster,
    slowly,
    sums,
    take_all_memory,
    until,
)

from tiebreak.rows.errors import RowsError
from tiebreak.rows.partitions import Partitions

N, D = 4000, 5


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)), rng.standard_normal(N), rng.standard_normal(D)


@pytest.fixture(scope="module")
def expected(data):
    A, b, x = data
    return np.array(sums(A, b, np.ones(N), 0, x)).tobytes()


def partitions_of(data, client, timeout=60.0):
    return Partitions(da.from_array(data[0], chunks=(700, -1)), data[1], client=client, grain=GRAIN, timeout=timeout)


def all_sums(partitions, x, function=sums, *arguments):
    return np.array(partitions.passes(function, x, *arguments)).tobytes()


def test_a_worker_that_is_killed_in_a_pass_changes_nothing(client, data, expected, tmp_path):
    partitions, before = partitions_of(data, client), set(pids(client))
    assert all_sums(partitions, data[2], die_once, str(tmp_path / "died")) == expected
    assert (tmp_path / "died").exists()
    until(lambda: len(client.nthreads()) == 2)
    assert len(before & set(pids(client))) == 1


def test_workers_that_are_killed_between_passes_change_nothing(client, data, expected):
    partitions = partitions_of(data, client)
    assert all_sums(partitions, data[2]) == expected
    os.kill(pids(client)[0], signal.SIGKILL)
    assert all_sums(partitions, data[2]) == expected
    indices = np.arange(0, N, 7)
    np.testing.assert_array_equal(partitions.take(indices)[0], data[0][indices])


def test_all_workers_may_be_replaced(client, data, expected):
    until(lambda: len(client.nthreads()) == 2)
    partitions, before = partitions_of(data, client), pids(client)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    indices = np.arange(0, N, 7)
    np.testing.assert_array_equal(partitions.take(indices)[0], data[0][indices])
    assert all_sums(partitions, data[2]) == expected
    until(lambda: len(client.nthreads()) == 2)
    assert not set(before) & set(pids(client))


def test_a_worker_that_stops_is_waited_for(client, data, expected):
    until(lambda: len(client.nthreads()) == 2)
    partitions, stopped = partitions_of(data, client), pids(client)[0]
    os.kill(stopped, signal.SIGSTOP)
    resume = threading.Timer(1.0, os.kill, (stopped, signal.SIGCONT))
    resume.start()
    try:
        assert all_sums(partitions, data[2], slowly) == expected
    finally:
        resume.join()
    assert stopped in pids(client)


def test_a_worker_that_never_answers_is_not_waited_for_without_end(client, data, expected):
    until(lambda: len(client.nthreads()) == 2)
    partitions, stopped = partitions_of(data, client, timeout=2.0), pids(client)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(RowsError, match="nothing was heard for 2 s of partition 0 .* knows 2 workers"):
            partitions.passes(slowly, data[2])
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert all_sums(partitions, data[2]) == expected


def test_a_partition_that_raises_is_named(client, data, expected):
    partitions = partitions_of(data, client)
    message = r"partition 2 \(rows 1536 to 2047\) cannot be computed: ArithmeticError: a number is missing"
    with pytest.raises(RowsError, match=message):
        partitions.passes(fail_at, 1600)
    assert all_sums(partitions, data[2]) == expected


def test_a_chunk_that_cannot_be_loaded_is_named(client, data):
    def load(part, block_info=None):
        raise OSError("no such file")

    broken = da.from_array(data[0], chunks=(700, -1)).map_blocks(load, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(RowsError, match="a chunk of `A` cannot be computed: OSError: no such file"):
        Partitions(broken, data[1], client=client, grain=GRAIN)


def test_a_task_that_exceeds_the_memory_of_its_worker_is_an_error(data, expected, tmp_path):
    from distributed import Client

    with (
        separate_cluster(tmp_path, "--memory-limit", "600MB", failures=0) as (place, _),
        Client(scheduler_file=place) as client,
    ):
        partitions = partitions_of(data, client)
        with pytest.raises(RowsError, match="cannot be computed: 1 workers? died trying, most often for want of memory"):
            partitions.passes(take_all_memory)
        assert all_sums(partitions, data[2]) == expected  # by the worker that took its place


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_killed_is_an_error_and_another_one_continues(client, data, expected, tmp_path):
    from distributed import Client

    with separate_cluster(tmp_path) as (place, scheduler), Client(scheduler_file=place, set_as_default=False) as other:
        partitions = partitions_of(data, other, timeout=10.0)
        assert all_sums(partitions, data[2]) == expected
        killer = threading.Thread(target=lambda: (until((tmp_path / "began").exists), scheduler.kill()))
        killer.start()
        began = time.monotonic()
        with pytest.raises(RowsError, match="the scheduler at tcp://.* is gone"):
            partitions.passes(endlessly, str(tmp_path / "began"))
        killer.join()
        with pytest.raises(RowsError, match="the scheduler at tcp://"):
            partitions.take(np.arange(10))
        assert time.monotonic() - began < 40.0  # four times the time-out, not a measurement
    assert all_sums(partitions_of(data, client), data[2]) == expected
