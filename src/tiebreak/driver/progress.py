"""The progress bar of a run."""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm

from tiebreak.engine import checks

SCALED_FROM = 10_000  # total from which on a count is written as 10.0k


def is_wanted(progress: Any) -> bool:
    """Return whether a bar is to be shown: as it is said, and if nothing is, only in a terminal."""
    return sys.stderr.isatty() if progress is None else checks.flag(progress, "progress")


class Progress:
    """A bar over the first of several totals that is finite, in its own unit.

    Parameters
    ----------
    totals : tuple of float
        Infinite where there is no end.
    units : tuple of str
        What each of them counts.
    visible : bool
        Whether anything is shown.
    """

    def __init__(self, totals: tuple[float, ...], units: tuple[str, ...], visible: bool) -> None:
        self._kind = next((k for k, total in enumerate(totals) if math.isfinite(total)), 0)
        self._total = totals[self._kind] if math.isfinite(totals[self._kind]) else None
        unit = units[self._kind]
        scaled = unit == "s" or self._total is None or self._total >= SCALED_FROM
        done = "{n_fmt}" if self._total is None else "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}"
        left = "" if self._total is None else "<{remaining}"
        self._bar = tqdm(
            total=self._total,
            disable=not visible,
            unit_scale=scaled,
            mininterval=0.2,
            dynamic_ncols=True,
            bar_format=f"{{desc}}{done} {unit} [{{elapsed}}{left}{{postfix}}]",
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.close()

    def finish(self) -> None:
        """Show that nothing is left to do, where less was spent than might have been."""
        if not self._bar.disable and self._total is not None:
            self._bar.total = self._bar.n
            self._bar.refresh()

    def describe(self, text: str) -> None:
        """Say what is being done."""
        if not self._bar.disable:
            self._bar.set_description(text)

    def show(self, spent: tuple[float, ...], note: str = "") -> None:
        """Move the bar to what is spent of each total, with a note beside it."""
        if not self._bar.disable:
            self._bar.n = min(spent[self._kind], self._total or math.inf)
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(0)
