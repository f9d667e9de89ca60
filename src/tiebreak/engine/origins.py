"""Which types come with the package, and which were registered by others: code for those is never stored on disk."""

from __future__ import annotations

from typing import Any

PACKAGE = __name__.partition(".")[0]

foreign: set[type] = set()  # classes for which something was registered from outside, or that come from there


def is_inside(thing: Any) -> bool:
    """Whether a function or a class is defined in this package."""
    return str(thing.__module__).partition(".")[0] == PACKAGE


def foreign_classes(value: object) -> set[type]:
    """Return the classes from outside the package that a value and the tuples in it have."""
    found = set() if is_inside(type(value)) or type(value).__module__ == "builtins" else {type(value)}
    return found.union(*map(foreign_classes, value)) if isinstance(value, tuple) else found & foreign
