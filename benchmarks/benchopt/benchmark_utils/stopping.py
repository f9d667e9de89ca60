"""When a solver is asked for no more."""

from __future__ import annotations

from typing import Any

from benchopt.stopping_criterion import StoppingCriterion

SECONDS = "objective_processor_seconds"


class SolvedOrSpent(StoppingCriterion):
    """Stop once a value is reached, or when the processor seconds that the objective allows are used up.

    Calls that do not help are no reason to stop: the value is the larger one of two errors, and a solver that begins where f
    is less than f* has to lose before it gains. Each class of solvers needs a criterion of its own, because benchopt writes
    the sampling strategy into it.

    Parameters
    ----------
    level : float
        The value that is enough.
    **others
        As of benchopt's ``StoppingCriterion``.
    """

    def __init__(self, level: float = 1e-8, key_to_monitor: str = "value", **others: Any) -> None:
        super().__init__(key_to_monitor=key_to_monitor, **others)
        self.level = level
        self.kwargs = {**self.kwargs, "level": level}

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        spent = sum(call[SECONDS] for call in objective_list) / self.solver._objective.seconds
        solved = objective_list[-1][self.key_to_monitor_] <= self.level
        return solved or spent >= 1.0, min(spent, 1.0)
