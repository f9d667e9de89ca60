"""Sets and objectives that can be made, and written down as Python that makes them again, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import tiebreak


class Recipe:
    """A call of something of the library, whose arguments may be recipes too."""

    def __init__(self, name: str, *args: Any, **named: Any) -> None:
        self.name, self.args, self.named = name, args, named

    def make(self) -> Any:
        """Call it."""
        named = {key: made(value) for key, value in self.named.items()}
        return getattr(tiebreak, self.name)(*map(made, self.args), **named)

    def __str__(self) -> str:
        named = [f"{key}={text(value)}" for key, value in self.named.items()]
        return f"tiebreak.{self.name}({', '.join([*map(text, self.args), *named])})"


def made(value: Any) -> Any:
    """Make what is a recipe, and what is one inside a tuple."""
    if isinstance(value, Recipe):
        return value.make()
    return tuple(map(made, value)) if isinstance(value, tuple) else value


def text(value: Any) -> str:
    """Write an argument as Python; numbers keep all their digits."""
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    if isinstance(value, tuple):
        return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.generic):
        return repr(value.item())
    return str(value) if isinstance(value, Recipe) else repr(value)
