"""Least squares of rows that were summed up in one pass and need not be read again.

F(x) = ½ ⟨x, H x⟩ − ⟨h, x⟩ + c with H = Aᵀ W A, h = Aᵀ W b and c = ½ bᵀ W b, the weights W of sum 1. Rounding is part of what
is known of it. A sum of k products is wrong by at most k u Σ w |a_j| |a_k|, which is bounded by the diagonal, k u √(H_jj
H_kk) (Cauchy and Schwarz). So with σ_j = √H_jj, τ = Σ σ_j |x_j| and β = √2c the gradient is in doubt by some u σ_j
(τ + β), and the value by some u (τ + β)² / 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.rounding import eigenvalue_floor
from tiebreak.engine import checks
from tiebreak.engine.rounding import UNDERFLOW, UNIT
from tiebreak.engine.vectors import fill
from tiebreak.objectives.arithmetic import Objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.constants import remembered
from tiebreak.objectives.matrices import Rows, as_matrix
from tiebreak.objectives.matrices.rows import smallest_size
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN, Survey
from tiebreak.rows import one_thread

LEAST_PRODUCT = 1e-290  # size of products that have all their digits, also as parts of sums
FEW_BLOCKS = 4  # roundings that the sum over blocks is worth, if it carries its errors along
MOST_SIDE = 5000  # side of matrices AᵀA that are made: 200 megabytes


class _SummedSquares(NamedTuple):
    quadratic: np.ndarray  # (d, d): H
    linear: np.ndarray  # (d,): h
    constant: float  # c
    rows: int  # how many were summed
    roundings: int  # of each sum


class SummedSquares(Objective, _SummedSquares):
    """The mean squared error ½ (⟨a_i, x⟩ − b_i)² of rows that come in blocks, read once and forgotten.

    What it keeps takes d² numbers, however many rows there are. It is the same objective as :class:`LeastSquares` of all
    rows, up to rounding, which bounds allow for. An evaluation counts as one sample.

    Parameters
    ----------
    blocks : iterable of (A, b) or (A, b, sample_weight)
        Blocks of rows: dense or SciPy sparse matrices of d columns, one target per row and, if given, non-negative weights.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def blocks():
    ...     for _ in range(10):
    ...         A = rng.standard_normal((1000, 3))
    ...         yield A, A @ [1.0, 0.0, -2.0]
    >>> f = SummedSquares(blocks())
    >>> f
    SummedSquares 10,000 × 3
    >>> bool(abs(f.value([1.0, 0.0, -2.0])) < 1e-12)
    True
    """

    __slots__ = ()
    n_samples = 1
    convex = True
    floor = 0.0

    def __new__(cls, blocks: Iterable[Any]) -> SummedSquares:
        if not isinstance(blocks, Iterable):
            raise ValueError(f"`blocks` must be an iterable of (A, b), got {checks.shown(blocks)}")
        total = Summation()
        for block in blocks:
            total.add(*_checked(block, total.dimension))
        if total.rows == 0:
            raise ValueError("`blocks` must hold at least one block of rows, got none")
        if not total.weight > 0.0:
            raise ValueError("`sample_weight` must be positive somewhere, and it is 0 in all blocks")
        return total.mean()

    @property
    def dimension(self) -> int:
        return self.linear.size

    @property
    def lipschitz(self) -> float:
        """The largest eigenvalue of H."""
        return remembered(self, "lipschitz", lambda: (float(np.linalg.eigvalsh(self.quadratic)[-1]), 0))

    @property
    def strong_convexity(self) -> float:
        """A number that is proven not to exceed the least eigenvalue of the exact H."""
        return remembered(self, "strong convexity", lambda: (self._least_eigenvalue(), 0))

    def _least_eigenvalue(self) -> float:
        doubt = MARGIN * self._doubt * float(np.trace(self.quadratic)) + UNDERFLOW
        return max(eigenvalue_floor(self.quadratic) - doubt, 0.0)

    def hessian(self) -> np.ndarray:
        return self.quadratic.copy()

    @property
    def _doubt(self) -> float:
        """The relative error of a sum over rows."""
        return (self.roundings + FEW_OPERATIONS) * UNIT

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        """No row is read: d² operations. The errors are those of the sums, too."""
        product = self.quadratic @ x
        gradient = product - self.linear
        value = float(x @ (0.5 * product - self.linear)) + self.constant
        sizes = np.sqrt(np.maximum(np.diag(self.quadratic), 0.0))
        near = np.abs(x) if off is None else np.abs(x) + off
        reach = float(sizes @ near) + math.sqrt(2.0 * max(self.constant, 0.0))
        doubt = MARGIN * (self._doubt + 2.0 * (x.size + FEW_OPERATIONS) * UNIT)
        value_error, gradient_error = 0.5 * doubt * reach * reach + UNDERFLOW, doubt * reach * sizes + UNDERFLOW
        if off is not None:
            drift = MARGIN * float(sizes @ off)
            value_error += MARGIN * float((np.abs(gradient) + gradient_error) @ off) + drift * drift
            gradient_error = gradient_error + drift * sizes
        return Survey(value, gradient, value_error, gradient_error)

    def __repr__(self) -> str:
        return f"SummedSquares {self.rows:,} × {self.dimension:,}"


class Summation:
    """Sums over blocks of rows, one after the other."""

    def __init__(self) -> None:
        self.dimension: int | None = None
        self.rows = self._depth = 0
        self._numbers, self._numbers_rest = np.zeros(2), np.zeros(2)  # Σ w b² and Σ w

    def add(self, matrix: Any, targets: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add a block: a matrix of this package, its targets and weights ≥ 0, 1 if none are given."""
        n, d = matrix.shape
        if self.dimension is None:
            check_side(d)
            self.dimension = d
            self._begin(d)
        weights = np.ones(n) if weights is None else weights
        rows = Rows(matrix, targets, weights)
        if not are_safe(rows):
            raise ValueError(
                f"rows cannot be summed up where products of two numbers and a weight are below {LEAST_PRODUCT:g} in size:"
                " digits would be lost; rescale columns, targets or weights"
            )
        self._take(*_sums_of_block(rows, 0, n))

    def add_blocks(self, rows: Any) -> None:
        """Add all rows, in blocks, which are safe to add."""
        d = self.dimension = rows.shape[1]
        self._begin(d)
        per_row = rows.numbers / rows.shape[0]
        with one_thread():  # a library's sums depend on how many it has
            for sums in rows.passes(_sums_of_block, width=d * d / max(per_row, 1.0)):
                self._take(*sums)

    def _take(self, quadratic: np.ndarray, linear: np.ndarray, square: float, weight: float, rows: int, depth: int) -> None:
        for total, carried, part in (
            (self._quadratic, self._rest, quadratic),
            (self._linear, self._linear_rest, linear),
            (self._numbers, self._numbers_rest, np.array([square, weight])),
        ):
            add_carefully(total, carried, part)
        self.rows, self._depth = self.rows + rows, max(self._depth, depth)

    def _begin(self, d: int) -> None:
        self._quadratic, self._rest = np.zeros((d, d)), np.zeros((d, d))
        self._linear, self._linear_rest = np.zeros(d), np.zeros(d)

    @property
    def weight(self) -> float:
        """The sum of all weights."""
        return float(self._numbers[1] + self._numbers_rest[1])

    def mean(self) -> SummedSquares:
        """Return the weighted mean over all rows so far."""
        share, roundings = 1.0 / self.weight, self._depth + FEW_BLOCKS
        quadratic, linear = self._quadratic + self._rest, self._linear + self._linear_rest
        square = float(self._numbers[0] + self._numbers_rest[0])
        quadratic = 0.5 * share * (quadratic + quadratic.T)
        return SummedSquares._make([quadratic, share * linear, 0.5 * share * square, self.rows, roundings])

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return all sums as arrays."""
        if self.dimension is None:
            return {}
        return {
            "quadratic": np.stack([self._quadratic, self._rest]),
            "linear": np.stack([self._linear, self._linear_rest]),
            "numbers": np.stack([self._numbers, self._numbers_rest]),
            "counts": np.array([self.rows, self._depth]),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        if not arrays:
            return
        self._quadratic, self._rest = (np.array(each) for each in arrays["quadratic"])
        self._linear, self._linear_rest = (np.array(each) for each in arrays["linear"])
        self._numbers, self._numbers_rest = (np.array(each) for each in arrays["numbers"])
        self.dimension = self._linear.size
        self.rows, self._depth = arrays["counts"].tolist()


def add_carefully(total: np.ndarray, carried: np.ndarray, part: np.ndarray) -> None:
    """Add to a sum that carries its rounding errors along (Knuth's TwoSum), so that hardly any of them are left."""
    fresh = total + part
    back = fresh - total
    carried += (total - (fresh - back)) + (part - back)
    total[...] = fresh


def _sums_of_block(rows: Rows, low: int, high: int) -> tuple[np.ndarray, np.ndarray, float, float, int, int]:
    """Return the sums over some rows, how many they are, and how often a number is rounded on its way into a sum."""
    matrix, targets, weights = rows.matrix.between(low, high), rows.targets[low:high], rows.weights[low:high]
    quadratic, linear = matrix.gram(weights), matrix.combined(weights * targets)
    return quadratic, linear, math.fsum(weights * targets**2), math.fsum(weights), high - low, matrix.depth


def are_safe(rows: Any) -> bool:
    """Return whether products of two numbers of a row and its weight keep all their digits."""
    numbers, weights = zip(*rows.passes(_smallest_of_block, width=0.0), strict=True)
    number, weight = min(numbers), min(weights)
    return number >= math.sqrt(LEAST_PRODUCT) and weight * number * number >= LEAST_PRODUCT


def _smallest_of_block(rows: Rows, low: int, high: int) -> tuple[float, float]:
    """Return the sizes of the smallest number and of the smallest weight that are not 0."""
    number = min(rows.matrix.between(low, high).smallest, smallest_size(rows.targets[low:high]))
    return number, smallest_size(rows.weights[low:high])


def check_side(dimension: int) -> None:
    """Raise if the sums of so many variables would take too much memory."""
    if dimension > MOST_SIDE:
        raise ValueError(
            f"rows can be summed up for at most {MOST_SIDE:,} variables, whose products take 200 megabytes, got"
            f" {dimension:,}: keep the rows, as LeastSquares(A, b)"
        )


def _checked(block: Any, dimension: int | None) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return matrix, targets and weights of a block, or raise."""
    if not isinstance(block, (tuple, list)) or len(block) not in (2, 3):
        raise ValueError(f"each of `blocks` must be (A, b) or (A, b, sample_weight), got {checks.shown(block)}")
    matrix = as_matrix(block[0], "A")
    n, d = matrix.shape
    if dimension not in (None, d):
        raise ValueError(f"the blocks must have the same number of columns, got {d} after {dimension}")
    targets = checks.vector(block[1], "b", n)
    checks.data(targets, "b")
    if len(block) == 2:
        return matrix, targets, None
    weights = checks.vector(block[2], "sample_weight", n)
    checks.data(weights, "sample_weight")
    if weights.min() < 0.0:
        raise ValueError(f"`sample_weight` must be non-negative, got a minimum of {weights.min():g}")
    return matrix, targets, weights


@draw.register(SummedSquares)
def draw_summed_squares(objective, moment, batch):
    fill(batch, 0)
    return batch


@accumulate.register(SummedSquares)
def accumulate_summed_squares(objective, batch, x, w, y, v, out):
    value_x = objective.constant
    value_y = objective.constant if v != 0.0 else 0.0
    for j in range(x.size):
        row = objective.quadratic[j]
        at_x = 0.0
        at_y = 0.0
        for k in range(x.size):
            at_x += row[k] * x[k]
            at_y += row[k] * y[k]
        value_x += x[j] * (0.5 * at_x - objective.linear[j])
        out[j] += w * (at_x - objective.linear[j])
        if v != 0.0:
            value_y += y[j] * (0.5 * at_y - objective.linear[j])
            out[j] += v * (at_y - objective.linear[j])
    return value_x, value_y
