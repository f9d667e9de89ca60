"""Vertices next to the best one, of sets whose atoms give the same to the coordinates that rank first."""

from __future__ import annotations

import numpy as np

from tiebreak.domains.atoms import Atom, atom_of, changed, least
from tiebreak.domains.base import lmo
from tiebreak.domains.cuts.ranking import Ranking
from tiebreak.domains.rounding import quiet

CLOSEST = 50  # coordinates on either side of the threshold that may be exchanged
SAME = 1e-14  # relative difference of two parts that rounding alone may explain


@quiet
def exchanged(domain: Ranking, c: np.ndarray, count: int) -> list[Atom]:
    """Return the best vertex, and those in which two coordinates have exchanged their parts or one has changed its sign.

    They are up to ``count``, in increasing order of ⟨c, v⟩.
    """
    point = np.empty(c.size)
    lmo(domain, c, point)
    first, parts = atom_of(point), np.abs(point)
    slopes = -np.abs(c) if domain.folded else c  # of ⟨c, v⟩ in the part of each coordinate
    high, low = np.flatnonzero(parts == domain.most), np.flatnonzero(parts == 0.0)
    between = np.flatnonzero((parts > 0.0) & (parts < domain.most))
    most = min(count - 1, CLOSEST)
    near = np.concatenate([high[least(-slopes[high], most)], between, low[least(slopes[low], most)]])
    part, slope = parts[near], slopes[near]
    costs = (part[:, None] - part) * (slope - slope[:, None])  # of giving the part of one to another, and taking its part
    allowed = part[:, None] - part > SAME * domain.most
    if domain.folded:  # the diagonal stands for changes of sign
        np.fill_diagonal(costs, -2.0 * part * slope)
        np.fill_diagonal(allowed, part > 0.0)
    pairs = np.flatnonzero(allowed)
    best = pairs[least(costs.ravel()[pairs], count - 1)]
    i, j = near[best // max(near.size, 1)], near[best % max(near.size, 1)]
    ends, given = np.column_stack([i, j]), np.column_stack([parts[j], parts[i]])
    if domain.folded:
        given = np.where((i == j)[:, None], -point[ends], -np.copysign(given, c[ends]))
    return [first, *changed(first, ends, given)]
