"""A classifier that is nearly as good as the best one and, among those, tells least of sensitive attributes."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit
from scipy.stats import entropy
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from tiebreak.active.scope import fits
from tiebreak.driver.minimize import minimize
from tiebreak.driver.records import Snapshot
from tiebreak.driver.result import Counts, Result, Status
from tiebreak.engine import checks
from tiebreak.learn.base import LinearEstimator
from tiebreak.learn.fitting import Coordinates, seed_of, training_problem
from tiebreak.learn.probabilities import descend, squared_covariances
from tiebreak.learn.sensitive import Contrasts, attributes_of, contrasts
from tiebreak.methods import ActiveSet
from tiebreak.methods.fitting import first_points
from tiebreak.objectives import LeastSquares, OnPart
from tiebreak.objectives.losses import LogLoss
from tiebreak.problem import Problem
from tiebreak.proofs import Certificate, certify

CRITERIA = ("demographic_parity", "equalized_odds")
MEASURES = ("score", "probability")
LEAST_LOSS = 1e-3  # share of the loss of a constant prediction that a least loss counts as, if it is smaller
PLAIN_SHARE = 1e-4  # share of the increase that may be allowed by which the least loss may be in doubt
ROOM = 1e-9  # first share of the way back to the plain model, where an answer is not proven to keep the promise
WIDENING = 100.0  # factor of that share from one attempt to the next


class Task(NamedTuple):
    """What is solved, and how its variables become a model."""

    upper: Any  # the unfairness
    convex: Problem  # with that of scores, and exact ties
    rows: Any  # whose products with the variables are the scores
    where: Coordinates
    contrasts: Contrasts
    small: float  # a least loss below this counts as this

    @property
    def problem(self) -> Problem:
        """With exact ties."""
        return Problem(self.upper, *self.convex[1:])


class FairClassifier(ClassifierMixin, LinearEstimator):
    """A linear classifier: of those whose training loss is nearly least, the one that tells least of sensitive attributes.

    The loss is the mean logistic loss. With g* its least value over the set of models, the classifier minimises unfairness
    among the models of loss at most g* + ε, where ε is ``max_loss_increase`` times a proven floor of g*. That its loss is at
    most (1 + ``max_loss_increase``) g* is *proven*, and so is a floor of the unfairness of all models with a loss that low.
    Both are about the training samples. Where samples can be separated, g* is 0 or nearly so, and there is no share of it to
    give: a g* below a thousandth of the loss of a constant prediction counts as that thousandth.

    Unfairness is the sum of squared covariances of scores (or probabilities) with the attributes, which are centred and have
    standard deviation 1. An attribute is membership in a group, or a number such as an age.

    Parameters
    ----------
    max_loss_increase : float
        By how much the training loss may exceed the least one, as a share of it: 0.01 for one per cent. 0 allows the models
        of least loss only.
    criterion : {"demographic_parity", "equalized_odds"}
        What covariances are taken over: all samples, so that decisions do not tell of an attribute; or the samples of each
        class, so that errors do not.
    measure : {"score", "probability"}
        What covariances are those of. Scores, the values of ``decision_function``, make the problem convex: no model of the
        set with that little loss is less unfair, and that is proven. Probabilities are nearer to decisions, because scores
        far from 0 count little. Their problem is not convex: a model is found from which no small change is fairer, as a
        rule, and only the loss is proven.
    sensitive_kind : {"auto", "groups", "continuous"} or list of these
        Whether columns of ``sensitive_features`` hold groups or numbers; a list has one entry per column. With "auto"
        texts, truth values, categories and whole numbers with at most 20 different values are groups, as are columns with
        two different values, and all other numbers are continuous.
    constraint : {"l1", "l2", "box", "simplex"}, Domain or callable
        The set of the coefficients, as in :class:`TieBreakRegressor`. The intercept is free. Balls of the Euclidean norm and
        other sets with curved sides take longer, and floors of unfairness are less sharp there.
    radius : float, optional
        The size of a set that is named. By default ten times the norm of a least-squares fit of the targets −1 and 1, and 1
        for a simplex.
    fit_intercept : bool
        Whether there is an intercept. It is neither constrained nor does unfairness depend on it.
    method : str or Method
        As in :func:`tiebreak.minimize`.
    max_iter : int
        Passes over the training data, for the least loss and for the least unfairness each; of probabilities, for each of
        at most 20 convex problems that replace theirs.
    random_state : int, RandomState or None
        For methods that sample.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array, (2,)
    coef_ : array, (1, n_features)
    intercept_ : array, (1,)
    loss_, plain_loss_ : float
        The training loss of this model, and of a model of least loss, fitted without regard to fairness.
    loss_floor_ : float
        Proven: no model of the set has a smaller training loss.
    loss_increase_ : float
        Proven: the training loss exceeds the least one by at most this share of it (of what it counts as, if it is nearly
        0). It is at most ``max_loss_increase``, or a ``ConvergenceWarning`` was given.
    unfairness_, plain_unfairness_ : float
        The sum of squared covariances of this model and of the plain one.
    unfairness_floor_ : float
        Proven: no model whose training loss is at most g* + ε is less unfair than this. 0 for probabilities.
    covariances_, plain_covariances_ : array, (number of covariances,)
        The covariances themselves.
    covariance_names_ : list of str
        Their attributes; for two groups there is one, membership in the second, and for more one per group.
    plain_coef_, plain_intercept_ : array, (1, n_features) and (1,)
        The plain model.
    n_iter_ : int
        Passes made.
    certificate_, history_, result_
        As in :class:`TieBreakRegressor`: ``upper`` is the unfairness, ``lower`` the training loss. The history is that of
        the last convex problem, if there were several.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from tiebreak.learn import FairClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 400)
    >>> X = rng.standard_normal((400, 5)) + 0.5 * (sex == "m")[:, None]
    >>> y = X.sum(axis=1) + rng.logistic(size=400) > 1.0
    >>> model = FairClassifier(max_loss_increase=0.02).fit(X, y, sensitive_features=sex)
    >>> bool(model.loss_increase_ <= 0.02)
    True
    >>> model.covariance_names_, (model.covariances_ / model.plain_covariances_).round(2)
    (['m'], array([0.76]))
    """

    def __init__(
        self,
        max_loss_increase: float = 0.01,
        criterion: str = "demographic_parity",
        *,
        measure: str = "score",
        sensitive_kind: Any = "auto",
        constraint: Any = "l1",
        radius: float | None = None,
        fit_intercept: bool = True,
        method: Any = "auto",
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.max_loss_increase = max_loss_increase
        self.criterion = criterion
        self.measure = measure
        self.sensitive_kind = sensitive_kind
        self.constraint = constraint
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.method = method
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> FairClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix, (n_samples, n_features)
            Leave the sensitive attributes out, unless decisions may use them.
        y : array, (n_samples,)
            Two classes; the second one, in sorted order, is the positive one.
        sample_weight : array, (n_samples,), optional
            Samples of weight 0 are ignored.
        sensitive_features : array, list, Series or DataFrame, (n_samples,) or (n_samples, k)
            The attributes that decisions should not tell of; they must be given. Of several columns of groups each
            combination is a group; a column of numbers is an attribute of its own.
        """
        increase = checks.real(self.max_loss_increase, "max_loss_increase", least=0.0)
        task = self._task(X, y, sample_weight, sensitive_features)
        plain = self._plain(task, increase)
        near = task.problem._replace(tolerance=increase * _counted(plain, task))
        fair = self._fair(near, task, plain)
        if not fair.within and near.tolerance > 0.0:
            fair = _nearer(near, plain, fair)
        self._keep(task, plain, fair)
        if near.tolerance > 0.0 and not self.loss_increase_ <= increase:
            warnings.warn(
                f"the training loss is proven to exceed the least one by at most {self.loss_increase_:.2g} of it, more than"
                f" `max_loss_increase`={increase:g}: raise `max_iter`, or take a `constraint` whose set is a polytope",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def problem(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> Problem:
        """Return the problem behind ``fit`` with exact ties, for :func:`tiebreak.frontier` and others; same parameters.

        Its upper objective is the unfairness, its lower one the training loss. The coefficients are its first variables.
        """
        return clone(self)._task(X, y, sample_weight, sensitive_features).problem  # this model stays as it is

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values, the log odds: positive where the second class is predicted."""
        return self._scores(X)[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0.0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the probabilities."""
        scores = self.decision_function(X)
        return np.column_stack([log_expit(-scores), log_expit(scores)])

    # Levels

    def _task(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Task:
        for name, known in (("criterion", CRITERIA), ("measure", MEASURES)):
            if not (isinstance(given := getattr(self, name), str) and given in known):
                names = ", ".join(f'"{each}"' for each in known)
                raise ValueError(f"`{name}` must be one of {names}, got {checks.shown(given)}")
        data = self._training_data(X, y, sample_weight, numeric=False)
        check_classification_targets(data.targets)
        attributes = attributes_of(sensitive_features, self.sensitive_kind, data.weights.size)
        used = np.flatnonzero(data.weights > 0.0)
        data = data.rows(used)
        attributes = [each._replace(values=each.values[used]) for each in attributes]
        self.classes_ = _two_classes(data.targets)
        positive = data.targets == self.classes_[1]
        data = data._replace(targets=np.where(positive, 1.0, -1.0))
        where, lower, domain = training_problem(self, LogLoss(), data)
        rows, found = where.matrix(data.X), contrasts(attributes, data.weights, self._strata(positive))
        upper = _of_scores(rows, found, where)
        judged = squared_covariances(rows, found) if self.measure == "probability" else upper
        constant = float(entropy([share := np.average(positive, weights=data.weights), 1.0 - share]))
        return Task(judged, Problem(upper, lower, domain), rows, where, found, LEAST_LOSS * constant)

    def _strata(self, positive: np.ndarray) -> dict[str, np.ndarray]:
        """Return the samples over which covariances are taken, by what is added to their names."""
        if self.criterion == "demographic_parity":
            return {"": np.ones(positive.size, dtype=bool)}
        negative_class, positive_class = self.classes_
        return {f" | y={negative_class}": ~positive, f" | y={positive_class}": positive}

    def _plain(self, task: Task, increase: float) -> Result:
        """Minimise the training loss alone, so far that what is unknown of its minimum hardly matters."""
        passes = checks.whole(self.max_iter, "max_iter")

        def settled(seen: Snapshot) -> bool:
            base = max(seen.lower - seen.lower_gap_bound, task.small)
            return bool(seen.lower_gap_bound <= PLAIN_SHARE * increase * base)

        if fits(task.convex, passes):
            return self._run(task.convex, ActiveSet(level="lower"))
        return self._run(task.convex, first_points(task.convex), callback=settled)

    def _fair(self, near: Problem, task: Task, plain: Result) -> Result:
        """Minimise unfairness among the models of nearly least loss."""
        first = self._run(task.convex._replace(tolerance=near.tolerance), self.method, x0=plain)
        if self.measure == "score":
            return first
        start = min((plain.x, first.x), key=near.upper.value)
        x, results = descend(near, task.rows, task.contrasts, start, lambda each, x0: self._run(each, self.method, x0=x0))
        results = [first, *results]
        queries = Counts(*(sum(counts) for counts in zip(*(each.queries for each in results), strict=True)))
        known = plain.certificate.floors._replace(upper=-math.inf)  # that of scores is another one
        return _moved(near, replace(results[-1], queries=queries), certify(near, x, floors=known, check=False))

    def _run(self, problem: Problem, method: Any, **options: Any) -> Result:
        samples = problem.upper.n_samples + problem.lower.n_samples
        result = minimize(
            problem,
            method,
            max_queries=checks.whole(self.max_iter, "max_iter") * samples,
            seed=seed_of(self.random_state),
            progress=bool(self.verbose),
            **options,
        )
        if result.status is Status.INTERRUPTED:  # a model that is not fitted must not pass for one, nor a search continue
            raise KeyboardInterrupt
        if result.status.failed:
            raise ValueError(result.message)
        return result

    def _keep(self, task: Task, plain: Result, fair: Result) -> None:
        """Set all attributes."""
        (coef, intercept), (plain_coef, plain_intercept) = (task.where.model(each.x) for each in (fair, plain))
        self.coef_, self.intercept_ = coef[None], np.array([intercept])
        self.plain_coef_, self.plain_intercept_ = plain_coef[None], np.array([plain_intercept])
        self.covariance_names_ = task.contrasts.names
        values = [task.rows @ each.x for each in (fair, plain)]
        values = [expit(each) for each in values] if self.measure == "probability" else values
        self.covariances_, self.plain_covariances_ = (task.contrasts.rows @ each for each in values)
        self.unfairness_, self.plain_unfairness_ = fair.upper, float(np.sum(self.plain_covariances_**2))
        floors = fair.certificate.floors
        self.loss_, self.plain_loss_, self.loss_floor_ = fair.lower, plain.lower, floors.lower
        self.loss_increase_ = fair.lower_gap_bound / _counted(fair, task)
        self.unfairness_floor_ = max(floors.upper, 0.0)
        samples = task.problem.upper.n_samples + task.problem.lower.n_samples
        self.n_iter_ = max(1, math.ceil((plain.queries.total + fair.queries.total) / samples))
        self.result_ = replace(fair, problem=None)  # without the training data, which a pickle would carry
        self.certificate_, self.history_ = fair.certificate, fair.history


def _counted(result: Result, task: Task) -> float:
    """Return what the least loss counts as: what is proven of it, unless it is nearly 0."""
    return max(result.certificate.floors.lower, task.small)


def _two_classes(targets: np.ndarray) -> np.ndarray:
    classes = np.unique(targets)
    if classes.size < 2:
        raise ValueError(f"`y` must hold two classes, got one class: {checks.shown(classes[0])}")
    if classes.size > 2:  # the first words are those that scikit-learn looks for
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {type_of_target(targets)}: `y` must hold"
            f" two classes, got {classes.size}"
        )
    return classes


def _of_scores(rows: Any, found: Contrasts, where: Coordinates) -> Any:
    """Return the sum of squared covariances of scores. They do not depend on the intercept."""
    d, count = where.mean.size, len(found.names)
    covariances = np.ascontiguousarray((rows.T @ found.rows.T).T[:, :d])
    squares: Any = 2.0 * count * LeastSquares(covariances, np.zeros(count))  # it is half a mean
    return OnPart(squares, "coef") if where.column else squares


def _nearer(near: Problem, plain: Result, fair: Result) -> Result:
    """Return the point nearest to an answer, on its way to the plain model, that is proven to keep the tolerance.

    g is convex, so that it falls at least as fast along the way as the line between both ends: what is proven of its ends
    tells how far to go. If the plain model is not proven to keep the tolerance, the answer stays as it is.
    """
    floors = fair.certificate.floors
    first, last = (each.lower + each.certificate.lower_error - floors.lower for each in (plain, fair))
    room = ROOM
    while first <= near.tolerance and room < 1.0:
        level = first + (1.0 - room) * (near.tolerance - first)
        step = min((level - first) / (last - first), 1.0) if last > first else 1.0
        found = certify(near, plain.x + step * (fair.x - plain.x), floors=floors, check=False)
        if found.within:
            return _moved(near, fair, found)
        room *= WIDENING
    return fair


def _moved(near: Problem, result: Result, found: Certificate) -> Result:
    """Return a result with another point and what is proven there."""
    names = ("x", "upper", "lower", "upper_gap_bound", "lower_gap_bound", "stationarity")
    values = {name: getattr(found, name) for name in names}
    return replace(result, **values, parts=near.domain.parts(found.x), certificate=found)
