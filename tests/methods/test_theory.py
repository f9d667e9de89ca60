"""The constants and schedules of theory against closed forms, and what runs by them return."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import callable_copy, linear_data, make_objective

from tiebreak import (
    SBCGF,
    SBCGI,
    SBCGIM,
    FiniteSum,
    L1Ball,
    LeastSquares,
    Logistic,
    Problem,
    SquaredCovariance,
    Theory,
    minimize,
)
from tiebreak.engine import interpreted
from tiebreak.methods.theory import sub_gaussian

KNOWN = Theory(
    upper_smoothness=1.0,
    lower_smoothness=2.0,
    lower_slope=3.0,
    upper_noise=0.5,
    lower_noise=0.7,
    value_noise=0.9,
    confidence=0.95,
    c=2.0,
)


@pytest.fixture
def plain() -> Problem:
    """Without sample weights, so that the constants are easily written down."""
    A, b = linear_data(1)
    B, c = linear_data(2)
    return Problem(LeastSquares(A, b), LeastSquares(B, c), L1Ball(6.0))


@pytest.fixture
def fairness() -> Problem:
    """An upper objective that is not convex."""
    A, b = linear_data(0)
    return Problem(SquaredCovariance(A, (b > 0.0).astype(float)), Logistic(A, np.sign(b)), L1Ball(6.0))


def test_the_constants_of_a_linear_model_are_found(plain):
    found = Theory().for_problem(plain, 100.0)
    A, b = linear_data(2)
    assert found.upper_smoothness == pytest.approx(np.max(np.sum(linear_data(1)[0] ** 2, axis=1)))
    assert found.lower_smoothness == pytest.approx(np.max(np.sum(A**2, axis=1)))
    corners = 6.0 * np.vstack([np.eye(18), -np.eye(18)])
    residuals = A @ corners.T - b[:, None]
    slopes = np.abs(residuals) * np.linalg.norm(A, axis=1)[:, None]
    assert found.lower_slope == pytest.approx(slopes.max())
    assert found.diameter == 12.0 and found.horizon == 100.0


def test_the_noise_that_is_found_is_close_to_the_largest_over_the_corners(plain):
    found = Theory().for_problem(plain, 100.0)
    A, b = linear_data(2)
    corners = 6.0 * np.vstack([np.eye(18), -np.eye(18)])
    gradients = (A @ corners.T - b[:, None])[:, :, None] * A[:, None, :]
    largest = max(
        sub_gaussian(np.linalg.norm(noise, axis=1)) for noise in (gradients - gradients.mean(axis=0)).swapaxes(0, 1)
    )
    assert 0.4 * largest <= found.lower_noise <= 1.2 * largest


def test_constants_that_are_given_stay(plain):
    found = KNOWN.for_problem(plain, 10.0)
    assert (found.lower_smoothness, found.lower_slope, found.value_noise, found.c) == (2.0, 3.0, 0.9, 2.0)
    assert found.diameter == 12.0


def test_the_size_of_gaussian_noise_is_that_of_its_exponential_moment():
    noise = np.abs(np.random.default_rng(0).standard_normal(200_000))
    assert sub_gaussian(noise) == pytest.approx(math.sqrt(2.0 / (1.0 - math.exp(-2.0))), rel=0.01)
    assert sub_gaussian(np.zeros(3)) == 0.0


@pytest.mark.parametrize("horizon", [400.0, math.inf])
@pytest.mark.parametrize("convex", [True, False])
def test_sbcgi_has_the_slack_of_its_theorem(plain, fairness, convex, horizon):
    problem = plain if convex else fairness
    method = SBCGI(preset="theory", theory=Theory(**{**vars(KNOWN), "horizon": horizon})).for_problem(problem)
    omega, D, d = (1.0 if convex else 2 / 3), 12.0, 18
    for t in (0, 7, 399):
        delta = 0.05 / 400 if horizon == 400.0 else 0.05 / ((t + 1) * (t + 2))
        factor = 3**omega / (3**omega - 1)
        K1 = 2.0 * math.sqrt(2) * (2 * 2.0 * D + 0.7 * factor) * (t + 1) ** (-omega / 2) * math.sqrt(math.log(6 * d / delta))
        K0 = 2.0 * math.sqrt(2) * (2 * 3.0 * D + 0.9 * factor) * (t + 1) ** (-omega / 2) * math.sqrt(math.log(6 / delta))
        assert method.slack(np.array([t]))[0] == pytest.approx(K0 + D * K1)
        assert method.momentum(np.array([t]))[0] == pytest.approx((t + 1) ** -omega)
        step = (t + 2) ** -omega if convex or horizon == math.inf else 401.0**-omega
        assert method.step(np.array([t]))[0] == pytest.approx(step)


@pytest.mark.parametrize("convex", [True, False])
def test_sbcgf_has_the_slack_of_its_theorem(plain, fairness, convex):
    problem = plain if convex else fairness
    method = SBCGF(preset="theory", theory=Theory(**{**vars(KNOWN), "horizon": 400.0})).for_problem(problem)
    step = math.log(400) / 400 if convex else 1 / 20
    slack = 4 * 12.0 * step * (3.0 + 2.0 * 12.0) * math.sqrt(math.log(12 * 400 / 0.05))
    assert method.step(np.array([5]))[0] == pytest.approx(step)
    assert method.slack(np.array([5]))[0] == pytest.approx(slack)


def test_for_any_time_the_slack_of_sbcgf_follows_the_largest_step_since_the_last_exact_gradient(plain):
    theory = Theory(**{**vars(KNOWN), "horizon": math.inf})
    method = SBCGF(preset="theory", theory=theory, lower_period=5, lower_batch_size=5).for_problem(plain)
    delta = 0.05 / (8 * 9)
    slack = 4 * 12.0 * (math.log(8) / 8) * (3.0 + 2.0 * 12.0) * math.sqrt(math.log(12 / delta))
    assert method.slack(np.array([7]))[0] == pytest.approx(slack)


def test_the_slack_is_that_of_the_step_which_is_given(plain):
    method = SBCGF(preset="theory", theory=Theory(**{**vars(KNOWN), "horizon": 400.0}), step=0.5).for_problem(plain)
    slack = 4 * 12.0 * 0.5 * (3.0 + 2.0 * 12.0) * math.sqrt(math.log(12 * 400 / 0.05))
    assert method.slack(np.array([5]))[0] == pytest.approx(slack)


def test_all_of_few_samples_are_looked_at(plain):
    A = np.ones((200, 18))
    A[7] *= 1e3
    rare = Problem(plain.upper, LeastSquares(A, np.zeros(200)), plain.domain)
    assert Theory().for_problem(rare, 10.0).lower_smoothness == pytest.approx(18e6)


@pytest.mark.parametrize("horizon, window", [(None, (20, 40)), (math.inf, (32, 40))])
def test_the_answer_of_a_run_that_is_not_convex_is_the_point_of_least_stationarity_in_its_second_half(
    fairness, horizon, window
):
    theory = Theory(**{**vars(KNOWN), "horizon": horizon, "lower_slope": 1e-3, "lower_smoothness": 1e-4})
    method = SBCGF(preset="theory", theory=theory, upper_period=1, lower_period=1)
    x = np.zeros(18)
    result = minimize(fairness, method, x0=x, max_queries=None, max_iterations=40)

    least, anchor = math.inf, fairness.lower.value(x)
    for t in range(40):
        _, df = fairness.upper.value_and_gradient(x)
        g, dg = fairness.lower.value_and_gradient(x)
        s = fairness.domain.cut_lmo(df, dg, anchor - g + result.method.slack(np.array([t]))[0] + dg @ x).point
        if window[0] <= t < window[1] and df @ (x - s) < least:
            least, best = df @ (x - s), x
        x = x + result.method.step(np.array([t]))[0] * (s - x)
    np.testing.assert_allclose(result.last, best, atol=1e-12)
    assert not np.allclose(result.last, x, atol=1e-9)


def test_a_run_by_theory_tells_its_constants_and_goes_on_from_a_checkpoint(plain, tmp_path):
    whole = minimize(plain, SBCGI(preset="theory"), max_queries=4000)
    for budget in (1000, 4000):
        part = minimize(plain, SBCGI(preset="theory", theory=whole.method.theory), max_queries=budget)
    np.testing.assert_array_equal(part.x, whole.x)
    saved = [minimize(plain, SBCGI(preset="theory"), max_queries=4000, checkpoint=tmp_path / "run") for _ in range(2)]
    np.testing.assert_array_equal(saved[1].x, whole.x)
    assert whole.method.theory.lower_slope > 0.0


def test_python_functions_are_looked_at_too(plain):
    through = Problem(callable_copy(plain.upper, 12, 18), callable_copy(plain.lower, 12, 18), plain.domain)
    assert Theory().for_problem(through, 10.0) == Theory().for_problem(plain, 10.0)


def test_an_objective_without_noise_has_none(plain):
    exact = Problem(make_objective("squared-norm"), plain.lower, plain.domain)
    found = Theory().for_problem(exact, 10.0)
    assert found.upper_noise == 0.0 and found.upper_smoothness == pytest.approx(1.0)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Theory(confidence=1.0), "`confidence` must be a probability"),
        (lambda: Theory(c=0.0), "`c` must be"),
        (lambda: Theory(lower_slope=-1.0), "`lower_slope` must be"),
    ],
)
def test_wrong_constants_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_theory_is_for_its_preset_only(plain):
    with pytest.raises(ValueError, match='`theory` is for preset="theory" only'):
        minimize(plain, SBCGI(theory=Theory()), max_queries=1000)
    with pytest.raises(ValueError, match="`preset` of SBCGIM must be one of"):
        SBCGIM(preset="theory")


def test_theory_wants_exact_gradients_often_enough(plain):
    with pytest.raises(ValueError, match="a `lower_period` of at most `lower_batch_size`, got 1000 and 1"):
        SBCGF(preset="theory", theory=KNOWN, lower_batch_size=1, lower_period=1000).for_problem(plain)


def test_theory_asks_whether_the_upper_objective_is_convex(plain):
    unknown = FiniteSum(12, 18, lambda x, i: plain.upper.value_and_gradient(x, i))
    with pytest.raises(ValueError, match="convex"):
        minimize(Problem(unknown, plain.lower, plain.domain), SBCGF(preset="theory", theory=KNOWN), max_queries=1000)


def test_gradients_from_which_constants_are_estimated_are_counted():
    rows = np.arange(12.0).reshape(4, 3)
    problem = Problem(LeastSquares(rows, np.ones(4)), LeastSquares(rows + 1.0, np.ones(4)), L1Ball(1.0))
    names = ("upper_smoothness", "lower_smoothness", "lower_slope", "upper_noise", "lower_noise", "value_noise")
    known = Theory(**dict.fromkeys(names, 1.0))
    with interpreted():
        given, found = (
            minimize(problem, SBCGI(preset="theory", theory=theory), max_iterations=5, x0=np.zeros(3))
            for theory in (known, Theory())
        )
    per_sample = 4 + 4 + 2 + 3  # random points, atoms, the atoms of each sample, rounds of a power iteration
    assert np.subtract(found.evaluations, given.evaluations).tolist() == [4 * per_sample] * 2
    assert found.queries == given.queries
