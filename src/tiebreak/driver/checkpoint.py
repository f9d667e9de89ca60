"""Runs on disk: one `.npz` file of plain arrays and a JSON text, replaced atomically and read without pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine.files import write_atomically
from tiebreak.engine.locks import Lock, Locked


class CheckpointError(ValueError):
    """A checkpoint cannot be used for this run."""


class Kind(NamedTuple):
    """What a file of this package holds."""

    name: str
    format: int
    error: type[ValueError]
    advice: str  # what to do about a file that is not of this kind: it may be anything, and is left as it is


CHECKPOINT = Kind("checkpoint", 5, CheckpointError, "give another path as `checkpoint`")


def save(path: Path, kind: Kind, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a file: a crash at any moment leaves either the old one or the new one."""
    text = json.dumps({"tiebreak": kind.name, "format": kind.format, **meta}).encode()
    write_atomically(path, lambda file: np.savez(file, meta=np.frombuffer(text, dtype=np.uint8), **arrays))  # type: ignore[arg-type]


def load(path: Path, kind: Kind) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what :func:`save` wrote; raise the error of the kind if it did not write this file, or cannot read it."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays.pop("meta").tobytes())
        found, form = meta["tiebreak"], meta["format"]
    except Exception as error:  # a damaged or foreign file may fail in any way
        reason = f"{type(error).__name__}: {error}"
        raise kind.error(f"{path} is no {kind.name}, or a damaged one ({reason}); {kind.advice}") from error
    if found != kind.name:
        raise kind.error(f"{path} is no {kind.name} but a {found}; {kind.advice}")
    if form != kind.format:
        reason = f"has format {form}, not {kind.format}: another version of tiebreak wrote it"
        raise kind.error(f"the {kind.name} {path} {reason}; {kind.advice}")
    return meta, arrays


def place(given: Any, argument: str) -> Path:
    """Return the path of a file that is there or may be made, or raise an error that names the argument."""
    if not isinstance(given, (str, os.PathLike)):
        raise ValueError(f"`{argument}` must be the path of a file, got {given!r}")
    path = Path(given).expanduser()
    if not path.parent.is_dir():
        raise ValueError(f"`{argument}` must be a file in an existing folder, and there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise ValueError(f"`{argument}` must be a file, and {path} is {'a folder' if path.is_dir() else 'something else'}")
    return path


@contextmanager
def held(path: Path | None, kind: Kind = CHECKPOINT) -> Iterator[tuple[dict[str, Any], dict[str, np.ndarray]] | None]:
    """Keep a checkpoint from other runs inside this block, which is given what is stored in it."""
    if path is None:
        yield None
        return
    try:
        lock = Lock(path)
    except Locked as error:
        by = "another run" if error.holder in (None, os.getpid()) else f"process {error.holder}"
        message = f"the checkpoint {path} is in use by {by}: wait for its end, or use another path"
        raise CheckpointError(message) from None
    try:
        yield opened(path, kind)
    finally:
        lock.release()


def opened(path: Path, kind: Kind = CHECKPOINT) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Return what is stored in a checkpoint, None if there is none yet; raise if none could be written in its place."""
    stored = load(path, kind) if path.exists() else None
    try:
        _try_writing(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"`checkpoint` must be a file that can be written, and {path} cannot ({reason}); give another path"
        ) from error
    return stored


def _try_writing(path: Path) -> None:
    """Replace a file by itself, or make and remove the one that would become it."""
    mark = f".{os.getpid()}"
    if path.exists():
        write_atomically(path, path.read_bytes(), mark)
    else:
        temporary = path.with_name(f"{path.name}{mark}.part")
        temporary.touch()
        temporary.unlink()


def check_identity(path: Path, stored: dict[str, Any], current: dict[str, Any], names: Iterable[str]) -> None:
    """Raise if a stored run differs from the current one in one of some entries, and name it."""
    for name in names:
        before, now = stored.get(name), current[name]
        if before != now:
            raise CheckpointError(
                f"the checkpoint {path} is of another run: its `{name}` is {before}, this one's is {now}; give another path,"
                f" or the arguments of that run to continue it"
            )
