"""What an objective is to the active set: a sum of terms Σ_i c_i ℓ(z_i, b_i) of images z = M x, whose curvature is known."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from tiebreak.active.images import Columns, Entries, within
from tiebreak.domains.atoms import Atom
from tiebreak.engine import kernel
from tiebreak.engine.rounding import UNIT
from tiebreak.objectives import LeastSquares, LinearModel, Placed, Scaled, SquaredNorm, Sum, SummedSquares
from tiebreak.objectives.losses import Square, bend, loss
from tiebreak.objectives.matrices import CSR
from tiebreak.objectives.row_sums import survey_rows
from tiebreak.objectives.summed import MOST_SIDE

ROUNDING_OF_VALUES = 1e-14  # rounding of a sum of squares or losses, as a share of it
TYPICAL_PASSES = 30  # passes over the data that a problem takes
SLOWER = 15.0  # factor by which a product of a matrix and a vector takes longer per multiplication than one of two matrices


class Pair(NamedTuple):
    """A point, or a direction, with its image."""

    x: np.ndarray
    image: np.ndarray


class Term:
    """One term. An image, where it needs any, is an array of ``size`` numbers.

    Attributes
    ----------
    size : int
        Of an image.
    quadratic : bool
        Whether the curvature is the same everywhere.
    first_passes, passes : int
        Passes over the data that it takes to begin with, and that each look takes.
    largest : float
        The size of the largest number of its data.
    """

    size: int
    quadratic: bool
    largest: float
    first_passes: int = 0

    @property
    def passes(self) -> int:
        return 1

    def refine(self) -> bool:
        """Look more closely from now on; return False if there is no way to."""
        return False

    def store(self) -> Columns | Entries:
        """Return what is to keep what the term needs of atoms: their images M v, or their entries if it needs none."""
        raise NotImplementedError

    def bend_along(self, way: np.ndarray, bends: np.ndarray) -> float:
        """Return the curvature along a direction, where entries of images have these."""
        raise NotImplementedError

    def look(self, x: np.ndarray, image: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value at x and the curvature of each entry of the image, and add the gradient to ``gradient``."""
        raise NotImplementedError

    def image(self, x: np.ndarray) -> np.ndarray:
        """Return the image of a point that need not be a mean of atoms; of nothing where :meth:`look` needs none."""
        return x[:0]

    def along(self, point: Pair, way: Pair) -> tuple[float, float]:
        """Return value and slope, at a point, along a direction."""
        raise NotImplementedError

    def rounding(self, x: np.ndarray, value: float) -> float:
        """Return about what rounding does to its value at x."""
        return ROUNDING_OF_VALUES * abs(value)

    def rehearse(self) -> None:
        """Compile what a look needs."""


class Rows(Term):
    """The rows of a linear model."""

    def __init__(self, model: LinearModel, factor: float, where: slice) -> None:
        self.scalar, self.targets, self.where = model.scalar, model.targets, where
        self.shares = model.weights * (factor / model.n_samples)
        self.size, self.quadratic = model.n_samples, isinstance(model.scalar, Square)
        self._data = model.matrix

    @functools.cached_property
    def largest(self) -> float:  # type: ignore[override]
        return max(self._data.largest, float(np.abs(self.targets).max()))

    @functools.cached_property
    def matrix(self) -> Any:
        return _matrix(self._data)

    @functools.cached_property
    def columns(self) -> Any:
        return self.matrix.tocsc() if scipy.sparse.issparse(self.matrix) else self.matrix

    def image(self, x: np.ndarray) -> np.ndarray:
        return self.matrix @ x[self.where]

    def rehearse(self) -> None:
        none = np.zeros(0)
        evaluate(self.scalar, none, none, none, none, none)

    def store(self) -> Columns:
        return Columns(self.size, lambda atoms: _images(self.columns, [within(atom, self.where) for atom in atoms]))

    def bend_along(self, way: np.ndarray, bends: np.ndarray) -> float:
        return float(bends @ self.image(way) ** 2)

    def look(self, x: np.ndarray, image: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        slopes, bends = np.empty_like(image), np.empty_like(image)
        value = evaluate(self.scalar, image, self.targets, self.shares, slopes, bends)
        gradient[self.where] += self.matrix.T @ slopes
        return value, bends

    def along(self, point: Pair, way: Pair) -> tuple[float, float]:
        slopes, bends = np.empty_like(point.image), np.empty_like(point.image)
        value = evaluate(self.scalar, point.image, self.targets, self.shares, slopes, bends)
        return value, float(slopes @ way.image)


class Moments(Term):
    """The rows of a least-squares loss through H = Aᵀ W A and h = Aᵀ W b, which one pass over them has summed.

    What is minimised has the gradient H x − h, or that of the rows themselves once it is refined. Then H is the curvature of
    a model whose minimiser the rows correct: it may be as inexact as it likes.
    """

    quadratic = True

    def __init__(
        self, sums: SummedSquares, factor: float, where: slice, rows: LinearModel | None = None, first_passes: int = 0
    ) -> None:
        self.hessian, self.linear, self.constant = sums.quadratic, sums.linear, sums.constant
        self.factor, self.where, self.size = factor, where, sums.dimension
        self.model, self.first_passes, self.refined = rows, first_passes, False
        self.largest = max(math.sqrt(float(np.abs(self.hessian).max())), math.sqrt(abs(self.constant)))
        self._bends = np.full(self.size, factor)

    @functools.cached_property
    def curvature(self) -> np.ndarray:
        """H, and what keeps rounding from making it indefinite."""
        diagonal = np.diag(self.hessian)
        more = self.size * 4.0 * UNIT * np.where(diagonal == 0.0, 1.0, diagonal)
        return self.hessian + np.diag(more)

    @property
    def passes(self) -> int:
        return int(self.refined)

    def refine(self) -> bool:
        before, self.refined = self.refined, self.model is not None
        return self.refined and not before

    def rehearse(self) -> None:
        if self.model is not None and self.model.in_memory:
            x = np.zeros(self.size)
            survey_rows(self.model, 0, 0, x, x, 0.0, 0.0, np.zeros((2, self.size)))

    def rounding(self, x: np.ndarray, value: float) -> float:
        if self.refined:
            return super().rounding(x, value)
        reach = float(np.sqrt(np.diag(self.hessian)) @ np.abs(x[self.where])) + math.sqrt(2.0 * abs(self.constant))
        return self.factor * 8.0 * UNIT * reach * reach  # parts that cancel may be much larger than their sum

    def store(self) -> Entries:
        return Entries(self.where, self.factor, lambda: self.curvature)

    def bend_along(self, way: np.ndarray, bends: np.ndarray) -> float:
        return self.factor * float(way[self.where] @ (self.curvature @ way[self.where]))

    def look(self, x: np.ndarray, image: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = self._at(x[self.where])
        gradient[self.where] += self.factor * slope
        return self.factor * value, self._bends

    def along(self, point: Pair, way: Pair) -> tuple[float, float]:
        value, slope = self._at(point.x[self.where])
        return self.factor * value, self.factor * float(slope @ way.x[self.where])

    def _at(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if self.refined and self.model is not None:
            return self.model.value_and_gradient(x)
        product = self.hessian @ x
        return float(x @ (0.5 * product - self.linear)) + self.constant, product - self.linear


class Points(Term):
    """Half the squared distance to a point."""

    quadratic = True

    def __init__(self, norm: SquaredNorm, factor: float, where: slice) -> None:
        self.center = norm.center if norm.center.size else np.zeros(where.stop - where.start)
        self.factor, self.where, self.size = factor, where, where.stop - where.start
        self.largest = float(np.abs(self.center).max())
        self._bends = np.full(self.size, factor)

    def store(self) -> Entries:
        return Entries(self.where, self.factor)

    def bend_along(self, way: np.ndarray, bends: np.ndarray) -> float:
        return self.factor * float(way[self.where] @ way[self.where])

    def look(self, x: np.ndarray, image: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        off = x[self.where] - self.center
        gradient[self.where] += self.factor * off
        return 0.5 * self.factor * float(off @ off), self._bends

    def along(self, point: Pair, way: Pair) -> tuple[float, float]:
        off = point.x[self.where] - self.center
        return 0.5 * self.factor * float(off @ off), self.factor * float(off @ way.x[self.where])


@kernel(reorder=True)
def evaluate(scalar, image, targets, shares, slopes, bends):
    """Return Σ shares_i ℓ(image_i, targets_i), and set its first and second derivatives."""
    total = 0.0
    for i in range(image.size):
        total += shares[i] * loss(scalar, image[i], targets[i])[0]
    for i in range(image.size):  # apart from the sum, whose order would depend on where the arrays lie
        slopes[i] = shares[i] * loss(scalar, image[i], targets[i])[1]
        bends[i] = shares[i] * bend(scalar, image[i], targets[i])
    return total


@functools.singledispatch
def terms_of(objective: Any, dimension: int, factor: float = 1.0, start: int = 0) -> list[Term]:
    """Return the terms of ``factor`` times an objective of ``dimension`` variables from ``start`` on.

    Raises a TypeError, which names the objective, if it is none of which the curvature is known.
    """
    raise TypeError(f"{type(objective).__name__}")


@terms_of.register(LinearModel)
def terms_of_linear_model(objective: LinearModel, dimension: int, factor: float = 1.0, start: int = 0) -> list[Term]:
    if not bend.supports(objective.scalar):
        raise TypeError(f"{type(objective).__name__} of {type(objective.scalar).__name__}")
    where = slice(start, start + dimension)
    if isinstance(objective, LeastSquares) and summing_pays(objective):
        rows = None if objective.read_once else objective
        return [Moments(objective.summed(), factor, where, rows, first_passes=1)]
    if not objective.in_memory:
        raise TypeError(f"{type(objective).__name__} of rows that are elsewhere")
    return [Rows(objective, factor, where)]


def is_summed(objective: Any) -> bool:
    """Return whether all terms of an objective that have rows are summed up in one pass."""
    if isinstance(objective, (Scaled, Placed)):
        return is_summed(objective.objective)
    if isinstance(objective, Sum):
        return all(map(is_summed, objective.terms))
    return isinstance(objective, (SummedSquares, SquaredNorm)) or (
        isinstance(objective, LeastSquares) and summing_pays(objective)
    )


def summing_pays(objective: LeastSquares) -> bool:
    """Return whether AᵀA, once it is there, saves more than it takes: time, and the memory for it."""
    n, d = objective.matrix.shape
    if n <= d or d > MOST_SIDE or not objective.summable:
        return False
    if not objective.in_memory:
        return True
    per_row = objective.matrix.numbers / n
    rows = TYPICAL_PASSES * 2.0 * n * per_row * SLOWER + n * (0.5 * d) ** 2
    sums = n * per_row**2 + d**3 / 3.0 + TYPICAL_PASSES * 2.0 * d * d * SLOWER + d * (0.5 * d) ** 2
    return sums < rows


@terms_of.register(SummedSquares)
def terms_of_summed_squares(objective: SummedSquares, dimension: int, factor: float = 1.0, start: int = 0) -> list[Term]:
    return [Moments(objective, factor, slice(start, start + dimension))]


@terms_of.register(SquaredNorm)
def terms_of_squared_norm(objective: SquaredNorm, dimension: int, factor: float = 1.0, start: int = 0) -> list[Term]:
    return [Points(objective, factor, slice(start, start + dimension))]


@terms_of.register(Sum)
def terms_of_sum(objective: Sum, dimension: int, factor: float = 1.0, start: int = 0) -> list[Term]:
    return [term for each in objective.terms for term in terms_of(each, dimension, factor, start)]


@terms_of.register(Scaled)
def terms_of_scaled(objective: Scaled, dimension: int, factor: float = 1.0, start: int = 0) -> list[Term]:
    if objective.factor < 0.0:
        raise TypeError(f"{objective.factor:g} times {type(objective.objective).__name__}")
    return terms_of(objective.objective, dimension, factor * objective.factor, start)


@terms_of.register(Placed)
def terms_of_placed(objective: Placed, dimension: int, factor: float = 1.0, start: int = 0) -> list[Term]:
    return terms_of(objective.objective, objective.stop - objective.start, factor, start + objective.start)


def _matrix(matrix: Any) -> Any:
    """Return a matrix of data for products, in float64."""
    if isinstance(matrix, CSR):
        return scipy.sparse.csr_array(matrix.to_scipy(), dtype=np.float64)
    return np.asarray(matrix.array, dtype=np.float64)


def _images(matrix: Any, atoms: Sequence[Atom]) -> np.ndarray:
    """Return the products of a matrix with some atoms."""
    if all(atom.where.size <= 1 for atom in atoms):
        place = np.array([atom.where[0] if atom.where.size else 0 for atom in atoms], dtype=np.int64)
        value = np.array([atom.values[0] if atom.where.size else 0.0 for atom in atoms])
        chosen = matrix[:, place]
        return np.asfortranarray((chosen.toarray() if scipy.sparse.issparse(chosen) else chosen) * value)
    images = np.zeros((matrix.shape[0], len(atoms)), order="F")
    for k, atom in enumerate(atoms):  # one by one: the same bits, whichever atoms come together
        images[:, k] = matrix @ atom.point(matrix.shape[1])
    return images
