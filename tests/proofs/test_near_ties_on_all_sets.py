"""Near ties on every set, of squares and logistic losses, as a tolerance and as a share: nothing that is proven is false."""

from __future__ import annotations

import pytest
from cases import CASES
from near import near_tie, violations

from tiebreak import Status, minimize
from tiebreak.engine import interpreted

SEEDS = range(12)  # for 18 sets: 216 problems


def test_there_are_two_hundred_problems_on_sets_of_all_families():
    assert len(CASES) * len(SEEDS) >= 200
    assert {"L1Ball", "L2Ball", "GroupBall", "Box", "KSparse", "Simplex", "Birkhoff", "Hull", "Polytope", "Product",
            "NuclearBall", "Spectrahedron"} <= {case.name for case in CASES}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_call_proves_holds_against_a_conic_solver(case, seed):
    near = near_tie(case, seed)
    with interpreted():
        result = minimize(near.problem, max_queries=10_000, seed=seed, progress=False)
    assert not list(violations(near, result))
    assert not result.status.failed
    assert result.within is not False
    if result.method.name == "active-set":
        assert result.status is Status.SOLVED
        assert result.within is True
        assert result.upper_gap_bound <= 1e-6 * max(near.units[0], result.upper)
