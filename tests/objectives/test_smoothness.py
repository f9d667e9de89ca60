"""Smoothness constants against eigenvalues of whole matrices, and what they cost a run."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.sparse

from tiebreak import BiFISTA, L1Ball, L2Ball, LeastSquares, Problem, minimize
from tiebreak.engine import interpreted
from tiebreak.objectives import constants, smoothness
from tiebreak.objectives.matrices import NO_TARGETS, Rows, as_matrix
from tiebreak.objectives.smoothness import lanczos_bound, largest_curvature


@pytest.mark.parametrize("shape", [(4, 5), (5, 4)])
def test_huge_data_have_a_smoothness_constant(shape):
    rng = np.random.default_rng(0)
    A = rng.standard_normal(shape)
    assert LeastSquares(1e139 * A, np.ones(len(A))).lipschitz == pytest.approx(
        1e278 * LeastSquares(A, np.ones(len(A))).lipschitz
    )
    tiny = LeastSquares(1e-139 * A, np.ones(len(A)), sample_weight=np.arange(1.0, len(A) + 1.0))
    assert largest_curvature(tiny.rows._replace(weights=1e200 * tiny.weights))[0] > 0.0


def large(kind="float64", seed=0, spread=0.0):
    """Data that are too large for a Gram matrix, with columns of lengths that fall or not."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((900, 700)) * np.arange(1.0, 701.0) ** -spread
    if kind == "csr":
        return scipy.sparse.csr_array(np.where(rng.random(A.shape) < 0.2, A, 0.0))
    return A.astype(kind)


def rows_of(A, weights):
    return Rows(as_matrix(A, "A"), NO_TARGETS, weights)


def curvature_by_hand(A, weights):
    full = np.asarray(A.toarray() if scipy.sparse.issparse(A) else A, dtype=np.float64)
    return np.linalg.eigvalsh(full.T @ (weights[:, None] * full))[-1]


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_ten_passes_bound_the_largest_curvature_of_large_data(kind, spread):
    A, weights = large(kind, spread=spread), np.random.default_rng(1).random(900)
    found, passes = largest_curvature(rows_of(A, weights))
    truth = curvature_by_hand(A, weights)
    assert passes <= 10
    assert truth * (1.0 - 1e-9) <= found <= 1.25 * truth


def test_a_bound_of_the_curvature_holds_for_other_spectra_and_does_not_exceed_the_trace():
    rng = np.random.default_rng(0)
    for eigenvalues in (
        np.ones(50),
        np.r_[np.ones(49), 1.001],
        np.linspace(0, 1, 50),
        rng.random(50) ** 8,
        np.r_[1.0, np.zeros(49)],
    ):
        found, steps = lanczos_bound(lambda x, h=eigenvalues: h * x, 50, eigenvalues.sum())
        assert steps <= 9
        assert eigenvalues.max() * (1.0 - 1e-12) <= found <= min(1.3 * eigenvalues.max(), eigenvalues.sum() * (1.0 + 1e-12))


def test_a_curvature_is_exact_where_few_directions_occur():
    A = np.zeros((900, 700))
    A[:, :3] = np.random.default_rng(0).standard_normal((900, 3))
    found, passes = largest_curvature(rows_of(A, np.ones(900)))
    assert passes <= 5
    assert found == pytest.approx(curvature_by_hand(A, np.ones(900)), rel=1e-10)


@pytest.mark.parametrize("size", [1e-139, 1e139])
def test_products_of_squares_of_large_data_may_overflow_or_vanish(size):
    plain, scaled = (LeastSquares(factor * large(), np.zeros(900)).lipschitz for factor in (1.0, size))
    assert scaled == pytest.approx(plain * size * size, rel=1e-6)


def test_a_curvature_does_not_depend_on_the_threads(monkeypatch):
    rows = rows_of(np.random.default_rng(0).standard_normal((10_000, 500)), np.ones(10_000))
    monkeypatch.setenv("TIEBREAK_THREADS", "2")
    found = largest_curvature(rows)
    monkeypatch.setenv("TIEBREAK_THREADS", "1")
    assert largest_curvature(rows) == found


def test_an_objective_finds_its_curvature_once_and_again_when_its_data_have_changed(monkeypatch):
    made, find = [], smoothness.largest_curvature
    monkeypatch.setattr(smoothness, "largest_curvature", lambda *given: made.append(given) or find(*given))
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((30, 6)), rng.standard_normal(30)) for _ in range(2))
    with interpreted():
        for _ in range(2):
            minimize(Problem(upper, lower, L2Ball(1.0)), "pb-apg", max_iterations=3)
    assert len(made) == 2
    before = lower.lipschitz
    lower.matrix.array[:] *= 2.0
    assert lower.lipschitz == pytest.approx(4.0 * before)


def test_what_is_remembered_of_data_is_forgotten_with_them():
    objective = LeastSquares(np.random.default_rng(0).standard_normal((30, 6)), np.zeros(30))
    objective.lipschitz, objective.hessian()
    gc.collect()  # what earlier tests have left
    known = len(constants._known)
    del objective
    gc.collect()
    assert len(constants._known) == known - 2


@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_second_derivatives_take_one_pass_and_are_those_of_the_loss(kind):
    A, weights = large(kind)[:, :40], np.random.default_rng(1).random(900)
    objective = LeastSquares(A, np.zeros(900), sample_weight=weights)
    full = np.asarray(A.toarray() if kind == "csr" else A, dtype=np.float64)
    expected = full.T @ ((weights / weights.sum())[:, None] * full)
    np.testing.assert_allclose(objective.hessian(), expected, rtol=1e-10, atol=1e-12)
    assert objective.strong_convexity == pytest.approx(np.linalg.eigvalsh(expected)[0], rel=1e-8)
    assert objective.hessian() is not objective.hessian()  # a caller may change what it gets


def test_a_bound_that_is_found_in_a_hurry_is_larger_and_known_to_one_run_alone():
    objective = LeastSquares(large(spread=0.5), np.zeros(900))
    with constants.charging(lambda: True) as bill:
        hurried = [objective.lipschitz for _ in range(2)]
        (_, evaluations, _, _), *others = bill.settle()
    assert evaluations == 3 * 900
    assert not others
    truth = curvature_by_hand(objective.matrix.array, np.full(900, 1 / 900))
    assert hurried[0] == hurried[1] >= truth
    assert truth * (1.0 - 1e-9) <= objective.lipschitz < hurried[0]


def test_smoothness_constants_are_charged_to_the_run_that_needs_them():
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((n, 6)), rng.standard_normal(n)) for n in (30, 40))
    problem = Problem(upper, lower, L1Ball(1.0))
    with interpreted():
        known = minimize(problem, BiFISTA(step=0.1, regularization=0.1), max_iterations=3)
        found = [minimize(problem, "bi-fista", max_iterations=3) for _ in range(2)]
    assert known.evaluations == (90, 120)
    assert [each.evaluations for each in found] == [(90 + 30, 120 + 40)] * 2
    assert [each.queries for each in found] == [known.queries] * 2
