"""How many minimisers a regression has."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import ActiveSet, L1Ball, LeastSquares, Problem, SquaredNorm, data, minimize
from tiebreak.studies import regression
from tiebreak.studies.ties import Minimisers, minimisers


def random_data(n, d, seed=0, rank=None):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) if rank is None else rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return A, rng.standard_normal(n)


def test_where_the_ball_binds_more_features_than_samples_have_one_minimiser():
    A, b = random_data(12, 30)
    found = minimisers(A, b, 0.5)
    assert (found.dimension, found.words) == (0, "one minimiser")
    assert found.lower > 0.0


def test_where_the_ball_has_room_the_minimisers_are_all_points_of_a_fit():
    A, b = random_data(12, 30)
    found = minimisers(A, b, 50.0)
    assert (found.dimension, found.words) == (18, "many minimisers, a face of dimension 18")
    assert found.lower < 1e-25
    A, b = random_data(30, 12, rank=7)  # g* > 0, and the gradient vanishes all the same
    found = minimisers(A, b, 50.0)
    assert found.dimension == 5
    assert found.lower > 0.01
    A, b = random_data(30, 12)
    assert minimisers(A, b, 50.0).dimension == 0


def test_equal_features_are_a_tie_in_a_ball_that_binds():
    A, b = random_data(12, 30)
    problem = Problem(SquaredNorm(), LeastSquares(A, b), L1Ball(0.5))
    chosen = np.flatnonzero(minimize(problem, ActiveSet(level="lower")).x)
    twice = np.column_stack([A, A[:, chosen[:2]], -A[:, chosen[0]]])
    assert minimisers(twice, b, 0.5).dimension == 3
    idle = np.setdiff1d(np.arange(30), chosen)
    assert minimisers(np.column_stack([A, A[:, idle[:4]]]), b, 0.5).dimension == 0  # equal, and not in use


def test_a_minimiser_at_the_end_of_a_face_of_equal_prices_is_the_only_one():
    # The residuals of the atoms are (1, 0), (1, 1) and (1, 2): of one price, in one line, and the first is nearest to 0.
    found = minimisers(np.array([[-1.0, -1.0, -1.0], [-1.0, 0.0, 1.0]]), np.array([-2.0, -1.0]), 1.0)
    assert found.dimension == 0


def test_what_is_not_known_is_said():
    assert Minimisers(None, 1.0, 0.0).words == "an unknown number of minimisers: it cannot be told at this accuracy"


@pytest.mark.parametrize("seed", [0, 1])
def test_generated_page_views_have_no_tie_and_planted_ones_have_one(seed):
    parts = data.split(data.pageviews(seed), seed)
    found = minimisers(*parts.train, regression.RADIUS)
    assert found.dimension == 0
    assert found.lower > 1e-7 * 0.5 * np.mean(parts.train.b**2)
    assert found.gap < 1e-12 * 0.5 * np.mean(parts.train.b**2)
    tied = regression.planted(seed)
    found = minimisers(*tied.train, regression.RADIUS)
    assert found.dimension == 730 - 356
