"""The cheapest atoms of all blocks, by what they cost along a slope."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiebreak.active.slots import Candidate
from tiebreak.domains.atoms import Atom, Block, least, on_axes, vertices
from tiebreak.domains.boxes import intervals


class Prices:
    """Blocks whose atoms are priced; intervals, of which a box has many, all at once."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks, self._intervals = blocks, intervals(blocks)
        many = set(self._intervals.numbers.tolist())
        self._others = [b for b in range(len(blocks)) if b not in many]

    def found(self, slope: np.ndarray, x: np.ndarray, count: int, share: float) -> tuple[float, np.ndarray, list[Candidate]]:
        """Return the gap, by how much an atom must be cheaper than x to be worth it, by block, and up to so many of these.

        It is a share of the gap of its block, or of the mean over all blocks if that is more. The cheapest atoms come first.
        """
        numbers, where, lower, upper = self._intervals
        gaps, found = np.zeros(len(self._blocks)), list[Candidate]()
        c = slope[where]
        ends = np.where(c > 0.0, lower, upper)
        saved = c * x[where] - c * ends
        gaps[numbers] = np.maximum(saved, 0.0)
        for b in self._others:
            block = self._blocks[b]
            c = slope[block.where]
            level = float(c @ x[block.where])
            for k, local in enumerate(vertices(block.domain, c, count)):
                cheaper = level - float(c[local.where] @ local.values)
                if k == 0:
                    gaps[b] = max(cheaper, 0.0)
                if cheaper > share * gaps[b]:
                    found.append(Candidate(cheaper, b, Atom(block.where[local.where], local.values)))
        gap = float(gaps.sum())
        worth = share * np.maximum(gaps, gap / len(self._blocks))
        chosen = np.flatnonzero(saved > worth[numbers])
        chosen = chosen[least(-saved[chosen], count)]
        for k, atom in zip(chosen.tolist(), on_axes(where[chosen], ends[chosen]), strict=True):
            found.append(Candidate(float(saved[k]), int(numbers[k]), atom))
        found.sort(key=lambda each: -each.saved)
        return gap, worth, [each for each in found if each.saved > worth[each.block]][:count]
