"""Schedules are vectorised functions of the iteration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import SBCGF, SBCGI, constant, power
from tiebreak.schedules import as_schedule, evaluate

T = np.arange(5)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 2 / 3, 1.0])
def test_a_power_law_is_its_formula(exponent):
    np.testing.assert_allclose(power(0.3, exponent, shift=2.0)(T), 0.3 * (T + 2.0) ** -exponent, rtol=1e-15)


def test_numbers_and_functions_become_schedules():
    assert as_schedule(0.5, "step") == constant(0.5)
    np.testing.assert_array_equal(evaluate(as_schedule(0.5, "step"), T, "step"), np.full(5, 0.5))
    np.testing.assert_array_equal(evaluate(lambda t: 1 / (t + 1), T, "step"), 1 / (T + 1))
    np.testing.assert_array_equal(evaluate(lambda t: 0.25, T, "step"), np.full(5, 0.25))


def test_a_function_of_one_iteration_works_too():
    np.testing.assert_allclose(evaluate(lambda t: math.exp(-t) if t > 1 else 1.0, T, "step"), [1, 1, *np.exp([-2, -3, -4])])


@pytest.mark.parametrize(
    ("schedule", "largest", "message"),
    [
        (lambda t: 2.0 + 0 * t, 1.0, "`step` must be between 0 and 1, got 2 at iteration 0"),
        (lambda t: 1.0 - t, math.inf, "`step` must be finite and ≥ 0, got -1 at iteration 2"),
        (lambda t: np.where(t == 3, np.nan, 0.0), 1.0, "`step` must be between 0 and 1, got nan at iteration 3"),
        (lambda t: np.where(t == 3, np.inf, 0.0), math.inf, "`step` must be finite and ≥ 0, got inf at iteration 3"),
    ],
)
def test_values_that_make_no_sense_are_named(schedule, largest, message):
    with pytest.raises(ValueError, match=message):
        evaluate(schedule, T, "step", largest)


def test_the_constants_of_the_paper():
    """γ_{t+1} = 0.01/(t + 2), K_t = 10⁻⁴/√(t + 1), weights 1/(t + 1); γ = 10⁻⁵; first point with 0.1/(t + 2)."""
    stormy, finite = SBCGI(preset="paper"), SBCGF(preset="paper")
    np.testing.assert_allclose(stormy.given("step")(T), 0.01 / (T + 2))
    np.testing.assert_allclose(stormy.given("slack")(T), 1e-4 / np.sqrt(T + 1))
    np.testing.assert_allclose(stormy.given("momentum")(T), 1 / (T + 1))
    np.testing.assert_allclose(finite.given("step")(T), np.full(5, 1e-5))
    np.testing.assert_allclose(finite.given("slack")(T), 1e-4 / np.sqrt(T + 1))
    np.testing.assert_allclose(finite.seeks_with.given("step")(T), 0.1 / (T + 2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SBCGI(preset="papier"),
            "`preset` of SBCGI must be one of 'auto', 'paper', 'paper-dictionary'",
        ),
        (lambda: SBCGI(batch_size=0), "`batch_size` must be a whole number ≥ 1, got 0"),
        (lambda: SBCGF(upper_period=-1), "`upper_period` must be a whole number ≥ 1, got -1"),
        (
            lambda: SBCGF(step="fast"),
            "`step` must be a finite number between 0 and 1, or a function of the iteration t = 0, 1, …, got 'fast'",
        ),
    ],
)
def test_parameters_that_make_no_sense_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
