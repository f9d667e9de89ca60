"""How a method declares its parameters: kind, range and meaning, once.

A parameter is a field of the method's dataclass, made by one of the functions below. From the declaration it is checked when
a method is configured, documented in the class's docstring and listed by :func:`parameters_of`.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, dataclass_transform

from tiebreak.engine import checks
from tiebreak.schedules import as_schedule

WIDTH = 120  # characters per line of a docstring


class Parameter(NamedTuple):
    """One parameter of a method."""

    name: str
    kind: str  # as docstrings have it
    default: Any
    meaning: str
    check: Callable[..., Any]  # (value, name=...) -> the value as it is used

    def checked(self, value: Any) -> Any:
        """Return a given value as it is used, or raise a ValueError that names the parameter."""
        return self.check(value, name=self.name)


def schedule(meaning: str, *, largest: float = math.inf) -> Any:
    """Declare a sequence, between 0 and ``largest``."""
    return _declare("number or function of t", None, meaning, partial(as_schedule, largest=largest), largest=largest)


def whole(meaning: str, default: int | None = None, *, least: int = 1) -> Any:
    """Declare a whole number."""
    return _declare("int", default, meaning, partial(checks.whole, least=least))


def real(meaning: str, default: float | None = None, *, above: float | None = None, least: float | None = None) -> Any:
    """Declare a number."""
    return _declare("float", default, meaning, partial(checks.real, above=above, least=least))


def flag(meaning: str, default: bool | None = None) -> Any:
    """Declare something that is true or false."""
    return _declare("bool", default, meaning, checks.flag)


def option(meaning: str, default: str, options: tuple[str, ...]) -> Any:
    """Declare one of some words."""
    return _declare(" or ".join(f'"{each}"' for each in options), default, meaning, partial(_one_of, options))


def value(kind: type, example: str, meaning: str) -> Any:
    """Declare a value of a class."""
    return _declare(kind.__name__, None, meaning, partial(_instance, kind, example))


def other(kind: str, default: Any, meaning: str, check: Callable[..., Any]) -> Any:
    """Declare anything else, with a function ``check(value, name=...)``."""
    return _declare(kind, default, meaning, check)


def _declare(kind: str, default: Any, meaning: str, check: Callable[..., Any], **more: Any) -> Any:
    return dataclasses.field(default=default, metadata={"parameter": (kind, inspect.cleandoc(meaning), check), **more})


def _one_of(options: tuple[str, ...], given: Any, name: str) -> str:
    if not isinstance(given, str) or given not in options:
        raise ValueError(f"`{name}` must be {' or '.join(map(repr, options))}, got {checks.shown(given)}")
    return given


def _instance(kind: type, example: str, given: Any, name: str) -> Any:
    if not isinstance(given, kind):
        raise ValueError(f"`{name}` must be a {kind.__name__}, such as {example}, got {checks.shown(given)}")
    return given


def parameters_of(method: Any) -> list[Parameter]:
    """Return the parameters of a method or of its class, in order."""
    return [
        Parameter(field.name, kind, field.default, meaning, check)
        for field in dataclasses.fields(method)
        for kind, meaning, check in [field.metadata["parameter"]]
    ]


@dataclass_transform(kw_only_default=True, frozen_default=True)
def declared(cls: type) -> Any:
    """Make a class of parameters a frozen dataclass, and document it from them."""
    made: Any = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    made.__doc__ = _documented(made)
    return made


def _documented(cls: type) -> str:
    """Return a class's docstring with a section of its parameters before its examples."""
    text = inspect.cleandoc(cls.__doc__ or "")
    head, examples, tail = text.partition("Examples\n--------\n")
    lines = ["Parameters", "----------"]
    for parameter in parameters_of(cls):
        optional = ", optional" if parameter.default is None else ""
        lines.append(f"{parameter.name} : {parameter.kind}{optional}")
        lines += textwrap.wrap(parameter.meaning, WIDTH, initial_indent="    ", subsequent_indent="    ")
    if len(lines) == 2:
        return text
    return "\n\n".join(part for part in (head.rstrip(), "\n".join(lines), (examples + tail).rstrip()) if part) + "\n"
