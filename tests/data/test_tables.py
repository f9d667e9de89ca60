"""Tables in CSV and Parquet files: what is read, and what is said of files that cannot be."""

from __future__ import annotations

import sys

import numpy as np
import pandas
import pytest

from tiebreak.data.tables import CSVFile, read, split_target


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_and_parquet_give_the_same_numbers(tmp_path):
    frame = pandas.DataFrame({"a": [1.5, -2.0], "y": [1, 0], "big number": [1e300, 3.0], "on": [True, False]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.astype(float).to_csv(tmp_path / "t.csv", index=False)
    one, other = read(tmp_path / "t.parquet"), read(str(tmp_path / "t.csv"))
    assert one.names == other.names == ("a", "y", "big number", "on")
    np.testing.assert_array_equal(one.values, frame.to_numpy(dtype=float))
    np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.parametrize(
    "text",
    ["a,y\n1,2\n3,4\n", "a;y\n1;2\n3;4\n", "a\ty\n1\t2\n3\t4", '\ufeff"a", y\n"1",2\n\n3, 4\n', "a,y\r\n1,2\r\n3,4\r\n"],
)
def test_csv_has_many_forms(text, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    table = read(path)
    assert table.names == ("a", "y")
    np.testing.assert_array_equal(table.values, [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("quoted", [0, 3, 7, 12])
def test_csv_is_read_in_pieces_from_any_row_on_also_where_quotes_begin(quoted, tmp_path):
    lines = [f'{k},"a\n""b""",{2 * k}' if k >= quoted else f"{k},a,{2 * k}" for k in range(10)]
    file = CSVFile(written(tmp_path, "t.csv", "a,text,y\n" + "\n\n".join(lines) + "\n"))
    for start in (0, 1, 4, 9, 10):
        found = np.concatenate([np.empty((0, 2)), *file.pieces([2, 0], 3, start)])
        assert found.tolist() == [[2.0 * k, k] for k in range(start, 10)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,y\n", "has no rows"),
        ("1,2\n3,4\n", "names of the columns in its first line"),
        ("a,a\n1,2\n", "two columns 'a'"),
        ("a,y\n1,2\n3\n", "has 2 columns, and 1 entries in row 2"),
        ("a,y\n1,2\n3,blue\n", "'y' is 'blue' in row 2: turn text into numbers"),
        ("a,y\n1,2\n,4\n3,\n", r"'a' is missing or NaN in row 2 \(2 such entries\)"),
        ("a,y\n1,nan\n", "'y' is missing or NaN in row 1"),
        ("a,y\n1,inf\n", "'y' is infinite in row 1"),
    ],
)
def test_what_is_wrong_in_a_csv_file_is_named(text, message, tmp_path):
    path = written(tmp_path, "t.csv", text)
    with pytest.raises(ValueError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)


def test_what_is_wrong_in_a_parquet_file_is_named(tmp_path):
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": [1.0], "who": ["me"]}).to_parquet(path)
    with pytest.raises(ValueError, match="the column 'who' is of the type .*string"):
        read(path)
    pandas.DataFrame({"a": [1.0, None]}).to_parquet(path)
    with pytest.raises(ValueError, match="'a' is missing or NaN in row 2"):
        read(path)
    path.write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match="is no Parquet file"):
        read(path)
    with pytest.raises(FileNotFoundError, match="must name an existing file"):
        read(tmp_path / "absent.csv")
    binary = tmp_path / "b.csv"
    binary.write_bytes(b"a,y\n\xff\xfe,2\n")
    with pytest.raises(ValueError, match="UTF-8"):
        read(binary)


def test_parquet_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": [1.0]}).to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'tiebreak\[parquet\]'"):
        read(path)


def test_columns_are_matched_by_their_names(tmp_path):
    one = read(written(tmp_path, "one.csv", "a,b,y\n1,2,3\n"))
    other = read(written(tmp_path, "other.csv", "y,b,a\n30,20,10\n"))
    A, y = split_target(one, "y")
    B, z = split_target(other, "y", ("a", "b"))
    assert (A.tolist(), y.tolist()) == ([[1.0, 2.0]], [3.0])
    assert (B.tolist(), z.tolist()) == ([[10.0, 20.0]], [30.0])
    with pytest.raises(ValueError, match="must have a column 'z', and has 'a', 'b', 'y'"):
        split_target(one, "z")
    with pytest.raises(ValueError, match="must have the columns of the other file, and lacks 'c', has besides 'b'"):
        split_target(one, "y", ("a", "c"))
    with pytest.raises(ValueError, match="no column besides 'y'"):
        split_target(read(written(tmp_path, "y.csv", "y\n1\n")), "y")
