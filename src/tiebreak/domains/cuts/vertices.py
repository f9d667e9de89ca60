"""The cut of sets with an atom for each coordinate: the dual search of ``search.py``, with an atom kept as a coordinate.

An atom is sign · size on one coordinate and zero elsewhere. The sign 0 stands for the origin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID
from tiebreak.domains.cuts.search import LIFT, MAX_PASSES, TINY, boundary_weight, crossing, improves, multiplier_of
from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import abs_argmax, abs_argmax_of_sum, argmin, argmin_of_sum, fill, scale


class Signed(NamedTuple):
    """The atoms ±size on each coordinate: those of an ℓ1 ball."""

    size: float


class Positive(NamedTuple):
    """The atoms size on each coordinate: those of a simplex, and the origin if there is one below it."""

    size: float
    with_origin: bool


@generic
def first_vertex(atoms, c):
    """Return the coordinate and the sign of the atom that minimises ⟨c, s⟩, and the largest |c_i|."""


@generic
def next_vertex(atoms, p, c, q, a):
    """Return the coordinate and the sign of the atom that minimises ⟨p c + q a, s⟩."""


@first_vertex.register(Signed)
def first_vertex_signed(atoms, c):
    i = abs_argmax(c)
    return i, -math.copysign(1.0, c[i]), abs(c[i])


@next_vertex.register(Signed)
def next_vertex_signed(atoms, p, c, q, a):
    i = abs_argmax_of_sum(p, c, q, a)
    return i, -math.copysign(1.0, p * c[i] + q * a[i])


@first_vertex.register(Positive)
def first_vertex_positive(atoms, c):
    i = argmin(c)
    size = abs(c[abs_argmax(c)])
    return (0, 0.0, size) if atoms.with_origin and c[i] >= 0.0 else (i, 1.0, size)


@next_vertex.register(Positive)
def next_vertex_positive(atoms, p, c, q, a):
    i = argmin_of_sum(p, c, q, a)
    return (0, 0.0) if atoms.with_origin and p * c[i] + q * a[i] >= 0.0 else (i, 1.0)


@kernel
def vertex_cut(atoms, c, a, b):
    """Return (status, multiplier, i, s_i, j, s_j) of the cut's minimiser s, which is zero elsewhere."""
    i, sign, size_c = first_vertex(atoms, c)
    if not (math.isfinite(size_c) and math.isfinite(a[i])) or math.isnan(b):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    if sign * atoms.size * a[i] <= b:
        return FREE, 0.0, i, sign * atoms.size, i, 0.0
    return vertex_search(atoms, c, a, b, i, sign, size_c)


@kernel(inline=False)
def vertex_search(atoms, c, a, b, i, sign_i, size_c):
    """Return what :func:`vertex_cut` does, if the atom of c at coordinate i violates the cut; the largest |c_i| is given."""
    j, sign_j, size_a = first_vertex(atoms, a)  # the atom that satisfies the cut
    if not math.isfinite(size_a):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    if sign_j * atoms.size * a[j] > b:
        return EMPTY, math.inf, j, sign_j * atoms.size, j, 0.0
    lift_c, lift_a = 1.0, 1.0
    if 0.0 < size_c < TINY:
        lift_c = LIFT
        c = c * lift_c
    if 0.0 < size_a < TINY:
        lift_a = LIFT
        a = a * lift_a
    size_c *= lift_c
    size_a *= lift_a
    per_c = 1.0 / size_c if size_c > 0.0 else 0.0
    per_a = 1.0 / size_a if size_a > 0.0 else 0.0
    bound = b * lift_a / size_a / atoms.size if size_a > 0.0 else b
    c_outside, a_outside = sign_i * c[i] * per_c, sign_i * a[i] * per_a
    c_inside, a_inside = sign_j * c[j] * per_c, sign_j * a[j] * per_a
    bound = max(bound, a_inside)  # the cut is not empty, though in these units rounding may put the bound a hair below
    if a_outside <= bound:
        return FREE, 0.0, i, sign_i * atoms.size, i, 0.0

    for _ in range(MAX_PASSES):
        p, q = crossing(c_outside, a_outside, c_inside, a_inside)
        k, sign_k = next_vertex(atoms, p * per_c, c, q * per_a, a)
        c_new, a_new = sign_k * c[k] * per_c, sign_k * a[k] * per_a
        known = (k == i and sign_k == sign_i) or (k == j and sign_k == sign_j)
        if known or not improves(p, q, c_inside, a_inside, c_new, a_new):
            break
        if a_new > bound:
            i, sign_i, c_outside, a_outside = k, sign_k, c_new, a_new
        else:
            j, sign_j, c_inside, a_inside = k, sign_k, c_new, a_new

    weight = boundary_weight(a_outside, a_inside, bound)
    found = multiplier_of(c_outside, a_outside, c_inside, a_inside, size_c / lift_c, size_a / lift_a)
    return ACTIVE, found, i, weight * sign_i * atoms.size, j, (1.0 - weight) * sign_j * atoms.size


@kernel
def place_vertices(cut, out):
    """Set ``out`` to the point that :func:`vertex_cut` found; return (status, multiplier)."""
    status, multiplier, i, at_i, j, at_j = cut
    if status != INVALID:
        fill(out, 0.0)
        out[i] += at_i
        out[j] += at_j
    return status, multiplier


@kernel
def step_to_vertices(cut, step, x):
    """Move x towards the point that :func:`vertex_cut` found; return (status, multiplier)."""
    status, multiplier, i, at_i, j, at_j = cut
    if status != INVALID:
        scale(1.0 - step, x)
        x[i] += step * at_i
        x[j] += step * at_j
    return status, multiplier
