"""Bounds on both gaps from fresh samples, for streams: they hold with a probability of at least 1 − δ.

Where a stream says what ranges its samples respect (``value_range`` and ``gradient_bound``), bounds are proven, for any
distribution: ``concentration.py``. Else they are *approximate*, made of K batches of the samples as follows.

The fresh samples are independent of x. The K batches give gradients ∇f_k, ∇g_k, unbiased and independent. A minimum over Z
of a linear function is concave in the function, so that by Jensen's inequality

    E[min over s ∈ Z of ⟨∇g_k(x), s − x⟩]  ≤  min over s ∈ Z of ⟨∇g(x), s − x⟩  ≤  g* − g(x):

the mean over k of K independent numbers is, in expectation, a bound on the safe side, and a one-sided confidence limit of
their mean is a bound on the gap. At the upper level the half-space that contains all points with g ≤ g* + ε, ε the tolerance
of the problem, has a multiplier λ ≥ 0:

    f* − f(x)  ≥  min over s ∈ Z of ⟨∇f(x) + λ ∇g(x), s − x⟩ − λ (g(y) + ε − g(x))      for any λ ≥ 0 and any y ∈ Z,

f convex, whose terms are estimated likewise, batch by batch. Where a share k of what g gains from the middle c of Z is to be
kept, k g(y) + (1 − k) g(c) takes the place of g(y) + ε. λ and y are chosen on one half of the samples, on which their
bound is best, and used on the other half, which knows nothing of that choice. The confidence limits are Student's: with the
numbers q_1 … q_K, mean q̄ and standard deviation S, the expectation is at most q̄ + t S / √K, t the quantile of K − 1 degrees
of freedom. That assumes that a number made of a whole batch is nearly normal, which samples cannot show: events that are
rarer than one in as many samples as there are leave no trace in S. Each of the four statements (two gaps, two values) may
fail with a probability of δ/4; with a share to be kept, g(c) − g(x) is a fifth one.

Mak, Morton and Wood, Monte Carlo bounding techniques for determining solution quality in stochastic programs, Operations
Research Letters 1999, bound optimality gaps in this way.

Either way an objective's known floor bounds its gap, too: g(x) − g* ≤ g(x) − floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np
from scipy.special import stdtrit

from tiebreak.domains import settle
from tiebreak.objectives.surveys import Survey, accurate
from tiebreak.problem import Problem
from tiebreak.proofs.certificate import Certificate
from tiebreak.proofs.concentration import Bounded, Claims, range_of, statements_of
from tiebreak.proofs.exact import doubt_of, minimum
from tiebreak.proofs.floors import gap, is_within, known
from tiebreak.proofs.fresh import Choice, Sample, Take, choices, pieces, rise_at, sample_at

BATCHES = 10  # K, the number of batches on each half of the samples
MAX_PIECES = 2000  # pieces on each half, where samples are bounded: the more, the better their variance is known
LEAST_SAMPLES = 4 * BATCHES  # fresh samples that bounds need


def certify_sampled(
    problem: Problem,
    x: np.ndarray,
    take: Take,
    samples: int,
    delta: float,
    points: Sequence[np.ndarray] = (),
    resumed: bool = False,
) -> Certificate:
    """Return what fresh samples, as many at each level that is a stream, say about a point that does not depend on them.

    The point is moved into Z, in place, if it is outside by more than rounding. ``resumed`` tells whether the run that found
    it was read from a checkpoint, so that a source of rows may have begun again.
    """
    ranges = [range_of(level, resumed) for level in problem[:2]]
    off, *others_off = (np.empty_like(x) for _ in range(1 + len(points)))
    points = [point.copy() for point in points]
    if problem.keep < 1.0:  # the last one is the middle of Z
        points, others_off = [*points, problem.reference], [*others_off, np.empty_like(x)]
    settled = [settle(problem.domain, *pair) for pair in zip((x, *points), (off, *others_off), strict=True)]
    proven = bool(np.isfinite(ranges).all()) and all(settled)
    count = min(max(samples // 2, 2), MAX_PIECES) if proven else BATCHES  # batches on each half
    size = max(samples // (2 * count), 1)
    exact = [None if level.endless else level.survey(x, off if settled[0] else None) for level in problem[:2]]
    others = None if problem.lower.endless else np.array(list(map(partial(ceiling, problem), points, others_off)))
    given = [survey and survey[:2] for survey in exact]
    first = sample_at(problem, x, take, size, points, given, others)
    batches = chain([first], (sample_at(problem, x, take, size, points, given, others) for _ in range(2 * count - 1)))
    if proven:
        claims = Bounded(problem, x, points, ranges, sum(pieces(size))).claims(batches, count, delta)
    else:
        claims = approximate_claims(problem, x, batches, delta)
    claims = with_rounding(problem, x, off if settled[0] else np.zeros_like(x), exact, first, claims)
    return certificate_of(problem, claims)._replace(
        confidence=1.0 - delta, samples=2 * count * sum(pieces(size)), approximate=not proven, x=x
    )


def ceiling(problem: Problem, point: np.ndarray, off: np.ndarray) -> float:
    """Return a number that g, known exactly, is not above at a point of Z next to this one."""
    survey = problem.lower.survey(point, off if np.isfinite(off).all() else None)
    return survey.value + survey.value_error


def with_rounding(
    problem: Problem, x: np.ndarray, off: np.ndarray, exact: Sequence[Survey | None], first: Sample, claims: Claims
) -> Claims:
    """Return claims that allow for rounding of values and gradients; of a stream, as one batch shows how large they are."""
    pairs = (first.f, first.f_gradient), (first.g, first.g_gradient)
    errors, doubts = [], []
    for level, survey, (value, gradient) in zip(problem[:2], exact, pairs, strict=True):
        known_well = survey or accurate(value, gradient, level.accuracy)
        errors.append(known_well.value_error + (0.0 if survey else 2.0 * float(np.abs(gradient) @ off)))
        doubts.append(2.0 * doubt_of(problem, x, known_well) + errors[-1])
    return claims._replace(
        f_error=claims.f_error + errors[0],
        g_error=claims.g_error + errors[1],
        upper=claims.upper + doubts[0] + claims.multiplier * doubts[1],
        lower=claims.lower + doubts[1],
        rise_error=claims.rise_error + 2.0 * errors[1] + 2.0 * problem.lower.accuracy * abs(claims.rise),
    )


def certificate_of(problem: Problem, claims: Claims) -> Certificate:
    """Return a certificate of what samples say and of what is known of both objectives."""
    f, f_error, g, g_error, upper, lower, multiplier, rise, rise_error = claims
    floors, upper_gap, lower_gap = known(problem), math.inf, math.inf
    if problem.lower.convex:  # else neither its gradients nor its half-space say anything
        lower_gap = max(lower, 0.0)
        floors = floors._replace(lower=max(floors.lower, g - g_error - lower_gap))
        if problem.upper.convex:
            upper_gap = upper
            floors = floors._replace(upper=max(floors.upper, f - f_error - upper_gap))
    floors = floors._replace(best_lower=g + g_error)
    if problem.keep < 1.0 and problem.lower.endless:
        ends = (g - g_error) + (rise - rise_error), (g + g_error) + (rise + rise_error)
        floors = floors._replace(middle_floor=ends[0], middle_ceiling=ends[1])
    by_floor = gap(g, g_error, floors.lower)
    least_gap = max(min(by_floor, lower_gap), 0.0)
    within = is_within(g, g_error, least_gap if problem.keep == 1.0 else by_floor, floors)
    if problem.keep < 1.0:  # g(x) ≤ k g* + (1 − k) g(c) is k (g(x) − g*) ≤ (1 − k) (g(c) − g(x))
        least_rise = rise - rise_error if problem.lower.endless else floors.middle_floor - g - g_error
        within = True if problem.keep * lower_gap <= (1.0 - problem.keep) * least_rise else within
    return Certificate(
        upper=f,
        lower=g,
        upper_gap_bound=min(gap(f, f_error, floors.upper), upper_gap),
        lower_gap_bound=least_gap,
        stationarity=upper,
        multiplier=multiplier,
        floors=floors,
        upper_error=f_error,
        lower_error=g_error,
        within=within,
    )


def approximate_claims(problem: Problem, x: np.ndarray, batches: Iterator[Sample], delta: float) -> Claims:
    """Return what batches say if numbers made of a whole batch are nearly normal."""
    first = [next(batches) for _ in range(BATCHES)]
    statements = statements_of(problem)
    quantile = float(stdtrit(BATCHES - 1, 1.0 - delta / statements))
    choice = choose(problem, x, first, quantile)
    values = [values_of(sample) for sample in first]
    gaps = []
    for sample in batches:
        values.append(values_of(sample))
        gaps.append((upper_number(problem, x, sample, choice), -minimum(problem, sample.g_gradient, x)))
    upper, lower = (confidence_limit(column, quantile) for column in zip(*gaps, strict=True))
    two_sided = float(stdtrit(2 * BATCHES - 1, 1.0 - delta / (2 * statements)))
    f, g, rise = (confidence_limit(column, 0.0) for column in zip(*values, strict=True))
    f_error, g_error, rise_error = (
        confidence_limit(column, two_sided) - confidence_limit(column, 0.0) for column in zip(*values, strict=True)
    )
    return Claims(f, f_error, g, g_error, upper, lower, choice.multiplier, rise, rise_error)


def values_of(sample: Sample) -> tuple[float, float, float]:
    """Return f and g of a batch, and how far g at the last of the other points is above that."""
    return sample.f, sample.g, float(sample.other[-1]) - sample.g if sample.other.size else 0.0


def choose(problem: Problem, x: np.ndarray, samples: list[Sample], quantile: float) -> Choice:
    """Return the multiplier and the other point whose bound on the upper gap is least on these samples."""
    f_gradient = np.mean([sample.f_gradient for sample in samples], axis=0)
    g_gradient = np.mean([sample.g_gradient for sample in samples], axis=0)
    falls = np.mean([sample.other - sample.g for sample in samples], axis=0)

    def bound(choice: Choice) -> float:
        return confidence_limit([upper_number(problem, x, sample, choice) for sample in samples], quantile)

    return min(choices(problem, x, f_gradient, g_gradient, falls), key=bound)


def upper_number(problem: Problem, x: np.ndarray, sample: Sample, choice: Choice) -> float:
    """Return max over s ∈ Z of ⟨∇f_k + λ ∇g_k, x − s⟩ + λ (g_k(y) + ε − g_k(x)), whose expectation bounds the upper gap."""
    weight = choice.multiplier
    direction = sample.f_gradient + weight * sample.g_gradient if weight > 0.0 else sample.f_gradient
    return weight * rise_at(problem, sample.other - sample.g, choice.point) - minimum(problem, direction, x)


def confidence_limit(numbers: Sequence[float], quantile: float) -> float:
    """Return an upper confidence limit of the expectation of independent numbers; of equal ones it is exact."""
    if min(numbers) == max(numbers):
        return float(numbers[0])
    return float(np.mean(numbers) + quantile * np.std(numbers, ddof=1) / math.sqrt(len(numbers)))
