"""The best fit of smallest norm."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tiebreak.engine import checks
from tiebreak.learn.base import Fit, ModelPerClass, OneModel, Solver
from tiebreak.learn.fitting import SETS, Task, coefficient_criterion, is_near, training_task
from tiebreak.learn.samples import Samples
from tiebreak.objectives import LeastSquares
from tiebreak.objectives.losses import LogLoss
from tiebreak.objectives.matrices import Rows
from tiebreak.problem import Problem

SYMMETRY = 1e-10  # relative asymmetry that rounding may leave


class LeastNorm(Solver):
    """The common part of regressor and classifier: all but the targets."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, Dask array or data frame, (n_samples, n_features), or Store
            Those of more than 33 million numbers are used in place.
        y : array, (n_samples,), or name of a column of a store
            Targets, or labels of classes; left out for the target of a store.
        sample_weight : array, (n_samples,), or name of a column of a store, optional
            Samples of weight 0 are ignored.
        """
        data = self._data(X, y, sample_weight)
        fits = self._fits(Samples(data.used()))
        self._set(fits)
        self._warn_if_separated(fits)
        return self

    def _task(self, samples: Samples) -> Task:
        eliminate = not (is_near(self) and checks.flag(self.penalize_intercept, "penalize_intercept"))
        return training_task(self._scalar(), samples.train, self.fit_intercept, eliminate)

    def _problem(self, task: Task, samples: Samples) -> Problem:
        whole = checks.flag(self.penalize_intercept, "penalize_intercept") and self.fit_intercept
        domain = task.domain(self.constraint, self.radius, whole_norm=whole)
        norm: Any = "l2" if self.weight is None else weighted_norm(self.weight, task.data.X.shape[1])
        upper = coefficient_criterion(norm, domain, task.where)
        if whole:
            upper = upper + squared_intercept(task)
        return Problem(upper, task.lower, domain, tolerance=self.tolerance, keep=self.keep)

    def _warn_if_separated(self, fits: list[Fit]) -> None:
        """Warn if a logistic loss has no minimiser without a set, and only the default size of the set makes one."""
        if self.radius is not None or not (isinstance(self.constraint, str) and self.constraint in SETS):
            return
        for fit in fits:
            if not isinstance(fit.task.scalar, LogLoss) or fit.problem.is_near:
                continue
            if min(fit.task.lower.rows.passes(_least_margin_of_block, fit.result.x, width=1.0)) > 0.0:
                warnings.warn(
                    "the features separate the classes: the logistic loss falls without end as coefficients grow, and the"
                    " model lies on the boundary of a set of arbitrary size. Give keep=0.99, and the model of smallest norm"
                    " that keeps 99 % of the fit is found, or `radius`",
                    UserWarning,
                    stacklevel=3,
                )
                return


class MinNormRegressor(OneModel, LeastNorm):
    """A linear regression: among the models of a set that fit the training data best, the one of smallest norm.

    The norm is √(wᵀ Q w) of the coefficients w. With ``constraint="l2"`` and a radius that is large enough, and Q the
    identity, it is the fit of NumPy's ``pinv``, for centred data; with ``penalize_intercept=True`` it is that of features
    with a column of ones.

    Parameters
    ----------
    loss : {"squared_error", "huber"} or scalar loss
        What the training data are fitted by.
    constraint : {"l1", "l2", "box", "simplex"}, Domain or callable
        The set of the coefficients, as in :class:`TieBreakRegressor`.
    radius : float, optional
        The size of a set that is named. By default twice the norm of a least-squares fit, and 1 for a simplex.
    tolerance, keep : float
        Near ties, as in :class:`TieBreakRegressor`: the smallest norm of a model that is nearly as good as the best one.
    weight : array, (n_features,) or (n_features, n_features), optional
        The diagonal of Q, all positive, or Q itself, symmetric and positive definite. By default the identity.
    delta : float
        The residual at which the Huber loss turns from quadratic to linear.
    fit_intercept : bool
        Whether there is an intercept. The set does not constrain it.
    penalize_intercept : bool
        Whether the intercept c is part of the norm, which is √(wᵀ Q w + c²) then.
    method, max_iter, tol, random_state, verbose
        As in :class:`TieBreakRegressor`.

    Attributes
    ----------
    coef_ : array, (n_features,)
    intercept_ : float
    n_iter_, certificate_, history_, result_
        As in :class:`TieBreakRegressor`; ``certificate_.upper`` is half the squared norm.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    The solution of w₁ + w₂ = 1 of smallest norm, and that of smallest w₁² + 4 w₂²:

    >>> from tiebreak.learn import MinNormRegressor
    >>> X, y = [[1.0, 1.0], [2.0, 2.0]], [1.0, 2.0]
    >>> MinNormRegressor(fit_intercept=False).fit(X, y).coef_.round(2)
    array([0.5, 0.5])
    >>> MinNormRegressor(weight=[1.0, 4.0], fit_intercept=False).fit(X, y).coef_.round(2)
    array([0.8, 0.2])
    """

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        constraint: Any = "l2",
        radius: float | None = None,
        tolerance: float = 0.0,
        keep: float = 1.0,
        weight: Any = None,
        delta: float = 1.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.tolerance = tolerance
        self.keep = keep
        self.weight = weight
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


class MinNormClassifier(ModelPerClass, LeastNorm):
    """A linear classifier: among the models of a set that fit the training data best, the one of smallest norm.

    If features depend on each other, as those of one-hot codes do, many models have the least logistic loss, and this is the
    one that does not depend on how a solver came to it.

    If the features separate the classes, as they do if there are more of them than samples, the loss has no minimiser: it
    falls without end as the coefficients grow. Within a set there is one, on its boundary, and a warning says that the size
    of the set decides. Near ties make the problem well posed, whatever the set: ``keep=0.99`` finds the smallest model that
    keeps 99 % of the fit, and its direction comes to that of the largest margin as ``keep`` comes to 1.

    With more than two classes there is one model per class, which tells it from all others and is fitted by itself.

    Parameters
    ----------
    loss : {"log_loss", "squared_error"} or scalar loss
        What the training data are fitted by; targets are −1 and 1. Probabilities need "log_loss".
    constraint : {"l1", "l2", "box", "simplex"}, Domain or callable
        The set of the coefficients, as in :class:`TieBreakRegressor`.
    radius : float, optional
        The size of a set that is named, by default as in :class:`TieBreakClassifier`.
    tolerance, keep : float
        Near ties, as in :class:`TieBreakClassifier`: the smallest norm of a model that is nearly as good as the best one.
    weight, fit_intercept, penalize_intercept
        As in :class:`MinNormRegressor`.
    method, max_iter, tol, random_state, verbose
        As in :class:`TieBreakRegressor`.

    Attributes
    ----------
    classes_ : array, (n_classes,)
    coef_ : array, (1, n_features) or (n_classes, n_features)
    intercept_ : array, (1,) or (n_classes,)
    n_iter_, certificate_, history_, result_
        As in :class:`TieBreakClassifier`; ``certificate_.upper`` is half the squared norm.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    Three samples of the classes at −1 and 1 with one feature twice, of which each takes a half:

    >>> from tiebreak.learn import MinNormClassifier
    >>> X, y = [[-1.0, -1.0], [-1.0, -1.0], [1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]], [0, 0, 1, 1, 1, 0]
    >>> MinNormClassifier().fit(X, y).coef_.round(4)  # the log odds, log 2, in halves
    array([[0.3466, 0.3466]])
    """

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        constraint: Any = "l1",
        radius: float | None = None,
        tolerance: float = 0.0,
        keep: float = 1.0,
        weight: Any = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.tolerance = tolerance
        self.keep = keep
        self.weight = weight
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


def _least_margin_of_block(rows: Rows, low: int, high: int, x: np.ndarray) -> float:
    """Return the least of target_i ⟨row i, x⟩ of some rows, as far as they have weight."""
    margins = rows.targets[low:high] * rows.matrix.between(low, high).products(x)
    return float(np.min(margins, initial=np.inf, where=rows.weights[low:high] > 0.0))


def squared_intercept(task: Task) -> Any:
    """Return half the squared intercept, as a function of the variables.

    The intercept is c = v − ⟨m, w⟩, with m the means of the features, and v the last variable or the mean target.
    """
    where = task.where
    row = np.append(-where.mean, 1.0) if where.column else -where.mean
    return LeastSquares(row[None, :], [0.0 if where.column else -where.offset])


def weighted_norm(weight: Any, d: int) -> Any:
    """Return ½ wᵀ Q w, for Q or its diagonal, as ½ ‖Rw‖² with Q = RᵀR."""
    Q = np.asarray(checks.numbers(weight, "weight"), dtype=np.float64)
    wanted = f"{d} positive numbers, or a symmetric positive definite matrix of shape ({d}, {d})"
    if Q.shape not in ((d,), (d, d)):
        raise ValueError(f"`weight` must be {wanted}, got an array of shape {Q.shape}")
    checks.finite(Q, "weight")
    if Q.ndim == 1:
        if Q.min() <= 0.0:
            raise ValueError(f"`weight` must be {wanted}, got {Q.min():g} at [{Q.argmin()}]")
        root = np.diag(np.sqrt(Q))
    else:
        if np.abs(Q - Q.T).max() > SYMMETRY * np.abs(Q).max():
            raise ValueError(f"`weight` must be {wanted}, got one that is not symmetric")
        try:
            root = np.linalg.cholesky(Q).T
        except np.linalg.LinAlgError:
            raise ValueError(f"`weight` must be {wanted}, got one that is not positive definite") from None
    return float(d) * LeastSquares(np.ascontiguousarray(root), np.zeros(d))  # d times a mean over d rows
