"""Bounds on both gaps from full gradients at points of the domain.

Lower level: g is convex, so that for any points y_j of Z

    g* ≥ min over s ∈ Z of max_j g(y_j) + ⟨∇g(y_j), s − y_j⟩;

with x alone that is the Frank-Wolfe gap, g(x) − g* ≤ max over s ∈ Z of ⟨∇g(x), x − s⟩.

Upper level: with ḡ the least g seen at any point and ε the tolerance of the problem, 0 for exact ties, the half-spaces

    g(y_j) + ⟨∇g(y_j), s − y_j⟩ ≤ ḡ + ε

contain every point s of Z with g(s) ≤ g* + ε. If f is convex, f*, the least f over these points, is at least the least
value, over the points of Z in all half-spaces, of max_i f(y_i) + ⟨∇f(y_i), s − y_i⟩. One half-space, that of x, has its best
multiplier from the cut oracle, or from the method that found x: any λ ≥ 0 gives a bound,

    f* ≥ f(x) + λ (g(x) − ḡ − ε) − max over s ∈ Z of ⟨∇f(x) + λ ∇g(x), x − s⟩.

For several half-spaces see ``bundle.py``, for streams ``sampled.py``.

Rounding is part of every proof. Each value and gradient comes with a bound of its error (``Objective.survey``), each linear
minimisation with a number that is proven not to exceed its minimum (``least_value``), and each point with how far it may be
from Z (``settle``); all of these widen the bounds. Where g is not known to be convex its tangents prove nothing. What the
objectives know of themselves (``floor``) holds always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.domains import cut_lmo, least_value, lmo, settle, spread
from tiebreak.domains.rounding import dot_margin, norm_ceiling, quiet, raised
from tiebreak.engine.rounding import UNIT
from tiebreak.objectives.surveys import FEW_OPERATIONS, Survey
from tiebreak.problem import Problem
from tiebreak.proofs.bundle import AFTER_ATOMS, MAX_ATOMS, Lines, best_bound
from tiebreak.proofs.certificate import Certificate, HalfSpace
from tiebreak.proofs.floors import Floors, check_consistent, gap, is_within
from tiebreak.proofs.minimisers import nearby

ROUNDED_DOWN = 1.0 - 1e-12  # factor that covers the rounding of sums and multiples of a few constants
DOUBT_SHARE = 0.01  # share of a bound that rounding may have before it is made smaller
SHARP = 1e-10  # bounds on both gaps, relative to values, that no further half-space is asked to improve
STRIDES = (0.2, 0.5)  # steps, by turns, from x towards the point that a bundle proposes: there it takes the next half-space


class Look(NamedTuple):
    """A point of Z with the values and gradients of both levels, and what rounding leaves in doubt.

    For every s of Z, f(s) ≥ f + ⟨∇f, s − x⟩ − f_doubt if f is convex, as computed, and likewise g.
    """

    x: np.ndarray
    f: float
    f_gradient: np.ndarray
    f_error: float  # |f − f(x)| is at most this
    f_doubt: float
    g: float
    g_gradient: np.ndarray
    g_error: float
    g_doubt: float
    ceiling: float  # ≥ g*, as x is near enough to a point of Z
    f_slope_error: float  # the norm of the error of ∇f is at most this
    g_slope_error: float

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        gradients = np.isfinite(self.f_gradient).all() and np.isfinite(self.g_gradient).all()
        return bool(math.isfinite(self.f) and math.isfinite(self.g) and gradients)


@quiet
def look_at(problem: Problem, x: np.ndarray, sharp: bool = False) -> Look:
    """Evaluate both levels in full at a point that is moved into Z, in place, if it is outside by more than rounding.

    A ``sharp`` look takes longer and leaves less in doubt. Its tangents are those at x, which may be outside of Z by a
    rounding: objectives are convex there too.
    """
    off = np.empty_like(x)
    settled = settle(problem.domain, x, off)
    near = off if settled else None
    levels = (problem.upper, problem.lower)
    (f, _), (g, drift) = (level.sharp(x, near) if sharp else (level.survey(x, near), 0.0) for level in levels)
    f_doubt, g_doubt = (doubt_of(problem, x, survey) for survey in (f, g))
    ceiling = g.value + g.value_error + drift + FEW_OPERATIONS * UNIT * abs(g.value) if settled else math.inf
    return Look(
        x,
        *(f.value, f.gradient, f.value_error, f_doubt),
        *(g.value, g.gradient, g.value_error, g_doubt),
        ceiling,
        *(norm_ceiling(survey.gradient_error) for survey in (f, g)),
    )


def doubt_of(problem: Problem, x: np.ndarray, survey: Survey) -> float:
    """Return by how much the tangent of an objective at x may be too high on Z, inner products with it included."""
    error = survey.gradient_error + (2 * x.size + FEW_OPERATIONS) * UNIT * np.abs(survey.gradient)
    value_error = survey.value_error + FEW_OPERATIONS * UNIT * abs(survey.value)
    return value_error + float(spread(problem.domain, error) + error @ np.abs(x))


def examine(problem: Problem, x: np.ndarray, floors: Floors, multipliers: Sequence[float] = ()) -> tuple[Look, Certificate]:
    """Look at a point and conclude; sharply if multipliers are known, or if rounding has too large a part in the bounds."""
    look = look_at(problem, x, sharp=bool(multipliers))
    certificate = conclude(problem, look, floors, multipliers)
    if not multipliers and look.finite and _is_blurred(look, certificate):
        look = look_at(problem, x, sharp=True)
        certificate = conclude(problem, look, floors)
    return look, certificate


def _is_blurred(look: Look, certificate: Certificate) -> bool:
    """Return whether what rounding leaves in doubt is more than a small part of a bound."""
    multiplier = certificate.multiplier if math.isfinite(certificate.multiplier) else 0.0
    upper, lower = DOUBT_SHARE * abs(certificate.upper_gap_bound), DOUBT_SHARE * certificate.lower_gap_bound
    return look.g_doubt > lower or look.f_doubt + multiplier * look.g_doubt > upper


@quiet
def conclude(problem: Problem, look: Look, floors: Floors, multipliers: Sequence[float] = ()) -> Certificate:
    """Return what one point proves, with its own half-space.

    ``multipliers`` of the half-space are tried beside that which the cut oracle proposes, and so is 0; the best one counts.
    """
    floors = floors.of(problem)
    if not look.finite:
        return Certificate(look.f, look.g, math.nan, math.nan, math.nan, math.nan, floors, x=look.x)
    floors = floors._replace(best_lower=min(floors.best_lower, look.ceiling))
    if problem.lower.convex:
        lower = look.g - look.g_doubt + min(minimum(problem, look.g_gradient, look.x), 0.0)
        if (modulus := ROUNDED_DOWN * float(problem.lower.known_convexity)) > 0.0:
            fall = fall_anywhere(look.g_gradient, look.g_slope_error, modulus)
            lower = max(lower, look.g - fall - raised(look.g_error + FEW_OPERATIONS * UNIT * abs(look.g), 4))
        floors = floors._replace(lower=max(floors.lower, lower))
    check_consistent(floors)
    room = floors.level - look.g + look.g_doubt  # ⟨∇g(x), s − x⟩ is at most this at all s with g(s) ≤ g* + ε
    offset = float(look.g_gradient @ look.x) + room
    multiplier = 0.0
    if math.isfinite(room):
        multiplier = cut_lmo(problem.domain, look.f_gradient, look.g_gradient, offset, np.empty_like(look.x))[1]
    stationarity = decrease(problem, look, multiplier, room)
    for other in (*multipliers, 0.0) if multipliers and math.isfinite(room) else ():
        if 0.0 <= other < math.inf and (found := decrease(problem, look, other, room)) < stationarity:
            stationarity, multiplier = found, other
    if problem.upper.convex:
        # Where g is not known to be convex its half-space proves nothing, but f* is no less than the least f on all of Z.
        proof = stationarity if problem.lower.convex else decrease(problem, look, 0.0, room)
        floors = floors._replace(upper=max(floors.upper, look.f - proof))
    lower_gap = max(gap(look.g, look.g_error, floors.lower), 0.0)
    return Certificate(
        upper=look.f,
        lower=look.g,
        upper_gap_bound=gap(look.f, look.f_error, floors.upper),
        lower_gap_bound=lower_gap,
        stationarity=stationarity,
        multiplier=float(multiplier),
        floors=floors,
        cuts=(HalfSpace(look.g_gradient, offset),) if problem.lower.convex and math.isfinite(offset) else (),
        multipliers=np.array([multiplier], dtype=np.float64),
        x=look.x,
        within=is_within(look.g, look.g_error, lower_gap, floors),
    )


def _is_sharp(look: Look, certificate: Certificate) -> bool:
    """Return whether both bounds are so small that further half-spaces would gain nothing worth their passes."""
    above, below = abs(certificate.upper_gap_bound), certificate.lower_gap_bound
    return above <= SHARP * abs(look.f) and below <= SHARP * abs(look.g)


@quiet
def tighten(problem: Problem, looks: list[Look], certificate: Certificate, bundle: int) -> Certificate:
    """Return a certificate of the first of some points from the half-spaces of all, and of further ones up to a number."""
    first, floors = looks[0], certificate.floors
    if _is_sharp(first, certificate):
        return certificate
    x, looks, convex = first.x, list(looks), bool(problem.upper.convex)
    atoms: tuple[np.ndarray, ...] = ()
    while True:
        last = len(looks) >= bundle
        upper = Lines.of(x, [(look.x, look.f, look.f_gradient, look.f_doubt) for look in looks])
        lower = Lines.of(x, [(look.x, look.g, look.g_gradient, look.g_doubt) for look in looks])
        if problem.lower.convex and last:
            found = best_bound(problem.domain, x, lower, Lines.none(x.size), atoms).value
            floors = floors._replace(lower=max(floors.lower, found))
        allowed = lower.below(floors.level) if problem.lower.convex else Lines.none(x.size)
        most = MAX_ATOMS if last or not atoms else AFTER_ATOMS
        bound = best_bound(problem.domain, x, upper if convex else upper.first(), allowed, atoms, most)
        atoms = bound.atoms
        if convex:
            floors = floors._replace(upper=max(floors.upper, bound.value))
        check_consistent(floors)
        if last:
            break
        stride = STRIDES[len(looks) % len(STRIDES)]
        look = look_at(problem, x + stride * (bound.point - x))
        if not look.finite:
            break
        looks.append(look)
        floors = conclude(problem, look, floors).floors
    lower_gap = max(gap(first.g, first.g_error, floors.lower), 0.0)
    return certificate._replace(
        upper_gap_bound=gap(first.f, first.f_error, floors.upper),
        lower_gap_bound=lower_gap,
        stationarity=certificate.stationarity if convex else min(certificate.stationarity, certificate.upper - bound.value),
        floors=floors,
        cuts=tuple(HalfSpace(a, float(a @ x - value)) for value, a in zip(allowed.values, allowed.gradients, strict=True)),
        multipliers=bound.lower,
        within=is_within(first.g, first.g_error, lower_gap, floors),
    )


def with_ceiling(problem: Problem, certificate: Certificate) -> Certificate:
    """Return a certificate with a ceiling of f*, where a point that keeps the tolerance is proven to be at x or near it."""
    if not certificate.finite:
        return certificate
    if not problem.is_near:
        if not (problem.upper.convex and problem.lower.convex):
            return certificate
        found = nearby(problem, certificate.x, certificate.floors.lower)
        return certificate._replace(ceiling=found.ceiling, unique=found.unique)
    x, off = certificate.x.copy(), np.empty_like(certificate.x)
    if not certificate.within or not settle(problem.domain, x, off) or not np.array_equal(x, certificate.x):
        return certificate
    f, g = (level.survey(x, off) for level in (problem.upper, problem.lower))
    error = g.value_error + FEW_OPERATIONS * UNIT * abs(g.value)
    if not gap(g.value, error, certificate.floors.lower) <= certificate.floors.room:
        return certificate
    return certificate._replace(ceiling=f.value + f.value_error + FEW_OPERATIONS * UNIT * abs(f.value))


def decrease(problem: Problem, look: Look, multiplier: float, room: float) -> float:
    """Return a bound on how far f's tangent falls on Z, if a multiple of what g's tangent exceeds its room by is added."""
    if math.isinf(multiplier):
        return math.inf
    direction = look.f_gradient + multiplier * look.g_gradient if multiplier > 0.0 else look.f_gradient
    allowance = multiplier * room if multiplier > 0.0 else 0.0
    on_set = look.f_doubt + allowance - minimum(problem, direction, look.x)
    return min(on_set, decrease_if_curved(problem, look, multiplier, room, direction))


def decrease_if_curved(problem: Problem, look: Look, multiplier: float, room: float, direction: np.ndarray) -> float:
    """Return the same bound where f + λ g is known to be strongly convex; infinite if it is not.

    Then it exceeds its tangent by ½ μ ‖s − x‖², so that it falls by no more than ‖∇f + λ ∇g‖² / 2μ, wherever s is, and what
    is in doubt of the gradient costs no more than its square over 2μ, however large Z is.
    """
    modulus = ROUNDED_DOWN * (float(problem.upper.known_convexity) + multiplier * float(problem.lower.known_convexity))
    if not (modulus > 0.0 and problem.upper.convex and problem.lower.convex):
        return math.inf
    above = multiplier * (room - look.g_doubt + look.g_error) if multiplier > 0.0 else 0.0
    sizes = abs(look.f) + multiplier * (abs(look.g) + abs(room))
    apart = look.f_error + above + raised(FEW_OPERATIONS * UNIT * sizes, 4)
    rounding = 2.0 * UNIT * (np.abs(look.f_gradient) + multiplier * np.abs(look.g_gradient))  # of the direction
    error = look.f_slope_error + multiplier * look.g_slope_error + norm_ceiling(rounding)
    return apart + min(
        fall_anywhere(direction, error, modulus),
        fall_anywhere(np.zeros(1), error, modulus) - minimum(problem, direction, look.x) + dot_margin(direction, look.x),
    )


def fall_anywhere(gradient: np.ndarray, error: float, modulus: float) -> float:
    """Return a bound on how far a strongly convex function falls below its value at a point with this gradient."""
    slope = norm_ceiling(gradient) + error
    return raised(slope * slope / (2.0 * modulus), 4)


def least_on_line(problem: Problem, look: Look, multiplier: float) -> float:
    """Return a number that f + λ g is proven not to be below on Z, if both are convex: the least value of its tangent."""
    value = (look.f - look.f_doubt) + multiplier * (look.g - look.g_doubt)
    rounding = FEW_OPERATIONS * UNIT * (abs(look.f) + multiplier * abs(look.g))
    return value - rounding + minimum(problem, look.f_gradient + multiplier * look.g_gradient, look.x)


def minimum(problem: Problem, c: np.ndarray, x: np.ndarray) -> float:
    """Return a number that ⟨c, s − x⟩ is proven not to be below for any s of Z."""
    atom = np.empty_like(x)
    lmo(problem.domain, c, atom)
    return float(least_value(problem.domain, c, atom) - c @ x)
