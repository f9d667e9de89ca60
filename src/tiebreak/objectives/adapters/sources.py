"""Sources of samples for a :class:`~tiebreak.Stream`: loaders, iterators of arrays, files that are read in pieces.

Each is a ``draw(rng, size)`` that returns the next rows, each once, whatever the sizes of the pieces that it reads. The
rows should come in random order: what a stream says of its expectation rests on independent samples. At its end it ends the
run, or begins again if it is to be repeated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.engine import checks


class Rows:
    """The rows of an iterable of batches, in its order.

    Parameters
    ----------
    batches : iterable
        Batches of any size: arrays, tensors, or tuples or dicts of them, whose first axis counts samples. A PyTorch
        ``DataLoader`` is such an iterable.
    repeat : bool
        Whether to begin again at the end. An iterator can be read only once; a list or a loader can be repeated.

    Examples
    --------
    >>> import numpy as np
    >>> source = Rows([np.arange(3), np.arange(3, 5)])
    >>> source(None, 2), source(None, 2)
    (array([0, 1]), array([2, 3]))
    """

    def __init__(self, batches: Iterable[Any], repeat: bool = False) -> None:
        checks.flag(repeat, "repeat")
        if not isinstance(batches, Iterable):
            raise ValueError(f"`batches` must be an iterable of batches, such as a DataLoader, got {checks.shown(batches)}")
        if repeat and isinstance(batches, Iterator):
            raise ValueError("`repeat` needs batches that can be read again, such as a list or a loader, got an iterator")
        self.batches, self.repeat = batches, repeat
        self._reader = iter(batches)
        self._batch: Any = None  # of which rows are left
        self._used = self._size = 0

    def __call__(self, rng: np.random.Generator | None, size: int) -> Any:
        """Return the next rows; fewer at the end, and StopIteration beyond it."""
        parts: list[Any] = []
        missing = size
        while missing > 0 and self._fill():
            count = min(missing, self._size - self._used)
            parts.append(part_of(self._batch, self._used, self._used + count))
            self._used += count
            missing -= count
        if not parts:
            raise StopIteration
        return parts[0] if len(parts) == 1 else joined(parts)

    def _fill(self) -> bool:
        """Read on if no rows are left; return whether there are any."""
        begun_anew = False
        while self._used >= self._size:
            try:
                self._batch = next(self._reader)
            except StopIteration:
                if not self.repeat or begun_anew:  # a pass without a row would never end
                    return False
                self._reader, begun_anew = iter(self.batches), True
                continue
            self._used, self._size = 0, length_of(self._batch)
        return True


class FileRows(Rows):
    """The rows of a file, as an array of features or a pair (features, target).

    Attributes
    ----------
    columns : list of str
        The names of the features.
    """

    def __init__(self, file: _File, repeat: bool) -> None:
        self.columns = file.columns
        super().__init__(file, repeat)


def csv(
    path: str | Path,
    *,
    target: str | None = None,
    columns: list[str] | None = None,
    rows: int = 10_000,
    repeat: bool = False,
    **options: Any,
) -> FileRows:
    """Return the rows of a CSV file, which is read in pieces and may be larger than memory.

    Parameters
    ----------
    path : path
    target : str, optional
        The column of the targets; with it a batch is a pair (features, targets).
    columns : list of str, optional
        The columns of the features; all but the target if not given.
    rows : int
        How many rows to read at once.
    repeat : bool
        Whether to begin again at the end of the file.
    **options
        Of ``pandas.read_csv``, such as ``sep=";"``.

    Returns
    -------
    FileRows

    Raises
    ------
    ImportError
        Without pandas.
    ValueError
        If the file is not a table: empty, without rows, or with a line that has more fields than the header. A line that
        has fewer is one with missing values at its end. Lines are looked at when they are read.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError('CSV files are read by pandas: pip install "tiebreak[pandas]"') from None
    taken = [name for name in OWN_OPTIONS if name in options]
    if taken:
        raise ValueError(
            f"`{taken[0]}` is no option here: say by `target` and `columns` what to read, by `rows` how many at once"
        )
    at_once = checks.whole(rows, "rows")

    def pieces(wanted: list[str]) -> Iterator[Any]:
        # All columns are read: pandas cuts lines that are too long, without a word, where it is to read some only.
        with _csv_errors(path), pandas.read_csv(path, chunksize=at_once, **options) as reader:
            yield from reader

    with _csv_errors(_existing(path)):
        first = pandas.read_csv(path, nrows=1, **options)
    _check_header(path, first, pandas.RangeIndex)
    return FileRows(_File(path, list(first.columns), target, columns, pieces), repeat)


OWN_OPTIONS = ("usecols", "index_col", "chunksize", "iterator", "nrows")  # options of pandas.read_csv that are set here


@contextmanager
def _csv_errors(path: Any) -> Iterator[None]:
    """Say of which file and line what pandas raises is, and what to do."""
    from pandas.errors import EmptyDataError, ParserError

    try:
        yield
    except EmptyDataError:
        raise ValueError(f"{path} must be a CSV file with a line of column names, and it is empty") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be a text file, and it is not ({error}); pass its encoding=..., if it is one"
        ) from None
    except ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found is None:
            raise ValueError(f"{path} must be a CSV file, and it is not: {str(error).strip()}") from None
        expected, line, seen = found.groups()
        raise ValueError(
            f"{path}, line {line}: must have {expected} fields, as the lines before it have, got {seen};"
            f" correct or remove it, or pass sep=... if the fields are separated by something else"
        ) from None


def _check_header(path: Any, first: Any, plain: type) -> None:
    """Raise if the first line of data does not fit the names of the columns, or there is none."""
    odd = next((name for name in map(str, first.columns) if not name.isprintable()), None)
    if odd is not None:
        raise ValueError(f"{path} must be a CSV file with a line of column names, got the name {checks.shown(odd)}")
    if not isinstance(first.index, plain):  # pandas takes the first columns for names of rows then, and shifts the others
        extra = first.index.nlevels
        raise ValueError(
            f"{path}: the first line of data must have {len(first.columns)} fields, as many as the header has names,"
            f" got {len(first.columns) + extra}; name all columns, or remove a separator at the end of the lines"
        )
    if not len(first):
        raise ValueError(f"{path} must have rows of data, and it has a header only")


def parquet(
    path: str | Path,
    *,
    target: str | None = None,
    columns: list[str] | None = None,
    rows: int = 10_000,
    repeat: bool = False,
) -> FileRows:
    """Return the rows of a Parquet file, which is read in pieces; the arguments are those of :func:`csv`.

    Raises
    ------
    ImportError
        Without pyarrow.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError('Parquet files are read by pyarrow: pip install "tiebreak[parquet]"') from None

    at_once = checks.whole(rows, "rows")

    def pieces(wanted: list[str]) -> Iterator[Any]:
        for batch in ParquetFile(path).iter_batches(batch_size=at_once, columns=wanted):
            yield batch.to_pandas()

    try:
        file = ParquetFile(_existing(path))
    except ArrowException as error:
        raise ValueError(f"{path} must be a Parquet file, and it is damaged or none: {error}") from None
    if file.metadata.num_rows == 0:
        raise ValueError(f"{path} must have rows of data, and it has none")
    return FileRows(_File(path, list(file.schema_arrow.names), target, columns, pieces), repeat)


class _File:
    """The pieces of a table as arrays."""

    def __init__(self, path: Any, names: list[str], target: str | None, columns: list[str] | None, pieces: Any) -> None:
        if isinstance(columns, str):
            raise ValueError(f"`columns` must be a list of names, got {columns!r}: write [{columns!r}]")
        self.columns = [name for name in names if name != target] if columns is None else list(columns)
        self.path, self.target, self.pieces = path, target, pieces
        for argument, name in [("target", target), *(("columns", name) for name in self.columns)]:
            if name is not None and name not in names:
                raise ValueError(f"`{argument}` must name a column of the file, and {name!r} is none: {checks.shown(names)}")
            if name is not None and names.count(name) > 1:
                raise ValueError(
                    f"`{argument}` must name one column of the file, and {names.count(name)} are called {name!r}"
                )
        if not self.columns:
            raise ValueError("`columns` must name at least one feature, got none")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"`columns` must name each feature once, got {checks.shown(self.columns)}")

    def __iter__(self) -> Iterator[Any]:
        before = 0
        for frame in self.pieces([*self.columns, *([] if self.target is None else [self.target])]):
            features = numbers(frame[self.columns], self.path, before)
            yield features if self.target is None else (features, numbers(frame[[self.target]], self.path, before)[:, 0])
            before += len(frame)


def numbers(frame: Any, path: Any, before: int) -> np.ndarray:
    """Return the columns of a table as an array; raise if they are not finite numbers. ``before``: the rows before them."""
    columns = []
    for name in frame.columns:
        if frame[name].dtype.kind not in "fiub":
            raise ValueError(f"{path}: the column {name!r} must hold numbers, got {frame[name].dtype}")
        column = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise ValueError(
                f"{path}: the column {name!r} must hold finite numbers, and row {before + bad[0] + 1} of the data is missing"
                f" or infinite there, the first of {bad.size} such; remove or impute them first"
            )
        columns.append(column)
    return np.stack(columns, axis=1)


def _existing(path: Any) -> Any:
    if not isinstance(path, (str, os.PathLike)):  # an open file cannot be read again from its beginning
        raise ValueError(f"`path` must be the path of a file, got {checks.shown(path)}")
    if "://" not in str(path) and not Path(path).is_file():
        raise ValueError(f"`path` must be a file, and there is none at {path}")
    return path


def length_of(batch: Any) -> int:
    """Return the number of rows of a batch."""
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if isinstance(batch, (tuple, list)):
        lengths = {length_of(part) for part in batch}
        if len(lengths) != 1:
            raise ValueError(f"the arrays of a batch must have as many rows each, got {sorted(lengths)}")
        return lengths.pop()
    return len(batch)


def part_of(batch: Any, start: int, stop: int) -> Any:
    """Return some rows of a batch."""
    if isinstance(batch, dict):
        return {name: part_of(part, start, stop) for name, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(part_of(part, start, stop) for part in batch)
    return batch[start:stop]


def joined(parts: list[Any]) -> Any:
    """Return batches of one kind as one."""
    first = parts[0]
    if isinstance(first, dict):
        return {name: joined([part[name] for part in parts]) for name in first}
    if isinstance(first, tuple):
        return tuple(joined(list(column)) for column in zip(*parts, strict=True))
    if type(first).__module__.partition(".")[0] == "torch":
        import torch

        return torch.cat(parts)
    return np.concatenate(parts)
