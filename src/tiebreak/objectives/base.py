"""What can be sampled: a function that is a mean over samples, what is known of it, and its values.

An objective is such a function with arithmetic, :class:`~tiebreak.objectives.arithmetic.Objective`. A value becomes one by
deriving from it and registering two generic functions, :func:`draw` and :func:`accumulate`; everything else has a default
made of these.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.engine import Value, checks, generic, kernel
from tiebreak.engine.callouts import NO_HANDLE, call_out, handle_for
from tiebreak.objectives.surveys import Sharp, Survey, accurate

ACCURACY = 1e-13  # relative error of a value and of each entry of a gradient where nothing else is said


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


class Function(Value):
    """A function seen through samples: what is known of it, and its values and gradients.

    What is known is documented in :class:`~tiebreak.Objective`. Each fact may be a class attribute, a field or a property.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # read-only facts; properties at run time would stand before the fields of data classes

        @property
        def dimension(self) -> int | None: ...
        @property
        def n_samples(self) -> float: ...  # an int, or ∞
        @property
        def lipschitz(self) -> float: ...
        @property
        def convex(self) -> bool | None: ...
        @property
        def strong_convexity(self) -> float: ...
        @property
        def floor(self) -> float: ...
        @property
        def accuracy(self) -> float: ...
        @property
        def names_part(self) -> bool: ...

    else:
        lipschitz = math.nan
        convex = None
        strong_convexity = 0.0
        floor = -math.inf
        accuracy = ACCURACY
        names_part = False  # whether it is one of a part of the variables, whose place only a Problem knows

    @property
    def endless(self) -> bool:
        """Whether it is a stream: seen through fresh samples alone, never in full."""
        return math.isinf(self.n_samples)

    @property
    def sample_lipschitz(self) -> float:
        """A smoothness constant of every single sample's loss; NaN if none is known."""
        return self.lipschitz if self.n_samples == 1 else math.nan

    @property
    def known_convexity(self) -> float:
        """A number that is no larger than ``strong_convexity``, found at little cost."""
        return self.strong_convexity

    @property
    def terms(self) -> list[Any]:
        """The objectives that it is the sum of; multiples and parts of sums are taken apart."""
        return [self]

    def hessian(self) -> np.ndarray | float | None:
        """Return the second derivatives of a quadratic objective, (d, d), or None if it is none.

        A number stands for that multiple of the identity.
        """
        return None

    def evened(self) -> Any:
        """Return the objective that estimates of changes of its gradient draw from: itself, or one with the same mean.

        Samples that bend more than others may be drawn more often, and count less, so that ``sample_lipschitz`` is smaller.
        """
        return self

    @property
    def in_blocks(self) -> bool:
        """Whether Python passes over its samples, in blocks, and not the loops of methods."""
        return False

    def pass_over(self, x: np.ndarray, out: np.ndarray) -> float:
        """Add the gradient at x of the mean over all samples to ``out``, and return its value there."""
        return float(accumulate(self, everything(self), x, 1.0, x, 0.0, out)[0])

    def rehearsal(self) -> Any:
        """Return an objective of the same size and types that calls no user's function, to compile loops ahead."""
        return self

    def check_dimension(self, dimension: int, name: str) -> None:
        """Raise a ValueError if an objective of no fixed dimension cannot do with this one; ``name`` is who has it."""

    def value_and_gradient(self, x: Any, indices: Any = None) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at x of the mean over all samples, or over those at ``indices``."""
        x = checks.vector(x, "x", self.dimension)
        self.check_dimension(x.size, "x")
        if indices is None:
            return self.survey(x)[:2]
        gradient = np.zeros_like(x)
        value, _ = accumulate(self, checked_indices(indices, self.n_samples), x, 1.0, x, 0.0, gradient)
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

    def sharp(self, x: np.ndarray, off: np.ndarray | None = None) -> Sharp:
        """Return the most accurate survey that there is, whose errors hold at x; by default it is :meth:`survey`.

        It may take some times as long. Proofs ask for it where rounding is all that they are in doubt by.
        """
        return Sharp(self.survey(x, off), 0.0)

    def value(self, x: Any, indices: Any = None) -> float:
        """Return the value at x of the mean over all samples, or over those at ``indices``."""
        return self.value_and_gradient(x, indices)[0]


class Whole(NamedTuple):
    """All samples of an objective, as loops pass over them."""

    size: int
    samples: np.ndarray  # the batch of all of them; empty if Python passes over them
    handle: np.ndarray  # by which Python knows the objective


def whole_of(objective: Function) -> Whole:
    """Return all samples of an objective; raise if it has no end."""
    if objective.in_blocks:
        handle = handle_for(lambda x, out, *_: objective.pass_over(x, out))
        return Whole(int(objective.n_samples), np.zeros(0, dtype=np.int64), handle)
    samples = everything(objective)
    return Whole(samples.size, samples, NO_HANDLE)


@kernel
def pass_over(whole, objective, x, out):
    """Add the gradient at x of the mean over all samples to ``out``, and return its value there."""
    if whole.samples.size == 0:
        return call_out(whole.handle[0], 0, 0, 0, 0, x, out)
    value, _ = accumulate(objective, whole.samples, x, 1.0, x, 0.0, out)
    return value


def everything(objective: Function) -> np.ndarray:
    """Return the batch of all samples; raise if it has no end."""
    if objective.endless:
        raise ValueError("a stream cannot be evaluated in full: estimate(x, samples) of a Stream takes the mean over some")
    return np.arange(objective.n_samples)


def checked_indices(indices: Any, n_samples: float) -> np.ndarray:
    """Return indices of samples, or raise."""
    array = np.atleast_1d(np.asarray(indices))
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n_samples:
        raise ValueError(f"`indices` must be a non-empty list of integers from 0 to {n_samples - 1}, got {indices!r}")
    return np.ascontiguousarray(array, dtype=np.int64)
