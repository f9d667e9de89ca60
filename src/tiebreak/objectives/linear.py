"""Losses of linear models: (scalar loss) × (dense or CSR matrix) × targets × sample weights.

F(x) = Σ_i w_i ℓ(⟨a_i, x⟩, b_i) / Σ_i w_i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import PACKAGE, checks
from tiebreak.engine.rounding import UNDERFLOW, UNIT
from tiebreak.objectives.arithmetic import Objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.constants import remembered
from tiebreak.objectives.linear_data import checked_data
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square, curvature
from tiebreak.objectives.matrices import CSR, Dense, Rows, in_memory, located
from tiebreak.objectives.matrices.distant import Distant, DistantRows
from tiebreak.objectives.matrices.parts import plus
from tiebreak.objectives.matrices.rows import draw_rows
from tiebreak.objectives.row_sums import accumulate_rows, add_rows, survey_rows
from tiebreak.objectives.sharp import sharp_linear_model
from tiebreak.objectives.smoothness import curvature_of
from tiebreak.objectives.summed import MOST_SIDE, Summation, SummedSquares, are_safe
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN, Sharp, Survey, room_around
from tiebreak.objectives.tables import data_of
from tiebreak.objectives.uneven import shared, uneven_batches, unevenly
from tiebreak.rows import LEAST_NUMBERS

CHEAP_SIDE, CHEAP_PRODUCTS = 128, 1e8  # columns, or multiplications, with which sums over all rows are cheap
MANY_NUMBERS = 1 << 26  # numbers of data that are not read again where their sums will do: half a gigabyte …
FEW_COLUMNS = 512  # … if these take no longer than what they save, whichever method runs


class _LinearModel(NamedTuple):
    scalar: Any  # ℓ
    matrix: Any  # rows a_i: Dense, CSR, WithOnes or Distant
    targets: np.ndarray  # b_i
    weights: np.ndarray  # w_i, of mean 1


class LinearModel(Objective, _LinearModel):
    """The weighted mean of a scalar loss over the rows of a matrix; :func:`linear_model` makes one of any loss."""

    __slots__ = ()

    @property
    def convex(self) -> bool | None:
        """Whether the scalar loss says that it is convex in the prediction."""
        return getattr(self.scalar, "convex", None)

    @property
    def floor(self) -> float:
        """A number that the scalar loss says it is never below."""
        return float(getattr(self.scalar, "floor", -math.inf))

    @property
    def dimension(self) -> int:
        return self.matrix.shape[1]

    @property
    def n_samples(self) -> int:
        return self.matrix.shape[0]

    @property
    def in_memory(self) -> bool:
        """Whether all rows are one array of this process, or one sparse matrix."""
        return isinstance(self.matrix, (Dense, CSR))

    @property
    def rows(self) -> Rows | DistantRows:
        """The data."""
        matrix = self.matrix
        return DistantRows(matrix.partitions) if isinstance(matrix, Distant) else Rows(matrix, self.targets, self.weights)

    @property
    def lasting(self) -> tuple[Any, ...]:
        """What stays the same while loops run."""
        return (self.scalar, self.matrix.handle) if isinstance(self.matrix, Distant) else tuple(self)

    def fingerprint(self) -> Any:
        """Return what tells it apart from others."""
        return (self.scalar, self.matrix.partitions.fingerprint()) if isinstance(self.matrix, Distant) else tuple(self)

    @property
    def lipschitz(self) -> float:
        """The smoothness constant max ℓ'' · λ_max(Aᵀ W A / n), on large data a bound slightly above it."""
        return float(curvature(self.scalar)) * curvature_of(self, self.rows) / self.n_samples

    @property
    def sample_lipschitz(self) -> float:
        """Max ℓ'' times the largest w_i ‖a_i‖²."""
        return float(curvature(self.scalar)) * float(self.squares().max())

    def evened(self) -> Any:
        """Rows drawn in proportion to w_i ‖a_i‖², unless all are of about the same length."""
        return unevenly(self, self.squares(), float(curvature(self.scalar)))

    def drawn_by(self, shares: np.ndarray, chances: np.ndarray, others: np.ndarray) -> tuple[LinearModel, Any, Any]:
        """Return it with weights divided by shares, and the tables to draw from; none if it does so itself."""
        if not isinstance(self.matrix, Distant):
            return self._replace(weights=shared(self.weights, shares)), chances, others
        feed = self.matrix.feed.drawing(partial(uneven_batches, chances, others), shares)
        matrix, targets, weights = feed.seen()
        return self._replace(matrix=matrix, targets=targets, weights=weights), chances[:0], others[:0]

    def squares(self) -> np.ndarray:
        """Return w_i ‖a_i‖² of all rows, found in one pass over the data."""
        return remembered(
            self, "squares of rows", lambda: (np.concatenate(list(self.rows.passes(_squares_of_rows, width=1.0))), 1)
        )

    @property
    def in_blocks(self) -> bool:
        return self.rows.numbers >= LEAST_NUMBERS

    def pass_over(self, x: np.ndarray, out: np.ndarray) -> float:
        """One pass over the data, by all cores where it is long."""
        if not self.in_blocks:
            return super().pass_over(x, out)
        share = 1.0 / self.n_samples
        value, total = self.rows.fold(_both, (0.0, out), _gradient_of_block, self.scalar, x, share, width=x.size)
        out[...] = total  # itself, if it was added up here
        return value

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        """One pass over the data, by all cores where it is long."""
        n, d = self.rows.shape
        step, blocks = self.rows.blocks(2 * d)
        # Roundings of a sum over rows: those within a block, and one per block. Of a prediction: one per product and sum.
        own = type(self.scalar).__module__.partition(".")[0] == PACKAGE
        relative = FEW_OPERATIONS * UNIT if own else self.accuracy  # of a loss, given prediction and target
        over_rows = (step + blocks) * UNIT + relative
        room = room_around(x, off, (self.rows.longest_row + FEW_OPERATIONS) * UNIT)
        place = self.scalar, x, room, over_rows, relative
        total = self.rows.fold(plus, np.zeros((2, d + 1)), _survey_of_block, *place, width=2 * d)
        sums, errors = total / n
        return Survey(float(sums[d]), sums[:d], MARGIN * float(errors[d]) + UNDERFLOW, MARGIN * errors[:d] + UNDERFLOW)

    def sharp(self, x: np.ndarray, off: np.ndarray | None = None) -> Sharp:
        """Sums in twice the precision, for losses of this package."""
        if type(self.scalar) not in MODELS:
            return super().sharp(x, off)
        return sharp_linear_model(self, x, off)

    def __repr__(self) -> str:
        scalar = f" of {self.scalar!r}" if type(self) is LinearModel else ""
        return f"{type(self).__name__} {self.matrix}{scalar}"


class LeastSquares(LinearModel):
    """The mean squared error ½ (⟨a_i, x⟩ − b_i)² over the rows of A.

    Parameters
    ----------
    A : array, SciPy sparse matrix or Dask array, (n, d), Store or path
        One sample per row. C-ordered float arrays are used in place, as are memory maps and ``.npy`` files, which are
        mapped, and the rows of a :class:`~tiebreak.data.Store`; do not change them while they are in use. Or a CSV or
        Parquet file of numbers with named columns, which is read into memory. Or a Dask array, whose rows stay on
        its workers.
    b : array, (n,), or path of a .npy file
        Targets; left out if A is a table or a store.
    sample_weight : array, (n,), optional
        Non-negative weights, not all zero; only their ratios matter. Where A is a table or a store, it may be the name of a
        column.
    target, columns : str and list of str, optional
        Where A is a table or a store: the column of the targets, by default that of the store, and those of the features;
        all others if not given.
    client : distributed.Client, optional
        Where A is a Dask array: the client of its workers; the current one if not given.

    Examples
    --------
    >>> f = LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0])
    >>> f
    LeastSquares 2 × 2
    >>> f.value([1.0, 0.0])
    1.0
    """

    __slots__ = ()

    def __new__(
        cls,
        A: Any,
        b: Any = None,
        sample_weight: Any = None,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        client: Any = None,
    ) -> LeastSquares:
        A, b, sample_weight = data_of(A, b, sample_weight, "b", target, columns)
        return cls._make([Square(), *checked_data(A, b, sample_weight, "b", client)])

    @property
    def read_once(self) -> bool:
        """Whether its rows are so many that proofs use their sums, too, and do not read them again for a few more digits."""
        n, d = self.rows.shape
        return d <= min(n, FEW_COLUMNS) and self.rows.numbers >= MANY_NUMBERS and self.summable

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        """One pass over the data, by all cores where it is long; none if they were summed up."""
        return self._sums(charged=False).survey(x, off) if self.read_once else super().survey(x, off)

    def sharp(self, x: np.ndarray, off: np.ndarray | None = None) -> Sharp:
        """Sums in twice the precision, unless the data are read once."""
        return Sharp(self.survey(x, off), 0.0) if self.read_once else super().sharp(x, off)

    @property
    def strong_convexity(self) -> float:
        """A number that is proven not to exceed the smallest eigenvalue of the second derivatives."""
        n, d = self.matrix.shape
        return self.summed().strong_convexity if d <= min(n, MOST_SIDE) and self.summable else 0.0

    @property
    def known_convexity(self) -> float:
        """That, where summing up all rows is cheap."""
        n, d = self.matrix.shape
        if d > n or (d > CHEAP_SIDE and n * d * d > CHEAP_PRODUCTS) or not self.summable:
            return 0.0
        return self._sums(charged=False).strong_convexity

    def hessian(self) -> np.ndarray:
        return self.summed().hessian()

    @property
    def summable(self) -> bool:
        """Whether its rows can be summed up without losing digits."""
        return remembered(self, "summable", lambda: (are_safe(self.rows), 0))

    def summed(self) -> SummedSquares:
        """Return the same objective with its rows summed up: in one pass over the data, and kept with them."""
        return self._sums(charged=True)

    def _sums(self, charged: bool) -> SummedSquares:
        def find() -> tuple[SummedSquares, int]:
            total = Summation()
            total.add_blocks(self.rows)
            return total.mean(), 1

        return remembered(self, "sums", find, charged)


class Logistic(LinearModel):
    """The mean logistic loss log(1 + exp(−y_i ⟨a_i, x⟩)) over the rows of A.

    Parameters
    ----------
    A : array, SciPy sparse matrix or Dask array, (n, d), Store or path
        One sample per row; or a store, a ``.npy``, CSV or Parquet file, or a Dask array, as for :class:`LeastSquares`.
    y : array, (n,)
        Labels, either −1 and 1 or 0 and 1; left out if A is a table or a store.
    sample_weight : array, (n,), optional
        Non-negative weights, not all zero; only their ratios matter. Where A is a table or a store, it may be the name of a
        column.
    target, columns : str and list of str, optional
        Where A is a table or a store: the column of the targets, by default that of the store, and those of the features;
        all others if not given.
    client : distributed.Client, optional
        Where A is a Dask array: the client of its workers; the current one if not given.

    Examples
    --------
    >>> round(Logistic([[1.0], [2.0]], [0, 1]).value([0.0]), 6)
    0.693147
    """

    __slots__ = ()

    def __new__(
        cls,
        A: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        client: Any = None,
    ) -> Logistic:
        A, y, sample_weight = data_of(A, y, sample_weight, "y", target, columns)
        return cls._make([LogLoss(), *checked_data(A, y, sample_weight, "y", client, labels=True)])


class Huber(LinearModel):
    """The mean Huber loss over the rows of A: squared up to residuals of size ``delta``, linear beyond.

    Parameters
    ----------
    A : array, SciPy sparse matrix or Dask array, (n, d), Store or path
        One sample per row; or a store, a ``.npy``, CSV or Parquet file, or a Dask array, as for :class:`LeastSquares`.
    b : array, (n,)
        Targets; left out if A is a table or a store.
    delta : float, positive
        The residual at which the loss turns from quadratic to linear, in units of b.
    sample_weight : array, (n,), optional
        Non-negative weights, not all zero; only their ratios matter. Where A is a table or a store, it may be the name of a
        column.
    target, columns : str and list of str, optional
        Where A is a table or a store: the column of the targets, by default that of the store, and those of the features;
        all others if not given.
    client : distributed.Client, optional
        Where A is a Dask array: the client of its workers; the current one if not given.

    Examples
    --------
    >>> Huber([[1.0]], [0.0], delta=1.0).value([3.0])
    2.5
    """

    __slots__ = ()

    def __new__(
        cls,
        A: Any,
        b: Any = None,
        delta: float = 1.0,
        sample_weight: Any = None,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        client: Any = None,
    ) -> Huber:
        A, b, sample_weight = data_of(A, b, sample_weight, "b", target, columns)
        scalar = HuberLoss(checks.real(delta, "delta", above=0.0))
        return cls._make([scalar, *checked_data(A, b, sample_weight, "b", client)])


MODELS: dict[type, type[LinearModel]] = {Square: LeastSquares, LogLoss: Logistic, HuberLoss: Huber}


def linear_model(scalar: Any, A: Any, targets: Any, sample_weight: Any = None, ones: bool = False) -> LinearModel:
    """The weighted mean of any scalar loss over the rows of A.

    Parameters
    ----------
    scalar : value
        A scalar loss: a named tuple for which :func:`loss` and :func:`curvature` are registered.
    A : array or SciPy sparse matrix, (n, d)
        One sample per row.
    targets : array, (n,)
        One target per row.
    sample_weight : array, (n,), optional
        Non-negative weights, not all zero; only their ratios matter.
    ones : bool
        Whether there is a column of ones behind those of A, for an intercept. It is not stored.
    """
    kind = MODELS.get(type(scalar), LinearModel)
    labels = kind is Logistic  # what is known of the loss holds for these alone
    return kind._make([scalar, *checked_data(A, targets, sample_weight, "targets", labels=labels, ones=ones)])


@draw.register(LinearModel)
def draw_linear_model(objective, moment, batch):
    return draw_rows(objective.matrix, moment, batch)


@accumulate.register(LinearModel)
def accumulate_linear_model(objective, batch, x, w, y, v, out):
    matrix, first = in_memory(objective.matrix)
    model = (objective.scalar, matrix, objective.targets, objective.weights)
    values = (0.0, 0.0)
    done = 0
    while done < batch.size:  # once, unless rows are elsewhere, and the buffer has no room for all of them
        codes = located(objective.matrix, batch[done:])
        values = accumulate_rows(model, codes, first, 1.0 / batch.size, values, x, w, y, v, out)
        done += codes.size
    return values


def _squares_of_rows(rows: Rows, low: int, high: int) -> np.ndarray:
    return rows.weights[low:high] * rows.matrix.between(low, high).row_norms ** 2


def _gradient_of_block(rows: Rows, low: int, high: int, scalar: Any, x: np.ndarray, share: float) -> tuple[float, Any]:
    out = np.zeros_like(x)
    return add_rows(LinearModel._make([scalar, *rows]), low, high, share, x, out), out


def _both(total: tuple[float, np.ndarray], part: tuple[float, np.ndarray]) -> tuple[float, np.ndarray]:
    return total[0] + part[0], plus(total[1], part[1])


def _survey_of_block(
    rows: Rows, low: int, high: int, scalar: Any, x: np.ndarray, room: np.ndarray, over_rows: float, relative: float
) -> np.ndarray:
    d = x.size
    out = np.zeros((2, d + 1))
    model = LinearModel._make([scalar, *rows])
    out[0, d], out[1, d] = survey_rows(model, low, high, x, room, over_rows, relative, out[:, :d])
    return out
