"""How fast the gaps fall: the rates of Theorems 4.4 to 4.7, with the schedules of theory.

Cao et al. (2023), section 4 and Table 1, on a small problem of which f*, g* and all minimisers of g are known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

import tiebreak
from tiebreak.methods.base import Budget
from tiebreak.studies.claims import Claim, Judgement, Verdict, fewer, together, within
from tiebreak.studies.comparing import Measure, compare
from tiebreak.studies.drawing import Figure, Line, Panel, band_of
from tiebreak.studies.known import DIMENSION, RADIUS, Known, known
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Study, Table, Task
from tiebreak.studies.tracing import solved, trace

# Share of the slack of theory: a round number, chosen to be just large enough in the study of coverage, on the same seeds.
# What it keeps there is therefore shown, and is no claim.
SHARE = 1 / 3000
HORIZONS, QUICK_HORIZONS = tuple(1000 * 4**k for k in range(5)), (250, 1000, 4000)
REPEATS, QUICK_REPEATS = 3, 1  # runs whose gaps are averaged, with new samples and the same data
QUERIES, QUICK_QUERIES = 2_000_000, 20_000
TOLERANCE = 0.05  # error of a slope that is allowed
CONFIDENCE = 0.95
FEWEST = 5  # seeds that decide anything
EPSILONS = tuple(2.0**-k for k in range(1, 9))  # shares of the first upper gap that are to be reached
DELTA = tiebreak.Theory().failure_probability
METHODS = {"sbcgi": tiebreak.SBCGI, "sbcgf": tiebreak.SBCGF}


class Setting(NamedTuple):
    """One row of the paper's Table 1."""

    label: str
    method: str
    convex: bool
    theorem: str
    rate: float  # the exponent of T, without logarithms

    def bound(self, horizon: np.ndarray) -> np.ndarray:
        """Return how the theorem's bound falls with T, up to constants."""
        if self.method == "sbcgi":
            return (horizon + 1.0) ** self.rate * np.sqrt(np.log(6.0 * horizon * DIMENSION / DELTA))
        return horizon**self.rate * np.sqrt(np.log(12.0 * horizon / DELTA)) * (np.log(horizon) if self.convex else 1.0)


SETTINGS = (
    Setting("SBCGI, f convex", "sbcgi", True, "Theorem 4.4", -1 / 2),
    Setting("SBCGI, f not convex", "sbcgi", False, "Theorem 4.5", -1 / 3),
    Setting("SBCGF, f convex", "sbcgf", True, "Theorem 4.6", -1.0),
    Setting("SBCGF, f not convex", "sbcgf", False, "Theorem 4.7", -1 / 2),
)


def with_share(method: str, problem: tiebreak.Problem, horizon: int, share: float) -> tiebreak.Method:
    """Return a method with the schedules of theory for a horizon, and a share of their slack."""
    configured: Any = METHODS[method](preset="theory").for_problem(problem, Budget(iterations=horizon))
    return replace(configured, slack=shrunk(configured.slack, share))


def shrunk(slack: Any, share: float) -> Any:
    """Return a share of a slack of theory.

    Examples
    --------
    >>> from tiebreak.schedules import storm_slack
    >>> full = storm_slack(1.0, 2.0, 1.0, 10, 0.1, 1000.0)
    >>> round(float(shrunk(full, 0.25)(np.array(7)) / full(np.array(7))), 12)
    0.25
    """
    scales = ("scale",) if hasattr(slack, "scale") else ("value", "gradient")
    return replace(slack, **{name: share * getattr(slack, name) for name in scales})


def run(seed: int, method: str, convex: bool, share: float, horizons: list[int], repeats: int) -> Outcome:
    """Run a method some times for each horizon, from a minimiser of g; return the mean gaps of its answers."""
    case = known(seed, convex)
    rows, seconds = [], 0.0
    for horizon in horizons:
        configured = with_share(method, case.problem, horizon, share)
        settings: dict[str, Any] = {"x0": case.x0, "max_queries": None, "max_iterations": horizon}
        results = [solved(case.problem, configured, seed=repeats * seed + k, **settings) for k in range(repeats)]
        gaps = [np.mean([gap(result.last) for result in results]) for gap in (case.lower_gap, case.upper_gap)]
        slack = float(configured.slack(np.array([horizon]))[0])  # type: ignore[attr-defined]
        rows.append([horizon, *gaps, slack, results[0].queries.total])
        seconds += sum(result.seconds for result in results)
    columns = ("horizon", "lower_gap", "upper_gap", "slack", "queries")
    arrays = dict(zip(columns, np.array(rows, dtype=float).T, strict=True))
    last = {f"last_{name}": float(values[-1]) for name, values in arrays.items()}
    return Outcome(arrays, {"method": method, "seconds": seconds, **last, **known_of(case)})


def known_of(case: Known) -> dict[str, float]:
    """Return the upper gap at the first point, and how large the lower gap can become."""
    corners = RADIUS * np.eye(DIMENSION)  # where a convex function is largest
    largest = max(case.lower_gap(sign * corner) for corner in corners for sign in (1.0, -1.0))
    return {"first_upper_gap": case.upper_gap(case.x0), "largest_lower_gap": largest}


def race(seed: int, method: str, max_queries: int) -> Outcome:
    """Run SBCGI or aR-IP-SeG on the convex problem, from the same minimiser of g."""
    case = known(seed)
    f, g = case.problem[:2]
    if method == "sbcgi":
        # Its horizon is what the samples allow.
        configured = with_share("sbcgi", case.problem, max_queries // 2, SHARE)
    else:
        configured = tiebreak.ARIPSeG(
            step=tiebreak.power(1.0 / (f.lipschitz + g.lipschitz), 0.75), penalty=tiebreak.power(1.0, -0.25), batch_size=1
        )
    measures = {"lower_gap": case.lower_gap, "upper_gap": case.upper_gap}
    return trace(case.problem, configured, measures=measures, x0=case.x0, seed=seed, max_queries=max_queries)


class Rates(Study):
    """Table 1."""

    name = "rates"
    title = "Rates of convergence"
    reference = "Cao et al. (2023), Table 1 and Theorems 4.4 to 4.7"

    def tasks(self, plan: Plan) -> list[Task]:
        horizons, repeats = (QUICK_HORIZONS, QUICK_REPEATS) if plan.quick else (HORIZONS, REPEATS)
        tasks = []
        for seed in range(plan.seeds):
            for share in (SHARE, 1.0):  # one after the other, so that no two workers compile the same at once
                for s in SETTINGS:
                    each = {"horizons": list(horizons), "repeats": repeats if share == SHARE else 1}
                    settings = {"method": s.method, "convex": s.convex, "share": share, **each}
                    tasks.append(Task(_name(s, share), seed, run, settings))
            budget = {"max_queries": QUICK_QUERIES if plan.quick else QUERIES}
            tasks += [Task(f"rates/race-{m}", seed, race, {"method": m, **budget}) for m in ("sbcgi", "arip-seg")]
        return tasks

    def section(self, plan: Plan, runs: Runs) -> Section:
        found = {s.label: runs.of(_name(s, SHARE)) for s in SETTINGS}
        theory = {s.label: runs.of(_name(s, 1.0)) for s in SETTINGS}
        racing = {label: runs.of(f"rates/race-{m}") for label, m in (("SBCGI", "sbcgi"), ("aR-IP-SeG", "arip-seg"))}
        gaps = (Measure("lower_gap", "lower gap g(x) − g*"), Measure("upper_gap", "upper gap f(x) − f*, signed", "symlog"))
        return Section(
            "How fast both gaps fall with the horizon T: for each T a run of its own, with the steps, momenta and slack of "
            "the theorems, from a minimiser of g. For f convex the upper gap is f − f*, for f not convex it is the "
            "Frank-Wolfe gap max ⟨∇f(x), x − s⟩ over all minimisers s of g, where it is least "
            "in the second half.\n\n"
            f"The slack of theory is mostly larger than g can be on the whole set: the cut takes nothing away. The "
            f"slopes are therefore measured with 1/{1 / SHARE:.0f} of it, a share that was chosen to be just large enough "
            "in the study of coverage, which says how often the cut then keeps all minimisers of g; both are shown. The "
            "rates are upper bounds: a gap may fall faster.",
            [
                _figure("slopes", f"With 1/{1 / SHARE:.0f} of the slack of theory; dashed, the theorem's bound, scaled to "
                        f"begin where the gap does. Mean and range over {plan.seeds} seeds.", found),
                _figure("theory", "With the slack of theory: the lower gap is what f alone makes of it. "
                        f"Mean and range over {plan.seeds} seeds.", theory),
                compare("race", "SBCGI and aR-IP-SeG on the convex problem, from the same minimiser of g. Mean and range "
                        f"over {plan.seeds} seeds.", racing, gaps),
            ],
            [slope_table(found), slack_table(theory), race_table(racing)],
            claims(found, theory, racing),
            {
                "problem": "8 variables, 400 samples per level, ℓ1 ball of radius 3; the minimisers of g are a polygon",
                "horizons": ", ".join(map(str, QUICK_HORIZONS if plan.quick else HORIZONS)),
                "constants": "estimated from the data (Theory), δ = 0.1, c = 1",
                "race": f"{QUICK_QUERIES if plan.quick else QUERIES:,} samples; aR-IP-SeG with "
                "γ_t = (t+1)^(−3/4)/(L_f + L_g) and ρ_t = (t+1)^(1/4)",
            },
            [
                "the theorems bound the upper gap from above. It is below zero nearly always (g is not least yet, and f is "
                "better than at any minimiser of g), and its absolute value falls more slowly than the lower gap: no "
                "theorem says how fast. Its slopes in the table are of absolute values.",
            ],
        )  # fmt: skip


def claims(found: Mapping[str, Mapping[int, Outcome]], theory: Mapping[str, Any], racing: Mapping[str, Any]) -> list[Claim]:
    """Judge the rates."""
    made = []
    for s in SETTINGS:
        bound = expected(s, found[s.label])
        made += [
            Claim(f"{s.label}: the lower gap falls like T^{s.rate:.3g} or faster, up to logarithms (a slope of {bound:.2f} "
                  "with them)", s.theorem, *no_slower(slopes(found[s.label], "lower_gap"), bound)),
            Claim(f"{s.label}: the upper gap stays below a bound that falls so, from the gap at x_0; in units of it",
                  s.theorem, *within(in_bounds(s, found[s.label]), -math.inf, 1.0)),
        ]  # fmt: skip
    nothing = {
        s.label.replace(", ", "_").replace(" ", "_"): within(
            {seed: o.record["last_slack"] / o.record["largest_lower_gap"] for seed, o in theory[s.label].items()}, 0.0, 1.0
        )
        for s in SETTINGS
    }
    made.append(Claim("The slack of theory cuts something off at the longest horizon: it is below the largest g − g* on Z",
                      "Theorems 4.4 to 4.7", *together(**nothing)))  # fmt: skip
    needed = {label: {seed: to_reach(o, 1 / 8) for seed, o in each.items()} for label, each in racing.items()}
    made.append(Claim("SBCGI reaches an eighth of the first upper gap, at both levels, with fewer samples than aR-IP-SeG",
                      "Table 1", *fewer(needed["SBCGI"], needed["aR-IP-SeG"])))  # fmt: skip
    powers = {label: {seed: power_of(o) for seed, o in each.items()} for label, each in racing.items()}
    made.append(Claim("Samples to reach ε grow like ε^−2 or slower for SBCGI", "Table 1",
                      *no_slower(powers["SBCGI"], 2.0, 0.2)))  # fmt: skip
    made.append(Claim("They grow faster for aR-IP-SeG (its bound is ε^−4)", "Table 1",
                      *fewer(powers["SBCGI"], powers["aR-IP-SeG"])))  # fmt: skip
    return made


def slopes(outcomes: Mapping[int, Outcome], column: str) -> dict[int, float]:
    """Return by seed the slope of the logarithm of |gap| over that of the horizon."""
    return {seed: _slope(o.arrays["horizon"], np.abs(o.arrays[column])) for seed, o in outcomes.items()}


def in_bounds(setting: Setting, outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    """Return by seed the largest upper gap in units of a bound that falls as the theorem's, from the gap at x_0.

    It is negative where f is better than at any minimiser of g: the theorems bound the upper gap from above only.
    """
    found = {}
    for seed, o in outcomes.items():
        bound = setting.bound(o.arrays["horizon"])
        found[seed] = float((o.arrays["upper_gap"] * bound[0] / bound).max() / o.record["first_upper_gap"])
    return found


def expected(setting: Setting, outcomes: Mapping[int, Outcome]) -> float:
    """Return the slope that the theorem's bound has on the horizons that were run, logarithms included."""
    horizons = next((o.arrays["horizon"] for o in outcomes.values()), np.array(HORIZONS, dtype=float))
    return _slope(horizons, setting.bound(horizons))


def interval(values: Mapping[int, float]) -> tuple[float, float, float]:
    """Return a mean over seeds and the ends of its confidence interval.

    Examples
    --------
    >>> [round(end, 3) for end in interval({0: 0.9, 1: 1.0, 2: 1.1})]
    [1.0, 0.752, 1.248]
    """
    found = np.array(list(values.values()), dtype=float)
    if found.size < 2:
        return float(found.mean()) if found.size else math.nan, -math.inf, math.inf
    half = student.ppf(0.5 + CONFIDENCE / 2, found.size - 1) * found.std(ddof=1) / math.sqrt(found.size)
    return float(found.mean()), float(found.mean() - half), float(found.mean() + half)


def no_slower(values: Mapping[int, float], bound: float, tolerance: float = TOLERANCE) -> Judgement:
    """Judge by a confidence interval whether slopes are at most a bound; not decidable if one of them is not known.

    Examples
    --------
    >>> no_slower({seed: -0.5 for seed in range(10)}, -0.45).verdict
    <Verdict.HOLDS: 'holds'>
    >>> no_slower({seed: -0.2 for seed in range(10)}, -0.45).verdict
    <Verdict.FAILS: 'does not hold'>
    """
    unknown = sum(not math.isfinite(value) for value in values.values())
    if unknown:  # to judge by the others would leave out where a method is worst
        return Judgement(Verdict.OPEN, f"no slope on {unknown}/{len(values)} seeds: too few accuracies are reached")
    mean, low, high = interval(values)
    numbers = f"{mean:.3f}, {CONFIDENCE:.0%} interval [{low:.3f}, {high:.3f}] over {len(values)} seeds, against {bound:.3f}"
    if len(values) < FEWEST:
        return Judgement(Verdict.OPEN, numbers if values else "no runs")
    holds, fails = high <= bound + tolerance, low > bound + tolerance
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.OPEN, numbers)


def to_reach(outcome: Outcome, share: float) -> float:
    """Return the samples after which both gaps stay below a share of the first upper gap; infinite if they do not."""
    lower, upper = outcome.arrays["lower_gap"], outcome.arrays["upper_gap"]
    above = np.flatnonzero(np.maximum(lower, upper) > share * abs(upper[0]))
    after = int(above[-1]) + 1 if above.size else 0
    return float(outcome.arrays["queries"][after]) if after < lower.size else math.inf


def power_of(outcome: Outcome) -> float:
    """Return the exponent p of samples ~ ε^−p, from the accuracies that are reached; infinite if fewer than three are."""
    pairs = [(1.0 / epsilon, to_reach(outcome, epsilon)) for epsilon in EPSILONS]
    reached = np.array([(x, y) for x, y in pairs if math.isfinite(y) and y > 0.0])
    return _slope(*reached.T) if len(reached) >= 3 else math.inf


def slope_table(found: Mapping[str, Mapping[int, Outcome]]) -> Table:
    """Return the slopes with their confidence intervals."""
    rows: list[list[Any]] = []
    for s in SETTINGS:
        cells = []
        for column in ("lower_gap", "upper_gap"):
            mean, low, high = interval(slopes(found[s.label], column))
            cells.append(f"{mean:.3f} [{low:.3f}, {high:.3f}]")
        last = [o.record["last_upper_gap"] for o in found[s.label].values()]
        cells.append(f"{np.median(last):.2g} (negative on {sum(gap < 0.0 for gap in last)}/{len(last)})" if last else "")
        rows.append([s.label, s.theorem, f"{s.rate:.3g}", f"{expected(s, found[s.label]):.3f}", *cells])
    head = ["setting", "theorem", "rate", "with logarithms", "lower gap", "|upper gap|", "last upper gap, signed"]
    return Table(f"Slopes of the gaps over T: mean over seeds and {CONFIDENCE:.0%} interval", head, rows)


def slack_table(theory: Mapping[str, Mapping[int, Outcome]]) -> Table:
    """Return how large the slack of theory is."""
    rows = []
    for label, outcomes in theory.items():
        entries = [[o.record[name] for o in outcomes.values()] for name in ("last_slack", "largest_lower_gap")]
        if outcomes:
            slack, largest = (float(np.median(values)) for values in entries)
            rows.append([label, slack, largest, slack / largest])
    head = ["setting", "K_T of theory", "largest g − g* on Z", "ratio"]
    return Table("The slack of theory at the longest horizon: medians over seeds", head, rows)


def race_table(racing: Mapping[str, Mapping[int, Outcome]]) -> Table:
    """Return the samples to reach several accuracies."""
    rows = [
        [label, *(f"{np.median([to_reach(o, epsilon) for o in each.values()]):,.0f}" for epsilon in EPSILONS)]
        for label, each in racing.items()
        if each
    ]
    head = ["method", *(f"ε = 1/{1 / epsilon:.0f}" for epsilon in EPSILONS)]
    return Table("Samples to bring both gaps below ε times the first upper gap: medians over seeds", head, rows)


def _figure(name: str, caption: str, found: Mapping[str, Mapping[int, Outcome]]) -> Figure:
    panels = []
    for column, title in (("lower_gap", "lower gap"), ("upper_gap", "|upper gap|")):
        lines = []
        for s in SETTINGS:
            curves = [(o.arrays["horizon"], np.abs(o.arrays[column])) for o in found[s.label].values()]
            if not curves:
                continue
            line = band_of(s.label, curves)
            bound = s.bound(line.x)
            lines += [line, Line(s.label, line.x, line.y[0] * bound / bound[0], style="--")]
        panels.append(Panel(title, lines, "horizon T", xscale="log", yscale="log"))
    return Figure(name, caption, panels)


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-300)), 1)[0])


def _name(setting: Setting, share: float) -> str:
    kind = "convex" if setting.convex else "not-convex"
    return f"rates/{setting.method}-{kind}" + ("-theory" if share == 1.0 else "")
