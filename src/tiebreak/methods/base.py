"""What a method is: a frozen configuration, a plan, a state, and a loop over a chunk of iterations.

The loop knows no loss, no set and no estimate by name, and neither times, prints, records nor stops: that is the driver's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak import estimates
from tiebreak.domains.base import without_projection
from tiebreak.engine import Kernel, checks
from tiebreak.engine.callouts import take_failure
from tiebreak.engine.randomness import Keys
from tiebreak.methods.parameters import other, parameters_of
from tiebreak.methods.states import arrays_of, begin
from tiebreak.problem import Problem
from tiebreak.schedules import Given, evaluated

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
    passes: float = math.inf  # passes over the data of both levels that a time limit allows, about


NO_BUDGET = Budget()
SAMPLE = 4096  # iterations from which the mean cost of one is found


@dataclass(frozen=True)
class Method:
    """A configured method. Subclasses are made by ``declared``; their fields are its parameters.

    A subclass gives the entries of the table of methods below, :meth:`plan`, the class of its state and a loop. The loop is
    a kernel ``loop(problem, state, plan, iterations, keys) -> int`` that takes this many steps, counts each in
    ``state.iteration``, and leaves ``state.x`` at the last point that it completed. In ``plan`` its schedules are arrays;
    ``keys`` are those of the samples (``tiebreak.engine.randomness``). It sees objectives through the estimates
    ``plan.upper`` and ``plan.lower``, whose memories are ``state.upper`` and ``state.lower``; these count what is drawn.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    setting: ClassVar[str]
    needs: ClassVar[str]
    rates: ClassVar[str]  # at the upper level; at the lower level
    loop: ClassVar[Kernel]
    state: ClassVar[type]  # a named tuple of arrays, whose kinds are those of ``states.py``
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    projects: ClassVar[bool] = False  # whether it needs the projection onto Z
    convex: ClassVar[bool] = False  # whether it makes no sense where f is known not to be convex
    streams: ClassVar[bool] = False  # whether it does without passes over all samples
    finite: ClassVar[bool] = True  # whether it takes problems without a stream
    near_ties: ClassVar[bool] = False  # whether it takes problems with a tolerance, g(x) ≤ g* + ε
    asks_for_passes: ClassVar[bool] = False  # whether it goes by how many passes over the data a time limit allows

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that it looks at."""
        return ("upper", "lower")

    @property
    def seeks_with(self) -> Method | None:
        """The method that finds a first point for this one, if it needs a good one."""
        return getattr(self, "initial", None)

    @property
    def settles_with(self) -> Method | None:
        """The method that lowers g at the end of a run, from the point that this one led to."""
        return getattr(self, "settle", None) or None

    def __post_init__(self) -> None:
        """Fill fields left as None from the preset, check them all and turn numbers into schedules."""
        preset = self._preset()
        for parameter in parameters_of(self):
            name, value = parameter.name, getattr(self, parameter.name)
            if value is None and parameter.default is not None and name != "initial":
                raise ValueError(f"`{name}` must be given, got None; left out it is {parameter.default!r}")
            if (value := preset.get(name) if value is None else value) is not None:
                object.__setattr__(self, name, parameter.checked(value))

    def _preset(self) -> Mapping[str, Any]:
        """Return the parameters of the preset, of a method that has some."""
        preset = getattr(self, "preset", None)
        if preset is None:
            return {}
        if not isinstance(preset, str) or preset not in self.presets:
            names = ", ".join(repr(name) for name in self.presets)
            raise ValueError(f"`preset` of {type(self).__name__} must be one of {names}, got {checks.shown(preset)}")
        return self.presets[preset]

    def chosen(self, problem: Problem, budget: Budget) -> Method:
        """Return the method that is meant for a problem and a whole run: itself, unless it is one that chooses."""
        return self

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        """Return this method with all parameters filled in for a problem and what may be spent on it.

        Raises a ValueError if the problem lacks what the method needs.
        """
        self.check(problem)
        found = {name: find() for name, find in self.defaults(problem, budget).items() if getattr(self, name) is None}
        return replace(self, **found) if found else self

    def check(self, problem: Problem) -> None:
        """Raise a ValueError if a problem lacks what the method needs: a projection, convexity, an end of its samples.

        Or if it has a tolerance, and the method is for exact ties.
        """
        if problem.is_near and not self.near_ties:
            raise ValueError(
                f"the method {self.name!r} is for exact ties, and the problem has {problem.allowed}: take 'auto', which"
                " chooses one for near ties, such as 'active-set', 'pb-apg' or 'sbcgf'"
            )
        if self.projects and (part := without_projection(problem.domain)) is not None:
            raise ValueError(
                f"the method {self.name!r} needs the projection onto the domain, and {type(part).__name__}"
                " has none: take a method that does without, such as 'sbcgf' or 'cg-bio'"
            )
        if self.convex and "upper" in self.levels and problem.upper.convex is False:
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
        cost = self.cost(self.plan(problem), t)
        total = np.cumsum(cost.upper_queries + cost.lower_queries)
        if budget.queries <= total[-1]:
            counted = float(np.searchsorted(total, budget.queries, side="right"))
        elif total[-1] == total[0]:
            counted = math.inf
        else:  # the first iteration may cost much more than the others
            counted = 1.0 + (budget.queries - total[0]) * (t.size - 1) / (total[-1] - total[0])
        return max(min(budget.iterations, counted), 1.0)

    def plan(self, problem: Problem) -> Any:
        """Return a named tuple of all that the loop goes by; its schedules are leaves made by :meth:`given`."""
        raise NotImplementedError

    def given(self, name: str) -> Given:
        """Return a parameter that is a schedule as a leaf of the plan."""
        schedule = getattr(self, name)
        largest = next(field.metadata["largest"] for field in fields(self) if field.name == name)
        source = next(field.name for field in fields(self) if getattr(self, field.name) is schedule)
        return Given(schedule, source, largest)  # one that was taken from another is called by the name of that one

    def start(self, problem: Problem, plan: Any, x: np.ndarray) -> Any:
        """Return the state at t = 0, of the class ``state``: arrays with ``x`` and ``iteration`` among them."""
        return begin(self.state, plan, x)

    def advance(self, problem: Problem, state: Any, plan: Any, iterations: int, keys: Keys) -> int:
        """Take this many steps from a state, and return what the loop returns: for those who need no driver."""
        t = int(state.iteration[0])
        outcome = self.loop(problem, state, evaluated(plan, np.arange(t, t + iterations)), iterations, keys)
        if (failure := take_failure()) is not None:
            raise failure
        return outcome

    def answer(self, state: Any) -> np.ndarray:
        """Return the point of Z that the method offers as its answer so far; the last one if nothing else is said."""
        return state.x

    def origin(self, state: Any) -> np.ndarray | None:
        """Return the point that the method started from, if it keeps it."""
        return None

    def finished(self, state: Any) -> bool:
        """Return whether no further step can improve anything, up to rounding: the run, or the search, ends there.

        A loop that finds this out may return before it has taken all the steps that it was asked for.
        """
        return False

    def has_answer(self, state: Any) -> bool:
        """Return whether the point is worth a record: not while a method only gathers what it needs to begin."""
        return True

    def conclude(self, state: Any) -> None:
        """Make an answer of what there is, where a run ends before the method has one."""

    def wants_record(self, state: Any) -> bool:
        """Return whether the point is worth a record before the next chunk though none is due by what was drawn.

        A loop may return early for this, too.
        """
        return False

    def allow(self, state: Any, level: float, rise: float) -> None:
        """Take note of how large g may be, for near ties: of the level, and of how far that is above g(x_0).

        A record tells, whenever it proves more of g*. Points with g at most this level are proven to be tied.
        """

    def hints(self, state: Any) -> tuple[tuple[float, np.ndarray | None], ...]:
        """Return multipliers λ of g(x) ≤ g* + ε that are worth trying in the proof of a bound on f*.

        Each comes with the point of Z at which it is to be tried; None stands for the answer.
        """
        return ()

    def stored(self, state: Any) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps of a state: its arrays, by name."""
        return arrays_of(state)

    def restored(self, problem: Problem, plan: Any, x: np.ndarray, arrays: Mapping[str, np.ndarray]) -> Any:
        """Return the state of which :meth:`stored` returned these arrays, of a run that began at x.

        A method whose state holds arrays of varying size overrides both.
        """
        state = self.start(problem, plan, x)
        for name, array in arrays_of(state).items():
            array[...] = arrays[name]
        return state

    def remark(self, problem: Problem, state: Any) -> str:
        """Return what the message of the result is to say beside why the run ended, after a semicolon; mostly nothing."""
        return ""

    def memory(self, state: Any) -> dict[str, np.ndarray] | None:
        """Return what a run that continues from the result can use beside its point; None if there is nothing.

        A minimiser of g alone, if the method has found one, is in it as "minimiser".
        """
        return None

    def recalled(self, problem: Problem, plan: Any, x: np.ndarray, memory: Mapping[str, np.ndarray]) -> Any:
        """Return the state at t = 0 of a run that continues, at x, from one with this :meth:`memory`.

        That one was of the same problem, with the same tolerance or another one.
        """
        return self.start(problem, plan, x)

    def empty_cuts(self, state: Any) -> int:
        """Return how often the cut left nothing of Z; methods without a cut do not count it."""
        return 0

    def estimates(self, plan: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the estimates that an iteration makes at the upper and at the lower level."""
        return (plan.upper,), (plan.lower,)

    def memories(self, state: Any) -> tuple[Any, Any]:
        """Return the memories of the estimates at the upper and at the lower level; None where there is none."""
        return state.upper, state.lower

    def cost(self, plan: Any, t: np.ndarray) -> Cost:
        """Return what iterations t cost at most: the sum over the estimates."""
        nothing = np.zeros(t.shape, dtype=np.int64)
        levels = [[estimates.cost(each, t) for each in level] for level in self.estimates(plan)]
        upper, lower = ([sum(kind, nothing) for kind in zip(*level, strict=True)] or [nothing] * 2 for level in levels)
        return Cost(upper[0], lower[0], upper[1], lower[1])

    def spent(self, state: Any) -> np.ndarray:
        """Return what was spent since t = 0, in the order of :class:`Cost`."""
        none = np.zeros(2, dtype=np.int64)
        upper, lower = (none if memory is None else memory.spent for memory in self.memories(state))
        return np.array([upper[0], lower[0], upper[1], lower[1]])


def check_initial(value: Any, name: str) -> Method:
    """Return a method that can find the first point for another: one that looks at the lower level."""
    if not isinstance(value, Method) or "lower" not in value.levels:
        raise ValueError(
            f'`{name}` must be a configured method that minimises the lower objective, such as FISTA(level="lower"),'
            f" got {checks.shown(value)}"
        )
    return value


def initial(default: Method | None = None) -> Any:
    """Declare the parameter for the method that finds the first point."""
    meaning = "What finds the first point, which should nearly minimise g, if none is given to ``minimize``."
    return other("Method", default, meaning, check_initial)


def preset(meaning: str, default: str = "auto") -> Any:
    """Declare the parameter that says where parameters that are not given come from."""
    return other("str", default, "Where parameters that are not given come from. " + meaning, lambda given, name: given)


def smoothness(problem: Problem, level: str, method: Method, instead: str = "") -> float:
    """Return the smoothness constant of a level's objective; raise if it is not known and say what to pass instead."""
    objective = getattr(problem, level)
    constant = float(objective.lipschitz)
    if not (math.isfinite(constant) and constant > 0.0):
        ways_out = [f"pass {instead} to {type(method).__name__}"] if instead else []
        if not objective.endless:
            ways_out.append("take 'pb-apg' or 'bi-fista', which begin with an estimate")
        raise ValueError(
            f"the method {method.name!r} needs a smoothness constant of the {level} objective, and it has none"
            f" (lipschitz = {constant:g}): give it one, or {', or '.join(ways_out)}"
        )
    return constant


def smoothnesses(problem: Problem, method: Method, instead: str = "") -> tuple[float, float]:
    """Return the smoothness constants of f and g; raise if one is not known."""
    return smoothness(problem, "upper", method, instead), smoothness(problem, "lower", method, instead)


def known_floor(problem: Problem, method: Method) -> float:
    """Return a number that the lower objective is never below; raise if none is known."""
    floor = float(problem.lower.floor)
    if not math.isfinite(floor):
        raise ValueError(
            f"the method {method.name!r} needs a lower bound of g*, and the lower objective knows none:"
            f" pass floor=... to {type(method).__name__}"
        )
    return floor
