"""Doubly stochastic matrices: a linear minimisation is an assignment."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import Atom, atom_of, changed, has_vertices, has_vertices_always, least, vertices
from tiebreak.domains.base import Domain, contains, diameter, least_value, lmo, settle, spread, spread_by_signs, unsettled
from tiebreak.domains.rounding import quiet, raised, sum_floor
from tiebreak.engine import checks, kernel
from tiebreak.engine.rounding import UNIT
from tiebreak.engine.vectors import fill


class _Birkhoff(NamedTuple):
    rows: int


class Birkhoff(_Birkhoff, Domain):
    """The doubly stochastic matrices: non-negative, with rows and columns that sum to one.

    A matrix is flattened row by row, and :meth:`parts` gives it its shape back. The atoms are the permutations. There is no
    projection.

    Parameters
    ----------
    rows : int
        Number of rows and of columns.

    Examples
    --------
    >>> matchings = Birkhoff(2)
    >>> matchings.lmo([1.0, 0.0, 0.0, 2.0]).reshape(2, 2)
    array([[0., 1.],
           [1., 0.]])
    """

    __slots__ = ()

    def __new__(cls, rows: Any) -> Birkhoff:
        return super().__new__(cls, checks.whole(rows, "rows"))

    @property
    def dimension(self) -> int:
        """Number of variables, the entries of a matrix."""
        return self.rows * self.rows

    def centroid(self, dimension: int) -> np.ndarray:
        return np.full(self.dimension, 1.0 / self.rows)

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the matrix, as a view of x."""
        return {"x": x.reshape(self.rows, self.rows)}


@lmo.register(Birkhoff)
def lmo_birkhoff(domain, c, out):
    row_of, _ = assign(c, domain.rows)
    fill(out, 0.0)
    for column in range(domain.rows):
        out[row_of[column] * domain.rows + column] = 1.0


@kernel(inline=False)
def assign(cost, n):
    """Return the row of each column in an assignment of least cost, and prices of the columns that prove it.

    ``cost`` is an n × n matrix, row by row.

    The Hungarian method (Kuhn, 1955) as shortest augmenting paths (Jonker and Volgenant, 1987), in O(n³): rows join one by
    one. Prices of rows and columns keep all reduced costs cost_ij − price_i − price_j ≥ 0, and zero where i and j are
    assigned. A row that joins takes the shortest way, in reduced costs, to a column that is free, and the rows on the way
    move on by one column.
    """
    row_of = np.full(n, -1)
    column_price, row_price = np.zeros(n), np.zeros(n)
    distance = np.empty(n)  # of the shortest way to a column that is known
    before = np.empty(n, np.int64)  # the column before it on that way; −1 for the row that joins
    done = np.empty(n, np.bool_)  # whether no shorter way can come
    for joining in range(n):
        fill(distance, math.inf)
        fill(done, False)
        fill(before, -1)
        row, last, travelled = joining, -1, 0.0
        while True:
            nearest = -1
            for j in range(n):
                if not done[j]:
                    length = travelled + (cost[row * n + j] - row_price[row] - column_price[j])
                    if length < distance[j]:
                        distance[j] = length
                        before[j] = last
                    if nearest < 0 or distance[j] < distance[nearest]:
                        nearest = j
            done[nearest] = True
            travelled, last = distance[nearest], nearest
            if row_of[nearest] < 0:
                break
            row = row_of[nearest]
        row_price[joining] += travelled
        for j in range(n):
            if done[j] and j != last:
                row_price[row_of[j]] += travelled - distance[j]
                column_price[j] -= travelled - distance[j]
        while before[last] >= 0:
            row_of[last] = row_of[before[last]]
            last = before[last]
        row_of[last] = joining
    return row_of, column_price


@diameter.register(Birkhoff)
def diameter_birkhoff(domain):
    return math.sqrt(2.0 * domain.rows) if domain.rows > 1 else 0.0


@contains.register(Birkhoff)
@kernel
def contains_birkhoff(domain, x, tol):
    n = domain.rows
    for i in range(n):
        row, column = 0.0, 0.0
        for j in range(n):
            if not x[i * n + j] >= -tol:
                return False
            row += x[i * n + j]
            column += x[j * n + i]
        if not (abs(row - 1.0) <= tol and abs(column - 1.0) <= tol):
            return False
    return True


# Atoms


@vertices.register(Birkhoff)
@quiet
def vertices_birkhoff(domain: Birkhoff, c: np.ndarray, count: int) -> list[Atom]:
    # After the best assignment, those in which two rows have changed places.
    n, point = domain.rows, np.empty(c.size)
    lmo(domain, c, point)
    first = atom_of(point)
    rows, column = np.arange(n), first.where % n
    cost = c.reshape(n, n)[:, column]  # cost[i, j]: of row i in the column of row j
    own = cost[rows, rows]
    i, j = np.triu_indices(n, 1)
    chosen = least((cost[i, j] - own[i]) + (cost[j, i] - own[j]), count - 1)
    i, j = i[chosen], j[chosen]
    ends = np.column_stack([i * n + column[i], j * n + column[j], i * n + column[j], j * n + column[i]])
    return [first, *changed(first, ends, np.broadcast_to([0.0, 0.0, 1.0, 1.0], ends.shape))]


has_vertices.register(Birkhoff)(has_vertices_always)


# Proofs


@least_value.register(Birkhoff)
@quiet
def least_value_birkhoff(domain: Birkhoff, c: np.ndarray, atom: np.ndarray) -> float:
    # Any prices of columns, with those of rows that leave no reduced cost below zero, bound the cost of all assignments.
    _, column_price = assign(c, domain.rows)
    reduced = np.nextafter(c.reshape(domain.rows, domain.rows) - column_price, -math.inf)
    return sum_floor(np.concatenate([reduced.min(axis=1), column_price]))


spread.register(Birkhoff)(spread_by_signs)


@settle.register(Birkhoff)
@quiet
def settle_birkhoff(domain: Birkhoff, x: np.ndarray, off: np.ndarray) -> bool:
    n = domain.rows
    X = np.maximum(x, 0.0, out=x).reshape(n, n)
    rounding = 4.0 * (n + 8) * UNIT
    if max(np.abs(X.sum(axis=0) - 1.0).max(), np.abs(X.sum(axis=1) - 1.0).max()) > rounding:
        complete(X)
    rows, columns = X.sum(axis=1), X.sum(axis=0)
    # In thought: rows, then columns, shrink to sums of at most one, and what is missing in row i and column j then is spread
    # over all entries, min(missing_i, missing_j) at most for each.
    shrink = max(float(rows.max()) - 1.0, 0.0) + max(float(columns.max()) - 1.0, 0.0) + 2.0 * rounding
    missing = [np.abs(sums - 1.0) + 2.0 * (shrink + rounding) for sums in (rows, columns)]
    off[:] = raised(shrink * X + np.minimum.outer(*missing), 8).ravel()
    return bool(shrink < 0.1) or unsettled(off)


def complete(X: np.ndarray) -> None:
    """Round a matrix to a doubly stochastic one (Altschuler, Weed and Rigollet 2017)."""
    X /= np.maximum(X.sum(axis=1), 1.0)[:, None]
    X /= np.maximum(X.sum(axis=0), 1.0)
    rows, columns = np.maximum(1.0 - X.sum(axis=1), 0.0), np.maximum(1.0 - X.sum(axis=0), 0.0)
    if rows.sum() > 0.0:
        X += rows[:, None] * (columns / rows.sum())
