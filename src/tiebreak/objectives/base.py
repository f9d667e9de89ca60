"""What an objective is: something that can be sampled.

A value becomes an objective by deriving from :class:`Objective` and registering two generic functions, :func:`draw` and
:func:`accumulate`; everything else here has a default made of these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tiebreak import checks
from tiebreak.engine import Value, generic


@generic
def draw(objective, rng, batch):
    """Draw samples, with replacement, and return them as a batch that :func:`accumulate` takes.

    A finite sum fills ``batch``, an array of indices, and returns it; other sources may return anything of as many samples.
    """


@generic(reorder=True)
def accumulate(objective, batch, x, w, y, v, out):
    """Add w·∇F(x) + v·∇F(y) to ``out`` and return F(x) and F(y), where F is the mean over the batch.

    Each sample is read once for both points. With v = 0 the second point is not looked at and its value is returned as 0.
    """


class Objective(Value):
    """The common part of all objectives: what users ask them from Python.

    Attributes
    ----------
    dimension : int or None
        Number of variables; None if any number will do.
    n_samples : int
        Number of terms of the mean. An objective that is known exactly counts as one sample.
    lipschitz : float
        A constant L with ‖∇F(x) − ∇F(y)‖ ≤ L ‖x − y‖; NaN if it is not known.
    convex : bool or None
        Whether the objective is convex; None if it is not known.
    """

    __slots__ = ()

    dimension: int | None
    n_samples: int
    lipschitz: float = math.nan
    convex: bool | None = None

    def check_dimension(self, dimension: int, name: str) -> None:
        """Raise a ValueError if an objective of no fixed dimension cannot do with this one; ``name`` is who has it."""

    def value_and_gradient(self, x: Any, indices: Any = None) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at x of the mean over all samples, or over those at ``indices``."""
        x = checks.vector(x, "x", self.dimension)
        self.check_dimension(x.size, "x")
        batch = everything(self) if indices is None else _indices(indices, self.n_samples)
        gradient = np.zeros_like(x)
        value, _ = accumulate(self, batch, x, 1.0, x, 0.0, gradient)
        return float(value), gradient

    def value(self, x: Any, indices: Any = None) -> float:
        """Return the value at x of the mean over all samples, or over those at ``indices``."""
        return self.value_and_gradient(x, indices)[0]


def everything(objective: Objective) -> np.ndarray:
    """Return the batch of all samples."""
    return np.arange(objective.n_samples)


def _indices(indices: Any, n_samples: int) -> np.ndarray:
    array = np.atleast_1d(np.asarray(indices))
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n_samples:
        raise ValueError(f"`indices` must be a non-empty list of integers from 0 to {n_samples - 1}, got {indices!r}")
    return np.ascontiguousarray(array, dtype=np.int64)
