"""PB-APG on near ties: the search for the weight at which g has its level."""

from __future__ import annotations

import numpy as np

from tiebreak import L2Ball, LeastSquares, Problem, minimize
from tiebreak.engine import interpreted


def near_tie(domain, d, n, seed=0):
    rng = np.random.default_rng(seed)
    rows, truth = [rng.standard_normal((n, d)) for _ in range(2)], rng.standard_normal(d) / np.sqrt(d)
    lower, upper = (LeastSquares(A, A @ truth + 0.1 * rng.standard_normal(n)) for A in rows)
    return Problem(upper, lower, domain, tolerance=1e-3 * lower.value(np.zeros(d)))


def test_an_end_that_a_short_stage_put_on_the_wrong_side_is_given_up():
    problem = near_tie(L2Ball(0.7), 20, 12, seed=1)
    with interpreted():
        result = minimize(problem, "pb-apg", max_queries=60_000, progress=False)
    assert result.within is True
    assert result.upper_gap_bound <= 1e-6 * problem.upper.value(np.zeros(20))


def test_a_search_that_has_come_to_rounding_goes_on_without_harm():
    problem = near_tie(L2Ball(0.5), 6, 4)
    unit = problem.upper.value(np.zeros(6))
    with interpreted():
        ends = [minimize(problem, "pb-apg", max_queries=queries, progress=False) for queries in (10_000, 60_000)]
    assert [end.within for end in ends] == [True] * 2
    assert max(end.upper_gap_bound for end in ends) <= 1e-7 * unit
