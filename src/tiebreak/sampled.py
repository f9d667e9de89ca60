"""Bounds on both gaps from fresh samples, for streams: they hold with a probability of at least 1 − δ.

The fresh samples are independent of x. K batches of them give gradients ∇f_k, ∇g_k, unbiased and independent. A minimum over
Z of a linear function is concave in the function, so that by Jensen's inequality

    E[min over s ∈ Z of ⟨∇g_k(x), s − x⟩]  ≤  min over s ∈ Z of ⟨∇g(x), s − x⟩  ≤  g* − g(x):

the mean over k of K independent numbers is, in expectation, a bound on the safe side, and a one-sided confidence limit of
their mean is a bound on the gap. At the upper level the half-space that contains the minimisers of g has a multiplier λ ≥ 0:

    f* − f(x)  ≥  min over s ∈ Z of ⟨∇f(x) + λ ∇g(x), s − x⟩ − λ (g(y) − g(x))      for any λ ≥ 0 and any y ∈ Z,

f convex, whose terms are estimated likewise, batch by batch. λ and y are chosen on one half of the samples, on which their
bound is best, and used on the other half, which knows nothing of that choice. The limits are Student's: with the numbers q_1
… q_K, mean q̄ and standard deviation S, the expectation is at most q̄ + t S / √K, t the quantile of K − 1 degrees of freedom.
That assumes that a number made of a whole batch is nearly normal. Each of the four statements (two gaps, two values) may
fail with a probability of δ/4.

Mak, Morton and Wood, Monte Carlo bounding techniques for determining solution quality in stochastic programs, Operations
Research Letters 1999, bound optimality gaps in this way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from tiebreak.certificate import Certificate, Floors
from tiebreak.domains import cut_lmo, lmo
from tiebreak.objectives.base import accumulate, draw, everything
from tiebreak.problem import Problem

BATCHES = 10  # K, on each half of the samples
LEAST_SAMPLES = 4 * BATCHES
STATEMENTS = 4
SHARES = 2.0 ** np.arange(-8, 5)  # of the multiplier of the estimated half-space: those that are tried
AT_ONCE = 4096  # samples drawn by one call
KEPT_BYTES = 256_000_000  # of samples that are kept for the end of a stream

Take = Callable[[Any, int], Any]  # (objective, size) -> batch


class Fresh:
    """A source of fresh samples that keeps what it gave, if that is not too much and says how large it is."""

    def __init__(self, rng: np.random.Generator):
        self.rng, self.kept, self.room = rng, [], float(KEPT_BYTES)  # type: ignore[var-annotated]

    def __call__(self, objective: Any, size: int) -> Any:
        batch = draw(objective, self.rng, np.zeros(size, dtype=np.int64))
        self.room -= bytes_of(batch)
        if self.room >= 0.0:
            self.kept.append(batch)
        else:
            self.kept.clear()
        return batch

    def again(self) -> Take | None:
        """Return a source of the same samples in the same order, if they were kept."""
        batches: Iterator[Any] = iter(self.kept)
        return (lambda objective, size: next(batches)) if self.kept else None


def bytes_of(batch: Any) -> float:
    """Return the size of a batch in memory, ∞ if it does not say."""
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if isinstance(batch, (tuple, list)):
        return math.fsum(map(bytes_of, batch))
    return float(getattr(batch, "nbytes", math.inf))


class Sample(NamedTuple):
    """What one batch says of both levels."""

    f: float
    f_gradient: np.ndarray
    g: float
    g_gradient: np.ndarray
    other: np.ndarray  # g at each of the other points


class Choice(NamedTuple):
    """What is chosen on the first half of the samples."""

    multiplier: float  # λ
    point: int  # y among the other points; −1: y = x


def evaluate(
    problem: Problem, x: np.ndarray, take: Take, samples: int, delta: float, points: Sequence[np.ndarray] = ()
) -> Certificate:
    """Return what fresh samples, as many at each level that is a stream, say about a point that does not depend on them."""
    size = max(samples // (2 * BATCHES), 1)
    exact = [None if level.endless else value_and_gradient(level, [everything(level)], x) for level in problem[:2]]
    known = None if problem.lower.endless else np.array([problem.lower.value(point) for point in points])
    batches = (look(problem, x, take, size, points, exact, known) for _ in range(2 * BATCHES))
    first = [next(batches) for _ in range(BATCHES)]
    quantile = float(stdtrit(BATCHES - 1, 1.0 - delta / STATEMENTS))
    choice = choose(problem, x, first, quantile)
    values = [(sample.f, sample.g) for sample in first]
    gaps = []
    for sample in batches:
        values.append((sample.f, sample.g))
        gaps.append((upper_number(problem, x, sample, choice), -minimum(problem, sample.g_gradient, x)))
    upper, lower = (limit(column, quantile) for column in zip(*gaps, strict=True))
    two_sided = float(stdtrit(2 * BATCHES - 1, 1.0 - delta / (2 * STATEMENTS)))
    f, g = (limit(column, 0.0) for column in zip(*values, strict=True))
    f_error, g_error = (limit(column, two_sided) - limit(column, 0.0) for column in zip(*values, strict=True))
    lower = max(lower, 0.0)
    convex = bool(problem.upper.convex)
    return Certificate(
        upper=f,
        lower=g,
        upper_bound_gap=upper if convex else math.nan,
        lower_bound_gap=lower,
        stationarity=upper,
        multiplier=choice.multiplier,
        floors=Floors(f - f_error - upper if convex else -math.inf, g - g_error - lower, g + g_error),
        upper_error=f_error,
        lower_error=g_error,
        confidence=1.0 - delta,
        samples=2 * BATCHES * sum(pieces(size)),
    )


def look(
    problem: Problem,
    x: np.ndarray,
    take: Take,
    size: int,
    points: Sequence[np.ndarray],
    exact: Sequence[Any],
    known: np.ndarray | None,
) -> Sample:
    """Return what the next batch says at x, and of g at the other points; what is known exactly is given."""
    f, g, _ = problem
    f_value, f_gradient = exact[0] or value_and_gradient(f, [take(f, part) for part in pieces(size)], x)
    batches = [take(g, part) for part in pieces(size)] if g.endless else []
    g_value, g_gradient = exact[1] or value_and_gradient(g, batches, x)
    others = known if known is not None else np.array([value_and_gradient(g, batches, point)[0] for point in points])
    return Sample(f_value, f_gradient, g_value, g_gradient, others)


def pieces(size: int) -> list[int]:
    """Return about as many samples as equal numbers that are not too large."""
    count = -(-size // AT_ONCE)
    return [size // count] * count


def value_and_gradient(objective: Any, batches: Sequence[Any], x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean over some batches of one size."""
    gradient, value = np.zeros_like(x), 0.0
    for batch in batches:
        value += float(accumulate(objective, batch, x, 1.0, x, 0.0, gradient)[0])
    return value / len(batches), gradient / len(batches)


def choose(problem: Problem, x: np.ndarray, samples: list[Sample], quantile: float) -> Choice:
    """Return the multiplier and the other point whose bound on the upper gap is least on these samples."""
    f_gradient = np.mean([sample.f_gradient for sample in samples], axis=0)
    g_gradient = np.mean([sample.g_gradient for sample in samples], axis=0)
    falls = np.mean([sample.other - sample.g for sample in samples], axis=0)
    point = int(np.argmin(falls)) if falls.size and falls.min() < 0.0 else -1
    offset = float(g_gradient @ x) + (float(falls[point]) if point >= 0 else 0.0)
    _, found = cut_lmo(problem.domain, f_gradient, g_gradient, offset, np.empty_like(x))
    if not (math.isfinite(found) and found > 0.0):
        sizes = np.linalg.norm(f_gradient), np.linalg.norm(g_gradient)
        found = sizes[0] / sizes[1] if sizes[1] > 0.0 else 0.0
    choices = [Choice(0.0, -1)]
    if found > 0.0:
        choices += [Choice(float(found * share), where) for share in SHARES for where in sorted({point, -1})]

    def bound(choice: Choice) -> float:
        return limit([upper_number(problem, x, sample, choice) for sample in samples], quantile)

    return min(choices, key=bound)


def upper_number(problem: Problem, x: np.ndarray, sample: Sample, choice: Choice) -> float:
    """Return max over s ∈ Z of ⟨∇f_k + λ ∇g_k, x − s⟩ + λ (g_k(y) − g_k(x)), whose expectation bounds the upper gap."""
    weight = choice.multiplier
    direction = sample.f_gradient + weight * sample.g_gradient if weight > 0.0 else sample.f_gradient
    rise = sample.other[choice.point] - sample.g if choice.point >= 0 else 0.0
    return weight * float(rise) - minimum(problem, direction, x)


def limit(numbers: Sequence[float], quantile: float) -> float:
    """Return an upper confidence limit of the expectation of independent numbers; of equal ones it is exact."""
    if min(numbers) == max(numbers):
        return float(numbers[0])
    return float(np.mean(numbers) + quantile * np.std(numbers, ddof=1) / math.sqrt(len(numbers)))


def minimum(problem: Problem, c: np.ndarray, x: np.ndarray) -> float:
    """Return min ⟨c, s − x⟩ over s ∈ Z."""
    atom = np.empty_like(x)
    lmo(problem.domain, c, atom)
    return float(c @ (atom - x))
