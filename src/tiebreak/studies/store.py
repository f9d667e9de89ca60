"""Finished runs on disk: one small `.npz` and one `.json` per run, written so that a crash leaves both or neither."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak
from tiebreak.engine.files import write_atomically
from tiebreak.studies.study import Outcome, Task


class StoreError(Exception):
    """A run could not be stored."""


class Store:
    """A folder of finished runs.

    Parameters
    ----------
    folder : path
        It is made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, task: Task, suffix: str) -> Path:
        """Return the file of a task."""
        return self.folder / f"{task.key}{suffix}"

    def has(self, task: Task) -> bool:
        """Return whether a task is done; a damaged file counts as none."""
        try:
            self.load(task)
        except Exception:  # a damaged file may fail in any way
            return False
        return True

    def load(self, task: Task) -> Outcome:
        """Return the outcome of a finished task."""
        description = self.describe(task)
        if description["identity"] != task.identity:
            raise ValueError(f"{self.place(task, '.json')} is of another run")
        with self.place(task, ".npz").open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return Outcome({name: file[name] for name in file.files}, description["record"])

    def describe(self, task: Task) -> dict[str, Any]:
        """Return what is stored of a finished task besides its arrays: settings, versions, times, its record."""
        return json.loads(self.place(task, ".json").read_text(encoding="utf-8"))

    def save(self, task: Task, outcome: Outcome, seconds: float, cpu_seconds: float) -> None:
        """Store an outcome: first its arrays, then its description, which makes it count as finished."""
        description = {
            "identity": task.identity,
            "record": outcome.record,
            "wall_seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(),
        }
        text, mark = json.dumps(description, indent=1).encode(), f".{os.getpid()}"  # two commands may do the same run
        try:
            self.place(task, "").parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.place(task, ".npz"), lambda file: np.savez_compressed(file, **outcome.arrays), mark)  # type: ignore[arg-type]
            write_atomically(self.place(task, ".json"), text, mark)
        except OSError as error:
            raise StoreError(f"{self.place(task, '.npz')} could not be written: {error.strerror or error}") from error


def versions() -> dict[str, str]:
    """Return the versions of all that computes."""
    others = {name: version(name) for name in ("numpy", "numba", "scipy", "joblib", "matplotlib")}
    return {"tiebreak": tiebreak.__version__, "python": platform.python_version(), **others}
