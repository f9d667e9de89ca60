"""TieBreakRegressorCV and TieBreakClassifierCV: what they choose, and that warm paths lead where cold starts do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import tiebreak
from tiebreak.learn import TieBreakClassifierCV, TieBreakRegressor, TieBreakRegressorCV


def task(seed: int = 0, n: int = 60, d: int = 30, noise: float = 0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    return X, X[:, 0] - X[:, 1] + 2.0 + noise * rng.standard_normal(n)


def test_scores_of_warm_paths_are_those_of_single_fits():
    X, y = task()
    radii, keeps, folds = [8.0, 0.5, 2.0], [0.9, 0.99], KFold(3)
    model = TieBreakRegressorCV(radii=radii, keeps=keeps, cv=folds).fit(X, y)
    found = model.cv_results_
    assert [(each["radius"], each["keep"]) for each in found["params"]] == [
        (radius, keep) for radius in (0.5, 2.0, 8.0) for keep in (0.99, 0.9)
    ]
    for k, (train, test) in enumerate(folds.split(X)):
        for point, score in zip(found["params"], found[f"split{k}_test_score"], strict=True):
            single = TieBreakRegressor(**point).fit(X[train], y[train])
            assert score == pytest.approx(-0.5 * mean_squared_error(y[test], single.predict(X[test])), rel=1e-3)
    best = int(np.argmax(found["mean_test_score"]))
    assert {"radius": model.radius_, "keep": model.keep_} == found["params"][best]
    assert found["rank_test_score"][best] == 1
    assert model.best_score_ == found["mean_test_score"][best]
    alone = TieBreakRegressor(radius=model.radius_, keep=model.keep_).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-6)
    assert model.certificate_.within is True


def test_cubic_features_are_predicted_as_well_as_by_the_lasso():
    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(3, include_bias=False).fit_transform(X)
    X, X_test, y, y_test = train_test_split(X, y, random_state=1)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    with pytest.warns(UserWarning, match="285 coefficients are fitted to 331 samples.*TieBreakRegressorCV"):
        assert TieBreakRegressor().fit(X, y).score(X_test, y_test) < -1.0
    lasso = LassoCV(cv=3, eps=0.02, max_iter=10_000).fit(X, y).score(X_test, y_test)
    assert TieBreakRegressorCV(radii=10, keeps=0.99, cv=3).fit(X, y).score(X_test, y_test) > lasso - 0.03


def test_a_default_grid_reaches_from_too_small_to_too_large():
    X, y = task(d=50)
    model = TieBreakRegressorCV(cv=3, radii=8, keeps=[0.999, 0.8]).fit(X, y)
    radii = np.unique(model.cv_results_["param_radius"])
    assert radii.size == 8
    assert radii[-1] / radii[0] == pytest.approx(1000.0)
    assert radii[0] < model.radius_ < radii[-1]
    assert TieBreakRegressorCV(cv=3, radii=1, keeps=0.9).fit(X, y).radius_ == pytest.approx(radii[-1])


def test_a_score_may_be_chosen_and_folds_fitted_at_the_same_time():
    X, y = task()
    label = np.where(y > 2.0, "high", "low")
    model = TieBreakClassifierCV(radii=[0.1, 3.0], keeps=[0.99, 0.9], cv=3, scoring="roc_auc")
    found = model.fit(X, label).cv_results_
    assert 0.5 < model.best_score_ <= 1.0
    assert model.radius_ == 3.0
    assert model.predict_proba(X).shape == (60, 2)
    again = TieBreakClassifierCV(radii=[0.1, 3.0], keeps=[0.99, 0.9], cv=3, scoring="roc_auc", n_jobs=2).fit(X, label)
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], found["mean_test_score"])
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_all_classes_share_a_radius_and_a_share():
    rng = np.random.default_rng(0)
    X = 2.0 * np.eye(3)[np.arange(60) % 3] + rng.standard_normal((60, 3))
    model = TieBreakClassifierCV(radii=[0.1, 3.0], keeps=0.99, cv=3).fit(X, np.array(["a", "b", "c"])[np.arange(60) % 3])
    assert model.coef_.shape == (3, 3)
    assert model.radius_ == 3.0
    assert len(model.certificate_) == 3


def test_weights_count_in_the_fit_and_in_the_scores():
    X, y = task()
    weights = np.ones(60)
    weights[::3] = 0.0  # a whole fold among them
    folds = [
        (np.setdiff1d(np.arange(60), test), test) for test in (np.arange(0, 60, 3), np.arange(1, 60, 3), np.arange(2, 60, 3))
    ]
    model = TieBreakRegressorCV(radii=[0.5, 2.0], keeps=0.99, cv=folds).fit(X, y, weights)
    assert "split1_test_score" in model.cv_results_
    assert "split2_test_score" not in model.cv_results_
    spoiled = np.where(weights == 0.0, 1e3, y)
    again = TieBreakRegressorCV(radii=[0.5, 2.0], keeps=0.99, cv=folds).fit(X, spoiled, weights)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_sample_of_weight_two_counts_as_two_samples():
    X, y = task(n=30)
    weights = np.where(np.arange(30) < 6, 2.0, 1.0)
    order = np.concatenate([np.arange(30), np.arange(6)])
    fold_of = np.arange(30) % 3

    def fitted(which, **options):
        folds = [(np.flatnonzero(fold_of[which] != k), np.flatnonzero(fold_of[which] == k)) for k in range(3)]
        return TieBreakRegressorCV(radii=4, keeps=[0.99, 0.9], cv=folds).fit(X[which], y[which], **options)

    weighted, repeated = fitted(np.arange(30), sample_weight=weights), fitted(order)
    for name in ("mean_test_score", "std_test_score", "param_radius"):
        np.testing.assert_allclose(weighted.cv_results_[name], repeated.cv_results_[name], rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)


@pytest.mark.parametrize("given", [{"X_val": True}, {"sensitive_features": True}])
def test_data_of_the_second_criterion_are_used_in_each_fold(given):
    (X, y), (X_val, y_val) = task(0), task(1, n=20)
    data = {"X_val": X_val, "y_val": y_val} if "X_val" in given else {"sensitive_features": np.arange(60) % 2}
    model = TieBreakRegressorCV(radii=[2.0], keeps=[0.9], cv=3, random_state=0)
    with_data, without = model.fit(X, y, **data).cv_results_, TieBreakRegressorCV(radii=[2.0], keeps=[0.9], cv=3).fit(X, y)
    assert with_data["mean_test_score"] != pytest.approx(without.cv_results_["mean_test_score"], rel=1e-3)


def test_sets_without_a_name_have_their_own_size():
    X, y = task(d=6)
    model = TieBreakRegressorCV(constraint=tiebreak.Box(-np.ones(6), np.ones(6)), keeps=[0.9, 0.99], cv=3).fit(X, y)
    assert model.radius_ is None
    assert len(model.cv_results_["params"]) == 2
    sparse = TieBreakRegressorCV(radii=[2.0], keeps=[0.99], cv=3).fit(scipy.sparse.csr_array(X), y)
    dense = TieBreakRegressorCV(radii=[2.0], keeps=[0.99], cv=3).fit(X, y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    assert sparse.best_score_ == pytest.approx(dense.best_score_, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radii": 0}, "`radii` must be a whole number ≥ 1, got 0"),
        ({"radii": [1.0, -1.0]}, "`radii` must be positive, got -1"),
        ({"radii": [1.0, np.nan]}, "`radii` must hold finite numbers"),
        (
            {"radii": [1.0], "constraint": tiebreak.Box(-np.ones(30), np.ones(30))},
            "`radii` are sizes of a set that is named",
        ),
        ({"keeps": [0.9, 1.1]}, "`keeps` must be shares from 0 to 1"),
        ({"keeps": np.nan}, "`keeps` must hold finite numbers"),
        ({"scoring": "best"}, "scoring"),
        ({"loss": "hinge"}, "`loss` must be one of"),
    ],
)
def test_an_error_names_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        TieBreakRegressorCV(cv=2, **options).fit(*task())
