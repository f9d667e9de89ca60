"""Over-parameterised regression: of the models that fit the training data best, the one that fits the validation data best.

Cao et al. (2023), section 5 and appendix, Figures 1, 3 and 5: 1068 × 730, thirds for training (lower level), validation
(upper level) and test, an ℓ1 ball of radius 10. The paper takes fewer samples than features so that several models fit best;
where the ball binds that need not be so. It is tested, and the methods are run on data with a tie too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tiebreak
from tiebreak.studies import references, ties
from tiebreak.studies.claims import Claim, fewer, least, most, second, together, within
from tiebreak.studies.comparing import Measure, Traces, at, at_first_point, combine, compare, parameters, table
from tiebreak.studies.sources import count_matrix
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Source, Study, Table, Task
from tiebreak.studies.tracing import trace

RADIUS = 10.0
QUERIES, QUICK_QUERIES = 1_000_000, 60_000
PLANTED = Source("planted")  # data with a tie
PLANTED_FEATURES = 20  # features whose mean is the target
METHODS = {"SBCGI": "sbcgi", "SBCGF": "sbcgf", "aR-IP-SeG": "arip-seg", "DBGD-sto": "dbgd-sto"}
MEASURES = (
    Measure("lower_gap", "lower gap g(x) − g*"),
    Measure("upper_gap", "upper gap f(x) − f*, signed", "symlog"),
    Measure("test", "test error"),
)


def split(seed: int, source: dict[str, Any]) -> tiebreak.data.Split:
    """Return the thirds of the data for a seed."""
    if source["kind"] == PLANTED.kind:
        return planted(seed)
    return tiebreak.data.split(count_matrix(Source(**source), seed), seed)


def planted(seed: int) -> tiebreak.data.Split:
    """Return page views whose target is a mean of some features, without noise.

    This mean, which lies inside the ball, fits all samples: g* = f* = 0. So does a whole face of models fit the training
    samples, which are fewer than the features; on the validation samples most of them fail.
    """
    parts = tiebreak.data.split(tiebreak.data.pageviews(seed), seed)
    rng = np.random.default_rng([seed, PLANTED_FEATURES])
    truth = np.zeros(parts.train.A.shape[1])
    truth[rng.choice(truth.size, PLANTED_FEATURES, replace=False)] = rng.dirichlet(np.ones(PLANTED_FEATURES))
    thirds = {name: getattr(parts, name) for name in ("train", "validation", "test")}
    return parts._replace(**{name: third._replace(b=third.A @ truth) for name, third in thirds.items()})


def run(seed: int, method: str, max_queries: int | None, time_limit: float | None, source: dict[str, Any]) -> Outcome:
    """Run a method with the constants of the paper."""
    parts = split(seed, source)
    train, validation, test = (tiebreak.LeastSquares(*part) for part in (parts.train, parts.validation, parts.test))
    problem = tiebreak.Problem(validation, train, tiebreak.L1Ball(RADIUS))
    budget = {"max_queries": max_queries, "time_limit": time_limit}
    configured = tiebreak.METHODS[method](preset="paper")  # type: ignore[call-arg]
    return trace(problem, configured, measures={"test": test.value}, seed=seed, **budget)


def reference(seed: int, source: dict[str, Any]) -> Outcome:
    """Solve the problem to rounding, with proofs."""
    parts = split(seed, source)
    return references.solve(parts.train, parts.validation, RADIUS)


def count_minimisers(seed: int, source: dict[str, Any]) -> Outcome:
    """Find out how many minimisers the training loss has."""
    found = ties.minimisers(*split(seed, source).train, RADIUS)
    return Outcome({}, {**found._asdict(), "words": found.words})


def task(plan: Plan, seed: int, method: str, seconds: float | None = None) -> Task:
    """Return the run of a method with the budget of the paper, or for some seconds; the same one for all studies."""
    queries = (QUICK_QUERIES if plan.quick else QUERIES) if seconds is None else None
    settings = {"method": method, "max_queries": queries, "time_limit": seconds, "source": _source(plan)._asdict()}
    return Task(f"regression/{method}" + ("" if seconds is None else f"-{seconds:g}s"), seed, run, settings)


def planted_task(plan: Plan, seed: int, method: str) -> Task:
    """Return the run of a method on data with a tie."""
    queries = QUICK_QUERIES if plan.quick else QUERIES
    settings = {"method": method, "max_queries": queries, "time_limit": None, "source": PLANTED._asdict()}
    return Task(f"regression/planted-{method}", seed, run, settings)


def counting_tasks(plan: Plan, seed: int) -> list[Task]:
    """Return the tests for ties in both kinds of data."""
    named = {"minimisers": _source(plan), "planted-minimisers": PLANTED}
    return [Task(f"regression/{name}", seed, count_minimisers, {"source": s._asdict()}) for name, s in named.items()]


def reference_task(plan: Plan, seed: int) -> Task:
    """Return the reference solve, the same one for all studies."""
    return Task("regression/reference", seed, reference, {"source": _source(plan)._asdict()})


def with_gaps(runs: Runs, methods: Mapping[str, str]) -> tuple[Traces, dict[int, references.Optimum]]:
    """Return the runs of methods with columns for both gaps, and the optimal values that these are measured from."""
    found = {label: runs.of(f"regression/{name}") for label, name in methods.items()}
    optima = {
        seed: references.optimum(solved, [each[seed].record for each in found.values() if seed in each])
        for seed, solved in runs.of("regression/reference").items()
    }

    def add(outcome: Outcome, best: references.Optimum) -> Outcome:
        gaps = {"lower_gap": outcome.arrays["lower"] - best.lower, "upper_gap": outcome.arrays["upper"] - best.upper}
        return Outcome({**outcome.arrays, **gaps}, outcome.record)

    traces = {label: {s: add(o, optima[s]) for s, o in each.items() if s in optima} for label, each in found.items()}
    return traces, optima


def planted_traces(runs: Runs) -> Traces:
    """Return the runs on data with a tie, with columns for both gaps: g* = f* = 0."""

    def add(outcome: Outcome) -> Outcome:
        gaps = {"lower_gap": outcome.arrays["lower"], "upper_gap": outcome.arrays["upper"]}
        return Outcome({**outcome.arrays, **gaps}, outcome.record)

    found = {label: runs.of(f"regression/planted-{name}") for label, name in METHODS.items()}
    return {label: {seed: add(outcome) for seed, outcome in each.items()} for label, each in found.items()}


def ties_table(runs: Runs, source: Source) -> Table:
    """Return how many minimisers the training loss has, seed by seed."""
    head = ["data", "seed", "the training loss has", "g*", "proven: less by at most"]
    named = {str(source): "regression/minimisers", str(PLANTED): "regression/planted-minimisers"}
    found = [(data, seed, outcome.record) for data, name in named.items() for seed, outcome in runs.of(name).items()]
    rows = [[data, seed, r["words"], f"{r['lower']:.3g}", r["gap"]] for data, seed, r in found]
    return Table("Is there a tie? Minimisers of the training loss", head, rows)


def reference_tables(runs: Runs, optima: Mapping[int, references.Optimum]) -> list[Table]:
    """Return what is proven of the optimal values, seed by seed, and what CVXPY finds."""
    records = {seed: outcome.record for seed, outcome in runs.of("regression/reference").items()}
    head = ["seed", "g*", "g* is less by at most", "f*", "f* is at least", "method, how it ended", "seconds"]
    rows = [
        [
            seed,
            f"{best.lower:.6g}",
            best.lower_accuracy,
            f"{best.upper:.6g}",
            f"{best.upper_floor:.6g}",
            records[seed]["solver"],
            records[seed]["seconds"],
        ]
        for seed, best in optima.items()
    ]
    tables = [Table("Reference values, and what is proven of them", head, rows)]
    solved = {seed: record for seed, record in records.items() if record["rival"] is not None and seed in optima}
    if solved:
        head = ["seed", "g − g*", "f − f*", "(f − f*) / f(0)", "its duality gap", "solver", "seconds", "times those above"]
        rows = [[seed, *_rival_row(record, optima[seed])] for seed, record in solved.items()]
        tables.append(Table("For comparison: what CVXPY finds", head, rows))
    return tables


def _rival_row(record: Mapping[str, Any], best: references.Optimum) -> list[Any]:
    lower, upper = record["rival_lower"] - best.lower, record["rival_upper"] - best.upper
    share, seconds = upper / record["upper_at_zero"], record["rival_seconds"]
    return [lower, upper, share, record["rival_gap"], record["rival"], seconds, f"{seconds / record['seconds']:.1f}"]


class Regression(Study):
    """Figures 1, 3 and 5."""

    name = "regression"
    title = "Over-parameterised regression"
    reference = "Cao et al. (2023), Figures 1, 3, 5"
    sources = ("pageviews", "wikimath", "montevideo")

    def tasks(self, plan: Plan) -> list[Task]:
        tasks = []
        for seed in range(plan.seeds):
            tasks += [reference_task(plan, seed), *counting_tasks(plan, seed)]
            for method in METHODS.values():
                tasks += [task(plan, seed, method), planted_task(plan, seed, method)]
        return tasks

    def section(self, plan: Plan, runs: Runs) -> Section:
        traces, optima = with_gaps(runs, METHODS)
        tied, source = planted_traces(runs), _source(plan)
        one = {label: {seed: o for seed, o in each.items() if seed == 0} for label, each in traces.items()}
        end = " Lines begin with the search for a first point, a tenth of the budget, where a method has one."
        seeds = f"Mean and range over {plan.seeds} seeds."
        figures = [
            compare("figure-1", "Figure 1: against samples, seed 0." + end, one, MEASURES),
            compare("figure-3", f"Figure 3: against seconds of computing. {seeds}", traces, MEASURES, "seconds"),
            compare("figure-5", f"Figure 5: against samples. {seeds}{end}", traces, MEASURES),
            compare(
                "tied", f"Data with a tie, not in the paper: against samples, g* = f* = 0. {seeds}{end}", tied, MEASURES
            ),
        ]
        return Section(
            "Of all linear models in an ℓ1 ball that have the least training error, find the one with the least validation "
            "error.\n\nThe paper takes fewer samples than features so that several models have the least training error. "
            "Where the ball binds (g* > 0) that does not follow: all minimisers are means of the few atoms ±R e_i of least "
            "price ⟨∇g, v⟩, and there is one minimiser if these are affinely independent on the training samples. "
            f"{premise(runs, source)} The methods are run on data with a known tie, too: page views whose target is a "
            f"mean of {PLANTED_FEATURES} features without noise, so that g* = f* = 0.\n\nGaps are measured from g* and f* "
            "as the active set finds and proves them; below f* the upper gap is negative: such a point is not yet optimal "
            "at the lower level.",
            figures,
            [
                table("At the end of the budget: median (range) over seeds", traces, MEASURES),
                table("The same on data with a tie", tied, MEASURES),
                ties_table(runs, source),
                *reference_tables(runs, optima),
            ],
            [tie_claim(runs), *claims(traces)],
            {
                "data": f"{source}; columns divided by their maximum; rows and target chosen by the seed",
                "budget": f"{QUICK_QUERIES if plan.quick else QUERIES:,} samples, first point included",
                "start": "0; SBCGI and SBCGF first search a point that nearly minimises g, with a tenth of the budget",
                "set": f"ℓ1 ball of radius {RADIUS:g}",
                **parameters(traces),
            },
            notes(optima),
        )


def premise(runs: Runs, source: Source) -> str:
    """Say how often the data at hand have a tie."""
    found = [outcome.record["dimension"] for outcome in runs.of("regression/minimisers").values()]
    if not found:
        return f"How many minimisers the training loss of {source} has was not found out."
    tally = {"one minimiser": found.count(0), "many": sum(map(bool, found)), "an unknown number of them": found.count(None)}
    said = " and ".join(f"{what} on {count} of {len(found)} seeds" for what, count in tally.items() if count)
    return f"The training loss of {source} has {said}."


def tie_claim(runs: Runs) -> Claim:
    """Judge the premise of the paper."""
    records = {seed: outcome.record for seed, outcome in runs.of("regression/minimisers").items()}
    dimensions = {s: np.nan if r["dimension"] is None else float(r["dimension"]) for s, r in records.items()}
    text = "With fewer samples than features several models have the least training error: a face of dimension 1 or more"
    return Claim(text, "Section 1", *within(dimensions, 1.0, np.inf), at_any_budget=True)


def claims(traces: Traces) -> list[Claim]:
    """Judge what the paper says of Figure 1."""
    lower, upper, test = ({label: at(each, m.column) for label, each in traces.items()} for m in MEASURES)
    half = {label: at(each, "upper_gap", 0.5) for label, each in traces.items()}
    ours_and_dbgd = [test[label] for label in ("SBCGI", "SBCGF", "DBGD-sto")]
    ratio = combine([combine(ours_and_dbgd, max), combine(ours_and_dbgd, min)], lambda pair: np.divide(*pair))
    sbcgi = traces["SBCGI"]
    rise = {m.column: fewer(at_first_point(sbcgi, m.column), at(sbcgi, m.column)) for m in MEASURES}
    others = ("SBCGI", "DBGD-sto", "aR-IP-SeG")
    return [
        Claim("SBCGF keeps a smaller lower-level gap than all others", "Fig. 1(a)", *least(lower, "SBCGF", *others)),
        Claim("SBCGI has the second-smallest lower-level gap", "Fig. 1(a)", *second(lower, "SBCGF", *others)),
        Claim("SBCGF has the smallest upper-level gap (signed)", "Fig. 1(b)", *least(upper, "SBCGF", *others)),
        Claim(
            "SBCGF converges faster than all others at the upper level: its gap is the smallest at half the budget",
            "Fig. 1(b)",
            *least(half, "SBCGF", *others),
        ),
        Claim("SBCGI is second-best at the upper level (signed gap)", "Fig. 1(b)", *second(upper, "SBCGF", *others)),
        Claim(
            "aR-IP-SeG is worst at both levels",
            "Fig. 1(a)(b)",
            *together(lower=most(lower, "aR-IP-SeG"), upper=most(upper, "aR-IP-SeG")),
        ),
        Claim(
            "DBGD-sto does well at the upper level (better than aR-IP-SeG), and not at the lower one (worse than SBCGI)",
            "Fig. 1(a)(b)",
            *together(upper=fewer(upper["DBGD-sto"], upper["aR-IP-SeG"]), lower=fewer(lower["SBCGI"], lower["DBGD-sto"])),
        ),
        Claim(
            "SBCGF, SBCGI and DBGD-sto reach almost equally small test errors (within a factor of 2)",
            "Fig. 1(c)",
            *within(ratio, 1.0, 2.0),
        ),
        Claim(
            "aR-IP-SeG fails to reach a small test error (it is above twice the largest of the others)",
            "Fig. 1(c)",
            *fewer(combine(ours_and_dbgd, max), test["aR-IP-SeG"], 0.5),
        ),
        Claim("After its first stage SBCGI increases slightly in all three criteria", "Section 5", *together(**rise)),
    ]


def notes(optima: Mapping[int, references.Optimum]) -> list[str]:
    """Say where the reference was not good enough."""
    wrong = [seed for seed, best in optima.items() if "certificate" in (best.lower_from, best.upper_from)]
    said = [
        "f* is the larger of f at the answer of the active set and the proven floor of f*, so that the true f* is no less "
        "up to rounding. The least f falls steeply when g may exceed g* by a little: most points seen here have f < f*, "
        "and g to twelve digits leaves f some four. Seconds are those of one call that solves and proves, and of CVXPY, "
        "both with their code loaded, while other runs go on beside."
    ]
    if wrong:
        said.append(f"on seeds {wrong} the reference is worse than what runs prove, and the proven bound is used instead.")
    return said


def _source(plan: Plan) -> Source:
    return plan.source(*Regression.sources)
