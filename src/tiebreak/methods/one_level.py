"""What the methods that minimise one objective and ignore the other share: which one it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from tiebreak.engine import generic
from tiebreak.methods.base import LOWER_NOT_FINITE, UPPER_NOT_FINITE, Method
from tiebreak.methods.parameters import declared, option


class Upper(NamedTuple):
    """The level of f."""


class Lower(NamedTuple):
    """The level of g."""


@generic(light=True)
def objective_of(level, problem):
    """Return the objective of a level."""


@objective_of.register(Upper)
def upper_objective(level, problem):
    return problem.upper


@objective_of.register(Lower)
def lower_objective(level, problem):
    return problem.lower


@declared
class OneLevel(Method):
    """The common part of methods that minimise one objective and ignore the other."""

    level: str = option("Which objective to minimise; the other one is ignored.", "upper", ("upper", "lower"))

    @property
    def levels(self) -> tuple[str, ...]:
        return (self.level,)

    @property
    def failure(self) -> int:
        """What the loop returns when the objective is not finite."""
        return UPPER_NOT_FINITE if self.level == "upper" else LOWER_NOT_FINITE

    @property
    def mark(self) -> Upper | Lower:
        """The level as a value whose type compiled code goes by."""
        return Upper() if self.level == "upper" else Lower()

    def estimates(self, plan: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return ((plan.estimate,), ()) if self.level == "upper" else ((), (plan.estimate,))

    def memories(self, state: Any) -> tuple[Any, Any]:
        return (state.memory, None) if self.level == "upper" else (None, state.memory)
