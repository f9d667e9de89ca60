"""Runs that are killed: ``python -m campaign.killing SEED KILLS FOLDER`` prints one line of JSON for each run.

This process compiles everything once and then makes each run in a copy of itself (a fork), which starts at once. It must not
solve a linear program itself: the threads of the solver would not be there in the copies.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak
from tiebreak.driver import run
from tiebreak.engine.files import write_atomically

MOST_KILLS = 4  # kills of one run at most
COLUMNS = [name for name in tiebreak.Record._fields if name != "seconds"]


def least_squares(seed: int) -> Any:
    """Return a small loss."""
    rng = np.random.default_rng(seed)
    return tiebreak.LeastSquares(rng.standard_normal((12, 18)), rng.standard_normal(12))


def asked(objective: Any) -> Any:
    """Return an objective as a Python function."""
    return tiebreak.FiniteSum(12, 18, lambda x, i: objective.value_and_gradient(x, i), convex=True)


def runs() -> dict[str, tuple[tiebreak.Problem, Any, int]]:
    """Return what is run: problems, methods and budgets of some tenths of a second."""
    problem = tiebreak.Problem(least_squares(1), least_squares(2), tiebreak.L1Ball(6.0))
    python = problem._replace(lower=asked(problem.lower))
    return {
        "sbcgi": (problem, tiebreak.SBCGI(step=1e-2, slack=1e-3), 2_000_000),
        "sbcgf": (problem, tiebreak.SBCGF(step=1e-2, slack=1e-6), 4_000_000),
        "sbcgf of a Python function": (python, tiebreak.SBCGF(step=1e-2, slack=1e-6), 20_000),
    }


def minimize(name: str, seed: int, **options: Any) -> Any:
    """Make a run; a checkpoint is written as often as possible."""
    problem, method, budget = runs()[name]
    run.CHECKPOINT_SECONDS = 0.0
    return tiebreak.minimize(problem, method, max_queries=budget, seed=seed, progress=False, **options)


def store(result: Any, path: Path) -> None:
    """Write all bits of a result that a resumed run must share."""
    history = {name: getattr(result.history, name) for name in COLUMNS}
    numbers = np.array([result.upper, result.lower, result.upper_gap_bound, result.lower_gap_bound])
    write_atomically(path, lambda file: np.savez(file, x=result.x, numbers=numbers, **history))


def same(first: Path, second: Path) -> str:
    """Return the name of the first array in which two results differ, or nothing."""
    with np.load(first) as a, np.load(second) as b:
        return next((name for name in a.files if a[name].tobytes() != b[name].tobytes()), "")


def forked(work: Callable[[], None]) -> int:
    """Start a copy of this process that does some work and ends; return its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def finished(child: int) -> bool:
    """Wait for a copy; return whether it ended well."""
    return os.waitpid(child, 0)[1] == 0


def kill_and_resume(name: str, seed: int, seconds: float, rng: random.Random, folder: Path) -> tuple[int, Path | None]:
    """Kill a run at random moments and resume it each time; return the kills, and what it wrote in the end."""
    checkpoint, out = folder / f"{seed}.npz", folder / f"{seed}-out.npz"
    kills = 0
    while True:
        child = forked(lambda: store(minimize(name, seed, checkpoint=checkpoint), out))
        if kills < MOST_KILLS:
            time.sleep(rng.uniform(0.0, seconds))
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                kills += 1
                continue
            return kills, out if status == 0 else None
        return kills, out if finished(child) else None


def fill_disk(name: str, seed: int, rng: random.Random, folder: Path) -> dict[str, Any]:
    """Let no file grow as large as the checkpoint: a run that continues must end well, and leave the last one as it is.

    A run that begins on such a disk is refused, by an error that names the argument.
    """
    checkpoint, out = folder / f"{seed}.npz", folder / f"{seed}-out.npz"
    seen: list[Any] = []
    minimize(name, seed, checkpoint=checkpoint, callback=lambda snapshot: seen.append(snapshot) or len(seen) == 12)
    limit = rng.randrange(checkpoint.stat().st_size)

    def fill() -> bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return checkpoint.read_bytes()

    def resumed() -> None:
        kept: list[bytes] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = minimize(name, seed, checkpoint=checkpoint, callback=lambda snapshot: kept.append(fill()))
        if not any("could not be written" in str(warning.message) for warning in caught):
            raise AssertionError("there was no warning that the checkpoint could not be written")
        if checkpoint.read_bytes() != kept[0]:
            raise AssertionError("the checkpoint is not the last one that could be written")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        store(result, out)

    def begun() -> None:
        kept = fill()
        try:
            minimize(name, seed, checkpoint=checkpoint)
        except ValueError as error:
            if "`checkpoint`" not in str(error):
                raise
        if checkpoint.read_bytes() != kept:
            raise AssertionError("a run that could not begin has changed the checkpoint")

    well = finished(forked(begun)) and finished(forked(resumed))
    return {"well": well, "limit": limit, "out": str(out)}


def main(seed: int, kills: int, folder: Path) -> None:
    """Make runs until as many were killed, and report each."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    names = list(runs())
    for name in names:  # load all code; a run that ends at its first record solves no linear program
        minimize(name, 0, callback=lambda snapshot: True)
    wholes: dict[tuple[str, int], tuple[Path, float]] = {}
    killed = number = 0
    while killed < kills:
        name, case = rng.choice(names), rng.randrange(3)
        if (name, case) not in wholes:
            out, began = folder / f"whole-{len(wholes)}.npz", time.perf_counter()
            finished(forked(lambda: store(minimize(name, case), out)))  # noqa: B023 (it runs before the next turn)
            wholes[name, case] = out, time.perf_counter() - began
        whole, seconds = wholes[name, case]
        place = folder / f"run-{number}"
        place.mkdir()
        number += 1
        if rng.random() < 0.1:
            report = fill_disk(name, case, rng, place)
            differs = same(whole, Path(report["out"])) if report["well"] else ""
            print(json.dumps({"kind": "disk", "run": name, "case": case, **report, "differs": differs}), flush=True)
            continue
        count, path = kill_and_resume(name, case, seconds, rng, place)
        killed += count
        differs = "" if path is None else same(whole, path)
        report = {"kind": "kill", "run": name, "case": case, "kills": count, "well": path is not None, "differs": differs}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
