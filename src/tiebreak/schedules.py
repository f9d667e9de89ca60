"""Sequences of steps, slacks and momenta, as vectorised functions of the iteration t = 0, 1, …

A schedule may be a number, one of the values below, or any function of an array of iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak import checks

Schedule = Callable[[np.ndarray], np.ndarray]
ScheduleLike = float | Callable[[Any], Any]


@dataclass(frozen=True)
class power:
    """The power law scale · (t + shift)^(−exponent).

    Examples
    --------
    >>> power(0.5, 1.0)(np.array([0, 1, 4]))
    array([0.5 , 0.25, 0.1 ])
    """

    scale: float
    exponent: float
    shift: float = 1.0

    def __call__(self, t: np.ndarray) -> np.ndarray:
        base = np.asarray(t, dtype=np.float64) + self.shift
        if self.exponent == 1.0:
            return self.scale / base
        if self.exponent == 0.5:
            return self.scale / np.sqrt(base)
        return self.scale * base**-self.exponent


@dataclass(frozen=True)
class constant:
    """The same value at every iteration.

    Examples
    --------
    >>> constant(0.1)(np.array([0, 1]))
    array([0.1, 0.1])
    """

    value: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return np.full(np.shape(t), self.value)


@dataclass(frozen=True)
class capped:
    """A schedule cut off at a largest value.

    Examples
    --------
    >>> capped(power(2.0, 1.0), 1.0)(np.array([0, 1, 3]))
    array([1. , 1. , 0.5])
    """

    schedule: Schedule
    largest: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return np.minimum(self.schedule(t), self.largest)


@dataclass(frozen=True)
class stages:
    """A value that stays the same for a stage and is then multiplied by ``growth``, as is the length of the stages.

    Examples
    --------
    >>> stages(1.0, 2.0, 2)(np.arange(8))
    array([1., 1., 2., 2., 2., 2., 4., 4.])
    """

    first: float
    growth: float
    length: int

    def __call__(self, t: np.ndarray) -> np.ndarray:
        ends = self.length * np.cumsum(self.growth ** np.arange(64))  # beyond any run
        return self.first * self.growth ** np.searchsorted(ends, np.asarray(t), side="right").astype(np.float64)


@dataclass(frozen=True)
class geometric:
    """A value that changes from ``first`` to ``last`` by the same factor in each of ``length`` iterations, and then stays.

    Examples
    --------
    >>> geometric(1.0, 0.01, 2)(np.arange(4))
    array([1.  , 0.1 , 0.01, 0.01])
    """

    first: float
    last: float
    length: int

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.first * (self.last / self.first) ** np.minimum(np.asarray(t) / self.length, 1.0)


@dataclass(frozen=True)
class safe_step:
    """The step share / (L_g·g_t + L_f·f_t) for the sum of two objectives with weights g_t and f_t, which are schedules.

    Examples
    --------
    >>> safe_step(1.0, 2.0, constant(1.0), 1.0, constant(2.0))(np.array([0]))
    array([0.25])
    """

    share: float
    lower_lipschitz: float
    lower_weight: Schedule
    upper_lipschitz: float
    upper_weight: Schedule

    def __call__(self, t: np.ndarray) -> np.ndarray:
        curvature = self.lower_lipschitz * self.lower_weight(t) + self.upper_lipschitz * self.upper_weight(t)
        return self.share / curvature


def as_schedule(value: ScheduleLike, name: str) -> Schedule:
    """Return a schedule from a number or a function."""
    if callable(value):
        return value
    return constant(checks.real(value, name))


def evaluate(schedule: Schedule, t: np.ndarray, name: str, largest: float = math.inf) -> np.ndarray:
    """Return the values of a schedule at iterations t, checked to lie in [0, largest]."""
    try:
        values = np.asarray(schedule(t), dtype=np.float64)
        if values.shape not in ((), t.shape):
            raise ValueError(f"got shape {values.shape}")
    except (TypeError, ValueError):  # a function that takes one iteration at a time, such as one that uses `math`
        values = np.array([float(schedule(int(k))) for k in t])  # type: ignore[arg-type]
    values = np.array(np.broadcast_to(values, t.shape))
    wrong = ~((values >= 0.0) & (values <= largest) & (values < math.inf))
    if wrong.any():
        k = int(np.argmax(wrong))
        limits = "finite and ≥ 0" if largest == math.inf else f"between 0 and {largest:g}"
        raise ValueError(f"`{name}` must be {limits}, got {values[k]:g} at iteration {t[k]}")
    return values
