"""The checkpoint of a run: what is stored of it, and which run may continue from there."""

from __future__ import annotations

import contextlib
import math
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.driver import checkpoint
from tiebreak.driver.checkpoint import CheckpointError
from tiebreak.driver.limits import Task
from tiebreak.driver.result import Status
from tiebreak.driver.run import Run
from tiebreak.engine.digest import digest, lasting, outline
from tiebreak.methods import Method
from tiebreak.problem import Problem

BUDGETS = ("max_queries", "max_iterations")  # limits of which a stored run may be given more
STATE = "state."  # beginning of the names of the arrays of a state
CONFIGURED = ("method", "parameters")  # entries of an identity that may depend on these


class Checkpoint:
    """A file to which a run is saved.

    Attributes
    ----------
    path : Path
    identity : dict
        What makes the run the one it is: whatever its course depends on.
    """

    def __init__(self, path: Path, run: Run) -> None:
        self.path, self._run = path, run
        self.identity = _identity(run)
        self._saved_at = run.clock.wall

    def save(self, interval: float) -> None:
        """Write the run if the last time was longer ago than some seconds."""
        run = self._run
        if run.clock.wall - self._saved_at < interval:
            return
        recorded, arrays = run.records.stored()
        meta = {
            "identity": self.identity,
            "phase": run.phase.number,
            "phase_queries": run.phase.queries_before,
            "phase_began": run.phase.began,
            "earlier": run.phase.earlier,
            "ended": run.ended and run.ended.name,
            "time_limit": run.task.limits.seconds,
            "seconds": run.spent.seconds,
            "wall_seconds": run.clock.wall,
            "counted_seconds": run.clock.counted,
            **recorded,
        }
        state = {STATE + name: array for name, array in run.phase.stored().items()}
        arrays = {**state, **arrays, "counts": run.spent.costs}
        try:
            checkpoint.save(self.path, checkpoint.CHECKPOINT, meta, arrays)
        except OSError as error:  # the run is worth more than its checkpoint
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(f"the checkpoint {self.path} could not be written: {error}", RuntimeWarning, stacklevel=2)
        self._saved_at = run.clock.wall

    def resume(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Let the run continue from what is stored here; raise if that is of another run."""
        try:
            self._check_same_run(meta["identity"])
            self._check_not_ended(meta)
            self._restore(meta, arrays)
        except CheckpointError:
            raise
        except (KeyError, ValueError, TypeError) as error:
            message = f"the checkpoint {self.path} is damaged ({error}); give another path, or delete it to start again"
            raise CheckpointError(message) from error
        self._saved_at = self._run.clock.wall

    def _restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        run = self._run
        state = {name.removeprefix(STATE): array for name, array in arrays.items() if name.startswith(STATE)}
        run.enter(meta["phase"], run.task.x, tuple(meta["earlier"]), state)
        run.ended = meta["ended"] and Status[meta["ended"]]
        run.spent.costs[:] = arrays["counts"]
        run.spent.seconds = meta["seconds"]
        run.phase.continue_from(meta["phase_queries"], meta["phase_began"])
        run.clock.continue_from(meta["wall_seconds"], meta["counted_seconds"])
        run.records.restore(meta, arrays)

    def _check_same_run(self, stored: dict[str, Any]) -> None:
        """Raise if a stored run cannot become this one, which may differ from it by a larger budget alone."""
        now = self.identity
        checkpoint.check_identity(self.path, stored, now, [name for name in now if name not in (*CONFIGURED, *BUDGETS)])
        differing = [name for name in BUDGETS if stored[name] != now[name]]
        if differing and (reason := self._planned_for(stored)):
            raise CheckpointError(
                f"the checkpoint {self.path} is of a run with {_budget(stored, differing)}, which cannot be extended to"
                f" {_budget(now, differing)}: {reason}; give that budget to finish it, or another path; x0=result"
                f" continues from a result"
            )
        checkpoint.check_identity(self.path, stored, now, CONFIGURED)
        if less := [name for name in differing if now[name] < stored[name]]:
            raise CheckpointError(
                f"the checkpoint {self.path} is of a run with {_budget(stored, less)}, and a run can be given more, not"
                f" less: got {_budget(now, less)}; give at least that budget, or another path"
            )

    def _check_not_ended(self, meta: dict[str, Any]) -> None:
        """Raise if the method of a stored run has spent its budget: a larger one would all go to what lowers g after it."""
        more = self._run.task.limits.seconds > meta["time_limit"] and meta["ended"] == Status.TIME.name
        if meta["ended"] and (more or any(meta["identity"][name] != self.identity[name] for name in BUDGETS)):
            raise CheckpointError(
                f"the checkpoint {self.path} is of a run that has spent the budget of its method and was lowering g at the"
                f" end: it cannot be given more; give the same budget to finish it, or another path; x0=result continues"
                f" from a result"
            )

    def _planned_for(self, stored: dict[str, Any]) -> str:
        """Return why the stored run and this one differ, if their budgets are the reason: some parameter depends on it."""
        phases = self._run.phases
        methods, main = phases.planned(*(stored[name] for name in BUDGETS))
        before, now = phases.configuration(methods, main), phases.configuration(phases.methods, phases.main)
        if before == now or any(stored[name] != value for name, value in before.items()):
            return ""
        if before["method"] != now["method"]:
            return f"the method is chosen for the budget: {before['method']!r} for that one, {now['method']!r} for this one"
        names = [field.name for field in fields(phases.method) if _differ(methods[main], phases.method, field.name)]
        return f"{before['method']!r} plans for the whole budget: {', '.join(f'`{name}`' for name in names)}"


def _identity(run: Run) -> dict[str, Any]:
    task = run.task
    return {
        "x0": digest((task.x, not task.given, *_remembered(task))),  # first: other functions are compared there
        "tolerance": task.problem.tolerance,
        "keep": task.problem.keep,
        "problem": problem_digest(task.problem, task.x),
        **run.phases.configuration(run.phases.methods, run.phases.main),
        "seed": task.seed,
        "part": task.part,
        **run.records.prover.identity,
        "max_queries": task.limits.queries,
        "max_iterations": task.limits.iterations,
        "tol": task.limits.tol and list(task.limits.tol),
    }


def problem_digest(problem: Problem, x: np.ndarray) -> str:
    """Return a hash of a problem; with Python functions in it, of what they give at a point."""
    if problem.compiled:
        return digest(problem)
    finite = [objective for objective in problem[:2] if not objective.endless]
    values = [objective.value_and_gradient(x) for objective in finite]
    before = outline(problem)
    for objective in finite:
        objective.value_and_gradient(x, [0])
    return digest((lasting(before, outline(problem)), *values))


def _remembered(task: Task) -> tuple[Any, ...]:
    return () if task.memory is None else (task.memory.method, *sorted(task.memory.arrays.items()))


def _differ(first: Method, second: Method, name: str) -> bool:
    return digest(getattr(first, name)) != digest(getattr(second, name))


def _budget(identity: dict[str, Any], names: list[str]) -> str:
    """Return some budgets of a run as they are written in a call."""
    return ", ".join(f"{name}={None if math.isinf(identity[name]) else int(identity[name])}" for name in names)
