"""Runs that are stopped, killed and resumed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import QUICK, callable_copy

import tiebreak
from tiebreak import SBCGF, SBCGI, CheckpointError, L1Ball, Status, minimize
from tiebreak.driver import checkpoint, storing
from tiebreak.proofs import unpacked

METHODS = pytest.mark.parametrize("method", [SBCGI(step=1e-2, slack=1e-3, preset="paper"), QUICK], ids=lambda m: m.name)


def same(a: tiebreak.Result, b: tiebreak.Result) -> None:
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.queries, a.evaluations, a.iterations, a.empty_cuts) == (b.queries, b.evaluations, b.iterations, b.empty_cuts)
    assert (a.upper, a.lower) == (b.upper, b.lower)
    for column in set(tiebreak.Record._fields) - {"seconds"}:
        assert getattr(a.history, column).tobytes() == getattr(b.history, column).tobytes()


@METHODS
@pytest.mark.parametrize("stop", [2, 15, 40])
def test_a_stopped_run_ends_where_the_uninterrupted_one_does(problem, tmp_path, method, stop):
    whole = minimize(problem, method, max_queries=30_000, seed=1)
    records = []

    def count(snapshot):
        records.append(snapshot)
        return len(records) == stop

    path = tmp_path / "run.npz"
    first = minimize(problem, method, max_queries=30_000, seed=1, callback=count, checkpoint=path)
    assert first.status is Status.CALLBACK
    same(minimize(problem, method, max_queries=30_000, seed=1, checkpoint=path), whole)
    again = minimize(problem, method, max_queries=30_000, seed=1, checkpoint=path)  # a finished run is just read
    same(again, whole)
    assert again.status is Status.QUERIES


def test_a_run_that_is_read_proves_what_the_stored_one_did(problem, tmp_path):
    arguments = {"max_queries": 30_000, "checkpoint": tmp_path / "run.npz"}
    whole = minimize(problem, QUICK, max_queries=30_000)
    minimize(problem, QUICK, **arguments)
    read = minimize(problem, QUICK, **arguments)
    expected, found = whole.certificate, read.certificate
    assert len(found.cuts) == len(expected.cuts) > 0
    for name in tiebreak.Certificate._fields:
        assert_same_bits(getattr(found, name), getattr(expected, name))
    for name in tiebreak.Certificate._fields:
        again, first = (getattr(tiebreak.certify(problem, result, bundle=4), name) for result in (read, whole))
        assert_same_bits(again, first)


def test_a_stored_certificate_is_read_by_the_names_of_its_fields(problem, tmp_path):
    path = tmp_path / "run.npz"
    result = minimize(problem, QUICK, max_queries=3000, checkpoint=path)
    meta, arrays = checkpoint.load(path, checkpoint.CHECKPOINT)
    assert meta["proofs"]["floors"].keys() == meta["certificate"]["floors"].keys() == set(tiebreak.Floors._fields)
    shuffled = dict(reversed(meta["certificate"].items()))
    assert unpacked(shuffled, arrays).floors == unpacked(meta["certificate"], arrays).floors
    normals = arrays["certificate.normals"]
    assert normals.shape[1] == result.x.size and len(normals) > 0


def assert_same_bits(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_same_bits(*pair)
    else:
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_a_run_of_python_functions_resumes_too(callable_problem, tmp_path):
    whole = minimize(callable_problem, QUICK, max_queries=3000)
    seen, arguments = [], {"max_queries": 3000, "checkpoint": tmp_path / "run.npz"}
    stopped = minimize(callable_problem, QUICK, callback=lambda s: seen.append(s) or len(seen) == 10, **arguments)
    assert stopped.status is Status.CALLBACK
    same(minimize(callable_problem, QUICK, **arguments), whole)


def test_ctrl_c_saves_a_compiled_run(problem, tmp_path):
    path = tmp_path / "run.npz"
    minimize(problem, QUICK, max_queries=2000)  # nothing is left to compile
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])

    def begin(snapshot):
        if snapshot.phase == 1 and timer.ident is None:
            timer.start()

    stopped = minimize(problem, QUICK, max_queries=10**9, checkpoint=path, callback=begin)
    timer.join()
    assert stopped.status is Status.INTERRUPTED
    seen = []
    resumed = minimize(problem, QUICK, max_queries=10**9, checkpoint=path, callback=lambda s: seen.append(s) or True)
    assert resumed.queries.total >= stopped.queries.total


def test_a_run_that_reached_its_tolerance_stays_there(problem, tmp_path):
    arguments = {"tol": (5.0, 0.05), "checkpoint": tmp_path / "run.npz"}
    first, second = (minimize(problem, QUICK, **arguments) for _ in range(2))
    assert first.status is second.status is Status.CERTIFIED
    same(first, second)


def test_other_python_functions_make_another_problem(problem, callable_problem, tmp_path):
    path = tmp_path / "run.npz"
    minimize(callable_problem, QUICK, max_queries=2000, checkpoint=path)
    other = callable_copy(problem.upper, 12, 18)  # the same code on other data
    with pytest.raises(CheckpointError, match="`problem`"):
        minimize(callable_problem._replace(lower=other), QUICK, max_queries=2000, checkpoint=path)


def test_time_that_was_spent_before_counts(problem, tmp_path):
    minimize(problem, QUICK, max_queries=2000)  # nothing is left to compile
    first = minimize(problem, QUICK, time_limit=1.0, checkpoint=tmp_path / "run.npz")
    second = minimize(problem, QUICK, time_limit=2.0, checkpoint=tmp_path / "run.npz")
    assert second.queries.total > first.queries.total
    assert second.seconds > first.seconds
    assert second.wall_seconds > first.wall_seconds
    assert second.history.seconds[-1] >= first.seconds


PROGRAM = """
import sys, numpy as np
sys.path.insert(0, {tests!r})
import tiebreak, tiebreak.driver.run
import conftest
tiebreak.driver.run.CHECKPOINT_SECONDS = 0.0
problem = tiebreak.Problem(
    conftest.make_objective("least-squares", seed=1), conftest.make_objective("least-squares", seed=2), tiebreak.L1Ball(6.0)
)
print("ready", flush=True)
method = tiebreak.SBCGI(step=1e-2, slack=1e-3)
result = tiebreak.minimize(problem, method, max_queries=30_000_000, seed=1, checkpoint={path!r})
np.save({out!r}, result.x)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 on this system")
def test_a_killed_run_resumes_bit_for_bit(problem, tmp_path):
    path, out = tmp_path / "run.npz", tmp_path / "x.npy"
    program = PROGRAM.format(tests=str(Path(__file__).parents[1]), path=str(path), out=str(out))
    rng = random.Random(0)
    kills = 0
    for attempt in range(60):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + (rng.uniform(0.2, 1.5) if attempt < 5 else 600.0)
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
        process.stdout.close()
        if out.exists():
            break
    assert kills >= 2
    whole = minimize(problem, SBCGI(step=1e-2, slack=1e-3), max_queries=30_000_000, seed=1)
    assert np.load(out).tobytes() == whole.x.tobytes()
    assert {p.name for p in tmp_path.iterdir()} <= {"run.npz", "run.npz.part", "x.npy"}


def test_a_checkpoint_of_another_run_is_refused_and_the_difference_named(problem, tmp_path):
    path = tmp_path / "run.npz"
    minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    content = path.read_bytes()
    others = {
        "problem": lambda: minimize(problem._replace(domain=L1Ball(2.0)), QUICK, max_queries=2000, checkpoint=path),
        "method": lambda: minimize(problem, "sbcgi", max_queries=2000, checkpoint=path),
        "parameters": lambda: minimize(problem, SBCGF(step=2e-2, slack=1e-6), max_queries=2000, checkpoint=path),
        "seed": lambda: minimize(problem, QUICK, max_queries=2000, seed=1, checkpoint=path),
        "x0": lambda: minimize(problem, QUICK, max_queries=2000, x0=np.zeros(18), checkpoint=path),
        "tol": lambda: minimize(problem, QUICK, max_queries=2000, tol=(1e-9, 1e-9), checkpoint=path),
    }
    for name, run in others.items():
        with pytest.raises(CheckpointError, match=f"is of another run: its `{name}` is .*, this one's is"):
            run()
    assert path.read_bytes() == content


def test_schedules_are_told_apart_by_their_values_not_their_code(problem, tmp_path):
    path = tmp_path / "run.npz"
    minimize(problem, SBCGF(step=lambda t: 0.1 / (t + 2), slack=0.0), max_queries=2000, checkpoint=path)
    minimize(problem, SBCGF(step=lambda t: 0.1 / (t + 2), slack=0.0), max_queries=2000, checkpoint=path)
    with pytest.raises(CheckpointError, match="`parameters`"):
        minimize(problem, SBCGF(step=lambda t: 0.2 / (t + 2), slack=0.0), max_queries=2000, checkpoint=path)


@pytest.mark.parametrize("size", [0, 10, 500, -1])
def test_a_truncated_checkpoint_is_refused(problem, tmp_path, size):
    path = tmp_path / "run.npz"
    minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CheckpointError, match="is no checkpoint, or a damaged one .*; give another path as `checkpoint`"):
        minimize(problem, QUICK, max_queries=2000, checkpoint=path)


def test_a_checkpoint_that_lacks_an_array_is_damaged(problem, tmp_path):
    path = tmp_path / "run.npz"
    minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "counts"}
    np.savez(path, **arrays)
    with pytest.raises(CheckpointError, match="is damaged .*counts"):
        minimize(problem, QUICK, max_queries=2000, checkpoint=path)


def write_pickle(path):
    np.savez(path, meta=np.array([{"a": 1}], dtype=object))


def write_other_meta(path):
    np.savez(path, meta=np.frombuffer(b'{"format": 5}', dtype=np.uint8))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: np.savez(path, A=np.eye(3)),
        lambda path: path.write_text("my notes"),
        write_pickle,
        write_other_meta,
    ],
    ids=["arrays", "text", "pickle", "meta"],
)
def test_a_file_that_is_no_checkpoint_is_left_alone(problem, tmp_path, write):
    path = tmp_path / "mine.npz"
    write(path)
    content = path.read_bytes()
    with pytest.raises(CheckpointError, match="mine.npz is no checkpoint, .*; give another path") as caught:
        minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    assert "delete" not in str(caught.value)
    assert path.read_bytes() == content


def test_a_checkpoint_of_another_format_is_refused(problem, tmp_path):
    path = tmp_path / "run.npz"
    old = checkpoint.CHECKPOINT._replace(format=1)
    checkpoint.save(path, old, {}, {})
    with pytest.raises(CheckpointError, match="has format 1, not 5: another version of tiebreak wrote it; give"):
        minimize(problem, QUICK, max_queries=2000, checkpoint=path)


def never(*args):
    raise AssertionError("something was computed")


@pytest.mark.parametrize("name", ["/proc/run.npz", "x" * 250])  # a folder that takes no files, a name with no room for more
def test_a_checkpoint_that_cannot_be_written_fails_before_anything_is_computed(problem, tmp_path, monkeypatch, name):
    monkeypatch.setattr(storing, "digest", never)
    monkeypatch.setattr(SBCGF, "for_problem", never)
    with pytest.raises(ValueError, match="`checkpoint` must be a file that can be written, and .* cannot .*; give another"):
        minimize(problem, QUICK, max_queries=2000, checkpoint=tmp_path / name)


def test_a_checkpoint_that_cannot_be_replaced_fails_before_anything_is_computed(problem, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    content = path.read_bytes()

    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(SBCGF, "for_problem", never)
    with pytest.raises(ValueError, match="and .*run.npz cannot .*Operation not permitted.*; give another path"):
        minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@METHODS
def test_a_finished_run_goes_on_with_a_larger_budget(problem, tmp_path, method):
    arguments = {"x0": np.zeros(18), "seed": 1, "checkpoint": tmp_path / "run.npz"}
    minimize(problem, method, max_queries=2000, **arguments)
    with pytest.raises(CheckpointError, match="run with max_iterations=None, and a run can be given more, not less"):
        minimize(problem, method, max_queries=9000, max_iterations=10**6, **arguments)
    minimize(problem, method, max_queries=9000, **arguments)
    extended = minimize(problem, method, max_queries=30_000, **arguments)
    same(extended, minimize(problem, method, max_queries=30_000, x0=np.zeros(18), seed=1))
    with pytest.raises(
        CheckpointError, match="max_queries=30000, and a run can be given more, not less: got max_queries=2000;"
    ):
        minimize(problem, method, max_queries=2000, **arguments)


def test_a_run_that_sought_a_first_point_goes_on_from_it(problem, tmp_path):
    path = tmp_path / "run.npz"
    first = minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    extended = minimize(problem, QUICK, max_queries=20_000, checkpoint=path)
    assert 19_000 < extended.queries.total <= 20_000
    before = first.history.queries < 0.1 * 2000
    assert extended.history.lower[: before.sum()].tolist() == first.history.lower[before].tolist()


def test_a_run_with_a_horizon_says_what_is_planned_for_its_budget(problem, tmp_path):
    path, method = tmp_path / "run.npz", SBCGF(preset="auto")
    minimize(problem, method, max_queries=2000, checkpoint=path)
    content = path.read_bytes()
    planned = "which cannot be extended to max_queries=3000: 'sbcgf' plans for the whole budget: `step`; give that budget"
    with pytest.raises(CheckpointError, match=f"is of a run with max_queries=2000, {planned}"):
        minimize(problem, method, max_queries=3000, checkpoint=path)
    with pytest.raises(CheckpointError, match="is of another run: its `parameters` is"):  # not the budget's doing alone
        minimize(problem, SBCGF(step=0.3), max_queries=3000, checkpoint=path)
    assert path.read_bytes() == content


def test_a_larger_budget_for_which_another_method_is_chosen_is_refused(problem, tmp_path):
    path, samples = tmp_path / "run.npz", problem.upper.n_samples + problem.lower.n_samples
    assert minimize(problem, max_queries=5 * samples, checkpoint=path).method.name == "pb-apg"
    with pytest.raises(CheckpointError, match="is chosen for the budget: 'pb-apg' for that one, 'active-set' for this one;"):
        minimize(problem, max_queries=20_000, checkpoint=path)


def test_the_half_spaces_of_the_last_record_are_kept(problem, tmp_path):
    arguments = {"tol": (5.0, 0.05), "checkpoint": tmp_path / "run.npz"}
    first, second = (minimize(problem, QUICK, **arguments).certificate for _ in range(2))
    assert len(first.cuts) == len(second.cuts) > 0
    for one, other in zip(first.cuts, second.cuts, strict=True):
        assert (one.normal.tobytes(), one.offset) == (other.normal.tobytes(), other.offset)
    assert first.multipliers.tobytes() == second.multipliers.tobytes()
    assert first.floors == second.floors


def test_an_interrupted_write_leaves_the_old_checkpoint(problem, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    minimize(problem, QUICK, max_queries=2000, checkpoint=path)
    content = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(RuntimeWarning, match="could not be written: .*No space left"):
        assert minimize(problem, QUICK, max_queries=2000, checkpoint=path).success
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]
