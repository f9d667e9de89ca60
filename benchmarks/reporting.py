"""The tables and the figure of a race."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from bank import Entry
from bank import entries as whole_bank
from judging import (
    CLOSE,
    FAR,
    HALVES,
    LEVELS,
    MEASURES,
    SHORTEST,
    Contest,
    Run,
    Verdict,
    Yardstick,
    contests,
    final_errors,
    first_solved,
    halves,
    judge,
    profile,
)
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

DEFAULT = "auto"
NAMED = 8  # curves with a name in a figure; the others are grey
FACTORS = np.geomspace(1.0, 128.0, 200)  # τ
WINNERS = 5  # methods that a table of winners lists


def write(folder: Path, entries: Sequence[Entry], runs: Sequence[Run], yardsticks: Mapping[str, Yardstick]) -> str:
    """Write race.md, race.csv and profiles.svg to a folder; return the first lines of the tables."""
    held = {measure: contests(runs, yardsticks, measure) for measure in MEASURES}
    _write_csv(folder / "race.csv", entries, runs, yardsticks)
    draw(held).savefig(folder / "profiles.svg")
    summary = _summary(entries, held)
    parts = [
        _introduction(runs, yardsticks),
        summary,
        _losses(entries, held),
        _winners(held),
        _ends(entries, runs, yardsticks),
    ]
    parts += [_first(entries, held), _left_open(entries, runs, yardsticks)]
    (folder / "race.md").write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return f"{summary}\n\nAll tables are in {folder / 'race.md'}"


# Tables


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _introduction(runs: Sequence[Run], yardsticks: Mapping[str, Yardstick]) -> str:
    made = [run for run in runs if run.status != "refused"]
    return (
        f"# A race of {len({run.method for run in runs})} methods on {len(yardsticks)} entries\n\n"
        f"{len(made)} runs were made, and {len(runs) - len(made)} refused by methods that do not take the problem."
        " Solved to ρ means g − g* ≤ ρ (g(x₀) − g*) and |f − f*| ≤ ρ max(|f(x₀) − f*|, |f*|)."
        f" Seconds are those of the method; less than {SHORTEST:g} s counts as {SHORTEST:g} s."
        " Samples are those that iterations draw; fewer than one pass count as a pass."
        " An entry is a problem and a budget in passes; a contest is an entry at one ρ that some method solved."
    )


def _summary(entries: Sequence[Entry], held: Mapping[str, Sequence[Contest]]) -> str:
    lines = []
    for half in HALVES:
        for measure in MEASURES:
            own = _of_half(held[measure], entries, half)
            for what, some in [
                *((f"ρ = {level:g}", [c for c in own if c.level == level]) for level in LEVELS),
                ("all", own),
            ]:
                lines.append([f"{half}, {measure}, {what}", *_shown(judge(some, DEFAULT))])
    head = ["", "contests", "best", f"within {CLOSE:g} ×", f"worse than {FAR:g} ×", "worst"]
    return f"## How `{DEFAULT}` fared, in each half of the bank\n\n{table(head, lines)}"


def _shown(verdict: Verdict) -> list[str]:
    if not verdict.contests:
        return ["0", *[""] * 4]
    shares = (f"{100.0 * share:.0f} %" for share in (verdict.best, verdict.close))
    return [str(verdict.contests), *shares, str(verdict.beyond), times(verdict.worst)]


def _losses(entries: Sequence[Entry], held: Mapping[str, Sequence[Contest]]) -> str:
    parts = []
    for half in HALVES:
        for measure in MEASURES:
            lost = judge(_of_half(held[measure], entries, half), DEFAULT).losses
            lines = []
            for c in lost:
                taken = (amount(c.taken.get(name, math.inf), measure) for name in (DEFAULT, c.best))
                lines.append([f"{c.entry}, ρ = {c.level:g}", *taken, c.best, times(c.ratio(DEFAULT))])
            if lines:
                title = f"## Where `{DEFAULT}` loses by more than {CLOSE:g} ×: {half}, {measure}"
                parts.append(f"{title}\n\n{table(['', DEFAULT, 'best', 'which is', 'ratio'], lines)}")
    return "\n\n".join(parts)


def _winners(held: Mapping[str, Sequence[Contest]]) -> str:
    lines = []
    for measure in MEASURES:
        for level in LEVELS:
            some = [c for c in held[measure] if c.level == level]
            if some:
                methods = sorted(
                    {name for c in some for name in c.taken},
                    key=lambda name, some=some: -judge(some, name).close,  # type: ignore[misc]
                )
                shown = ", ".join(f"{name} {100.0 * judge(some, name).close:.0f} %" for name in methods[:WINNERS])
                lines.append([f"{measure}, ρ = {level:g}", shown])
    return f"## The methods that are most often within {CLOSE:g} × of the best\n\n{table(['', 'methods'], lines)}"


def _ends(entries: Sequence[Entry], runs: Sequence[Run], yardsticks: Mapping[str, Yardstick]) -> str:
    lines = []
    for entry in entries:
        own = {run.method: final_errors(run, yardsticks[entry.label]) for run in runs if run.entry == entry.label}
        others = {name: errors for name, errors in own.items() if name != DEFAULT and math.isfinite(max(errors))}
        if DEFAULT not in own or not others:
            continue
        chosen = next(run.chosen for run in runs if (run.entry, run.method) == (entry.label, DEFAULT))
        best = min(others, key=lambda name, others=others: max(others[name]))  # type: ignore[misc]
        lines.append([entry.label, chosen, *_gaps(own[DEFAULT]), best, *_gaps(others[best])])
    head = ["entry", f"`{DEFAULT}` chose", "f gap", "g gap", "best other", "f gap", "g gap"]
    return f"## Where runs end: relative gaps\n\n{table(head, lines)}"


def _gaps(errors: tuple[float, float]) -> list[str]:
    return [f"{error:.1e}" for error in errors]


def _first(entries: Sequence[Entry], held: Mapping[str, Sequence[Contest]]) -> str:
    """Return what the best method and the default took for each entry and level."""
    lines = []
    for entry in entries:
        for level in LEVELS:
            cells = [f"{entry.label}, ρ = {level:g}"]
            for measure in MEASURES:
                own = [c for c in held[measure] if (c.entry, c.level) == (entry.label, level)]
                for c in own:
                    cells += [c.best, amount(c.taken[c.best], measure), amount(c.taken.get(DEFAULT, math.inf), measure)]
            if len(cells) > 1:
                lines.append(cells)
    head = ["", "fastest", "it took", DEFAULT, "fewest samples", "it took", DEFAULT]
    return f"## What the best method and `{DEFAULT}` took\n\n{table(head, lines)}"


def _left_open(entries: Sequence[Entry], runs: Sequence[Run], yardsticks: Mapping[str, Yardstick]) -> str:
    """Return what is not compared, and why."""
    lines = []
    for entry in entries:
        yardstick = yardsticks.get(entry.label)
        if yardstick is None:
            lines.append([entry.label, "all", "no answer is known, or its data are missing"])
            continue
        own = [run for run in runs if run.entry == entry.label]
        for level in LEVELS:
            if not yardstick.decides(level):
                told = f"not decidable: {yardstick.reference.source}, errors of f* and g*"
                errors = yardstick.reference.upper_error, yardstick.reference.lower_error
                lines.append([entry.label, f"{level:g}", f"{told} {errors[0]:.1e}, {errors[1]:.1e}"])
            elif all(math.isinf(first_solved(run, yardstick, level)["samples"]) for run in own):
                lines.append([entry.label, f"{level:g}", "no method got there"])
    return f"## What is left out\n\n{table(['entry', 'ρ', 'why'], lines)}" if lines else ""


def _of_half(held: Sequence[Contest], entries: Sequence[Entry], half: str) -> list[Contest]:
    place, names = halves(whole_bank()), {entry.label: entry.name for entry in entries}
    return [contest for contest in held if place[names[contest.entry]] == half]


def times(ratio: float) -> str:
    """Write a ratio."""
    return "not solved" if math.isinf(ratio) else f"{ratio:.3g} ×"


def amount(taken: float, measure: str) -> str:
    """Write seconds or samples."""
    if math.isinf(taken):
        return "–"
    return f"{taken:.3g} s" if measure == "seconds" else f"{taken:,.0f}"


def _write_csv(file: Path, entries: Sequence[Entry], runs: Sequence[Run], yardsticks: Mapping[str, Yardstick]) -> None:
    """Write one line per run."""
    place, known = halves(whole_bank()), {entry.label: entry for entry in entries}
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        columns = [f"{measure} to {level:g}" for level in LEVELS for measure in MEASURES]
        ends = ["f gap", "g gap", "samples", "seconds"]
        writer.writerow(["problem", "kind", "half", "passes", "method", "ran", "status", *ends, *columns])
        for run in runs:
            entry, yardstick = known[run.entry], yardsticks[run.entry]
            first = [first_solved(run, yardstick, level)[measure] for level in LEVELS for measure in MEASURES]
            end = [*final_errors(run, yardstick), *(run.records[-1, :2] if run.records.size else ("", ""))]
            about = [entry.name, entry.kind, place[entry.name], f"{entry.passes:g}", run.method, run.chosen, run.status]
            writer.writerow([*about, *end, *first])


# The figure


def draw(held: Mapping[str, Sequence[Contest]]) -> Figure:
    """Draw performance profiles: for each factor, the share of contests in which a method was within it of the best."""
    figure = Figure(figsize=(11.0, 7.0), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots(len(MEASURES), len(LEVELS), sharex=True, sharey=True)
    everyone = [contest for measure in MEASURES for contest in held[measure]]
    methods = sorted({name for contest in everyone for name in contest.taken})
    # The area under a profile, with factors on a logarithmic scale, is what names are given by.
    area = {name: float(profile(everyone, name, FACTORS).mean()) for name in methods}
    named = [name for name in sorted(methods, key=lambda name: -area[name]) if name != DEFAULT][: NAMED - 1]
    for line, measure in zip(axes, MEASURES, strict=True):
        for axis, level in zip(line, LEVELS, strict=True):
            some = [contest for contest in held[measure] if contest.level == level]
            axis.set_title(f"ρ = {level:g}: {measure}, {len(some)} contests", fontsize=10)
            axis.set_xscale("log", base=2)
            axis.set_ylim(0.0, 1.02)
            axis.grid(alpha=0.3)
            if some:
                _draw_profiles(axis, some, methods, named)
    for axis in axes[-1]:
        axis.set_xlabel("within this factor of the best")
    for axis in axes[:, 0]:
        axis.set_ylabel("share of contests")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside right center", frameon=False)
    return figure


def _draw_profiles(axis: object, some: Sequence[Contest], methods: Sequence[str], named: Sequence[str]) -> None:
    for name in methods:
        if name != DEFAULT and name not in named:
            axis.plot(FACTORS, profile(some, name, FACTORS), color="0.85", linewidth=0.8, zorder=1)  # type: ignore[attr-defined]
    for name in named:
        axis.plot(FACTORS, profile(some, name, FACTORS), label=name, linewidth=1.4, zorder=2)  # type: ignore[attr-defined]
    if DEFAULT in methods:
        curve = profile(some, DEFAULT, FACTORS)
        axis.plot(FACTORS, curve, label=DEFAULT, color="black", linewidth=2.4, zorder=3)  # type: ignore[attr-defined]
