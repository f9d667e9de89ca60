"""The best fit of smallest norm."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from tiebreak.engine import checks
from tiebreak.learn.fitting import coefficient_criterion, run, scalar_loss, seed_of, training_problem
from tiebreak.learn.linear import LinearEstimator
from tiebreak.objectives import LeastSquares
from tiebreak.objectives.losses import HuberLoss, Square
from tiebreak.problem import Problem

SYMMETRY = 1e-10  # relative asymmetry that rounding may leave


class MinNormRegressor(RegressorMixin, LinearEstimator):
    """A linear regression: among the models of a set that fit the training data best, the one of smallest norm.

    The norm is √(wᵀ Q w) of the coefficients w. With ``constraint="l2"`` and a radius that is large enough, and Q the
    identity, it is the fit of NumPy's ``pinv``.

    Parameters
    ----------
    loss : {"squared_error", "huber"} or scalar loss
        What the training data are fitted by.
    constraint : {"l1", "l2", "box", "simplex"}, Domain or callable
        The set of the coefficients, as in :class:`TieBreakRegressor`.
    radius : float, optional
        The size of a set that is named. By default twice the norm of a least-squares fit, and 1 for a simplex.
    weight : array, (n_features,) or (n_features, n_features), optional
        The diagonal of Q, all positive, or Q itself, symmetric and positive definite. By default the identity.
    delta : float
        The residual at which the Huber loss turns from quadratic to linear.
    fit_intercept : bool
        Whether there is an intercept. It is neither constrained nor part of the norm.
    method, max_iter, tol, random_state, verbose
        As in :class:`TieBreakRegressor`.

    Attributes
    ----------
    coef_ : array, (n_features,)
    intercept_ : float
    n_iter_, certificate_, history_, result_
        As in :class:`TieBreakRegressor`; ``certificate_.upper`` is ½ wᵀ Q w.
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
        weight: Any = None,
        delta: float = 1.0,
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
        self.weight = weight
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MinNormRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix, (n_samples, n_features)
        y : array, (n_samples,)
        sample_weight : array, (n_samples,), optional
            Samples of weight 0 are ignored.
        """
        scalar = scalar_loss(self.loss, self.delta, {"squared_error": Square, "huber": HuberLoss})
        data = self._training_data(X, y, sample_weight, numeric=True)
        where, lower, domain = training_problem(self, scalar, data.rows(np.flatnonzero(data.weights > 0.0)))
        norm: Any = "l2" if self.weight is None else weighted_norm(self.weight, data.X.shape[1])
        problem = Problem(coefficient_criterion(norm, domain, where), lower, domain)
        self.result_, self.n_iter_ = run(self, problem, seed_of(self.random_state))
        self.coef_, self.intercept_ = where.model(self.result_.x)
        self.certificate_, self.history_ = self.result_.certificate, self.result_.history
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions for some samples."""
        return self._scores(X)


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
