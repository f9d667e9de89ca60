"""Locks on files, which a process that dies leaves open."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Locked(Exception):
    """Somebody else holds a lock.

    Attributes
    ----------
    holder : int or None
        The process that holds it, if it is known.
    """

    def __init__(self, holder: int | None) -> None:
        super().__init__(f"locked by process {holder}")
        self.holder = holder


class Lock:
    """A lock beside a file, held until it is released or this process ends, however it ends.

    The system lets a lock go with the process that has it, so that what `kill -9` leaves is a file without a lock. Where the
    system has no such locks the number of the process in the file tells whether it still runs. Where no file can be written
    there is no lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}.lock")
        self._file: int | None = None
        while self._file is None:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError:  # whoever cannot write a lock cannot write a checkpoint either, and is told so
                return
            if self._take(file):
                self._file = file

    def _take(self, file: int) -> bool:
        """Lock an open file; return False if its place was taken by another one meanwhile."""
        try:
            self._claim(file)
            if not self._in_place(file):
                os.close(file)
                return False
        except Locked:
            os.close(file)
            raise
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0) if hasattr(os, "pwrite") else os.write(file, b"%d" % os.getpid())
        return True

    def _claim(self, file: int) -> None:
        holder = _number_in(file)
        if fcntl is None:
            if holder is not None and _runs(holder):
                raise Locked(holder)
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise Locked(holder) from None  # other errors: a file system without locks

    def _in_place(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:  # whoever had it has removed it at this very moment
            return False

    def release(self) -> None:
        """Let go of the lock, and remove its file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()  # before it is let go: afterwards it may be somebody else's
            os.close(self._file)
            self._file = None


def _number_in(file: int) -> int | None:
    try:
        return int(os.read(file, 32))
    except (OSError, ValueError):
        return None


def _runs(process: int) -> bool:
    """Return whether a process is alive."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
