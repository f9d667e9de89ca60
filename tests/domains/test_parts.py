"""Parts of sets that are much larger than what matters, and how far points are from the boundary."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import CASES, COMPOSED
from exact import exact

from tiebreak.domains import Box, L1Ball
from tiebreak.domains.atoms import extent, near
from tiebreak.engine import interpreted


def is_in(domain: Any, x: list[Fraction]) -> bool:
    """Return whether a point is in a set that is stated here a second time, without rounding."""
    if isinstance(domain, L1Ball):
        return sum(map(abs, x)) <= Fraction(domain.radius)
    return all(low <= a <= high for low, a, high in zip(exact(domain.lower), x, exact(domain.upper), strict=True))


def part_of(inner: Any, outer: Any, d: int) -> bool:
    """Return whether a set is a part of another one of its kind: whether its corners are."""
    if isinstance(inner, L1Ball):
        return inner.radius <= outer.radius
    return bool((inner.lower >= outer.lower).all() and (inner.upper <= outer.upper).all())


def big_sets(rng: np.random.Generator, d: int):
    """Yield sets of every kind that has a part of its own, of many sizes."""
    for size in (1e-6, 1.0, 3.0, 1e4, 1e9):
        yield L1Ball(size)
        yield Box(-size * rng.random(d), size * (1.0 + rng.random(d)))
        yield Box(np.zeros(d), np.where(rng.random(d) < 0.5, 1.0, size))


def test_every_set_with_a_part_of_its_own_is_tested_here():
    known = {L1Ball, Box}
    assert set(near.registry) - {object} == known
    assert set(extent.registry) - {object} == known


def test_a_part_is_in_the_set_and_holds_all_points_as_near_as_is_said():
    rng = np.random.default_rng(10)
    smaller = seen = 0
    for _ in range(40):
        d = int(rng.integers(1, 6))
        for domain in big_sets(rng, d):
            start = domain.random_point(rng, d)
            corner = domain.lmo(rng.standard_normal(d))
            for x, reach in itertools.product((start, 1e-3 * start, corner, np.zeros(d)), (1e-9, 0.1, 7.0, 1e6)):
                if not domain.contains(x, 0.0):
                    continue
                part = near(domain, x, reach)
                assert type(part) is type(domain)
                assert part_of(part, domain, d)
                assert part.contains(x)
                smaller += part is not domain
                way = rng.standard_normal(d)
                for step in (way / np.abs(way).sum(), np.eye(d)[0], -np.eye(d)[-1]):
                    for share in (1.0, 0.5, 0.1):
                        off = [Fraction(share * reach) * a for a in exact(step)]
                        point = [a + b for a, b in zip(exact(x), off, strict=True)]
                        if is_in(domain, point) and sum(map(abs, off)) <= Fraction(reach):
                            assert is_in(widened(part), point)
                            seen += 1
    assert smaller >= 100
    assert seen >= 1000


def widened(domain: Any) -> Any:
    """Return a set that is larger by some roundings."""
    if isinstance(domain, L1Ball):
        return L1Ball(domain.radius * (1.0 + 1e-15))
    room = 4e-16 * (np.abs(domain.lower) + np.abs(domain.upper))
    return Box._make((domain.lower - room, domain.upper + room))


def test_a_set_that_is_hardly_smaller_is_the_set_itself():
    ball, box = L1Ball(10.0), Box(np.full(2, -10.0), np.full(2, 10.0))
    assert near(ball, np.array([1.0, 0.0]), 4.0) is ball
    assert near(ball, np.array([1.0, 0.0]), 3.0) == L1Ball(4.0)
    assert near(box, np.zeros(2), 5.0) is box
    part = near(box, np.array([9.0, 0.0]), 1.0)
    assert part.lower.tolist() == [8.0, -1.0]
    assert part.upper.tolist() == [10.0, 1.0]


def test_how_far_a_point_is_from_the_middle_is_at_most_how_far_it_could_be():
    rng = np.random.default_rng(11)
    for _ in range(40):
        d = int(rng.integers(1, 6))
        for domain in big_sets(rng, d):
            for x in (domain.random_point(rng, d), domain.lmo(rng.standard_normal(d)), domain.middle(d)):
                distance, most = extent(domain, x)
                assert 0.0 <= distance <= most * (1.0 + 1e-12)
            assert extent(domain, domain.middle(d))[0] <= 1e-12 * most
            distance, most = extent(domain, domain.lmo(rng.standard_normal(d)))
            assert distance == pytest.approx(most, rel=1e-9)  # a corner


def test_an_extent_is_that_of_the_side_that_is_nearest_to_the_boundary():
    box = Box(np.array([0.0, -1.0]), np.array([100.0, 1.0]))
    assert extent(box, np.array([60.0, 0.9])) == (0.9, 1.0)
    assert extent(box, np.array([98.0, 0.5])) == (48.0, 50.0)
    assert extent(L1Ball(4.0), np.array([1.0, -2.0])) == (3.0, 4.0)
    assert extent(Box(np.array([2.0, 0.0]), np.array([2.0, 4.0])), np.array([2.0, 3.0])) == (1.0, 2.0)


@pytest.mark.parametrize("case", CASES + COMPOSED, ids=lambda case: case.name)
def test_sets_that_say_nothing_of_parts_are_their_own_and_have_all_points_at_the_boundary(case):
    rng = np.random.default_rng(12)
    with interpreted() if case.composed else nullcontext():
        domain, d = case.make(rng, min(case.largest, 3))
        x = domain.random_point(rng, d)
        part, (distance, most) = near(domain, x, 1e-3), extent(domain, x)
        assert part.contains(x)
        assert distance <= most * (1.0 + 1e-12)
        if not isinstance(domain, L1Ball | Box):
            assert part is domain
            assert (distance, most) == (1.0, 1.0)
