"""How often the cut keeps all minimisers of g, and how large the errors of the estimates are beside their bounds.

Cao et al. (2023), Lemmas 4.1 to 4.3, by Monte Carlo: on a small problem all minimisers of g are known, a polygon, and a cut
keeps them all if it keeps its vertices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import tiebreak
from tiebreak.methods.base import Budget
from tiebreak.studies.claims import Claim, fewer, together, within
from tiebreak.studies.drawing import Figure, Panel, band
from tiebreak.studies.known import DIMENSION, Known, known
from tiebreak.studies.rates import METHODS, SHARE, with_share
from tiebreak.studies.stepping import Step, steps
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Study, Table, Task

ITERATIONS, QUICK_ITERATIONS = 200, 60
REPEATS, QUICK_REPEATS = 10, 2  # runs of a seed, with new samples and the same data
CUT_ERROR = 1e-12  # rounding error by which a cut without slack may miss what it should keep
LABELS = {"sbcgi": "SBCGI", "sbcgf": "SBCGF"}
SLACKS = {
    "theory": "slack of theory",
    "share": f"1/{1 / SHARE:.0f} of it",
    "auto": "three standard errors (auto)",
    "none": "no slack (-M)",
}
STYLES = {"theory": "-", "share": "--", "auto": "-.", "none": "-"}
ERRORS = {"lower_gradient": "∇ĝ", "lower_value": "ĝ", "upper_gradient": "∇f̂"}


def configured(method: str, slack: str, problem: tiebreak.Problem, iterations: int) -> Any:
    """Return a method with one of the slacks, and for all but ``auto`` the steps of theory."""
    if slack == "auto":
        return METHODS[method](preset="auto")
    return with_share(method, problem, iterations, {"theory": 1.0, "share": SHARE, "none": 0.0}[slack])


def run(seed: int, method: str, slack: str, iterations: int, repeats: int) -> Outcome:
    """Run a method some times, and look at each cut and at each estimate."""
    case = known(seed)
    chosen = configured(method, slack, case.problem, iterations)
    proven = bounds(method, case.problem, iterations)
    kept, errors = np.zeros((repeats, iterations), dtype=bool), np.zeros((len(ERRORS), repeats, iterations))
    for r in range(repeats):
        for t, step in enumerate(steps(case.problem, chosen, case.x0, iterations, repeats * seed + r)):
            kept[r, t] = step.needed(case.vertices) <= step.slack + CUT_ERROR
            errors[:, r, t] = off(case, step)
    arrays = {"t": np.arange(iterations), "kept": kept.mean(axis=0)}
    record: dict[str, Any] = {
        "method": method,
        "slack": slack,
        "kept_always": float(kept.all(axis=1).mean()),
        "kept": float(kept.mean()),
    }
    for name, each in zip(ERRORS, errors, strict=True):
        arrays[name], arrays[f"{name}_bound"] = each.mean(axis=0), proven[name]
        # An exact estimate has no error, and rounding is not to be held against it.
        record[f"{name}_ratio"] = float((each / proven[name]).max())
        record[f"{name}_within"] = float((each <= proven[name]).all(axis=1).mean())
    return Outcome(arrays, record)


def off(case: Known, step: Step) -> list[float]:
    """Return the errors of ∇ĝ, ĝ and ∇f̂."""
    value, gradient = case.problem.lower.value_and_gradient(step.x)
    upper = case.problem.upper.value_and_gradient(step.x)[1]
    return [
        float(np.linalg.norm(step.gradient - gradient)),
        abs(step.value - value),
        float(np.linalg.norm(step.upper_gradient - upper)),
    ]


def bounds(method: str, problem: tiebreak.Problem, iterations: int) -> dict[str, np.ndarray]:
    """Return the bounds of Lemma 4.1 (STORM) or 4.2 (SPIDER), for all iterations together with probability 1 − δ."""
    chosen: Any = METHODS[method](preset="theory").for_problem(problem, Budget(iterations=iterations))
    k, t = chosen.theory, np.arange(iterations)
    each = k.failure_probability / iterations
    if method == "sbcgi":
        shrink, summed = np.sqrt(2.0 / (t + 1.0)), 3.0 / 2.0

        def storm(smoothness: float, noise: float, dimension: int) -> np.ndarray:
            size = k.c * (2.0 * smoothness * k.diameter + summed * noise)
            return size * math.sqrt(math.log(6.0 * dimension / each)) * shrink

        return {
            "lower_gradient": storm(k.lower_smoothness, k.lower_noise, DIMENSION),
            "lower_value": storm(k.lower_slope, k.value_noise, 1),
            "upper_gradient": storm(k.upper_smoothness, k.upper_noise, DIMENSION),
        }
    size = 4.0 * k.diameter * math.sqrt(math.log(12.0 / each)) * chosen.given("step")(t)
    constants = (k.lower_smoothness, k.lower_slope, k.upper_smoothness)
    return {name: constant * size for name, constant in zip(ERRORS, constants, strict=True)}


class Coverage(Study):
    """Lemmas 4.1 to 4.3."""

    name = "coverage"
    title = "What the cut keeps"
    reference = "Cao et al. (2023), Lemmas 4.1 to 4.3"

    def tasks(self, plan: Plan) -> list[Task]:
        sizes = {
            "iterations": QUICK_ITERATIONS if plan.quick else ITERATIONS,
            "repeats": QUICK_REPEATS if plan.quick else REPEATS,
        }
        return [
            Task(f"coverage/{method}-{slack}", seed, run, {"method": method, "slack": slack, **sizes})
            for seed in range(plan.seeds)
            for method in METHODS
            for slack in SLACKS
        ]

    def section(self, plan: Plan, runs: Runs) -> Section:
        found = {(m, s): runs.of(f"coverage/{m}-{s}") for m in METHODS for s in SLACKS}
        repeats = plan.seeds * (QUICK_REPEATS if plan.quick else REPEATS)
        return Section(
            "The cut may not lose a minimiser of g, or the guarantee is gone. All of them are known here, and each cut of "
            "each run is held against them: with the slack of theory, with a small share of it, with the automatic one "
            "(three standard errors, watched during the run) and with none. Runs begin at a minimiser of g, where the "
            "cut is tightest. Beside it, the errors of the estimates and the bounds that the lemmas give for them.\n\n"
            f"The share, 1/{1 / SHARE:.0f}, is a round number that was chosen by looking at these very runs, just large "
            f"enough to lose little: {share_kept(found)}. That is no claim, and no proof for other problems.",
            [_kept(found, repeats), _errors(found)],
            [kept_table(found), error_table(found)],
            claims(found),
            {
                "problem": f"{DIMENSION} variables, 400 samples per level; the minimisers of g are a polygon",
                "runs": f"{repeats} of each kind, {QUICK_ITERATIONS if plan.quick else ITERATIONS} iterations",
                "steps": "those of theory for f convex; for the automatic slack those of the preset",
                "constants": "estimated from the data (Theory), δ = 0.1 for all iterations together, c = 1",
            },
        )


Found = Mapping[tuple[str, str], Mapping[int, Outcome]]


def entries(found: Found, method: str, slack: str, name: str) -> dict[int, float]:
    """Return an entry of the records of one kind of run, by seed."""
    return {seed: float(outcome.record[name]) for seed, outcome in found[method, slack].items()}


def claims(found: Found) -> list[Claim]:
    """Judge the lemmas."""

    def kept(method: str, slack: str) -> dict[int, float]:
        return entries(found, method, slack, "kept_always")

    def each(judge: Any) -> Any:
        return together(**{label: judge(method) for method, label in LABELS.items()})

    def errors(method: str) -> Any:
        least = {seed: min(o.record[f"{name}_within"] for name in ERRORS) for seed, o in found[method, "theory"].items()}
        return within(least, 0.9, 1.0)

    return [
        Claim("With the slack of theory all minimisers of g stay in the cut, in all iterations of at least 9 of 10 runs",
              "Lemma 4.3", *each(lambda method: within(kept(method, "theory"), 0.9, 1.0))),
        Claim("So they do with three standard errors", "here", *each(lambda method: within(kept(method, "auto"), 0.9, 1.0))),
        Claim("Without slack the cut loses some of them, in more runs than with three standard errors", "Section 3",
              *each(lambda method: fewer(kept(method, "none"), kept(method, "auto")))),
        Claim("The errors of STORM's estimates are within their bounds in at least 9 of 10 runs", "Lemma 4.1",
              *errors("sbcgi")),
        Claim("The errors of SPIDER's estimates are within their bounds in at least 9 of 10 runs", "Lemma 4.2",
              *errors("sbcgf")),
        Claim("The bounds are of the right size: the largest error is more than a tenth of its bound", "here",
              *each(lambda method: within(entries(found, method, "theory", "lower_gradient_ratio"), 0.1, 1.0))),
    ]  # fmt: skip


def share_kept(found: Found) -> str:
    """Say how often the share of the slack of theory keeps all minimisers of g."""
    means = {
        label: float(np.mean(list(entries(found, method, "share", "kept_always").values())))
        for method, label in LABELS.items()
        if found[method, "share"]
    }
    return ", ".join(f"{mean:.1%} of the runs of {label} keep all" for label, mean in means.items()) or "no runs"


def kept_table(found: Found) -> Table:
    """Return the coverage of each slack."""
    rows = []
    for (method, slack), outcomes in found.items():
        if outcomes:
            always, share = (np.array(list(entries(found, method, slack, n).values())) for n in ("kept_always", "kept"))
            rows.append(
                [f"{LABELS[method]}, {SLACKS[slack]}", f"{always.mean():.1%}", f"{always.min():.0%}", f"{share.mean():.2%}"]
            )
    head = ["cut", "runs that keep all minimisers in every iteration", "least of the seeds", "iterations that keep all"]
    return Table("Coverage", head, rows)


def error_table(found: Found) -> Table:
    """Return the largest errors beside their bounds."""
    rows = []
    for method, label in LABELS.items():
        for slack in ("theory", "share"):
            if found[method, slack]:
                ratios = [np.max(list(entries(found, method, slack, f"{name}_ratio").values())) for name in ERRORS]
                rows.append([f"{label}, {SLACKS[slack]}", *(f"{ratio:.2g}" for ratio in ratios)])
    return Table("Largest error of an estimate, in units of its bound", ["run", *ERRORS.values()], rows)


def _kept(found: Found, repeats: int) -> Figure:
    panels = [
        Panel(f"{label}: share of runs whose cut keeps all", [
            band(SLACKS[slack], found[method, slack], "t", "kept", style=style)
            for slack, style in STYLES.items() if found[method, slack]
        ], "iteration")
        for method, label in LABELS.items()
    ]  # fmt: skip
    return Figure(
        "kept", f"Which part of {repeats} runs has all minimisers of g in the cut of an iteration. Bands: seeds.", panels
    )


def _errors(found: Found) -> Figure:
    panels = []
    for method, label in LABELS.items():
        outcomes = found[method, "share"]
        lines = [band(title, outcomes, "t", name) for name, title in ERRORS.items()]
        lines += [band(title, outcomes, "t", f"{name}_bound", style="--") for name, title in ERRORS.items()]
        panels.append(Panel(f"{label}: error of estimates", lines if outcomes else [], "iteration", yscale="log"))
    return Figure("errors", "Errors of the estimates (lines) and what the lemmas allow (dashed).", panels)
