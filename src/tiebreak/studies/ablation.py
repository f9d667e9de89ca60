"""Is the cut needed, and its slack? SBCGI and SBCGF with a cut that is not moved outwards (-M), and without one (-FW).

Cao et al. (2023), appendix, "Importance of the right cutting plane", Figure 7, on the dictionary problem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tiebreak.studies import dictionary
from tiebreak.studies.claims import Claim, fewer, together, within
from tiebreak.studies.comparing import Traces, at, compare, table
from tiebreak.studies.dictionary import MEASURES
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Study, Task

METHODS = {
    "SBCGI": "sbcgi",
    "SBCGF": "sbcgf",
    "SBCGI-M": "sbcgi-m",
    "SBCGF-M": "sbcgf-m",
    "STORM-FW": "storm-fw",
    "SPIDER-FW": "spider-fw",
}
BEGINNING = 0.1  # share of the budget that is not looked at where a run is called unstable


class Ablation(Study):
    """Figure 7."""

    name = "ablation"
    title = "Importance of the right cut"
    reference = "Cao et al. (2023), Figure 7"

    def tasks(self, plan: Plan) -> list[Task]:
        seeds = range(plan.seeds)
        return [dictionary.start_task(plan, s) for s in seeds] + [
            dictionary.task(plan, s, m) for s in seeds for m in METHODS.values()
        ]

    def section(self, plan: Plan, runs: Runs) -> Section:
        traces = {label: runs.of(f"dictionary/{name}") for label, name in METHODS.items()}
        return Section(
            "The dictionary problem again, with what makes the methods taken away: -M is the cut without its slack K_t "
            "(where it is empty, the point that violates it least is taken), STORM-FW and SPIDER-FW have no cut at all.",
            [compare("figure-7", f"Figure 7. Mean and range over {plan.seeds} seeds.", traces, MEASURES)],
            [table("At the end of the budget: median (range) over seeds", traces, MEASURES)],
            claims(traces),
            dictionary.settings(plan, traces),
        )


def claims(traces: Traces) -> list[Claim]:
    """Judge what the paper says of Figure 7."""
    lower, _, rate, _ = ({label: at(each, m.column) for label, each in traces.items()} for m in MEASURES)
    empty = {label: {s: o.record["empty_cuts"] for s, o in traces[label].items()} for label in ("SBCGI-M", "SBCGF-M")}
    rises = {label: roughness(traces[label]) for label in METHODS}
    pairs = {"SBCGI": "SBCGI-M", "SBCGF": "SBCGF-M"}
    return [
        Claim("Without slack the cut becomes empty at some point", "Appendix",
              *together(**{label: within(values, 1, math.inf) for label, values in empty.items()})),
        Claim("SBCGI-M and SBCGF-M favour the lower level: their lower gap is smaller than with slack", "Fig. 7(a)",
              *together(**{other: fewer(lower[other], lower[label]) for label, other in pairs.items()})),
        Claim("SBCGI-M and SBCGF-M are extremely unstable at the upper level (f rises ten times as much as with slack)",
              "Fig. 7(b)", *together(**{other: fewer(rises[label], rises[other], 0.1) for label, other in pairs.items()})),
        Claim("Without a cut the lower gap is terrible: near 1 (0.3 to 3)", "Fig. 7(a); the text has no number",
              *together(**{label: within(lower[label], 0.3, 3.0) for label in ("STORM-FW", "SPIDER-FW")})),
        Claim("Without a cut the recovery rate is terrible: about 0.3 (0.2 to 0.4)", "Fig. 7(c); the text has no number",
              *together(**{label: within(rate[label], 0.2, 0.4) for label in ("STORM-FW", "SPIDER-FW")})),
    ]  # fmt: skip


def roughness(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    """Return by seed how much f rises in all, in units of its median, after the beginning of a run."""
    found = {}
    for seed, outcome in outcomes.items():
        queries, f = outcome.arrays["queries"], outcome.arrays["upper"]
        f = f[queries >= BEGINNING * queries[-1]]
        found[seed] = float(np.maximum(np.diff(f), 0.0).sum() / np.median(f))
    return found
