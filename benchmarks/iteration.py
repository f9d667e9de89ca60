"""An iteration against the bare sampled gradients that it needs; memory, sparse data, the first call, Python callables.

Run ``python benchmarks/iteration.py``, with ``--quick`` for a shorter run. With ``--before PATH`` it compares the iterations
of this version with those of another checkout instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from loops import (
    KEYS,
    NO_CUT,
    bare_exact,
    bare_spider,
    bare_storm,
    first_point,
    level,
    regression,
    shape_of,
    time_in_driver,
    time_of_bare,
    time_of_loop,
)
from numba.core.runtime import _nrt_python, rtsys
from timing import Row, Size, Target, arguments, counted, seconds, show, take_turns
from versions import compare_versions

from tiebreak import IRSCG, SBCGF, SBCGI, CGBiO, FiniteSum, L1Ball, LeastSquares, Problem
from tiebreak.domains.base import ACTIVE, cut_lmo
from tiebreak.engine import kernel
from tiebreak.objectives.base import accumulate
from tiebreak.schedules import evaluated

DENSITIES = (0.01, 0.05, 0.25, 1.0)
FREE, CUT = SBCGI(preset="paper", slack=NO_CUT), SBCGI(preset="paper", slack=0.0)


# An iteration against its bare work


def share_of_active_cuts(problem: Problem, method: SBCGI, x: np.ndarray, iterations: int, looks: int) -> float:
    """Return how often the cut is active in iterations after some others."""
    plan, point = method.plan(problem), np.empty_like(x)
    state = method.start(problem, plan, x)
    method.advance(problem, state, plan, iterations, KEYS)
    active = 0
    for t in range(iterations, iterations + looks):
        method.advance(problem, state, plan, 1, KEYS)
        slack = evaluated(plan, np.arange(t, t + 1)).slack.values[0]
        room = (state.anchor[0] - state.lower.value[0] + slack) / state.lower.factor[0]
        bound = room + state.lower.direction @ state.previous
        active += cut_lmo(problem.domain, state.upper.direction, state.lower.direction, bound, point)[0] == ACTIVE
    return active / looks


def compare_iterations(size: Size) -> None:
    """Divide the time of an iteration by that of its sampled gradients."""
    problem = regression(*shape_of(size))
    x = first_point(problem, size.pick(1_000_000, 1_000_000, 1_000))
    finite, regular = SBCGF(preset="paper", slack=NO_CUT), IRSCG(preset="paper").for_problem(problem)
    exact = CGBiO(preset="paper", slack=NO_CUT)
    many, some, few = size.pick((50_000, 3_000, 300), (20_000, 1_000, 100), (200, 20, 5))
    times = take_turns(
        {
            "bare": time_of_bare(bare_storm, problem, FREE, x, many),
            "free": time_of_loop(problem, FREE, x, many),
            "active": time_of_loop(problem, CUT, x, many),
            "bare by the wall clock": time_of_bare(bare_storm, problem, FREE, x, many, time.perf_counter),
            "driver": time_in_driver(problem, FREE, x, many),
            "bare spider": time_of_bare(bare_spider, problem, finite, x, some),
            "spider": time_of_loop(problem, finite, x, some),
            "bare exact": time_of_bare(bare_exact, problem, exact, x, few),
            "exact": time_of_loop(problem, exact, x, few),
            "regularised": time_of_loop(problem, regular, x, many),
        },
        size.pick(60, 10, 1),
        "iterations",
    )
    bare, share = times["bare"], share_of_active_cuts(problem, CUT, x, many // 2, size.pick(200, 200, 5))
    n, d = shape_of(size)
    show(
        f"Iteration / its sampled gradients ({np.median(bare) * 1e6:.2f} µs), d = {d}, n = {n}, dense",
        [
            Row("SBCGI, cut inactive", times["free"], bare, target=Target(1.6)),
            Row("SBCGI, cut inactive, in minimize", times["driver"], times["bare by the wall clock"]),
            Row(f"SBCGI, slack 0 ({share:.0%} of the cuts active)", times["active"], bare),
            Row("SBCGF, cut inactive", times["spider"], times["bare spider"]),
            Row("CG-BiO, cut inactive", times["exact"], times["bare exact"]),
            Row("IR-SCG", times["regularised"], bare),
        ],
    )


# Memory


def resident_kib() -> float:
    """Return the resident memory of this process; NaN where the system does not tell."""
    table = Path("/proc/self/statm")
    if not table.exists():
        return np.nan
    return int(table.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def allocated(loop: Callable[..., Any], *args: Any) -> int:
    """Return how many blocks of memory compiled code asks for in a call, those to hand over its arguments included."""
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    loop(*args)
    after = rtsys.get_allocation_stats().alloc
    _nrt_python.memsys_disable_stats()
    return int(after - before)


def memory_rows(problem: Problem, method: SBCGI, x: np.ndarray, size: Size, name: str) -> list[Row]:
    """Return how much memory iterations keep, and how many blocks they ask for even if they give them back."""
    plan, (chunk, chunks) = method.plan(problem), chunks_of(size)
    state, values = method.start(problem, plan, x), evaluated(plan, np.arange(chunk))
    method.loop(problem, state, values, chunk, KEYS)
    before = resident_kib()
    for _ in counted(range(chunks), "chunks", "memory"):
        method.loop(problem, state, values, chunk, KEYS)
    grown = resident_kib() - before
    idle, busy = (allocated(method.loop, problem, state, values, iterations, KEYS) for iterations in (0, chunk))
    return [
        Row(f"cut {name}: growth of resident memory", [grown], unit="KiB", target=Target(1024)),
        Row(f"cut {name}: allocations per iteration", [(busy - idle) / chunk], unit="", target=Target(0)),
    ]


def chunks_of(size: Size) -> tuple[int, int]:
    """Return the iterations per call of the loop, and the calls."""
    return size.pick((100_000, 100), (100_000, 10), (1_000, 1))


def watch_memory(size: Size) -> None:
    """Look for memory that iterations take, with the cut inactive and active."""
    problem = regression(n=50, d=20)
    x = first_point(problem, size.pick(1_000_000, 1_000_000, 1_000))
    rows = [*memory_rows(problem, FREE, x, size, "inactive"), *memory_rows(problem, CUT, x, size, "active")]
    show(f"Memory over {np.prod(chunks_of(size)):,} iterations of SBCGI, d = 20", rows)


# Sparse data


@kernel
def gradients_of_rows(objective, batch, x, y, out, repeats):
    """Evaluate the gradient of each row in turn."""
    for _ in range(repeats):
        for i in range(objective.targets.size):
            batch[0] = i
            accumulate(objective, batch, x, 1.0, y, -0.5, out)


def time_of_nonzero(density: float, columns: int, full_rows: int = 8) -> Callable[[], float]:
    """Return a contender: the time per non-zero; all densities have as many of them, in more or fewer rows."""
    rng = np.random.default_rng(0)
    n, stored = round(full_rows / density), round(density * columns)
    places = np.concatenate([np.sort(rng.choice(columns, stored, replace=False)) for _ in range(n)])
    starts = np.arange(n + 1) * stored
    matrix = scipy.sparse.csr_array((rng.standard_normal(places.size), places, starts), shape=(n, columns))
    objective, batch = LeastSquares(matrix, rng.standard_normal(n)), np.zeros(1, dtype=np.int64)
    x, y, repeats = rng.standard_normal(columns), rng.standard_normal(columns), 10

    def measure() -> float:
        out = np.zeros(columns)
        return seconds(gradients_of_rows, objective, batch, x, y, out, repeats) / (repeats * places.size)

    return measure


def compare_densities(size: Size) -> None:
    """Compare the time per non-zero over densities."""
    columns = size.pick(20_000, 20_000, 100)
    contenders = {f"{density:.0%}": time_of_nonzero(density, columns) for density in DENSITIES}
    times = take_turns(contenders, size.pick(40, 10, 1), "sparse rows")
    full = times["100%"]
    show(
        f"CSR, gradient of one row, d = {columns}: time per non-zero / that of a full row ({np.median(full) * 1e9:.2f} ns)",
        [Row(f"{name} of the row stored", times[name], full, target=Target(3.0)) for name in contenders],
    )


# The first call in a new process

FIRST_CALL = """
import json, sys, time
began = time.perf_counter()
import tiebreak
imported = time.perf_counter()
import numpy as np
n, d, queries = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
levels = [tiebreak.LeastSquares(rng.standard_normal((n, d)), rng.standard_normal(n)) for _ in "fg"]
problem = tiebreak.Problem(*levels, tiebreak.L1Ball(1.0))
built = time.perf_counter()
tiebreak.minimize(problem, tiebreak.SBCGF(preset="paper"), max_queries=queries)
print(json.dumps([imported - began, time.perf_counter() - built]))
"""


def first_call(cache: str, size: Size) -> tuple[float, float]:
    """Return the seconds that the import and the first call take in a new process."""
    environment = {**os.environ, "TIEBREAK_CACHE": cache, "NUMBA_DISABLE_JIT": size.pick("0", "0", "1")}
    numbers = map(str, (*shape_of(size), size.pick(20_000, 20_000, 200)))
    command = [sys.executable, "-c", FIRST_CALL, *numbers]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the new process failed:\n{done.stderr}")
    imported, called = json.loads(done.stdout)
    return imported, called


def time_first_calls(size: Size) -> None:
    """Time new processes: one that compiles everything, and others that find it stored."""
    with tempfile.TemporaryDirectory() as cache:
        _, cold = first_call(cache, size)
        rounds = counted(range(size.pick(9, 3, 1)), "processes", "first calls")
        imports, calls = zip(*(first_call(cache, size) for _ in rounds), strict=True)
    show(
        "A new process",
        [
            Row("import tiebreak", imports, unit="s", target=Target(1.5)),
            Row("first minimize, with a warm cache", calls, unit="s", target=Target(1.0)),
            Row("first minimize ever, everything compiled", [cold], unit="s"),
        ],
    )


# Python callables


class Timed:
    """A regression as a Python callable, which adds up the time that it takes itself."""

    def __init__(self, A: np.ndarray, b: np.ndarray):
        self.A, self.b, self.spent = A, b, 0.0

    def __call__(self, x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        began = time.perf_counter()
        rows = self.A[indices]
        residual = rows @ x - self.b[indices]
        answer = 0.5 * float(residual @ residual) / indices.size, residual @ rows / indices.size
        self.spent += time.perf_counter() - began
        return answer


def compare_callables(size: Size) -> None:
    """Subtract the callables' own time from that of the interpreted loop, batch 1."""
    (n, d), iterations = shape_of(size), size.pick(500, 500, 5)
    functions = [Timed(*level(n, d, seed)) for seed in (0, 1)]
    problem = Problem(*(FiniteSum(n, d, function) for function in functions), L1Ball(5.0))
    measure_loop = time_of_loop(problem, FREE, np.zeros(d), iterations, time.perf_counter)

    def measure() -> tuple[float, float]:
        for function in functions:
            function.spent = 0.0
        whole = measure_loop()
        return whole * 1e6, sum(function.spent for function in functions) / iterations * 1e6

    measure()
    rounds = counted(range(size.pick(150, 20, 1)), "rounds", "callables")
    whole, own = np.transpose([measure() for _ in rounds])
    show(
        f"SBCGI on Python callables, d = {d}, cut inactive ({np.median(own):.1f} µs per iteration in the callables)",
        [
            Row("time of an iteration outside the callables", whole - own, unit="µs", target=Target(60)),
            Row("iteration / its callables", whole, own),
        ],
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--before", type=Path, metavar="PATH", help="compare with another checkout instead")
    asked = parser.parse_args()
    size: Size = asked.size
    if asked.before is not None:
        compare_versions(asked.before, size)
        return
    compare_iterations(size)
    watch_memory(size)
    compare_densities(size)
    time_first_calls(size)
    compare_callables(size)


if __name__ == "__main__":
    main()
