"""Simplices: non-negative numbers with a given sum, or at most that."""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.atoms import (
    Atom,
    atom_of,
    decomposed,
    has_vertices,
    has_vertices_always,
    least,
    mean_of_axes,
    on_axes,
    vertices,
)
from tiebreak.domains.base import (
    Domain,
    contains,
    cut_lmo,
    cut_step,
    diameter,
    least_value,
    lmo,
    project,
    settle,
    spread,
    spread_by_signs,
    unsettled,
)
from tiebreak.domains.cuts.vertices import Vertices, place_vertices, step_to_vertices, vertex_cut
from tiebreak.domains.l1 import shrinkage_level
from tiebreak.domains.rounding import gauge_rounding, least_or_nothing, quiet, raised, settle_by_gauge
from tiebreak.engine import checks, kernel
from tiebreak.engine.rounding import SUBNORMAL, UNIT
from tiebreak.engine.vectors import argmin, argmin_of_sum, fill, plain_sum

LARGEST = sys.float_info.max  # number in place of a difference that overflows


class _Scale(NamedTuple):
    scale: float


class Simplex(_Scale, Domain):
    """The set {x ≥ 0 : Σ xᵢ = scale}. Its atoms are ``scale`` on one coordinate.

    Its diameter is √2 · scale; for a single variable, where the set is a point, that is an upper bound.

    Parameters
    ----------
    scale : float, positive

    Examples
    --------
    >>> simplex = Simplex(2.0)
    >>> simplex.lmo([1.0, -3.0, 0.0])
    array([0., 2., 0.])
    >>> simplex.cut_lmo([1.0, -3.0, 0.0], [0.0, 1.0, 0.0], 1.0).point
    array([0., 1., 1.])
    >>> simplex.project([1.0, 2.0, -1.0])
    array([0.5, 1.5, 0. ])
    """

    __slots__ = ()

    def __new__(cls, scale: Any = 1.0) -> Simplex:
        return super().__new__(cls, checks.real(scale, "scale", above=0.0))

    def centroid(self, dimension: int) -> np.ndarray:
        return np.full(dimension, self.scale / dimension)


class UnitSimplex(_Scale, Domain):
    """The set {x ≥ 0 : Σ xᵢ ≤ scale}. Its atoms are 0 and ``scale`` on one coordinate.

    Its diameter is √2 · scale; for a single variable, where it is ``scale``, that is an upper bound.

    Parameters
    ----------
    scale : float, positive

    Examples
    --------
    >>> simplex = UnitSimplex(2.0)
    >>> simplex.lmo([1.0, 3.0])
    array([0., 0.])
    >>> simplex.cut_lmo([1.0, -3.0], [0.0, 1.0], 1.0).point
    array([0., 1.])
    """

    __slots__ = ()

    def __new__(cls, scale: Any = 1.0) -> UnitSimplex:
        return super().__new__(cls, checks.real(scale, "scale", above=0.0))

    def centroid(self, dimension: int) -> np.ndarray:
        return np.full(dimension, self.scale / (dimension + 1))


# Linear minimisation


@lmo.register(Simplex)
def lmo_simplex(domain, c, out):
    fill(out, 0.0)
    out[argmin(c)] = domain.scale


@lmo.register(UnitSimplex)
def lmo_unit_simplex(domain, c, out):
    fill(out, 0.0)
    i = argmin(c)
    if c[i] < 0.0:
        out[i] = domain.scale


@cut_lmo.register(Simplex)
def cut_lmo_simplex(domain, c, a, b, out):
    return place_vertices(vertex_cut(Vertices(domain.scale, False), c, a, b), out)


@cut_lmo.register(UnitSimplex)
def cut_lmo_unit_simplex(domain, c, a, b, out):
    return place_vertices(vertex_cut(Vertices(domain.scale, True), c, a, b), out)


@cut_step.register(Simplex)
def cut_step_simplex(domain, c, a, b, step, x, work):
    return step_to_vertices(vertex_cut(Vertices(domain.scale, False), c, a, b), step, x)


@cut_step.register(UnitSimplex)
def cut_step_unit_simplex(domain, c, a, b, step, x, work):
    return step_to_vertices(vertex_cut(Vertices(domain.scale, True), c, a, b), step, x)


# Projection


@project.register(Simplex)
def project_simplex(domain, x, out):
    project_to_simplex(x, domain.scale, out)


@project.register(UnitSimplex)
def project_unit_simplex(domain, x, out):
    total = 0.0
    for i in range(x.size):
        out[i] = max(x[i], 0.0)
        total += out[i]
    if total > domain.scale:
        project_to_simplex(x, domain.scale, out)


@kernel
def project_to_simplex(x, size, out):
    """Set ``out`` to the point of {s ≥ 0 : Σ s_i = size} that is nearest to x.

    It is max(level − gap_i, 0) with gap_i = max x − x_i and the level that gives the right sum.
    """
    largest = x[argmin_of_sum(-1.0, x, 0.0, x)]
    for i in range(x.size):
        out[i] = min(largest - x[i], LARGEST)
    level = shrinkage_level(size, out, x.size)
    for i in range(x.size):
        out[i] = max(level - (largest - x[i]), 0.0)


# Size and membership


@diameter.register(Simplex)
def diameter_simplex(domain):
    return math.sqrt(2.0) * domain.scale


@diameter.register(UnitSimplex)
def diameter_unit_simplex(domain):
    return math.sqrt(2.0) * domain.scale


@contains.register(Simplex)
@kernel
def contains_simplex(domain, x, tol):
    return within(x, math.inf, tol * domain.scale) and abs(plain_sum(x) - domain.scale) <= tol * domain.scale


@contains.register(UnitSimplex)
@kernel
def contains_unit_simplex(domain, x, tol):
    return within(x, math.inf, tol * domain.scale) and plain_sum(x) <= domain.scale * (1.0 + tol)


@kernel
def within(x, cap, margin):
    """Return whether all entries of x are in [0, cap], up to a margin."""
    inside = True
    for i in range(x.size):
        inside = inside and -margin <= x[i] <= cap + margin
    return inside


# Atoms


@vertices.register(Simplex)
def vertices_simplex(domain: Simplex, c: np.ndarray, count: int) -> list[Atom]:
    where = least(c, count)
    return on_axes(where, np.full(where.size, domain.scale))


@vertices.register(UnitSimplex)
def vertices_unit_simplex(domain: UnitSimplex, c: np.ndarray, count: int) -> list[Atom]:
    where = least(c, count)
    found = on_axes(where, np.full(where.size, domain.scale))
    found.insert(int(np.count_nonzero(c[where] < 0.0)), atom_of(np.empty(0)))
    return found[:count]


@decomposed.register(Simplex)
@quiet
def decomposed_simplex(domain: Simplex, x: np.ndarray) -> list[tuple[float, Atom]]:
    return mean_of_axes(np.maximum(x, 0.0), domain.scale, origin=False)


@decomposed.register(UnitSimplex)
@quiet
def decomposed_unit_simplex(domain: UnitSimplex, x: np.ndarray) -> list[tuple[float, Atom]]:
    return mean_of_axes(np.maximum(x, 0.0), domain.scale, origin=True)


has_vertices.register(Simplex)(has_vertices_always)
has_vertices.register(UnitSimplex)(has_vertices_always)


# Proofs


@least_value.register(Simplex)
@quiet
def least_value_simplex(domain: Simplex, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(math.nextafter(domain.scale * float(c.min()), -math.inf))


@least_value.register(UnitSimplex)
@quiet
def least_value_unit_simplex(domain: UnitSimplex, c: np.ndarray, atom: np.ndarray) -> float:
    least = float(c.min())
    return 0.0 if least >= 0.0 else least_or_nothing(math.nextafter(domain.scale * least, -math.inf))


spread.register(Simplex)(spread_by_signs)
spread.register(UnitSimplex)(spread_by_signs)


@settle.register(Simplex)
@quiet
def settle_simplex(domain: Simplex, x: np.ndarray, off: np.ndarray) -> bool:
    np.maximum(x, 0.0, out=x)
    return settle_total(x, domain.scale, math.inf, off)


@settle.register(UnitSimplex)
@quiet
def settle_unit_simplex(domain: UnitSimplex, x: np.ndarray, off: np.ndarray) -> bool:
    np.maximum(x, 0.0, out=x)
    return settle_by_gauge(x, 0.0, float(x.sum()) / domain.scale, gauge_rounding(x.size, domain.scale), off)


def settle_total(x: np.ndarray, total: float, cap: float, off: np.ndarray) -> bool:
    """Settle x, which is between 0 and the cap, where its sum is the total.

    Where it is too large all entries shrink by one factor; where it is too small they grow by one, or with a cap by one
    share of what is missing to it.
    """
    rounding = gauge_rounding(x.size, total)
    found = float(x.sum())
    if rounding > 0.01 or not 0.5 * total < found < 2.0 * total:
        return unsettled(off)
    if abs(found - total) > rounding * total:
        if found > total or cap == math.inf:
            x *= total / found
        else:
            x += min((total - found) / float((cap - x).sum()), 1.0) * (cap - x)
        np.minimum(x, cap, out=x)
        found = float(x.sum())
    doubt = raised(abs(found - total) + rounding * total, 4)  # how far the exact sum may be from the total
    if doubt > 0.5 * total:
        return unsettled(off)
    off[:] = raised(doubt / (total - doubt) * x, 8)
    if cap < math.inf:
        room = raised(cap - x, 1)
        missing = float(room.sum()) * (1.0 - rounding) - (x.size + 2) * UNIT * cap
        share = min(raised(doubt / missing, 4), 1.0) if missing > 0.0 else 1.0
        off[:] = np.maximum(off, raised(share * room, 4)) + SUBNORMAL
    return True
