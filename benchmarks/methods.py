"""Every stochastic method against its bare gradients, and the time that every method takes to given gaps.

Run ``python benchmarks/methods.py``, with ``--quick`` for a shorter run. The first table divides the time of a query, a
sample drawn at one level, by that of drawing it and evaluating its gradients alone, at the size of the paper's regression.
The second one gives the seconds until both gaps are small, on the page views, relative to the two-stage solution by CVXPY
with Clarabel, whose own seconds are beside them.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy
import loops
import numpy as np
from loops import NO_CUT
from timing import Row, Size, Target, counted, short, show, show_table, size_asked, take_turns

from tiebreak import (
    IRFSCG,
    IRSCG,
    METHODS,
    SBCGF,
    SBCGI,
    ARIPSeG,
    DBGDSto,
    L1Ball,
    LeastSquares,
    Method,
    Problem,
    SpiderFW,
    StormFW,
    data,
    minimize,
)
from tiebreak.engine import Kernel

RADIUS = 10.0
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)


# A query against its bare gradients


class Contender(NamedTuple):
    """A method, its bare work and how many times as long as that it may take."""

    what: str
    method: Method
    bare: Kernel
    limit: float | None


CONTENDERS = [
    Contender("sbcgi, no cut active", SBCGI(preset="paper", slack=NO_CUT), loops.bare_storm, 2.0),
    Contender("sbcgi, all cuts active", SBCGI(preset="paper", slack=0.0), loops.bare_storm, None),
    Contender("sbcgf, no cut active", SBCGF(preset="paper", slack=NO_CUT), loops.bare_spider, 2.0),
    Contender("sbcgf, all cuts active", SBCGF(preset="paper", slack=0.0), loops.bare_spider, 2.0),
    Contender("ir-scg", IRSCG(preset="paper"), loops.bare_storm, 2.0),
    Contender("ir-fscg", IRFSCG(preset="paper"), loops.bare_spider, 2.0),
    Contender("storm-fw", StormFW(preset="paper"), loops.bare_storm_upper, None),
    Contender("spider-fw", SpiderFW(preset="paper"), loops.bare_spider_upper, None),
    Contender("arip-seg", ARIPSeG(preset="paper"), loops.bare_extra_gradients, 5.0),
    Contender("arip-seg, batch of 8", ARIPSeG(preset="paper", batch_size=8), loops.bare_extra_gradients, 5.0),
    Contender("dbgd-sto", DBGDSto(preset="paper"), loops.bare_gradients, 5.0),
    Contender("dbgd-sto, batch of 8", DBGDSto(preset="paper", batch_size=8), loops.bare_gradients, 5.0),
]


def compare_queries(size: Size) -> None:
    """Divide the time of a query by that of its bare gradients."""
    n, d = loops.shape_of(size)
    problem = loops.regression(n, d)
    x = loops.first_point(problem, size.pick(1_000_000, 1_000_000, 100))
    iterations = size.pick(20_000, 5_000, 10)
    turns: dict[str, Callable[[], float]] = {}
    for what, method, bare, _ in CONTENDERS:
        method = method.for_problem(problem)
        turns[f"{what}: bare"] = loops.time_of_bare(bare, problem, method, x, iterations)
        turns[what] = loops.time_of_loop(problem, method, x, iterations)
    times = take_turns(turns, size.pick(21, 5, 1), "queries")
    show(
        f"Time of a query / time of its bare gradients ({n} x {d} at each level, l1 ball)",
        [
            Row(what, times[what], times[f"{what}: bare"], target=None if limit is None else Target(limit))
            for what, _, _, limit in CONTENDERS
        ],
    )


# The time to given gaps


class Reference(NamedTuple):
    """The two-stage solution."""

    upper: float  # f*
    lower: float  # g*
    seconds: float
    status: str


def two_stages(problem: Problem) -> Reference:
    """Minimise g, then f over the points of the ball with the same fit, A x = A x_g: the form g(x) ≤ g* has no interior."""
    (A, a), (B, b) = ((level.matrix.array, level.targets) for level in (problem.lower, problem.upper))
    tight = {"solver": cvxpy.CLARABEL, "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    x = cvxpy.Variable(A.shape[1])
    ball = cvxpy.norm1(x) <= problem.domain.radius
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a solution may be inaccurate: the status says so
        scale = 1.0 / problem.lower.value(np.zeros(x.size))  # a solver's tolerances are absolute
        cvxpy.Problem(cvxpy.Minimize(scale * cvxpy.sum_squares(A @ x - a)), [ball]).solve(**tight)
        fit = A @ x.value
        second = cvxpy.Problem(cvxpy.Minimize(scale * cvxpy.sum_squares(B @ x - b)), [ball, A @ x == fit])
        second.solve(**tight)
    elapsed = time.perf_counter() - began
    return Reference(problem.upper.value(x.value), 0.5 * float(np.mean((fit - a) ** 2)), elapsed, second.status)


def page_views() -> Problem:
    """Return the regression of the demo: validation loss over the minimisers of the training loss."""
    parts = data.split(data.pageviews(0), 0)
    return Problem(LeastSquares(*parts.validation), LeastSquares(*parts.train), L1Ball(RADIUS))


def seconds_to(history: Any, reference: Reference, units: tuple[float, float], level: float) -> float:
    """Return when both gaps first were at most a level, relative to those at zero; infinity if never."""
    upper, lower = (history.upper - reference.upper) / units[0], (history.lower - reference.lower) / units[1]
    reached = (upper <= level) & (lower <= level)
    return float(history.seconds[np.argmax(reached)]) if reached.any() else math.inf


def compare_solutions(size: Size) -> None:
    """Run every method for some seconds; print when it reached given gaps, and where it ended."""
    problem = loops.regression(*loops.shape_of(size)) if size is Size.TINY else page_views()
    zero = np.zeros(problem.dimension)
    reference = two_stages(problem)
    units = problem.upper.value(zero) - reference.upper, problem.lower.value(zero) - reference.lower
    limit = size.pick(20.0, 3.0, 0.05)
    lines = []
    for name in counted(METHODS, "methods"):
        try:
            result = minimize(problem, name, max_queries=None, time_limit=limit, progress=False)
        except ValueError:  # it says what the method needs and the problem lacks
            lines.append([name, *[""] * len(LEVELS), f"needs {METHODS[name].needs}", ""])
            continue
        times = [seconds_to(result.history, reference, units, level) for level in LEVELS]
        cells = ["-" if math.isinf(t) else f"{short(t)} s" for t in times]
        gaps = (result.upper - reference.upper) / units[0], (result.lower - reference.lower) / units[1]
        lines.append([name, *cells, *(f"{gap:.1e}" for gap in gaps)])
    told = f"CVXPY with Clarabel: {short(reference.seconds)} s for both stages, {reference.status}"
    show_table(
        f"Seconds until both gaps, relative to those at zero, are at most a level ({limit:g} s each, defaults; {told})",
        ["", *(f"{level:g}" for level in LEVELS), "upper gap at the end", "lower gap"],
        lines,
    )


if __name__ == "__main__":
    size = size_asked(__doc__)
    with size.engine():
        compare_queries(size)
        compare_solutions(size)
