"""What a run is asked for: where to start, when to stop; its clock, and what it has spent."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import projects
from tiebreak.driver.result import Counts, Memory, Status
from tiebreak.engine import checks, compile_seconds
from tiebreak.methods import Method
from tiebreak.problem import Problem

DEFAULT_QUERIES, DEFAULT_PASSES = 1_000_000, 30  # queries that may be made if no limit is given, or passes over large data
COUNTED = ("samples", "iterations", "s")  # what limits that are spent little by little count
LIMIT_ARGUMENTS = ("max_queries", "max_iterations", "time_limit", "tol")  # arguments that say when a run ends


class Limits(NamedTuple):
    """When to stop; infinite where there is no limit."""

    queries: float
    iterations: float
    seconds: float
    tol: tuple[float, float] | None
    by_default: bool = False  # whether nothing was said

    @property
    def countable(self) -> tuple[float, float, float]:
        """The limits that are spent little by little."""
        return self.queries, self.iterations, self.seconds

    def sentence(self, status: Status) -> str:
        """Return a status as a sentence that has the limit which was reached, as it was given.

        Examples
        --------
        >>> limits_of(time_limit=2.5).sentence(Status.TIME)
        'budget spent: time_limit=2.5 s has passed'
        """
        if status is Status.QUERIES and self.by_default:
            return f"budget spent: {self.queries:,} samples were drawn, the default; `max_queries` can be larger"
        given = {
            Status.QUERIES: ("max_queries", f"{self.queries:,}"),
            Status.ITERATIONS: ("max_iterations", f"{self.iterations:,}"),
            Status.TIME: ("time_limit", f"{self.seconds:g} s"),
            Status.CERTIFIED: ("tol", self.tol and "({:g}, {:g})".format(*self.tol)),
        }
        name, value = given.get(status, ("", ""))
        return status.value.replace(f"`{name}`", f"{name}={value}") if name else status.value


class Task(NamedTuple):
    """What a run is asked for; nothing of it ever changes."""

    problem: Problem
    method: Method  # as it was asked for, with parameters that are still to be found
    limits: Limits
    x: np.ndarray  # the first point
    given: bool  # whether it was given
    seek: bool  # whether a better first point is to be found
    seed: int
    part: int  # how many runs it continues, each of which has samples of its own
    memory: Memory | None = None  # of the run that it continues, if that was of the same problem


class Clock:
    """The time of a run since the call; what is spent compiling does not count against limits."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._compiled_before = compile_seconds()
        self._excused = 0.0
        self._earlier = (0.0, 0.0)

    @property
    def wall(self) -> float:
        """Seconds since the call, and those of the runs that this one continues."""
        return time.perf_counter() - self._began + self._earlier[0]

    @property
    def counted(self) -> float:
        """The same without compilation."""
        compiled = compile_seconds() - self._compiled_before
        return time.perf_counter() - self._began - compiled - self._excused + self._earlier[1]

    def excuse(self, counted: float) -> None:
        """Do not count what was spent since ``counted`` was read."""
        self._excused += self.counted - counted

    def continue_from(self, wall: float, counted: float) -> None:
        """Add what an earlier run spent."""
        self._earlier = (wall, counted)


class Spent:
    """What a run has spent: samples drawn, gradients evaluated, and time.

    Attributes
    ----------
    costs : array, (4,)
        In the order of :class:`tiebreak.methods.base.Cost`.
    seconds : float
        Time of the methods, with the constants that they need.
    """

    def __init__(self) -> None:
        self.costs = np.zeros(4, dtype=np.int64)
        self.seconds = 0.0

    @property
    def total_queries(self) -> int:
        """Samples drawn at both levels together."""
        return int(self.costs[:2].sum())

    @property
    def queries(self) -> Counts:
        """Samples drawn by level."""
        return Counts(int(self.costs[0]), int(self.costs[1]))

    @property
    def evaluations(self) -> Counts:
        """Gradients evaluated by level."""
        return Counts(int(self.costs[2]), int(self.costs[3]))

    def charge(self, level: str, evaluations: int, seconds: float, queries: int = 0) -> None:
        """Add gradients evaluated at a level outside of iterations, the time that they took, and samples drawn for them."""
        number = 0 if level == "upper" else 1
        self.costs[number] += queries
        self.costs[2 + number] += evaluations
        self.seconds += seconds


def limits_of(
    max_queries: Any = None,
    max_iterations: Any = None,
    time_limit: Any = None,
    tol: Any = None,
    problem: Problem | None = None,
) -> Limits:
    """Return the limits that are meant by arguments of :func:`minimize`, or raise an error that names the wrong one."""
    by_default = max_queries is max_iterations is time_limit is tol is None
    if by_default:
        max_queries = DEFAULT_QUERIES if problem is None else default_queries(problem)
    limits = Limits(
        queries=math.inf if max_queries is None else checks.whole(max_queries, "max_queries"),
        iterations=math.inf if max_iterations is None else checks.whole(max_iterations, "max_iterations"),
        seconds=math.inf if time_limit is None else checks.real(time_limit, "time_limit", above=0.0),
        tol=None,
        by_default=by_default,
    )
    if tol is not None:
        limits = limits._replace(tol=checked_tol(tol))
    return limits


def default_queries(problem: Problem) -> int:
    """Return how many samples a run may draw if nothing is said: a million, or thirty passes over larger data."""
    samples = (level.n_samples for level in problem[:2])
    return max(DEFAULT_QUERIES, DEFAULT_PASSES * sum(int(each) for each in samples if math.isfinite(each)))


def checked_tol(tol: Any) -> tuple[float, float]:
    """Return the tolerances for both gaps, or raise."""
    if not isinstance(tol, (tuple, list, np.ndarray)) or len(tol) != 2:
        raise ValueError(f"`tol` must be a pair (ε_f, ε_g) of tolerances for the upper and the lower gap, got {tol!r}")
    upper, lower = (checks.real(value, "tol", above=0.0) for value in tol)
    return upper, lower


def start_of(problem: Problem, x0: Any) -> np.ndarray:
    """Return the point that is meant by ``x0``: the centre of the domain if none is given; raise if it lies outside."""
    if x0 is None:
        return problem.center
    x = checks.vector(x0, "x0", problem.dimension)
    if not problem.domain.contains(x):
        hint = "; `problem.domain.project(x0)` is the nearest point" if projects(problem.domain) else ""
        raise ValueError(f"`x0` must lie in the domain, and it does not{hint}")
    return x
