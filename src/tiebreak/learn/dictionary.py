"""Dictionary learning, task after task, that keeps what it has learned.

The first task is learned by scikit-learn. With its codes held, the error of its points depends on the atoms alone, as a
convex quadratic: that is the lower level when the next task comes. The upper level is the error of the new points, with
atoms and codes free. New atoms are free at both levels, old ones as far as the old points do not need them as they are.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import dict_learning, sparse_encode
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tiebreak.domains import Columns, L1Ball, L2Ball, Product
from tiebreak.driver.result import Result
from tiebreak.engine import checks
from tiebreak.learn.fitting import run, seed_of
from tiebreak.methods import FISTA
from tiebreak.objectives import DictionaryLoss, JointDictionaryLoss, SquaredNorm
from tiebreak.problem import Problem

ROUNDS = 100  # rounds of scikit-learn's learner, on the first task
CODERS = ("lasso_lars", "lasso_cd", "lars", "omp", "threshold")


class Memory(NamedTuple):
    """All points seen and their codes, as few as there are atoms: an orthogonal mixture of points has the same total error.

    With codes C = QR, Σ_i ‖a_i − D x_i‖² = ‖A − C Dᵀ‖² = ‖QᵀA − R Dᵀ‖² + ‖A − Q QᵀA‖²; the last term is the same for all D.
    """

    points: np.ndarray  # (k, m): QᵀA
    codes: np.ndarray  # (k, p): R
    rest: float  # ½ ‖A − Q QᵀA‖²
    n: int  # how many points were seen

    def add(self, points: np.ndarray, codes: np.ndarray) -> Memory:
        """Return the memory with more points."""
        old = np.pad(self.codes, ((0, 0), (0, codes.shape[1] - self.codes.shape[1])))
        A, C = np.vstack([self.points, points]), np.vstack([old, codes])
        Q, R = np.linalg.qr(C)
        kept = Q.T @ A
        rest = 0.5 * max(float(np.sum(A**2) - np.sum(kept**2)), 0.0)
        return Memory(kept, R, self.rest + rest, self.n + points.shape[0])

    def objective(self, p: int) -> DictionaryLoss:
        """Return the mean error of all points, less ``rest``, as a function of p atoms."""
        scale = math.sqrt(self.points.shape[0] / self.n)  # a mean over fewer points
        codes = np.pad(self.codes, ((0, 0), (0, p - self.codes.shape[1])))
        return DictionaryLoss(scale * self.points.T, scale * codes.T)

    def error(self, atoms: np.ndarray) -> float:
        """Return the mean of ½ ‖a_i − D x_i‖² over all points seen."""
        residual = self.points - self.codes @ atoms[: self.codes.shape[1]]
        return (0.5 * float(np.sum(residual**2)) + self.rest) / self.n


class Learned(NamedTuple):
    """What a task has taught."""

    result: Result
    passes: int
    errors: tuple[float, float]  # of the new points and of all earlier ones
    atoms: np.ndarray
    memory: Memory  # with the new points


class ContinualDictionaryLearning(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn a dictionary from one task after the other: new atoms for new data, and the old reconstruction is kept.

    Each call of ``partial_fit`` is a task. It adds atoms and, among the dictionaries that reconstruct all earlier points
    best with the codes that they had, finds one that reconstructs the new points well. Earlier points are not stored, but
    as many mixtures of them as there are atoms. These have the same error, whatever the atoms are.

    Parameters
    ----------
    n_components : int, optional
        Atoms that the first task is learned with. By default as many as there are features.
    n_new_components : int
        Atoms that each later task adds.
    alpha : float
        The penalty of the ℓ1 norm of codes in the first task.
    code_radius : float, optional
        The largest ℓ1 norm of a code while a later task is learned. By default the largest one that the points have when
        they are coded with the atoms to start from.
    method : str or Method
        As in :func:`tiebreak.minimize`.
    max_iter : int
        Passes over the new points and the memory, per task. In the first task at most a hundred of them learn atoms and
        codes, and as many more improve the atoms.
    tol : float or (float, float), optional
        As in :class:`TieBreakRegressor`; the error of the new points is not convex, and its stationarity is meant instead
        of a gap.
    transform_algorithm : {"omp", "lasso_lars", "lasso_cd", "lars", "threshold"}
        How points are coded, as in ``sklearn.decomposition.sparse_encode``.
    transform_n_nonzero_coefs : int, optional
        Non-zeros of a code, for "omp" and "lars". By default a tenth of the number of features, at least 1.
    transform_alpha : float, optional
        The penalty of the ℓ1 norm for "lasso_lars" and "lasso_cd", by default ``alpha``; the threshold for "threshold"; the
        largest error for "omp", which then replaces the number of non-zeros.
    random_state : int, RandomState or None
        For the first atoms and for methods that sample.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    components_ : array, (n atoms, n_features)
        The atoms, of norm 1.
    n_tasks_ : int
        Tasks seen.
    n_iter_ : int
        Passes made in the last task.
    errors_ : tuple of two floats
        The mean of ½ ‖x − code · components‖² over the points of the last task and over those of all earlier ones (NaN in
        the first task), with the codes that are held.
    certificate_, history_, result_
        As in :class:`TieBreakRegressor`, of the last task: ``upper`` is the error of the new points, ``lower`` that of all
        earlier ones less what no atoms can change. In the first task ``lower`` is the error of its points, ``upper`` of no
        meaning.
    memory_ : Memory
        What is kept of the points.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import tiebreak
    >>> from tiebreak.learn import ContinualDictionaryLearning
    >>> task = tiebreak.data.dictionary(shape=(10, 12), old_atoms=8, new_atoms=6, shared=2, n_old=60, n_new=60, sparsity=2)
    >>> learner = ContinualDictionaryLearning(8, n_new_components=4, transform_n_nonzero_coefs=2, random_state=0)
    >>> before = learner.partial_fit(task.old.T).score(task.new.T)
    >>> learner.partial_fit(task.new.T).components_.shape
    (12, 10)
    >>> bool(learner.score(task.new.T) > before)
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_new_components: int = 5,
        alpha: float = 0.1,
        code_radius: float | None = None,
        method: Any = "auto",
        max_iter: int = 1000,
        tol: Any = None,
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_new_components = n_new_components
        self.alpha = alpha
        self.code_radius = code_radius
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> ContinualDictionaryLearning:
        """Forget everything and learn a first task."""
        return self._learn(X, first=True)

    def partial_fit(self, X: Any, y: Any = None) -> ContinualDictionaryLearning:
        """Learn a task, the first or a further one.

        Parameters
        ----------
        X : array, (n_samples, n_features)
            The points of the task.
        y : None
            Ignored.
        """
        return self._learn(X, first=not hasattr(self, "components_"))

    def transform(self, X: Any) -> np.ndarray:
        """Return the codes of some points, (n_samples, n atoms)."""
        check_is_fitted(self)
        checks.unmasked(X, "X")
        return self._coded(validate_data(self, X, reset=False, dtype=np.float64, order="C"), self.components_)

    def inverse_transform(self, codes: Any) -> np.ndarray:
        """Return the points of some codes."""
        check_is_fitted(self)
        return np.asarray(codes, dtype=np.float64) @ self.components_

    def score(self, X: Any, y: Any = None) -> float:
        """Return 1 less the share of the points' squared norms that their codes leave: 1 is a perfect reconstruction."""
        codes = self.transform(X)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        total = float(np.sum(X**2))
        return 1.0 - float(np.sum((X - codes @ self.components_) ** 2)) / total if total > 0.0 else 1.0

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    # Tasks

    def _learn(self, X: Any, first: bool) -> ContinualDictionaryLearning:
        checks.unmasked(X, "X")
        points = validate_data(self, X, reset=first, dtype=np.float64, order="C", ensure_min_samples=2)
        if self.transform_algorithm not in CODERS:
            names = ", ".join(f'"{each}"' for each in CODERS)
            raise ValueError(f"`transform_algorithm` must be one of {names}, got {checks.shown(self.transform_algorithm)}")
        rng = check_random_state(self.random_state)
        learned = self._first_task(points, rng) if first else self._next_task(points, rng)
        self.result_, self.n_iter_, self.errors_, atoms, memory = learned  # nothing has changed if an error was raised
        self.certificate_, self.history_ = self.result_.certificate, self.result_.history
        self.components_, self.memory_ = _normalised(atoms, memory, rng)
        self.n_tasks_: int = 1 if first else self.n_tasks_ + 1
        return self

    def _first_task(self, points: np.ndarray, rng: np.random.RandomState) -> Learned:
        m = points.shape[1]
        p = m if self.n_components is None else checks.whole(self.n_components, "n_components")
        alpha = checks.real(self.alpha, "alpha", above=0.0)
        rounds = min(ROUNDS, checks.whole(self.max_iter, "max_iter"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of codes on the way; the last atoms are refitted below
            codes, atoms, _ = dict_learning(points, p, alpha=alpha, max_iter=rounds, random_state=rng, method="cd")
        memory = Memory(np.zeros((0, m)), np.zeros((0, p)), 0.0, 0).add(points, codes)
        result, passes = self._refit(memory, atoms, rng)
        atoms = result.x.reshape(p, m)
        return Learned(result, passes, (memory.error(atoms), math.nan), atoms, memory)

    def _next_task(self, points: np.ndarray, rng: np.random.RandomState) -> Learned:
        new = checks.whole(self.n_new_components, "n_new_components", least=0)
        radius = None if self.code_radius is None else checks.real(self.code_radius, "code_radius", above=0.0)
        known = self._refit(self.memory_, self.components_, rng)[0].x.reshape(self.components_.shape)
        atoms = np.vstack([known, _first_atoms(points, points - self._coded(points, known) @ known, new, rng)])
        codes = self._coded(points, atoms)
        sizes = np.abs(codes).sum(axis=1)
        radius = radius or float(sizes.max()) or 1.0
        codes *= np.minimum(1.0, radius / np.maximum(sizes, np.finfo(float).tiny))[:, None]

        (p, m), n = atoms.shape, points.shape[0]
        domain = Product(D=Columns(L2Ball(1.0), (m, p)), X=Columns(L1Ball(radius), (p, n)))
        problem = Problem(JointDictionaryLoss(points.T), self.memory_.objective(p), domain)
        result, passes = run(self, problem, seed_of(rng), x0=np.concatenate([atoms.ravel(), codes.ravel()]))
        atoms, codes = (np.ascontiguousarray(result.parts[name].T) for name in "DX")
        return Learned(result, passes, (result.upper, self.memory_.error(atoms)), atoms, self.memory_.add(points, codes))

    def _refit(self, memory: Memory, atoms: np.ndarray, rng: np.random.RandomState) -> tuple[Result, int]:
        """Find the best atoms for the codes that are held: a minimiser of the lower level."""
        p, m = atoms.shape
        lengths = np.maximum(np.linalg.norm(atoms, axis=1), 1.0)
        problem = Problem(SquaredNorm(), memory.objective(p), Columns(L2Ball(1.0), (m, p)))
        return run(self, problem, seed_of(rng), (atoms / lengths[:, None]).ravel(), FISTA(level="lower"))

    def _coded(self, points: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        """Return codes by scikit-learn's coder, with atoms of norm 1, which it expects."""
        lengths = np.linalg.norm(atoms, axis=1)
        lengths[lengths == 0.0] = 1.0
        alpha, nonzero = self.transform_alpha, self.transform_n_nonzero_coefs
        if self.transform_algorithm in ("lasso_lars", "lasso_cd") and alpha is None:
            alpha = self.alpha
        codes = sparse_encode(
            points, atoms / lengths[:, None], algorithm=self.transform_algorithm, n_nonzero_coefs=nonzero, alpha=alpha
        )
        return codes / lengths


def _first_atoms(points: np.ndarray, residuals: np.ndarray, new: int, rng: np.random.RandomState) -> np.ndarray:
    """Return atoms to start from: residuals of points that the known atoms explain badly, or random ones, of norm 1."""
    size = np.sum(residuals**2, axis=1)
    usable = int(np.count_nonzero(size > 0.0))
    shares = size / size.sum() if usable else None
    chosen = rng.choice(points.shape[0], min(new, usable), replace=False, p=shares)
    atoms = np.vstack([residuals[chosen], rng.standard_normal((new - chosen.size, points.shape[1]))])
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def _normalised(atoms: np.ndarray, memory: Memory, rng: np.random.RandomState) -> tuple[np.ndarray, Memory]:
    """Return atoms of norm 1, and the memory with codes such that all points stay as they are reconstructed.

    An atom of norm 0 becomes a random one, which no code uses.
    """
    lengths = np.linalg.norm(atoms, axis=1)
    random = rng.standard_normal(atoms.shape)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    unit = np.where(lengths[:, None] > 0.0, atoms / np.where(lengths > 0.0, lengths, 1.0)[:, None], random)
    return unit, memory._replace(codes=memory.codes * lengths)
