"""An iteration against the bare sampled gradients that it needs; memory, sparse data, the first call, Python callables.

Run ``python benchmarks/iteration.py``, with ``--quick`` for a shorter run.
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
from numba.core.runtime import _nrt_python, rtsys
from timing import Row, Target, is_quick, seconds, show, take_turns
from tqdm import tqdm

from tiebreak import SBCGF, SBCGI, FiniteSum, L1Ball, LeastSquares, Method, Problem, SpiderFW, minimize, power
from tiebreak.domains.base import ACTIVE, cut_lmo
from tiebreak.engine import kernel
from tiebreak.methods.cutting import State
from tiebreak.objectives.base import accumulate, draw

SAMPLES, DIMENSION = 356, 730  # of a level of the regression problem
NO_CUT = 1e9  # a slack that leaves the cut inactive
DENSITIES = (0.01, 0.05, 0.25, 1.0)
COLUMNS = 20_000
CHUNK = 100_000  # iterations a call, to watch memory


def level(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets of a random regression on ten of the features, other ones for another seed."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    return A, 0.5 * A[:, rng.choice(d, 10, replace=False)].sum(axis=1) + 0.1 * rng.standard_normal(n)


def regression(n: int = SAMPLES, d: int = DIMENSION) -> Problem:
    """Return a problem with random data at both levels."""
    return Problem(LeastSquares(*level(n, d, 0)), LeastSquares(*level(n, d, 1)), L1Ball(5.0))


def first_point(problem: Problem) -> np.ndarray:
    """Return a point that nearly minimises g, from which f can only be lowered along an active cut."""
    return minimize(problem, SpiderFW(level="lower", step=power(2.0, 1.0, shift=2.0)), max_queries=1_000_000).x


# An iteration against its bare work


@kernel
def bare_storm(problem, state, constants, iterations, rng):
    """Draw the samples of SBCGI's iterations and evaluate their gradients, and do nothing else."""
    f, g, _ = problem
    for _ in range(iterations):
        upper, lower = draw(f, rng, state.upper.batch), draw(g, rng, state.lower.batch)
        accumulate(f, upper, state.x, 1.0, state.previous, -0.5, state.upper.direction)
        accumulate(g, lower, state.x, 1.0, state.previous, -0.5, state.lower.direction)


@kernel
def bare_spider(problem, state, constants, iterations, rng):
    """Draw the samples of SBCGF's iterations and evaluate their gradients, and do nothing else."""
    for t in range(iterations):
        bare_spider_step(problem.upper, state.upper, constants.upper, t, rng, state.x, state.previous)
        bare_spider_step(problem.lower, state.lower, constants.lower, t, rng, state.x, state.previous)


@kernel
def bare_spider_step(objective, estimate, sampling, t, rng, x, previous):
    if t % sampling.period == 0:
        accumulate(objective, sampling.everything, x, 1.0, x, 0.0, estimate.direction)
    else:
        accumulate(objective, draw(objective, rng, estimate.batch), x, 1.0, previous, -1.0, estimate.direction)


def time_of_bare(
    bare: Callable[..., None], problem: Problem, method: Method, x: np.ndarray, iterations: int, **clock: Any
) -> Callable[[], float]:
    """Return a contender: the time of the bare work of an iteration of a method, on its own vectors."""
    constants = method.constants(problem)

    def measure() -> float:
        state, rng = method.start(problem, constants, x), np.random.default_rng(0)
        return seconds(bare, problem, state, constants, iterations, rng, **clock) / iterations

    return measure


def time_of_loop(problem: Problem, method: Method, x: np.ndarray, iterations: int) -> Callable[[], float]:
    """Return a contender: the time of an iteration of a method's compiled loop, from a fresh state."""
    constants, schedules = method.constants(problem), method.schedule_values(np.arange(iterations))

    def measure() -> float:
        state, rng = method.start(problem, constants, x), np.random.default_rng(0)
        return seconds(method.loop, problem, state, constants, *schedules, rng) / iterations

    return measure


def time_in_driver(problem: Problem, method: Method, x: np.ndarray, iterations: int) -> Callable[[], float]:
    """Return a contender: the time of an iteration as `minimize` reports it."""

    def measure() -> float:
        result = minimize(problem, method, x0=x, max_queries=None, max_iterations=iterations)
        return result.seconds / result.iterations

    return measure


def share_of_active_cuts(problem: Problem, method: SBCGI, x: np.ndarray, iterations: int, looks: int = 200) -> float:
    """Return how often the cut is active in iterations after some others."""
    constants, rng, point = method.constants(problem), np.random.default_rng(0), np.empty_like(x)
    state: State = method.start(problem, constants, x)
    method.loop(problem, state, constants, *method.schedule_values(np.arange(iterations)), rng)
    active = 0
    for t in range(iterations, iterations + looks):
        step, slack, momentum = method.schedule_values(np.arange(t, t + 1))
        method.loop(problem, state, constants, step, slack, momentum, rng)
        room = (state.anchor[0] - state.lower.value[0] + slack[0]) / state.lower.factor[0]
        bound = room + state.lower.direction @ state.previous
        active += cut_lmo(problem.domain, state.upper.direction, state.lower.direction, bound, point)[0] == ACTIVE
    return active / looks


def compare_iterations(quick: bool) -> None:
    """Divide the time of an iteration by that of its sampled gradients."""
    problem = regression()
    x = first_point(problem)
    free, active, finite = SBCGI(slack=NO_CUT), SBCGI(slack=0.0), SBCGF(slack=NO_CUT)
    many, few = (20_000, 1_000) if quick else (50_000, 3_000)
    times = take_turns(
        {
            "bare": time_of_bare(bare_storm, problem, free, x, many),
            "free": time_of_loop(problem, free, x, many),
            "active": time_of_loop(problem, active, x, many),
            "bare by the wall clock": time_of_bare(bare_storm, problem, free, x, many, clock=time.perf_counter),
            "driver": time_in_driver(problem, free, x, many),
            "bare spider": time_of_bare(bare_spider, problem, finite, x, few),
            "spider": time_of_loop(problem, finite, x, few),
        },
        10 if quick else 60,
        "iterations",
    )
    bare, share = times["bare"], share_of_active_cuts(problem, active, x, many // 2)
    show(
        f"Iteration / its sampled gradients ({np.median(bare) * 1e6:.2f} µs), d = {DIMENSION}, n = {SAMPLES}, dense",
        [
            Row("SBCGI, cut inactive", times["free"], bare, target=Target(1.8)),
            Row("SBCGI, cut inactive, in minimize", times["driver"], times["bare by the wall clock"]),
            Row(f"SBCGI, slack 0 ({share:.0%} of the cuts active)", times["active"], bare),
            Row("SBCGF, cut inactive", times["spider"], times["bare spider"]),
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


def memory_rows(problem: Problem, method: SBCGI, x: np.ndarray, chunks: int, name: str) -> list[Row]:
    """Return how much memory iterations keep, and how many blocks they ask for even if they give them back."""
    constants, rng = method.constants(problem), np.random.default_rng(0)
    state = method.start(problem, constants, x)
    none, chunk = (method.schedule_values(np.arange(size)) for size in (0, CHUNK))
    method.loop(problem, state, constants, *chunk, rng)
    before = resident_kib()
    for _ in tqdm(range(chunks), desc="memory", leave=False):
        method.loop(problem, state, constants, *chunk, rng)
    grown = resident_kib() - before
    idle, busy = (allocated(method.loop, problem, state, constants, *schedules, rng) for schedules in (none, chunk))
    return [
        Row(f"cut {name}: growth of resident memory", [grown], unit="KiB", target=Target(1024)),
        Row(f"cut {name}: allocations an iteration", [(busy - idle) / CHUNK], unit="", target=Target(0)),
    ]


def watch_memory(quick: bool) -> None:
    """Look for memory that iterations take, with the cut inactive and active."""
    problem, chunks = regression(n=50, d=20), 10 if quick else 100
    x = first_point(problem)
    rows = [
        *memory_rows(problem, SBCGI(slack=NO_CUT), x, chunks, "inactive"),
        *memory_rows(problem, SBCGI(slack=0.0), x, chunks, "active"),
    ]
    show(f"Memory over {CHUNK * chunks:,} iterations of SBCGI, d = 20", rows)


# Sparse data


@kernel
def gradients_of_rows(objective, batch, x, y, out, repeats):
    """Evaluate the gradient of each row in turn."""
    for _ in range(repeats):
        for i in range(objective.targets.size):
            batch[0] = i
            accumulate(objective, batch, x, 1.0, y, -0.5, out)


def time_of_nonzero(density: float, full_rows: int = 8) -> Callable[[], float]:
    """Return a contender: the time per non-zero; all densities have as many of them, in more or fewer rows."""
    rng = np.random.default_rng(0)
    n, stored = round(full_rows / density), round(density * COLUMNS)
    columns = np.concatenate([np.sort(rng.choice(COLUMNS, stored, replace=False)) for _ in range(n)])
    starts = np.arange(n + 1) * stored
    matrix = scipy.sparse.csr_array((rng.standard_normal(columns.size), columns, starts), shape=(n, COLUMNS))
    objective, batch = LeastSquares(matrix, rng.standard_normal(n)), np.zeros(1, dtype=np.int64)
    x, y, repeats = rng.standard_normal(COLUMNS), rng.standard_normal(COLUMNS), 10

    def measure() -> float:
        out = np.zeros(COLUMNS)
        return seconds(gradients_of_rows, objective, batch, x, y, out, repeats) / (repeats * columns.size)

    return measure


def compare_densities(quick: bool) -> None:
    """Compare the time per non-zero over densities."""
    contenders = {f"{density:.0%}": time_of_nonzero(density) for density in DENSITIES}
    times = take_turns(contenders, 10 if quick else 40, "sparse rows")
    full = times["100%"]
    show(
        f"CSR, gradient of one row, d = {COLUMNS}: time per non-zero / that of a full row ({np.median(full) * 1e9:.2f} ns)",
        [Row(f"{name} of the row stored", times[name], full, target=Target(3.0)) for name in contenders],
    )


# The first call in a new process

FIRST_CALL = f"""
import json, time
began = time.perf_counter()
import tiebreak
imported = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
levels = [tiebreak.LeastSquares(rng.standard_normal(({SAMPLES}, {DIMENSION})), rng.standard_normal({SAMPLES})) for _ in "fg"]
problem = tiebreak.Problem(*levels, tiebreak.L1Ball(1.0))
built = time.perf_counter()
tiebreak.minimize(problem, "sbcgf", max_queries=20_000)
print(json.dumps([imported - began, time.perf_counter() - built]))
"""


def first_call(cache: str) -> tuple[float, float]:
    """Return the seconds that the import and the first call take in a new process."""
    environment = {**os.environ, "TIEBREAK_CACHE": cache}
    done = subprocess.run([sys.executable, "-c", FIRST_CALL], env=environment, capture_output=True, text=True, check=True)
    imported, called = json.loads(done.stdout)
    return imported, called


def time_first_calls(quick: bool) -> None:
    """Time new processes: one that compiles everything, and others that find it stored."""
    try:
        with tempfile.TemporaryDirectory() as cache:
            _, cold = first_call(cache)
            warm = [first_call(cache) for _ in tqdm(range(3 if quick else 9), desc="new processes", leave=False)]
    except subprocess.CalledProcessError as error:
        print(f"\nA new process\n  failed: {error.stderr.strip().splitlines()[-1]}")
        return
    imports, calls = zip(*warm, strict=True)
    show(
        "A new process",
        [
            Row("import tiebreak", imports, unit="s", target=Target(1.5)),
            Row("first minimize, 20 000 queries, code stored", calls, unit="s", target=Target(1.0)),
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


def compare_callables(quick: bool) -> None:
    """Subtract the callables' own time from that of the interpreted loop, batch 1."""
    functions = [Timed(*level(SAMPLES, DIMENSION, seed)) for seed in (0, 1)]
    problem = Problem(*(FiniteSum(SAMPLES, DIMENSION, function) for function in functions), L1Ball(5.0))
    method, x = SBCGI(slack=NO_CUT), np.zeros(DIMENSION)
    iterations, rounds = (500, 20) if quick else (500, 150)
    constants, schedules = method.constants(problem), method.schedule_values(np.arange(iterations))

    def measure() -> tuple[float, float]:
        state, rng = method.start(problem, constants, x), np.random.default_rng(0)
        for function in functions:
            function.spent = 0.0
        whole = seconds(method.loop.python, problem, state, constants, *schedules, rng, clock=time.perf_counter)
        return whole / iterations * 1e6, sum(function.spent for function in functions) / iterations * 1e6

    measure()
    whole, own = np.transpose([measure() for _ in tqdm(range(rounds), desc="callables", leave=False)])
    show(
        f"SBCGI on Python callables, d = {DIMENSION}, cut inactive ({np.median(own):.1f} µs an iteration in the callables)",
        [
            Row("time of an iteration outside the callables", whole - own, unit="µs", target=Target(60)),
            Row("iteration / its callables", whole, own),
        ],
    )


def main() -> None:
    quick = is_quick(__doc__)
    compare_iterations(quick)
    watch_memory(quick)
    compare_densities(quick)
    time_first_calls(quick)
    compare_callables(quick)


if __name__ == "__main__":
    main()
