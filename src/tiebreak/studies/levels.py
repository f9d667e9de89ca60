"""Near ties on the paper's regression: every method that takes them, at equal samples and at equal time.

Of all linear models whose training error exceeds the least one by no more than ε, find the one of least validation error.
The active set brackets f*(ε), the least f at this level, so that gaps and bounds of all methods can be held against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

import tiebreak
from tiebreak.studies import regression
from tiebreak.studies.claims import Claim, Judgement, fewer, together, within
from tiebreak.studies.comparing import Measure, Traces, combine, compare, parameters
from tiebreak.studies.drawing import Figure, Line, Panel, band_of
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Source, Study, Table, Task
from tiebreak.studies.tracing import trace

SHARES = (1e-2, 1e-3, 1e-4)  # ε, in units of g(0)
SHOWN = 1e-3  # the one whose runs are drawn
QUERIES, QUICK_QUERIES = 1_000_000, 60_000
SECONDS, QUICK_SECONDS = 1.0, 0.1
EXACT = "active-set"
CUTTING = {"SBCGI": "sbcgi", "SBCGF": "sbcgf", "CG-BiO": "cg-bio"}
FIRST_ORDER = {
    **CUTTING,
    "FC-BiO": "fc-bio",
    "switching gradient": "switching-gradient",
    "DBGD": "dbgd",
    "DBGD-sto": "dbgd-sto",
    "PB-APG": "pb-apg",
    "PAVR": "pavr",
}
METHODS = {EXACT: EXACT, **FIRST_ORDER}
ACCURATE = 1e-6  # gap of f, in units of f(0), that the active set is to prove
MEASURES = (
    Measure("gap", "(f(x) − f*(ε)) / f(0), signed", "symlog"),
    Measure("proven", "proven bound on it"),
    Measure("excess", "(g(x) − g*) / ε"),
    Measure("error", "test error / that of zero"),
)


def run(
    seed: int, method: str, share: float, max_queries: int | None, time_limit: float | None, source: dict[str, Any]
) -> Outcome:
    """Run a method with its own defaults on a near tie; the exact one for a share of 0."""
    parts = _parts(seed, Source(**source))
    train, validation, test = (tiebreak.LeastSquares(*part) for part in (parts.train, parts.validation, parts.test))
    named = {"upper": validation, "lower": train, "test": test}
    zero = np.zeros(train.dimension)
    at_zero = {f"{name}_at_zero": float(level.value(zero)) for name, level in named.items()}
    epsilon = share * at_zero["lower_at_zero"]
    problem = tiebreak.Problem(validation, train, tiebreak.L1Ball(regression.RADIUS), tolerance=epsilon)
    budget = {"max_queries": max_queries, "time_limit": time_limit}
    outcome = trace(problem, method, measures={"test": test.value}, seed=seed, **budget)
    return Outcome(outcome.arrays, {**outcome.record, **at_zero, "epsilon": epsilon})


def task(plan: Plan, seed: int, method: str, share: float, seconds: float | None = None) -> Task:
    """Return the run of a method at a level, with a budget of samples or of seconds."""
    queries = (QUICK_QUERIES if plan.quick else QUERIES) if seconds is None else None
    budget = {"max_queries": queries, "time_limit": seconds}
    return Task(_name(method, share, seconds), seed, run,
                {"method": method, "share": share, **budget, "source": _source(plan)._asdict()})  # fmt: skip


class NearTies(Study):
    """What near ties cost and bring."""

    name = "near-ties"
    title = "Near ties"
    reference = "the regression of Cao et al. (2023), at three tolerances"
    sources = regression.Regression.sources

    def tasks(self, plan: Plan) -> list[Task]:
        limits, seeds = (None, _seconds(plan)), range(plan.seeds)
        return [task(plan, seed, EXACT, 0.0) for seed in seeds] + [
            task(plan, seed, method, share, limit)
            for seed in seeds
            for share in SHARES
            for method in METHODS.values()
            for limit in limits
        ]

    def section(self, plan: Plan, runs: Runs) -> Section:
        limit = _seconds(plan)
        budgets = {"samples": None, "time": limit}
        # Both budgets together, so that all gaps of a seed are measured from the same floor.
        found = {share: with_gaps(runs, share, list(budgets.values())) for share in SHARES}
        by_budget = {
            name: {share: {label: found[share][label, seconds] for label in METHODS} for share in SHARES}
            for name, seconds in budgets.items()
        }
        exact = {seed: _relative(outcome, "test") for seed, outcome in runs.of(_name(EXACT, 0.0)).items()}
        seeds = f"Mean and range over {plan.seeds} seeds."
        axes = {"samples": "queries", "time": "seconds"}
        figures, tables = [], []
        for name, levels in by_budget.items():
            figures += [
                overview(f"levels-{name}", f"At the end of equal {name}. {seeds}", levels, exact),
                compare(f"runs-{name}", f"ε = {SHOWN:g} g(0), equal {name}. {seeds}", levels[SHOWN], MEASURES, axes[name]),
            ]
            tables += [_table(f"ε = {share:g} g(0), equal {name}", levels[share]) for share in SHARES]
        return Section(
            "Of all linear models in an ℓ1 ball whose training error g exceeds the least one by no more than ε, find the "
            "one with the least validation error f. Its f is f*(ε); for ε = 0 it is the exact tie.\n\nGaps are measured "
            "from the largest floor of f*(ε) that a run proves, so that none is shown too small, and g* is the largest "
            "floor of the least training error. The proven bound is what a run knows of its own gap, by itself. A point is "
            "within if g(x) ≤ g* + ε is proven, and beyond if the contrary is: then f(x) < f*(ε) is possible.",
            figures,
            [*tables, _floors(found)],
            claims(by_budget["samples"], exact),
            {
                "data": f"{_source(plan)}; columns divided by their maximum; rows and target chosen by the seed",
                "tolerances": ", ".join(f"{share:g} g(0)" for share in SHARES),
                "equal samples": f"{QUICK_QUERIES if plan.quick else QUERIES:,} of both levels",
                "equal time": f"{limit:g} s by the wall, while other runs go on beside",
                "set": f"ℓ1 ball of radius {regression.RADIUS:g}",
                **parameters(by_budget["samples"][SHOWN]),
            },
        )


def with_gaps(runs: Runs, share: float, limits: list[float | None]) -> dict[tuple[str, float | None], dict[int, Outcome]]:
    """Return the runs at a level, by label and time limit, with a column for each of the measures."""
    found = {(label, limit): runs.of(_name(method, share, limit)) for label, method in METHODS.items() for limit in limits}
    records: dict[int, list[dict[str, Any]]] = {}
    for each in found.values():
        for seed, outcome in each.items():
            records.setdefault(seed, []).append(outcome.record)

    def measured(outcome: Outcome, others: list[dict[str, Any]]) -> Outcome:
        record, arrays = outcome.record, outcome.arrays
        floors = {level: max(other[f"{level}_floor"] for other in others) for level in ("upper", "lower")}
        columns = {
            "gap": (arrays["upper"] - floors["upper"]) / record["upper_at_zero"],
            "proven": arrays["upper_gap_bound"] / record["upper_at_zero"],
            "excess": (arrays["lower"] - floors["lower"]) / record["epsilon"],
            "error": arrays["test"] / record["test_at_zero"],
        }
        kept = {"best_floor": floors["upper"] / record["upper_at_zero"]}
        return Outcome({**arrays, **columns}, {**record, **kept})

    return {key: {seed: measured(o, records[seed]) for seed, o in each.items()} for key, each in found.items()}


def overview(name: str, caption: str, levels: Mapping[float, Traces], exact: Mapping[int, float]) -> Figure:
    """Return a figure of what methods reach, prove and keep, against ε."""
    ends = np.array([min(levels), max(levels)])
    constant = [(ends, np.full(2, value)) for value in exact.values()]
    beside = {
        "excess": (" (dashed: allowed)", Line("", ends, np.ones(2), style="--")),
        "error": (" (dashed: exact tie)", band_of("", constant, "--")),
    }
    panels = []
    for column, title, scale, _ in MEASURES:
        lines = [band_of(label, _along(levels, label, column)) for label in METHODS]
        words, line = beside.get(column, ("", None))
        shown = lines if line is None else [*lines, line]
        panels.append(Panel(title + words, shown, "ε / g(0)", "log", scale))
    return Figure(name, caption, panels)


def claims(levels: Mapping[float, Traces], exact: Mapping[int, float]) -> list[Claim]:
    """Judge what exact answers and near ties are said to bring, at equal samples."""
    ends = {share: {label: _ends(each, "proven") for label, each in traces.items()} for share, traces in levels.items()}
    kept = {share: {label: _within(each) for label, each in traces.items()} for share, traces in levels.items()}
    others = {share: combine([ends[share][label] for label in FIRST_ORDER], min) for share in SHARES}
    where = "not in a paper"
    return [
        Claim(f"The active set proves a gap of at most {ACCURATE:g} f(0), at each tolerance", where,
              *_at_each(lambda share: within(ends[share][EXACT], -math.inf, ACCURATE))),
        Claim("Its answers are proven to be within the tolerance, at each", where,
              *_at_each(lambda share: within(kept[share][EXACT], 1.0, 1.0))),
        Claim("Its bound is below a thousandth of the best that a first-order method proves of its own, at each", where,
              *_at_each(lambda share: fewer(ends[share][EXACT], others[share], 1e-3))),
        Claim("SBCGI, SBCGF and CG-BiO end within ε = 1e-3 g(0), proven", where,
              *together(**{label: within(kept[SHOWN][label], 1.0, 1.0) for label in CUTTING})),
        Claim("The near tie at ε = 1e-3 g(0) predicts better than the exact tie: its test error is smaller", where,
              *fewer(_ends(levels[SHOWN][EXACT], "error"), exact), at_any_budget=True),
    ]  # fmt: skip


def _at_each(judge: Any) -> Judgement:
    return together(**{f"ε = {share:g} g(0)": judge(share) for share in SHARES})


def _table(title: str, traces: Traces) -> Table:
    """Return what the methods reach and prove: medians and ranges over seeds, and how many keep the tolerance."""
    head = ["method", *(measure.title for measure in MEASURES), "within", "beyond", "samples", "seconds", "ended"]
    rows: list[list[Any]] = []
    for label, outcomes in traces.items():
        if not outcomes:
            continue
        records = [outcome.record for outcome in outcomes.values()]
        cells = [spread(list(_ends(outcomes, measure.column).values())) for measure in MEASURES]
        counts = [f"{sum(record['within'] is kept for record in records)} of {len(records)}" for kept in (True, False)]
        samples, seconds = (float(np.median([record[name] for record in records])) for name in ("queries", "seconds"))
        ended = sorted({record["status"].lower().replace("_", " ") for record in records})
        rows.append([label, *cells, *counts, f"{samples:,.0f}", seconds, ", ".join(ended)])
    return Table(f"{title}: median (range) over seeds", head, rows)


def _floors(found: Mapping[float, Mapping[tuple[str, float | None], Mapping[int, Outcome]]]) -> Table:
    """Return between what f*(ε) is proven to lie, seed by seed."""
    rows = []
    for share, each in found.items():
        for seed, outcome in sorted(each[EXACT, None].items()):
            record, above = outcome.record, outcome.record["upper"] / outcome.record["upper_at_zero"]
            ceiling = f"{above:.8g}" if record["within"] else "–"
            rows.append(
                [f"{share:g}", seed, f"{record['best_floor']:.8g}", ceiling, record["iterations"], record["seconds"]]
            )
    head = ["ε / g(0)", "seed", "f*(ε) / f(0) ≥", "f*(ε) / f(0) ≤", "passes", "seconds"]
    return Table("What is proven of f*(ε): floor, and f of the active set's answer where it is within", head, rows)


def spread(values: list[float]) -> str:
    """Write a median with the range."""
    if len(values) == 1:
        return f"{values[0]:.2g}"
    return f"{np.median(values):.2g} ({min(values):.2g} … {max(values):.2g})"


def _along(levels: Mapping[float, Traces], label: str, column: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the last values of a column against ε, a curve per seed."""
    seeds = sorted(set.intersection(*(set(traces[label]) for traces in levels.values())))
    shares = sorted(levels)
    ends = {share: _ends(levels[share][label], column) for share in shares}
    return [(np.array(shares), np.array([ends[share][seed] for share in shares])) for seed in seeds]


def _ends(outcomes: Mapping[int, Outcome], column: str) -> dict[int, float]:
    return {seed: float(outcome.arrays[column][-1]) for seed, outcome in outcomes.items()}


def _within(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    return {seed: float(outcome.record["within"] is True) for seed, outcome in outcomes.items()}


def _relative(outcome: Outcome, name: str) -> float:
    return float(outcome.record[name] / outcome.record[f"{name}_at_zero"])


def _name(method: str, share: float, seconds: float | None = None) -> str:
    level = "exact" if share == 0.0 else f"{share:g}"
    return f"near-ties/{level}-{method}" + ("" if seconds is None else f"-{seconds:g}s")


@lru_cache(maxsize=1)
def _parts(seed: int, source: Source) -> tiebreak.data.Split:
    """Return the thirds of the data, which many runs in a row share."""
    return regression.split(seed, source._asdict())


def _seconds(plan: Plan) -> float:
    return QUICK_SECONDS if plan.quick else SECONDS


def _source(plan: Plan) -> Source:
    return plan.source(*regression.Regression.sources)
