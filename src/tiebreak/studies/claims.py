"""Claims of a paper, and how seeds decide on them.

A claim that compares two methods is judged by a sign test: each seed gives one paired comparison. It *holds* if so many
seeds agree that chance (a fair coin) would give as many in at most one of twenty cases, *does not hold* if as many disagree,
and is *not decidable* in between: with fewer than five seeds always. Most claims are about what methods reach with the
budget of a paper, and are judged at that budget only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

import numpy as np

LEVEL = 0.05
FEWEST_SEEDS = 5  # with which a sign test can decide: 1/32 is below the level
MOST_DIGITS = 17  # that a number is written with


class Verdict(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decidable"


class Claim(NamedTuple):
    """A sentence that can be wrong."""

    text: str
    where: str  # in the paper
    verdict: Verdict
    numbers: str  # behind the verdict
    at_any_budget: bool = False  # whether a smaller budget than that of the paper decides it too
    fewest_seeds: int = FEWEST_SEEDS  # that decide it: 1 on a fixed problem, where what is computed decides

    def is_judged(self, seeds: int, quick: bool) -> bool:
        """Return whether so many seeds, with small budgets or not, can decide it."""
        return seeds >= self.fewest_seeds and (self.at_any_budget or not quick)


class Judgement(NamedTuple):
    """A verdict and the numbers behind it."""

    verdict: Verdict
    numbers: str


def fewer(first: Mapping[int, float], second: Mapping[int, float], factor: float = 1.0) -> Judgement:
    """Judge whether values by seed are smaller than others of the same seeds, or than a part of them.

    The numbers are medians, and on how many seeds the first is smaller. Seeds on which both are infinite, where neither
    reached what it should, tell nothing and are left out.

    Parameters
    ----------
    first, second : dict
        Values by seed.
    factor : float
        first < factor · second is asked.

    Examples
    --------
    >>> fewer({s: 1.0 + s for s in range(10)}, {s: 2.0 * s + 3.0 for s in range(10)})
    Judgement(verdict=<Verdict.HOLDS: 'holds'>, numbers='5.5 < 12, smaller on 10/10 seeds')
    """
    pairs = sorted(set(first) & set(second))
    known = [seed for seed in pairs if not (math.isnan(first[seed]) or math.isnan(second[seed]))]
    seeds = [seed for seed in known if not (math.isinf(first[seed]) and first[seed] == second[seed])]
    beside = f"; on {len(known) - len(seeds)} more both are infinite" if len(known) > len(seeds) else ""
    beside += f"; on {len(pairs) - len(known)} more one is unknown" if len(pairs) > len(known) else ""
    if not seeds:
        return Judgement(Verdict.OPEN, "no runs to compare" + beside)
    a, b = (np.array([float(values[seed]) for seed in seeds]) for values in (first, second))
    wins, n = int((a < factor * b).sum()), len(seeds)
    medians = _compared(float(np.median(a)), float(np.median(b)), factor)
    return Judgement(sign_test(wins, n), f"{medians}, smaller on {wins}/{n} seeds{beside}")


def _compared(first: float, second: float, factor: float) -> str:
    """Return two numbers with the sign between them that is true, of them and of what is written of them."""
    sign = _sign(first, factor * second)
    for digits in range(3, MOST_DIGITS + 1):
        left, right = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if sign == _sign(float(left), factor * float(right)):
            break
    return f"{left} {sign} {right}" if factor == 1.0 else f"{left} {sign} {factor:g} × {right}"


def _sign(first: float, second: float) -> str:
    return "<" if first < second else ">" if first > second else "="


def within(values: Mapping[int, float], low: float, high: float) -> Judgement:
    """Judge whether values by seed lie between two others, by a sign test too.

    Examples
    --------
    >>> within({s: 0.9 for s in range(5)}, 0.8, 1.0).verdict
    <Verdict.HOLDS: 'holds'>
    """
    found = np.array([value for value in values.values() if not math.isnan(value)], dtype=float)
    unknown = f"; unknown on {len(values) - found.size} more" if found.size < len(values) else ""
    if not found.size:
        return Judgement(Verdict.OPEN, f"no runs{unknown}")
    inside, n = int(((found >= low) & (found <= high)).sum()), found.size
    return Judgement(
        sign_test(inside, n),
        f"{_spread(found)}, {_interval(low, high)} on {inside}/{n} seeds{unknown}",
    )


def _spread(values: np.ndarray) -> str:
    """Return the median of some numbers and their range, if there is one."""
    least, middle, most = (f"{v:.3g}" for v in (values.min(), np.median(values), values.max()))
    return least if least == most else f"{middle} (from {least} to {most})"


def _interval(low: float, high: float) -> str:
    """Return in words where numbers should lie."""
    if low == -math.inf or high == math.inf:
        return f"at most {high:.3g}" if low == -math.inf else f"at least {low:.3g}"
    return f"equal to {low:.3g}" if low == high else f"between {low:.3g} and {high:.3g}"


def together(**judgements: Judgement) -> Judgement:
    """Judge a claim that is several at once: it holds if all do, and does not if one does not; of nothing, open.

    Examples
    --------
    >>> good = Judgement(Verdict.HOLDS, "1 < 2")
    >>> together(first=good, second=Judgement(Verdict.OPEN, "no runs"))
    Judgement(verdict=<Verdict.OPEN: 'not decidable'>, numbers='first: 1 < 2; second: no runs')
    """
    if not judgements:
        return Judgement(Verdict.OPEN, "no runs")
    verdicts = {judgement.verdict for judgement in judgements.values()}
    verdict = next((one for one in (Verdict.FAILS, Verdict.OPEN) if one in verdicts), Verdict.HOLDS)
    return Judgement(verdict, "; ".join(f"{name.replace('_', ' ')}: {each.numbers}" for name, each in judgements.items()))


def least(values: Mapping[str, Mapping[int, float]], label: str, *others: str) -> Judgement:
    """Judge whether one of several has smaller values than each of some others."""
    return together(**{other: fewer(values[label], values[other]) for other in others})


def second(values: Mapping[str, Mapping[int, float]], first: str, label: str, *others: str) -> Judgement:
    """Judge whether one of several has larger values than the first, and smaller ones than each of some others."""
    behind = {first: fewer(values[first], values[label])}
    return together(**behind, **{other: fewer(values[label], values[other]) for other in others})


def most(values: Mapping[str, Mapping[int, float]], label: str) -> Judgement:
    """Judge whether one of several has larger values than all others."""
    return together(**{other: fewer(values[other], values[label]) for other in values if other != label})


def sign_test(wins: int, n: int) -> Verdict:
    """Decide by how many of n comparisons agree.

    Examples
    --------
    >>> [sign_test(wins, 10).value for wins in (9, 8, 1)]
    ['holds', 'not decidable', 'does not hold']
    """
    tail = sum(math.comb(n, k) for k in range(wins, n + 1)) / 2**n  # P(at least as many)
    other = sum(math.comb(n, k) for k in range(wins + 1)) / 2**n  # P(at most as many)
    return Verdict.HOLDS if tail <= LEVEL else Verdict.FAILS if other <= LEVEL else Verdict.OPEN
