"""Bounds from the path of minimisers of f + λ g, which an active set follows from any point.

At x_λ one half-space, with the multiplier λ, bounds f* by f(x_λ) + λ (g(x_λ) − ḡ − ε), up to rounding: as well as any bundle
could. So where the active set takes a problem a point is certified by looking at a few x_λ, not at points near it.
"""

from __future__ import annotations

import numpy as np

from tiebreak.active.course import Course
from tiebreak.problem import Problem
from tiebreak.proofs.certificate import Certificate
from tiebreak.proofs.exact import Look, examine
from tiebreak.proofs.floors import gap, is_within

CYCLES_PER_LOOK = 10  # passes of the active set for each point that is looked at


def follow(problem: Problem, look: Look, certificate: Certificate, looks: int) -> Certificate:
    """Return the certificate of a point with the bounds that some further looks prove, along the path that begins there."""
    course, floors = Course(problem, look.x), certificate.floors
    cuts, multipliers = certificate.cuts, certificate.multipliers
    cycles = CYCLES_PER_LOOK * looks
    while looks > 0 and cycles > 0 and not course.finished:
        course.cycle()
        cycles -= 1
        if not course.arrived:
            continue
        looks -= 1
        weight = [course.weight] if np.isfinite(course.weight) else []
        found = examine(problem, course.solver.x.copy(), floors, weight)[1]
        if found.floors.upper > floors.upper:
            cuts, multipliers = found.cuts, found.multipliers
        floors = found.floors
    lower_gap = max(gap(look.g, look.g_error, floors.lower), 0.0)
    return certificate._replace(
        upper_gap_bound=gap(look.f, look.f_error, floors.upper),
        lower_gap_bound=lower_gap,
        floors=floors,
        cuts=cuts,
        multipliers=multipliers,
        within=is_within(look.g, look.g_error, lower_gap, floors),
    )
