"""The integral equations of Hansen's Regularization Tools."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.data import integral_equation


def phillips_side(n):
    s = np.abs(-6.0 + (np.arange(n) + 0.5) * 12.0 / n)
    return (6.0 - s) * (1.0 + 0.5 * np.cos(np.pi * s / 3.0)) + 9.0 / (2.0 * np.pi) * np.sin(np.pi * s / 3.0)


def foxgood_side(n):
    s = (np.arange(n) + 0.5) / n
    return ((1.0 + s**2) ** 1.5 - s**3) / 3.0


def baart_side(n):
    s = (np.arange(n) + 0.5) * np.pi / (2 * n)
    return 2.0 * np.sinh(s) / s


SIDES = {"phillips": phillips_side, "foxgood": foxgood_side, "baart": baart_side}


@pytest.mark.parametrize("name", SIDES)
def test_the_right_side_is_hansens_up_to_the_error_of_the_midpoint_rule(name):
    errors = [np.abs(integral_equation(name, n).b - SIDES[name](n)).max() for n in (100, 200, 400)]
    assert errors[0] < 2e-3
    assert errors[1] < 0.3 * errors[0]  # of second order
    assert errors[2] < 0.3 * errors[1]


@pytest.mark.parametrize("name", SIDES)
def test_the_known_solution_solves_the_equations_and_is_not_negative(name):
    A, b, x = integral_equation(name, 60)
    assert A.shape == (60, 60)
    np.testing.assert_array_equal(A @ x, b)
    assert x.min() >= 0.0


@pytest.mark.parametrize(("name", "kept"), [("phillips", 49), ("foxgood", 5), ("baart", 4)])
def test_few_of_a_thousand_singular_values_are_above_a_ten_thousandth(name, kept):
    sizes = np.linalg.svd(integral_equation(name).A, compute_uv=False)
    assert (sizes > 1e-4 * sizes[0]).sum() == kept


def test_only_three_equations_have_a_name():
    with pytest.raises(ValueError, match="`name` must be one of phillips, foxgood, baart, got 'shaw'"):
        integral_equation("shaw")
    with pytest.raises(ValueError, match="`name` must be one of phillips, foxgood, baart, got"):
        integral_equation(["baart"])
    with pytest.raises(ValueError, match="`n`"):
        integral_equation("baart", 1)
