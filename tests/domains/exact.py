"""The sets once more, in exact rational arithmetic: least values, and a point of the set near a given one."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from tiebreak import domains
from tiebreak.domains.products import Pair
from tiebreak.domains.spectral import defects

Exact = list[Fraction]
DIGITS = 2**200  # relative precision of a root


def exact(x: Any) -> Exact:
    return [Fraction(float(value)) for value in np.ravel(x)]


def root(square: Fraction) -> Fraction:
    """Return √square, from below and to sixty digits."""
    if square == 0:
        return Fraction(0)
    lift = Fraction(2) ** (2 * ((square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 200))
    return Fraction(math.isqrt(int(square * lift))) / root_of_power(lift)


def root_of_power(lift: Fraction) -> Fraction:
    return Fraction(math.isqrt(lift.numerator), math.isqrt(lift.denominator))


def dot(x: Exact, y: Exact) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def norm(x: Exact) -> Fraction:
    return root(dot(x, x))


def center_of(z: Any, d: int) -> Exact:
    return exact(z.center) if z.center.size else [Fraction(0)] * d


def matrix(x: Exact, columns: int) -> list[Exact]:
    return [x[i : i + columns] for i in range(0, len(x), columns)]


def is_psd(rows: list[Exact]) -> bool:
    """Return whether a symmetric matrix has no eigenvalue below zero, by elimination."""
    rows = [list(row) for row in rows]
    for k in range(len(rows)):
        pivot = rows[k][k]
        if pivot < 0 or (pivot == 0 and any(rows[k][j] for j in range(k + 1, len(rows)))):
            return False
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / pivot if pivot else Fraction(0)
            for j in range(k, len(rows)):
                rows[i][j] -= factor * rows[k][j]
    return True


def shifted(rows: list[Exact], shift: Fraction) -> list[Exact]:
    return [[value + (shift if i == j else 0) for j, value in enumerate(row)] for i, row in enumerate(rows)]


def symmetric(x: Exact, n: int) -> list[Exact]:
    X = matrix(x, n)
    return [[(X[i][j] + X[j][i]) / 2 for j in range(n)] for i in range(n)]


def gram(rows: list[Exact]) -> list[Exact]:
    return [[dot(a, b) for b in rows] for a in rows]


def greedy(z: Any, c: Exact) -> Fraction:
    left, value = Fraction(z.total), Fraction(0)
    for own in sorted(c):
        part = min(left, Fraction(z.cap))
        value, left = value + part * own, left - part
    return value


def parts(z: Any, x: Any) -> list[tuple[Any, Any]]:
    """Return the parts of a set made of others, each with its share of a vector; none for all others."""
    match z:
        case domains.Columns():
            return [(z.set, x[j * z.rows : (j + 1) * z.rows]) for j in range(z.columns)]
        case domains.Product():
            return parts(z.tree, x) if isinstance(z.tree, Pair) else [(z.tree, x)]
        case Pair():
            return [(z.first, x[: z.split]), *(parts(z.second, x[z.split :]) or [(z.second, x[z.split :])])]
    return []


def is_least(z: Any, c: np.ndarray, value: float) -> bool:
    """Return whether ⟨c, s⟩ ≥ value for all s of the set; a root may be wrong in its sixtieth digit."""
    if isinstance(z, domains.Spectrahedron):
        return is_psd(shifted(symmetric(exact(c), z.rows), -Fraction(value) / Fraction(z.trace)))
    if isinstance(z, domains.NuclearBall):
        square = (Fraction(value) / Fraction(z.radius)) ** 2
        return value <= 0 and is_psd(
            shifted([[-entry for entry in row] for row in gram(matrix(exact(c), z.columns))], square)
        )
    return Fraction(value) <= minimum(z, exact(c))


def minimum(z: Any, c: Exact) -> Fraction:
    """Return min ⟨c, s⟩."""
    inner, size = parts(z, c), [abs(value) for value in c]
    if inner:
        return sum((minimum(part, own) for part, own in inner), Fraction(0))
    match z:
        case domains.L1Ball():
            return -Fraction(z.radius) * max(size)
        case domains.WeightedL1Ball():
            return -Fraction(z.radius) * max(a / w for a, w in zip(size, exact(z.weights), strict=True))
        case domains.L2Ball():
            return dot(c, center_of(z, len(c))) - Fraction(z.radius) * norm(c)
        case domains.GroupBall():
            return -Fraction(z.radius) * max(norm([c[i] for i in group]) for group in z.groups)
        case domains.Box():
            return sum(
                (min(a * low, a * high) for a, low, high in zip(c, exact(z.lower), exact(z.upper), strict=True)), Fraction(0)
            )
        case domains.LInfBall():
            return -Fraction(z.radius) * sum(size)
        case domains.KSparse():
            return -Fraction(z.radius) * sum(sorted(size)[-z.k :])
        case domains.Simplex():
            return Fraction(z.scale) * min(c)
        case domains.UnitSimplex():
            return Fraction(z.scale) * min(min(c), Fraction(0))
        case domains.CappedSimplex():
            return greedy(z, c)
        case domains.Hull():
            return min(dot(c, exact(point)) for point in z.points)
        case domains.Birkhoff():
            C = matrix(c, z.rows)
            return min(sum(C[i][p[i]] for i in range(z.rows)) for p in itertools.permutations(range(z.rows)))
        case domains.Polytope():
            return min(dot(c, corner) for corner in corners(z))
    raise NotImplementedError(type(z).__name__)


def solve(rows: list[Exact], sides: Exact) -> Exact | None:
    """Solve a square system; None if it is singular."""
    table = [[*row, side] for row, side in zip(rows, sides, strict=True)]
    d = len(table)
    for k in range(d):
        pivot = next((i for i in range(k, d) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [value / table[k][k] for value in table[k]]
        for i in range(d):
            if i != k and table[i][k]:
                table[i] = [a - table[i][k] * b for a, b in zip(table[i], table[k], strict=True)]
    return [row[d] for row in table]


def corners(z: Any) -> list[Exact]:
    """All vertices of a polytope without equations whose bounds are finite."""
    rows = [exact(row) for row in z._rows.toarray()]
    sides = exact(z._most)
    for j in range(z.dimension):
        unit = [Fraction(int(i == j)) for i in range(z.dimension)]
        rows += [unit, [-value for value in unit]]
        sides += [Fraction(float(z.upper[j])), -Fraction(float(z.lower[j]))]
    found = []
    for chosen in itertools.combinations(range(len(rows)), z.dimension):
        x = solve([rows[i] for i in chosen], [sides[i] for i in chosen])
        if x is not None and all(dot(row, x) <= side for row, side in zip(rows, sides, strict=True)):
            found.append(x)
    return found


def toward(x: Exact, center: Exact, gauge: Fraction) -> Exact:
    """Return the point on the way to the centre at which the gauge is 1, if it is larger at x."""
    factor = min(Fraction(1), 1 / gauge) if gauge else Fraction(1)
    return [mid + (value - mid) * factor for value, mid in zip(x, center, strict=True)]


def to_total(x: Exact, total: Fraction, cap: Fraction | None) -> Exact:
    assert all(value >= 0 for value in x)
    found = sum(x)
    if cap is None or found >= total:
        return [value * total / found for value in x]
    share = (total - found) / sum(cap - value for value in x)
    return [value + share * (cap - value) for value in x]


def doubly_stochastic(X: list[Exact]) -> list[Exact]:
    n = len(X)
    X = [[value / max(sum(row), 1) for value in row] for row in X]
    columns = [sum(row[j] for row in X) for j in range(n)]
    X = [[value / max(column, 1) for value, column in zip(row, columns, strict=True)] for row in X]
    rows, columns = [1 - sum(row) for row in X], [1 - sum(row[j] for row in X) for j in range(n)]
    if not sum(rows):
        return X
    return [[X[i][j] + rows[i] * columns[j] / sum(rows) for j in range(n)] for i in range(n)]


def near_spectrahedron(z: Any, x: np.ndarray) -> Exact:
    S, shift = symmetric(exact(x), z.rows), Fraction(defects(x.reshape(z.rows, z.rows), z.trace)[0])
    S = shifted(S, shift)
    assert is_psd(S)
    factor = Fraction(z.trace) / sum(S[i][i] for i in range(z.rows))
    return [value * factor for row in S for value in row]


def near_polytope(z: Any, x: np.ndarray) -> Exact:
    point, inner = satisfying(z, exact(x)), satisfying(z, exact(z._inner))
    rows, sides = ([values[i] for i in np.flatnonzero(z._least == -np.inf)] for values in (z._rows.toarray(), z._most))
    units = np.eye(len(point))
    rows = [*rows, *units[np.isfinite(z.upper)], *-units[np.isfinite(z.lower)]]
    sides = [*sides, *z.upper[np.isfinite(z.upper)], *-z.lower[np.isfinite(z.lower)]]
    share = Fraction(0)
    for row, side in zip(map(exact, rows), map(Fraction, map(float, sides)), strict=True):
        excess, room = dot(row, point) - side, side - dot(row, inner)
        assert room >= 0
        assert room > 0 or excess <= 0
        share = max(share, excess / (excess + room) if excess > 0 else Fraction(0))
    return [(1 - share) * a + share * b for a, b in zip(point, inner, strict=True)]


def satisfying(z: Any, point: Exact) -> Exact:
    """Return the point next to one, in the units of variables that have room, that satisfies the equations of a polytope."""
    equal = np.flatnonzero(z._least > -np.inf)
    free = (z._inner > z.lower) & (z._inner < z.upper)
    weights = [Fraction(float(unit)) ** 2 * int(room) for unit, room in zip(z._units, free, strict=True)]
    rows = [exact(row) for row in z._rows.toarray()[equal]]
    short = [Fraction(float(side)) - dot(row, point) for side, row in zip(z._most[equal], rows, strict=True)]
    weighted = [[a * w for a, w in zip(row, weights, strict=True)] for row in rows]
    multipliers = solved([[dot(row, other) for other in weighted] for row in rows], short)
    return [value + sum(y * row[j] for y, row in zip(multipliers, weighted, strict=True)) for j, value in enumerate(point)]


def solved(matrix: list[Exact], side: Exact) -> Exact:
    """Return the solution of a system whose leading minors are not zero, by elimination."""
    table = [[*row, value] for row, value in zip(matrix, side, strict=True)]
    for k, pivot in enumerate(table):
        pivot[:] = [value / pivot[k] for value in pivot]
        for other in table[:k] + table[k + 1 :]:
            other[:] = [a - other[k] * b for a, b in zip(other, pivot, strict=True)]
    return [row[-1] for row in table]


def point_near(z: Any, x: np.ndarray) -> Exact | None:
    """Return a point of the set next to x, a settled one; None if there is no rule for it here."""
    inner = parts(z, x)
    if inner:
        found = [point_near(part, own) for part, own in inner]
        return [value for part in found for value in part]  # type: ignore[union-attr]
    point = exact(x)
    size, zero = [abs(value) for value in point], [Fraction(0)] * len(point)
    match z:
        case domains.L1Ball():
            return toward(point, zero, sum(size) / Fraction(z.radius))
        case domains.WeightedL1Ball():
            return toward(point, zero, dot(size, exact(z.weights)) / Fraction(z.radius))
        case domains.L2Ball():
            center = center_of(z, len(point))
            way = [a - b for a, b in zip(point, center, strict=True)]
            return toward(point, center, norm(way) / Fraction(z.radius))
        case domains.GroupBall():
            return toward(point, zero, sum(norm([point[i] for i in group]) for group in z.groups) / Fraction(z.radius))
        case domains.Box():
            assert all(low <= a <= high for a, low, high in zip(point, exact(z.lower), exact(z.upper), strict=True))
            return point
        case domains.LInfBall():
            assert max(size) <= Fraction(z.radius)
            return point
        case domains.KSparse():
            return toward(point, zero, max(max(size), sum(size) / z.k) / Fraction(z.radius))
        case domains.Simplex():
            return to_total(point, Fraction(z.scale), None)
        case domains.UnitSimplex():
            assert min(point) >= 0
            return toward(point, zero, sum(point) / Fraction(z.scale))
        case domains.CappedSimplex():
            assert max(point) <= Fraction(z.cap)
            return to_total(point, Fraction(z.total), Fraction(z.cap))
        case domains.Birkhoff():
            return [value for row in doubly_stochastic(matrix(point, z.rows)) for value in row]
        case domains.Spectrahedron():
            return near_spectrahedron(z, x)
        case domains.Polytope():
            return near_polytope(z, x)
    return None
