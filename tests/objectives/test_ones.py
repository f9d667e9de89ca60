"""A column of ones that is not stored counts like one that is."""

import numpy as np
import pytest
import scipy.sparse

import tiebreak
from tiebreak.objectives import linear_model
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square

LOSSES = [Square(), LogLoss(), HuberLoss(0.5)]


def data(kind, n=300, d=8):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)).astype(np.float32 if kind == "float32" else np.float64)
    ones = np.ones((n, 1), dtype=A.dtype)
    b, w = np.where(rng.random(n) < 0.5, -1.0, 1.0), rng.random(n)
    if kind == "sparse":
        A = scipy.sparse.csr_array(np.where(A > 0.8, A, 0.0))
        return A, scipy.sparse.hstack([A, ones], format="csr"), b, w
    return A, np.hstack([A, ones]), b, w


@pytest.mark.parametrize("scalar", LOSSES, ids=lambda scalar: type(scalar).__name__)
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_values_gradients_and_constants_are_those_of_a_stored_column(kind, scalar):
    A, whole, b, w = data(kind)
    f, g = linear_model(scalar, A, b, w, ones=True), linear_model(scalar, whole, b, w)
    x = np.random.default_rng(1).standard_normal(9)
    (value, gradient), (expected, slope) = f.value_and_gradient(x), g.value_and_gradient(x)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(gradient, slope, atol=1e-13)
    some = [3, 5, 5, 200]
    np.testing.assert_allclose(f.value_and_gradient(x, some)[1], g.value_and_gradient(x, some)[1], atol=1e-13)
    assert f.lipschitz == pytest.approx(g.lipschitz, rel=1e-12)
    assert f.sample_lipschitz == pytest.approx(g.sample_lipschitz, rel=1e-12)
    assert (f.dimension, f.rows.numbers, f.rows.longest_row) == (9, g.rows.numbers, g.rows.longest_row)


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_errors_of_surveys_are_no_smaller_than_differences(kind):
    A, whole, b, w = data(kind)
    f, g = linear_model(LogLoss(), A, b, w, ones=True), linear_model(LogLoss(), whole, b, w)
    x = np.random.default_rng(1).standard_normal(9)
    for one, other in ((f.survey(x), g.survey(x)), (f.sharp(x).survey, g.sharp(x).survey)):
        assert abs(one.value - other.value) <= one.value_error + other.value_error
        assert (np.abs(one.gradient - other.gradient) <= one.gradient_error + other.gradient_error).all()
        assert one.value_error == pytest.approx(other.value_error, rel=0.1)


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_sums_of_squares_have_the_column(kind):
    A, whole, b, w = data(kind)
    sums, expected = (
        linear_model(Square(), A, b, w, ones=True).summed(),
        linear_model(Square(), whole, b, w).summed(),
    )
    np.testing.assert_allclose(sums.quadratic, expected.quadratic, atol=1e-14)
    np.testing.assert_allclose(sums.linear, expected.linear, atol=1e-14)
    assert sums.roundings == expected.roundings


def test_a_run_that_draws_rows_takes_the_same_ones():
    A, whole, b, w = data("float64")
    results = [
        tiebreak.minimize(
            tiebreak.Problem(tiebreak.SquaredNorm(), model, tiebreak.L1Ball(3.0)), "sbcgi", max_iterations=50, seed=0
        )
        for model in (linear_model(LogLoss(), A, b, w, ones=True), linear_model(LogLoss(), whole, b, w))
    ]
    np.testing.assert_allclose(results[0].x, results[1].x, atol=1e-12)
