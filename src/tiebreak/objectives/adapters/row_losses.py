"""The loss of a linear model over rows that a stream draws: no gradient is written by hand, and squares can be summed up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak.engine import checks, kernel
from tiebreak.objectives.adapters.callables import NonFiniteError, Oracle, OracleError
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square, loss

LOSSES = {"squares": Square(), "logistic": LogLoss(), "huber": HuberLoss(1.0)}


@dataclass(frozen=True)
class RowLoss(Oracle):
    """The mean of a scalar loss over the rows (A, b) of a batch.

    Parameters
    ----------
    scalar : value
        A scalar loss: that of :class:`~tiebreak.LeastSquares`, say.
    dimension : int
        Columns of A.
    """

    scalar: Any
    dimension: int

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"{type(self.scalar).__name__} of rows"

    def combine(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        A, b = self.rows(batch)
        value_x, slopes = self._at(A, b, x, w)
        if v == 0.0:
            return value_x, 0.0, slopes @ A
        value_y, more = self._at(A, b, y, v)
        return value_x, value_y, (slopes + more) @ A

    def rows(self, batch: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix and the targets of a batch, or raise."""
        try:
            A, b = (np.asarray(part) for part in batch)
            if not {A.dtype.kind, b.dtype.kind} <= set("fiub"):
                raise TypeError
            A, b = (np.ascontiguousarray(part, dtype=np.float64) for part in (A, b))
        except (TypeError, ValueError):
            raise OracleError(
                f"each batch of rows must be (A, b), arrays of real numbers, got {checks.shown(batch)}"
            ) from None
        if A.ndim != 2 or A.shape[1] != self.dimension or b.shape != A.shape[:1]:
            raise OracleError(
                f"each batch of rows must be (A, b) of shapes (k, {self.dimension}) and (k,), got {A.shape} and {b.shape}"
            )
        for name, part in (("A", A), ("b", b)):
            if not checks.all_finite(part):
                raise NonFiniteError(f"a batch of rows holds NaN or infinity in {name}")
        if isinstance(self.scalar, LogLoss) and not (np.abs(b) == 1.0).all():
            raise OracleError("the targets of logistic rows must be −1 and 1, got others: map 0 to −1")
        return A, b

    def unflatten(self, x: np.ndarray) -> np.ndarray:
        return x

    def _at(self, A: np.ndarray, b: np.ndarray, x: np.ndarray, weight: float) -> tuple[float, np.ndarray]:
        slopes = np.empty(b.size)
        return mean_loss(self.scalar, A @ x, b, weight, slopes), slopes


@kernel
def mean_loss(scalar, predictions, targets, weight, slopes):
    """Return the mean loss, and set its slopes, times a weight."""
    total = 0.0
    share = 1.0 / max(targets.size, 1)
    for i in range(targets.size):
        value, slope = loss(scalar, predictions[i], targets[i])
        total += value
        slopes[i] = weight * share * slope
    return share * total


def scalar_loss(given: Any) -> Any:
    """Return a scalar loss by its name, or one that was given, or raise."""
    if isinstance(given, str) and given in LOSSES:
        return LOSSES[given]
    if not loss.supports(given):
        names = ", ".join(map(repr, LOSSES))
        raise ValueError(
            f"`loss` must be one of {names}, or a scalar loss such as HuberLoss(2.0), got {checks.shown(given)}"
        )
    return given
