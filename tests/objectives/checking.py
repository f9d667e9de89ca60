"""What every objective must do, shared by the tests of the families."""

from __future__ import annotations

import numpy as np

from tiebreak.engine import compilable, interpreted
from tiebreak.engine.randomness import Moments
from tiebreak.objectives import accumulate, draw


def check_accumulate(objective, dimension, seed=4):
    """Both points' weighted gradients are added to what is there, for plain and drawn batches, compiled and interpreted."""
    rng = np.random.default_rng(seed)
    x, y, out = rng.standard_normal((3, dimension))
    plain = rng.integers(0, objective.n_samples, 7)
    drawn = draw(objective, next(Moments(seed)), np.zeros(7, dtype=np.int64))
    assert compilable(objective)
    for batch in (plain, drawn):
        before = batch.copy()
        alone_x, alone_y = np.zeros(dimension), np.zeros(dimension)
        value_x, _ = accumulate(objective, batch, x, 1.0, x, 0.0, alone_x)
        value_y, _ = accumulate(objective, batch, y, 1.0, y, 0.0, alone_y)
        expected = out + 0.7 * alone_x - 0.4 * alone_y
        compiled = out.copy()
        values = accumulate(objective, batch, x, 0.7, y, -0.4, compiled)
        np.testing.assert_allclose(values, (value_x, value_y), rtol=1e-12)
        np.testing.assert_allclose(compiled, expected, rtol=1e-11, atol=1e-13)
        with interpreted():
            plainly = out.copy()
            values = accumulate(objective, batch, x, 0.7, y, -0.4, plainly)
        np.testing.assert_allclose(values, (value_x, value_y), rtol=1e-12)
        np.testing.assert_allclose(plainly, expected, rtol=1e-11, atol=1e-13)
        np.testing.assert_array_equal(batch, before)


def check_same_draw(objective, size=1000):
    """Return a batch, after making sure that it is the same interpreted."""
    compiled = draw(objective, next(Moments(0)), np.zeros(size, dtype=np.int64)).copy()
    with interpreted():
        plain = draw(objective, next(Moments(0)), np.zeros(size, dtype=np.int64))
    np.testing.assert_array_equal(compiled, plain)
    return compiled


def check_uniform_draw(objective):
    """Each index is drawn as often as any other."""
    n = objective.n_samples
    drawn = np.bincount(check_same_draw(objective, 500 * n), minlength=n)
    assert drawn.size == n
    assert np.abs(drawn - 500).max() < 5 * np.sqrt(500)


def check_unbiased(objective, dimension, size, draws=4000):
    """The mean over many batches is the value and the gradient on all samples, up to five standard errors."""
    x, moments = np.random.default_rng(0).standard_normal(dimension), Moments(0)
    value, gradient = objective.value_and_gradient(x)
    seen = np.empty((draws, dimension + 1))
    batch = np.zeros(size, dtype=np.int64)
    for k in range(draws):
        found = np.zeros(dimension)
        seen[k, 0], _ = accumulate(objective, draw(objective, next(moments), batch), x, 1.0, x, 0.0, found)
        seen[k, 1:] = found
    deviation = seen.mean(axis=0) - np.append(value, gradient)
    allowed = 5.0 * seen.std(axis=0) / np.sqrt(draws) + 1e-12
    assert (np.abs(deviation) < allowed).all(), (deviation / allowed).round(2)
