"""Two convex programs by CVXPY and Clarabel: minimise g, then f over the points that are as good."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cvxpy
import numpy as np
from benchmark_utils.arrays import NotInArraysError, as_arrays
from benchmark_utils.stopping import SolvedOrSpent
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
    stopping_criterion = SolvedOrSpent()
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
        (lower, fit), (upper, _) = (stated(arrays[name], x) for name in ("lower", "upper"))
        # Tolerances are absolute: both objectives are put in units of their values in the middle of the set.
        units = [abs(value_at(level, x, arrays["x0"])) or 1.0 for level in (lower, upper)]
        cvxpy.Problem(cvxpy.Minimize(lower / units[0]), inside).solve(**options)
        if x.value is None:
            raise cvxpy.SolverError("no minimiser of g was found")
        room = self._room(lower, x)
        tied = lower / units[0] <= (lower.value + room) / units[0] if room > 0.0 else fit == fit.value
        cvxpy.Problem(cvxpy.Minimize(upper / units[1]), [*inside, tied]).solve(**options)
        return arrays["x0"] if x.value is None else x.value

    def _room(self, lower: Any, x: Any) -> float:
        """Return by how much g may exceed its value at x, which minimises it."""
        if self.arrays["keep"] == 1.0:
            return float(self.arrays["tolerance"])
        found, least = x.value.copy(), float(lower.value)
        gained = value_at(lower, x, self.arrays["from"]) - least
        x.value = found
        return (1.0 - self.arrays["keep"]) * gained


def stated(level: dict[str, Any], x: Any) -> tuple[Any, Any]:
    """Return a level for CVXPY, and an expression that is the same at points with the same fit A x."""
    if level["loss"] == "distance":
        return 0.5 * cvxpy.sum_squares(x - level["center"]), x
    A, b, root = level["A"], level["b"], np.sqrt(level["weights"])
    if hasattr(A, "tocsr"):
        fit = same = A @ x
    else:  # the directions in which A x changes at all
        left, values, right = np.linalg.svd(root[:, None] * A if level["loss"] == "squares" else A, full_matrices=False)
        seen = values > values[0] * max(A.shape) * np.finfo(float).eps
        fit, same = A @ x, right[seen] @ x
    if level["loss"] == "logistic":
        return level["weights"] @ cvxpy.logistic(-cvxpy.multiply(b, fit)) / b.size, same
    if level["loss"] == "huber":
        return level["weights"] @ cvxpy.huber(fit - b, level["delta"]) / (2.0 * b.size), same
    if hasattr(A, "tocsr"):
        return 0.5 * cvxpy.sum_squares(cvxpy.multiply(root, fit - b)) / b.size, same
    image = left[:, seen].T @ (root * b)
    rest = root * b - left[:, seen] @ image
    return 0.5 * (cvxpy.sum_squares(cvxpy.multiply(values[seen], same) - image) + float(rest @ rest)) / b.size, same


def value_at(level: Any, x: Any, point: np.ndarray) -> float:
    """Return the value of an objective at a point, which x is left at."""
    x.value = point
    return float(level.value)
