"""The search for the λ of a level, on curves that are known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tiebreak.active.bracket import Bracket, End
from tiebreak.active.levels import Place

NOWHERE = Place(np.zeros(1), [])


def found(
    curve: Callable[[float], float], level: float, bracket: Bracket, first: float = 1.0, accuracy: float = 1e-3
) -> list[float]:
    """Return the λ that are tried until g is near its level on both sides, g − g* a function of λ."""
    weights = [first] if not bracket.trail else [bracket.next_weight(level, 0.0)]
    while len(weights) < 40:
        bracket.add(End(weights[-1], 0.0, curve(weights[-1]), NOWHERE, NOWHERE), level)
        if bracket.is_closed:
            break
        ends = (bracket.inside, bracket.outside)
        if all(end is not None and abs(math.log(max(end.g, 1e-300) / level)) <= accuracy for end in ends):
            break
        weights.append(bracket.next_weight(level, 0.0))
    return weights


@pytest.mark.parametrize("power", [-0.5, -1.0, -2.0])
@pytest.mark.parametrize("level", [1e-8, 1e-3, 10.0])
def test_a_power_of_the_weight_is_found_in_few_tries(power, level):
    bracket = Bracket()
    weights = found(lambda weight: weight**power, level, bracket)
    assert len(weights) <= 12
    assert bracket.inside.weight >= level ** (1.0 / power) >= bracket.outside.weight


def test_what_was_seen_for_one_level_serves_the_next():
    def curve(weight: float) -> float:
        return 1.0 / (weight + 10.0 * math.sqrt(weight) + 1e-3)

    bracket, counts = Bracket(), []
    for level in np.geomspace(1e-6, 1e-2, 9):
        bracket.move()
        assert bracket.inside is None
        assert bracket.outside is None
        counts.append(len(found(curve, level, bracket)))
    assert max(counts[1:]) <= 5
    assert len(bracket.trail) == sum(counts)
    assert [seen.weight for seen in bracket.trail] == sorted(seen.weight for seen in bracket.trail)


def test_a_jump_is_closed_and_both_of_its_sides_are_visited_again_for_another_level():
    def curve(weight: float) -> float:
        return 1.0 if weight < math.pi else 0.0

    bracket = Bracket()
    assert len(found(curve, 0.5, bracket)) < 40
    assert bracket.is_closed
    bracket.move()
    assert len(found(curve, 0.25, bracket)) == 2
    assert bracket.is_closed
    assert bracket.outside.weight < math.pi <= bracket.inside.weight
