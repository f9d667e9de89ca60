"""A point of each set and vectors that are normal to the set there, in numbers that no computation has to round.

All entries are multiples of a power of two with few digits. Balls get points whose norm is rational: integer vectors of
integer length, and matrices U diag(s) Vᵀ with U, V multiples of orthogonal ones (Householder's, of integer vectors).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from campaign.recipes import Recipe

FINE = 2.0**-14  # number of which entries are multiples
PARTS = ("D", "w", "weights")  # names of the parts of a product
SIDES = (0.0, 0.5, 1.0)  # weights in a dyadic mean


class Place(NamedTuple):
    """A set and a point of it, in units of their own: coordinate j is to be multiplied by a unit D_j.

    Attributes
    ----------
    domain : callable
        The set in given units: one for each coordinate, or the same for all.
    x : array, (d,)
        The point.
    normal : callable
        A random vector ν with ⟨ν, s⟩ ≤ ⟨ν, x⟩ for all points s of the set; zero where x lies inside.
    """

    domain: Callable[[np.ndarray], Recipe]
    x: np.ndarray
    normal: Callable[[Generator], np.ndarray]
    parts: tuple[int, ...] = ()  # how many coordinates have a unit in common, one after the other; empty: all of them


def grid(rng: Generator, shape: Any = None, size: float = 1.0) -> Any:
    """Return random multiples of a power of two, between −size and size."""
    return np.round(rng.uniform(-size, size, shape) / FINE) * FINE


def positive(rng: Generator, shape: Any = None, size: float = 1.0) -> Any:
    """Return random positive multiples of a power of two."""
    return np.abs(grid(rng, shape, size)) + FINE


def weight(rng: Generator) -> float:
    """Return a random positive power of two, or sometimes zero."""
    return 0.0 if rng.random() < 0.1 else 2.0 ** int(rng.integers(-3, 4))


def shift(rng: Generator, d: int) -> np.ndarray:
    """Return where a set that has no centre of its own is put: at the origin, near it, or far away."""
    return np.round(grid(rng, d)) if rng.random() < 0.5 else grid(rng, d, 2.0 ** rng.integers(0, 9))


def signs(rng: Generator, d: int) -> np.ndarray:
    """Return random signs."""
    return rng.choice([-1.0, 1.0], d)


def sparse(rng: Generator, d: int) -> np.ndarray:
    """Return a vector some of whose entries are zero, and one at least is not."""
    x = grid(rng, d, 2.0) * (rng.random(d) < 0.6)
    x[rng.integers(d)] = positive(rng)
    return x


def zero(rng: Generator, d: int) -> np.ndarray:
    """Return the only vector that is normal at an inner point."""
    return np.zeros(d)


def inside(rng: Generator) -> bool:
    """Return whether the point is to lie inside the set."""
    return bool(rng.random() < 0.15)


def one(units: np.ndarray) -> float:
    """Return the unit that all coordinates share."""
    return float(units.flat[0])


def l1_normal(x: np.ndarray, weights: Any = 1.0) -> Callable[[Generator], np.ndarray]:
    """Return what is normal to a ball of a weighted ℓ1 norm at a point of its boundary."""

    def normal(rng: Generator) -> np.ndarray:
        rest = grid(rng, x.size) if rng.random() < 0.7 else signs(rng, x.size)  # a face, or ties
        return weight(rng) * weights * np.where(x != 0.0, np.sign(x), rest)

    return normal


def l1_ball(rng: Generator, d: int) -> Place:
    """Most coordinates of a face of the ball, or a point inside it."""
    x = sparse(rng, d)
    radius = float(np.abs(x).sum())
    if inside(rng):
        return Place(lambda units: Recipe("L1Ball", one(units) * (radius + 1.0)), x, lambda rng: zero(rng, d))
    return Place(lambda units: Recipe("L1Ball", one(units) * radius), x, l1_normal(x))


def weighted_l1_ball(rng: Generator, d: int) -> Place:
    """The same with a weight for each coordinate."""
    x, weights = sparse(rng, d), 2.0 ** rng.integers(-2, 3, d) * rng.integers(1, 8, d)
    radius = float(weights @ np.abs(x))
    return Place(lambda units: Recipe("WeightedL1Ball", weights / units, radius), x, l1_normal(x, weights))


def whole_length(rng: Generator, d: int) -> tuple[np.ndarray, int]:
    """Return a vector of integers, not zero, whose Euclidean length is an integer."""
    while True:
        v = rng.integers(-9, 10, d)
        length = math.isqrt(int(v @ v))
        if length > 0 and length * length == v @ v:
            return v.astype(float), length


def l2_ball(rng: Generator, d: int) -> Place:
    """A point of the sphere, with or without a centre; inside now and then."""
    v, length = whole_length(rng, d)
    center = shift(rng, d) if rng.random() < 0.5 else None
    radius = length / 8 + (1.0 if inside(rng) else 0.0)

    def domain(units: np.ndarray) -> Recipe:
        return Recipe("L2Ball", one(units) * radius, *([] if center is None else [one(units) * center]))

    def normal(rng: Generator) -> np.ndarray:
        return weight(rng) * v if radius == length / 8 else zero(rng, d)

    return Place(domain, v / 8 + (0.0 if center is None else center), normal)


def group_ball(rng: Generator, d: int) -> Place:
    """Some groups are zero."""
    labels = rng.integers(0, rng.integers(1, d + 1), d)
    x, units_of, lengths = np.zeros(d), np.zeros(d), {}
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        v, length = whole_length(rng, own.size)
        if rng.random() < 0.7 or not lengths:
            x[own], lengths[label] = v / 8, length
        units_of[own] = v
    common = math.lcm(*lengths.values())
    radius = sum(lengths.values()) / 8

    def normal(rng: Generator) -> np.ndarray:
        found = np.zeros(d)
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            if label in lengths:
                found[own] = common // lengths[label] * units_of[own]
            else:  # of a length up to 1 / size of all of them
                found[own] = common * np.round(grid(rng, own.size) * 256 / own.size) / 256
        return weight(rng) * found / 2.0 ** math.ceil(math.log2(common))

    return Place(lambda units: Recipe("GroupBall", labels, one(units) * radius), x, normal)


def corner(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> Callable[[Generator], np.ndarray]:
    """Return what is normal to a box at a point of it."""

    def normal(rng: Generator) -> np.ndarray:
        d = x.size
        return weight(rng) * ((x == high) * positive(rng, d) - (x == low) * positive(rng, d)) * (rng.random(d) < 0.8)

    return normal


def box(rng: Generator, d: int) -> Place:
    """A corner, an edge or a face."""
    low = shift(rng, d)
    high = low + positive(rng, d, 2.0 ** rng.integers(-4, 3)) * (rng.random(d) < 0.85)  # some sides have no width
    x = np.where(rng.random(d) < 0.35, low, np.where(rng.random(d) < 0.5, high, (low + high) / 2))
    return Place(lambda units: Recipe("Box", units * low, units * high), x, corner(x, low, high))


def linf_ball(rng: Generator, d: int) -> Place:
    """A corner, an edge or a face."""
    radius = positive(rng, size=2.0)
    x = np.where(rng.random(d) < 0.6, signs(rng, d), np.round(grid(rng, d, 4.0)) / 8) * radius
    normal = corner(x, np.full(d, -radius), np.full(d, radius))
    return Place(lambda units: Recipe("LInfBall", one(units) * radius, d), x, normal)


def k_sparse(rng: Generator, d: int) -> Place:
    """The mean of two atoms."""
    k, radius, sign = int(rng.integers(1, d + 1)), positive(rng, size=2.0), signs(rng, d)
    share = sum(np.isin(np.arange(d), rng.permutation(d)[:k]) for _ in range(2)) / 2  # the mean of two atoms
    x = radius * share * sign

    def normal(rng: Generator) -> np.ndarray:
        sides = np.where(share > 0.0, sign, grid(rng, d))
        return weight(rng) * sides + weight(rng) * (share == 1.0) * positive(rng, d) * sign

    return Place(lambda units: Recipe("KSparse", k, one(units) * radius, d), x, normal)


def price(x: np.ndarray, level: Callable[[Generator], float], cap: float = math.inf) -> Callable[[Generator], np.ndarray]:
    """Return what is normal to a simplex: a level where x is between its bounds, less at zero, more at the cap."""

    def normal(rng: Generator) -> np.ndarray:
        d = x.size
        less, more = ((rng.random(d) < 0.8) * positive(rng, d) for _ in range(2))
        return weight(rng) * (level(rng) - less * (x == 0.0) + more * (x == cap))

    return normal


def simplex(rng: Generator, d: int) -> Place:
    """A face."""
    x = np.abs(sparse(rng, d))
    scale = float(x.sum())
    return Place(lambda units: Recipe("Simplex", one(units) * scale), x, price(x, lambda rng: grid(rng, size=2.0)))


def unit_simplex(rng: Generator, d: int) -> Place:
    """A face, or a point whose sum is less than allowed."""
    x = np.abs(sparse(rng, d))
    full = not inside(rng)
    scale = float(x.sum()) + (0.0 if full else 1.0)
    level = (lambda rng: positive(rng)) if full else (lambda rng: 0.0)
    return Place(lambda units: Recipe("UnitSimplex", one(units) * scale), x, price(x, level))


def capped_simplex(rng: Generator, d: int) -> Place:
    """Some coordinates at zero, some at the cap."""
    d, cap = max(d, 2), positive(rng, size=2.0)
    share = rng.choice([0.0, 0.25, 0.5, 1.0], d)
    share[:2] = rng.permutation([0.5, rng.choice(SIDES)])
    x = cap * share
    total = float(x.sum())

    def domain(units: np.ndarray) -> Recipe:
        return Recipe("CappedSimplex", one(units) * total, one(units) * cap, d)

    return Place(domain, x, price(x, lambda rng: grid(rng, size=2.0), cap))


def hull(rng: Generator, d: int) -> Place:
    """Points of a coarse grid, so that many of them are extreme in one direction."""
    points = rng.integers(-2, 3, (int(rng.integers(2, 3 * d + 3)), d)) / 4 + shift(rng, d)
    found = rng.integers(-2, 3, d).astype(float)
    values = (points - points[0]) @ found
    face = points[values == values.max()]
    chosen = face[rng.integers(len(face), size=4)]

    def normal(rng: Generator) -> np.ndarray:
        for _ in range(5):
            other = rng.integers(-3, 4, d).astype(float)
            heights = (points - points[0]) @ other
            if ((chosen - points[0]) @ other == heights.max()).all():
                return weight(rng) * other
        return weight(rng) * found

    return Place(lambda units: Recipe("Hull", points * units), chosen.mean(axis=0), normal)


def birkhoff(rng: Generator, d: int) -> Place:
    """The mean of two permutations."""
    n = 2 + d // 6
    share = rng.choice(SIDES)
    x = (share * np.eye(n)[rng.permutation(n)] + (1.0 - share) * np.eye(n)[rng.permutation(n)]).ravel()

    def normal(rng: Generator) -> np.ndarray:
        potential = np.add.outer(grid(rng, n), grid(rng, n)).ravel()
        return weight(rng) * (potential - (x == 0.0) * positive(rng, n * n) * (rng.random(n * n) < 0.9))

    return Place(lambda units: Recipe("Birkhoff", n), x, normal)


def polytope(rng: Generator, d: int) -> Place:
    """Some rows and bounds are tight, and there may be an equation."""
    d = min(d, 6)
    x = shift(rng, d) + np.round(grid(rng, d, 2.0) * 16) / 16
    rows = rng.integers(-4, 5, (3, d)) / 4
    equal = rng.integers(-2, 3, (1, d)).astype(float) if d > 2 and rng.random() < 0.4 else np.empty((0, d))
    tight = rng.random(3) < 0.5
    below, above = (positive(rng, d, 2.0) * (rng.random(d) < 0.7) for _ in range(2))
    sides = rows @ x + np.where(tight, 0.0, positive(rng, 3))

    def domain(units: np.ndarray) -> Recipe:
        bounds = (units * (x - below), units * (x + above))
        equations = {"A_eq": equal / units, "b_eq": equal @ x} if len(equal) else {}
        return Recipe("Polytope", A_ub=rows / units, b_ub=sides, bounds=bounds, **equations)

    def normal(rng: Generator) -> np.ndarray:
        found = (tight * positive(rng, 3)) @ rows + grid(rng, len(equal)) @ equal
        return weight(rng) * (found + (above == 0.0) * positive(rng, d) - (below == 0.0) * positive(rng, d))

    return Place(domain, x, normal)


def householder(rng: Generator, n: int) -> np.ndarray:
    """Return a multiple of an orthogonal matrix, of integers; its columns have the length of its name's ‖v‖²."""
    v = rng.integers(-2, 3, n).astype(float)
    v[rng.integers(n)] = 1.0
    return v @ v * np.eye(n) - 2.0 * np.outer(v, v)


def nuclear_ball(rng: Generator, d: int) -> Place:
    """A matrix of any rank."""
    rows = int(rng.integers(1, min(d, 4) + 1))
    columns = d // rows
    U, V, k = householder(rng, rows), householder(rng, columns), min(rows, columns)
    lengths = float(np.linalg.norm(U[0]).round() * np.linalg.norm(V[0]).round())
    values = rng.integers(0, 4, k) / 16
    values[rng.integers(k)] = 0.25
    small = 2.0 ** -math.ceil(math.log2(lengths))
    X = small * (U[:, :k] * values) @ V[:, :k].T
    radius = small * lengths * float(values.sum())

    def normal(rng: Generator) -> np.ndarray:
        others = rng.choice([-1.0, -0.5, 0.0, 0.25, 1.0], k)
        return weight(rng) * small * ((U[:, :k] * np.where(values > 0.0, 1.0, others)) @ V[:, :k].T).ravel()

    return Place(lambda units: Recipe("NuclearBall", (rows, columns), one(units) * radius), X.ravel(), normal)


def spectrahedron(rng: Generator, d: int) -> Place:
    """A matrix of any rank; often with equal eigenvalues."""
    n = max(1, round(d**0.5))
    U = householder(rng, n) if rng.random() < 0.7 else np.eye(n)
    square = float((U[0] @ U[0]).round())
    values = rng.integers(0, 4, n) / 16 if rng.random() < 0.7 else np.full(n, 0.25)
    values[rng.integers(n)] = 0.25
    small = 2.0 ** -math.ceil(math.log2(square))
    X = small * (U * values) @ U.T
    trace = small * square * float(values.sum())

    def normal(rng: Generator) -> np.ndarray:
        flat = np.where(values > 0.0, 0.0, rng.integers(0, 4, n))  # M ⪰ 0 with M X = 0
        skew = np.triu(rng.integers(-2, 3, (n, n)) / 4, 1)  # normal to the symmetric matrices
        found = rng.integers(-2, 3) / 2 * np.eye(n) - small * (U * flat) @ U.T + (skew - skew.T)
        return weight(rng) * found.ravel()

    return Place(lambda units: Recipe("Spectrahedron", n, one(units) * trace), X.ravel(), normal)


def columns(rng: Generator, d: int, name: str) -> Place:
    """Columns in one ball: the same numbers in another order and with other signs, or halves of them."""
    rows = int(rng.integers(1, min(d, 3) + 1))
    count = d // rows
    v, length = whole_length(rng, rows) if name == "L2Ball" else (np.round(sparse(rng, rows) * 64), 0)
    v[0] = v[0] if v.any() else 1.0
    radius = (length if name == "L2Ball" else float(np.abs(v).sum())) / 8
    center = shift(rng, rows) if name == "L2Ball" and rng.random() < 0.5 else np.zeros(rows)
    full = rng.random(count) < 0.7
    moved = [signs(rng, rows) * v[rng.permutation(rows)] / 8 * (1.0 if whole else 0.5) for whole in full]

    def normal(rng: Generator) -> np.ndarray:
        own = [column if name == "L2Ball" else l1_normal(column)(rng) for column in moved]
        return np.concatenate([weight(rng) * whole * found for whole, found in zip(full, own, strict=True)])

    def domain(units: np.ndarray) -> Recipe:
        ball = Recipe(name, one(units) * radius, *([one(units) * center] if center.any() else []))
        return Recipe("Columns", ball, (rows, count))

    return Place(domain, np.concatenate([center + column for column in moved]), normal)


def product(rng: Generator, d: int) -> Place:
    """A curved part, a polyhedral one and a simplex."""
    places = [columns(rng, 1 + d // 3, "L2Ball"), l1_ball(rng, 1 + d // 4), simplex(rng, 1 + d // 4)]
    sizes = [place.x.size for place in places]
    stops = np.cumsum(sizes)[:-1]

    def domain(units: np.ndarray) -> Recipe:
        D, w, v = (place.domain(own) for place, own in zip(places, np.split(units, stops), strict=True))
        return Recipe("Product", **dict(zip(PARTS, (D, (w, sizes[1]), (v, sizes[2])), strict=True)))

    def normal(rng: Generator) -> np.ndarray:
        return np.concatenate([place.normal(rng) for place in places])

    return Place(domain, np.concatenate([place.x for place in places]), normal, tuple(sizes))


SETS: dict[str, Callable[[Generator, int], Place]] = {
    "L1Ball": l1_ball,
    "L2Ball": l2_ball,
    "GroupBall": group_ball,
    "Box": box,
    "LInfBall": linf_ball,
    "KSparse": k_sparse,
    "WeightedL1Ball": weighted_l1_ball,
    "Simplex": simplex,
    "UnitSimplex": unit_simplex,
    "CappedSimplex": capped_simplex,
    "Hull": hull,
    "Birkhoff": birkhoff,
    "Polytope": polytope,
    "ColumnsL2Ball": lambda rng, d: columns(rng, d, "L2Ball"),
    "ColumnsL1Ball": lambda rng, d: columns(rng, d, "L1Ball"),
    "Product": product,
    "NuclearBall": nuclear_ball,
    "Spectrahedron": spectrahedron,
}
OWN_UNITS = {"Box", "WeightedL1Ball", "Hull", "Polytope"}  # sets whose coordinates may each have a unit of its own
NO_UNITS = {"Birkhoff"}  # sets with a size of their own
