"""Random numbers are a function of the seed, the level, the iteration and the place within it, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tiebreak import SBCGF, L1Ball, LeastSquares, Problem, minimize
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import Key, Moment, branch, generator, keys_of, philox, turn_of, uniform, uniform_indices

ONES = 0xFFFFFFFF
# Known answers of the authors' library, Random123, for Philox4x32-10.
KNOWN = [
    (Moment(Key(0, 0), 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (Moment(Key(ONES, ONES), ONES + (0xFF << 32), 0xFFFFFF, ONES), ONES, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
]


@pytest.mark.parametrize(("moment", "block", "expected"), KNOWN)
def test_philox_gives_the_known_answers_in_both_ways_to_run(moment, block, expected):
    assert tuple(philox(moment, block)) == expected
    with interpreted():
        assert philox(moment, block) == expected


def indices(moment, count, size):
    return uniform_indices(moment, count, np.empty(size, dtype=np.int64))


def test_indices_do_not_depend_on_how_they_are_asked_for():
    moment = Moment(keys_of([3]).lower, 17, 0, 0)
    all_at_once = indices(moment, 1000, 101)
    np.testing.assert_array_equal(indices(moment, 1000, 50), all_at_once[:50])
    np.testing.assert_array_equal(indices(moment, 1000, 101), all_at_once)
    with interpreted():
        np.testing.assert_array_equal(indices(moment._replace(iteration=np.int64(17)), 1000, 101), all_at_once)


def test_other_levels_iterations_turns_terms_and_seeds_draw_others():
    keys = keys_of([3])
    moments = [
        Moment(keys.upper, 5, 0, 0),
        Moment(keys.lower, 5, 0, 0),
        Moment(keys.upper, 6, 0, 0),
        Moment(keys.upper, 5 + 2**32, 0, 0),
        turn_of(Moment(keys.upper, 5, 0, 0), 1),
        branch(Moment(keys.upper, 5, 0, 0), 1),
        branch(Moment(keys.upper, 5, 0, 0), 2),
        branch(branch(Moment(keys.upper, 5, 0, 0), 1), 2),
        Moment(keys_of([4]).upper, 5, 0, 0),
    ]
    drawn = [tuple(indices(moment, 2**40, 4)) for moment in moments]
    assert len(set(drawn)) == len(moments)
    numbers = {generator(moment).random() for moment in moments} | {uniform(moment) for moment in moments}
    assert len(numbers) == 2 * len(moments)


def test_indices_are_uniform_and_independent_of_the_iteration():
    count = 13
    key = keys_of([0]).upper
    drawn = np.array([indices(Moment(key, t, 0, 0), count, 20) for t in range(1000)])
    assert drawn.min() == 0 and drawn.max() == count - 1
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=count)).pvalue > 1e-3
    pairs = np.bincount(drawn[:-1, 0] * count + drawn[1:, 0], minlength=count**2)
    assert stats.chisquare(pairs).pvalue > 1e-3


def test_a_run_draws_what_its_seed_says_however_it_is_cut_into_chunks(monkeypatch):
    import tiebreak.driver.run as run

    rng = np.random.default_rng(0)
    problem = Problem(*(LeastSquares(rng.standard_normal((30, 6)), rng.standard_normal(30)) for _ in "fg"), L1Ball(1.0))
    method = SBCGF(preset="paper", step=0.01, slack=1e-3)
    with interpreted():
        whole = minimize(problem, method, max_iterations=60, seed=5)
        monkeypatch.setattr(run, "CHUNK_SECONDS", 0.0)
        cut = minimize(problem, method, max_iterations=60, seed=5)
    np.testing.assert_array_equal(cut.x, whole.x)
