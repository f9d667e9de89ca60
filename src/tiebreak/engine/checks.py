"""Validation of what users pass in: each error names the argument, what was given and what is accepted."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from typing import Any

import numpy as np


def real(value: Any, name: str, *, above: float | None = None, least: float | None = None) -> float:
    """Return a finite number within the given limits."""
    number = as_float(value)
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
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):  # 1e6 is how people write a million
            raise ValueError(f"`{name}` must be a whole number ≥ {least}, got {shown(value)}") from None
        number = int(value)
    if number < least:
        raise ValueError(f"`{name}` must be a whole number ≥ {least}, got {shown(value)}")
    return number


def matrix_shape(shape: Any) -> tuple[int, int]:
    """Return the numbers of rows and of columns of a matrix."""
    try:
        rows, columns = shape
    except (TypeError, ValueError):
        raise ValueError(f"`shape` must be two whole numbers ≥ 1, got {shown(shape)}") from None
    return whole(rows, "shape[0]"), whole(columns, "shape[1]")


def confidence(value: Any) -> float:
    """Return a probability strictly between 0 and 1, the argument ``confidence`` of a call."""
    number = as_float(value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"`confidence` must be a probability between 0 and 1, such as 0.95, got {shown(value)}")
    return number


def failure_probability(confidence: float) -> float:
    """Return 1 − confidence in decimal digits, as people compute it: 0.05 for 0.95, not 0.050000000000000044."""
    return float(1 - Decimal(str(confidence)))


def flag(value: Any, name: str) -> bool:
    """Return True or False: "no" and 0 are neither."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"`{name}` must be True or False, got {shown(value)}")
    return bool(value)


def as_float(value: Any) -> float:
    """Return a number as a float; NaN if it is none, as texts and truth values are, or too large."""
    if isinstance(value, (str, bytes, bytearray, bool, np.bool_)) or np.ma.is_masked(value):
        return math.nan
    if getattr(value, "dtype", None) is not None and getattr(value.dtype, "kind", "f") not in "fiuV":
        return math.nan
    if getattr(value, "ndim", 0):  # NumPy makes a number of an array of one
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def vector(value: Any, name: str, size: int | None = None) -> np.ndarray:
    """Return a finite contiguous float64 vector, of the given size if there is one."""
    array = numbers(value, name)
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        wanted = "a non-empty vector" if size is None else f"a vector of {size} numbers"
        hint = "; its ravel() is a vector" if array.ndim == 2 and 1 in array.shape else ""
        raise ValueError(f"`{name}` must be {wanted}, got an array of shape {array.shape}{hint}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    finite(array, name)
    return array


def finite(array: np.ndarray, name: str) -> None:
    """Raise if an array holds NaN or infinity, and say where the first one is."""
    if not all_finite(array):
        flat, count, first = array.reshape(-1), 0, -1
        for start in range(0, flat.size, AT_ONCE):
            bad = np.flatnonzero(~np.isfinite(flat[start : start + AT_ONCE]))
            first = start + int(bad[0]) if bad.size and not count else first
            count += bad.size
        place = ", ".join(str(int(i)) for i in np.unravel_index(first, array.shape))
        raise ValueError(
            f"`{name}` must hold finite numbers, got {flat[first]} at [{place}] ({count} such entries); "
            f"remove or impute them first"
        )


def all_finite(array: np.ndarray) -> bool:
    """Return whether all numbers of an array are finite; without room for an array of its size, if they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum() if array.dtype.kind == "f" else 0.0
    return math.isfinite(total) or bool(np.isfinite(array).all())


def numbers(value: Any, name: str) -> np.ndarray:
    """Return an array of real numbers."""
    unmasked(value, name)
    try:
        array = np.asarray(value)
    except Exception:  # ragged lists, and whatever an object of another kind raises when it is asked for an array
        raise ValueError(f"`{name}` must hold real numbers, rows of one length each, got {shown(value)}") from None
    if array.dtype.kind == "O" and hasattr(value, "dtypes") and array.ndim == 2:
        return _numbers_of_table(value, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"`{name}` must hold real numbers, got {shown(value)} of type {array.dtype}")
    return array


def _numbers_of_table(table: Any, name: str) -> np.ndarray:
    """Return the numbers of a data frame whose columns have several types, or raise and name a column without."""
    wrong = [column for column, kind in table.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]
    if wrong:
        raise ValueError(
            f"`{name}` must hold real numbers, got a table with the column {wrong[0]!r} of type {table.dtypes[wrong[0]]}"
            f" ({len(wrong)} such columns); leave it out, or encode it first, say by pandas.get_dummies"
        )
    return table.to_numpy(dtype=np.float64, na_value=np.nan)


def unmasked(value: Any, name: str) -> None:
    """Raise if an array, or a row of a list of them, is a masked one that hides entries: what is hidden would be used."""
    rows = value if isinstance(value, (list, tuple)) else [value]
    hidden = sum(int(np.ma.getmaskarray(row).sum()) for row in rows if isinstance(row, np.ma.MaskedArray))
    if hidden:
        raise ValueError(
            f"`{name}` must hold numbers everywhere, got a masked array with {hidden} masked entries;"
            f" remove or impute them first, say by .filled(value)"
        )


SMALLEST, LARGEST = 1e-140, 1e140  # limits of the largest number of data: beyond them squares are lost
AT_ONCE = 2**17  # numbers that are looked at together, so that they are read from memory once


def data(array: np.ndarray, name: str) -> None:
    """Raise if a contiguous array of data is not finite, or so small or large that squares are lost; zeros are fine."""
    flat, largest = array.reshape(-1), 0.0
    for start in range(0, flat.size, AT_ONCE):
        part = flat[start : start + AT_ONCE]
        low, high = float(part.min()), float(part.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            finite(array, name)
        largest = max(largest, -low, high)
    extent(largest, name)


def extent(largest: float, name: str) -> None:
    """Raise if the largest number of data, in size, is so small or large that squares are lost."""
    if largest != 0.0 and not SMALLEST <= largest <= LARGEST:
        raise ValueError(
            f"`{name}` must have a largest entry between {SMALLEST:g} and {LARGEST:g} in size, or its squares are lost,"
            f" got {largest:g}; rescale the data"
        )


def shown(value: Any) -> str:
    """Return a value as it is shown in an error, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
