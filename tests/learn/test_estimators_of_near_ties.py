"""Near ties in the estimators: what they promise, the frontier, and the warning where noise is fitted."""

from __future__ import annotations

import pickle
import warnings

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import LassoCV
from sklearn.model_selection import cross_val_score

from tiebreak.learn import MinNormRegressor, TieBreakClassifier, TieBreakRegressor, fitting, noise

N, D = 30, 8


def task(seed: int = 0, n: int = N, d: int = D, noise: float = 0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    return X, X[:, 0] - X[:, 1] + 2.0 + noise * rng.standard_normal(n)


def training_loss(model, X, y):
    return 0.5 * np.mean((model.predict(X) - y) ** 2)


def test_a_share_of_the_fit_is_kept_and_the_validation_loss_is_least_among_such_models():
    (X, y), (X_val, y_val) = task(0), task(1, n=12)
    model = TieBreakRegressor(radius=3.0, keep=0.95).fit(X, y, X_val=X_val, y_val=y_val)
    w, c = cvxpy.Variable(D), cvxpy.Variable()
    loss = 0.5 / N * cvxpy.sum_squares(X @ w + c - y)
    ball = cvxpy.norm1(w) <= 3.0
    best = cvxpy.Problem(cvxpy.Minimize(loss), [ball]).solve(solver="CLARABEL")
    level = 0.95 * best + 0.05 * 0.5 * np.var(y)
    validation = 0.5 / 12 * cvxpy.sum_squares(X_val @ w + c - y_val)
    least = cvxpy.Problem(cvxpy.Minimize(validation), [ball, loss <= level]).solve(solver="CLARABEL")

    assert training_loss(model, X, y) <= level * (1.0 + 1e-9)
    assert model.certificate_.within is True
    assert model.result_.tolerance == pytest.approx(level - best, rel=1e-4)
    assert training_loss(model, X_val, y_val) == pytest.approx(least, rel=1e-4)  # the intercept is free, too
    assert model.certificate_.upper_gap_bound < 1e-3 * least


def test_a_tolerance_and_the_share_that_equals_it_give_one_model():
    X, y = task()
    kept = TieBreakRegressor(keep=0.9).fit(X, y)
    given = TieBreakRegressor(tolerance=kept.result_.tolerance).fit(X, y)
    np.testing.assert_allclose(given.coef_, kept.coef_, atol=1e-5)
    exact = TieBreakRegressor().fit(X, y)
    assert np.linalg.norm(kept.coef_) < 0.95 * np.linalg.norm(exact.coef_)


def test_classes_are_told_apart_by_smaller_models_that_keep_a_share_of_the_fit():
    X, y = task(n=60)
    label = np.where(y > 2.0, "high", "low")
    exact, near = TieBreakClassifier(radius=20.0).fit(X, label), TieBreakClassifier(radius=20.0, keep=0.98).fit(X, label)
    assert near.certificate_.within is True
    assert near.certificate_.lower - exact.certificate_.lower <= 0.02 * np.log(
        2.0
    )  # the loss of the constant model, at most
    assert np.linalg.norm(near.coef_) < 0.9 * np.linalg.norm(exact.coef_)


@pytest.mark.parametrize("estimator", [TieBreakRegressor, TieBreakClassifier, MinNormRegressor])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": -0.1}, "`tolerance` must be a finite number ≥ 0, got -0.1"),
        ({"tolerance": np.nan}, "`tolerance` must be a finite number ≥ 0, got nan"),
        ({"tolerance": "1"}, "`tolerance` must be a finite number"),
        ({"keep": 1.5}, "`keep` must be a share from 0 to 1, such as 0.99, got 1.5"),
        ({"keep": -0.5}, "`keep` must be a share from 0 to 1"),
        ({"keep": np.nan}, "`keep` must be a share from 0 to 1"),
        ({"keep": [0.9]}, "`keep` must be a share from 0 to 1"),
        ({"tolerance": 0.1, "keep": 0.9}, "`tolerance` and `keep` say the same"),
    ],
)
def test_an_error_names_the_near_tie(estimator, options, message):
    X, y = task()
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(X, y > 2.0)


def test_the_frontier_is_computed_on_request():
    X, y = task()
    model = TieBreakRegressor(keep=0.99, frontier=True).fit(X, y)
    near = model.frontier_.at(keep=0.95)
    assert near.within is True
    assert near.upper < model.certificate_.upper < model.frontier_.points[0].upper
    assert len(TieBreakClassifier(frontier=True).fit(X, np.arange(N) % 3).frontier_) == 3
    again = pickle.loads(pickle.dumps(model))
    assert str(again.frontier_) == str(model.frontier_)
    assert not hasattr(again.set_params(frontier=False).fit(X, y), "frontier_")
    with pytest.raises(ValueError, match="`frontier` must be True or False, got 12"):
        TieBreakRegressor(frontier=12).fit(X, y)


def noisy(seed: int = 0):
    """As many samples as features, nearly, and much noise: least squares predict worse than a constant."""
    return task(seed, n=100, d=80, noise=3.0)


def test_fitting_noise_is_warned_of_and_the_remedies_work():
    (X, y), (X_val, y_val), (X_test, y_test) = noisy(0), noisy(1), noisy(2)
    with pytest.warns(UserWarning, match="80 coefficients are fitted to 100 samples.*TieBreakRegressorCV.*keep"):
        model = TieBreakRegressor().fit(X, y)
    assert model.score(X_test, y_test) < 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = [
            TieBreakRegressor(radius=2.0).fit(X, y).score(X_test, y_test),
            TieBreakRegressor(keep=0.5).fit(X, y).score(X_test, y_test),
            TieBreakRegressor(keep=0.7).fit(X, y, X_val=X_val, y_val=y_val).score(X_test, y_test),
        ]
        TieBreakRegressor(secondary="l2").fit(X, y)  # what was done, by its name
    assert min(scores) > model.score(X_test, y_test) + 0.5


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_samples_that_are_interpolated_are_left_out_one_by_one(container, fit_intercept):
    X, y = task(n=15, d=40)
    data = fitting.Data(container(X), y, np.ones(15))
    errors = noise.left_out_errors(fitting.training_task(fitting.Square(), data, fit_intercept), fit_intercept)
    for i in range(15):
        rest = np.arange(15) != i
        mean, middle = (X[rest].mean(axis=0), y[rest].mean()) if fit_intercept else (np.zeros(40), 0.0)
        predicted = middle + (X[i] - mean) @ np.linalg.pinv(X[rest] - mean) @ (y[rest] - middle)
        assert errors[i] == pytest.approx(y[i] - predicted, rel=1e-6)


@pytest.mark.parametrize("level", [0.1, 20.0])
def test_interpolation_is_warned_of_if_it_predicts_badly(level):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 80)) + 0.1 * rng.standard_normal((60, 80))
    y = X[:, 0] + level * rng.standard_normal(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TieBreakRegressor(max_iter=300).fit(X, y)
    assert bool(caught) == (level > 1.0)


@pytest.mark.parametrize("n", [100, 1000])
def test_healthy_data_are_not_warned_of(n):
    X, y = task(n=n, d=60, noise=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TieBreakRegressor(max_iter=200).fit(X, y)
        TieBreakClassifier(max_iter=200).fit(X[:, :10], y > 2.0)
    weak = task(n=n, d=5, noise=30.0)  # little to be found, and little fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.mean(cross_val_score(TieBreakRegressor(max_iter=200), *weak)) < 0.1
        assert np.mean(cross_val_score(LassoCV(), *weak)) < 0.1


def test_the_interval_of_an_intercept_is_around_the_constant_model():
    """So that a share is one of what the fit gains over that model, whether the intercept is a variable or not."""
    X, y = task()
    data = fitting.Data(X, y, np.linspace(1.0, 2.0, N))
    held = fitting.training_task(fitting.Square(), data, True, eliminate=False)
    domain = held.domain("l1", 3.0)
    assert domain.middle(D + 1)[-1] == pytest.approx(np.average(y, weights=data.weights))
    eliminated = fitting.training_task(fitting.Square(), data, True)
    assert held.lower.value(domain.middle(D + 1)) == pytest.approx(eliminated.lower.value(np.zeros(D)))
    assert clone(TieBreakRegressor(keep=0.9)).keep == 0.9
