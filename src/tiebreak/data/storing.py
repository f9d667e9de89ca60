"""Stores on disk made of data that may be larger than memory."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from tiebreak.data.blocks import Block, Packed, largest_of, packed
from tiebreak.data.growing import Changed, Growing
from tiebreak.data.shuffling import KEY_BITS, MOST_BITS, Bucket, bits_for, keys_of_rows, new_buckets, scatter, split
from tiebreak.data.sources import Choice, Source, source_of
from tiebreak.engine import checks
from tiebreak.engine.files import write_atomically
from tiebreak.engine.locks import Lock, Locked
from tiebreak.rows.store import (
    ABOUT,
    BLOCK_BYTES,
    FORMAT,
    HEAD_BYTES,
    VERSION,
    Part,
    Store,
    StoreError,
    described,
    open_store,
    partial,
)

NOTES = "progress.json"
LEAST_CHUNK = 1 << 12
EXPECTED = 16.0  # chunks that a source of unknown size is taken for


def store(
    source: Any,
    folder: str | os.PathLike[str],
    *,
    target: Any = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    dtype: Any = None,
    seed: int | None = 0,
    chunk_bytes: int = 1 << 28,
    progress: bool | None = None,
) -> Store:
    """Write rows to a folder from which objectives read them in place, however large they are.

    Memory holds about ``chunk_bytes`` at a time; the disk holds the data twice while they are shuffled. Everything is
    written to ``folder.partial``, which becomes ``folder`` when it is complete. After a crash the same call continues.

    Parameters
    ----------
    source : path, list of paths, array, table or iterable
        Parquet, CSV, Arrow and Feather files, one, several or a folder of them; a ``.npy`` file; a Zarr array; a NumPy or
        Dask array; a SciPy sparse matrix; a table of pandas, pyarrow or Dask; or an iterable of blocks: matrices, (A, b),
        (A, b, sample_weight), or tables. All numbers must be finite. One partition of a Dask collection, and one block of
        an iterable, must fit into memory.
    folder : path
    target, sample_weight : str or array, optional
        Columns that are kept apart from the matrix, in float64: a name, or one number per row where the source has no
        names; these columns are then called ``"target"`` and ``"sample_weight"``.
    columns : list of str, optional
        Columns of the matrix, in this order; all others if not given.
    dtype : optional
        float32 or float64; by default float32 stays float32, and all else becomes float64.
    seed : int or None
        Of the order of the rows, which is a function of the seed and the number of rows alone; all orders are equally
        likely. None keeps the order of the source.
    chunk_bytes : int
        How much memory to use, about.
    progress : bool, optional
        Whether a bar is shown; by default if there is a terminal.

    Returns
    -------
    Store

    Raises
    ------
    ValueError
        If the source holds anything but finite numbers, with the column and the row; or has no rows.
    FileExistsError
        If there is something else in the folder already. If it is this very store, it is opened.
    OSError
        If there is not enough room on the disk.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> A = np.arange(12.0).reshape(4, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = store(A, f"{folder}/rows", target=[0.0, 1.0, 0.0, 1.0], seed=None)
    ...     (rows.shape, rows.kept, rows.rows[1].tolist(), rows.column("target").tolist())
    ((4, 3), ('target',), [3.0, 4.0, 5.0], [0.0, 1.0, 0.0, 1.0])
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"`folder` must be a path, got {checks.shown(folder)}")
    if progress is not None:
        checks.flag(progress, "progress")
    seed = None if seed is None else checks.whole(seed, "seed", least=0)
    chunk = checks.whole(chunk_bytes, "chunk_bytes", least=LEAST_CHUNK)
    wanted = None if dtype is None else np.dtype(dtype)
    if wanted is not None and wanted not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"`dtype` must be float32 or float64, got {checks.shown(dtype)}")
    place = Path(folder).expanduser().resolve()
    if not place.parent.is_dir():
        raise FileNotFoundError(f"`folder` must be in an existing folder, and there is no {place.parent}")
    found = source_of(source, Choice(target, sample_weight, columns, wanted))
    request = _request(found, seed, chunk)
    try:
        lock = Lock(place)
    except Locked as error:
        raise FileExistsError(f"{place} is being written by process {error.holder}") from None
    try:
        if place.exists():
            return _existing(place, request)
        return _Writing(found, place, request, seed, chunk, progress).run()
    finally:
        lock.release()


def _request(source: Source, seed: int | None, chunk: int) -> dict[str, Any]:
    """Return all that the content of a store depends on."""
    names = None if source.names is None else list(source.names)
    return {
        "source": source.known_by(chunk // 8),
        "seed": seed,
        "names": names,
        "kept": list(source.kept),
        "form": [source.form.width, source.form.dtype.str, source.form.sparse],
        "block_bytes": BLOCK_BYTES,
    }


def _existing(place: Path, request: dict[str, Any]) -> Store:
    """Return the store that is there, if it is the one that is wanted; else raise."""
    try:
        there = open_store(place)
    except (FileNotFoundError, StoreError) as error:
        raise FileExistsError(f"{place} exists, and is no store that could be used ({error}); remove it first") from None
    differing = _differing(there.request, request)
    if differing:
        raise FileExistsError(f"{place} is another store already: {differing}; remove it, or choose another folder")
    return there


def _differing(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return in words in what two requests differ; empty if they ask for the same."""
    if one.get("source") is None or other["source"] is None:
        return "an iterable, or an array that is read by slices, cannot be told from others"
    words = {"source": "the source has changed, or is another one", "seed": "the seed is another one"}
    return next((words.get(key, f"other {key}") for key in other if one.get(key) != other[key]), "")


class _Writing:
    """One call of :func:`store`.

    Rows are read into buckets, then written from them in their order; without a seed they are written as they are read.
    """

    def __init__(
        self, source: Source, place: Path, request: dict[str, Any], seed: int | None, chunk: int, progress: bool | None
    ) -> None:
        self.source, self.place, self.request, self.seed = source, place, request, seed
        self.folder, self.form, self.chunk = partial(place), source.form, chunk
        self.piece, self.most = chunk // 8, chunk // 2  # bytes that are read or written together, and of a bucket
        self.hidden = None if progress is None else not progress
        kinds = ["data", "columns", "starts"] if self.form.sparse else ["rows"]
        self.kinds = [*kinds, *(f"kept-{k}" for k in range(self.form.kept))]
        self._reset()

    def _reset(self) -> None:
        """Begin with nothing read and nothing written."""
        self.read = self.written = self.entries = 0  # rows, and non-zeros written
        self.largest, self.all_read = 0.0, False
        self.buckets: list[Bucket] = []
        self.outputs = [Growing(self.folder / f"{kind}.npy", BLOCK_BYTES, bytes(HEAD_BYTES)) for kind in self.kinds]

    def run(self) -> Store:
        if not self._complete_already():
            if not self._resume():
                self._begin()
            with tqdm(total=self._total(), desc="store", unit=" rows", unit_scale=True, disable=self.hidden) as bar:
                bar.update(self.written + (self.read if self.seed is not None else 0))
                try:
                    self._read_all(bar)
                except ValueError:  # the source is at fault: nothing of it will be continued
                    shutil.rmtree(self.folder)
                    raise
                self._write_buckets(bar)
            self._finish()
        os.rename(self.folder, self.place)
        _sync(self.place.parent)
        return open_store(self.place)

    def _total(self) -> int | None:
        """Return how many rows will be read and written."""
        return None if self.source.rows is None else self.source.rows * (1 if self.seed is None else 2)

    def _complete_already(self) -> bool:
        """Return whether a run before this one was only short of the last step."""
        if not (self.folder / ABOUT).is_file() or (self.folder / NOTES).exists():
            return False
        try:
            return not _differing(open_store(self.folder).request, self.request)
        except StoreError:
            return False

    def _begin(self) -> None:
        """Make an empty folder with empty files, after a look at the room on the disk."""
        if self.folder.exists():
            if not ((self.folder / NOTES).is_file() or (self.folder / ABOUT).is_file() or not any(self.folder.iterdir())):
                raise FileExistsError(f"{self.folder} exists, and nothing in it is of a store; remove it first")
            shutil.rmtree(self.folder)
        if self.source.rows is not None and self.source.size is not None:
            needed = (1 if self.seed is None else 2) * (self.source.size + 16 * self.source.rows)
            free = shutil.disk_usage(self.place.parent).free
            if needed > free:
                raise OSError(f"not enough room for {self.place}: it needs about {needed:,} bytes, and {free:,} are free")
        self.folder.mkdir()
        write_atomically(self.folder / NOTES, b"{}")
        for file in self.outputs:
            file.create()
        if self.form.sparse:
            self.outputs[2].append(np.zeros(1, "<i8"))
        if self.seed is not None:
            size = EXPECTED * self.most if self.source.size is None else float(self.source.size)
            self.buckets = new_buckets(self.folder, "", bits_for(size, self.most), self.form)
        self._note()

    def _note(self) -> None:
        """Note how far everything is, so that another process can continue from here."""
        notes = {
            "request": self.request,
            "read": self.read,
            "written": self.written,
            "entries": self.entries,
            "largest": self.largest,
            "all_read": self.all_read,
            "buckets": [bucket.state() for bucket in self.buckets],
            "outputs": [file.state() for file in self.outputs],
        }
        write_atomically(self.folder / NOTES, json.dumps(notes).encode())

    def _resume(self) -> bool:
        """Continue from what another process has noted; return False if there is nothing, or nothing that can be used."""
        try:
            notes = json.loads((self.folder / NOTES).read_bytes())
        except (OSError, ValueError):
            return False
        if not notes:
            return False
        reason = _differing(notes["request"], self.request)
        if not reason:
            try:
                self.buckets = [Bucket(self.folder, each["name"], self.form).continued(each) for each in notes["buckets"]]
                for file, state in zip(self.outputs, notes["outputs"], strict=True):
                    file.continued(state)
            except Changed as error:
                reason = str(error)
        if reason:
            warnings.warn(f"{self.folder} cannot be continued, and is begun anew: {reason}", UserWarning, stacklevel=4)
            self._reset()
            return False
        self.read, self.written, self.entries = notes["read"], notes["written"], notes["entries"]
        self.largest, self.all_read = notes["largest"], notes["all_read"]
        return True

    def _blocks(self) -> Iterator[Block]:
        """Yield the rest of the source, checked and in small pieces."""
        if not self.all_read:
            for block in self.source.blocks(self.read, self.piece):
                for part in block.pieces(2 * self.piece):
                    size = largest_of(part, self.source.names, self.source.kept, self.read, self.source.text)
                    self.largest = max(self.largest, size)
                    yield part

    def _read_all(self, bar: Any) -> None:
        """Read the source into buckets, or where no order is drawn into the store."""
        unnoted = 0  # bytes
        for block in self._blocks():
            count = len(block.columns)
            if self.seed is None:
                self._write(packed(block, self.form, np.zeros(count, dtype=np.int64)))
            else:
                some = packed(block, self.form, keys_of_rows(self.seed, self.read, count))
                scatter(some, self.buckets, 0, self.form.sparse)
            self.read += count
            unnoted += block.nbytes
            if unnoted >= self.chunk:
                self._note()
                unnoted = 0
            bar.update(count)
        if self.read == 0:
            raise ValueError(f"{self.source.text} has no rows")
        if not self.all_read:
            self.all_read = True
            self._note()

    def _write_buckets(self, bar: Any) -> None:
        """Write the rows of one bucket after the other; those that are too large are scattered first."""
        while self.buckets:
            bucket = self.buckets[0]
            large = bucket.nbytes > self.most and bucket.rows > 1
            if large and len(bucket.name) + MOST_BITS <= KEY_BITS:
                self.buckets[:1] = split(bucket, self.most, self.piece)
            else:
                for some in bucket.ordered(self.piece):
                    self._write(some)
                    bar.update(len(some.heads))
                del self.buckets[0]
            self._note()
            bucket.remove()

    def _write(self, some: Packed) -> None:
        """Append rows to the arrays of the store."""
        if self.form.sparse:
            data, columns, starts, *kept = self.outputs
            data.append(some.body["value"])
            columns.append(some.body["column"])
            ends = self.entries + np.cumsum(some.heads["length"])
            starts.append(ends.astype("<i8"))
            self.entries += int(some.heads["length"].sum())
        else:
            rows, *kept = self.outputs
            rows.append(some.body)
        for j, column in enumerate(kept):
            column.append(some.heads["columns"][:, j])
        self.written += len(some.heads)

    def _finish(self) -> None:
        """Write the heads of all files, then the description."""
        for left in self.folder.glob("bucket-*"):  # by a process that ended just before it removed them
            left.unlink()
        n, width, index = self.written, self.form.width, self.form.bodies["column"].str if self.form.sparse else ""
        dtype = self.form.dtype.newbyteorder("<")
        shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
            "rows": (dtype, (n, width)),
            "data": (dtype, (self.entries,)),
            "columns": (index, (self.entries,)),
            "starts": ("<i8", (n + 1,)),
        }
        count = len(self.kinds) - self.form.kept
        arrays = []
        for k, (kind, file) in enumerate(zip(self.kinds, self.outputs, strict=True)):
            kept = "<f8", (n,)
            name = kind if k < count else self.source.kept[k - count]
            numbers, shape = shapes.get(kind, kept)
            part = Part(name, file.path.name, np.dtype(numbers), shape, tuple(file.checksums))
            file.finish(part.head)
            arrays.append({**part._asdict(), "dtype": part.dtype.str})
        content = {
            "format": FORMAT,
            "version": VERSION,
            "shape": [n, width],
            "dtype": self.form.dtype.str,
            "names": self.request["names"],
            "target": self.source.target,
            "seed": self.seed,
            "largest": self.largest,
            "block_bytes": BLOCK_BYTES,
            "request": self.request,
            "matrix_arrays": count,
            "arrays": arrays,
        }
        content = json.loads(json.dumps(content))  # as it will be read: tuples are lists there
        write_atomically(self.folder / ABOUT, described(content))
        (self.folder / NOTES).unlink()
        _sync(self.folder)


def _sync(folder: Path) -> None:
    """See that the names in a folder are on the disk, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
