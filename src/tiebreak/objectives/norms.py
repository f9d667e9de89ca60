"""Objectives known exactly, without data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks
from tiebreak.engine.rounding import UNIT
from tiebreak.engine.vectors import fill
from tiebreak.objectives.arithmetic import Objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN, Sharp, Survey, accurate


class _SquaredNorm(NamedTuple):
    center: np.ndarray  # empty: the origin


class SquaredNorm(Objective, _SquaredNorm):
    """Half the squared distance to a point, ½ ‖x − center‖²; the origin if no centre is given.

    It is known exactly: methods that sample the other level draw nothing of it. For all others an evaluation counts as one
    sample.

    Examples
    --------
    >>> SquaredNorm().value([3.0, 4.0])
    12.5
    """

    __slots__ = ()
    n_samples = 1
    lipschitz = 1.0
    convex = True
    strong_convexity = 1.0
    floor = 0.0

    def __new__(cls, center: Any = None) -> SquaredNorm:
        if center is None:
            return super().__new__(cls, np.empty(0))
        point = checks.vector(center, "center")
        checks.data(point, "center")
        return super().__new__(cls, point)

    @property
    def dimension(self) -> int | None:
        return self.center.size or None

    def __repr__(self) -> str:
        return f"SquaredNorm(center of {self.center.size} numbers)" if self.center.size else "SquaredNorm()"

    def hessian(self) -> float:
        return 1.0

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        """Differences of two numbers have one rounding each, and their squares are added without cancelling."""
        offset = x - self.center if self.center.size else x.copy()
        survey = accurate(0.5 * float(offset @ offset), offset, (x.size + FEW_OPERATIONS) * UNIT)
        if off is None:
            return survey
        drift = MARGIN * float((np.abs(offset) + off) @ off)
        return survey._replace(value_error=survey.value_error + drift, gradient_error=survey.gradient_error + off)

    def sharp(self, x: np.ndarray, off: np.ndarray | None = None) -> Sharp:
        survey = self.survey(x)
        near = 0.0 if off is None else MARGIN * float((np.abs(survey.gradient) + off) @ off)
        return Sharp(survey, near)


@draw.register(SquaredNorm)
def draw_squared_norm(objective, moment, batch):
    fill(batch, 0)
    return batch


@accumulate.register(SquaredNorm)
def accumulate_squared_norm(objective, batch, x, w, y, v, out):
    value_x = 0.0
    value_y = 0.0
    for j in range(x.size):
        center = objective.center[j] if objective.center.size > 0 else 0.0
        at_x = x[j] - center
        at_y = y[j] - center
        value_x += 0.5 * at_x * at_x
        value_y += 0.5 * at_y * at_y
    for j in range(x.size):  # on its own: the order of a sum must not depend on where ``out`` lies
        center = objective.center[j] if objective.center.size > 0 else 0.0
        out[j] += w * (x[j] - center) + v * (y[j] - center)
    return value_x, value_y
