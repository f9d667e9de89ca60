"""Reference values g* and f* of a regression, proven, and those of a conic solver beside them.

The library's active set solves the problem to rounding and proves floors of both values; so does the path that leads to the
tie. g* is at most the least g seen. f(x_λ) is at most f* up to rounding, so that the larger of f at the answer and its floor
is taken for f*: nothing smaller is possible, and what is missing of the true f* is as little as both agree.

With CVXPY, Clarabel solves the problem too, rescaled and with tolerances of 1e-12, in two stages: x_g minimises g; f* is the
least f over the minimisers of g, which for least squares are the points of the same fit, A x = A x_g. (The form g(x) ≤ g*
has no interior, and solvers miss f* by ten per cent and more.) It is shown for comparison, and decides nothing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import tiebreak
from tiebreak.data import Fold
from tiebreak.studies.study import Outcome
from tiebreak.studies.tracing import followed, solved

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


class Optimum(NamedTuple):
    """The optimal values that gaps are measured from."""

    lower: float  # g*
    upper: float  # f*
    lower_accuracy: float  # g* is proven to be no more than this below what is used
    lower_floor: float  # ≤ g*, proven
    upper_floor: float  # ≤ f*, proven by the certificates of all runs
    lower_from: str  # "reference" or "certificate"
    upper_from: str


def solve(train: Fold, validation: Fold, radius: float) -> Outcome:
    """Return the reference of the regression over an ℓ1 ball: the point, what is proven, and what CVXPY finds.

    ``lower`` and ``upper`` are what is taken for g* and f*; ``upper_gap_bound`` and ``lower_gap_bound`` are proven of the
    point. What begins with ``rival`` is of CVXPY, and None where it is not installed: ``rival_gap`` is the duality gap of
    its second stage, by how much its f exceeds the least f over the points of its own fit.
    """
    problem = tiebreak.Problem(tiebreak.LeastSquares(*validation), tiebreak.LeastSquares(*train), tiebreak.L1Ball(radius))
    path = followed(problem)  # it comes first, so that the clock does not see compiled code being loaded
    began = time.perf_counter()
    answer = solved(problem, "active-set")
    seconds = time.perf_counter() - began
    certificate = answer.certificate
    lower_floor, upper_floor, best = _joined(certificate.floors, path.floors)
    record = {
        "solver": f"{answer.method.name}, {answer.status.name.lower()}",
        "seconds": seconds,
        "upper_at_zero": problem.upper.value(np.zeros(problem.dimension)),
        "lower": best,
        "upper": max(certificate.upper, upper_floor),
        "lower_gap_bound": certificate.lower + certificate.lower_error - lower_floor,
        "upper_gap_bound": certificate.upper + certificate.upper_error - upper_floor,
        "lower_floor": lower_floor,
        "upper_floor": upper_floor,
        "best_lower": best,
        **_rival(problem, train, validation),
    }
    return Outcome({"x": answer.x}, {name: _plain(value) for name, value in record.items()})


def _joined(*proven: tiebreak.Floors) -> tuple[float, float, float]:
    """Return the best that several runs prove: floors of g* and f*, and what g* is at most."""
    lowers, uppers, bests = ([getattr(floors, name) for floors in proven] for name in ("lower", "upper", "best_lower"))
    return max(lowers), max(uppers), min(bests)


def optimum(reference: Outcome, others: Iterable[Mapping[str, Any]]) -> Optimum:
    """Return g* and f* from a reference; where the certificates of runs prove that it is wrong, from these.

    Parameters
    ----------
    reference : Outcome
        Of :func:`solve`.
    others : list of dict
        Records of traced runs of the same problem.
    """
    records = [reference.record, *others]
    lower_floor = max(record["lower_floor"] for record in records)
    upper_floor = max(record["upper_floor"] for record in records)
    best = min(record["best_lower"] for record in records)
    g, f = reference.record["lower"], reference.record["upper"]
    g_holds, f_holds = g <= best * (1.0 + 1e-12), f >= upper_floor
    return Optimum(
        lower=g if g_holds else lower_floor,
        upper=f if f_holds else upper_floor,
        lower_accuracy=(g - lower_floor) if g_holds else 0.0,
        lower_floor=lower_floor,
        upper_floor=upper_floor,
        lower_from="reference" if g_holds else "certificate",
        upper_from="reference" if f_holds else "certificate",
    )


def _rival(problem: tiebreak.Problem, train: Fold, validation: Fold) -> dict[str, Any]:
    """Return what CVXPY finds, and how long it takes."""
    try:
        import cvxpy  # noqa: F401
    except ImportError:
        return dict.fromkeys(("rival", "rival_lower", "rival_upper", "rival_gap", "rival_seconds"))
    began = time.perf_counter()
    x, solver, gap = _two_stages(train, validation, problem.domain.radius)
    seconds = time.perf_counter() - began
    point = problem.domain.project(x)
    lower, upper = problem.lower.value(point), problem.upper.value(point)
    return {"rival": solver, "rival_lower": lower, "rival_upper": upper, "rival_gap": gap, "rival_seconds": seconds}


def _two_stages(train: Fold, validation: Fold, radius: float) -> tuple[np.ndarray, str, float]:
    import cvxpy

    (A, a), (B, b) = train, validation
    x = cvxpy.Variable(A.shape[1])
    ball = cvxpy.norm1(x) <= radius

    def least(M: np.ndarray, target: np.ndarray, *constraints: Any) -> Any:
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares((M @ x - target) / np.linalg.norm(target))), [*constraints])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": how much is found out below
            problem.solve(solver=cvxpy.CLARABEL, **TIGHT)
        return problem

    first = least(A, a, ball)
    same_fit = A @ x == A @ x.value
    fit = A @ x.value
    second = least(B, b, ball, same_fit)
    point = np.asarray(x.value)
    multipliers = np.asarray(same_fit.dual_value) * float(b @ b) / (2 * b.size)
    bound = max(_dual_bound(point, A, fit, B, b, radius, sign * multipliers) for sign in (1.0, -1.0))
    gap = float(np.mean((B @ point - b) ** 2)) / 2 - bound
    return point, f"Clarabel by CVXPY, {first.status} and {second.status}", gap


def _dual_bound(
    x: np.ndarray, A: np.ndarray, fit: np.ndarray, B: np.ndarray, b: np.ndarray, radius: float, multipliers: np.ndarray
) -> float:
    """Return a lower bound of the least f over the points of a fit: that of the Lagrangian, linearised at x."""
    residual = B @ x - b
    slope = B.T @ residual / b.size + A.T @ multipliers
    lagrangian = float(residual @ residual) / (2 * b.size) + float(multipliers @ (A @ x - fit))
    return lagrangian - float(slope @ x) - radius * float(np.abs(slope).max())


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
