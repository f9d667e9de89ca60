"""Calls from compiled loops to Python: for work that is long, such as a pass over all data, or that only Python can do.

A loop passes a *handle*, a whole number by which Python knows whom to ask, some numbers and two arrays. The call costs about
two microseconds. Compiled code finds the entry by its name, so that it can be stored on disk.

An exception cannot pass through compiled code. It is kept, the loop is told NaN, as are all calls after it, and whoever
called the loop takes it by :func:`take_failure`.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
from numba import types
from numba.extending import overload

SYMBOL = "tiebreak_call_out"

NO_HANDLE = np.zeros(1, dtype=np.int64)  # of those whom nobody asks

_served: dict[int, Callable[..., float]] = {}
_counter = itertools.count(1)
_state = threading.local()


def handle_for(answer: Callable[[np.ndarray, np.ndarray], float]) -> np.ndarray:
    """Return a handle, an array of one number: while it lives, calls with that number are answered by a function.

    Parameters
    ----------
    answer : callable
        ``answer(x, out, *numbers) -> float``. It must not hold the handle, or neither will ever be let go.
    """
    number = next(_counter)
    _served[number] = answer
    handle = np.array([number], dtype=np.int64)
    weakref.finalize(handle, _served.pop, number, None)
    return handle


def answering(handle: np.ndarray) -> Any:
    """Return who answers calls with a handle."""
    return _served[int(handle[0])]


def take_failure() -> BaseException | None:
    """Return what a call in this thread raised since the last time, if any did."""
    failure, _state.failure = getattr(_state, "failure", None), None
    return failure


def call_out(handle: int, a: int, b: int, c: int, d: int, x: np.ndarray, out: np.ndarray) -> float:
    """Ask who has a handle, with four whole numbers and two arrays of the same kind of numbers; return a float."""
    if getattr(_state, "failure", None) is not None:
        return math.nan
    try:
        return float(_served[int(handle)](x, out, a, b, c, d))
    except BaseException as failure:
        _state.failure = failure
        return math.nan


def _entry(handle: int, a: int, b: int, c: int, d: int, x: int, n: int, out: int, m: int, kind: int) -> float:
    number = ctypes.c_double if kind == 0 else ctypes.c_int64
    return call_out(handle, a, b, c, d, _array(number, x, n), _array(number, out, m))


def _array(number: Any, address: int, size: int) -> np.ndarray:
    if size == 0:
        return np.empty(0, dtype=number)
    return np.frombuffer((number * size).from_address(address), dtype=number)


_WHOLE = ctypes.c_int64
_ARRAY = ctypes.c_void_p, _WHOLE
_address = ctypes.CFUNCTYPE(ctypes.c_double, *([_WHOLE] * 5), *_ARRAY, *_ARRAY, _WHOLE)(_entry)
llvmlite.binding.add_symbol(SYMBOL, ctypes.cast(_address, ctypes.c_void_p).value)
_external = types.ExternalFunction(
    SYMBOL, types.float64(*([types.int64] * 5), types.uintp, types.int64, types.uintp, types.int64, types.int64)
)


@overload(call_out)
def _call_out(handle, a, b, c, d, x, out):
    kind = 0 if x.dtype == types.float64 else 1

    def compiled(handle, a, b, c, d, x, out):
        return _external(handle, a, b, c, d, x.ctypes.data, x.size, out.ctypes.data, out.size, kind)

    return compiled
