"""The cut of matrices with columns in a Euclidean ball.

With c_j = along_j · a_j / ‖a_j‖ + d_j, d_j orthogonal to a_j, the vector p c_j + q a_j has the
length n_j = ‖(e_j, f_j)‖ for e_j = p along_j + q ‖a_j‖ and f_j = p ‖d_j‖, and the minimiser in the unit ball is
−(e_j/n_j) a_j/‖a_j‖ − (f_j/n_j) d_j/‖d_j‖. So λ = q/p is found from three numbers per column, without another look at the
data, and without cancellation where c_j + λ a_j is nearly zero. Where it is zero any point of the ball will do: the slope
jumps there, and the mean of the points at both sides of the jump is the answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.domains.balls import PARALLEL
from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID
from tiebreak.domains.cuts.search import CUT_ROUNDING, GAP, MAX_PASSES, boundary_weight, crossing, opening, relative_gap
from tiebreak.engine import kernel
from tiebreak.engine.vectors import reciprocal


class Frames(NamedTuple):
    """How c_j lies to a_j, for each column j; c and a in units of their largest entries."""

    length: np.ndarray  # ‖a_j‖
    along: np.ndarray  # ⟨c_j, a_j⟩ / ‖a_j‖
    across: np.ndarray  # ‖d_j‖
    tilt: np.ndarray  # d_j = c_j − tilt_j a_j …
    rest: np.ndarray  # … − rest_j a_j, what rounding left of it


@kernel
def ball_columns_cut(domain, c, a, b, out):
    """Solve the cut: two looks at the data, and Newton's method on three numbers per column."""
    valid, size_c, size_a = opening(c, a, b)
    if not valid:
        return INVALID, math.nan
    per_c, per_a = reciprocal(size_c), reciprocal(size_a)
    work = np.empty((5, domain.columns))  # a few numbers per column, little next to the data
    frames = Frames(work[0], work[1], work[2], work[3], work[4])
    bound = frame_columns(domain, c, per_c, a, per_a, b * per_a, frames)
    _, a_free, _ = look(frames, 1.0, 0.0)
    _, a_least, _ = look(frames, 0.0, 1.0)
    if a_free <= bound:
        mix_columns(domain, c, per_c, a, per_a, frames, 1.0, 0.0, 1.0, 1.0, 0.0, out)
        return FREE, 0.0
    if a_least > bound:
        mix_columns(domain, c, per_c, a, per_a, frames, 0.0, 1.0, 1.0, 0.0, 1.0, out)
        return EMPTY, math.inf
    p, q, low_p, low_q, high_p, high_q, weight = newton(frames, bound)
    mix_columns(domain, c, per_c, a, per_a, frames, low_p, low_q, weight, high_p, high_q, out)
    return ACTIVE, q / p * per_a / per_c


@kernel
def column(domain, x, j):
    """Return a view of a column."""
    return x[j * domain.rows : (j + 1) * domain.rows]


@kernel(inline=False)
def frame_columns(domain, c, per_c, a, per_a, bound, frames):
    """Fill the frames and return the cut's bound for unit balls about the origin."""
    offset = 0.0
    for j in range(domain.columns):
        cj, aj = column(domain, c, j), column(domain, a, j)
        aa, ac = inner(aj, per_a, aj, per_a), inner(aj, per_a, cj, per_c)
        tilt = ac / aa if aa > 0.0 else 0.0
        dd, da = remainder(cj, per_c, aj, per_a, tilt, 0.0)
        rest = 0.0
        if aa > 0.0 and dd < 0.01 * tilt * ac:  # most digits of d_j are lost: once more
            rest = da / aa
            dd, da = remainder(cj, per_c, aj, per_a, tilt, rest)
        length, across = math.sqrt(aa), math.sqrt(dd)
        frames.length[j] = length
        frames.along[j] = (tilt + rest) * length
        frames.across[j] = across if across > PARALLEL * abs(frames.along[j]) else 0.0
        frames.tilt[j] = tilt
        frames.rest[j] = rest
        for i in range(domain.set.center.size):
            offset += aj[i] * per_a * domain.set.center[i]
    return (bound - offset) / domain.set.radius


@kernel(reorder=True)
def inner(x, per_x, y, per_y):
    """Return ⟨per_x · x, per_y · y⟩."""
    total = 0.0
    for i in range(x.size):
        total += times(x[i], per_x) * times(y[i], per_y)
    return total


@kernel
def times(x, per):
    """Return x · per; a kernel of its own, so that a reordered sum does not become per² · Σ x y, which may overflow."""
    return x * per


@kernel
def left_over(c, per_c, a, per_a, tilt, rest, i):
    """Return an entry of d = c − tilt · a − rest · a."""
    return (c[i] * per_c - tilt * (a[i] * per_a)) - rest * (a[i] * per_a)


@kernel(reorder=True)
def remainder(c, per_c, a, per_a, tilt, rest):
    """Return ‖d‖² and ⟨d, a⟩ for d = c − tilt · a − rest · a."""
    dd = 0.0
    da = 0.0
    for i in range(c.size):
        d = left_over(c, per_c, a, per_a, tilt, rest, i)
        dd += d * d
        da += d * times(a[i], per_a)
    return dd, da


@kernel
def unit_point(frames, j, p, q):
    """Return (e/n, f/n, n) for column j."""
    e = p * frames.along[j] + q * frames.length[j]
    f = p * frames.across[j]
    n = math.sqrt(e * e + f * f)
    if frames.length[j] == 0.0 and frames.across[j] > 0.0:
        return 0.0, 1.0, n  # also for p = 0: this column has nothing to do with the cut
    return (e / n, f / n, n) if n > 0.0 else (0.0, 0.0, n)


@kernel
def look(frames, p, q):
    """Return ⟨c, s⟩ and ⟨a, s⟩ at the minimiser s of ⟨p c + q a, s⟩, and −1/p times the derivative of ⟨a, s⟩ by q."""
    c_value = 0.0
    a_value = 0.0
    curve = 0.0
    for j in range(frames.length.size):
        e, f, n = unit_point(frames, j, p, q)
        c_value -= frames.along[j] * e + frames.across[j] * f
        a_value -= frames.length[j] * e
        if n > 0.0:
            bend = frames.length[j] * (frames.across[j] / n)
            curve += bend * (bend / n)
    return c_value, a_value, curve


@kernel(inline=False)
def newton(frames, bound):
    """Return the ray (p, q) of the dual optimum, two rays about it, and the weight of the first one's point in the answer.

    Newton's method on the slope by λ where λ ≤ 1, by 1/λ elsewhere. Where it leaves the bracket or is slow, the crossing of
    ``search.py``, which finds jumps of the slope, and bisection take turns.
    """
    c_new, a_new, curve = look(frames, 1.0, 1.0)
    far = a_new > bound  # λ > 1: q = 1 and z = p; else p = 1 and z = q
    c_outside, a_outside, _ = look(frames, 1.0, 0.0)
    c_inside, a_inside, _ = look(frames, 0.0, 1.0)
    z_outside, z_inside = (1.0, 0.0) if far else (0.0, 1.0)
    if far:
        c_outside, a_outside = c_new, a_new
    else:
        c_inside, a_inside = c_new, a_new
    z, p, q = 1.0, 1.0, 1.0
    step = last_step = math.inf
    crossed = False
    for _ in range(MAX_PASSES):
        slope = -z * curve if far else curve
        last_step, step = step, (a_new - bound) / slope if slope != 0.0 else math.inf
        low, high = min(z_outside, z_inside), max(z_outside, z_inside)
        if not (low < z + step < high) or abs(step) > 0.5 * abs(last_step):
            crossed = not crossed
            step = (turn(c_outside, a_outside, c_inside, a_inside, far) if crossed else 0.5 * (low + high)) - z
        z = min(max(z + step, low), high)
        p, q = (z, 1.0) if far else (1.0, z)
        c_new, a_new, curve = look(frames, p, q)
        if a_new > bound:
            z_outside, c_outside, a_outside = z, c_new, a_new
        else:
            z_inside, c_inside, a_inside = z, c_new, a_new
        gap = relative_gap(p, q, c_new, a_new, c_outside, a_outside, c_inside, a_inside, bound)
        if gap <= 0.1 * GAP or abs(z_outside - z_inside) <= CUT_ROUNDING * max(z_outside, z_inside):
            break
    weight = boundary_weight(a_outside, a_inside, bound)
    if far:
        return p, q, z_outside, 1.0, z_inside, 1.0, weight
    return p, q, 1.0, z_outside, 1.0, z_inside, weight


@kernel
def turn(c_outside, a_outside, c_inside, a_inside, far):
    """Return z at the crossing of two points."""
    p, q = crossing(c_outside, a_outside, c_inside, a_inside)
    return (p / q if q > 0.0 else 1.0) if far else (q / p if p > 0.0 else 1.0)


@kernel(inline=False)
def mix_columns(domain, c, per_c, a, per_a, frames, low_p, low_q, weight, high_p, high_q, out):
    """Set out to the mean of the minimisers at two rays, the first of them with the given weight."""
    for j in range(domain.columns):
        e_low, f_low, _ = unit_point(frames, j, low_p, low_q)
        e_high, f_high, _ = unit_point(frames, j, high_p, high_q)
        along = domain.set.radius * (weight * e_low + (1.0 - weight) * e_high)
        across = domain.set.radius * (weight * f_low + (1.0 - weight) * f_high)
        along = along / frames.length[j] if frames.length[j] > 0.0 else 0.0
        across = across / frames.across[j] if frames.across[j] > 0.0 else 0.0
        cj, aj, s = column(domain, c, j), column(domain, a, j), column(domain, out, j)
        for i in range(s.size):
            center = domain.set.center[i] if domain.set.center.size > 0 else 0.0
            d = left_over(cj, per_c, aj, per_a, frames.tilt[j], frames.rest[j], i)
            s[i] = center - along * (aj[i] * per_a) - across * d
