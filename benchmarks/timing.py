"""Fair comparisons on noisy machines: contenders take turns, and only ratios of the same round are reported."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm


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
    figures: Any  # one a round
    base: Any = 1.0  # what they are divided by, one a round
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


def take_turns(contenders: Mapping[str, Callable[[], float]], rounds: int, title: str) -> dict[str, np.ndarray]:
    """Let each contender measure itself once a round; a first round, in which code is compiled, does not count."""
    measured = np.array(
        [
            [contender() for contender in contenders.values()]
            for _ in tqdm(range(rounds + 1), desc=title, leave=False, mininterval=0.2)
        ]
    )
    return dict(zip(contenders, measured[1:].T, strict=True))


def is_quick(description: str | None) -> bool:
    """Read the command line; return whether a shorter run was asked for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a shorter, less exact run")
    return bool(parser.parse_args().quick)
