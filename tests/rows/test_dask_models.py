"""Linear models of Dask arrays: the same numbers, bit for bit, as those of the same rows in memory."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor, wait

import dask
import dask.array as da
import dask.dataframe
import numpy as np
import pandas
import pytest
import scipy.sparse
from row_clusters import local_cluster, pids, separate_cluster, until

import tiebreak
from tiebreak import Huber, L1Ball, L2Ball, LeastSquares, Logistic, Problem, SquaredNorm
from tiebreak.driver.result import Status
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import Moment, keys_of
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.matrices.distant import Distant
from tiebreak.objectives.traffic import alone
from tiebreak.objectives.uneven import Uneven
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
    assert isinstance(pair[1].evened(), Uneven)  # what PAVR draws from
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


def test_sums_that_are_added_on_the_workers_have_the_same_bits(client, monkeypatch):
    monkeypatch.setattr("tiebreak.rows.partitions.LITTLE_BYTES", 0)
    A, b = sparse_data()
    here, there = LeastSquares(A, b), LeastSquares(on_dask(A, 7000), b)
    x = np.random.default_rng(1).standard_normal(A.shape[1])
    out = [np.ones(x.size), np.ones(x.size)]
    assert here.pass_over(x, out[0]) == there.pass_over(x, out[1])
    results = [(each.survey(x), each.sharp(x), each.summed(), each.lipschitz) for each in (here, there)]
    assert all(np.array_equal(*pair) for pair in zip(*(list(numbers_in(each)) for each in (*results,)), strict=True))
    assert np.array_equal(*out)


def numbers_in(value):
    if isinstance(value, tuple):
        for part in value:
            yield from numbers_in(part)
    else:
        yield value


def test_sparse_rows_are_drawn_as_in_memory(client):
    A, b = sparse_data()
    here, there = LeastSquares(A, b), LeastSquares(on_dask(A, 7000), b)
    assert isinstance(there.matrix, Distant)
    assert drawn_from(there) == drawn_from(here)


def drawn_from(objective, size=40, steps=300):
    """What loops make of batches: values and gradients at two points, of more iterations than are fetched at first."""
    rng, found = np.random.default_rng(0), []
    x, y = rng.standard_normal((2, objective.dimension))
    for t in range(0, steps, 7):
        out = np.zeros_like(x)
        batch = draw(objective, Moment(keys_of([2]).lower, t, 0, 0), np.empty(size, dtype=np.int64))
        found.append((accumulate(objective, batch, x, 1.0, y, -0.5, out), out.tobytes()))
    return found


def test_few_rows_are_taken_into_memory(client, data):
    A, b, w = data
    few = LEAST_NUMBERS // D - 1
    model = LeastSquares(on_dask(A[:few], 3000), b[:few], w[:few])
    assert model.in_memory
    x = np.ones(D)
    assert model.value(x) == LeastSquares(A[:few], b[:few], w[:few]).value(x)


def test_dataframes_stay_on_the_workers(client, data, pair):
    A, b, w = data
    table = pandas.DataFrame(A, columns=[f"x{k}" for k in range(D)])
    frame = dask.dataframe.from_pandas(table.assign(y=b, weight=w), npartitions=4)
    model = LeastSquares(frame[list(table.columns)], frame["y"], frame["weight"])
    x = np.ones(D)
    assert not model.in_memory and model.value(x) == pair[0].value(x)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_copies_that_would_draw_from_nowhere_are_refused(pair, duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled: make the objective anew"):
        duplicate(2.0 * pair[1])


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
        places = draw(there, moment, np.empty(size, dtype=np.int64)) - N
        np.testing.assert_array_equal(there.matrix.buffer.array[places], data[0][indices])
        np.testing.assert_array_equal(there.targets[places], here.targets[indices])
        np.testing.assert_array_equal(there.weights[places], here.weights[indices])


def test_draws_are_the_same_interpreted(pair):
    _, there = pair
    moment, size = Moment(keys_of([6]).upper, 3, 0, 0), 5
    compiled = draw(there, moment, np.empty(size, dtype=np.int64))
    with interpreted():
        np.testing.assert_array_equal(draw(there, moment, np.empty(size, dtype=np.int64)), compiled)


def test_loops_of_several_threads_draw_from_a_buffer_one_after_the_other(pair):
    here, there = pair

    def run(objective):
        return tiebreak.minimize(problem_of(objective), "sbcgi", max_queries=5 * N, seed=1).x.tobytes()

    expected = run(there)  # nothing is left to compile
    with ThreadPoolExecutor(1) as pool:
        with alone(2.0 * there):
            waiting = pool.submit(run, there)
            assert not wait([waiting], timeout=1.5).done
        assert waiting.result() == expected == run(here)


def test_batches_that_have_no_room_come_in_pieces(pair):
    here, there = pair
    assert drawn_from(there, 17_000, 1) == drawn_from(here, 17_000, 1)


def test_long_rows_among_short_ones_come_in_pieces(client):
    A, b = sparse_data(n=20_000, d=400, per_row=10)
    A = scipy.sparse.vstack([A, scipy.sparse.csr_array(np.ones((100, 400)))], format="csr")
    b = np.append(b, np.ones(100))
    here, there = LeastSquares(A, b), LeastSquares(on_dask(A, 5000), b)
    rows = np.tile(np.arange(19_990, 20_100), 50)  # nearly all are long
    assert there.value(np.ones(400), rows) == here.value(np.ones(400), rows)


def test_sums_of_objectives_draw_from_each_of_their_terms(pair, data):
    here, there = (each + 0.5 * Huber(data[0], data[1], sample_weight=data[2]) for each in pair)
    assert drawn_from(there) == drawn_from(here)


def test_rows_are_found_by_their_numbers_in_sums_too(pair, data):
    here, there = pair
    x, other = np.ones(D), Huber(data[0][:50], data[1][:50])
    for indices in ([3, N - 1, 3], [0, N + 7], [N + 49]):
        assert (there + other).value(x, indices) == (here + other).value(x, indices)
    assert there.value(x, np.arange(N)) == here.value(x, np.arange(N))
    first, second = (tiebreak.check_gradient(each, x).comparisons[0] for each in pair)
    assert (first.slope, first.difference) == (second.slope, second.difference)


def test_a_time_limit_counts_passes_where_the_rows_are(pair):
    result = tiebreak.minimize(problem_of(pair[1]), time_limit=1.0)
    assert result.status in (Status.TIME, Status.SOLVED)


@pytest.mark.parametrize("cache", ["0", "600 kB", "1 GB"])
def test_a_worker_that_is_killed_while_rows_come_does_not_change_a_run(client, pair, data, cache):
    until(lambda: len(client.nthreads()) == 2)
    here, killed = pair[0], []
    with dask.config.set({"tiebreak.cache": cache}):
        there = LeastSquares(on_dask(data[0], 3000), data[1], data[2])

    def kill(snapshot):
        if not killed and snapshot.lower_queries > 0:
            killed.append(pids(client)[0])
            os.kill(killed[0], signal.SIGKILL)

    expected = tiebreak.minimize(problem_of(here), "sbcgi", max_queries=8 * N, seed=2)
    found = tiebreak.minimize(problem_of(there), "sbcgi", max_queries=8 * N, seed=2, callback=kill)
    assert killed
    assert found.x.tobytes() == expected.x.tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cache", ["0", "1 GB"])
def test_a_run_whose_scheduler_dies_ends_and_continues_with_another_one(client, pair, data, tmp_path, cache):
    from distributed import Client

    A, b, w = data
    expected = tiebreak.minimize(problem_of(pair[0]), "sbcgi", max_queries=24 * N, seed=2)
    options = {"max_queries": 24 * N, "seed": 2, "checkpoint": tmp_path / "run"}
    with (
        separate_cluster(tmp_path) as (place, scheduler),
        Client(scheduler_file=place, set_as_default=False) as other,
        dask.config.set({"tiebreak.cache": cache}),
    ):
        there = LeastSquares(on_dask(A, 4000), b, w, client=other)

        def kill(snapshot):
            if snapshot.lower_queries > 3 * N and scheduler.poll() is None:
                scheduler.kill()
                scheduler.wait()

        ended = tiebreak.minimize(problem_of(there), "sbcgi", callback=kill, **options)
    assert ended.status is Status.FAILED
    assert isinstance(ended.error, RowsError)
    assert "the scheduler at tcp://" in ended.message
    if cache == "0":  # rows that stay let the loop go on, until a pass is made where all rows are
        assert ended.queries.total < expected.queries.total
    continued = tiebreak.minimize(problem_of(LeastSquares(on_dask(A, 3000), b, w, client=client)), "sbcgi", **options)
    assert continued.x.tobytes() == expected.x.tobytes()
