"""Stores made of every kind of source: the same rows, shuffled alike, in bounded memory, whoever is killed on the way."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse

from tiebreak.data import open_store, store
from tiebreak.data.growing import Growing
from tiebreak.data.shuffling import Bucket, keys_of_rows
from tiebreak.data.sources import SlicedSource
from tiebreak.engine import interpreted
from tiebreak.engine.locks import Lock
from tiebreak.engine.randomness import key_of, numbers_of_places

N, NAMES = 700, ("a", "b", "c")
CHUNK = 1 << 13  # so small that there are many buckets, some of which are split


def frame(dtype=np.float64):
    rng = np.random.default_rng(0)
    made = pandas.DataFrame({name: rng.standard_normal(N).astype(dtype) for name in NAMES})
    made.insert(1, "y", np.arange(N))
    return made


def order(seed, n=N):
    return np.arange(n) if seed is None else np.argsort(keys_of_rows(seed, 0, n), kind="stable")


def dense(stored):
    if stored.sparse:
        return scipy.sparse.csr_array(tuple(stored.rows), shape=stored.shape).toarray()
    return stored.rows


class Slices:
    """An array that is read by slices alone, as those of Zarr and HDF5 are."""

    def __init__(self, array, chunks=(64, 2)):
        self._array, self.shape, self.dtype, self.chunks = array, array.shape, array.dtype, chunks

    def __getitem__(self, rows):
        assert isinstance(rows, slice) and rows.stop - rows.start < N
        return self._array[rows]


def parquet(data, folder):
    data.to_parquet(folder / "t.parquet", row_group_size=max(150, len(data) // 10))
    return folder / "t.parquet"


def parquets(data, folder):
    (folder / "parts").mkdir()
    data[:300].to_parquet(folder / "parts" / "1.parquet")
    data[300:][list(data.columns[::-1])].to_parquet(folder / "parts" / "2.parquet")  # columns are matched by name
    return folder / "parts"


def csv(data, folder):
    data.to_csv(folder / "t.csv", index=False)
    return str(folder / "t.csv")


def csvs(data, folder):
    data[:10].to_csv(folder / "1.csv", index=False)
    data[10:].to_csv(folder / "2.csv", index=False)
    return [folder / "1.csv", folder / "2.csv"]


def arrow_file(data, folder):
    table = pyarrow.Table.from_pandas(data)
    with pyarrow.ipc.new_file(folder / "t.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=90)
    return folder / "t.arrow"


def feather(data, folder):
    pyarrow.feather.write_feather(data, folder / "t.feather")
    return folder / "t.feather"


def dask_frame(data, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(data, npartitions=3)


TABLES = {
    "parquet": parquet,
    "parquets": parquets,
    "csv": csv,
    "csvs": csvs,
    "arrow file": arrow_file,
    "feather": feather,
    "arrow": lambda data, folder: pyarrow.Table.from_pandas(data),
    "pandas": lambda data, folder: data,
    "dask": dask_frame,
    "frames": lambda data, folder: (data[low : low + 99] for low in range(0, N, 99)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_stored_as_it_is_but_for_the_order_of_its_rows(kind, dtype, tmp_path):
    data = frame(dtype)
    made = store(TABLES[kind](data, tmp_path), tmp_path / "rows", target="y", seed=1, chunk_bytes=CHUNK)
    assert (made.shape, made.names, made.kept, made.target) == ((N, 3), NAMES, ("y",), "y")
    assert made.dtype == (np.float64 if kind.startswith("csv") else dtype)
    np.testing.assert_array_equal(made.column("y"), order(1))
    expected = data[list(NAMES)].to_numpy()[order(1)]
    np.testing.assert_array_equal(made.rows.astype(dtype), expected)
    made.check()


def npy(A, folder):
    np.save(folder / "A.npy", A)
    return folder / "A.npy"


def dask_array(A, folder):
    return pytest.importorskip("dask.array").from_array(A, chunks=(200, 2))


MATRICES = {
    "numpy": lambda A, folder: A,
    "Fortran order": lambda A, folder: np.asfortranarray(A),
    "npy": npy,
    "memmap": lambda A, folder: np.load(npy(A, folder), mmap_mode="r")[:],
    "slices": lambda A, folder: Slices(A),
    "dask": dask_array,
    "csr": lambda A, folder: scipy.sparse.csr_array(A),
    "csc": lambda A, folder: scipy.sparse.csc_matrix(A),
    "coo": lambda A, folder: scipy.sparse.coo_array(A),
    "dask csr": lambda A, folder: dask_array(A, folder).rechunk((200, -1)).map_blocks(scipy.sparse.csr_array),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", MATRICES)
def test_a_matrix_is_stored_as_it_is_but_for_the_order_of_its_rows(kind, dtype, tmp_path):
    A = np.random.default_rng(0).standard_normal((N, 5)).astype(dtype)
    A[A < 0.3] = 0.0
    made = store(MATRICES[kind](A, tmp_path), tmp_path / "rows", target=np.arange(N), seed=2, chunk_bytes=CHUNK)
    assert (made.shape, made.dtype, made.names, made.kept) == ((N, 5), dtype, None, ("target",))
    assert made.sparse == (kind[-3:] in ("csr", "csc", "coo"))
    np.testing.assert_array_equal(made.column("target"), order(2))
    np.testing.assert_array_equal(dense(made), A[order(2)])
    made.check()


def test_blocks_of_an_iterable_come_with_targets_and_weights(tmp_path):
    A, weights = np.random.default_rng(0).standard_normal((N, 4)), np.linspace(1.0, 2.0, N)
    edges = [0, 1, 400, N]
    blocks = ((A[low:high], np.arange(low, high), weights[low:high]) for low, high in itertools.pairwise(edges))
    made = store(blocks, tmp_path / "rows", chunk_bytes=CHUNK, seed=3)
    np.testing.assert_array_equal(made.rows, A[order(3)])
    np.testing.assert_array_equal(made.column("target"), order(3))
    np.testing.assert_array_equal(made.column("sample_weight"), weights[order(3)])
    with pytest.raises(FileExistsError, match="an iterable, .* cannot be told from others"):
        store([A], tmp_path / "rows", seed=3)
    sparse = store((scipy.sparse.csr_array(A[k : k + 50]) for k in range(0, N, 50)), tmp_path / "sparse", seed=None)
    np.testing.assert_array_equal(dense(sparse), A)


def test_no_seed_keeps_the_order_and_columns_are_chosen_by_name(tmp_path):
    made = store(frame(), tmp_path / "rows", columns=["c", "a"], sample_weight="b", seed=None, chunk_bytes=CHUNK)
    np.testing.assert_array_equal(made.rows, frame()[["c", "a"]])
    np.testing.assert_array_equal(made.column("b"), frame()["b"])
    single = store(frame(), tmp_path / "single", target="y", dtype="float32", chunk_bytes=CHUNK)
    np.testing.assert_array_equal(single.rows, frame()[list(NAMES)].to_numpy(np.float32)[order(0)])


def test_rows_of_zeros_and_repeated_entries_are_stored(tmp_path):
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([1, 1, 1], [2, 0, 2])), shape=(3, 4))
    made = store(matrix, tmp_path / "rows", seed=None)
    np.testing.assert_array_equal(dense(made), matrix.toarray())
    empty = store(scipy.sparse.csr_array((5, 3)), tmp_path / "empty")
    assert dense(empty).shape == (5, 3) and empty.rows.data.size == 0
    empty.check()


def test_the_order_is_a_function_of_the_seed_and_the_number_of_rows_alone(tmp_path):
    A = np.random.default_rng(0).standard_normal((N, 3))
    made = [
        store(source, tmp_path / str(k), seed=5, chunk_bytes=chunk)
        for k, (source, chunk) in enumerate([(A, 1 << 12), (A, 1 << 28), (iter([A[:1], A[1:]]), 1 << 14)])
    ]
    contents = [(each.folder / "rows.npy").read_bytes() for each in made]
    assert contents[0] == contents[1] == contents[2]
    other = store(A, tmp_path / "other", seed=6)
    assert (other.folder / "rows.npy").read_bytes() != contents[0]


@pytest.mark.parametrize("sparse", [False, True])
def test_buckets_that_are_too_large_are_scattered_again(sparse, tmp_path, monkeypatch):
    monkeypatch.setattr("tiebreak.data.storing.EXPECTED", 0.5)  # a source of unknown size is first taken for one bucket
    monkeypatch.setattr("tiebreak.data.shuffling.MOST_BITS", 2)
    A = np.random.default_rng(0).standard_normal((N, 5))
    removed = []

    def remove(self, plain=Bucket.remove):
        removed.append(self.name)
        plain(self)

    monkeypatch.setattr(Bucket, "remove", remove)
    blocks = (scipy.sparse.csr_array(A[k : k + 7]) if sparse else A[k : k + 7] for k in range(0, N, 7))
    made = store(blocks, tmp_path / "rows", seed=4, chunk_bytes=1 << 12)
    np.testing.assert_array_equal(dense(made), A[order(4)])
    assert {"", "00", "0000", "1111"} < set(removed) and max(map(len, removed)) >= 4


def test_all_orders_are_equally_likely():
    counts = np.zeros(24)
    for seed in range(2400):
        a, b, c, d = order(seed, 4)
        counts[6 * a + 2 * (b - (b > a)) + (c > d)] += 1
    assert ((counts - 100.0) ** 2 / 100.0).sum() < 49.7  # the 99.9 % quantile of χ² with 23 degrees of freedom
    places = np.argsort(order(0, 20_000)) // 2000
    pairs = np.histogram2d(np.arange(20_000) // 2000, places, bins=10)[0]
    assert ((pairs - 200.0) ** 2 / 200.0).sum() < 126.1  # 81 degrees of freedom


def test_the_random_numbers_of_rows_are_the_same_interpreted_and_beyond_32_bits():
    key, first = key_of(7, 8), 2**32 - 3
    compiled = numbers_of_places(key, first, np.empty(6, dtype=np.int64))
    with interpreted():
        np.testing.assert_array_equal(compiled, numbers_of_places(key, first, np.empty(6, dtype=np.int64)))
    assert len(set(compiled)) == 6 and (compiled >= 0).all()
    np.testing.assert_array_equal(keys_of_rows(3, 0, 100)[40:], keys_of_rows(3, 40, 60))


@pytest.mark.parametrize("kind", ["npy", "csr", "csv", "parquet"])
def test_memory_holds_a_few_chunks_however_long_the_source_is(kind, tmp_path):
    rows, times = {"csv": (6000, 3)}.get(kind, (40_000, 20))
    A = np.random.default_rng(0).standard_normal((rows, 16))
    chunk = A.nbytes // times
    if kind in TABLES:
        A = pandas.DataFrame(A, columns=[f"c{k}" for k in range(16)])
    source = {**TABLES, **MATRICES}[kind](A, tmp_path)
    keys_of_rows(0, 0, 1)  # compiled before
    del A
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = store(source, tmp_path / "rows", chunk_bytes=chunk)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert made.shape[0] == rows
    assert peak < 2.0 * chunk + (1 << 19), (peak, chunk)


KILLING = """
import os, pathlib, signal, sys
from tiebreak.data import growing, open_store, shuffling, store, storing

class Killed(growing.Growing):
    left = 0
    def append(self, array):
        Killed.left -= 1
        if Killed.left == 0:
            content = growing.bytes_of(array)
            with self.path.open("ab", buffering=0) as file:
                file.write(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        super().append(array)

def bytes_of(folder):
    return {file.name: file.read_bytes() for file in pathlib.Path(folder).iterdir()}

source, out, count = sys.argv[1], sys.argv[1], int(sys.argv[2])
shuffling.Growing = storing.Growing = Killed
arguments = dict(target=f"{source}/b.npy", seed=1, chunk_bytes=1 << 14)
whole = bytes_of(store(f"{source}/A.npy", f"{out}/whole", **arguments).folder)
total = -Killed.left
for moment in (1, *(total * k // (count - 1) for k in range(1, count))):
    folder = f"{out}/{moment}"
    child = os.fork()
    if not child:
        Killed.left = moment
        store(f"{source}/A.npy", folder, **arguments)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    assert not os.path.exists(folder)
    Killed.left = 0
    assert bytes_of(store(f"{source}/A.npy", folder, **arguments).folder) == whole, moment
    open_store(folder).check()
    print("resumed after", moment)
"""


def test_a_store_whose_writer_is_killed_at_any_moment_is_completed_by_the_next_one(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "A.npy", rng.standard_normal((N, 5)))
    np.save(tmp_path / "b.npy", rng.standard_normal(N))
    command = [sys.executable, "-W", "error", "-c", KILLING, tmp_path, "12"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("resumed after") == 12


class Stop(Exception):
    pass


def stop_after(monkeypatch, count):
    """Let the process that writes a store die, as far as a test can, after it has appended so often."""
    left = [count]

    def append(self, array, plain=Growing.append):
        left[0] -= 1
        if left[0] < 0:
            raise Stop
        plain(self, array)

    monkeypatch.setattr(Growing, "append", append)


def test_a_second_call_reads_on_where_the_first_one_ended(tmp_path, monkeypatch):
    A = np.random.default_rng(0).standard_normal((N, 5))
    path, starts = npy(A, tmp_path), []

    def blocks(self, start, most, plain=SlicedSource.blocks):
        starts.append(start)
        return plain(self, start, most)

    monkeypatch.setattr(SlicedSource, "blocks", blocks)
    with monkeypatch.context() as patch, pytest.raises(Stop):
        stop_after(patch, 700)
        store(path, tmp_path / "rows", chunk_bytes=CHUNK)
    notes = json.loads((tmp_path / "rows.partial" / "progress.json").read_text())
    assert 0 < notes["read"] < N
    with pytest.raises(FileNotFoundError, match="was begun: the same call of `store` completes it"):
        open_store(tmp_path / "rows")
    np.testing.assert_array_equal(store(path, tmp_path / "rows", chunk_bytes=1 << 16).rows, A[order(0)])
    assert starts == [0, notes["read"]]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["A.npy", "rows"]
    store(path, tmp_path / "rows", chunk_bytes=CHUNK)  # it is there: nothing is read again
    assert len(starts) == 2


@pytest.mark.parametrize("change", ["source", "seed", "damage"])
def test_what_cannot_be_continued_is_begun_anew_and_the_reason_is_said(change, tmp_path, monkeypatch):
    A = np.random.default_rng(0).standard_normal((N, 5))
    path, seed = npy(A, tmp_path), 0
    with monkeypatch.context() as patch, pytest.raises(Stop):
        stop_after(patch, 700)
        store(path, tmp_path / "rows", chunk_bytes=CHUNK)
    if change == "source":
        A = A + 1.0
        npy(A, tmp_path)
    elif change == "seed":
        seed = 1
    else:
        bucket = max((tmp_path / "rows.partial").glob("*.body"), key=lambda file: file.stat().st_size)
        flip(bucket, 3)
    reason = {"source": "the source has changed", "seed": "the seed is another one", "damage": "body is damaged"}[change]
    with pytest.warns(UserWarning, match=f"begun anew: .*{reason}"):
        made = store(path, tmp_path / "rows", seed=seed, chunk_bytes=CHUNK)
    np.testing.assert_array_equal(made.rows, A[order(seed)])


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_only_the_last_step_is_left_to_do(tmp_path):
    A = np.random.default_rng(0).standard_normal((N, 5))
    made = store(A, tmp_path / "rows")
    os.rename(made.folder, tmp_path / "rows.partial")
    np.testing.assert_array_equal(store(A, tmp_path / "rows").rows, A[order(0)])


def test_what_is_in_the_way_is_never_overwritten(tmp_path, monkeypatch):
    A = np.random.default_rng(0).standard_normal((N, 5))
    store(A, tmp_path / "rows")
    assert store(A.copy(), tmp_path / "rows", chunk_bytes=CHUNK).shape == (N, 5)
    for k, source in enumerate([frame(), scipy.sparse.csr_array(A)]):  # told by their numbers, whatever the chunks
        made = [store(source, tmp_path / f"rows{k}", chunk_bytes=chunk) for chunk in (1 << 28, CHUNK)]
        assert made[0].checksum == made[1].checksum
    with pytest.raises(FileExistsError, match="another store already: the source has changed"):
        store(A + 1.0, tmp_path / "rows")
    with pytest.raises(FileExistsError, match="another store already: the seed"):
        store(A, tmp_path / "rows", seed=None)
    (tmp_path / "else").mkdir()
    with pytest.raises(FileExistsError, match="is no store that could be used"):
        store(A, tmp_path / "else")
    (tmp_path / "new.partial").mkdir()
    (tmp_path / "new.partial" / "letter.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="nothing in it is of a store"):
        store(A, tmp_path / "new")
    lock = Lock(tmp_path / "busy")
    try:
        with pytest.raises(FileExistsError, match=f"written by process {os.getpid()}"):
            store(A, tmp_path / "busy")
    finally:
        lock.release()


def test_parts_of_one_mapped_file_are_told_apart(tmp_path):
    A = np.load(npy(np.random.default_rng(0).standard_normal((N, 5)), tmp_path), mmap_mode="r")
    store(A[:50], tmp_path / "rows", seed=None)
    store(A[:50], tmp_path / "rows", seed=None)
    with pytest.raises(FileExistsError, match="the source has changed, or is another one"):
        store(A[50:100], tmp_path / "rows", seed=None)


def test_too_little_room_on_the_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    A = np.random.default_rng(0).standard_normal((N, 5))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 50_000))
    with pytest.raises(OSError, match="needs about 78,400 bytes, and 50,000 are free"):
        store(A, tmp_path / "rows")
    assert not list(tmp_path.iterdir())
    store(A, tmp_path / "rows", seed=None)  # which needs half as much


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        (frame().replace({"b": {frame()["b"][400]: np.nan}}), {}, "column 'b' is missing, NaN or infinite in row 401"),
        (frame().assign(b="red"), {}, "the column 'b' is of the type"),
        (pyarrow.table({"a": ["x"]}), {}, "the column 'a' is of the type string"),
        (pyarrow.table({"a": [1.0, None]}), {}, "column 'a' is missing, NaN or infinite in row 2"),
        (pyarrow.table({"a": [2**62 + 1]}), {}, "cannot be read"),
        (frame(), {"target": "z"}, "must have a column 'z'"),
        (frame(), {"target": "y", "sample_weight": "y"}, "another column than `target`"),
        (frame(), {"target": np.arange(N)}, "must be the name of a column"),
        (frame(), {"target": "y", "columns": ["a", "y"]}, "without target and weights"),
        (frame()[["y"]], {"target": "y"}, "nothing is left"),
        (frame()[:0], {}, "has no rows"),
        (np.array([[1.0, np.inf]]), {}, "column 1 is missing, NaN or infinite in row 1"),
        (np.array([[1e300]]), {"dtype": "float32"}, "infinite in row 1"),
        (scipy.sparse.csr_array([[0.0, 0.0], [0.0, np.nan]]), {}, "column 1 is missing, NaN or infinite in row 2"),
        (np.ones((3, 2)), {"target": [1.0, np.nan, 2.0]}, "column 'target' is missing, NaN or infinite in row 2"),
        (np.ones((3, 2)), {"target": [1.0, 2.0]}, "vector of 3 numbers"),
        (np.ones((3, 2)), {"target": "y"}, "must be an array or a .npy file"),
        (np.ones((3, 2)), {"columns": ["a"]}, "is for tables"),
        (np.ones(3), {}, "non-empty matrix"),
        (np.ones((3, 2), dtype=complex), {}, "real numbers"),
        (iter([np.ones((3, 2)), np.ones((3, 1))]), {}, "block 1 has 1 columns of float64 after 2"),
        (iter([np.ones((3, 2), np.float32), np.ones((3, 2))]), {}, "of float64 after 2 of float32"),
        (iter([]), {}, "at least one block"),
        (3.0, {}, "`source` must be a path"),
        (np.ones((3, 2)), {"dtype": "int8"}, "`dtype` must be float32 or float64"),
        (np.ones((3, 2)), {"seed": -1}, "`seed`"),
        (np.ones((3, 2)), {"chunk_bytes": 10}, "`chunk_bytes`"),
    ],
)
def test_what_cannot_be_stored_is_named(source, arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        store(source, tmp_path / "rows", **arguments)
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_stored_are_named(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n3,blue\n")
    with pytest.raises(ValueError, match=r"t\.csv must hold numbers, and 'y' is 'blue' in row 2"):
        store(tmp_path / "t.csv", tmp_path / "rows")
    (tmp_path / "other.csv").write_text("a,z\n1,2\n")
    with pytest.raises(ValueError, match=r"other\.csv must have the columns of .*t\.csv, and differs in \['y', 'z'\]"):
        store([tmp_path / "t.csv", tmp_path / "other.csv"], tmp_path / "rows2")
    (tmp_path / "t.parquet").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read, or is damaged"):
        store(tmp_path / "t.parquet", tmp_path / "rows3")
    with pytest.raises(FileNotFoundError, match="must name existing files"):
        store(tmp_path / "absent.csv", tmp_path / "rows4")
    (tmp_path / "t.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"must be files of the kinds .*, got .*t\.xlsx"):
        store(tmp_path / "t.xlsx", tmp_path / "rows5")
    (tmp_path / "A.zarr").mkdir()
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"A\.zarr is a Zarr array, which needs zarr: pip install 'tiebreak\[zarr\]'"):
        store(tmp_path / "A.zarr", tmp_path / "rows6")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'tiebreak\[parquet\]'"):
        store(tmp_path / "t.parquet", tmp_path / "rows7")


def test_the_progress_bar_counts_rows_and_is_silent_without_a_terminal(tmp_path, capsys):
    store(np.ones((N, 2)), tmp_path / "one")
    assert capsys.readouterr() == ("", "")
    store(np.ones((N, 2)), tmp_path / "two", progress=True)
    assert "store" in capsys.readouterr().err
