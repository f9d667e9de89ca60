"""How good a point is: both gaps with their signs, and how far it is outside of the set."""

from __future__ import annotations

import math

import numpy as np
from bank import Case
from bank.proving import reference_of
from judging import Yardstick

from tiebreak import Domain, Problem, SquaredNorm, minimize
from tiebreak.domains import projects

ROUNDING = float(np.finfo(float).eps)  # smallest value that is told, since curves are logarithmic


class Measure:
    """What points of a problem are judged by.

    Parameters
    ----------
    case : Case
        A problem of the bank. Its answer is found here if the case does not bring one.
    """

    def __init__(self, case: Case) -> None:
        reference, tolerance = reference_of(case)
        self.case = case
        self.yardstick = Yardstick(reference, case.at(case.problem.center), tolerance)

    def __call__(self, x: np.ndarray) -> dict[str, float]:
        """Return all numbers that the benchmark keeps of a point."""
        x = np.asarray(x, dtype=float)
        if x.shape != (self.case.problem.dimension,):
            raise ValueError(f"a result must have {self.case.problem.dimension} entries in one row, got shape {x.shape}")
        if not np.isfinite(x).all():
            return {"value": math.nan}
        f, g = self.case.at(x)
        yardstick, outside = self.yardstick, distance(self.case.problem.domain, x)
        upper, lower = f - yardstick.reference.upper, g - yardstick.reference.lower - yardstick.tolerance
        size = float(self.case.problem.domain.diameter)
        return {
            "value": max(*(float(error) for error in yardstick.errors(f, g)), outside / size, ROUNDING),
            "upper_gap": upper,
            "lower_gap": lower,
            "upper_gap_relative": upper / yardstick.upper_unit,
            "lower_gap_relative": lower / yardstick.lower_unit,
            "outside": outside,
            "reference_error": yardstick.uncertainty,
        }


def distance(domain: Domain, x: np.ndarray) -> float:
    """Return the Euclidean distance of a point to a set."""
    if projects(domain):
        return float(np.linalg.norm(domain.project(x) - x))
    if domain.contains(x):
        return 0.0
    nearest = minimize(Problem(SquaredNorm(x), SquaredNorm(x), domain), "active-set", progress=False).x
    return float(np.linalg.norm(nearest - x))
