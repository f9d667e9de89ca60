"""Bounds are never violated, and shrink."""

from __future__ import annotations

import math
from typing import NamedTuple

import cvxpy
import numpy as np
import pytest
from scipy.optimize import linprog
from test_reference import random_problem, two_stages

from tiebreak import (
    SBCGF,
    Box,
    CGBiO,
    FiniteSum,
    Floors,
    L1Ball,
    L2Ball,
    LeastSquares,
    Problem,
    SpiderFW,
    SquaredNorm,
    Status,
    certify,
    minimize,
    power,
)
from tiebreak.engine import interpreted
from tiebreak.engine.digest import digest
from tiebreak.objectives import ConvexLoss, curvature, linear_model, loss
from tiebreak.proofs.bundle import Lines, best_bound


def solved_problem(seed, kind):
    """A problem made so that x is its solution: ∇f(x) = −Aᵀν − z with z normal to the set at x, and A x fits exactly."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 12))
    A = rng.standard_normal((int(rng.integers(1, d + 1)), d))
    x = rng.standard_normal(d) * (rng.random(d) < 0.7)
    match kind:
        case "l1":
            domain = L1Ball(max(np.abs(x).sum(), 0.1))
            normal = np.where(x != 0.0, np.sign(x), rng.uniform(-1.0, 1.0, d)) if x.any() else np.zeros(d)
        case "l2":
            domain, normal = L2Ball(max(float(np.linalg.norm(x)), 0.1)), x
        case "box":
            lower, upper = x - (rng.random(d) < 0.5), x + (rng.random(d) < 0.5)
            domain, normal = Box(lower, upper), (x == upper) * rng.random(d) - (x == lower) * rng.random(d)
    pull = A.T @ rng.standard_normal(A.shape[0]) + rng.exponential() * normal
    scales = 10.0 ** rng.uniform(-3, 3, 2)
    problem = Problem(scales[0] * SquaredNorm(x + pull), scales[1] * LeastSquares(A, A @ x), domain)
    return problem, x, scales[0] * 0.5 * float(pull @ pull)


@pytest.mark.parametrize("kind", ["l1", "l2", "box"])
def test_no_bound_is_violated_on_hundreds_of_problems_whose_solutions_are_known(kind):
    tighter = 0
    for seed in range(150):
        problem, solution, best_upper = solved_problem(seed, kind)
        rng = np.random.default_rng(seed)
        toward = problem.domain.random_point(rng, problem.dimension)
        x = solution + 10.0 ** rng.uniform(-6, 0) * (toward - solution)
        one, several = certify(problem, x), certify(problem, x, bundle=6)
        for certificate in (one, several):
            size = abs(best_upper) + abs(certificate.upper)
            assert certificate.upper - best_upper <= certificate.upper_gap_bound + 1e-10 * size
            assert 0.0 <= certificate.lower <= certificate.lower_gap_bound * (1 + 1e-9) + 1e-13 * size
            for normal, offset in certificate.cuts:
                assert normal @ solution <= offset + 1e-12 * (abs(offset) + np.abs(normal) @ np.abs(solution))
        assert several.upper_gap_bound <= one.upper_gap_bound
        assert several.lower_gap_bound <= one.lower_gap_bound
        tighter += several.upper_gap_bound < 0.7 * one.upper_gap_bound
    assert tighter > 30


def test_a_bundle_gives_the_bound_of_a_linear_program():
    rng = np.random.default_rng(0)
    d, radius, x = 8, 2.0, np.zeros(8)
    upper = Lines(rng.standard_normal(3), rng.standard_normal((3, d)))
    lower = Lines(-rng.random(4) - 0.1, rng.standard_normal((4, d)))
    # min t : t ≥ φ_i + ⟨a_i, s⟩, γ_j + ⟨c_j, s⟩ ≤ 0, ‖s‖₁ ≤ radius, in s⁺ and s⁻
    rows = [np.r_[a, -a, -1.0] for a in upper.gradients] + [np.r_[c, -c, 0.0] for c in lower.gradients]
    program = linprog(
        np.r_[np.zeros(2 * d), 1.0],
        A_ub=[*rows, np.r_[np.ones(2 * d), 0.0]],
        b_ub=np.r_[-upper.values, -lower.values, radius],
        bounds=[(0, None)] * (2 * d) + [(None, None)],
    )
    bound = best_bound(L1Ball(radius), x, upper, lower)
    assert bound.value <= program.fun + 1e-9
    assert bound.value == pytest.approx(program.fun, abs=5e-3 * (upper.values.max() - program.fun))
    assert L1Ball(radius).contains(bound.point)
    assert np.isclose(bound.upper.sum(), 1.0)
    assert (bound.lower >= 0.0).all()


def test_more_half_spaces_make_the_bound_of_a_good_point_ten_times_as_tight():
    problem, *_ = random_problem(0)
    result = minimize(problem, "bi-fista", max_queries=300_000)
    gaps = [certify(problem, result, bundle=k).upper_gap_bound for k in (1, 20, 40)]
    assert gaps[0] <= result.upper_gap_bound
    assert gaps[1] < gaps[0] / 4
    assert gaps[2] < gaps[0] / 10


def test_points_that_are_given_help(problem):
    rng = np.random.default_rng(0)
    # Where g is least its gradient is 0, and its half-space cuts nothing off.
    x, good = problem.domain.random_point(rng, 18), minimize(problem, CGBiO(settle=False), max_queries=20_000).x
    alone, helped = certify(problem, x), certify(problem, x, points=[good])
    assert helped.floors.best_lower == pytest.approx(problem.lower.value(good), rel=1e-12)
    assert helped.upper_gap_bound < alone.upper_gap_bound
    assert helped.upper == alone.upper
    assert len(helped.cuts) == 2


def test_a_point_outside_the_domain_is_not_certified(problem):
    with pytest.raises(ValueError, match="`x` must lie in the domain, for bounds to hold, and it does not"):
        certify(problem, np.full(18, 10.0))
    with pytest.raises(ValueError, match="`points` must lie in the domain"):
        certify(problem, np.zeros(18), points=[np.full(18, 10.0)])
    with pytest.raises(ValueError, match="`bundle` must be a whole number ≥ 1, got 0"):
        certify(problem, np.zeros(18), bundle=0)


def test_a_certificate_says_what_is_what(problem):
    text = str(certify(problem, np.zeros(18)))
    assert "f(x) − f* ≤" in text
    assert "g(x) − g* ≤" in text
    unknown = problem._replace(upper=FiniteSum(12, 18, problem.upper.value_and_gradient))
    assert "f*" not in str(certify(unknown, np.zeros(18)))
    assert "stationarity" in str(certify(unknown, np.zeros(18)))


def test_stationarity_over_several_half_spaces_is_no_larger_than_over_one(problem):
    unknown = problem._replace(upper=FiniteSum(12, 18, problem.upper.value_and_gradient))
    x = minimize(problem, "cg-bio", max_queries=5_000).x
    one, several = certify(unknown, x), certify(unknown, x, bundle=5)
    assert several.stationarity <= one.stationarity
    assert math.isnan(several.upper_gap_bound)


def test_a_run_with_tolerances_ends_certified(problem):
    unit = problem.upper.value(np.zeros(18)), problem.lower.value(np.zeros(18))
    tol = (1e-2 * unit[0], 1e-2 * unit[1])
    result = minimize(problem, CGBiO(), max_queries=None, max_iterations=100_000, tol=tol)
    assert result.status is Status.CERTIFIED
    assert result.status.value.startswith("certified")
    assert result.upper_gap_bound <= tol[0]
    assert result.lower_gap_bound <= tol[1]
    assert result.certificate.upper_gap_bound == result.upper_gap_bound


def test_a_run_goes_on_from_a_result_with_what_it_proved(problem):
    first = minimize(problem, CGBiO(), max_queries=20_000)
    second = minimize(problem, CGBiO(step=1e-3), x0=first, max_queries=2_000)
    assert second.history.phase[0] == 1  # no first point is sought
    assert second.history.lower[0] == first.lower
    assert second.certificate.floors.upper >= first.certificate.floors.upper
    assert second.certificate.floors.lower >= first.certificate.floors.lower
    same = Problem(*(part for part in problem))
    assert minimize(same, CGBiO(step=1e-3), x0=first, max_queries=2_000).history.upper_gap_bound[0] <= first.upper_gap_bound


def test_what_was_proved_of_another_problem_is_forgotten(problem):
    first = minimize(problem, CGBiO(), max_queries=20_000)
    other = problem._replace(upper=0.5 * problem.upper)
    fresh = minimize(other, CGBiO(step=1e-3), x0=first.x, max_queries=2_000)
    assert minimize(other, CGBiO(step=1e-3), x0=first, max_queries=2_000).upper_gap_bound == fresh.upper_gap_bound


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(40, 50))
def test_no_bound_is_violated_anywhere_in_the_domain(seed):
    problem, *data = random_problem(seed)
    best_upper, best_lower = two_stages(*data)
    rng = np.random.default_rng(seed)
    units = problem.upper.value(np.zeros(problem.dimension)), problem.lower.value(np.zeros(problem.dimension))
    good = minimize(problem, SpiderFW(step=power(2.0, 1.0, 2.0), level="lower"), max_queries=100_000).x
    floors = certify(problem, good).floors
    for k in range(20):
        x = problem.domain.project(good + rng.standard_normal(problem.dimension) * 10.0 ** -rng.uniform(0, 5))
        alone, helped = certify(problem, x), certify(problem, x, floors=floors)
        for certificate in (alone, helped):
            assert certificate.upper == problem.upper.value(x)
            assert certificate.lower == problem.lower.value(x)
            assert certificate.lower - best_lower <= certificate.lower_gap_bound + 1e-9 * units[1]
            assert certificate.upper - best_upper <= certificate.upper_gap_bound + 1e-6 * units[0]
        assert helped.lower_gap_bound <= alone.lower_gap_bound
        assert helped.upper_gap_bound <= alone.upper_gap_bound + 1e-12
        floors = helped.floors


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_cut_of_one_point_gives_the_bound_of_a_conic_solver():
    problem, *_, radius = random_problem(3)
    x = problem.domain.project(np.random.default_rng(0).standard_normal(problem.dimension))
    f, df = problem.upper.value_and_gradient(x)
    _, dg = problem.lower.value_and_gradient(x)
    s = cvxpy.Variable(x.size)
    model = cvxpy.Problem(cvxpy.Minimize(df @ (s - x)), [cvxpy.norm1(s) <= radius, dg @ (s - x) <= 0])
    model.solve(solver=cvxpy.CLARABEL)
    certificate = certify(problem, x)
    assert certificate.stationarity == pytest.approx(-model.value, rel=1e-6)
    assert certificate.upper_gap_bound == pytest.approx(min(certificate.stationarity, f))  # f is never below 0
    assert f == certificate.upper


def test_bounds_shrink_on_a_long_run(problem):
    start = SpiderFW(step=power(2.0, 1.0, 2.0), level="lower")
    history = minimize(problem, SBCGF(step=3e-5, slack=1e-9, initial=start), max_queries=3_000_000).history
    assert history.lower_gap_bound[-1] < 1e-2 * history.lower_gap_bound[0]
    assert history.upper_gap_bound[-1] < 1e-1 * history.upper_gap_bound[0]


def test_an_optimal_point_has_bounds_of_zero():
    # g = ½ (x₁ − 1)² has the minimisers x₁ = 1; f = ½ (x₂ − ½)² picks one of them.
    problem = Problem(LeastSquares([[0.0, 1.0]], [0.5]), LeastSquares([[1.0, 0.0]], [1.0]), L1Ball(3.0))
    certificate = certify(problem, np.array([1.0, 0.5]))
    assert (certificate.lower, certificate.upper) == (0.0, 0.0)
    assert 0.0 <= certificate.lower_gap_bound < 1e-25
    assert 0.0 <= certificate.upper_gap_bound < 1e-25


def test_f_of_unknown_convexity_gets_no_upper_bound(problem):
    unknown = FiniteSum(12, 18, problem.upper.value_and_gradient)
    certificate = certify(problem._replace(upper=unknown), np.zeros(18))
    assert math.isnan(certificate.upper_gap_bound)
    assert certificate.floors.upper == -math.inf
    assert certificate.stationarity > 0


def test_the_result_of_another_problem_proves_nothing():
    first = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0))
    second = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0], [1.0, 1.0]], [1.0, -1.0]), L1Ball(2.0))
    result = minimize(first, max_queries=600)
    assert certify(second, result).floors == certify(second, result.x).floors
    assert certify(first, result).floors.upper >= result.certificate.floors.upper


def test_a_point_at_the_edge_of_the_tolerance_proves_nothing_false():
    problem = Problem(LeastSquares([[1.0, 0.0]], [1.0]), LeastSquares(np.eye(2), [0.0, -1.0]), Box([-1.0, 0.0], [1.0, 1.0]))
    certificate = certify(problem, [2e-5, -0.9e-9])  # outside by less than what `contains` forgives
    assert certificate.x.tolist() == [2e-5, 0.0]
    floors = certificate.floors
    assert floors.upper <= 0.5  # f* at (0, 0), the only minimiser of g
    assert floors.lower <= 0.25 <= floors.best_lower


def test_what_objectives_know_of_themselves_is_where_bounds_begin():
    problem = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0))
    certificate = certify(problem, [0.4, 0.3])
    assert certificate.lower_gap_bound == pytest.approx(certificate.lower)
    assert certificate.upper_gap_bound <= certificate.upper * (1 + 1e-12)
    assert minimize(problem, max_queries=600).history.lower_gap_bound[0] <= problem.lower.value([0.0, 0.0]) * (1 + 1e-12)
    shifted = FiniteSum(1, 2, lambda x, i: (5.0 + 0.5 * float(x @ x), x), floor=5.0)
    assert certify(Problem(shifted, problem.lower, problem.domain), [0.4, 0.3]).upper_gap_bound == pytest.approx(0.125)


def test_g_of_unknown_convexity_gets_no_bound_and_the_words_that_would_help():
    waves = FiniteSum(1, 1, lambda x, i: (float(np.cos(3.0 * x[0])), -3.0 * np.sin(3.0 * x)))
    problem = Problem(SquaredNorm(), waves, L1Ball(3.0))
    certificate = certify(problem, [0.0])
    assert math.isnan(certificate.lower_gap_bound)
    assert certificate.floors.lower == -math.inf
    assert certificate.floors.upper == 0.0  # of the norm, over all of Z: g's half-space is not used
    result = minimize(problem, SBCGF(step=1e-2, slack=0.1), max_queries=100)
    assert math.isnan(result.lower_gap_bound)
    assert "say convex=True of `lower`, if it is" in str(result)
    with pytest.raises(ValueError, match="`tol` asks for a proof, .* say convex=True of `lower`"):
        minimize(problem, SBCGF(step=1e-2, slack=0.1), tol=(1e-3, 1e-3))


def test_f_over_a_g_of_unknown_convexity_is_bounded_by_its_least_value_on_all_of_the_set():
    flat = FiniteSum(1, 2, lambda x, i: (0.0, np.zeros(2)))
    problem = Problem(LeastSquares([[1.0, 0.0]], [3.0]), flat, L1Ball(1.0))
    certificate = certify(problem, [1.0, 0.0])
    assert certificate.upper_gap_bound == pytest.approx(0.0, abs=1e-12)


def test_a_g_that_is_not_what_it_says_is_found_out():
    bowl = FiniteSum(1, 1, lambda x, i: (-0.5 * float(x @ x), -x), convex=True)
    problem = Problem(SquaredNorm(), bowl, L1Ball(1.0))
    with pytest.raises(ValueError, match="`lower` takes the value .* it is not convex, its gradient is wrong"):
        certify(problem, [0.0], points=[[1.0]])
    high = FiniteSum(1, 1, lambda x, i: (0.5 * float(x @ x), x), convex=True, floor=1.0)
    with pytest.raises(ValueError, match="its `floor` is too high"):
        certify(Problem(SquaredNorm(), high, L1Ball(1.0)), [0.5])


def test_numbers_that_underflow_do_not_prove_a_gap_of_zero():
    tiny = FiniteSum(1, 1, lambda x, i: (0.0, np.zeros(1)), convex=True)  # 1e-340 (x − 1)², for all that is seen
    certificate = certify(Problem(SquaredNorm(), tiny, L1Ball(1.0)), [0.0])
    assert 0.0 < certificate.lower_gap_bound < 1e-290


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_bounds_of_several_half_spaces_do_not_depend_on_the_unit_of_x(unit):
    def gap(size):
        rng = np.random.default_rng(0)
        A, B = rng.standard_normal((3, 6)) / size, rng.standard_normal((4, 6)) / size
        problem = Problem(
            LeastSquares(B, rng.standard_normal(4)), LeastSquares(A, rng.standard_normal(3)), L1Ball(2.0 * size)
        )
        return certify(problem, size * np.full(6, 0.3), bundle=6).upper_gap_bound

    assert gap(unit) == pytest.approx(gap(1.0), rel=1e-3)


def test_lines_that_cancel_are_not_trusted_beyond_rounding():
    # The mean of the two lines is 1e-17 s + 1: what is left of their gradients is rounding, and a bound of 1 would be false.
    upper = Lines(np.array([1.0, 1.0]), np.array([[1e8 + 1e-8], [-1e8]]))
    bound = best_bound(L1Ball(1.0), np.zeros(1), upper, Lines.none(1))
    exact = 1.0 - float(np.abs(np.mean([1e8 + 1e-8, -1e8])))
    assert bound.value <= exact


def shifted_loss(shift):
    """A loss of a user's own; all of them have one name."""

    class _Shifted(NamedTuple):
        pass

    class Shifted(ConvexLoss, _Shifted):
        __slots__ = ()

    @loss.register(Shifted)
    def shifted(scalar, prediction, target):
        residual = prediction - target - shift
        return 0.5 * residual * residual, residual

    @curvature.register(Shifted)
    def shifted_curvature(scalar):
        return 1.0

    return linear_model(Shifted(), [[1.0, 0.0]], [0.0])


def test_what_was_proved_with_other_code_of_the_same_name_is_forgotten():
    with interpreted():
        old, new = (Problem(shifted_loss(s), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(1.0)) for s in (5.0, 0.0))
        assert digest(old) != digest(new)
        result = minimize(old, "sbcgf", max_queries=200)
        assert result.certificate.floors.upper > 1.0
        assert certify(new, result).floors.upper <= 0.0  # f* = 0, at (0, 1)
        assert certify(old, result).floors.upper >= result.certificate.floors.upper


def test_sets_so_large_that_products_overflow_get_bounds_without_warnings():
    for domain in (L1Ball(1e308), Box([-1e308, -1e308], [1e308, 1e308])):
        problem = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), domain)
        for bundle in (1, 4):
            certificate = certify(problem, [0.5, 0.5], bundle=bundle)
            assert certificate.floors.upper <= 0.25
            assert certificate.floors.lower <= 0.0


def test_a_run_that_contradicts_what_was_proven_takes_its_bounds_back():
    hill = FiniteSum(1, 1, lambda x, indices: (-0.5 * float(x @ x), -x), convex=True)  # which it is not
    problem = Problem(SquaredNorm(), hill, L1Ball(1.0))
    with interpreted(), pytest.warns(RuntimeWarning, match="it is not convex"):
        result = minimize(problem, SpiderFW(step=0.5, level="lower"), max_queries=100, x0=[0.1])
    assert result.status is Status.FAILED
    assert not result.lower_gap_bound < math.inf
    assert result.certificate.floors == Floors()
    assert not (result.history.lower_gap_bound < math.inf).any()


def test_floors_that_are_no_numbers_are_refused(problem):
    with pytest.raises(ValueError, match="`floors` must be the `floors` of a certificate"):
        certify(problem, np.zeros(18), floors=Floors("a", 0.0, 1.0))
