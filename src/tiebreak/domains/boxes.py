"""Boxes and the ℓ∞ ball: bounds on each coordinate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import (
    Atom,
    Block,
    atom_of,
    blocks,
    changed,
    decomposed,
    extent,
    has_vertices,
    has_vertices_always,
    least,
    near,
    vertices,
)
from tiebreak.domains.base import (
    Domain,
    contains,
    cut_lmo,
    diameter,
    least_value,
    lmo,
    project,
    settle,
    spread,
    spread_by_signs,
)
from tiebreak.domains.cuts.knapsack import end_of, knapsack_cut, lower_bound, upper_bound
from tiebreak.domains.cuts.search import CUT_ROUNDING
from tiebreak.domains.rounding import dot_floor, least_or_nothing, quiet, raised
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import abs_argmax, reciprocal


class _Box(NamedTuple):
    lower: np.ndarray
    upper: np.ndarray


class Box(_Box, Domain):
    """The set {x : lower ≤ x ≤ upper}, coordinate by coordinate.

    Parameters
    ----------
    lower, upper : vectors or numbers
        Equal bounds fix a coordinate. A number is the bound of all coordinates.
    dimension : int, optional
        Number of variables, needed if both bounds are numbers.

    Examples
    --------
    >>> box = Box([0.0, -1.0], [2.0, 1.0])
    >>> box.lmo([1.0, -3.0])
    array([0., 1.])
    >>> box.cut_lmo([1.0, -3.0], [0.0, 1.0], 0.5).point
    array([0. , 0.5])
    >>> Box(-1.0, 1.0, 3).lmo([1.0, -3.0, 2.0])
    array([-1.,  1., -1.])
    """

    __slots__ = ()

    def __new__(cls, lower: Any, upper: Any, dimension: Any = None) -> Box:
        size = None if dimension is None else checks.whole(dimension, "dimension")
        sides = {"lower": lower, "upper": upper}
        for name, side in sides.items():
            if checks.numbers(side, name).ndim > 0:
                sides[name] = checks.vector(side, name, size)
                size = sides[name].size
        if size is None:
            raise ValueError("`dimension` must be given if `lower` and `upper` are numbers: Box(-1.0, 1.0, dimension)")
        for name, side in sides.items():
            if np.ndim(side) == 0:
                sides[name] = np.full(size, checks.real(side, name))
        lower, upper = sides.values()
        crossing = np.flatnonzero(lower > upper)
        if crossing.size:
            i = int(crossing[0])
            found = f"{lower[i]} > {upper[i]} at [{i}] ({crossing.size} such entries)"
            raise ValueError(f"`lower` must be ≤ `upper`, got {found}")
        return super().__new__(cls, lower, upper)

    @property
    def dimension(self) -> int:
        return self.lower.size

    def random_point(self, rng: np.random.Generator, dimension: int | None = None) -> np.ndarray:
        return self.lower + (self.upper - self.lower) * rng.random(self.lower.size)


class _LInfBall(NamedTuple):
    radius: float
    dimension: int


class LInfBall(_LInfBall, Domain):
    """The set {x : ‖x‖∞ ≤ radius}, the box [−radius, radius]^d.

    Parameters
    ----------
    radius : float, positive
    dimension : int
        The number of variables, on which the diameter depends.

    Examples
    --------
    >>> LInfBall(2.0, 2).lmo([1.0, -3.0])
    array([-2.,  2.])
    """

    __slots__ = ()

    def __new__(cls, radius: Any, dimension: Any) -> LInfBall:
        return super().__new__(cls, checks.real(radius, "radius", above=0.0), checks.whole(dimension, "dimension"))


@lower_bound.register(Box)
def lower_bound_box(domain, i):
    return domain.lower[i]


@upper_bound.register(Box)
def upper_bound_box(domain, i):
    return domain.upper[i]


@lower_bound.register(LInfBall)
def lower_bound_linf_ball(domain, i):
    return -domain.radius


@upper_bound.register(LInfBall)
def upper_bound_linf_ball(domain, i):
    return domain.radius


@lmo.register(LInfBall)
@lmo.register(Box)
@kernel
def lmo_box(domain, c, out):
    """Set each coordinate to its bound against c."""
    for i in range(c.size):
        out[i] = end_of(lower_bound(domain, i), upper_bound(domain, i), c[i])


cut_lmo.register(LInfBall)(knapsack_cut)
cut_lmo.register(Box)(knapsack_cut)


@project.register(LInfBall)
@project.register(Box)
@kernel
def project_box(domain, x, out):
    """Set out to x, cut off at the bounds."""
    for i in range(x.size):
        out[i] = min(max(x[i], lower_bound(domain, i)), upper_bound(domain, i))


@diameter.register(Box)
def diameter_box(domain):
    widest = widest_side(domain)
    per = reciprocal(widest)
    total = 0.0
    for i in range(domain.lower.size):
        side = (domain.upper[i] - domain.lower[i]) * per
        total += side * side
    return math.sqrt(total) / per


@diameter.register(LInfBall)
def diameter_linf_ball(domain):
    return 2.0 * domain.radius * math.sqrt(domain.dimension)


@kernel
def widest_side(domain):
    """Return the largest upper − lower."""
    widest = 0.0
    for i in range(domain.lower.size):
        widest = max(widest, domain.upper[i] - domain.lower[i])
    return widest


@contains.register(Box)
@kernel
def contains_box(domain, x, tol):
    # Each side in its own unit; one of no width has to allow for the rounding of its position.
    for i in range(x.size):
        low, high = domain.lower[i], domain.upper[i]
        slack = tol * (high - low)
        rounding = 10.0 * CUT_ROUNDING * max(abs(low), abs(high))
        if not low - slack - rounding <= x[i] <= high + slack + rounding:
            return False
    return True


@contains.register(LInfBall)
@kernel
def contains_linf_ball(domain, x, tol):
    return abs(x[abs_argmax(x)]) <= domain.radius * (1.0 + tol)


# Atoms


@blocks.register(LInfBall)
@blocks.register(Box)
def blocks_box(domain: Box | LInfBall, dimension: int) -> list[Block]:
    # A column of numbers is a sequence of vectors of one; the sides are many, and not checked again.
    sides = zip(*(side[:, None] for side in (np.arange(dimension), *bounds(domain))), strict=True)
    return [Block(where, Box._make((lower, upper))) for where, lower, upper in sides]


class Intervals(NamedTuple):
    """Blocks of one variable each, as arrays."""

    numbers: np.ndarray  # of the blocks
    where: np.ndarray  # the indices of their variables
    lower: np.ndarray
    upper: np.ndarray


def intervals(parts: Sequence[Block]) -> Intervals:
    """Return those of some blocks that are intervals."""
    numbers = [b for b, (where, domain) in enumerate(parts) if where.size == 1 and isinstance(domain, Box)]
    where = np.array([parts[b].where[0] for b in numbers], dtype=np.int64)
    lower, upper = np.array([np.hstack(parts[b].domain) for b in numbers]).reshape(-1, 2).T
    return Intervals(np.array(numbers, dtype=np.int64), where, lower, upper)


@vertices.register(LInfBall)
@vertices.register(Box)
@quiet
def vertices_box(domain: Box | LInfBall, c: np.ndarray, count: int) -> list[Atom]:
    # After the best corner, those at the other end of one side, which costs |c_i| (upper_i − lower_i).
    lower, upper = bounds(domain)
    if c.size == 1:  # the same, faster: boxes split into many intervals
        ends = (lower, upper) if c[0] > 0.0 else (upper, lower)
        return [atom_of(end) for end in ends[: count if lower[0] < upper[0] else 1]]
    near, far = np.where(c > 0.0, (lower, upper), (upper, lower))
    first, sides = atom_of(near), np.flatnonzero(lower < upper)
    cheapest = sides[least(np.abs(c[sides]) * (upper - lower)[sides], count - 1)]
    return [first, *changed(first, cheapest[:, None], far[cheapest, None])]


@decomposed.register(LInfBall)
@decomposed.register(Box)
@quiet
def decomposed_box(domain: Box | LInfBall, x: np.ndarray) -> list[tuple[float, Atom]]:
    # An interval by its ends; of more sides, x itself, which is one point instead of many dense corners.
    if x.size > 1:
        return [(1.0, atom_of(x))]
    lower, upper = bounds(domain)
    half = float(0.5 * upper[0] - 0.5 * lower[0])  # the width itself could overflow
    share = min(max(float(0.5 * x[0] - 0.5 * lower[0]) / half, 0.0), 1.0) if half > 0.0 else 0.0
    return [(weight, atom_of(end)) for weight, end in ((1.0 - share, lower), (share, upper)) if weight > 0.0]


@near.register(Box)
@quiet
def near_box(domain: Box, x: np.ndarray, reach: float) -> Box:
    lower, upper = np.maximum(domain.lower, x - reach), np.minimum(domain.upper, x + reach)
    hardly_smaller = (upper - lower >= 0.5 * (domain.upper - domain.lower)).all()
    return domain if hardly_smaller else Box._make((lower, upper))


@extent.register(Box)
@quiet
def extent_box(domain: Box, x: np.ndarray) -> tuple[float, float]:
    # That of the side in which x is nearest to the boundary, for its length.
    half, middle = 0.5 * domain.upper - 0.5 * domain.lower, 0.5 * domain.lower + 0.5 * domain.upper
    nearest = int(np.argmax(np.abs(x - middle) / np.maximum(half, np.finfo(float).tiny)))
    return float(abs(x[nearest] - middle[nearest])), float(half[nearest])


def bounds(domain: Box | LInfBall) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper bound of each coordinate."""
    if isinstance(domain, Box):
        return domain.lower, domain.upper
    return np.full(domain.dimension, -domain.radius), np.full(domain.dimension, domain.radius)


has_vertices.register(Box)(has_vertices_always)
has_vertices.register(LInfBall)(has_vertices_always)


# Proofs


@least_value.register(Box)
@quiet
def least_value_box(domain: Box, c: np.ndarray, atom: np.ndarray) -> float:
    return dot_floor(c, np.where(c > 0.0, domain.lower, domain.upper))


@least_value.register(LInfBall)
@quiet
def least_value_linf_ball(domain: LInfBall, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(-raised(domain.radius * float(np.abs(c).sum()), c.size + 1))


@spread.register(Box)
@quiet
def spread_box(domain: Box, e: np.ndarray) -> float:
    return float(raised(float((e * np.maximum(np.abs(domain.lower), np.abs(domain.upper))).sum()), e.size + 1))


spread.register(LInfBall)(spread_by_signs)


@settle.register(LInfBall)
@settle.register(Box)
def settle_box(domain: Box | LInfBall, x: np.ndarray, off: np.ndarray) -> bool:
    project_box(domain, x, x)
    off.fill(0.0)
    return True
