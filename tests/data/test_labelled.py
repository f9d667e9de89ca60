"""Rows with labels: a1a from files of two formats, and breast cancer."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data import a1a, breast_cancer

TEXT = "-1 1:1 5:1\n+1 2:1 123:1\n-1 4:1\n"
ROWS = [[0, 4], [1, 122], [3]]


def stored(folder, **changes):
    """An .npz file of three rows, with some of its arrays replaced, or left out if they are None."""
    content = {
        "data": np.ones(5), "indices": [0, 4, 1, 122, 3], "indptr": [0, 2, 4, 5], "shape": [3, 123], "labels": [-1, 1, -1]
    } | changes  # fmt: skip
    np.savez(folder / "made.npz", **{name: value for name, value in content.items() if value is not None})
    return folder / "made.npz"


def check(A, y):
    assert A.shape == (3, 124)
    assert [np.flatnonzero(row).tolist() for row in A[:, :-1]] == ROWS
    np.testing.assert_array_equal(A[:, -1], 1.0)
    np.testing.assert_array_equal(y, [-1, 1, -1])


def test_a1a_reads_both_formats_alike(tmp_path):
    (tmp_path / "a1a.t").write_text(TEXT)
    (tmp_path / "a1a.gz").write_bytes(gzip.compress(TEXT.encode()))
    for path in (tmp_path / "a1a.t", tmp_path / "a1a.gz", stored(tmp_path)):
        check(*a1a(path, rows=3))
        check(*a1a(path, rows=None))
        assert a1a(path, rows=2).A.shape == (2, 124)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "made.npz: must have the arrays .*, got none called labels"),
        ({"labels": [1, 0, 1]}, "made.npz: must have the labels 1 and −1 only, got 0"),
        ({"labels": [1, -1]}, "must have 123 features and a label per row, got .* and 2"),
        ({"shape": [3, 124]}, "must have 123 features and a label per row"),
        ({"shape": [3]}, "made.npz"),
        ({"indices": [0, 4, 1, 123, 3]}, "made.npz"),
        ({"data": np.array([1, 1, 1, 1, np.nan])}, "`data` must hold finite numbers"),
        ({"data": np.array([object()] * 5)}, "must be an .npz file"),
        ({"data": np.ones(5) + 1j}, "made.npz: `data` must hold real numbers, got an array of type complex128"),
        ({"indices": [0.5, 4, 1, 122, 3]}, "made.npz: `indices` must hold whole numbers, got an array of type float64"),
    ],
)
def test_a1a_says_what_is_wrong_in_which_file(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        a1a(stored(tmp_path, **changes), rows=3)


@pytest.mark.parametrize("text", ["1 124:1\n", "1 0:1\n", "a text\n", "1 5:x\n", "1 99999999999999:1\n"])
def test_a_text_that_is_not_of_a1a_is_refused_by_the_name_of_its_file(tmp_path, text):
    (tmp_path / "wrong.t").write_text(text)
    with pytest.raises(ValueError, match="wrong.t: must be in LIBSVM's text format, with indices from 1 to 123"):
        a1a(tmp_path / "wrong.t", rows=1)


def test_a1a_names_files_that_are_too_short_damaged_or_not_there(tmp_path):
    with pytest.raises(ValueError, match="made.npz: must have at least 1000 rows, got 3"):
        a1a(stored(tmp_path))
    (tmp_path / "cut.npz").write_bytes(stored(tmp_path).read_bytes()[:200])
    with pytest.raises(ValueError, match="cut.npz: must be an .npz file"):
        a1a(tmp_path / "cut.npz")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(TEXT.encode())[:-6])
    with pytest.raises(ValueError, match="cut.gz: must be in LIBSVM's text format"):
        a1a(tmp_path / "cut.gz")
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(ValueError, match="one.npz: must be an .npz file"):
        a1a(tmp_path / "one.npz")
    (tmp_path / "empty.t").touch()
    with pytest.raises(ValueError, match="empty.t: must have at least 1 rows, got 0"):
        a1a(tmp_path / "empty.t", rows=None)
    with pytest.raises(FileNotFoundError, match="absent.t"):
        a1a(tmp_path / "absent.t")


def test_a1a_reads_the_real_file():
    path = Path(os.environ.get("TIEBREAK_DATA", ""), "a1a.npz")
    if "TIEBREAK_DATA" not in os.environ or not path.is_file():
        pytest.skip("TIEBREAK_DATA names no folder that holds a1a.npz")
    A, y = a1a(path)
    assert A.shape == (1000, 124)
    assert set(np.unique(A)) == {0.0, 1.0}
    assert np.linalg.matrix_rank(A) == 95
    assert set(np.unique(y)) == {-1.0, 1.0}
    assert a1a(path, rows=None).A.shape == (30_956, 124)


def test_breast_cancer_has_all_products_of_three_features_standardised():
    A, y = breast_cancer()
    assert A.shape == (455, 5456)
    np.testing.assert_allclose(A[:, :-1].mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(A[:, :-1].std(axis=0), 1.0, atol=1e-10)
    np.testing.assert_array_equal(A[:, -1], 1.0)
    assert (y == 1).sum() == 285  # benign
    np.testing.assert_array_equal(A[:, :30], breast_cancer(degree=1).A[:, :30])
    with pytest.raises(ValueError, match="`degree` must be 1, 2 or 3, got 4"):
        breast_cancer(degree=4)
