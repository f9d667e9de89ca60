"""The tables and the figure of a run of the benchmark, from the files that benchopt writes.

Run ``python benchmarks/benchopt/results.py outputs/RUN.parquet …``. It prints who reached ρ = 1e-2, 1e-4 and 1e-6 first, and
what all others took, relative to that. ``--page`` puts the tables into a page, between the two comments that begin and end
them, and ``--figure`` draws all curves. ``--complete`` fails if a solver of the folder did no run at all.

What is compared is the processor time of the fastest call that reached a value. A solver from elsewhere that does not tell
it is compared by the clock.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[1]))
from judging import CERTAIN, LEVELS, Contest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from reporting import table
from timing import short

DEFAULT = "minimize"
MIDDLE = LEVELS[1]  # ρ of the table of all solvers
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
COLOURS = {  # of curves with a name; all others are grey
    DEFAULT: "#0b5394",
    "cvxpy": "#d9480f",
    "lstsq[scipy]": "#2b8a3e",
    "ridge[svd]": "#82c91e",
    "pb-apg": "#9c36b5",
    "sbcgf": "#e67700",
    "sbcgi": "#f2b134",
}
LEAST = 1e-9  # value at which smaller ones are drawn
OPTIONAL = {"clone"}  # solvers that need something of the user


class Outcome(NamedTuple):
    """What all solvers took on one data set, at one ρ."""

    contest: Contest | None  # None: nobody got there
    decided: bool  # whether the answer is known well enough for this ρ


def load(files: Sequence[Path]) -> pd.DataFrame:
    """Return one line per call of a solver: data set, solver, seconds, value, and how well the answer is known."""
    read = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    told = read["objective_processor_seconds"]
    return pd.DataFrame(
        {
            "data": read["dataset_name"].str.extract(r"\[(.*)\]", expand=False),
            "solver": read["solver_name"].str.replace(r"^tiebreak\[(.*)\]$", r"\1", regex=True),
            "file": read["file_solver"].map(lambda file: Path(file).stem),
            "seconds": told.where(told > 0.0, read["time"]),
            "value": read["objective_value"],
            "uncertainty": read["objective_reference_error"],
        }
    )


def outcome(calls: pd.DataFrame, data: str, level: float) -> Outcome:
    """Return the seconds of the fastest call of each solver that reached ρ."""
    own = calls[calls["data"] == data]
    decided = own["uncertainty"].max() <= CERTAIN * level
    there = own[own["value"] <= level].groupby("solver")["seconds"].min()
    taken = {solver: float(there.get(solver, np.inf)) for solver in own["solver"].unique()}
    return Outcome(Contest(data, level, taken) if len(there) else None, bool(decided))


def winners(calls: pd.DataFrame) -> str:
    """Return a table: who was first to each ρ, and what the default took, relative to that."""
    lines = []
    for data in calls["data"].unique():
        found = (outcome(calls, data, level) for level in LEVELS)
        lines.append([data, *(cell for each in found for cell in _first(each))])
    head = ["data set", *(text for level in LEVELS for text in (f"first to ρ = {level:g}", f"`{DEFAULT}` / it"))]
    return table(head, lines)


def _first(found: Outcome) -> tuple[str, str]:
    if not found.decided:
        return "not decided", ""
    if found.contest is None:
        return "nobody", ""
    contest = found.contest
    return f"{contest.best}, {_seconds(contest.taken[contest.best])}", _ratio(contest.ratio(DEFAULT))


def ratios(calls: pd.DataFrame, level: float) -> str:
    """Return a table: what each solver took to ρ, relative to the first, those that got there most often at the top."""
    data = [name for name in calls["data"].unique() if outcome(calls, name, level).decided]
    held = [outcome(calls, name, level).contest for name in data]

    def shown(solver: str) -> list[float | None]:
        return [None if one is None or solver not in one.taken else one.ratio(solver) for one in held]

    def rank(solver: str) -> tuple[float, float]:
        reached = [ratio for ratio in shown(solver) if ratio is not None and ratio < np.inf]
        return -len(reached), float(np.median(reached)) if reached else np.inf

    solvers = sorted(calls["solver"].unique(), key=rank)
    return table(["solver", *data], [[f"`{solver}`", *(_ratio(one) for one in shown(solver))] for solver in solvers])


def _seconds(taken: float) -> str:
    return f"{short(1000.0 * taken)} ms" if taken < 1.0 else f"{short(taken)} s"


def _ratio(ratio: float | None) -> str:
    """Write a ratio to the first; nothing where a solver did not take a problem."""
    if ratio is None:
        return ""
    if ratio == np.inf:
        return "–"
    return f"{ratio:.1f}" if ratio < 10.0 else short(float(f"{ratio:.2g}"))


def draw(calls: pd.DataFrame) -> Figure:
    """Return curves of the least value so far against seconds, one panel per data set."""
    names = list(calls["data"].unique())
    columns = min(4, len(names) + 1)
    figure = Figure(figsize=(2.9 * columns, 2.6 * -(-(len(names) + 1) // columns)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(-(-(len(names) + 1) // columns), columns, squeeze=False).ravel()
    handles: dict[str, object] = {}
    for panel, name in zip(panels, names, strict=False):
        own = calls[(calls["data"] == name) & (calls["value"] < 0.999)]
        for solver, curve in sorted(own.groupby("solver"), key=lambda pair: pair[0] in COLOURS):
            seconds, best = _best_so_far(curve)
            colour = COLOURS.get(solver)
            style = {"color": colour or "0.8", "linewidth": 1.6 if colour else 0.7, "marker": "o", "markersize": 2.5}
            (handle,) = panel.step(seconds, best, where="post", **style)
            handles[solver if colour else "other methods"] = handle
        panel.set(title=name, xscale="log", yscale="log", ylim=(LEAST / 3.0, 2.0))
        panel.axhspan(LEAST / 3.0, max(own["uncertainty"].max(), LEAST / 3.0), color="0.9", linewidth=0)
        panel.grid(alpha=0.25)
    for panel in panels[len(names) :]:
        panel.axis("off")
    order = [name for name in (*COLOURS, "other methods") if name in handles]
    panels[len(names)].legend([handles[name] for name in order], order, loc="center", frameon=False)
    figure.supxlabel("processor seconds of a call")
    figure.supylabel("relative error")
    return figure


def _best_so_far(curve: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the seconds at which a curve falls, and its values there."""
    ordered = curve.sort_values("seconds")
    least = np.minimum.accumulate(ordered["value"].to_numpy())
    falls = np.append(True, np.diff(least) < 0.0)
    return ordered["seconds"].to_numpy()[falls], np.maximum(least[falls], LEAST)


def missing(calls: pd.DataFrame) -> set[str]:
    """Return the solvers of this folder that did no run: benchopt goes on if a file cannot be imported."""
    return {file.stem for file in (Path(__file__).parent / "solvers").glob("*.py")} - OPTIONAL - set(calls["file"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="what benchopt wrote")
    parser.add_argument("--page", type=Path, help="a page to put the tables into")
    parser.add_argument("--figure", type=Path, help="where to draw the curves")
    parser.add_argument("--complete", action="store_true", help="fail if a solver did no run")
    asked = parser.parse_args()
    calls = load(asked.files)
    text = f"{winners(calls)}\n\nAll solvers at ρ = {MIDDLE:g}:\n\n{ratios(calls, MIDDLE)}"
    print(text)
    if asked.page:
        page = asked.page.read_text(encoding="utf-8")
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        asked.page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    if asked.figure:
        draw(calls).savefig(asked.figure, dpi=90)
    if asked.complete and missing(calls):
        raise SystemExit(f"no run of {', '.join(sorted(missing(calls)))}")


if __name__ == "__main__":
    main()
