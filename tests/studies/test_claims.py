"""Seeds decide on claims as the documentation says."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.studies.claims import Claim, Judgement, Verdict, fewer, least, most, second, sign_test, together, within


def by_seed(values):
    return dict(enumerate(values))


@pytest.mark.parametrize(
    ("wins", "n", "verdict"),
    [
        (10, 10, Verdict.HOLDS),
        (9, 10, Verdict.HOLDS),
        (8, 10, Verdict.OPEN),
        (2, 10, Verdict.OPEN),
        (1, 10, Verdict.FAILS),
        (5, 5, Verdict.HOLDS),
        (4, 4, Verdict.OPEN),
        (0, 4, Verdict.OPEN),
        (0, 5, Verdict.FAILS),
    ],
)
def test_one_in_twenty_decides(wins, n, verdict):
    assert sign_test(wins, n) is verdict


def test_comparisons_are_paired_by_seed():
    first, second = by_seed(range(10)), by_seed(np.arange(10) + 0.5)  # the spread is larger than the difference
    assert fewer(first, second).verdict is Verdict.HOLDS
    assert fewer(second, first).verdict is Verdict.FAILS
    assert fewer(first, {seed: second[seed] for seed in (7, 8, 9)}).verdict is Verdict.OPEN
    assert fewer(first, {}).numbers == "no runs to compare"


def test_a_tie_is_not_less():
    same = by_seed([1.0] * 10)
    assert fewer(same, same).verdict is Verdict.FAILS


def test_what_neither_reaches_tells_nothing():
    never, soon = by_seed([np.inf] * 10), by_seed([1.0] * 10)
    assert fewer(never, never) == Judgement(Verdict.OPEN, "no runs to compare; on 10 more both are infinite")
    assert fewer(soon, never).verdict is Verdict.HOLDS
    assert fewer(never, soon).verdict is Verdict.FAILS
    some = fewer(by_seed([1.0] * 6 + [np.inf] * 4), by_seed([2.0] * 6 + [np.inf] * 4))
    assert some == Judgement(Verdict.HOLDS, "1 < 2, smaller on 6/6 seeds; on 4 more both are infinite")


def test_a_factor_asks_for_more_than_less():
    first, second = by_seed([1.0] * 10), by_seed([5.0] * 10)
    assert fewer(first, second, 0.5).verdict is Verdict.HOLDS
    assert fewer(first, second, 0.1).verdict is Verdict.FAILS


def test_a_claim_of_several_parts_needs_them_all():
    holds, fails, open_ = (Judgement(verdict, verdict.value) for verdict in (Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN))
    assert together(a=holds, b=holds).verdict is Verdict.HOLDS
    assert together(a=holds, b=open_).verdict is Verdict.OPEN
    assert together(a=open_, b=fails).verdict is Verdict.FAILS
    assert together() == Judgement(Verdict.OPEN, "no runs")
    assert together(a=holds, b_c=fails).numbers == "a: holds; b c: does not hold"


def test_the_least_and_the_most_are_found_among_all():
    values = {"a": by_seed([1.0] * 6), "b": by_seed([2.0] * 6), "c": by_seed([3.0] * 6)}
    assert least(values, "a", "b", "c").verdict is Verdict.HOLDS
    assert least(values, "b", "a", "c").verdict is Verdict.FAILS
    assert second(values, "a", "b", "c").verdict is Verdict.HOLDS
    assert second(values, "b", "a", "c").verdict is Verdict.FAILS  # it is the first
    assert second(values, "a", "c", "b").verdict is Verdict.FAILS
    assert most(values, "c").verdict is Verdict.HOLDS
    assert most(values, "b").verdict is Verdict.FAILS


def test_a_range_is_kept_by_most_seeds():
    assert within(by_seed([0.5] * 9 + [2.0]), 0.0, 1.0).verdict is Verdict.HOLDS
    assert within(by_seed([0.5] * 6 + [2.0] * 4), 0.0, 1.0).verdict is Verdict.OPEN
    assert within({}, 0.0, 1.0).verdict is Verdict.OPEN


def test_unknown_values_are_left_out_and_told():
    one, nan = dict.fromkeys(range(10), 0.3), dict.fromkeys(range(10), np.nan)
    assert fewer(one, nan).verdict is Verdict.OPEN
    assert within(nan, 0.0, 1.0).verdict is Verdict.OPEN
    some = {**dict.fromkeys(range(9), 0.5), 9: np.nan}
    assert fewer(one, some) == Judgement(Verdict.HOLDS, "0.3 < 0.5, smaller on 9/9 seeds; on 1 more one is unknown")
    assert within(some, 0.0, 1.0).numbers.endswith("on 9/9 seeds; unknown on 1 more")


@pytest.mark.parametrize(
    ("first", "second", "factor", "text"),
    [
        (-7.75e-06, -6.45e-05, 1.0, "-7.75e-06 > -6.45e-05, smaller on 0/5 seeds"),
        (1.0, 2.0, 1.0, "1 < 2, smaller on 5/5 seeds"),
        (1.0, 1.0, 1.0, "1 = 1, smaller on 0/5 seeds"),
        (1.0001, 1.0002, 1.0, "1.0001 < 1.0002, smaller on 5/5 seeds"),
        (0.00189, 0.00201, 0.5, "0.00189 > 0.5 × 0.00201, smaller on 0/5 seeds"),
    ],
)
def test_an_inequality_is_true_as_it_is_printed(first, second, factor, text):
    by_seed = [dict.fromkeys(range(5), value) for value in (first, second)]
    assert fewer(*by_seed, factor).numbers == text


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.0, np.inf, "0, at least 1 on 0/5 seeds"),
        (-np.inf, 1.0, "0, at most 1 on 5/5 seeds"),
        (1.0, 1.0, "0, equal to 1 on 0/5 seeds"),
        (-1.0, 1.0, "0, between -1 and 1 on 5/5 seeds"),
    ],
)
def test_a_range_is_said_in_words(low, high, words):
    assert within(dict.fromkeys(range(5), 0.0), low, high).numbers == words


def test_a_claim_about_a_budget_is_judged_at_that_budget_and_none_with_too_few_seeds():
    about_budget = Claim("a", "b", Verdict.HOLDS, "1 < 2")
    at_any = about_budget._replace(at_any_budget=True)
    assert [about_budget.is_judged(5, quick) for quick in (False, True)] == [True, False]
    assert [at_any.is_judged(5, quick) for quick in (False, True)] == [True, True]
    assert not at_any.is_judged(4, False)
