"""Shared by all tests: small problems with many lower-level solutions, and how hypothesis runs."""

from __future__ import annotations

import os
import signal

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: threads of several workers would wait for each other

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, settings

import tiebreak
from tiebreak import FiniteSum, Huber, L1Ball, LeastSquares, Logistic, Problem, SquaredNorm
from tiebreak.engine.randomness import Moment, keys_of, uniform_indices

settings.register_profile("tiebreak", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("tiebreak")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background: tests of Ctrl-C could not press it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def linear_data(seed: int, n: int = 12, d: int = 18):
    """Fewer samples than features: the training loss has many minimisers."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    return A, A @ rng.laplace(size=d) * 0.2 + 0.1 * rng.standard_normal(n)


def as_kind(A, kind: str):
    return scipy.sparse.csr_array(A) if kind == "csr" else A


def callable_copy(objective, n: int, d: int) -> FiniteSum:
    """The same objective through a Python function."""
    return FiniteSum(n, d, lambda x, indices: objective.value_and_gradient(x, indices), convex=True)


def make_objective(name: str, kind: str = "dense", seed: int = 0, weighted: bool = True):
    A, b = linear_data(seed)
    weight = np.random.default_rng(seed).random(b.size) + 0.5 if weighted else None
    match name:
        case "least-squares":
            return LeastSquares(as_kind(A, kind), b, sample_weight=weight)
        case "logistic":
            return Logistic(as_kind(A, kind), np.sign(b), sample_weight=weight)
        case "huber":
            return Huber(as_kind(A, kind), b, delta=0.3, sample_weight=weight)
        case "squared-norm":
            return SquaredNorm(np.random.default_rng(seed).standard_normal(A.shape[1]))
    raise KeyError(name)


@pytest.fixture
def problem() -> Problem:
    """Validation loss over the minimisers of the training loss."""
    return Problem(make_objective("least-squares", seed=1), make_objective("least-squares", seed=2), L1Ball(6.0))


@pytest.fixture
def callable_problem(problem) -> Problem:
    """The same problem through Python functions."""
    upper, lower = (callable_copy(part, part.n_samples, part.dimension) for part in (problem.upper, problem.lower))
    return Problem(upper, lower, problem.domain)


QUICK = tiebreak.SBCGF(step=1e-2, slack=1e-6)


class Draws:
    """The samples of each iteration, for reference implementations: those that a run with this seed draws."""

    def __init__(self, problem, seed):
        self.levels, self.keys, self.drawn = problem[:2], keys_of([seed]), {}

    def indices(self, objective, t, size):
        """The next indices that iteration t draws of an objective."""
        level = next(i for i, other in enumerate(self.levels) if other is objective)
        turn = self.drawn[level, t] = self.drawn.get((level, t), -1) + 1
        return uniform_indices(Moment(self.keys[level], t, turn, 0), objective.n_samples, np.empty(size, dtype=np.int64))
