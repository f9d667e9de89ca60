"""Frontiers that are stopped, killed and resumed."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tiebreak import CheckpointError, FiniteSum, Frontier, L1Ball, L2Ball, LeastSquares, Problem, frontier, minimize
from tiebreak.driver import checkpoint
from tiebreak.driver.frontier_store import FRONTIER

MODULE = importlib.import_module("tiebreak.driver.following")
RNG = np.random.default_rng(0)
A, a, B, b = RNG.standard_normal((5, 9)), RNG.standard_normal(5), RNG.standard_normal((12, 9)), RNG.standard_normal(12)
PROBLEM = Problem(LeastSquares(B, b), LeastSquares(A, a), L1Ball(1.5))
EPSILONS = [0.0, 1e-3, 1e-2, 0.1]


def distance(x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
    return 0.5 * float(x @ x), x


CASES = {
    "active set": (PROBLEM, {}),
    "another method": (PROBLEM._replace(domain=L2Ball(1.0)), {"max_queries": 60_000}),
    "a function": (PROBLEM._replace(upper=FiniteSum(1, 9, distance, convex=True)), {"max_queries": 6000}),
}


def same(first: Frontier, second: Frontier) -> None:
    assert first.status == second.status
    assert first.gain == second.gain
    assert first.table() == second.table()
    for one, other in zip(first.results, second.results, strict=True):
        assert one.x.tobytes() == other.x.tobytes()
        assert (one.queries, one.iterations, one.status) == (other.queries, other.iterations, other.status)
        assert one.certificate.floors == other.certificate.floors
        assert repr(one.method) == repr(other.method)
    for one, other in ((first.lower_alone, second.lower_alone), (first.upper_alone, second.upper_alone)):
        assert one.certificate.x.tobytes() == other.certificate.x.tobytes()
        assert one.least == other.least


def interrupt(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Press Ctrl-C at the second record of one of the runs."""
    made: list[int] = []

    def run(*args, **kwargs):
        records: list[int] = []

        def pressed(snapshot):
            records.append(1)
            if len(records) == 2:
                raise KeyboardInterrupt

        made.append(1)
        return minimize(*args, **kwargs, callback=pressed if len(made) == call else None)

    monkeypatch.setattr(MODULE, "minimize", run)


@pytest.mark.parametrize("call", [2, 3, 5])
@pytest.mark.parametrize("name", CASES)
def test_a_frontier_that_is_interrupted_continues_and_ends_with_the_same_bits(name, call, monkeypatch, tmp_path):
    problem, limits = CASES[name]
    whole = frontier(problem, EPSILONS, also=lambda x: float(x[0]), **limits)
    path = tmp_path / "frontier.npz"
    with monkeypatch.context() as patch:
        interrupt(patch, call)
        try:
            part = frontier(problem, EPSILONS, also=lambda x: float(x[0]), checkpoint=path, **limits)
        except KeyboardInterrupt:  # there was no point yet
            assert name != "active set"
        else:
            assert part.status.startswith("interrupted")
    done: list[float] = []

    def run(near, *args, **kwargs):
        done.append(near.tolerance)
        return minimize(near, *args, **kwargs)

    monkeypatch.setattr(MODULE, "minimize", run)
    same(frontier(problem, EPSILONS, also=lambda x: float(x[0]), checkpoint=path, **limits), whole)
    assert 0 < len(done) < len(EPSILONS) + 2 - (call - 2)
    assert list(tmp_path.iterdir()) == [path]
    done.clear()
    same(frontier(problem, EPSILONS, also=lambda x: float(x[0]), checkpoint=path, **limits), whole)  # is just read
    assert not done


SCRIPT = """
import sys
import numpy as np
from tiebreak import L2Ball, LeastSquares, Problem, frontier
rng = np.random.default_rng(0)
A, a, B, b = (rng.standard_normal(shape) for shape in ((40, 30), 40, (50, 30), 50))
problem = Problem(LeastSquares(B, b), LeastSquares(A, a), L2Ball(0.5))
front = frontier(problem, points=5, max_queries=30_000_000, checkpoint=sys.argv[1] if len(sys.argv) > 1 else None)
for result in front.results:
    print(result.x.tobytes().hex(), result.certificate.floors.upper.hex())
"""


def test_a_frontier_that_is_killed_continues_and_ends_with_the_same_bits(tmp_path):
    path = tmp_path / "frontier.npz"
    for seconds in (0.0, 1.0):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120.0
        while not path.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert path.exists()
    resumed, whole = (
        subprocess.run([sys.executable, "-c", SCRIPT, *more], capture_output=True, text=True, check=True).stdout
        for more in ([str(path)], [])
    )
    assert resumed == whole
    assert not [file for file in tmp_path.iterdir() if not file.name.endswith(".lock") and file != path]


def test_what_a_killed_process_left_of_a_run_that_is_done_is_removed(tmp_path):
    path = tmp_path / "frontier.npz"
    whole = frontier(PROBLEM, EPSILONS, checkpoint=path)
    left = Path(f"{path}.1")
    minimize(PROBLEM, "active-set", checkpoint=left)
    same(frontier(PROBLEM, EPSILONS, checkpoint=path), whole)
    assert not left.exists()


def test_a_checkpoint_of_another_frontier_or_file_is_refused_by_name(tmp_path):
    path = tmp_path / "frontier.npz"
    frontier(PROBLEM, EPSILONS, checkpoint=path)
    others = {
        "tolerances": lambda: frontier(PROBLEM, [0.0, 0.5], checkpoint=path),
        "problem": lambda: frontier(PROBLEM._replace(domain=L1Ball(1.0)), EPSILONS, checkpoint=path),
        "seed": lambda: frontier(PROBLEM, EPSILONS, seed=1, checkpoint=path),
        "tol": lambda: frontier(PROBLEM, EPSILONS, tol=(1e-3, 1e-3), checkpoint=path),
        "max_queries": lambda: frontier(PROBLEM, EPSILONS, max_queries=10**6, checkpoint=path),
        "x0": lambda: frontier(PROBLEM, EPSILONS, x0=np.full(9, 0.1), checkpoint=path),
    }
    for name, call in others.items():
        with pytest.raises(CheckpointError, match=f"of another run: its `{name}`"):
            call()
    run = tmp_path / "run.npz"
    minimize(PROBLEM, "active-set", checkpoint=run)
    with pytest.raises(CheckpointError, match="no checkpoint of a frontier but a checkpoint"):
        frontier(PROBLEM, EPSILONS, checkpoint=run)
    with pytest.raises(CheckpointError, match="but a checkpoint of a frontier"):
        minimize(PROBLEM, "active-set", checkpoint=path)
    with pytest.raises(ValueError, match="`checkpoint` must be a file in an existing folder"):
        frontier(PROBLEM, EPSILONS, checkpoint=tmp_path / "nowhere" / "f.npz")
    meta, arrays = checkpoint.load(path, FRONTIER)
    checkpoint.save(path, FRONTIER, {"identity": meta["identity"]}, arrays)
    with pytest.raises(CheckpointError, match="damaged"):
        frontier(PROBLEM, EPSILONS, checkpoint=path)


def test_two_at_a_time_do_not_share_a_checkpoint(tmp_path):
    path = tmp_path / "frontier.npz"
    with checkpoint.held(path, FRONTIER), pytest.raises(CheckpointError, match="in use"):
        frontier(PROBLEM, EPSILONS, checkpoint=path)
    assert os.listdir(tmp_path) == []
