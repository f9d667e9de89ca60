"""How values print: on one line, with no array written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

FEW = 4  # numbers of an array that are written
LONGEST = 8  # characters of a number that is written in full


def named(kind: str, parts: Mapping[str, Any]) -> str:
    """Return a value as a call with named arguments, each of them brief; empty arrays are left out.

    Examples
    --------
    >>> named("Box", {"lower": np.zeros(100), "upper": np.arange(100.0), "center": np.zeros(0)})
    'Box(lower=100 times 0, upper=100 numbers from 0 to 99)'
    """
    told = {name: part for name, part in parts.items() if not (isinstance(part, np.ndarray) and part.size == 0)}
    return f"{kind}({', '.join(f'{name}={brief(part)}' for name, part in told.items())})"


def brief(value: Any) -> str:
    """Return a part of a value on one line: an array as what it holds, a function by its name."""
    if isinstance(value, np.ndarray) and value.size > FEW:
        return _array(value)
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, (float, np.floating)):
        text = repr(float(value))
        return text if len(text) <= LONGEST else f"{value:.6g}"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    text = repr(value)
    return text if "\n" not in text else f"{type(value).__name__}(…)"


def _array(value: np.ndarray) -> str:
    if value.ndim > 1:
        return f"{' × '.join(map(str, value.shape))} numbers"
    least, most = value.min(), value.max()
    return f"{value.size} times {least:g}" if least == most else f"{value.size} numbers from {least:g} to {most:g}"


def public_name(cls: type) -> str:
    """Return the name of the first class that is not private: a set may have a private kind with the same meaning."""
    return next(base.__name__ for base in cls.__mro__ if not base.__name__.startswith("_"))
