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
import numpy as np
from iteration import bare_spider, bare_storm, first_point, regression, time_of_bare, time_of_loop
from timing import Row, Target, is_quick, short, show, show_table, take_turns
from tqdm import tqdm

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
from tiebreak.engine import kernel
from tiebreak.objectives.base import accumulate, draw

NO_CUT = 1e9  # a slack that leaves the cut inactive
RADIUS = 10.0
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)


# A query against its bare gradients


@kernel
def bare_gradients(problem, state, constants, iterations, rng):
    """Draw one batch at each level and evaluate its gradient at one point, and do nothing else."""
    f, g, _ = problem
    for _ in range(iterations):
        upper, lower = draw(f, rng, state.upper_batch), draw(g, rng, state.lower_batch)
        accumulate(f, upper, state.x, 1.0, state.x, 0.0, state.room)
        accumulate(g, lower, state.x, 1.0, state.x, 0.0, state.room)


@kernel
def bare_extra_gradients(problem, state, constants, iterations, rng):
    """Do so twice, as an extra-gradient method does."""
    bare_gradients(problem, state, constants, 2 * iterations, rng)


@kernel
def bare_storm_upper(problem, state, constants, iterations, rng):
    """Draw the samples of STORM-FW's iterations and evaluate their gradients, and do nothing else."""
    for _ in range(iterations):
        batch = draw(problem.upper, rng, state.estimate.batch)
        accumulate(problem.upper, batch, state.x, 1.0, state.previous, -0.5, state.estimate.direction)


@kernel
def bare_spider_upper(problem, state, constants, iterations, rng):
    """Draw the samples of SPIDER-FW's iterations and evaluate their gradients, and do nothing else."""
    for t in range(iterations):
        direction = state.estimate.direction
        if t % constants.sampling.period == 0:
            accumulate(problem.upper, constants.sampling.everything, state.x, 1.0, state.x, 0.0, direction)
        else:
            batch = draw(problem.upper, rng, state.estimate.batch)
            accumulate(problem.upper, batch, state.x, 1.0, state.previous, -1.0, direction)


class Contender(NamedTuple):
    """A method, its bare work and how many times as long as that it may take."""

    what: str
    method: Method
    bare: Callable[..., None]
    limit: float | None


CONTENDERS = [
    Contender("sbcgi, no cut active", SBCGI(slack=NO_CUT), bare_storm, 2.0),
    Contender("sbcgi, all cuts active", SBCGI(slack=0.0), bare_storm, None),
    Contender("sbcgf, no cut active", SBCGF(slack=NO_CUT), bare_spider, 2.0),
    Contender("sbcgf, all cuts active", SBCGF(slack=0.0), bare_spider, 2.0),
    Contender("ir-scg", IRSCG(), bare_storm, 2.0),
    Contender("ir-fscg", IRFSCG(), bare_spider, 2.0),
    Contender("storm-fw", StormFW(), bare_storm_upper, None),
    Contender("spider-fw", SpiderFW(), bare_spider_upper, None),
    Contender("arip-seg", ARIPSeG(), bare_extra_gradients, 5.0),
    Contender("arip-seg, batch of 8", ARIPSeG(batch_size=8), bare_extra_gradients, 5.0),
    Contender("dbgd-sto", DBGDSto(), bare_gradients, 5.0),
    Contender("dbgd-sto, batch of 8", DBGDSto(batch_size=8), bare_gradients, 5.0),
]


def compare_queries(quick: bool) -> None:
    """Divide the time of a query by that of its bare gradients."""
    problem = regression()
    x = first_point(problem)
    iterations = 5_000 if quick else 20_000
    turns: dict[str, Callable[[], float]] = {}
    for what, method, bare, _ in CONTENDERS:
        method = method.for_problem(problem)
        turns[f"{what}: bare"] = time_of_bare(bare, problem, method, x, iterations)
        turns[what] = time_of_loop(problem, method, x, iterations)
    times = take_turns(turns, 5 if quick else 21, "queries")
    show(
        "Time of a query / time of its bare gradients (356 x 730 at each level, l1 ball)",
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


def compare_solutions(quick: bool) -> None:
    """Run every method for some seconds; print when it reached given gaps, and where it ended."""
    problem = page_views()
    zero = np.zeros(problem.dimension)
    reference = two_stages(problem)
    units = problem.upper.value(zero) - reference.upper, problem.lower.value(zero) - reference.lower
    limit = 3.0 if quick else 20.0
    lines = []
    for name in tqdm(METHODS, desc="methods", leave=False):
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
    quick = is_quick(__doc__)
    compare_queries(quick)
    compare_solutions(quick)
