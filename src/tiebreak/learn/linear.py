"""Linear models that fit the training data best and, among those, are best for a second criterion."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d, validate_data

from tiebreak.driver.following import frontier
from tiebreak.driver.frontier import Frontier
from tiebreak.engine import checks
from tiebreak.learn.base import Fit, LinearEstimator, ModelPerClass, OneModel, Solver, one_or_all
from tiebreak.learn.fitting import NORMS, Data, Task, coefficient_criterion, fairness, is_near, seed_of, training_task
from tiebreak.learn.noise import fits_noise
from tiebreak.learn.places import are_many, brought, is_in_place, shares
from tiebreak.learn.samples import Samples, groups_of, held_out, named, warn_if_far
from tiebreak.objectives import Objective
from tiebreak.objectives.matrices import as_matrix
from tiebreak.problem import Problem
from tiebreak.rows.partitions import is_dask

__all__ = ["LinearEstimator", "TieBreakClassifier", "TieBreakRegressor", "TieBreaker"]

SECONDARY = ("auto", "validation", "l2", "l1", "fairness")


class TieBreaker(Solver):
    """The common part of regressor and classifier: all but the targets."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features: Any = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, Dask array or data frame, (n_samples, n_features), or Store
            Those of more than 33 million numbers are used in place.
        y : array, (n_samples,), or name of a column of a store
            Targets, or labels of classes; left out for the target of a store.
        sample_weight : array, (n_samples,), or name of a column of a store, optional
            Samples of weight 0 are ignored.
        X_val, y_val : as X and y, optional
            Validation data, for the second criterion. The features must be transformed as ``X`` is: in a ``Pipeline``, by
            ``transform_input=["X_val"]``.
        sensitive_features : array, (n_samples,) or (n_samples, k), optional
            The groups that predictions should not depend on; of several columns each combination is a group.
        """
        wants_frontier = checks.flag(self.frontier, "frontier")
        samples = self._samples(self._data(X, y, sample_weight), X_val, y_val, sensitive_features)
        if X_val is not None and samples.validation is not None:
            warn_if_far(samples.train.X, samples.validation.X)
        fits = self._fits(samples)
        self._set(fits)
        self.__dict__.pop("frontier_", None)  # that of an earlier fit
        if wants_frontier:
            self.frontier_ = one_or_all([self._frontier(fit) for fit in fits])
        self._warn_of_noise(samples, fits)
        return self

    def _samples(self, data: Data, X_val: Any, y_val: Any, sensitive_features: Any) -> Samples:
        """Return the samples of positive weight, cut in what the second criterion needs."""
        kind, n = self._kind(X_val, y_val, sensitive_features), data.X.shape[0]
        if kind == "coef":
            for name, given, use in (("X_val", X_val, "validation"), ("sensitive_features", sensitive_features, "fairness")):
                if given is not None:
                    chosen = checks.shown(self.secondary)
                    raise ValueError(f'`{name}` is used only where `secondary` is "{use}", and it is {chosen}: leave it out')
            return Samples(data.used())
        if kind == "fairness":
            if is_dask(data.X):
                raise ValueError("`sensitive_features` need samples in memory or in a store, got a Dask collection as `X`")
            train, _ = self._split(data.used())
            return Samples(train, None, data.used(), groups_of(sensitive_features, n)[data.is_used()])
        if X_val is None:
            return Samples(*self._split(data.used()))
        return Samples(data.used(), self._validation_data(X_val, y_val))

    def _split(self, data: Data) -> tuple[Data, Data]:
        """Return samples to fit, and those that are held out."""
        fraction = checks.real(self.validation_fraction, "validation_fraction", above=0.0)
        if data.in_place:
            fitted, held = shares(data.X, data.weights, fraction, seed_of(self.random_state))
            return data._replace(weights=fitted), data._replace(weights=held)
        strata = data.targets if isinstance(self, ClassifierMixin) else np.zeros(data.weights.size)
        chosen = held_out(strata, fraction, check_random_state(self.random_state))
        return data.rows(~chosen), data.rows(chosen)

    def _validation_data(self, X_val: Any, y_val: Any) -> Data:
        """Return the validation data that ``fit`` is given."""
        checks.unmasked(y_val, "y_val")
        X_val, y_val, *_ = named("X_val", lambda X: brought(X, y_val, None), X_val)
        if is_in_place(X_val):
            validate_data(self, np.zeros((1, X_val.shape[1])), reset=False, skip_check_array=True)
            return Data(X_val, y_val, None)
        features, targets = named("X_val", self._features, X_val), named("y_val", column_or_1d, y_val)
        if targets.size != features.shape[0]:
            raise ValueError(
                f"`y_val` must have one entry for each of the {features.shape[0]} rows of `X_val`, got {targets.size}"
            )
        checks.finite(targets, "y_val")
        return Data(as_matrix(features, "X_val") if are_many(features) else features, targets, np.ones(targets.size))

    def _kind(self, X_val: Any, y_val: Any, sensitive_features: Any) -> str:
        """Return which second criterion is meant; "coef" if it is one of the coefficients alone."""
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

    def _task(self, samples: Samples) -> Task:
        eliminate = not is_near(self) or samples.validation is None  # other criteria do not depend on the intercept
        centred = samples.validation is None or not samples.validation.in_place
        return training_task(self._scalar(), samples.train, self.fit_intercept, eliminate, centred)

    def _problem(self, task: Task, samples: Samples) -> Problem:
        domain = task.domain(self.constraint, self.radius)
        if samples.validation is not None:
            upper: Any = task.loss(samples.validation)
        elif samples.all is not None and samples.groups is not None:
            upper = fairness(samples.all.X, samples.groups, samples.all.weights, task.where)
        else:
            upper = coefficient_criterion(self.secondary, domain, task.where)
        return Problem(upper, task.lower, domain, tolerance=self.tolerance, keep=self.keep)

    def _frontier(self, fit: Fit) -> Frontier:
        """Return the frontier of a model's problem."""
        return frontier(fit.problem.exact, x0=fit.result.x, progress=bool(self.verbose))

    def _warn_of_noise(self, samples: Samples, fits: list[Fit]) -> None:
        """Warn if a model fits noise and the user has chosen nothing that would prevent it."""
        alone = self.secondary == "auto" and samples.validation is None and samples.all is None
        default = isinstance(self.constraint, str) and self.constraint in NORMS and self.radius is None and not is_near(self)
        if alone and default and any(fits_noise(fit, self.fit_intercept) for fit in fits):
            n, d = samples.train.X.shape
            warnings.warn(
                f"{d} coefficients are fitted to {n} samples, and so is their noise: new samples are likely to be predicted"
                f" no better than by a constant. Let {type(self).__name__}CV choose `radius` and `keep`, or give one of them"
                ' (keep=0.9), validation data (`X_val`, `y_val`) or `secondary`; secondary="l2" is what is done now',
                UserWarning,
                stacklevel=3,
            )


class TieBreakRegressor(OneModel, TieBreaker):
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
        The size of a set that is named. By default twice the norm of a least-squares fit, and 1 for a simplex: if samples
        are noisy and features many, so much room fits the noise, and a warning says so.
        :class:`TieBreakRegressorCV` chooses a radius.
    tolerance : float
        Near ties: by how much the training loss may exceed the least one, in its own units. Models within it count as best.
    keep : float
        Near ties, in place of ``tolerance``: the share to keep of what the best fit gains over the model in the middle of
        the set, which is the constant one for balls and squared errors. ``keep=0.99`` gives up 1 % of it.
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
        As in :func:`tiebreak.minimize`. "auto" is its choice for squares of dense features over polytopes, for near ties
        and for samples that are used in place. Else, where the set has a projection, it is ``BiFISTA`` with a weight of the
        second criterion that falls to a millionth over ``max_iter`` passes.
    max_iter : int
        Passes over the training data and those of the second criterion.
    tol : float or (float, float), optional
        Stop as soon as both gaps, or that of the second criterion and that of the training loss, are proven to be at most
        this, in units of the losses; a ``ConvergenceWarning`` tells if they are not after ``max_iter`` passes. By default
        all passes are made.
    frontier : bool
        Whether to compute the frontier of near ties as well, what the second criterion gains for a range of tolerances.
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
    frontier_ : Frontier
        What :func:`tiebreak.frontier` returns, if ``frontier`` is true. It holds the data, and so does a pickle of it.
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
        tolerance: float = 0.0,
        keep: float = 1.0,
        secondary: Any = "auto",
        delta: float = 1.0,
        validation_fraction: float = 0.25,
        fit_intercept: bool = True,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        frontier: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.tolerance = tolerance
        self.keep = keep
        self.secondary = secondary
        self.delta = delta
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.frontier = frontier
        self.random_state = random_state
        self.verbose = verbose


class TieBreakClassifier(ModelPerClass, TieBreaker):
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
    tolerance, keep : float
        Near ties, as in :class:`TieBreakRegressor`. For "log_loss" what a fit gains is counted from the constant model.
    secondary : {"auto", "validation", "l2", "l1", "fairness"}, callable or Objective
        The second criterion, as in :class:`TieBreakRegressor`. "fairness" is the squared covariance of the scores, that is
        of the signed distances from the decision boundary, with ``sensitive_features``.
    validation_fraction : float
        The share of the samples of each class that is split off as validation data if there are none, or for "fairness".
    fit_intercept : bool
        Whether there is an intercept. It is neither constrained nor part of a norm.
    method, max_iter, tol, frontier, random_state, verbose
        As in :class:`TieBreakRegressor`.

    Attributes
    ----------
    classes_ : array, (n_classes,)
    coef_ : array, (1, n_features) or (n_classes, n_features)
    intercept_ : array, (1,) or (n_classes,)
    n_iter_ : int
        Passes made, the most of all models.
    certificate_, history_, result_, frontier_
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
        tolerance: float = 0.0,
        keep: float = 1.0,
        secondary: Any = "auto",
        validation_fraction: float = 0.25,
        fit_intercept: bool = True,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        frontier: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.tolerance = tolerance
        self.keep = keep
        self.secondary = secondary
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.frontier = frontier
        self.random_state = random_state
        self.verbose = verbose
