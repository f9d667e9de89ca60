"""The objective: among the minimisers of g over a set, the point that is best for f."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmark_utils.measuring import Measure
from benchmark_utils.stopping import SolvedOrSpent
from benchopt import BaseObjective

from bank import Case  # isort: skip  (benchmark_utils says where it is)
from bank.files import MissingDataError  # isort: skip


class Objective(BaseObjective):
    """Minimise f over the minimisers of g on a compact convex set.

    The value is the largest of three relative errors: |f − f*|, g − g* where it is positive, and the distance to the set. f*
    and g* are known. Gaps are kept with their signs beside it.
    """

    name = "simple bilevel problem"
    min_benchopt_version = "1.10"
    requirements = ("pip::tiebreak",)
    parameters = {"seconds": [10.0]}  # noqa: RUF012  (processor seconds of all calls of a solver)
    sampling_strategy = "iteration"
    stopping_criterion = SolvedOrSpent()
    test_config = {"dataset": {"name": "bank", "problem": "least-norm"}}  # noqa: RUF012  (benchopt's form)

    def skip(self, make: Callable[[], Case]) -> tuple[bool, str | None]:
        try:
            make()
        except MissingDataError as error:
            return True, str(error)
        return False, None

    def set_data(self, make: Callable[[], Case]) -> None:
        self.make = make
        self.measure = Measure(make())

    def get_objective(self) -> dict[str, Any]:
        return {"make": self.make}

    def evaluate_result(self, x: Any, processor_seconds: float = 0.0) -> dict[str, float]:
        return {**self.measure(x), "processor_seconds": processor_seconds}

    def get_one_result(self) -> dict[str, Any]:
        return {"x": self.measure.case.problem.center}
