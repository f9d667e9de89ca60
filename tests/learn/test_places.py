"""Estimators use many samples where they are, and the model is the same wherever that is."""

import numpy as np
import pandas
import pytest
import scipy.sparse

from tiebreak import data
from tiebreak.learn import MinNormClassifier, TieBreakClassifier, TieBreakClassifierCV, TieBreakRegressor, places

ROWS, COLUMNS = 14_000, 20


@pytest.fixture
def few(monkeypatch):
    """Samples stay in place from a thousand numbers on."""
    monkeypatch.setattr(places, "MOST_COPIED", 1000)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((ROWS, COLUMNS)) + 0.3).astype(np.float32)
    y = (X[:, :3].sum(axis=1) - 0.5 + rng.standard_normal(ROWS)).astype(np.float64)
    return X, y, rng.integers(0, 3, ROWS).astype(np.float64)


def mapped(folder, X):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def fitted(model, *arguments, **named):
    model.fit(*arguments, **named)
    return np.append(model.coef_, model.intercept_)


def test_features_are_used_where_they_are(few, samples, tmp_path):
    X, y, w = samples
    where = mapped(tmp_path, X)
    for given in (X, where):
        kept = TieBreakRegressor()._data(given, y, w).X
        assert kept.array.dtype == np.float32
        assert np.shares_memory(kept.array, given)
    model = TieBreakRegressor(radius=2.0, max_iter=5)
    task = model._task(model._samples(model._data(where, y, None), None, None, None))
    assert np.shares_memory(task.lower.matrix.features.array, where)  # and so is the column of ones
    model.set_params(secondary="validation", validation_fraction=0.2)
    split = model._samples(model._data(where, y, w), None, None, None)
    assert split.train.X is split.validation.X
    assert split.validation.weights.sum() / w.sum() == pytest.approx(0.2, abs=0.02)
    np.testing.assert_array_equal(split.train.weights + split.validation.weights, w)


@pytest.mark.parametrize("secondary", ["auto", "validation"])
def test_a_model_is_the_same_in_memory_mapped_and_stored(few, samples, tmp_path, secondary):
    X, y, w = samples
    model = TieBreakRegressor(radius=2.0, secondary=secondary, max_iter=20, random_state=0)
    expected = fitted(model, X, y, w)
    np.testing.assert_array_equal(fitted(model, mapped(tmp_path, X), y, w), expected)
    table = pandas.DataFrame(X, columns=[f"x{k}" for k in range(COLUMNS)]).assign(y=y, w=w)
    store = data.store(table, tmp_path / "store", target="y", sample_weight="w", dtype=np.float32, seed=None)
    np.testing.assert_array_equal(fitted(model, store, sample_weight="w"), expected)
    assert list(model.feature_names_in_) == list(table.columns[:COLUMNS])


def test_what_is_found_in_place_is_what_is_found_in_memory(samples, monkeypatch):
    X, y, w = samples
    model = TieBreakRegressor(radius=2.0, max_iter=2000)
    expected = fitted(model, X, y, w)
    assert model.result_.method != "active-set"
    monkeypatch.setattr(places, "MOST_COPIED", 1000)
    np.testing.assert_allclose(fitted(model, X, y, w), expected, atol=2e-4)
    assert model.certificate_.lower_gap_bound < 1e-8


def test_the_default_radius_is_that_of_samples_in_memory(samples, monkeypatch):
    X, y, w = samples
    model = TieBreakRegressor(max_iter=20)
    sets = []
    for most in (1 << 25, 1000):
        monkeypatch.setattr(places, "MOST_COPIED", most)
        sets.append(model._task(model._samples(model._data(X, y, w), None, None, None)).domain("l1", None))
    assert sets[1].inner_sets()[0].radius == pytest.approx(sets[0].radius, rel=1e-5)


def test_classes_weights_and_fairness_in_place(few, samples):
    X, y, w = samples
    labels = np.digitize(y, [-0.5, 1.0])
    model = TieBreakClassifier("squared_error", radius=2.0).fit(X, labels, w)
    assert model.coef_.shape == (3, COLUMNS)
    assert model.score(X, labels, w) > 0.6
    groups = X[:, 0] > 0.3
    fair = TieBreakClassifier("squared_error", radius=2.0, keep=0.5, random_state=0)
    fair.fit(X, labels > 1, sensitive_features=groups)
    plain = TieBreakClassifier("squared_error", radius=2.0).fit(X, labels > 1)
    unfair = [abs(np.cov(each.decision_function(X), groups)[0, 1]) for each in (fair, plain)]
    assert unfair[0] < 0.5 * unfair[1]


def test_sparse_features_in_place_and_validation_in_place(few, samples):
    X, y, _ = samples
    sparse = scipy.sparse.csr_array(np.where(X > 1.0, X, 0.0))
    model = MinNormClassifier(radius=3.0, max_iter=20)
    assert model.fit(sparse, y > 0.0).score(sparse, y > 0.0) > 0.55
    kept = model._data(sparse, y > 0.0, None).X
    assert np.shares_memory(kept.data, sparse.data)
    assert kept.data.dtype == np.float32
    near = TieBreakRegressor(radius=2.0, keep=0.99, max_iter=20).fit(X[:40, :8], y[:40], X_val=X[:, :8], y_val=y)
    assert near.certificate_.within


def test_what_cannot_be_done_in_place_says_what_to_do(few, samples, tmp_path):
    X, y, _ = samples
    np.save(tmp_path / "F.npy", np.asfortranarray(X))
    with pytest.raises(ValueError, match="in C order"):
        TieBreakRegressor().fit(np.load(tmp_path / "F.npy", mmap_mode="r"), y)
    wide = np.random.default_rng(0).standard_normal((3, 5001))
    with pytest.raises(ValueError, match="`radius` must be given for 5,001 features"):
        TieBreakRegressor().fit(wide, [0.0, 1.0, 2.0])
    store = data.store(X, tmp_path / "store", target=y)
    with pytest.raises(ValueError, match="takes samples in memory, .* TieBreakClassifier, which"):
        TieBreakClassifierCV().fit(store, None)
    with pytest.raises(ValueError, match="`y` must be left out where `X` is a store"):
        TieBreakRegressor().fit(store, y)
    with pytest.raises(ValueError, match="positive for some samples of each class"):
        TieBreakClassifier(radius=1.0).fit(X, y > 0.0, (y > 0.0).astype(float))


def test_few_samples_of_a_store_are_brought_into_memory(samples, tmp_path):
    X, y, _ = (each[:200] for each in samples)
    store = data.store(X, tmp_path / "store", target=y, seed=None)
    model = TieBreakRegressor(radius=2.0, max_iter=20)
    np.testing.assert_array_equal(fitted(model, store), fitted(model, X, y))
