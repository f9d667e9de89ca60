"""How many minimisers a regression has, and the solver that tells it."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm, certify, data
from tiebreak.studies import demo, regression
from tiebreak.studies.ties import Minimisers, least_squares, minimisers

RADII = pytest.mark.parametrize("radius", [0.3, 2.0, 50.0])


def random_data(n, d, seed=0, rank=None):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) if rank is None else rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return A, rng.standard_normal(n)


@RADII
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 6), (6, 1), (12, 30), (30, 12)])
def test_a_minimiser_is_proven_to_rounding(n, d, radius):
    A, b = random_data(n, d)
    found = least_squares(A, b, radius)
    assert np.abs(found.x).sum() <= radius * (1.0 + 1e-12)
    certificate = certify(Problem(SquaredNorm(), LeastSquares(A, b), L1Ball(radius)), found.x * (1.0 - 1e-15))
    assert certificate.lower_gap_bound <= 1e-12 * (1.0 + radius)
    assert found.gap <= 1e-13 * (1.0 + radius)


@pytest.mark.parametrize("scales", [np.ones(20), np.logspace(-6, 6, 20), np.r_[np.zeros(5), np.ones(15)]])
def test_columns_of_all_scales_and_zero_ones_are_no_hurdle(scales):
    A, b = random_data(10, 20)
    found = least_squares(A * scales, b, 1.0)
    assert found.gap <= 1e-9 * 0.5 * np.mean(b**2)


def test_the_target_0_has_the_centre():
    assert not least_squares(np.eye(3), np.zeros(3), 1.0).x.any()


def test_where_the_ball_binds_more_features_than_samples_have_one_minimiser():
    A, b = random_data(12, 30)
    found = minimisers(A, b, 0.5)
    assert (found.dimension, found.words) == (0, "one minimiser")
    assert found.lower > 0.0
    assert found.rank == found.atoms < 12


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
    chosen = np.flatnonzero(least_squares(A, b, 0.5).x)
    twice = np.column_stack([A, A[:, chosen[:2]], -A[:, chosen[0]]])
    assert minimisers(twice, b, 0.5).dimension == 3
    idle = np.setdiff1d(np.arange(30), chosen)
    assert minimisers(np.column_stack([A, A[:, idle[:4]]]), b, 0.5).dimension == 0  # equal, and not in use


def test_a_minimiser_at_the_end_of_a_face_of_equal_prices_is_not_told():
    # The residuals of the atoms are (1, 0), (1, 1) and (1, 2): of one price, in one line, and the first is nearest to 0.
    found = minimisers(np.array([[-1.0, -1.0, -1.0], [-1.0, 0.0, 1.0]]), np.array([-2.0, -1.0]), 1.0)
    assert (found.dimension, found.atoms, found.rank) == (None, 3, 2)
    assert found.words == "an unknown number of minimisers: it cannot be told at this accuracy"


@pytest.mark.parametrize("seed", [0, 1])
def test_generated_page_views_have_no_tie_and_planted_ones_have_one(seed):
    parts = data.split(data.pageviews(seed), seed)
    found = minimisers(*parts.train, regression.RADIUS)
    assert found.dimension == 0
    assert found.lower > 1e-7 * 0.5 * np.mean(parts.train.b**2)
    assert found.gap < 1e-12 * 0.5 * np.mean(parts.train.b**2)
    if seed == 0:
        assert found.atoms == found.rank == 216
    tied = regression.planted(seed)
    found = minimisers(*tied.train, regression.RADIUS)
    assert found.dimension == 730 - 356


def test_the_demo_says_whether_there_is_a_tie():
    assert "has one minimiser, although there are more features than samples: the ball binds" in demo.tie(
        Minimisers(0, 1.0, 0.0, 216, 216)
    )
    assert "many minimisers, a face of dimension 3: there is a tie to break." in demo.tie(Minimisers(3, 0.0, 0.0, 9, 6))
    assert "cannot be told" in demo.tie(Minimisers(None, 0.0, 0.0, 9, 6))
