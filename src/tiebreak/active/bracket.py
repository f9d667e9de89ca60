"""The search for the λ at which g(x_λ) has a level: the nearest points of the frontier on either side of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from tiebreak.active.levels import Level, Place

LEAST_SHARE = 0.02  # distance of a new λ from the ends of its bracket, as a share of it
TINY = 1e-300  # least distance of g from its floor
OVERSHOOT = 1.1  # exponent that carries a guess beyond the level
SHORTEST_STEP, LONGEST_STEP = math.log(2.0), math.log(1000.0)  # range of the change of log λ while one end is missing
STEEPEST, FLATTEST = -4.0, -0.1  # range of the power below
POWER = -1.0  # g(x_λ) − g* goes like this power of λ, as long as nothing else is known


class End(NamedTuple):
    """A point of the frontier."""

    weight: float  # λ
    f: float
    g: float
    upper: Place
    lower: Place

    @property
    def x(self) -> np.ndarray:
        return self.upper.x


class Bracket:
    """Two points of the frontier, as far as they are known, between which g has its level.

    Attributes
    ----------
    inside, outside : End or None
        Those whose g is at most the level, and above it.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self.inside: End | None = None
        self.outside: End | None = None
        self._power = POWER
        self._width = math.inf  # how far apart both ends were, in log λ

    def add(self, end: End, level: float, floor: float) -> None:
        """Take a further point, and learn which power of λ the distance of g from its floor goes like."""
        before = self.inside or self.outside
        if before is not None and before.weight != end.weight:
            a, b = (max(each.g - floor, TINY) for each in (before, end))
            found = math.log(b / a) / math.log(end.weight / before.weight)
            self._power = min(max(found, STEEPEST), FLATTEST)
        if end.g <= level:
            self.inside = end
        else:
            self.outside = end

    @property
    def has_both(self) -> bool:
        """Whether both ends are known."""
        return self.inside is not None and self.outside is not None

    @property
    def is_closed(self) -> bool:
        """Whether there is no λ left between both ends."""
        if self.inside is None or self.outside is None:
            return False
        return self.inside.weight <= self.outside.weight * (1.0 + 1e-9)

    def best(self, levels: Sequence[Level], level: float) -> tuple[np.ndarray, float] | None:
        """Return the best point known whose g keeps the level, and f there: between both ends, where g has it."""
        inside, outside = self.inside, self.outside
        if inside is None or outside is None:
            return None if inside is None else (inside.x, inside.f)
        f, g = levels
        f_way, g_way = inside.upper.towards(outside.upper), inside.lower.towards(outside.lower)

        def excess(step: float) -> float:
            return g.along(inside.lower, g_way, step)[0] - level

        step = brentq(excess, 0.0, 1.0, xtol=1e-15) if excess(0.0) < 0.0 < excess(1.0) else 0.0
        back = 1e-15
        while step > 0.0 and excess(step) > 0.0:  # by as much as rounding leaves
            step, back = max(step - back, 0.0), 4.0 * back
        return inside.x + step * f_way.x, f.along(inside.upper, f_way, step)[0]

    def next_weight(self, level: float, floor: float) -> float:
        """Return the λ at which g is likely to have its level: a power law between the ends, or from one of them."""
        target = max(level - floor, TINY)
        inside, outside = self.inside, self.outside
        if inside is not None and outside is not None:
            a, b = (max(end.g - floor, TINY) for end in (outside, inside))
            share = math.log(target / a) / math.log(b / a) if b < a else 0.5
            share = min(max(share, LEAST_SHARE), 1.0 - LEAST_SHARE)
            width = math.log(inside.weight / outside.weight)
            if width > 0.5 * self._width:  # the power law does not hold: one end may have reached g* itself
                share = 0.5
            self._width = width
            return outside.weight * (inside.weight / outside.weight) ** share
        end = inside or outside
        assert end is not None
        # A little further than it seems, so that the level comes to lie between two ends.
        steps = OVERSHOOT * math.log(target / max(end.g - floor, TINY)) / self._power
        low, high = (-LONGEST_STEP, -SHORTEST_STEP) if end is inside else (SHORTEST_STEP, LONGEST_STEP)
        return end.weight * math.exp(min(max(steps, low), high))

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return all of this as arrays."""
        kept = {"bracket.numbers": np.array([self._power, self._width])}
        for side, end in (("inside", self.inside), ("outside", self.outside)):
            if end is not None:
                kept[f"{side}.numbers"], kept[f"{side}.x"] = np.array(end[:3]), end.x
                for name, place in (("upper", end.upper), ("lower", end.lower)):
                    kept |= {f"{side}.{name}{i}": image for i, image in enumerate(place.images)}
        return kept

    def restore(self, arrays: Mapping[str, np.ndarray], levels: Sequence[Level]) -> None:
        """Take over what :meth:`stored` returned."""
        self._power, self._width = arrays["bracket.numbers"].tolist()
        self.inside, self.outside = (_restored(arrays, side, levels) for side in ("inside", "outside"))


def _restored(arrays: Mapping[str, np.ndarray], side: str, levels: Sequence[Level]) -> End | None:
    if f"{side}.x" not in arrays:
        return None
    x = arrays[f"{side}.x"]
    places = [
        Place(x, [arrays[f"{side}.{name}{i}"] for i in range(len(level.terms))])
        for name, level in zip(("upper", "lower"), levels, strict=True)
    ]
    return End(*arrays[f"{side}.numbers"].tolist(), *places)
