"""What an objective is: something that can be sampled.

A value becomes an objective by deriving from :class:`Objective` and registering two generic functions, :func:`draw` and
:func:`accumulate`; everything else here has a default made of these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tiebreak.engine import Value, checks, generic
from tiebreak.objectives.surveys import Survey, accurate

ACCURACY = 1e-13  # relative: how well a value and each entry of a gradient are known where nothing else is said


@generic
def draw(objective, moment, batch):
    """Draw samples, with replacement, and return them as a batch that :func:`accumulate` takes.

    They are a function of the moment alone: of the seed, the level and the iteration (``tiebreak.engine.randomness``).

    A finite sum fills ``batch``, an array of indices, and returns it; other sources may return anything of as many samples.
    Within a :class:`Sum` it must be an array of integers ≥ 0, whatever they mean.
    """


@generic(reorder=True)
def accumulate(objective, batch, x, w, y, v, out):
    """Add w·∇F(x) + v·∇F(y) to ``out`` and return F(x) and F(y), where F is the mean over the batch.

    Each sample is read once for both points. With v = 0 the second point is not looked at and its value is returned as 0.
    """


class Objective(Value):
    """The common part of all objectives: what users ask them from Python.

    Objectives can be added and multiplied by numbers: ``f + 0.1 * g`` is an objective.

    Attributes
    ----------
    dimension : int or None
        Number of variables; None if any number will do.
    n_samples : int or ∞
        Number of terms of the mean. An objective that is known exactly counts as one sample, a stream has no end of them.
    lipschitz : float
        A constant L with ‖∇F(x) − ∇F(y)‖ ≤ L ‖x − y‖; NaN if it is not known.
    convex : bool or None
        Whether the objective is convex; None if it is not known.
    strong_convexity : float
        A constant μ such that F − ½ μ ‖x‖² is convex; 0 if none is known.
    floor : float
        A number that the objective is never below; −∞ if none is known.
    accuracy : float
        The relative error of a value and of each entry of a gradient, where :meth:`survey` knows no better.
    """

    __slots__ = ()

    dimension: int | None
    n_samples: int  # or math.inf
    lipschitz: float = math.nan
    convex: bool | None = None
    strong_convexity: float = 0.0
    floor: float = -math.inf
    accuracy: float = ACCURACY

    @property
    def endless(self) -> bool:
        """Whether it is a stream: seen through fresh samples alone, never in full."""
        return math.isinf(self.n_samples)

    def hessian(self) -> np.ndarray | float | None:
        """Return the second derivatives of a quadratic objective, (d, d), or None if it is none.

        A number stands for that multiple of the identity.
        """
        return None

    # Not a tuple for operators: 2 * f is a multiple, not a repetition, and NumPy's numbers leave it to us.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Any:
        from tiebreak.objectives.combined import Sum  # made of objectives, so that it cannot be imported above

        if not isinstance(other, Objective):
            raise TypeError(f"only an objective can be added to an objective, got {checks.shown(other)}")
        return Sum(self, other)

    def __radd__(self, other: Any) -> Any:
        return self if type(other) is int and other == 0 else self + other  # Python's `sum` starts with 0

    def __mul__(self, factor: Any) -> Any:
        from tiebreak.objectives.combined import Scaled

        if isinstance(factor, (bool, np.bool_)) or not isinstance(factor, (int, float, np.integer, np.floating)):
            raise TypeError(f"an objective can be multiplied by a real number, got {checks.shown(factor)}")
        return Scaled(factor, self)

    __rmul__ = __mul__

    def check_dimension(self, dimension: int, name: str) -> None:
        """Raise a ValueError if an objective of no fixed dimension cannot do with this one; ``name`` is who has it."""

    def value_and_gradient(self, x: Any, indices: Any = None) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at x of the mean over all samples, or over those at ``indices``."""
        x = checks.vector(x, "x", self.dimension)
        self.check_dimension(x.size, "x")
        if indices is None:
            return self.survey(x)[:2]
        gradient = np.zeros_like(x)
        value, _ = accumulate(self, _indices(indices, self.n_samples), x, 1.0, x, 0.0, gradient)
        return float(value), gradient

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        """Return value and gradient at x over all samples, with bounds on the errors of both.

        Proofs are made of these. By default the numbers are taken to be right up to a relative error of each, ``accuracy``,
        which is an assumption: an objective whose terms cancel should say better.

        Parameters
        ----------
        x : array, (d,)
        off : array, (d,), optional
            The errors shall hold at every point whose variables differ from those of x by at most as much, some roundings.
        """
        gradient = np.zeros_like(x)
        value, _ = accumulate(self, everything(self), x, 1.0, x, 0.0, gradient)
        survey = accurate(float(value), gradient, self.accuracy)
        drift = 0.0 if off is None else 2.0 * float(np.abs(gradient) @ off)
        return survey._replace(value_error=survey.value_error + drift)

    def value(self, x: Any, indices: Any = None) -> float:
        """Return the value at x of the mean over all samples, or over those at ``indices``."""
        return self.value_and_gradient(x, indices)[0]


def everything(objective: Objective) -> np.ndarray:
    """Return the batch of all samples; raise if it has no end."""
    if objective.endless:
        raise ValueError("a stream cannot be evaluated in full: estimate(x, samples) of a Stream takes the mean over some")
    return np.arange(objective.n_samples)


def _indices(indices: Any, n_samples: int) -> np.ndarray:
    array = np.atleast_1d(np.asarray(indices))
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n_samples:
        raise ValueError(f"`indices` must be a non-empty list of integers from 0 to {n_samples - 1}, got {indices!r}")
    return np.ascontiguousarray(array, dtype=np.int64)
