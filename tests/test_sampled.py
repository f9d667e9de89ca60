"""Bounds from fresh samples fail no more often than they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tiebreak import L1Ball, LInfBall, Problem, SquaredNorm, Stream, certify
from tiebreak.engine import interpreted

REPEATS, DELTA = 300, 0.4
COSTS = np.array([1.0, 0.0, 0.0])  # of g: at its minimisers x_1 = −1
GAINS = np.array([-0.5, 1.0, 0.0])  # of f: at the solution x_2 = −1
X = np.array([0.1, -0.2, 0.3])


@pytest.fixture(autouse=True)
def without_compiling():
    with interpreted():
        yield


def linear(mean):
    """The expectation of ⟨u, x⟩, for which the bounds are as tight as noise allows."""

    def draw(rng, size):
        return mean + rng.standard_normal((size, mean.size)) * (mean > 0.0)

    return Stream(draw, lambda x, u: (float(np.mean(u @ x)), u.mean(axis=0)), mean.size, convex=True)


def share_allowed(probability):
    return probability + 3.0 * np.sqrt(probability * (1.0 - probability) / REPEATS)


def test_the_share_of_bounds_that_fail_is_as_announced():
    problem = Problem(linear(GAINS), linear(COSTS), LInfBall(1.0, 3))
    f_gap, g_gap = GAINS @ X - (0.5 - 1.0), COSTS @ X - (-1.0)
    better = [np.array([-1.0, 0.0, 0.0])]
    found = [certify(problem, X, samples=1000, delta=DELTA, seed=seed, points=better) for seed in range(REPEATS)]
    failed = np.array(
        [
            [
                f_gap > each.upper_bound_gap,
                g_gap > each.lower_bound_gap,
                abs(each.upper - GAINS @ X) > each.upper_error,
                abs(each.lower - COSTS @ X) > each.lower_error,
            ]
            for each in found
        ]
    )
    assert failed.any(axis=1).mean() <= share_allowed(DELTA)
    assert (failed.mean(axis=0) <= share_allowed(DELTA / 4)).all()
    assert failed.mean(axis=0)[1:].min() > DELTA / 16  # tight where the expectation of the bound is the gap
    assert np.mean([each.upper_bound_gap for each in found]) < f_gap + 0.3


def test_bounds_hold_near_a_solution_where_noise_is_larger_than_the_gap():
    def squares(x, u):
        return 0.5 * float(np.mean((u @ x) ** 2)), (u @ x) @ u / len(u)

    def draw(rng, size):
        return rng.standard_normal((size, 4)) * np.array([1.0, 1.0, 0.0, 0.0])

    problem = Problem(SquaredNorm(np.ones(4)), Stream(draw, squares, 4, convex=True), L1Ball(2.0))
    best = np.array([0.0, 0.0, 1.0, 1.0])
    found = [certify(problem, best, samples=400, delta=DELTA, seed=seed, points=[np.zeros(4)]) for seed in range(100)]
    assert all(each.upper_bound_gap >= 0.0 for each in found)
    assert all(each.lower_bound_gap >= 0.0 for each in found)


def test_more_samples_make_tighter_bounds():
    problem = Problem(linear(GAINS), linear(COSTS), LInfBall(1.0, 3))
    few, many = (certify(problem, X, samples=samples) for samples in (200, 20_000))
    assert many.upper_bound_gap < few.upper_bound_gap
    assert many.lower_bound_gap < few.lower_bound_gap
    assert (few.samples, many.samples) == (200, 20_000)
    assert few.confidence == 0.95


def test_there_is_no_upper_gap_if_f_is_not_known_to_be_convex():
    problem = Problem(replace(linear(GAINS), convex=None), linear(COSTS), LInfBall(1.0, 3))
    found = certify(problem, X)
    assert np.isnan(found.upper_bound_gap)
    assert found.stationarity == certify(Problem(linear(GAINS), linear(COSTS), LInfBall(1.0, 3)), X).upper_bound_gap
