"""Exact ties whose solution is planted in whole numbers: what is proven holds in exact arithmetic, and is sharp."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from exact import dot, exact

from tiebreak import Box, L1Ball, LeastSquares, Problem, Simplex, SquaredNorm, Status, WeightedL1Ball, certify, minimize
from tiebreak.engine import interpreted

KINDS = ("l1", "box", "simplex")


class Planted(NamedTuple):
    """g = 0 at x, and ∇f(x) = −Aᵀν − z with z normal to the set at x: x is the solution, and f(x) is known exactly."""

    problem: Problem
    x: np.ndarray
    f: Fraction


def planted(seed: int, kind: str, size: float = 1.0, unit: float = 1.0) -> Planted:
    """Make one. The size of x and the unit of the data are powers of 2, which add no rounding."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    A = rng.integers(-2, 3, (int(rng.integers(1, d + 2)), d))
    x = rng.integers(-2, 3, d) * (rng.random(d) < 0.6)
    match kind:
        case "l1":
            domain = L1Ball(size * float(max(np.abs(x).sum(), 1)))
            normal = np.where(x != 0, np.sign(x), rng.integers(-1, 2, d)) if x.any() else np.zeros(d, int)
        case "box":
            lower, upper = x - rng.integers(0, 2, d), x + rng.integers(0, 2, d)
            domain = Box(size * lower, size * upper)
            normal = (x == upper) * rng.integers(0, 3, d) - (x == lower) * rng.integers(0, 3, d)
        case _:
            x = np.abs(x)
            x[0] += not x.any()
            domain, normal = Simplex(size * float(x.sum())), -rng.integers(0, 3, d) * (x == 0)
    pull = A.T @ rng.integers(-2, 3, len(A)) + int(rng.integers(0, 3)) * normal
    problem = Problem(SquaredNorm(size * (x + pull)), LeastSquares(unit * A, unit * size * (A @ x)), domain)
    return Planted(problem, size * x, Fraction(size) ** 2 * int(pull @ pull) / 2)


def value(objective: Any, x: np.ndarray) -> Fraction:
    """Return an objective at a point, exactly."""
    point = exact(x)
    if isinstance(objective, SquaredNorm):
        off = [a - b for a, b in zip(point, exact(objective.center), strict=True)]
        return dot(off, off) / 2
    rows = [
        dot(exact(row), point) - Fraction(float(b)) for row, b in zip(objective.matrix.array, objective.targets, strict=True)
    ]
    return dot(rows, rows) / (2 * len(rows))


def spans(problem: Problem) -> tuple[float, float]:
    """Return the largest f and g at the middle of the set and at some corners."""
    signs = [*np.eye(problem.dimension), *-np.eye(problem.dimension)]
    points = [problem.center, *(problem.domain.lmo(sign) for sign in signs)]
    return max(map(problem.upper.value, points)), max(map(problem.lower.value, points))


def check(made: Planted, certificate: Any) -> None:
    """Assert that all that is proven is true."""
    problem, x = made.problem, certificate.x
    f, g = value(problem.upper, x), value(problem.lower, x)
    assert Fraction(certificate.floors.upper) <= made.f
    assert math.isinf(certificate.ceiling) or Fraction(certificate.ceiling) >= made.f
    assert Fraction(certificate.floors.lower) <= 0
    assert Fraction(certificate.floors.best_lower) >= 0
    assert Fraction(certificate.upper_gap_bound) >= f - made.f
    assert Fraction(certificate.lower_gap_bound) >= g
    assert certificate.within is not False or g > 0


@pytest.mark.parametrize("kind", KINDS)
def test_planted_solutions_are_found_and_what_is_proven_is_true(kind):
    for seed in range(40):
        made = planted(seed, kind)
        f_span, g_span = spans(made.problem)
        with interpreted():
            result = minimize(made.problem, "active-set")
        check(made, result.certificate)
        assert result.status is Status.SOLVED, seed
        assert result.lower_gap_bound <= 1e-10 * g_span + 1e-40, seed  # g may be 0 everywhere
        assert abs(result.upper_gap_bound) <= 1e-5 * f_span + 1e-40, seed
        assert np.abs(result.x - made.x).max() <= 1e-3 * made.problem.domain.diameter, seed


SCALES = [(2.0**size, 2.0**unit) for size in (-27, 0, 27) for unit in (-27, 0, 27) if size or unit]


@pytest.mark.parametrize(("size", "unit"), SCALES)
def test_units_do_not_matter(size, unit):
    for seed in range(12):
        kind = KINDS[seed % 3]
        with interpreted():
            plain = minimize(planted(seed, kind).problem, "active-set")
            scaled = minimize((made := planted(seed, kind, size, unit)).problem, "active-set")
        check(made, scaled.certificate)
        assert abs(scaled.iterations - plain.iterations) <= 2
        np.testing.assert_allclose(scaled.x / size, plain.x, atol=1e-8 * plain.problem.domain.diameter)
        f_span, g_span = spans(made.problem)
        assert abs(scaled.upper_gap_bound) <= 1e-5 * f_span
        assert scaled.lower_gap_bound <= 1e-10 * g_span


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_of_any_point_is_true_and_that_of_the_solution_sharp(kind):
    rng = np.random.default_rng(0)
    for seed in range(15):
        made = planted(seed, kind)
        problem = made.problem
        f_span, g_span = spans(problem)
        with interpreted():
            for x in (problem.domain.random_point(rng, problem.dimension), problem.center):
                check(made, certify(problem, x, bundle=5))
            sharp = certify(problem, made.x, bundle=20)
        check(made, sharp)
        assert sharp.lower_gap_bound <= 1e-10 * g_span
        assert 0.0 <= sharp.upper_gap_bound <= 1e-5 * f_span


def planted_inside(seed: int, radius: float) -> Planted:
    """Make one whose g is strongly convex and least, but not 0, inside of a ball: residuals are orthogonal to columns."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    half = np.triu(rng.integers(-9, 10, (d, d)), 1) + np.diag(rng.choice([-1, 1, 40], d))  # of a condition up to 10^6
    x, off = rng.integers(-3, 4, d), rng.integers(0, 5, d)
    fit = half @ x
    lower = LeastSquares(np.vstack([half, half]), np.concatenate([fit + off, fit - off]))
    B, b = rng.integers(-3, 4, (2 * d, d)), rng.integers(-3, 4, 2 * d)
    upper = [LeastSquares(B, b), SquaredNorm(b[:d])][seed % 2]
    return Planted(Problem(upper, lower, L1Ball(radius)), x.astype(float), value(upper, x))


@pytest.mark.parametrize("radius", [16.0, 2.0**10, 2.0**24])
def test_what_strong_convexity_proves_is_true_however_large_the_set_is(radius):
    rng = np.random.default_rng(1)
    for seed in range(20):
        made = planted_inside(seed, radius)
        problem, d = made.problem, made.problem.dimension
        best = value(problem.lower, made.x)
        with interpreted():
            result = minimize(problem, "active-set")
            certificates = [result.certificate, certify(problem, made.x, bundle=3)]
            for step in (1e-12, 1e-6, 1e-3, 1.0):
                x = made.x + step * (problem.domain.random_point(rng, d) - made.x)
                certificates += [certify(problem, x), certify(problem, x, bundle=3)]
        for found in certificates:
            f, g = value(problem.upper, found.x), value(problem.lower, found.x)
            assert Fraction(found.floors.lower) <= best <= Fraction(found.floors.best_lower), seed
            assert Fraction(found.floors.upper) <= made.f, seed
            assert math.isinf(found.ceiling) or Fraction(found.ceiling) >= made.f, seed
            assert Fraction(found.upper_gap_bound) >= f - made.f, seed
            assert Fraction(found.lower_gap_bound) >= g - best, seed
        f_unit, g_unit = (max(level.value(np.zeros(d)), level.value(made.x)) for level in (problem.upper, problem.lower))
        assert result.lower_gap_bound <= 1e-10 * g_unit, seed
        assert abs(result.upper_gap_bound) <= 1e-4 * f_unit, seed  # rounding leaves no more at a condition of 10^6


@pytest.mark.parametrize("more", [0, 1])
def test_rows_that_are_summed_up_are_solved_in_units_that_differ_by_a_trillion(more):
    units = np.array([2.0**-20, 2.0**20])
    rows = np.vstack([[[-1.0, 0.5], [0.625, 0.25]], np.zeros((more, 2))]) / units  # a third one, and they are summed up
    targets = np.array([0.25, 0.25, 0.0])[: 2 + more]
    problem = Problem(SquaredNorm(), LeastSquares(rows, targets), WeightedL1Ball(1.0 / units, 1.0))
    with interpreted():
        result = minimize(problem, "active-set", max_iterations=100, max_queries=None)
    assert result.status is Status.SOLVED
    assert result.lower_gap_bound <= 1e-10 * problem.lower.value(np.zeros(2))
