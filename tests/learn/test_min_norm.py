"""MinNormRegressor against closed forms and a reference solver."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from tiebreak.learn import MinNormRegressor

N, D = 8, 15


def task():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + 1.0
    return X, X @ rng.standard_normal(D) + 4.0


def test_the_least_norm_is_that_of_the_pseudoinverse():
    X, y = task()
    model = MinNormRegressor(max_iter=5000).fit(X, y)
    centred = X - X.mean(axis=0)
    best = np.linalg.pinv(centred) @ (y - y.mean())
    np.testing.assert_allclose(model.coef_, best, atol=1e-3 * np.abs(best).max())
    np.testing.assert_allclose(model.predict(X), y, atol=1e-2 * y.std())
    assert model.certificate_.upper_gap_bound < 1e-3 * model.certificate_.upper


@pytest.mark.parametrize("kind", ["diagonal", "matrix"])
def test_a_weight_gives_the_least_weighted_norm(kind):
    X, y = task()
    rng = np.random.default_rng(1)
    root = rng.standard_normal((D, D)) + 4.0 * np.eye(D)
    Q = np.diag(np.linspace(1.0, 4.0, D)) if kind == "diagonal" else root @ root.T
    weight = np.diag(Q) if kind == "diagonal" else Q
    model = MinNormRegressor(weight=weight, max_iter=20_000, fit_intercept=False).fit(X, y)
    inverse = np.linalg.solve(Q, X.T)
    best = inverse @ np.linalg.solve(X @ inverse, y)  # Q⁻¹Xᵀ (X Q⁻¹ Xᵀ)⁻¹ y
    np.testing.assert_allclose(model.coef_, best, atol=2e-3 * np.abs(best).max())
    assert model.certificate_.upper == pytest.approx(0.5 * model.coef_ @ Q @ model.coef_)


def test_a_set_that_binds_is_kept():
    X, y = task()
    model = MinNormRegressor(constraint="l2", radius=0.5, max_iter=3000, fit_intercept=False).fit(X, y)
    w = cvxpy.Variable(D)
    best = cvxpy.Problem(cvxpy.Minimize(0.5 / N * cvxpy.sum_squares(X @ w - y)), [cvxpy.norm(w) <= 0.5]).solve(
        solver="CLARABEL"
    )
    assert model.certificate_.lower == pytest.approx(best, rel=1e-5)
    assert np.linalg.norm(model.coef_) <= 0.5 * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), "got an array of shape \\(3,\\)"),
        (np.zeros(D), "got 0 at \\[0\\]"),
        (np.triu(np.ones((D, D))), "not symmetric"),
        (-np.eye(D), "not positive definite"),
        (["a"] * D, "must hold real numbers"),
    ],
)
def test_a_weight_that_is_no_norm_is_an_error(weight, message):
    with pytest.raises(ValueError, match=f"`weight` .*{message}"):
        MinNormRegressor(weight=weight).fit(*task())
