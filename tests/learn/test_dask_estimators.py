"""Estimators take samples that live on Dask workers, and find the models that they find in memory."""

import numpy as np
import pandas
import pytest
import scipy.sparse
from row_clusters import local_cluster

from tiebreak.learn import (
    FairClassifier,
    MinNormRegressor,
    TieBreakClassifier,
    TieBreakRegressor,
    TieBreakRegressorCV,
    places,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ROWS, COLUMNS = 14_000, 20
NAMES = [f"x{k}" for k in range(COLUMNS)]


@pytest.fixture(scope="module", autouse=True)
def client():
    with local_cluster(1) as client:
        yield client


@pytest.fixture
def many(monkeypatch):
    """Samples stay in place from a thousand numbers on."""
    monkeypatch.setattr(places, "MOST_COPIED", 1000)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS)) + 0.3
    y = X[:, :3].sum(axis=1) - 0.5 + rng.standard_normal(ROWS)
    return X, y, rng.integers(0, 3, ROWS).astype(np.float64)


def chunked(*arrays, rows=5000):
    return [da.from_array(each, chunks=(rows, *each.shape[1:])) for each in arrays]


def framed(X, y):
    frame = dd.from_pandas(pandas.DataFrame(X, columns=NAMES).assign(y=y), npartitions=3)
    return frame[NAMES], frame["y"]  # whose lengths are not known


def sparse(block):
    return scipy.sparse.csr_array(np.where(block > -1.0, block, 0.0))


def fitted(model, *arguments, **named):
    model.fit(*arguments, **named)
    return np.append(model.coef_, model.intercept_)


@pytest.mark.parametrize(("secondary", "method"), [("auto", "auto"), ("validation", "auto"), ("auto", "sbcgi")])
def test_a_regression_has_the_bits_of_the_same_samples_in_memory(many, samples, secondary, method):
    X, y, w = samples
    model = TieBreakRegressor(secondary=secondary, radius=2.0, method=method, max_iter=3, random_state=0)
    expected = fitted(model, X, y, w)
    np.testing.assert_array_equal(fitted(model, *chunked(X, y, w)), expected)
    np.testing.assert_array_equal(fitted(model, da.from_array(X, chunks=(4096, 7)), *chunked(y, w, rows=3000)), expected)


def test_a_data_frame_has_the_bits_of_the_array_and_keeps_names(many, samples):
    X, y, _ = samples
    model = MinNormRegressor(max_iter=20, random_state=0)  # whose radius is found on the workers
    expected = fitted(model, X, y)
    np.testing.assert_array_equal(fitted(model, *framed(X, y)), expected)
    assert list(model.feature_names_in_) == NAMES
    lazy = model.predict(framed(X, y)[0])
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), X @ model.coef_ + model.intercept_, atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(framed(X, y)[0].rename(columns={"x0": "other"}))


def test_classes_are_found_by_workers_and_predictions_are_lazy(many, samples):
    X, y, w = samples
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 1.0])]
    far, far_w = chunked(X, w)
    model = TieBreakClassifier(radius=2.0, max_iter=3, random_state=0)
    expected = fitted(model, X, labels, w)
    share = model.score(X, labels, w)
    np.testing.assert_array_equal(fitted(model, far, framed(X, labels)[1], far_w), expected)
    assert list(model.classes_) == ["high", "low", "middle"]
    for name in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, name)(far)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == far.chunks[0]
        own = getattr(model, name)(X)
        assert lazy.shape == own.shape
        (np.testing.assert_array_equal if name == "predict" else np.testing.assert_allclose)(lazy.compute(), own)
    assert model.score(far, framed(X, labels)[1], far_w) == pytest.approx(share)


def test_sparse_chunks_have_the_bits_of_the_same_samples_in_memory(many, samples):
    X, y, w = samples
    model = TieBreakClassifier(radius=2.0, method="sbcgi", max_iter=3, random_state=0)
    far, far_w = chunked(X, w)
    found = fitted(model, far.map_blocks(sparse), y > 0.0, far_w)
    np.testing.assert_array_equal(found, fitted(model, sparse(X), y > 0.0, w))


def test_few_samples_are_brought_into_memory(samples):
    X, y, w = (each[:300] for each in samples)
    model = TieBreakRegressor(radius=2.0, secondary="validation", max_iter=20, random_state=0)
    np.testing.assert_array_equal(fitted(model, *chunked(X, y, w, rows=100)), fitted(model, X, y, w))
    (far,) = chunked(X, rows=100)
    np.testing.assert_array_equal(fitted(model, far.map_blocks(sparse), y), fitted(model, sparse(X), y))


def test_scores_are_those_in_memory(samples):
    X, y, w = (each[:300] for each in samples)
    model = MinNormRegressor(max_iter=20).fit(*framed(X, y))
    assert model.score(*framed(X, y)) == pytest.approx(model.score(pandas.DataFrame(X, columns=NAMES), y), rel=1e-12)
    model = MinNormRegressor(max_iter=20).fit(X, y)
    assert model.score(da.from_array(X, chunks=(100, 7)), y, w) == pytest.approx(model.score(X, y, w), rel=1e-12)


def test_validation_data_on_workers_go_with_samples_in_memory(many, samples):
    X, y, _ = samples
    model = TieBreakRegressor(radius=2.0, keep=0.99, max_iter=20, random_state=0)
    far, far_y = chunked(X, y)
    found = fitted(model, X[:40], y[:40], X_val=far, y_val=far_y)
    np.testing.assert_array_equal(found, fitted(model, X[:40], y[:40], X_val=X, y_val=y))


def test_few_samples_are_brought_to_searches_and_fair_models(client, samples):
    X, y, w = samples
    far, far_y = chunked(X, y)
    search = TieBreakRegressorCV(radii=[0.5, 2.0], keeps=0.9, max_iter=20, random_state=0)
    np.testing.assert_array_equal(fitted(search, far, far_y), fitted(search, X, y))
    fair, groups = FairClassifier(max_iter=20, radius=1.0), w > np.median(w)
    there = fitted(fair, far, far_y > 0.0, sensitive_features=groups)
    np.testing.assert_array_equal(there, fitted(fair, X, y > 0.0, sensitive_features=groups))


def test_what_needs_samples_in_memory_says_so(many, samples):
    X, y, w = samples
    far, far_y = chunked(X, y)
    with pytest.raises(ValueError, match="CV takes samples in memory, .* which takes any number, with the radius_"):
        TieBreakRegressorCV().fit(far, far_y)
    with pytest.raises(ValueError, match="FairClassifier takes samples in memory, .* a TieBreakClassifier, which"):
        FairClassifier().fit(far, far_y > 0.0, sensitive_features=w)
    with pytest.raises(ValueError, match="`sensitive_features` need samples in memory"):
        TieBreakClassifier().fit(far, far_y > 0.0, sensitive_features=w)
    with pytest.raises(ValueError, match="`y` must be in memory where `X` is"):
        TieBreakRegressor().fit(X, far_y)
