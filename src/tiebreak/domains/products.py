"""Sets made of sets: matrices whose columns lie in a set, and products of named parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import Block, blocks, has_vertices, shifted
from tiebreak.domains.balls import L2Ball
from tiebreak.domains.base import (
    INVALID,
    Domain,
    contains,
    cut_lmo,
    diameter,
    least_value,
    lmo,
    project,
    settle,
    spread,
    unsettled,
)
from tiebreak.domains.cuts.ball_columns import ball_columns_cut, column
from tiebreak.domains.cuts.l1_columns import l1_columns_cut
from tiebreak.domains.cuts.search import dual_search, next_atom, opening
from tiebreak.domains.l1 import L1Ball
from tiebreak.domains.rounding import quiet, raised, sum_floor
from tiebreak.engine import checks, kernel
from tiebreak.engine.printing import named


class _Columns(NamedTuple):
    set: Any
    rows: int
    columns: int


class Columns(_Columns, Domain):
    """The matrices each of whose columns lies in one set.

    A point is a vector that holds the matrix column by column; :meth:`parts` shows it as the matrix.

    Parameters
    ----------
    set : Domain
        A set of vectors of length m, such as ``L2Ball(1.0)`` or ``L1Ball(3.0)``.
    shape : (int, int)
        Number m of rows and number p of columns.

    Examples
    --------
    >>> from tiebreak import L1Ball
    >>> matrices = Columns(L1Ball(1.0), (2, 3))
    >>> s = matrices.lmo([3.0, 1.0, 0.0, -2.0, 1.0, 4.0])
    >>> matrices.parts(s)["x"]
    array([[-1.,  0.,  0.],
           [ 0.,  1., -1.]])
    """

    __slots__ = ()

    def __new__(cls, set: Any, shape: Any) -> Columns:
        if not isinstance(set, Domain) or not lmo.supports(set):
            raise ValueError(f"`set` must be a set such as L1Ball(radius), got {checks.shown(set)}")
        rows, columns = checks.matrix_shape(shape)
        if set.dimension not in (None, rows):
            raise ValueError(f"`shape` must have {set.dimension} rows, the dimension of `set`, got {checks.shown(shape)}")
        kinds: dict[Any, Any] = {L2Ball: _BallColumns, L1Ball: _L1Columns} if cls is Columns else {}
        return super().__new__(kinds.get(type(set), cls), set, rows, columns)

    @property
    def dimension(self) -> int:
        return self.rows * self.columns

    def inner_sets(self) -> tuple[Domain, ...]:
        return (self.set,)

    def middle(self, dimension: int) -> np.ndarray:
        return np.tile(self.set.middle(self.rows), self.columns)

    def centroid(self, dimension: int) -> np.ndarray:
        return np.tile(self.set.centroid(self.rows), self.columns)

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": x.reshape(self.columns, self.rows).T}


class _BallColumns(Columns):
    """Columns in Euclidean balls, which have a cut of their own; users see :class:`Columns`."""

    __slots__ = ()


class _L1Columns(Columns):
    """Columns in ℓ1 balls, which have a cut of their own; users see :class:`Columns`."""

    __slots__ = ()


class _Pair(NamedTuple):
    first: Any
    second: Any
    split: int  # dimension of the first


class Pair(_Pair, Domain):
    """The product of two sets, one after the other in one vector. A product of more is a pair of a set and a pair."""

    __slots__ = ()

    def inner_sets(self) -> tuple[Domain, ...]:
        return self.first, self.second


class _Product(NamedTuple):
    names: str  # with a space between
    dimension: int
    tree: Any  # the only part, or a Pair of the first one and the tree of the others


class Product(_Product, Domain):
    """The product of named sets, one after the other in one vector; :meth:`parts` gives views by name.

    Parameters
    ----------
    **parts : Domain or (Domain, int)
        The sets by name. A set of any dimension comes with the dimension that is meant: ``w=(L1Ball(1.0), 10)``.

    Examples
    --------
    >>> from tiebreak import L1Ball
    >>> both = Product(w=(L1Ball(1.0), 2), X=Columns(L1Ball(3.0), (2, 2)))
    >>> both.dimension
    6
    >>> both.parts(both.lmo([1.0, 2.0, 3.0, 4.0, 6.0, 5.0]))["X"]
    array([[ 0., -3.],
           [-3.,  0.]])
    """

    __slots__ = ()

    def __new__(cls, **parts: Any) -> Product:
        if not parts:
            raise ValueError("`parts` must name at least one set, got none")
        known = [sized_part(name, value) for name, value in parts.items()]
        tree = known[-1][0]
        for part, size in reversed(known[:-1]):
            tree = Pair(part, tree, size)
        return super().__new__(cls, " ".join(parts), sum(size for _, size in known), tree)

    def __repr__(self) -> str:
        return named("Product", {name: part for name, part, _ in self.named_parts()})

    def inner_sets(self) -> tuple[Domain, ...]:
        return tuple(part for _, part, _ in self.named_parts())

    def middle(self, dimension: int) -> np.ndarray:
        return np.concatenate([part.middle(where.stop - where.start) for _, part, where in self.named_parts()])

    def centroid(self, dimension: int) -> np.ndarray:
        return np.concatenate([part.centroid(where.stop - where.start) for _, part, where in self.named_parts()])

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        views: dict[str, np.ndarray] = {}
        for name, part, where in self.named_parts():
            inner = part.parts(x[where])
            whole = isinstance(part, Product) is False and list(inner) == ["x"]
            views.update({name if whole else f"{name}.{key}": view for key, view in inner.items()})
        return views

    def named_parts(self) -> Iterator[tuple[str, Any, slice]]:
        """Yield the name of each part, its set and its place in the vector."""
        names, tree, start = self.names.split(" "), self.tree, 0
        for name in names[:-1]:
            yield name, tree.first, slice(start, start + tree.split)
            start += tree.split
            tree = tree.second
        yield names[-1], tree, slice(start, self.dimension)


def sized_part(name: str, value: Any) -> tuple[Any, int]:
    """Return a part of a product and its dimension."""
    if not name.isidentifier():
        raise ValueError(f"the name of a part must be an identifier such as X or weights, got {checks.shown(name)}")
    part, size = value, None
    if type(value) is tuple and len(value) == 2:
        part, size = value[0], checks.whole(value[1], f"{name}[1]")
    if not isinstance(part, Domain) or not lmo.supports(part):
        raise ValueError(f"`{name}` must be a set, or a set and its dimension, got {checks.shown(value)}")
    if size is None and part.dimension is None:
        kind = type(part).__name__
        raise ValueError(f"`{name}` must have a dimension, and {kind} fits any: pass {name}=({kind}(...), dimension)")
    if None not in (size, part.dimension) and size != part.dimension:
        raise ValueError(f"`{name}` has dimension {part.dimension}, got {size}")
    return part, size or part.dimension or 0


# Columns in any set.


@lmo.register(Columns)
def lmo_columns(domain, c, out):
    for j in range(domain.columns):
        lmo(domain.set, column(domain, c, j), column(domain, out, j))


@next_atom.register(Columns)
def next_atom_columns(domain, c, a, out):
    for j in range(domain.columns):
        if couples(column(domain, a, j)):
            next_atom(domain.set, column(domain, c, j), column(domain, a, j), column(domain, out, j))


@project.register(Columns)
def project_columns(domain, x, out):
    for j in range(domain.columns):
        project(domain.set, column(domain, x, j), column(domain, out, j))


@diameter.register(Columns)
def diameter_columns(domain):
    return math.sqrt(domain.columns) * diameter(domain.set)


@contains.register(Columns)
def contains_columns(domain: Columns, x: np.ndarray, tol: float) -> bool:
    return all(contains(domain.set, own, tol) for own in x.reshape(domain.columns, domain.rows))


cut_lmo.register(_BallColumns)(ball_columns_cut)
cut_lmo.register(_L1Columns)(l1_columns_cut)


# Pairs: each generic function once, for the first part and then for all others.


@kernel
def couples(a):
    """Return whether a part takes part in the cut."""
    for i in range(a.size):  # noqa: SIM110 - Numba compiles no generator expressions
        if a[i] != 0.0:
            return True
    return False


@lmo.register(Pair)
def lmo_pair(domain, c, out):
    lmo(domain.first, c[: domain.split], out[: domain.split])
    lmo(domain.second, c[domain.split :], out[domain.split :])


@next_atom.register(Pair)
def next_atom_pair(domain, c, a, out):
    if couples(a[: domain.split]):
        next_atom(domain.first, c[: domain.split], a[: domain.split], out[: domain.split])
    if couples(a[domain.split :]):
        next_atom(domain.second, c[domain.split :], a[domain.split :], out[domain.split :])


@cut_lmo.register(Pair)
def cut_lmo_pair(domain, c, a, b, out):
    if not opening(c, a, b)[0]:
        return INVALID, math.nan
    k = domain.split
    if not couples(a[:k]):
        lmo(domain.first, c[:k], out[:k])
        return cut_lmo(domain.second, c[k:], a[k:], b, out[k:])
    if not couples(a[k:]):
        lmo(domain.second, c[k:], out[k:])
        return cut_lmo(domain.first, c[:k], a[:k], b, out[:k])
    return dual_search(domain, c, a, b, out)


@project.register(Pair)
def project_pair(domain, x, out):
    project(domain.first, x[: domain.split], out[: domain.split])
    project(domain.second, x[domain.split :], out[domain.split :])


@diameter.register(Pair)
def diameter_pair(domain):
    return math.hypot(diameter(domain.first), diameter(domain.second))


@contains.register(Pair)
def contains_pair(domain: Pair, x: np.ndarray, tol: float) -> bool:
    return contains(domain.first, x[: domain.split], tol) and contains(domain.second, x[domain.split :], tol)


# The product itself: its tree with names.


@lmo.register(Product)
def lmo_product(domain, c, out):
    lmo(domain.tree, c, out)


@next_atom.register(Product)
def next_atom_product(domain, c, a, out):
    next_atom(domain.tree, c, a, out)


@cut_lmo.register(Product)
def cut_lmo_product(domain, c, a, b, out):
    return cut_lmo(domain.tree, c, a, b, out)


@project.register(Product)
def project_product(domain, x, out):
    project(domain.tree, x, out)


@diameter.register(Product)
def diameter_product(domain):
    return diameter(domain.tree)


@contains.register(Product)
def contains_product(domain: Product, x: np.ndarray, tol: float) -> bool:
    return contains(domain.tree, x, tol)


# Atoms: those of the columns and of the named parts, without the tree of pairs.


@blocks.register(Columns)
def blocks_columns(domain: Columns, dimension: int) -> list[Block]:
    inner = blocks(domain.set, domain.rows)
    return [block for j in range(domain.columns) for block in shifted(inner, j * domain.rows)]


@blocks.register(Product)
def blocks_product(domain: Product, dimension: int) -> list[Block]:
    parts = domain.named_parts()
    return [block for _, part, at in parts for block in shifted(blocks(part, at.stop - at.start), at.start)]


@has_vertices.register(Product)
@has_vertices.register(Columns)
def has_vertices_product(domain: Columns | Product) -> bool:
    return all(map(has_vertices, domain.inner_sets()))


# Proofs: sums over the parts, and all parts settled.


@least_value.register(Columns)
@quiet
def least_value_columns(domain: Columns, c: np.ndarray, atom: np.ndarray) -> float:
    columns = zip(c.reshape(domain.columns, domain.rows), atom.reshape(domain.columns, domain.rows), strict=True)
    return sum_floor(np.array([least_value(domain.set, own, own_atom) for own, own_atom in columns]))


@spread.register(Columns)
@quiet
def spread_columns(domain: Columns, e: np.ndarray) -> float:
    total = sum(spread(domain.set, own) for own in e.reshape(domain.columns, domain.rows))
    return float(raised(total, domain.columns))


@settle.register(Columns)
def settle_columns(domain: Columns, x: np.ndarray, off: np.ndarray) -> bool:
    columns = zip(x.reshape(domain.columns, domain.rows), off.reshape(domain.columns, domain.rows), strict=True)
    return all(settle(domain.set, own, own_off) for own, own_off in columns) or unsettled(off)


@least_value.register(Pair)
@quiet
def least_value_pair(domain: Pair, c: np.ndarray, atom: np.ndarray) -> float:
    k = domain.split
    first, second = least_value(domain.first, c[:k], atom[:k]), least_value(domain.second, c[k:], atom[k:])
    return sum_floor(np.array([first, second]))


@spread.register(Pair)
@quiet
def spread_pair(domain: Pair, e: np.ndarray) -> float:
    return float(raised(spread(domain.first, e[: domain.split]) + spread(domain.second, e[domain.split :]), 1))


@settle.register(Pair)
def settle_pair(domain: Pair, x: np.ndarray, off: np.ndarray) -> bool:
    k = domain.split
    return (settle(domain.first, x[:k], off[:k]) and settle(domain.second, x[k:], off[k:])) or unsettled(off)


@least_value.register(Product)
def least_value_product(domain: Product, c: np.ndarray, atom: np.ndarray) -> float:
    return least_value(domain.tree, c, atom)


@spread.register(Product)
def spread_product(domain: Product, e: np.ndarray) -> float:
    return spread(domain.tree, e)


@settle.register(Product)
def settle_product(domain: Product, x: np.ndarray, off: np.ndarray) -> bool:
    return settle(domain.tree, x, off)
