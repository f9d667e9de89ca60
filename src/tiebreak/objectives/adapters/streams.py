"""Objectives that are seen through fresh samples alone: an endless source instead of a data set."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tiebreak.engine import checks
from tiebreak.engine.randomness import Moment, generator
from tiebreak.objectives.adapters.callables import Computed, EndOfStream, OracleError, check_knowledge, zeros_of
from tiebreak.objectives.adapters.columns import columns_of, why_not
from tiebreak.objectives.adapters.row_losses import RowLoss, scalar_loss
from tiebreak.objectives.base import accumulate, draw

EXCESS = 1e-6  # relative excess of a mean over the bounds of its samples that rounding explains, also in single precision
PROBED = 3  # samples that are drawn to see whether samples can be kept
KEEP_HELP = "draw arrays whose first axis counts samples, or rows for Stream.of_rows"
APART = 0xE571  # number that sets the samples of an estimate apart from those of runs with the same seed


class AssumptionError(OracleError):
    """A batch contradicts what was said of every sample of a stream."""


@dataclass(frozen=True, repr=False)
class Stream(Computed):
    """The expectation of a loss over a source of independent samples, which may be endless.

    Parameters
    ----------
    draw : callable
        ``draw(rng, size) -> batch``: as many fresh, independent samples, in any form. A source that is a function of ``rng``
        alone gives the same run for the same seed; ``tiebreak.sources`` reads files, loaders and iterators. A source that
        ends raises StopIteration, or returns fewer samples (the first axis of an array, or of the first array in
        a tuple or dict, counts them), and so ends the run.
    value_and_grad : callable
        ``value_and_grad(x, batch) -> (float, array of shape (dimension,))``: the mean of the loss over a batch and its
        gradient, at x.
    dimension : int
        Number of variables.
    convex : bool, optional
        Whether the expectation is convex, if that is known.
    lipschitz : float, optional
        A smoothness constant of the expectation, if one is known.
    strong_convexity : float, optional
        A constant μ such that the expectation less ½ μ ‖x‖² is convex, if one is known.
    floor : float, optional
        A number that the expectation is never below, if one is known; 0 for most losses.
    value_range : (float, float), optional
        Two numbers that the loss of every single sample lies between, at each x of the domain, if they are known.
    gradient_bound : float, optional
        A number that the Euclidean norm of the gradient of every single sample's loss does not exceed, at each x of the
        domain, if one is known. With both, bounds on gaps are proven: they assume only that samples are independent,
        so a source that repeats itself has no proven bounds. A batch that contradicts these limits raises an
        :class:`AssumptionError`, and ends a run.

    Examples
    --------
    The mean of ½ ‖x − u‖², u uniform between 0 and 1:

    >>> import numpy as np
    >>> def squares(x, u):
    ...     return 0.5 * np.mean(np.sum((x - u) ** 2, axis=1)), x - u.mean(axis=0)
    >>> stream = Stream(lambda rng, size: rng.random((size, 2)), squares, 2, convex=True)
    >>> value, gradient = stream.estimate([0.5, 0.0], samples=10_000)
    >>> gradient.round(1)
    array([-0. , -0.5])
    """

    draw: Callable[[np.random.Generator, int], Any]
    value_and_grad: Callable[[np.ndarray, Any], tuple[float, np.ndarray]]
    dimension: int
    convex: bool | None = None
    lipschitz: float = math.nan
    strong_convexity: float = 0.0
    floor: float = -math.inf
    value_range: tuple[float, float] = (-math.inf, math.inf)
    gradient_bound: float = math.inf

    def __post_init__(self) -> None:
        if not callable(self.draw):
            raise ValueError(f"`draw` must be a function of (rng, size), got {checks.shown(self.draw)}")
        if not callable(self.value_and_grad):
            raise ValueError(f"`value_and_grad` must be a function of (x, batch), got {checks.shown(self.value_and_grad)}")
        object.__setattr__(self, "dimension", checks.whole(self.dimension, "dimension"))
        check_knowledge(self)
        object.__setattr__(self, "value_range", checked_range(self.value_range))
        object.__setattr__(self, "gradient_bound", checked_bound(self.gradient_bound))
        object.__setattr__(self, "floor", max(self.floor, self.value_range[0]))

    @classmethod
    def of_rows(
        cls, draw: Callable[[np.random.Generator, int], Any], dimension: int, loss: Any = "squares", **known: Any
    ) -> Stream:
        """Return the stream of a linear model: the expectation of a loss over rows that come as (A, b).

        Squares over a set with corners are summed up and solved exactly (``active-set``), whatever their number.

        Parameters
        ----------
        draw : callable
            ``draw(rng, size) -> (A, b)``: an array of ``size`` rows and ``dimension`` columns, and one target per row.
        dimension : int
            Number of variables.
        loss : str or scalar loss
            "squares", "logistic" (targets −1 and 1), "huber" (δ = 1), or a scalar loss of your own.
        **known
            ``lipschitz``, ``strong_convexity``, ``value_range``, ``gradient_bound``, as above.

        Examples
        --------
        >>> import numpy as np
        >>> def draw(rng, size):
        ...     A = rng.standard_normal((size, 2))
        ...     return A, A @ [1.0, -1.0]
        >>> value, gradient = Stream.of_rows(draw, 2).estimate([1.0, 0.0])
        >>> round(value, 1)
        0.5
        """
        scalar = scalar_loss(loss)
        facts = {"convex": getattr(scalar, "convex", None), "floor": float(getattr(scalar, "floor", -math.inf)), **known}
        return cls(draw, RowLoss(scalar, checks.whole(dimension, "dimension")), dimension, **facts)

    @property
    def n_samples(self) -> float:
        return math.inf

    def ask(self, x: np.ndarray, batch: Any) -> tuple[float, np.ndarray]:
        value, gradient = super().ask(x, batch)
        self._hold_against([value], gradient, 1.0)
        return value, gradient

    def ask_both(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        value_x, value_y, gradient = super().ask_both(batch, x, w, y, v)
        self._hold_against([value_x] if v == 0.0 else [value_x, value_y], gradient, abs(w) + abs(v))
        return value_x, value_y, gradient

    def _hold_against(self, values: list[float], gradient: np.ndarray, weight: float) -> None:
        """Raise if means over a batch leave the limits that each of its samples is said to respect."""
        low, high = self.value_range
        if math.isfinite(low) or math.isfinite(high):
            room = EXCESS * max(abs(bound) for bound in (low, high) if math.isfinite(bound))
            for value in values:
                if not low - room <= value <= high + room:
                    self._contradict("a mean loss", value, f"`value_range` = ({low:g}, {high:g})")
        if math.isfinite(self.gradient_bound):
            norm = float(np.linalg.norm(gradient))
            if norm > (1.0 + EXCESS) * self.gradient_bound * weight:
                self._contradict("a mean gradient of norm", norm / weight, f"`gradient_bound` = {self.gradient_bound:g}")

    def _contradict(self, what: str, found: float, limit: str) -> None:
        raise AssumptionError(
            f"`{self._name}` returned {what} {found:.6g}, which contradicts {limit}: no bound holds that rests on it; "
            "give limits that every sample respects at each x of the domain, or none",
            self,
        )

    def rehearsal(self) -> Stream:
        """Return a stream that draws nothing, of a loss that is zero everywhere, with all else that is known."""
        return replace(self.unlimited(), draw=lambda rng, size: (), value_and_grad=zeros_of(self.dimension))

    def unlimited(self) -> Stream:
        """Return the stream without what is said of its samples, which holds on the domain alone."""
        return replace(self, value_range=(-math.inf, math.inf), gradient_bound=math.inf)

    def sample(self, rng: np.random.Generator, size: int) -> Any:
        """Return a batch of fresh samples; raise :class:`EndOfStream` if there are not as many left."""
        batch, count = self.available(rng, size)
        if count < size:
            found = f": it returned {count} of {size} samples" if count else ""
            raise EndOfStream(f"`{self._source}` has come to its end{found}", self)
        return batch

    def available(self, rng: np.random.Generator, size: int) -> tuple[Any, int]:
        """Return a batch of as many fresh samples as there are left, at most ``size``, and their number."""
        try:
            batch = self.draw(rng, size)
        except StopIteration:
            return None, 0
        except OracleError:
            raise
        except Exception as error:
            raise OracleError(f"`{self._source}` raised {type(error).__name__}: {error}", self) from error
        rows = isinstance(self.value_and_grad, RowLoss) and isinstance(batch, list)
        count = rows_in(tuple(batch) if rows else batch)  # (A, b) may well come as a list
        if count is not None and count > size:
            raise OracleError(
                f"`{self._source}` must return as many samples as it is asked for, got {count} for {size}", self
            )
        return batch, size if count is None else count

    @cached_property
    def why_not_kept(self) -> str:
        """Why its samples cannot be kept, to be looked at again; empty if they can. It draws three of them, once."""
        if isinstance(self.value_and_grad, RowLoss):
            return ""
        batch, count = self.available(np.random.default_rng([PROBED, APART]), PROBED)
        return why_not(columns_of(batch), count) if count else ""

    @property
    def _source(self) -> str:
        """What errors call the source."""
        return getattr(self.draw, "__qualname__", None) or type(self.draw).__name__

    def estimate(self, x: Any, samples: int = 10_000, seed: int = 0) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at x of the mean over fresh samples: others than a run with this seed draws."""
        x = checks.vector(x, "x", self.dimension)
        rng = np.random.default_rng([checks.whole(seed, "seed", least=0), APART])
        batch = self.sample(rng, checks.whole(samples, "samples"))
        gradient = np.zeros_like(x)
        value, _ = accumulate(self.unlimited(), batch, x, 1.0, x, 0.0, gradient)
        return float(value), gradient


@draw.register(Stream)
def draw_stream(objective: Stream, moment: Moment, batch: np.ndarray) -> Any:
    return objective.sample(generator(moment), batch.size)


def rows_in(batch: Any) -> int | None:
    """Return how many samples a batch holds; None if it does not say."""
    if batch is None:
        return 0
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if isinstance(batch, tuple) and batch and hasattr(batch[0], "shape"):  # columns; a list is one of samples
        batch = batch[0]
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) > 0 else None
    return len(batch) if isinstance(batch, list) else None


def checked_range(given: Any) -> tuple[float, float]:
    """Return two limits of losses, infinite where none is known, or raise."""
    try:
        low, high = (float(limit) for limit in given)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        raise ValueError(f"`value_range` must be a pair (low, high) of numbers, low < high, got {checks.shown(given)}")
    return low, high


def checked_bound(given: Any) -> float:
    """Return a limit of norms, infinite where none is known, or raise."""
    unlimited = isinstance(given, float) and given == math.inf
    return math.inf if unlimited else checks.real(given, "gradient_bound", above=0.0)


def sample_bounds(value_range: Any, gradient_bound: Any, endless: bool) -> dict[str, Any]:
    """Return those of two arguments that were given, for a :class:`Stream`; raise if all samples are known."""
    given = {"value_range": value_range, "gradient_bound": gradient_bound}
    known = {name: value for name, value in given.items() if value is not None}
    if known and not endless:
        raise ValueError(f"`{next(iter(known))}` is for streams, and all samples of this loss are known")
    return known
