"""Ceilings of f*: never below the planted f*, in exact arithmetic, near it where it is proven, infinite elsewhere."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from exact import dot, exact

from tiebreak import (
    Box,
    Columns,
    FiniteSum,
    Huber,
    Hull,
    L1Ball,
    LeastSquares,
    Problem,
    Product,
    Simplex,
    SquaredNorm,
    SummedSquares,
    certify,
    minimize,
)
from tiebreak.engine import interpreted
from tiebreak.objectives import linear
from tiebreak.proofs import minimisers
from tiebreak.proofs.minimisers import (
    by_exact_fit,
    by_face,
    by_strong_convexity,
    ceiling_of,
    mean_of,
    nearby,
    smooth_ceiling,
)


class Planted(NamedTuple):
    """A problem whose solution is known in exact arithmetic."""

    problem: Problem
    x: np.ndarray
    f: Fraction


def half_square(x: Any) -> Fraction:
    point = [Fraction(value) for value in x]
    return dot(point, point) / 2


def squares(A: np.ndarray, b: np.ndarray, x: np.ndarray, weights: np.ndarray | None = None) -> Fraction:
    """Return the weighted mean of ½ (⟨a, x⟩ − b)², exactly."""
    w = exact(np.ones(len(b)) if weights is None else weights)
    rest = [dot(exact(row), exact(x)) - Fraction(float(target)) for row, target in zip(A, b, strict=True)]
    return sum((share * r * r for share, r in zip(w, rest, strict=True)), Fraction(0)) / (2 * sum(w))


def exact_fit(seed: int, kind: str, matrix: str = "dense", weighted: bool = False) -> Planted:
    """g = 0 at x, inside of a face with as many free atoms as rows or more, and ∇f(x) = Aᵀν + a normal of the set."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(4, 9)), int(rng.integers(1, 3))
    x = rng.integers(1, 4, d)
    A = rng.integers(-3, 4, (n, d))
    A[:, :n] = 3 * np.eye(n, dtype=int)  # of full rank
    match kind:
        case "l1":
            x = x * rng.choice([-1, 1], d)
            domain, normal = L1Ball(float(np.abs(x).sum())), np.sign(x)
        case "inside":
            domain, normal = L1Ball(2.0 * float(np.abs(x).sum())), np.zeros(d, int)
        case "simplex":
            domain, normal = Simplex(float(x.sum())), np.ones(d, int)
        case "box":
            domain, normal = Box(np.zeros(d), np.full(d, 4.0)), np.zeros(d, int)
        case _:
            first, second = x[: d // 2], x[d // 2 :]
            domain = Product(a=(L1Ball(float(first.sum())), first.size), b=(Simplex(float(second.sum())), second.size))
            normal = np.r_[np.ones(first.size, int), np.zeros(second.size, int)]
    pull = A.T @ rng.integers(-2, 3, n) + int(rng.integers(1, 3)) * normal
    if kind == "simplex":
        pull = A.T @ rng.integers(-2, 3, n) + int(rng.integers(-2, 3)) * normal
    given = scipy.sparse.csr_array(A.astype(float)) if matrix == "csr" else A
    weights = rng.integers(1, 5, n).astype(float) if weighted else None
    lower = LeastSquares(given, A @ x, sample_weight=weights)
    return Planted(Problem(SquaredNorm(x + pull), lower, domain), x.astype(float), half_square(pull.tolist()))


def on_face(seed: int, kind: str, matrix: str = "dense", weighted: bool = False) -> Planted:
    """g > 0 is least at x alone, on a face of which the atoms are as cheap as each other and all others dearer."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(5, 9)), int(rng.integers(2, 4))
    x = np.zeros(d, int)
    x[:k] = rng.integers(1, 4, k) * (1 if kind == "simplex" else rng.choice([-1, 1], k))
    signs = np.where(x != 0, np.sign(x), 0)
    # Rows ±: those of the face, whose residuals have the gradient −c on it and less elsewhere.
    A = rng.integers(-2, 3, (k + 4, d))
    A[:k, :k] = np.diag(rng.integers(2, 5, k))
    others = rng.integers(-1, 2, d) * (x == 0)
    price = -8 * signs + others if kind == "l1" else np.where(x > 0, -8, 1 + others)
    A, b = np.vstack([A, A, price]), np.r_[A @ x + 2, A @ x - 2, price @ x - 1]  # residuals −2, 2 and 1
    weights = rng.integers(1, 5, len(A)).astype(float) if weighted else None
    if weights is not None:
        weights[len(A) // 2 : -1] = weights[: len(A) // 2]  # of a row and its twin, so that they cancel
    given = scipy.sparse.csr_array(A.astype(float)) if matrix == "csr" else A
    domain = L1Ball(float(np.abs(x).sum())) if kind == "l1" else Simplex(float(x.sum()))
    upper = LeastSquares(rng.integers(-3, 4, (4, d)), rng.integers(-3, 4, 4))
    f = squares(upper.matrix.array, upper.targets, x)
    return Planted(Problem(upper, LeastSquares(given, b, sample_weight=weights), domain), x.astype(float), f)


def inside(seed: int, weighted: bool = False) -> Planted:
    """g > 0 is strongly convex, and least inside of a large ball: residuals are orthogonal to the columns."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    half = np.triu(rng.integers(-3, 4, (d, d)), 1) + np.diag(rng.choice([-2, 2, 3], d))
    x, off = rng.integers(-3, 4, d), rng.integers(1, 4, d)
    weights = np.tile(rng.integers(1, 5, d).astype(float), 2) if weighted else None
    lower = LeastSquares(np.vstack([half, half]), np.r_[half @ x + off, half @ x - off], sample_weight=weights)
    center = rng.integers(-3, 4, d)
    return Planted(Problem(SquaredNorm(center), lower, L1Ball(2.0**10)), x.astype(float), half_square((x - center).tolist()))


def check(made: Planted, certificate: Any, close: float) -> None:
    """Assert that a ceiling is true, and near f*."""
    assert math.isfinite(certificate.ceiling)
    assert Fraction(certificate.floors.upper) <= made.f <= Fraction(certificate.ceiling)
    assert certificate.ceiling - float(made.f) <= close * (1.0 + float(made.f))


MATRICES = [("dense", False), ("dense", True), ("csr", False), ("csr", True)]
FITS = ("l1", "inside", "simplex", "box", "product")


@pytest.mark.parametrize(("matrix", "weighted"), MATRICES)
@pytest.mark.parametrize("kind", FITS)
def test_an_exact_fit_proves_a_ceiling(kind, matrix, weighted):
    for seed in range(12):
        made = exact_fit(seed, kind, matrix, weighted)
        with interpreted():
            check(made, certify(made.problem, made.x), 1e-9)
            result = minimize(made.problem, "active-set")
        check(made, result.certificate, 1e-5)
        (line,) = (line for line in str(result).splitlines() if "f* between" in line)
        assert line.endswith(f"{result.certificate.floors.upper:.9g} and {result.certificate.ceiling:.9g}")


@pytest.mark.parametrize(("matrix", "weighted"), MATRICES)
@pytest.mark.parametrize("kind", ["l1", "simplex"])
def test_a_face_proves_a_ceiling(kind, matrix, weighted):
    for seed in range(12):
        made = on_face(seed, kind, matrix, weighted)
        model, smoothness = made.problem.lower, smooth_ceiling(made.problem.upper)
        with interpreted():
            mean = mean_of(made.problem, model, made.x)
            alone = by_face(made.problem, model, mean, smoothness)
            found = [certify(made.problem, made.x), minimize(made.problem, "active-set").certificate]
        assert made.f <= Fraction(alone) <= made.f + Fraction(1e-9) * (1 + made.f)
        for certificate in found:
            check(made, certificate, 1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_strong_convexity_proves_a_ceiling(weighted):
    for seed in range(15):
        made = inside(seed, weighted)
        with interpreted():
            assert made.problem.lower.known_convexity > 0.0
            check(made, certify(made.problem, made.x), 1e-4)
            check(made, minimize(made.problem, "active-set").certificate, 1e-4)
            gap = 1e-6
            floor = made.problem.lower.value(made.x) - gap
            alone = by_strong_convexity(made.problem, made.x, floor, 1.0)
        reach = math.sqrt(2.0 * gap / made.problem.lower.strong_convexity)
        slope = math.sqrt(2.0 * float(made.f))
        assert alone >= float(made.f) + 0.999 * slope * reach  # f at any minimiser that is as far away
        assert alone <= float(made.f) + 1.001 * slope * reach + reach * reach


def test_strong_convexity_of_rows_that_are_dear_to_sum_up_is_not_asked_for(monkeypatch):
    made = inside(0)
    monkeypatch.setattr(linear, "CHEAP_SIDE", 0)
    monkeypatch.setattr(linear, "CHEAP_PRODUCTS", 0.0)
    assert by_strong_convexity(made.problem, made.x, 0.0, 1.0) == math.inf


def test_sums_and_multiples_are_as_strongly_convex_as_they_say():
    rng = np.random.default_rng(0)
    A = rng.integers(-3, 4, (12, 3))
    lower = SummedSquares([(A, A @ [1, 0, -1] + np.tile([1, -1], 6))])
    for g in (lower, 2.0 * lower, lower + 0.5 * SquaredNorm()):
        with interpreted():
            result = minimize(Problem(SquaredNorm([3.0, 0.0, 0.0]), g, L1Ball(50.0)), "active-set")
        assert math.isfinite(result.certificate.ceiling)
        assert result.certificate.floors.upper <= result.certificate.ceiling
        assert result.certificate.ceiling - result.certificate.floors.upper <= 1e-4


def test_multiples_of_squares_have_ceilings_too():
    made = exact_fit(1, "l1")
    with interpreted():
        check(made, certify(made.problem._replace(lower=3.0 * made.problem.lower), made.x), 1e-9)


def test_columns_are_faces_of_a_product():
    # Two columns, each of a ball, one row each: x = (1, 1 | 1, 1) fits, and ∇f(x) = (1, 1 | 1, 1) is normal to both.
    lower = LeastSquares([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]], [3.0, 3.0])
    problem = Problem(SquaredNorm([2.0, 2.0, 2.0, 2.0]), lower, Columns(L1Ball(2.0), (2, 2)))
    made = Planted(problem, np.ones(4), Fraction(2))
    with interpreted():
        check(made, certify(problem, made.x), 1e-9)


def test_points_that_are_not_solutions_have_true_ceilings_or_none():
    rng = np.random.default_rng(1)
    some = 0
    for seed in range(8):
        for made in (*(exact_fit(seed, kind) for kind in FITS), on_face(seed, "l1"), on_face(seed, "simplex"), inside(seed)):
            domain, d = made.problem.domain, made.problem.dimension
            for step in (1e-13, 1e-9, 1e-5, 1e-2, 1.0):
                x = made.x + step * (domain.random_point(rng, d) - made.x)
                with interpreted():
                    certificate = certify(made.problem, x)
                assert math.isinf(certificate.ceiling) or Fraction(certificate.ceiling) >= made.f
                some += math.isfinite(certificate.ceiling)
    assert some >= 50  # near solutions there are


# Where nothing is proven


def test_many_minimisers_of_positive_loss_have_no_ceiling():
    # g = ½ (x₁ + x₂)² + ½ where x₁ + x₂ = 0, whatever x₃ is: no fit, no single minimiser of a face.
    lower = LeastSquares([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [1.0, -1.0])
    problem = Problem(SquaredNorm([1.0, 0.0, 1.0]), lower, L1Ball(4.0))
    with interpreted():
        assert certify(problem, [0.5, -0.5, 1.0]).ceiling == math.inf
        result = minimize(problem, "active-set")
    assert result.certificate.ceiling == math.inf
    assert result.certificate.floors.upper <= 0.25
    assert "f* between" not in str(result)


def test_other_losses_have_none_unless_strong_convexity_proves_it():
    A, b = np.array([[1.0, 2.0]]), np.array([2.0])
    x = np.array([0.4, 0.8])
    with interpreted():
        assert certify(Problem(SquaredNorm(), Huber(A, b, 1.0), L1Ball(3.0)), x).ceiling == math.inf
        curved = Problem(SquaredNorm(), Huber(A, b, 1.0) + 0.1 * SquaredNorm(), L1Ball(3.0))
        result = minimize(curved, "active-set")
    assert math.isfinite(result.certificate.ceiling)
    assert result.certificate.ceiling >= result.certificate.floors.upper


def test_an_upper_level_of_unknown_smoothness_has_none():
    made = exact_fit(0, "l1")
    f, d = made.problem.upper, made.problem.dimension
    by_hand = FiniteSum(1, d, lambda x, indices: f.value_and_gradient(x), convex=True)
    not_convex = FiniteSum(1, d, lambda x, indices: f.value_and_gradient(x), convex=False)
    with interpreted():
        for upper in (by_hand, not_convex, f + by_hand):
            assert certify(made.problem._replace(upper=upper), made.x).ceiling == math.inf


def test_corners_and_too_many_atoms_have_none(monkeypatch):
    lower = LeastSquares([[1.0, 1.0]], [2.0])
    corner = Problem(SquaredNorm(), lower, L1Ball(2.0))
    assert ceiling_of(corner, np.array([2.0, 0.0]), 0.0) == math.inf
    made = exact_fit(2, "l1")
    assert math.isfinite(ceiling_of(made.problem, made.x, 0.0))
    monkeypatch.setattr(minimisers, "MOST_ATOMS", 2)
    assert ceiling_of(made.problem, made.x, 0.0) == math.inf


def test_rows_that_contradict_each_other_do_not_fit():
    # Two rows ask for different sums of the same variables, and one that no variable enters asks for a number.
    for A, b in (([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [1.0, 1.5]), ([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], [1.0, 1.0])):
        problem = Problem(SquaredNorm(), LeastSquares(A, b), Simplex(1.0))
        mean = mean_of(problem, problem.lower, np.array([0.3, 0.3, 0.4]))
        assert by_exact_fit(problem, problem.lower, mean, 1.0) == math.inf


def test_near_ties_have_the_value_of_a_point_within():
    made = exact_fit(3, "l1")
    near = made.problem._replace(tolerance=1e-3)
    with interpreted():
        result = minimize(near, "active-set")
        certificate = certify(near, result)
        outside = certify(near, np.zeros(made.problem.dimension), points=[result.x])
    assert result.within
    assert certificate.upper <= certificate.ceiling <= certificate.upper + 1e-9
    assert certificate.floors.upper <= certificate.ceiling
    assert outside.within is False
    assert outside.ceiling == math.inf


# Smoothness


def test_smoothness_is_bounded_from_above():
    rng = np.random.default_rng(2)
    A, b = rng.standard_normal((9, 4)), rng.standard_normal(9)
    for f in (LeastSquares(A, b), SummedSquares([(A, b)]), SquaredNorm(), 2.0 * LeastSquares(A, b) + 0.5 * SquaredNorm()):
        hessian = f.hessian() if not np.isscalar(f.hessian()) else f.hessian() * np.eye(4)
        assert np.linalg.eigvalsh(hessian)[-1] <= smooth_ceiling(f) < math.inf
    assert smooth_ceiling(Huber(A, b, 0.5)) >= np.linalg.eigvalsh(A.T @ A / 9)[-1]
    assert smooth_ceiling(FiniteSum(1, 4, lambda x, i: (0.0, np.zeros(4)))) == math.inf


# Whether g has one minimiser


def test_a_face_with_strict_prices_has_one_minimiser_and_a_result_says_so():
    for seed in range(6):
        made = on_face(seed, "l1" if seed % 2 else "simplex", "dense", False)
        with interpreted():
            result = minimize(made.problem, "active-set")
            near = minimize(made.problem._replace(tolerance=1e-3), "active-set")
        assert result.unique is True
        assert result.certificate.unique is True
        assert "minimisers  one, proven" in str(result)
        assert near.unique is None
        assert "one, proven" not in str(near)


def test_more_free_atoms_than_rows_have_several_minimisers():
    several = 0
    for seed in range(12):
        made = exact_fit(seed, "simplex" if seed % 2 else "l1")
        with interpreted():
            found = nearby(made.problem, made.x, 0.0)
            result = minimize(made.problem, "active-set")
        rank = np.linalg.matrix_rank(np.vstack([made.problem.lower.matrix.array, np.ones(made.problem.dimension)]))
        if rank == made.problem.dimension:  # one point of the face has this fit
            assert found.unique is not False
            assert result.unique is not False
        several += found.unique is False
        if result.unique is False:
            assert "minimisers  several, proven" in str(result)
    assert several > 5


def test_equal_atoms_are_not_taken_for_several():
    """The point is a mean of the same corner twice, as two rows of a hull are, and of one other."""
    hull = Hull([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    problem = Problem(SquaredNorm(), LeastSquares([[1.0, 0.0]], [1.0]), hull)
    assert nearby(problem, np.array([1.0, 1.0]), 0.0).unique is None


def test_inside_a_ball_the_origin_counts_as_an_atom():
    problem = Problem(SquaredNorm(), LeastSquares([[1.0, 3.0]], [1.0]), L1Ball(2.0))
    assert nearby(problem, np.array([0.1, 0.3]), 0.0).unique is False
    assert nearby(problem, np.array([1.0, 0.0]), 0.0).unique is None  # with the origin as many atoms as rows, and one more
    both = Product(first=(L1Ball(2.0), 2), second=(L1Ball(2.0), 2))
    rows = [[1.0, 3.0, 0.0, 0.0], [0.0, 0.0, 3.0, 1.0]]
    twice = Problem(SquaredNorm(), LeastSquares(rows, [1.0, 1.0]), both)
    assert nearby(twice, np.array([0.1, 0.3, 0.3, 0.1]), 0.0).unique is False
    unique = Problem(SquaredNorm(), LeastSquares(np.eye(2), [0.1, 0.3]), L1Ball(2.0))
    assert nearby(unique, np.array([0.1, 0.3]), 0.0).unique is True


def test_a_corner_is_the_minimiser_if_all_others_are_dearer():
    for domain in (L1Ball(2.0), Simplex(2.0)):
        corner = Problem(SquaredNorm(np.ones(3)), LeastSquares([[3.0, 1.0, 0.0]], [9.0]), domain)
        with interpreted():
            result = minimize(corner, "active-set")
        np.testing.assert_array_equal(result.x, [2.0, 0.0, 0.0])
        assert result.unique is True
        assert 1.5 <= result.certificate.ceiling <= 1.5 + 1e-12
        tied = corner._replace(lower=LeastSquares([[3.0, 3.0, 0.0]], [9.0]))
        assert nearby(tied, np.array([2.0, 0.0, 0.0]), 0.0).unique is None


def test_f_has_no_part_in_it():
    made = on_face(0, "l1", "dense", False)
    rough = FiniteSum(1, made.problem.dimension, lambda x, indices: (float(x.sum()), np.ones_like(x)), convex=False)
    found = nearby(made.problem._replace(upper=rough), made.x, 0.0)
    assert found.unique is True
    assert found.ceiling == math.inf
    assert nearby(inside(0).problem, inside(0).x, 0.0).unique is True  # strongly convex
