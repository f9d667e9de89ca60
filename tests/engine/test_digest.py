"""What tells problems apart: data, the code of functions, and what they hold; not what a call changes."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tiebreak import CheckpointError, FiniteSum, L1Ball, Problem, SquaredNorm, Stream, minimize
from tiebreak.engine.digest import digest
from tiebreak.engine.locks import Lock, Locked

FACTOR = 2.0


def made(code, **names):
    """Return a function of a name and a piece of code, as if it were written in a file."""
    space = dict(names)
    exec(code, space)
    return space["loss"]


def closed(held):
    def loss(x, indices):
        return held

    return loss


def with_default(value):
    def loss(x, indices, scale=value):
        return scale

    return loss


def with_keyword(value):
    def loss(x, indices, *, scale=value):
        return scale

    return loss


def nested(value):
    inner = closed(value)

    def loss(x, indices):
        return inner(x, indices)

    return loss


class Model:
    def __init__(self, scale):
        self.scale = scale

    def loss(self, x, indices):
        return self.scale

    __call__ = loss


def helped(constant):
    return made(f"def helper():\n    return {constant}\n\ndef loss(x, indices):\n    return helper()\n", __name__="user")


@pytest.mark.parametrize(
    "make",
    [
        closed,
        with_default,
        with_keyword,
        nested,
        helped,
        Model,
        lambda value: Model(value).loss,
        lambda value: functools.partial(with_default(0.0), scale=value),
        lambda value: made(f"def loss(x, indices):\n    return {value} * x\n"),
        lambda value: made(f"def loss(x, indices):\n    return [{value} * each for each in x]\n"),
        lambda value: made("def loss(x, indices):\n    return SCALE * x\n", SCALE=value),
        lambda value: closed(np.array([value])),
        lambda value: closed([np.array([value]), {"scale": value}]),
        lambda value: made(f"def loss(x, indices):\n    return x {'+' if value > 1 else '-'} 1\n"),
    ],
)
def test_functions_that_differ_have_different_digests_and_equal_ones_the_same(make):
    first, again, other = (digest(FiniteSum(2, 3, make(value))) for value in (1.0, 1.0, 2.0))
    assert first == again
    assert first != other


def test_the_digest_is_the_same_in_another_process():
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_digest import *\n"
        "held = [np.arange(3), {'a': 1.0}, {'b', 'c'}, np.random.default_rng(0), object()]\n"
        "print(digest(FiniteSum(2, 3, nested(held))), digest(Model(held).loss))"
    )
    found = {subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(found) == 1


def problem_of(value_and_grad):
    return Problem(SquaredNorm(), FiniteSum(2, 3, value_and_grad, convex=True, floor=0.0), L1Ball(1.0))


def quadratic(factor):
    def loss(x, indices):
        return 0.5 * factor * float(x @ x), factor * x

    return loss


RUN = {"max_iterations": 5, "x0": np.zeros(3)}


def test_a_checkpoint_of_a_function_with_another_closure_is_refused_though_it_agrees_at_the_first_point(tmp_path):
    path = tmp_path / "run.npz"
    minimize(problem_of(quadratic(1.0)), "cg-bio", checkpoint=path, **RUN)
    minimize(problem_of(quadratic(1.0)), "cg-bio", checkpoint=path, **RUN)
    with pytest.raises(CheckpointError, match="its `problem` is"):
        minimize(problem_of(quadratic(2.0)), "cg-bio", checkpoint=path, **RUN)


def test_a_checkpoint_of_a_stream_with_another_function_is_refused(tmp_path):
    def sampled(factor):
        loss = quadratic(factor)
        return Stream(lambda rng, size: rng.random(size), lambda x, batch: loss(x, batch), 3, convex=True)

    path = tmp_path / "run.npz"
    arguments = {"max_iterations": 5, "x0": np.zeros(3), "checkpoint": path}
    minimize(Problem(SquaredNorm(), sampled(1.0), L1Ball(1.0)), "ir-scg", **arguments)
    minimize(Problem(SquaredNorm(), sampled(1.0), L1Ball(1.0)), "ir-scg", **arguments)
    with pytest.raises(CheckpointError, match="its `problem` is"):
        minimize(Problem(SquaredNorm(), sampled(2.0), L1Ball(1.0)), "ir-scg", **arguments)


def test_what_a_call_changes_does_not_make_another_problem(tmp_path):
    calls, log, room = 0, [], np.empty(3)

    def loss(x, indices):
        nonlocal calls
        calls += 1
        log.append(calls)
        np.multiply(x, 1.0, out=room)
        return 0.5 * float(x @ x), room

    path = tmp_path / "run.npz"
    first = minimize(problem_of(loss), "cg-bio", checkpoint=path, **RUN)
    assert minimize(problem_of(loss), "cg-bio", checkpoint=path, **RUN).x.tobytes() == first.x.tobytes()


def test_another_first_point_is_named_as_such_for_python_functions_too(tmp_path):
    path = tmp_path / "run.npz"
    problem = problem_of(quadratic(1.0))
    minimize(problem, "cg-bio", checkpoint=path, **RUN)
    with pytest.raises(CheckpointError, match="its `x0` is"):
        minimize(problem, "cg-bio", max_iterations=5, x0=np.full(3, 0.1), checkpoint=path)


def test_two_runs_at_once_on_one_checkpoint_are_refused_and_the_first_goes_on(tmp_path):
    path, met = tmp_path / "run.npz", []
    problem = problem_of(quadratic(1.0))

    def another(snapshot):
        if not met:
            with pytest.raises(CheckpointError, match="is in use by another run: wait for its end, or use another path"):
                minimize(problem, "cg-bio", checkpoint=path, **RUN)
            met.append(snapshot)

    assert minimize(problem, "cg-bio", checkpoint=path, callback=another, **RUN).success
    assert met
    assert list(tmp_path.iterdir()) == [path]  # no lock is left
    assert minimize(problem, "cg-bio", checkpoint=path, **RUN).success


HOLD = """
import pathlib, time
from tiebreak.engine.locks import Lock
lock = Lock(pathlib.Path({!r}))
print("locked", flush=True)
time.sleep(600)
"""


def test_a_lock_of_another_process_names_it_and_one_of_a_killed_process_is_none(tmp_path):
    path = tmp_path / "run.npz"
    process = subprocess.Popen([sys.executable, "-c", HOLD.format(str(path))], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(Locked) as raised:
            Lock(path)
        assert raised.value.holder == process.pid
        with pytest.raises(CheckpointError, match=f"is in use by process {process.pid}"):
            minimize(problem_of(quadratic(1.0)), "cg-bio", checkpoint=path, **RUN)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert (tmp_path / "run.npz.lock").exists()
    assert minimize(problem_of(quadratic(1.0)), "cg-bio", checkpoint=path, **RUN).success
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_that_fails_lets_its_lock_go(tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(CheckpointError):
        minimize(problem_of(quadratic(1.0)), "cg-bio", checkpoint=path, **RUN)
    assert list(tmp_path.iterdir()) == [path]


def test_a_stale_lock_is_recognised_without_locks_of_the_system(tmp_path, monkeypatch):
    monkeypatch.setattr("tiebreak.engine.locks.fcntl", None)
    path = tmp_path / "run.npz"
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True).stdout
    (tmp_path / "run.npz.lock").write_bytes(ended)
    lock = Lock(path)
    with pytest.raises(Locked):
        Lock(path)
    lock.release()
    assert not list(tmp_path.iterdir())
