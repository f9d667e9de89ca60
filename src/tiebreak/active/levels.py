"""One objective as the active set sees it: the images of its atoms, and the curvature between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.active.images import GROWTH
from tiebreak.active.terms import Pair, Points, Term
from tiebreak.domains.atoms import Atom


class Place(NamedTuple):
    """A point, or a direction, with its images at a level, one per term."""

    x: np.ndarray
    images: list[np.ndarray]

    def towards(self, end: Place) -> Place:
        """Return the way from this point to another one."""
        return Place(end.x - self.x, [last - first for first, last in zip(self.images, end.images, strict=True)])


class Level:
    """One objective with the images of the atoms in all slots and their curvature.

    Attributes
    ----------
    known : int
        Slots whose images are known: the first ones.
    refined : bool
        Whether it looks more closely than at first.
    """

    def __init__(self, terms: list[Term]) -> None:
        self.terms, self.known, self.refined = terms, 0, False
        self.quadratic = all(term.quadratic for term in terms)
        self._stores = [term.store() for term in terms]
        self._gram = np.zeros((0, 0))
        self._curved = 0  # slots whose curvature is known
        self._bends: list[np.ndarray] = []  # per term, the curvature of each entry of an image at the last look

    @property
    def first_passes(self) -> int:
        """Passes over the data that it takes to begin with."""
        return max((term.first_passes for term in self.terms), default=0)

    @property
    def passes(self) -> int:
        """Passes over the data that a look takes."""
        sampled = [term for term in self.terms if not isinstance(term, Points)]  # beside rows, what is known exactly is free
        return max((term.passes for term in sampled or self.terms), default=0)

    def refine(self) -> bool:
        """Look more closely from now on; return False if there is no way to."""
        found = [term.refine() for term in self.terms]  # of all of them, not up to the first
        self.refined = self.refined or any(found)
        return any(found)

    @property
    def images(self) -> list[np.ndarray]:
        """The images of all known slots, per term."""
        return [store.array for store in self._stores]

    def add(self, atoms: Sequence[Atom]) -> None:
        """Add the images of further atoms."""
        if not atoms:
            return
        for store in self._stores:
            store.add(atoms)
        self.known += len(atoms)

    def keep(self, slots: np.ndarray) -> None:
        """Forget all slots but some."""
        own, curved = slots[slots < self.known], slots[slots < self._curved]
        for store in self._stores:
            store.keep(own)
        self._gram = self._gram[np.ix_(curved, curved)]
        self.known, self._curved = own.size, curved.size

    def look(self, x: np.ndarray, weights: np.ndarray, gradient: np.ndarray) -> float:
        """Return the value at the mean x of the atoms in all slots, and add the gradient."""
        images = self.image(weights)
        found = [term.look(x, image, gradient) for term, image in zip(self.terms, images, strict=True)]
        self._bends = [bends for _, bends in found]
        return math.fsum(value for value, _ in found)

    def evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient at a point that need not be a mean of atoms."""
        gradient = np.zeros_like(x)
        return math.fsum(term.look(x, term.image(x), gradient)[0] for term in self.terms), gradient

    def curvature(self) -> np.ndarray:
        """Return the curvature between all slots, at the last look."""
        known, first = self.known, self._curved if self.quadratic else 0
        if known > len(self._gram):
            roomy = np.zeros((int(GROWTH * known),) * 2)
            roomy[:first, :first] = self._gram[:first, :first]
            self._gram = roomy
        if first < known:
            rows = np.zeros((known - first, known))
            for store, bends in zip(self._stores, self._bends, strict=True):
                rows += store.gram(first, bends)
            self._gram[first:known, :known] = rows
            self._gram[:first, first:known] = rows[:, :first].T
            self._curved = known
        return self._gram[:known, :known]

    def rounding(self, x: np.ndarray, value: float) -> float:
        """Return about what rounding does to its value at x."""
        return math.fsum(term.rounding(x, value) for term in self.terms)

    def bend_along(self, way: np.ndarray) -> float:
        """Return the curvature along a direction, at the last look."""
        return math.fsum(term.bend_along(way, bends) for term, bends in zip(self.terms, self._bends, strict=True))

    def image(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the image of a combination of the atoms in all slots, per term."""
        return [store.mean(weights) for store in self._stores]

    def along(self, start: Place, way: Place, step: float) -> tuple[float, float]:
        """Return value and slope at a step from a place along a way."""
        total = np.zeros(2)
        for term, first, image in zip(self.terms, start.images, way.images, strict=True):
            total += term.along(Pair(start.x + step * way.x, first + step * image), Pair(way.x, image))
        return float(total[0]), float(total[1])

    # On disk

    def stored(self) -> np.ndarray:
        """Return the curvature that is known."""
        return self._gram[: self._curved, : self._curved].copy()

    def restore(self, atoms: Sequence[Atom], gram: np.ndarray) -> None:
        """Take over what :meth:`stored` returned of these atoms, of which the last may have no images yet."""
        self.known, self._stores = 0, [term.store() for term in self.terms]
        self.add(atoms)
        self._gram, self._curved = gram, len(gram)
