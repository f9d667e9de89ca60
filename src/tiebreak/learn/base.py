"""What estimators of linear models have in common: checked data, one problem per model, fitted attributes, predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tiebreak.driver.result import Result
from tiebreak.engine import checks
from tiebreak.learn.fitting import Data, Task, run, scalar_loss, seed_of, small_indices, training_task
from tiebreak.learn.places import (
    Given,
    accuracy,
    are_many,
    brought,
    distinct,
    explained,
    is_in_place,
    lazily,
    lazy_rows,
    names_of,
    too_many,
)
from tiebreak.learn.samples import Samples, against_others
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square
from tiebreak.objectives.matrices import as_matrix
from tiebreak.problem import Problem
from tiebreak.rows.partitions import is_dask

FLOATS = (np.float64, np.float32)
SCORED_AT_ONCE = 1 << 22  # numbers of features that are multiplied by coefficients together


class Fit(NamedTuple):
    """A linear model that was fitted."""

    task: Task
    problem: Problem
    result: Result
    passes: int

    @property
    def model(self) -> tuple[np.ndarray, float]:
        """Coefficients and intercept."""
        return self.task.where.model(self.result.x)


class LinearEstimator(BaseEstimator):
    """The common part of the estimators of linear models."""

    coef_: np.ndarray
    intercept_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    _takes_many = False  # whether samples may stay in place

    def _features(self, X: Any) -> Any:
        """Return features like those of ``fit``, in C order or CSR; as float64, unless they are many."""
        checks.unmasked(X, "X")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS, order="C")
        return X if are_many(X) else _as_double(X)

    def _lazy_features(self, X: Any) -> Any:
        """Return features on Dask workers as a Dask array, after names and number were checked."""
        check_is_fitted(self)
        rows = lazy_rows(X)
        validate_data(self, X._meta if names_of(X) else np.zeros((1, rows.shape[1])), reset=False, skip_check_array=True)
        return rows

    def _training_data(self, X: Any, y: Any, sample_weight: Any, numeric: bool) -> Data:
        """Return the samples that ``fit`` is given, those of weight 0 with them."""
        checks.unmasked(X, "X")
        checks.unmasked(y, "y")
        given = brought(X, y, sample_weight)
        if is_in_place(given.X) and not self._takes_many:
            raise ValueError(too_many(self))
        data = self._checked(given, numeric)
        if given.names is not None:
            self.feature_names_in_ = np.array(given.names, dtype=object)
        return data

    def _checked(self, given: Given, numeric: bool) -> Data:
        X, y, sample_weight, _ = given
        if is_in_place(X):
            validate_data(self, np.zeros((1, X.shape[1])), skip_check_array=True)  # how many features there are
            return Data(X, y, sample_weight)
        kinds = FLOATS if self._takes_many else np.float64
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=kinds, order="C", y_numeric=numeric, ensure_min_samples=2
        )
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else checks.vector(sample_weight, "sample_weight", n)
        if weights.min() < 0.0 or weights.max() == 0.0:
            raise ValueError(f"`sample_weight` must be non-negative and not all zero, got a minimum of {weights.min():g}")
        targets = y.astype(np.float64) if numeric else y
        if self._takes_many and are_many(X):
            return Data(as_matrix(X, "X"), targets, None if sample_weight is None else weights)
        return Data(_as_double(X), targets, weights)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = self._features(X)
        step = max(1, SCORED_AT_ONCE // X.shape[1])  # float32 becomes float64
        return np.concatenate([X[low : low + step] @ self.coef_.T for low in range(0, X.shape[0], step)]) + self.intercept_


class OneModel(RegressorMixin, LinearEstimator):
    """A regression: one model."""

    def _data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        return self._training_data(X, y, sample_weight, numeric=True)

    def _scalar(self) -> Any:
        return scalar_loss(self.loss, self.delta, {"squared_error": Square, "huber": HuberLoss})

    def _parts(self, samples: Samples) -> list[Samples]:
        """Return what each model is fitted to."""
        return [samples]

    def _targets(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the targets of each model, for samples with these ones."""
        return [y]

    def _set(self, fits: list[Fit]) -> None:
        """Set the attributes of a fitted estimator."""
        (fit,) = fits
        self.coef_, self.intercept_ = fit.model
        self.result_, self.n_iter_ = replace(fit.result, problem=None), fit.passes
        self.certificate_, self.history_ = self.result_.certificate, self.result_.history

    @lazily
    def predict(self, X: Any) -> Any:
        """Return the predictions for some samples: for those on Dask workers a Dask array, of which nothing is computed."""
        return self._scores(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the share of the variance of the targets that is explained; Dask workers find it where samples are."""
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        return explained(self.predict(X), y, sample_weight)


class ModelPerClass(ClassifierMixin, LinearEstimator):
    """A classification: one model for two classes, else one per class, which tells it from all others."""

    def _data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        data = self._training_data(X, y, sample_weight, numeric=False)
        check_classification_targets(np.repeat(distinct(data.targets), 3) if is_dask(data.targets) else data.targets)
        return data

    def _scalar(self) -> Any:
        return scalar_loss(self.loss, None, {"log_loss": LogLoss, "squared_error": Square})

    def _parts(self, samples: Samples) -> list[Samples]:
        """Return what each model is fitted to: samples with targets −1 and 1."""
        self.classes_ = distinct(samples.train.targets)
        if self.classes_.size < 2:
            raise ValueError(f"`y` must hold at least two classes, got one class: {checks.shown(self.classes_[0])}")
        if samples.validation is not None:
            unknown = np.setdiff1d(distinct(samples.validation.targets), self.classes_)
            if unknown.size:
                raise ValueError(f"`y_val` must hold classes of `y` only, got {checks.shown(unknown[0])} too")
        return [samples.against_others(each) for each in self._positive]

    @property
    def _positive(self) -> np.ndarray:
        """The classes that models tell from others."""
        return self.classes_[1:] if self.classes_.size == 2 else self.classes_

    def _targets(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the targets of each model, for samples with these labels."""
        return [against_others(y, each) for each in self._positive]

    def _set(self, fits: list[Fit]) -> None:
        """Set the attributes of a fitted estimator."""
        coefs, intercepts = zip(*(fit.model for fit in fits), strict=True)
        self.coef_, self.intercept_, self.n_iter_ = np.stack(coefs), np.array(intercepts), max(fit.passes for fit in fits)
        results = [replace(fit.result, problem=None) for fit in fits]
        self.result_ = one_or_all(results)
        self.certificate_ = one_or_all([each.certificate for each in results])
        self.history_ = one_or_all([each.history for each in results])

    @lazily
    def decision_function(self, X: Any) -> Any:
        """Return the scores: for two classes one, positive where the second is predicted; for more, one per class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @lazily
    def predict(self, X: Any) -> Any:
        """Return the class of each sample: for those on Dask workers a Dask array, of which nothing is computed."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(lambda self: self.loss == "log_loss")
    @lazily
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class; of more than two, those of the models divided by their sum."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(log_expit(scores), axis=1)

    @available_if(lambda self: self.loss == "log_loss")
    @lazily
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the samples whose class is predicted; Dask workers find it where samples are."""
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        return accuracy(self.predict(X), y, sample_weight)


def _as_double(X: Any) -> Any:
    return small_indices(X) if scipy.sparse.issparse(X) else X.astype(np.float64, copy=False)


def one_or_all(values: list[Any]) -> Any:
    """Return the one value of a list, or the list if it has several."""
    return values[0] if len(values) == 1 else values


class Solver(LinearEstimator):
    """An estimator that fits its models by solving one problem for each: it says which second criterion they have."""

    _takes_many = True

    def _problem(self, task: Task, samples: Samples) -> Problem:
        raise NotImplementedError

    def _task(self, samples: Samples) -> Task:
        """Return the task of one model."""
        return training_task(self._scalar(), samples.train, self.fit_intercept)

    def _fits(self, samples: Samples) -> list[Fit]:
        """Fit all models."""
        return [self._fit(self._task(part), part) for part in self._parts(samples)]

    def _fit(self, task: Task, samples: Samples) -> Fit:
        problem = self._problem(task, samples)
        return Fit(task, problem, *run(self, problem, seed_of(self.random_state)))
