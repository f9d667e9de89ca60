"""The cut of sets with ranked coordinates where there are many, so that it starts from a sample."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import CappedSimplex, KSparse
from tiebreak.domains.base import ACTIVE
from tiebreak.domains.cuts.ranking import MANY, Ranking
from tiebreak.domains.cuts.search import approach, dual_search

D = 5 * MANY
SETS = [
    KSparse(1, 2.0, D),
    KSparse(D // 10, 2.0, D),
    KSparse(D - 1, 0.5, D),
    KSparse(D, 1.0, D),
    CappedSimplex(0.5, 1.0, D),
    CappedSimplex(D / 7, 0.9, D),
    CappedSimplex(D - 0.5, 1.0, D),
]
RNG = np.random.default_rng(5)
PLAIN = RNG.standard_normal((2, D))
DATA = {
    "plain": PLAIN,
    "rising": np.sort(PLAIN, axis=1),
    "tied": RNG.integers(-2, 3, (2, D)).astype(float),
    "heavy": PLAIN**7,
    "opposite": np.stack([PLAIN[0], -PLAIN[0] + 1e-9 * PLAIN[1]]),
    "a few in the cut": np.stack([PLAIN[0], np.where(np.arange(D) < 5, PLAIN[1], 0.0)]),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("domain", SETS, ids=str)
def test_a_cut_of_many_coordinates_is_feasible_and_attains_its_dual(domain, data):
    c, a = DATA[data]
    low, free = a @ domain.lmo(a), a @ domain.lmo(c)
    for share in (0.01, 0.3, 0.8, 0.999):
        b = low + share * (free - low)
        cut = domain.cut_lmo(c, a, b)
        if cut.status != ACTIVE:  # where c and a have the same minimiser, rounding decides
            assert free - low <= 1e-12 * abs(low)
            continue
        total = np.abs(cut.point).sum()
        sizes = total * (np.abs(c).max() + cut.multiplier * np.abs(a).max())
        dual = (c + cut.multiplier * a) @ domain.lmo(c + cut.multiplier * a) - cut.multiplier * b
        assert domain.contains(cut.point)
        assert a @ cut.point <= b + 1e-14 * total * np.abs(a).max()
        assert abs(c @ cut.point - dual) <= 1e-13 * sizes


@pytest.mark.parametrize("domain", SETS, ids=str)
def test_the_cut_from_a_sample_and_the_search_for_any_set_find_the_same_value(domain):
    c, a = PLAIN
    low, free = a @ domain.lmo(a), a @ domain.lmo(c)
    out = np.empty(D)
    for share in (0.1, 0.5, 0.9):
        b = low + share * (free - low)
        dual_search(domain, c, a, b, out)
        cut = domain.cut_lmo(c, a, b)
        assert cut.status == ACTIVE
        assert c @ cut.point == pytest.approx(c @ out, rel=1e-11)


@pytest.mark.parametrize("folded", [False, True])
def test_a_sample_leads_to_the_optimal_atoms_of_ordinary_data(folded):
    domain = Ranking(folded, D // 10, 1.0, 0.0)
    found = 0
    for seed in range(20):
        c, a = np.random.default_rng(seed).standard_normal((2, D))
        first = np.argsort(-np.abs(c) if folded else c)[: D // 10]
        excess = 0.3 * (np.abs(a[first]).sum() if folded else D / 10)
        start = -np.sign(c[first]) @ a[first] if folded else a[first].sum()
        work = np.vstack([c, a, np.empty((3, D))])
        found += approach(domain, start - excess, excess, work)[0]
    assert found >= 15
