"""What a method is: a frozen configuration, a state, and a loop over a chunk of iterations.

The loop knows no loss and no set by name, and neither times, prints, records nor stops: that is the driver's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak import checks, schedules
from tiebreak.domains.base import without_projection
from tiebreak.engine import Kernel
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
        """Fill fields left as None from the preset, check counts and turn numbers into schedules."""
        preset = getattr(self, "preset", None)
        if preset is not None and preset not in self.presets:
            names = ", ".join(repr(name) for name in self.presets)
            raise ValueError(f"`preset` of {type(self).__name__} must be one of {names}, got {preset!r}")
        for name, value in self.presets.get(preset or "", {}).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name in self.counts:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checks.whole(value, name))
        for name, bounds in self.reals.items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checks.real(value, name, **bounds))
        for name in self.limits:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_schedule(value, name))

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
        return tuple(schedules.evaluate(getattr(self, name), t, name, largest) for name, largest in self.limits.items())


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
