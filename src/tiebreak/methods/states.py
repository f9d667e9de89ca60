"""How a state begins, and of which arrays it is made. Each field says of what kind it is, and so what it holds at t = 0.

Fields named ``upper``, ``lower`` or ``memory`` hold the memory of the plan's estimate of that name (``estimate`` for
``memory``). A field that is a named tuple begins field by field.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np

from tiebreak.estimates import Memory, memory_for

Point = Annotated[np.ndarray, np.copy]  # begins at x_0
Room = Annotated[np.ndarray, np.zeros_like]  # a vector, zero at first
Rooms = Annotated[np.ndarray, lambda x: np.zeros((2, x.size))]  # two such vectors
Number = Annotated[np.ndarray, lambda x: np.zeros(1)]  # one number that a loop can change
Count = Annotated[np.ndarray, lambda x: np.zeros(1, dtype=np.int64)]  # one whole number


def begin(kind: Any, plan: Any, x: np.ndarray) -> Any:
    """Return a state of a class at x_0 = x."""
    return kind(*(_first(name, each, plan, x) for name, each in _kinds(kind).items()))


def arrays_of(state: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a named tuple of arrays and named tuples, by dotted name; they are not copied."""
    arrays: dict[str, np.ndarray] = {}
    for name, part in zip(state._fields, state, strict=True):
        arrays |= {prefix + name: part} if isinstance(part, np.ndarray) else arrays_of(part, f"{prefix}{name}.")
    return arrays


@cache
def _kinds(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _first(name: str, kind: Any, plan: Any, x: np.ndarray) -> Any:
    if kind is Memory:
        return memory_for(getattr(plan, "estimate" if name == "memory" else name), x.size)
    arguments = get_args(kind)
    return arguments[1](x) if arguments else begin(kind, plan, x)
