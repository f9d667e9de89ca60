"""Constants of objectives that take passes over the data: found once, remembered, and charged to the run that asks."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import numpy as np

COMPARED_NUMBERS = 512  # numbers per array by which changed data are noticed


class Charge(NamedTuple):
    """What one constant took."""

    objective: Any
    evaluations: int
    seconds: float
    queries: int


class Bill:
    """What the constants of objectives cost one run: each is charged once, however often it is asked for.

    Attributes
    ----------
    hurry : callable
        Whether there is no more time for constants. What is found then is known to this run alone: no other one may depend
        on its clock.
    hurried : dict
        What was found so.
    estimates : dict
        Numbers that are not constants, only estimates of them, which the methods of this run begin with.
    """

    def __init__(self, hurry: Callable[[], bool] = lambda: False) -> None:
        self.hurry, self.hurried, self.estimates = hurry, dict[Any, Any](), dict[Any, float]()
        self._charged: set[Any] = set()
        self._open: list[Charge] = []

    def add(self, key: Any, objective: Any, evaluations: int, seconds: float, queries: int = 0) -> None:
        """Charge gradients of an objective, the time that they took, and samples, if they count as drawn."""
        if key not in self._charged:
            self._charged.add(key)
            self._open.append(Charge(objective, evaluations, seconds, queries))

    def settle(self) -> list[Charge]:
        """Return what was charged since the last time."""
        charged, self._open = self._open, []
        return charged


_bill: ContextVar[Bill | None] = ContextVar("bill", default=None)


@contextmanager
def charging(hurry: Callable[[], bool] = lambda: False) -> Iterator[Bill]:
    """Charge the constants of objectives that are asked for in this block to a bill.

    A constant that an earlier run has found is charged with its evaluations too, so that the same call has the same counts
    whatever was called before, but with no time.
    """
    bill = Bill(hurry)
    token = _bill.set(bill)
    try:
        yield bill
    finally:
        _bill.reset(token)


def current_bill() -> Bill | None:
    """Return the bill that constants are charged to, if there is one."""
    return _bill.get()


class _Known(NamedTuple):
    arrays: tuple[weakref.ref[np.ndarray], ...]
    seen: bytes  # some of their numbers, by which a change is noticed
    found: Any
    passes: int


_known: dict[Any, _Known] = {}


def remembered(objective: Any, what: str, find: Callable[[], tuple[Any, int]], charged: bool = True) -> Any:
    """Return something found in passes over the data of an objective, and remember it as long as the data live.

    Data must not change while they are in use. If all of them were replaced or scaled, that is noticed; if a few numbers
    were, it is not.

    Parameters
    ----------
    objective : value
        Its arrays are the data.
    what : str
        What is found.
    find : callable
        Finds it; returns it and the number of passes that it took.
    charged : bool
        Whether these passes are charged to the run: not those of proofs.
    """
    arrays = tuple(_arrays(objective))
    key = (what, type(objective), *(id(array) for array in arrays))
    seen, bill = b"".join(map(_sample, arrays)), _bill.get()
    known, elapsed = _known.get(key) or (bill.hurried.get(key) if bill else None), 0.0
    if known is None or known.seen != seen:
        began = time.perf_counter()
        found, passes = find()
        elapsed = time.perf_counter() - began
        forget = partial(_forget, key)
        known = _Known(tuple(weakref.ref(array, forget) for array in arrays), seen, found, passes)
        (bill.hurried if bill and bill.hurry() else _known)[key] = known
    if bill is not None and charged:
        bill.add((key, seen), objective, known.passes * int(objective.n_samples), elapsed)
    return known.found


def _forget(key: Any, _: Any) -> None:
    if _known is not None:  # as it is when Python ends
        _known.pop(key, None)


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """Yield the arrays of a value, at any depth."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in getattr(value, "lasting", value):
            yield from _arrays(part)


def _sample(array: np.ndarray) -> bytes:
    flat = array.reshape(-1)
    return flat[:: max(1, flat.size // COMPARED_NUMBERS)].tobytes()
