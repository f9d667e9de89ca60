"""Tables in files: what is no table is refused, with the file and the line."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest

from tiebreak import data
from tiebreak.objectives.adapters import sources

pandas = pytest.importorskip("pandas")

HEADER = "a,b,c\n"
GOOD = "1,2,3\n"


def written(folder, content):
    path = folder / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def all_rows(source):
    """Read a source to its end."""
    parts = []
    with contextlib.suppress(StopIteration):
        while True:
            parts.append(source(None, 100))
    return parts


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("before", [1, 2, 3, 5])
@pytest.mark.parametrize("line", ["9,1,2,3\n", "1,2,3,4,5\n", "1,2,3,\n"])
def test_a_line_with_too_many_fields_is_refused_wherever_it_is(tmp_path, rows, before, line):
    path = written(tmp_path, HEADER + before * GOOD + line + 3 * GOOD)
    message = f"{path}, line {before + 2}: must have 3 fields, as the lines before it have, got {line.count(',') + 1}"
    with pytest.raises(ValueError, match=re.escape(message)):
        all_rows(sources.csv(path, target="c", rows=rows))


@pytest.mark.parametrize("columns", [None, ["a"]])
@pytest.mark.parametrize("line", ["9,1,2,3\n", "1,2,3,4,5\n", "1,2,3,\n"])
def test_no_column_becomes_the_names_of_rows_where_all_lines_have_more_fields_than_the_header(tmp_path, line, columns):
    path = written(tmp_path, HEADER + 3 * line)
    message = f"the first line of data must have 3 fields, as many as the header has names, got {line.count(',') + 1}"
    with pytest.raises(ValueError, match=message):
        sources.csv(path, target="c", columns=columns)


def test_a_line_with_too_few_fields_has_missing_values(tmp_path):
    path = written(tmp_path, HEADER + GOOD + "1,2\n" + GOOD)
    with pytest.raises(ValueError, match=r"the column 'c' must hold finite numbers, and row 2 of the data is missing"):
        all_rows(sources.csv(path, rows=1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must be a CSV file with a line of column names, and it is empty"),
        ("\n\n", "must be a CSV file with a line of column names, and it is empty"),
        (HEADER, "must have rows of data, and it has a header only"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "must be a text file, and it is not"),
        (bytes(100), "must be a CSV file with a line of column names, got the name"),
        ('a,b,c\n1,2,"3\n1,2,3\n', "must be a CSV file, and it is not"),
        ("a,b,c\n1,x,3\n", "the column 'b' must hold numbers"),
    ],
)
def test_files_that_are_no_tables_are_named(tmp_path, content, message):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}.*{message}"):
        all_rows(sources.csv(path))


def test_good_tables_are_read_whole_whatever_is_asked_of_them(tmp_path):
    path = written(tmp_path, "a;b;c\n" + "1;2;3\n4;5;6\n")
    (features, targets), *_ = all_rows(sources.csv(path, target="b", columns=["c"], sep=";", rows=1))
    assert features.tolist() == [[3.0], [6.0]]
    assert targets.tolist() == [2.0, 5.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": "ab"}, r"`columns` must be a list of names, got 'ab': write \['ab'\]"),
        ({"columns": ["a", "a"]}, "`columns` must name each feature once"),
        ({"repeat": "no"}, "`repeat` must be True or False, got 'no'"),
        ({"rows": 0}, "`rows` must be a whole number ≥ 1, got 0"),
        ({"index_col": 0}, "`index_col` is no option here: say by `target` and `columns` what to read"),
        ({"usecols": ["a"]}, "`usecols` is no option here"),
    ],
)
def test_arguments_of_tables_are_checked_when_they_are_opened(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        sources.csv(written(tmp_path, HEADER + GOOD), **arguments)


def test_an_open_file_is_no_path(tmp_path):
    path = written(tmp_path, HEADER + GOOD)
    with path.open() as file, pytest.raises(ValueError, match="`path` must be the path of a file"):
        sources.csv(file)


def test_parquet_files_that_are_none_or_empty_are_named(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    for content in (b"", b"no table at all"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="must be a Parquet file, and it is damaged or none"):
            sources.parquet(path)
    pandas.DataFrame({"a": []}).to_parquet(path)
    with pytest.raises(ValueError, match="must have rows of data, and it has none"):
        sources.parquet(path)
    pandas.DataFrame({"a": [1, None, 3]}).astype("Int64").to_parquet(path)
    with pytest.raises(ValueError, match="the column 'a' must hold finite numbers, and row 2 of the data is missing"):
        all_rows(sources.parquet(path))


@pytest.mark.parametrize("content", [b"", b"\x89PNG\xff", b'{"nodes": [', b'{"nodes": [{"y": [1, [2]]}]}'])
def test_texts_of_data_sets_that_are_damaged_are_named(tmp_path, content):
    path = tmp_path / "bus.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(str(path))) as raised:
        data.montevideo(path)
    assert "inhomogeneous" not in str(raised.value)


def test_rows_that_are_good_stay_what_they_were(tmp_path):
    path = written(tmp_path, HEADER + "1,2,3\n4,5,6\n")
    (rows,) = all_rows(sources.csv(path))
    np.testing.assert_array_equal(rows, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
