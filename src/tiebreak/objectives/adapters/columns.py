"""Batches of samples, column by column: arrays, tensors, tuples and dicts of them, and lists of samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SIZE_OF_NUMBER = 32.0  # bytes that a number in a list takes


def columns_of(batch: Any) -> list[Any]:
    """Return the arrays of a batch, in order; a list is one of samples."""
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if isinstance(batch, tuple):
        return [column for part in batch for column in columns_of(part)]
    return [batch]


def formed(form: Any, columns: list[Any]) -> Any:
    """Return a batch of a form from its arrays, which are taken from the front of the list."""
    if isinstance(form, dict):
        return {name: formed(part, columns) for name, part in form.items()}
    if isinstance(form, tuple):
        parts = [formed(part, columns) for part in form]
        return type(form)(*parts) if hasattr(form, "_fields") else tuple(parts)
    return columns.pop(0)


def why_not(columns: list[Any], count: int) -> str:
    """Return why the columns of a batch of some samples cannot be kept; empty if they can."""
    for column in columns:
        if not (isinstance(column, (np.ndarray, list)) or of_torch(column) or of_jax(column)):
            return f"a batch holds {type(column).__name__}, of which samples cannot be taken"
        if (0 if np.ndim(column) == 0 and not isinstance(column, list) else len(column)) != count:
            return f"a batch of {count} samples holds an array of other length"
        if not math.isfinite(bytes_in(column)):
            return "a batch holds a list of objects of unknown size"
    return "" if columns else "a batch is empty"


def of_torch(column: Any) -> bool:
    """Return whether it is a tensor of PyTorch."""
    return type(column).__module__.partition(".")[0] == "torch"


def of_jax(column: Any) -> bool:
    """Return whether it is an array of JAX."""
    return type(column).__module__.partition(".")[0] in ("jax", "jaxlib")


def bytes_in(column: Any) -> float:
    """Return the size of a column in memory; ∞ if it does not say."""
    if isinstance(column, list):
        return math.fsum(map(bytes_in, (part for sample in column for part in columns_of(sample))))
    if isinstance(column, (int, float)):
        return SIZE_OF_NUMBER
    return float(getattr(column, "nbytes", math.inf))


def room_for(column: Any, samples: int) -> Any:
    """Return room for as many samples of the kind of a column."""
    if isinstance(column, list):
        return []
    if of_torch(column):
        return column.new_empty((samples, *column.shape[1:]))
    return np.empty((samples, *column.shape[1:]), dtype=column.dtype)


def rows_at(column: Any, indices: np.ndarray) -> Any:
    """Return some samples of a column; neighbours without a copy."""
    start, size = int(indices[0]), indices.size
    if start + size - 1 == indices[-1] and (np.diff(indices) == 1).all():
        return column[start : start + size]
    if isinstance(column, list):
        return [column[i] for i in indices]
    return column[indices.copy()] if of_torch(column) else column[indices]  # PyTorch warns of arrays that are read-only
