"""Files that data are read from: found, downloaded once, parsed, and named in errors."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tiebreak.engine import checks
from tiebreak.engine.files import write_atomically

TIMEOUT = 60.0  # seconds without a byte from the server


def existing(path: Any, kind: str = "a JSON file") -> Path:
    """Return the path of a file that exists, or raise."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"`path` must be the path of {kind}, got {checks.shown(path)}")
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"`path` must name an existing file, got {str(file)!r}")
    return file


def downloaded(file: Path, url: str, blob: str) -> bytes:
    """Return the content of the cached file; if it is missing or damaged, download it again.

    ``blob`` is git's id of the content.
    """
    try:
        content = file.read_bytes()
    except OSError:
        content = b""
    if _blob(content) == blob:
        return content
    remedy = f"get {file.name} by other means and pass its place as `path`"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            content = bytes(response.read())
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"could not download {url} ({str(error) or type(error).__name__}); {remedy}") from error
    if _blob(content) != blob:
        raise OSError(
            f"{url} must have the git blob id {blob}, got {_blob(content)} ({len(content)} bytes): "
            f"it was changed there or damaged on the way; try again, or {remedy}"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content, f".{os.getpid()}")
    return content


def parsed(content: bytes, file: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds, or raise."""
    with naming(file):
        value = json.loads(content)
        if not isinstance(value, dict):
            raise ValueError(f"must hold a JSON object, got {checks.shown(value)}")
    return value


@contextmanager
def naming(place: str | Path) -> Iterator[None]:
    """Say in each ValueError which place of which file it is about."""
    try:
        yield
    except (ValueError, RecursionError) as error:  # JSON nested without end
        raise ValueError(f"{place}: {error}") from None


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
