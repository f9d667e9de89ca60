"""Stores on disk: opened at once, damage is named before a number is wrong, and objectives read them in place."""

from __future__ import annotations

import json
import pickle
import tracemalloc

import numba
import numpy as np
import pytest
import scipy.sparse

from tiebreak import Huber, L1Ball, LeastSquares, Logistic, Problem, SquaredNorm, minimize
from tiebreak.data import StoreError, open_store, store
from tiebreak.objectives import tables
from tiebreak.rows import store as store_module
from tiebreak.rows.maps import unlocked

N, D = 400, 6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("tiebreak.data.storing.BLOCK_BYTES", 1 << 12)


def data(dtype=np.float64, sparse=False):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, D)).astype(dtype)
    b = A @ np.arange(D) + rng.standard_normal(N)
    A[A > 0.5] = 0.0
    return (scipy.sparse.csr_array(A) if sparse else A), b, rng.random(N) + 0.5


def stored(folder, dtype=np.float64, sparse=False, **arguments):
    A, b, weights = data(dtype, sparse)
    return store(A, folder / "rows", **{"target": b, "sample_weight": weights, **arguments})


def in_memory(made):
    if made.sparse:
        data, columns, starts = map(np.array, made.rows)
        rows = scipy.sparse.csr_array((data, columns, starts.astype(np.int32)), shape=made.shape)
    else:
        rows = np.array(made.rows)
    return rows, np.array(made.column("target")), np.array(made.column("sample_weight"))


def damage(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objectives_on_a_store_have_the_bits_of_those_in_memory_and_their_compiled_code(dtype, sparse, tmp_path):
    made = stored(tmp_path, dtype, sparse)
    A, b, weights = in_memory(made)
    x = np.linspace(-1.0, 1.0, D)
    for kind, targets in ((LeastSquares, b), (Huber, b)):
        mapped = kind(made, sample_weight="sample_weight")
        plain = kind(A, targets, sample_weight=weights)
        assert numba.typeof(mapped) == numba.typeof(plain)
        assert mapped.value(x) == plain.value(x)
        for one, other in zip(mapped.value_and_gradient(x), plain.value_and_gradient(x), strict=True):
            np.testing.assert_array_equal(one, other)
    entries = made.rows.data if sparse else made.rows
    held = mapped.matrix.data if sparse else mapped.matrix.array
    assert np.shares_memory(entries, held)
    assert np.shares_memory(mapped.targets, LeastSquares(open_store(made.folder)).targets) is False  # another map
    assert LeastSquares(str(made.folder)).value(x) == LeastSquares(A, b).value(x)


def test_runs_on_a_store_end_at_the_bits_of_those_in_memory(tmp_path):
    made = stored(tmp_path)
    A, b, _ = in_memory(made)
    for method in ("sbcgi", "auto"):
        runs = [
            minimize(Problem(SquaredNorm(), lower, L1Ball(4.0)), method, max_queries=5000, progress=False)
            for lower in (LeastSquares(made), LeastSquares(A, b))
        ]
        np.testing.assert_array_equal(runs[0].x, runs[1].x)
        assert runs[0].upper_gap_bound == runs[1].upper_gap_bound


def test_labels_of_a_store_are_those_of_a_logistic_loss(tmp_path):
    A, b, _ = data()
    made = store(A, tmp_path / "rows", target=(b > 0).astype(int), seed=None)
    x = np.ones(D)
    assert Logistic(made).value(x) == Logistic(A, b > 0).value(x)


def table(folder, **arguments):
    A, b, weights = data()
    (folder / "t.csv").write_text(
        "a,b,c,d,e,f,y,w\n" + "\n".join(",".join(map(repr, map(float, row))) for row in np.column_stack([A, b, weights]))
    )
    return store(folder / "t.csv", folder / "rows", seed=None, **arguments)


def test_targets_weights_and_features_are_columns_by_name(tmp_path):
    A, b, weights = data()
    made, x = table(tmp_path, target="y"), np.ones(D)
    assert (made.names, made.kept) == (("a", "b", "c", "d", "e", "f", "w"), ("y",))
    plain = LeastSquares(A, b, sample_weight=weights)
    assert LeastSquares(made, target="y", sample_weight="w").value(x) == plain.value(x)
    assert LeastSquares(made, sample_weight=weights, columns=list("abcdef")).value(x) == plain.value(x)
    some = LeastSquares(made, target="c", columns=["f", "a"])
    assert some.value(x[:2]) == LeastSquares(np.ascontiguousarray(A[:, [5, 0]]), A[:, 2].copy()).value(x[:2])
    assert LeastSquares(made, columns=list("abcdefw")).matrix.array.base is not None  # all of them: in place
    np.testing.assert_array_equal(made.column("c"), A[:, 2])


def test_columns_of_a_sparse_store_are_read_from_its_entries(tmp_path):
    made = stored(tmp_path, sparse=True, seed=None)
    named = open_store(made.folder)
    object.__setattr__(named, "names", tuple("abcdef"))
    np.testing.assert_array_equal(named.column("c"), data()[0][:, 2])
    chosen = LeastSquares(named, columns=["d", "b"])
    np.testing.assert_array_equal(chosen.matrix.to_scipy().toarray(), data()[0][:, [3, 1]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "z"}, "must have a column 'z'"),
        ({"sample_weight": "v"}, "must have a column 'v'"),
        ({"sample_weight": "y"}, "another column than `target`"),
        ({"columns": ["a", "y"]}, "without the target"),
        ({"columns": ["a", "z"]}, "must have a column 'z' in its matrix"),
        ({"b": np.ones(N)}, "`b` must be left out"),
    ],
)
def test_columns_that_are_not_there_are_named(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        LeastSquares(table(tmp_path, target="y"), **arguments)


def test_a_store_without_a_target_needs_one_and_large_copies_are_refused(tmp_path, monkeypatch):
    made = table(tmp_path)
    with pytest.raises(ValueError, match="`target` must be the name of a column of .*rows, got None"):
        LeastSquares(made)
    assert LeastSquares(made, target="y").matrix.shape == (N, D + 1)
    monkeypatch.setattr(tables, "COPIED_BYTES", 1000)
    with pytest.raises(ValueError, match=r"copy without them would take 22,400 bytes .* make the store again with target="):
        LeastSquares(made, target="y")


FILES = ["rows.npy", "kept-0.npy", "kept-1.npy", "data.npy", "columns.npy", "starts.npy"]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_byte_is_named_before_a_number_is_wrong(name, tmp_path):
    made = stored(tmp_path, sparse=name in FILES[3:])
    path = made.folder / name
    damage(path, path.stat().st_size - 5)
    with pytest.raises(
        StoreError, match=rf"{name}: (rows|entries) [\d,]+ to [\d,]+ \(block \d+\) are damaged: make the store"
    ):
        LeastSquares(open_store(made.folder))
    with pytest.raises(StoreError, match=name):
        made.check()


def test_the_rows_of_a_damaged_block_are_named(tmp_path):
    made = stored(tmp_path)
    damage(made.folder / "rows.npy", 128 + 8 * D * 123)
    with pytest.raises(StoreError, match=r"rows 85 to 170 \(block 1\) are damaged"):  # 4096 bytes are 85.3 rows
        made.check()


@pytest.mark.parametrize("name", FILES[:3])
def test_short_missing_and_foreign_files_are_named_when_a_store_is_opened(name, tmp_path):
    folder = stored(tmp_path).folder
    path = folder / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(StoreError, match=rf"{name} must have {len(whole):,} bytes, and has {len(whole) - 8:,}"):
        open_store(folder)
    path.write_bytes(whole)
    damage(path, 40)
    with pytest.raises(StoreError, match=f"{name}: its first 128 bytes are damaged"):
        LeastSquares(folder)
    path.unlink()
    with pytest.raises(StoreError, match=f"{name} is missing"):
        open_store(folder)


def test_a_file_that_goes_while_a_store_is_open_is_named(tmp_path):
    made = stored(tmp_path)
    (made.folder / "rows.npy").unlink()
    with pytest.raises(StoreError, match="rows.npy is missing"):
        LeastSquares(made)


def test_a_damaged_description_is_told(tmp_path):
    folder = stored(tmp_path).folder
    about = folder / "store.json"
    whole = about.read_text()
    about.write_text(whole.replace(f'"largest": {json.loads(whole)["largest"]}', '"largest": 1.0'))
    with pytest.raises(StoreError, match="store.json is damaged, as its checksum tells"):
        open_store(folder)
    about.write_text(whole[:100])
    with pytest.raises(StoreError, match="does not describe a store"):
        open_store(folder)
    about.write_text("[]")
    with pytest.raises(StoreError, match="does not describe a store"):
        open_store(folder)
    content = json.loads(whole)
    del content["checksum"], content["matrix_arrays"]
    about.write_bytes(store_module.described(content))
    with pytest.raises(StoreError, match="does not describe a store"):
        open_store(folder)
    about.write_bytes(store_module.described({"format": "tiebreak store", "version": 99}))
    with pytest.raises(StoreError, match="of version 99, and this package reads version 1"):
        open_store(folder)
    with pytest.raises(FileNotFoundError, match="has no file store.json"):
        open_store(tmp_path)


def test_checksums_are_verified_once_until_a_file_changes(tmp_path, monkeypatch):
    made, read = stored(tmp_path), []

    def checksums(path, *arguments, plain=store_module.checksums):
        read.append(path.name)
        return plain(path, *arguments)

    monkeypatch.setattr(store_module, "checksums", checksums)
    for _ in range(3):
        LeastSquares(open_store(made.folder))
    assert read == ["rows.npy", "kept-0.npy", "kept-1.npy"]
    (made.folder / "kept-0.npy").touch()
    Huber(made)
    assert len(read) == 6


@pytest.mark.parametrize("sparse", [False, True])
def test_an_objective_on_a_store_takes_memory_for_vectors_alone(sparse, tmp_path):
    n, d = 4000, 64
    A = np.random.default_rng(0).standard_normal((n, d))
    made = store(scipy.sparse.csr_array(A) if sparse else A, tmp_path / "rows", target=A[:, 0])
    LeastSquares(made)  # imports, and the checksums
    tracemalloc.start()
    try:
        LeastSquares(made)
        open_store(made.folder).check()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.2 * A.nbytes


def test_npy_files_are_mapped_and_used_in_place(tmp_path, monkeypatch):
    A, b, weights = data(np.float32)
    for name, array in (("A", A), ("b", b), ("w", weights), ("F", np.asfortranarray(A)), ("i", np.ones((N, D), int))):
        np.save(tmp_path / f"{name}.npy", array)
    x, plain = np.ones(D), LeastSquares(A, b, sample_weight=weights)
    mapped = LeastSquares(tmp_path / "A.npy", str(tmp_path / "b.npy"), sample_weight=tmp_path / "w.npy")
    assert numba.typeof(mapped) == numba.typeof(plain) and mapped.value(x) == plain.value(x)
    with pytest.raises(ValueError, match="`b` must be given"):
        LeastSquares(tmp_path / "A.npy")
    with pytest.raises(ValueError, match="`target` is for tables"):
        LeastSquares(tmp_path / "A.npy", b, target="y")
    with pytest.raises(FileNotFoundError, match="`A` must name an existing file"):
        LeastSquares(tmp_path / "absent.npy", b)
    (tmp_path / "bad.npy").write_text("no array")
    with pytest.raises(ValueError, match="bad.npy must be a .npy file"):
        LeastSquares(tmp_path / "bad.npy", b)
    for name in "Fi":
        LeastSquares(tmp_path / f"{name}.npy", b)  # copies, which are small
        with monkeypatch.context() as patch, pytest.raises(ValueError, match="tiebreak.data.store writes it so"):
            patch.setattr(tables, "COPIED_BYTES", 1000)
            LeastSquares(tmp_path / f"{name}.npy", b)


def test_a_view_that_says_nothing_of_writing_keeps_its_memory(tmp_path):
    array = np.arange(10.0)
    array.flags.writeable = False
    view = unlocked(array)
    assert view.flags.writeable and np.shares_memory(view, array)
    del array
    np.testing.assert_array_equal(view, np.arange(10.0))


def test_a_store_tells_what_it_is_and_is_opened_again_where_it_is_sent(tmp_path):
    made = stored(tmp_path, np.float32, sparse=True, seed=7)
    assert repr(made) == (
        f"Store 400 × 6 sparse float32, columns 'target', 'sample_weight', shuffled by seed 7: {made.folder}"
    )
    again = pickle.loads(pickle.dumps(made))
    assert again is not made and (again.folder, again.checksum) == (made.folder, made.checksum)
    with pytest.raises(AttributeError):
        made.seed = 3
    with pytest.raises(ValueError, match="must have a column 'z', and has"):
        made.column("z")
    with pytest.raises(ValueError, match="`folder` must be the path"):
        open_store(3)
