"""Objectives whose terms a Python function computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak import checks
from tiebreak.objectives.base import Objective, accumulate, draw


class OracleError(RuntimeError):
    """A user's function raised, or returned something of the wrong kind.

    Attributes
    ----------
    objective : FiniteSum or None
        Whose function it was.
    """

    def __init__(self, message: str, objective: FiniteSum | None = None):
        super().__init__(message)
        self.objective = objective


class NonFiniteError(OracleError):
    """A user's function returned NaN or infinity."""


@dataclass(frozen=True)
class FiniteSum(Objective):
    """The mean of n terms that a Python function computes.

    Parameters
    ----------
    n : int
        Number of terms.
    dimension : int
        Number of variables.
    value_and_grad : callable
        ``value_and_grad(x, indices) -> (float, array of shape (dimension,))``: the mean of the terms at ``indices`` (an
        integer array, in which an index may come more than once) and its gradient, at x. Both arrays are read-only.
    convex : bool, optional
        Whether the mean is convex, if that is known: bounds on the upper gap are given for convex objectives only.
    lipschitz : float, optional
        A smoothness constant, if one is known.
    strong_convexity : float, optional
        A constant μ such that the mean less ½ μ ‖x‖² is convex, if one is known.
    floor : float, optional
        A number that the mean is never below, if one is known; 0 for most losses.

    Examples
    --------
    >>> import numpy as np
    >>> targets = np.array([1.0, 2.0, 3.0])
    >>> def squares(x, indices):
    ...     residual = x[0] - targets[indices]
    ...     return 0.5 * np.mean(residual**2), np.array([residual.mean()])
    >>> FiniteSum(3, 1, squares).value([2.0])
    0.3333333333333333
    """

    n: int
    dimension: int
    value_and_grad: Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]
    convex: bool | None = None
    lipschitz: float = math.nan
    strong_convexity: float = 0.0
    floor: float = -math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole(self.n, "n"))
        object.__setattr__(self, "dimension", checks.whole(self.dimension, "dimension"))
        if not callable(self.value_and_grad):
            raise ValueError(f"`value_and_grad` must be a function of (x, indices), got {self.value_and_grad!r}")

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self.n

    @property
    def _name(self) -> str:
        return getattr(self.value_and_grad, "__qualname__", repr(self.value_and_grad))

    def ask(self, x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        """Call the function with two read-only arrays and check its answer."""
        try:
            answer = self.value_and_grad(x, indices)
        except Exception as error:
            raise OracleError(f"`{self._name}` raised {type(error).__name__}: {error}", self) from error
        try:
            value, gradient = answer
            value, gradient = float(value), np.asarray(gradient)
            if gradient.dtype != np.float64:
                if gradient.dtype.kind not in "fiub":
                    raise TypeError
                gradient = gradient.astype(np.float64)
        except (TypeError, ValueError):
            raise OracleError(
                f"`{self._name}` must return (value, gradient), a number and an array, got {checks.shown(answer)}", self
            ) from None
        if gradient.shape != (self.dimension,):
            raise OracleError(
                f"`{self._name}` must return a gradient of shape ({self.dimension},), got {gradient.shape}", self
            )
        # The scalar product is the fastest look at all entries; it may overflow, and then it takes a second one.
        if not (math.isfinite(value) and (math.isfinite(gradient.dot(gradient)) or np.isfinite(gradient).all())):
            what = "the value" if not math.isfinite(value) else "the gradient"
            raise NonFiniteError(f"`{self._name}` returned NaN or infinity in {what}", self)
        return value, gradient


@draw.register(FiniteSum)
def _(objective: FiniteSum, rng: np.random.Generator, batch: np.ndarray) -> np.ndarray:
    if batch.size == 1:  # the same stream, without the cost of small arrays
        batch[0] = int(rng.random() * objective.n)
    else:
        batch[:] = rng.random(batch.size) * objective.n
    return batch


@accumulate.register(FiniteSum)
def _(objective: FiniteSum, batch: Any, x: Any, w: float, y: Any, v: float, out: Any) -> tuple[float, float]:
    indices = _read_only(batch)
    value_x, gradient = objective.ask(_read_only(x), indices)
    out += w * gradient
    if v == 0.0:
        return value_x, 0.0
    value_y, gradient = objective.ask(_read_only(y), indices)
    out += v * gradient
    return value_x, value_y


def _read_only(x: np.ndarray) -> np.ndarray:
    view = x.view()
    view.flags.writeable = False
    return view
