"""Near ties, g(x) ≤ g* + ε: what ``minimize`` proves, beside first-order methods and CVXPY; the cost of a frontier; bounds.

Run ``python benchmarks/near_ties.py``, with ``--quick`` for fewer seeds. Set ``TIEBREAK_DATA`` to a folder with
``montevideo_bus.json`` to include these data.

1. The regression of the paper at ε = 1e-3 g(0), ``split(…, seed)`` for ten seeds, radius 10, 10^6 samples:
   ``minimize(problem)``, and all first-order methods that take near ties.
2. The time of CVXPY with Clarabel on the same near ties, divided by that of ``minimize(problem)``.
3. Sets that the active set does not take: Euclidean, group and nuclear norm balls.
4. The time of a frontier of twelve points, divided by that of its dearest point alone.
5. What is proven of random small near ties on every set, held against CVXPY.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import cvxpy
import numpy as np
from timing import Row, Size, Target, counted, show, show_table, size_asked, take_turns

from tiebreak import (
    GroupBall,
    L1Ball,
    L2Ball,
    LeastSquares,
    NuclearBall,
    Problem,
    Result,
    certify,
    data,
    frontier,
    minimize,
)
from tiebreak.engine import interpreted

sys.path.append(str(Path(__file__).parents[1] / "tests" / "domains"))
from cases import CASES
from near import near_tie, violations

RADIUS = 10.0
SHARE = 1e-3  # ε, in units of g(0)
QUERIES = 1_000_000
ACCURATE = 1e-6  # gap of f, in units of f(0), that is to be proven
DEAREST = 4.0  # times that its dearest point, a frontier may cost
POINTS = 12  # of a frontier
FIRST_ORDER = ("sbcgi", "sbcgf", "cg-bio", "fc-bio", "switching-gradient", "dbgd", "dbgd-sto", "pb-apg", "pavr")
PROBLEMS_PER_SET = 12  # random ones


def main(size: Size) -> None:
    found = {kind: list(problems(kind, size)) for kind in kinds(size)}
    for kind, each in found.items():
        reach(kind, each, size)
    against_solver(found, size)
    other_sets(size)
    cost_of_frontiers(found, size)
    hold_bounds(size)


# The regressions


def kinds(size: Size) -> list[str]:
    """Return which data there are."""
    if size is Size.TINY:
        return ["random"]
    if not bus_file().is_file():
        print("Montevideo is left out: TIEBREAK_DATA names no folder with montevideo_bus.json.")
        return ["page views"]
    return ["page views", "Montevideo"]


def bus_file() -> Path:
    return Path(os.environ.get("TIEBREAK_DATA", "")) / "montevideo_bus.json"


@lru_cache(maxsize=1)
def bus_counts() -> np.ndarray:
    return data.montevideo(bus_file())


def problems(kind: str, size: Size) -> Iterator[Problem]:
    """Yield the near ties of some seeds."""
    for seed in range(size.pick(10, 2, 1)):
        if kind == "random":
            rng = np.random.default_rng(seed)
            levels = [LeastSquares(rng.standard_normal((6, 8)), rng.standard_normal(6)) for _ in range(2)]
            yield near(*levels, L1Ball(1.0))
        else:
            parts = data.split(data.pageviews(seed) if kind == "page views" else bus_counts(), seed)
            yield near(LeastSquares(*parts.validation), LeastSquares(*parts.train), L1Ball(RADIUS))


def near(upper: Any, lower: Any, domain: Any) -> Problem:
    return Problem(upper, lower, domain, tolerance=SHARE * lower.value(np.zeros(lower.dimension)))


def at_zero(problem: Problem) -> tuple[float, float]:
    """Return f(0) and g(0), the units of what is shown."""
    zero = np.zeros(problem.dimension)
    return problem.upper.value(zero), problem.lower.value(zero)


def samples(size: Size) -> int:
    return size.pick(QUERIES, QUERIES, 2000)


def run(problem: Problem, size: Size, method: str = "auto") -> Result:
    return minimize(problem, method, max_queries=samples(size), progress=False)


# 1. What is reached and proven


class End(NamedTuple):
    """How a run ended: gaps of f in units of f(0), of g in units of ε, and seconds of the processor."""

    gap: float  # f(x) − f*(ε), from the floor that the best run proves
    proven: float
    excess: float
    within: bool | None
    seconds: float


def reach(kind: str, problems: list[Problem], size: Size) -> None:
    """Show what each method reaches and proves, over seeds."""
    methods = ("auto", *FIRST_ORDER)
    ends: dict[str, list[End]] = {method: [] for method in methods}
    names: set[str] = set()
    for number, problem in enumerate(counted(problems, "problems", kind)):
        results = {}
        for method in methods:
            if number == 0:
                run(problem, size, method)  # compiled and loaded
            seconds, _, result = timed(lambda problem=problem, method=method: run(problem, size, method))
            results[method] = result, seconds
        names.add(results["auto"][0].method.name)
        floors = results["auto"][0].certificate.floors
        unit = at_zero(problem)[0]
        for method, (result, seconds) in results.items():
            gap, excess = (result.upper - floors.upper) / unit, (result.lower - floors.lower) / problem.tolerance
            ends[method].append(End(gap, result.upper_gap_bound / unit, excess, result.within, seconds))
    label = f"minimize: {', '.join(sorted(names))}"
    lines = [summary(label if method == "auto" else method, each) for method, each in ends.items()]
    proven = sum(end.proven <= ACCURATE and end.within is True for end in ends["auto"])
    show_table(
        f"{kind}, ε = {SHARE:g} g(0), {samples(size):,} samples: median (worst) of {len(problems)} seeds. A gap of at"
        f" most {ACCURATE:g} f(0), within ε, is proven by minimize on {proven} of {len(problems)} (target: all)",
        ["", "(f − f*(ε)) / f(0)", "proven bound on it", "(g − g*) / ε", "within, proven", "beyond", "processor"],
        lines,
    )


def summary(name: str, ends: list[End]) -> list[str]:
    """Return one line of that table."""
    cells = [spread([getattr(end, column) for end in ends]) for column in ("gap", "proven", "excess")]
    counts = [f"{sum(end.within is kept for end in ends)} of {len(ends)}" for kept in (True, False)]
    return [name, *cells, *counts, f"{np.median([end.seconds for end in ends]):.2f} s"]


def spread(values: list[float]) -> str:
    return f"{np.median(values):.1e} ({max(values):.1e})"


# 2. Against a modelling language


def by_cvxpy(problem: Problem) -> np.ndarray:
    """Solve a near tie as a user would: minimise g, then f where g is at most that and ε."""
    (A, a), (B, b) = ((level.matrix.array, level.targets) for level in (problem.lower, problem.upper))
    x = cvxpy.Variable(problem.dimension)
    ball = cvxpy.norm1(x) <= problem.domain.radius
    lower, upper = (cvxpy.sum_squares(M @ x - t) / (2 * t.size) for M, t in ((A, a), (B, b)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a solution may be inaccurate
        least = cvxpy.Problem(cvxpy.Minimize(lower), [ball]).solve(solver=cvxpy.CLARABEL)
        found = cvxpy.Problem(cvxpy.Minimize(upper), [ball, lower <= least + problem.tolerance])
        found.solve(solver=cvxpy.CLARABEL)
    return np.asarray(x.value)


def timed(function: Callable[[], Any], clock: Callable[[], float] = time.thread_time) -> tuple[float, float, Any]:
    """Return the seconds of the processor and of the wall that a call takes, and what it returns.

    The clock of this thread does not see threads of BLAS that wait for more work after a call; that of the process does, and
    is for solvers that have threads of their own.
    """
    began, wall = clock(), time.perf_counter()
    returned = function()
    return clock() - began, time.perf_counter() - wall, returned


def against_solver(found: Mapping[str, list[Problem]], size: Size) -> None:
    """Divide the time of CVXPY by that of an answer with its proof."""
    lines = []
    for kind, each in found.items():
        for seed, problem in enumerate(each[: size.pick(3, 1, 1)]):
            run(problem, size)  # compiled and loaded
            rounds = [timed(lambda problem=problem: run(problem, size), time.process_time) for _ in range(3)]
            processor, wall = (min(times) for times in list(zip(*rounds, strict=True))[:2])
            result, units = rounds[0][2], at_zero(problem)
            theirs = timed(lambda problem=problem: by_cvxpy(problem), time.process_time)
            x = theirs[2]
            beyond = (problem.lower.value(x) - result.certificate.floors.level) / problem.tolerance
            lines.append(
                [
                    f"{kind}, seed {seed}",
                    f"{wall:.2f} s",
                    f"{result.upper_gap_bound / units[0]:.1e}",
                    f"{theirs[1]:.1f} s",
                    f"{(problem.upper.value(x) - result.upper) / units[0]:+.1e}",
                    f"{beyond:+.1e}",
                    f"{theirs[0] / processor:.0f} x",
                    f"{theirs[1] / wall:.0f} x",
                ]
            )
    show_table(
        f"CVXPY with Clarabel / minimize(problem), ε = {SHARE:g} g(0); f in units of f(0), g above the level in units of ε",
        ["", "ours", "f − f* ≤, proven", "CVXPY", "its f − ours", "its g − level", "processor", "wall"],
        lines,
    )


# 3. Sets without the active set


def curved(size: Size) -> Iterator[tuple[str, Problem]]:
    """Yield near ties on sets whose faces are curved."""
    d, n = size.pick(120, 120, 6), size.pick(80, 80, 4)
    for seed in range(size.pick(5, 2, 1)):
        rng = np.random.default_rng(seed)
        rows, truth = [rng.standard_normal((n, d)) for _ in range(2)], rng.standard_normal(d) / np.sqrt(d)
        lower, upper = (LeastSquares(A, A @ truth + 0.1 * rng.standard_normal(n)) for A in rows)
        yield "Euclidean ball", near(upper, lower, L2Ball(0.5))
        yield "group ball", near(upper, lower, GroupBall(np.arange(d) // 3, 2.0))
        yield "nuclear norm ball", near(upper, lower, NuclearBall((d // 3, 3), 0.8))
    if size is not Size.TINY:
        parts = data.split(data.pageviews(0), 0)
        yield "page views, Euclidean ball", near(LeastSquares(*parts.validation), LeastSquares(*parts.train), L2Ball(1.0))


def other_sets(size: Size) -> None:
    """Show what is proven there."""
    found: dict[str, list[tuple[str, End]]] = {}
    for name, problem in curved(size):
        if name not in found:
            run(problem, size)  # compiled and loaded
        seconds, _, result = timed(lambda problem=problem: run(problem, size))
        floors, unit = result.certificate.floors, at_zero(problem)[0]
        excess = (result.lower - floors.lower) / problem.tolerance
        end = End(result.upper_gap_bound / unit, result.upper_gap_bound / unit, excess, result.within, seconds)
        found.setdefault(name, []).append((result.method.name, end))
    lines = []
    for name, each in found.items():
        label, _, proven, *others = summary(name, [end for _, end in each])
        lines.append([label, ", ".join(sorted({method for method, _ in each})), proven, *others])
    show_table(
        f"minimize(problem) on other sets, ε = {SHARE:g} g(0), {samples(size):,} samples: median (worst) over seeds",
        ["", "method", "(f − f*(ε)) / f(0) ≤, proven", "(g − g*) / ε", "within, proven", "beyond", "processor"],
        lines,
    )


# 4. Frontiers


def cost_of_frontiers(found: Mapping[str, list[Problem]], size: Size) -> None:
    """Divide the time of a frontier by that of the dearest of its points."""
    rows, points = [], size.pick(POINTS, POINTS, 2)
    for kind, each in found.items():
        exact = each[0].exact
        tolerances = [point.tolerance for point in frontier(exact, points=points).points if point.tolerance > 0.0]

        def alone(exact: Problem = exact, tolerances: list[float] = tolerances) -> float:
            problems = [Problem(*exact[:3], tolerance=epsilon) for epsilon in tolerances]
            return max(timed(lambda problem=problem: minimize(problem, progress=False))[0] for problem in problems)

        def whole(exact: Problem = exact) -> float:
            return timed(lambda: frontier(exact, points=points))[0]

        times = take_turns({"whole": whole, "alone": alone}, size.pick(5, 2, 1), f"frontier, {kind}")
        rows.append(Row(f"{kind}, seed 0", times["whole"], times["alone"], target=Target(DEAREST)))
    show(f"A frontier of {points} points / its dearest point alone, time of the processor", rows)


# 5. Bounds against the truth


def hold_bounds(size: Size) -> None:
    """Show whether anything that is proven is false, and how sharp it is."""
    lines, wrong = [], []
    cases = CASES if size is not Size.TINY else CASES[:2]
    for case in counted(cases, "sets", "bounds"):
        gaps, ratios, methods, kept = [], [], set(), 0
        seeds = range(size.pick(PROBLEMS_PER_SET, 2, 1))
        for seed in seeds:
            stated = near_tie(case, seed)
            problem, unit = stated.problem, stated.units[0]
            with interpreted():  # tiny problems of many kinds, which would take long to compile
                result = minimize(problem, max_queries=10_000, progress=False)
                rough = certify(
                    problem, problem.domain.random_point(np.random.default_rng(seed), problem.dimension), bundle=20
                )
            methods.add(result.method.name)
            kept += result.within is True
            wrong += [f"{case.name}, problem {seed}: {words}" for words in violations(stated, result)]
            gaps.append(result.upper_gap_bound / max(unit, result.upper))
            if (gap := rough.upper - stated.upper) > 0.01 * unit:
                ratios.append(rough.upper_gap_bound / gap)
                if rough.upper_gap_bound < gap * (1.0 - 1e-4):
                    wrong.append(f"{case.name}, problem {seed}: the bound at a random point is below the gap")
        worst = f"{max(ratios):.2f}" if ratios else "–"
        lines.append([case.name, ", ".join(sorted(methods)), f"{kept} of {len(seeds)}", spread(gaps), worst])
    show_table(
        f"{len(cases) * len(seeds)} random small near ties against CVXPY: {len(wrong)} false claims (target: none)."
        " At answers, the proven gap of f in units of f; at random points, bound / true gap",
        ["", "method", "within, proven", "proven gap, median (worst)", "worst bound / gap"],
        lines,
    )
    print("\n".join(wrong))


if __name__ == "__main__":
    asked = size_asked(__doc__)
    with asked.engine():
        main(asked)
