"""Objectives computed by Python functions."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import (
    FiniteSum,
    L1Ball,
    LeastSquares,
    NonFiniteError,
    OnPart,
    OracleError,
    Problem,
    Product,
    SquaredNorm,
    Stream,
)
from tiebreak.engine.randomness import Moments
from tiebreak.objectives import Oracle, accumulate, draw


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


def test_a_rehearsal_has_the_same_size_and_calls_no_function_of_the_user():
    def refuse(*_):
        raise AssertionError("a rehearsal must not call this")

    finite = FiniteSum(5, 2, refuse, convex=True, lipschitz=3.0)
    stream = Stream(refuse, refuse, 2, convex=True, value_range=(1.0, 2.0), gradient_bound=1.0)
    squares = LeastSquares(np.eye(4, 2), np.ones(4))
    both = Product(u=(L1Ball(1.0), 2), w=(L1Ball(1.0), 2))
    placed = Problem(SquaredNorm(), OnPart(finite, "w"), both).lower
    for objective in (finite, stream, 2.0 * finite, finite + 0.5 * squares, stream + SquaredNorm(), placed):
        rehearsal, d = objective.rehearsal(), objective.dimension
        assert type(rehearsal) is type(objective)
        for fact in ("dimension", "n_samples", "convex", "strong_convexity", "floor"):
            assert getattr(rehearsal, fact) == getattr(objective, fact)
        batch = draw(rehearsal, next(Moments(0)), np.zeros(3, dtype=np.int64))
        accumulate(rehearsal, batch, np.zeros(d), 1.0, np.zeros(d), 0.5, np.zeros(d))
    assert squares.rehearsal() is squares


def test_an_oracle_that_compiles_something_itself_rehearses():
    class Compiled(Oracle):
        rehearses = True

    objective = FiniteSum(5, 2, Compiled())
    assert objective.rehearsal() is objective
