"""The checkpoint of a frontier: the runs that are done, in their order, and beside it that of the run under way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.driver import checkpoint
from tiebreak.driver.checkpoint import CheckpointError, Kind
from tiebreak.driver.result import Memory, Result
from tiebreak.driver.saved import plain, rebuilt
from tiebreak.problem import Problem

FRONTIER = Kind("checkpoint of a frontier", 1, CheckpointError, "give another path as `checkpoint`")

Stored = tuple[dict[str, Any], dict[str, np.ndarray]]


class Store:
    """A file to which the runs of a frontier are saved; without a path, nothing is.

    Parameters
    ----------
    path : Path or None
    identity : dict
        What makes the frontier the one it is: whatever its course depends on.
    stored : tuple or None
        What the file holds, if it is there.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any], stored: Stored | None) -> None:
        self._path, self._identity = path, identity
        self._metas: list[dict[str, Any]] = []  # of the runs that are done
        self._arrays: dict[str, np.ndarray] = {}  # their arrays, by number and name
        self._next = 0  # number of the next run
        if stored is not None:
            self._read(*stored)

    def _read(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        assert self._path is not None
        try:
            checkpoint.check_identity(self._path, meta["identity"], self._identity, self._identity)
            self._metas, self._arrays = meta["runs"], arrays
        except KeyError as error:
            message = f"the checkpoint {self._path} is damaged ({error}); give another path, or delete it to start again"
            raise CheckpointError(message) from error

    @property
    def under_way(self) -> Path | None:
        """Where the next run is to be saved while it goes on."""
        return None if self._path is None else self._path.with_name(f"{self._path.name}.{self._next}")

    def recalled(self, problem: Problem) -> Result | None:
        """Return the next run, if it is done already."""
        if self._next >= len(self._metas):
            return None
        meta, start = self._metas[self._next], f"{self._next}."
        arrays = {name.removeprefix(start): array for name, array in self._arrays.items() if name.startswith(start)}
        result = rebuilt(meta["result"], arrays, problem)
        self._remove_point()  # which a process may have left that was killed a moment before it would have done so
        self._next += 1
        if meta["memory"] is None:
            return result
        memory = {name.removeprefix("memory."): array for name, array in arrays.items() if name.startswith("memory.")}
        return replace(result, memory=Memory(meta["memory"], memory))

    def add(self, result: Result) -> None:
        """Save a run that is done."""
        if self._path is None:
            return
        meta, arrays = plain(result)
        memory = result.memory
        old = f"{self._next - 1}.memory."  # of the run before, which nothing continues from any more
        kept = {name: array for name, array in self._arrays.items() if not name.startswith(old) or name == f"{old}minimiser"}
        self._metas.append({"result": meta, "memory": None if memory is None else memory.method})
        self._arrays = kept | {f"{self._next}.{name}": array for name, array in arrays.items()}
        if memory is not None:
            self._arrays |= {f"{self._next}.memory.{name}": array for name, array in memory.arrays.items()}
        checkpoint.save(self._path, FRONTIER, {"identity": self._identity, "runs": self._metas}, self._arrays)
        self._remove_point()
        self._next += 1

    def _remove_point(self) -> None:
        if self.under_way is not None:
            self.under_way.unlink(missing_ok=True)
