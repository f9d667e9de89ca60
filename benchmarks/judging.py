"""What runs of a race say: when each method solved what, how that compares with the best, and where the default loses.

Solved to ρ means g − g* ≤ ρ (g(x₀) − g*) and |f − f*| ≤ ρ max(|f(x₀) − f*|, |f*|), x₀ the middle of the set; for near ties
g* + ε takes the place of g* at the left. What is compared is the first record at which a run is there. Samples are those
that iterations draw. What is found in passes before them, such as constants and sums over rows, is not among these, so that
fewer samples than a pass over the data has count as a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from bank import Entry, Reference

LEVELS = (1e-2, 1e-4, 1e-6)  # ρ
MEASURES = ("seconds", "samples")
SHORTEST = 0.01  # seconds that count as none: shorter times count as this
CERTAIN = 0.25  # share of ρ that a reference may be off for ρ to be decided by it
CLOSE, FAR = 2.0, 10.0  # ratios to the best: within the first is good, beyond the second is bad
HALVES = ("written on", "judged on")  # of the bank: a rule is written from the first, and judged on the second


class Run(NamedTuple):
    """What a method did on an entry: its records, the last one at the answer that it returned."""

    entry: str
    method: str
    status: str
    chosen: str  # the method that ran: another one if it was chosen on the way
    records: np.ndarray  # rows of (samples, seconds, f, g)


class Yardstick(NamedTuple):
    """What gaps of a problem are measured from, and in which units."""

    reference: Reference
    start: tuple[float, float]  # f and g at x₀
    tolerance: float  # ε
    one_pass: float = 0.0  # samples of a pass over both levels

    def errors(self, f: Any, g: Any) -> tuple[Any, Any]:
        """Return the relative gaps: of f, and of g."""
        lower = np.maximum(np.asarray(g) - self.reference.lower - self.tolerance, 0.0) / self.lower_unit
        return np.abs(np.asarray(f) - self.reference.upper) / self.upper_unit, lower

    def decides(self, level: float) -> bool:
        """Return whether the reference is accurate enough for a ρ."""
        return self.uncertainty <= CERTAIN * level

    @property
    def uncertainty(self) -> float:
        """By how much relative gaps may be off."""
        return max(self.reference.upper_error / self.upper_unit, self.reference.lower_error / self.lower_unit)

    @property
    def lower_unit(self) -> float:
        """What gaps of g are divided by."""
        return self.start[1] - self.reference.lower

    @property
    def upper_unit(self) -> float:
        """What gaps of f are divided by."""
        return max(abs(self.start[0] - self.reference.upper), abs(self.reference.upper))


def first_solved(run: Run, yardstick: Yardstick, level: float) -> dict[str, float]:
    """Return the seconds and the samples at which a run was first solved to ρ; infinity if it never was."""
    if not run.records.size:
        return dict.fromkeys(MEASURES, math.inf)
    upper, lower = yardstick.errors(run.records[:, 2], run.records[:, 3])
    there = (upper <= level) & (lower <= level)
    if not there.any():
        return dict.fromkeys(MEASURES, math.inf)
    samples, seconds = run.records[int(np.argmax(there)), :2]
    return {"seconds": max(float(seconds), SHORTEST), "samples": max(float(samples), yardstick.one_pass)}


def final_errors(run: Run, yardstick: Yardstick) -> tuple[float, float]:
    """Return the relative gaps of f and g at the end of a run; infinity if it has none."""
    if not run.records.size:
        return math.inf, math.inf
    upper, lower = yardstick.errors(*run.records[-1, 2:])
    return float(upper), float(lower)


def with_shared_times(runs: Iterable[Run]) -> list[Run]:
    """Return runs in which the same work has the same times: those of the faster run, where only seconds differ.

    The default runs another method on most entries, and would else lose half of the contests with it by noise.
    """
    same: dict[tuple[str, bytes], list[Run]] = {}
    for run in runs:
        same.setdefault((run.entry, np.delete(run.records, 1, axis=1).tobytes()), []).append(run)
    found = []
    for group in same.values():
        fastest = min(group, key=lambda run: run.records[-1, 1] if run.records.size else 0.0)
        found.extend(run._replace(records=fastest.records) for run in group)
    return found


class Contest(NamedTuple):
    """One entry at one ρ by one measure: what each method took."""

    entry: str
    level: float
    taken: dict[str, float]  # by method; infinite if it did not solve the entry

    @property
    def best(self) -> str:
        return min(self.taken, key=lambda name: self.taken[name])

    def ratio(self, method: str) -> float:
        """Return what a method took / what the best one took; infinite if it did not solve the entry."""
        return self.taken.get(method, math.inf) / self.taken[self.best]


def contests(runs: Iterable[Run], yardsticks: Mapping[str, Yardstick], measure: str) -> list[Contest]:
    """Return all entries and levels that can be decided and that some method solved."""
    by_entry: dict[str, list[Run]] = {}
    for run in runs:
        by_entry.setdefault(run.entry, []).append(run)
    found = []
    for entry, some in by_entry.items():
        yardstick = yardsticks[entry]
        for level in LEVELS:
            taken = {run.method: first_solved(run, yardstick, level)[measure] for run in some}
            if yardstick.decides(level) and min(taken.values()) < math.inf:
                found.append(Contest(entry, level, taken))
    return found


def profile(held: Sequence[Contest], method: str, factors: np.ndarray) -> np.ndarray:
    """Return, for each factor τ, the share of contests in which a method took at most τ times what the best one took."""
    ratios = np.array([contest.ratio(method) for contest in held])
    return (ratios[:, None] <= factors).mean(axis=0)


class Verdict(NamedTuple):
    """How a method fared in some contests."""

    contests: int
    best: float  # share in which it was the best
    close: float  # share in which it took at most twice as much
    worst: float  # the largest ratio; infinite if it left unsolved what another one solved
    beyond: int  # contests in which it was worse than ten times, or did not get there
    losses: list[Contest]  # those in which it was not close, the worst ones first


def judge(held: Sequence[Contest], method: str) -> Verdict:
    """Return how a method fared."""
    ratios = np.array([contest.ratio(method) for contest in held])
    if not ratios.size:
        return Verdict(0, math.nan, math.nan, math.nan, 0, [])
    order = [k for k in np.argsort(-ratios, kind="stable") if ratios[k] > CLOSE]
    return Verdict(
        ratios.size,
        float((ratios == 1.0).mean()),
        float((ratios <= CLOSE).mean()),
        float(ratios.max()),
        int((ratios > FAR).sum()),
        [held[k] for k in order],
    )


def halves(entries: Sequence[Entry]) -> dict[str, str]:
    """Return to which half of the bank each problem belongs: they alternate within a kind, all budgets together."""
    found: dict[str, str] = {}
    for kind in dict.fromkeys(entry.kind for entry in entries):
        names = dict.fromkeys(entry.name for entry in entries if entry.kind == kind)
        offset = sum(half == HALVES[0] for half in found.values()) > len(found) / 2  # so that both halves are as large
        found.update({name: HALVES[(k + offset) % 2] for k, name in enumerate(names)})
    return found
