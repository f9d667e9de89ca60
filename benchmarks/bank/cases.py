"""What a problem of the bank is: how it is made, how long methods may take, and what its answer is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiebreak import Problem

STREAM_PASS = 10_000  # samples of a stream that count as a pass
ROUNDING = 1e-12  # relative error of values that are known by construction


class Reference(NamedTuple):
    """The answer of a problem: g*, and the least f over the points that count as tied."""

    lower: float  # g*
    upper: float  # f*
    lower_error: float  # by how much each may be off
    upper_error: float
    source: str


class Case(NamedTuple):
    """A problem, made anew for each run: what one run finds out about data must not help another."""

    problem: Problem
    reference: Reference | None = None  # None: it has to be proven
    values: Callable[[np.ndarray], tuple[float, float]] | None = None  # exact f(x) and g(x), where a level is a stream
    tolerance: float = 0.0  # by how much g may exceed g*, whether the problem says it by `tolerance` or by `keep`
    ceiling: float = math.inf  # f at a point that minimises g, if one is known: f* is at most this

    @property
    def samples(self) -> int:
        """Samples that a pass over both levels takes."""
        return sum(STREAM_PASS if level.endless else int(level.n_samples) for level in self.problem[:2])

    def at(self, x: np.ndarray) -> tuple[float, float]:
        """Return f(x) and g(x), exactly."""
        return self.values(x) if self.values is not None else (self.problem.upper.value(x), self.problem.lower.value(x))


class Entry(NamedTuple):
    """A problem with a budget."""

    name: str  # of the problem
    kind: str  # what the problem is about
    make: Callable[[], Case]
    passes: float  # over the samples of both levels

    @property
    def label(self) -> str:
        """The name by which results are stored."""
        return f"{self.name}/{self.passes:g}"


_entries: list[Entry] = []


def problem(*passes: float) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """List a function that makes a problem, with its budgets; its module is its kind."""

    def listed(make: Callable[[], Case]) -> Callable[[], Case]:
        name, kind = make.__name__.replace("_", "-"), make.__module__.rpartition(".")[2]
        _entries.extend(Entry(name, kind, make, budget) for budget in passes)
        return make

    return listed


def entries() -> list[Entry]:
    """Return all entries, in the order in which they were listed."""
    return list(_entries)


def planted(problem: Problem, x: Any, tolerance: float = 0.0, values: Any = None, lower: float | None = None) -> Case:
    """Return a problem whose solution is known.

    Parameters
    ----------
    problem : Problem
    x : array, (d,)
        Its solution.
    tolerance : float
        By how much g may exceed g*.
    values : callable, optional
        Exact f(x) and g(x), where a level is a stream.
    lower : float, optional
        g*, if it is not g(x).
    """
    case = Case(problem, None, values, tolerance)
    x = np.asarray(x, dtype=float)
    f, g = case.at(x)
    start = case.at(problem.center)
    least = g if lower is None else lower
    errors = (ROUNDING * max(abs(value), abs(begin)) for value, begin in zip((g, f), (start[1], start[0]), strict=True))
    return case._replace(reference=Reference(least, f, *errors, "planted"))
