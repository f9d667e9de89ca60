"""The methods, one file a method or family. A new one is listed here."""

from __future__ import annotations

import difflib
from typing import Any

from tiebreak.methods.base import Method
from tiebreak.methods.fw import SpiderFW
from tiebreak.methods.sbcgf import SBCGF
from tiebreak.methods.sbcgi import SBCGI

METHODS: dict[str, type[Method]] = {cls.name: cls for cls in (SBCGI, SBCGF, SpiderFW)}


def as_method(value: Any) -> Method:
    """Return a configured method from a name or a configured method."""
    if isinstance(value, Method):
        return value
    if isinstance(value, type) and issubclass(value, Method):
        return value()
    if isinstance(value, str) and value.lower() in METHODS:
        return METHODS[value.lower()]()
    near = difflib.get_close_matches(str(value).lower(), METHODS, n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(
        f"`method` must be one of {', '.join(METHODS)}, or a configured one such as SBCGI(batch_size=8), got {value!r}{hint}"
    )


__all__ = ["METHODS", "SBCGF", "SBCGI", "Method", "SpiderFW", "as_method"]
