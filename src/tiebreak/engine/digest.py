"""Hashes that tell problems and methods apart, with the data, and the Python functions, that they are made of."""

from __future__ import annotations

import dis
import functools
import hashlib
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import PACKAGE, foreign_classes, registered_for

PLAIN = (int, float, complex, str, bytes, type(None), np.generic, range, slice, Enum)  # types told by their text


class Outline(NamedTuple):
    """What a value is made of: one hash of all that stays, and one for each thing that its functions hold."""

    frame: str
    held: dict[str, str]  # variables of closures, defaults, attributes and globals, by the path to them


def digest(value: Any, *, code: bool = True) -> str:
    """Return a hash of a value: of all data in it, and of the code of its functions and what they hold.

    An object of another kind counts by what its ``fingerprint()`` returns, if it has one, else by its ``repr``, or by its
    type if that is the default one, which differs from process to process. Without ``code`` a function counts by its name.
    """
    frame, held = outline(value, code=code)
    return text_digest(frame, *(f"{path}={content}" for path, content in sorted(held.items())))


def lasting(before: Outline, after: Outline) -> str:
    """Return a hash of what a call in between did not change: what it did is a counter, a buffer or a log."""
    same = {path: content for path, content in after.held.items() if before.held.get(path) == content}
    return text_digest(after.frame, *(f"{path}={content}" for path, content in sorted(same.items())))


def outline(value: Any, *, code: bool = True) -> Outline:
    """Return what a value is made of."""
    walk = _Walk(code)
    walk.feed(value, "")
    return Outline(walk.hasher.hexdigest(), walk.held)


def text_digest(*texts: str) -> str:
    """Return a hash of some texts."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=12).hexdigest()


class _Walk:
    """One walk through a value."""

    def __init__(self, code: bool) -> None:
        self.code = code
        self.hasher = hashlib.blake2b(digest_size=12)
        self.held: dict[str, str] = {}
        self.seen: set[int] = set()  # functions, which may hold themselves
        self.asleep = False  # whether no call can tell what changes: within a stream, which must not be read

    def feed(self, part: Any, path: str) -> None:
        """Add a part of the value."""
        if isinstance(part, np.ndarray):
            self.hasher.update(array_digest(part).encode())
        elif is_dataclass(part) and not isinstance(part, type):
            self._feed_fields(part, path)
        elif isinstance(part, tuple):
            self.feed(type(part).__name__, path)
            if type(part) in foreign_classes(part):
                self._feed_class(type(part), path)
            for i, entry in enumerate(part.fingerprint() if hasattr(part, "fingerprint") else part):
                self.feed(entry, f"{path}[{i}]")
        elif hasattr(part, "fingerprint"):
            self.feed(type(part).__name__, path)
            self.feed(part.fingerprint(), path)
        elif callable(part):
            self.feed_function(part, path)
        elif type(part).__repr__ is object.__repr__:  # type: ignore[comparison-overlap]
            self.feed(type(part).__qualname__, path)
        else:
            self.hasher.update(repr(part).encode())
        self.hasher.update(b"\0")

    def _feed_class(self, cls: type, path: str) -> None:
        """Add what a class from outside the package says and does: another one may well have its name."""
        for base in (base for base in cls.__mro__ if base.__module__ != "builtins"):
            self.hasher.update(f"{base.__module__}.{base.__qualname__}".encode())
            said = {} if base.__module__.partition(".")[0] == PACKAGE else vars(base)
            for name, content in (*sorted(said.items()), *registered_for(base)):
                function = getattr(content, "fget", content)  # of a property
                if isinstance(function, types.FunctionType) and function.__module__ == base.__module__:
                    self.feed_function(function, f"{path}.{name}")
                elif isinstance(function, PLAIN) and not name.startswith("__"):
                    self.hasher.update(f"{name} {function!r}".encode())

    def _feed_fields(self, part: Any, path: str) -> None:
        outside, self.asleep = self.asleep, self.asleep or bool(getattr(part, "endless", False))
        self.feed(type(part).__name__, path)
        for field in fields(part):
            self.feed(getattr(part, field.name), f"{path}.{field.name}")
        self.asleep = outside

    def feed_function(self, part: Any, path: str) -> None:
        """Add the code of something that can be called, and what it holds."""
        self.hasher.update(getattr(part, "__qualname__", type(part).__qualname__).encode())
        if not self.code or id(part) in self.seen:
            return
        self.seen.add(id(part))
        if isinstance(part, types.FunctionType):
            self._feed_code(part.__code__)
            for name, content in held_by(part):
                self.hold(content, f"{path}.{name}")
        elif isinstance(part, types.MethodType):
            self.feed_function(part.__func__, path)
            self.hold(part.__self__, f"{path}.self", inside=True)
        elif isinstance(part, functools.partial):
            self.hold((part.func, part.args, *sorted(part.keywords.items())), path)
        elif (inner := getattr(part, "py_func", None) or getattr(part, "__wrapped__", None)) is not None:
            self.hold(inner, path)
        elif not isinstance(part, (type, types.BuiltinFunctionType, np.ufunc)):
            self.hold(part, path, inside=True)
            if callable(method := getattr(type(part), "__call__", None)):  # noqa: B004
                self.feed_function(method, path)

    def _feed_code(self, code: types.CodeType) -> None:
        self.hasher.update(f"{code.co_argcount} {code.co_names}".encode() + code.co_code)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._feed_code(constant)
            else:
                parts = sorted(map(repr, constant)) if isinstance(constant, frozenset) else [repr(constant)]
                self.hasher.update("\0".join(parts).encode())

    def hold(self, content: Any, path: str, inside: bool = False) -> None:
        """Add something that a function holds: by its content where that is known to be the same in another process.

        Objects of other kinds count by their type, and what they are made of only if they are to be looked ``inside``.
        """
        if isinstance(content, PLAIN):
            self.held[path] = f"{type(content).__name__} {content!r}"
        elif isinstance(content, tuple) or (isinstance(content, (list, dict)) and not self.asleep):
            entries = list(content.items()) if isinstance(content, dict) else list(content)
            plain = all(isinstance(entry, PLAIN) for entry in entries)
            self.held[path] = f"{type(content).__name__} {text_digest(repr(entries)) if plain else len(entries)}"
            for i, entry in enumerate([] if plain else entries):
                self.hold(entry, f"{path}[{i}]")
        elif isinstance(content, np.ndarray):
            self.held[path] = array_digest(content)
        elif isinstance(content, (types.FunctionType, types.MethodType, functools.partial)):
            self.feed_function(content, path)
        elif is_dataclass(content) and not isinstance(content, type):
            self.held[path] = type(content).__qualname__
            for field in fields(content):
                self.hold(getattr(content, field.name), f"{path}.{field.name}")
        else:
            self.held[path] = type(content).__qualname__
            for name, attribute in sorted(getattr(content, "__dict__", {}).items()) if inside and not self.asleep else ():
                self.hold(attribute, f"{path}.{name}")


def held_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function's answer may depend on besides its code and arguments, by name; not what it sets itself."""
    instructions = list(dis.get_instructions(function.__code__))
    stored = {step.argval for step in instructions if step.opname in ("STORE_DEREF", "STORE_GLOBAL")}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name not in stored:
            yield name, cell.cell_contents if _filled(cell) else None
    yield "defaults", function.__defaults__
    yield "keywords", tuple(sorted((function.__kwdefaults__ or {}).items()))
    for name in sorted({step.argval for step in instructions if step.opname == "LOAD_GLOBAL"} - stored):
        content = function.__globals__.get(name)
        own = isinstance(content, types.FunctionType) and content.__module__ == function.__module__
        if own or isinstance(content, (*PLAIN, np.ndarray)):
            yield f"globals.{name}", content


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def array_digest(array: np.ndarray) -> str:
    """Return a hash of an array; of objects, by their texts."""
    hasher = hashlib.blake2b(f"{array.dtype}{array.shape}".encode(), digest_size=12)
    hasher.update(repr(array.tolist()).encode() if array.dtype.hasobject else np.ascontiguousarray(array).data)
    return hasher.hexdigest()
