"""Parameters without tuning against the paper's constants, and the time to a certified answer against CVXPY.

Run ``python benchmarks/auto.py``, with ``--quick`` for fewer seeds and smaller sizes. Set ``TIEBREAK_DATA`` to a folder with
``montevideo_bus.json`` to include these data.

The first table compares at equal queries: the lower gap and f of SBCGF and SBCGI with ``preset="auto"``, divided by those
with the paper's constants, over seeds. The second one compares at equal seconds: ``minimize(problem)`` with the better of
SBCGF (paper) and IR-FSCG at each level. The third one divides the time of a two-stage solution by CVXPY with Clarabel, as a
user would write it, by that of a call that returns a certified answer.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from methods import two_stages
from timing import Row, Size, Target, show, show_table, size_asked
from tqdm import tqdm

from tiebreak import (
    FISTA,
    IRFSCG,
    SBCGF,
    SBCGI,
    Columns,
    DictionaryLoss,
    JointDictionaryLoss,
    L1Ball,
    L2Ball,
    LeastSquares,
    Method,
    Problem,
    Product,
    Status,
    data,
    minimize,
)
from tiebreak.studies.dictionary import continual

RADIUS = 10.0
SAME = 1e-4  # share of f at the start below which a difference counts as none
ACCURACY = 1e-3  # accuracy of both levels, relative to their values at zero
SIZES = [(356, 730), (2000, 4000), (20000, 2000)]


def queries_of(size: Size) -> int:
    """Return the queries of a run."""
    return size.pick(1_000_000, 1_000_000, 400)


class Case(NamedTuple):
    """A problem, where to start, and what its gaps are measured from."""

    kind: str
    seed: int
    problem: Problem
    x0: np.ndarray | None
    upper: float  # f*, or −∞: then f itself is compared
    lower: float  # g*
    preset: str  # of the paper's constants


def regressions(kind: str, matrix: Callable[[int], np.ndarray], seeds: range, queries: int) -> Iterator[Case]:
    """Yield validation loss over the minimisers of training loss, with reference values from long runs."""
    for seed in seeds:
        parts = data.split(matrix(seed), seed)
        problem = Problem(LeastSquares(*parts.validation), LeastSquares(*parts.train), L1Ball(RADIUS))
        lower = minimize(problem, FISTA(level="lower"), max_queries=20 * queries, progress=False).lower
        upper = minimize(problem, "pb-apg", max_queries=20 * queries, progress=False).upper
        yield Case(kind, seed, problem, None, upper, lower, "paper")


def dictionaries(seeds: range) -> Iterator[Case]:
    """Yield the dictionary problem of the paper, whose start is a minimiser of g up to rounding."""
    for seed in seeds:
        study = continual(seed)
        yield Case(
            "dictionary", seed, study.problem, study.x0, -np.inf, study.problem.lower.value(study.x0), "paper-dictionary"
        )


def tiny_dictionary() -> Case:
    """Return a dictionary problem of a few variables."""
    rng = np.random.default_rng(0)
    domain = Product(D=Columns(L2Ball(1.0), (4, 3)), X=Columns(L1Ball(3.0), (3, 5)))
    lower = DictionaryLoss(rng.standard_normal((4, 6)), rng.standard_normal((3, 6)))
    problem = Problem(JointDictionaryLoss(rng.standard_normal((4, 5))), lower, domain)
    return Case("dictionary", 0, problem, np.zeros(problem.dimension), -np.inf, 0.0, "paper-dictionary")


def cases(size: Size) -> Iterator[Case]:
    """Yield all problems."""
    seeds, queries = range(size.pick(10, 3, 1)), queries_of(size)
    if size is Size.TINY:
        yield from regressions("random", lambda seed: np.random.default_rng(seed).random((24, 8)), seeds, queries)
        yield tiny_dictionary()
        return
    yield from regressions("page views", data.pageviews, seeds, queries)
    file = Path(os.environ.get("TIEBREAK_DATA", "")) / "montevideo_bus.json"
    if file.is_file():
        stops = data.montevideo(file)
        yield from regressions("Montevideo", lambda seed: stops, seeds, queries)
    yield from dictionaries(range(size.pick(10, 2, 0)))


class Gaps(NamedTuple):
    """Where a run ended."""

    lower: float  # g − g*
    upper: float  # max(f − f*, 0), or f
    value: float  # f
    wall_seconds: float


def run(case: Case, method: str | Method, **budget: Any) -> Gaps:
    """Run a method."""
    result = minimize(case.problem, method, x0=case.x0, seed=case.seed, progress=False, **budget)
    upper = max(result.upper - case.upper, 0.0) if np.isfinite(case.upper) else result.upper
    return Gaps(max(result.lower - case.lower, 1e-16), upper, result.upper, result.wall_seconds)


def compare_parameters(found: list[tuple[Case, dict[str, Gaps]]], queries: int) -> None:
    """Divide what automatic parameters reach by what the paper's reach, at equal queries."""
    targets = {("sbcgf", True): 0.7, ("sbcgf", False): 0.02, ("sbcgi", True): 0.4, ("sbcgi", False): 1.0}
    rows = []
    for kind in dict.fromkeys(case.kind for case, _ in found):
        some = [gaps for case, gaps in found if case.kind == kind]
        for name in ("sbcgf", "sbcgi"):
            auto, paper = [gaps[f"{name} auto"] for gaps in some], [gaps[f"{name} paper"] for gaps in some]
            limit = targets[name, kind != "dictionary"]
            rows.append(
                Row(f"{kind}: lower gap, {name}", [a.lower for a in auto], [p.lower for p in paper], target=Target(limit))
            )
            ratios = np.divide([a.value for a in auto], [p.value for p in paper])
            told = f"{kind}: f, {name} (largest {ratios.max():.3g}, better in {np.sum(ratios < 1.0)} of {ratios.size})"
            rows.append(Row(told, ratios, target=Target(1.02)))
    show(f"preset='auto' / the paper's constants after {queries:,} queries, over seeds", rows)


def compare_choice(found: list[tuple[Case, dict[str, Gaps]]]) -> None:
    """Count where the automatic method is at both levels at least as good as the better of two rivals, at equal seconds."""
    lines = []
    for kind in dict.fromkeys(case.kind for case, _ in found):
        wins, lower, upper = [], [], []
        for case, gaps in found:
            if case.kind != kind:
                continue
            auto, rivals = gaps["auto"], (gaps["sbcgf in time"], gaps["ir-fscg in time"])
            unit = case.problem.upper.value(np.zeros(case.problem.dimension) if case.x0 is None else case.x0)
            best_lower, best_upper = min(rival.lower for rival in rivals), min(rival.upper for rival in rivals)
            wins.append(auto.lower <= best_lower and auto.upper <= best_upper + SAME * unit)
            lower.append(auto.lower / best_lower)
            upper.append((auto.upper - best_upper) / unit)
        shown = [f"{sum(wins)} of {len(wins)}", f"{np.median(lower):.2g} (worst {max(lower):.2g})"]
        lines.append([kind, *shown, f"{np.median(upper):.1e} (worst {max(upper):.1e})"])
    show_table(
        "minimize(problem) against the better of sbcgf (paper) and ir-fscg at each level, at equal seconds",
        ["", "as good at both levels", "lower gap / best", "(upper gap − best) / f at the start"],
        lines,
    )


def rank_deficient(n: int, d: int, seed: int = 0) -> Problem:
    """Return random regressions at both levels, of half the possible rank; the ball binds, so that g* > 0."""
    rng = np.random.default_rng(seed)
    rank = min(n, d) // 2
    mixing = rng.standard_normal((rank, d)) / np.sqrt(rank)
    truth = rng.standard_normal(d) * (rng.random(d) < 0.05)
    levels = []
    for _ in range(2):
        A = rng.standard_normal((n, rank)) @ mixing
        levels.append(LeastSquares(A, A @ truth + rng.standard_normal(n)))
    return Problem(*levels, L1Ball(0.8 * np.abs(truth).sum()))


def time_of_call(problem: Problem) -> tuple[float, str]:
    """Return the seconds from a call to its answer, certified or not, and what was proven."""
    zero = np.zeros(problem.dimension)
    units = problem.upper.value(zero), problem.lower.value(zero)
    minimize(problem, max_iterations=2, max_queries=None, progress=False)  # compiled and loaded
    began = time.perf_counter()
    result = minimize(problem, tol=(ACCURACY * units[0], ACCURACY * units[1]), max_queries=None, time_limit=300.0)
    elapsed = time.perf_counter() - began
    proven = f"{result.upper_gap_bound / units[0]:.1e}, {result.lower_gap_bound / units[1]:.1e}"
    return elapsed, proven if result.status is Status.CERTIFIED else f"NOT certified: {proven}"


def _solve(sender: Any, n: int, d: int) -> None:
    reference = two_stages(rank_deficient(n, d))
    sender.send((reference.seconds, reference.status))


def time_of_solver(n: int, d: int, limit: float) -> tuple[float, str]:
    """Return the seconds of the two-stage solution in a process of its own, or the limit if it takes longer."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_solve, args=(sender, n, d))
    process.start()
    try:
        if receiver.poll(limit):
            return receiver.recv()
        return limit, f"stopped after {limit:g} s"
    except EOFError:
        return limit, "failed"
    finally:
        process.kill()
        process.join()


def compare_certified(size: Size) -> None:
    """Divide the time of CVXPY's two stages by that of a certified answer."""
    limit = size.pick(600.0, 60.0, 60.0)
    lines = []
    for n, d in size.pick(SIZES, SIZES[:1], [(8, 16)]):
        ours, proven = time_of_call(rank_deficient(n, d))
        theirs, status = time_of_solver(n, d, limit)
        at_least = "≥ " if status.startswith("stopped") else ""
        lines.append([f"{n} x {d}", f"{at_least}{theirs / ours:.1f} x", f"{ours:.2f} s", proven, f"{theirs:.1f} s", status])
    show_table(
        f"Time of CVXPY's two stages / time to a certified answer (bounds {ACCURACY:g} of those at zero; target ≥ 10 x)",
        ["", "ratio", "certified", "bounds f, g", "CVXPY", ""],
        lines,
    )


def main(size: Size) -> None:
    found, queries = [], queries_of(size)
    for case in tqdm(cases(size), desc="problems", leave=False):
        gaps = {
            "sbcgf paper": run(case, SBCGF(preset=case.preset), max_queries=queries),
            "sbcgf auto": run(case, SBCGF(preset="auto"), max_queries=queries),
            "sbcgi paper": run(case, SBCGI(preset=case.preset), max_queries=queries),
            "sbcgi auto": run(case, SBCGI(preset="auto"), max_queries=queries),
        }
        time_limit = gaps["sbcgf paper"].wall_seconds
        gaps["sbcgf in time"] = gaps["sbcgf paper"]
        gaps["ir-fscg in time"] = run(case, IRFSCG(preset=case.preset), max_queries=None, time_limit=time_limit)
        gaps["auto"] = run(case, "auto", max_queries=None, time_limit=time_limit)
        found.append((case, gaps))
    compare_parameters(found, queries)
    compare_choice(found)
    compare_certified(size)


if __name__ == "__main__":
    asked = size_asked(__doc__)
    with asked.engine():
        main(asked)
