"""Bounds on both gaps of streams whose samples are bounded: they hold with probability 1 − δ for any distribution.

On Z every sample's loss lies in an interval of length R, and every sample's gradient is at most G long. D is the diameter of
Z, and x* a solution, a fixed point. g is convex, and so is f, so that for any λ ≥ 0 and y ∈ Z that do not depend on the
samples

    g(x) − g*  ≤  ⟨∇g(x), x − x*⟩,
    f(x) − f*  ≤  ⟨∇f(x) + λ ∇g(x), x − x*⟩ + λ (g(y) + ε − g(x)),

the second because g(x) + ⟨∇g(x), x* − x⟩ ≤ g* + ε ≤ g(y) + ε, ε the tolerance of the problem. Each right side is the
expectation E z of a number z_i that a sample has. The mean z̄ of n of these is not known, as x* is not, but it is at most
q̂, the same with the largest value over s ∈ Z of ⟨·, x − s⟩ for that at x*: one linear minimisation with the mean gradients.
So E z ≤ q̂ + (E z − z̄), and two inequalities bound E z − z̄; each may fail with half of the probability that the statement
has, and the better one counts.

- Hoeffding 1963. By Cauchy and Schwarz a sample of f moves its term within an interval of length W_f = 2 G_f D, one of g
  within W_g = 2 λ (G_g D + min(R_g, G_g ‖y − x‖)), and the samples of both are independent:
  E z − z̄ ≤ √((W_f² + W_g²) ln(1/δ) / (2 n)). McDiarmid's inequality for q̂ itself has the same constants.
- Maurer and Pontil, Empirical Bernstein bounds and sample variance penalization, COLT 2009, theorem 4. The means over K
  pieces of the samples lie in an interval of length W = W_f + W_g. With their standard deviation S,
  E z − z̄ ≤ S √(2 ln(2/δ) / K) + 7 W ln(2/δ) / (3 (K − 1)). S is not known either, but by the inequalities of Cauchy, Schwarz
  and Minkowski it is at most D √(tr C) + λ S_y, with the sample covariance C of the pieces' gradients and the standard
  deviation S_y of their g(y) − g(x).

The second is better where the samples vary less than their ranges allow. The lower gap, for which nothing is chosen, and the
values use all samples, the upper gap the half on which λ and y were not chosen. A value has W = R, and a bound on either
side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak.objectives import Placed, Scaled, Stream, Sum
from tiebreak.objectives.adapters.sources import Rows
from tiebreak.problem import Problem
from tiebreak.proofs.exact import minimum
from tiebreak.proofs.fresh import Choice, Sample, choices, rise_at

NO_POINT = -1  # index of a choice that compares g at x with itself


def statements_of(problem: Problem) -> int:
    """Return the number of statements, each of which may fail with an equal share of δ: about two gaps and two values.

    Where a share is to be kept, g at the middle of Z is a further one.
    """
    return 5 if problem.keep < 1.0 else 4


class SampleRange(NamedTuple):
    """How much the samples of a level may differ; 0 if it is known exactly, ∞ if nothing is known."""

    values: float  # R, the length of an interval that holds all losses
    gradients: float  # G, the longest that the sampled part of a gradient may be


def range_of(objective: Any, resumed: bool = False) -> SampleRange:
    """Return what is known of the samples of an objective; of a run that was resumed, rows may have been read before."""
    if not objective.endless:
        return SampleRange(0.0, 0.0)
    if isinstance(objective, Stream):
        source = objective.draw
        if isinstance(source, Rows) and (source.repeat or resumed):  # x may depend on samples that come again
            return SampleRange(math.inf, math.inf)
        low, high = objective.value_range
        return SampleRange(high - low, objective.gradient_bound)
    if isinstance(objective, Scaled):
        factor, inner = abs(objective.factor), range_of(objective.objective, resumed)
        return SampleRange(factor * inner.values, factor * inner.gradients) if factor > 0.0 else SampleRange(0.0, 0.0)
    if isinstance(objective, Placed):
        return range_of(objective.objective, resumed)
    if isinstance(objective, Sum):
        return next(range_of(term, resumed) for term in objective.terms if term.endless)
    return SampleRange(math.inf, math.inf)


class Claims(NamedTuple):
    """What samples say about a point: estimates of both values with their errors, and bounds on both gaps."""

    f: float
    f_error: float
    g: float
    g_error: float
    upper: float
    lower: float
    multiplier: float
    rise: float = 0.0  # g at the middle of Z, less g(x), where a share is to be kept
    rise_error: float = 0.0


class PieceSums:
    """Sums over pieces, as deviations from one of them, so that equal pieces have no variance at all."""

    def __init__(self, origin: Sample) -> None:
        self.origin, self.count = origin, 0
        self.gradients = np.zeros((2, origin.f_gradient.size))
        self.products = np.zeros((2, 2))  # of the gradients of both levels
        self.numbers = np.zeros(2 + origin.other.size)  # f, g, and g(y) − g(x) for each of the other points
        self.squares = np.zeros_like(self.numbers)

    def add(self, sample: Sample) -> None:
        """Count one more piece."""
        gradients = np.array([sample.f_gradient - self.origin.f_gradient, sample.g_gradient - self.origin.g_gradient])
        numbers = numbers_of(sample) - numbers_of(self.origin)
        self.count += 1
        self.gradients += gradients
        self.products += gradients @ gradients.T
        self.numbers += numbers
        self.squares += numbers**2

    def joined(self, other: PieceSums) -> PieceSums:
        """Return the sums over the pieces of both, which must share their origin."""
        both = PieceSums(self.origin)
        for name in ("count", "gradients", "products", "numbers", "squares"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return the mean of a combination of both levels' gradients."""
        origin = weights[0] * self.origin.f_gradient + weights[1] * self.origin.g_gradient
        return origin + weights @ self.gradients / self.count

    def gradient_deviation(self, weights: np.ndarray) -> float:
        """Return the root of the trace of the sample covariance of a combination of both levels' gradients."""
        total = weights @ self.gradients
        squares = float(weights @ self.products @ weights) - float(total @ total) / self.count
        return math.sqrt(max(squares, 0.0) / (self.count - 1))

    def mean(self, which: int) -> float:
        """Return the mean of a number."""
        return float(numbers_of(self.origin)[which] + self.numbers[which] / self.count)

    def deviation(self, which: int) -> float:
        """Return the sample standard deviation of a number."""
        squares = float(self.squares[which] - self.numbers[which] ** 2 / self.count)
        return math.sqrt(max(squares, 0.0) / (self.count - 1))


def numbers_of(sample: Sample) -> np.ndarray:
    """Return f, g, and g(y) − g(x) for each of the other points."""
    return np.array([sample.f, sample.g, *(sample.other - sample.g)])


class Bounded:
    """What pieces of ``size`` samples each prove about x; ``ranges`` are those of both levels."""

    def __init__(
        self, problem: Problem, x: np.ndarray, points: Sequence[np.ndarray], ranges: Sequence[SampleRange], size: int
    ) -> None:
        self.problem, self.x, self.size = problem, x, size
        self.f, self.g = ranges
        self.diameter = problem.domain.diameter
        self.distances = [float(np.linalg.norm(point - x)) for point in points]

    def claims(self, samples: Iterator[Sample], count: int, delta: float) -> Claims:
        """Return what twice as many pieces as ``count`` prove, all together with probability 1 − δ."""
        share = delta / statements_of(self.problem)
        origin = next(samples)
        first, second = PieceSums(origin), PieceSums(origin)
        first.add(origin)
        for k, sample in enumerate(samples, start=1):
            (first if k < count else second).add(sample)
        choice = self.choose(first, share)
        both = first.joined(second)
        return Claims(
            f=both.mean(0),
            f_error=self.error(both, 0, self.f.values, share),
            g=both.mean(1),
            g_error=self.error(both, 1, self.g.values, share),
            upper=self.gap(second, 1.0, choice, share),
            lower=self.gap(both, 0.0, Choice(1.0, NO_POINT), share),
            multiplier=choice.multiplier,
            **self.middle(both, share),
        )

    def middle(self, moments: PieceSums, share: float) -> dict[str, float]:
        """Return how far g at the middle of Z, the last of the other points, is above g(x), where it matters."""
        if self.problem.keep == 1.0:
            return {}
        which = 1 + len(self.distances)
        return {"rise": moments.mean(which), "rise_error": self.error(moments, which, self.width(-1), share)}

    def width(self, point: int) -> float:
        """Return the length of an interval that holds what a sample says of g(y) − g(x)."""
        return 2.0 * min(self.g.values, self.g.gradients * self.distances[point])

    def choose(self, moments: PieceSums, share: float) -> Choice:
        """Return the multiplier and the other point whose bound on the upper gap is least."""
        falls = np.array([moments.mean(2 + k) for k in range(len(self.distances))])
        f_gradient, g_gradient = moments.gradient(np.array([1.0, 0.0])), moments.gradient(np.array([0.0, 1.0]))
        tried = choices(self.problem, self.x, f_gradient, g_gradient, falls)
        return min(tried, key=lambda choice: self.gap(moments, 1.0, choice, share))

    def gap(self, moments: PieceSums, f_weight: float, choice: Choice, share: float) -> float:
        """Return a bound on E z; the weight of f is 1 for the upper gap and 0 for the lower one."""
        weights = np.array([f_weight, choice.multiplier])
        bound = -minimum(self.problem, moments.gradient(weights), self.x)
        deviation = self.diameter * moments.gradient_deviation(weights)
        f_width, g_width = 2.0 * self.diameter * weights * [self.f.gradients, self.g.gradients]
        if f_weight > 0.0:
            rises = np.array([moments.mean(2 + k) for k in range(len(self.distances))])
            bound += choice.multiplier * rise_at(self.problem, rises, choice.point)
            for point, part in self.parts(choice):
                deviation += choice.multiplier * part * moments.deviation(2 + point)
                g_width += choice.multiplier * part * self.width(point)
        return bound + self.error_of_mean(moments, [f_width, g_width], deviation, share)

    def parts(self, choice: Choice) -> list[tuple[int, float]]:
        """Return the points y of which g(y) − g(x) is part of the bound, and their weights."""
        keep, last = self.problem.keep, len(self.distances) - 1
        chosen = [(choice.point, keep)] if choice.point != NO_POINT else []
        return chosen if keep == 1.0 else [*chosen, (last, 1.0 - keep)]

    def error(self, moments: PieceSums, which: int, width: float, share: float) -> float:
        """Return by how much the mean of a number may be wrong on either side."""
        return self.error_of_mean(moments, [width], moments.deviation(which), 0.5 * share)

    def error_of_mean(self, moments: PieceSums, widths: Sequence[float], deviation: float, share: float) -> float:
        """Return by how much an expectation may exceed a mean: the better one of both inequalities."""
        n, pieces = self.size * moments.count, moments.count
        hoeffding = math.hypot(*widths) * math.sqrt(math.log(2.0 / share) / (2 * n))
        bernstein = deviation * math.sqrt(2.0 * math.log(4.0 / share) / pieces)
        bernstein += 7.0 * math.fsum(widths) * math.log(4.0 / share) / (3.0 * (pieces - 1))
        return min(hoeffding, bernstein)
