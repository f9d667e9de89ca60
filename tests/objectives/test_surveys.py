"""Errors of values and gradients are never larger than a survey says: held against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from tiebreak import (
    ConeDistance,
    DictionaryLoss,
    FiniteSum,
    Huber,
    JointDictionaryLoss,
    LeastSquares,
    SquaredCovariance,
    SquaredNorm,
)
from tiebreak.engine import interpreted
from tiebreak.rows import over_blocks, rows_per_block


def exact(array):
    """The same numbers without rounding."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=float))


def squares(A, b, x):
    """½ mean (A x − b)² and its gradient, without rounding."""
    A, b, x = exact(A), exact(b), exact(x)
    rest = A @ x - b
    return sum(rest * rest) / (2 * len(b)), (A.T @ rest) / len(b)


def errors(survey, value, gradient):
    """The true errors over their bounds, the largest first."""
    of_value = abs(Fraction(survey.value) - value) / Fraction(survey.value_error)
    of_gradient = [abs(Fraction(a) - b) / Fraction(e) for a, b, e in zip(survey.gradient, gradient, survey.gradient_error)]
    return float(of_value), float(max(of_gradient))


@pytest.mark.parametrize("kind", ["dense", "csr", "float32"])
@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-8, 1e-100])
def test_errors_of_least_squares_are_within_their_bounds_even_where_all_cancels(kind, scale):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 9)), int(rng.integers(1, 9))
        A = scale * rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-4, 4, d)
        A = A.astype(np.float32).astype(float) if kind == "float32" and scale == 1.0 else A
        x = rng.standard_normal(d)
        b = A @ x * (1.0 if seed % 2 else 1.0 + 1e-12)  # what is left is rounding
        given = {"dense": A, "csr": scipy.sparse.csr_array(A), "float32": A.astype(np.float32) if scale == 1.0 else A}[kind]
        survey = LeastSquares(given, b).survey(x)
        assert max(errors(survey, *squares(A, b, x))) <= 1.0


def test_errors_hold_at_every_point_within_what_is_granted():
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((4, 3)), rng.standard_normal(3)
    b, off = A @ x, np.array([1e-9, 0.0, 1e-7])
    cases = [
        (LeastSquares(A, b), lambda z: squares(A, b, z)),
        (SquaredNorm(x), lambda z: (sum((exact(z) - exact(x)) ** 2) / 2, exact(z) - exact(x))),
        (2.0 * LeastSquares(A, b) + SquaredNorm(x), lambda z: both(A, b, x, z)),
    ]
    for objective, truth in cases:
        survey = objective.survey(x, off)
        for signs in np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3)).reshape(3, -1).T:
            assert max(errors(survey, *truth(x + 0.999 * signs * off))) <= 1.0


def both(A, b, x, z):
    value, gradient = squares(A, b, z)
    way = exact(z) - exact(x)
    return 2 * value + sum(way * way) / 2, 2 * gradient + way


def test_errors_of_dictionaries_and_cones_are_within_their_bounds():
    rng = np.random.default_rng(1)
    points, codes, D = rng.standard_normal((3, 5)), rng.standard_normal((2, 5)), rng.standard_normal((3, 2))
    rest = exact(D) @ exact(codes) - exact(points)
    value, of_atoms = sum((rest * rest).ravel()) / 10, (rest @ exact(codes).T / 5).T.ravel()
    assert max(errors(DictionaryLoss(points, codes).survey(D.T.ravel()), value, of_atoms)) <= 1.0
    of_codes = (exact(D).T @ rest / 5).T.ravel()
    joint = JointDictionaryLoss(points).survey(np.r_[D.T.ravel(), codes.T.ravel()])
    assert max(errors(joint, value, np.r_[of_atoms, of_codes])) <= 1.0

    H, h, x = rng.standard_normal((4, 2, 3)), rng.standard_normal((4, 2)), rng.standard_normal(3)
    outside = np.maximum(np.array([exact(H[i]) @ exact(x) + exact(h[i]) for i in range(4)]), 0)
    value = sum((outside * outside).ravel()) / 8
    gradient = sum(exact(H[i]).T @ outside[i] for i in range(4)) / 4
    assert max(errors(ConeDistance(H, h, "orthant").survey(x), value, gradient)) <= 1.0


def test_values_are_those_of_the_pass_over_all_samples():
    rng = np.random.default_rng(2)
    A, x = rng.standard_normal((30, 4)), rng.standard_normal(4)
    objective = Huber(A, rng.standard_normal(30), 0.5, sample_weight=rng.random(30))
    assert objective.value(x) == pytest.approx(objective.value(x, np.arange(30)), rel=1e-14)
    with interpreted():
        alike = objective.survey(x)
    survey = objective.survey(x)
    np.testing.assert_allclose(survey.gradient, alike.gradient, rtol=1e-13)
    np.testing.assert_allclose(survey.gradient_error, alike.gradient_error, rtol=1e-10)


def test_long_passes_add_in_an_order_that_does_not_depend_on_threads(monkeypatch):
    n, d = 20_000, 60  # enough for threads
    rng = np.random.default_rng(3)
    A, x = rng.standard_normal((n, d)), rng.standard_normal(d)
    objective = LeastSquares(A, rng.standard_normal(n))
    monkeypatch.setenv("TIEBREAK_THREADS", "3")
    many = objective.survey(x)
    monkeypatch.setenv("TIEBREAK_THREADS", "1")
    one = objective.survey(x)
    assert many.value == one.value
    assert (many.gradient == one.gradient).all()
    assert many.value == pytest.approx(0.5 * np.mean((A @ x - objective.targets) ** 2), rel=1e-12)


def test_blocks_cover_all_rows_once_and_are_more_work_than_their_sums():
    for n, worth in [(1, 1.0), (4096, 3.0), (4097, 3.0), (1_000_000, 10_000.0), (10_000, math.inf)]:
        assert sum(over_blocks(n, 1, lambda low, high: high - low, worth)) == n
        step = rows_per_block(n, worth)
        assert step >= min(4.0 * worth, n)
        assert step % 4096 == 0


def test_a_function_is_taken_at_its_word():
    survey = FiniteSum(2, 2, lambda x, indices: (3.0, np.array([1.0, -2.0]))).survey(np.zeros(2), np.full(2, 1e-10))
    assert 0.0 < survey.value_error < 1e-8
    assert (survey.gradient_error < 1e-12).all()


def test_a_covariance_of_zero_but_for_rounding_is_not_called_zero():
    rng = np.random.default_rng(0)
    A = np.array([[1.0], [1.0], [-1.0], [-1.0]]) * 0.3
    objective = SquaredCovariance(A, [0, 1, 0, 1])  # groups with the same scores: no covariance at any x
    for x in rng.standard_normal((20, 1)):
        survey = objective.survey(x)
        assert survey.value <= survey.value_error < 1e-28


def test_numbers_that_overflow_in_twice_the_precision_raise_no_warning():
    """The usual survey takes over; warnings are errors here."""
    A = np.random.default_rng(0).standard_normal((30, 3)) * 1e28
    found = LeastSquares(A, A[:, 0] * 1e110).sharp(np.full(3, 1e29)).survey
    assert np.isfinite(found.gradient).all()
