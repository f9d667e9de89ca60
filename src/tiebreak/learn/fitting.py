"""What all estimators of linear models share: sets by name, the intercept, the secondary criteria, and the run itself.

The intercept is free, although a domain must be compact:

- The features are centred, if they are dense. The best intercept of a squared loss is then the mean target whatever the
  coefficients are, so that it is no variable. The validation data are shifted by the same means, those of the training data.
- Else a column of ones is added, and its coefficient lies in an interval that holds the best intercept of *every* model of
  the set (:func:`intercept_bounds`): it does not bind at any minimiser of the training loss. So it is for near ties, if the
  second criterion depends on the intercept: another one than the best may serve it.
"""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import lsqr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from tiebreak.active.scope import fits
from tiebreak.domains import Box, Domain, L1Ball, L2Ball, LInfBall, Product, Simplex, projects
from tiebreak.driver.minimize import minimize
from tiebreak.driver.result import Result, Status
from tiebreak.engine import checks
from tiebreak.learn import places
from tiebreak.methods import BiFISTA
from tiebreak.objectives import FiniteSum, LeastSquares, LinearModel, Objective, OnPart, SquaredNorm, linear_model, loss
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square
from tiebreak.objectives.matrices import Rows
from tiebreak.objectives.summed import MOST_SIDE
from tiebreak.problem import Problem
from tiebreak.schedules import geometric

NORMS = {"l1": 1, "l2": 2, "box": math.inf}  # orders of the norms whose balls the sets are
SETS = (*NORMS, "simplex")
SMOOTHING = 1e-3  # width of the smoothed kink of the ℓ1 norm, relative to the size of the set
FADED = 1e-6  # share of the weight of f that is left at the end of a run
ALIKE = 1e-11  # eigenvalue of products of columns below which columns depend on each other, relative to the largest
CANCELLED = 1e-15  # what rounding may take from a squared norm from which 1 is subtracted
PROBES = 10  # points at which the smoothness of a function is estimated
MOST_GROUPS = 20  # values of a sensitive feature; more are rather numbers than groups


class Data(NamedTuple):
    """Samples of a regression task, or of a task with targets −1 and 1."""

    X: Any  # (n, d), dense or CSR; if they are many, a matrix of this package or a Dask array, which stays in place
    targets: Any
    weights: Any  # None if samples in place have none

    @property
    def in_place(self) -> bool:
        """Whether the samples stay where they are."""
        return places.is_in_place(self.X)

    def rows(self, which: np.ndarray) -> Data:
        """Return some of the samples, if they are in memory."""
        return Data(self.X[which], self.targets[which], self.weights[which])

    def is_used(self) -> Any:
        """Return which samples are used: those whose weight is not 0, and all of those in place."""
        return slice(None) if self.in_place or self.weights.all() else self.weights > 0.0

    def used(self) -> Data:
        """Return these samples, and no copy of them if they are all."""
        which = self.is_used()
        return self if isinstance(which, slice) else self.rows(which)


class Coordinates(NamedTuple):
    """How features, coefficients and intercept become rows and variables of a problem."""

    mean: np.ndarray  # of the features, subtracted; zeros where they stay as they are
    offset: float  # subtracted from the targets
    column: bool  # whether the intercept is the last variable

    def matrix(self, X: Any) -> Any:
        """Return the rows of the problem; those in place have their column of ones by themselves."""
        if places.is_in_place(X):
            return X
        if scipy.sparse.issparse(X):
            return scipy.sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr") if self.column else X
        rows = X - self.mean if self.mean.any() else X
        return np.hstack([rows, np.ones((X.shape[0], 1))]) if self.column else rows

    def model(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return coefficients and intercept of a point."""
        d = self.mean.size
        shift = x[d] if self.column else self.offset
        return x[:d].copy(), float(shift - self.mean @ x[:d])


def coordinates(data: Data, scalar: Any, fit_intercept: bool, eliminate: bool = True, centred: bool = True) -> Coordinates:
    """Return the coordinates in which a model is fitted; the intercept is a variable unless it may be eliminated."""
    d = data.X.shape[1]
    if not checks.flag(fit_intercept, "fit_intercept"):
        return Coordinates(np.zeros(d), 0.0, False)
    if scipy.sparse.issparse(data.X) or data.in_place or not centred:
        return Coordinates(np.zeros(d), 0.0, True)
    mean = np.average(data.X, axis=0, weights=data.weights)
    if eliminate and isinstance(scalar, Square):
        return Coordinates(mean, float(np.average(data.targets, weights=data.weights)), False)
    return Coordinates(mean, 0.0, True)


class Task(NamedTuple):
    """A linear model to fit: the training loss in the coordinates of a problem."""

    scalar: Any
    data: Data
    where: Coordinates
    rows: Any  # the features in these coordinates
    lower: LinearModel

    def loss(self, data: Data) -> LinearModel:
        """Return the loss of other samples."""
        return on_rows(self.scalar, self.where.matrix(data.X), data, self.where)

    def domain(self, constraint: Any, radius: Any, whole_norm: bool = False) -> Any:
        """Return the set of the variables: that of the coefficients, with an interval if the intercept is a variable."""
        domain = constraint_set(constraint, radius, self, whole_norm)
        if self.where.column:
            domain = Product(coef=(domain, self.where.mean.size), intercept=Box(*intercept_bounds(domain, self)))
        return domain


def is_near(estimator: Any) -> bool:
    """Return whether an estimator asks for near ties; whether it does so rightly is for :class:`Problem` to say."""
    return checks.as_float(estimator.tolerance) != 0.0 or checks.as_float(estimator.keep) != 1.0


def training_task(scalar: Any, data: Data, fit_intercept: bool, eliminate: bool = True, centred: bool = True) -> Task:
    """Return the task to fit some samples; ``eliminate`` the intercept, if that is possible, or keep it as a variable."""
    where = coordinates(data, scalar, fit_intercept, eliminate, centred)
    rows = where.matrix(data.X)
    return Task(scalar, data, where, rows, on_rows(scalar, rows, data, where))


def training_problem(estimator: Any, scalar: Any, data: Data) -> tuple[Coordinates, LinearModel, Any]:
    """Return coordinates, the training loss and the set of an estimator with ``constraint, radius, fit_intercept``."""
    task = training_task(scalar, data, estimator.fit_intercept)
    return task.where, task.lower, task.domain(estimator.constraint, estimator.radius)


def on_rows(scalar: Any, rows: Any, data: Data, where: Coordinates) -> LinearModel:
    """Return the loss of a data set."""
    targets = data.targets - where.offset if where.offset else data.targets
    return linear_model(scalar, rows, targets, data.weights, ones=where.column and data.in_place)


def scalar_loss(name: Any, delta: Any, known: dict[str, Any]) -> Any:
    """Return a scalar loss by its name, or a registered one itself."""
    if isinstance(name, str) and name in known:
        return HuberLoss(checks.real(delta, "delta", above=0.0)) if name == "huber" else known[name]()
    if isinstance(name, tuple) and loss.supports(name):
        return name
    names = ", ".join(f'"{each}"' for each in known)
    raise ValueError(f"`loss` must be one of {names}, or a scalar loss that is registered, got {checks.shown(name)}")


# Sets


def constraint_set(constraint: Any, radius: Any, task: Task, whole_norm: bool = False) -> Any:
    """Return the set of the coefficients."""
    d = task.data.X.shape[1]
    if isinstance(constraint, str) and constraint in SETS:
        size = default_radius(constraint, task, whole_norm) if radius is None else checks.real(radius, "radius", above=0.0)
        balls: dict[str, Any] = {"l1": L1Ball, "l2": L2Ball, "simplex": Simplex}
        return LInfBall(size, d) if constraint == "box" else balls[constraint](size)
    domain = constraint
    if callable(constraint) and not isinstance(constraint, (Domain, type)):
        domain = constraint(d)
    if not isinstance(domain, Domain):
        names = ", ".join(f'"{each}"' for each in SETS)
        given = "a function that returned " if domain is not constraint else ""
        raise ValueError(
            f"`constraint` must be one of {names}, a set such as L1Ball(radius), or a function of the number of features "
            f"that returns a set, got {given}{checks.shown(domain)}"
        )
    if domain.dimension not in (None, d):
        raise ValueError(f"`constraint` must be a set of {d} variables, one per feature, got one of {domain.dimension}")
    return domain


def default_radius(constraint: str, task: Task, whole_norm: bool = False) -> float:
    """Return a radius within which the best fits lie: a multiple of the norm of a least-squares fit.

    If the intercept is part of the norm to be made small, coefficients grow where that makes it smaller: by no more than the
    ``whole_norm`` of both is larger than that of the coefficients.
    """
    if constraint == "simplex":
        return 1.0
    coef, intercept = task.where.model(least_squares_of_sums(task) if task.data.in_place else least_squares(task))
    size = float(np.linalg.norm(coef, NORMS[constraint]))
    if whole_norm and size > 0.0:
        size *= math.hypot(1.0, intercept / float(np.linalg.norm(coef)))
    room = 10.0 if isinstance(task.scalar, LogLoss) else 2.0  # log odds are larger than labels
    return room * size if size > 0.0 and math.isfinite(size) else 1.0


def least_squares(task: Task) -> np.ndarray:
    """Return a point of least squares."""
    rows, data, where = task.rows, task.data, task.where
    root = np.sqrt(data.weights / data.weights.mean())
    scaled = scipy.sparse.diags_array(root) @ rows if scipy.sparse.issparse(rows) else root[:, None] * rows
    lengths = scipy.sparse.linalg.norm(scaled, axis=0) if scipy.sparse.issparse(scaled) else np.linalg.norm(scaled, axis=0)
    lengths[lengths == 0.0] = 1.0  # columns of one length: lsqr stops early where some are much longer than others
    even = scaled @ scipy.sparse.diags_array(1.0 / lengths) if scipy.sparse.issparse(scaled) else scaled / lengths
    return lsqr(even, root * (data.targets - where.offset), atol=1e-6, btol=1e-6)[0] / lengths


def least_squares_of_sums(task: Task) -> np.ndarray:
    """Return a point of least squares, found in one pass over the data."""
    squares, d = LeastSquares._make([Square(), *task.lower[1:]]), task.lower.dimension
    if d > MOST_SIDE or not squares.summable:
        raise ValueError(
            f"`radius` must be given for {task.data.X.shape[1]:,} features of samples that are used in place: its default is"
            f" found from sums over the rows, for at most {MOST_SIDE - 1:,} features, none of extreme size"
        )
    sums = squares.summed()
    lengths = np.sqrt(np.diag(sums.quadratic))
    lengths[lengths == 0.0] = 1.0
    return np.linalg.pinv(sums.quadratic / np.outer(lengths, lengths), ALIKE, True) @ (sums.linear / lengths) / lengths


def intercept_bounds(domain: Any, task: Task) -> tuple[list[float], list[float]]:
    """Return an interval that holds the best intercept of every model of the set.

    With scores s_i = ⟨a_i, w⟩ of absolute values at most S, the best intercept c of the logistic loss gives the mean
    probability p of the positive class, mean σ(s_i + c) = p, so that |c − log(p / (1 − p))| ≤ S. That of squares is the mean
    of target_i − s_i. The best one of any loss that is least where prediction and target agree lies between the least and
    the largest of target_i − s_i. For the first two, the middle of the interval is the best constant model.
    """
    point = domain.lmo(np.ones(task.where.mean.size))
    farthest = float(np.linalg.norm(point)) + domain.diameter
    found = np.array(list(task.lower.rows.passes(_extent_of_block, width=1.0)))
    reach = farthest * float(found[:, 0].max())
    low, high = float(found[:, 1].min()), float(found[:, 2].max())
    total, positive, weighted = (math.fsum(column) for column in found[:, 3:].T)
    if isinstance(task.scalar, LogLoss):
        if not 0.0 < positive < total:
            raise ValueError("`sample_weight` must be positive for some samples of each class that are fitted")
        low = high = math.log(positive / (total - positive))
    elif isinstance(task.scalar, Square):
        low = high = weighted / total
    return [low - reach], [high + reach]


def _extent_of_block(rows: Rows, low: int, high: int) -> tuple[float, ...]:
    """Return the largest norm of features, the least and the largest target, and three sums.

    These are the sums of weights, of weights of positive targets, and of weights times targets.
    """
    norms, targets, weights = rows.matrix.between(low, high).row_norms, rows.targets[low:high], rows.weights[low:high]
    norm = math.sqrt(max(float(norms.max()) ** 2 - 1.0, 0.0) + CANCELLED)  # without the column of ones
    sums = (math.fsum(each) for each in (weights, weights[targets > 0.0], weights * targets))
    return norm, float(targets.min()), float(targets.max()), *sums


# Secondary criteria


def coefficient_criterion(secondary: Any, domain: Any, where: Coordinates) -> Any:
    """Return a criterion of the coefficients alone; their Euclidean norm if it is left to us."""
    d, coefficients = where.mean.size, domain.inner_sets()[0] if where.column else domain
    if isinstance(secondary, Objective):
        criterion: Any = secondary
    elif callable(secondary):
        criterion = function_criterion(secondary, coefficients, d)
    elif secondary == "l1":
        criterion = smooth_l1(d, SMOOTHING * 0.5 * coefficients.diameter)
    else:
        criterion = SquaredNorm()
    return OnPart(criterion, "coef") if where.column else criterion


def function_criterion(function: Any, domain: Any, d: int) -> FiniteSum:
    """Return a function of the coefficients as an objective of which convexity is not claimed.

    Its smoothness is estimated from gradients at random points of the set; a linear function has that of a quadratic one
    whose gradient changes by as much as the linear one's is long.
    """

    @functools.wraps(function, updated=())  # errors name the user's function
    def of_all(x: np.ndarray, indices: np.ndarray) -> Any:
        return function(x)

    criterion = FiniteSum(1, d, of_all, convex=False)
    rng, first = np.random.default_rng(0), np.zeros(1, dtype=np.int64)
    points = [domain.random_point(rng, d) for _ in range(PROBES)]
    gradients = [criterion.ask(point, first)[1] for point in points]
    slopes = [
        float(np.linalg.norm(u - v) / distance)
        for x, u, y, v in zip(points[1:], gradients[1:], points[:-1], gradients[:-1], strict=True)
        if (distance := float(np.linalg.norm(x - y))) > 0.0
    ]
    longest = max(float(np.linalg.norm(gradient)) for gradient in gradients)
    return replace(criterion, lipschitz=max(2.0 * max(slopes, default=0.0), longest / domain.diameter))


def smooth_l1(d: int, width: float) -> Any:
    """Return Σ_j |w_j|, with its kinks rounded over a width, which lowers it by at most ½ d · width."""
    identity = scipy.sparse.eye_array(d, format="csr")
    return (d / width) * linear_model(HuberLoss(width), small_indices(identity), np.zeros(d))


def fairness(X: Any, groups: np.ndarray, weights: np.ndarray, where: Coordinates) -> Any:
    """Return how much scores tell of groups: half the mean squared covariance of ⟨a_i, x⟩ with membership; convex.

    It is the measure of Zafar, Valera, Gomez Rodriguez and Gummadi, Fairness constraints: mechanisms for fair
    classification, AISTATS 2017: the covariance with the distance from the decision boundary.
    """
    members = np.unique(groups, return_inverse=True)[1]
    n_groups = int(members.max()) + 1
    if n_groups == 1 or n_groups > MOST_GROUPS:
        raise ValueError(
            f"`sensitive_features` must hold from 2 to {MOST_GROUPS} groups, got {n_groups}; cut numbers into ranges first"
        )
    shares = np.full(groups.size, 1.0 / groups.size) if weights is None else weights / weights.sum()
    one_hot = [(members == k).astype(np.float64) for k in range(1 if n_groups == 2 else n_groups)]
    factors = [shares * (each - shares @ each) for each in one_hot]
    rows = where.matrix(X)
    if places.is_in_place(rows):
        covariances = np.stack([rows.combined(each) for each in factors])
        covariances = np.pad(covariances, ((0, 0), (0, int(where.column))))  # an intercept has no covariance with anything
    else:
        covariances = np.stack([rows.T @ each for each in factors])
    return LeastSquares(covariances, np.zeros(len(one_hot)))


def small_indices(X: Any) -> Any:
    """Return a CSR matrix of float64 with 32-bit indices where they are enough: one type, compiled once."""
    X = scipy.sparse.csr_array(X)
    if max(X.nnz, *X.shape) < np.iinfo(np.int32).max:
        X = scipy.sparse.csr_array(
            (X.data.astype(np.float64, copy=False), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape
        )
    return X


# The run


def tolerance(tol: Any) -> tuple[float, float] | None:
    """Return the tolerances of both levels."""
    if tol is None:
        return None
    if isinstance(tol, (tuple, list, np.ndarray)):
        if len(tol) != 2:
            raise ValueError(f"`tol` must be a number or a pair (secondary, training loss) of them, got {checks.shown(tol)}")
        upper, lower = (checks.real(each, "tol", above=0.0) for each in tol)
        return upper, lower
    return (checks.real(tol, "tol", above=0.0),) * 2


def chosen(method: Any, problem: Problem, passes: int) -> Any:
    """Return the method that is meant by "auto"; others as they are.

    For near ties, for samples that are used in place, and for squares that an active set solves, it is the choice of
    :func:`minimize`. Else, where Z has a projection and f is smooth, these are accelerated gradients on g + u f (bi-FISTA),
    with u falling to a millionth over the passes to come: long enough large to solve f, in the end small enough to leave g
    at its minimum. If f is not convex they find some point where it is low, and the minimum of g all the same. They treat
    weights like repeated samples to the last digits, as scikit-learn asks of estimators, also where g is nearly flat.
    """
    if not (isinstance(method, str) and method == "auto"):
        return method
    many = isinstance(problem.lower, LinearModel) and problem.lower.rows.numbers > places.MOST_COPIED
    if problem.is_near or many or is_exact(problem, passes):
        return "auto"
    upper, lower = problem.upper.lipschitz, problem.lower.lipschitz
    known = all(math.isfinite(constant) and constant > 0.0 for constant in (upper, lower))
    if not (known and projects(problem.domain)):
        return "auto"
    return BiFISTA(regularization=geometric(lower / upper, FADED * lower / upper, passes))


def is_exact(problem: Problem, passes: int) -> bool:
    """Return whether the choice of :func:`minimize` solves an exact tie to rounding: squares without a free intercept."""
    return isinstance(problem.lower, LeastSquares) and not isinstance(problem.domain, Product) and fits(problem, passes)


def run(estimator: Any, problem: Problem, seed: int, x0: Any = None, method: Any = None) -> tuple[Result, int]:
    """Solve a problem with an estimator's ``method, max_iter, tol, verbose``; return the result and the passes made.

    A ``method`` that is given is for one level, and makes all passes: it would prove nothing about the other level. The
    result does not hold the problem, which would carry the training data into every pickle.
    """
    samples = problem.upper.n_samples + problem.lower.n_samples
    tol, passes = tolerance(estimator.tol) if method is None else None, checks.whole(estimator.max_iter, "max_iter")
    result = minimize(
        problem,
        chosen(estimator.method, problem, passes) if method is None else method,
        max_queries=passes * samples,
        tol=tol,
        x0=x0,
        seed=seed,
        progress=bool(estimator.verbose),
    )
    if result.status is Status.INTERRUPTED:  # a model that is not fitted must not pass for one, nor a search continue
        raise KeyboardInterrupt
    if result.status.failed:
        raise ValueError(result.message)
    if tol is not None and result.status is not Status.CERTIFIED:
        upper = result.stationarity if math.isnan(result.upper_gap_bound) else result.upper_gap_bound
        warnings.warn(
            f"the bounds {upper:.2g} (secondary) and {result.lower_gap_bound:.2g} (training loss) are not "
            f"within `tol` after {estimator.max_iter} passes: raise `max_iter` or `tol`, or scale the data",
            ConvergenceWarning,
            stacklevel=3,
        )
    return replace(result, problem=None), max(1, math.ceil(result.queries.total / samples))


def seed_of(random_state: Any) -> int:
    """Return a seed for a run."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
