"""Streams of linear models: rows (A, b) and the name of a loss are enough."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.sparse

from tiebreak import (
    EndOfStream,
    Huber,
    L1Ball,
    LeastSquares,
    Logistic,
    OracleError,
    Problem,
    SquaredNorm,
    Status,
    Stream,
    check_gradient,
    minimize,
)
from tiebreak.engine import interpreted
from tiebreak.objectives import HuberLoss, NonFiniteError, accumulate
from tiebreak.objectives.adapters.row_losses import LOSSES

TRUTH = np.array([1.0, 0.0, -1.0])


def rows(rng, size):
    A = rng.standard_normal((size, 3))
    return A, A @ TRUTH + 0.1 * rng.standard_normal(size)


def signs(rng, size):
    A, b = rows(rng, size)
    return A, np.sign(b)


def squares_by_hand(x, batch):
    A, b = batch
    rest = A @ x - b
    return 0.5 * np.mean(rest**2), rest @ A / b.size


def logistic_by_hand(x, batch):
    A, y = batch
    margins = y * (A @ x)
    return np.mean(np.log1p(np.exp(-margins))), (-y / (1.0 + np.exp(margins))) @ A / y.size


def huber_by_hand(x, batch, delta=1.0):
    A, b = batch
    rest = A @ x - b
    far = np.abs(rest) > delta
    values = np.where(far, delta * np.abs(rest) - 0.5 * delta**2, 0.5 * rest**2)
    return np.mean(values), np.clip(rest, -delta, delta) @ A / b.size


BY_HAND = {"squares": (rows, squares_by_hand), "logistic": (signs, logistic_by_hand), "huber": (rows, huber_by_hand)}


@pytest.mark.parametrize("name", BY_HAND)
def test_values_and_gradients_are_those_written_by_hand(name):
    draw, by_hand = BY_HAND[name]
    stream, plain = Stream.of_rows(draw, 3, name), Stream(draw, by_hand, 3, convex=True)
    x, y = np.random.default_rng(0).standard_normal((2, 3))
    value, gradient = stream.estimate(x, samples=500, seed=3)
    expected_value, expected_gradient = plain.estimate(x, samples=500, seed=3)
    assert value == pytest.approx(expected_value, rel=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-10, atol=1e-14)
    batch, start = draw(np.random.default_rng(1), 40), np.ones(3)
    found, wanted = start.copy(), start.copy()
    values = accumulate(stream, batch, x, 0.7, y, -0.4, found)
    expected = accumulate(plain, batch, x, 0.7, y, -0.4, wanted)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-14)
    with interpreted():
        again = start.copy()
        assert accumulate(stream, batch, x, 0.7, y, -0.4, again) == pytest.approx(values, rel=1e-13)
    np.testing.assert_allclose(again, found, rtol=1e-12)
    assert check_gradient(stream, x) is not None


@pytest.mark.parametrize(("name", "kind"), [("squares", LeastSquares), ("logistic", Logistic), ("huber", Huber)])
def test_a_batch_has_the_value_of_the_objective_of_its_rows(name, kind):
    draw, _ = BY_HAND[name]
    A, b = draw(np.random.default_rng(2), 30)
    finite = kind(A, b, 1.0) if kind is Huber else kind(A, b)
    x, gradient = np.array([0.3, -0.2, 0.1]), np.zeros(3)
    value, _ = accumulate(Stream.of_rows(draw, 3, name), (A, b), x, 1.0, x, 0.0, gradient)
    expected, slope = finite.value_and_gradient(x)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-11)


def test_what_is_known_of_the_loss_is_known_of_the_stream():
    for name in LOSSES:
        stream = Stream.of_rows(rows, 3, name)
        assert stream.convex is True
        assert stream.floor == 0.0
        assert stream.endless
        assert stream.dimension == 3
    known = Stream.of_rows(rows, 3, strong_convexity=0.5, lipschitz=2.0, value_range=(0.0, 9.0), gradient_bound=4.0)
    assert (known.strong_convexity, known.lipschitz, known.value_range, known.gradient_bound) == (0.5, 2.0, (0.0, 9.0), 4.0)


def test_a_scalar_loss_of_another_parameter_is_taken():
    x = np.array([0.5, 0.5, -2.0])
    stream = Stream.of_rows(rows, 3, HuberLoss(0.2))
    wide = Stream(rows, lambda x, batch: huber_by_hand(x, batch, 0.2), 3, convex=True)
    assert stream.estimate(x)[0] == pytest.approx(wide.estimate(x)[0], rel=1e-12)


def test_rows_may_be_lists_and_numbers_of_any_real_type():
    def listed(rng, size):
        A, b = rows(rng, size)
        return A.tolist(), b.astype(np.float32)

    plain, other = (Stream.of_rows(draw, 3).estimate(TRUTH, 100) for draw in (rows, listed))
    assert other[0] == pytest.approx(plain[0], rel=1e-5)


# In runs


@pytest.mark.parametrize("name", BY_HAND)
def test_sbcgi_runs_as_on_the_loss_written_by_hand(name):
    draw, by_hand = BY_HAND[name]
    domain, upper = L1Ball(2.0), SquaredNorm()
    streams = Stream.of_rows(draw, 3, name), Stream(draw, by_hand, 3, convex=True, floor=0.0)
    first, second = (minimize(Problem(upper, stream, domain), "sbcgi", max_queries=3000) for stream in streams)
    np.testing.assert_allclose(first.x, second.x, atol=1e-9)
    assert first.queries == second.queries
    assert first.lower < 0.9 * float(first.history.lower[0])


def test_auto_takes_the_active_set_for_squares_alone():
    for name, (draw, _) in BY_HAND.items():
        result = minimize(Problem(SquaredNorm(), Stream.of_rows(draw, 3, name), L1Ball(2.0)), max_queries=3000)
        assert result.method.name == ("active-set" if name == "squares" else "sample-average")


# What is refused


@pytest.mark.parametrize("loss", ["square", 3, None, SquaredNorm()])
def test_a_loss_that_there_is_not_is_refused_by_name(loss):
    with pytest.raises(ValueError, match="`loss` must be one of 'squares', 'logistic', 'huber', or a scalar loss such as"):
        Stream.of_rows(rows, 3, loss)


def test_other_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="`draw` must be a function"):
        Stream.of_rows(3, 3)
    with pytest.raises(ValueError, match="`dimension` must be a whole number ≥ 1, got 0"):
        Stream.of_rows(rows, 0)


BAD = {
    "columns": (lambda A, b: (A[:, :2], b), "must be \\(A, b\\) of shapes \\(k, 3\\) and \\(k,\\), got"),
    "targets": (lambda A, b: (A, b[:-1]), "of shapes \\(k, 3\\) and \\(k,\\), got"),
    "a column": (lambda A, b: (A, b[:, None]), "of shapes \\(k, 3\\) and \\(k,\\), got"),
    "A alone": (lambda A, b: A, "must be \\(A, b\\), arrays of real numbers, got array"),
    "three": (lambda A, b: (A, b, b), "must be \\(A, b\\), arrays of real numbers, got"),
    "sparse": (lambda A, b: (scipy.sparse.csr_array(A), b), "must be \\(A, b\\), arrays of real numbers, got"),
    "words": (lambda A, b: (A, ["a"] * len(b)), "must be \\(A, b\\), arrays of real numbers, got"),
    "complex": (lambda A, b: (A * 1j, b), "must be \\(A, b\\), arrays of real numbers, got"),
    "a dict": (lambda A, b: {"A": A, "b": b}, "must be \\(A, b\\), arrays of real numbers, got"),
    "NaN": (lambda A, b: (A * math.nan, b), "a batch of rows holds NaN or infinity in A"),
    "infinity": (lambda A, b: (A, b + math.inf), "a batch of rows holds NaN or infinity in b"),
}


@pytest.mark.parametrize("method", ["sbcgi", "active-set"])
@pytest.mark.parametrize("name", BAD)
def test_batches_of_another_form_are_refused_and_what_is_wrong_named(name, method):
    change, message = BAD[name]
    stream = Stream.of_rows(lambda rng, size: change(*rows(rng, size)), 3)
    with pytest.raises(OracleError, match=message):
        stream.estimate(TRUTH, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OracleError, match=message):
            minimize(Problem(SquaredNorm(), stream, L1Ball(2.0)), method, max_queries=500)


def test_labels_of_a_logistic_loss_are_minus_one_and_one():
    def labels(rng, size):
        A, b = rows(rng, size)
        return A, (b > 0.0).astype(float)

    with pytest.raises(OracleError, match="the targets of logistic rows must be −1 and 1, got others: map 0 to −1"):
        Stream.of_rows(labels, 3, "logistic").estimate(TRUTH)


@pytest.mark.parametrize("method", ["sbcgi", "active-set"])
def test_a_number_that_is_missing_later_ends_the_run_and_is_named(method):
    count = [0]

    def draw(rng, size):
        A, b = rows(rng, size)
        count[0] += size
        if count[0] > 12_000:
            A[-1, 0] = math.nan
        return A, b

    result = minimize(Problem(SquaredNorm(), Stream.of_rows(draw, 3), L1Ball(2.0)), method, max_queries=30_000)
    assert result.status is Status.NOT_FINITE
    assert isinstance(result.error, NonFiniteError)
    assert "a batch of rows holds NaN or infinity in A" in result.message
    assert np.isfinite(result.x).all()


def test_a_source_without_rows_is_an_end():
    with pytest.raises(EndOfStream, match="has come to its end"):
        Stream.of_rows(lambda rng, size: None, 3).estimate(TRUTH, 10)
