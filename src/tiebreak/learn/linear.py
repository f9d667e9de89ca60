"""Linear models that fit the training data best and, among those, are best for a second criterion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from tiebreak.engine import checks
from tiebreak.learn.fitting import (
    Data,
    coefficient_criterion,
    fairness,
    on_rows,
    run,
    scalar_loss,
    seed_of,
    small_indices,
    training_problem,
)
from tiebreak.objectives import Objective
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square
from tiebreak.problem import Problem

SECONDARY = ("auto", "validation", "l2", "l1", "fairness")


class LinearEstimator(BaseEstimator):
    """The common part of the estimators of linear models."""

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


def _named(name: str, check: Callable[[Any], Any], value: Any) -> Any:
    """Return what a check makes of an argument; if it raises, say of which."""
    try:
        return check(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}`: {error}") from error


class Samples(NamedTuple):
    """What a model is fitted to, and what the secondary criterion needs."""

    train: Data
    validation: Data | None = None  # if it is the loss there
    all: Data | None = None  # if it is fairness
    groups: np.ndarray | None = None  # of all these


class TieBreaker(LinearEstimator):
    """The common part of regressor and classifier: all but the targets."""

    def _samples(self, data: Data, X_val: Any, y_val: Any, sensitive_features: Any) -> Samples:
        """Return the samples of positive weight, cut in what the secondary criterion needs."""
        kind, n = self._kind(X_val, y_val, sensitive_features), data.weights.size
        used = np.flatnonzero(data.weights > 0.0)
        data = data.rows(used)
        if kind == "coef":
            for name, given, use in (("X_val", X_val, "validation"), ("sensitive_features", sensitive_features, "fairness")):
                if given is not None:
                    chosen = checks.shown(self.secondary)
                    raise ValueError(f'`{name}` is used only where `secondary` is "{use}", and it is {chosen}: leave it out')
            return Samples(data)
        if kind == "fairness" or X_val is None:
            fraction = checks.real(self.validation_fraction, "validation_fraction", above=0.0)
            strata = data.targets if isinstance(self, ClassifierMixin) else np.zeros(used.size)
            held = _held_out(strata, fraction, check_random_state(self.random_state))
            if kind == "validation":
                return Samples(data.rows(~held), data.rows(held))
            return Samples(data.rows(~held), None, data, _groups(sensitive_features, n)[used])
        checks.unmasked(y_val, "y_val")
        features, targets = _named("X_val", self._features, X_val), _named("y_val", column_or_1d, y_val)
        if targets.size != features.shape[0]:
            raise ValueError(
                f"`y_val` must have one entry for each of the {features.shape[0]} rows of `X_val`, got {targets.size}"
            )
        checks.finite(targets, "y_val")
        return Samples(data, Data(features, targets, np.ones(targets.size)))

    def _kind(self, X_val: Any, y_val: Any, sensitive_features: Any) -> str:
        """Return which secondary criterion is meant; "coef" if it is one of the coefficients alone."""
        if (X_val is None) != (y_val is None):
            missing, given = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
            raise ValueError(f"`{missing}` must be given where `{given}` is: both make the validation data")
        kind = self.secondary
        if isinstance(kind, Objective) or (callable(kind) and not isinstance(kind, type)) or kind in ("l1", "l2"):
            return "coef"
        if not isinstance(kind, str) or kind not in SECONDARY:
            names = ", ".join(f'"{each}"' for each in SECONDARY)
            raise ValueError(f"`secondary` must be one of {names}, a function or an objective, got {checks.shown(kind)}")
        if kind == "auto":
            if X_val is not None and sensitive_features is not None:
                raise ValueError(
                    '`secondary` must be "validation" or "fairness" if `fit` gets data for both, `X_val` and '
                    '`sensitive_features`, got "auto"'
                )
            kind = "validation" if X_val is not None else "fairness" if sensitive_features is not None else "coef"
        if kind == "fairness" and sensitive_features is None:
            raise ValueError('`sensitive_features` must be given to `fit` where `secondary` is "fairness", got None')
        return kind

    def _solve(self, scalar: Any, samples: Samples) -> Any:
        """Fit one model; return coefficients, intercept, result and passes."""
        data = samples.train
        where, lower, domain = training_problem(self, scalar, data)
        if samples.validation is not None:
            upper: Any = on_rows(scalar, where.matrix(samples.validation.X), samples.validation, where)
        elif samples.all is not None and samples.groups is not None:
            upper = fairness(samples.all.X, samples.groups, samples.all.weights, where)
        else:
            upper = coefficient_criterion(self.secondary, domain, where)
        result, passes = run(self, Problem(upper, lower, domain), seed_of(self.random_state))
        return (*where.model(result.x), result, passes)


class TieBreakRegressor(RegressorMixin, TieBreaker):
    """A linear regression: among the models that fit the training data best, the one that is best for a second criterion.

    There may be many best fits if there are more features than samples, or if features depend on each other. The second
    criterion chooses among them. If there is only one, it is found, and the second criterion has nothing to say.

    Parameters
    ----------
    loss : {"squared_error", "huber"} or scalar loss
        What the training data are fitted by. A scalar loss of your own is registered as in ``docs/extending.md``.
    constraint : {"l1", "l2", "box", "simplex"}, Domain or callable
        The set of the coefficients: a ball of a norm, with "box" that of the largest absolute value; "simplex", coefficients
        that are not negative and have the sum ``radius``; a set such as ``tiebreak.GroupBall(groups, 3.0)``; or a function
        that returns a set for a number of features. The intercept is free.
    radius : float, optional
        The size of a set that is named. By default twice the norm of a least-squares fit, and 1 for a simplex.
    secondary : {"auto", "validation", "l2", "l1", "fairness"}, callable or Objective
        The second criterion. "validation" is the loss on the validation data that ``fit`` is given, or else on a part of the
        training data, which is split off. "l2" and "l1" are norms of the coefficients, the latter slightly smoothed.
        "fairness" is the squared covariance of predictions with ``sensitive_features``: the model is fitted to a part of the
        samples and the covariance is taken over all, because all best fits agree on the samples that they are fitted to. A
        function returns the value and the gradient for given coefficients; an objective is one of the coefficients. "auto"
        is "validation" or "fairness" if ``fit`` is given data for it, else "l2". For a function, which might not be convex,
        no bound of its gap is proven; an objective ``tiebreak.FiniteSum(..., convex=True, lipschitz=...)`` has one.
    delta : float
        The residual at which the Huber loss turns from quadratic to linear.
    validation_fraction : float
        The share of the samples that is split off as validation data if there are none, or for "fairness".
    fit_intercept : bool
        Whether there is an intercept. It is neither constrained nor part of a norm.
    method : str or Method
        As in :func:`tiebreak.minimize`. "auto" is ``BiFISTA`` with a weight of the second criterion that falls to a
        millionth over ``max_iter`` passes, where the set has a projection, else the choice of ``minimize``.
    max_iter : int
        Passes over the training data and those of the second criterion.
    tol : float or (float, float), optional
        Stop as soon as both gaps, or that of the second criterion and that of the training loss, are proven to be at most
        this, in units of the losses; a ``ConvergenceWarning`` tells if they are not after ``max_iter`` passes. By default
        all passes are made.
    random_state : int, RandomState or None
        For the split and for methods that sample.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    coef_ : array, (n_features,)
    intercept_ : float
    n_iter_ : int
        Passes made.
    certificate_ : Certificate
        Both values, and proven bounds on both gaps: ``upper`` is the second criterion, ``lower`` the training loss.
    history_ : History
        The values and bounds during the run.
    result_ : Result
        All that the run returned, without the problem, which holds the data.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    Of the fits of one sample, the one that fits another sample best:

    >>> from tiebreak.learn import TieBreakRegressor
    >>> model = TieBreakRegressor(constraint="l2", radius=2.0, fit_intercept=False)
    >>> model = model.fit([[1.0, 1.0], [2.0, 2.0]], [1.0, 2.0], X_val=[[1.0, -1.0]], y_val=[0.5])
    >>> model.coef_.round(2)
    array([0.75, 0.25])
    """

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        constraint: Any = "l1",
        radius: float | None = None,
        secondary: Any = "auto",
        delta: float = 1.0,
        validation_fraction: float = 0.25,
        fit_intercept: bool = True,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.secondary = secondary
        self.delta = delta
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features: Any = None,
    ) -> TieBreakRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix, (n_samples, n_features)
        y : array, (n_samples,)
        sample_weight : array, (n_samples,), optional
            Samples of weight 0 are ignored.
        X_val, y_val : arrays, optional
            Validation data, for the second criterion.
        sensitive_features : array, (n_samples,) or (n_samples, k), optional
            The groups that predictions should not depend on; of several columns each combination is a group.
        """
        scalar = scalar_loss(self.loss, self.delta, {"squared_error": Square, "huber": HuberLoss})
        data = self._training_data(X, y, sample_weight, numeric=True)
        samples = self._samples(data, X_val, y_val, sensitive_features)
        self.coef_, self.intercept_, self.result_, self.n_iter_ = self._solve(scalar, samples)
        self.certificate_, self.history_ = self.result_.certificate, self.result_.history
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions for some samples."""
        return self._scores(X)


class TieBreakClassifier(ClassifierMixin, TieBreaker):
    """A linear classifier: among the models that fit the training data best, the one that is best for a second criterion.

    With more than two classes there is one model per class, which tells it from all others and is fitted by itself.

    Parameters
    ----------
    loss : {"log_loss", "squared_error"} or scalar loss
        What the training data are fitted by; targets are −1 and 1. Probabilities need "log_loss".
    constraint : {"l1", "l2", "box", "simplex"}, Domain or callable
        The set of the coefficients, as in :class:`TieBreakRegressor`.
    radius : float, optional
        The size of a set that is named. By default ten times the norm of a least-squares fit of the targets −1 and 1 (twice
        for losses other than "log_loss"), and 1 for a simplex.
    secondary : {"auto", "validation", "l2", "l1", "fairness"}, callable or Objective
        The second criterion, as in :class:`TieBreakRegressor`. "fairness" is the squared covariance of the scores, that is
        of the signed distances from the decision boundary, with ``sensitive_features``.
    validation_fraction : float
        The share of the samples of each class that is split off as validation data if there are none, or for "fairness".
    fit_intercept : bool
        Whether there is an intercept. It is neither constrained nor part of a norm.
    method, max_iter, tol, random_state, verbose
        As in :class:`TieBreakRegressor`.

    Attributes
    ----------
    classes_ : array, (n_classes,)
    coef_ : array, (1, n_features) or (n_classes, n_features)
    intercept_ : array, (1,) or (n_classes,)
    n_iter_ : int
        Passes made, the most of all models.
    certificate_, history_, result_
        As in :class:`TieBreakRegressor`; for more than two classes lists, one entry per class.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from tiebreak.learn import TieBreakClassifier
    >>> model = TieBreakClassifier(radius=2.0).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], ["no", "no", "yes"])
    >>> model.predict([[-1.0, 1.0], [3.0, 1.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        constraint: Any = "l1",
        radius: float | None = None,
        secondary: Any = "auto",
        validation_fraction: float = 0.25,
        fit_intercept: bool = True,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.secondary = secondary
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features: Any = None,
    ) -> TieBreakClassifier:
        """Fit the model; the parameters are those of :meth:`TieBreakRegressor.fit`, with labels as ``y`` and ``y_val``."""
        scalar = scalar_loss(self.loss, None, {"log_loss": LogLoss, "squared_error": Square})
        data = self._training_data(X, y, sample_weight, numeric=False)
        check_classification_targets(data.targets)
        samples = self._samples(data, X_val, y_val, sensitive_features)
        self.classes_ = np.unique(samples.train.targets)
        if self.classes_.size < 2:
            raise ValueError(f"`y` must hold at least two classes, got one class: {checks.shown(self.classes_[0])}")
        if samples.validation is not None:
            unknown = np.setdiff1d(samples.validation.targets, self.classes_)
            if unknown.size:
                raise ValueError(f"`y_val` must hold classes of `y` only, got {checks.shown(unknown[0])} too")
        positive = self.classes_[1:] if self.classes_.size == 2 else self.classes_
        coefs, intercepts, results, passes = zip(
            *(self._solve(scalar, _one_against_others(samples, each)) for each in positive), strict=True
        )
        self.coef_, self.intercept_, self.n_iter_ = np.stack(coefs), np.array(intercepts), max(passes)
        self.result_ = results[0] if len(results) == 1 else list(results)
        self.certificate_ = results[0].certificate if len(results) == 1 else [each.certificate for each in results]
        self.history_ = results[0].history if len(results) == 1 else [each.history for each in results]
        return self

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


def _one_against_others(samples: Samples, label: Any) -> Samples:
    def signed(data: Data) -> Data:
        return data._replace(targets=np.where(data.targets == label, 1.0, -1.0))

    validation = None if samples.validation is None else signed(samples.validation)
    return samples._replace(train=signed(samples.train), validation=validation)


def _groups(sensitive_features: Any, n: int) -> np.ndarray:
    """Return the group of each sample, as a text."""
    array = np.asarray(sensitive_features)
    if array.ndim not in (1, 2) or array.shape[0] != n:
        raise ValueError(
            f"`sensitive_features` must have one row for each of the {n} samples, got an array of shape {array.shape}"
        )
    return np.array([", ".join(map(str, row)) for row in array.reshape(n, -1)])


def _held_out(strata: np.ndarray, fraction: float, rng: np.random.RandomState) -> np.ndarray:
    """Return which samples are held out: a fraction of each stratum, but never a whole one, and at least one of all."""
    if fraction >= 1.0:
        raise ValueError(f"`validation_fraction` must be below 1, got {fraction:g}")
    members = [np.flatnonzero(strata == each) for each in np.unique(strata)]
    taken = np.array([min(round(fraction * each.size), each.size - 1) for each in members])
    largest = max(range(len(members)), key=lambda k: members[k].size)
    if not taken.any():
        if members[largest].size == 1:
            raise ValueError("`X_val` and `y_val` must be given: no class has two samples, of which one could be held out")
        taken[largest] = 1
    held = np.zeros(strata.size, dtype=bool)
    for each, count in zip(members, taken, strict=True):
        held[rng.permutation(each)[:count]] = True
    return held
