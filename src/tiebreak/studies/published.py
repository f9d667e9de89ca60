"""The published problems of the field: every method on each, with CVXPY beside them.

- a1a: Chen, Shi, Jiang and Wang, Penalty-based methods for simple bilevel optimization under Hölderian error bounds, NeurIPS
  2024: ½‖x‖² over the minimisers of the logistic loss in an ℓ1 ball of radius 10, 1000 rows and an intercept.
- Breast cancer with all products of three features: Boţ, Chenchene, Csetnek and Hulett, Accelerating diagonal methods for
  bilevel optimization, 2025. They take f = ‖x‖₁ on all of space, where a separable logistic loss has no minimiser. Here
  f = ½‖x‖² over the same ball as that of a1a.
- Phillips, Foxgood and Baart: integral equations of Hansen's Regularization Tools, since Beck and Sabach 2014. They add
  noise, and f is a quadratic form. Here the equations have a solution, f = ½‖x‖², and x is bounded.

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
from tiebreak.studies.sources import rows_with_labels
from tiebreak.studies.standings import CVXPY, OURS, SHORTEST, Standing, references_table, time_text, times_table
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Source, Study, Task
from tiebreak.studies.tracing import solved, trace

RADIUS = 10.0  # of the ℓ1 balls
BOUNDS = {"phillips": 4.0, "foxgood": 2.0, "baart": 2.0}  # of x, twice the largest value of the known solution
PROBLEMS = {"a1a": "a1a", "breast-cancer": "Breast cancer", "phillips": "Phillips", "foxgood": "Foxgood", "baart": "Baart"}
PASSES, QUICK_PASSES = 500, 300  # over the rows, of a run …
MORE_PASSES = {"a1a": 1500}  # … of a full one where its paper makes about as many
SECONDS, QUICK_SECONDS = 60.0, 3.0  # of a run, at most
REPEATS = 3  # seeds that are run, at most
CLOSE = 2.0  # ratio to the best that counts as near it
EXACT = "active-set"
FEW = ("auto", EXACT, "pb-apg", "bi-fista", "pavr", "big-sam", "cg-bio", "sbcgf")  # methods of a quick run
A1A = {"lower": 0.327942572541972980732, "upper": 4.941753473894483}  # Newton's method on the optimality system, 40 digits
AUTHORS = {"passes": 1470, "lower": 1.8e-8, "upper": 3.5e-3}  # what the code of PB-APG's authors reaches on a1a
TEXT = (
    "Problems that papers on simple bilevel optimisation share: the solution of least norm, f = ½‖x‖². Every method "
    f"runs with its defaults. {OURS} chooses one.\n\n"
    "A point is (ε, ε)-optimal here if g − g* ≤ ε (g(c) − g*) and |f − f*| ≤ ε max(|f(c) − f*|, f*), where c is the "
    "middle of the set. A point with f < f* that does not minimise g does not count. Gaps are in these units and "
    "signed. f has one minimiser x* over all those of g, and distances are to it. g* and f* are proven by the "
    "active set; ≲ marks what is below their accuracy. On a1a and breast cancer x* is the active set's own answer; "
    "the distance of CVXPY is an independent check.\n\n"
    "The problems are fixed. So claims are decided by medians over runs, not by a sign test."
)
MADE_UP = (
    "a1a needs its file, `--data a1a:FILE`. Without it the problem of this name is generated, and what is known of the real "
    "one is not judged."
)
BEATEN = ("mng", "big-sam", "dbgd", "a-irg", "cg-bio")  # methods that PB-APG's authors compare with on a1a


class Rows(NamedTuple):
    """What a problem is made of: A, numbers or labels, and a point that is known to solve it to rounding."""

    A: np.ndarray
    target: np.ndarray
    solution: np.ndarray | None = None


@lru_cache(maxsize=1)
def rows_of(name: str, quick: bool, source: Source) -> Rows:
    """Return the rows of a published problem; for a quick run fewer, except for a1a."""
    if name in BOUNDS:
        return Rows(*tiebreak.data.integral_equation(name, 200 if quick else 1000))
    return Rows(*(rows_with_labels(source) if name == "a1a" else tiebreak.data.breast_cancer(2 if quick else 3)))


def problem_of(name: str, rows: Rows) -> tiebreak.Problem:
    """Return a published problem, made anew: what one run finds out about data does not help another."""
    if name in BOUNDS:
        lower, domain = tiebreak.LeastSquares(*rows[:2]), tiebreak.Box(0.0, BOUNDS[name], rows.A.shape[1])
        return tiebreak.Problem(tiebreak.SquaredNorm(), lower, domain)
    return tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.Logistic(*rows[:2]), tiebreak.L1Ball(RADIUS))


def reference(seed: int, problem: str, quick: bool, source: dict[str, Any]) -> Outcome:
    """Solve a problem to rounding, with proofs, and say in which units gaps are measured."""
    rows = rows_of(problem, quick, Source(**source))
    made, known = problem_of(problem, rows), rows.solution
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
        "answer_lower": answer.lower,
        "seconds": answer.seconds,
    }
    return Outcome({"x": x}, {name: float(value) for name, value in record.items()})


def run(
    seed: int, problem: str, method: str, passes: int, time_limit: float, quick: bool, source: dict[str, Any],
    reference: Outcome,
) -> Outcome:  # fmt: skip
    """Run a method with its defaults, once to load its code and then by the clock."""
    rows, best = rows_of(problem, quick, Source(**source)), reference.arrays["x"]
    tiebreak.minimize(problem_of(problem, rows), method, seed=seed, time_limit=SHORTEST, progress=False)
    budget = {"max_queries": passes * rows.target.size, "time_limit": time_limit}
    size = float(np.linalg.norm(best))
    measures = {"distance": lambda x: float(np.linalg.norm(x - best)) / size}
    return trace(problem_of(problem, rows), method, measures=measures, seed=seed, **budget)


def rival(seed: int, problem: str, quick: bool, source: dict[str, Any], reference: Outcome) -> Outcome:
    """Solve a problem with CVXPY and Clarabel."""
    rows, best = rows_of(problem, quick, Source(**source)), reference.arrays["x"]
    made = problem_of(problem, rows)
    x, solver, seconds = conic.two_stages(rows.A, rows.target, problem not in BOUNDS, made)
    ends = {"lower": made.lower.value(x), "upper": made.upper.value(x)}
    ends["distance"] = float(np.linalg.norm(x - best) / np.linalg.norm(best))
    arrays = {name: np.array([value]) for name, value in {**ends, "seconds": seconds}.items()}
    return Outcome(arrays, {"method": CVXPY, "parameters": solver, "status": solver, **ends, "seconds": seconds})


class Published(Study):
    """a1a, breast cancer, Phillips, Foxgood, Baart."""

    name = "published"
    title = "The published problems of the field"
    reference = "Chen et al. (2024), Boţ et al. (2025), Beck and Sabach (2014)"
    sources = ("a1a-like", "a1a")

    def tasks(self, plan: Plan) -> list[Task]:
        tasks = []
        each = {"quick": plan.quick, "source": _source(plan)._asdict()}
        for problem in PROBLEMS:
            passes, seconds = _budget(plan, problem)
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
        found = standings(plan, runs)
        real = _source(plan).kind == "a1a"
        claims = a1a_claims(runs, found["a1a"]) if real and "a1a" in found else []
        return Section(
            TEXT if real else f"{TEXT} {MADE_UP}",
            [standing.figure() for standing in found.values()],
            [times_table(found), *(standing.table() for standing in found.values()), references_table(found)],
            [*claims, *paper_claims(found), *time_claims(found), *end_claims(found)],
            settings(plan),
        )


def standings(plan: Plan, runs: Runs) -> dict[str, Standing]:
    """Return how the methods stand on each problem whose reference is there."""
    found = {}
    labels = {**{OURS if name == "auto" else name: name for name in methods(plan)}, CVXPY: CVXPY}
    for problem, title in PROBLEMS.items():
        for outcome in runs.of(f"published/{problem}/reference").values():
            reference = {**outcome.record, "norm": float(np.linalg.norm(outcome.arrays["x"]))}
            traces = {label: runs.of(_name(problem, name)) for label, name in labels.items()}
            found[problem] = Standing(problem, title, reference, traces)
    return found


def settings(plan: Plan) -> dict[str, str]:
    """Return what a reader must know to do it again."""
    degree, n = (2, 200) if plan.quick else (3, 1000)
    budgets = {problem: _budget(plan, problem) for problem in PROBLEMS}
    bounds = ", ".join(f"{bound:g} ({name})" for name, bound in BOUNDS.items())
    return {
        "a1a": f"{_source(plan)}; 1000 rows, a column of ones, ℓ1 ball of radius {RADIUS:g}",
        "breast cancer": f"products of up to {degree} raw features of 455 rows, then standardised, and a column of ones; "
        f"ℓ1 ball of radius {RADIUS:g}",
        "integral equations": f"n = {n}, midpoint rule, b = A x; 0 ≤ x ≤ {bounds}",
        "passes over the rows": ", ".join(f"{passes} ({PROBLEMS[problem]})" for problem, (passes, _) in budgets.items()),
        "time limit": f"{max(seconds for _, seconds in budgets.values()):g} s by the wall, while other runs go on beside",
        "times": f"without compilation and records; below {SHORTEST:g} s they count as that",
        "CVXPY": "Clarabel with tolerances of 1e-12: first g, then f over the points of the same fit",
    }


def a1a_claims(runs: Runs, standing: Standing) -> list[Claim]:
    """Judge what is known of a1a: the optimal values to 15 digits, and what the authors of PB-APG reach."""
    best, digits = standing.reference, "Newton's method in 40 digits"
    g_off, f_off = best["answer_lower"] - A1A["lower"], best["upper"] - A1A["upper"]
    g_holds = best["lower_floor"] <= A1A["lower"] <= best["lower"] and abs(g_off) <= 1e-12
    f_holds = best["upper_floor"] <= A1A["upper"] <= best["ceiling"] and abs(f_off) <= 1e-5
    ceiling = f"≤ {best['ceiling']:.9f}" if math.isfinite(best["ceiling"]) else "without a proven ceiling"
    g_numbers = (
        f"{best['lower_floor']:.16f} ≤ {A1A['lower']:.16f} ≤ {best['lower']:.16f}; g at the answer is off by {g_off:.1e}"
    )
    f_numbers = f"{best['upper_floor']:.9f} ≤ {A1A['upper']:.9f}, {ceiling}; what is used is off by {f_off:.1e}"
    claims = [
        fixed("The proven bracket of g* contains its 15 digits, and g at the answer agrees to 1e-12", digits,
              *decided(g_holds, g_numbers)),
        fixed("The proven floor of f* is below its 16 digits, and the f* that is used agrees to 1e-5", digits,
              *decided(f_holds, f_numbers)),
    ]  # fmt: skip
    for outcome in runs.of(_name("a1a", "pb-apg-authors")).values():
        lower, upper = (outcome.record[name] - A1A[name] for name in ("lower", "upper"))
        good = lower <= AUTHORS["lower"] and abs(upper) <= AUTHORS["upper"]
        text = (
            f"In {AUTHORS['passes']} passes PB-APG, with the defaults here, is at g − g* ≤ {AUTHORS['lower']:g} and "
            f"|f − f*| ≤ {AUTHORS['upper']:g}, as the code of its authors is"
        )
        numbers = f"{lower:.1e} and {upper:.1e} after {outcome.record['iterations']} steps"
        claims.append(fixed(text, "Chen et al. (2024), their code", *decided(good, numbers)))
    return claims


def paper_claims(found: Mapping[str, Standing]) -> list[Claim]:
    """Judge what the authors of PB-APG find when they compare it with others, at equal passes."""
    runs = found["a1a"].runs if "a1a" in found else {}
    if not {"pb-apg", *BEATEN} <= set(runs):
        return []
    gaps = {label: found["a1a"].end(label, "lower_gap") for label in ("pb-apg", *BEATEN)}
    text = "PB-APG ends with a smaller lower gap than MNG, BiG-SAM, DBGD, a-IRG and CG-BiO on a1a"
    numbers = ", ".join(f"{label} {gap:.1e}" for label, gap in gaps.items())
    good = all(gaps["pb-apg"] < gaps[label] for label in BEATEN)
    return [fixed(text, "Chen et al. (2024), experiments", *decided(good, numbers))]


def time_claims(found: Mapping[str, Standing]) -> list[Claim]:
    """Judge whether the default is nearly as fast as the fastest method, problem by problem, and faster than CVXPY."""
    claims = []
    ours = {problem: standing for problem, standing in found.items() if OURS in standing.runs and len(standing.runs) > 1}
    for standing in ours.values():
        taken = {level: (standing.seconds(OURS, level), *standing.fastest(level)) for level in standing.levels}
        if taken:
            good = all(math.isfinite(mine) and mine <= CLOSE * best for mine, _, best in taken.values())
            each = (f"ε = {level:g}: {time_text(mine)} s, {label} {time_text(best)} s"
                    for level, (mine, label, best) in taken.items())  # fmt: skip
            text = (
                f"{OURS} is (ε, ε)-optimal in {CLOSE:g} × the time of the fastest method at most, where less than "
                f"{SHORTEST:g} s counts as that: {standing.title}"
            )
            claims.append(fixed(text, "not in a paper", *decided(good, "; ".join(each))))
    ends = {s.title: (s.end(OURS, "seconds"), s.end(CVXPY, "seconds")) for s in ours.values() if CVXPY in s.runs}
    if ends:
        numbers = "; ".join(f"{title}: {time_text(mine)} s, CVXPY {time_text(its)} s" for title, (mine, its) in ends.items())
        good = all(mine < its for mine, its in ends.values())
        claims.append(fixed(f"{OURS} ends sooner than CVXPY on each problem", "not in a paper", *decided(good, numbers)))
    return claims


def end_claims(found: Mapping[str, Standing]) -> list[Claim]:
    """Judge whether the default ends as near to the solution as any other method."""
    ends = {}
    for standing in found.values():
        others = [(standing.error(label), label) for label in standing.runs if label != OURS]
        if others and OURS in standing.runs:
            ends[standing.title] = (standing.error(OURS), *min(others))
    text = f"{OURS} ends within {CLOSE:g} × the error of the best method on each problem, as far as f* is known"
    if not ends:
        return [fixed(text, "not in a paper", Verdict.OPEN, "no runs to compare")]
    numbers = "; ".join(f"{title}: {mine:.1e}, {label} {best:.1e}" for title, (mine, best, label) in ends.items())
    good = all(mine <= CLOSE * best for mine, best, _ in ends.values())
    return [fixed(text, "not in a paper", *decided(good, numbers))]


def decided(holds: bool, numbers: str) -> Judgement:
    """Judge by what was computed."""
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, numbers)


def fixed(text: str, where: str, verdict: Verdict, numbers: str) -> Claim:
    """Return a claim on fixed problems: no sample of seeds is needed to decide it."""
    return Claim(text, where, verdict, numbers, at_any_budget=True, fewest_seeds=1)


def methods(plan: Plan) -> tuple[str, ...]:
    """Return the names of the methods: all that look at both levels and take finite data; a few for a quick run."""
    every = (name for name, method in tiebreak.METHODS.items() if len(method().levels) == 2 and name != "sample-average")
    return FEW if plan.quick else tuple(every)


def _budget(plan: Plan, problem: str) -> tuple[int, float]:
    return (QUICK_PASSES, QUICK_SECONDS) if plan.quick else (MORE_PASSES.get(problem, PASSES), SECONDS)


def _name(problem: str, method: str) -> str:
    return f"published/{problem}/{method}"


def _source(plan: Plan) -> Source:
    return plan.source(*Published.sources)
