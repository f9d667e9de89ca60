"""The half-space cut of any set that has a linear minimisation oracle.

The dual of min ⟨c, s⟩ over s ∈ Z, ⟨a, s⟩ ≤ b is concave in one variable, h(λ) = min_{s ∈ Z} ⟨c + λ a, s⟩ − λ b, λ ≥ 0.
One atom is kept on each side of the half-space. The λ at which both give the same ⟨c + λ a, s⟩ is the best that is known;
it proposes a new atom, which replaces the one on its side, until nothing new comes. On a polytope this ends exactly after
a few passes. The answer is the point between the two atoms on the boundary of the half-space.

λ is kept as a ratio q/p of non-negative numbers, for c and a divided by their largest entries, so that nothing overflows.
"""

from __future__ import annotations

import math

import numpy as np

from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID, Domain, cut_lmo, cut_step, lmo
from tiebreak.engine import kernel
from tiebreak.vectors import abs_argmax, copy, dot, move

MAX_PASSES = 1000  # a polytope needs about ten; on a curved set the gap falls below rounding long before
ROUNDING = 4e-16
TINY = 1e-290  # the reciprocal of anything smaller may overflow …
LIFT = 2.0**100  # … unless it is lifted by this first


@cut_lmo.register(Domain)
@kernel
def dual_search(domain, c, a, b, out):
    """Solve the cut over any set with a linear minimisation oracle; it allocates five vectors."""
    size_c = abs(c[abs_argmax(c)])
    size_a = abs(a[abs_argmax(a)])
    if not (math.isfinite(size_c) and math.isfinite(size_a)) or math.isnan(b):
        return INVALID, math.nan
    work = np.empty((5, c.size))
    unit_c = normalise(c, size_c, work[0])
    unit_a = normalise(a, size_a, work[1])
    outside = work[2]  # an atom that violates the cut
    inside = work[3]  # an atom that satisfies it
    direction = work[4]
    bound = b / size_a if size_a > 0.0 else b
    lmo(domain, unit_c, outside)
    c_outside = dot(unit_c, outside)
    a_outside = dot(unit_a, outside)
    if a_outside <= bound:
        copy(outside, out)
        return FREE, 0.0
    lmo(domain, unit_a, inside)
    c_inside = dot(unit_c, inside)
    a_inside = dot(unit_a, inside)
    if a_inside > bound:
        copy(inside, out)
        return EMPTY, math.inf

    for _ in range(MAX_PASSES):
        p, q = crossing(c_outside, a_outside, c_inside, a_inside)
        for i in range(c.size):
            direction[i] = p * unit_c[i] + q * unit_a[i]
        lmo(domain, direction, out)
        c_new = dot(unit_c, out)
        a_new = dot(unit_a, out)
        known = (c_new == c_outside and a_new == a_outside) or (c_new == c_inside and a_new == a_inside)
        if known or not improves(p, q, c_inside, a_inside, c_new, a_new):
            break
        if a_new > bound:
            copy(out, outside)
            c_outside, a_outside = c_new, a_new
        else:
            copy(out, inside)
            c_inside, a_inside = c_new, a_new

    weight = boundary_weight(a_outside, a_inside, bound)
    for i in range(c.size):
        out[i] = inside[i] + weight * (outside[i] - inside[i])
    return ACTIVE, multiplier_of(c_outside, a_outside, c_inside, a_inside, size_c, size_a)


@cut_step.register(Domain)
def _(domain, c, a, b, step, x, work):
    status, multiplier = cut_lmo(domain, c, a, b, work)
    if status != INVALID:
        move(x, work, step)
    return status, multiplier


@kernel
def normalise(x, size, out):
    """Set out ← x / size and return it; division keeps all digits of the smallest numbers."""
    for i in range(x.size):
        out[i] = x[i] / size if size > 0.0 else 0.0
    return out


@kernel
def crossing(c_outside, a_outside, c_inside, a_inside):
    """Return (p, q), the larger of them 1, such that p c + q a has the same value at both atoms."""
    p = a_outside - a_inside
    q = max(c_inside - c_outside, 0.0)
    larger = max(p, q)
    return p / larger, q / larger


@kernel
def improves(p, q, c_inside, a_inside, c_new, a_new):
    """Return whether a new atom lowers p c + q a by more than rounding."""
    gain = p * (c_inside - c_new) + q * (a_inside - a_new)
    return gain > ROUNDING * (p * abs(c_new) + q * abs(a_new))


@kernel
def boundary_weight(a_outside, a_inside, bound):
    """Return the share of the atom outside in the point between the two atoms that lies on the boundary."""
    return min(max((bound - a_inside) / (a_outside - a_inside), 0.0), 1.0)


@kernel
def multiplier_of(c_outside, a_outside, c_inside, a_inside, size_c, size_a):
    """Return λ in the units of c and a from the atoms' values for the normalised vectors."""
    return max(c_inside - c_outside, 0.0) / (a_outside - a_inside) * size_c / size_a
