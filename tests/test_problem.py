"""Problems are checked when they are made."""

from __future__ import annotations

import copy
import pickle
import re
from typing import NamedTuple

import numpy as np
import pytest

from tiebreak import (
    SBCGF,
    Birkhoff,
    CappedSimplex,
    Columns,
    DictionaryLoss,
    FiniteSum,
    Hull,
    JointDictionaryLoss,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    OnPart,
    Problem,
    Product,
    Simplex,
    SpiderFW,
    SquaredCovariance,
    SquaredNorm,
    UnitSimplex,
    minimize,
    power,
)
from tiebreak.engine.digest import digest
from tiebreak.objectives import linear_model

LOSS = LeastSquares(np.ones((2, 3)), np.ones(2))


def test_the_dimension_comes_from_whatever_fixes_it():
    assert Problem(LOSS, SquaredNorm(), L1Ball(1.0)).dimension == 3
    assert Problem(SquaredNorm(), LOSS, L1Ball(1.0)).dimension == 3
    assert Problem(SquaredNorm(np.zeros(4)), SquaredNorm(), L1Ball(1.0)).dimension == 4


def test_a_python_function_makes_a_problem_interpreted():
    assert Problem(LOSS, LOSS, L1Ball(1.0)).compiled
    assert not Problem(FiniteSum(2, 3, lambda x, i: (0.0, x)), LOSS, L1Ball(1.0)).compiled


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((LOSS, LeastSquares([[1.0]], [1.0]), L1Ball(1.0)), "must agree, but `upper` has 3, `lower` has 1"),
        ((LOSS, lambda x: x, L1Ball(1.0)), "`lower` must be an objective such as LeastSquares\\(A, b\\), got function"),
        ((np.ones(3), LOSS, L1Ball(1.0)), "`upper` must be an objective"),
        ((LOSS, LOSS, 1.0), "`domain` must be a set such as L1Ball\\(radius\\), got float"),
        ((LOSS, FiniteSum(2, 3, lambda x, i: (0.0, x), convex=False), L1Ball(1.0)), "`lower` must be convex"),
        ((SquaredNorm(), SquaredNorm(), L1Ball(1.0)), "the dimension is unknown"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        Problem(*parts)


# Near ties


def test_exact_ties_are_the_default_and_a_tolerance_makes_near_ones():
    assert Problem(LOSS, LOSS, L1Ball(1.0)).tolerance == 0.0
    near = Problem(LOSS, LOSS, L1Ball(1.0), tolerance=1)
    assert type(near.tolerance) is float
    assert near.compiled
    assert near.dimension == 3
    assert near.exact.tolerance == 0.0
    assert digest(near) != digest(near.exact) == digest(Problem(LOSS, LOSS, L1Ball(1.0), -0.0))


@pytest.mark.parametrize(
    "again",
    [
        copy.deepcopy,
        lambda problem: pickle.loads(pickle.dumps(problem)),
        lambda problem: Problem(*problem),
        lambda problem: Problem(**problem._asdict()),
        lambda problem: problem._replace(upper=SquaredNorm()),
    ],
)
def test_a_problem_that_is_made_again_keeps_its_tolerance(again):
    assert again(Problem(LOSS, LOSS, L1Ball(1.0), 0.25)).tolerance == 0.25


def test_a_tolerance_is_printed_where_there_is_one():
    exact = Problem(SquaredNorm(), LOSS, L1Ball(1.0))
    assert "tolerance" not in str(exact)
    assert str(exact._replace(tolerance=0.25)).splitlines()[1::3] == ["upper      SquaredNorm()", "tolerance  0.25"]


@pytest.mark.parametrize("wrong", [-1e-9, np.nan, np.inf, "0.1", True, None, [0.1], 1j])
def test_a_tolerance_that_is_no_number_from_0_on_is_refused(wrong):
    message = re.escape(f"`tolerance` must be a finite number ≥ 0, got {wrong!r}")
    with pytest.raises(ValueError, match=message):
        Problem(LOSS, LOSS, L1Ball(1.0), tolerance=wrong)
    with pytest.raises(ValueError, match=message):
        minimize(Problem(LOSS, LOSS, L1Ball(1.0))._replace(tolerance=wrong))


# Parts of a product

DATA = np.random.default_rng(0).standard_normal((2, 4))  # four points in the plane
PRODUCT = Product(D=Columns(L2Ball(1.0), (2, 3)), X=Columns(L1Ball(3.0), (3, 4)), w=(L1Ball(1.0), 3))
POINT = PRODUCT.random_point(np.random.default_rng(1))


def on(size):
    return LeastSquares(np.random.default_rng(size).standard_normal((5, size)), np.ones(5))


@pytest.mark.parametrize("size", [6, 18, 21])
def test_an_objective_as_large_as_the_first_parts_acts_on_them(size):
    problem = Problem(SquaredNorm(), on(size), PRODUCT)
    value, gradient = problem.lower.value_and_gradient(POINT)
    inner, inner_gradient = on(size).value_and_gradient(POINT[:size])
    assert value == inner
    np.testing.assert_array_equal(gradient, np.append(inner_gradient, np.zeros(21 - size)))
    assert problem.dimension == 21
    assert problem.compiled


@pytest.mark.parametrize(("name", "low", "high"), [("D", 0, 6), ("X", 6, 18), ("w", 18, 21)])
def test_an_objective_of_a_named_part_finds_its_place(name, low, high):
    problem = Problem(3.0 * OnPart(on(high - low), name) + SquaredNorm(), OnPart(SquaredNorm(), name), PRODUCT)
    part, whole = POINT[low:high], SquaredNorm().value(POINT)
    assert problem.upper.value(POINT) == pytest.approx(3.0 * on(high - low).value(part) + whole, rel=1e-13)
    assert problem.lower.value(POINT) == pytest.approx(SquaredNorm().value(part), rel=1e-13)
    assert problem.lower.convex
    assert problem.upper.n_samples == 5


def test_parts_of_parts_have_names_with_dots():
    nested = Product(first=(L1Ball(1.0), 2), both=Product(u=(L1Ball(1.0), 3), v=(L1Ball(1.0), 4)))
    x = np.arange(9.0)
    problem = Problem(OnPart(SquaredNorm(), "both"), OnPart(on(4), "both.v"), nested)
    assert problem.upper.value(x) == SquaredNorm().value(x[2:])
    assert problem.lower.value(x) == on(4).value(x[5:])


def test_the_continual_dictionary_problem_needs_no_names():
    domain = Product(D=Columns(L2Ball(1.0), (2, 3)), X=Columns(L1Ball(3.0), (3, 4)))
    codes = np.random.default_rng(2).standard_normal((3, 5))
    problem = Problem(JointDictionaryLoss(DATA), DictionaryLoss(np.ones((2, 5)), codes), domain)
    x = domain.random_point(np.random.default_rng(1))
    D, X = (domain.parts(x)[name] for name in ("D", "X"))
    assert problem.upper.value(x) == pytest.approx(0.5 * np.mean(np.sum((DATA - D @ X) ** 2, axis=0)), rel=1e-13)
    assert problem.lower.value(x) == pytest.approx(0.5 * np.mean(np.sum((1.0 - D @ codes) ** 2, axis=0)), rel=1e-13)
    mixed = Problem(JointDictionaryLoss(DATA) + 0.1 * DictionaryLoss(np.ones((2, 5)), codes), problem.lower, domain)
    assert mixed.upper.value(x) == pytest.approx(problem.upper.value(x) + 0.1 * problem.lower.value(x), rel=1e-13)


def test_a_python_function_of_a_part_runs():
    def pull(x, indices):
        return 0.5 * float((x - 0.1) @ (x - 0.1)), x - 0.1

    domain = Product(u=(L1Ball(1.0), 2), w=(L1Ball(1.0), 3))
    lower = OnPart(FiniteSum(4, 3, pull, convex=True), "w")
    method = SBCGF(step=0.003, slack=1e-6, initial=SpiderFW(level="lower", step=power(2.0, 1.0, shift=2.0)))
    result = minimize(Problem(SquaredNorm(np.full(5, 0.2)), lower, domain), method, max_queries=3000)
    np.testing.assert_allclose(result.parts["w"], np.full(3, 0.1), atol=0.04)
    np.testing.assert_allclose(result.parts["u"], np.full(2, 0.2), atol=0.02)


def test_a_problem_is_made_of_its_own_parts_again():
    problem = Problem(OnPart(SquaredNorm(), "w"), on(6), PRODUCT)
    again = Problem(*problem)
    assert again.upper.value(POINT) == problem.upper.value(POINT)
    assert again.lower.value(POINT) == problem.lower.value(POINT)


SENSITIVE = SquaredCovariance(np.ones((2, 3)), [0.0, 1.0])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((SquaredNorm(), on(7), PRODUCT), "must agree, but `lower` has 7, `domain` has 21"),
        ((SquaredNorm(), on(3), PRODUCT), "must agree, but `lower` has 3, `domain` has 21"),
        ((OnPart(LOSS, "v"), LOSS, PRODUCT), "`upper` depends on the part 'v', but the parts of `domain` are D, X, w"),
        ((LOSS, OnPart(LOSS, "w"), L1Ball(1.0)), "`lower` depends on the part 'w'.* none, as L1Ball is no Product"),
        ((SquaredNorm(), OnPart(LOSS, "X"), PRODUCT), "must agree, but the part 'X' has 12, `lower` has 3 there"),
        ((SquaredNorm(), OnPart(SENSITIVE, "w"), PRODUCT), "`lower` must be convex"),
        ((JointDictionaryLoss(DATA), SquaredNorm(), PRODUCT), "`upper` must have p · 6 variables for p atoms.*got 21"),
        ((OnPart(JointDictionaryLoss(DATA), "w"), SquaredNorm(), PRODUCT), "`upper` must have p · 6 variables.*got 3"),
        ((LOSS + JointDictionaryLoss(DATA), LOSS, L1Ball(1.0)), "`upper` must have p · 6 variables.*got 3"),
        (
            (SquaredNorm(), on(6) + OnPart(on(3), "w") + OnPart(on(7), "w"), PRODUCT),
            "the part 'w' has 3, `lower` has 7 there",
        ),
    ],
)
def test_objectives_that_fit_no_part_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        Problem(*parts)


def test_a_lower_objective_that_loses_convexity_by_a_sign_or_a_term_is_refused():
    rng = np.random.default_rng(0)
    convex = LeastSquares(rng.standard_normal((9, 4)), rng.standard_normal(9))
    other = SquaredCovariance(rng.standard_normal((9, 4)), np.arange(9) % 2.0)
    for lower in (-1.0 * convex, convex + (-5.0) * SquaredNorm(np.zeros(4)), convex + other, 2.0 * (convex + other)):
        assert lower.convex is False
        with pytest.raises(ValueError, match="^`lower` must be convex"):
            Problem(SquaredNorm(), lower, L1Ball(1.0))
    assert (convex + 0.1 * SquaredNorm()).convex is True
    unknown = FiniteSum(2, 4, lambda x, i: (0.0, np.zeros(4)))
    assert (convex + unknown).convex is None
    assert (-1.0 * unknown).convex is None


def test_a_scalar_loss_is_convex_only_if_it_says_so():
    class Welsch(NamedTuple):
        pass

    model = linear_model(Welsch(), np.eye(3), np.zeros(3))
    assert model.convex is None
    assert model.floor == -np.inf
    assert LeastSquares(np.eye(3), np.zeros(3)).convex is True
    assert Logistic(np.eye(3), np.ones(3)).floor == 0.0


@pytest.mark.parametrize(
    ("domain", "mean"),
    [
        (Simplex(2.0), [0.5] * 4),
        (UnitSimplex(2.0), [0.4] * 4),
        (CappedSimplex(1.0, 0.4, 4), [0.25] * 4),
        (Birkhoff(2), [0.5] * 4),
        (Hull([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 3.0]]), [1 / 3, 1 / 3, 2 / 3, 1.0]),
        (Columns(Simplex(1.0), (2, 2)), [0.5] * 4),
        (L1Ball(3.0), [0.0] * 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_share_is_measured_from_a_point_that_prefers_no_variable(domain, mean):
    problem = Problem(SquaredNorm(), LeastSquares(np.eye(4), [0.0, 1.0, 2.0, 9.0]), domain, keep=0.9)
    np.testing.assert_allclose(problem.reference, mean)
    assert domain.contains(problem.reference)
    result = minimize(problem)
    least = minimize(problem.exact)
    assert result.tolerance == pytest.approx(0.1 * (problem.lower.value(mean) - least.lower), rel=1e-6)
    assert result.within is True


def test_a_function_in_place_of_an_objective_is_told_where_it_goes():
    with pytest.raises(ValueError, match=r"`upper` must be an objective .* a function goes into FiniteSum"):
        Problem(lambda x: x @ x, SquaredNorm(), L1Ball(1.0))
