"""Linear models whose radius and near tie are chosen by cross-validation.

In each fold the models of the grid are fitted one after the other, each from the one before: from the smallest radius to the
largest, and at each radius from the tightest tie to the loosest one, for which proofs of g* and f* are passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from tiebreak.domains import projects
from tiebreak.engine import checks
from tiebreak.learn.base import Fit, LinearEstimator, ModelPerClass, OneModel
from tiebreak.learn.fitting import NORMS, SETS, Data, default_radius, run, seed_of
from tiebreak.learn.linear import TieBreakClassifier, TieBreaker, TieBreakRegressor
from tiebreak.learn.samples import Samples, groups_of, named
from tiebreak.objectives import linear_model
from tiebreak.problem import Problem

DECADES = 3.0  # of radii that are tried, up to the default radius of a model
FITTED = ("coef_", "intercept_", "n_iter_", "result_", "certificate_", "history_", "classes_")  # attributes of a model


class CrossValidated(LinearEstimator):
    """The common part of regressor and classifier: the search."""

    _kind_of_model: type[TieBreaker]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features: Any = None,
    ) -> Any:
        """Choose radius and near tie, and fit the model to all samples.

        Parameters
        ----------
        X : array or sparse matrix, (n_samples, n_features)
        y : array, (n_samples,)
            Targets, or labels of classes.
        sample_weight : array, (n_samples,), optional
            For the training loss and the scores; a fold counts as much as its samples do.
        X_val, y_val : arrays, optional
            Data for the second criterion, the same in all folds. The features must be transformed as ``X`` is: in a
            ``Pipeline``, by ``transform_input=["X_val"]``.
        sensitive_features : array, (n_samples,) or (n_samples, k), optional
            The groups that predictions should not depend on, as in :meth:`TieBreakRegressor.fit`.
        """
        data = self._data(X, y, sample_weight)
        X_val = None if X_val is None else named("X_val", self._features, X_val)
        sensitive = None if sensitive_features is None else groups_of(sensitive_features, data.weights.size)
        model = self._model()
        radii, keeps = self._radii(model, data), self._keeps()
        scorer: Any = held_out_loss
        if self.scoring is not None:
            scorer = Scorer(check_scoring(model, self.scoring), weighted=sample_weight is not None)
        splits = check_cv(self.cv, data.targets, classifier=is_classifier(self)).split(data.X, data.targets)
        used = [(train, test) for train, test in splits if data.weights[test].any()]
        folds = (
            Fold(data.rows(train), data.rows(test), None if sensitive is None else sensitive[train]) for train, test in used
        )
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(fold_scores)(clone(model), fold, X_val, y_val, radii, keeps, scorer) for fold in folds
        )
        scores = np.array(list(found))
        self._choose(radii, keeps, scores, [float(data.weights[test].sum()) for _, test in used])
        model.set_params(radius=self.radius_, keep=self.keep_, verbose=self.verbose)
        model.fit(data.X, data.targets, data.weights, X_val=X_val, y_val=y_val, sensitive_features=sensitive)
        for name in FITTED:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def _model(self) -> TieBreaker:
        """Return the estimator without search that has the same parameters."""
        own, names = self.get_params(deep=False), self._kind_of_model().get_params()
        shared = {name: own[name] for name in names if name in own and name not in ("random_state", "verbose")}
        return self._kind_of_model(**shared, random_state=seed_of(self.random_state))

    def _radii(self, model: TieBreaker, data: Data) -> list[float | None]:
        """Return the radii to try, in growing order; None stands for the size that a set has by itself."""
        named_set = isinstance(self.constraint, str) and self.constraint in SETS
        if np.ndim(self.radii):
            if not named_set:
                raise ValueError('`radii` are sizes of a set that is named, such as "l1": leave them out for other sets')
            values = checks.vector(self.radii, "radii")
            if values.min() <= 0.0:
                raise ValueError(f"`radii` must be positive, got {values.min():g}")
            return np.unique(values).tolist()
        count = checks.whole(self.radii, "radii")
        if not named_set or self.constraint not in NORMS:
            return [None]
        used = Samples(data.rows(np.flatnonzero(data.weights > 0.0)))
        largest = max(default_radius(self.constraint, model._task(part)) for part in model._parts(used))
        grid = largest * np.logspace(-DECADES, 0.0, count) if count > 1 else [largest]
        return [float(f"{radius:.3g}") for radius in grid]  # as people write them, and the same up to rounding of the data

    def _keeps(self) -> list[float]:
        """Return the shares to try, the tightest tie first."""
        values = np.atleast_1d(checks.vector(np.atleast_1d(self.keeps), "keeps"))
        if not (values.min() >= 0.0 and values.max() <= 1.0):
            raise ValueError(f"`keeps` must be shares from 0 to 1, such as 0.99, got {checks.shown(self.keeps)}")
        return np.unique(values)[::-1].tolist()

    def _choose(self, radii: Sequence[Any], keeps: Sequence[float], scores: np.ndarray, weights: list[float]) -> None:
        """Set what the search has found; of equal scores the smallest radius and the loosest tie wins."""
        points = [(radius, keep) for radius in radii for keep in keeps]
        means = np.average(scores, axis=0, weights=weights)
        best = min(range(len(points)), key=lambda k: (-means[k], k // len(keeps), points[k][1]))
        self.radius_, self.keep_ = points[best]
        self.best_score_ = float(means[best])
        self.cv_results_ = {
            "param_radius": np.array([radius for radius, _ in points]),
            "param_keep": np.array([keep for _, keep in points]),
            "params": [{"radius": radius, "keep": keep} for radius, keep in points],
            **{f"split{k}_test_score": row for k, row in enumerate(scores)},
            "mean_test_score": means,
            "std_test_score": np.sqrt(np.average((scores - means) ** 2, axis=0, weights=weights)),
            "rank_test_score": 1 + np.sum(means[:, None] < means[None, :], axis=1),
        }


class Fold(NamedTuple):
    """Samples to fit and samples to test a model with."""

    train: Data
    test: Data
    sensitive: np.ndarray | None  # features of those to fit


def fold_scores(
    model: TieBreaker, fold: Fold, X_val: Any, y_val: Any, radii: list[Any], keeps: list[float], scorer: Any
) -> list[float]:
    """Return the scores of a fold: for each radius, those of all shares."""
    model.set_params(keep=min(keeps))  # whether the intercept is a variable: of one near tie, then of all
    samples = model._samples(model._data(*fold.train), X_val, y_val, fold.sensitive)
    walks = [list(walk(model, part, radii, keeps)) for part in model._parts(samples)]
    scores = []
    for fits in zip(*walks, strict=True):
        model._set(list(fits))
        scores.append(scorer(model, fold.test))
    return scores


def walk(model: TieBreaker, samples: Samples, radii: list[Any], keeps: list[float]) -> Iterator[Fit]:
    """Fit one model at each point of the grid, from the one before."""
    task, start = model._task(samples), None
    for radius in radii:
        upper, lower, domain, *_ = model.set_params(radius=radius)._problem(task, samples)
        last: Any = None if start is None or not projects(domain) else domain.project(start)
        for keep in keeps:
            problem = Problem(upper, lower, domain, keep=keep)
            fit = Fit(task, problem, *run(model, problem, model.random_state, x0=last))
            last = replace(fit.result, problem=problem)
            start = fit.result.x if keep == keeps[0] else start
            yield fit


def held_out_loss(model: TieBreaker, test: Data) -> float:
    """Return minus the loss that a model was fitted by, of other samples; the mean, if there is one model per class."""
    scores, ones = model._scores(test.X).reshape(test.weights.size, -1), np.ones(1)
    losses = [
        linear_model(model._scalar(), column[:, None].copy(), targets, test.weights).value(ones)
        for column, targets in zip(scores.T, model._targets(test.targets), strict=True)
    ]
    return -float(np.mean(losses))


class Scorer(NamedTuple):
    """A score of scikit-learn's, with sample weights where there are some."""

    score: Any
    weighted: bool

    def __call__(self, model: TieBreaker, test: Data) -> float:
        weights = {"sample_weight": test.weights} if self.weighted else {}
        return float(self.score(model, test.X, test.targets, **weights))


class TieBreakRegressorCV(OneModel, CrossValidated):
    """:class:`TieBreakRegressor` with the radius of the set and the near tie chosen by cross-validation.

    Both shrink a model: the radius as the lasso does, by its set, and a near tie towards what is best for the second
    criterion, the smallest norm if there are no other data. All pairs of ``radii`` and ``keeps`` are tried, along paths on
    which each fit starts from the one before. The best pair is fitted to all samples.

    Parameters
    ----------
    loss, constraint, secondary, delta, validation_fraction, fit_intercept, method, max_iter, tol
        As in :class:`TieBreakRegressor`.
    radii : int or array
        The sizes of the set to try, or how many: from a thousandth of the default radius of :class:`TieBreakRegressor` to
        all of it, on a logarithmic grid. Sets that are not named have none to try, and a simplex only those that are given.
    keeps : float or array
        The values of ``keep`` to try.
    cv : int, splitter or iterable, optional
        The folds, as in scikit-learn: by default five.
    scoring : str or callable, optional
        What to choose by, as in scikit-learn; larger is better. By default minus the ``loss`` of held-out samples.
    n_jobs : int, optional
        How many folds to fit at the same time, as in scikit-learn.
    random_state : int, RandomState or None
        For the split of "validation" and "fairness", and for methods that sample.
    verbose : bool
        Whether to show a progress bar of the last fit.

    Attributes
    ----------
    radius_, keep_ : float
        What was chosen. Of equal scores the smallest radius and the smallest share win.
    best_score_ : float
        The mean score there, over all held-out samples: a fold counts as much as they weigh.
    cv_results_ : dict of arrays
        All scores, in the form of ``GridSearchCV``: "param_radius", "param_keep", "split0_test_score", "mean_test_score",
        "std_test_score", "rank_test_score" and more, which a DataFrame takes.
    coef_, intercept_, n_iter_, certificate_, history_, result_, n_features_in_, feature_names_in_
        As in :class:`TieBreakRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from tiebreak.learn import TieBreakRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 30))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(60)
    >>> model = TieBreakRegressorCV(radii=[0.5, 2.0, 8.0]).fit(X, y)
    >>> model.radius_
    2.0
    """

    _kind_of_model = TieBreakRegressor

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        constraint: Any = "l1",
        radii: Any = 10,
        keeps: Any = (0.999, 0.9),
        secondary: Any = "auto",
        delta: float = 1.0,
        validation_fraction: float = 0.25,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radii = radii
        self.keeps = keeps
        self.secondary = secondary
        self.delta = delta
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


class TieBreakClassifierCV(ModelPerClass, CrossValidated):
    """:class:`TieBreakClassifier` with the radius of the set and the near tie chosen by cross-validation.

    The same radius and the same share are chosen for the models of all classes.

    Parameters
    ----------
    loss, constraint, secondary, validation_fraction, fit_intercept, method, max_iter, tol
        As in :class:`TieBreakClassifier`.
    radii, keeps, cv, scoring, n_jobs, random_state, verbose
        As in :class:`TieBreakRegressorCV`; folds are stratified, and the loss of more than two classes is the mean over
        their models.

    Attributes
    ----------
    radius_, keep_, best_score_, cv_results_
        As in :class:`TieBreakRegressorCV`.
    classes_, coef_, intercept_, n_iter_, certificate_, history_, result_, n_features_in_, feature_names_in_
        As in :class:`TieBreakClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from tiebreak.learn import TieBreakClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 20))
    >>> y = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0.0, "yes", "no")
    >>> model = TieBreakClassifierCV(radii=[1.0, 4.0], keeps=0.99, scoring="accuracy").fit(X, y)
    >>> model.best_score_ > 0.8
    True
    """

    _kind_of_model = TieBreakClassifier

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        constraint: Any = "l1",
        radii: Any = 10,
        keeps: Any = (0.999, 0.9),
        secondary: Any = "auto",
        validation_fraction: float = 0.25,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radii = radii
        self.keeps = keeps
        self.secondary = secondary
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
