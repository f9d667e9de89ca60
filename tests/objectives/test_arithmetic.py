"""Multiples, sums and parts: values, batches, convexity, and the operators that make them."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from checking import check_accumulate, check_same_draw, check_unbiased
from conftest import callable_copy, make_objective
from hypothesis import given
from hypothesis import strategies as st

from tiebreak import (
    SBCGF,
    SBCGI,
    ConeDistance,
    FiniteSum,
    JointDictionaryLoss,
    L1Ball,
    LeastSquares,
    OnPart,
    Problem,
    Scaled,
    SpiderFW,
    SquaredCovariance,
    SquaredNorm,
    Sum,
    minimize,
    power,
)
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import Moments
from tiebreak.objectives import Placed, accumulate, draw

D = 18
SQUARES, HUBER, NORM = make_objective("least-squares"), make_objective("huber", "csr"), make_objective("squared-norm")
RNG = np.random.default_rng(0)
COVARIANCE = SquaredCovariance(RNG.standard_normal((7, D)), RNG.random(7))
PYTHON = callable_copy(make_objective("logistic"), 12, D)
FEW = LeastSquares(RNG.standard_normal((3, D)), RNG.standard_normal(3))
SUMS = {
    "sampled": [SQUARES, FEW],
    "with an exact term": [SQUARES, Scaled(0.3, NORM)],
    "exact first": [NORM, HUBER],
    "all exact": [NORM, SquaredNorm(), LeastSquares(np.ones((1, D)), [1.0])],
    "pairs": [FEW, Scaled(20.0, COVARIANCE), NORM, HUBER],
    "pairs alone": [NORM, COVARIANCE],
}


def expected(terms, x):
    values, gradients = zip(*(term.value_and_gradient(x) for term in terms), strict=True)
    return sum(values), sum(gradients)


@pytest.mark.parametrize("terms", SUMS.values(), ids=SUMS)
def test_all_samples_of_a_sum_are_exactly_the_sum(terms):
    x = np.random.default_rng(1).standard_normal(D)
    value, gradient = Sum(*terms).value_and_gradient(x)
    wanted, wanted_gradient = expected(terms, x)
    assert value == pytest.approx(wanted, rel=1e-14)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("terms", SUMS.values(), ids=SUMS)
def test_the_batches_of_a_sum_add_both_points_compiled_and_interpreted(terms):
    total = Sum(*terms)
    check_accumulate(total, D)
    check_same_draw(total)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("name", ["sampled", "with an exact term", "pairs"])
def test_the_batches_of_a_sum_are_unbiased(name, size):
    check_unbiased(Sum(*SUMS[name]), D, size)


def test_the_samples_of_a_sum_are_those_of_its_terms_one_after_the_other():
    total = SQUARES + NORM + FEW
    x = np.random.default_rng(1).standard_normal(D)
    assert total.n_samples == 15
    for i in (0, 11):
        wanted = 15 / 12 * SQUARES.value(x, [i]) + NORM.value(x)
        assert total.value(x, [i]) == pytest.approx(wanted, rel=1e-13)
    for i in (12, 14):
        assert total.value(x, [i]) == pytest.approx(15 / 3 * FEW.value(x, [i - 12]) + NORM.value(x), rel=1e-13)
    mixed = np.mean([total.value(x, [i]) for i in (13, 2, 13, 0)])
    assert total.value(x, [13, 2, 13, 0]) == pytest.approx(mixed, rel=1e-13)


@given(st.integers(0, 1000), st.integers(1, 9))
def test_each_term_draws_its_share_of_a_batch(seed, size):
    total = Sum(SQUARES, FEW)  # 12 and 3 samples
    batch = draw(total, next(Moments(seed)), np.zeros(size, dtype=np.int64))
    first = np.count_nonzero((batch - 15) % 2 == 0)
    assert batch.min() >= 15
    assert math.floor(size * 0.8) <= first <= math.ceil(size * 0.8)


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_operators_are_the_arithmetic_of_functions(a, b):
    x = np.linspace(-1.0, 1.0, D)
    wanted = a * SQUARES.value(x) + b * (NORM.value(x) + HUBER.value(x))
    assert (a * SQUARES + (NORM + HUBER) * b).value(x) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_numbers_of_other_types_multiply():
    for factor in (2, 2.0, np.float64(2.0), np.float32(2.0), np.int64(2)):
        for product in (factor * NORM, NORM * factor):
            assert product.factor == 2.0
            assert type(product.factor) is float
    assert (2 * (3 * NORM)).factor == 6.0
    assert (2 * (3 * NORM)).objective is NORM


def test_sums_of_sums_are_flat_with_what_is_known_exactly_first():
    terms = [NORM, SQUARES, HUBER, FEW]
    for total in ((SQUARES + HUBER) + (NORM + FEW), SQUARES + (HUBER + (NORM + FEW)), sum(terms), Sum(*terms)):
        assert isinstance(total, Sum)
        for found, term in zip(total.terms, terms, strict=True):
            assert found is term
    assert Sum(NORM) is NORM


def test_multiples_of_sums_and_sums_on_parts_are_taken_apart():
    x = np.linspace(-1.0, 1.0, D)
    total = FEW + 2 * (NORM + SQUARES)
    assert [type(term) for term in total.terms] == [Scaled, type(FEW), Scaled]
    assert total.value(x, [0]) == pytest.approx(2 * NORM.value(x) + 5 * FEW.value(x, [0]), rel=1e-13)
    parts = (FEW + OnPart(NORM + SQUARES, "w")).terms
    assert [(type(term), term.n_samples) for term in parts] == [(OnPart, 1), (type(FEW), 3), (OnPart, 12)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda f: f + 1,
        lambda f: 1 + f,
        lambda f: f + (1.0,),  # noqa: RUF005
        lambda f: (1.0,) + f,  # noqa: RUF005
        lambda f: f + "a",
        lambda f: f + None,
        lambda f: np.float64(1.0) + f,
        lambda f: f * "a",
        lambda f: "a" * f,
        lambda f: f * True,
        lambda f: f * [1.0],
        lambda f: [1.0] * f,
        lambda f: f * np.ones(2),
        lambda f: np.ones(2) * f,
        lambda f: f * f,
        lambda f: f - 1,
        lambda f: 1 - f,
        lambda f: f / f,
        lambda f: 1 / f,
        lambda f: f / True,
    ],
)
@pytest.mark.parametrize("objective", [NORM, SQUARES, PYTHON], ids=["norm", "squares", "python"])
def test_other_arithmetic_is_an_error_and_never_that_of_tuples(objective, wrong):
    with pytest.raises(TypeError):
        wrong(objective)


def test_errors_of_arithmetic_say_what_to_do():
    with pytest.raises(TypeError, match="a constant changes no minimiser, leave it out"):
        SQUARES + 1
    with pytest.raises(TypeError, match="got SquaredNorm.*write the product as a FiniteSum"):
        SQUARES * NORM
    with pytest.raises(ZeroDivisionError, match="divided by a real number other than 0"):
        SQUARES / 0
    with pytest.raises(ValueError, match=r"whether LeastSquares 12 × 18 − SquaredNorm.* Write f \+ \(-1.0\) \* g for a sum"):
        SQUARES - NORM
    for unknown in (COVARIANCE, FiniteSum(2, D, lambda x, i: (0.0, x))):
        with pytest.raises(ValueError, match=r"is convex is not known.* write -1.0 \* f"):
            -unknown


def test_differences_and_negatives_are_made_where_their_convexity_is_known():
    x = np.linspace(-1.0, 1.0, D)
    f, h = SQUARES.value(x), NORM.value(x)
    cases = [
        (SQUARES / 4, f / 4, True),
        (3 * SQUARES - SQUARES / 2, 2.5 * f, True),
        (SQUARES - 3 * SQUARES, -2 * f, False),
        (SQUARES - (-2 * NORM), f + 2 * h, True),
        (COVARIANCE - (-NORM), COVARIANCE.value(x) + h, False),
        (-SQUARES - NORM, -f - h, False),
        (-(-SQUARES), f, True),
        (-(-SQUARES - NORM), f + h, True),
    ]
    for objective, value, convex in cases:
        assert objective.value(x) == pytest.approx(value, rel=1e-13)
        assert objective.convex is convex


def test_convexity_follows_the_rules():
    not_convex, unknown = COVARIANCE, FiniteSum(2, D, lambda x, i: (0.0, x))
    assert (2 * NORM).convex is True
    assert (0 * not_convex).convex is True
    assert (2 * not_convex).convex is False
    assert (-1 * NORM).convex is False
    assert (-1 * not_convex).convex is None
    assert (2 * unknown).convex is None
    assert (NORM + SQUARES).convex is True
    assert (NORM + not_convex).convex is False
    assert (NORM + unknown).convex is None
    assert OnPart(NORM, "w").convex is True
    assert OnPart(not_convex, "w").convex is False


def test_smoothness_constants_add_up():
    assert (SQUARES + 3 * NORM).lipschitz == pytest.approx(SQUARES.lipschitz + 3.0, rel=1e-14)
    assert (-2 * NORM).lipschitz == 2.0
    assert math.isnan((NORM + PYTHON).lipschitz)
    assert (0 * PYTHON).lipschitz == 0.0
    assert OnPart(3 * NORM, "w").lipschitz == 3.0


@pytest.mark.parametrize(
    ("method", "way"),
    [
        pytest.param(SBCGI(step=0.02, slack=1e-3, batch_size=3), nullcontext, id="sbcgi-compiled"),
        pytest.param(SBCGF(step=0.02, slack=1e-4), interpreted, id="sbcgf-interpreted"),
    ],
)
def test_a_sum_runs_as_the_same_sum_of_python_functions_does(method, way):
    terms = [make_objective("least-squares", seed=3), HUBER, 0.1 * NORM, 5.0 * COVARIANCE]
    fast = Problem(Sum(*terms), SQUARES + 0.01 * NORM, L1Ball(1.5))
    slow = Problem(Sum(callable_copy(terms[0], 12, D), *terms[1:]), SQUARES + 0.01 * NORM, L1Ball(1.5))
    assert fast.compiled
    assert not slow.compiled
    with way():
        a, b = (minimize(problem, method, max_queries=600) for problem in (fast, slow))
    np.testing.assert_allclose(a.x, b.x, rtol=1e-10, atol=1e-12)
    assert a.queries == b.queries
    assert np.abs(a.x).max() > 1e-3
    assert a.upper == pytest.approx(sum(term.value(a.x) for term in terms), rel=1e-12)


def test_a_ridge_term_gives_the_ridge_solution():
    A, b = RNG.standard_normal((8, 3)), RNG.standard_normal(8)
    ridge = LeastSquares(A, b) + 0.5 * SquaredNorm()
    solution = np.linalg.solve(A.T @ A / 8 + 0.5 * np.eye(3), A.T @ b / 8)
    assert np.abs(ridge.value_and_gradient(solution)[1]).max() < 1e-14
    method = SpiderFW(level="lower", step=power(2.0, 1.0, shift=2.0))
    result = minimize(Problem(SquaredNorm(), ridge, L1Ball(5.0)), method, max_queries=20_000)
    np.testing.assert_allclose(result.x, solution, atol=0.01)


def test_an_objective_of_some_variables_sees_and_moves_no_others():
    placed = Placed(FEW, 2, 2 + D, D + 5)
    x = np.random.default_rng(1).standard_normal(D + 5)
    value, gradient = placed.value_and_gradient(x)
    inner, inner_gradient = FEW.value_and_gradient(x[2:-3])
    assert value == inner
    np.testing.assert_array_equal(gradient, np.concatenate([np.zeros(2), inner_gradient, np.zeros(3)]))
    check_accumulate(placed, D + 5)
    check_accumulate(Placed(COVARIANCE, 0, D, D + 1) + SquaredNorm(), D + 1)


def test_a_python_function_on_a_part_sees_its_part():
    seen = []

    def oracle(x, indices):
        seen.append(x.tolist())
        return float(x.sum()), np.ones(2)

    placed = Placed(FiniteSum(3, 2, oracle), 1, 3, 4)
    assert placed.value_and_gradient([1.0, 2.0, 3.0, 4.0])[1].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert seen == [[2.0, 3.0]]


def test_combinations_survive_copies_and_pickles():
    x = np.linspace(0.0, 1.0, D)
    for objective, again in itertools.product(
        (SQUARES + 2 * NORM, 3 * HUBER), (copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f)))
    ):
        copied = again(objective)
        assert type(copied) is type(objective)
        assert copied.value(x) == objective.value(x)


def test_a_sum_says_what_it_is_made_of():
    assert repr(SQUARES + 2 * COVARIANCE) == "LeastSquares 12 × 18 + 2 * SquaredCovariance 7 × 18"
    assert repr(3 * (SQUARES + SquaredNorm())) == "3 * (SquaredNorm() + LeastSquares 12 × 18)"


JOINT = JointDictionaryLoss(np.ones((2, 3)))
BAD = [
    (lambda: Sum(), "`objectives` must be at least one objective, got none"),
    (lambda: Sum(NORM, 1.0), "`objectives\\[1\\]` must be an objective such as LeastSquares\\(A, b\\), got float"),
    (lambda: Sum(NORM, SquaredNorm([1.0])), "`objectives` must agree on the number of variables, got 1, 18; .*OnPart"),
    (lambda: Scaled("a", NORM), "`factor` must be a finite number, got 'a'"),
    (lambda: Scaled(np.nan, NORM), "`factor` must be a finite number, got nan"),
    (lambda: np.inf * NORM, "`factor` must be a finite number, got inf"),
    (lambda: Scaled(1.0, L1Ball(1.0)), "`objective` must be an objective such as .*, got L1Ball"),
    (lambda: OnPart(NORM, 1), "`name` must be the name of a part of a Product, got 1"),
    (lambda: OnPart(abs, "w"), "`objective` must be an objective"),
    (lambda: OnPart(2 * OnPart(NORM, "u") + NORM, "w"), "`objective` must not name a part itself"),
    (
        lambda: OnPart(NORM, "w").value(np.ones(D)),
        "`x` has 18 variables, and which of them are the part 'w' is known only in",
    ),
    (lambda: (2 * JOINT).value(np.ones(6)), "`x` must have p · 5 variables"),
    (lambda: (2 * JOINT + SquaredNorm()).value(np.ones(6)), "`x` must have p · 5 variables"),
    (lambda: (SQUARES + FEW).value(np.ones(D), [15]), "`indices` must be .* from 0 to 14"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_constraints_and_losses_can_be_mixed():
    outside = ConeDistance(np.eye(D)[:, None, :], np.zeros((D, 1)), "orthant")
    x = np.linspace(-1.0, 1.0, D)
    assert (SQUARES + D * outside).value(x) == pytest.approx(
        SQUARES.value(x) + 0.5 * np.sum(np.maximum(x, 0.0) ** 2), rel=1e-13
    )
    batch = draw(SQUARES + outside, next(Moments(0)), np.zeros(4, dtype=np.int64))
    assert accumulate(SQUARES + outside, batch, x, 1.0, x, 0.0, np.zeros(D))[0] > 0.0


def test_what_methods_ask_of_an_objective_is_right_for_sums_and_multiples():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((9, 4)), rng.standard_normal(9)
    both = 2.0 * LeastSquares(A, b) + 0.5 * SquaredNorm()
    expected = 2.0 * A.T @ A / 9 + 0.5 * np.eye(4)
    np.testing.assert_allclose(both.hessian(), expected, atol=1e-12)
    assert both.strong_convexity <= np.linalg.eigvalsh(expected)[0] * (1 + 1e-12)
    assert both.strong_convexity >= 0.5
    assert both.floor == 0.0
    assert (3.0 * SquaredNorm()).hessian() == 3.0
    assert (-1.0 * SquaredNorm()).floor == -np.inf
    assert (-1.0 * SquaredNorm()).strong_convexity == 0.0
    assert (SquaredNorm() + make_objective("logistic")).hessian() is None


def test_a_floor_of_a_sum_is_not_above_what_it_is_without_rounding():
    parts = [FiniteSum(1, 1, lambda x, i: (0.0, np.zeros(1)), floor=floor) for floor in (1e10, -3e9)]
    total = 0.3 * parts[0] + parts[1]
    assert Fraction(total.floor) <= Fraction(0.3) * 10**10 - 3 * 10**9
    assert (LeastSquares([[1.0]], [1.0]) + 2.0 * SquaredNorm()).floor == 0.0


def test_a_sum_of_too_many_sampled_terms_is_refused():
    rows = LeastSquares(np.eye(3), np.ones(3))
    assert len(Sum(*[rows] * 40).terms) == 40
    with pytest.raises(ValueError, match="`objectives` must be fewer terms that are sampled, got 70 of up to 3 samples"):
        Sum(*[rows] * 70)
