"""Passes over rows: their bits do not depend on threads, and limits on threads are respected."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from tiebreak import Huber, L2Ball, LeastSquares, Logistic, Problem, SquaredNorm, minimize
from tiebreak.engine import interpreted
from tiebreak.rows import LEAST_NUMBERS, over_blocks, processors, threads_allowed


def data(kind, n=9000, d=40):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    if kind == "csr":
        A = scipy.sparse.csr_array(np.where(rng.random(A.shape) < 0.9, A, 0.0))
    elif kind == "float32":
        A = A.astype(np.float32)
    assert A.size >= LEAST_NUMBERS
    return A, np.sign(rng.standard_normal(n)), rng.random(n)


@pytest.mark.parametrize("loss", [LeastSquares, Logistic, Huber])
@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_a_pass_has_the_same_bits_in_any_number_of_threads(loss, kind, monkeypatch):
    A, b, weights = data(kind)
    objective = loss(A, b, sample_weight=weights)
    x = np.random.default_rng(1).standard_normal(objective.dimension)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setenv("TIEBREAK_THREADS", str(threads))
        out = np.zeros_like(x)
        found.append((objective.pass_over(x, out), out.tolist()))
    assert found[0] == found[1] == found[2]
    value, gradient = objective.value_and_gradient(x, np.arange(objective.n_samples))  # one row after the other
    assert found[0][0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found[0][1], gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_sums_have_the_same_bits_in_any_number_of_threads(kind, monkeypatch):
    A, b, weights = data(kind, 20_000, 30)
    found = []
    for threads in (1, 3):
        monkeypatch.setenv("TIEBREAK_THREADS", str(threads))
        found.append(LeastSquares(A, b, sample_weight=weights).summed())
    assert (found[0].quadratic == found[1].quadratic).all()
    assert (found[0].linear == found[1].linear).all()
    full = A.toarray() if kind == "csr" else A
    shares = weights / weights.sum()
    np.testing.assert_allclose(found[0].quadratic, full.T @ (shares[:, None] * full), atol=1e-12)


@pytest.mark.parametrize("method", ["pb-apg", "sbcgf", "pavr", "cg-bio"])
def test_runs_have_the_same_bits_in_any_number_of_threads(method, monkeypatch):
    A, b, _ = data("float64")
    problem = Problem(SquaredNorm(), LeastSquares(A, b), L2Ball(1.0))
    found = []
    for threads in (1, 2):
        monkeypatch.setenv("TIEBREAK_THREADS", str(threads))
        found.append(minimize(problem, method, max_queries=100_000, progress=False).x.tolist())
    assert found[0] == found[1]


def test_interpreted_passes_are_those_of_compiled_code():
    A, b, weights = data("float64", 4200, 70)
    objective = Huber(A[:, :3], b, 0.5, sample_weight=weights)
    x, ways = np.array([0.3, -1.0, 2.0]), []
    for _ in range(2):
        out = np.zeros(3)
        ways.append((sum(objective.rows.passes(_count, width=3)), objective.pass_over(x, out), out))
        with interpreted():
            out = np.zeros(3)
            ways.append((sum(objective.rows.passes(_count, width=3)), objective.pass_over(x, out), out))
    for count, value, gradient in ways:
        assert count == 4200
        assert value == pytest.approx(ways[0][1], rel=1e-13)
        np.testing.assert_allclose(gradient, ways[0][2], rtol=1e-12)


def _count(rows, low, high):
    return high - low


def test_an_error_in_a_block_ends_the_pass(monkeypatch):
    monkeypatch.setenv("TIEBREAK_THREADS", "2")

    def run(low, high):
        if low == 8192:
            raise ZeroDivisionError("block")
        return high

    with pytest.raises(ZeroDivisionError, match="block"):
        list(over_blocks(100_000, LEAST_NUMBERS, run))
    assert sum(1 for _ in over_blocks(100_000, LEAST_NUMBERS, lambda low, high: high)) == 25


def test_limits_on_threads_are_respected(monkeypatch):
    monkeypatch.delenv("TIEBREAK_THREADS", raising=False)
    with threadpool_limits(1):
        assert threads_allowed() == 1
    monkeypatch.setenv("TIEBREAK_THREADS", "7")
    assert threads_allowed() == 7
    for wrong in ("0", "two", "-1"):
        monkeypatch.setenv("TIEBREAK_THREADS", wrong)
        with pytest.raises(ValueError, match="TIEBREAK_THREADS must be"):
            threads_allowed()


def test_workers_of_joblib_do_not_take_all_processors():
    code = "import numpy; from tiebreak.rows import threads_allowed; print(threads_allowed())"
    environment = {key: value for key, value in os.environ.items() if key != "TIEBREAK_THREADS"} | {"OMP_NUM_THREADS": "1"}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert processors() >= 1
