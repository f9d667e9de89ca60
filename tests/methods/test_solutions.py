"""Every method on small problems that a conic solver solves: it comes as near as its theory promises, or fails as known.

Gaps are relative to the values at zero. Budgets are generous: a million samples on some twenty terms a level.
"""

from __future__ import annotations

from typing import NamedTuple

import cvxpy
import numpy as np
import pytest

from tiebreak import (
    AIRG,
    DBGD,
    FISTA,
    IRCG,
    IRFSCG,
    IRSCG,
    METHODS,
    MNG,
    PAVR,
    PBAPG,
    SBCGF,
    SBCGFM,
    SBCGI,
    SBCGIM,
    ActiveSet,
    AGMBiO,
    ARIPSeG,
    Auto,
    BiFISTA,
    BiGSAM,
    BisecBiO,
    CGBiO,
    DBGDSto,
    FCBiO,
    L1Ball,
    L2Ball,
    LeastSquares,
    Problem,
    SpiderFW,
    SquaredNorm,
    StormFW,
    SwitchingGradient,
    minimize,
    power,
)

TIGHT = {"solver": cvxpy.CLARABEL, "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
BUDGET = 1_000_000


class Case(NamedTuple):
    """A problem and its solution."""

    problem: Problem
    upper: float  # f*
    lower: float  # g*
    upper_unit: float  # f(0)
    lower_unit: float  # g(0)
    alone: float  # the least f over Z, whatever g

    def gaps(self, result):
        return (result.upper - self.upper) / self.upper_unit, (result.lower - self.lower) / self.lower_unit


def solve(problem, upper, lower, fit, x, constraint):
    """Minimise g, then f over the points with the same fit; f alone, too."""
    alone = cvxpy.Problem(cvxpy.Minimize(upper), [constraint]).solve(**TIGHT)
    least = cvxpy.Problem(cvxpy.Minimize(lower), [constraint]).solve(**TIGHT)
    best = cvxpy.Problem(cvxpy.Minimize(upper), [constraint, fit == fit.value])
    best.solve(**TIGHT)
    assert best.status == cvxpy.OPTIMAL
    zero = np.zeros(x.shape)
    return Case(problem, best.value, least, problem.upper.value(zero), problem.lower.value(zero), alone)


def data(seed, n, d):
    """Each row comes twice, with different targets, so that the least loss is positive."""
    rng = np.random.default_rng(seed)
    A = np.repeat(rng.standard_normal((n // 2, d)), 2, axis=0)
    return A, A @ (rng.laplace(size=d) * (rng.random(d) < 0.4)) + 0.3 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def regression():
    """Validation loss over the minimisers of a training loss in an ℓ1 ball: f is convex, not strongly."""
    (A, a), (B, b) = data(0, 14, 30), data(1, 18, 30)
    radius = 1.2 * np.abs(np.linalg.lstsq(A, a, rcond=None)[0]).sum()
    x = cvxpy.Variable(30)
    upper, lower = cvxpy.sum_squares(B @ x - b) / 36, cvxpy.sum_squares(A @ x - a) / 28
    problem = Problem(LeastSquares(B, b), LeastSquares(A, a), L1Ball(radius))
    return solve(problem, upper, lower, A[::2] @ x, x, cvxpy.norm1(x) <= radius)


def nearest_in(share):
    """The minimiser of a training loss that is nearest to a point, in a Euclidean ball: f is strongly convex."""
    A, a = data(2, 12, 20)
    center, radius = (
        np.random.default_rng(3).standard_normal(20),
        share * np.linalg.norm(np.linalg.lstsq(A, a, rcond=None)[0]),
    )
    x = cvxpy.Variable(20)
    upper, lower = cvxpy.sum_squares(x - center) / 2, cvxpy.sum_squares(A @ x - a) / 24
    problem = Problem(SquaredNorm(center), LeastSquares(A, a), L2Ball(radius))
    return solve(problem, upper, lower, A[::2] @ x, x, cvxpy.norm2(x) <= radius)


@pytest.fixture(scope="module")
def nearest():
    """The ball binds at the solution."""
    return nearest_in(1.2)


@pytest.fixture(scope="module")
def inside():
    """The ball does not bind at the solution."""
    return nearest_in(10.0)


START = SpiderFW(step=power(2.0, 1.0, shift=2.0), level="lower")
EXACT_START = SpiderFW(step=power(2.0, 1.0, shift=2.0), period=1, level="lower")


def sbcgi(case, kind=SBCGI, **more):
    slack = {} if kind is SBCGIM else {"slack": power(0.1 * case.lower_unit, 0.5)}
    return kind(
        **{"preset": "paper", "step": power(1.0, 1.0, shift=2.0), "batch_size": 8, "initial": START, **slack, **more}
    )


# A method for a case, and the largest |gap| at the upper and the lower level that it may leave on each of the two problems;
# None if it does not take that one.
CONVERGE = {
    "auto": (lambda case: Auto(), (1e-7, 1e-9), (0.02, 5e-5)),
    "active-set": (lambda case: ActiveSet(), (1e-7, 1e-9), None),
    "sbcgi": (sbcgi, (0.01, 4e-3), (0.1, 4e-3)),  # over seeds 2e-4 to 3.3e-3 of g(0)
    "sbcgf": (lambda case: SBCGF(step=1e-4, slack=1e-9 * case.lower_unit, initial=START), (0.01, 2e-3), (2e-3, 1e-6)),
    "sbcgf-m": (lambda case: SBCGFM(step=1e-4, initial=START), (0.01, 2e-3), (2e-3, 1e-6)),
    "ir-scg": (lambda case: IRSCG(strength=1.0), (0.01, 1e-3), (0.15, 5e-3)),
    "ir-fscg": (lambda case: IRFSCG(strength=1.0), (0.03, 2e-6), (0.02, 5e-5)),
    "arip-seg": (
        lambda case: ARIPSeG(preset="paper", step=power(1e-2, 0.75), penalty=power(10.0, -0.25)),
        (0.3, 1e-5),
        (0.01, 2e-4),
    ),
    "cg-bio": (lambda case: CGBiO(preset="paper"), (0.01, 2e-3), (2e-3, 1e-6)),
    "ir-cg": (lambda case: IRCG(preset="paper"), (0.02, 2e-6), (0.02, 1e-4)),
    "a-irg": (lambda case: AIRG(regularization=power(case.lower_unit / case.upper_unit, 0.25)), (0.05, 1e-3), (0.1, 0.01)),
    "agm-bio": (lambda case: AGMBiO(), (1e-3, 2e-5), (5e-3, 2e-5)),
    "pb-apg": (lambda case: PBAPG(), (2e-4, 1e-12), (1e-8, 1e-12)),
    "pavr": (lambda case: PAVR(), (2e-3, 1e-10), (1e-5, 1e-10)),  # where rows are few it settles f slowly
    "bi-fista": (lambda case: BiFISTA(), (0.01, 1e-14), (5e-6, 1e-12)),
    "fc-bio": (lambda case: FCBiO(), (1e-4, 1e-7), (1e-6, 1e-12)),
    "switching-gradient": (lambda case: SwitchingGradient(), (0.03, 1e-4), (0.1, 1e-5)),
    "bisec-bio": (lambda case: BisecBiO(), None, (1e-5, 1e-8)),
    "big-sam": (lambda case: BiGSAM(), None, (1e-3, 1e-7)),
    "mng": (lambda case: MNG(), None, (1e-5, 1e-10)),
}
ONE_LEVEL = {
    "storm-fw": StormFW(step=power(1.0, 1.0, shift=2.0), batch_size=8),
    "spider-fw": SpiderFW(step=power(2.0, 1.0, shift=2.0)),
    "fista": FISTA(),
}
WITHOUT_THEORY = {"sbcgi-m", "dbgd", "dbgd-sto", "dbgd-storm", "dbgd-spider"}


def test_every_method_is_tested_here():
    assert {*CONVERGE, *ONE_LEVEL, *WITHOUT_THEORY} == {name for name, method in METHODS.items() if method.finite}


def check(case, method, allowed):
    result = minimize(case.problem, method, max_queries=BUDGET)
    upper, lower = case.gaps(result)
    assert abs(upper) <= allowed[0]
    assert -1e-9 <= lower <= allowed[1]
    # What is proven holds, whatever the method.
    assert upper <= result.upper_gap_bound / case.upper_unit + 1e-7
    assert lower <= result.lower_gap_bound / case.lower_unit + 1e-9
    assert case.problem.domain.contains(result.x, 1e-9)


@pytest.mark.parametrize("name", [name for name, (_, allowed, _) in CONVERGE.items() if allowed])
def test_a_method_solves_a_regression(name, regression):
    make, allowed, _ = CONVERGE[name]
    check(regression, make(regression), allowed)


@pytest.mark.parametrize("name", [name for name, (_, _, allowed) in CONVERGE.items() if allowed])
def test_a_method_finds_the_nearest_minimiser(name, nearest):
    make, _, allowed = CONVERGE[name]
    check(nearest, make(nearest), allowed)


@pytest.mark.parametrize("name", ONE_LEVEL)
def test_a_method_for_one_level_forgets_the_other(name, regression):
    result = minimize(regression.problem, ONE_LEVEL[name], max_queries=BUDGET)
    _, lower = regression.gaps(result)
    assert abs(result.upper - regression.alone) <= 5e-4 * regression.upper_unit
    assert lower > 0.5


def test_without_slack_the_cut_of_noisy_estimates_may_be_often_empty_and_f_is_lost(regression):
    def run(seed, **more):
        return minimize(regression.problem, sbcgi(regression, **more), max_queries=BUDGET, seed=seed)

    # About one seed of ten shows it; which ones depends on the last digit, and so on the machine.
    lost, bare = next(
        (seed, bare) for seed in range(100) if (bare := run(seed, kind=SBCGIM)).empty_cuts > 0.05 * bare.iterations
    )
    assert regression.gaps(bare)[0] > 0.02
    allowed = run(lost, slack=power(regression.lower_unit, 0.5))
    assert allowed.empty_cuts < 0.01 * allowed.iterations
    assert abs(regression.gaps(allowed)[0]) < 0.01


def test_arip_seg_with_the_paper_s_steps_hardly_leaves_its_start(regression):
    result = minimize(regression.problem, ARIPSeG(preset="paper"), max_queries=BUDGET)
    upper, lower = regression.gaps(result)
    assert upper > 0.3  # of f(0), where it began
    assert lower > 0.3


def test_dbgd_converges_inside_the_domain_and_not_at_its_boundary(inside, nearest):
    free, bound = (minimize(case.problem, DBGD(floor=case.lower), max_queries=BUDGET) for case in (inside, nearest))
    assert max(np.abs(inside.gaps(free))) < 2e-3
    assert nearest.gaps(bound)[1] > 0.1


def test_dbgd_sto_keeps_an_error_at_the_lower_level_that_its_exact_version_does_not(inside):
    exact = minimize(inside.problem, DBGD(floor=inside.lower), max_queries=BUDGET)
    sampled = minimize(inside.problem, DBGDSto(preset="paper", step=1e-3, floor=inside.lower), max_queries=BUDGET)
    assert inside.gaps(sampled)[1] > 20 * inside.gaps(exact)[1]
