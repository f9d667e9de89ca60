"""Gradients that are not those of the values are found, and right ones are not accused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tiebreak
from tiebreak import (
    Box,
    FiniteSum,
    GradientError,
    Huber,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    OnPart,
    OracleError,
    Problem,
    Product,
    SquaredNorm,
    Stream,
    certify,
    check_gradient,
    minimize,
    sources,
)
from tiebreak.engine import interpreted

N, SIZE = 40, 5
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((N, SIZE)), RNG.standard_normal(N)
X = np.array([0.4, -0.3, 0.2, 0.1, -0.5])
DOMAIN = L1Ball(2.0)


@pytest.fixture(autouse=True)
def without_compiling():
    with interpreted():
        yield


def squares(x, indices):
    residual = A[indices] @ x - B[indices]
    return 0.5 * float(np.mean(residual**2)), residual @ A[indices] / len(indices)


def opposite(x, indices):
    value, gradient = squares(x, indices)
    return value, -gradient


def doubled(x, indices):
    value, gradient = squares(x, indices)
    return value, 2.0 * gradient


def summed(x, indices):
    value, gradient = squares(x, indices)
    return value, len(indices) * gradient


def divided_by_all(x, indices):
    value, gradient = squares(x, indices)
    return value, gradient / N


def one_entry(x, indices):
    value, gradient = squares(x, indices)
    return value, gradient * np.array([1.0, 1.0, 1.0, -1.0, 1.0])


WRONG = [opposite, doubled, summed, divided_by_all, one_entry]


def finite(function, n=N, d=SIZE, **known):
    return FiniteSum(n, d, function, convex=True, **known)


@pytest.mark.parametrize("function", WRONG)
def test_a_wrong_gradient_is_an_error_that_names_the_function(function):
    with pytest.raises(GradientError, match=f"^the gradient of `{function.__name__}` is not that of its values"):
        check_gradient(finite(function), X)


@pytest.mark.parametrize("function", WRONG)
@pytest.mark.parametrize("level", ["upper", "lower"])
def test_no_run_and_no_certificate_rests_on_a_wrong_gradient(function, level):
    problem = Problem(SquaredNorm(), LeastSquares(A, B), DOMAIN)._replace(**{level: finite(function)})
    with pytest.raises(GradientError, match=f"^{level}: the gradient of `{function.__name__}`"):
        minimize(problem, max_queries=1000)
    with pytest.raises(GradientError, match=f"^{level}: the gradient of `{function.__name__}`"):
        certify(problem, X)


def test_the_error_has_both_slopes_and_is_an_oracle_error():
    with pytest.raises(OracleError) as caught:
        check_gradient(finite(doubled), X)
    message = str(caught.value)
    values, gradient = map(float, re.search(r"the slope (\S+), and the gradient says (\S+), 2 times", message).groups())
    assert gradient == pytest.approx(2.0 * values, rel=1e-3)
    assert "`check=False` of minimize and certify leaves this comparison out" in message
    assert caught.value.objective.value_and_grad is doubled


def test_a_check_can_be_left_out():
    problem = Problem(SquaredNorm(), finite(opposite), DOMAIN)
    with pytest.warns(RuntimeWarning, match="its gradient is wrong"):  # as what it proves is soon refuted
        assert not minimize(problem, max_queries=1000, check=False).success
    assert np.isfinite(certify(problem, X, check=False).lower)
    with pytest.raises(ValueError, match="^`check` must be True or False, got 'no'"):
        minimize(problem, max_queries=1000, check="no")


def test_terms_of_composed_objectives_are_looked_at():
    both = Product(u=(L1Ball(1.0), 2), w=(DOMAIN, SIZE))
    plain = SquaredNorm()
    for composed in (0.1 * finite(opposite) + LeastSquares(A, B), finite(squares) + 1e-3 * finite(one_entry)):
        with pytest.raises(GradientError):
            check_gradient(composed, X)
        with pytest.raises(GradientError):
            minimize(Problem(plain, composed, DOMAIN), max_queries=1000)
    with pytest.raises(GradientError, match="^lower"):
        minimize(Problem(plain, OnPart(finite(doubled), "w"), both), max_queries=1000)
    with pytest.raises(GradientError, match="^lower"):
        minimize(Problem(plain, OnPart(finite(squares) + 0.5 * finite(doubled), "w"), both), max_queries=1000)
    assert minimize(Problem(plain, OnPart(finite(squares), "w"), both), max_queries=500).success


def of(objective):
    """A compiled objective as a function."""
    return finite(objective.value_and_gradient, objective.n_samples, objective.dimension)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_right_gradients_fit_in_all_units_and_wrong_ones_do_not(unit, size):
    labels = np.where(B > 0.0, 1.0, -1.0)
    logistic = Logistic(A / unit, labels)
    domain = L1Ball(2.0 * unit)

    def scaled(x, indices):
        value, gradient = logistic.value_and_gradient(x, indices)
        return size * value, size * gradient

    def wrong(x, indices):
        value, gradient = scaled(x, indices)
        return value, -gradient

    for where in (None, domain):
        for x in (X * unit, np.zeros(SIZE)):
            report = check_gradient(finite(scaled), x, domain=where)
            assert all(each.told for each in report.comparisons)
            with pytest.raises(GradientError):
                check_gradient(finite(wrong), x, domain=where)


@pytest.mark.parametrize("margin", [1e-8, 1e8])
def test_a_logistic_loss_far_from_its_unit_is_not_accused(margin):
    check_gradient(of(Logistic(margin * A, np.where(B > 0.0, 1.0, -1.0))), X)
    check_gradient(of(Logistic(margin * A, np.where(B > 0.0, 1.0, -1.0))), X, domain=DOMAIN)


def absolute(x, indices):
    return float(np.abs(x).sum()), np.sign(x)


def one_sided(x, indices):
    return float(np.abs(x).sum()), np.where(x >= 0.0, 1.0, -1.0)


def hinge(x, indices):
    margins = 1.0 - np.where(B[indices] > 0.0, 1.0, -1.0) * (A[indices] @ x)
    signs = -np.where(B[indices] > 0.0, 1.0, -1.0) * (margins > 0.0)
    return float(np.maximum(margins, 0.0).mean()), signs @ A[indices] / len(indices)


@pytest.mark.parametrize("function", [absolute, one_sided, hinge])
@pytest.mark.parametrize("x", [np.zeros(SIZE), X, np.eye(SIZE)[0]])
def test_kinks_are_not_taken_for_errors(function, x):
    for seed in range(20):
        check_gradient(finite(function), x, seed=seed)
        check_gradient(finite(function), x, domain=DOMAIN, seed=seed)


def test_a_huber_loss_fits_at_its_kinks():
    at_kink = A @ X - 0.5  # every residual is as large as the width
    check_gradient(of(Huber(A, at_kink, 0.5)), X)
    check_gradient(of(Huber(A, at_kink, 1e-9)), X, domain=DOMAIN)


def test_constants_one_variable_and_minimisers_are_not_accused():
    check_gradient(finite(lambda x, indices: (7.0, np.zeros(SIZE))), X, domain=DOMAIN)
    check_gradient(finite(lambda x, indices: (0.0, np.zeros(SIZE))), np.zeros(SIZE))
    check_gradient(finite(lambda x, indices: (float(x[0] ** 2), 2.0 * x), 1, 1), [3.0])
    check_gradient(finite(lambda x, indices: (float(x[0] ** 2), 2.0 * x), 1, 1), [0.0])
    check_gradient(of(LeastSquares(A, A @ X)), X, domain=DOMAIN)
    with pytest.raises(GradientError):
        check_gradient(finite(lambda x, indices: (float(x[0] ** 2), -2.0 * x), 1, 1), [3.0])
    with pytest.raises(GradientError):
        check_gradient(finite(lambda x, indices: (7.0, np.ones(SIZE))), X)


def test_a_wrong_sign_is_found_although_the_first_point_is_a_minimiser():
    problem = Problem(SquaredNorm(), finite(lambda x, indices: (0.5 * float(x @ x), -x)), L2Ball(1.0))
    with pytest.raises(GradientError):
        minimize(problem, x0=np.zeros(SIZE), max_queries=100)


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_single_precision_is_enough(offset):
    a, b = A.astype(np.float32), B.astype(np.float32)

    def single(x, indices):
        residual = a[indices] @ x.astype(np.float32) - b[indices]
        return np.float32(0.5) * np.mean(residual**2) + np.float32(offset), residual @ a[indices] / np.float32(len(indices))

    def wrong(x, indices):
        value, gradient = single(x, indices)
        return value, -gradient

    for seed in range(20):
        check_gradient(finite(single), X, seed=seed)
        check_gradient(finite(single), X, domain=DOMAIN, seed=seed)
        with pytest.raises(GradientError):
            check_gradient(finite(wrong), X, domain=DOMAIN, seed=seed)


def test_functions_are_asked_at_points_of_the_domain_only():
    def careful(x, indices):
        if not DOMAIN.contains(x):
            raise ValueError("outside")
        return squares(x, indices)

    report = check_gradient(finite(careful), DOMAIN.lmo(np.ones(SIZE)), domain=DOMAIN)
    assert all(each.told for each in report.comparisons)
    with pytest.raises(ValueError, match="^`domain` must be a set that holds `x`"):
        check_gradient(finite(careful), 9.0 * X, domain=DOMAIN)


def test_a_run_has_the_same_bits_with_and_without_the_check():
    problem = Problem(SquaredNorm(), finite(squares), DOMAIN)
    with_check, without = (minimize(problem, max_queries=1000, check=check) for check in (True, False))
    assert with_check.x.tobytes() == without.x.tobytes()
    assert with_check.queries == without.queries
    assert with_check.evaluations == without.evaluations


def test_a_function_that_fails_at_other_points_is_left_to_the_run():
    def fails(x, indices):
        raise KeyError("lost")

    with pytest.raises(OracleError, match="raised KeyError: 'lost'"):
        minimize(Problem(SquaredNorm(), finite(fails), DOMAIN), max_queries=100)

    def only_at_zero(x, indices):
        if x.any():
            raise ValueError("outside")
        return squares(x, indices)

    assert np.isfinite(certify(Problem(SquaredNorm(), finite(only_at_zero), DOMAIN), np.zeros(SIZE)).lower)


def test_a_random_function_is_not_accused():
    noise = np.random.default_rng(1)

    def noisy(x, indices):
        value, gradient = squares(x, indices)
        return value + noise.standard_normal(), gradient

    for seed in range(20):
        check_gradient(finite(noisy), X, seed=seed)


def test_the_wrong_gradient_of_a_stream_is_found_on_the_samples_that_a_record_draws_anyway():
    def rows(rng, size):
        return rng.random((size, SIZE))

    def right(x, u):
        return 0.5 * float(np.mean(np.sum((x - u) ** 2, axis=1))), x - u.mean(axis=0)

    def wrong(x, u):
        value, gradient = right(x, u)
        return value, -gradient

    for function in (right, wrong):
        problems = [Problem(SquaredNorm(), Stream(rows, function, SIZE, convex=True), DOMAIN)]
        problems.append(Problem(0.5 * problems[0].lower + 0.1 * SquaredNorm(), LeastSquares(A, B), DOMAIN))
        for problem in problems:
            for call in (lambda: minimize(problem, max_queries=400), lambda: certify(problem, X)):
                if function is right:
                    call()
                else:
                    with pytest.raises(GradientError, match="the gradient of `.*wrong` is not that of its values"):
                        call()

    def result(check):
        batches = (np.random.default_rng(k).random((50, SIZE)) for k in range(200))
        stream = Stream(sources.Rows(batches), right, SIZE, convex=True)
        return minimize(Problem(SquaredNorm(), stream, DOMAIN), max_queries=1000, check=check)

    assert result(True).x.tobytes() == result(False).x.tobytes()  # no sample was lost to the check


def test_any_objective_can_be_checked_and_reports_its_slopes():
    report = check_gradient(LeastSquares(A, B) + 2.0 * SquaredNorm(), X)
    assert len(report.comparisons) == 2 * 4
    assert str(report).count("SquaredNorm") == 4
    for each in report.comparisons:
        assert each.difference == pytest.approx(each.slope, rel=1e-4)
    stream = Stream(lambda rng, size: rng.random((size, 2)), lambda x, u: (float(np.mean(u @ x)), u.mean(axis=0)), 2)
    assert all(each.told for each in check_gradient(stream, [1.0, 2.0], samples=5).comparisons)
    with pytest.raises(ValueError, match="^`samples` must be a whole number ≥ 1, got 0"):
        check_gradient(stream, [1.0, 2.0], samples=0)
    assert tiebreak.check_gradient is check_gradient


def test_values_of_few_digits_do_not_accuse_a_right_gradient():
    def short(x, indices):
        return float(np.float32(100.0 + 1e-2 * x[0])) / 3.0, np.array([1e-2 / 3.0])

    check_gradient(FiniteSum(1, 1, short), [0.0], domain=Box([-1.0], [1.0]))
    check_gradient(FiniteSum(1, 1, lambda x, i: (round(float(x[0]), 3), np.ones(1))), [0.0], domain=Box([-1.0], [1.0]))
    with pytest.raises(GradientError):
        check_gradient(FiniteSum(1, 1, lambda x, i: (5.0, np.ones(1))), [0.0], domain=Box([-1.0], [1.0]))
