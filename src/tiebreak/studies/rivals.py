"""The rivals: IR-SCG, IR-FSCG and CG-BiO beside SBCGI and SBCGF, at equal numbers of samples and at equal time.

Giang-Tran, Shafiee and Ho-Nguyen, Projection-free algorithms for (stochastic) simple bilevel optimization, NeurIPS 2025,
find their methods ahead at equal time, with the subproblem of SBCGI and SBCGF solved by a modelling language. Here the cut
is a matter of microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.studies import dictionary, regression
from tiebreak.studies.claims import Claim, fewer
from tiebreak.studies.comparing import Traces, at, compare, parameters, table
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Study, Task

METHODS = {"SBCGI": "sbcgi", "SBCGF": "sbcgf", "IR-SCG": "ir-scg", "IR-FSCG": "ir-fscg", "CG-BiO": "cg-bio"}
PAIRS = {"IR-SCG": "SBCGI", "IR-FSCG": "SBCGF"}
SECONDS, QUICK_SECONDS = {"regression": 2.0, "dictionary": 8.0}, {"regression": 0.2, "dictionary": 0.4}


class Rivals(Study):
    """The comparison of the IR-SCG paper."""

    name = "rivals"
    title = "Rivals at equal samples and at equal time"
    reference = "Giang-Tran, Shafiee, Ho-Nguyen (2025), experiments"
    sources = regression.Regression.sources

    def tasks(self, plan: Plan) -> list[Task]:
        seconds = _seconds(plan)
        tasks = []
        for seed in range(plan.seeds):
            tasks += [regression.reference_task(plan, seed), dictionary.start_task(plan, seed)]
            for method in METHODS.values():
                tasks += [regression.task(plan, seed, method, limit) for limit in (None, seconds["regression"])]
                tasks += [dictionary.task(plan, seed, method, limit) for limit in (None, seconds["dictionary"])]
        return tasks

    def section(self, plan: Plan, runs: Runs) -> Section:
        seconds = _seconds(plan)
        timed = {label: f"{name}-{seconds['regression']:g}s" for label, name in METHODS.items()}
        # Together, so that all gaps of a seed are measured from the same optimal values.
        found, optima = regression.with_gaps(runs, {**METHODS, **{name: name for name in timed.values()}})
        equal_queries = {label: found[label] for label in METHODS}
        equal_time = {label: found[name] for label, name in timed.items()}
        atoms_queries = {label: runs.of(f"dictionary/{name}") for label, name in METHODS.items()}
        atoms_time = {label: runs.of(f"dictionary/{name}-{seconds['dictionary']:g}s") for label, name in METHODS.items()}
        seeds = f"Mean and range over {plan.seeds} seeds."
        clock = f"{seconds['regression']:g} s (regression) and {seconds['dictionary']:g} s (dictionary) by the wall"
        return Section(
            "The regression and the dictionary problem, with the constants that each paper gives. At equal samples all "
            "methods draw as many; at equal time all compute for as long. The subproblem of SBCGI, SBCGF and CG-BiO, a "
            "linear minimisation over the set and a half-space, costs microseconds here, not an LP.",
            [
                compare("regression-samples", f"Regression at equal samples. {seeds}", equal_queries, regression.MEASURES),
                compare("regression-time", f"Regression at equal time. {seeds}", equal_time, regression.MEASURES, "seconds"),
                compare("dictionary-samples", f"Dictionary at equal samples. {seeds}", atoms_queries, dictionary.MEASURES),
                compare("dictionary-time", f"Dictionary at equal time. {seeds}", atoms_time, dictionary.MEASURES, "seconds"),
            ],
            [
                table("Regression, equal samples: median (range) over seeds", equal_queries, regression.MEASURES),
                table("Regression, equal time", equal_time, regression.MEASURES),
                table("Dictionary, equal samples", atoms_queries, dictionary.MEASURES),
                table("Dictionary, equal time", atoms_time, dictionary.MEASURES),
                *regression.reference_tables(runs, optima),
            ],
            claims(equal_time, atoms_time),
            {
                "equal samples": "the budgets of the regression and the dictionary study",
                "equal time": clock + ", while other runs go on beside",
                **{f"{label} (regression)": text for label, text in parameters(equal_queries).items()},
                **{f"{label} (dictionary)": text for label, text in parameters(atoms_queries).items()},
            },
            regression.notes(optima),
        )


def claims(equal_time: Traces, atoms_time: Traces) -> list[Claim]:
    """Judge whether the rivals are ahead at equal time, level by level."""
    found = []
    for rival, ours in PAIRS.items():
        for problem, traces in (("regression", equal_time), ("dictionary", atoms_time)):
            lower = {label: at(traces[label], "lower_gap") for label in (rival, ours)}
            found.append(_claim(f"{rival} has a smaller lower gap than {ours} at equal time, {problem}", lower, rival, ours))
        upper = {label: at(equal_time[label], "upper_gap") for label in (rival, ours)}
        found.append(
            _claim(f"{rival} has a smaller upper gap (signed) than {ours} at equal time, regression", upper, rival, ours)
        )
        upper = {label: at(atoms_time[label], "upper") for label in (rival, ours)}
        found.append(_claim(f"{rival} has a smaller f than {ours} at equal time, dictionary", upper, rival, ours))
        steps = {label: _iterations(equal_time[label]) for label in (rival, ours)}
        judged = fewer(steps[ours], steps[rival], 0.01)
        found.append(Claim(f"{rival} makes a hundred times as many steps as {ours} in equal time", "experiments", *judged))
    return found


def _claim(text: str, values: Mapping[str, dict[int, float]], rival: str, ours: str) -> Claim:
    return Claim(text, "experiments", *fewer(values[rival], values[ours]))


def _iterations(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    return {seed: outcome.record["iterations"] for seed, outcome in outcomes.items()}


def _seconds(plan: Plan) -> dict[str, float]:
    return QUICK_SECONDS if plan.quick else SECONDS
