"""Methods side by side: what the studies that compare traced runs of several methods share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak.studies.drawing import Figure, Panel, band
from tiebreak.studies.study import Outcome, Table

Traces = Mapping[str, Mapping[int, Outcome]]  # outcomes by label and seed

AXES = {"queries": "samples drawn (both levels)", "seconds": "seconds"}


class Measure(NamedTuple):
    """A column of traces, and how it is shown."""

    column: str
    title: str
    scale: str = "log"
    factor: float = 1.0


def compare(name: str, caption: str, traces: Traces, measures: Sequence[Measure], axis: str = "queries") -> Figure:
    """Return a figure with one panel per measure and one line per method: mean and range over seeds."""
    panels = [
        Panel(
            measure.title,
            [band(label, traces[label], axis, measure.column, measure.factor) for label in traces if traces[label]],
            AXES[axis],
            yscale=measure.scale,
        )
        for measure in measures
    ]
    return Figure(name, caption, panels)


def table(title: str, traces: Traces, measures: Sequence[Measure]) -> Table:
    """Return a table of the last values: medians over seeds, with the range, and what the runs cost."""
    head = ["method", *(measure.title for measure in measures), "iterations", "empty cuts", "seconds", "ended"]
    rows: list[list[Any]] = []
    for label, outcomes in traces.items():
        if not outcomes:
            continue
        cells = [_spread(np.array(list(at(outcomes, m.column).values())) * m.factor) for m in measures]
        records = [outcome.record for outcome in outcomes.values()]
        counts = [int(np.median([record[entry] for record in records])) for entry in ("iterations", "empty_cuts")]
        seconds = float(np.median([record["seconds"] for record in records]))
        ends = sorted({record["status"].lower().replace("_", " ") for record in records})
        rows.append([label, *cells, *(f"{count:,}" for count in counts), seconds, ", ".join(ends)])
    return Table(title, head, rows)


def parameters(traces: Traces) -> dict[str, str]:
    """Return the methods with all their parameters."""
    return {label: next(iter(each.values())).record["parameters"] for label, each in traces.items() if each}


def at(outcomes: Mapping[int, Outcome], column: str, share: float = 1.0, axis: str = "queries") -> dict[int, float]:
    """Return a column by seed, at the end of the runs or where a share of what they took was spent."""
    found = {}
    for seed, outcome in outcomes.items():
        x, y = outcome.arrays[axis], outcome.arrays[column]
        found[seed] = float(y[-1]) if share == 1.0 else float(np.interp(share * x[-1], x, y))
    return found


def at_first_point(outcomes: Mapping[int, Outcome], column: str) -> dict[int, float]:
    """Return a column by seed at the end of the search for a first point."""
    return {seed: float(o.arrays[column][max(int((o.arrays["phase"] == 0).sum()) - 1, 0)]) for seed, o in outcomes.items()}


def combine(outcomes: Sequence[Mapping[int, float]], how: Any) -> dict[int, float]:
    """Return one value by seed from several: ``combine([a, b], max)``; seeds that one lacks are left out."""
    seeds = set.intersection(*(set(values) for values in outcomes)) if outcomes else set()
    return {seed: float(how(values[seed] for values in outcomes)) for seed in sorted(seeds)}


def _spread(values: np.ndarray) -> str:
    if values.size == 1:
        return f"{values[0]:.3g}"
    return f"{np.median(values):.3g} ({values.min():.2g} … {values.max():.2g})"
