"""The same problem with its rows in memory, mapped, in a store and on two Dask workers: what each costs.

Run ``python benchmarks/rows.py``, with ``--quick`` for smaller data. It needs 12 GB of disk for the largest part, below the
folder that ``--folder`` names, and removes what it wrote. ``--only passes``, ``sources`` or ``large`` does one part.

- ``passes``: one pass over dense data in one thread and in all, in single and double precision, and over a file that is not
  in the page cache, beside the bare reading of that file.
- ``sources``: dense rows and sparse rows, in memory, mapped, stored and on two workers: a pass; SBCGI and PAVR until both
  gaps are 1e-3 of those of the first point; bytes moved; seconds waited for data. On workers each run begins with no row
  here, and a second one with those of the first; beside them are runs for which no row stays here.
- ``large``: a file of 8 GB, solved to a proven answer in a process that may have 2 GB of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from timing import Row, Size, Target, arguments, show, show_table, take_turns

from tiebreak import PAVR, SBCGI, L1Ball, LeastSquares, Problem, SquaredNorm, minimize
from tiebreak.data import open_store, store
from tiebreak.rows import processors

GAP = 1e-3  # of both levels, relative to those of the first point
LIMIT = 2 << 30  # bytes of its own that the process on large data may have
CAP = 60.0  # seconds of a run
PARTS = ("passes", "sources", "large")


def clock(function: Callable[[], Any]) -> float:
    """Return how long a call takes by the clock on the wall: threads work, and disks are waited for."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = os.environ.get("TIEBREAK_THREADS")
    os.environ["TIEBREAK_THREADS"] = str(number)
    try:
        yield
    finally:
        del os.environ["TIEBREAK_THREADS"]
        if before is not None:
            os.environ["TIEBREAK_THREADS"] = before


def one_pass(objective: Any, number: int | None = None) -> float:
    x = np.full(objective.dimension, 1.0 / objective.dimension)
    with threads(number or processors()):
        return clock(lambda: objective.pass_over(x, np.zeros_like(x)))


# Passes


def write_dense(file: Path, n: int, d: int, kind: Any = np.float64) -> None:
    """Write a matrix of random numbers, block by block."""
    array, rng = np.lib.format.open_memmap(file, "w+", dtype=kind, shape=(n, d)), np.random.default_rng(0)
    for low in range(0, n, 20_000):
        block = rng.standard_normal((min(20_000, n - low), d))
        block[:, d // 2 :] = block[:, : d - d // 2]  # twice the same columns: many minimisers
        array[low : low + 20_000] = block
    array.flush()


def passes(size: Size, folder: Path) -> None:
    n, d = size.pick((200_000, 400), (50_000, 400), (6000, 50))
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((n, d)), rng.standard_normal(n)
    double, single = LeastSquares(A, b), LeastSquares(A.astype(np.float32), b)
    total = np.empty(1)
    turns: dict[str, Callable[[], float]] = {
        "one": partial(one_pass, double, 1),
        "all": partial(one_pass, double),
        "single": partial(one_pass, single, 1),
        "read": lambda: clock(lambda: np.add.reduce(A, axis=None, out=total[0:1].reshape(()))),
    }
    times = take_turns(turns, size.pick(15, 7, 1), "passes")
    cores, numbers = processors(), n * d
    show(
        f"A pass over {n:,} × {d} dense rows",
        [
            Row(f"one thread / {cores} threads", times["one"], times["all"], target=Target(1.6, at_least=True)),
            Row("float32 / float64, one thread", times["single"], times["one"], target=Target(0.7)),
            Row(f"{cores} threads / summing all numbers (NumPy)", times["all"], times["read"]),
            Row(f"{cores} threads", numbers * 8e-9 / times["all"], unit="GB/s"),
        ],
    )
    file = folder / "cold.npy"
    write_dense(file, *size.pick((1_000_000, 250), (100_000, 250), (6000, 50)))
    show(
        f"A pass over a file of {file.stat().st_size / 1e9:.2g} GB that is not in the page cache",
        [Row("mapped / its sequential reading", *cold_times(file, size.pick(5, 3, 1)), target=Target(1.2))],
    )
    file.unlink()


def cold_times(file: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Return seconds of passes over a mapped file and of its reading, each when the page cache has forgotten it."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):
        array = np.load(file, mmap_mode="r")
        objective = LeastSquares(array, np.ones(array.shape[0]))
        one_pass(objective)  # compiles
        x, out = np.zeros(array.shape[1]), np.zeros(array.shape[1])
        del array
        shape = objective.matrix.shape
        objective = None
        forget(file)
        objective = LeastSquares._make(
            [LeastSquares(np.ones((1, 1)), np.ones(1)).scalar, *_unread(file), np.ones(shape[0]), np.ones(shape[0])]
        )
        found[0].append(clock(partial(objective.pass_over, x, out)))
        objective = None
        forget(file)
        found[1].append(clock(partial(read, file)))
    return found[0][1:], found[1][1:]


def _unread(file: Path) -> list[Any]:
    from tiebreak.objectives.matrices import Dense

    return [Dense(np.asarray(np.load(file, mmap_mode="r")))]


def forget(file: Path) -> None:
    """Let the page cache forget a file that nobody maps."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(file: Path) -> None:
    room = bytearray(1 << 22)
    with file.open("rb", buffering=0) as opened:
        while opened.readinto(room):
            pass


# Sources


class Data(NamedTuple):
    """Rows of which several sources are made."""

    name: str
    A: Any
    b: np.ndarray
    radius: float


def dense_data(size: Size) -> Data:
    n, d = size.pick((200_000, 730), (20_000, 200), (400, 20))
    rng = np.random.default_rng(0)
    A = np.empty((n, d))
    for low in range(0, n, 10_000):
        A[low : low + 10_000] = rng.standard_normal((min(10_000, n - low), d))
    A[:, d // 2 :] = A[:, : d - d // 2]
    truth = np.where(np.arange(d) < d // 10, rng.standard_normal(d), 0.0)
    return Data(f"dense {n:,} × {d}", A, A @ truth + 0.1 * rng.standard_normal(n), 2.0 * float(np.abs(truth).sum()))


def sparse_data(size: Size) -> Data:
    n, d, per_row = size.pick((2_000_000, 100_000, 10), (100_000, 5000, 10), (500, 50, 5))
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, d, (n, per_row)), axis=1)
    matrix = (rng.standard_normal(n * per_row), columns.ravel(), np.arange(0, n * per_row + 1, per_row))
    A = scipy.sparse.csr_array(matrix, shape=(n, d))
    A.sum_duplicates()
    truth = np.where(np.arange(d) < max(d // 100, 1), rng.standard_normal(d), 0.0)
    return Data(f"CSR {n:,} × {d:,}", A, A @ truth + 0.1 * rng.standard_normal(n), 2.0 * float(np.abs(truth).sum()))


def mapped(data: Data, folder: Path) -> LeastSquares:
    if scipy.sparse.issparse(data.A):
        parts = []
        for name in ("data", "indices", "indptr"):
            np.save(folder / f"{name}.npy", getattr(data.A, name))
            parts.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
        return LeastSquares(scipy.sparse.csr_array(tuple(parts), shape=data.A.shape), data.b)
    np.save(folder / "A.npy", data.A)
    return LeastSquares(np.load(folder / "A.npy", mmap_mode="r"), data.b)


def stored(data: Data, folder: Path) -> LeastSquares:
    store(data.A, folder / "store", seed=None, target=data.b, progress=False)
    return LeastSquares(open_store(folder / "store"), target="target")


@contextmanager
def workers(number: int, folder: Path) -> Iterator[Any]:
    """Give Dask workers in processes of their own."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=":0", local_directory=str(folder), silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def on_dask(data: Data, folder: Path, client: Any) -> LeastSquares:
    """Let workers load their parts of the files that :func:`mapped` has written."""
    import dask
    import dask.array as da

    (n, d), sparse = data.A.shape, scipy.sparse.issparse(data.A)
    step = -(-n // (8 * 4096)) * 4096
    load, meta = dask.delayed(loaded_sparse if sparse else loaded, pure=True), data.A[:0]
    parts = []
    for low in range(0, n, step):
        rows = min(step, n - low)
        parts.append(da.from_delayed(load(str(folder), low, low + rows, d), (rows, d), meta=meta))
    return LeastSquares(da.concatenate(parts), da.from_array(data.b, chunks=step), client=client)


def loaded(folder: str, low: int, high: int, d: int) -> np.ndarray:
    return np.array(np.load(f"{folder}/A.npy", mmap_mode="r")[low:high])


def loaded_sparse(folder: str, low: int, high: int, d: int) -> Any:
    data, indices, indptr = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr"))
    starts = np.array(indptr[low : high + 1])
    own = slice(int(starts[0]), int(starts[-1]))
    return scipy.sparse.csr_array((np.array(data[own]), np.array(indices[own]), starts - starts[0]), shape=(high - low, d))


class Race(NamedTuple):
    """What a run took until both gaps were small."""

    seconds: float
    queries: int
    solved: bool
    moved: float
    waited: float


def race(problem: Problem, method: Any, budget: int, least: tuple[float, float]) -> Race:
    """Run a method until both gaps are a share of those of the first point."""
    x0 = problem.center
    first = problem.upper.value(x0), problem.lower.value(x0)
    best_f, best_g = least
    room = GAP * max(abs(first[0] - best_f), abs(best_f)), GAP * (first[1] - best_g)
    solved = []

    def there(snapshot: Any) -> bool:
        record = snapshot.record
        if abs(record.upper - best_f) <= room[0] and record.lower - best_g <= room[1]:
            solved.append(record.seconds)
        return bool(solved)

    result = minimize(problem, method, max_queries=budget, time_limit=CAP, callback=there, progress=False, seed=1)
    moved, waited = getattr(result, "bytes_moved", 0), getattr(result, "seconds_waited", 0.0)
    return Race(solved[0] if solved else result.seconds, result.queries.total, bool(solved), moved, waited)


def sources(size: Size, folder: Path) -> None:
    for make in (dense_data, sparse_data):
        data = make(size)
        with ExitStack() as stack:
            made: dict[str, LeastSquares] = {"memory": LeastSquares(data.A, data.b)}
            made["mapped"], made["stored"] = mapped(data, folder), stored(data, folder)
            try:
                client = stack.enter_context(workers(2, folder))
            except ImportError:
                print("no Dask: pip install tiebreak[dask]")
            else:
                made["two workers"] = on_dask(data, folder, client)
            compare(data, made, size, partial(on_dask, data, folder))
        for each in folder.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def compare(data: Data, made: dict[str, LeastSquares], size: Size, anew: Callable[[Any], LeastSquares]) -> None:
    times = take_turns({name: partial(one_pass, each) for name, each in made.items()}, size.pick(9, 5, 1), data.name)
    limits = {"mapped": 1.3, "stored": 1.3, "two workers": 3.0}
    ratios = [
        Row(f"{name} / memory", times[name], times["memory"], target=Target(limits[name])) for name in limits if name in made
    ]
    show(f"A pass over {data.name}, seconds", [Row("memory", times["memory"], unit="s"), *ratios])
    if "two workers" in made and not made["two workers"].in_memory:
        show_model(made, times, size)
    n = data.A.shape[0]
    problem = Problem(SquaredNorm(), made["memory"], L1Ball(data.radius))
    best = minimize(
        problem, "pavr", max_queries=size.pick(400, 400, 50) * n, time_limit=size.pick(300.0, 60.0, None), progress=False
    )
    lines = []
    for name, method, passes in (("SBCGI", SBCGI(), 20), ("PAVR", PAVR(), 60)):
        found = {}
        for source, each in raced(made, anew):
            found[source] = race(problem._replace(lower=each), method, passes * n, (best.upper, best.lower))
            got, base = found[source], found["memory"]
            end = "" if got.solved else f" (not in {passes} passes or {CAP:g} s)"
            lines.append(
                [
                    f"{name}, {source}{end}",
                    f"{got.seconds:.3g}",
                    f"{got.seconds * base.queries / (got.queries * base.seconds):.3g} x",
                    f"{got.moved / 1e6:.4g}",
                    f"{got.waited:.3g}",
                    f"{got.queries / n:.3g}",
                ]
            )
    show_table(
        f"{data.name}: both gaps to {GAP:g}", ["", "seconds", "per row / memory", "MB moved", "s waited", "passes"], lines
    )


def raced(made: dict[str, LeastSquares], anew: Callable[[Any], LeastSquares]) -> Iterator[tuple[str, LeastSquares]]:
    """Yield objectives to run on; those on workers are made anew, so that all their rows are there."""
    yield from ((name, each) for name, each in made.items() if each.in_memory)
    if far := [each for each in made.values() if not each.in_memory]:
        import dask

        client = far[0].matrix.partitions.cluster.client
        objective = anew(client)
        yield "two workers", objective
        yield "two workers, again", objective
        with dask.config.set({"tiebreak.cache": 0}):
            objective = anew(client)
        yield "two workers, nothing kept", objective


def show_model(made: dict[str, LeastSquares], times: dict[str, np.ndarray], size: Size) -> None:
    """Compare what passes and rows on workers cost with what docs/large_data.md says that they should."""
    near, far, rounds = made["memory"], made["two workers"], size.pick(9, 5, 1)
    n = near.n_samples
    few, many = np.arange(64), np.random.default_rng(0).integers(0, n, min(8192, n))
    turns = {
        "one thread": partial(one_pass, near, 1),
        "empty": lambda: clock(lambda: list(far.rows.passes(nothing, width=0.0))),
        "few": lambda: clock(lambda: far.matrix.partitions.take(few)),
        "many": lambda: clock(lambda: far.matrix.partitions.take(many)),
    }
    found = {name: float(np.median(each)) for name, each in take_turns(turns, rounds, "model").items()}
    per_byte = 8.0 * near.matrix.numbers / n
    predicted = found["one thread"] / 2.0 + found["empty"]
    lines = [
        ["a pass that does nothing, two workers", f"{1e3 * found['empty']:.3g} ms"],
        ["a pass: one thread / 2 + that", f"{1e3 * predicted:.3g} ms"],
        ["a pass, measured", f"{1e3 * float(np.median(times['two workers'])):.3g} ms"],
        ["64 rows taken", f"{1e3 * found['few']:.3g} ms"],
        ["8192 rows taken, each", f"{1e6 * found['many'] / many.size:.3g} µs"],
        ["that is", f"{per_byte * many.size / found['many'] / 1e6:.3g} MB/s"],
    ]
    show_table("The cost model: passes and rows on workers", ["", ""], lines)


def nothing(rows: Any, low: int, high: int) -> None:
    """Do nothing with some rows."""


# Large data


def large(size: Size, folder: Path) -> None:
    n, d = size.pick((10_000_000, 100), (1_000_000, 100), (10_000, 30))
    file = folder / "large.npy"
    write_dense(file, n, d)
    reading = clock(partial(read, file))
    code = [sys.executable, __file__, "--child", str(file)]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the run on large data failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    lines = [
        ["bytes of the file", f"{file.stat().st_size / 1e9:.3g} GB"],
        ["memory of the process itself, at most", f"{found['own'] / 1e9:.3g} GB"],
        ["to the proven answer / reading the file once", f"{found['seconds'] / reading:.3g} x"],
        ["of that: checking all numbers on the way in", f"{found['checking'] / reading:.3g} x"],
        ["method", found["method"]],
        ["proven: f − f* at most, relative to f", f"{found['upper']:.2g}"],
        ["proven: g − g* at most, relative to g", f"{found['lower']:.2g}"],
    ]
    show_table(f"A regression on {n:,} × {d} rows on disk, {LIMIT / (1 << 30):g} GiB allowed", ["", ""], lines)
    file.unlink()


def child(file: Path) -> None:
    """Solve a regression on a file with bounded memory, and print what it took."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))  # private memory, not the pages of the file
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            peak[0] = max(peak[0], own_memory())

    threading.Thread(target=watch, daemon=True).start()
    rng = np.random.default_rng(1)
    A = np.load(file, mmap_mode="r")
    n, d = A.shape
    b = np.empty(n)
    for low in range(0, n, 100_000):
        b[low : low + 100_000] = A[low : low + 100_000, : d // 5].sum(axis=1)
    b += rng.standard_normal(n)
    began = time.perf_counter()
    lower = LeastSquares(A, b)
    checked = time.perf_counter()
    result = minimize(Problem(SquaredNorm(), lower, L1Ball(d / 2.0)), progress=False)
    ended.set()
    found = {
        "own": peak[0],
        "seconds": time.perf_counter() - began,
        "checking": checked - began,
        "method": result.method.name,
        "upper": result.upper_gap_bound / abs(result.upper),
        "lower": result.lower_gap_bound / abs(result.lower),
    }
    print(json.dumps(found))


def own_memory() -> int:
    """Return the bytes of memory that are this process's own."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--folder", type=Path, help="where files are written; the folder of temporary files if not given")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child is not None:
        child(asked.child)
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as name, asked.size.engine():
        for part in PARTS if asked.only is None else [asked.only]:
            {"passes": passes, "sources": sources, "large": large}[part](asked.size, Path(name))


if __name__ == "__main__":
    main()
