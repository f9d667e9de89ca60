"""What an estimate draws is what it counts and what its cost says, and its parameters are declared once."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_objective

from tiebreak import SBCGI
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import Moment, keys_of
from tiebreak.estimates import Exact, Once, OneBatch, Sampled, Storm, cost, estimate, exact, memory_for, spider
from tiebreak.methods.parameters import parameters_of

T = np.arange(12)


def plans(objective):
    momentum = np.full(T.size, 0.3)
    return {
        "exact": exact(objective),
        "sampled": Sampled(3),
        "storm": Storm(momentum, 3, OneBatch()),
        "storm from all": Storm(momentum, 3, exact(objective)),
        "spider": spider(objective, 3, 4),
    }


@pytest.fixture
def objective():
    return make_objective("least-squares", seed=1)


@pytest.mark.parametrize("name", ["exact", "sampled", "storm", "storm from all", "spider"])
def test_the_cost_is_what_is_spent(objective, name):
    plan, key = plans(objective)[name], keys_of([0]).upper
    memory, x = memory_for(plan, objective.dimension), np.zeros(objective.dimension)
    spent = []
    with interpreted():
        for t in T:
            before = memory.spent.copy()
            estimate(plan, objective, memory, x, x, t, Moment(key, t, 0, 0))
            spent.append(memory.spent - before)
    np.testing.assert_array_equal(np.transpose(spent), cost(plan, T))


@pytest.mark.parametrize("name", ["storm from all", "spider"])
def test_where_the_point_stays_an_estimate_from_an_exact_one_stays_exact(objective, name):
    plan, key = plans(objective)[name], keys_of([0]).upper
    memory, x = memory_for(plan, objective.dimension), np.linspace(-1.0, 1.0, objective.dimension)
    value, gradient = objective.value_and_gradient(x)
    with interpreted():
        for t in T[: 4 if name == "spider" else 1]:  # a fresh batch moves STORM's
            estimate(plan, objective, memory, x, x, t, Moment(key, t, 0, 0))
            np.testing.assert_allclose(memory.factor[0] * memory.direction, gradient, rtol=1e-12, atol=1e-12)
            assert memory.value[0] == pytest.approx(value)


def test_what_is_made_once_costs_once(objective):
    queries, evaluations = cost(Once(exact(objective)), T)
    assert queries.tolist() == evaluations.tolist() == [objective.n_samples, *[0] * 11]


def test_a_plan_without_a_cost_is_named():
    with pytest.raises(NotImplementedError, match="`cost` is not registered for dict"):
        cost({}, T)


def test_parameters_are_documented_and_listed_from_their_declaration():
    batch = next(each for each in parameters_of(SBCGI) if each.name == "batch_size")
    assert batch.kind == "int" and batch.meaning in SBCGI.__doc__
    assert isinstance(exact(make_objective("least-squares", seed=1)), Exact)
    with pytest.raises(ValueError, match="`batch_size` must be a whole number ≥ 1, got 0"):
        batch.checked(0)
    with pytest.raises(TypeError, match="positional"):
        SBCGI(0.1)
