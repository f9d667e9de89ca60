"""The registry of trials, what became of them, and the table at the end."""

from __future__ import annotations

import math
import time
import traceback
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

REFUSAL = "other units or fewer rows can help"  # message for a polytope that HiGHS cannot handle
SHOWN = 3  # findings of one kind that are printed in full


class Finding(NamedTuple):
    """A trial that did not end well."""

    verdict: str  # "wrong" or "lost"
    what: str
    snippet: str  # Python that repeats it


@dataclass
class Tally:
    """What became of the trials of one kind."""

    tried: int = 0
    wrong: int = 0
    lost: int = 0
    silent: int = 0  # nothing was claimed, which is never wrong
    seconds: float = 0.0
    findings: list[tuple[int, Finding]] = field(default_factory=list)  # with the number of their round

    @property
    def well(self) -> bool:
        """Whether nothing was wrong and nothing lost."""
        return self.wrong == self.lost == 0


class Round:
    """Some trials of one kind with a seed of their own, and where they say how they ended."""

    def __init__(self, rng: np.random.Generator, tally: Tally, number: int, seconds: float = math.inf) -> None:
        self.rng, self.number, self.seconds = rng, number, seconds  # about how long all rounds may take
        self._tally = tally
        self._ends = time.perf_counter() + seconds - tally.seconds

    @property
    def over(self) -> bool:
        """Whether the time of this kind is spent: a round of many slow trials may end early."""
        return time.perf_counter() > self._ends

    def tried(self, count: int = 1, silent: int = 0) -> None:
        """Count trials, and those of them in which the library claimed nothing."""
        self._tally.tried += count
        self._tally.silent += silent

    def wrong(self, what: str, snippet: str) -> None:
        """Report a claim that is false."""
        self._tally.wrong += 1
        self._report("wrong", what, snippet)

    def failed(self, what: str, error: Exception, snippet: str) -> None:
        """Count a trial that ended in an error: as silent if it is what a set that needs a solver says where that fails."""
        self.tried(silent=int(REFUSAL in str(error)))
        if REFUSAL not in str(error):
            self.lost(f"{what} {type(error).__name__}: {error}", snippet)

    def lost(self, what: str, snippet: str) -> None:
        """Report that there is no answer where one was promised."""
        self._tally.lost += 1
        self._report("lost", what, snippet)

    def _report(self, verdict: str, what: str, snippet: str) -> None:
        if len(self._tally.findings) < SHOWN:
            self._tally.findings.append((self.number, Finding(verdict, what, snippet)))


class Kind(NamedTuple):
    """A kind of trial: one line of the table."""

    name: str
    run: Callable[..., None]  # (round, *args): makes some trials
    args: tuple[Any, ...]
    weight: float  # of the time, against that of others
    rounds: int | None  # at most


KINDS: dict[str, Kind] = {}


def kind(name: str, *, each: Iterable[Any] = ((),), weight: float = 1.0, rounds: int | None = None) -> Callable[..., Any]:
    """Register a function as a kind of trial, or as one for each of some arguments.

    Parameters
    ----------
    name : str
        What is tried; arguments, if there are any, are added to it.
    each : iterable
        An argument of the function for each kind.
    weight : float
        The share of the time for all of them together.
    rounds : int, optional
        How often it may be called at most, if more of the same would show nothing.
    """
    several = [argument if isinstance(argument, tuple) else (argument,) for argument in each]

    def register(run: Callable[..., None]) -> Callable[..., None]:
        for args in several:
            full = ": ".join([name, *map(str, args)])
            if full in KINDS:
                raise ValueError(f"there is a kind {full!r} already")
            KINDS[full] = Kind(full, run, args, weight / len(several), rounds)
        return run

    return register


def round_of(each: Kind, tally: Tally, seed: int, number: int, seconds: float = math.inf) -> None:
    """Run one round: the same trials for the same seed and number, whatever else was run."""
    rng = np.random.default_rng([seed, zlib.crc32(each.name.encode()), number])
    this = Round(rng, tally, number, seconds)
    began = time.perf_counter()
    try:
        each.run(this, *each.args)
    except Exception as error:
        this.failed("the round ended in", error, traceback.format_exc())
    tally.seconds += time.perf_counter() - began


def run(kinds: Iterable[Kind], seed: int, seconds: float, only: int | None, say: Callable[[str], None]) -> dict[str, Tally]:
    """Run at least one round of each kind, and more until their shares of the time are spent; or one round alone."""
    kinds = list(kinds)
    total = sum(each.weight for each in kinds)
    tallies = {each.name: Tally() for each in kinds}
    for each in kinds:
        tally, allowed, number = tallies[each.name], seconds * each.weight / total, only or 0
        while True:
            round_of(each, tally, seed, number, allowed)
            number += 1
            if only is not None or number == each.rounds or tally.seconds * (number + 1) / number > allowed:
                break
        say(line(each.name, tally))
        for where, finding in tally.findings:
            say(described(each.name, seed, where, finding))
    return tallies


def described(name: str, seed: int, number: int, finding: Finding) -> str:
    """Return a finding with what repeats it."""
    again = f"python -m campaign --seed {seed} --only {name!r} --round {number}"
    body = "\n".join(f"    {row}" for row in finding.snippet.strip().splitlines())
    return f"  {finding.verdict.upper()}: {finding.what}\n  again: {again}\n{body}"


HEAD = f"{'kind of trial':<44}{'tried':>10}{'wrong':>8}{'lost':>7}{'silent':>9}{'seconds':>9}"


def line(name: str, tally: Tally) -> str:
    """Return a line of the table."""
    counts = f"{tally.tried:>10,}{tally.wrong:>8,}{tally.lost:>7,}{tally.silent:>9,}{tally.seconds:>9.1f}"
    return f"{name:<44}{counts}"


def table(tallies: dict[str, Tally]) -> str:
    """Return the table: a line for each kind, those with arguments added up, and the sum of all."""
    groups: dict[str, Tally] = {}
    for name, tally in tallies.items():
        for group in (name.partition(": ")[0], "all"):
            whole = groups.setdefault(group, Tally())
            for column in ("tried", "wrong", "lost", "silent", "seconds"):
                setattr(whole, column, getattr(whole, column) + getattr(tally, column))
    groups["all"] = groups.pop("all")  # the last line
    return "\n".join([HEAD, *(line(name, tally) for name, tally in groups.items())])
