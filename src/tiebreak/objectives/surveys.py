"""An objective in full at one point, with bounds on what rounding does to it: what proofs are made of.

The model is the usual one: a sum of k products, in whatever order, is wrong by at most k u Σ|products| to first order, with
u = 2⁻⁵³ (Higham, Accuracy and Stability of Numerical Algorithms, chapter 3). Factors of second order, such as 1 / (1 − k u),
are covered by :data:`MARGIN`; products that underflow, by :data:`UNDERFLOW`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.engine.rounding import UNDERFLOW, UNIT

MARGIN = 1.01  # factor that covers what is of second order in the number of operations times UNIT
FEW_OPERATIONS = 16.0  # roundings of a scalar loss, its weight and its share, with room to spare


class Survey(NamedTuple):
    """An objective at a point x: what was computed, and by how much it may differ from what it should be.

    The errors hold at every point z with |z_j − x_j| ≤ off_j, if the survey was made with room for that.
    """

    value: float
    gradient: np.ndarray
    value_error: float
    gradient_error: np.ndarray  # one per variable

    @property
    def finite(self) -> bool:
        """Whether the value and the gradient are."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())

    def scaled(self, factor: float) -> Survey:
        """Return that of a multiple of the objective."""
        value, gradient, size = factor * self.value, factor * self.gradient, abs(factor)
        return Survey(
            value,
            gradient,
            size * self.value_error + 2.0 * UNIT * abs(value) + UNDERFLOW,
            size * self.gradient_error + 2.0 * UNIT * np.abs(gradient) + UNDERFLOW,
        )

    def plus(self, other: Survey) -> Survey:
        """Return that of the sum with another objective."""
        value, gradient = self.value + other.value, self.gradient + other.gradient
        return Survey(
            value,
            gradient,
            self.value_error + other.value_error + 2.0 * UNIT * abs(value),
            self.gradient_error + other.gradient_error + 2.0 * UNIT * np.abs(gradient),
        )

    def placed(self, start: int, size: int) -> Survey:
        """Return that of the objective as one of a longer vector, of which its variables begin at ``start``."""
        gradient, error = np.zeros(size), np.zeros(size)
        where = slice(start, start + self.gradient.size)
        gradient[where], error[where] = self.gradient, self.gradient_error
        return Survey(self.value, gradient, self.value_error, error)


class Sharp(NamedTuple):
    """A survey at x itself, and by how much the value may differ at the points that are as near as ``off`` says."""

    survey: Survey
    drift: float

    def scaled(self, factor: float) -> Sharp:
        """Return that of a multiple of the objective."""
        return Sharp(self.survey.scaled(factor), abs(factor) * self.drift * (1.0 + 2.0 * UNIT))

    def plus(self, other: Sharp) -> Sharp:
        """Return that of the sum with another objective."""
        return Sharp(self.survey.plus(other.survey), (self.drift + other.drift) * (1.0 + 2.0 * UNIT))

    def placed(self, start: int, size: int) -> Sharp:
        """Return that of the objective as one of a longer vector."""
        return Sharp(self.survey.placed(start, size), self.drift)


def accurate(value: float, gradient: np.ndarray, relative: float) -> Survey:
    """Return the survey of numbers that are known to be right but for a relative error of each."""
    return Survey(value, gradient, relative * abs(value) + UNDERFLOW, relative * np.abs(gradient) + UNDERFLOW)


def room_around(x: np.ndarray, off: np.ndarray | None, relative: float) -> np.ndarray:
    """Return how far each variable may be from where it should be: by rounding of what it enters, and by ``off``."""
    return relative * np.abs(x) if off is None else relative * np.abs(x) + off
