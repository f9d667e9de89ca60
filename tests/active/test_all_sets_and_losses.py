"""Answers of the active set over every set that it takes, and of every loss, against a conic solver."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, COMPOSED, polytope
from stated import assert_accurate, assert_agrees, best, huber, logistic, norm, squares, units

from tiebreak import L1Ball, Problem, Simplex, minimize
from tiebreak.domains.atoms import has_vertices
from tiebreak.engine import interpreted

SETS = [case for case in [*CASES, *COMPOSED] if has_vertices(case.make(np.random.default_rng(0), 4)[0])]
EPSILONS = (0.0, 1e-3)  # of g in the middle of the set
SEED = 3  # with which polytopes have an equation and are of a size that the conic solver can take


def data(seed: int, n: int, d: int, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), size * rng.standard_normal(n)


def test_every_polytope_is_among_the_sets():
    names = {case.name for case in SETS}
    assert len(names) >= 35
    assert {"L1Ball", "WeightedL1Ball", "Simplex", "UnitSimplex", "CappedSimplex", "KSparse", "Hull", "Birkhoff"} <= names
    assert {"Polytope", "Box", "LInfBall", "Columns(Hull)", "Product(Birkhoff)", "ColumnsL1Ball"} <= names
    assert not {"L2Ball", "NuclearBall", "Spectrahedron", "Columns(L2Ball)", "Product"} & names


@pytest.mark.parametrize("share", EPSILONS)
@pytest.mark.parametrize("case", SETS, ids=lambda case: case.name)
def test_over_every_set_the_answer_is_that_of_a_conic_solver(case, share):
    polytope.cache_clear()  # a solver that has answered others ends elsewhere within its tolerance
    rng = np.random.default_rng(SEED)
    domain, d = case.make(rng, min(6, case.largest))
    lower = squares(*data(1, (d + 1) // 2, d, domain.diameter))
    upper = squares(*data(2, d + 2, d, domain.diameter))
    epsilon = share * lower.objective.value(domain.middle(d))
    with interpreted():
        result = minimize(problem := Problem(upper.objective, lower.objective, domain, epsilon), "active-set")
        assert_accurate(result)
    assert case.violation(domain, result.x) <= 1e-12
    assert_agrees(result, best(upper, lower, problem, lambda x: case.constraints(domain, x)))


A, a = data(3, 5, 9)
B, b = data(4, 12, 9)
C, c = data(5, 30, 9)
HEAVY = np.random.default_rng(6).uniform(0.5, 2.0, 12)
LIGHT = np.where(np.arange(5) == 2, 0.0, HEAVY[:5])  # one row counts for nothing
NORM = norm(np.linspace(-1.0, 1.0, 9))
PAIRS = {  # each loss once above and once below
    "squares over norm": (squares(B, b), NORM),
    "norm over squares": (NORM, squares(A, a)),
    "csr over squares of many rows": (squares(B, b, "csr", HEAVY), squares(C, c)),
    "squares over csr": (squares(B, b), squares(A, a, "csr", LIGHT)),
    "float32 over csr of many rows": (squares(B, b, "float32"), squares(C, c, "csr")),
    "weighted squares over float32": (squares(B, b, weight=HEAVY), squares(A, a, "float32", LIGHT)),
    "huber over squares": (huber(B, b), squares(A, a)),
    "logistic over logistic": (logistic(B, b, weight=HEAVY), logistic(A, a, weight=LIGHT)),
    "norm over logistic of csr": (NORM, logistic(A, a, "csr")),
    "logistic over huber that fits": (logistic(B, b, "csr"), huber(A, 0.1 * a, weight=HEAVY[:5])),
    "sum over multiple": (squares(B, b) + 0.3 * NORM, 25.0 * squares(A, a)),
    "multiple over sum": (1e-3 * huber(B, b, "csr"), squares(A, a) + 2.0 * logistic(A[:3], a[:3])),
    "sum of many over sum of many": (0.1 * (logistic(C, c) + huber(B, b)), squares(A[:2], a[:2]) + squares(A[2:], a[2:])),
}


@pytest.mark.parametrize("share", EPSILONS)
@pytest.mark.parametrize("name", PAIRS)
def test_of_every_loss_the_answer_is_that_of_a_conic_solver(name, share):
    upper, lower = PAIRS[name]
    domain = Simplex(1.5) if "csr" in name else L1Ball(1.5)
    if lower.fit is None:  # at the bottom of the losses all minimisers fit alike
        lower = lower._replace(fit=lambda x: A @ x)
        domain = L1Ball(3.0)
    problem = Problem(upper.objective, lower.objective, domain)
    problem = problem._replace(tolerance=share * units(problem)[1])
    result = minimize(problem, "active-set")
    assert_accurate(result)
    assert_agrees(result, best(upper, lower, problem, lambda x: constraints(domain, x)))


def constraints(domain, x):
    case = next(case for case in CASES if case.name == type(domain).__name__)
    return case.constraints(domain, x)


def test_huber_above_and_below_with_rows_on_both_sides_of_its_corner():
    upper, lower = huber(B, b, delta=0.7), huber(A, 3.0 * a, "csr", delta=0.4)
    problem = Problem(upper.objective, lower.objective, L1Ball(1.0))
    exact = minimize(problem, "active-set")
    assert_accurate(exact)
    residuals = np.abs(A @ exact.x - 3.0 * a)
    assert residuals.min() < 0.4 < residuals.max()
    for epsilon in (1e-4, 1e-2):
        near = problem._replace(tolerance=epsilon)
        result = minimize(near, "active-set")
        assert_accurate(result)
        known = best(upper, lower, near, lambda x: constraints(near.domain, x))
        assert_agrees(result, known)
        assert exact.certificate.floors.lower <= known.lower + 1e-9
        assert known.upper <= exact.upper + 1e-6
