"""The progress bar of a run."""

from __future__ import annotations

import math
from types import TracebackType

from tqdm.auto import tqdm


class Progress:
    """A bar over the first of several totals that is finite, shown if it is wanted.

    Parameters
    ----------
    totals : tuple of float
        Infinite where there is no end.
    wanted : bool
        Whether anything is shown.
    unit : str
        What is counted.
    """

    def __init__(self, totals: tuple[float, ...], wanted: bool, unit: str = "it") -> None:
        self._kind = next((k for k, total in enumerate(totals) if math.isfinite(total)), 0)
        total = totals[self._kind]
        self._total = total if math.isfinite(total) else None
        self._bar = tqdm(total=self._total, disable=not wanted, unit=unit, unit_scale=True, mininterval=0.2)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.close()

    def describe(self, text: str) -> None:
        """Say what is being done."""
        if not self._bar.disable:
            self._bar.set_description(text)

    def show(self, spent: tuple[float, ...], note: str) -> None:
        """Move the bar to what is spent of each total, with a note beside it."""
        if not self._bar.disable:
            self._bar.n = min(spent[self._kind], self._total or math.inf)
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(0)
