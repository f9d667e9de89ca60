"""Calls from compiled loops to Python: what is passed, what is raised, and that code with them is stored on disk."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest

from tiebreak import L2Ball, LeastSquares, Problem, SquaredNorm, Status, minimize
from tiebreak.engine import interpreted, kernel
from tiebreak.engine.callouts import _served, call_out, handle_for, take_failure


@kernel
def ask(handle, times, x, out):
    total = 0.0
    for k in range(times):
        total += call_out(handle[0], k, 2, 3, 4, x, out)
    return total


@pytest.mark.parametrize("kind", [np.float64, np.int64])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_loop_passes_numbers_and_arrays_and_sees_what_python_writes(kind, compiled):
    seen = []

    def answer(x, out, *numbers):
        seen.append(numbers)
        out += x
        return 0.5

    handle, x, out = handle_for(answer), np.arange(3, dtype=kind), np.zeros(3, dtype=kind)
    if compiled:
        total = ask(handle, 2, x, out)
    else:
        with interpreted():
            total = ask(handle, 2, x, out)
    assert total == 1.0
    assert seen == [(0, 2, 3, 4), (1, 2, 3, 4)]
    assert out.tolist() == [0, 2, 4]


def test_an_exception_is_kept_and_all_later_calls_are_told_nan():
    calls = []

    def answer(x, out, *numbers):
        calls.append(numbers)
        raise KeyError("gone")

    handle = handle_for(answer)
    assert math.isnan(ask(handle, 5, np.zeros(1), np.zeros(1)))
    assert len(calls) == 1
    assert isinstance(take_failure(), KeyError)
    assert take_failure() is None


def test_a_handle_that_nobody_holds_is_forgotten():
    handle = handle_for(lambda x, out, *numbers: 0.0)
    number = int(handle[0])
    assert number in _served
    del handle
    gc.collect()
    assert number not in _served


@pytest.mark.parametrize("method", ["pb-apg", "sbcgf", "pavr"])
def test_ctrl_c_in_a_pass_over_the_data_leaves_a_clean_state(method, monkeypatch, tmp_path):
    """The pass in which it falls is lost, and a checkpoint from before it continues to the same bits."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6000, 50))
    problem = Problem(SquaredNorm(), LeastSquares(A, A @ np.ones(50)), L2Ball(3.0))
    budget = {"max_queries": 240_000, "progress": False}
    whole = minimize(problem, method, **budget)
    plain, passes = LeastSquares.pass_over, []

    def interrupted(self, x, out):
        passes.append(1)
        if len(passes) == 7:
            raise KeyboardInterrupt
        return plain(self, x, out)

    monkeypatch.setattr(LeastSquares, "pass_over", interrupted)
    file = tmp_path / "run.npz"
    first = minimize(problem, method, checkpoint=file, **budget)
    assert first.status is Status.INTERRUPTED
    again = minimize(problem, method, checkpoint=file, **budget)
    assert again.x.tolist() == whole.x.tolist()
    assert again.queries == whole.queries
