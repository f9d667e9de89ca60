"""Tables of numbers with named columns, from CSV and Parquet files."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from tiebreak.data.files import existing

SEPARATORS = (",", ";", "\t")
PARQUET = (".parquet", ".pq")
ROWS_AT_ONCE = 20_000  # rows of a CSV file that are turned into numbers together
SHOWN = 5  # names of columns that an error lists


class Table(NamedTuple):
    """Numbers, one row per sample, and the names of the columns."""

    path: Path
    names: tuple[str, ...]
    values: np.ndarray  # (n, k)

    def column(self, name: str) -> np.ndarray:
        """Return one column, or raise an error that says which there are."""
        if name not in self.names:
            raise ValueError(f"{self.path} must have a column {name!r}, and has {_listed(self.names)}")
        return np.ascontiguousarray(self.values[:, self.names.index(name)])

    def columns(self, names: tuple[str, ...]) -> np.ndarray:
        """Return some columns, in this order."""
        return np.ascontiguousarray(self.values[:, [self.names.index(name) for name in names]])


def read(path: Any, columns: Sequence[str] | None = None) -> Table:
    """Return the table in a CSV file whose first line has the names of its columns, or in a Parquet file.

    With ``columns``, these alone are read, in this order: others may hold anything.

    Raises
    ------
    ValueError
        If a column holds anything but finite numbers, or there are no rows; the error names the file, the column and a row.
    FileNotFoundError
        If there is no such file.
    ImportError
        If it is a Parquet file, and pyarrow is not there.
    """
    file = existing(path, "a CSV or Parquet file")
    names, values = (_parquet if file.suffix.lower() in PARQUET else _csv)(file, columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{file} has two columns {twice!r}: names must differ")
    if values.shape[0] == 0:
        raise ValueError(f"{file} has no rows")
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"{file} must hold finite numbers, and {names[column]!r} is {_kind(values[row, column])} in row {row + 1}"
            f" ({len(bad):,} such entries): remove these rows, or fill them in"
        )
    return Table(file, tuple(names), values)


def split_target(table: Table, target: str, features: tuple[str, ...] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of a table without one, and that one.

    ``features`` are the names and the order of the others in another table, which this one must agree with.
    """
    y = table.column(target)
    own = tuple(name for name in table.names if name != target)
    features = own if features is None else features
    missing, more = ([n for n in a if n not in b] for a, b in ((features, own), (own, features)))
    if missing or more:
        parts = [f"{word} {_listed(found)}" for word, found in (("lacks", missing), ("has besides", more)) if found]
        raise ValueError(f"{table.path} must have the columns of the other file, and {', '.join(parts)}")
    if not own:
        raise ValueError(f"{table.path} has no column besides {target!r}: there is nothing to predict it from")
    return table.columns(features), y


def _places(file: Path, names: Sequence[str], columns: Sequence[str] | None) -> list[int]:
    """Return where the columns are that are to be read, or raise if one is not there."""
    if columns is None:
        return list(range(len(names)))
    for name in columns:
        if name not in names:
            raise ValueError(f"{file} must have a column {name!r}, and has {_listed(names)}")
        if list(names).count(name) > 1:
            raise ValueError(f"{file} has two columns {name!r}: names must differ")
    return [list(names).index(name) for name in columns]


class CSVFile:
    """A CSV file whose first line has the names of its columns, read in pieces.

    Attributes
    ----------
    names : list of str
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        with self._open() as lines:
            head = lines.readline()
        self._separator = max(SEPARATORS, key=head.count)
        self.names = [name.strip() for name in next(csv.reader([head], delimiter=self._separator), [])]
        if not self.names:
            raise ValueError(f"{file} is empty: its first line must have the names of the columns")
        if all(_number(name) is not None for name in self.names):
            raise ValueError(f"{file} must have the names of the columns in its first line, and that has numbers")

    def pieces(self, places: list[int], at_once: int, start: int = 0) -> Iterator[np.ndarray]:
        """Yield some columns as numbers, so many rows at once, from a row on."""
        with self._open() as lines:
            lines.readline()
            before = 0
            while texts := list(itertools.islice(lines, at_once)):
                if any('"' in text for text in texts):  # quotes may go on over several lines
                    break
                texts = [text for text in texts if text.rstrip("\r\n")]
                skipped = min(max(start - before, 0), len(texts))
                if skipped < len(texts):
                    yield self._numbers(texts[skipped:], places, before + skipped)
                before += len(texts)
            rows = (row for row in csv.reader(itertools.chain(texts, lines), delimiter=self._separator) if row)
            before += sum(1 for _ in itertools.islice(rows, max(start - before, 0)))
            while block := list(itertools.islice(rows, at_once)):
                yield _block(self._file, self.names, places, block, before)
                before += len(block)

    def _numbers(self, texts: list[str], places: list[int], before: int) -> np.ndarray:
        """Return some columns of lines without quotes as numbers; ``before``: the rows before them."""
        if all(text.count(self._separator) == len(self.names) - 1 for text in texts):
            try:
                return np.loadtxt(texts, delimiter=self._separator, usecols=places, comments=None, ndmin=2)
            except ValueError:  # there is text, or nothing, in a cell
                pass
        return _block(self._file, self.names, places, list(csv.reader(texts, delimiter=self._separator)), before)

    @contextmanager
    def _open(self) -> Iterator[TextIO]:
        try:
            with self._file.open(encoding="utf-8-sig", newline="") as lines:
                yield lines
        except UnicodeDecodeError as error:
            raise ValueError(f"{self._file} must be a text file in UTF-8 ({error})") from None


def _csv(file: Path, columns: Sequence[str] | None) -> tuple[list[str], np.ndarray]:
    table = CSVFile(file)
    places = _places(file, table.names, columns)
    blocks = [np.empty((0, len(places))), *table.pieces(places, ROWS_AT_ONCE)]
    return [table.names[j] for j in places], np.concatenate(blocks)


def _block(file: Path, names: list[str], places: list[int], rows: list[list[str]], before: int) -> np.ndarray:
    """Return some columns of some rows as numbers; ``before``: the rows before them."""
    for k, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(f"{file} has {len(names)} columns, and {len(row)} entries in row {before + k + 1}")
    try:
        return np.array([[row[j] for j in places] for row in rows], dtype=np.float64).reshape(len(rows), len(places))
    except ValueError:
        return np.array([[_cell(file, names[j], before + k, row[j]) for j in places] for k, row in enumerate(rows)])


def _cell(file: Path, name: str, row: int, text: str) -> float:
    """Return the number of one cell; NaN if it is empty."""
    if not text.strip():
        return math.nan
    if (number := _number(text)) is None:
        raise ValueError(
            f"{file} must hold numbers, and {name!r} is {text.strip()[:40]!r} in row {row + 1}: turn text into numbers, or"
            " leave the column out"
        )
    return number


def _parquet(file: Path, columns: Sequence[str] | None) -> tuple[list[str], np.ndarray]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{file} is a Parquet file, which needs pyarrow: pip install 'tiebreak[parquet]'") from None
    try:
        names = pyarrow.parquet.read_schema(file).names
        places = _places(file, names, columns)
        table = pyarrow.parquet.read_table(file, columns=[names[j] for j in places] if columns is not None else None)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{file} is no Parquet file, or a damaged one ({str(error).splitlines()[0]})") from None
    for field in table.schema:
        kind = pyarrow.types
        if not (kind.is_integer(field.type) or kind.is_floating(field.type) or kind.is_boolean(field.type)):
            raise ValueError(
                f"{file} must hold numbers, and the column {field.name!r} is of the type {field.type}: turn it into numbers,"
                " or leave it out"
            )
    values = np.empty((table.num_rows, table.num_columns))
    for k in range(table.num_columns):
        values[:, k] = table.column(k).cast(pyarrow.float64()).to_numpy()  # missing ones become NaN
    return list(table.column_names), values


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _kind(value: float) -> str:
    return "missing or NaN" if math.isnan(value) else "infinite"


def _listed(names: Any) -> str:
    """Return the first of some names as a text."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN:,} more" if len(names) > SHOWN else shown
