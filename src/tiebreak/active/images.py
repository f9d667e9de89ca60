"""What a term knows of the atoms in all slots, and the curvature between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from tiebreak.domains.atoms import Atom

GROWTH = 1.5  # factor by which room for atoms grows
DENSE = 0.02  # share of entries from which on products of atoms with all their zeros are faster


class Columns:
    """Images M v of atoms, one per column, and room for more.

    Parameters
    ----------
    size : int
        Of an image.
    images : callable
        Returns those of some atoms.
    """

    def __init__(self, size: int, images: Callable[[Sequence[Atom]], np.ndarray]) -> None:
        self._find, self._known, self._array = images, 0, np.zeros((size, 0), order="F")

    @property
    def array(self) -> np.ndarray:
        """All of them."""
        return self._array[:, : self._known]

    def add(self, atoms: Sequence[Atom]) -> None:
        """Add those of further atoms."""
        after = self._known + len(atoms)
        if after > self._array.shape[1]:
            roomy = np.empty((len(self._array), int(GROWTH * after)), order="F")
            roomy[:, : self._known] = self.array
            self._array = roomy
        self._array[:, self._known : after] = self._find(atoms)
        self._known = after

    def keep(self, slots: np.ndarray) -> None:
        """Forget all but some, in increasing order."""
        self._array[:, : slots.size] = self._array[:, slots]
        self._known = slots.size

    def mean(self, weights: np.ndarray) -> np.ndarray:
        """Return the image of a combination of the atoms."""
        return self.array @ weights

    def gram(self, first: int, bends: np.ndarray) -> np.ndarray:
        """Return the curvature between the atoms from one on and all of them, where entries of images have these."""
        return (self.array[:, first:] * bends[:, None]).T @ self.array


class Entries:
    """The entries of atoms in a range of the variables, for terms whose curvature H is known: no images are needed.

    Parameters
    ----------
    where : slice
        The range.
    factor : float
    hessian : callable, optional
        Returns H / ``factor``, which is the identity if none is given.
    """

    def __init__(self, where: slice, factor: float, hessian: Callable[[], np.ndarray] | None = None) -> None:
        self._where, self._factor, self._hessian = where, factor, hessian
        self._places, self._values = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._sizes = np.zeros(0, dtype=np.int64)  # entries of each atom

    @property
    def array(self) -> np.ndarray:
        """Images of nothing."""
        return np.zeros((0, self._sizes.size))

    def add(self, atoms: Sequence[Atom]) -> None:
        """Add those of further atoms."""
        parts = [within(atom, self._where) for atom in atoms]
        self._places = np.concatenate([self._places, *(part.where for part in parts)])
        self._values = np.concatenate([self._values, *(part.values for part in parts)])
        self._sizes = np.concatenate([self._sizes, [part.where.size for part in parts]])

    def keep(self, slots: np.ndarray) -> None:
        """Forget all but some, in increasing order."""
        kept = np.zeros(self._sizes.size, dtype=bool)
        kept[slots] = True
        entries = np.repeat(kept, self._sizes)
        self._places, self._values, self._sizes = self._places[entries], self._values[entries], self._sizes[slots]

    def mean(self, weights: np.ndarray) -> np.ndarray:
        """Return the image of a combination of the atoms: nothing."""
        return weights[:0]

    def gram(self, first: int, bends: np.ndarray) -> np.ndarray:
        """Return the curvature between the atoms from one on and all of them."""
        return self._factor * (self._on_axes(first) if self._sizes.max(initial=0) <= 1 else self._products(first))

    def _on_axes(self, first: int) -> np.ndarray:
        """Return it for atoms with one entry, or none: entries of H."""
        some = self._sizes == 1
        place, value = np.zeros(some.size, dtype=np.int64), np.zeros(some.size)
        place[some], value[some] = self._places, self._values
        own = place[first:, None] == place if self._hessian is None else self._hessian()[np.ix_(place[first:], place)]
        return own * value * value[first:, None]

    def _products(self, first: int) -> np.ndarray:
        atoms = self._points if self._values.size > DENSE * self._sizes.size * self._width else self._sparse
        found = atoms[first:] @ atoms.T if self._hessian is None else (atoms @ (atoms[first:] @ self._hessian()).T).T
        return found.toarray() if scipy.sparse.issparse(found) else found

    @property
    def _width(self) -> int:
        return self._where.stop - self._where.start

    @property
    def _points(self) -> np.ndarray:
        """All atoms, one per row."""
        points = np.zeros((self._sizes.size, self._width))
        points[np.repeat(np.arange(self._sizes.size), self._sizes), self._places] = self._values
        return points

    @property
    def _sparse(self) -> Any:
        starts = np.concatenate([[0], np.cumsum(self._sizes)])
        return scipy.sparse.csr_array((self._values, self._places, starts), shape=(self._sizes.size, self._width))


def within(atom: Atom, where: slice) -> Atom:
    """Return the part of an atom that lies in a range of the variables."""
    low, high = where.start, where.stop
    if low == 0 and (not atom.where.size or atom.where[-1] < high):
        return atom
    first, last = np.searchsorted(atom.where, [low, high])
    return Atom(atom.where[first:last] - low, atom.values[first:last])
