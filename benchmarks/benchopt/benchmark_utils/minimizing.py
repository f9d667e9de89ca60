"""The solvers of this package: `tiebreak.minimize` with a method and a budget of passes over the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bank import Case

from benchmark_utils.timed import TimedSolver
from tiebreak import Result, Snapshot, minimize

MANY = 30  # passes over the data with which every method can begin
REHEARSAL = 0.05  # seconds after which a run whose time does not count is stopped
LARGEST_SEED = 2**31


class MinimizingSolver(TimedSolver):
    """Call ``minimize`` with 1, 2, 4, 8, … passes over the data of both levels, each time from the beginning.

    A call is what a user would make: methods know their budget and plan for it. All of the call is timed, with its records
    and the proof of its bounds. Each call gets the problem made anew, so that it finds all constants of the data itself. The
    same call is rehearsed before, for a fraction of a second, so that no compilation is timed.
    """

    method: str
    sampling_strategy = "iteration"
    requirements = ("pip::tiebreak",)

    def skip(self, make: Callable[[], Case]) -> tuple[bool, str | None]:
        case = make()
        try:  # it also compiles most of what is needed, before benchopt's time limit begins
            minimize(case.problem, self.method, max_queries=MANY * case.samples, callback=rehearsed, progress=False)
        except ValueError as error:  # it says what the method needs and the problem lacks
            return True, " ".join(str(error).split())
        return False, None

    def set_objective(self, make: Callable[[], Case]) -> None:
        self.make = make
        self.x = make().problem.center
        self.seed = self.get_seed(use_repetition=True) % LARGEST_SEED

    def get_next(self, passes: int) -> int:
        return 2 * passes or 1

    def pre_run_hook(self, passes: int) -> None:
        self.case = self.make()
        if self._minimize(passes, callback=rehearsed) is not None:
            self.case = self.make()

    def solve(self, passes: int) -> None:
        result = self._minimize(passes)
        self.x = self.case.problem.center if result is None else result.x

    def _minimize(self, passes: int, callback: Callable[[Snapshot], Any] | None = None) -> Result | None:
        """Return the result of a run; none if so few passes are not enough for a step."""
        options = {"max_queries": passes * self.case.samples, "seed": self.seed, "callback": callback, "progress": False}
        try:
            return minimize(self.case.problem, self.method, **options) if passes else None
        except ValueError as error:
            if "max_queries" not in str(error):
                raise
            return None


def rehearsed(snapshot: Snapshot) -> bool:
    """Return whether a rehearsal has lasted long enough."""
    return snapshot.seconds > REHEARSAL
