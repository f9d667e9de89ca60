"""Rows on Dask workers: the same numbers whoever computes them, and what is not accepted."""

from __future__ import annotations

import math
import sys
import tempfile
from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from row_clusters import GRAIN, local_cluster, sums

from tiebreak.objectives.matrices.parts import plus
from tiebreak.rows.cluster import SMALL
from tiebreak.rows.partitions import Partitions, covering, partition_edges
from tiebreak.rows.pieces import exact_sum

N, D = 5000, 7


@pytest.fixture(scope="module")
def client():
    with local_cluster(1) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)), rng.standard_normal(N), rng.random(N), rng.standard_normal(D)


def test_without_a_client_or_the_package_an_error_says_what_to_do(data, monkeypatch):
    A, b = da.from_array(data[0], chunks=(900, -1)), data[1]
    with pytest.raises(ValueError, match=r"Dask arrays need a client, and there is none: client = distributed.Client\("):
        Partitions(A, b)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'tiebreak\[dask\]'"):
        Partitions(A, b)


def on_dask(A, b, w, rows, columns=-1):
    return da.from_array(A, chunks=(rows, columns)), da.from_array(b, chunks=rows + 1), da.from_array(w, chunks=N)


def as_sparse(A, rows):
    empty = scipy.sparse.csr_array((0, 0))
    return da.from_array(A * (A > 0.5), chunks=(rows, -1)).map_blocks(scipy.sparse.csr_array, dtype=A.dtype, meta=empty)


@pytest.fixture(scope="module")
def expected(data):
    """What one process computes that has all rows."""
    A, b, w, x = data
    return np.array(sums(A, b, w / (math.fsum(w) / N), 0, x))


def test_sums_have_the_same_bits_for_all_chunks_and_numbers_of_workers(client, data, expected):
    A, b, w, x = data
    for workers, rows, columns in ((1, 700, 3), (1, N, -1), (2, 512, -1), (2, 100, -1), (4, 1024, 4)):
        client.cluster.scale(max(workers, len(client.nthreads())))
        client.wait_for_workers(workers, timeout=60)
        partitions = Partitions(*on_dask(A, b, w, rows, columns), client=client, grain=GRAIN)
        found = np.array(list(partitions.passes(sums, x)))
        assert found.tobytes() == expected.tobytes()
        assert all(edge % GRAIN == 0 for edge in partitions.edges[:-1])


def test_blocks_that_are_longer_than_partitions_have_the_same_bits(client, data):
    A, b, w, x = data
    partitions = Partitions(*on_dask(A, b, w, 700), client=client, grain=GRAIN)
    weights = w / (math.fsum(w) / N)
    for step in (4 * GRAIN, 64 * GRAIN):
        edges = [*range(0, N, step), N]
        expected = [b[low:high] @ (weights[low:high] * (A[low:high] @ x)) for low, high in pairwise(edges)]
        assert list(partitions.passes(one_sum, x, step=step)) == expected


def one_sum(A, b, w, first, x):
    return [b @ (w * (A @ x))]


def test_chunks_of_which_both_rows_and_targets_are_made_are_loaded_once(client, data, tmp_path):
    A, b, w, _ = data
    source = da.from_array(np.column_stack([A, b, w]), chunks=(700, -1))
    loaded = source.map_blocks(count_load, str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    partitions = Partitions(loaded[:, :D], loaded[:, D], loaded[:, D + 1], client=client, grain=GRAIN)
    assert len(list(tmp_path.iterdir())) == math.ceil(N / 700)
    np.testing.assert_array_equal(partitions.take(np.arange(N))[1], b)


def count_load(part, folder):
    tempfile.mkstemp(dir=folder)
    return part


def test_large_results_come_in_groups(client, data, expected, monkeypatch):
    A, b, w, x = data
    partitions = Partitions(*on_dask(A, b, w, 512), client=client, grain=GRAIN)
    monkeypatch.setattr("tiebreak.rows.partitions.MOST_BYTES", 3 * 8 * (D + 1))
    for width in (1e9, 0.0):  # one at a time as long as nothing is known, and three of them when it is
        assert np.array(list(partitions.passes(sums, x, width=width))).tobytes() == expected.tobytes()


def test_large_results_are_added_on_the_workers(client, data, expected, monkeypatch):
    A, b, w, x = data
    total = np.zeros(D + 1)
    for part in expected:
        total += part
    here, there = (Partitions(*on_dask(A, b, w, rows), client=client, grain=GRAIN) for rows in (512, 1500))
    assert here.fold(plus, np.zeros(D + 1), sums, x, width=D).tobytes() == total.tobytes()
    monkeypatch.setattr("tiebreak.rows.partitions.LITTLE_BYTES", 0)
    monkeypatch.setattr("tiebreak.rows.partitions.MOST_BYTES", 3 * 8 * (D + 1))
    for partitions in (here, there):
        received, start = partitions.cluster.bytes_received, np.zeros(D + 1)
        assert partitions.fold(plus, start, sums, x, width=D).tobytes() == total.tobytes()
        assert partitions.cluster.bytes_received - received == total.nbytes
        assert not start.any()


def test_partitions_of_unknown_size_are_measured_on_the_workers(client, data):
    A, b, w, _ = data
    seen = da.from_array(np.arange(N) % 2 == 0, chunks=900)
    partitions = Partitions(da.from_array(A, chunks=(900, -1))[seen], b[::2], w[::2], grain=GRAIN)
    taken = partitions.take(np.arange(N // 2))
    np.testing.assert_array_equal(taken[0], A[::2])
    np.testing.assert_array_equal(taken[1], b[::2])
    assert partitions.shape == (N // 2, D)


@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_rows_are_taken_in_any_order_and_more_than_once(client, data, kind):
    A, b, w, _ = data
    A = A.astype(np.float32) if kind == "float32" else A
    matrix = as_sparse(A, 800) if kind == "csr" else da.from_array(A, chunks=(800, -1))
    partitions = Partitions(matrix, b, w, client=client, grain=GRAIN)
    indices = np.random.default_rng(1).integers(N, size=300)
    indices[:3] = N - 1, 0, 0
    for rows, targets, weights in (partitions.take(indices), partitions.ahead(indices).result()):
        if kind == "csr":
            assert rows.format == "csr" and partitions.sparse
            np.testing.assert_array_equal(rows.toarray(), (A * (A > 0.5))[indices])
        else:
            assert rows.dtype == A.dtype and rows.flags.c_contiguous
            np.testing.assert_array_equal(rows, A[indices])
        np.testing.assert_array_equal(targets, b[indices])
        np.testing.assert_array_equal(weights, (w / (math.fsum(w) / N))[indices])


def test_what_moves_and_what_is_waited_for_is_counted(client, data):
    A, b, w, x = data
    partitions = Partitions(*on_dask(A, b, w, 1024), client=client, grain=GRAIN)
    moved, waited = partitions.bytes_moved, partitions.seconds_waited
    partitions.take(np.arange(100))
    assert partitions.bytes_moved - moved == 100 * 8 * (D + 2)
    list(partitions.passes(sums, x))
    assert partitions.bytes_moved - moved >= 100 * 8 * (D + 2) + 8 * (D + 1) * math.ceil(N / GRAIN)
    assert partitions.seconds_waited > waited


def test_large_arguments_are_sent_once(client, data):
    A, b, w, _ = data
    partitions = Partitions(*on_dask(A, b, w, 1024), client=client, grain=GRAIN)
    large, before = np.arange(float(SMALL)), partitions.cluster.bytes_sent
    assert list(partitions.passes(first_and_last, large)) == [(large[-1], first) for first in partitions.edges[:-1]]
    assert large.nbytes <= partitions.cluster.bytes_sent - before < 1.1 * large.nbytes


def first_and_last(A, b, w, first, large):
    return [(large[-1], first)]


def test_tasks_have_names_on_the_dashboard(client, data):
    A, b, w, x = data
    partitions = Partitions(*on_dask(A, b, w, 1024), client=client, grain=GRAIN)
    list(partitions.passes(sums, x))
    partitions.take(np.arange(5))
    known = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"tiebreak-load", "tiebreak-rows", "tiebreak-pass", "tiebreak-take"} <= set(known)


def test_rows_of_zeros_and_ones_are_coded(client, data):
    A, b, _, _ = data
    labels = (b > 0).astype(float)
    seen = []

    def coding(distinct):
        seen.extend(distinct)
        return 2.0, -1.0

    partitions = Partitions(da.from_array(A, chunks=(999, -1)), labels, client=client, grain=GRAIN, coding=coding)
    assert seen == [0.0, 1.0]
    np.testing.assert_array_equal(partitions.take(np.arange(N))[1], np.where(b > 0, 1.0, -1.0))


def test_what_is_known_of_all_rows_is_that_of_memory(client, data):
    A, b, w, _ = data
    partitions = Partitions(as_sparse(A, 800), b, w, client=client, grain=lambda rows, columns, numbers: numbers // columns)
    sparse = A * (A > 0.5)
    assert partitions.matrix.numbers == np.count_nonzero(sparse)
    assert partitions.matrix.longest_row == np.count_nonzero(sparse, axis=1).max()
    assert (partitions.matrix.largest, partitions.matrix.smallest) == (A.max(), A[A > 0.5].min())
    assert partitions.grain == np.count_nonzero(sparse) // D
    assert (partitions.weights.least, partitions.targets.smallest) == (w.min(), np.abs(b).min())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda A, b, w: (A, b[:-1], w), "`b` must have one entry for each of the 5000 rows of `A`, got 4999"),
        (lambda A, b, w: (A, b, -w), "`sample_weight` must be non-negative"),
        (lambda A, b, w: (A, b, w * 0.0), "`sample_weight` must be non-negative and not all zero"),
        (lambda A, b, w: (A, b, with_entry(w, 17, 1e-200)), "`sample_weight` must be 0 or at least"),
        (lambda A, b, w: (with_entry(A, (4321, 2), np.nan), b, w), r"`A` must hold finite numbers, got nan at \[4321, 2\]"),
        (lambda A, b, w: (A, with_entry(b, 3000, np.inf), w), r"`b` must hold finite numbers, got inf at \[3000\] \(1 such"),
        (lambda A, b, w: (1e-200 * A, b, w), "`A` must have a largest entry between"),
    ],
)
def test_what_is_no_data_is_refused_as_in_memory(client, data, change, message):
    A, b, w, _ = data
    A, b, w = change(A, b, w)
    with pytest.raises(ValueError, match=message):
        Partitions(da.from_array(A, chunks=(900, 3)), da.from_array(b, chunks=777), w, client=client, grain=GRAIN)


def with_entry(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    "chunk", [lambda part: part.astype(str), lambda part: part[:, 0], lambda part: part[:, : len(part) % 7]]
)
def test_chunks_that_are_no_matrices_are_refused(client, data, chunk):
    A, b, _, _ = data
    wrong = da.from_array(A, chunks=(900, -1)).map_blocks(chunk, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="`A` must"):
        Partitions(wrong, b, client=client, grain=GRAIN)


def test_what_is_no_client_is_refused(data):
    A, b, _, _ = data
    with pytest.raises(ValueError, match="`client` must be a distributed.Client, got 'tcp://…'"):
        Partitions(da.from_array(A, chunks=(900, -1)), b, client="tcp://…")


def test_partitions_end_near_the_ends_of_chunks():
    assert partition_edges([512, 1024, 100], 512) == [0, 512, 1536, 1636]
    assert partition_edges([100] * 7, 1000) == [0, 700]
    assert partition_edges([0, 600, 0], 512) == [0, 512, 600]
    assert covering([0, 4, 0, 4], 2, 6) == [(1, 2, 4), (3, 0, 2)]


def test_exact_sums_of_parts_are_those_of_all():
    rng = np.random.default_rng(0)
    numbers = rng.random(1000) * 10.0 ** rng.integers(-30, 30, size=1000)
    for cut in (1, 333, 998):
        assert math.fsum([*exact_sum(numbers[:cut]), *exact_sum(numbers[cut:])]) == math.fsum(numbers)
