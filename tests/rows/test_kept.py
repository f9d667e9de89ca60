"""Rows that have come from Dask workers stay: none moves twice, no more memory is taken than allowed, all bits the same."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from row_clusters import local_cluster

import tiebreak
from tiebreak import L2Ball, LeastSquares, Problem, SquaredNorm
from tiebreak.engine.callouts import take_failure
from tiebreak.engine.randomness import Moments
from tiebreak.objectives import linear_model
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.losses import Square
from tiebreak.objectives.uneven import Uneven
from tiebreak.rows.kept import Kept, available, configured
from tiebreak.rows.partitions import Partitions

N, D = 20_000, 14
BUDGETS = ["0", "100 kB", "1 MB", None]  # nothing; a few rows, which is less than a block; a third of them; all of them


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def taken(monkeypatch):
    """The numbers of all rows that were fetched."""
    numbers, take = [], Partitions._take

    def note(self, indices, waited):
        numbers.append(indices)
        return take(self, indices, waited)

    monkeypatch.setattr(Partitions, "_take", note)
    return numbers


def dense(kind):
    """Rows of very different lengths, so that PAVR does not draw evenly."""
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((N, D)) * rng.lognormal(size=N)[:, None]).astype(kind)
    return A, A @ rng.standard_normal(D) + rng.standard_normal(N), rng.random(N)


def sparse():
    """Rows of up to 400 numbers among short ones and many empty ones."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 25, N) * (rng.random(N) < 0.8)
    lengths[rng.integers(0, N, 200)] = 400
    starts = np.append(0, np.cumsum(lengths))
    columns = np.concatenate([np.sort(rng.permutation(400)[:length]) for length in lengths])
    A = scipy.sparse.csr_array((rng.standard_normal(starts[-1]), columns, starts), (N, 400))
    return A, A @ rng.standard_normal(400) + rng.standard_normal(N), rng.random(N)


DATA = {"float32": lambda: dense(np.float32), "csr": sparse}


def chunked(A, rows):
    if not scipy.sparse.issparse(A):
        return da.from_array(A, chunks=(rows, -1))
    empty = scipy.sparse.csr_array((0, A.shape[1]))
    parts = [(dask.delayed(A[low : low + rows]), (min(rows, N - low), A.shape[1])) for low in range(0, N, rows)]
    return da.concatenate([da.from_delayed(*part, meta=empty) for part in parts])


def on_dask(A, b, w, cache=None, rows=6000):
    with dask.config.set({} if cache is None else {"tiebreak.cache": cache}):
        return LeastSquares(chunked(A, rows), b, w)


def run(objective, method, seed=3):
    result = tiebreak.minimize(Problem(SquaredNorm(), objective, L2Ball(2.0)), method, max_queries=6 * N, seed=seed)
    return result.x.tobytes(), result.queries, result.upper_gap_bound, result.lower_gap_bound


@pytest.mark.parametrize("kind", DATA)
def test_runs_have_the_same_bits_however_many_rows_stay(client, kind):
    data = DATA[kind]()
    here = LeastSquares(*data)
    assert isinstance(here.evened(), Uneven)
    expected = [run(here, "sbcgi"), run(here, "pavr")]
    counts = []
    for cache, rows in zip(BUDGETS, (6000, N, 6000, 2500), strict=True):
        there = on_dask(*data, cache, rows)
        assert [run(there, "sbcgi"), run(there, "pavr")] == expected
        counts.append(there.matrix.feed.kept.count)
    assert counts[0] == 0 < counts[1] < counts[2] < counts[3] <= N


@pytest.mark.parametrize("kind", DATA)
def test_no_row_moves_twice(client, taken, kind):
    data = DATA[kind]()
    there = on_dask(*data)
    for method, seed in (("sbcgi", 3), ("pavr", 3), ("sbcgi", 4)):
        run(there, method, seed)
    x, some = np.ones(data[0].shape[1]), np.random.default_rng(0).integers(0, N, 500)
    assert there.value(x, some) == LeastSquares(*data).value(x, some)
    moved = np.concatenate(taken)
    assert moved.size == np.unique(moved).size > 0.9 * N


@pytest.mark.parametrize("kind", DATA)
def test_no_row_moves_twice_if_both_levels_draw_it(client, taken, kind):
    there = on_dask(*DATA[kind]())
    tiebreak.minimize(Problem(there, there, L2Ball(2.0)), "sbcgi", max_queries=6 * N, seed=3)
    moved = np.concatenate(taken)
    assert moved.size == np.unique(moved).size > 0.9 * N


def test_bytes_moved_are_those_of_the_rows_and_of_the_sums(client):
    A, b, w = dense(np.float64)
    there = on_dask(A, b, w)
    first, second = (
        tiebreak.minimize(Problem(SquaredNorm(), there, L2Ball(2.0)), "sbcgi", max_queries=20 * N) for _ in range(2)
    )
    rows = N * (D + 2) * 8
    assert rows < first.bytes_moved < 2 * rows
    assert second.bytes_moved < first.bytes_moved - rows  # those of a second run are here


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("budget", [100_000, 700_000])
def test_rows_that_stay_take_no_more_memory_than_allowed(client, kind, budget):
    A, b, w = DATA[kind]()
    there = on_dask(A, b, w, str(budget))
    run(there, "sbcgi")
    kept = there.matrix.feed.kept
    lengths = np.diff(A.indptr) if kind == "csr" else np.full(N, D)
    stays = np.flatnonzero(kept.places(np.arange(N)))
    numbers = int(lengths[stays].sum())
    size = numbers * (A.dtype.itemsize + 4 * (kind == "csr")) + stays.size * 16 + 4 * N
    assert stays.size == kept.count > 0
    assert 0.5 * budget < size <= budget


def test_draws_in_other_ways_share_the_rows_that_stay(client, taken):
    data = dense(np.float64)
    there = on_dask(*data)
    even, uneven = there.matrix.feed, there.evened().objective.matrix.feed
    assert uneven.kept is even.kept
    run(there, "sbcgi")
    before = sum(each.size for each in taken)
    run(there, "pavr")
    assert sum(each.size for each in taken) - before < 0.3 * N


def test_more_draws_than_there_is_room_for_have_room_of_their_own(client):
    data = dense(np.float64)
    here, there = LeastSquares(*data), on_dask(*data)
    x = np.ones(D)
    alive = [there.evened() for _ in range(5)]
    caches = {id(each.objective.matrix.feed.kept) for each in alive}
    assert len(caches) == 4  # that of the objective, which has room for two more, and three others
    for each in alive:
        assert each.value(x, [5, 17, 5]) == here.evened().value(x, [5, 17, 5])
    del alive, each
    gc.collect()
    assert there.evened().objective.matrix.feed.kept is there.matrix.feed.kept


def test_a_column_of_ones_is_not_kept(client, taken):
    A, b, w = dense(np.float64)
    here = linear_model(Square(), A, b, w, ones=True)
    there = linear_model(Square(), chunked(A, 6000), b, w, ones=True)
    assert there.matrix.feed.kept.matrix.shape[1] == D
    assert run(there, "sbcgi") == run(here, "sbcgi")
    moved = np.concatenate(taken)
    assert moved.size == np.unique(moved).size


def test_the_default_is_a_quarter_of_what_is_free_and_the_configuration_says_otherwise(client):
    assert 0 < configured() <= available() / 3
    for given, expected in (("2 GiB", 2**31), (0, 0), ("0", 0), (1000, 1000)):
        with dask.config.set({"tiebreak.cache": given}):
            assert configured() == expected
    for given in ("much", -1, [1]):
        with dask.config.set({"tiebreak.cache": given}), pytest.raises(ValueError, match=r"`tiebreak.cache` of Dask's conf"):
            configured()


def facts(n, d, numbers, is_sparse):
    return SimpleNamespace(
        shape=(n, d), matrix=SimpleNamespace(numbers=numbers), sparse=is_sparse, dtype=np.dtype(float), ones=False
    )


def test_rows_that_came_twice_are_kept_once():
    rows = np.arange(12.0).reshape(6, 2)
    kept = Kept(facts(6, 2, 12, False), 1, 1, 4, 0, budget=10_000)
    for numbers in ([3, 1], [1, 5, 0], [0, 1]):
        numbers = np.array(numbers)
        kept.keep(numbers, rows[numbers], 10.0 * numbers, 100.0 * numbers)
    assert kept.count == 4
    places = kept.places(np.array([0, 1, 2, 3, 5]))
    assert places.tolist() == [4, 2, 0, 1, 3]
    np.testing.assert_array_equal(kept.matrix[places[[0, 1, 3, 4]]], rows[[0, 1, 3, 5]])
    assert kept.targets[places].tolist()[3] == 30.0 and np.isnan(kept.targets[0])


def test_sparse_rows_stay_until_one_has_no_room():
    A = scipy.sparse.csr_array(np.array([[1.0, 0, 0], [0, 0, 0], [2, 3, 4], [5, 0, 6], [0, 7, 0]]))
    kept = Kept(facts(5, 3, A.nnz, True), 1, 1, 3, 4, budget=20 + 150)  # four rows of the mean length, 5 numbers
    numbers = np.arange(5)
    kept.keep(numbers, A, numbers + 0.5, numbers + 1.5)
    assert kept.count == 3 and kept.has_room(1, 1) and not kept.has_room(1, 2)
    place, fit = kept.lay(0, np.array([2, 1, 3, 0]), A, numbers + 0.5, numbers + 1.5)
    assert fit == 2  # three numbers and none; two more are too many
    data, columns, starts = kept.matrix
    for at, row in [*zip(kept.places(numbers)[:3], range(3), strict=True), (place, 2), (place + 1, 1)]:
        own = slice(starts[at], starts[at + 1])
        np.testing.assert_array_equal(data[own], A[[row]].data)
        np.testing.assert_array_equal(columns[own], A[[row]].indices)
        assert kept.targets[at] == row + 0.5 and kept.weights[at] == row + 1.5


def test_what_the_process_may_not_have_is_not_taken(monkeypatch):
    zeros, limit = np.zeros, 1 << 20

    def limited(shape, dtype=float):
        if np.prod(shape) * 8 > limit:
            raise MemoryError
        return zeros(shape, dtype)

    monkeypatch.setattr("tiebreak.rows.kept.np.zeros", limited)
    kept = Kept(facts(100_000, 20, 2_000_000, False), 1, 1, 100, 0, budget=1 << 30)
    kept.keep(np.arange(3), np.ones((3, 20)), np.ones(3), np.ones(3))
    assert kept.capacity == kept.count == 0


def samples(objective, size):
    """Gradients of some successive draws."""
    moments, found = Moments(7), []
    for _ in range(12):
        gradient = np.zeros(D)
        batch = draw(objective, next(moments), np.zeros(size, dtype=np.int64))
        accumulate(objective, batch, np.ones(D), 1.0, np.ones(D), 0.0, gradient)
        found.append(gradient.tobytes())
    failure = take_failure()
    if failure is not None:
        raise failure
    return found


@pytest.mark.parametrize("cache", ["0", "100 kB", None])
def test_terms_of_sums_draw_their_own_rows(client, cache):
    A, b, w = dense(np.float64)
    here, there, other = LeastSquares(A, b, w), on_dask(A, b, w, cache), LeastSquares(A[:3000], b[:3000])
    assert samples(there + other, 1) == samples(here + other, 1)  # one of the terms has no sample
    for size in (4, 40):  # sizes of the terms' batches change from draw to draw
        assert samples(there + 2 * there + 3 * there, size) == samples(here + 2 * here + 3 * here, size)


def test_more_terms_than_there_is_room_for_are_an_error(client):
    there = on_dask(*dense(np.float64), "0")
    with pytest.raises(ValueError, match="a sum must not have the same objective on Dask as more than 4 of its terms"):
        samples(there + 2 * there + 3 * there + 4 * there + 5 * there, 50)


def test_those_beyond_the_room_keep_nothing(client):
    there = on_dask(*dense(np.float64), "1 MB")
    alive = [there.evened() for _ in range(4)]
    kept = {id(each.objective.matrix.feed.kept): each.objective.matrix.feed.kept.capacity for each in alive}
    assert [each > 0 for each in kept.values()] == [True, False, False]
