"""Reference values g* and f* of a regression, with their accuracy.

In two stages: x_g minimises g; f* is the least f over the minimisers of g, which for least squares are the points of the
same fit, A x = A x_g. (The form g(x) ≤ g* has no interior, and solvers miss f* by ten per cent and more.) With CVXPY both
stages go to Clarabel, rescaled and with tolerances of 1e-12; without it the library's own accelerated method and its bounds
have to do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import tiebreak
from tiebreak.data import Fold
from tiebreak.studies.study import Outcome
from tiebreak.studies.tracing import solved

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
BUNDLE = 8  # half-spaces of the certificates


class Optimum(NamedTuple):
    """The optimal values that gaps are measured from."""

    lower: float  # g*
    upper: float  # f*
    lower_accuracy: float  # g* is proven to be no more than this below what is used
    lower_floor: float  # ≤ g*, proven
    upper_floor: float  # ≤ f*, proven by the certificates of all runs
    lower_from: str  # "reference" or "certificate"
    upper_from: str


def solve(train: Fold, validation: Fold, radius: float, passes: int) -> Outcome:
    """Return the reference of the regression over an ℓ1 ball: its point, its values and how accurate they are.

    Without CVXPY it comes from as many ``passes`` over the data.
    ``solver_gap`` is the duality gap of the second stage, from the solver's multipliers: by how much f exceeds the least f
    over the points of that very fit; None if no solver says so.
    """
    problem = tiebreak.Problem(tiebreak.LeastSquares(*validation), tiebreak.LeastSquares(*train), tiebreak.L1Ball(radius))
    try:
        import cvxpy  # noqa: F401
    except ImportError:
        x, solver, gap = _own(problem, passes)
    else:
        x, solver, gap = _two_stages(train, validation, radius)
        x = problem.domain.project(x)
    certificate = tiebreak.certify(problem, x, bundle=BUNDLE)
    record = {
        "solver": solver,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "lower_gap_bound": certificate.lower_gap_bound,
        "upper_gap_bound": certificate.upper_gap_bound,
        "solver_gap": gap,
        "lower_floor": certificate.floors.lower,
        "upper_floor": certificate.floors.upper,
        "best_lower": certificate.floors.best_lower,
    }
    return Outcome({"x": x}, {name: _plain(value) for name, value in record.items()})


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


def _own(problem: tiebreak.Problem, passes: int) -> tuple[np.ndarray, str, None]:
    samples = problem.upper.n_samples + problem.lower.n_samples
    result = solved(problem, "pb-apg", max_queries=passes * samples)
    return result.x, "PB-APG, without CVXPY", None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
