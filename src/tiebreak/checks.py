"""Validation of what users pass in: each error names the argument, what was given and what is accepted."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np


def real(value: Any, name: str, *, above: float | None = None, least: float | None = None) -> float:
    """Return a finite number within the given limits."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    wanted = "a finite number"
    if above is not None:
        wanted += f" > {above:g}"
    if least is not None:
        wanted += f" ≥ {least:g}"
    small = (above is not None and number <= above) or (least is not None and number < least)
    if not math.isfinite(number) or small:
        raise ValueError(f"`{name}` must be {wanted}, got {shown(value)}")
    return number


def whole(value: Any, name: str, *, least: int = 1) -> int:
    """Return a whole number, at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):  # 1e6 is how people write a million
            raise ValueError(f"`{name}` must be a whole number ≥ {least}, got {shown(value)}") from None
        number = int(value)
    if number < least:
        raise ValueError(f"`{name}` must be a whole number ≥ {least}, got {shown(value)}")
    return number


def vector(value: Any, name: str, size: int | None = None) -> np.ndarray:
    """Return a finite contiguous float64 vector, of the given size if there is one."""
    array = numbers(value, name)
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        wanted = "a non-empty vector" if size is None else f"a vector of {size} numbers"
        raise ValueError(f"`{name}` must be {wanted}, got an array of shape {array.shape}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    finite(array, name)
    return array


def finite(array: np.ndarray, name: str) -> None:
    """Raise if an array holds NaN or infinity, and say where the first one is."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum() if array.dtype.kind == "f" else 0.0
    if not math.isfinite(total):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            place = ", ".join(str(int(i)) for i in bad[0])
            raise ValueError(
                f"`{name}` must hold finite numbers, got {array[tuple(bad[0])]} at [{place}] ({len(bad)} such entries); "
                f"remove or impute them first"
            )


def numbers(value: Any, name: str) -> np.ndarray:
    """Return an array of real numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"`{name}` must hold real numbers, got {shown(value)} of type {array.dtype}")
    return array


def shown(value: Any) -> str:
    """Return a value as it is shown in an error, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
