"""Validation data inside a pipeline: transformed with metadata routing, or a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from tiebreak.learn import TieBreakRegressor, TieBreakRegressorCV

SCALES = np.geomspace(1e-2, 1e2, 20)


def task(seed: int, n: int):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 20)) + 2.0
    y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(n)
    return X * SCALES, y


def pipeline(model, **options):
    return Pipeline([("scale", StandardScaler()), ("model", model)], **options)


@pytest.mark.parametrize("model", [TieBreakRegressor(radius=10.0, keep=0.99), TieBreakRegressorCV(radii=[4.0], keeps=0.99)])
def test_validation_data_are_transformed_by_the_steps_before(model):
    (X, y), (X_val, y_val), test = task(0, 15), task(1, 40), task(2, 500)
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        routed = pipeline(model.set_fit_request(X_val=True, y_val=True), transform_input=["X_val"])
        routed.fit(X, y, X_val=X_val, y_val=y_val)
    scaler = StandardScaler().fit(X)
    by_hand = type(model)(**model.get_params()).fit(scaler.transform(X), y, X_val=scaler.transform(X_val), y_val=y_val)
    np.testing.assert_array_equal(routed["model"].coef_, by_hand.coef_)
    assert routed.score(*test) > 0.9


def test_validation_data_that_were_not_transformed_are_warned_of():
    (X, y), (X_val, y_val), test = task(0, 15), task(1, 40), task(2, 500)
    plain = pipeline(TieBreakRegressor(radius=10.0, keep=0.99))
    with pytest.warns(UserWarning, match=r'`X_val` has another scale than `X`: in \d+ of 20.*transform_input=\["X_val"\]'):
        plain.fit(X, y, model__X_val=X_val, model__y_val=y_val)
    assert plain.score(*test) < 0.8


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("rows", [1, 5, 60])
def test_samples_of_one_population_are_not_warned_of(container, rows):
    rng = np.random.default_rng(rows)
    counts = rng.poisson(np.geomspace(1e-3, 3.0, 200), size=(300 + rows, 200)).astype(float)  # words, many of them rare
    y = counts[:, -5:].sum(axis=1)
    X, X_val = container(counts[:300]), container(counts[300:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TieBreakRegressor(radius=5.0, max_iter=5).fit(X, y[:300], X_val=X_val, y_val=y[300:])
    if rows == 60:
        with pytest.warns(UserWarning, match="transform_input"):
            TieBreakRegressor(radius=5.0, max_iter=5).fit(X, y[:300], X_val=container(100.0 * counts[300:]), y_val=y[300:])
