"""Runs on disk: one `.npz` file of plain arrays and a JSON text, replaced atomically and read without pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tiebreak.digest import digest

__all__ = ["CheckpointError", "check_identity", "digest", "flatten", "load", "save", "write_whole"]

FORMAT = 2


class CheckpointError(ValueError):
    """A checkpoint cannot be used for this run."""


def save(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a checkpoint: a crash at any moment leaves either the old file or the new one."""
    text = np.frombuffer(json.dumps({"format": FORMAT, **meta}).encode(), dtype=np.uint8)
    write_whole(path, lambda file: np.savez(file, meta=text, **arrays))  # type: ignore[arg-type]


def write_whole(path: Path, write: Callable[[BinaryIO], Any], mark: str = "") -> None:
    """Write a file under another name and move it to its place, so that no half-written one is ever there.

    The name is always the same, so that what a killed run leaves is written over; writers of one file need different marks.
    """
    temporary = path.with_name(f"{path.name}{mark}.part")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what :func:`save` wrote."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays.pop("meta").tobytes())
    except Exception as error:  # a damaged file may fail in any way
        raise CheckpointError(f"the checkpoint {path} is damaged or not one ({error}); delete it to start anew") from error
    if meta.get("format") != FORMAT:
        raise CheckpointError(
            f"the checkpoint {path} has format {meta.get('format')}, not {FORMAT}; delete it to start anew"
        )
    return meta, arrays


def check_identity(path: Path, stored: dict[str, Any], current: dict[str, Any]) -> None:
    """Raise if a stored run is not the current one, and name what differs."""
    for name, value in current.items():
        if stored.get(name) != value:
            raise CheckpointError(
                f"the checkpoint {path} is of another run: its `{name}` is {stored.get(name)}, this one's is {value}; "
                f"use another path, or delete it to start anew"
            )


def flatten(value: Any, prefix: str = "state") -> dict[str, np.ndarray]:
    """Return the arrays of a named tuple of arrays and named tuples, by dotted name; the arrays are not copied."""
    if isinstance(value, np.ndarray):
        return {prefix: value}
    arrays: dict[str, np.ndarray] = {}
    for name, part in zip(value._fields, value, strict=True):
        arrays.update(flatten(part, f"{prefix}.{name}"))
    return arrays
