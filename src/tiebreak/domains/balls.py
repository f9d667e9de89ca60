"""The Euclidean ball."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

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
)
from tiebreak.domains.cuts.search import opening
from tiebreak.domains.rounding import (
    dot_floor,
    gauge_rounding,
    least_or_nothing,
    norm_ceiling,
    quiet,
    raised,
    settle_by_gauge,
    sum_floor,
)
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import abs_argmax, copy, dot, reciprocal, scale, tame

PARALLEL = 1e-14  # size of the part of c across a, relative to c, at which rounding alone is left


class _L2Ball(NamedTuple):
    radius: float
    center: np.ndarray  # empty: the origin


class L2Ball(_L2Ball, Domain):
    """The set {x : ‖x − center‖₂ ≤ radius}; the centre is the origin, in any dimension, if none is given.

    Parameters
    ----------
    radius : float, positive
    center : vector, optional

    Examples
    --------
    >>> L2Ball(5.0).lmo([3.0, -4.0])
    array([-3.,  4.])
    >>> L2Ball(5.0).cut_lmo([3.0, -4.0], [0.0, 1.0], 0.0).point
    array([-5.,  0.])
    """

    __slots__ = ()

    def __new__(cls, radius: Any, center: Any = None) -> L2Ball:
        radius = checks.real(radius, "radius", above=0.0)
        return super().__new__(cls, radius, np.empty(0) if center is None else checks.vector(center, "center"))

    @property
    def dimension(self) -> int | None:
        return self.center.size or None


@kernel
def center_at(domain, i):
    """Return an entry of the centre."""
    return domain.center[i] if domain.center.size > 0 else 0.0


@lmo.register(L2Ball)
def lmo_l2_ball(domain, c, out):
    c, _ = tame(c, abs(c[abs_argmax(c)]))
    against(domain, c, math.sqrt(dot(c, c)), out)


@kernel
def against(domain, c, norm, out):
    """Set out to the point of the ball against c, which has this norm; to the centre if it is zero."""
    per = 1.0 / norm if norm > 0.0 else 0.0
    for i in range(c.size):
        out[i] = center_at(domain, i) - domain.radius * (c[i] * per)


@cut_lmo.register(L2Ball)
def cut_lmo_l2_ball(domain, c, a, b, out):
    valid, size_c, size_a = opening(c, a, b)
    if not valid:
        return INVALID, math.nan
    c, factor_c = tame(c, size_c)
    a, factor_a = tame(a, size_a)
    norm_c, norm_a, product = math.sqrt(dot(c, c)), math.sqrt(dot(a, a)), dot(c, a)
    # ⟨a, s − center⟩ ≤ bound, in units of the radius.
    bound = (b * factor_a - (dot(domain.center, a) if domain.center.size > 0 else 0.0)) / domain.radius
    if (-product / norm_c if norm_c > 0.0 else 0.0) <= bound:
        against(domain, c, norm_c, out)
        return FREE, 0.0
    if -norm_a > bound:
        against(domain, a, norm_a, out)
        return EMPTY, math.inf
    multiplier = on_slice(domain, c, norm_c, a, norm_a, bound / norm_a, product / norm_a, out)
    return ACTIVE, multiplier / factor_c * factor_a


@kernel
def on_slice(domain, c, norm_c, a, norm_a, tau, along, out):
    """Minimise over the ball's slice where ⟨a, s − center⟩ = τ ‖a‖ radius, and return the multiplier.

    With c = along · â + c⊥ and â = a/‖a‖ the minimiser is center + radius · (τ â − √(1 − τ²) c⊥/‖c⊥‖).
    """
    tau = min(max(tau, -1.0), 1.0)
    across = remove_part(c, along / norm_a, a, out)
    if across < 0.5 * norm_c:  # most of c went: what rounding left of â has to go, too
        across = remove_part(out, dot(out, a) / norm_a / norm_a, a, out)
    if across <= PARALLEL * norm_c:  # all points of the slice are as good
        across = 0.0
    height = math.sqrt((1.0 - tau) * (1.0 + tau))
    of_a = tau / norm_a
    of_c = height / across if across > 0.0 else 0.0
    for i in range(c.size):
        out[i] = center_at(domain, i) + domain.radius * (of_a * a[i] - of_c * out[i])
    # The minimiser is against c + λ a: along + λ ‖a‖ = −τ ‖c⊥‖ / √(1 − τ²).
    tilt = 0.0
    if across > 0.0:
        tilt = tau * across / height if height > 0.0 else math.copysign(math.inf, tau)
    return max(-along - tilt, 0.0) / norm_a


@kernel
def remove_part(x, factor, a, out):
    """Set out ← x − factor · a and return its norm."""
    for i in range(x.size):
        out[i] = x[i] - factor * a[i]
    return math.sqrt(dot(out, out))


@project.register(L2Ball)
def project_l2_ball(domain, x, out):
    for i in range(x.size):
        out[i] = x[i] - center_at(domain, i)
    per = reciprocal(abs(out[abs_argmax(out)]))
    scale(per, out)
    norm = math.sqrt(dot(out, out))
    if norm <= domain.radius * per:
        copy(x, out)
        return
    for i in range(x.size):
        out[i] = center_at(domain, i) + domain.radius * (out[i] / norm)


@diameter.register(L2Ball)
def diameter_l2_ball(domain):
    return 2.0 * domain.radius


@contains.register(L2Ball)
@kernel
def contains_l2_ball(domain, x, tol):
    total = 0.0
    for i in range(x.size):
        part = (x[i] - center_at(domain, i)) / domain.radius
        total += part * part
    return math.sqrt(total) <= 1.0 + tol


# Proofs


@least_value.register(L2Ball)
@quiet
def least_value_l2_ball(domain: L2Ball, c: np.ndarray, atom: np.ndarray) -> float:
    decrease = raised(domain.radius * norm_ceiling(c), 1)
    if domain.center.size == 0:
        return least_or_nothing(-decrease)
    return sum_floor(np.array([dot_floor(c, domain.center), -decrease]))


@spread.register(L2Ball)
@quiet
def spread_l2_ball(domain: L2Ball, e: np.ndarray) -> float:
    at_center = float((e * np.abs(domain.center)).sum()) if domain.center.size > 0 else 0.0
    return float(raised(at_center + domain.radius * norm_ceiling(e), e.size + 4))


@settle.register(L2Ball)
@quiet
def settle_l2_ball(domain: L2Ball, x: np.ndarray, off: np.ndarray) -> bool:
    center = domain.center if domain.center.size > 0 else 0.0
    gauge = norm_ceiling(x - center) / domain.radius
    return settle_by_gauge(x, center, gauge, gauge_rounding(x.size, domain.radius), off)
