"""The published problems of the field: every method on each, with CVXPY beside them.

- a1a: Chen, Shi, Jiang and Wang, Penalty-based methods for simple bilevel optimization under Hölderian error bounds, NeurIPS
  2024: ½‖x‖² over the minimisers of the logistic loss in an ℓ1 ball of radius 10, 1000 rows and an intercept.
- Breast cancer with all products of three features: Boţ, Chenchene, Csetnek and Hulett, Accelerating diagonal methods for
  bilevel optimization, 2025. They take f = ‖x‖₁ on all of space, where a separable logistic loss has no minimiser. Here
  f = ½‖x‖² over the same ball as that of a1a.
- Phillips, Foxgood and Baart: integral equations of Hansen's Regularization Tools, since Beck and Sabach 2014. They add noise
  and take the norm of a difference operator for f. Here the equations have a solution, f = ½‖x‖², and x is bounded.

The problems are fixed. So a claim on them is decided by what is computed, and seeds only repeat what is random in methods
and in the clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import tiebreak
from tiebreak.studies import conic
from tiebreak.studies.claims import Claim, Judgement, Verdict
from tiebreak.studies.comparing import Measure, compare
from tiebreak.studies.sources import rows_with_labels
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Source, Study, Table, Task
from tiebreak.studies.tracing import solved, trace

RADIUS = 10.0  # of the ℓ1 balls
BOUNDS = {"phillips": 4.0, "foxgood": 2.0, "baart": 2.0}  # of x, twice the largest value of the known solution
PROBLEMS = {"a1a": "a1a", "breast-cancer": "Breast cancer", "phillips": "Phillips", "foxgood": "Foxgood", "baart": "Baart"}
LEVELS = (1e-2, 1e-3, 1e-4)  # ε
CERTAIN = 0.5  # share of ε that a reference may be off for ε to be decided by it
PASSES, QUICK_PASSES = 1500, 300  # over the rows, of a run
SECONDS, QUICK_SECONDS = 60.0, 3.0  # of a run, at most
REPEATS = 3  # seeds that are run, at most
SHORTEST = 0.01  # seconds that count as none: shorter times count as this
CLOSE = 2.0  # ratio to the best time that counts as near it
SHOWN = 8  # methods in a figure

OURS, EXACT, CVXPY = "minimize(problem)", "active-set", "CVXPY"
FEW = ("auto", EXACT, "pb-apg", "bi-fista", "pavr", "big-sam", "cg-bio", "sbcgf")  # methods of a quick run
A1A = {"lower": 0.327942572541972980732, "upper": 4.941753473894483}  # Newton's method on the optimality system, 40 digits
AUTHORS = {"passes": 1470, "lower": 1.8e-8, "upper": 3.5e-3}  # what the code of PB-APG's authors reaches on a1a
BEATEN = ("mng", "big-sam", "dbgd", "a-irg", "cg-bio")  # methods that PB-APG's authors compare with on a1a


class Case(NamedTuple):
    """A problem, its rows, and a point that is known to solve it to rounding."""

    problem: tiebreak.Problem
    A: np.ndarray
    target: np.ndarray
    solution: np.ndarray | None = None


@lru_cache(maxsize=1)
def case(name: str, quick: bool, source: Source) -> Case:
    """Return a published problem; for a quick run a smaller one, except for a1a."""
    if name in BOUNDS:
        A, b, x = tiebreak.data.integral_equation(name, 200 if quick else 1000)
        return Case(_least_norm(tiebreak.LeastSquares(A, b), tiebreak.Box(0.0, BOUNDS[name], x.size)), A, b, x)
    A, y = rows_with_labels(source) if name == "a1a" else tiebreak.data.breast_cancer(2 if quick else 3)
    return Case(_least_norm(tiebreak.Logistic(A, y), tiebreak.L1Ball(RADIUS)), A, y)


def reference(seed: int, problem: str, quick: bool, source: dict[str, Any]) -> Outcome:
    """Solve a problem to rounding, with proofs, and say in which units gaps are measured."""
    made, _, _, known = case(problem, quick, Source(**source))
    answer = solved(made, EXACT)
    floors, x = answer.certificate.floors, answer.x if known is None else known
    lower, upper = made.lower.value(x), made.upper.value(x)
    best, ceiling = min(floors.best_lower, lower), answer.certificate.ceiling if known is None else upper
    least = min(max(answer.upper, floors.upper), ceiling)
    record = {
        "lower": best,
        "upper": least,
        "lower_floor": floors.lower,
        "upper_floor": floors.upper,
        "ceiling": ceiling,
        "upper_error": max(least - floors.upper, ceiling - least if math.isfinite(ceiling) else 0.0),
        "lower_unit": made.lower.value(made.center) - best,
        "upper_unit": max(abs(made.upper.value(made.center) - least), abs(least)),
        "unique": answer.certificate.unique,
        "answer_lower": answer.lower,
        "answer_upper": answer.upper,
        "seconds": answer.seconds,
    }
    return Outcome({"x": x}, {name: _plain(value) for name, value in record.items()})


def run(
    seed: int, problem: str, method: str, passes: int, time_limit: float, quick: bool, source: dict[str, Any],
    reference: Outcome,
) -> Outcome:  # fmt: skip
    """Run a method with its defaults, once to load its code and then by the clock."""
    made, best = case(problem, quick, Source(**source)).problem, reference.arrays["x"]
    budget = {"max_queries": passes * max(1, made.lower.n_samples), "time_limit": time_limit}
    size = float(np.linalg.norm(best))
    tiebreak.minimize(made, method, seed=seed, time_limit=SHORTEST, progress=False)
    return trace(made, method, measures={"distance": lambda x: float(np.linalg.norm(x - best)) / size}, seed=seed, **budget)


def rival(seed: int, problem: str, quick: bool, source: dict[str, Any], reference: Outcome) -> Outcome:
    """Solve a problem with CVXPY and Clarabel."""
    made, A, target, _ = case(problem, quick, Source(**source))
    best = reference.arrays["x"]
    x, solver, seconds = conic.two_stages(A, target, problem not in BOUNDS, made)
    ends = {"lower": made.lower.value(x), "upper": made.upper.value(x)}
    ends["distance"] = float(np.linalg.norm(x - best) / np.linalg.norm(best))
    arrays = {name: np.array([value]) for name, value in {**ends, "seconds": seconds}.items()}
    return Outcome(arrays, {"method": CVXPY, "parameters": solver, "status": solver, **ends, "seconds": seconds})


class Published(Study):
    """a1a, breast cancer, Phillips, Foxgood, Baart."""

    name = "published"
    title = "The published problems of the field"
    reference = "Chen et al. (2024), Boţ et al. (2025), Beck and Sabach (2014), Sabach and Shtern (2017)"
    sources = ("a1a-like", "a1a")

    def tasks(self, plan: Plan) -> list[Task]:
        tasks = []
        each = {"quick": plan.quick, "source": _source(plan)._asdict()}
        passes, seconds = (QUICK_PASSES, QUICK_SECONDS) if plan.quick else (PASSES, SECONDS)
        for problem in PROBLEMS:
            first = Task(f"published/{problem}/reference", 0, reference, {"problem": problem, **each})
            tasks.append(first)
            if conic.installed():
                tasks.append(Task(_name(problem, CVXPY), 0, rival, {"problem": problem, **each}, {"reference": first}))
            settings = {"problem": problem, "time_limit": seconds, **each}
            tasks += [
                Task(
                    _name(problem, method), seed, run, {"method": method, "passes": passes, **settings}, {"reference": first}
                )
                for seed in range(min(plan.seeds, REPEATS))
                for method in methods(plan)
            ]
            if problem == "a1a" and _source(plan).kind == "a1a":
                budget = {"method": "pb-apg", "passes": AUTHORS["passes"], **settings}
                tasks.append(Task(_name(problem, "pb-apg-authors"), 0, run, budget, {"reference": first}))
        return tasks

    def section(self, plan: Plan, runs: Runs) -> Section:
        found = {problem: Standing(runs, problem, methods(plan)) for problem in PROBLEMS}
        found = {problem: standing for problem, standing in found.items() if standing.reference}
        source, full = _source(plan), PASSES if not plan.quick else QUICK_PASSES
        real = source.kind == "a1a"
        return Section(
            "The problems that papers on simple bilevel optimisation share, with f = ½‖x‖² above: the solution of least norm. "
            "Every method runs with its defaults; `minimize(problem)` chooses one.\n\nA point is (ε, ε)-optimal here if "
            "g − g* ≤ ε (g(c) − g*) and |f − f*| ≤ ε max(|f(c) − f*|, f*), c the middle of the set: a point that is better "
            "than f* because it does not minimise g does not count. Gaps and distances are in these units, signed; the "
            "distance is ‖x − x*‖ / ‖x*‖, since f has one minimiser over all those of g. g* and f* are proven by the active "
            "set. Where they are not known well enough to decide on an ε, nothing is said of it.\n\nThe problems are fixed: "
            "claims are decided by medians over runs, not by a sign test. "
            + ("" if real else "a1a itself needs its file (`--data a1a:FILE`). What is called a1a here is generated like it, "
               "and what is known of the real one is not judged."),
            [standing.figure(PROBLEMS[problem]) for problem, standing in found.items()],
            [
                ratios_table(found),
                *(standing.table(PROBLEMS[problem]) for problem, standing in found.items()),
                references_table(found),
            ],
            [*(a1a_claims(runs, found["a1a"]) if real and "a1a" in found else []), *paper_claims(found), *our_claims(found)],
            {
                "a1a": f"{source}; 1000 rows, a column of ones, ℓ1 ball of radius {RADIUS:g}",
                "breast cancer": f"products of up to {2 if plan.quick else 3} raw features of 455 rows, then standardised, and a "
                f"column of ones; ℓ1 ball of radius {RADIUS:g}",
                "integral equations": f"n = {200 if plan.quick else 1000}, midpoint rule, b = A x; 0 ≤ x ≤ "
                + ", ".join(f"{bound:g} ({name})" for name, bound in BOUNDS.items()),
                "budget": f"{full} passes over the rows, at most {QUICK_SECONDS if plan.quick else SECONDS:g} s by the wall; "
                "other runs go on beside",
                "times": f"without compilation and records; below {SHORTEST:g} s they count as that",
                "CVXPY": "Clarabel with tolerances of 1e-12: first g, then f over the points of the same fit",
            },
        )  # fmt: skip


class Standing:
    """The runs on one problem: where each method ended, and when it was first there.

    Parameters
    ----------
    runs : Runs
    problem : str
    names : list of str
        The methods.
    """

    def __init__(self, runs: Runs, problem: str, names: tuple[str, ...]) -> None:
        self.problem = problem
        self.reference = next((o.record for o in runs.of(f"published/{problem}/reference").values()), {})
        labels = {**{OURS if name == "auto" else name: name for name in names}, CVXPY: CVXPY}
        found = {label: runs.of(_name(problem, name)) for label, name in labels.items()} if self.reference else {}
        self.runs = {label: {s: self.with_gaps(o) for s, o in each.items()} for label, each in found.items() if each}

    def with_gaps(self, outcome: Outcome) -> Outcome:
        """Return a run with columns for both gaps, in units."""
        best = self.reference
        gaps = {
            f"{level}_gap": (outcome.arrays[level] - best[level]) / best[f"{level}_unit"] for level in ("lower", "upper")
        }
        return Outcome({**outcome.arrays, **gaps}, outcome.record)

    def decides(self, level: float) -> bool:
        """Return whether the reference is accurate enough for an ε."""
        best = self.reference
        return max(best["upper_error"] / best["upper_unit"], (best["lower"] - best["lower_floor"]) / best["lower_unit"]) <= (
            CERTAIN * level
        )

    def seconds(self, label: str, level: float) -> float:
        """Return the median time at which a method was first (ε, ε)-optimal; infinite if it was not on half of the seeds."""
        times = []
        for outcome in self.runs[label].values():
            lower, upper = outcome.arrays["lower_gap"], np.abs(outcome.arrays["upper_gap"])
            there = (lower <= level) & (upper <= level)
            times.append(max(float(outcome.arrays["seconds"][there.argmax()]), SHORTEST) if there.any() else math.inf)
        return float(np.median(times)) if times else math.inf

    def best(self, level: float) -> tuple[str, float]:
        """Return the fastest method, those of ours aside, and its time."""
        times = {label: self.seconds(label, level) for label in self.runs if label != OURS}
        label = min(times, key=lambda each: times[each])
        return label, times[label]

    def end(self, label: str, column: str) -> float:
        """Return the median of a column at the end of the runs of a method."""
        return float(np.median([outcome.arrays[column][-1] for outcome in self.runs[label].values()]))

    def error(self, label: str) -> float:
        """Return the larger of both gaps at the end."""
        return max(abs(self.end(label, "lower_gap")), abs(self.end(label, "upper_gap")))

    @property
    def ranked(self) -> list[str]:
        """Return the methods, those with the smallest error at the end first."""
        return sorted(self.runs, key=self.error)

    def figure(self, title: str) -> Any:
        """Return the gaps and the distance against seconds, for the methods that end nearest."""
        nearest = [label for label in self.ranked if label not in (OURS, CVXPY)][: SHOWN - 1]
        kept = [label for label in (OURS, *nearest) if label in self.runs]
        caption = (
            f"{title}: {OURS} and the {len(nearest)} methods that end nearest; by the clock of a run, means over seeds."
        )
        return compare(self.problem, caption, {label: self.runs[label] for label in kept}, MEASURES, "seconds")

    def table(self, title: str) -> Table:
        """Return where each method ends, and how long it takes to each ε."""
        head = [
            "method",
            *(measure.title for measure in MEASURES),
            *(f"s to ε = {level:g}" for level in LEVELS),
            "s",
            "ended",
        ]
        rows = [
            [
                label,
                *(f"{self.end(label, measure.column):.2g}" for measure in MEASURES),
                *(_time(self.seconds(label, level)) if self.decides(level) else "?" for level in LEVELS),
                f"{np.median([o.record['seconds'] for o in self.runs[label].values()]):.3g}",
                ", ".join(sorted({o.record["status"].lower().replace("_", " ") for o in self.runs[label].values()})),
            ]
            for label in self.ranked
        ]
        return Table(f"{title}: where each method ends, and its seconds to (ε, ε); – not reached, ? not decided", head, rows)


MEASURES = (
    Measure("lower_gap", "(g − g*) / unit"),
    Measure("upper_gap", "(f − f*) / unit, signed", "symlog"),
    Measure("distance", "‖x − x*‖ / ‖x*‖"),
)


def ratios_table(found: Mapping[str, Standing]) -> Table:
    """Return how the default compares with the best, and with CVXPY, at each ε of each problem."""
    rows = []
    for problem, standing in found.items():
        for level in LEVELS:
            if not standing.decides(level) or OURS not in standing.runs:
                continue
            ours, (label, best) = standing.seconds(OURS, level), standing.best(level)
            cvxpy = standing.seconds(CVXPY, level) if CVXPY in standing.runs else math.nan
            rows.append([
                PROBLEMS[problem], f"{level:g}", _time(ours), label if math.isfinite(best) else "none", _time(best),
                _ratio(ours, best), "not run" if math.isnan(cvxpy) else _time(cvxpy),
                "" if math.isnan(cvxpy) else _ratio(cvxpy, ours),
            ])  # fmt: skip
    head = ["problem", "ε", f"{OURS}, s", "fastest other", "s", "ours / fastest", "CVXPY, s", "CVXPY / ours"]
    return Table("Seconds to (ε, ε)", head, rows)


def references_table(found: Mapping[str, Standing]) -> Table:
    """Return what is proven of the optimal values."""
    head = ["problem", "g* ≥", "g* ≤", "f* ≥", "f*, used", "f* ≤", "minimisers of g", "seconds"]
    words = {True: "one", False: "several", None: "not decided"}
    rows = [
        [
            PROBLEMS[problem],
            f"{r['lower_floor']:.15g}",
            f"{r['lower']:.15g}",
            f"{r['upper_floor']:.10g}",
            f"{r['upper']:.10g}",
            f"{r['ceiling']:.10g}" if math.isfinite(r["ceiling"]) else "–",
            words[r["unique"]],
            r["seconds"],
        ]
        for problem, r in ((problem, standing.reference) for problem, standing in found.items())
    ]
    return Table(
        "What is proven of g* and f*; f* ≤ f at the known solution of an integral equation, up to rounding", head, rows
    )


def a1a_claims(runs: Runs, standing: Standing) -> list[Claim]:
    """Judge what is known of a1a: the optimal values to 15 digits, and what the authors of PB-APG reach."""
    best = standing.reference
    inside = best["lower_floor"] <= A1A["lower"] <= best["lower"]
    near = abs(best["answer_lower"] - A1A["lower"]) <= 1e-12
    below = best["upper_floor"] <= A1A["upper"] <= best["ceiling"] and abs(best["upper"] - A1A["upper"]) <= 1e-5
    ends = next(iter(runs.of(_name("a1a", "pb-apg-authors")).values()), None)
    claims = [
        Claim(
            "The proven bracket of g* contains its 15 digits, and g at the answer agrees to 1e-12",
            "Newton's method in 40 digits",
            *decided(inside and near, f"{best['lower_floor']:.16f} ≤ {A1A['lower']:.16f} ≤ {best['lower']:.16f}; g at the "
                     f"answer differs by {best['answer_lower'] - A1A['lower']:.1e}"),
        ),
        Claim(
            "The proven floor of f* is below its 16 digits, and the f* that is used agrees to 1e-5",
            "Newton's method in 40 digits",
            *decided(below, f"{best['upper_floor']:.9f} ≤ {A1A['upper']:.9f}; used: {best['upper']:.9f}, off by "
                     f"{best['upper'] - A1A['upper']:.1e}; no ceiling is proven" * (not math.isfinite(best["ceiling"]))),
        ),
    ]  # fmt: skip
    if ends is not None:
        lower, upper = ends.record["lower"] - A1A["lower"], ends.record["upper"] - A1A["upper"]
        good = lower <= AUTHORS["lower"] and abs(upper) <= AUTHORS["upper"]
        text = (
            f"PB-APG reaches g − g* = {AUTHORS['lower']:g} and f − f* = −{AUTHORS['upper']:g} in {AUTHORS['passes']} passes, as "
            "the code of its authors does"
        )
        numbers = f"{lower:.1e} and {upper:.1e} after {ends.record['iterations']} steps, with the defaults here"
        claims.append(Claim(text, "Chen et al. (2024), their code", *decided(good, numbers)))
    return claims


def paper_claims(found: Mapping[str, Standing]) -> list[Claim]:
    """Judge what papers say of each other's methods."""
    claims = []
    if "a1a" in found and all(name in found["a1a"].runs for name in ("pb-apg", *BEATEN)):
        gaps = {label: found["a1a"].end(label, "lower_gap") for label in ("pb-apg", *BEATEN)}
        others = ", ".join(f"{label} {gaps[label]:.1e}" for label in BEATEN)
        good = all(gaps["pb-apg"] < gaps[label] for label in BEATEN)
        claims.append(Claim("PB-APG ends with a smaller lower gap than MNG, BiG-SAM, DBGD, a-IRG and CG-BiO on a1a",
                            "Chen et al. (2024), Figure 1", *decided(good, f"pb-apg {gaps['pb-apg']:.1e}; {others}")))  # fmt: skip
    pairs = {
        problem: (standing.end("big-sam", "lower_gap"), standing.end("mng", "lower_gap"))
        for problem, standing in found.items()
        if problem in BOUNDS and {"big-sam", "mng"} <= set(standing.runs)
    }
    if pairs:
        numbers = "; ".join(
            f"{PROBLEMS[problem]}: {first:.1e} and {second:.1e}" for problem, (first, second) in pairs.items()
        )
        claims.append(Claim("BiG-SAM ends with a smaller lower gap than MNG on the integral equations, at equal passes",
                            "Sabach and Shtern (2017), experiments",
                            *decided(all(first < second for first, second in pairs.values()), numbers)))  # fmt: skip
    return claims


def our_claims(found: Mapping[str, Standing]) -> list[Claim]:
    """Judge the default: near the best in time, as accurate as the best, and ahead of CVXPY."""
    claims = []
    for problem, standing in found.items():
        levels = [level for level in LEVELS if standing.decides(level)]
        if OURS not in standing.runs or not levels:
            continue
        pairs = {level: (standing.seconds(OURS, level), *standing.best(level)) for level in levels}
        good = all(ours <= CLOSE * best for ours, _, best in pairs.values()) and math.isfinite(pairs[levels[-1]][0])
        said = (f"ε = {level:g}: {_time(ours)} s, {label} {_time(best)} s" for level, (ours, label, best) in pairs.items())
        text = f"{OURS} is (ε, ε)-optimal within {CLOSE:g} × the time of the fastest method, {PROBLEMS[problem]}"
        claims.append(Claim(text, "here", *decided(good, "; ".join(said))))
    ends = {p: (s.error(OURS), min((s.error(label), label) for label in s.runs if label != OURS))
            for p, s in found.items() if OURS in s.runs and len(s.runs) > 1}  # fmt: skip
    if ends:
        numbers = "; ".join(f"{PROBLEMS[p]}: {ours:.1e}, {label} {best:.1e}" for p, (ours, (best, label)) in ends.items())
        floor = {p: found[p].reference["upper_error"] / found[p].reference["upper_unit"] for p in ends}
        good = all(ours <= max(CLOSE * best, floor[p]) for p, (ours, (best, _)) in ends.items())
        text = f"{OURS} ends as near as the best method, up to a factor of {CLOSE:g} or what is known of f*, on each problem"
        claims.append(Claim(text, "here", *decided(good, numbers)))
    rivals = {p: s for p, s in found.items() if CVXPY in s.runs and OURS in s.runs}
    if rivals:
        pairs_ = {p: (s.end(OURS, "seconds"), s.end(CVXPY, "seconds")) for p, s in rivals.items()}
        numbers = "; ".join(f"{PROBLEMS[p]}: {ours:.3g} s and {theirs:.3g} s" for p, (ours, theirs) in pairs_.items())
        good = all(ours < theirs for ours, theirs in pairs_.values())
        claims.append(Claim(f"{OURS} ends sooner than CVXPY on each problem", "here", *decided(good, numbers)))
    return claims


def decided(holds: bool, numbers: str) -> Judgement:
    """Judge a claim on a fixed problem: by what was computed."""
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, numbers)


def methods(plan: Plan) -> tuple[str, ...]:
    """Return the names of the methods: all for exact ties of finite data that look at both levels."""
    every = [name for name, method in tiebreak.METHODS.items() if len(method().levels) == 2 and name != "sample-average"]
    return FEW if plan.quick else tuple(every)


def _least_norm(lower: Any, domain: Any) -> tiebreak.Problem:
    return tiebreak.Problem(tiebreak.SquaredNorm(), lower, domain)


def _name(problem: str, method: str) -> str:
    return f"published/{problem}/{method}"


def _source(plan: Plan) -> Source:
    return plan.source(*Published.sources)


def _time(seconds: float) -> str:
    return f"{seconds:.2g}" if math.isfinite(seconds) else "–"


def _ratio(first: float, second: float) -> str:
    if math.isinf(first) or math.isinf(second):
        return "∞" if math.isinf(first) and math.isfinite(second) else "–" if math.isinf(first) else "0"
    return f"{first / second:.2g}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
