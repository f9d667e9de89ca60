"""Parameters without tuning against the paper's constants.

Run ``python benchmarks/presets.py``, with ``--quick`` for fewer seeds. Set ``TIEBREAK_DATA`` to a folder with
``montevideo_bus.json`` to include these data. The table compares at equal queries: the lower gap and f of SBCGF and SBCGI
with ``preset="auto"``, divided by those with the paper's constants, over seeds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import Row, Size, Target, counted, show, size_asked

from tiebreak import (
    FISTA,
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
    data,
    minimize,
)
from tiebreak.studies.dictionary import continual

RADIUS = 10.0


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


def run(case: Case, method: str | Method, **budget: Any) -> Gaps:
    """Run a method."""
    result = minimize(case.problem, method, x0=case.x0, seed=case.seed, progress=False, **budget)
    upper = max(result.upper - case.upper, 0.0) if np.isfinite(case.upper) else result.upper
    return Gaps(max(result.lower - case.lower, 1e-16), upper, result.upper)


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


def main(size: Size) -> None:
    found, queries = [], queries_of(size)
    for case in counted(cases(size), "problems"):
        gaps = {
            "sbcgf paper": run(case, SBCGF(preset=case.preset), max_queries=queries),
            "sbcgf auto": run(case, SBCGF(preset="auto"), max_queries=queries),
            "sbcgi paper": run(case, SBCGI(preset=case.preset), max_queries=queries),
            "sbcgi auto": run(case, SBCGI(preset="auto"), max_queries=queries),
        }
        found.append((case, gaps))
    compare_parameters(found, queries)


if __name__ == "__main__":
    asked = size_asked(__doc__)
    with asked.engine():
        main(asked)
