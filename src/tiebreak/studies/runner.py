"""Run tasks in parallel, store each as it ends, and leave out those that are stored."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import joblib

from tiebreak.driver.progress import Progress, is_wanted
from tiebreak.studies.store import Store, StoreError
from tiebreak.studies.study import Task


class Done(NamedTuple):
    """How a task ended."""

    task: Task
    error: str | None = None  # the last line of it
    details: str = ""  # all of it
    disk: bool = False  # whether it could not be stored: no other will be either


class Report(NamedTuple):
    """What became of tasks."""

    found: list[Task]  # stored before
    made: list[Task]
    failed: list[Done]
    seconds: float


def run(tasks: Iterable[Task], store: Store, jobs: int = -1, progress: bool | None = None) -> Report:
    """Run all tasks that are not stored, those that others need first.

    Parameters
    ----------
    tasks : list of Task
        What they need is run too.
    store : Store
    jobs : int
        Processes; −1: as many as there are cores.
    progress : bool, optional
        Whether to show a bar; if not given, only in a terminal.

    Raises
    ------
    StoreError
        If an outcome cannot be stored. What is finished is kept.
    """
    began = time.perf_counter()
    wanted = with_needs(tasks)
    found = [task for task in wanted if store.has(task)]
    stored = {task.key for task in found}
    todo = [task for task in wanted if task.key not in stored]
    needed = {need.key for task in todo for need in task.needs.values()}
    made: list[Task] = []
    failed: dict[str, Done] = {}
    with Progress((len(todo),), ("runs",), is_wanted(progress)) as bar:
        for depth in sorted({task.depth for task in todo}):
            level = [task for task in todo if task.depth == depth]
            ready = [task for task in level if not any(need.key in failed for need in task.needs.values())]
            for task in (task for task in level if task not in ready):
                failed[task.key] = Done(task, "a run that it needs has failed")
                bar.show((len(made) + len(failed),))
            # Seed by seed, what others need first: so all workers compile different things as long as there is something to
            # compile.
            ready.sort(key=lambda task: (task.seed, task.key not in needed))
            parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", max_nbytes=None)
            for done in parallel(joblib.delayed(_work)(task, store) for task in ready):
                if done.disk:
                    raise StoreError(f"{done.error}\n{len(found) + len(made)} finished runs are kept in {store.folder}")
                if done.error is None:
                    made.append(done.task)
                else:
                    failed[done.task.key] = done
                bar.describe(f"{done.task.name}, seed {done.task.seed}")
                bar.show((len(made) + len(failed),))
    return Report(found, made, list(failed.values()), time.perf_counter() - began)


def with_needs(tasks: Iterable[Task]) -> list[Task]:
    """Return tasks and all that they need, each once."""
    wanted: dict[str, Task] = {}

    def add(some: Iterable[Task]) -> None:
        for task in some:
            if task.key not in wanted:
                add(task.needs.values())
                wanted[task.key] = task

    add(tasks)
    return list(wanted.values())


def failures(report: Report) -> Sequence[str]:
    """Return a line for each run that failed."""
    return [f"{done.task.name}, seed {done.task.seed}: {done.error}" for done in report.failed]


def _work(task: Task, store: Store) -> Done:
    """Run one task in a worker and store it there."""
    try:
        needs = {name: store.load(need) for name, need in task.needs.items()}
        began, cpu_began = time.perf_counter(), time.process_time()
        outcome = task.outcome(**needs)
        store.save(task, outcome, time.perf_counter() - began, time.process_time() - cpu_began)
    except StoreError as error:
        return Done(task, str(error), disk=True)
    except Exception as error:  # one failing run must not stop the others
        return Done(task, f"{type(error).__name__}: {error}", traceback.format_exc())
    return Done(task)
