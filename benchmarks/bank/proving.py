"""Answers that are not known by construction: proven by the library's active set, or what long runs agree on."""

from __future__ import annotations

import math

from bank.cases import Case, Reference
from tiebreak import FISTA, Problem, Result, SquaredNorm, minimize

SECONDS = 60.0  # for a proof
LONG = 20_000  # iterations that find g* where the active set does not apply
MANY_PASSES = 10_000  # of runs that find f* where f is not convex, …
LONG_RUNS = ("pb-apg", "sbcgf", "cg-bio")  # … methods that make them, …
NEARLY = 1e-5  # … and the relative gap of g within which they have found it


def reference_of(case: Case) -> tuple[Reference, float]:
    """Return the answer of a problem, and by how much g may exceed g* in it."""
    problem = case.problem
    if case.reference is not None:
        return case.reference, case.tolerance
    if not problem.upper.convex:
        return _best_known(problem, case.samples), 0.0
    return _proven(problem, case.ceiling)


def _proven(problem: Problem, ceiling: float) -> tuple[Reference, float]:
    """Return g* and f* with what is proven of both.

    f is at most f* at the points that the active set goes through, up to rounding. So the larger of f at its answer and its
    floor is taken for f*, unless a ceiling is known that is smaller.
    """
    answer = minimize(problem, "active-set", time_limit=SECONDS, progress=False)
    floors, ceiling = answer.certificate.floors, min(ceiling, answer.certificate.ceiling)
    upper = min(max(answer.upper, floors.upper), ceiling)
    above = ceiling - upper if math.isfinite(ceiling) else 0.0
    told = "proven" if math.isfinite(ceiling) else "proven from below"
    error = max(above, upper - floors.upper)
    least = floors.best_lower
    epsilon = problem.tolerance
    if problem.keep < 1.0:
        epsilon = (1.0 - problem.keep) * (problem.lower.value(problem.reference) - least)
    return Reference(least, upper, least - floors.lower, error, told), epsilon


def _best_known(problem: Problem, samples: int) -> Reference:
    """Return g*, and the least f that long runs find where g nearly has it; they may be off by what they differ."""
    answer: Result
    try:
        answer = minimize(Problem(SquaredNorm(), problem.lower, problem.domain), "active-set", time_limit=SECONDS)
    except ValueError:  # it says what the method needs and the problem lacks
        answer = minimize(problem, FISTA(level="lower"), max_queries=None, max_iterations=LONG, progress=False)
    floors = answer.certificate.floors
    least = floors.best_lower
    budget = {"max_queries": MANY_PASSES * samples, "time_limit": SECONDS}
    ends = [minimize(problem, method, **budget, progress=False) for method in LONG_RUNS]
    room = NEARLY * (problem.lower.value(problem.center) - least)
    found = sorted(end.upper for end in ends if end.lower - least <= room)
    upper, error = (found[0], found[-1] - found[0]) if len(found) > 1 else (0.0, math.inf)
    return Reference(least, upper, least - floors.lower, error, "long runs")
