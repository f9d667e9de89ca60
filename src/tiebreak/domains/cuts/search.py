"""The half-space cut of any set that has a linear minimisation oracle.

The dual of min ⟨c, s⟩ over s ∈ Z, ⟨a, s⟩ ≤ b is concave in one variable, h(λ) = min_{s ∈ Z} ⟨c + λ a, s⟩ − λ b, λ ≥ 0.
One atom is kept on each side of the half-space, with the λ that it is a minimiser for. A λ between the two proposes a new
atom, which replaces the one on its side. There are two good proposals:

- the crossing, at which both atoms give the same ⟨c + λ a, s⟩ (Kelley 1960): on a polytope it ends exactly, after a few
  passes, when it brings nothing new;
- the secant, at which the slope ⟨a, s⟩ − b is zero if it is linear in λ, in the variant of Anderson and Björck
  (1973): where Z is curved the slope is smooth, the crossing no better than bisection, and the secant superlinear.

The slope of the last atom tells which of them to trust. The answer is the point between the two atoms on the boundary of the
half-space. It is feasible, and how much its value exceeds h(λ) bounds its error.

λ is kept as a ray (p, q), λ = q/p, the larger of the two 1, for c and a divided by their largest entries, so that nothing
overflows.
"""

from __future__ import annotations

import math

import numpy as np

from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID, Domain, cut_lmo, cut_step, lmo, lmo_step
from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import abs_argmax, copy, dot, move

MAX_PASSES = 1000  # passes at most; a polytope needs about ten, and so does a curved set
CUT_ROUNDING = 4e-16  # relative difference of two values that rounding alone may explain
GRANTED = 1e-14  # violation of the cut up to which an atom counts as inside, relative to the values at hand
GAP = 1e-14  # duality gap below which the search stops, relative to the values at hand
SECANTS = 4  # secants at most between two crossings: on a polytope the search ends at a crossing alone
LINEAR = 0.25  # deviation of the slope from a line up to which the secant is trusted, relative to its range
TINY = 1e-290  # size below which a reciprocal may overflow …
LIFT = 2.0**100  # … and the factor that brings such numbers out of there


@generic
def next_atom(domain, c, a, out):
    """Set ``out`` to a point of Z that minimises ⟨c, s⟩, where it holds one for another direction c of the same cut.

    A set may start from there; and where ``a`` is zero, the directions of a cut agree up to a factor, and so do the atoms.
    """


@next_atom.register(Domain)
def next_atom_domain(domain, c, a, out):
    lmo(domain, c, out)


@generic(inline=False)
def approach(domain, bound, excess, work):
    """Look for the two atoms of the answer in a way of the set's own, before the search.

    Return whether they are found, and then what :func:`narrow` does. ``work`` has a row each for c, a, the minimiser of
    ⟨c, s⟩, which violates the cut by ``excess``, an atom inside, and room. It holds the two atoms if they are found, and
    else that minimiser as before.
    """


@approach.register(Domain)
def approach_domain(domain, bound, excess, work):
    return False, 1.0, 0.0, 0.0, 0.0


@cut_lmo.register(Domain)
@kernel
def dual_search(domain, c, a, b, out):
    """Solve the cut over any set with a linear minimisation oracle; it allocates five vectors."""
    valid, size_c, size_a = opening(c, a, b)
    if not valid:
        return INVALID, math.nan
    work = np.empty((5, c.size))
    unit_c = normalise(c, size_c, work[0])
    unit_a = normalise(a, size_a, work[1])
    outside = work[2]  # an atom that violates the cut
    inside = work[3]  # an atom that satisfies it
    direction = work[4]
    bound = b / size_a if size_a > 0.0 else b
    lmo(domain, unit_c, outside)
    a_outside = dot(unit_a, outside)
    if a_outside <= bound:
        copy(outside, out)
        return FREE, 0.0
    found, p, q, a_outside, a_inside = approach(domain, bound, a_outside - bound, work)
    if not found:
        copy(outside, inside)
        next_atom(domain, unit_a, unit_a, inside)
        copy(inside, out)
        if dot(unit_a, inside) > bound:
            return EMPTY, math.inf
        p, q, a_outside, a_inside = narrow(domain, unit_c, unit_a, bound, outside, inside, direction, out)
    weight = boundary_weight(a_outside, a_inside, bound)
    combine(1.0 - weight, inside, weight, outside, out)
    return ACTIVE, q / p * size_c / size_a


@kernel(inline=False)
def narrow(domain, c, a, bound, outside, inside, direction, out):
    """Replace two atoms by better ones until the point between them is optimal; return (p, q, ⟨a, outside⟩, ⟨a, inside⟩).

    ``out`` holds the atom that was found last, ``direction`` is room for a vector.
    """
    c_outside, a_outside = dot(c, outside), dot(a, outside)
    c_inside, a_inside = dot(c, inside), dot(a, inside)
    low_p, low_q, high_p, high_q = 1.0, 0.0, 0.0, 1.0  # the rays of the atoms outside and inside
    low_slope, high_slope = a_outside - bound, a_inside - bound  # as the secant sees them
    edge = edge_of(a_outside, a_inside, bound)
    p, q, width, side = 0.0, 1.0, math.inf, 0
    gap = last_gap = last_width = older_gap = older_width = math.inf
    smooth, others = False, 0  # whether to trust the secant; passes since the last crossing
    for _ in range(MAX_PASSES):
        stalled = gap > 0.25 * older_gap and width > 0.5 * older_width
        older_gap, older_width, last_gap, last_width = last_gap, last_width, gap, width
        usable = smooth and high_slope < 0.0
        others = 0 if others == SECANTS or not (usable or stalled) else others + 1
        if others == 0:
            p, q = crossing(c_outside, a_outside, c_inside, a_inside)
        elif stalled:
            p, q = ray(low_p + high_p, low_q + high_q)
        else:
            p, q = ray(low_slope * high_p - high_slope * low_p, low_slope * high_q - high_slope * low_q)
        combine(p, c, q, a, direction)
        next_atom(domain, direction, a, out)
        c_new, a_new = dot(c, out), dot(a, out)
        known = (c_new == c_outside and a_new == a_outside) or (c_new == c_inside and a_new == a_inside)
        if others == 0 and (known or not improves(p, q, c_inside, a_inside, c_new, a_new)):
            break
        before, after = low_p * q - low_q * p, p * high_q - q * high_p  # from this ray to those of the atoms
        line = (after * a_outside + before * a_inside) / (before + after)
        smooth = abs(a_new - line) <= LINEAR * (a_outside - a_inside)
        if a_new > edge:
            if not known:
                copy(out, outside)
            high_slope *= discount(a_new - bound, a_outside - bound) if side > 0 else 1.0
            c_outside, a_outside, low_p, low_q, low_slope, width = c_new, a_new, p, q, a_new - bound, after
            side = 1
        else:
            if not known:
                copy(out, inside)
            low_slope *= discount(a_new - bound, a_inside - bound) if side < 0 else 1.0
            c_inside, a_inside, high_p, high_q, high_slope, width = c_new, a_new, p, q, a_new - bound, before
            side = -1
        gap = relative_gap(p, q, c_new, a_new, c_outside, a_outside, c_inside, a_inside, bound)
        if gap <= GAP or width <= CUT_ROUNDING * (low_p * high_q + low_q * high_p):
            break
    return p, q, a_outside, a_inside


@lmo_step.register(Domain)
def lmo_step_domain(domain, p, c, q, a, step, x, work):
    combine(p, c, q, a, work[0])
    lmo(domain, work[0], work[1])
    move(x, work[1], step)


@cut_step.register(Domain)
def cut_step_domain(domain, c, a, b, step, x, work):
    status, multiplier = cut_lmo(domain, c, a, b, work)
    if status != INVALID:
        move(x, work, step)
    return status, multiplier


@kernel
def opening(c, a, b):
    """Return whether a cut is made of numbers, and the largest |c_i| and |a_i|."""
    size_c, size_a = abs(c[abs_argmax(c)]), abs(a[abs_argmax(a)])
    return math.isfinite(size_c) and math.isfinite(size_a) and not math.isnan(b), size_c, size_a


@kernel
def normalise(x, size, out):
    """Set out ← x / size and return it; division keeps all digits of the smallest numbers."""
    for i in range(x.size):
        out[i] = x[i] / size if size > 0.0 else 0.0
    return out


@kernel
def combine(p, x, q, y, out):
    """Set out ← p x + q y."""
    for i in range(x.size):
        out[i] = p * x[i] + q * y[i]


@kernel
def ray(p, q):
    """Return (p, q) divided by the larger of them."""
    larger = max(p, q)
    return p / larger, q / larger


@kernel
def crossing(c_outside, a_outside, c_inside, a_inside):
    """Return (p, q), the larger of them 1, such that p c + q a has the same value at both atoms."""
    p = a_outside - a_inside
    q = max(c_inside - c_outside, 0.0)
    return ray(p, q)


@kernel
def discount(slope, before):
    """Return by how much to weaken the slope on the other side if one side is replaced twice in a row."""
    factor = 1.0 - slope / before if before != 0.0 else 0.5
    return factor if factor > 0.0 else 0.5


@kernel
def improves(p, q, c_inside, a_inside, c_new, a_new):
    """Return whether a new atom lowers p c + q a by more than rounding."""
    gain = p * (c_inside - c_new) + q * (a_inside - a_new)
    return gain > CUT_ROUNDING * (p * abs(c_new) + q * abs(a_new))


@kernel
def edge_of(a_outside, a_inside, bound):
    """Return up to where an atom counts as inside.

    Where the cut touches Z, the best atom of the face may seem to violate it, by rounding. The atom outside stays there.
    """
    edge = bound + min(GRANTED * max(abs(a_outside), abs(a_inside)), 0.5 * (a_outside - bound))
    return edge if edge < a_outside else bound


@kernel
def boundary_weight(a_outside, a_inside, bound):
    """Return the share of the atom outside in the point between the two atoms that lies on the boundary."""
    return min(max((bound - a_inside) / (a_outside - a_inside), 0.0), 1.0)


@kernel
def relative_gap(p, q, c_new, a_new, c_outside, a_outside, c_inside, a_inside, bound):
    """Return how much the value on the boundary exceeds h(q/p), which new attains, relative to the values at hand."""
    if p == 0.0:
        return math.inf
    share = boundary_weight(a_outside, a_inside, bound)
    excess = c_inside + share * (c_outside - c_inside) - c_new - q / p * (a_new - bound)
    # λ in the unit is that of the crossing: h(λ) at a λ beyond all measure says nothing.
    p, q = crossing(c_outside, a_outside, c_inside, a_inside)
    unit = p * max(abs(c_outside), abs(c_inside)) + q * max(abs(a_outside), abs(a_inside))
    if unit == 0.0:
        return 0.0 if excess <= 0.0 else math.inf
    return p * excess / unit


@kernel
def multiplier_of(c_outside, a_outside, c_inside, a_inside, size_c, size_a):
    """Return λ in the units of c and a from the atoms' values for the normalised vectors."""
    return max(c_inside - c_outside, 0.0) / (a_outside - a_inside) * size_c / size_a
