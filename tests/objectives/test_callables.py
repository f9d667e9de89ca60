"""Objectives computed by Python functions."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import FiniteSum, NonFiniteError, OracleError


def test_the_function_gets_a_read_only_point_and_the_indices():
    seen = []

    def squares(x, indices):
        seen.append((x.flags.writeable or indices.flags.writeable, indices.tolist()))
        return 0.5 * float(x @ x), x.copy()

    value, gradient = FiniteSum(3, 2, squares).value_and_gradient([3.0, 4.0], [2, 0, 2])
    assert value == 12.5
    assert gradient.tolist() == [3.0, 4.0]
    assert seen == [(False, [2, 0, 2])]


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ((1.0, [0.0]), OracleError, "must return a gradient of shape \\(2,\\), got \\(1,\\)"),
        ((1.0, [[0.0, 0.0]]), OracleError, "must return a gradient of shape"),
        (1.0, OracleError, "must return \\(value, gradient\\), a number and an array, got 1.0"),
        (None, OracleError, "must return \\(value, gradient\\)"),
        ((1.0, [0.0, 1j]), OracleError, "must return \\(value, gradient\\)"),
        (("a", [0.0, 0.0]), OracleError, "must return \\(value, gradient\\)"),
        ((np.nan, [0.0, 0.0]), NonFiniteError, "returned NaN or infinity in the value"),
        ((0.0, [0.0, np.inf]), NonFiniteError, "returned NaN or infinity in the gradient"),
    ],
)
def test_a_wrong_answer_is_named(answer, error, message):
    def oracle(x, indices):
        return answer

    with pytest.raises(error, match=f"oracle` {message}"):
        FiniteSum(3, 2, oracle).value([0.0, 0.0])


def test_an_exception_is_passed_on_with_its_cause():
    def oracle(x, indices):
        raise KeyError("lost")

    with pytest.raises(OracleError, match="oracle` raised KeyError: 'lost'") as caught:
        FiniteSum(3, 2, oracle).value([0.0, 0.0])
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FiniteSum(0, 2, len), "`n` must be a whole number ≥ 1, got 0"),
        (lambda: FiniteSum(2.5, 2, len), "`n` must be a whole number ≥ 1, got 2.5"),
        (lambda: FiniteSum(2, -1, len), "`dimension` must be a whole number ≥ 1"),
        (lambda: FiniteSum(2, 2, 3), "`value_and_grad` must be a function"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("wrong", [{"convex": "no"}, {"convex": 2}, {"lipschitz": "abc"}, {"floor": None}])
def test_what_is_said_of_a_function_is_checked(wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be"):
        FiniteSum(3, 2, lambda x, indices: (0.0, np.zeros(2)), **wrong)
