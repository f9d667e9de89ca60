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


class Vertices(NamedTuple):
    """A set as this module sees it: its atoms are ``size`` on each coordinate, and perhaps the origin."""

    size: float
    with_origin: bool


class SignedVertices(NamedTuple):
    """The same for a set whose atoms are ``size`` and −``size`` on each coordinate."""

    size: float


@generic
def best_coordinate(atoms, c):
    """Return the coordinate of the atom with the least ⟨c, s⟩, and the largest |c_i|."""


@best_coordinate.register(Vertices)
def best_coordinate_vertices(atoms, c):
    return argmin(c), abs(c[abs_argmax(c)])


@best_coordinate.register(SignedVertices)
def best_coordinate_signed_vertices(atoms, c):
    i = abs_argmax(c)
    return i, abs(c[i])


@generic
def best_coordinate_of_sum(atoms, p, c, q, a):
    """Return the coordinate of the atom with the least ⟨p c + q a, s⟩."""


@best_coordinate_of_sum.register(Vertices)
def best_coordinate_of_sum_vertices(atoms, p, c, q, a):
    return argmin_of_sum(p, c, q, a)


@best_coordinate_of_sum.register(SignedVertices)
def best_coordinate_of_sum_signed_vertices(atoms, p, c, q, a):
    return abs_argmax_of_sum(p, c, q, a)


@generic
def sign_of(atoms, value):
    """Return the sign of the best atom of a coordinate for a direction with this value there.

    It takes a number, not the direction: passing arrays on would count references to them in every pass.
    """


@sign_of.register(Vertices)
def sign_of_vertices(atoms, value):
    return 0.0 if atoms.with_origin and value >= 0.0 else 1.0


@sign_of.register(SignedVertices)
def sign_of_signed_vertices(atoms, value):
    return -math.copysign(1.0, value)


@kernel
def vertex_cut(atoms, c, a, b):
    """Return (status, multiplier, i, s_i, j, s_j) of the cut's minimiser s, which is zero elsewhere."""
    i, size_c = best_coordinate(atoms, c)
    sign = sign_of(atoms, c[i])
    if not (math.isfinite(size_c) and math.isfinite(a[i])) or math.isnan(b):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    if sign * atoms.size * a[i] <= b:
        return FREE, 0.0, i, sign * atoms.size, i, 0.0
    return vertex_search(atoms, c, a, b, i, sign, size_c)


@kernel(inline=False)
def vertex_search(atoms, c, a, b, i, sign_i, size_c):
    """Return what :func:`vertex_cut` does, if the atom of c at coordinate i violates the cut; the largest |c_i| is given."""
    j, size_a = best_coordinate(atoms, a)
    if not math.isfinite(size_a):
        return INVALID, math.nan, 0, 0.0, 0, 0.0
    sign_j = sign_of(atoms, a[j])  # of the atom that satisfies the cut
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
        k = best_coordinate_of_sum(atoms, p * per_c, c, q * per_a, a)
        sign_k = sign_of(atoms, p * per_c * c[k] + q * per_a * a[k])
        c_new, a_new = sign_k * c[k] * per_c, sign_k * a[k] * per_a
        is_outside = sign_k == sign_i and (k == i or sign_k == 0.0)
        known = is_outside or (sign_k == sign_j and (k == j or sign_k == 0.0))
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
