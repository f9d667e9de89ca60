"""What a store can be made of, as blocks of rows that are read one after the other."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.data.blocks import Block, Form, canonical
from tiebreak.data.growing import bytes_of
from tiebreak.data.tabular import FILES, ArrowInMemory, DaskFrame, Pandas, Table, require, table_of, twice
from tiebreak.engine import checks
from tiebreak.rows.maps import mapped

TARGET, WEIGHTS = "target", "sample_weight"  # names of columns that are given as arrays


class Choice(NamedTuple):
    """What is to be stored of a source."""

    target: Any = None  # the name of a column, or an array
    sample_weight: Any = None  # the same
    columns: Sequence[str] | None = None  # of the matrix; all others if not given
    dtype: np.dtype | None = None  # of the matrix; that of the source if not given

    @property
    def apart(self) -> tuple[Any, ...]:
        return tuple(each for each in (self.target, self.sample_weight) if each is not None)


class Source:
    """Rows that are read in blocks.

    Attributes
    ----------
    text : str
        What errors call it.
    form : Form
        What all blocks have in common.
    names : tuple of str or None
        The columns of the matrix.
    kept : tuple of str
        Columns that are kept apart.
    target : str or None
        The one of them that is the target.
    rows : int or None
        How many there are, where that is known.
    size : int or None
        How many bytes they take, about, where that is known.
    identity : str or None
        What tells the source from others, and from itself after a change; None if nothing does, or all its numbers.
    in_memory : bool
        Whether its numbers are at hand, so that they tell it from others.
    """

    text: str
    form: Form
    names: tuple[str, ...] | None = None
    kept: tuple[str, ...] = ()
    target: str | None = None
    rows: int | None = None
    size: int | None = None
    identity: str | None = None
    in_memory: bool = False

    def blocks(self, start: int, most: int) -> Iterator[Block]:
        """Yield the rows from one on, in blocks of about so many bytes at most."""
        raise NotImplementedError

    def known_by(self, most: int) -> str | None:
        """Return the identity; where all numbers are at hand, a checksum of them, looked at in pieces of so many bytes."""
        if not self.in_memory:
            return self.identity
        found = [0, 0, 0, 0]  # each over all blocks, so that it does not depend on their sizes
        for block in self.blocks(0, most):
            rows = block.rows
            parts = (
                [rows.data, rows.indices.astype("<i8"), np.diff(rows.indptr).astype("<i8")] if self.form.sparse else [rows]
            )
            for k, part in enumerate([block.columns, *parts]):
                found[k] = zlib.crc32(bytes_of(part), found[k])
        return f"memory {self.rows} {self.form.width} {' '.join(format(each, '08x') for each in found)}"

    @property
    def row_bytes(self) -> int:
        """Bytes of a row that is not sparse."""
        return self.form.width * self.form.dtype.itemsize + 8 * self.form.kept


def source_of(source: Any, choice: Choice) -> Source:
    """Return a source of blocks made of what a user gave; raise if it is nothing of that kind."""
    if isinstance(source, (str, os.PathLike)):
        return _of_path(Path(source).expanduser(), choice)
    if isinstance(source, (list, tuple)) and source and all(isinstance(each, (str, os.PathLike)) for each in source):
        return _of_files([Path(each).expanduser() for each in source], choice)
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], (list, tuple, int, float)):
        source = checks.numbers(source, "source")
    package = type(source).__module__.partition(".")[0]
    if scipy.sparse.issparse(source):
        return SparseSource(source, choice)
    if package == "pandas" and hasattr(source, "columns"):
        return TableSource(Pandas(source), choice, in_memory=True)
    if package == "pyarrow" and hasattr(source, "num_rows"):
        return TableSource(ArrowInMemory(source), choice, in_memory=True)
    if package.startswith("dask") and hasattr(source, "npartitions"):
        if hasattr(source, "columns"):
            return TableSource(DaskFrame(source), choice, identity=f"dask {source._name}")
        return DaskSource(source, choice)
    if all(hasattr(source, each) for each in ("shape", "dtype", "__getitem__")):
        return _of_array(source, choice)
    if isinstance(source, Iterable) and not isinstance(source, (bytes, dict, set)):
        return IterableSource(source, choice)
    raise ValueError(
        "`source` must be a path, a list of paths, an array, a SciPy sparse matrix, a table of pandas, pyarrow or Dask, or"
        f" an iterable of blocks, got {checks.shown(source)}"
    )


class TableSource(Source):
    """Named columns of a table."""

    def __init__(
        self, table: Table, choice: Choice, identity: str | None = None, size: int | None = None, in_memory: bool = False
    ) -> None:
        self.text, self.identity, self.rows, self._table, self.in_memory = table.text, identity, table.rows, table, in_memory
        if (name := twice(table.names)) is not None:
            raise ValueError(f"{self.text} has two columns {name!r}: names must differ")
        for argument, name in (("target", choice.target), ("sample_weight", choice.sample_weight)):
            if name is not None and not isinstance(name, str):
                raise ValueError(f"`{argument}` must be the name of a column of {self.text}, got {checks.shown(name)}")
        self.kept, self.target = choice.apart, choice.target
        self.names = tuple(name for name in table.names if name not in self.kept)
        if choice.columns is not None:
            self.names = _checked(choice.columns, self.kept)
        for name in (*self.kept, *self.names):
            if name not in table.names:
                raise ValueError(f"{self.text} must have a column {name!r}, and has {checks.shown(table.names)}")
        if len(set(self.kept)) < len(self.kept):
            raise ValueError(f"`sample_weight` must be another column than `target`, got {self.target!r} for both")
        if not self.names:
            raise ValueError(f"{self.text} has no column besides {', '.join(map(repr, self.kept))}: nothing is left")
        for name in self.kept:
            table.dtype_of(name)
        dtype = np.result_type(*{table.dtype_of(name) for name in self.names})
        self.form = Form(len(self.names), choice.dtype or dtype, False, len(self.kept))
        self.size = size if self.rows is None else self.rows * self.row_bytes

    def blocks(self, start: int, most: int) -> Iterator[Block]:
        assert self.names is not None
        for found in self._table.pieces([*self.names, *self.kept], start, most):
            rows = np.empty((len(found[0]), len(self.names)), self.form.dtype)
            columns = np.empty((len(found[0]), len(self.kept)))
            with np.errstate(over="ignore"):  # what does not fit into float32 is found to be infinite
                for j, column in enumerate(found):
                    (rows if j < rows.shape[1] else columns)[:, j if j < rows.shape[1] else j - rows.shape[1]] = column
            yield Block(rows, columns)


class MatrixSource(Source):
    """A matrix without names, and vectors that are kept apart."""

    def __init__(self, text: str, shape: Sequence[Any], dtype: Any, sparse: bool, choice: Choice) -> None:
        if len(shape) != 2 or 0 in shape:
            raise ValueError(
                f"`source` must be a non-empty matrix (samples × features), got an array of shape {tuple(shape)}"
            )
        if choice.columns is not None:
            raise ValueError(f"`columns` is for tables with named columns, got {checks.shown(choice.columns)} with a matrix")
        self.text, self.rows = text, None if shape[0] != shape[0] else int(shape[0])
        given = {TARGET: choice.target, WEIGHTS: choice.sample_weight}
        self._vectors = {name: _vector(value, name, self.rows) for name, value in given.items() if value is not None}
        self.kept, self.target = tuple(self._vectors), TARGET if choice.target is not None else None
        self.form = Form(int(shape[1]), choice.dtype or _float_type(dtype, text), sparse, len(self.kept))
        if self.rows is not None and not sparse:
            self.size = self.rows * self.row_bytes

    def _block(self, rows: Any, low: int) -> Block:
        """Return rows, the first of which is number ``low``, with what is kept apart of them."""
        rows = _rows(rows, self.form, self.text)
        columns = np.empty((rows.shape[0], len(self.kept)))
        for j, vector in enumerate(self._vectors.values()):
            part = vector[low : low + rows.shape[0]]
            if len(part) < rows.shape[0]:
                raise ValueError(f"`{self.kept[j]}` must have one entry per row, and ends at row {low + len(part)}")
            columns[:, j] = part.compute() if hasattr(part, "compute") else part
        return Block(rows, columns)


class SlicedSource(MatrixSource):
    """An array that gives some of its rows when it is asked for them: in memory, mapped, or of Zarr."""

    def __init__(
        self, array: Any, choice: Choice, text: str = "the array", identity: str | None = None, in_memory: bool = False
    ) -> None:
        super().__init__(text, array.shape, array.dtype, False, choice)
        self._array, self.in_memory = array, in_memory
        if identity is not None:
            self.identity = " ".join([identity, *map(_name_of, self._vectors.values())])
        chunks = getattr(array, "chunks", None)  # of Zarr: a chunk is read as a whole
        self._step = int(chunks[0]) if isinstance(chunks, tuple) and chunks else 1

    def blocks(self, start: int, most: int) -> Iterator[Block]:
        assert self.rows is not None
        step = max(1, most // max(self.row_bytes, 1))
        step = max(step // self._step * self._step, 1) if step >= self._step else step
        low = start
        while low < self.rows:
            high = min(low + step - low % step, self.rows)
            yield self._block(np.asarray(self._array[low:high]), low)
            low = high


class SparseSource(MatrixSource):
    """A SciPy sparse matrix."""

    def __init__(self, matrix: Any, choice: Choice) -> None:
        super().__init__("the sparse matrix", matrix.shape, matrix.dtype, True, choice)
        try:
            self._matrix = canonical(matrix)
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"`source` must be a valid sparse matrix, and it is not: {error}") from None
        self.size = self._matrix.data.size * (self.form.dtype.itemsize + 4) + 8 * len(self._vectors) * matrix.shape[0]
        self.in_memory = True

    def blocks(self, start: int, most: int) -> Iterator[Block]:
        rows = self._matrix.shape[0]
        step = max(1, rows * most // max(self._matrix.data.size * 16 + rows * 24, 1))
        for low in range(start, rows, step):
            yield self._block(self._matrix[low : low + step], low)


class DaskSource(MatrixSource):
    """A Dask array: one partition of its rows after the other is computed."""

    def __init__(self, array: Any, choice: Choice) -> None:
        sparse = scipy.sparse.issparse(getattr(array, "_meta", None))
        super().__init__("the Dask array", array.shape, array.dtype, sparse, choice)
        self._array = array if array.numblocks[1] == 1 else array.rechunk({1: -1})
        self.identity = f"dask {array.name} {' '.join(_name_of(vector) for vector in self._vectors.values())}"

    def blocks(self, start: int, most: int) -> Iterator[Block]:
        low = 0
        for k, count in enumerate(self._array.chunks[0]):
            if low + count <= start:  # never true where the count is not known
                low += count
                continue
            rows = self._array.blocks[k, 0].compute()
            skipped = min(max(start - low, 0), rows.shape[0])
            if skipped < rows.shape[0]:
                yield from self._block(rows[skipped:], low + skipped).pieces(most)
            low += rows.shape[0]


class IterableSource(Source):
    """Blocks that come one after the other, once: matrices, (A, b), (A, b, sample_weight), or tables."""

    def __init__(self, blocks: Iterable[Any], choice: Choice) -> None:
        self.text, self._choice = "the iterable", choice
        reader = iter(blocks)
        first = next(reader, None)
        if first is None:
            raise ValueError("`source` must hold at least one block of rows, got none")
        self._blocks = itertools.chain([first], reader)
        made = self._made(first)
        self.form, self.names, self.kept, self.target = made.form, made.names, made.kept, made.target

    def _made(self, block: Any) -> Source:
        if not isinstance(block, tuple):
            return source_of(block, self._choice)
        if self._choice.apart or not 1 <= len(block) <= 3:
            raise ValueError("`source` must hold blocks (A, b) or (A, b, sample_weight), or matrices, and no other columns")
        return source_of(block[0], self._choice._replace(**dict(zip(("target", "sample_weight"), block[1:], strict=False))))

    def blocks(self, start: int, most: int) -> Iterator[Block]:
        assert start == 0, "an iterable is read from its beginning"
        for k, block in enumerate(self._blocks):
            made = self._made(block)
            if (made.form, made.names, made.kept) != (self.form, self.names, self.kept):
                raise ValueError(
                    f"`source` must hold blocks of one kind, and block {k} has {made.form.width} columns of"
                    f" {made.form.dtype} after {self.form.width} of {self.form.dtype}; `dtype` says which one to store"
                )
            yield from made.blocks(0, most)


def _of_path(path: Path, choice: Choice) -> Source:
    if path.is_dir():
        if path.suffix.lower() == ".zarr" or any((path / name).is_file() for name in (".zarray", "zarr.json")):
            return _of_zarr(path, choice)
        files = sorted(each for each in path.iterdir() if each.suffix.lower() in FILES)
        if not files:
            raise ValueError(f"`source` must be a folder with files of the kinds {', '.join(FILES)}, and {path} has none")
        return _of_files(files, choice)
    if path.suffix.lower() == ".npy":
        return SlicedSource(mapped(_existing(path)), choice, str(path), _stamp([path]))
    return _of_files([path], choice)


def _of_files(files: list[Path], choice: Choice) -> Source:
    found = [_existing(file) for file in files]
    return TableSource(table_of(found), choice, _stamp(found), sum(file.stat().st_size for file in found))


def _of_zarr(path: Path, choice: Choice) -> Source:
    require("zarr", f"{path} is a Zarr array", "zarr")
    import zarr

    array = zarr.open(str(path), mode="r")
    if not hasattr(array, "shape"):
        raise ValueError(f"`source` must be a Zarr array, and {path} is a group: give one of its arrays")
    return SlicedSource(array, choice, str(path), _stamp(sorted(file for file in path.rglob("*") if file.is_file())))


def _of_array(array: Any, choice: Choice) -> Source:
    if isinstance(array, np.ndarray):
        checks.unmasked(array, "source")
        if isinstance(array, np.memmap) and array.filename is not None:
            file = Path(str(array.filename))
            return SlicedSource(array, choice, str(file), f"{_stamp([file])} {_place_in_map(array)}")
        return SlicedSource(array, choice, in_memory=True)
    return SlicedSource(array, choice)


def _place_in_map(array: np.memmap) -> str:
    """Return which part of a mapped file an array is."""
    first = np.frombuffer(array._mmap, np.uint8).ctypes.data  # type: ignore[attr-defined]
    return f"{array.offset} {array.ctypes.data - first} {array.shape} {array.strides} {array.dtype.str}"


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"`source` must name existing files, got {str(path)!r}")
    return path


def _stamp(files: list[Path]) -> str:
    """Return what changes when one of some files does."""
    stamps = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return f"files {len(files)} {zlib.crc32(repr(stamps).encode()):08x}"


def _checked(columns: Any, kept: tuple[str, ...]) -> tuple[str, ...]:
    named = isinstance(columns, (list, tuple)) and all(isinstance(each, str) for each in columns)
    if not named or not columns or twice(columns) is not None or set(columns) & set(kept):
        raise ValueError(
            "`columns` must be a list of different names of features, without target and weights, got"
            f" {checks.shown(columns)}"
        )
    return tuple(columns)


def _vector(value: Any, name: str, rows: int | None) -> Any:
    """Return one number per row as something that can be sliced; nothing of a mapped one is read here."""
    if isinstance(value, (str, os.PathLike)):
        if Path(value).suffix.lower() != ".npy":
            raise ValueError(f"`{name}` must be an array or a .npy file where `source` has no named columns, got {value!r}")
        value = mapped(_existing(Path(value).expanduser()))
    if type(value).__module__.partition(".")[0].startswith("dask"):
        value = value if value.shape[0] == value.shape[0] else value.compute()  # of unknown length
    elif not all(hasattr(value, each) for each in ("shape", "dtype", "__getitem__")) or hasattr(value, "iloc"):
        value = checks.numbers(value, name)
    if len(value.shape) != 1 or (rows is not None and value.shape[0] != rows):
        wanted = "a vector" if rows is None else f"a vector of {rows} numbers, one per row"
        raise ValueError(f"`{name}` must be {wanted}, got an array of shape {tuple(value.shape)}")
    _float_type(value.dtype, name)
    return value


def _name_of(vector: Any) -> str:
    """Return what tells a vector from others."""
    if isinstance(vector, np.ndarray):
        return f"{zlib.crc32(bytes_of(vector)):08x}"
    return str(getattr(vector, "name", ""))


def _float_type(dtype: Any, text: str) -> np.dtype:
    """Return the type that numbers of a type are stored as; raise if they are none."""
    if np.dtype(dtype).kind not in "fiub":
        raise ValueError(f"{text} must hold real numbers, got the type {dtype}")
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _rows(value: Any, form: Form, text: str) -> Any:
    """Return rows of a matrix in the form that they are stored in; raise if they are of another one."""
    if scipy.sparse.issparse(value) != form.sparse or value.ndim != 2 or value.shape[1] != form.width:
        kind = "sparse " if form.sparse else ""
        raise ValueError(f"{text} must consist of {kind}blocks with {form.width} columns, got one of shape {value.shape}")
    with np.errstate(over="ignore"):  # what does not fit into float32 is found to be infinite
        if form.sparse:
            found = canonical(value)
            return found if found.dtype == form.dtype else found.astype(form.dtype)
        return np.ascontiguousarray(value, dtype=form.dtype)
