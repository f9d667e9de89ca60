"""Samples drawn in proportion to how much they bend: right shares, the same mean, and smaller constants."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import as_kind, make_objective
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tiebreak import LeastSquares, Logistic, SquaredNorm
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import Moment, key_of
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.uneven import Uneven, aliases


def probabilities(chances, others):
    """Return how likely each sample is, from the tables that it is drawn by."""
    likely = chances.copy()
    np.add.at(likely, others, 1.0 - chances)
    return likely / chances.size


def uneven_rows(n=60, d=4, seed=0, kind="dense", loss=LeastSquares):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * np.exp(2.0 * rng.standard_normal((n, 1)))
    A[3] = 0.0
    b = rng.standard_normal(n)
    return loss(as_kind(A, kind), b if loss is LeastSquares else np.sign(b), sample_weight=rng.random(n) + 0.1)


sizes = st.one_of(st.just(0.0), st.floats(1e-12, 1e12))


@settings(max_examples=200)
@given(arrays(np.float64, st.integers(1, 40), elements=sizes).filter(lambda a: a.max() > 0.0))
def test_tables_have_the_shares_that_they_are_made_of(values):
    shares = values / values.mean()
    chances, others = aliases(shares)
    assert ((chances >= 0.0) & (chances <= 1.0)).all()
    np.testing.assert_allclose(probabilities(chances, others), shares / shares.size, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [LeastSquares, Logistic])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_the_mean_over_all_draws_is_the_gradient(kind, loss):
    objective = uneven_rows(kind=kind, loss=loss)
    uneven = objective.evened()
    assert isinstance(uneven, Uneven)
    likely, rng = probabilities(uneven.chances, uneven.others), np.random.default_rng(1)
    x, y = rng.standard_normal((2, objective.dimension))
    mean, largest = np.zeros(objective.dimension), 0.0
    for i, chance in enumerate(likely):
        change = np.zeros(objective.dimension)
        accumulate(uneven, np.array([i]), x, 1.0, y, -1.0, change)
        mean += chance * change
        largest = max(largest, np.linalg.norm(change) / np.linalg.norm(x - y))
    expected = objective.value_and_gradient(x)[1] - objective.value_and_gradient(y)[1]
    np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-9 * np.linalg.norm(expected))
    assert largest <= (1.0 + 1e-9) * uneven.sample_lipschitz < 0.5 * objective.sample_lipschitz


def test_rows_of_like_length_are_drawn_evenly():
    even = LeastSquares(np.eye(4), np.ones(4))
    assert even.evened() is even
    for empty in (LeastSquares(np.zeros((3, 2)), np.ones(3)), LeastSquares(np.ones((1, 2)), np.ones(1)), SquaredNorm()):
        assert empty.evened() is empty


def test_draws_are_those_of_the_tables_interpreted_and_compiled():
    uneven = uneven_rows().evened()
    moment = Moment(key_of(1, 2), 7, 0, 0)
    drawn = draw(uneven, moment, np.empty(20001, dtype=np.int64)).copy()
    with interpreted():
        np.testing.assert_array_equal(draw(uneven, moment, np.empty(2001, dtype=np.int64))[:2000], drawn[:2000])
    likely = probabilities(uneven.chances, uneven.others)
    found = np.bincount(drawn, minlength=likely.size) / drawn.size
    assert found[3] == 0.0  # an empty row says nothing
    np.testing.assert_allclose(found, likely, atol=5.0 * np.sqrt(0.25 / drawn.size))


def test_sums_and_multiples_draw_their_terms_so():
    rows, other = uneven_rows(), make_objective("huber", seed=3)
    ridge = 2.0 * rows + 0.5 * SquaredNorm()
    assert ridge.evened().terms[-1].objective.others.size == rows.n_samples
    assert ridge.sample_lipschitz == pytest.approx(2.0 * rows.sample_lipschitz + 0.5)
    assert ridge.evened().sample_lipschitz < 0.5 * ridge.sample_lipschitz
    both = LeastSquares(np.ones((2, 18)), np.ones(2)) + other
    total = 2 + other.n_samples
    assert both.sample_lipschitz == pytest.approx(max(total / 2 * 18.0, total / other.n_samples * other.sample_lipschitz))
