"""A study that costs nothing, with runs that can be made to fail from outside."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from tiebreak.studies.claims import Claim, fewer
from tiebreak.studies.drawing import Figure, Panel, band
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Study, Table, Task


def base(seed: int, folder: str) -> Outcome:
    """Say that it was run, and give a number to start from."""
    log(folder, f"base {seed}")
    return Outcome({"start": np.array([float(seed)])}, {"start": seed})


def walk(seed: int, folder: str, drift: float, steps: int, sleep: float, base: Outcome) -> Outcome:
    """Walk on from the base, unless a file says that this must not be."""
    if Path(folder, f"forbidden-{drift:g}-{seed}").exists():
        raise RuntimeError(f"no walk of drift {drift:g} today")
    time.sleep(sleep)
    log(folder, f"walk {drift:g} {seed}")
    path = base.arrays["start"] + np.cumsum(np.random.default_rng(seed).standard_normal(steps) + drift)
    return Outcome({"t": np.arange(steps), "path": path}, {"end": float(path[-1]), "note": "<b>& so on</b>"})


def log(folder: str, line: str) -> None:
    with Path(folder, "log").open("a") as file:
        file.write(line + "\n")


def logged(folder: Path) -> list[str]:
    return sorted((folder / "log").read_text().splitlines()) if (folder / "log").exists() else []


class Walks(Study):
    """Two walks a seed, which share where they start."""

    name, title, reference = "walks", "Random walks", "no paper"

    def __init__(self, folder: Path, steps: int = 60, sleep: float = 0.0):
        self.settings = {"folder": str(folder), "steps": steps, "sleep": sleep}

    def tasks(self, plan: Plan) -> list[Task]:
        tasks = []
        for seed in range(plan.seeds):
            first = Task("walks/base", seed, base, {"folder": self.settings["folder"]})
            tasks += [Task(f"walks/{d:g}", seed, walk, {**self.settings, "drift": d}, {"base": first}) for d in (0.0, 1.0)]
        return tasks

    def section(self, plan: Plan, runs: Runs) -> Section:
        still, driven = runs.of("walks/0"), runs.of("walks/1")
        lines = [band(label, each, "t", "path") for label, each in (("still", still), ("driven", driven)) if each]
        judged = fewer(runs.values("walks/0", "end"), runs.values("walks/1", "end"))
        wide = Table("Wide", [f"column {k}" for k in range(30)], [[float(k) for k in range(30)]])
        return Section(
            "Walks, some of them driven.",
            [
                Figure(
                    "paths",
                    "Where they go.",
                    [Panel("position", lines, "step"), Panel("again", lines, "step", yscale="log")],
                )
            ],
            [wide],
            [Claim("Drift wins", "nowhere", *judged)],
            {"steps": self.settings["steps"], "a long word": "x" * 300},
            ["nothing of this matters."],
        )
