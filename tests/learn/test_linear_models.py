"""TieBreakRegressor and TieBreakClassifier: what they choose among the best fits."""

from __future__ import annotations

import pickle
import signal
import warnings

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tiebreak
from tiebreak.engine import interpreted
from tiebreak.learn import TieBreakClassifier, TieBreakRegressor, fitting
from tiebreak.objectives.losses import Square

N, D = 12, 20


def task(seed: int = 0, n: int = N, d: int = D):
    """Fewer samples than features: many models fit all samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    return X, X @ np.where(np.arange(d) < 3, 1.0, 0.0) + 2.0 + 0.1 * rng.standard_normal(n)


def training_loss(model, X, y):
    return 0.5 * np.mean((model.predict(X) - y) ** 2)


@pytest.mark.parametrize("radius", [2.0, 6.0])  # the first binds, the second leaves many models that fit all
def test_the_fit_is_best_and_its_validation_loss_least_among_the_best(radius):
    (X, y), (X_val, y_val) = task(0), task(1, n=15)
    model = TieBreakRegressor(radius=radius, max_iter=5000).fit(X, y, X_val=X_val, y_val=y_val)
    w, c = cvxpy.Variable(D), cvxpy.Variable()
    ball = [cvxpy.norm1(w) <= radius]
    best = cvxpy.Problem(cvxpy.Minimize(0.5 / N * cvxpy.sum_squares(X @ w + c - y)), ball).solve(solver="CLARABEL")
    fits = [*ball, X @ w + c == y] if best < 1e-6 else [*ball, cvxpy.sum_squares(X @ w + c - y) <= 2 * N * (best + 1e-7)]
    least = cvxpy.Problem(cvxpy.Minimize(0.5 / 15 * cvxpy.sum_squares(X_val @ w + c - y_val)), fits).solve(solver="CLARABEL")

    assert best - 1e-6 <= training_loss(model, X, y) <= best + 1e-3 * np.var(y)
    assert training_loss(model, X, y) - best <= model.certificate_.lower_gap_bound + 1e-6
    assert model.certificate_.lower == pytest.approx(training_loss(model, X, y))
    assert model.certificate_.upper == pytest.approx(training_loss(model, X_val, y_val))
    assert model.certificate_.upper <= 1.02 * least + 1e-3 * np.var(y_val)
    assert np.abs(model.coef_).sum() <= radius * (1.0 + 1e-9)


def test_norms_choose_the_least_norm():
    X, y = task()
    small = TieBreakRegressor(secondary="l2", max_iter=3000).fit(X, y)
    with interpreted():
        sparse = TieBreakRegressor(secondary="l1", radius=10.0, max_iter=3000).fit(X, y)
    centred = X - X.mean(axis=0)
    both = np.hstack([centred, -centred])
    least = linprog(np.ones(2 * D), A_eq=both, b_eq=y - y.mean(), bounds=(0, None)).fun
    assert np.abs(small.coef_ - np.linalg.pinv(centred) @ (y - y.mean())).max() < 1e-3
    assert least * (1 - 1e-2) <= np.abs(sparse.coef_).sum() <= least * (1 + 1e-2) < 0.9 * np.abs(small.coef_).sum()


def test_a_function_and_an_objective_of_the_coefficients_are_criteria():
    X, y = task()
    target = np.linspace(0.0, 0.5, D)

    def distance(w):
        return 0.5 * np.sum((w - target) ** 2), w - target

    asked = TieBreakRegressor(secondary=distance, radius=10.0, max_iter=300).fit(X, y)
    known = TieBreakRegressor(secondary=tiebreak.SquaredNorm(target), radius=10.0, max_iter=3000).fit(X, y)
    zero = TieBreakRegressor(secondary="l2", radius=10.0, max_iter=3000).fit(X, y)
    assert training_loss(asked, X, y) < 1e-4 * np.var(y)
    assert distance(asked.coef_)[0] < 1.01 * distance(known.coef_)[0] < 0.9 * distance(zero.coef_)[0]
    assert np.isnan(asked.certificate_.upper_gap_bound)  # nobody said that the function is convex
    assert known.certificate_.upper_gap_bound < 1e-2 * known.certificate_.upper


def test_a_criterion_with_a_wrong_gradient_is_named():
    X, y = task()

    def criterion(w):
        return 0.5 * np.sum(w**2), -w

    with pytest.raises(tiebreak.GradientError, match="upper: the gradient of `.*criterion` is not that of its values"):
        TieBreakRegressor(secondary=criterion, radius=10.0, max_iter=300).fit(X, y)


def test_what_fit_is_given_decides_the_criterion():
    (X, y), (X_val, y_val) = task(0), task(1)
    groups = np.arange(N) % 2
    model = TieBreakRegressor(radius=6.0, random_state=0, max_iter=300)
    given = clone(model).fit(X, y, X_val=X_val, y_val=y_val)
    named = clone(model).set_params(secondary="validation").fit(X, y, X_val=X_val, y_val=y_val, sensitive_features=groups)
    np.testing.assert_array_equal(given.coef_, named.coef_)
    fair = clone(model).set_params(secondary="fairness").fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(fair.coef_, clone(model).fit(X, y, sensitive_features=groups).coef_)
    assert not np.allclose(fair.coef_, given.coef_)


def test_the_intercept_is_free():
    X, y = task()
    model = TieBreakRegressor(radius=1.0, max_iter=500)
    near, far = clone(model).fit(X, y), clone(model).fit(X + 3.0, y - 1000.0)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-9)
    assert np.mean(far.predict(X + 3.0) - y) == pytest.approx(-1000.0)


def test_sparse_features_give_the_model_of_dense_ones():
    X, y = task(n=15, d=6)
    X *= np.random.default_rng(0).random(X.shape) < 0.5
    model = TieBreakRegressor(radius=1.5, max_iter=5000)
    dense, sparse = clone(model).fit(X, y), clone(model).fit(scipy.sparse.csc_matrix(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)
    np.testing.assert_allclose(sparse.predict(scipy.sparse.csr_array(X)), dense.predict(X), atol=1e-3)


def test_an_outlier_moves_the_huber_fit_little():
    X, y = task(n=15, d=2)
    spoiled = y.copy()
    spoiled[0] += 100.0
    with interpreted():
        moved = [
            np.abs(TieBreakRegressor(loss, radius=3.0, max_iter=300).fit(X, spoiled).predict(X)[1:] - y[1:]).max()
            for loss in ("huber", "squared_error")
        ]
    assert moved[0] < 1.0 < 5.0 < moved[1]


def test_the_mean_probability_is_the_share_of_the_class():
    """That is so at the best intercept, and at no other: the interval that holds it does not bind."""
    rng = np.random.default_rng(0)
    X = 5.0 + rng.standard_normal((60, 3))
    y = np.where(np.arange(60) < 6, "rare", "often")
    model = TieBreakClassifier(radius=0.5, max_iter=3000).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=1e-3)
    assert list(model.classes_) == ["often", "rare"]


def test_each_of_three_classes_has_a_model():
    rng = np.random.default_rng(0)
    centres = 4.0 * np.eye(3)[np.arange(45) % 3]
    X, y = centres + rng.standard_normal((45, 3)), np.array(["a", "b", "c"])[np.arange(45) % 3]
    model = TieBreakClassifier(secondary="validation", random_state=0, max_iter=300).fit(X, y)
    assert model.coef_.shape == (3, 3)
    assert len(model.certificate_) == len(model.history_) == len(model.result_) == 3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.9


def test_fairness_lowers_the_covariance_and_leaves_the_training_loss():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=40)
    X = rng.standard_normal((40, 60))
    X[:, :10] += group[:, None]
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(40) > 1.5, "yes", "no")
    model = TieBreakClassifier("squared_error", validation_fraction=0.5, random_state=0, max_iter=3000)
    fair = clone(model).fit(X, y, sensitive_features=np.array(["left", "right"])[group])
    other = clone(model).set_params(secondary="validation").fit(X, y)  # fitted to the same half

    def covariance(each):
        return abs(np.cov(each.decision_function(X), group)[0, 1])

    assert covariance(fair) < 0.05 * covariance(other)
    assert fair.certificate_.lower < 1e-4
    assert other.certificate_.lower < 1e-4


def test_groups_may_be_more_than_two_and_in_columns():
    X, y = task(n=16)
    columns = np.column_stack([np.arange(16) % 2, np.arange(16) // 8])
    model = TieBreakRegressor(radius=6.0, random_state=0, max_iter=3000, validation_fraction=0.5)
    fair = model.fit(X, y, sensitive_features=columns)
    means = [fair.predict(X)[(columns == pair).all(axis=1)].mean() for pair in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert np.ptp(means) < 0.05 * np.std(y)


def test_a_tolerance_that_is_reached_ends_the_run_and_one_that_is_not_warns():
    X, y = task()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TieBreakRegressor(secondary="l2", tol=(1e-1, 1e-1), max_iter=20_000).fit(X, y)
    assert model.result_.status is tiebreak.Status.CERTIFIED
    assert 1 <= model.n_iter_ < 20_000
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        TieBreakRegressor(secondary="l2", tol=1e-12, max_iter=5).fit(X, y)


def test_a_pickle_predicts_the_same_and_holds_no_data():
    X, y = task(n=1000, d=5)
    model = TieBreakRegressor(secondary="validation", random_state=0, max_iter=20).fit(X, y)
    stored = pickle.dumps(model)
    again = pickle.loads(stored)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_.lower == model.certificate_.lower
    np.testing.assert_array_equal(again.history_.lower, model.history_.lower)
    assert len(stored) < X.nbytes


def test_a_radius_is_searched_within_a_pipeline():
    X, y = task(n=40, d=5)
    group = np.arange(40) % 2
    pipeline = make_pipeline(StandardScaler(), TieBreakRegressor(max_iter=100, random_state=0))
    search = GridSearchCV(pipeline, {"tiebreakregressor__radius": [0.01, 3.0]}, cv=3)
    search.fit(X, y, tiebreakregressor__sensitive_features=group)  # cut with the samples
    assert search.best_params_ == {"tiebreakregressor__radius": 3.0}
    assert search.best_estimator_[-1].certificate_.lower < np.var(y)


def test_a_set_may_be_given_or_made_for_the_number_of_features():
    X, y = task(n=15, d=6)
    with interpreted():
        weights = TieBreakRegressor(constraint="simplex", max_iter=100).fit(X, y).coef_
        made = TieBreakRegressor(constraint=lambda d: tiebreak.Box(np.zeros(d), np.ones(d)), max_iter=100).fit(X, y).coef_
        given = TieBreakRegressor(constraint=tiebreak.Box(np.zeros(6), np.ones(6)), max_iter=100).fit(X, y).coef_
    assert weights.min() >= -1e-12
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(made, given)
    assert made.min() >= 0.0
    assert made.max() <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"loss": "hinge"}, {}, '`loss` must be one of "squared_error", "huber"'),
        ({"constraint": "l3"}, {}, '`constraint` must be one of "l1", "l2", "box", "simplex"'),
        ({"constraint": tiebreak.Box([0.0], [1.0])}, {}, "`constraint` must be a set of 20 variables"),
        ({"constraint": lambda d: d}, {}, "`constraint` must be .* got a function that returned 20"),
        ({"radius": -1.0}, {}, "`radius` must be a finite number > 0, got -1.0"),
        ({"secondary": "l3"}, {}, '`secondary` must be one of "auto", "validation"'),
        ({"secondary": "fairness"}, {}, "`sensitive_features` must be given"),
        (
            {"secondary": "l2"},
            {"sensitive_features": np.arange(40) % 2},
            '`sensitive_features` is used only where `secondary` is "fairness", and it is .l2.: leave it out',
        ),
        ({}, {"sensitive_features": np.arange(3)}, "`sensitive_features` must have one row for each of the 12"),
        ({}, {"sensitive_features": np.zeros(N)}, "`sensitive_features` must hold from 2 to 20 groups, got 1"),
        ({}, {"X_val": np.zeros((2, D))}, "`y_val` must be given"),
        ({}, {"X_val": np.zeros((2, D)), "y_val": [0.0]}, "`y_val` must have one entry for each of the 2"),
        ({}, {"X_val": np.zeros((2, D)), "y_val": [0.0, np.nan]}, "`y_val` must hold finite numbers, got nan"),
        ({"secondary": "validation", "validation_fraction": 1.0}, {}, "`validation_fraction` must be below 1"),
        ({"max_iter": 0}, {}, "`max_iter` must be a whole number"),
        ({"tol": (1.0, 1.0, 1.0)}, {}, "`tol` must be a number or a pair"),
        ({}, {"sample_weight": -np.ones(N)}, "`sample_weight` must be non-negative"),
    ],
)
def test_an_error_names_the_argument(options, fit, message):
    X, y = task()
    with pytest.raises(ValueError, match=message):
        TieBreakRegressor(**options).fit(X, y, **fit)


def test_a_validation_label_that_was_not_trained_is_an_error():
    X, y = task()
    with pytest.raises(ValueError, match="`y_val` must hold classes of `y` only, got .*third"):
        TieBreakClassifier().fit(X, np.where(y > 3.0, "one", "two"), X_val=X[:1], y_val=["third"])


def test_the_default_radius_is_large_enough_whatever_the_units_of_the_features():
    rng = np.random.default_rng(0)
    X = np.column_stack([1e5 * rng.standard_normal(60), rng.random(60)])
    y = 10.0 * X[:, 1] + 0.01 * rng.standard_normal(60)
    for features in (X, scipy.sparse.csr_array(X)):
        data = fitting.Data(features, y, np.ones(60))
        _, _, domain = fitting.training_problem(TieBreakRegressor(fit_intercept=False), Square(), data)
        assert domain.radius >= 10.0


def test_a_fit_that_is_interrupted_is_none(monkeypatch):
    def interrupted(*args, **kwargs):
        return tiebreak.minimize(*args, **{**kwargs, "callback": lambda snapshot: signal.raise_signal(signal.SIGINT)})

    monkeypatch.setattr(fitting, "minimize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TieBreakRegressor().fit(np.eye(3), np.ones(3))


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"X_val": [[np.nan, 0.0]], "y_val": [1.0]}, "`X_val`: Input X contains NaN"),
        ({"X_val": [[1.0]], "y_val": [1.0]}, "`X_val`: X has 1 features"),
        ({"X_val": [[1.0, 2.0]], "y_val": [[1.0, 2.0]]}, "`y_val`: "),
    ],
)
def test_an_error_names_the_validation_data(validation, message):
    with pytest.raises(ValueError, match=message):
        TieBreakRegressor().fit(np.eye(2), np.ones(2), **validation)
