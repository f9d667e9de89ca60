"""Problems of least norm solved by CVXPY with Clarabel, in two stages.

First g is minimised; then ½‖x‖² over the points with the same fit A x, which are all minimisers of g, since squares and
logistic losses are strictly convex in A x. The form g(x) ≤ g* has no interior, and solvers fail on it.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

import tiebreak

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
SECONDS = 300.0  # of a stage, at most


def installed() -> bool:
    """Return whether there is CVXPY, with Clarabel."""
    return find_spec("cvxpy") is not None and find_spec("clarabel") is not None


def two_stages(
    A: np.ndarray, target: np.ndarray, logistic: bool, problem: tiebreak.Problem
) -> tuple[np.ndarray, str, float]:
    """Return the point that CVXPY finds, moved into the set, what its two stages say, and how long they took.

    Parameters
    ----------
    A, target : array
        The rows; labels ±1, or numbers.
    logistic : bool
        Whether g is the logistic loss; else the mean of squares.
    problem : Problem
        Over an ℓ1 ball or a box.
    """
    import cvxpy

    began = time.perf_counter()
    x, domain = cvxpy.Variable(A.shape[1]), problem.domain
    if isinstance(domain, tiebreak.Box):
        inside = [x >= domain.lower, x <= domain.upper]
    else:
        inside = [cvxpy.norm1(x) <= domain.radius]
    if logistic:
        lower = cvxpy.sum(cvxpy.logistic(cvxpy.multiply(-target, A @ x))) / target.size
    else:
        lower = cvxpy.sum_squares((A @ x - target) / np.linalg.norm(target))
    point = problem.center
    first = _solved(cvxpy.Problem(cvxpy.Minimize(lower), inside))
    point = point if x.value is None else np.asarray(x.value)
    second = _solved(cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x)), [*inside, A @ x == A @ point]))
    point = point if x.value is None else np.asarray(x.value)
    return domain.project(point), f"{first}, then {second}", time.perf_counter() - began


def _solved(problem: Any) -> str:
    """Solve a problem and return its status; a solver that fails is one."""
    import cvxpy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": how much is seen at the point
        try:
            problem.solve(solver=cvxpy.CLARABEL, **TIGHT, time_limit=SECONDS)
        except cvxpy.error.SolverError:
            return "failed"
    return str(problem.status).replace("_", " ")
