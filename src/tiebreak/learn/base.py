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
from tiebreak.learn.samples import Samples, against_others
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square
from tiebreak.problem import Problem


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

    def _features(self, X: Any) -> Any:
        """Return features like those of ``fit``, as float64 in C order or CSR."""
        checks.unmasked(X, "X")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C")
        return small_indices(X) if scipy.sparse.issparse(X) else X

    def _training_data(self, X: Any, y: Any, sample_weight: Any, numeric: bool) -> Data:
        """Return the samples that ``fit`` is given, those of weight 0 with them."""
        checks.unmasked(X, "X")
        checks.unmasked(y, "y")
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", y_numeric=numeric, ensure_min_samples=2
        )
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else checks.vector(sample_weight, "sample_weight", n)
        if weights.min() < 0.0 or weights.max() == 0.0:
            raise ValueError(f"`sample_weight` must be non-negative and not all zero, got a minimum of {weights.min():g}")
        targets = y.astype(np.float64) if numeric else y
        return Data(small_indices(X) if scipy.sparse.issparse(X) else X, targets, weights)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._features(X) @ self.coef_.T + self.intercept_


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

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions for some samples."""
        return self._scores(X)


class ModelPerClass(ClassifierMixin, LinearEstimator):
    """A classification: one model for two classes, else one per class, which tells it from all others."""

    def _data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        data = self._training_data(X, y, sample_weight, numeric=False)
        check_classification_targets(data.targets)
        return data

    def _scalar(self) -> Any:
        return scalar_loss(self.loss, None, {"log_loss": LogLoss, "squared_error": Square})

    def _parts(self, samples: Samples) -> list[Samples]:
        """Return what each model is fitted to: samples with targets −1 and 1."""
        self.classes_ = np.unique(samples.train.targets)
        if self.classes_.size < 2:
            raise ValueError(f"`y` must hold at least two classes, got one class: {checks.shown(self.classes_[0])}")
        if samples.validation is not None:
            unknown = np.setdiff1d(samples.validation.targets, self.classes_)
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

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores: for two classes one, positive where the second is predicted; for more, one per class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(lambda self: self.loss == "log_loss")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class; of more than two, those of the models divided by their sum."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(log_expit(scores), axis=1)

    @available_if(lambda self: self.loss == "log_loss")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def one_or_all(values: list[Any]) -> Any:
    """Return the one value of a list, or the list if it has several."""
    return values[0] if len(values) == 1 else values


class Solver(LinearEstimator):
    """An estimator that fits its models by solving one problem for each: it says which second criterion they have."""

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
