"""A race of all methods on a bank of problems with known answers: who solves what first, by the clock and by samples.

Run ``python benchmarks/race.py``. Each run has a budget of passes over the data and is stopped after a minute; the race ends
after an hour, and a second call continues it. It writes ``race.md`` (how the default method fared, and all that it lost),
``race.csv`` (every run) and ``profiles.svg`` (Dolan and Moré's performance profiles) to its folder. ``--quick`` takes a few
small problems, ``--tiny`` two, interpreted. Set ``TIEBREAK_DATA`` to a folder with ``a1a.npz``, ``montevideo_bus.json`` and
``adult.mat`` to include these data.

Times are those of the method, without compilation and without the evaluation of records. Short runs are repeated, and the
fastest one counts. Every run makes its problem anew, so that constants of the data are found in each.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from bank import Entry, Reference, entries
from bank.files import MissingDataError
from bank.proving import reference_of
from judging import Run, Yardstick, with_shared_times
from reporting import write
from timing import Size, arguments
from tqdm import tqdm

from tiebreak import METHODS, Snapshot, Status, minimize

CAP = 60.0  # seconds of a run
GRACE = 60.0  # seconds beyond it for compilation and records, after which a run is killed
SHORT, REPEATS = 1.0, 3  # seconds in which a run is repeated, and how often it is made at most
PROOF = 300.0  # seconds for a reference
QUICK = ("least-norm/100", "small-ball/1000", "small-logistic/300", "quantile/30", "hull/30", "near-wide-by-share/300")
TINY = ("small-ball/30", "least-norm/100")
TINY_METHODS = ("auto", "pb-apg", "sbcgf", "bi-fista")


# One run, in a process of its own


def follow(entry: Entry, method: str, tell: Any) -> dict[str, Any]:
    """Run a method on an entry, telling each record of the first run; return how the fastest run ended, with its records."""
    best, spent = dict[str, Any](), 0.0
    for repeat in range(REPEATS):
        case, rows = entry.make(), list[list[float]]()

        def watch(snapshot: Snapshot, at: Any = case.at, rows: Any = rows, first: bool = repeat == 0) -> bool:
            record = snapshot.record
            rows.append([record.upper_queries + record.lower_queries, record.seconds, *at(snapshot.x)])
            if first:
                tell(rows[-1])
            return record.seconds > CAP

        budget = max(1, int(entry.passes * case.samples))
        try:
            result = minimize(case.problem, method, max_queries=budget, callback=watch, progress=False)
        except ValueError as error:  # it says what the method needs and the problem lacks
            return {"status": "refused", "message": str(error), "records": []}
        rows.append([result.queries.total, result.seconds, *case.at(result.x)])
        if not best or result.seconds < best["records"][-1][1]:
            status = "capped" if result.status is Status.CALLBACK else result.status.name.lower()
            best = {"status": status, "chosen": result.method.name, "records": rows}
        spent += result.seconds  # compilation, which the first run may wait for, is no reason to leave it at that
        if spent > SHORT:
            break
    return best


def measured(entry: Entry) -> dict[str, Any]:
    """Return what gaps of an entry's problem are measured from."""
    case = entry.make()
    reference, tolerance = reference_of(case)
    endless = any(level.endless for level in case.problem[:2])
    units = {"start": list(case.at(case.problem.center)), "tolerance": tolerance, "one_pass": 0 if endless else case.samples}
    return {"status": "measured", **reference._asdict(), **units, "records": []}


def serve(connection: Any, tiny: bool) -> None:
    """Do what the other end of a connection asks for, one thing after another."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other end
    known = {entry.label: entry for entry in entries()}
    with (Size.TINY if tiny else Size.FULL).engine():
        while (asked := connection.recv()) is not None:
            label, method = asked
            try:
                if method is None:
                    outcome = measured(known[label])
                else:
                    outcome = follow(known[label], method, lambda row: connection.send(("record", row)))
            except MissingDataError as error:
                outcome = {"status": "missing", "message": str(error)}
            except Exception as error:
                outcome = {"status": "failed", "message": f"{type(error).__name__}: {error}"}
            connection.send(("end", outcome))


class Worker:
    """A process that runs methods. It is replaced when a run takes too long or takes it down."""

    def __init__(self, tiny: bool) -> None:
        self._tiny = tiny
        self._process: Any = None

    def ask(self, label: str, method: str | None, limit: float) -> dict[str, Any]:
        """Return the outcome of a run, or of the proof of a reference, with the records until then."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, other = context.Pipe()
            self._process = context.Process(target=serve, args=(other, self._tiny), daemon=True)
            self._process.start()
            other.close()
        deadline, records = time.monotonic() + limit, list[Any]()
        try:
            self._connection.send((label, method))
            while self._connection.poll(max(0.0, deadline - time.monotonic())):
                what, content = self._connection.recv()
                if what == "end":
                    return {"records": [], **content}
                records.append(content)
            outcome = {"status": "killed", "message": f"stopped after {limit:g} s"}
        except (EOFError, BrokenPipeError, ConnectionResetError):
            outcome = {"status": "died", "message": "its process ended"}
        self._end()
        return {**outcome, "records": records}

    def kill(self) -> None:
        """End the process in the middle of what it does; what was asked for comes back as "died"."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Let the process end, which has nothing to do."""
        if self._process is not None:
            with suppress(OSError):
                self._connection.send(None)
            self._process.join(GRACE)
            self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._process = None


# The store


class Store:
    """Outcomes in a file, one JSON line each, written at once; a line that was cut short is read as none."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        self.outcomes: dict[tuple[str, str | None], dict[str, Any]] = {}
        if file.is_file():
            content = file.read_text(encoding="utf-8")
            if content and not content.endswith("\n"):
                self._append("\n")
            for line in content.splitlines():
                try:
                    outcome = json.loads(line)
                except json.JSONDecodeError:
                    continue
                if outcome["status"] != "missing":  # its data may be there by now
                    self.outcomes[outcome["entry"], outcome["method"]] = outcome

    def add(self, outcome: dict[str, Any]) -> None:
        """Keep an outcome."""
        with self._lock:
            self._append(json.dumps(outcome) + "\n")
            self.outcomes[outcome["entry"], outcome["method"]] = outcome

    def forget(self, methods: Iterable[str], labels: Iterable[str]) -> None:
        """Drop the runs of some methods on some entries."""
        dropped = {(label, method) for label in labels for method in methods}
        self.outcomes = {key: outcome for key, outcome in self.outcomes.items() if key not in dropped}
        shorter = self._file.with_suffix(".new")
        shorter.write_text("".join(json.dumps(outcome) + "\n" for outcome in self.outcomes.values()), encoding="utf-8")
        shorter.replace(self._file)

    def _append(self, text: str) -> None:
        place = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(place, text.encode())
        finally:
            os.close(place)


# The race


def tasks_of(chosen: Sequence[Entry], methods: Sequence[str], store: Store) -> Iterator[tuple[Entry, str | None]]:
    """Yield what is still to be done: references, then all methods on each entry."""
    for entry in {entry.name: entry for entry in reversed(chosen)}.values():
        if (entry.name, None) not in store.outcomes:
            yield entry, None
    for entry in chosen:
        for method in methods:
            if (entry.label, method) not in store.outcomes:
                yield entry, method


def race(chosen: Sequence[Entry], methods: Sequence[str], store: Store, *, seconds: float, jobs: int, tiny: bool) -> int:
    """Do all that is still to be done while there is time, or until Ctrl-C; return how many runs are left."""
    waiting: queue.SimpleQueue[tuple[Entry, str | None]] = queue.SimpleQueue()
    for task in tasks_of(chosen, methods, store):
        waiting.put(task)
    end, stopped = time.monotonic() + seconds, threading.Event()

    def work(worker: Worker) -> None:
        while time.monotonic() < end and not stopped.is_set():
            try:
                entry, method = waiting.get_nowait()
            except queue.Empty:
                return
            bar.set_description(f"{entry.label}, {method or 'its answer'}")
            began, label = time.monotonic(), entry.name if method is None else entry.label
            outcome = worker.ask(entry.label, method, PROOF if method is None else CAP + GRACE)
            if not stopped.is_set():
                store.add({"entry": label, "method": method, "wall_seconds": time.monotonic() - began, **outcome})
                bar.update()

    with tqdm(total=waiting.qsize(), unit=" runs", disable=None, leave=False) as bar, ExitStack() as stack:
        workers = [stack.enter_context(hired(tiny)) for _ in range(jobs)]
        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.05)  # unlike a thread's join, it may be interrupted
        except KeyboardInterrupt:
            stopped.set()
            for worker in workers:
                worker.kill()
        for thread in threads:
            thread.join()
    return sum(1 for _ in tasks_of(chosen, methods, store))


@contextmanager
def hired(tiny: bool) -> Iterator[Worker]:
    """Return a worker whose process ends with the block."""
    worker = Worker(tiny)
    try:
        yield worker
    finally:
        worker.close()


def results(chosen: Sequence[Entry], store: Store) -> tuple[list[Run], dict[str, Yardstick]]:
    """Return all runs of entries whose answers are known, and what their gaps are measured from."""
    runs, yardsticks = list[Run](), dict[str, Yardstick]()
    for name in dict.fromkeys(entry.name for entry in chosen):
        known = store.outcomes.get((name, None))
        if known is None or known["status"] != "measured":
            continue
        labels = [entry.label for entry in chosen if entry.name == name]
        own = [as_run(outcome) for key, outcome in store.outcomes.items() if key[0] in labels and key[1] is not None]
        reference = Reference(*(known[field] for field in Reference._fields))
        yardstick = Yardstick(reference, tuple(known["start"]), known["tolerance"], known["one_pass"])
        yardsticks.update(dict.fromkeys(labels, yardstick))
        runs.extend(with_shared_times(own))
    return runs, yardsticks


def as_run(outcome: dict[str, Any]) -> Run:
    """Return a run from what is stored of it."""
    records = np.array(outcome["records"], dtype=float).reshape(-1, 4)
    return Run(outcome["entry"], outcome["method"], outcome["status"], outcome.get("chosen", ""), records)


def two_level_methods() -> list[str]:
    """Return the names of all methods that look at both levels."""
    return [name for name, method in METHODS.items() if len(method().levels) == 2]


def chosen_entries(only: Iterable[str] | None, size: Size) -> list[Entry]:
    """Return the entries whose problem, kind or label was asked for; all others of this size."""
    if only:
        wanted = set(only)
        found = [entry for entry in entries() if wanted & {entry.name, entry.kind, entry.label}]
        missing = wanted - {name for entry in found for name in (entry.name, entry.kind, entry.label)}
        if missing:
            raise SystemExit(f"the bank has no {', '.join(sorted(missing))}; it has {', '.join(e.label for e in entries())}")
        return found
    labels: Sequence[str] | None = size.pick(None, QUICK, TINY)
    return [entry for entry in entries() if labels is None or entry.label in labels]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="problems, kinds or entries such as tall/30")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="methods; all by default")
    parser.add_argument("--again", nargs="+", metavar="NAME", default=[], help="methods whose runs are made again")
    parser.add_argument("--folder", type=Path, help="where results are kept; race by default")
    parser.add_argument("--hours", type=float, default=1.0, help="when to end; 0 only writes the tables")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time; more than one disturb each other")
    asked = parser.parse_args()
    tiny = asked.size is Size.TINY
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch if tiny else "race")
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(folder / "runs.jsonl")
        methods = asked.methods or asked.size.pick(two_level_methods(), two_level_methods(), list(TINY_METHODS))
        chosen = chosen_entries(asked.only, asked.size)
        if asked.again:
            store.forget(asked.again, [entry.label for entry in chosen])
        left = race(chosen, methods, store, seconds=3600.0 * asked.hours, jobs=asked.jobs, tiny=tiny)
        print(write(folder, chosen, *results(chosen, store)))
        if left:
            print(f"{left} runs are left: call this again to continue")


if __name__ == "__main__":
    main()
