"""MinNormRegressor and MinNormClassifier against closed forms and reference solvers."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from tiebreak.engine import interpreted
from tiebreak.learn import MinNormClassifier, MinNormRegressor

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


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_the_intercept_may_be_part_of_the_norm(container):
    X, y = task()
    y += 20.0  # an intercept that is worth avoiding
    with interpreted():
        model, free = (
            MinNormRegressor(penalize_intercept=each, max_iter=3000).fit(container(X), y) for each in (True, False)
        )
    best = np.linalg.pinv(np.hstack([X, np.ones((N, 1))])) @ y
    np.testing.assert_allclose([*model.coef_, model.intercept_], best, atol=2e-3 * np.abs(best).max())
    assert model.certificate_.upper == pytest.approx(0.5 * best @ best, rel=1e-2)
    assert np.linalg.norm(free.coef_) < np.linalg.norm(model.coef_)
    assert abs(free.intercept_) > abs(model.intercept_)


@pytest.mark.parametrize("penalize_intercept", [False, True])
@pytest.mark.parametrize("constraint", ["l1", "l2"])
def test_near_ties_have_the_least_norm_that_keeps_a_share_of_the_fit(penalize_intercept, constraint):
    X, y = task()
    model = MinNormRegressor(keep=0.9, penalize_intercept=penalize_intercept, constraint=constraint).fit(X, y)
    w, c = cvxpy.Variable(D), cvxpy.Variable()
    level = 0.1 * 0.5 * np.var(y)  # what is left to the best fit is 0
    norm = 0.5 * cvxpy.sum_squares(w) + (0.5 * cvxpy.square(c) if penalize_intercept else 0.0)
    least = cvxpy.Problem(cvxpy.Minimize(norm), [0.5 / N * cvxpy.sum_squares(X @ w + c - y) <= level]).solve(
        solver="CLARABEL"
    )
    assert model.certificate_.upper == pytest.approx(least, rel=1e-3)
    assert model.certificate_.lower <= level * (1.0 + 1e-6)


def labelled(n: int, d: int, noise: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    return X, np.where(X[:, 0] - X[:, 1] + noise * rng.standard_normal(n) > 0.0, "yes", "no")


def test_of_features_that_depend_on_each_other_the_smallest_model_is_found():
    X, y = labelled(80, 3, noise=2.0)
    model = MinNormClassifier(max_iter=5000).fit(np.hstack([X, X, X[:, :1]]), y)
    plain = LogisticRegression(C=1e6, tol=1e-10, max_iter=1000).fit(X, y)
    copies = np.array([3.0, 2.0, 2.0])  # each of them has an equal part
    shares = plain.coef_[0] / copies
    np.testing.assert_allclose(model.coef_[0], [*shares, *shares, shares[0]], atol=2e-3)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(np.hstack([X, X, X[:, :1]])), plain.predict_proba(X), atol=2e-3)


def test_separated_classes_are_warned_of_and_near_ties_come_to_the_largest_margin():
    X, y = labelled(20, 40, noise=0.5)
    with pytest.warns(UserWarning, match="the features separate the classes.*keep=0.99"):
        MinNormClassifier().fit(X, y)
    w, c, signs = cvxpy.Variable(40), cvxpy.Variable(), np.where(y == "yes", 1.0, -1.0)
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w)), [cvxpy.multiply(signs, X @ w + c) >= 1.0]).solve(solver="CLARABEL")
    widest = w.value

    def angle(keep):
        found = MinNormClassifier(keep=keep, radius=1e3).fit(X, y)
        assert found.certificate_.within is True
        return 1.0 - found.coef_[0] @ widest / np.linalg.norm(widest) / np.linalg.norm(found.coef_[0])

    angles = [angle(keep) for keep in (0.9, 0.99, 0.9999)]
    assert angles[0] > angles[1] > angles[2]
    assert angles[2] < 1e-2


def test_the_set_does_not_matter_to_a_near_tie_of_separated_classes():
    X, y = labelled(20, 40, noise=0.5)
    near, far = (MinNormClassifier(keep=0.99, radius=radius).fit(X, y) for radius in (30.0, 300.0))
    assert near.certificate_.upper == pytest.approx(far.certificate_.upper, rel=1e-2)  # g* differs a little
    np.testing.assert_allclose(near.coef_, far.coef_, atol=2e-2 * np.abs(near.coef_).max())


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


def test_three_classes_have_a_model_each_and_an_intercept_in_the_norm_is_a_choice():
    rng = np.random.default_rng(0)
    X = 2.0 * np.eye(3)[np.arange(45) % 3] + rng.standard_normal((45, 3)) + 5.0
    y = np.arange(45) % 3
    free, held = (MinNormClassifier(keep=0.95, penalize_intercept=each).fit(X, y) for each in (False, True))
    assert free.coef_.shape == (3, 3)
    assert np.abs(held.intercept_).sum() < np.abs(free.intercept_).sum()
    assert np.linalg.norm(held.coef_) > np.linalg.norm(free.coef_)
    with pytest.raises(ValueError, match="`penalize_intercept` must be True or False, got 1"):
        MinNormClassifier(penalize_intercept=1).fit(X, y)
