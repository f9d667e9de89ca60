"""The cheapest atoms of all blocks."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import Box, L1Ball, LInfBall, Product, Simplex
from tiebreak.active.prices import Prices
from tiebreak.domains.atoms import blocks, vertices

SHARE = 0.15
SETS = {
    "box": Box(np.array([-1.0, 0.0, 0.0, -2.0, 1.0, -3.0]), np.array([2.0, 0.0, 1.0, 0.0, 4.0, -1.0])),
    "ball": LInfBall(1.5, 6),
    "mixed": Product(sides=Box(0.0, 1.0, 2), ball=(L1Ball(2.0), 2), simplex=(Simplex(1.0), 2)),
    "no intervals": L1Ball(1.0),
}


def by_blocks(domain, slope, x, count):
    """Return the gap and the worthwhile atoms, by (block, point), one block after another."""
    parts = blocks(domain, slope.size)
    saved, gaps = {}, np.zeros(len(parts))
    for b, (where, own) in enumerate(parts):
        for atom in vertices(own, slope[where], count):
            point = atom.point(where.size)
            saved[b, point.tobytes()] = float(slope[where] @ (x[where] - point))
        gaps[b] = max(0.0, *(value for (block, _), value in saved.items() if block == b))
    worth = SHARE * np.maximum(gaps, gaps.mean())
    return gaps.sum(), {key: value for key, value in saved.items() if value > worth[key[0]]}


@pytest.mark.parametrize("name", SETS)
def test_intervals_that_are_priced_at_once_have_the_prices_of_single_blocks(name):
    domain = SETS[name]
    parts = blocks(domain, 6)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        slope = rng.integers(-2, 3, 6) * rng.choice([1.0, 1e6, 1e-6])
        x = 0.5 * (domain.lmo(rng.standard_normal(6)) + domain.lmo(rng.standard_normal(6)))
        wanted_gap, wanted = by_blocks(domain, slope, x, 20)
        gap, worth, found = Prices(parts).found(slope, x, 20, SHARE)
        assert gap == pytest.approx(wanted_gap)
        names = {(each.block, each.atom.point(6)[parts[each.block].where].tobytes()): each.saved for each in found}
        assert names.keys() == wanted.keys()
        assert len(names) == len(found)
        assert names == pytest.approx(wanted)
        assert all(each.saved > worth[each.block] for each in found)
        assert (np.diff([each.saved for each in found]) <= 0.0).all()


def test_no_more_atoms_are_found_than_asked_for_and_these_are_the_cheapest():
    parts = blocks(Box(-1.0, 1.0, 50), 50)
    slope, x = np.linspace(1.0, 2.0, 50), np.zeros(50)
    _, _, all_of_them = Prices(parts).found(slope, x, 50, SHARE)
    _, _, some = Prices(parts).found(slope, x, 7, SHARE)
    assert [each.block for each in some] == [each.block for each in all_of_them[:7]] == list(range(49, 42, -1))
