"""The nearest point of Z within a region: a half-space, or a Euclidean ball. Any set that projects has it.

With a multiplier λ ≥ 0 of the region, the nearest point is a projection onto Z alone, p(λ):

    ⟨a, s⟩ ≤ b, ‖a‖ = 1:   p(λ) = Π(x − λ a)
    ‖s − c‖ ≤ r:           p(λ) = Π((x + λ c) / (1 + λ))

By how much p(λ) is beyond the region falls with λ, and is sought to be 0: by secants until there are multipliers on both
sides, and by false position in the variant of Anderson and Björck (1973) between them. The answer is a
point on its boundary, or, if rounding ends the search before, the one between the two last ones: it is within by convexity.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.domains.balls import center_at
from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID, Domain, diameter, lmo, project, project_cut
from tiebreak.domains.cuts.search import normalise, opening
from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import copy, dot, move, scale

MAX_ROUNDS = 100  # projections at most; about ten are needed
GRAIN = 4e-16  # distance from the boundary, relative to the numbers at hand, that rounding alone may explain
FAR = 1e7  # multiplier, in units of the numbers at hand, beyond which only rounding errors are left of x
TOUCHING = 1e-12  # the same at that multiplier, for a region that touches Z alone
PATIENCE = 3  # secants that do not reach the other side, after which they are made longer
BISECTION = 8  # every so many rounds between two multipliers halve their distance


class HalfSpace(NamedTuple):
    """The points with ⟨normal, s⟩ ≤ bound."""

    normal: np.ndarray  # of length 1
    bound: float


class Around(NamedTuple):
    """The points with ‖s − center‖ ≤ radius."""

    radius: float
    center: np.ndarray  # empty: the origin


@generic(light=True)
def pull(region, x, multiplier, out):
    """Set out to the point whose projection onto Z is p(λ)."""


@generic(light=True)
def beyond(region, s):
    """Return how far s is beyond the region, negative within it, and the size of the numbers of which that is made."""


@generic(light=True)
def first_multiplier(region, excess):
    """Return the multiplier that reaches the boundary if Z does not bind, from how far the projection of x is beyond it."""


@generic(light=True)
def innermost(region, domain, out):
    """Set out to a point of Z that is least beyond the region."""


@pull.register(HalfSpace)
def pull_to_half_space(region, x, multiplier, out):
    for i in range(x.size):
        out[i] = x[i] - multiplier * region.normal[i]


@beyond.register(HalfSpace)
def beyond_half_space(region, s):
    return dot(region.normal, s) - region.bound, abs(region.bound) + math.sqrt(dot(s, s))


@first_multiplier.register(HalfSpace)
def first_multiplier_of_half_space(region, excess):
    return excess


@innermost.register(HalfSpace)
def innermost_of_half_space(region, domain, out):
    lmo(domain, region.normal, out)


@pull.register(Around)
def pull_to_center(region, x, multiplier, out):
    share = multiplier / (1.0 + multiplier)
    for i in range(x.size):
        out[i] = x[i] + share * (center_at(region, i) - x[i])


@beyond.register(Around)
def beyond_ball(region, s):
    total = 0.0
    size = 0.0
    for i in range(s.size):
        center = center_at(region, i)
        total += (s[i] - center) * (s[i] - center)
        size += s[i] * s[i] + center * center
    return math.sqrt(total) - region.radius, region.radius + math.sqrt(size)


@first_multiplier.register(Around)
def first_multiplier_of_ball(region, excess):
    return excess / region.radius if region.radius > 0.0 else 1.0


@innermost.register(Around)
def innermost_of_ball(region, domain, out):
    for i in range(out.size):
        out[i] = center_at(region, i)
    project(domain, out.copy(), out)


@kernel(inline=False)
def project_within(domain, region, x, out):
    """Set ``out`` to the point of Z within the region that is nearest to x; return (status, multiplier).

    The status is FREE if the projection onto Z is within the region, ACTIVE if the region binds, EMPTY if no point of Z is
    within it: then ``out`` is, of those that are least beyond it, about the nearest to x.
    """
    work = np.empty((3, x.size))
    outside, inside, room = work[0], work[1], work[2]
    project(domain, x, outside)
    low_excess, size = beyond(region, outside)
    copy(outside, out)
    if low_excess <= 0.0:
        return FREE, 0.0
    innermost(region, domain, inside)
    high_excess, inner_size = beyond(region, inside)
    grain = GRAIN * max(size, inner_size)
    if high_excess > 0.0:
        approach_least(domain, region, x, high_excess + grain, room, outside)
        project(domain, outside, out)  # what was projected from far away is in Z up to the rounding of large numbers
        return EMPTY, math.inf
    low, high, first = 0.0, math.inf, first_multiplier(region, low_excess)
    far = FAR * max(first, first_multiplier(region, math.sqrt(dot(x, x)) + diameter(domain)))
    multiplier, step, misses, side, rounds = first, first, 0, 0, 0
    low_value, high_value = low_excess, high_excess  # as false position sees them
    for _ in range(MAX_ROUNDS):
        pull(region, x, multiplier, room)
        project(domain, room, out)
        excess, _ = beyond(region, out)
        if excess > 0.0:
            slope = (low_excess - excess) / (multiplier - low)
            high_value *= discount(excess, low_excess) if side > 0 else 1.0
            copy(out, outside)
            low, low_excess, low_value, side = multiplier, excess, excess, 1
            misses += 1
            step = max(excess / slope if slope > 0.0 else 0.0, step if misses <= PATIENCE else 4.0 * step)
        else:
            low_value *= discount(excess, high_excess) if side < 0 and high < math.inf else 1.0
            copy(out, inside)
            high, high_excess, high_value, side = multiplier, excess, excess, -1
        if abs(excess) <= grain:  # the other side may be a point far away that is as good for the region
            return ACTIVE, multiplier
        if low >= far:
            break
        if high == math.inf:
            multiplier = min(low + step, 2.0 * far)
            continue
        rounds += 1
        share = low_value / (low_value - high_value)
        multiplier = low + share * (high - low)
        if rounds % BISECTION == 0 or not low < multiplier < high:
            multiplier = 0.5 * (low + high)
        if high - low <= GRAIN * high:
            break
    if high == math.inf and low_excess <= TOUCHING * size:
        project(domain, outside, out)
        return ACTIVE, low
    weight = low_excess / (low_excess - high_excess)
    copy(outside, out)
    move(out, inside, weight)
    return ACTIVE, low if high == math.inf else low + weight * (high - low)


@kernel
def discount(new, old):
    """Return the factor of Anderson and Björck for the value on the other side."""
    factor = 1.0 - new / old
    return factor if factor > 0.0 else 0.5


@kernel
def approach_least(domain, region, x, least, room, out):
    """Set out to p(λ) for a λ at which it is about as little beyond the region as any point, or for a large one."""
    excess, _ = beyond(region, out)
    first = first_multiplier(region, excess)
    far = FAR * max(first, first_multiplier(region, math.sqrt(dot(x, x)) + diameter(domain)))
    multiplier = first
    while excess > least and multiplier < far:
        pull(region, x, multiplier, room)
        project(domain, room, out)
        excess, _ = beyond(region, out)
        multiplier *= 4.0


@project_cut.register(Domain)
@kernel
def project_cut_domain(domain, x, a, b, out):
    valid, _, size = opening(x, a, b)
    if not valid:
        return INVALID, math.nan
    if size == 0.0:
        project(domain, x, out)
        return (FREE, 0.0) if b >= 0.0 else (EMPTY, math.inf)
    size = float(size)  # a plain number: quotients may overflow
    normal = normalise(a, size, np.empty_like(a))
    length = math.sqrt(dot(normal, normal))
    scale(1.0 / length, normal)
    status, multiplier = project_within(domain, HalfSpace(normal, b / size / length), x, out)
    return status, float(multiplier) / size / length
