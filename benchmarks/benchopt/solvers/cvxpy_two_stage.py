"""Two convex programs by CVXPY and Clarabel: minimise g, then f over the points that are as good."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy
import numpy as np
from benchmark_utils.arrays import NotInArraysError, as_arrays
from benchmark_utils.stopping import SolvedOrStuck
from benchmark_utils.timed import TimedSolver

from cases import case_of  # isort: skip  (benchmark_utils says where it is)

LOOSEST, TIGHTEST, FACTOR = 1e-2, 1e-12, 100.0  # Clarabel's tolerances: the first, the last, and from one to the next


class Solver(TimedSolver):
    """CVXPY with Clarabel in two stages, at tolerances from 1e-2 to 1e-12.

    Squares are put as those of the singular value decomposition of their matrix, which has no more rows than columns, and
    points tie if they have the same fit: the form g(x) ≤ g* has no interior. Modelling is timed, as a user waits for it.
    """

    name = "cvxpy"
    sampling_strategy = "tolerance"
    stopping_criterion = SolvedOrStuck()
    requirements = ("pip::cvxpy", "pip::clarabel")

    def skip(self, make: Callable[[], Any]) -> tuple[bool, str | None]:
        problem = make().problem
        try:
            arrays = as_arrays(problem)
            case_of(problem.domain).constraints(problem.domain, cvxpy.Variable(problem.dimension))
        except NotInArraysError as error:
            return True, str(error)
        if arrays["lower"]["loss"] == "huber" and not problem.is_near:
            return True, "Huber losses do not fix the fit of their minimisers"
        return False, None

    def set_objective(self, make: Callable[[], Any]) -> None:
        self.domain, self.arrays = make().problem.domain, as_arrays(make().problem)
        self.run(LOOSEST)

    def get_next(self, tolerance: float) -> float:
        return max(LOOSEST if tolerance > LOOSEST else tolerance / FACTOR, TIGHTEST)

    def solve(self, tolerance: float) -> None:
        self.x = self.arrays["x0"]
        if tolerance > 1.0:  # benchopt's first question: where it begins
            return
        asked = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a solution may be inaccurate: the result shows it
            try:
                self.x = self._two_stages({"solver": cvxpy.CLARABEL, **asked})
            except cvxpy.SolverError:  # no answer is as good as none: the middle of the set
                return

    def _two_stages(self, options: dict[str, Any]) -> np.ndarray:
        arrays, x = self.arrays, cvxpy.Variable(self.arrays["x0"].size)
        inside = case_of(self.domain).constraints(self.domain, x)
        lower, upper = (stated(arrays[name], x) for name in ("lower", "upper"))
        # Tolerances are absolute: both objectives are put in units of their values in the middle of the set.
        units = [abs(value_at(level, x, arrays["x0"])) or 1.0 for level in (lower, upper)]
        cvxpy.Problem(cvxpy.Minimize(lower / units[0]), inside).solve(**options)
        tied = self._tied(lower, x, units[0])
        cvxpy.Problem(cvxpy.Minimize(upper / units[1]), [*inside, tied]).solve(**options)
        return arrays["x0"] if x.value is None else x.value

    def _tied(self, lower: Any, x: Any, unit: float) -> Any:
        """Return the constraint that makes points as good as the minimiser that was found, which x holds."""
        if x.value is None:
            raise cvxpy.SolverError("no minimiser of g was found")
        arrays, least = self.arrays, float(lower.value)
        room = arrays["tolerance"]
        if arrays["keep"] < 1.0:
            found = x.value.copy()
            room = (1.0 - arrays["keep"]) * (value_at(lower, x, arrays["from"]) - least)
            x.value = found
        if room > 0.0:
            return lower / unit <= (least + room) / unit
        A = arrays["lower"]["A"]
        if not hasattr(A, "tocsr"):
            _, values, A = np.linalg.svd(A, full_matrices=False)
            A = A[values > values[0] * max(self.arrays["lower"]["A"].shape) * np.finfo(float).eps]
        return A @ x == A @ x.value


def stated(level: dict[str, Any], x: Any) -> Any:
    """Return a level for CVXPY."""
    if level["loss"] == "distance":
        return 0.5 * cvxpy.sum_squares(x - level["center"])
    A, b, weights = level["A"], level["b"], level["weights"]
    n = b.size
    if level["loss"] == "logistic":
        return weights @ cvxpy.logistic(-cvxpy.multiply(b, A @ x)) / n
    if level["loss"] == "huber":
        return weights @ cvxpy.huber(A @ x - b, level["delta"]) / (2.0 * n)
    root = np.sqrt(weights)
    if hasattr(A, "tocsr"):
        return 0.5 * cvxpy.sum_squares(cvxpy.multiply(root, A @ x - b)) / n
    left, values, right = np.linalg.svd(root[:, None] * A, full_matrices=False)
    image = left.T @ (root * b)
    rest = root * b - left @ image
    return 0.5 * (cvxpy.sum_squares((values[:, None] * right) @ x - image) + float(rest @ rest)) / n


def value_at(level: Any, x: Any, point: np.ndarray) -> float:
    """Return the value of an objective at a point, which x is left at."""
    x.value = point
    found = float(level.value)
    return found if math.isfinite(found) else 1.0
