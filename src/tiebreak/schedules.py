"""Sequences of steps, slacks and momenta, as vectorised functions of the iteration t = 0, 1, …

A schedule may be a number, one of the values below, or any function of an array of iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from tiebreak.engine import checks

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

    def __post_init__(self) -> None:
        checks.real(self.scale, "scale", least=0.0)
        checks.real(self.exponent, "exponent")
        checks.real(self.shift, "shift", above=0.0)

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

    def __post_init__(self) -> None:
        checks.real(self.value, "value", least=0.0)

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
class falling:
    """From a first value along a straight line to 0 at iteration T.

    Such steps let the last point settle. With constant steps it keeps an error of their size.

    Examples
    --------
    >>> falling(0.1, 4.0)(np.array([0, 1, 4, 9]))
    array([0.1  , 0.075, 0.   , 0.   ])
    """

    first: float
    horizon: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.first * np.maximum(1.0 - np.asarray(t, dtype=np.float64) / self.horizon, 0.0)


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
class opened:
    """A schedule that has one value at first: before iteration ``until``.

    Examples
    --------
    >>> opened(0.5, 2, power(1.0, 1.0))(np.arange(4)).round(2)
    array([0.5 , 0.5 , 0.33, 0.25])
    """

    value: float
    until: int
    then: Schedule

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return np.where(np.asarray(t) < self.until, self.value, self.then(t))


@dataclass(frozen=True)
class held:
    """A schedule that is held at first at its value at iteration ``until``.

    Examples
    --------
    >>> held(power(1.0, 1.0), 1)(np.arange(3)).round(2)
    array([0.5 , 0.5 , 0.33])
    """

    schedule: Schedule
    until: int

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.schedule(np.maximum(t, self.until))


@dataclass(frozen=True)
class squared:
    """A factor times the square of a schedule.

    Examples
    --------
    >>> squared(2.0, constant(3.0))(np.arange(2))
    array([18., 18.])
    """

    factor: float
    schedule: Schedule

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.factor * np.square(self.schedule(t))


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


def chance(delta: float, horizon: float, t: np.ndarray) -> np.ndarray | float:
    """Return the share of a probability of failing that iteration t may use: the same for each of T, or one that sums up."""
    return delta / ((t + 1.0) * (t + 2.0)) if math.isinf(horizon) else delta / horizon


@dataclass(frozen=True)
class storm_slack:
    """The slack that keeps the minimisers of g in SBCGI's cut with probability 1 − δ, in all iterations together.

    (t + 1)^(−ω/2) (value · √(2 log(6/δ_t)) + gradient · √(2 log(6 d/δ_t))): Cao et al. (2023), Lemma 4.1 and
    Theorems 4.4 and 4.5.

    Examples
    --------
    >>> storm_slack(1.0, 2.0, 1.0, 10, 0.1, math.inf)(np.array([0, 99])).round(2)
    array([10.63,  1.63])
    """

    value: float  # c (2 L_l D + σ_l 3^ω/(3^ω − 1))
    gradient: float  # c D (2 L_g D + σ_g 3^ω/(3^ω − 1))
    exponent: float  # ω
    dimension: int  # d
    delta: float
    horizon: float  # T; infinite: for any time

    def __call__(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=np.float64)
        each = chance(self.delta, self.horizon, t)
        errors = self.value * np.sqrt(2.0 * np.log(6.0 / each)) + self.gradient * np.sqrt(
            2.0 * np.log(6.0 * self.dimension / each)
        )
        return errors * (t + 1.0) ** (-0.5 * self.exponent)


@dataclass(frozen=True)
class spider_slack:
    """The slack that keeps the minimisers of g in SBCGF's cut with probability 1 − δ, in all iterations together.

    scale · γ · √log(12/δ_t), γ being the largest step since the last exact estimate: Cao et al. (2023), Lemma 4.2 and
    Theorems 4.6 and 4.7.

    Examples
    --------
    >>> spider_slack(1.0, constant(0.01), 10, 0.1, 1000.0)(np.array([0, 99])).round(4)
    array([0.0342, 0.0342])
    """

    scale: float  # 4 D (L_l + L_g D)
    step: Schedule  # γ
    period: int  # q
    delta: float
    horizon: float  # T; infinite: for any time

    def __call__(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=np.float64)
        step = self.step(np.floor(t / self.period) * self.period)  # they never grow
        return self.scale * step * np.sqrt(np.log(12.0 / chance(self.delta, self.horizon, t)))


@dataclass(frozen=True)
class logarithmic:
    """The steps log(t + 3)/(t + 3), which for any time stand for log T/T and never grow.

    Examples
    --------
    >>> logarithmic()(np.array([0, 97])).round(4)
    array([0.3662, 0.0461])
    """

    def __call__(self, t: np.ndarray) -> np.ndarray:
        base = np.asarray(t, dtype=np.float64) + 3.0
        return np.log(base) / base


class ScheduleError(ValueError):
    """A schedule has no value, or a wrong one, at an iteration.

    Attributes
    ----------
    iteration : int
    """

    def __init__(self, message: str, iteration: int) -> None:
        super().__init__(message)
        self.iteration = iteration


def as_schedule(value: ScheduleLike, name: str, largest: float = math.inf) -> Schedule:
    """Return a schedule from a number between 0 and ``largest`` or a function."""
    if callable(value):
        return value
    number = checks.as_float(value)
    if not (0.0 <= number <= largest and math.isfinite(number)):
        limits = "≥ 0" if largest == math.inf else f"between 0 and {largest:g}"
        given = checks.shown(value)
        raise ValueError(
            f"`{name}` must be a finite number {limits}, or a function of the iteration t = 0, 1, …, got {given}"
        )
    return constant(number)


def evaluate(schedule: Schedule, t: np.ndarray, name: str, largest: float = math.inf) -> np.ndarray:
    """Return the values of a schedule at iterations t, checked to lie in [0, largest].

    Raises a :class:`ScheduleError` that tells the first iteration at which it has none.
    """
    values = _all_at_once(schedule, t)
    if values is None:
        values = _one_by_one(schedule, t, name)
    wrong = ~((values >= 0.0) & (values <= largest) & (values < math.inf))
    if wrong.any():
        k = int(np.argmax(wrong))
        limits = "finite and ≥ 0" if largest == math.inf else f"between 0 and {largest:g}"
        raise ScheduleError(f"`{name}` must be {limits}, got {values[k]:g} at iteration {t[k]}", int(t[k]))
    return values


def _all_at_once(schedule: Schedule, t: np.ndarray) -> np.ndarray | None:
    """Return the values of a vectorised schedule; None if it is not one."""
    if t.size == 0:
        return np.empty(0)
    try:
        with np.errstate(all="ignore"):  # what is not finite is found in the values
            values = np.asarray(schedule(t))
            if values.dtype.kind not in "fiu" or values.shape not in ((), t.shape):
                return None
            if values.shape == () and any(schedule(k) != values for k in t[[0, -1]].tolist()):
                return None  # of all iterations it makes one number that is not that of each
    except Exception:  # a function that takes one iteration at a time, such as one that uses `math`, or that ends before
        return None
    return np.array(np.broadcast_to(values, t.shape), dtype=np.float64)


def _one_by_one(schedule: Schedule, t: np.ndarray, name: str) -> np.ndarray:
    """Return the values of a schedule that takes one iteration at a time."""
    values = np.empty(t.shape)
    for i, k in enumerate(t.tolist()):
        try:
            value: Any = schedule(k)
        except Exception as error:
            raise ScheduleError(f"`{name}` raised {type(error).__name__} at iteration {k}: {error}", k) from error
        values[i] = checks.as_float(value)
        if math.isnan(values[i]) and not isinstance(value, float):
            raise ScheduleError(f"`{name}` must be a number for each t, got {checks.shown(value)} at iteration {k}", k)
    return values


# The plan of a method is a tree of named tuples. Its schedules are leaves, and become arrays for a range of iterations.


@dataclass(frozen=True)
class Given:
    """A leaf of a plan: a schedule as the user or a preset gave it, to be checked wherever it is evaluated."""

    schedule: Schedule
    name: str
    largest: float = math.inf

    def __call__(self, t: np.ndarray) -> np.ndarray:
        if self.schedule is None:
            raise ValueError(f"`{self.name}` must be given: the method has no default for it")
        return evaluate(self.schedule, t, self.name, self.largest)


@dataclass(frozen=True)
class Derived:
    """A leaf of a plan: a function of iterations that other schedules make, such as the weights of a mean."""

    function: Schedule

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.function(t)


def evaluated(plan: Any, t: np.ndarray) -> Any:
    """Return a plan with arrays for iterations t in the place of its schedules."""
    # Users' functions first: a schedule of the library may be made of one, and would be blamed for it.
    values = {id(leaf): leaf(t) for leaf in sorted(_leaves(plan), key=_of_library)}
    return _replaced(plan, values)


def _leaves(plan: Any) -> list[Any]:
    if isinstance(plan, (Given, Derived)):
        return [plan]
    return [leaf for part in plan for leaf in _leaves(part)] if isinstance(plan, tuple) else []


def _of_library(leaf: Any) -> bool:
    return isinstance(leaf, Derived) or is_dataclass(leaf.schedule)


def _replaced(plan: Any, values: dict[int, np.ndarray]) -> Any:
    if isinstance(plan, (Given, Derived)):
        return values[id(plan)]
    return _of_same_type(plan, (_replaced(part, values) for part in plan)) if isinstance(plan, tuple) else plan


def _of_same_type(plan: tuple[Any, ...], parts: Iterable[Any]) -> Any:
    return tuple.__new__(type(plan), parts)  # a value's own constructor may take other arguments


def evaluated_until(plan: Any, t: np.ndarray) -> tuple[Any, int, ScheduleError | None]:
    """Return a plan with the values of its schedules up to where one of them fails, how many, and what it fails with."""
    try:
        return evaluated(plan, t), t.size, None
    except ScheduleError as error:  # a value at t may need a schedule at t + 1: one less than was asked for
        before = t[: min(int(np.searchsorted(t, error.iteration)), t.size - 1)]
        return (*evaluated_until(plan, before)[:2], error)


def values_of(plan: Any, t: np.ndarray) -> list[np.ndarray]:
    """Return the values of a plan's schedules at iterations t, up to where one of them fails."""
    _, count, _ = evaluated_until(plan, t)
    return [leaf(t[:count]) for leaf in _leaves(plan)]


def part_of(plan: Any, values: Any, low: int, high: int) -> Any:
    """Return a plan with a range of the values that its schedules have."""
    if isinstance(plan, (Given, Derived)):
        return values[low:high]
    if isinstance(plan, tuple):
        return _of_same_type(plan, (part_of(*pair, low, high) for pair in zip(plan, values, strict=True)))
    return values
