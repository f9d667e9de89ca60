"""The progress bar of a run."""

from __future__ import annotations

import math
from types import TracebackType

from tqdm.auto import tqdm


class Progress:
    """A bar over the first of several limits that is finite, shown if it is wanted.

    Parameters
    ----------
    limits : tuple of float
        Infinite where there is no limit.
    wanted : bool
        Whether anything is shown.
    unit : str
        What is counted.
    """

    def __init__(self, limits: tuple[float, ...], wanted: bool, unit: str = "it") -> None:
        self._kind = next((k for k, limit in enumerate(limits) if math.isfinite(limit)), 0)
        total = limits[self._kind]
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
        """Move the bar to what is spent of each limit, with a note beside it."""
        if not self._bar.disable:
            self._bar.n = min(spent[self._kind], self._total or math.inf)
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(0)
