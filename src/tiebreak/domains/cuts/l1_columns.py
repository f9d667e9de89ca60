"""The cut of matrices with columns in an ℓ1 ball: the search of ``search.py``, with an atom kept as one entry per column.

An atom that is best for a column at two λ is best between them. So a column is settled when its entries on both sides of the
cut agree, and a pass is over the others alone: after some passes these are few.
"""

from __future__ import annotations

import math

import numpy as np

from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID
from tiebreak.domains.cuts.search import (
    MAX_PASSES,
    boundary_weight,
    crossing,
    edge_of,
    improves,
    multiplier_of,
    opening,
    ray,
)
from tiebreak.engine import kernel
from tiebreak.engine.vectors import abs_argmax_of_sum, copy, fill, reciprocal


@kernel
def l1_columns_cut(domain, c, a, b, out):
    """Solve the cut; it allocates a few numbers per column."""
    valid, size_c, size_a = opening(c, a, b)
    if not valid:
        return INVALID, math.nan
    per_c, per_a = reciprocal(size_c), reciprocal(size_a)
    bound = b * per_a / domain.set.radius
    atoms = np.empty((3, domain.columns), np.int64)
    outside, inside, everything = atoms[0], atoms[1], atoms[2]
    for j in range(domain.columns):
        outside[j] = j * domain.rows
        everything[j] = j
    c_outside, a_outside = pick(domain, c, per_c, a, per_a, 1.0, 0.0, everything, domain.columns, outside)
    if a_outside <= bound:
        fill(out, 0.0)
        place(domain, outside, 1.0, out)
        return FREE, 0.0
    copy(outside, inside)
    c_inside, a_inside = pick(domain, c, per_c, a, per_a, 0.0, 1.0, everything, domain.columns, inside)
    fill(out, 0.0)
    if a_inside > bound:
        place(domain, inside, 1.0, out)
        return EMPTY, math.inf
    c_outside, a_outside, c_inside, a_inside = narrow_columns(
        domain, c, per_c, a, per_a, bound, outside, c_outside, a_outside, inside, c_inside, a_inside, everything
    )
    weight = boundary_weight(a_outside, a_inside, bound)
    place(domain, outside, weight, out)
    place(domain, inside, 1.0 - weight, out)
    return ACTIVE, multiplier_of(c_outside, a_outside, c_inside, a_inside, per_a, per_c)


# An entry of the matrix with a sign is kept as i for + and −1 − i for −.


@kernel
def place(domain, atom, weight, out):
    """Add a multiple of an atom to out."""
    for j in range(atom.size):
        negative = atom[j] < 0
        i = -1 - atom[j] if negative else atom[j]
        out[i] += weight * (-domain.set.radius if negative else domain.set.radius)


@kernel
def entry_of(x, per, code):
    """Return an entry of per · x with the sign that it has in an atom."""
    return -(per * x[-1 - code]) if code < 0 else per * x[code]


@kernel(inline=False)
def pick(domain, c, per_c, a, per_a, p, q, columns, count, atom):
    """Set the atom in the first of these columns against p c + q a; return ⟨c, s⟩ and ⟨a, s⟩ over them.

    A column where p c + q a is zero keeps what it has.
    """
    c_value, a_value = 0.0, 0.0
    p, q = p * per_c, q * per_a
    for k in range(count):
        j = columns[k]
        start = j * domain.rows
        cj, aj = c[start : start + domain.rows], a[start : start + domain.rows]
        i = abs_argmax_of_sum(p, cj, q, aj)
        size = p * cj[i] + q * aj[i]
        if size != 0.0:
            atom[j] = -1 - (start + i) if size > 0.0 else start + i
        c_value += entry_of(c, per_c, atom[j])
        a_value += entry_of(a, per_a, atom[j])
    return c_value, a_value


@kernel(inline=False)
def narrow_columns(domain, c, per_c, a, per_a, bound, outside, c_outside, a_outside, inside, c_inside, a_inside, columns):
    """Replace two atoms by better ones until the point between them is optimal; return their values of c and a.

    The λ of the crossing, at which the search can end, takes turns with that of the secant, which is better as long as many
    columns make the slope all but smooth.
    """
    found = np.zeros(domain.columns, np.int64)
    edge = edge_of(a_outside, a_inside, bound)
    low_p, low_q, high_p, high_q = 1.0, 0.0, 0.0, 1.0  # the rays of the atoms outside and inside
    c_settled, a_settled, count = 0.0, 0.0, domain.columns
    for passes in range(MAX_PASSES):
        left = 0
        for k in range(count):
            j = columns[k]
            if outside[j] == inside[j]:
                c_settled += entry_of(c, per_c, outside[j])
                a_settled += entry_of(a, per_a, outside[j])
            else:
                columns[left] = j
                found[j] = outside[j]
                left += 1
        count = left
        at_crossing = passes % 2 == 1
        if at_crossing:
            p, q = crossing(c_outside, a_outside, c_inside, a_inside)
        else:
            low_slope, high_slope = a_outside - bound, bound - a_inside
            p, q = ray(low_slope * high_p + high_slope * low_p, low_slope * high_q + high_slope * low_q)
        c_new, a_new = pick(domain, c, per_c, a, per_a, p, q, columns, count, found)
        c_new, a_new = c_settled + c_new, a_settled + a_new
        if at_crossing and (
            agree(found, outside, columns, count)
            or agree(found, inside, columns, count)
            or not improves(p, q, c_inside, a_inside, c_new, a_new)
        ):
            break
        if a_new > edge:
            c_outside, a_outside, low_p, low_q = c_new, a_new, p, q
            take_over(found, outside, columns, count)
        else:
            c_inside, a_inside, high_p, high_q = c_new, a_new, p, q
            take_over(found, inside, columns, count)
    return c_outside, a_outside, c_inside, a_inside


@kernel
def agree(found, atom, columns, count):
    """Return whether two atoms agree in these columns."""
    for k in range(count):  # noqa: SIM110 - Numba compiles no generator expressions
        if found[columns[k]] != atom[columns[k]]:
            return False
    return True


@kernel
def take_over(found, atom, columns, count):
    """Make an atom that of ``found`` in these columns."""
    for k in range(count):
        atom[columns[k]] = found[columns[k]]
