"""LAPACK's least-squares solution of least norm, where that is the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from benchmark_utils.arrays import NotInArraysError, least_norm_equations
from benchmark_utils.timed import TimedSolver
from benchopt.stopping_criterion import SingleRunCriterion

SOLVERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "numpy": lambda A, b: np.linalg.lstsq(A, b, rcond=None)[0],
    "scipy": lambda A, b: scipy.linalg.lstsq(A, b, lapack_driver="gelsy", check_finite=False)[0],
}


class Solver(TimedSolver):
    """`numpy.linalg.lstsq`, or `scipy.linalg.lstsq` with the driver gelsy: one call, to rounding."""

    name = "lstsq"
    parameters = {"package": ["numpy", "scipy"]}  # noqa: RUF012
    parameter_template = "{package}"
    sampling_strategy = "run_once"
    stopping_criterion = SingleRunCriterion()

    def skip(self, make: Callable[[], Any]) -> tuple[bool, str | None]:
        try:
            A, _, _ = least_norm_equations(make().problem)
        except NotInArraysError as error:
            return True, str(error)
        return (True, "the matrix is sparse") if hasattr(A, "tocsr") else (False, None)

    def set_objective(self, make: Callable[[], Any]) -> None:
        self.A, self.b, self.center = least_norm_equations(make().problem)
        self.run(None)  # LAPACK is loaded by the first call

    def solve(self, _: Any) -> None:
        self.x = self.center + SOLVERS[self.package](self.A, self.b)
