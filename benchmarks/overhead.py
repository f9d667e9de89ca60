"""What a run costs besides its method: constants, records, bounds; and how well it keeps to a time limit.

Runs of ``minimize(problem, time_limit=...)`` on a dense matrix of float64, one of float32 and a sparse one. A run before, in
which code is compiled or loaded, does not count. `wall / seconds` is the time from call to result over that of the method
with its constants. `overshoot` is the time by the wall over the limit.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse
from timing import Row, Target, show, size_asked, take_turns

from tiebreak import L1Ball, LeastSquares, Problem, minimize

FULL = {"dense": (200_000, 400), "sparse": (1_000_000, 100_000), "limit": 4.0, "iterations": 10, "rounds": 3}
QUICK = {"dense": (20_000, 100), "sparse": (50_000, 5_000), "limit": 1.0, "iterations": 10, "rounds": 1}
TINY = {"dense": (40, 10), "sparse": (60, 20), "limit": 0.1, "iterations": 2, "rounds": 1}
PER_ROW = 10  # entries of the sparse matrix


def dense(shape: tuple[int, int], kind: Any) -> np.ndarray:
    """Return standard normal data."""
    return np.random.default_rng(0).standard_normal(shape, dtype=kind)


def sparse(shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """Return a matrix with the same number of entries in each row."""
    (n, d), rng = shape, np.random.default_rng(0)
    columns = rng.integers(d, size=n * PER_ROW).astype(np.int32)
    starts = np.arange(0, n * PER_ROW + 1, PER_ROW, dtype=np.int32)
    return scipy.sparse.csr_array((rng.standard_normal(n * PER_ROW), columns, starts), shape=shape)


def made(A: Any) -> Problem:
    """Return a problem whose levels are the two halves of the rows."""
    half, b = A.shape[0] // 2, A @ np.random.default_rng(1).standard_normal(A.shape[1]).astype(A.dtype)
    return Problem(LeastSquares(A[:half], b[:half]), LeastSquares(A[half:], b[half:]), L1Ball(10.0))


def fresh(problem: Problem) -> Problem:
    """Return the same problem with nothing known of its constants: they go with the arrays of targets."""
    upper, lower = (level._replace(targets=level.targets.copy()) for level in problem[:2])
    return problem._replace(upper=upper, lower=lower)


class Timed:
    """Runs a problem for some time and keeps what it took."""

    def __init__(self, problem: Problem, limit: float):
        self.problem, self.limit = problem, limit
        self.seconds: list[float] = []

    def __call__(self) -> float:
        began = time.perf_counter()
        result = minimize(fresh(self.problem), time_limit=self.limit, progress=False)
        wall = time.perf_counter() - began
        self.seconds.append(result.seconds)
        return wall


def to_equal_queries(problem: Problem, iterations: int) -> float:
    """Return the time by the wall of a run of some iterations."""
    began = time.perf_counter()
    minimize(fresh(problem), "pb-apg", max_iterations=iterations, progress=False)
    return time.perf_counter() - began


def main(size: dict[str, Any]) -> None:
    """Measure and print."""
    kinds = {
        "float64": made(dense(size["dense"], np.float64)),
        "float32": made(dense(size["dense"], np.float32)),
        "CSR": made(sparse(size["sparse"])),
    }
    runs = {name: Timed(problem, size["limit"]) for name, problem in kinds.items()}
    equal = {
        f"{name}, equal queries": lambda p=problem: to_equal_queries(p, size["iterations"])
        for name, problem in kinds.items()
    }
    walls = take_turns({**runs, **equal}, size["rounds"], "overhead")
    rows = [Row(f"{name}: wall / seconds", walls[name], runs[name].seconds[1:], target=Target(1.3)) for name in kinds]
    rows += [Row(f"{name}: wall / time_limit", walls[name], size["limit"], target=Target(1.1)) for name in kinds]
    single, double = (walls[f"{name}, equal queries"] for name in ("float32", "float64"))
    rows.append(Row("float32 / float64 to equal queries", single, double, target=Target(1.2)))
    show(f"{size['dense'][0]:,} × {size['dense'][1]} dense, {size['sparse'][0]:,} × {size['sparse'][1]:,} sparse", rows)


if __name__ == "__main__":
    asked = size_asked(__doc__)
    with asked.engine():
        main(asked.pick(FULL, QUICK, TINY))
