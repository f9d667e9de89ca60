"""Bounds for near ties, g(x) ≤ g* + ε: against a conic solver, and from one tolerance to another."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cvxpy
import numpy as np
import pytest
from test_reference import TIGHT

from tiebreak import (
    Box,
    FiniteSum,
    Floors,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    Problem,
    Simplex,
    SquaredNorm,
    Stream,
    certify,
    minimize,
)
from tiebreak.proofs import exact
from tiebreak.proofs.certificate import proven
from tiebreak.proofs.exact import conclude, look_at
from tiebreak.proofs.floors import known

SETS = ("l1", "l2", "box", "simplex")
LOSSES = ("squares", "logistic")


class Reference(NamedTuple):
    """A problem with near ties, solved by CVXPY."""

    problem: Problem
    x: np.ndarray  # its solution
    f: float  # f*(ε)
    g: float  # g*
    lowest: np.ndarray  # a minimiser of g
    multiplier: float  # of g(x) ≤ g* + ε
    units: tuple[float, float]  # f(0) and g(0)


def domain_of(kind: str, d: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a set, and its constraints as a function of a variable of CVXPY."""
    size = float(rng.uniform(0.3, 2.0))
    match kind:
        case "l1":
            return L1Ball(size), lambda x: [cvxpy.norm1(x) <= size]
        case "l2":
            return L2Ball(size), lambda x: [cvxpy.norm2(x) <= size]
        case "simplex":
            return Simplex(size), lambda x: [x >= 0, cvxpy.sum(x) == size]
    low, high = -rng.random(d), size * rng.random(d)
    return Box(low, high), lambda x: [x >= low, x <= high]


def loss_of(kind: str, d: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return an objective, and the same as a function of a variable of CVXPY."""
    n = int(rng.integers(2, 9))
    A, b = rng.standard_normal((n, d)), rng.standard_normal(n)
    if kind == "squares":
        return LeastSquares(A, b), lambda x: cvxpy.sum_squares(A @ x - b) / (2 * n)
    sign = np.where(b > 0.0, 1.0, -1.0)
    return Logistic(A, sign), lambda x: cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(sign, A @ x))) / n


def reference(seed: int) -> Reference:
    """Sets, losses, sizes and tolerances all vary."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    domain, constraints = domain_of(SETS[seed % 4], d, rng)
    (upper, f), (lower, g) = (loss_of(LOSSES[seed // step % 2], d, rng) for step in (4, 8))
    units = upper.value(np.zeros(d)), lower.value(np.zeros(d))
    epsilon = units[1] * 10.0 ** rng.uniform(-3, -1)
    x = cvxpy.Variable(d)
    cvxpy.Problem(cvxpy.Minimize(g(x)), constraints(x)).solve(**TIGHT)
    lowest = inside(domain, x.value)
    best = lower.value(lowest)
    near = g(x) <= best + epsilon
    cvxpy.Problem(cvxpy.Minimize(f(x)), [*constraints(x), near]).solve(**TIGHT)
    found = inside(domain, x.value)
    problem = Problem(upper, lower, domain, epsilon)
    return Reference(problem, found, upper.value(found), best, lowest, np.asarray(near.dual_value).item(), units)


def inside(domain: Any, x: np.ndarray) -> np.ndarray:
    return domain.project(np.asarray(x, dtype=np.float64))


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(60))
def test_no_bound_is_violated_at_random_points_nor_at_the_solution_of_a_conic_solver(seed):
    case, rng = reference(seed), np.random.default_rng(seed)
    problem, f_room, g_room = case.problem, 1e-6 * case.units[0], 1e-7 * case.units[1]
    randoms = [problem.domain.random_point(rng, problem.dimension) for _ in range(2)]
    nearer = [case.x + 10.0 ** rng.uniform(-5, 0) * (point - case.x) for point in randoms]
    for x in (case.x, case.lowest, *randoms, *nearer):
        look = look_at(problem, x.copy())
        helped = conclude(problem, look, known(problem), multipliers=(case.multiplier, -1.0, math.inf, math.nan))
        alone = conclude(problem, look, known(problem))
        assert helped.upper_gap_bound <= alone.upper_gap_bound
        for certificate in (
            alone,
            helped,
            certify(problem, x),
            certify(problem, x, bundle=3),
            certify(problem, x, points=[case.lowest]),
        ):
            assert certificate.tolerance == problem.tolerance
            assert certificate.floors.upper <= case.f + f_room
            assert certificate.floors.lower <= case.g + g_room
            assert certificate.upper - case.f <= certificate.upper_gap_bound + f_room
            assert certificate.lower - case.g <= certificate.lower_gap_bound + g_room
            excess = certificate.lower - case.g - problem.tolerance
            assert {True: excess <= g_room, False: excess >= -g_room, None: True}[certificate.within]
            for normal, offset in certificate.cuts:
                assert normal @ case.x <= offset + g_room
                assert normal @ case.lowest <= offset + g_room


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_bounds_are_sharp_at_the_solution_once_a_minimiser_of_g_is_known(seed):
    case = reference(seed)
    sharp = certify(case.problem, case.x, points=[case.lowest])
    assert sharp.upper_gap_bound <= 1e-3 * case.units[0]
    assert certify(case.problem, case.lowest, points=[case.x]).within is True
    # Half-spaces of exact ties are narrower: they would prove what is false here.
    narrow = certify(case.problem.exact, case.x, points=[case.lowest])
    assert narrow.floors.upper >= sharp.floors.upper


# From one tolerance to another

PROBLEM = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0))


def near(tolerance: float) -> Problem:
    return PROBLEM._replace(tolerance=tolerance)


def best(tolerance: float) -> float:
    """f*(ε) of this problem: x₁ + x₂ ≥ 1 − √(2 ε)."""
    return 0.25 * max(1.0 - math.sqrt(2.0 * tolerance), 0.0) ** 2


def test_a_floor_of_f_holds_for_smaller_tolerances_and_not_for_larger_ones():
    points = {epsilon: np.full(2, math.sqrt(best(epsilon))) for epsilon in (0.0, 0.01, 0.1)}
    found = {epsilon: certify(near(epsilon), x, bundle=20, points=[[0.5, 0.5]]) for epsilon, x in points.items()}
    for epsilon, certificate in found.items():
        assert certificate.floors.upper == pytest.approx(best(epsilon), rel=1e-3)
        for other in points:
            kept = certify(near(other), np.zeros(2), floors=certificate.floors).floors
            assert kept.tolerance == other
            assert kept.upper <= best(other)
            assert kept.lower >= certificate.floors.lower
            assert kept.best_lower <= certificate.floors.best_lower
            if other <= epsilon:
                assert kept.upper >= certificate.floors.upper


def test_floors_that_do_not_tell_a_tolerance_are_of_exact_ties():
    assert certify(near(0.1), np.zeros(2), floors=Floors(upper=0.25, best_lower=0.0)).floors.upper < 0.25
    assert certify(PROBLEM, np.zeros(2), floors=Floors(upper=0.25, best_lower=0.0)).floors.upper == 0.25


@pytest.mark.parametrize("through", [lambda objective: objective, lambda objective: python(objective)])
def test_a_result_of_another_tolerance_proves_what_still_holds(through):
    tied = PROBLEM._replace(lower=through(PROBLEM.lower))
    result = minimize(tied, "cg-bio", max_queries=3000)
    floors = result.certificate.floors
    taken = known(tied._replace(tolerance=0.1), proven(result, tied._replace(tolerance=0.1)))
    assert (taken.lower, taken.best_lower, taken.tolerance) == (floors.lower, floors.best_lower, 0.1)
    assert taken.upper == 0.0  # what SquaredNorm knows of itself
    assert known(tied, proven(result, tied)) == floors
    other = Problem(SquaredNorm(np.ones(2)), PROBLEM.lower, PROBLEM.domain, 0.1)
    assert proven(result, other) == Floors()


def python(objective: Any) -> FiniteSum:
    return FiniteSum(objective.n_samples, objective.dimension, objective.value_and_gradient, convex=True)


# What a tolerance changes, and what not

POINT = np.array([0.3, -0.2, 0.1, 0.0, -0.1, 0.05])
RECORDED = [  # arguments, and bounds that were proven before problems had a tolerance
    ({}, 0.5483170877476113, 0.3566253086141527, 0.9103782313888871, (0.0, 0.0, 0.3566253086141533)),
    (
        {"points": [np.zeros(6)]},
        *(0.49775646955604497, 0.3566253086141527, 0.907110869571452),
        (0.050560618191566375, 0.0, 0.23462657991603822),
    ),
]


@pytest.mark.parametrize(("arguments", "upper", "lower", "stationarity", "floors"), RECORDED)
def test_exact_ties_have_the_bounds_that_they_always_had(arguments, upper, lower, stationarity, floors):
    rng = np.random.default_rng(7)
    levels = (LeastSquares(rng.standard_normal((n, 6)), rng.standard_normal(n)) for n in (5, 9))
    problem = Problem(*levels, L1Ball(1.5))
    found = certify(problem, POINT, **arguments)
    close = {"rel": 1e-12, "abs": 0.0}
    assert found.upper_gap_bound == pytest.approx(upper, **close)
    assert found.lower_gap_bound == pytest.approx(lower, **close)
    assert found.stationarity == pytest.approx(stationarity, **close)
    assert found.floors[:3] == pytest.approx(floors, **close)
    tiny = certify(problem._replace(tolerance=1e-300), POINT, **arguments)  # rounded up, and no more
    assert tiny.upper_gap_bound == pytest.approx(upper, **close)
    assert tiny.upper_gap_bound >= found.upper_gap_bound
    wider = certify(problem._replace(tolerance=0.1), POINT, **arguments)
    assert wider.floors.upper <= found.floors.upper
    assert wider.lower_gap_bound == pytest.approx(lower, rel=1e-3)


def test_a_multiplier_that_a_method_knows_makes_up_for_a_bad_proposal(monkeypatch):
    monkeypatch.setattr(exact, "cut_lmo", lambda *arguments: (0, 0.0))
    problem, total = near(0.02), 1.0 - math.sqrt(0.04)
    look = look_at(problem, np.full(2, 0.5 * total))
    floors = known(problem, Floors(best_lower=0.0))
    alone = conclude(problem, look, floors)
    assert alone.floors.upper == 0.0
    right = total / (2.0 * (1.0 - total))  # f′ = λ (−g′), in x₁ + x₂
    helped = conclude(problem, look, floors, multipliers=(right, 0.9 * right))
    assert helped.multiplier == helped.multipliers[0] == right
    assert helped.floors.upper == pytest.approx(best(0.02), rel=1e-12)
    assert helped.floors.upper <= best(0.02)
    wrong = conclude(problem, look, floors, multipliers=(-right, math.inf, math.nan))
    assert (wrong.multiplier, wrong.floors) == (alone.multiplier, alone.floors)


# Within the tolerance


def test_that_a_point_is_within_its_tolerance_is_proven_or_refuted_or_left_open():
    inside, between, beyond = np.full(2, 0.48), np.full(2, 0.47), np.full(2, 0.3)
    problem = near(0.001)
    assert problem.lower.value(inside) < 0.001 < problem.lower.value(between)
    certificate = certify(problem, inside)
    assert certificate.within is True
    assert "within the tolerance 0.001: proven" in str(certificate)
    refuted = certify(problem, beyond, points=[[0.5, 0.5]])
    assert refuted.within is False
    assert "beyond the tolerance 0.001: proven" in str(refuted)
    left = certify(problem, between)
    assert left.within is None
    assert "perhaps within the tolerance 0.001: not proven" in str(left)
    assert certify(problem, between, points=[[0.5, 0.5]]).within is False


def test_that_a_level_does_not_bind_is_said_only_where_f_is_least_on_all_of_the_set():
    """At a minimiser of g the half-space is all of Z, and its multiplier is 0, though f is less where g may be."""
    pulled = Problem(SquaredNorm(np.full(2, -3.0)), PROBLEM.lower, L1Ball(2.0), tolerance=0.01)
    at_tie = certify(pulled, [0.5, 0.5])
    assert (at_tie.within, at_tie.multiplier, at_tie.inactive) == (True, 0.0, False)
    assert "bind" not in str(at_tie)
    wide = pulled._replace(tolerance=5.0)  # g is 4.5 at most
    least = certify(wide, [-1.0, -1.0])
    assert (least.within, least.inactive) == (True, True)
    assert "within the tolerance 5: proven; it does not bind" in str(least)
    assert not certify(wide, [-0.9, -1.0]).inactive
    assert not certify(pulled.exact, [0.5, 0.5]).inactive
    for problem in (wide, pulled.exact._replace(keep=0.0)):
        found = minimize(problem, "active-set")
        assert found.certificate.inactive is (problem is wide)
        assert ("it does not bind" in str(found)) is (problem is wide)


def test_exact_ties_are_violated_or_not_decided_but_for_points_at_the_floor():
    assert certify(PROBLEM, [0.4, 0.3]).within is None
    assert certify(PROBLEM, [0.4, 0.3], points=[[0.5, 0.5]]).within is False
    assert "tolerance" not in str(certify(PROBLEM, [0.4, 0.3]))
    known_floor = FiniteSum(1, 2, lambda x, i: (0.0, np.zeros(2)), convex=True, floor=1e-3)
    with pytest.raises(ValueError, match="its `floor` is too high"):
        certify(PROBLEM._replace(lower=known_floor), [0.4, 0.3])


# Streams


@pytest.mark.parametrize("known_ranges", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.002, 0.02])
def test_bounds_of_streams_allow_for_the_tolerance(known_ranges, epsilon):
    rng = np.random.default_rng(1)
    A = rng.uniform(-1.0, 1.0, (40, 3))
    a = A @ [0.2, -0.1, 0.3]

    def value_and_grad(x, batch):
        rows, targets = batch
        residual = rows @ x - targets
        return 0.5 * float(np.mean(residual**2)), rows.T @ residual / len(targets)

    def draw(rng, size):
        rows = rng.integers(40, size=size)
        return A[rows], a[rows]

    said = {"value_range": (0.0, 8.0), "gradient_bound": 7.0} if known_ranges else {}
    upper, domain = SquaredNorm(np.full(3, 0.5)), L1Ball(1.0)
    problem = Problem(upper, Stream(draw, value_and_grad, 3, convex=True, **said), domain, epsilon)
    x = cvxpy.Variable(3)
    constraints = [cvxpy.norm1(x) <= 1.0, cvxpy.sum_squares(A @ x - a) / 80 <= epsilon]
    program = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(x - 0.5)), constraints)
    least = program.solve(solver=cvxpy.CLARABEL)
    samples = 1000 if known_ranges else 4000
    for seed in range(4):
        point = domain.random_point(rng, 3)
        found = certify(problem, point, samples=samples, seed=seed, points=[np.array([0.2, -0.1, 0.3])])
        assert found.approximate is not known_ranges
        assert found.tolerance == epsilon
        assert found.upper - least <= found.upper_gap_bound + 1e-6
        assert found.floors.upper <= least + 1e-6
        assert found.within is not True or LeastSquares(A, a).value(point) <= epsilon
    if epsilon == 0.02 and not known_ranges:
        assert certify(problem, [0.2, -0.1, 0.3], samples=4000).within is True
        at_solution = certify(problem, x.value * (1 - 1e-9), samples=40_000, points=[np.array([0.2, -0.1, 0.3])])
        assert at_solution.upper_gap_bound < 0.5 * upper.value(x.value)
