"""Fair comparisons on noisy machines: contenders take turns, and only ratios of the same round are reported."""

from __future__ import annotations

import argparse
import enum
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from tiebreak.engine import interpreted

T = TypeVar("T")


class Size(enum.Enum):
    """How much a program measures."""

    FULL = enum.auto()  # enough to rely on the ratios
    QUICK = enum.auto()  # enough to look at them
    TINY = enum.auto()  # enough to see that the program runs; its numbers mean nothing

    def pick(self, full: T, quick: T, tiny: T) -> T:
        """Return the value for this size."""
        return {Size.FULL: full, Size.QUICK: quick, Size.TINY: tiny}[self]

    def engine(self) -> AbstractContextManager[None]:
        """Return a context in which the tiniest run is interpreted: to compile takes longer than to run."""
        return interpreted() if self is Size.TINY else nullcontext()


class Target(NamedTuple):
    """What a figure should be."""

    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"

    def met(self, figure: float) -> bool:
        return figure >= self.limit if self.at_least else figure <= self.limit


class Row(NamedTuple):
    """One line of a table: a figure, or the ratio of two, seen in several rounds."""

    what: str
    figures: Any  # one per round
    base: Any = 1.0  # what they are divided by, one per round
    unit: str = "x"
    target: Target | None = None

    def cells(self) -> list[str]:
        ratios = np.divide(self.figures, self.base)
        best = ratios.max() if self.target is not None and self.target.at_least else ratios.min()
        shown = [np.median(ratios), best, np.min(self.figures) / np.min(self.base)]
        goal = ["", ""] if self.target is None else [str(self.target), "met" if self.target.met(shown[0]) else "missed"]
        return [self.what, *(f"{short(figure)} {self.unit}".rstrip() for figure in shown), *goal]


def show(title: str, rows: Sequence[Row]) -> None:
    """Print each row's median and best over the rounds, and what the fastest times give; the median must meet the target.

    A best ratio may owe much to a round that disturbed its base. Disturbances only add time, so that the ratio of the
    fastest times, whichever rounds they come from, is free of most.
    """
    show_table(title, ["", "median", "best", "of fastest", "target", ""], [row.cells() for row in rows])


def show_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print lines of text in columns, the first one aligned to the left."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    print(f"\n{title}")
    for line in (head, *lines):
        first, *others = (
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(["", first, *others]).rstrip())


def short(figure: float) -> str:
    """Write a number with three digits, or all those before the point."""
    return f"{figure:.0f}" if abs(figure) >= 100.0 else f"{figure:.3g}"


def seconds(function: Callable[..., Any], *args: Any, clock: Callable[[], float] = time.thread_time) -> float:
    """Return how long a call takes.

    By default this is the time of the processor: on a busy machine, a longer call is interrupted more often than a shorter
    one, and by the clock on the wall the ratio of the two would grow.
    """
    began = clock()
    function(*args)
    return clock() - began


def counted(items: Iterable[T], unit: str, title: str = "") -> Iterable[T]:
    """Return items with a bar that counts them, where there is a terminal to show it."""
    return tqdm(items, desc=title, unit=f" {unit}", disable=None, leave=False, mininterval=0.2)


def take_turns(contenders: Mapping[str, Callable[[], float]], rounds: int, title: str) -> dict[str, np.ndarray]:
    """Let each contender measure itself once per round; a first round, in which code is compiled, does not count."""
    measured = np.array(
        [[contender() for contender in contenders.values()] for _ in counted(range(rounds + 1), "rounds", title)]
    )
    return dict(zip(contenders, measured[1:].T, strict=True))


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the command line with the options that all programs have; a program may add its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = parser.add_mutually_exclusive_group()
    kept = {"dest": "size", "action": "store_const", "default": Size.FULL}
    sizes.add_argument("--quick", const=Size.QUICK, help="a shorter, less exact run", **kept)
    sizes.add_argument("--tiny", const=Size.TINY, help="a few seconds, to see that the program runs", **kept)
    return parser


def size_asked(description: str | None) -> Size:
    """Read the command line of a program without options of its own."""
    found: Size = arguments(description).parse_args().size
    return found
