"""How methods stand on a fixed problem: where each ends, and when it was first there.

A point is (ε, ε)-optimal if g − g* ≤ ε (g(c) − g*) and |f − f*| ≤ ε max(|f(c) − f*|, |f*|), c the middle of the set. Gaps
are measured in these units. A reference is known to some accuracy only, and nothing below it is told apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tiebreak.studies.comparing import Measure, Traces, compare
from tiebreak.studies.drawing import Figure
from tiebreak.studies.study import Outcome, Table

LEVELS = (1e-2, 1e-3, 1e-4)  # ε
CERTAIN = 0.5  # share of ε that a reference may be off for ε to be decided by it
SHORTEST = 0.01  # seconds that count as none: shorter times count as this
SHOWN = 8  # methods in a figure
OURS, CVXPY = "minimize(problem)", "CVXPY"
MEASURES = (
    Measure("lower_gap", "g − g*, relative"),
    Measure("upper_gap", "f − f*, relative, signed", "symlog"),
    Measure("distance", "‖x − x*‖ / ‖x*‖"),
)


class Standing:
    """The runs on one problem.

    Parameters
    ----------
    name, title : str
        Of the problem.
    reference : dict
        ``lower`` and ``upper``, what is taken for g* and f*, with ``lower_unit`` and ``upper_unit``, in which gaps are
        measured; ``lower_floor`` and ``upper_error``, how well they are known; and ``norm``, that of x*.
    runs : dict of dict of Outcome
        Traces by label and seed, with the columns ``seconds``, ``lower``, ``upper`` and ``distance``.
    """

    def __init__(self, name: str, title: str, reference: Mapping[str, Any], runs: Traces) -> None:
        self.name, self.title, self.reference = name, title, reference
        self.runs = {label: {s: self._with_gaps(o) for s, o in each.items()} for label, each in runs.items() if each}

    def _with_gaps(self, outcome: Outcome) -> Outcome:
        """Add both gaps; of what cannot be negative, nothing below the accuracy of the reference is kept."""
        best, arrays, known = self.reference, outcome.arrays, self.accuracy
        lower, upper = ((arrays[name] - best[name]) / best[f"{name}_unit"] for name in ("lower", "upper"))
        sizes = {"lower_gap": lower, "distance": arrays["distance"]}
        clipped = {name: np.maximum(values, known[name]) for name, values in sizes.items()}
        return Outcome({**arrays, "upper_gap": upper, **clipped}, outcome.record)

    @property
    def accuracy(self) -> dict[str, float]:
        """How well the reference is known, by measure: f is strongly convex, so that its error bounds that of x*."""
        best = self.reference
        return {
            "lower_gap": (best["lower"] - best["lower_floor"]) / best["lower_unit"],
            "upper_gap": best["upper_error"] / best["upper_unit"],
            "distance": math.sqrt(2.0 * best["upper_error"]) / best["norm"],
        }

    @property
    def levels(self) -> list[float]:
        """The ε that the reference decides."""
        worst = max(self.accuracy["lower_gap"], self.accuracy["upper_gap"])
        return [level for level in LEVELS if worst <= CERTAIN * level]

    def seconds(self, label: str, level: float) -> float:
        """Return the median time at which a method was first (ε, ε)-optimal; infinite if it mostly was not."""
        times = []
        for outcome in self.runs[label].values():
            lower, upper = outcome.arrays["lower_gap"], np.abs(outcome.arrays["upper_gap"])
            there = (lower <= level) & (upper <= level)
            times.append(max(float(outcome.arrays["seconds"][there.argmax()]), SHORTEST) if there.any() else math.inf)
        return float(np.median(times))

    def fastest(self, level: float) -> tuple[str, float]:
        """Return the fastest method but the default, and its time; infinite if none was there."""
        times = [(self.seconds(label, level), label) for label in self.runs if label != OURS]
        best, label = min(times, default=(math.inf, ""))
        return (label, best) if math.isfinite(best) else ("none", math.inf)

    def end(self, label: str, column: str) -> float:
        """Return the median of a column at the end of the runs of a method."""
        return float(np.median([outcome.arrays[column][-1] for outcome in self.runs[label].values()]))

    def error(self, label: str) -> float:
        """Return the larger of both gaps at the end, or what the reference is known to."""
        gaps = [max(abs(self.end(label, name)), self.accuracy[name]) for name in ("lower_gap", "upper_gap")]
        return max(gaps)

    @property
    def ranked(self) -> list[str]:
        """The methods, those with the smallest error at the end first."""
        return sorted(self.runs, key=lambda label: (self.error(label), label != OURS, self.end(label, "seconds")))

    def figure(self) -> Figure:
        """Return the gaps and the distance against seconds, for the methods that end nearest."""
        nearest = [label for label in self.ranked if label not in (OURS, CVXPY)][: SHOWN - 1]
        shown = [label for label in (OURS, *nearest) if label in self.runs]
        kept = {label: {seed: _after_start(o) for seed, o in self.runs[label].items()} for label in shown}
        caption = f"{self.title}: {OURS} and the {len(nearest)} methods that end nearest, by the clock. Means over seeds."
        figure = compare(self.name, caption, kept, MEASURES, "seconds")
        return replace(figure, panels=[replace(panel, xscale="log") for panel in figure.panels])

    def table(self) -> Table:
        """Return where each method ends, and how long it takes to each ε."""
        head = [
            "method",
            *(measure.title for measure in MEASURES),
            *(f"s to ε = {level:g}" for level in LEVELS),
            "s",
            "ended",
        ]
        title = f"{self.title}: where methods end, and seconds to (ε, ε); – not reached, ? the reference does not decide"
        return Table(title, head, [self._row(label) for label in self.ranked])

    def _row(self, label: str) -> list[Any]:
        outcomes, known = self.runs[label].values(), self.accuracy
        ends = {measure.column: self.end(label, measure.column) for measure in MEASURES}
        return [
            label,
            *(f"{value:.1e}" if abs(value) > known[name] else f"≲ {known[name]:.0e}" for name, value in ends.items()),
            *(time_text(self.seconds(label, level)) if level in self.levels else "?" for level in LEVELS),
            time_text(float(np.median([outcome.record["seconds"] for outcome in outcomes]))),
            ", ".join(sorted({outcome.record["status"].lower().replace("_", " ") for outcome in outcomes})),
        ]


def _after_start(outcome: Outcome) -> Outcome:
    """Leave out the records at second 0, which have no place on a logarithmic axis."""
    later = outcome.arrays["seconds"] > 0.0
    columns = ("seconds", *(measure.column for measure in MEASURES))
    return Outcome({name: outcome.arrays[name][later] for name in columns}, outcome.record)


def times_table(found: Mapping[str, Standing]) -> Table:
    """Return how the default compares with the fastest method, and with CVXPY, at each ε of each problem."""
    rows = []
    for standing in found.values():
        for level in standing.levels if OURS in standing.runs else ():
            ours, (label, best) = standing.seconds(OURS, level), standing.fastest(level)
            cvxpy = standing.seconds(CVXPY, level) if CVXPY in standing.runs else None
            row = [standing.title, f"{level:g}", time_text(ours), label, time_text(best), ratio_text(ours, best)]
            rows.append([*row, *(("", "") if cvxpy is None else (time_text(cvxpy), ratio_text(cvxpy, ours)))])
    head = ["problem", "ε", f"{OURS}, s", "fastest other", "its s", "ours / fastest", "CVXPY, s", "CVXPY / ours"]
    return Table("Seconds to (ε, ε), where the reference decides; – not reached", head, rows)


def references_table(found: Mapping[str, Standing]) -> Table:
    """Return what is proven of the optimal values."""
    head = ["problem", "g* ≥", "g* ≤", "f* ≥", "f*, used", "f* ≤", "seconds"]
    rows = []
    for standing in found.values():
        r = standing.reference
        above = f"{r['ceiling']:.10g}" if math.isfinite(r["ceiling"]) else "–"
        lowers, uppers = (f"{r[name]:.15g}" for name in ("lower_floor", "lower")), (r["upper_floor"], r["upper"])
        rows.append([standing.title, *lowers, *(f"{value:.10g}" for value in uppers), above, r["seconds"]])
    return Table(
        "What is proven of g* and f*; above f*, the known solution of an integral equation, up to rounding", head, rows
    )


def time_text(seconds: float) -> str:
    """Write seconds, or that they did not suffice."""
    return f"{seconds:.2g}" if math.isfinite(seconds) else "–"


def ratio_text(first: float, second: float) -> str:
    """Write how many times as long the first takes as the second.

    Examples
    --------
    >>> [ratio_text(*pair) for pair in ((3.0, 2.0), (999.6, 1.0), (math.inf, 2.0), (3.0, math.inf), (math.inf, math.inf))]
    ['1.5', '1,000', '∞', '0', '–']
    """
    if math.isinf(second):
        return "–" if math.isinf(first) else "0"
    if math.isinf(first):
        return "∞"
    return f"{first / second:,.0f}" if first >= 10.0 * second else f"{first / second:.2g}"
