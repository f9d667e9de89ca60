"""The band in which the true frontier lies, from proven bounds at some tolerances and its convexity.

f*(ε), the least f over the points of Z with g ≤ g* + ε, falls with ε, and is convex if f and g are. So between two ceilings
it lies below their chord, and the line through a floor and a ceiling farther away bounds it from below on the other side of
the floor. A multiplier λ bounds it from below for every ε by a line of slope −λ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tiebreak.engine.rounding import UNIT

ROUNDED = 16.0 * UNIT  # more than the relative rounding of the few operations of a line


class Bound(NamedTuple):
    """A number that f* at one tolerance is not below, or not above."""

    tolerance: float
    value: float


class Tangent(NamedTuple):
    """A line below f*(ε): f*(ε) ≥ min (f + λ g) − λ (ḡ + ε), ḡ ≥ g* the least g seen."""

    weight: float  # λ
    least: float  # ≤ min (f + λ g) on Z
    best_lower: float  # ḡ

    def at(self, tolerance: float) -> float:
        """Return the bound for a tolerance, rounded down."""
        spent = self.weight * (self.best_lower + tolerance)
        sizes = abs(self.least) + self.weight * (abs(self.best_lower) + tolerance)
        return self.least - spent - ROUNDED * sizes


@dataclass(frozen=True)
class Band:
    """Proven floors and ceilings of f*(ε) for every ε ≥ 0.

    Parameters
    ----------
    floors, ceilings : tuple of Bound
        At single tolerances; infinite ones say nothing.
    least : float
        A floor of f on all of Z.
    tangents : tuple of Tangent
        Lines below the curve.
    convex : bool
        Whether f*(ε) is known to be convex.

    Examples
    --------
    >>> band = Band((Bound(1.0, 2.0),), (Bound(0.0, 4.0), Bound(1.0, 2.0)))
    >>> band.floor(1.0), band.floor(0.5), round(band.floor(1.5), 9)
    (2.0, 2.0, 1.0)
    >>> band.ceiling(0.0), round(band.ceiling(0.5), 9), band.ceiling(7.0)
    (4.0, 3.0, 2.0)
    """

    floors: tuple[Bound, ...]
    ceilings: tuple[Bound, ...]
    least: float = -math.inf
    tangents: tuple[Tangent, ...] = ()
    convex: bool = True

    def __repr__(self) -> str:
        ends = [bound.tolerance for bound in self.floors]
        return f"Band of f* with bounds at {len(ends)} tolerances" + (f", {min(ends):g} to {max(ends):g}" if ends else "")

    def floor(self, tolerance: float) -> float:
        """Return a proven floor of f* at a tolerance."""
        floors, ceilings = _finite(self.floors), _finite(self.ceilings)
        found = [self.least, *(bound.value for bound in floors if bound.tolerance >= tolerance)]
        found += [tangent.at(tolerance) for tangent in self.tangents]
        if floors and ceilings and self.convex:
            at, value = (column[:, None] for column in np.array(floors).T)
            other, above = np.array(ceilings).T
            # The floor lies between ε and the ceiling, or at ε.
            between = (at - tolerance) * (other - at) > 0.0
            reach = np.divide(at - tolerance, other - at, out=np.zeros(between.shape), where=between)
            line = value + (value - above) * reach - ROUNDED * (np.abs(value) + np.abs(above)) * (1.0 + reach)
            found.append(float(line.max(where=between, initial=-math.inf)))
        return max(found)

    def ceiling(self, tolerance: float) -> float:
        """Return a proven ceiling of f* at a tolerance; infinite if nothing bounds it from above."""
        ceilings = _finite(self.ceilings)
        found = [math.inf, *(bound.value for bound in ceilings if bound.tolerance <= tolerance)]
        for left in ceilings if self.convex else ():
            for right in ceilings:
                if left.tolerance < tolerance < right.tolerance:
                    share = (tolerance - left.tolerance) / (right.tolerance - left.tolerance)
                    chord = left.value + share * (right.value - left.value)
                    found.append(chord + ROUNDED * (abs(left.value) + abs(right.value)))
        return min(found)


def _finite(bounds: tuple[Bound, ...]) -> list[Bound]:
    return [bound for bound in bounds if math.isfinite(bound.value)]
