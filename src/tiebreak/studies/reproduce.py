"""Do studies: run what is not stored, then write figures, a summary and the page."""

from __future__ import annotations

import csv
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import joblib

from tiebreak.engine.files import write_atomically
from tiebreak.studies import runner
from tiebreak.studies.claims import FEWEST_SEEDS
from tiebreak.studies.drawing import Figure, draw, images
from tiebreak.studies.report import Chapter, Pictures, page
from tiebreak.studies.store import Store, StoreError, versions
from tiebreak.studies.study import Plan, Runs, Section, Study, Task


def reproduce(
    studies: Sequence[Study],
    plan: Plan,
    out: Path,
    jobs: int = -1,
    echo: Callable[[str], None] = print,
    progress: bool | None = None,
) -> runner.Report:
    """Do studies and write everything into a folder.

    Parameters
    ----------
    studies : list of Study
    plan : Plan
    out : path
        The folder: ``runs/`` keeps each finished run; ``figures/``, ``summary.csv`` and ``report.html`` show them;
        ``failures.txt`` has the errors of those that failed.
    jobs : int
        Processes; −1: as many as there are cores.
    echo : callable
        Prints what is going on.
    progress : bool, optional
        Whether to show a bar; if not given, only in a terminal.

    Returns
    -------
    Report
        Which runs were found, made, and have failed.

    Raises
    ------
    StoreError
        If something cannot be written, as on a full disk. Finished runs are kept.
    """
    began = time.perf_counter()
    store = Store(out / "runs")
    tasks = {study.name: study.tasks(plan) for study in studies}
    wanted = runner.with_needs(task for each in tasks.values() for task in each)
    echo(f"{', '.join(tasks)}: {len(wanted)} runs, each stored in {store.folder} as it ends; a method's first one compiles")
    report = runner.run(wanted, store, jobs, progress)
    echo(f"{len(report.made)} runs in {report.seconds:.0f} s, {len(report.found)} found from before")
    try:
        chapters = [_chapter(study, plan, tasks[study.name], store) for study in studies]
        pictures = _draw_all(chapters, out / "figures", jobs)
        _write_summary(out / "summary.csv", tasks, store)
        facts = {
            "command": f"tiebreak reproduce {' '.join(tasks)} --seeds {plan.seeds}" + (" --quick" if plan.quick else ""),
            "data": ", ".join(map(str, plan.sources)) or "those that each study takes by itself",
            "time of this call": f"{time.perf_counter() - began:.0f} s",
            "runs": f"{len(report.made)} made by this call, {len(report.found)} found, {len(report.failed)} failed",
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            **versions(),
        }
        text = page("Reproduction report", _lead(plan), chapters, pictures, facts, runner.failures(report))
        write_atomically(out / "report.html", text.encode())
        (out / "failures.txt").unlink(missing_ok=True)
        if report.failed:
            details = "\n".join(f"{done.task.key}\n{done.details or done.error}" for done in report.failed)
            write_atomically(out / "failures.txt", details.encode())
    except OSError as error:
        raise StoreError(f"the report could not be written: {error}; finished runs are kept in {store.folder}") from error
    for line in runner.failures(report):
        echo(f"failed: {line} (see {out / 'failures.txt'})")
    echo(f"the report is in {out / 'report.html'}")
    return report


def _lead(plan: Plan) -> list[str]:
    lead = [
        "What the papers' experiments show when they are run again, and which of their claims hold. Lines are means over "
        f"{plan.seeds} seeds, bars on them reach from the least to the largest value. A seed stands for new data and for "
        "new samples.",
        "Claims are judged by a sign test over the seeds at the level 1/20: “not decidable” means that the seeds disagree "
        "too much. “1 < 2, smaller on 9/10 seeds” gives both medians, and on how many seeds the first is smaller.",
    ]
    if plan.quick:
        lead.append(
            "This is a quick run with small budgets: it shows that everything works. What the papers claim of their own "
            "budgets is judged without --quick."
        )
    return lead


def judged(section: Section, plan: Plan) -> Section:
    """Return a section with the claims alone that the plan can decide, and a note that says how many it cannot."""
    kept = [claim for claim in section.claims if claim.is_judged(plan.seeds, plan.quick)]
    if len(kept) == len(section.claims):
        return section
    reason = f"fewer than {FEWEST_SEEDS} seeds decide nothing" if plan.seeds < FEWEST_SEEDS else "budgets are small here"
    left = f"{len(section.claims) - len(kept)} of {len(section.claims)} claims are judged at full size only: {reason}."
    return replace(section, claims=kept, unjudged=left)


def _chapter(study: Study, plan: Plan, tasks: Sequence[Task], store: Store) -> Chapter:
    """Return a study's part of the page."""
    done = [task for task in tasks if store.has(task)]
    section = judged(study.section(plan, Runs({task.key: (task, store.load(task)) for task in done})), plan)
    seconds = sum(store.describe(task)["cpu_seconds"] for task in done)
    timing = f"{len(done)} of {len(tasks)} runs, {seconds:.0f} s of processor time with compilation"
    return Chapter(study.name, study.title, study.reference, section, timing)


def _draw_all(chapters: Sequence[Chapter], folder: Path, jobs: int) -> Pictures:
    """Write all figures, and return the panels of each for the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {f"{chapter.name}-{figure.name}": figure for chapter in chapters for figure in chapter.section.figures}
    drawn = joblib.Parallel(n_jobs=jobs)(joblib.delayed(_draw)(figure, folder / name) for name, figure in figures.items())
    return dict(zip(figures, drawn, strict=True))


def _draw(figure: Figure, path: Path) -> list[tuple[str, bytes]]:
    canvas = draw(figure)
    for suffix in ("png", "pdf"):
        canvas.savefig(path.with_name(f"{path.name}.{suffix}"), dpi=160)
    return images(figure)


def _write_summary(path: Path, tasks: dict[str, list[Task]], store: Store) -> None:
    """Write one row per run: study, run, seed, all entries of its record."""
    rows = []
    for study, each in tasks.items():
        for task in filter(store.has, each):
            stored = store.describe(task)
            row = {"study": study, "run": task.name, "seed": task.seed, **stored["record"]}
            rows.append({**row, "wall_seconds": stored["wall_seconds"], "cpu_seconds": stored["cpu_seconds"]})
    columns = list(dict.fromkeys(name for row in rows for name in row)) or ["study", "run", "seed"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
