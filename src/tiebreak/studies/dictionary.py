"""Continual dictionary learning: a dictionary learns new data and keeps what it knows of the old.

Cao et al. (2023), section 5 and appendix, Figures 2, 4 and 6: a dictionary of 40 atoms and its codes are learned from old
data; with these codes held, the lower level is the error on the old data of a dictionary of 50 atoms, and the upper level
its error on new data with codes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import tiebreak
from tiebreak.data import Atoms
from tiebreak.studies.claims import Claim, fewer, least, most, second, together, within
from tiebreak.studies.comparing import Measure, Traces, at, compare, parameters, table
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Study, Table, Task
from tiebreak.studies.tracing import solved, trace

RADIUS = 3.0  # radius of the ℓ1 balls of codes
SIZE = 50  # atoms of the new dictionary
LEARNING, QUICK_LEARNING = 10_000, 500  # iterations of each of the two phases that learn the old dictionary
QUERIES, QUICK_QUERIES = 1_000_000, 50_000
REFERENCE = 20_000  # iterations that find g*, at most
EXACT = 1e-14  # relative gap at which it is found
METHODS = {"SBCGI": "sbcgi", "SBCGF": "sbcgf", "aR-IP-SeG": "arip-seg", "DBGD-sto": "dbgd-sto"}
MEASURES = (
    Measure("lower_gap", "lower gap g(x) − g*"),
    Measure("upper", "upper objective f(x)"),
    Measure("recovery", "recovery rate (atoms normalised)", "linear"),
    Measure("raw_recovery", "recovery rate (raw products)", "linear"),
)
LEVELS = {"SBCGF": 1e-6, "SBCGI": 1e-4, "DBGD-sto": 3e-3}  # lower gaps that should be seen


class Continual(NamedTuple):
    """The problem, and a point to start from."""

    problem: tiebreak.Problem
    x0: np.ndarray
    atoms: Atoms  # the data, and the true dictionary


def continual(seed: int = 0, size: int = SIZE, iterations: int = LEARNING) -> Continual:
    """Return the problem of a dictionary of ``size`` atoms, and its start: the old dictionary and atoms of zero.

    The old dictionary is learned in two phases: Frank-Wolfe with steps 1/√(t + 1) on atoms and codes, then Frank-Wolfe with
    exact line search on the atoms alone. The codes of the new data are random, of the largest norm.
    """
    atoms = tiebreak.data.dictionary(seed)
    rng = np.random.default_rng(seed)
    (m, n_old), n_new, known = atoms.old.shape, atoms.new.shape[1], atoms.old_atoms.size

    start = np.concatenate([_unit_columns(rng, m, known), RADIUS * _unit_columns(rng, known, n_old, order=1)])
    guess = start[m * known :].reshape(n_old, known).T
    learning = tiebreak.Problem(  # of which the upper level alone is minimised
        tiebreak.JointDictionaryLoss(atoms.old), tiebreak.DictionaryLoss(atoms.old, guess), _domain(m, known, n_old)
    )
    frank_wolfe = tiebreak.SpiderFW(step=tiebreak.power(1.0, 0.5), period=1, batch_size=1)
    learned = solved(learning, frank_wolfe, x0=start, max_queries=None, max_iterations=iterations)
    codes = learned.parts["X"]
    fitted = line_search_frank_wolfe(atoms.old, codes, learned.parts["D"], iterations)

    x0 = np.concatenate([fitted.ravel("F"), np.zeros(m * (size - known)), RADIUS * _unit_columns(rng, size, n_new, order=1)])
    return Continual(_bilevel(atoms, codes, size), x0, atoms)


def line_search_frank_wolfe(A: np.ndarray, codes: np.ndarray, D: np.ndarray, iterations: int) -> np.ndarray:
    """Return the atoms, of length at most 1, to which Frank-Wolfe with exact line search takes ‖A − D X‖² from D."""
    gram, products = codes @ codes.T, A @ codes.T
    D = D.copy()
    for _ in range(iterations):
        gradient = D @ gram - products
        lengths = np.linalg.norm(gradient, axis=0)
        direction = -gradient / np.where(lengths > 0.0, lengths, 1.0) - D
        slope, curvature = float((gradient * direction).sum()), float(((direction @ gram) * direction).sum())
        if slope >= 0.0 or curvature <= 0.0:
            break
        D += min(-slope / curvature, 1.0) * direction
    return D


def recovery(D: np.ndarray, truth: np.ndarray, threshold: float = 0.9, normalised: bool = True) -> float:
    """Return the share of true atoms to which some atom of D has an inner product above a threshold.

    The paper's text takes the atoms as they are; the programs of its predecessor normalise them first.
    """
    lengths = np.linalg.norm(D, axis=0)
    kept = lengths > 0.0
    products = np.abs(truth.T @ D[:, kept]) / (lengths[kept] if normalised else 1.0)
    return float((products.max(axis=1, initial=0.0) > threshold).mean())


def start(seed: int, iterations: int) -> Outcome:
    """Make the problem and its first point, and find g*."""
    problem, x0, atoms = continual(seed, iterations=iterations)
    best = solved(
        problem,
        tiebreak.FISTA(level="lower"),
        x0=x0,
        max_queries=None,
        max_iterations=REFERENCE,
        callback=lambda seen: seen.lower_gap_bound <= EXACT * seen.lower,
    )
    record = {
        "lower": problem.lower.value(x0),
        "upper": problem.upper.value(x0),
        "recovery": recovery(problem.domain.parts(x0)["D"], atoms.dictionary),
        "best_lower": best.lower,
        "lower_gap_bound": float(best.lower_gap_bound),
    }
    codes = problem.lower.objective.codes
    return Outcome({"x0": x0, "codes": np.ascontiguousarray(codes.T)}, record)


def run(
    seed: int, method: str, max_queries: int | None, time_limit: float | None, iterations: int, start: Outcome
) -> Outcome:
    """Run a method with the constants of the paper."""
    atoms = tiebreak.data.dictionary(seed)
    problem = _bilevel(atoms, start.arrays["codes"], SIZE)

    def rate(normalised: bool) -> Any:
        return lambda x: recovery(problem.domain.parts(x)["D"], atoms.dictionary, normalised=normalised)

    outcome = trace(
        problem,
        tiebreak.METHODS[method](preset="paper-dictionary"),  # type: ignore[call-arg]
        measures={"recovery": rate(True), "raw_recovery": rate(False)},
        x0=start.arrays["x0"],
        max_queries=max_queries,
        time_limit=time_limit,
        seed=seed,
    )
    gap = outcome.arrays["lower"] - start.record["best_lower"]
    return Outcome({**outcome.arrays, "lower_gap": gap}, {**outcome.record, "lower_gap": float(gap[-1])})


def start_task(plan: Plan, seed: int) -> Task:
    """Return the making of the problem, the same for all studies."""
    return Task("dictionary/start", seed, start, {"iterations": QUICK_LEARNING if plan.quick else LEARNING})


def task(plan: Plan, seed: int, method: str, seconds: float | None = None) -> Task:
    """Return the run of a method with the budget of the paper, or for some seconds; the same one for all studies."""
    first = start_task(plan, seed)
    queries = (QUICK_QUERIES if plan.quick else QUERIES) if seconds is None else None
    settings = {"method": method, "max_queries": queries, "time_limit": seconds, **first.settings}
    name = f"dictionary/{method}" + ("" if seconds is None else f"-{seconds:g}s")
    return Task(name, seed, run, settings, {"start": first})


class ContinualDictionary(Study):
    """Figures 2, 4 and 6."""

    name = "dictionary"
    title = "Continual dictionary learning"
    reference = "Cao et al. (2023), Figures 2, 4, 6"

    def tasks(self, plan: Plan) -> list[Task]:
        seeds = range(plan.seeds)
        return [start_task(plan, s) for s in seeds] + [task(plan, s, m) for s in seeds for m in METHODS.values()]

    def section(self, plan: Plan, runs: Runs) -> Section:
        traces = {label: runs.of(f"dictionary/{name}") for label, name in METHODS.items()}
        one = {label: {seed: o for seed, o in each.items() if seed == 0} for label, each in traces.items()}
        seeds = f"Mean and range over {plan.seeds} seeds."
        return Section(
            "A dictionary of 40 atoms is learned from old data; a dictionary of 50 shall fit new data, made of 20 atoms of "
            "which 10 are old, among all that fit the old data, with their codes, as well as can be. All methods start from "
            "the same point, which nearly minimises g.\n\nObjectives are means over 250 points; the constants are those of "
            "the paper, which are meant for sums. In units of sums a gap is 250 times as large.",
            [
                compare("figure-2", "Figure 2: against samples, seed 0.", one, MEASURES),
                compare("figure-4", f"Figure 4: against seconds of computing. {seeds}", traces, MEASURES, "seconds"),
                compare("figure-6", f"Figure 6: against samples. {seeds}", traces, MEASURES),
            ],
            [table("At the end of the budget: median (range) over seeds", traces, MEASURES), starts(runs)],
            claims(traces, runs.of("dictionary/start")),
            settings(plan, traces),
        )


def settings(plan: Plan, traces: Traces) -> dict[str, Any]:
    """Return what a reader must know to do it again."""
    learning = start_task(plan, 0).settings["iterations"]
    return {
        "data": "generated: 25 × 50 dictionary, 40 + 20 atoms, 250 + 250 points of 5 atoms each, noise 0.01",
        "first point": f"two phases of Frank-Wolfe, {learning:,} iterations each, not counted",
        "g*": f"FISTA from the first point, until a relative gap of {EXACT:g} is proven",
        "budget": f"{QUICK_QUERIES if plan.quick else QUERIES:,} samples",
        "set": f"atoms of length at most 1, codes in ℓ1 balls of radius {RADIUS:g}",
        **parameters(traces),
    }


def starts(runs: Runs) -> Table:
    """Return what is known of the first points, seed by seed."""
    head = ["seed", "g(x0) − g*", "g*", "proven: less by at most", "f(x0)", "recovery of x0"]
    records = {seed: outcome.record for seed, outcome in runs.of("dictionary/start").items()}
    rows = [
        [seed, r["lower"] - r["best_lower"], f"{r['best_lower']:.6g}", r["lower_gap_bound"], r["upper"], r["recovery"]]
        for seed, r in records.items()
    ]
    return Table("First points and reference values", head, rows)


def claims(traces: Traces, first: Mapping[int, Outcome]) -> list[Claim]:
    """Judge what the paper says of Figure 2."""
    lower, upper, rate, _ = ({label: at(each, m.column) for label, each in traces.items()} for m in MEASURES)
    good, baselines = ("SBCGI", "SBCGF", "DBGD-sto"), ("DBGD-sto", "aR-IP-SeG")
    before = {seed: outcome.record["recovery"] for seed, outcome in first.items()}
    f_before = {seed: outcome.record["upper"] for seed, outcome in first.items()}
    change = {seed: value - before[seed] for seed, value in rate["aR-IP-SeG"].items() if seed in before}
    levels = {label: within(lower[label], level / 10**0.5, level * 10**0.5) for label, level in LEVELS.items()}
    return [
        Claim("SBCGF has the smallest lower-level gap", "Fig. 2(a)", *least(lower, "SBCGF", "SBCGI", *baselines)),
        Claim("SBCGI has the second-smallest lower-level gap", "Fig. 2(a)", *second(lower, "SBCGF", "SBCGI", *baselines)),
        Claim("DBGD-sto is poor at the lower level, compared with SBCGI and SBCGF", "Fig. 2(a)",
              *together(SBCGI=fewer(lower["SBCGI"], lower["DBGD-sto"]), SBCGF=fewer(lower["SBCGF"], lower["DBGD-sto"]))),
        Claim("aR-IP-SeG is poor at the lower level, compared with SBCGI and SBCGF", "Fig. 2(a)",
              *together(SBCGI=fewer(lower["SBCGI"], lower["aR-IP-SeG"]), SBCGF=fewer(lower["SBCGF"], lower["aR-IP-SeG"]))),
        Claim("SBCGI, SBCGF and DBGD-sto do well at the upper level (f falls below a tenth of its first value)", "Fig. 2(b)",
              *together(**{label: fewer(upper[label], f_before, 0.1) for label in good})),
        Claim("SBCGI, SBCGF and DBGD-sto recover most atoms (a rate of 0.9 or more)", "Fig. 2(c)",
              *together(**{label: within(rate[label], 0.9, 1.0) for label in good})),
        Claim("aR-IP-SeG is worst at the upper level", "Fig. 2(b)", *most(upper, "aR-IP-SeG")),
        Claim("aR-IP-SeG recovers no more atoms than the first point has", "Fig. 2(c)", *within(change, -1.0, 0.0)),
        Claim("Lower gaps (of means) are near 1e-6 for SBCGF, 1e-4 for SBCGI, 3e-3 for DBGD-sto: within a factor of √10",
              "Fig. 2(a); the text has no numbers", *together(**levels)),
    ]  # fmt: skip


def _bilevel(atoms: Atoms, codes: np.ndarray, size: int) -> tiebreak.Problem:
    """Return the problem of a dictionary of a size, from codes of the old data for fewer atoms."""
    prolonged = np.vstack([codes, np.zeros((size - codes.shape[0], codes.shape[1]))])
    lower = tiebreak.DictionaryLoss(atoms.old, prolonged)
    return tiebreak.Problem(
        tiebreak.JointDictionaryLoss(atoms.new), lower, _domain(atoms.old.shape[0], size, atoms.new.shape[1])
    )


def _domain(m: int, size: int, n: int) -> tiebreak.Product:
    return tiebreak.Product(
        D=tiebreak.Columns(tiebreak.L2Ball(1.0), (m, size)), X=tiebreak.Columns(tiebreak.L1Ball(RADIUS), (size, n))
    )


def _unit_columns(rng: np.random.Generator, rows: int, columns: int, order: int = 2) -> np.ndarray:
    """Return a random matrix whose columns have norm 1, column by column."""
    matrix = rng.standard_normal((rows, columns))
    return (matrix / np.linalg.norm(matrix, ord=order, axis=0)).ravel("F")
