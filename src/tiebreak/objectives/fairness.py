"""Fairness: how much the predictions of a classifier tell of an attribute that they should not depend on.

Zafar, Valera, Gomez Rodriguez and Gummadi, Fairness constraints: mechanisms for fair classification, AISTATS 2017, measure
it by a covariance.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks, kernel
from tiebreak.engine.randomness import fraction, philox
from tiebreak.engine.rounding import UNIT
from tiebreak.objectives.arithmetic import Objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.matrices import CSR, Dense, add_row, as_matrix, row_dot, row_dot_and_size, row_dots
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN, Survey, room_around

STEEPEST_BEND = 1.0 / (6.0 * math.sqrt(3.0))  # max |σ''|


class _SquaredCovariance(NamedTuple):
    matrix: Dense | CSR  # rows a_i
    centred: np.ndarray  # c_i, of mean 0


class SquaredCovariance(Objective, _SquaredCovariance):
    """The squared covariance of predicted probabilities with a sensitive attribute; not convex.

    f(x) = (mean_i c_i σ(⟨a_i, x⟩))² with σ(z) = 1 / (1 + exp(−z)) and c the attribute less its mean.

    The square of a mean over few rows overestimates the square of the mean. A sample is therefore a *pair* of rows, i and j
    drawn independently, and stands for u_i u_j with u_i = c_i σ(⟨a_i, x⟩): its expectation is f(x). All rows together give f
    exactly, and ``value(x, indices)`` the square of the mean over these rows.

    Parameters
    ----------
    A : array or SciPy sparse matrix, (n, d)
        One person per row.
    sensitive : array, (n,)
        The attribute, such as 0 and 1; not the same for all.

    Examples
    --------
    >>> f = SquaredCovariance([[1.0], [-1.0]], sensitive=[0, 1])
    >>> f.value([0.0])
    0.0
    >>> round(f.value([100.0]), 6)  # the probability is 1 for the first and 0 for the second
    0.0625
    """

    __slots__ = ()
    convex = False
    floor = 0.0

    def __new__(cls, A: Any, sensitive: Any) -> SquaredCovariance:
        matrix = as_matrix(A, "A")
        attribute = checks.vector(sensitive, "sensitive")
        checks.data(attribute, "sensitive")
        if attribute.size != matrix.shape[0]:
            raise ValueError(
                f"`sensitive` must have one entry for each of the {matrix.shape[0]} rows of `A`, got {attribute.size}"
            )
        if attribute.min() == attribute.max():
            raise ValueError(
                f"`sensitive` must differ between rows, got {attribute[0]:g} everywhere: the covariance is 0 then"
            )
        return super().__new__(cls, matrix, attribute - attribute.mean())

    @property
    def dimension(self) -> int:
        return self.matrix.shape[1]

    @property
    def n_samples(self) -> int:
        return self.matrix.shape[0]

    @property
    def lipschitz(self) -> float:
        """A bound of ‖2 ∇h ∇hᵀ + 2 h ∇²h‖, where f = h².

        ‖∇h‖ ≤ mean |c_i| ‖a_i‖ / 4, ‖∇²h‖ ≤ mean |c_i| ‖a_i‖² / (6 √3), and |h| = |mean c_i (σ_i − ½)| ≤ mean |c_i| / 2.
        """
        size, norms = np.abs(self.centred), self.matrix.row_norms
        slope = float(np.mean(size * norms)) / 4.0
        return 2.0 * slope**2 + float(np.mean(size) * np.mean(size * norms**2)) * STEEPEST_BEND

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        """The value's error is that of the mean h, whose terms cancel. f is not convex: no proof asks for its gradient's."""
        survey, room = super().survey(x, off), room_around(x, off, (self.matrix.longest_row + FEW_OPERATIONS) * UNIT)
        error = MARGIN * float(mean_error(self, x, room, (self.n_samples + FEW_OPERATIONS) * UNIT))
        return survey._replace(value_error=error * (2.0 * math.sqrt(abs(survey.value)) + error) + survey.value_error)

    def __repr__(self) -> str:
        return f"SquaredCovariance {self.matrix}"


@kernel
def sigmoid(z):
    """Return σ(z) and its derivative, without overflow."""
    decay = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else decay) / (1.0 + decay), decay / (1.0 + decay) ** 2


@kernel(reorder=True)
def mean_error(objective, x, room, relative):
    """Return a bound of the error of the mean of c_i σ(⟨a_i, x⟩), as σ is steeper than ¼ nowhere."""
    total = 0.0
    n = objective.centred.size
    for i in range(n):
        score, doubt = row_dot_and_size(objective.matrix, i, x, room)
        at, _ = sigmoid(score)
        total += abs(objective.centred[i]) * (relative * at + 0.25 * doubt) / n
    return total


@draw.register(SquaredCovariance)
def draw_covariance(objective, moment, batch):
    n = objective.centred.size
    for k in range(batch.size):
        a, b, c, d = philox(moment, k)
        i, j = int(fraction(a, b) * n), int(fraction(c, d) * n)
        batch[k] = i + n * (j + 1)  # a pair: at least n, so that it differs from the index of a row
    return batch


@accumulate.register(SquaredCovariance)
def accumulate_covariance(objective, batch, x, w, y, v, out):
    if batch[0] >= objective.centred.size:
        return add_pairs(objective, batch, x, w, y, v, out)
    return add_together(objective, batch, x, w, y, v, out)


@kernel
def scores(matrix, i, x, y, v):
    """Return ⟨a_i, x⟩ and, if it is wanted, ⟨a_i, y⟩."""
    return row_dots(matrix, i, x, y) if v != 0.0 else (row_dot(matrix, i, x), 0.0)


@kernel(reorder=True)
def add_pairs(objective, batch, x, w, y, v, out):
    """The mean over pairs of u_i u_j, whose derivative is u_j ∇u_i + u_i ∇u_j."""
    n = objective.centred.size
    value_x = 0.0
    value_y = 0.0
    for k in range(batch.size):
        i, j = batch[k] % n, batch[k] // n - 1
        share = objective.centred[i] * objective.centred[j] / batch.size
        z_i, z_i_y = scores(objective.matrix, i, x, y, v)
        z_j, z_j_y = scores(objective.matrix, j, x, y, v)
        at_i, slope_i = sigmoid(z_i)
        at_j, slope_j = sigmoid(z_j)
        at_i_y, slope_i_y = sigmoid(z_i_y)
        at_j_y, slope_j_y = sigmoid(z_j_y)
        add_row(objective.matrix, i, share * (w * slope_i * at_j + v * slope_i_y * at_j_y), out)
        add_row(objective.matrix, j, share * (w * slope_j * at_i + v * slope_j_y * at_i_y), out)
        value_x += share * at_i * at_j
        value_y += share * at_i_y * at_j_y
    return value_x, value_y if v != 0.0 else 0.0


@kernel(reorder=True)
def add_together(objective, batch, x, w, y, v, out):
    """The square of the mean h of u_i over all rows of the batch, whose derivative is 2 h ∇h."""
    slopes = np.empty((2, batch.size))  # of the terms of h at x and y: known before h is
    h_x = 0.0
    h_y = 0.0
    for k in range(batch.size):
        share = objective.centred[batch[k]] / batch.size
        z_x, z_y = scores(objective.matrix, batch[k], x, y, v)
        at_x, slope_x = sigmoid(z_x)
        at_y, slope_y = sigmoid(z_y)
        h_x += share * at_x
        h_y += share * at_y
        slopes[0, k] = share * slope_x
        slopes[1, k] = share * slope_y
    for k in range(batch.size):
        add_row(objective.matrix, batch[k], 2.0 * (w * h_x * slopes[0, k] + v * h_y * slopes[1, k]), out)
    return h_x * h_x, h_y * h_y if v != 0.0 else 0.0
