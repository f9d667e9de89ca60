"""Compiled kernels on disk.

Numba's own cache is keyed by the file of the outermost function alone. After a change of a kernel in another file it would
still run the old one. This cache is keyed by the content of all sources that kernels are made of.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from tiebreak.engine.origins import PACKAGE, foreign, is_inside

KEPT_VERSIONS = 4  # versions of compiled kernels on disk, besides the one in use


def hash_of_sources(without: Collection[str] = ()) -> str:
    """Return a hash of the sources of this package, without some files and folders at its top."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if relative.parts[0] not in without:
            digest.update(f"{relative}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


# Files and folders that neither hold a kernel nor give one a constant: a change of them leaves all kernels as they were.
NO_KERNELS = frozenset({"__init__.py", "__main__.py", "cli.py", "data", "driver", "learn", "proofs", "studies"})

# Hash of the sources as they are imported. Taken later, it might be that of edited files, and name old code as new.
FINGERPRINT = hash_of_sources(NO_KERNELS)


@functools.cache
def cache_folder() -> Path:
    """The folder of this user for compiled kernels and downloaded data; ``TIEBREAK_CACHE`` names another one.

    Where it cannot be written, a folder that lives as long as this process takes its place.
    """
    chosen = os.environ.get("TIEBREAK_CACHE")
    try:
        folder = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / PACKAGE
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # not writable, or no home
        temporary = tempfile.TemporaryDirectory(prefix=f"{PACKAGE}-")
        atexit.register(temporary.cleanup)
        return Path(temporary.name)


@functools.cache
def _kernel_folder() -> Path:
    """Where the kernels of this version are stored; those of the versions used longest ago are removed."""
    folder = cache_folder() / "kernels" / FINGERPRINT
    if folder.exists():
        os.utime(folder)
    else:
        others = sorted(folder.parent.glob("*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[KEPT_VERSIONS:]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


class _Locator(caching._CacheLocator):
    def __init__(self, function: Callable[..., Any]) -> None:
        # The line tells apart implementations of one name in one file.
        self._name = f"{function.__module__}.{function.__qualname__}:{function.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return str(_kernel_folder())

    def get_source_stamp(self) -> str:
        return FINGERPRINT

    def get_disambiguator(self) -> str:
        return hashlib.sha256(self._name.encode()).hexdigest()[:8]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _CacheFiles(caching.CompileResultCacheImpl):
    def __init__(self, py_func: Callable[..., Any]) -> None:
        # Not the inherited one: an environment variable may put another locator in the place of ours.
        self._lineno = py_func.__code__.co_firstlineno
        self._locator = _Locator(py_func)
        self._filename_base = self.get_filename_base(py_func.__qualname__, getattr(sys, "abiflags", ""))


class DiskCache(caching.FunctionCache):
    """Numba's disk cache, with a locator of its own; nothing that touches a foreign type is stored."""

    _impl_class = _CacheFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if _touches_foreign(sig):
            return None
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file may fail in any way, and compiling anew is always right
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if _touches_foreign(sig) or hash_of_sources(NO_KERNELS) != FINGERPRINT:
            return
        try:
            super().save_overload(sig, data)
        except OSError as error:
            warnings.warn(f"compiled code could not be stored for the next process: {error}", RuntimeWarning, stacklevel=2)


def _touches_foreign(signature: Any) -> bool:
    """Whether a type among these Numba types, at any depth, comes from outside the package or was registered there."""

    def visit(kind: Any) -> bool:
        cls = getattr(kind, "instance_class", None)
        if cls is not None and (not is_inside(cls) or not foreign.isdisjoint(cls.__mro__)):
            return True
        return any(map(visit, kind)) if isinstance(kind, numba.types.BaseTuple) else False  # type: ignore[call-overload]

    return any(map(visit, getattr(signature, "args", signature)))
