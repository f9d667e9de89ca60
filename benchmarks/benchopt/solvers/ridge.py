"""Ridge regression whose penalty tends to zero: its limit is the least-squares solution of least norm."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from benchmark_utils.arrays import NotInArraysError, least_norm_equations
from benchmark_utils.stopping import SolvedOrSpent
from benchmark_utils.timed import TimedSolver
from sklearn.linear_model import Ridge

SMALLEST = 1e-15  # penalty relative to the mean eigenvalue of AᵀA, below which rounding decides


class Solver(TimedSolver):
    """scikit-learn's `Ridge(alpha)`, alpha a tenth of the last one each time."""

    name = "ridge"
    parameters = {"solver": ["auto", "svd"]}  # noqa: RUF012
    parameter_template = "{solver}"
    sampling_strategy = "tolerance"
    stopping_criterion = SolvedOrSpent()
    requirements = ("pip::scikit-learn",)

    def skip(self, make: Callable[[], Any]) -> tuple[bool, str | None]:
        try:
            A, _, _ = least_norm_equations(make().problem)
        except NotInArraysError as error:
            return True, str(error)
        return (True, "the matrix is sparse") if hasattr(A, "tocsr") and self.solver == "svd" else (False, None)

    def set_objective(self, make: Callable[[], Any]) -> None:
        problem = make().problem
        self.A, self.b, self.center = least_norm_equations(problem)
        self.unit, self.x0 = float((self.A**2).sum()) / self.A.shape[1], problem.center
        self.run(1.0)

    def get_next(self, penalty: float) -> float:
        return max(min(1.0, penalty / 10.0), SMALLEST)

    def solve(self, penalty: float) -> None:
        if not math.isfinite(penalty) or penalty > 1.0:  # benchopt's first question: where it begins
            self.x = self.x0
            return
        model = Ridge(alpha=penalty * self.unit, fit_intercept=False, solver=self.solver)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the equations are badly conditioned: the result shows it
            self.x = self.center + model.fit(self.A, self.b).coef_
