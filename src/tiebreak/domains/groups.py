"""The ball of the sum of the Euclidean norms of groups of variables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import Block, blocks, has_vertices, whole
from tiebreak.domains.balls import PARALLEL
from tiebreak.domains.base import (
    ACTIVE,
    EMPTY,
    FREE,
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
    spread_by_signs,
)
from tiebreak.domains.cuts.search import CUT_ROUNDING, LIFT, MAX_PASSES, TINY, boundary_weight, opening
from tiebreak.domains.l1 import L1Ball, shrinkage_level
from tiebreak.domains.rounding import gauge_rounding, least_or_nothing, quiet, raised, settle_by_gauge
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import abs_argmax, copy, fill, reciprocal

HALVINGS = 64  # halvings that take a share of 1 down to rounding


class _GroupBall(NamedTuple):
    radius: float
    order: np.ndarray  # the variables, group by group
    starts: np.ndarray  # where each group starts there, and the end


class GroupBall(_GroupBall, Domain):
    """The set {x : Σ_g ‖x_g‖₂ ≤ radius} for groups of variables: of the group lasso (Yuan and Lin 2006).

    Its atoms live on one group, so that solutions tend to use few groups.

    Parameters
    ----------
    groups : list of lists of indices, or vector of integers
        Which variables form each group, every one of 0, …, d − 1 in exactly one of them; or a label for each variable.
    radius : float, positive

    Examples
    --------
    >>> ball = GroupBall([[0, 1], [2]], 5.0)
    >>> ball.lmo([3.0, -4.0, 4.5])
    array([-3.,  4.,  0.])
    >>> GroupBall([7, 7, 3], 5.0).lmo([3.0, -4.0, 4.5])
    array([-3.,  4.,  0.])
    """

    __slots__ = ()

    def __new__(cls, groups: Any, radius: Any) -> GroupBall:
        order, starts = _compact(groups)
        return super().__new__(cls, checks.real(radius, "radius", above=0.0), order, starts)

    def __repr__(self) -> str:
        return f"GroupBall({len(self.groups)} groups of {self.dimension} variables, radius={self.radius!r})"

    @property
    def dimension(self) -> int:
        return self.order.size

    @property
    def groups(self) -> list[list[int]]:
        """The variables of each group."""
        return [part.tolist() for part in np.split(self.order, self.starts[1:-1])]


def _compact(groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return all variables group by group, and where each group starts, from lists of indices or labels."""
    wanted = "`groups` must be lists of indices that hold each of 0, …, d − 1 once, or an integer label for each variable"
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ValueError(f"{wanted}, got {checks.shown(groups)}")
    items = [np.asarray(item) for item in groups]
    if not items:
        raise ValueError(f"{wanted}, got none")
    for g, item in enumerate(items):
        if item.ndim != items[0].ndim or item.ndim > 1:
            raise ValueError(f"{wanted}, got {checks.shown(groups)}")
        if item.ndim == 1 and item.size == 0:
            raise ValueError(f"{wanted}, but group {g} is empty")
        if item.dtype.kind not in "iu":
            raise ValueError(f"{wanted}, got {checks.shown(item.tolist())} at {g}")
    if items[0].ndim == 0:
        _, labels, sizes = np.unique(np.array(items), return_inverse=True, return_counts=True)
        order = np.argsort(labels, kind="stable")
    else:
        sizes = np.array([item.size for item in items])
        order = np.concatenate(items).astype(np.int64)
        _check_partition(order, np.repeat(np.arange(len(items)), sizes), wanted)
    return order.astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _check_partition(order: np.ndarray, group: np.ndarray, wanted: str) -> None:
    """Raise if the variables are not 0, …, d − 1 in some order, and name the first that is wrong."""
    if order.min() < 0:
        at = int(np.argmax(order < 0))
        raise ValueError(f"{wanted}, but group {group[at]} holds {order[at]}")
    by_index = np.argsort(order, kind="stable")
    ordered = order[by_index]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if twice.size:
        first, second = group[by_index[twice[0]]], group[by_index[twice[0] + 1]]
        where = f"twice in group {first}" if first == second else f"in group {first} and in group {second}"
        raise ValueError(f"{wanted}, but index {ordered[twice[0]]} is {where}")
    gap = np.flatnonzero(ordered != np.arange(ordered.size))
    if gap.size:
        last = f"{ordered[-1]} is in group {group[by_index[-1]]}"
        raise ValueError(f"{wanted}, but index {gap[0]} is in no group, while {last}")


@kernel
def group_square(domain, x, per, g):
    """Return ‖per · x_g‖²."""
    total = 0.0
    for k in range(domain.starts[g], domain.starts[g + 1]):
        part = x[domain.order[k]] * per
        total += part * part
    return total


@kernel
def largest_group(domain, x, per):
    """Return the first group with the largest norm in per · x."""
    largest = -1.0
    group = 0
    for g in range(domain.starts.size - 1):
        square = group_square(domain, x, per, g)
        if square > largest:
            largest = square
            group = g
    return group


@kernel
def group_product(domain, p, x, q, y, g):
    """Return ⟨p x_g, q y_g⟩."""
    total = 0.0
    for k in range(domain.starts[g], domain.starts[g + 1]):
        i = domain.order[k]
        total += (p * x[i]) * (q * y[i])
    return total


@kernel
def group_against(domain, c, per, g, out):
    """Set out to the atom of group g against per · c; to zero if that is zero there."""
    fill(out, 0.0)
    norm = math.sqrt(group_square(domain, c, per, g))
    for k in range(domain.starts[g], domain.starts[g + 1]):
        i = domain.order[k]
        out[i] = -domain.radius * (per * c[i] / norm) if norm > 0.0 else 0.0


@lmo.register(GroupBall)
def lmo_group_ball(domain, c, out):
    per = reciprocal(abs(c[abs_argmax(c)]))
    group_against(domain, c, per, largest_group(domain, c, per), out)


@cut_lmo.register(GroupBall)
def cut_lmo_group_ball(domain, c, a, b, out):
    valid, size_c, size_a = opening(c, a, b)
    if not valid:
        return INVALID, math.nan
    c, lift_c = lifted(c, size_c)
    a, lift_a = lifted(a, size_a)
    per_c, per_a = reciprocal(size_c * lift_c), reciprocal(size_a * lift_a)
    bound = b * lift_a * per_a / domain.radius
    i = largest_group(domain, c, per_c)
    norm = math.sqrt(group_square(domain, c, per_c, i))
    if (-group_product(domain, per_c, c, per_a, a, i) / norm if norm > 0.0 else 0.0) <= bound:
        group_against(domain, c, per_c, i, out)
        return FREE, 0.0
    j = largest_group(domain, a, per_a)
    if -math.sqrt(group_square(domain, a, per_a, j)) > bound:
        group_against(domain, a, per_a, j, out)
        return EMPTY, math.inf
    multiplier = group_cut(domain, c, per_c, a, per_a, bound, i, j, out)
    return ACTIVE, multiplier / per_c * per_a / lift_c * lift_a


@kernel
def lifted(x, size):
    """Return x, whose largest entry has this size, and 1; or a multiple, if its reciprocal may overflow, and the factor."""
    if size == 0.0 or size > TINY:
        return x, 1.0
    return x * LIFT, LIFT


@kernel(inline=False)
def group_cut(domain, c, per_c, a, per_a, bound, i, j, out):
    """Solve the cut if it binds, and return the multiplier: the atom of c on group i violates it, that of a on j does not.

    The search is for the share of a in (1 − share) c + share a at which atoms on both sides of the plane are best; the point
    between them on the plane is the answer. An atom is kept as its parts along a_g and across, because c and a may cancel.
    It needs room for three numbers per group, which is more than ``out`` may have.
    """
    parts = np.empty((domain.starts.size - 1, 3))
    for g in range(domain.starts.size - 1):
        split_group(domain, c, per_c, a, per_a, g, parts)
    i, low, j, high = group_search(parts, bound, i, j)
    along_i, across_i = part_atom(parts, i, low)
    along_j, across_j = part_atom(parts, j, high)
    value_i, value_j = along_i * parts[i, 0], along_j * parts[j, 0]
    weight = boundary_weight(value_i, value_j, bound) if value_i > bound else 1.0
    along_i, across_i = weight * along_i, weight * across_i
    along_j, across_j = (1.0 - weight) * along_j, (1.0 - weight) * across_j
    fill(out, 0.0)
    if i == j:
        along_i, across_i = along_i + along_j, across_i + across_j
    else:
        place_atom(domain, c, per_c, a, per_a, j, along_j, across_j, out)
    place_atom(domain, c, per_c, a, per_a, i, along_i, across_i, out)
    return low / (1.0 - low)


@kernel
def place_atom(domain, c, per_c, a, per_a, g, along, across, out):
    """Set out on group g to radius · (along · â + across · c⊥/‖c⊥‖), with c⊥ = c_g without its part along â = a_g/‖a_g‖."""
    norm_a = math.sqrt(group_square(domain, a, per_a, g))
    unit = 1.0 / norm_a if norm_a > 0.0 else 0.0
    for k in range(domain.starts[g], domain.starts[g + 1]):
        out[domain.order[k]] = per_c * c[domain.order[k]]
    for _ in range(2):  # the second time for what rounding left
        product = group_product(domain, per_a, a, unit, out, g)
        for k in range(domain.starts[g], domain.starts[g + 1]):
            out[domain.order[k]] -= product * (unit * (per_a * a[domain.order[k]]))
    left = math.sqrt(group_square(domain, out, 1.0, g))
    of_c = across / left if left > 0.0 else 0.0
    for k in range(domain.starts[g], domain.starts[g + 1]):
        i = domain.order[k]
        out[i] = domain.radius * (along * (unit * (per_a * a[i])) + of_c * out[i])


@kernel
def group_search(parts, bound, i, j):
    """Return (i, low, j, high): groups with the best atoms at two shares of a next to each other, either side of the cut.

    The dual, max_g ‖(1 − share) c_g + share a_g‖ + share · bound, is minimised over two groups that are known to matter; the
    best group there replaces the one on its side, until it is one of the two.
    """
    low, high = 0.0, 1.0
    for _ in range(MAX_PASSES):
        near_i, near_low, near_j, near_high = pair_search(parts, bound, i, low, j, high)
        best = near_j
        largest = part_square(parts, near_j, near_high)
        for g in range(parts.shape[0]):
            square = part_square(parts, g, near_high)
            if square > largest:
                largest = square
                best = g
        if largest <= part_square(parts, near_j, near_high) * (1.0 + CUT_ROUNDING):
            break
        if part_value(parts, best, near_high) > bound:
            i, low = best, near_high
        else:
            j, high = best, near_high
    return near_i, near_low, near_j, near_high


@kernel
def split_group(domain, c, per_c, a, per_a, g, parts):
    """Store ‖a_g‖, the part of c_g in its direction, and the norm of what is left of c_g."""
    square_a = group_square(domain, a, per_a, g)
    share = group_product(domain, per_c, c, per_a, a, g) / square_a if square_a > 0.0 else 0.0
    total = 0.0
    left = 0.0
    for k in range(domain.starts[g], domain.starts[g + 1]):
        i = domain.order[k]
        part = per_c * c[i] - share * (per_a * a[i])
        left += part * part
        total += (per_c * c[i]) * (per_c * c[i])
    parts[g, 0] = math.sqrt(square_a)
    parts[g, 1] = share * parts[g, 0]
    parts[g, 2] = math.sqrt(left) if left > PARALLEL * PARALLEL * total else 0.0


@kernel
def part_square(parts, g, share):
    """Return ‖(1 − share) c_g + share a_g‖²."""
    along = (1.0 - share) * parts[g, 1] + share * parts[g, 0]
    across = (1.0 - share) * parts[g, 2]
    return along * along + across * across


@kernel
def part_atom(parts, g, share):
    """Return the parts of the group's atom against (1 − share) c + share a, along a_g and across, in units of the radius."""
    norm = math.sqrt(part_square(parts, g, share))
    if norm == 0.0:
        return 0.0, 0.0
    return -((1.0 - share) * parts[g, 1] + share * parts[g, 0]) / norm, -(1.0 - share) * parts[g, 2] / norm


@kernel
def part_value(parts, g, share):
    """Return ⟨a, s⟩ at the group's atom s against (1 − share) c + share a, in units of the radius."""
    return part_atom(parts, g, share)[0] * parts[g, 0]


@kernel
def pair_search(parts, bound, i, low, j, high):
    """Return what :func:`group_search` does for two groups, by halving: i violates the cut at low, j meets it at high."""
    near_i, near_j = i, j
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        best = i if part_square(parts, i, middle) > part_square(parts, j, middle) else j
        if part_value(parts, best, middle) > bound:
            near_i, low = best, middle
        else:
            near_j, high = best, middle
    return near_i, low, near_j, high


@project.register(GroupBall)
def project_group_ball(domain, x, out):
    # The norms of the groups are projected onto the ℓ1 ball; the groups keep their directions. ``out`` has room for the
    # distances of all norms to the largest.
    n_groups = domain.starts.size - 1
    size = abs(x[abs_argmax(x)])
    per = reciprocal(size)
    total = 0.0
    largest = 0.0
    for g in range(n_groups):
        norm = math.sqrt(group_square(domain, x, per, g)) / per
        total += norm
        largest = max(largest, norm)
        out[g] = norm
    if total <= domain.radius:
        copy(x, out)
        return
    for g in range(n_groups):
        out[g] = largest - out[g]
    level = shrinkage_level(domain.radius, out, n_groups)
    for g in range(n_groups):
        norm = math.sqrt(group_square(domain, x, per, g)) / per
        factor = max(level - (largest - norm), 0.0) / norm if norm > 0.0 else 0.0
        for k in range(domain.starts[g], domain.starts[g + 1]):
            out[domain.order[k]] = factor * x[domain.order[k]]


@diameter.register(GroupBall)
def diameter_group_ball(domain):
    return 2.0 * domain.radius


@contains.register(GroupBall)
@kernel
def contains_group_ball(domain, x, tol):
    total = 0.0
    for g in range(domain.starts.size - 1):
        square = 0.0
        for k in range(domain.starts[g], domain.starts[g + 1]):
            part = x[domain.order[k]] / domain.radius  # not times a reciprocal, which may overflow
            square += part * part
        total += math.sqrt(square)
    return total <= 1.0 + tol


# Atoms: an ℓ1 ball if each variable is a group of its own.


@blocks.register(GroupBall)
def blocks_group_ball(domain: GroupBall, dimension: int) -> list[Block]:
    return [whole(L1Ball(domain.radius) if has_vertices(domain) else domain, dimension)]


@has_vertices.register(GroupBall)
def has_vertices_group_ball(domain: GroupBall) -> bool:
    return domain.starts.size == domain.order.size + 1


# Proofs


@least_value.register(GroupBall)
@quiet
def least_value_group_ball(domain: GroupBall, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(-raised(domain.radius * float(group_ceilings(domain, c).max()), 1))


spread.register(GroupBall)(spread_by_signs)


@settle.register(GroupBall)
@quiet
def settle_group_ball(domain: GroupBall, x: np.ndarray, off: np.ndarray) -> bool:
    gauge = float(group_ceilings(domain, x).sum()) / domain.radius
    return settle_by_gauge(x, 0.0, gauge, gauge_rounding(x.size, domain.radius), off)


def group_ceilings(domain: GroupBall, x: np.ndarray) -> np.ndarray:
    """Return numbers that are at least the norms of the groups."""
    ordered = np.abs(x[domain.order])
    sizes = np.maximum.reduceat(ordered, domain.starts[:-1])
    units = np.where(sizes > 0.0, sizes, 1.0)
    squares = np.add.reduceat((ordered / np.repeat(units, np.diff(domain.starts))) ** 2, domain.starts[:-1])
    return raised(raised(np.sqrt(squares), x.size + 4) * units, 1)
