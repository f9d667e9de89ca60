"""What a method is: a frozen configuration, a state, and a loop over a chunk of iterations.

The loop knows no loss and no set by name, and neither times, prints, records nor stops: that is the driver's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak import schedules
from tiebreak.domains.base import without_projection
from tiebreak.engine import Kernel, checks
from tiebreak.problem import Problem
from tiebreak.schedules import as_schedule

# What a loop returns: why it ended.
DONE = 0
UPPER_NOT_FINITE = -1
LOWER_NOT_FINITE = -2


class Cost(NamedTuple):
    """Samples drawn and gradients evaluated in each of several iterations, by level."""

    upper_queries: np.ndarray
    lower_queries: np.ndarray
    upper_evaluations: np.ndarray
    lower_evaluations: np.ndarray


class Budget(NamedTuple):
    """What a method may spend, infinite where there is no limit; and what it is to reach."""

    queries: float = math.inf
    iterations: float = math.inf
    lower_gap: float = 0.0  # ε_g, the gap at the lower level that is wanted; 0 if none is
    passes: float = math.inf  # over the data of both levels, that a time limit allows about


NO_BUDGET = Budget()
SAMPLE = 4096  # iterations from which the mean cost of one is found


@dataclass(frozen=True)
class Method:
    """A configured method. Subclasses are frozen dataclasses whose fields are its parameters.

    A subclass gives the table entries below, the loop, and :meth:`start`, :meth:`cost`, :meth:`constants`. The loop is a
    kernel ``loop(problem, state, constants, *schedules, rng) -> int``; it takes one step for each entry of the schedules,
    counts it in ``state.iteration``, and leaves ``state.x`` at the last point that it completed.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    setting: ClassVar[str]
    needs: ClassVar[str]
    rates: ClassVar[str]  # at the upper level; at the lower level
    loop: ClassVar[Kernel]
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    limits: ClassVar[dict[str, float]] = {}  # the schedules that the loop takes, and their largest values
    counts: ClassVar[tuple[str, ...]] = ()  # the fields that are whole numbers or None
    reals: ClassVar[dict[str, dict[str, float]]] = {}  # the fields that are numbers or None, and their limits
    flags: ClassVar[tuple[str, ...]] = ()  # the fields that are True, False or None
    projects: ClassVar[bool] = False  # whether it needs the projection onto Z
    convex: ClassVar[bool] = False  # whether it makes no sense where f is known not to be convex
    streams: ClassVar[bool] = False  # whether it does without passes over all samples
    levels: ClassVar[tuple[str, ...]] = ("upper", "lower")  # those that it looks at
    asks_for_passes: ClassVar[bool] = False  # whether it goes by how many passes over the data a time limit allows

    @property
    def seeks_with(self) -> Method | None:
        """The method that finds a first point for this one, if it needs a good one."""
        return getattr(self, "initial", None)

    def __post_init__(self) -> None:
        """Fill fields left as None from the preset, check them all and turn numbers into schedules."""
        for field in fields(self):
            if getattr(self, field.name) is None and field.default is not None and field.name != "initial":
                raise ValueError(f"`{field.name}` must be given, got None; left out it is {field.default!r}")
        for name, value in self._preset().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name, checked in self._checks().items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checked(value))

    def _preset(self) -> Mapping[str, Any]:
        """Return the parameters of the preset, of a method that has some."""
        preset = getattr(self, "preset", None)
        if preset is None:
            return {}
        if not isinstance(preset, str) or preset not in self.presets:
            names = ", ".join(repr(name) for name in self.presets)
            raise ValueError(f"`preset` of {type(self).__name__} must be one of {names}, got {checks.shown(preset)}")
        return self.presets[preset]

    def _checks(self) -> dict[str, Callable[[Any], Any]]:
        """Return, for each parameter with a meaning of its kind, what checks it and returns it as it is used."""
        return {
            **{name: partial(checks.whole, name=name) for name in self.counts},
            **{name: partial(checks.real, name=name, **bounds) for name, bounds in self.reals.items()},
            **{name: partial(checks.flag, name=name) for name in self.flags},
            **{name: partial(as_schedule, name=name, largest=largest) for name, largest in self.limits.items()},
            **({"initial": check_initial} if hasattr(self, "initial") else {}),
        }

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        """Return this method with all parameters filled in for a problem and what may be spent on it.

        Raises a ValueError if the problem lacks what the method needs.
        """
        self.check(problem)
        found = {name: find() for name, find in self.defaults(problem, budget).items() if getattr(self, name) is None}
        return replace(self, **found) if found else self

    def check(self, problem: Problem) -> None:
        """Raise a ValueError if a problem lacks what the method needs: a projection, convexity, an end of its samples."""
        if self.projects and (part := without_projection(problem.domain)) is not None:
            raise ValueError(
                f"the method {self.name!r} needs the projection onto the domain, and {type(part).__name__}"
                " has none: take a method that does without, such as 'sbcgf' or 'cg-bio'"
            )
        if self.convex and problem.upper.convex is False:
            raise ValueError(
                f"the method {self.name!r} needs a convex upper objective, and {type(problem.upper).__name__} is not:"
                " take a method for others, such as 'sbcgf' or 'cg-bio'"
            )
        for level in self.levels:
            if getattr(problem, level).endless and not self.streams:
                raise ValueError(
                    f"the method {self.name!r} needs passes over all samples, and the {level} objective is a stream, which"
                    " has no end: take a method for streams, such as 'sbcgi' or 'ir-scg'"
                )

    def defaults(self, problem: Problem, budget: Budget) -> Mapping[str, Callable[[], Any]]:
        """Return how fields that are None are found from the problem and the budget."""
        return {}

    def horizon(self, problem: Problem, budget: Budget) -> float:
        """Return how many iterations a budget allows; infinite if it has no end that can be counted."""
        t = np.arange(SAMPLE)
        cost = self.cost(problem, self.constants(problem), t)
        total = np.cumsum(cost.upper_queries + cost.lower_queries)
        if budget.queries <= total[-1]:
            counted = float(np.searchsorted(total, budget.queries, side="right"))
        else:  # the first iteration may cost much more than the others
            counted = 1.0 + (budget.queries - total[0]) * (t.size - 1) / (total[-1] - total[0])
        return max(min(budget.iterations, counted), 1.0)

    def constants(self, problem: Problem) -> Any:
        """Return a named tuple of what else the loop takes: nothing that changes."""
        raise NotImplementedError

    def start(self, problem: Problem, constants: Any, x: np.ndarray) -> Any:
        """Return the state at t = 0: a named tuple of arrays with ``x`` and ``iteration`` among them."""
        raise NotImplementedError

    def answer(self, state: Any) -> np.ndarray:
        """Return the point of Z that the method offers as its answer so far; the last one if nothing else is said."""
        return state.x

    def cost(self, problem: Problem, constants: Any, t: np.ndarray) -> Cost:
        """Return what iterations t cost."""
        raise NotImplementedError

    def unspent(self, state: Any) -> np.ndarray | int:
        """Return how much of the cost so far was not needed after all, in the order of :class:`Cost`."""
        return 0

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the schedules that the loop takes, at iterations t."""
        # Users' functions first: a schedule of the library may be made of one, and would be blamed for it.
        order = sorted(self.limits, key=lambda name: is_dataclass(getattr(self, name)))
        values = {name: schedules.evaluate(getattr(self, name), t, name, self.limits[name]) for name in order}
        return tuple(values[name] for name in self.limits)

    def schedules_until(self, t: np.ndarray) -> tuple[tuple[np.ndarray, ...], schedules.ScheduleError | None]:
        """Return the schedules at iterations t, but only up to where one of them fails, and the error that it fails with."""
        try:
            return self.schedule_values(t), None
        except schedules.ScheduleError as error:  # a value at t may need a schedule at t + 1: one less than was asked for
            before = t[: min(int(np.searchsorted(t, error.iteration)), t.size - 1)]
            return self.schedules_until(before)[0], error


def check_initial(value: Any) -> Method:
    """Return a method that can find the first point for another: one that looks at the lower level."""
    if not isinstance(value, Method) or "lower" not in value.levels:
        raise ValueError(
            '`initial` must be a configured method that minimises the lower objective, such as FISTA(level="lower"),'
            f" got {checks.shown(value)}"
        )
    return value


def counter() -> np.ndarray:
    """Return a whole number that a loop can change."""
    return np.zeros(1, dtype=np.int64)


def smoothness(problem: Problem, level: str, method: Method, instead: str = "") -> float:
    """Return the smoothness constant of a level's objective; raise if it is not known and say what to pass instead."""
    objective = getattr(problem, level)
    constant = float(objective.lipschitz)
    if not (math.isfinite(constant) and constant > 0.0):
        other = f"pass {instead} to {type(method).__name__}" if instead else "take another method, such as 'sbcgf'"
        raise ValueError(
            f"the method {method.name!r} needs a smoothness constant of the {level} objective, and it has none"
            f" (lipschitz = {constant:g}): give it one, or {other}"
        )
    return constant


def known_floor(problem: Problem, method: Method) -> float:
    """Return a number that the lower objective is never below; raise if none is known."""
    floor = float(problem.lower.floor)
    if not math.isfinite(floor):
        raise ValueError(
            f"the method {method.name!r} needs a lower bound of g*, and the lower objective knows none:"
            f" pass floor=... to {type(method).__name__}"
        )
    return floor
