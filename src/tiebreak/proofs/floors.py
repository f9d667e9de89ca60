"""What is proven of the optimal values so far, and of the level that g may reach.

A point counts as tied if g(x) ≤ l, where the level l depends on g*, which is known only between two numbers:

    l = g* + ε,  where ε is given, or a share k of what g gains from the middle c of Z is kept: ε = (1 − k) (g(c) − g*).

In both cases l grows with g*. So the least g seen gives a number that l does not exceed, for half-spaces that must contain
every tied point; a floor of g* gives one that l is not below, so that points under it are proven to be tied.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tiebreak.engine.rounding import UNDERFLOW, UNIT
from tiebreak.objectives.surveys import FEW_OPERATIONS
from tiebreak.problem import Problem

CONTRADICTION = 1e-6  # relative amount by which g may be below its proven floor before something is said to be wrong


class ContradictionError(ValueError):
    """A point of the domain is better than what was proven to be possible: something that was said of g is not true."""


class Allowance(NamedTuple):
    """By how much g may exceed g*: as it was said, and between which numbers g lies at the middle of Z, if a share is."""

    tolerance: float = 0.0  # ε
    keep: float = 1.0  # k
    middle_floor: float = 0.0  # ≤ g(c); it matters where k < 1
    middle_ceiling: float = 0.0  # ≥ g(c)

    @property
    def is_positive(self) -> bool:
        """Whether ties may be near ones."""
        return self.tolerance > 0.0 or self.keep < 1.0

    def least(self, lower: float) -> float:
        """Return a number that ε is not below, if g* is at most ``lower``."""
        if self.keep == 1.0:
            return self.tolerance
        rounding = FEW_OPERATIONS * UNIT * (abs(self.middle_floor) + abs(lower))
        found = (1.0 - self.keep) * (self.middle_floor - lower - rounding) - UNDERFLOW
        return found if found > 0.0 else 0.0

    def level(self, best_lower: float) -> float:
        """Return a number that the level does not exceed, if g* is at most ``best_lower``."""
        if not self.is_positive or math.isinf(best_lower):
            return best_lower
        if self.keep == 1.0:
            epsilon, size = self.tolerance, self.tolerance
        else:
            above, size = max(self.middle_ceiling - best_lower, 0.0), abs(self.middle_ceiling)
            epsilon = (1.0 - self.keep) * above + UNDERFLOW
        return best_lower + epsilon + FEW_OPERATIONS * UNIT * (abs(best_lower) + size)

    def is_below(self, other: Allowance, lower: float, best_lower: float) -> bool:
        """Return whether the level is at most that of another one, wherever g* is between two numbers."""
        if self == other:
            return True
        if self.keep == other.keep == 1.0:
            return self.tolerance <= other.tolerance
        if not (math.isfinite(lower) and math.isfinite(best_lower)):
            return False
        if other.keep < 1.0 and best_lower > other.middle_floor:
            return False
        # The level of the other is linear between both ends, and this one is convex.
        return all(self.level(at) <= at + other.least(at) for at in (lower, best_lower))


def allowance_of(problem: Problem) -> Allowance:
    """Return by how much g may exceed g*, at the price of a pass over the data of g if it is said as a share."""
    if problem.keep == 1.0:
        return Allowance(problem.tolerance)
    survey = problem.lower.survey(problem.reference)
    error = survey.value_error + FEW_OPERATIONS * UNIT * abs(survey.value)
    if not math.isfinite(survey.value):
        raise ValueError(
            f"`keep` is a share of g(middle) − g*, and the lower objective is {survey.value} at the middle of the domain:"
            " give `tolerance` instead"
        )
    return Allowance(0.0, problem.keep, survey.value - error, survey.value + error)


class Floors(NamedTuple):
    """The best that is proven so far about the optimal values."""

    upper: float = -math.inf  # ≤ f*, the least f over the points of Z with g ≤ g* + ε
    lower: float = -math.inf  # ≤ g*
    best_lower: float = math.inf  # ≥ g*: the least g seen, and its rounding
    tolerance: float = 0.0  # the fields of an Allowance
    keep: float = 1.0
    middle_floor: float = 0.0
    middle_ceiling: float = 0.0

    @property
    def allowance(self) -> Allowance:
        """By how much g may exceed g*."""
        return Allowance(*self[3:])

    @property
    def epsilon(self) -> float:
        """A number that ε is not below: ε itself where it is given."""
        return self.allowance.least(self.best_lower) if self.best_lower < math.inf else self.tolerance

    @property
    def room(self) -> float:
        """How far above the floor of g* a value of g is proven to keep the level."""
        return self.allowance.least(self.lower)

    @property
    def aim(self) -> float:
        """The largest value of g that is proven to keep the level, rounded down; −∞ if nothing bounds g* from below."""
        return max(math.nextafter(self.lower + self.room, -math.inf), self.lower) if self.lower > -math.inf else -math.inf

    @property
    def level(self) -> float:
        """A number that g does not exceed where g ≤ g* + ε: the least g seen and ε, rounded up."""
        return self.allowance.level(self.best_lower)

    def at(self, allowance: Allowance) -> Floors:
        """Return what is proven for another allowance: f* is no larger for a larger one, and g* does not depend on it."""
        kept = allowance.is_below(self.allowance, self.lower, self.best_lower)
        return Floors(self.upper if kept else -math.inf, self.lower, self.best_lower, *allowance)

    def of(self, problem: Problem) -> Floors:
        """Return what is proven for the allowance of a problem."""
        if (self.tolerance, self.keep) == (problem.tolerance, problem.keep):
            return self
        return self.at(allowance_of(problem))


NOTHING = Floors()


def known(problem: Problem, *earlier: Floors) -> Floors:
    """Return what the objectives of a problem know of themselves, and what was proven of them earlier, for any tolerance."""
    allowance = Allowance(problem.tolerance, problem.keep) if problem.lower.endless else allowance_of(problem)
    upper, lower = (float(level.floor) for level in (problem.upper, problem.lower))
    first = Floors(upper - FEW_OPERATIONS * UNIT * abs(upper), lower - FEW_OPERATIONS * UNIT * abs(lower))
    all_floors = [first, *(floors.at(allowance) for floors in earlier)]
    uppers, lowers, ceilings = (column for column, _ in zip(zip(*all_floors, strict=True), range(3), strict=False))
    return Floors(max(uppers), max(lowers), min(ceilings), *allowance)


def gap(value: float, error: float, floor: float) -> float:
    """Return a bound on how far a value is above an optimal one that has a floor; NaN if it has none."""
    return value + error - floor if floor > -math.inf else math.nan


def is_within(value: float, error: float, bound: float, floors: Floors) -> bool | None:
    """Return whether g ≤ g* + ε at a point with this value of g, its error and its bound on g − g*; None if not proven."""
    if bound <= floors.room:
        return True
    return False if value - error - FEW_OPERATIONS * UNIT * abs(value) > floors.level else None


def check_consistent(floors: Floors) -> None:
    """Raise if g was seen clearly below what was proven of its minimum."""
    scale = max(abs(floors.lower), abs(floors.best_lower))
    if floors.best_lower < floors.lower - CONTRADICTION * scale:
        raise ContradictionError(
            f"`lower` takes the value {floors.best_lower:g} in the domain, though its gradients or its `floor` prove that it"
            f" is at least {floors.lower:g}: it is not convex, its gradient is wrong, its `floor` is too high, or its data"
            " were changed"
        )
