"""A store: a folder of arrays, each of them one memory map, with checksums that tell damaged blocks.

The folder holds ``store.json`` and one ``.npy`` file per array: ``rows.npy``, or ``data.npy``, ``columns.npy`` and
``starts.npy`` of a matrix of which only the non-zeros are stored, and one vector for each column that is kept apart. The
checksums are CRC-32, one per block of a fixed number of bytes: they tell damage by disks, copies and programs, not forgery.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm.auto import tqdm

from tiebreak.engine import checks
from tiebreak.rows.maps import mapped

FORMAT, VERSION = "tiebreak store", 1
ABOUT = "store.json"
HEAD_BYTES = 128  # of each .npy file
BLOCK_BYTES = 1 << 24  # bytes that share a checksum
MATRIX = ("rows", "data", "columns", "starts")  # names of the arrays that a matrix consists of
REMEDY = "make the store again, or take the file from a copy"


class StoreError(ValueError):
    """A store is damaged or incomplete, or a folder is none."""


class SparseRows(NamedTuple):
    """The rows of a matrix of which only the non-zeros are stored."""

    data: np.ndarray  # (nnz,)
    columns: np.ndarray  # (nnz,)
    starts: np.ndarray  # (n + 1,): row i is data[starts[i]:starts[i + 1]]


class VerifiedRows(NamedTuple):
    """The rows of a store whose checksums were verified; their numbers were looked at when they were stored."""

    rows: np.ndarray | SparseRows
    shape: tuple[int, int]
    largest: float  # size of the largest number


class Part(NamedTuple):
    """One array of a store."""

    name: str  # what the array is: one of MATRIX, or the name of a column
    file: str
    dtype: np.dtype
    shape: tuple[int, ...]
    checksums: tuple[int, ...]  # one per block

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=object))

    @property
    def head(self) -> bytes:
        """The first bytes of the file: those of every .npy file, filled up to a fixed length."""
        text = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': {self.shape!r}, }}"
        length = HEAD_BYTES - 10
        return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode("latin1") + b"\n"


@dataclass(frozen=True, eq=False, repr=False)
class Store:
    """Rows on disk; :func:`open_store` opens them, :func:`tiebreak.data.store` makes them.

    Attributes
    ----------
    folder : Path
    shape : tuple
        Numbers of rows and of columns of the matrix.
    dtype : numpy.dtype
        float32 or float64.
    names : tuple of str or None
        The columns of the matrix, if they have names.
    kept : tuple of str
        Columns that are kept apart from the matrix, such as the target.
    target : str or None
        The one of them that objectives take as target where they are told no other.
    seed : int or None
        What the order of the rows was drawn with; None if it is that of the source.
    """

    folder: Path
    shape: tuple[int, int]
    dtype: np.dtype
    names: tuple[str, ...] | None
    kept: tuple[str, ...]
    target: str | None
    seed: int | None
    matrix_parts: tuple[Part, ...]
    column_parts: tuple[Part, ...]
    largest: float  # size of the largest number of the matrix
    block_bytes: int
    request: dict[str, Any]  # what it was made from, and how
    checksum: str  # of store.json

    @property
    def sparse(self) -> bool:
        """Whether only the non-zeros are stored."""
        return len(self.matrix_parts) > 1

    @cached_property
    def rows(self) -> np.ndarray | SparseRows:
        """The matrix: a memory map, or three of them where only the non-zeros are stored. Nothing is verified here."""
        arrays = [mapped(self.folder / part.file) for part in self.matrix_parts]
        return SparseRows(*arrays) if self.sparse else arrays[0]

    def column(self, name: str) -> np.ndarray:
        """Return a column by its name: a memory map if it is kept apart, else a copy."""
        if name in self.kept:
            return mapped(self.folder / self.column_parts[self.kept.index(name)].file)
        if self.names is None or name not in self.names:
            there = [*self.kept, *(self.names or ())]
            raise ValueError(f"{self.folder} must have a column {name!r}, and has {checks.shown(there)}")
        place = self.names.index(name)
        if isinstance(self.rows, np.ndarray):
            return np.ascontiguousarray(self.rows[:, place])
        out, (data, columns, starts) = np.zeros(self.shape[0], self.dtype), self.rows
        found = np.flatnonzero(columns == place)
        out[np.searchsorted(starts, found, side="right") - 1] = data[found]
        return out

    def check(self, progress: bool | None = None) -> None:
        """Verify all checksums, in one pass over the files.

        Parameters
        ----------
        progress : bool, optional
            Whether a bar is shown; by default if there is a terminal.

        Raises
        ------
        StoreError
            If a block is damaged or a file is missing; it names the file and the rows.
        """
        before = self._state()
        parts = (*self.matrix_parts, *self.column_parts)
        hidden = None if progress is None else not progress
        with tqdm(total=sum(part.nbytes for part in parts), desc="check", unit="B", unit_scale=True, disable=hidden) as bar:
            for part in parts:
                blocks = checksums(self.folder / part.file, HEAD_BYTES, self.block_bytes, bar.update)
                for k, (found, stated) in enumerate(itertools.zip_longest(blocks, part.checksums)):
                    if found != stated:
                        raise StoreError(f"{self._place(part, k)} are damaged: {REMEDY}")
        if self._state() == before:
            _verified[str(self.folder)] = before

    def verified(self) -> Store:
        """Return the store, whose checksums are verified unless this process has done so since the files last changed."""
        if _verified.get(str(self.folder)) != self._state():
            self.check()
        return self

    def matrix(self) -> VerifiedRows:
        """Return the matrix after all checksums were verified."""
        return VerifiedRows(self.verified().rows, self.shape, self.largest)

    def _state(self) -> tuple[Any, ...]:
        """Return what changes when a file of the store does."""
        return self.checksum, *(_stamp(self.folder / part.file) for part in (*self.matrix_parts, *self.column_parts))

    def _place(self, part: Part, block: int) -> str:
        """Return a text that says where a block is."""
        width = part.nbytes // max(part.shape[0], 1) or 1
        first, last = (block * self.block_bytes) // width, ((block + 1) * self.block_bytes - 1) // width
        what = "rows" if part.shape[0] == self.shape[0] else "entries"
        return f"{self.folder / part.file}: {what} {first:,} to {min(last, part.shape[0] - 1):,} (block {block:,})"

    def __repr__(self) -> str:
        kind = "sparse " if self.sparse else ""
        kept = f", columns {', '.join(map(repr, self.kept))}" if self.kept else ""
        order = "in the order of the source" if self.seed is None else f"shuffled by seed {self.seed}"
        return f"Store {self.shape[0]:,} × {self.shape[1]:,} {kind}{self.dtype}{kept}, {order}: {self.folder}"

    def __reduce__(self) -> tuple[Any, ...]:
        return open_store, (self.folder,)


_verified: dict[str, tuple[Any, ...]] = {}  # stores that were verified by this process, and the state of their files


def open_store(folder: str | os.PathLike[str]) -> Store:
    """Open a store on disk.

    What is cheap is verified at once: that the description is whole, and that each file is there and of the right size. The
    checksums of the data are verified by :meth:`Store.check`, and by objectives before they use the data.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Store

    Raises
    ------
    FileNotFoundError
        If there is no store.
    StoreError
        If it is damaged; the error names the file.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"`folder` must be the path of a store, got {checks.shown(folder)}")
    place = Path(folder).expanduser().resolve()
    if not (place / ABOUT).is_file():
        begun = partial(place).is_dir()
        more = f"; {partial(place)} was begun: the same call of `store` completes it" if begun else ""
        raise FileNotFoundError(f"`folder` must be that of a store, and {place} has no file {ABOUT}{more}")
    store = _described(place)
    for part in (*store.matrix_parts, *store.column_parts):
        _check_file(place / part.file, part)
    return store


def partial(folder: Path) -> Path:
    """Return the folder that a store is written to before it is complete."""
    return folder.with_name(f"{folder.name}.partial")


def described(content: dict[str, Any]) -> bytes:
    """Return what ``store.json`` holds: a description of a store, with a checksum of itself."""
    return json.dumps({**content, "checksum": _own_checksum(content)}, indent=1).encode()


def checksums(path: Path, start: int, block_bytes: int, tell: Callable[[int], Any] = lambda size: None) -> Iterator[int]:
    """Yield the checksum of each block of a file, from a byte on, in one pass; ``tell`` is told what was read."""
    buffer = memoryview(bytearray(block_bytes))
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(start)
            while size := _read_full(file, buffer):
                yield zlib.crc32(buffer[:size])
                tell(size)
    except FileNotFoundError:
        raise StoreError(f"{path} is missing: {REMEDY}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error}): {REMEDY}") from error


def _read_full(file: Any, buffer: memoryview) -> int:
    """Read until a buffer is full or a file ends; return how much was read."""
    size = 0
    while size < len(buffer) and (more := file.readinto(buffer[size:])):
        size += more
    return size


def _own_checksum(content: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _described(place: Path) -> Store:
    """Return the store that ``store.json`` describes, or raise."""
    about = place / ABOUT
    try:
        content = json.loads(about.read_bytes())
        stated = content.pop("checksum")
        if stated != _own_checksum(content):
            raise StoreError(f"{about} is damaged, as its checksum tells: {REMEDY}")
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise StoreError(f"{about} is of version {content['version']}, and this package reads version {VERSION}")
        parts = [
            Part(each["name"], each["file"], np.dtype(each["dtype"]), tuple(each["shape"]), tuple(each["checksums"]))
            for each in content["arrays"]
        ]
        count = content["matrix_arrays"]
        names, shape = content["names"], content["shape"]
        return Store(
            folder=place,
            shape=(shape[0], shape[1]),
            dtype=np.dtype(content["dtype"]),
            names=None if names is None else tuple(names),
            kept=tuple(part.name for part in parts[count:]),
            target=content["target"],
            seed=content["seed"],
            matrix_parts=tuple(parts[:count]),
            column_parts=tuple(parts[count:]),
            largest=content["largest"],
            block_bytes=content["block_bytes"],
            request=content["request"],
            checksum=stated,
        )
    except (LookupError, TypeError, AttributeError, RecursionError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StoreError(f"{about} does not describe a store ({type(error).__name__}: {error}): {REMEDY}") from None


def _check_file(path: Path, part: Part) -> None:
    """Raise if a file is missing, of another size, or begins as another array does."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise StoreError(f"{path} is missing: {REMEDY}") from None
    if size != HEAD_BYTES + part.nbytes:
        raise StoreError(f"{path} must have {HEAD_BYTES + part.nbytes:,} bytes, and has {size:,}: {REMEDY}")
    if head != part.head:
        raise StoreError(f"{path}: its first {HEAD_BYTES} bytes are damaged: {REMEDY}")


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        raise StoreError(f"{path} is missing: {REMEDY}") from None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
