"""What is special about the hull of points."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import CutStatus
from tiebreak.domains import Hull

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hull([1.0, 2.0]), r"`points` must be a non-empty matrix, one point per row, got an array of shape \(2,\)"),
        (lambda: Hull(np.empty((0, 3))), r"`points` must be a non-empty matrix, .* shape \(0, 3\)"),
        (lambda: Hull([[1.0, math.nan]]), r"`points` must hold finite numbers, got nan at \[0, 1\]"),
        (lambda: Hull([["a"]]), "`points` must hold real numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_hull_knows_its_inside_its_corners_and_its_outside():
    square = Hull(SQUARE + 1000.0)
    rng = np.random.default_rng(0)
    assert all(square.contains(1000.0 + x) for x in rng.random((20, 2)))
    assert all(square.contains(point) for point in square.points)
    assert not square.contains([1000.5, 1001.0 + 1e-6])
    assert square.contains([1000.5, 1001.0 + 1e-6], tol=1e-5)
    assert not square.contains([-1000.0, 1e9])


def test_a_hull_with_points_inside_and_twice_is_that_of_its_corners():
    rng = np.random.default_rng(1)
    plain, more = Hull(SQUARE), Hull(np.vstack([SQUARE, SQUARE, rng.random((50, 2))]))
    for _ in range(30):
        c, a = rng.integers(-2, 3, (2, 2)).astype(float)
        b = rng.choice([0.0, 0.5, -0.3])
        first, second = plain.cut_lmo(c, a, b), more.cut_lmo(c, a, b)
        assert first.status is second.status
        assert c @ first.point == pytest.approx(c @ second.point, abs=1e-14)
    assert plain.diameter == more.diameter == pytest.approx(math.sqrt(2.0))


def test_the_hull_of_one_point_is_that_point():
    point = Hull([[3.0, -4.0]])
    assert point.diameter == 0.0
    assert point.contains([3.0, -4.0])
    assert not point.contains([3.0, -4.0 + 1e-9])
    assert point.cut_lmo([1.0, 1.0], [1.0, 0.0], 3.0).status is CutStatus.FREE
    empty = point.cut_lmo([1.0, 1.0], [1.0, 0.0], 2.9)
    assert empty.status is CutStatus.EMPTY
    assert empty.point.tolist() == [3.0, -4.0]


def test_the_diameter_of_many_points_is_an_upper_bound():
    rng = np.random.default_rng(2)
    points = rng.standard_normal((2100, 3))
    bound, exact = Hull(points).diameter, max(Hull(points[k::2]).diameter for k in (0, 1))
    assert exact <= bound <= 2.5 * exact


def test_a_hull_keeps_its_points_when_the_array_changes():
    points = SQUARE.copy()
    square = Hull(points)
    points[:] = 7.0
    assert square.lmo([1.0, 1.0]).tolist() == [0.0, 0.0]
