"""When a solver is asked for no more."""

from __future__ import annotations

from typing import Any

from benchopt.stopping_criterion import SufficientProgressCriterion

SECONDS = "objective_processor_seconds"


class SolvedOrStuck(SufficientProgressCriterion):
    """Stop once a value is reached, after some calls without progress, or when processor seconds are used up.

    Calls that are too short for a step do not count as without progress. The limit of seconds is the objective's parameter.

    Each class of solvers needs a criterion of its own, because benchopt writes the sampling strategy into it.

    Parameters
    ----------
    level : float
        The value that is enough.
    patience, **others
        As of benchopt's ``SufficientProgressCriterion``.
    """

    def __init__(self, level: float = 1e-8, patience: int = 4, **others: Any) -> None:
        super().__init__(patience=patience, **others)
        self.level = level
        self.kwargs = {**self.kwargs, "level": level}

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        first, last = (objective_list[k][self.key_to_monitor_] for k in (0, -1))
        if last <= self.level:
            return True, 1.0
        if self.solver is not None and sum(call[SECONDS] for call in objective_list) > self.solver._objective.seconds:
            return True, 1.0
        if last == first:
            return False, 0.0
        return super().check_convergence(objective_list)
