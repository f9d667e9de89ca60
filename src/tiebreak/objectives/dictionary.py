"""Dictionary learning: data points a_i as combinations D x_i of few columns ("atoms") of a matrix D.

Data and codes come as in the papers, one data point per column. They are stored one data point per row, and D column by
column, so that every inner loop runs along contiguous numbers. Files that hold one point after the other are used in place.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks, kernel
from tiebreak.engine.randomness import uniform_indices
from tiebreak.engine.rounding import UNDERFLOW, UNIT
from tiebreak.objectives.arithmetic import Objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.matrices import NO_TARGETS, Dense, Rows
from tiebreak.objectives.smoothness import curvature_of
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN, Survey
from tiebreak.rows.blocks import BLOCK_ROWS
from tiebreak.rows.maps import is_mapped, mapped, unlocked
from tiebreak.rows.store import SparseRows, Store


class _DictionaryLoss(NamedTuple):
    points: np.ndarray  # (n, m): row i is a_i
    codes: np.ndarray  # (n, p): row i is x̂_i
    weight: float  # 1 for the mean, n for the sum


class DictionaryLoss(Objective, _DictionaryLoss):
    """The mean reconstruction error 1/(2n) Σ_i ‖a_i − D x̂_i‖² of a dictionary D, for codes x̂_i that are given.

    The variable is D (m × p), stored column by column in one vector, as :class:`Columns` stores it.

    Parameters
    ----------
    A : array, (m, n), path of a .npy file, or Store
        The data, one point per column; or a store, whose rows are the points. Memory maps and files in which one point
        follows the other, that is maps in Fortran order, are used in place, as stores are. Other data are copied.
    codes : array, (p, n), path of a .npy file, or Store
        The codes, one per column. Zeros cost nothing.
    sums : bool
        Whether to take the sum ½ Σ_i ‖a_i − D x̂_i‖² in place of the mean: step sizes and slacks of papers that use sums then
        have their meaning.

    Examples
    --------
    Two atoms in the plane; the second data point is twice the second atom:

    >>> g = DictionaryLoss([[1.0, 0.0], [0.0, 2.0]], codes=[[1.0, 0.0], [0.0, 2.0]])
    >>> g.value([1.0, 0.0, 0.0, 1.0])
    0.0
    >>> g.value([0.0, 0.0, 0.0, 0.0])
    1.25
    """

    __slots__ = ()
    convex = True
    floor = 0.0

    def __new__(cls, A: Any, codes: Any, sums: bool = False) -> DictionaryLoss:
        points, rows = columns_as_rows(A, "A"), columns_as_rows(codes, "codes")
        if rows.shape[0] != points.shape[0]:
            raise ValueError(f"`codes` must have one column for each of the {points.shape[0]} of `A`, got {rows.shape[0]}")
        return super().__new__(cls, points, rows, weight_of(sums, points.shape[0]))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of D."""
        return self.points.shape[1], self.codes.shape[1]

    @property
    def dimension(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def n_samples(self) -> int:
        return self.points.shape[0]

    @property
    def lipschitz(self) -> float:
        """λ_max(X̂ X̂ᵀ) / n, times n for sums."""
        return (
            curvature_of(self, Rows(Dense(self.codes), NO_TARGETS, np.ones(self.n_samples))) * self.weight / self.n_samples
        )

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        shape = self.codes.shape[1], self.points.shape[1]
        atoms = Matrix(x.reshape(shape), np.zeros(shape) if off is None else off.reshape(shape))
        nothing = np.broadcast_to(0.0, self.codes.shape)
        return survey_of_errors(self.points, Matrix(self.codes, nothing), atoms, self.weight, False)

    def __repr__(self) -> str:
        return f"DictionaryLoss {self.shape[0]} × {self.shape[1]} of {self.n_samples} points"


class _JointDictionaryLoss(NamedTuple):
    points: np.ndarray  # (n, m): row i is a_i
    weight: float  # 1 for the mean, n for the sum


class JointDictionaryLoss(Objective, _JointDictionaryLoss):
    """The mean reconstruction error 1/(2n) Σ_i ‖a_i − D x_i‖² of a dictionary D and codes x_i; not convex in both.

    The variable is D (m × p), then X (p × n), each column by column in one vector, as :class:`Product` of two
    :class:`Columns` stores them. The number p of atoms follows from the length p (m + n) of that vector. Sample i depends on
    D and on its own column of X only.

    Parameters
    ----------
    A : array, (m, n), path of a .npy file, or Store
        The data, one point per column, as in :class:`DictionaryLoss`.
    sums : bool
        Whether to take the sum over the points in place of the mean.

    Examples
    --------
    >>> f = JointDictionaryLoss([[1.0, 2.0, 3.0]])  # three numbers, as multiples of each of two atoms
    >>> f.value([1.0, 0.0] + [1.0, 0.0] + [2.0, 0.0] + [3.0, 0.0])
    0.0
    """

    __slots__ = ()
    convex = False
    floor = 0.0
    dimension = None

    def __new__(cls, A: Any, sums: bool = False) -> JointDictionaryLoss:
        points = columns_as_rows(A, "A")
        return super().__new__(cls, points, weight_of(sums, points.shape[0]))

    @property
    def n_samples(self) -> int:
        return self.points.shape[0]

    def check_dimension(self, dimension: int, name: str) -> None:
        n, m = self.points.shape
        if dimension % (m + n):
            raise ValueError(
                f"`{name}` must have p · {m + n} variables for p atoms, {m} for each column of D and {n} for each row of X, "
                f"as for data of shape ({m}, {n}), got {dimension}"
            )

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        n, m = self.points.shape
        p = x.size // (m + n)
        slack = np.zeros_like(x) if off is None else off
        atoms, codes = (
            Matrix(x[where].reshape(shape), slack[where].reshape(shape))
            for where, shape in ((slice(0, p * m), (p, m)), (slice(p * m, None), (n, p)))
        )
        return survey_of_errors(self.points, codes, atoms, self.weight, True)

    def __repr__(self) -> str:
        n, m = self.points.shape
        return f"JointDictionaryLoss of {n} points in {m} dimensions"


def columns_as_rows(value: Any, name: str) -> np.ndarray:
    """Return the columns of a matrix as the rows of a contiguous array: a copy in float64, or a map as it is."""
    if isinstance(value, Store):
        return _rows_of(value, name)
    array = checks.numbers(_mapped(value, name), name)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"`{name}` must be a non-empty matrix, one data point per column, got an array of shape {array.shape}"
        )
    in_place = is_mapped(array) and array.flags.f_contiguous and array.dtype in (np.float32, np.float64)
    rows = unlocked(np.asarray(array.T)) if in_place else np.array(array.T, dtype=np.float64, order="C")
    if not all(np.isfinite(rows[low : low + BLOCK_ROWS]).all() for low in range(0, len(rows), BLOCK_ROWS)):
        checks.finite(rows.T, name)  # with the place as the user counts
    checks.data(rows, name)
    return rows


def _mapped(value: Any, name: str) -> Any:
    """Return the array of a file that a path names."""
    if not isinstance(value, (str, os.PathLike)):
        return value
    path = Path(value).expanduser()
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise ValueError(f"`{name}` must be an array, a store or the path of a .npy file that exists, got {str(path)!r}")
    return mapped(path)


def _rows_of(store: Store, name: str) -> np.ndarray:
    """Return the rows of a store, in place, after they were verified."""
    matrix = store.matrix()
    if isinstance(matrix.rows, SparseRows):
        raise ValueError(f"`{name}` must be a dense matrix, got a store of sparse rows, {store.folder}")
    checks.extent(matrix.largest, name)
    return unlocked(np.asarray(matrix.rows))


def weight_of(sums: Any, n: int) -> float:
    """Return by what the mean is multiplied."""
    return float(n) if checks.flag(sums, "sums") else 1.0


class Matrix(NamedTuple):
    """A matrix and how far its entries may be from where they should be."""

    array: np.ndarray
    off: np.ndarray


def survey_of_errors(points: np.ndarray, codes: Matrix, atoms: Matrix, weight: float, codes_vary: bool) -> Survey:
    """Return the survey of ½ weight / n · ‖codes · atoms − points‖², as a function of the atoms, or of the codes too."""
    n, m = points.shape
    p = atoms.array.shape[0]
    in_rest, over_all = (p + FEW_OPERATIONS) * UNIT, (n * m + p + FEW_OPERATIONS) * UNIT
    most_atoms = np.abs(atoms.array) + atoms.off
    value, value_error = 0.0, 0.0
    gradient, error = (np.zeros(p * m + n * p * codes_vary) for _ in range(2))
    of_atoms, atoms_error = (each[: p * m].reshape(p, m) for each in (gradient, error))
    for low in range(0, n, BLOCK_ROWS):  # data on disk are never in memory as a whole
        own = slice(low, low + BLOCK_ROWS)
        block, code, code_off = points[own], codes.array[own], codes.off[own]
        most_codes = np.abs(code) + code_off
        rest = code @ atoms.array - block
        doubt = in_rest * (most_codes @ most_atoms + np.abs(block)) + most_codes @ atoms.off + code_off @ most_atoms
        most = np.abs(rest) + doubt
        spread = over_all * most + doubt
        value += float(np.sum(rest * rest))
        value_error += float(np.sum(most * spread))
        of_atoms += code.T @ rest
        atoms_error += most_codes.T @ spread + code_off.T @ most
        if codes_vary:
            there = slice(p * m + low * p, p * m + (low + len(block)) * p)
            gradient[there] = (rest @ atoms.array.T).ravel()
            error[there] = (spread @ most_atoms.T + most @ atoms.off.T).ravel()
    share = weight / n
    return Survey(
        0.5 * share * value,
        share * gradient,
        MARGIN * share * value_error + UNDERFLOW,
        MARGIN * share * error + UNDERFLOW,
    )


# Atoms are seen as the rows of a p × m matrix, which is how they lie in the vector.


@kernel(reorder=True)
def residual(atoms, code, point, out):
    """Set out ← Σ_j code_j d_j − point and return half its squared norm."""
    for k in range(point.size):
        out[k] = -point[k]
    for j in range(code.size):
        if code[j] != 0.0:
            for k in range(point.size):
                out[k] += code[j] * atoms[j, k]
    total = 0.0
    for k in range(point.size):
        total += out[k] * out[k]
    return 0.5 * total


@kernel(reorder=True)
def add_atoms(weight, code, direction, out):
    """Add weight · code_j · direction to atom j of ``out``, for all j."""
    for j in range(code.size):
        if code[j] != 0.0:
            factor = weight * code[j]
            for k in range(direction.size):
                out[j, k] += factor * direction[k]


@kernel(reorder=True)
def add_products(weight, atoms, direction, out):
    """Add weight · ⟨d_j, direction⟩ to entry j of ``out``, for all atoms d_j."""
    for j in range(out.size):
        total = 0.0
        for k in range(direction.size):
            total += atoms[j, k] * direction[k]
        out[j] += weight * total


@draw.register(DictionaryLoss)
def draw_dictionary(objective, moment, batch):
    return uniform_indices(moment, objective.points.shape[0], batch)


@accumulate.register(DictionaryLoss)
def accumulate_dictionary(objective, batch, x, w, y, v, out):
    p, m = objective.codes.shape[1], objective.points.shape[1]
    atoms_x, atoms_y, atoms_out = x.reshape((p, m)), y.reshape((p, m)), out.reshape((p, m))
    at_x, at_y = np.empty(m), np.empty(m)  # residuals; once per call
    share = objective.weight / batch.size
    value_x = 0.0
    value_y = 0.0
    for k in range(batch.size):
        point, code = objective.points[batch[k]], objective.codes[batch[k]]
        value_x += share * residual(atoms_x, code, point, at_x)
        if v == 0.0:
            add_atoms(share * w, code, at_x, atoms_out)
        else:
            value_y += share * residual(atoms_y, code, point, at_y)
            for i in range(m):
                at_x[i] = w * at_x[i] + v * at_y[i]
            add_atoms(share, code, at_x, atoms_out)
    return value_x, value_y


@draw.register(JointDictionaryLoss)
def draw_joint_dictionary(objective, moment, batch):
    return uniform_indices(moment, objective.points.shape[0], batch)


@accumulate.register(JointDictionaryLoss)
def accumulate_joint_dictionary(objective, batch, x, w, y, v, out):
    n, m = objective.points.shape
    p = x.size // (m + n)
    atoms_x, codes_x = parts(x, p, m)
    atoms_y, codes_y = parts(y, p, m)
    atoms_out, codes_out = parts(out, p, m)
    at = np.empty(m)  # a residual; once per call
    share = objective.weight / batch.size
    value_x = 0.0
    value_y = 0.0
    for k in range(batch.size):
        i = batch[k]
        value_x += share * residual(atoms_x, codes_x[i], objective.points[i], at)
        add_atoms(share * w, codes_x[i], at, atoms_out)
        add_products(share * w, atoms_x, at, codes_out[i])
        if v != 0.0:
            value_y += share * residual(atoms_y, codes_y[i], objective.points[i], at)
            add_atoms(share * v, codes_y[i], at, atoms_out)
            add_products(share * v, atoms_y, at, codes_out[i])
    return value_x, value_y


@kernel
def parts(x, p, m):
    """Return the p atoms of length m and the codes of all points in a vector, as the rows of two matrices."""
    return x[: p * m].reshape((p, m)), x[p * m :].reshape((x.size // p - m, p))
