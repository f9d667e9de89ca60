"""Tables of named columns as sources of a store: Parquet, CSV and Arrow files, pandas and Arrow tables, Dask dataframes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.data.tables import PARQUET, CSVFile
from tiebreak.engine import checks

CSV = (".csv", ".tsv", ".txt")
ARROW = (".arrow", ".feather", ".ipc")
FILES = (*PARQUET, *CSV, *ARROW)
CELL_BYTES = 100  # that a cell of a CSV file takes while it is a text

Columns = list[np.ndarray]  # some columns of some rows, each one a vector


class Table:
    """Named columns that are read in pieces.

    Attributes
    ----------
    text : str
        What errors call it.
    names : list of str
    rows : int or None
        How many there are, where that is known without reading them.
    """

    text: str
    names: list[str]
    rows: int | None = None

    def dtype_of(self, name: str) -> np.dtype:
        """Return the type of a column; raise if it holds no numbers."""
        raise NotImplementedError

    def pieces(self, wanted: Sequence[str], start: int, most: int) -> Iterator[Columns]:
        """Yield some columns, from a row on, in pieces of about so many bytes at most."""
        raise NotImplementedError

    def _rows_at_once(self, wanted: Sequence[str], most: int, cell: int = 8) -> int:
        return max(1, most // (cell * len(wanted)))


class CSVTable(Table):
    """A CSV file."""

    def __init__(self, file: Path) -> None:
        self.text, self._file = str(file), CSVFile(file)
        self.names = self._file.names

    def dtype_of(self, name: str) -> np.dtype:
        return np.dtype(np.float64)

    def pieces(self, wanted: Sequence[str], start: int, most: int) -> Iterator[Columns]:
        places = [self.names.index(name) for name in wanted]
        for block in self._file.pieces(places, self._rows_at_once(wanted, most, CELL_BYTES), start):
            yield list(block.T)


class ArrowTable(Table):
    """What pyarrow reads in batches; the columns of a schema."""

    def __init__(self, text: str, schema: Any, rows: int | None) -> None:
        self.text, self.rows, self.names = text, rows, list(schema.names)
        self._types = dict(zip(schema.names, schema.types, strict=True))

    def dtype_of(self, name: str) -> np.dtype:
        from pyarrow import types

        kind = self._types[name]
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(
                f"{self.text} must hold numbers, and the column {name!r} is of the type {kind}: turn it into numbers, or"
                " leave it out by `columns`"
            )
        return np.dtype(np.float32 if types.is_float32(kind) else np.float64)

    def pieces(self, wanted: Sequence[str], start: int, most: int) -> Iterator[Columns]:
        import pyarrow

        at_once = self._rows_at_once(wanted, most)
        with arrow_errors(self.text):
            for batch in self.batches(wanted, start, at_once):
                for low in range(0, batch.num_rows, at_once):
                    part = batch.slice(low, at_once)
                    found = []
                    for name in wanted:
                        kind = pyarrow.from_numpy_dtype(self.dtype_of(name))
                        column = part.column(part.schema.get_field_index(name)).cast(kind)
                        found.append(column.to_numpy(zero_copy_only=False))  # missing ones become NaN
                    yield found

    def batches(self, wanted: Sequence[str], start: int, at_once: int) -> Iterator[Any]:
        """Yield batches with at least these columns, from a row on."""
        raise NotImplementedError


class ParquetTable(ArrowTable):
    """A Parquet file."""

    def __init__(self, file: Path) -> None:
        require("pyarrow", f"{file} is a Parquet file", "parquet")
        self._path = file
        with arrow_errors(str(file)):
            opened = self._open()
            super().__init__(str(file), opened.schema_arrow, opened.metadata.num_rows)

    def _open(self) -> Any:
        from pyarrow.parquet import ParquetFile

        return ParquetFile(self._path, buffer_size=1 << 20, pre_buffer=False)  # not whole groups of rows at once

    def batches(self, wanted: Sequence[str], start: int, at_once: int) -> Iterator[Any]:
        opened = self._open()
        sizes = [opened.metadata.row_group(k).num_rows for k in range(opened.num_row_groups)]
        for k, size in enumerate(sizes):
            skipped = min(start, size)
            start -= skipped
            if skipped == size:
                continue
            for batch in opened.iter_batches(at_once, row_groups=[k], columns=list(wanted), use_threads=False):
                if skipped < batch.num_rows:
                    yield batch.slice(skipped)
                skipped = max(0, skipped - batch.num_rows)


class ArrowFile(ArrowTable):
    """An Arrow file, which is also what Feather files are."""

    def __init__(self, file: Path) -> None:
        require("pyarrow", f"{file} is an Arrow file", "parquet")
        self._path = file
        with arrow_errors(str(file)):
            super().__init__(str(file), self._open().schema, None)

    def _open(self) -> Any:
        import pyarrow

        return pyarrow.ipc.open_file(pyarrow.memory_map(str(self._path)))

    def batches(self, wanted: Sequence[str], start: int, at_once: int) -> Iterator[Any]:
        opened = self._open()
        yield from skipping((opened.get_batch(k) for k in range(opened.num_record_batches)), start)


class ArrowInMemory(ArrowTable):
    """A table or a batch of pyarrow."""

    def __init__(self, table: Any) -> None:
        super().__init__("the Arrow table", table.schema, table.num_rows)
        self._table = table

    def batches(self, wanted: Sequence[str], start: int, at_once: int) -> Iterator[Any]:
        batches = self._table.to_batches() if hasattr(self._table, "to_batches") else [self._table]
        yield from skipping(iter(batches), start)


class Pandas(Table):
    """A dataframe."""

    def __init__(self, frame: Any) -> None:
        self.text, self.rows, self.names = "the dataframe", len(frame), [str(name) for name in frame.columns]
        self._frame = frame

    def dtype_of(self, name: str) -> np.dtype:
        return pandas_type(self._frame.dtypes.iloc[self.names.index(name)], name, self.text)

    def pieces(self, wanted: Sequence[str], start: int, most: int) -> Iterator[Columns]:
        at_once = self._rows_at_once(wanted, most)
        for low in range(start, len(self._frame), at_once):
            part = self._frame.iloc[low : low + at_once]
            columns = [part.iloc[:, self.names.index(name)] for name in wanted]
            yield [
                column.to_numpy(dtype=self.dtype_of(name), na_value=np.nan)
                for name, column in zip(wanted, columns, strict=True)
            ]


class DaskFrame(Table):
    """A dataframe of Dask: one partition after the other is computed."""

    def __init__(self, frame: Any) -> None:
        self.text, self.names = "the Dask dataframe", [str(name) for name in frame.columns]
        self._frame, self._meta = frame, Pandas(frame._meta)

    def dtype_of(self, name: str) -> np.dtype:
        return self._meta.dtype_of(name)

    def pieces(self, wanted: Sequence[str], start: int, most: int) -> Iterator[Columns]:
        places = [self.names.index(name) for name in wanted]
        frame = self._frame[[self._frame.columns[j] for j in places]]
        for k in range(frame.npartitions):
            part = Pandas(frame.partitions[k].compute())
            size = part.rows or 0
            yield from part.pieces(wanted, min(start, size), most)
            start -= min(start, size)


class Several(Table):
    """Tables with the same columns, one after the other."""

    def __init__(self, tables: list[Table]) -> None:
        self.tables, self.names, self.text = tables, tables[0].names, tables[0].text
        for other in tables[1:]:
            if set(other.names) != set(self.names):
                apart = sorted(set(other.names) ^ set(self.names))
                raise ValueError(f"{other.text} must have the columns of {self.text}, and differs in {checks.shown(apart)}")
        known = [table.rows for table in tables if table.rows is not None]
        self.rows = sum(known) if len(known) == len(tables) else None

    def dtype_of(self, name: str) -> np.dtype:
        return np.result_type(*(table.dtype_of(name) for table in self.tables))

    def pieces(self, wanted: Sequence[str], start: int, most: int) -> Iterator[Columns]:
        for table in self.tables:
            if table.rows is not None and start >= table.rows:
                start -= table.rows
                continue
            for piece in table.pieces(wanted, 0 if table.rows is None else start, most):
                skipped = 0 if table.rows is not None else min(start, len(piece[0]))
                start -= skipped
                if skipped < len(piece[0]):
                    yield [column[skipped:] for column in piece]
            start = start if table.rows is None else 0


def table_of(files: Sequence[Path]) -> Table:
    """Return the table in some files."""
    kinds = {suffix: kind for suffixes, kind in READERS for suffix in suffixes}
    for file in files:
        if file.suffix.lower() not in kinds:
            raise ValueError(f"`source` must be files of the kinds {', '.join(FILES)} and .npy, got {file}")
    tables = [kinds[file.suffix.lower()](file) for file in files]
    return tables[0] if len(tables) == 1 else Several(tables)


READERS: list[tuple[tuple[str, ...], type[Any]]] = [(PARQUET, ParquetTable), (CSV, CSVTable), (ARROW, ArrowFile)]


def skipping(batches: Iterator[Any], start: int) -> Iterator[Any]:
    """Yield batches from a row on."""
    for batch in batches:
        if start < batch.num_rows:
            yield batch.slice(start)
        start = max(0, start - batch.num_rows)


def pandas_type(dtype: Any, name: str, text: str) -> np.dtype:
    """Return the type of a column; raise if it holds no numbers."""
    if getattr(dtype, "kind", "O") not in "fiub":
        raise ValueError(
            f"{text} must hold numbers, and the column {name!r} is of the type {dtype}: turn it into numbers, or leave it"
            " out by `columns`"
        )
    single = getattr(dtype, "numpy_dtype", dtype) == np.float32
    return np.dtype(np.float32 if single else np.float64)


def require(package: str, what: str, extra: str) -> None:
    """Raise an error that says what to install if a package is not there."""
    try:
        __import__(package)
    except ImportError:
        raise ImportError(f"{what}, which needs {package}: pip install 'tiebreak[{extra}]'") from None


@contextmanager
def arrow_errors(text: str) -> Iterator[None]:
    """Say of which file an error of pyarrow is."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{text} cannot be read, or is damaged ({next(iter(str(error).splitlines()), '')})") from None


def twice(names: Sequence[str]) -> str | None:
    """Return a name that is there more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)
