"""What a method that keeps a point as a mean of few atoms asks of a set.

These are a few functions. :func:`blocks` splits a set into a product, :func:`vertices` finds points of one factor at which a
linear function is small, :func:`decomposed` writes a point as a mean of such points, and :func:`has_vertices` says whether
finitely many of them make the set. Of a set that is much larger than what matters, :func:`near` is a part, and
:func:`extent` says how far a point is from its boundary. They are asked outside the loops. They are plain Python, chosen by
the class of the set. Their defaults know :func:`~tiebreak.domains.lmo` alone.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.base import lmo

ROUNDING = 1e-14  # weight that rounding alone may leave, of 1


class Atom(NamedTuple):
    """A point of a set, by its entries that are not zero.

    Attributes
    ----------
    where : array of int64, (k,)
        The indices of these entries, in increasing order.
    values : array, (k,)

    Examples
    --------
    >>> Atom(np.array([2]), np.array([-1.5])).point(4)
    array([ 0. ,  0. , -1.5,  0. ])
    """

    where: np.ndarray
    values: np.ndarray

    def point(self, dimension: int) -> np.ndarray:
        """Return the point with all its entries."""
        x = np.zeros(dimension)
        x[self.where] = self.values
        return x

    def key(self) -> tuple[bytes, bytes]:
        """Return what two atoms share if and only if they are the same point."""
        return self.where.tobytes(), self.values.tobytes()


class Block(NamedTuple):
    """Some of the variables and the set in which they lie, whatever the others are.

    Attributes
    ----------
    where : array of int64, (k,)
        The indices of these variables.
    domain : Domain
        A set of k variables.
    """

    where: np.ndarray
    domain: Any


@functools.singledispatch
def blocks(domain: Any, dimension: int) -> list[Block]:
    """Return Z as a product: sets of some variables each, of which every variable is in one.

    Products, columns, boxes and ℓ∞ balls are split, as far as it goes: a box into intervals. A block may be a simpler set of
    the same points. The default is one block of all variables.

    Parameters
    ----------
    domain : Domain
    dimension : int
        Number of variables, for sets that fit any.

    Examples
    --------
    >>> from tiebreak import Columns, L1Ball
    >>> [block.where.tolist() for block in blocks(Columns(L1Ball(1.0), (2, 3)), 6)]
    [[0, 1], [2, 3], [4, 5]]
    """
    return [whole(domain, dimension)]


@functools.singledispatch
def vertices(domain: Any, c: np.ndarray, count: int) -> list[Atom]:
    """Return up to ``count`` different points of Z with small ⟨c, v⟩, in increasing order, the first one a minimiser.

    Of a set that :func:`has_vertices` they are extreme points, except that a hull may hold others among its points. The same
    question gets the same answer, also where products tie, unless ``lmo`` depends on earlier calls. The points after the
    first are not always the next best ones of all, but those that are found at little cost. The default is the point of
    ``lmo`` alone.

    Parameters
    ----------
    domain : Domain
        A set of a :class:`Block`.
    c : array, (k,)
        Finite numbers.
    count : int
        At least 1.

    Examples
    --------
    >>> from tiebreak import L1Ball
    >>> [atom.point(3).tolist() for atom in vertices(L1Ball(2.0), np.array([1.0, -3.0, 0.0]), 2)]
    [[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0]]
    """
    point = np.empty(c.size)
    lmo(domain, c, point)
    return [atom_of(point)]


@functools.singledispatch
def decomposed(domain: Any, x: np.ndarray) -> list[tuple[float, Atom]]:
    """Return weights > 0, of sum 1, and atoms of Z whose mean is x, up to rounding.

    The atoms are extreme points of sets that tell them easily (of balls also the centre). The default is x itself.

    Parameters
    ----------
    domain : Domain
        A set of a :class:`Block`.
    x : array, (k,)
        A point of the set, up to rounding.

    Examples
    --------
    >>> from tiebreak import L1Ball
    >>> [(weight, atom.point(2).tolist()) for weight, atom in decomposed(L1Ball(2.0), np.array([1.0, -0.5]))]
    [(0.5, [2.0, 0.0]), (0.25, [0.0, -2.0]), (0.25, [0.0, 0.0])]
    """
    return [(1.0, atom_of(x))]


@functools.singledispatch
def has_vertices(domain: Any) -> bool:
    """Return whether Z is known to be the hull of finitely many points; False unless a set says so.

    Examples
    --------
    >>> from tiebreak import L1Ball, L2Ball
    >>> has_vertices(L1Ball(1.0)), has_vertices(L2Ball(1.0))
    (True, False)
    """
    return False


@functools.singledispatch
def near(domain: Any, x: np.ndarray, reach: float) -> Any:
    """Return a part of Z around x: a set of the same kind that holds all points s of Z with Σ |s_j − x_j| ≤ ``reach``.

    That is up to rounding. It may hold others. A set that is hardly smaller than Z is Z itself. So is the default.

    Parameters
    ----------
    domain : Domain
        A set of a :class:`Block`, or all of Z.
    x : array, (k,)
        A point of the set, up to rounding.
    reach : float
        A positive number.

    Examples
    --------
    >>> from tiebreak import L1Ball
    >>> near(L1Ball(1e9), np.array([1.0, -2.0]), 10.0)
    L1Ball(radius=13.0)
    """
    return domain


@functools.singledispatch
def extent(domain: Any, x: np.ndarray) -> tuple[float, float]:
    """Return how far x is from the middle of Z, and how far it could be: in any unit, the same for both.

    By default that is not known, and x is said to be at the boundary.
    """
    return 1.0, 1.0


# What sets answer with


def has_vertices_always(domain: Any) -> bool:
    """Answer :func:`has_vertices` for a polytope."""
    return True


def whole(domain: Any, dimension: int) -> Block:
    """Return the block of all variables."""
    return Block(np.arange(dimension, dtype=np.int64), domain)


def shifted(parts: Iterable[Block], start: int) -> list[Block]:
    """Return blocks whose variables begin at another index."""
    return [Block(part.where + start, part.domain) for part in parts]


def atom_of(point: np.ndarray) -> Atom:
    """Return a point as an atom."""
    where = np.flatnonzero(point)
    return Atom(where, np.array(point[where]))


def on_axes(where: np.ndarray, values: np.ndarray) -> list[Atom]:
    """Return one atom per index, with one entry; where the value is zero it is the origin."""
    entries = zip(where[:, None], values[:, None], strict=True)
    return [Atom(at, value) if value[0] != 0.0 else Atom(at[:0], value[:0]) for at, value in entries]


def changed(atom: Atom, where: np.ndarray, values: np.ndarray) -> list[Atom]:
    """Return atoms that differ from one in some entries: one per row of their indices and of what is there.

    Of an index that occurs twice in a row the first one counts.
    """
    rows = len(where)
    places = np.concatenate([where, np.broadcast_to(atom.where, (rows, atom.where.size))], axis=1)
    entries = np.concatenate([values, np.broadcast_to(atom.values, (rows, atom.values.size))], axis=1)
    order = np.argsort(places, axis=1, kind="stable")
    places, entries = (np.take_along_axis(array, order, axis=1) for array in (places, entries))
    kept = entries != 0.0
    kept[:, 1:] &= places[:, 1:] != places[:, :-1]
    places, entries, ends = places[kept], entries[kept], np.cumsum(kept.sum(axis=1)).tolist()
    return [Atom(places[low:high], entries[low:high]) for low, high in itertools.pairwise([0, *ends])]


def distinct(atoms: Iterable[Atom], count: int) -> list[Atom]:
    """Return the first atoms, each point once."""
    found: dict[Any, Atom] = {}
    for atom in atoms:
        found.setdefault(atom.key(), atom)
        if len(found) == count:
            break
    return list(found.values())


def least(keys: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the least keys in increasing order, and of equal ones in the order of the indices, in O(d)."""
    if not 0 < count < keys.size:
        return np.argsort(keys, kind="stable")[: max(count, 0)]
    threshold = np.partition(keys, count - 1)[count - 1]
    below = np.flatnonzero(keys < threshold)
    tied = np.flatnonzero(keys == threshold)[: count - below.size]
    chosen = np.sort(np.concatenate([below, tied]))
    return chosen[np.argsort(keys[chosen], kind="stable")]


def mean_of_axes(x: np.ndarray, reach: np.ndarray | float, origin: bool) -> list[tuple[float, Atom]]:
    """Return x as a mean of points ±reach on one axis each and, where the set holds it, of the origin."""
    where = np.flatnonzero(x)
    sizes = np.broadcast_to(np.asarray(reach, dtype=np.float64), x.shape)[where]
    weights = np.divide(np.abs(x[where]), sizes, out=np.zeros(where.size), where=sizes > 0.0)
    where, sizes, weights = where[weights > 0.0], sizes[weights > 0.0], weights[weights > 0.0]
    total = float(weights.sum())
    if not origin or total > 1.0 - ROUNDING:
        weights = weights / total
    found = list(zip(weights.tolist(), on_axes(where, np.copysign(sizes, x[where])), strict=True))
    if origin and total <= 1.0 - ROUNDING:
        found.append((1.0 - total, atom_of(np.empty(0))))
    return found
