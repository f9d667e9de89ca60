"""Runs are kept as they end, are not made again, and survive what goes wrong around them."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from toys import Walks, logged

import tiebreak
from tiebreak.studies import runner, study
from tiebreak.studies.store import Store, StoreError
from tiebreak.studies.study import Plan, Source, Task

ALL = ["base 0", "base 1", "walk 0 0", "walk 0 1", "walk 1 0", "walk 1 1"]


def do(tmp_path, study=None, jobs=1, seeds=2):
    tasks = (study or Walks(tmp_path)).tasks(Plan(seeds=seeds))
    return runner.run(tasks, Store(tmp_path / "out" / "runs"), jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_call_runs_nothing_again(tmp_path, jobs):
    first = do(tmp_path, jobs=jobs)
    assert (len(first.made), len(first.found), first.failed) == (6, 0, [])
    assert logged(tmp_path) == ALL  # what two runs need is run once
    second = do(tmp_path, jobs=jobs)
    assert (len(second.made), len(second.found)) == (0, 6)
    assert logged(tmp_path) == ALL


def test_more_seeds_and_other_settings_run_what_is_new_and_keep_the_rest(tmp_path):
    do(tmp_path, seeds=1)
    assert len(do(tmp_path, seeds=2).made) == 3
    assert len(do(tmp_path, Walks(tmp_path, steps=61), seeds=1).made) == 2  # the base is as before
    assert len(do(tmp_path, seeds=2).made) == 0


@pytest.mark.parametrize(("name", "other"), [("SOURCES", "of other code"), ("SOLVERS", {"cvxpy": None})])
def test_runs_of_other_code_or_solvers_are_made_anew(tmp_path, monkeypatch, name, other):
    do(tmp_path, seeds=1)
    monkeypatch.setattr(study, name, other)
    assert len(do(tmp_path, seeds=1).made) == 3


def test_a_file_that_was_moved_is_the_same_and_one_that_was_changed_is_not():
    def key(path, digest):
        return Task("t", 0, print, {"source": Source("adult", path, digest)._asdict()}).key

    assert key("/here/a.mat", "1") == key("/there/b.mat", "1") != key("/here/a.mat", "2")
    assert key("/here/a.mat", None) != key("/there/b.mat", None)


def test_a_run_is_an_npz_and_a_json_that_say_how_it_was_made(tmp_path):
    do(tmp_path, seeds=1)
    (npz,) = (tmp_path / "out/runs/walks").glob("1-seed0-*.npz")
    stored = json.loads(npz.with_suffix(".json").read_text())
    assert stored["identity"]["settings"]["drift"] == 1.0
    assert stored["identity"]["seed"] == 0
    assert stored["versions"]["tiebreak"] == tiebreak.__version__
    assert stored["versions"]["numpy"] == np.__version__
    assert stored["wall_seconds"] >= 0.0
    with np.load(npz, allow_pickle=False) as arrays:
        assert arrays["path"][-1] == stored["record"]["end"]


def test_a_damaged_run_is_made_again(tmp_path):
    do(tmp_path)
    (npz,) = (tmp_path / "out/runs/walks").glob("1-seed0-*.npz")
    npz.write_bytes(npz.read_bytes()[:50])
    (text,) = (tmp_path / "out/runs/walks").glob("0-seed1-*.json")
    text.write_text("{")
    report = do(tmp_path)
    assert sorted((task.name, task.seed) for task in report.made) == [("walks/0", 1), ("walks/1", 0)]


def test_a_failing_run_stops_no_other_and_is_all_that_the_next_call_makes(tmp_path):
    (tmp_path / "forbidden-1-0").touch()
    report = do(tmp_path)
    assert len(report.made) == 5
    assert runner.failures(report) == ["walks/1, seed 0: RuntimeError: no walk of drift 1 today"]
    (tmp_path / "forbidden-1-0").unlink()
    report = do(tmp_path)
    assert [(task.name, task.seed) for task in report.made] == [("walks/1", 0)]


def test_what_needs_a_failed_run_is_not_run(tmp_path):
    (tmp_path / "forbidden-0-0").touch()
    first, second = Walks(tmp_path).tasks(Plan(seeds=1))
    after = Task("walks/after", 0, second.function, second.settings, {"base": first})
    report = runner.run([after, second], Store(tmp_path / "runs"), jobs=1)
    assert {done.task.name: done.error for done in report.failed} == {
        "walks/0": "RuntimeError: no walk of drift 0 today",
        "walks/after": "a run that it needs has failed",
    }
    assert [task.name for task in report.made] == ["walks/base", "walks/1"]


@pytest.fixture
def small_files():
    """No file may grow beyond 60 kB: what a full disk does to a program, done by the system."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_named_and_finished_runs_are_kept(tmp_path, small_files):
    store = Store(tmp_path / "runs")
    small, large = (Walks(tmp_path, steps).tasks(Plan(seeds=1)) for steps in (60, 100_000))
    with pytest.raises(StoreError, match=r"could not be written: File too large\n2 finished runs are kept in .*runs"):
        runner.run([small[0], large[1], small[1]], store, jobs=1)
    assert store.has(small[0])
    assert not store.has(large[1])
    assert not list((tmp_path / "runs").rglob("*.part"))


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from toys import Walks
from tiebreak.studies.runner import run
from tiebreak.studies.store import Store
from tiebreak.studies.study import Plan
folder = Path(sys.argv[2])
run(Walks(folder, sleep=0.4).tasks(Plan(seeds=8)), Store(folder / "out" / "runs"), int(sys.argv[3]))
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_after_ctrl_c_the_next_call_goes_on(tmp_path, jobs):
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(tmp_path), jobs]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 60.0
        while not any("walk" in line for line in logged(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    store = Store(tmp_path / "out" / "runs")
    tasks = runner.with_needs(Walks(tmp_path, sleep=0.4).tasks(Plan(seeds=8)))
    kept = [task for task in tasks if store.has(task)]
    assert 8 <= len(kept) < len(tasks)
    report = runner.run(tasks[:10], store, jobs=1)
    assert len(report.found) + len(report.made) == 10
    assert len(report.found) == sum(store.has(task) for task in kept if task in tasks[:10])
