"""What a method is: a frozen configuration, a state, and a loop over a chunk of iterations.

The loop knows no loss and no set by name, and neither times, prints, records nor stops: that is the driver's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak import schedules
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


@dataclass(frozen=True)
class Method:
    """A configured method. Subclasses are frozen dataclasses whose fields are its parameters.

    A subclass gives the table entries below, the loop, and :meth:`start`, :meth:`cost`, :meth:`constants`. The loop is a
    kernel ``loop(problem, state, constants, *schedules, rng) -> int``; it takes one step for each entry of the schedules
    and leaves ``state.x`` at the last point that it completed.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    setting: ClassVar[str]
    needs: ClassVar[str]
    rates: ClassVar[str]
    loop: ClassVar[Kernel]
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    limits: ClassVar[dict[str, float]] = {}  # the schedules that the loop takes, and their largest values

    @property
    def seeks_with(self) -> Method | None:
        """The method that finds a first point for this one, if it needs a good one."""
        return getattr(self, "initial", None)

    def constants(self, problem: Problem) -> Any:
        """Return a named tuple of what else the loop takes: nothing that changes."""
        raise NotImplementedError

    def start(self, problem: Problem, constants: Any, x: np.ndarray) -> Any:
        """Return the state at t = 0: a named tuple of arrays with ``x``, ``iteration`` and ``empty_cuts`` among them."""
        raise NotImplementedError

    def cost(self, problem: Problem, constants: Any, t: np.ndarray) -> Cost:
        """Return what iterations t cost."""
        raise NotImplementedError

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the schedules that the loop takes, at iterations t."""
        return tuple(schedules.evaluate(getattr(self, name), t, name, largest) for name, largest in self.limits.items())

    def _settle(self) -> None:
        """Fill fields left as None from the preset and turn numbers into schedules."""
        preset = getattr(self, "preset", None)
        if preset is not None and preset not in self.presets:
            names = ", ".join(repr(name) for name in self.presets)
            raise ValueError(f"`preset` of {type(self).__name__} must be one of {names}, got {preset!r}")
        for name, value in self.presets.get(preset or "", {}).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name in self.limits:
            object.__setattr__(self, name, as_schedule(getattr(self, name), name))
