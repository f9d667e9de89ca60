"""Polytopes as images of sets that are stated by equations and bounds, as linear programs want them.

Z = {L w : E w = e, lower ≤ w ≤ upper}. Of an ℓ1 ball, w holds the positive and the negative parts of x and what is left of
the radius; of a hull, the weights of its points. A face can be read off such a form: some w stay at their bounds.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.domains.birkhoff import Birkhoff
from tiebreak.domains.boxes import Box, LInfBall, bounds
from tiebreak.domains.capped import CappedSimplex
from tiebreak.domains.groups import GroupBall
from tiebreak.domains.hull import Hull, mean_weights
from tiebreak.domains.k_sparse import KSparse
from tiebreak.domains.l1 import L1Ball, WeightedL1Ball
from tiebreak.domains.polytope import Polytope
from tiebreak.domains.products import Columns, Product
from tiebreak.domains.simplices import Simplex, UnitSimplex
from tiebreak.engine.rounding import UNIT

ROUNDINGS = 4.0  # relative roundings per variable by which a sum of sizes may miss its total


class Lifted(NamedTuple):
    """A polytope {L w : E w = e, lower ≤ w ≤ upper}."""

    lift: Any  # L, (d, k), sparse
    rows: Any  # E, (m, k), sparse
    sides: np.ndarray  # e, (m,)
    lower: np.ndarray  # (k,)
    upper: np.ndarray  # (k,)
    sizes: np.ndarray  # (k,): how far w can be from a bound, about; not 0


@functools.singledispatch
def lifted(domain: Any, dimension: int) -> Lifted | None:
    """Return a polytope in this form; None, the default, for sets that are none, or are not known to be one.

    Examples
    --------
    >>> from tiebreak import UnitSimplex
    >>> form = lifted(UnitSimplex(2.0), 3)
    >>> form.lift.toarray()
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 0., 1., 0.]])
    >>> form.rows.toarray(), form.sides
    (array([[1., 1., 1., 1.]]), array([2.]))
    """
    return None


@functools.singledispatch
def coordinates(domain: Any, x: np.ndarray) -> np.ndarray | None:
    """Return w with L w = x, of which few are at their bounds: for all sets but hulls, as few as possible.

    The default is None.
    """
    return None


# Sums of sizes


def _signed(weights: np.ndarray, total: float, largest: float) -> Lifted:
    """State {x : Σ w_i |x_i| ≤ total, |x_i| ≤ largest}: both parts of x, and what is left of the total."""
    d, one = weights.size, scipy.sparse.eye_array(weights.size)
    lift = scipy.sparse.hstack([one, -one, scipy.sparse.csc_array((d, 1))], format="csc")
    rows = scipy.sparse.csc_array(np.concatenate([weights, weights, [1.0]])[None])
    most = np.concatenate([np.full(2 * d, largest), [np.inf]])
    sizes = np.minimum(total / np.concatenate([weights, weights, [1.0]]), most)
    return Lifted(lift, rows, np.array([total]), np.zeros(2 * d + 1), most, sizes)


def _both_parts(x: np.ndarray, weights: np.ndarray, total: float, largest: float = np.inf) -> np.ndarray:
    """Return the parts of x, both larger than they need to be, and what is left of a total, which all of them share."""
    left = max(total - float(weights @ np.abs(x)), 0.0)
    if left <= ROUNDINGS * x.size * UNIT * total:
        left = 0.0
    extra = np.minimum(left / (4.0 * x.size * weights), 0.5 * np.maximum(largest - np.abs(x), 0.0))
    return np.concatenate([np.maximum(x, 0.0) + extra, np.maximum(-x, 0.0) + extra, [left - 2.0 * float(weights @ extra)]])


@lifted.register(L1Ball)
def lifted_l1_ball(domain: L1Ball, dimension: int) -> Lifted:
    return _signed(np.ones(dimension), domain.radius, np.inf)


@coordinates.register(L1Ball)
def coordinates_l1_ball(domain: L1Ball, x: np.ndarray) -> np.ndarray:
    return _both_parts(x, np.ones(x.size), domain.radius)


@lifted.register(WeightedL1Ball)
def lifted_weighted_l1_ball(domain: WeightedL1Ball, dimension: int) -> Lifted:
    return _signed(domain.weights, domain.radius, np.inf)


@coordinates.register(WeightedL1Ball)
def coordinates_weighted_l1_ball(domain: WeightedL1Ball, x: np.ndarray) -> np.ndarray:
    return _both_parts(x, domain.weights, domain.radius)


@lifted.register(GroupBall)
def lifted_group_ball(domain: GroupBall, dimension: int) -> Lifted | None:
    return lifted_l1_ball(L1Ball(domain.radius), dimension) if domain.starts.size == dimension + 1 else None


@coordinates.register(GroupBall)
def coordinates_group_ball(domain: GroupBall, x: np.ndarray) -> np.ndarray | None:
    return coordinates_l1_ball(L1Ball(domain.radius), x) if domain.starts.size == x.size + 1 else None


@lifted.register(KSparse)
def lifted_k_sparse(domain: KSparse, dimension: int) -> Lifted:
    return _signed(np.ones(dimension), domain.k * domain.radius, domain.radius)


# Sums, bounds, rows


@lifted.register(Simplex)
def lifted_simplex(domain: Simplex, dimension: int) -> Lifted:
    return _summing(domain.scale, dimension, np.inf)


@lifted.register(CappedSimplex)
def lifted_capped_simplex(domain: CappedSimplex, dimension: int) -> Lifted:
    return _summing(domain.total, dimension, domain.cap)


def _summing(total: float, dimension: int, cap: float) -> Lifted:
    sums = scipy.sparse.csc_array(np.ones((1, dimension)))
    lift, most = scipy.sparse.eye_array(dimension, format="csc"), np.full(dimension, cap)
    return Lifted(lift, sums, np.array([total]), np.zeros(dimension), most, np.full(dimension, min(total, cap)))


@lifted.register(UnitSimplex)
def lifted_unit_simplex(domain: UnitSimplex, dimension: int) -> Lifted:
    whole = _summing(domain.scale, dimension + 1, np.inf)
    return whole._replace(lift=whole.lift[:dimension])


@lifted.register(Box)
@lifted.register(LInfBall)
def lifted_box(domain: Box | LInfBall, dimension: int) -> Lifted:
    lift, (lower, upper) = scipy.sparse.eye_array(dimension, format="csc"), bounds(domain)
    sizes = np.where(upper > lower, upper - lower, 1.0)
    return Lifted(lift, scipy.sparse.csc_array((0, dimension)), np.zeros(0), lower.copy(), upper.copy(), sizes)


@lifted.register(Birkhoff)
def lifted_birkhoff(domain: Birkhoff, dimension: int) -> Lifted:
    n, one, ones = domain.rows, scipy.sparse.eye_array(domain.rows), np.ones((1, domain.rows))
    rows = scipy.sparse.vstack([scipy.sparse.kron(one, ones), scipy.sparse.kron(ones, one)], format="csc")
    lift = scipy.sparse.eye_array(dimension, format="csc")
    return Lifted(lift, rows, np.ones(2 * n), np.zeros(dimension), np.full(dimension, np.inf), np.ones(dimension))


@lifted.register(Polytope)
def lifted_polytope(domain: Polytope, dimension: int) -> Lifted:
    """State each row by what it leaves: A x + left = b, left ≥ 0, or 0 for an equation."""
    rows, least, most, sides = domain.stated
    count = len(most)
    slack = np.where(np.isfinite(least), most - least, np.inf)
    lift = scipy.sparse.hstack([scipy.sparse.eye_array(dimension), scipy.sparse.csc_array((dimension, count))], format="csc")
    both = scipy.sparse.hstack([rows, scipy.sparse.eye_array(count)], format="csc")
    width = np.where(sides[1] > sides[0], sides[1] - sides[0], np.maximum(np.abs(sides).max(axis=0), 1.0))
    sizes = np.concatenate([width, abs(rows) @ width])
    lower, upper = np.concatenate([domain.lower, np.zeros(count)]), np.concatenate([domain.upper, slack])
    return Lifted(lift, both, most.copy(), lower, upper, np.where(sizes > 0.0, sizes, 1.0))


@lifted.register(Hull)
def lifted_hull(domain: Hull, dimension: int) -> Lifted:
    count = len(domain.points)
    form = _summing(1.0, count, np.inf)
    return form._replace(lift=scipy.sparse.csc_array(domain.points.T))


@coordinates.register(Simplex)
@coordinates.register(CappedSimplex)
@coordinates.register(Birkhoff)
@coordinates.register(Box)
@coordinates.register(LInfBall)
def coordinates_themselves(domain: Any, x: np.ndarray) -> np.ndarray:
    return x.copy()


@coordinates.register(UnitSimplex)
def coordinates_unit_simplex(domain: UnitSimplex, x: np.ndarray) -> np.ndarray:
    return np.append(x, max(domain.scale - float(x.sum()), 0.0))


@coordinates.register(Polytope)
def coordinates_polytope(domain: Polytope, x: np.ndarray) -> np.ndarray:
    rows, _, most, _ = domain.stated
    return np.concatenate([x, most - rows @ x])


@coordinates.register(KSparse)
def coordinates_k_sparse(domain: KSparse, x: np.ndarray) -> np.ndarray:
    return _both_parts(x, np.ones(x.size), domain.k * domain.radius, domain.radius)


@coordinates.register(Hull)
def coordinates_hull(domain: Hull, x: np.ndarray) -> np.ndarray:
    return mean_weights(domain.points, x)


# Several sets


@lifted.register(Product)
def lifted_product(domain: Product, dimension: int) -> Lifted | None:
    return _together([lifted(part, where.stop - where.start) for _, part, where in domain.named_parts()])


@coordinates.register(Product)
def coordinates_product(domain: Product, x: np.ndarray) -> np.ndarray | None:
    return _joined([coordinates(part, x[where]) for _, part, where in domain.named_parts()])


@lifted.register(Columns)
def lifted_columns(domain: Columns, dimension: int) -> Lifted | None:
    return _together([lifted(domain.set, domain.rows)] * domain.columns)


@coordinates.register(Columns)
def coordinates_columns(domain: Columns, x: np.ndarray) -> np.ndarray | None:
    return _joined([coordinates(domain.set, column) for column in x.reshape(domain.columns, domain.rows)])


def _together(parts: Sequence[Lifted | None]) -> Lifted | None:
    """Return the form of a product."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    lift, rows = (scipy.sparse.block_diag([getattr(part, name) for part in known], "csc") for name in ("lift", "rows"))
    return Lifted(lift, rows, *(np.concatenate(column) for column in zip(*(part[2:] for part in known), strict=True)))


def _joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None
