"""What is proven of a level, by exact arithmetic: wherever g* and g(middle) are between the numbers that are known."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from tiebreak import FiniteSum, Floors, L1Ball, LeastSquares, NonFiniteError, Problem, SquaredNorm, certify, minimize
from tiebreak.engine import interpreted
from tiebreak.proofs import Allowance
from tiebreak.proofs.floors import allowance_of, gap, is_within, known

SIZES = some.floats(-1e6, 1e6) | some.floats(-1e-12, 1e-12) | some.floats(-1e300, 1e300) | some.just(0.0)
SHARES = some.floats(0.0, 1.0, exclude_max=True) | some.sampled_from([0.0, 1e-20, 0.5, 0.99, 1.0 - 1e-9, 1.0 - 2.0**-53])
EPSILONS = some.floats(0.0, 1e6) | some.floats(0.0, 1e-12) | some.sampled_from([0.0, 5e-324, 1e300])
PARTS = some.fractions(0, 1)


class Truth(NamedTuple):
    """Numbers around g* and g(middle), and where both are."""

    lower: float  # ≤ g*
    best_lower: float  # ≥ g*
    middle_floor: float
    middle_ceiling: float
    least: Fraction  # g*
    middle: Fraction

    def level(self, allowance: Allowance) -> Fraction:
        """Return the level itself."""
        if allowance.keep == 1.0:
            return self.least + Fraction(allowance.tolerance)
        keep = Fraction(allowance.keep)
        return keep * self.least + (1 - keep) * self.middle


@some.composite
def truths(draw) -> Truth:
    lower, middle_floor = sorted((draw(SIZES), draw(SIZES)))
    wider = draw(some.sampled_from([0.0, 2.0**-52, 1e-9, 0.3]))
    middle_ceiling = middle_floor + wider * abs(middle_floor)
    best_lower = draw(some.floats(lower, max(lower, middle_ceiling)))
    middle = between(draw, middle_floor, middle_ceiling)
    least = min(between(draw, lower, best_lower), middle)
    return Truth(lower, best_lower, middle_floor, middle_ceiling, least, middle)


def between(draw, low: float, high: float) -> Fraction:
    return Fraction(low) + draw(PARTS) * (Fraction(high) - Fraction(low))


@some.composite
def said(draw, truth: Truth, share: float) -> Allowance:
    """Return a share with what is known of the middle, or a tolerance, which may be that of the share at either end."""
    match draw(some.integers(0, 3)):
        case 0:
            return Allowance(draw(EPSILONS))
        case 1:
            end = draw(some.sampled_from([truth.lower, truth.best_lower]))
            same = max((1.0 - share) * (truth.middle_floor - end), 0.0)
            return Allowance(same * draw(some.sampled_from([1.0, 1.0 - 1e-12, 1.0 + 1e-12, 1.0 - 1e-3, 1.0 + 1e-3])))
        case 2:
            share = draw(SHARES)
    return Allowance(0.0, share, truth.middle_floor, truth.middle_ceiling)


PAIRS = some.tuples(truths(), SHARES)
CASES = PAIRS.flatmap(lambda pair: some.tuples(some.just(pair[0]), said(*pair), said(*pair)))


@given(CASES)
def test_a_level_lies_between_what_is_proven_to_keep_it_and_what_is_proven_to_exceed_it(case):
    truth, allowance, _ = case
    floors = Floors(-math.inf, truth.lower, truth.best_lower, *allowance)
    assume(math.isfinite(floors.level))
    level, epsilon = truth.level(allowance), truth.level(allowance) - truth.least
    assert floors.epsilon >= 0.0
    assert Fraction(floors.epsilon) <= epsilon
    assert Fraction(truth.lower) + Fraction(floors.room) <= level
    assert Fraction(floors.aim) <= level
    assert Fraction(floors.level) >= level
    assert floors.level >= truth.best_lower
    assert floors.aim <= floors.level


@given(CASES, some.sampled_from([0.0, 1e-16, 1e-15, 1e-9, 0.1]), some.floats(0.0, 1e-3), PARTS, some.booleans())
def test_whether_a_point_is_tied_is_never_said_falsely(case, off, doubt, part, above):
    truth, allowance, _ = case
    value = float(truth.level(allowance))
    value, error = value + (off if above else -off) * abs(value), doubt * abs(value)
    true = Fraction(value) + (2 * part - 1) * Fraction(error)
    assume(true >= truth.least)
    floors = Floors(-math.inf, truth.lower, truth.best_lower, *allowance)
    assume(math.isfinite(floors.level))
    # What a value may be wrong by has room for a few roundings, and so has a floor.
    bound = max(gap(value, error + 4e-16 * abs(value), truth.lower - 4e-16 * abs(truth.lower)), 0.0)
    within, level = is_within(value, error, bound, floors), truth.level(allowance)
    assert within is not True or true <= level
    assert within is not False or true > level


@given(CASES, some.lists(PARTS, min_size=1, max_size=4))
def test_a_floor_of_f_is_never_kept_for_a_level_that_may_be_higher(case, parts):
    truth, before, after = case
    floors = Floors(7.0, truth.lower, truth.best_lower, *before)
    moved = floors.at(after)
    assert (moved.lower, moved.best_lower, moved.allowance) == (truth.lower, truth.best_lower, after)
    assert moved.upper in (7.0, -math.inf)
    if moved.upper == 7.0:
        for part in (*parts, 0, 1):  # wherever g* is
            least = Fraction(truth.lower) + Fraction(part) * (Fraction(truth.best_lower) - Fraction(truth.lower))
            place = truth._replace(least=min(least, truth.middle))
            assert place.level(after) <= place.level(before)
    assert floors.at(before) == floors
    assert moved.at(before).upper <= floors.upper


@given(truths(), SHARES, SHARES, EPSILONS, EPSILONS)
def test_a_larger_allowance_has_a_higher_level_and_a_smaller_one_keeps_floors(truth, one, other, epsilon, further):
    middle = (truth.middle_floor, truth.middle_ceiling)
    more, less = (Allowance(0.0, keep, *middle) for keep in sorted((one, other)))
    assert more.level(truth.best_lower) >= less.level(truth.best_lower)
    assert more.least(truth.best_lower) >= less.least(truth.best_lower)
    assert less.is_below(less, truth.lower, truth.best_lower)
    wide, narrow = (Allowance(number) for number in sorted((epsilon, further), reverse=True))
    assert narrow.is_below(wide, truth.lower, truth.best_lower)
    assert wide.is_below(narrow, truth.lower, truth.best_lower) is (wide == narrow)
    assert Allowance().is_below(more, truth.lower, min(truth.best_lower, truth.middle_floor))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
def test_a_share_keeps_floors_of_clearly_smaller_shares_and_of_clearly_larger_tolerances(share):
    lower, best_lower, middle = 1.0, 1.0 + 1e-9, 3.0
    allowance, epsilon = Allowance(0.0, share, middle, middle), (1.0 - share) * 2.0
    for other, kept in (
        (Allowance(0.0, share - 0.01, middle, middle), True),
        (Allowance(1.01 * epsilon), True),
        (Allowance(0.99 * epsilon), False),
        (Allowance(), False),
        (Allowance(0.0, share + 1e-6, middle, middle), False),
    ):
        assert Floors(7.0, lower, best_lower, *other).at(allowance).upper == (7.0 if kept else -math.inf)
    assert Floors(7.0, -math.inf, best_lower, *Allowance(10.0)).at(allowance).upper == -math.inf


def test_what_is_known_of_nothing_is_nothing():
    floors = Floors()
    assert (floors.epsilon, floors.room, floors.aim, floors.level) == (0.0, 0.0, -math.inf, math.inf)
    kept = Floors(keep=0.9, middle_floor=1.0, middle_ceiling=1.0)
    assert (kept.epsilon, kept.room, kept.aim, kept.level) == (0.0, 0.0, -math.inf, math.inf)
    assert is_within(1.0, 0.0, math.nan, kept) is None


# The middle


def test_the_middle_is_looked_at_once_and_its_error_is_allowed_for():
    lower = LeastSquares([[1.0, 1.0]], [1.0])
    allowance = allowance_of(Problem(SquaredNorm(), lower, L1Ball(2.0), keep=0.9))
    assert (allowance.tolerance, allowance.keep) == (0.0, 0.9)
    assert 0.5 - 1e-14 < allowance.middle_floor < 0.5 < allowance.middle_ceiling < 0.5 + 1e-14
    assert allowance_of(Problem(SquaredNorm(), lower, L1Ball(2.0), tolerance=0.3)) == Allowance(0.3)
    calls = []

    def value_and_grad(x, indices):
        calls.append(x.copy())
        return lower.value_and_gradient(x)

    problem = Problem(SquaredNorm(), FiniteSum(1, 2, value_and_grad, convex=True), L1Ball(2.0), tolerance=0.1)
    for each in (problem, problem.exact):
        known(each)
    assert not calls  # only a share needs it


def test_a_middle_where_g_is_not_finite_is_said_to_be_none():
    pole = FiniteSum(1, 2, lambda x, indices: (float(x @ x), 2.0 * x) if x.any() else (math.nan, x), convex=True)
    problem = Problem(SquaredNorm(), pole, L1Ball(1.0), keep=0.9)
    with pytest.raises(NonFiniteError, match="returned NaN or infinity in the value"):
        certify(problem, [0.5, 0.0], check=False)
    assert certify(problem.exact._replace(tolerance=0.1), [0.5, 0.0], check=False).finite


@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0 - 1e-12])
def test_a_middle_that_minimises_g_leaves_no_tolerance(keep):
    problem = Problem(SquaredNorm(np.array([1.0, 0.0])), SquaredNorm(np.zeros(2)), L1Ball(1.0), keep=keep)
    with interpreted():
        for method in ("active-set", "pb-apg", "cg-bio", "fc-bio"):
            result = minimize(problem, method, max_queries=500)
            assert result.success
            assert result.tolerance == 0.0
            assert result.lower <= 1e-3
            assert result.within is not False or result.lower > 0.0
            assert result.certificate.floors.upper <= 0.5  # which is f there


def test_a_g_that_does_not_vary_ties_everything():
    flat = LeastSquares(np.zeros((2, 3)), np.ones(2))
    for allowed in ({"keep": 0.5}, {"tolerance": 0.1}):
        with interpreted():
            result = minimize(Problem(SquaredNorm(np.full(3, 2.0)), flat, L1Ball(1.0), **allowed))
        np.testing.assert_allclose(result.x, 1.0 / 3.0, atol=1e-6)
        assert result.lower == 0.5
