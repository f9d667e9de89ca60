"""Sources of samples for a :class:`~tiebreak.Stream`: loaders, iterators of arrays, files that are read in pieces.

Each is a ``draw(rng, size)`` that hands out the next rows, each once, whatever the sizes of the pieces that it reads. The
rows should come in random order: what a stream says of its expectation rests on independent samples. At its end it ends the
run, or begins anew if it is to be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak import checks


class Rows:
    """The rows of an iterable of batches, in its order.

    Parameters
    ----------
    batches : iterable
        Batches of any size: arrays, tensors, or tuples or dicts of them, whose first axis counts samples. A PyTorch
        ``DataLoader`` is such an iterable.
    repeat : bool
        Whether to begin anew at the end. An iterator can be read only once; a list or a loader can be repeated.

    Examples
    --------
    >>> import numpy as np
    >>> source = Rows([np.arange(3), np.arange(3, 5)])
    >>> source(None, 2), source(None, 2)
    (array([0, 1]), array([2, 3]))
    """

    def __init__(self, batches: Iterable[Any], repeat: bool = False):
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


class Table(Rows):
    """The rows of a file, as an array of features or a pair (features, target).

    Attributes
    ----------
    columns : list of str
        The names of the features.
    """

    def __init__(self, file: _File, repeat: bool):
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
) -> Table:
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
        Whether to begin anew at the end of the file.
    **options
        Of ``pandas.read_csv``, such as ``sep=";"``.

    Returns
    -------
    Table

    Raises
    ------
    ImportError
        Without pandas.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError('CSV files are read by pandas: pip install "tiebreak[pandas]"') from None

    def pieces(wanted: list[str]) -> Iterator[Any]:
        with pandas.read_csv(path, usecols=wanted, chunksize=checks.whole(rows, "rows"), **options) as reader:
            yield from reader

    names = list(pandas.read_csv(_existing(path), nrows=0, **options).columns)
    return Table(_File(names, target, columns, pieces), repeat)


def parquet(
    path: str | Path,
    *,
    target: str | None = None,
    columns: list[str] | None = None,
    rows: int = 10_000,
    repeat: bool = False,
) -> Table:
    """Return the rows of a Parquet file, which is read in pieces; the arguments are those of :func:`csv`.

    Raises
    ------
    ImportError
        Without pyarrow.
    """
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError('Parquet files are read by pyarrow: pip install "tiebreak[parquet]"') from None

    def pieces(wanted: list[str]) -> Iterator[Any]:
        for batch in ParquetFile(path).iter_batches(batch_size=checks.whole(rows, "rows"), columns=wanted):
            yield batch.to_pandas()

    names = list(ParquetFile(_existing(path)).schema_arrow.names)
    return Table(_File(names, target, columns, pieces), repeat)


class _File:
    """The pieces of a table as arrays."""

    def __init__(self, names: list[str], target: str | None, columns: list[str] | None, pieces: Any):
        self.columns = [name for name in names if name != target] if columns is None else list(columns)
        self.target, self.pieces = target, pieces
        for argument, name in [("target", target), *(("columns", name) for name in self.columns)]:
            if name is not None and name not in names:
                raise ValueError(f"`{argument}` must name a column of the file, and {name!r} is none: {checks.shown(names)}")
        if not self.columns:
            raise ValueError("`columns` must name at least one feature, got none")

    def __iter__(self) -> Iterator[Any]:
        for frame in self.pieces([*self.columns, *([] if self.target is None else [self.target])]):
            features = numbers(frame[self.columns])
            yield features if self.target is None else (features, numbers(frame[[self.target]])[:, 0])


def numbers(frame: Any) -> np.ndarray:
    """Return the columns of a table as an array; raise if they are not finite numbers."""
    for name in frame.columns:
        if frame[name].dtype.kind not in "fiub":
            raise ValueError(f"the column {name!r} must hold numbers, got {frame[name].dtype}")
        if not np.isfinite(frame[name].to_numpy(dtype=np.float64)).all():
            raise ValueError(f"the column {name!r} must hold finite numbers, and some of its rows are missing or infinite")
    return frame.to_numpy(dtype=np.float64)


def _existing(path: Any) -> Any:
    if isinstance(path, (str, Path)) and "://" not in str(path) and not Path(path).is_file():
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
