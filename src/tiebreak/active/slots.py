"""Atoms in numbered slots, all their entries in a few arrays."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.domains.atoms import Atom


class Candidate(NamedTuple):
    """An atom that may be added."""

    saved: float  # how much cheaper than x it is
    block: int
    atom: Atom

    @property
    def name(self) -> tuple[int, bytes, bytes]:
        """What tells it from others: blocks may have atoms of the same entries, as of 0."""
        return self.block, *self.atom.key()


class Slots:
    """Atoms of a set, each of one block, in numbered slots.

    Attributes
    ----------
    blocks : array of int, (s,)
        The block of each.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.clear()

    def clear(self) -> None:
        """Take all atoms out."""
        self.where, self.values = np.zeros(0, dtype=np.int64), np.zeros(0)
        self.slot = np.zeros(0, dtype=np.int64)  # of each entry
        self.blocks = np.zeros(0, dtype=np.int64)
        self._places: dict[tuple[int, bytes, bytes], int] = {}

    def __len__(self) -> int:
        return self.blocks.size

    def find(self, candidate: Candidate) -> int:
        """Return the slot of an atom; −1 if it has none."""
        return self._places.get(candidate.name, -1)

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Give atoms that have no slot the next ones."""
        first = len(self)
        for k, candidate in enumerate(candidates):
            self._places[candidate.name] = first + k
        atoms = [candidate.atom for candidate in candidates]
        sizes = [atom.where.size for atom in atoms]
        self.where = np.concatenate([self.where, *(atom.where for atom in atoms)])
        self.values = np.concatenate([self.values, *(atom.values for atom in atoms)])
        self.slot = np.concatenate([self.slot, np.repeat(np.arange(first, first + len(atoms)), sizes)])
        self.blocks = np.concatenate([self.blocks, np.array([each.block for each in candidates], dtype=np.int64)])

    def keep(self, slots: np.ndarray) -> None:
        """Forget all atoms but some; these move to the first slots."""
        place = np.full(len(self), -1)
        place[slots] = np.arange(slots.size)
        entries = place[self.slot] >= 0
        self.where, self.values, self.slot = self.where[entries], self.values[entries], place[self.slot[entries]]
        self.blocks = self.blocks[slots]
        self._places = {name: int(place[slot]) for name, slot in self._places.items() if place[slot] >= 0}

    def atoms(self, first: int = 0) -> list[Atom]:
        """Return the atoms from a slot on."""
        starts = np.searchsorted(self.slot, np.arange(first, len(self) + 1))
        return [Atom(self.where[low:high], self.values[low:high]) for low, high in itertools.pairwise(starts)]

    def point(self, weights: np.ndarray) -> np.ndarray:
        """Return a combination of all atoms."""
        point = np.bincount(self.where, self.values * weights[self.slot], self.dimension)
        return point.astype(np.float64, copy=False)  # of no entries it would be one of integers

    def prices(self, slope: np.ndarray) -> np.ndarray:
        """Return the product of each atom with a slope."""
        return np.bincount(self.slot, self.values * slope[self.where], len(self)).astype(np.float64, copy=False)

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return all atoms as arrays."""
        return {"where": self.where, "values": self.values, "slot": self.slot, "blocks": self.blocks}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        self.clear()
        where, values, slot, blocks = (arrays[name] for name in ("where", "values", "slot", "blocks"))
        starts = np.searchsorted(slot, np.arange(blocks.size + 1))
        self.add(
            [
                Candidate(0.0, int(block), Atom(where[low:high], values[low:high]))
                for block, (low, high) in zip(blocks, itertools.pairwise(starts), strict=True)
            ]
        )
