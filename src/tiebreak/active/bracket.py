"""The search for the λ at which g(x_λ) has a level: the nearest points of the frontier on either side of it.

Numbers of all points that were seen, (λ, f, g), tell where to look: log λ between them is interpolated over log (g − g*), by
cubics that are monotone as λ is. They serve every level. The two nearest points themselves are mixed into an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # whose parts are loaded when they are used

from tiebreak.active.levels import Level, Place

LEAST_SHARE = 0.02  # distance of a new λ from the ends of its bracket, as a share of it
CLOSED = 1e-9  # width of a bracket, in log λ, that leaves nothing between its ends
LEAST_SEPARATION = 1e-12  # distance of two values of log (g − g*) that are told apart
DEEP = math.log(1e8)  # distance of log (g − g*) from that of the level at which a point tells nothing of the curve there
TINY = 1e-300  # least distance of g from its floor
OVERSHOOT = 1.1  # exponent that carries a guess beyond the level
LEAN = 0.1  # share of the last miss by which the level is aimed beyond, so that both ends come close to it
LEAP = 4.0  # factor of that where the same side is met again
PATIENCE = 3  # guesses in which a bracket is to become half as wide, before its middle is taken
SHORTEST_STEP, LONGEST_STEP = math.log(1.1), math.log(1000.0)  # range of the change of log λ while one end is missing
STEEPEST, FLATTEST = -4.0, -0.1  # range of the power below
FARTHER = math.log(1.1)  # distance, in log λ, of two points that tell that power
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


class Seen(NamedTuple):
    """What is kept of every point of the frontier that was seen."""

    weight: float
    f: float
    g: float


class Bracket:
    """Two points of the frontier, as far as they are known, between which g has its level.

    Attributes
    ----------
    inside, outside : End or None
        Those whose g is at most the level, and above it.
    trail : list of Seen
        All points that were seen, for this level or another one, in the order of growing λ.
    """

    def __init__(self) -> None:
        self.trail: list[Seen] = []
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self.trail.clear()
        self.move()

    def move(self) -> None:
        """Look for another level from now on."""
        self.inside: End | None = None
        self.outside: End | None = None
        self._widths = [math.inf] * PATIENCE  # how far apart both ends were, in log λ, the last times
        self._side = math.nan  # whether the last point was inside, 0 or 1
        self._repeats = 0  # how often in succession it was on that side before

    def note(self, weight: float, f: float, g: float) -> None:
        """Remember that a point was seen."""
        self.trail = sorted([each for each in self.trail if each.weight != weight] + [Seen(weight, f, g)])

    def add(self, end: End, level: float) -> None:
        """Take a further point."""
        self.note(end.weight, end.f, end.g)
        side = float(end.g <= level)
        self._repeats, self._side = self._repeats + 1 if side == self._side else 0, side
        if side:
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
        return math.log(self.inside.weight / self.outside.weight) <= CLOSED

    def best(self, levels: Sequence[Level], level: float) -> tuple[np.ndarray, float] | None:
        """Return the best point known whose g keeps the level, and f there: between both ends, where g has it."""
        inside, outside = self.inside, self.outside
        if inside is None or outside is None:
            return None if inside is None else (inside.x, inside.f)
        f, g = levels
        f_way, g_way = inside.upper.towards(outside.upper), inside.lower.towards(outside.lower)

        def excess(step: float) -> float:
            return g.along(inside.lower, g_way, step)[0] - level

        step = scipy.optimize.brentq(excess, 0.0, 1.0, xtol=1e-15) if excess(0.0) < 0.0 < excess(1.0) else 0.0
        back = 1e-15
        while step > 0.0 and excess(step) > 0.0:  # by as much as rounding leaves
            step, back = max(step - back, 0.0), 4.0 * back
        return inside.x + step * f_way.x, f.along(inside.upper, f_way, step)[0]

    def next_weight(self, level: float, floor: float) -> float:
        """Return the λ at which g is likely to have its level: between those that were seen, or beyond them."""
        target = math.log(max(level - floor, TINY))
        beyond = [each for each in self.trail if each.g > level]
        within = [each for each in self.trail if each.g <= level]
        if not beyond or not within:
            return self._beyond_all(target, floor, grows=bool(beyond))
        low, high = beyond[-1], within[0]
        width = math.log(high.weight / low.weight)
        if not width > CLOSED:  # g jumps there: both ends are wanted themselves
            return high.weight if self.inside is None else low.weight
        guess = (self._interpolated(target + self._lean(target, floor), floor) - math.log(low.weight)) / width
        share = min(max(guess, LEAST_SHARE), 1.0 - LEAST_SHARE)
        if width > 0.5 * self._widths[0] or _depth(high, floor) < target - DEEP:  # no smooth curve, or g* itself
            share = 0.5
        self._widths = [*self._widths[1:], width]
        return low.weight * math.exp(share * width)

    def _lean(self, target: float, floor: float) -> float:
        """Return how far beyond the level to aim, on the side whose end is missing or farther away."""
        off = [math.inf if end is None else abs(_depth(end, floor) - target) for end in (self.inside, self.outside)]
        if math.isinf(min(off)):
            return 0.0
        lean = LEAN * LEAP**self._repeats * min(off)
        return -lean if off[0] > off[1] else lean

    def _interpolated(self, depth: float, floor: float) -> float:
        """Return log λ where log (g − g*) is this, from all that was seen."""
        known: list[tuple[float, float]] = []
        for each in reversed(self.trail):  # in the order of growing g
            if not known or _depth(each, floor) > known[-1][0] + LEAST_SEPARATION:
                known.append((_depth(each, floor), math.log(each.weight)))
        depths, logs = np.array(known).T
        return float(scipy.interpolate.PchipInterpolator(depths, logs)(depth)) if len(known) > 1 else float(logs[0])

    def _beyond_all(self, target: float, floor: float, grows: bool) -> float:
        """Return a λ beyond all that were seen: a little further than it seems, so that the level comes to lie between."""
        last, *others = self.trail[::-1] if grows else self.trail
        before = next((each for each in others if abs(math.log(each.weight / last.weight)) >= FARTHER), None)
        power = POWER
        if before is not None:
            power = (_depth(last, floor) - _depth(before, floor)) / math.log(last.weight / before.weight)
        steps = OVERSHOOT * (target - _depth(last, floor)) / min(max(power, STEEPEST), FLATTEST)
        low, high = (SHORTEST_STEP, LONGEST_STEP) if grows else (-LONGEST_STEP, -SHORTEST_STEP)
        return last.weight * math.exp(min(max(steps, low), high))

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return all of this as arrays."""
        kept = {
            "bracket.progress": np.array([*self._widths, self._repeats, self._side]),
            "bracket.trail": np.array(self.trail).reshape(-1, 3),
        }
        for side, end in (("inside", self.inside), ("outside", self.outside)):
            if end is not None:
                kept[f"{side}.numbers"], kept[f"{side}.x"] = np.array(end[:3]), end.x
                for name, place in (("upper", end.upper), ("lower", end.lower)):
                    kept |= {f"{side}.{name}{i}": image for i, image in enumerate(place.images)}
        return kept

    def restore(self, arrays: Mapping[str, np.ndarray], levels: Sequence[Level]) -> None:
        """Take over what :meth:`stored` returned."""
        *self._widths, repeats, self._side = arrays["bracket.progress"].tolist()
        self._repeats = int(repeats)
        self.trail = [Seen(*row) for row in arrays["bracket.trail"].tolist()]
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


def _depth(point: Seen | End, floor: float) -> float:
    """Return log (g − g*)."""
    return math.log(max(point.g - floor, TINY))
