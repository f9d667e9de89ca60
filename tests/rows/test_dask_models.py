"""Linear models of Dask arrays: the same numbers, bit for bit, as those of the same rows in memory."""

from __future__ import annotations

import os
import signal

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from row_clusters import local_cluster, pids, separate_cluster, until

import tiebreak
from tiebreak import Huber, L1Ball, L2Ball, LeastSquares, Logistic, Problem, SquaredNorm
from tiebreak.driver.result import Status
from tiebreak.engine.callouts import take_failure
from tiebreak.engine.randomness import Moment, keys_of
from tiebreak.objectives.base import draw
from tiebreak.objectives.matrices.distant import Distant
from tiebreak.rows import LEAST_NUMBERS
from tiebreak.rows.errors import RowsError

N, D = 18_000, 16  # rows and columns: enough for several partitions
METHODS = ["sbcgi", "sbcgf", "pb-apg", "pavr"]


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    """Rows of very different lengths, columns that repeat others: many minimisers, and draws that are not even."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, D)) * rng.lognormal(size=N)[:, None]
    A[:, D // 2 :] = A[:, : D // 2]
    return A, A @ rng.standard_normal(D) + rng.standard_normal(N), rng.random(N)


def sparse_data(n=30_000, d=60, per_row=10):
    rng = np.random.default_rng(0)
    places = rng.integers(d, size=n * per_row), np.arange(0, n * per_row + 1, per_row)
    matrix = scipy.sparse.csr_array((rng.standard_normal(n * per_row), *places), (n, d))
    matrix.sum_duplicates()
    return matrix, matrix @ rng.standard_normal(d) + rng.standard_normal(n)


def on_dask(matrix, rows):
    if not scipy.sparse.issparse(matrix):
        return da.from_array(matrix, chunks=(rows, -1))
    n, d = matrix.shape
    parts = [dask.delayed(matrix[low : low + rows]) for low in range(0, n, rows)]
    shapes = [(min(rows, n - low), d) for low in range(0, n, rows)]
    empty = scipy.sparse.csr_array((0, d))
    return da.concatenate([da.from_delayed(*each, meta=empty) for each in zip(parts, shapes, strict=True)])


@pytest.fixture(scope="module")
def pair(client, data):
    """Squares in memory, and on workers."""
    A, b, w = data
    return LeastSquares(A, b, w), LeastSquares(on_dask(A, 3000), b, da.from_array(w, chunks=999))


def problem_of(objective, domain=None):
    return Problem(SquaredNorm(), objective, domain or L2Ball(2.0))


@pytest.mark.parametrize("method", METHODS)
def test_runs_have_the_same_bits_as_in_memory(pair, method):
    assert isinstance(pair[1].matrix, Distant)
    here, there = (tiebreak.minimize(problem_of(each), method, max_queries=5 * N, seed=3) for each in pair)
    assert there.x.tobytes() == here.x.tobytes()
    assert (there.upper_gap_bound, there.lower_gap_bound) == (here.upper_gap_bound, here.lower_gap_bound)
    assert there.queries == here.queries
    assert (here.bytes_moved, here.seconds_waited) == (0, 0.0)
    assert there.bytes_moved > 0 and 0.0 < there.seconds_waited < there.wall_seconds


def test_one_pass_sums_up_all_squares_for_the_active_set(pair):
    here, there = (tiebreak.minimize(problem_of(each, L1Ball(2.0)), max_queries=10 * N) for each in pair)
    assert type(there.method).__name__ == "ActiveSet"
    assert there.x.tobytes() == here.x.tobytes()
    assert there.upper_gap_bound == here.upper_gap_bound < 1e-6


def test_the_progress_bar_tells_what_was_moved(pair, capsys):
    tiebreak.minimize(problem_of(pair[1]), "sbcgi", max_queries=5 * N, progress=True)
    assert "MB moved" in capsys.readouterr().err


@pytest.mark.parametrize("model", [LeastSquares, Logistic, Huber])
@pytest.mark.parametrize("kind", ["float32", "csr"])
def test_full_passes_have_the_same_bits_as_in_memory(client, data, model, kind):
    if kind == "csr":
        (A, b), w = sparse_data(), None
    else:
        A, b, w = data[0].astype(np.float32), data[1], data[2]
    b = (b > 0.0).astype(float) if model is Logistic else b
    here, there = model(A, b, sample_weight=w), model(on_dask(A, 5000), da.from_array(b, chunks=7001), sample_weight=w)
    x = np.random.default_rng(1).standard_normal(A.shape[1])
    for one, other in zip((*here.survey(x), *here.sharp(x).survey), (*there.survey(x), *there.sharp(x).survey), strict=True):
        assert np.array_equal(one, other)
    assert there.lipschitz == here.lipschitz
    assert there.sample_lipschitz == here.sample_lipschitz
    assert there.n_samples == here.n_samples and there.dimension == here.dimension
    indices = [5, 17_000, 5]
    assert there.value(x, indices) == here.value(x, indices)


def test_sparse_rows_are_drawn_as_in_memory(client):
    A, b = sparse_data()
    here, there = LeastSquares(A, b), LeastSquares(on_dask(A, 7000), b)
    assert isinstance(there.matrix, Distant)
    here, there = (tiebreak.minimize(problem_of(each), "sbcgi", max_queries=100_000, seed=1) for each in (here, there))
    assert there.x.tobytes() == here.x.tobytes()


def test_few_rows_are_taken_into_memory(client, data):
    A, b, w = data
    few = LEAST_NUMBERS // D - 1
    model = LeastSquares(on_dask(A[:few], 3000), b[:few], w[:few])
    assert model.in_memory
    x = np.ones(D)
    assert model.value(x) == LeastSquares(A[:few], b[:few], w[:few]).value(x)


def test_labels_are_checked_over_all_partitions(client, data):
    A, b, _ = data
    labels = np.where(b > 0.0, 1.0, -1.0)
    labels[-1] = 0.0
    with pytest.raises(ValueError, match="`y` must hold labels −1 and 1, or 0 and 1, got -1, 0, 1"):
        Logistic(on_dask(A, 3000), labels)


def test_draws_of_any_moment_are_those_in_memory(pair, data):
    here, there = pair
    upper, lower = keys_of([5])
    drawn = [(upper, 7, 3), (upper, 8, 3), (lower, 4, 50), (upper, 8, 3), (upper, 2, 1), (lower, 0, 9)]
    for key, t, size in drawn:
        moment = Moment(key, t, 0, 0)
        indices = draw(here, moment, np.empty(size, dtype=np.int64))
        places = draw(there, moment, np.empty(size, dtype=np.int64))
        np.testing.assert_array_equal(there.matrix.buffer.array[places], data[0][indices])
        np.testing.assert_array_equal(there.targets[places], here.targets[indices])
        np.testing.assert_array_equal(there.weights[places], here.weights[indices])


def test_batches_that_have_no_room_are_an_error(pair):
    _, there = pair
    draw(there, Moment(keys_of([1]).upper, 0, 0, 0), np.empty(17_000, dtype=np.int64))
    failure = take_failure()
    assert isinstance(failure, ValueError)
    assert "`batch_size` must be at most" in str(failure)


def test_sums_of_objectives_draw_from_each_of_their_terms(pair, data):
    here, there = pair
    A, b, w = data
    problems = [problem_of(each + 0.5 * Huber(A, b, sample_weight=w)) for each in (here, there)]
    one, other = (tiebreak.minimize(problem, "sbcgi", max_queries=8 * N, seed=1) for problem in problems)
    assert one.x.tobytes() == other.x.tobytes()


def test_a_killed_worker_does_not_change_a_run(client, pair):
    until(lambda: len(client.nthreads()) == 2)
    here, there = pair
    killed = []

    def kill(snapshot):
        if not killed and snapshot.lower_queries > 3 * N:
            killed.append(pids(client)[0])
            os.kill(killed[0], signal.SIGKILL)

    expected = tiebreak.minimize(problem_of(here), "sbcgi", max_queries=8 * N, seed=2)
    found = tiebreak.minimize(problem_of(there), "sbcgi", max_queries=8 * N, seed=2, callback=kill)
    assert killed
    assert found.x.tobytes() == expected.x.tobytes()


@pytest.mark.filterwarnings("ignore")
def test_a_run_whose_scheduler_dies_ends_and_continues_with_another_one(client, pair, data, tmp_path):
    from distributed import Client

    A, b, w = data
    expected = tiebreak.minimize(problem_of(pair[0]), "sbcgi", max_queries=8 * N, seed=2)
    options = {"max_queries": 8 * N, "seed": 2, "checkpoint": tmp_path / "run"}
    with separate_cluster(tmp_path) as (place, scheduler), Client(scheduler_file=place, set_as_default=False) as other:
        there = LeastSquares(on_dask(A, 4000), b, w, client=other)

        def kill(snapshot):
            if snapshot.lower_queries > 3 * N and scheduler.poll() is None:
                scheduler.kill()
                scheduler.wait()

        ended = tiebreak.minimize(problem_of(there), "sbcgi", callback=kill, **options)
    assert ended.status is Status.FAILED
    assert isinstance(ended.error, RowsError)
    assert "the scheduler at tcp://" in ended.message
    assert ended.queries.total < expected.queries.total
    continued = tiebreak.minimize(problem_of(LeastSquares(on_dask(A, 3000), b, w, client=client)), "sbcgi", **options)
    assert continued.x.tobytes() == expected.x.tobytes()
