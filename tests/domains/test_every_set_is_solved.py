"""On every set a small problem is solved without any parameter, and what is proven holds."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, COMPOSED

from tiebreak import CGBiO, LeastSquares, Problem, SquaredNorm, certify, minimize
from tiebreak.engine import interpreted

CG_BIO = CGBiO(preset="auto")
HULLS = [case for case in COMPOSED if "Hull" in case.name]
PAIRS = [*((case, method) for case in CASES for method in ("auto", CG_BIO)), *((case, CG_BIO) for case in HULLS)]


@pytest.mark.parametrize(("case", "method"), PAIRS, ids=lambda value: getattr(value, "name", str(value)))
def test_a_problem_on_the_set_is_solved_without_parameters(case, method):
    """g = ½ (⟨a, x⟩ − ⟨a, p⟩)² is least on a plane through an inner point p; f = ½ ‖x − p‖² picks p there."""
    rng = np.random.default_rng(5)
    domain, d = case.make(rng, min(6, case.largest))
    p = np.mean([domain.random_point(rng, d) for _ in range(8)], axis=0)
    a = rng.standard_normal(d)
    problem = Problem(SquaredNorm(p), LeastSquares(a[None] / np.linalg.norm(a), [a @ p / np.linalg.norm(a)]), domain)
    unit = domain.diameter**2
    with interpreted():
        result = minimize(problem, method, max_queries=1200)
        certificate = certify(problem, result, bundle=4)
    assert case.violation(domain, result.x) <= 1e-9
    assert result.upper <= 1e-4 * unit
    assert result.lower <= 1e-6 * unit
    assert result.upper <= certificate.upper_gap_bound + 1e-12 * unit  # f* = g* = 0
    assert result.lower <= certificate.lower_gap_bound + 1e-12 * unit
    assert certificate.upper_gap_bound <= result.upper_gap_bound <= 1e-3 * unit
