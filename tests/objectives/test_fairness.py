"""The squared covariance against plain NumPy, finite differences, and its own expectation."""

from __future__ import annotations

import numpy as np
import pytest
from checking import check_accumulate, check_same_draw, check_unbiased
from conftest import as_kind, linear_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit

from tiebreak import SBCGF, L1Ball, Logistic, Problem, SquaredCovariance, minimize
from tiebreak.objectives import accumulate

KINDS = ["dense", "csr"]


def make(kind="dense"):
    A, b = linear_data(0)
    return SquaredCovariance(as_kind(A, kind), (b > 0.0).astype(float)), A, (b > 0.0) - np.mean(b > 0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("indices", [None, [3, 0, 3, 7, 11]])
def test_the_value_is_the_formula_and_the_gradient_its_derivative(kind, indices):
    objective, A, c = make(kind)
    rows = slice(None) if indices is None else indices

    def reference(x):
        return np.mean(c[rows] * expit(A[rows] @ x)) ** 2

    x = np.random.default_rng(1).standard_normal(18)
    value, gradient = objective.value_and_gradient(x, indices)
    assert value == pytest.approx(reference(x), rel=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(x, reference, 1e-7), atol=1e-7)


def test_on_all_rows_it_is_the_covariance_with_the_attribute():
    objective, A, c = make()
    x = np.random.default_rng(1).standard_normal(18)
    assert objective.value(x) == pytest.approx(np.cov(c, expit(A @ x), bias=True)[0, 1] ** 2, rel=1e-12)


@pytest.mark.parametrize(("i", "j"), [(2, 5), (5, 2), (4, 4), (0, 11), (11, 0)])
def test_a_pair_of_rows_is_their_product(i, j):
    objective, A, c = make()

    def reference(x):
        return c[i] * expit(A[i] @ x) * c[j] * expit(A[j] @ x)

    x, gradient = np.random.default_rng(2).standard_normal(18), np.zeros(18)
    value, _ = accumulate(objective, np.array([i + 12 * (j + 1)]), x, 1.0, x, 0.0, gradient)
    assert value == pytest.approx(reference(x), rel=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(x, reference, 1e-7), atol=1e-7)


def test_pairs_are_drawn_uniformly_and_independently():
    objective, _, _ = make()
    batch = check_same_draw(objective, 144 * 400)
    assert batch.min() >= 12
    counts = np.bincount(batch - 12, minlength=144)
    assert counts.size == 144
    assert np.abs(counts - 400).max() < 5 * np.sqrt(400)


@pytest.mark.parametrize("size", [1, 3])
def test_samples_are_unbiased_where_the_square_of_a_batch_mean_is_not(size):
    objective, _, _ = make()
    check_unbiased(objective, 18, size)
    x = np.random.default_rng(0).standard_normal(18)
    squares = np.mean([objective.value(x, [i]) for i in range(12)])
    assert squares > 2.0 * objective.value(x)


@pytest.mark.parametrize("kind", KINDS)
def test_both_points_are_added_compiled_and_interpreted(kind):
    check_accumulate(make(kind)[0], 18)


@given(st.floats(-1e6, 1e6))
def test_large_scores_neither_overflow_nor_lose_their_slope(score):
    objective = SquaredCovariance([[1.0], [0.0]], [1.0, 0.0])  # u = σ(x) / 2 and −1/4
    value, gradient = objective.value_and_gradient([score])
    h = 0.25 * expit(score) - 0.125
    assert value == pytest.approx(h**2, rel=1e-12, abs=1e-16 * (abs(h) + 1e-16))  # h is a difference
    assert gradient[0] == pytest.approx(0.5 * h * expit(score) * expit(-score), rel=1e-9, abs=1e-17)


@given(st.integers(0, 10_000))
def test_the_smoothness_constant_bounds_the_curvature(seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 6), rng.integers(1, 4)
    objective = SquaredCovariance(rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 4.0]), rng.permutation(n))
    x, y = rng.standard_normal((2, d))
    change = objective.value_and_gradient(x)[1] - objective.value_and_gradient(y)[1]
    assert np.linalg.norm(change) <= objective.lipschitz * np.linalg.norm(x - y) * (1.0 + 1e-12)


def test_the_smoothness_constant_is_the_same_for_sparse_data():
    assert make("csr")[0].lipschitz == pytest.approx(make()[0].lipschitz, rel=1e-13)


def test_the_fairest_of_the_accurate_classifiers_is_found_compiled():
    A, b = linear_data(2)
    objective, _, _ = make()
    problem = Problem(objective, Logistic(A, np.sign(b)), L1Ball(6.0))
    assert problem.compiled
    x0 = np.zeros(18)
    x0[0] = 6.0
    result = minimize(problem, SBCGF(step=1e-2, slack=1e-3), max_queries=4000, x0=x0)
    assert result.upper < 0.1 * objective.value(x0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SquaredCovariance(np.ones((3, 2)), [0, 1]),
            "`sensitive` must have one entry for each of the 3 rows.*got 2",
        ),
        (lambda: SquaredCovariance(np.ones((3, 2)), [1, 1, 1]), "`sensitive` must differ between rows, got 1 everywhere"),
        (lambda: SquaredCovariance(np.ones((3, 2)), [0, np.nan, 1]), "`sensitive` must hold finite numbers"),
        (lambda: SquaredCovariance(np.ones(3), [0, 1, 1]), "`A` must be a non-empty matrix"),
        (lambda: SquaredCovariance(np.ones((3, 2)), [0, 1, 1]).value([0.0, 0.0], [12]), "`indices` must be"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
