"""The time of an iteration of this version of the package relative to that of another checkout.

``benchmarks/iteration.py --before PATH`` prints it. Each version runs in a process of its own, and they take turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from any_version import METHODS
from loops import shape_of
from timing import Row, Size, Target, show, take_turns

HERE = Path(__file__).resolve().parent


def compare_versions(before: Path, size: Size) -> None:
    """Divide the time of an iteration by that of the same method in another checkout."""
    before = before.resolve()
    if not (before / "src" / "tiebreak").is_dir():
        raise SystemExit(f"`--before` must be a checkout of this repository, and {before} has no folder src/tiebreak")
    with version(HERE.parent, size) as ours, version(before, size) as theirs:
        turns = {
            f"{name}, {when}": partial(ask, process, name)
            for name in METHODS
            for when, process in (("before", theirs), ("after", ours))
        }
        times = take_turns(turns, size.pick(41, 15, 1), "versions")
    n, d = shape_of(size)
    show(
        f"Iteration in minimize / the same in {before}, d = {d}, n = {n}, dense",
        [Row(name, times[f"{name}, after"], times[f"{name}, before"], target=Target(1.05)) for name in METHODS],
    )


@contextmanager
def version(checkout: Path, size: Size) -> Iterator[subprocess.Popen[str]]:
    """Run the package of a checkout in a process that answers."""
    interpreted = size.pick("0", "0", "1")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "NUMBA_DISABLE_JIT": interpreted}
    numbers = map(str, (*shape_of(size), size.pick(1.0, 0.4, 0.001)))
    command = [sys.executable, str(HERE / "any_version.py"), *numbers]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, bufsize=1, **pipes) as process:
        yield process  # at the end its standard input is closed, and so it ends


def ask(process: subprocess.Popen[str], name: str) -> float:
    """Return the seconds that a version takes for an iteration of a method."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{name}\n")
    if not (line := process.stdout.readline()):
        raise RuntimeError(f"the process for {name!r} has ended; its message is above")
    return float(line)
