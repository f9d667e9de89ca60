"""Polytopes stated by equations and bounds are the sets that they are of."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, COMPOSED
from scipy.optimize import linprog

from tiebreak import GroupBall, L2Ball
from tiebreak.domains.atoms import has_vertices
from tiebreak.domains.lifted import coordinates, lifted
from tiebreak.engine import interpreted

SETS = [case for case in [*CASES, *COMPOSED] if has_vertices(case.make(np.random.default_rng(0), 4)[0])]


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


@pytest.mark.parametrize("case", SETS, ids=lambda case: case.name)
def test_linear_functions_have_the_same_minimum_over_both(case):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        domain, d = case.make(rng, min(6, case.largest))
        form, c = lifted(domain, d), rng.standard_normal(d)
        bounds = np.column_stack([form.lower, form.upper])
        found = linprog(form.lift.T @ c, A_eq=form.rows, b_eq=form.sides, bounds=bounds, method="highs")
        assert found.fun == pytest.approx(c @ domain.lmo(c), rel=1e-7, abs=1e-7 * domain.diameter)
        assert case.violation(domain, form.lift @ found.x) <= 1e-6


@pytest.mark.parametrize("case", SETS, ids=lambda case: case.name)
def test_coordinates_of_a_point_give_the_point(case):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        domain, d = case.make(rng, min(6, case.largest))
        corners = [domain.lmo(rng.standard_normal(d)) for _ in range(3)]
        form = lifted(domain, d)
        for x in (corners[0], np.mean(corners, axis=0), domain.middle(d)):
            w = coordinates(domain, x)
            room = 1e-12 * (form.sizes + np.abs(w))
            np.testing.assert_allclose(form.lift @ w, x, atol=1e-12 * (np.abs(x).max() + domain.diameter))
            np.testing.assert_allclose(form.rows @ w, form.sides, rtol=1e-11, atol=1e-11 * form.sizes.max())
            assert (w >= form.lower - room).all()
            assert (w <= form.upper + room).all()


def test_inside_a_ball_no_coordinate_is_at_its_bound():
    for case in SETS:
        if case.name in ("L1Ball", "WeightedL1Ball", "KSparse"):
            domain, d = case.make(np.random.default_rng(0), 6)
            inner = 0.9 * domain.lmo(np.arange(1.0, d + 1.0))
            form, w = lifted(domain, d), coordinates(domain, inner)
            assert (np.minimum(w - form.lower, form.upper - w) > 1e-6 * form.sizes).all()


def test_sets_that_are_no_polytopes_have_no_such_form():
    assert lifted(L2Ball(1.0), 3) is None
    assert coordinates(L2Ball(1.0), np.zeros(3)) is None
    curved, corners = GroupBall([0, 0, 1], 1.0), GroupBall([0, 1, 2], 1.0)
    assert lifted(curved, 3) is None
    assert coordinates(curved, np.zeros(3)) is None
    assert lifted(corners, 3).sizes.size == coordinates(corners, np.zeros(3)).size == 7
