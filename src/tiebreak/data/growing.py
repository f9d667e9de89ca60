"""Files that grow at their end, and can be continued by another process from a state that was noted."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

PIECE = 1 << 22  # bytes that are read at once where a file is verified


class Changed(Exception):
    """A file does not hold what it did when its state was noted."""


class Growing:
    """A file to which bytes are appended, with a checksum for each block of it.

    Parameters
    ----------
    path : Path
    block_bytes : int or None
        Bytes that share a checksum; None: all of them do.
    head : bytes
        What the file begins with; it is part of no block.

    Attributes
    ----------
    size : int
        Bytes after the head.
    """

    def __init__(self, path: Path, block_bytes: int | None = None, head: bytes = b"") -> None:
        self.path, self._block_bytes, self._head = path, block_bytes, head
        self.size, self._complete, self._running = 0, list[int](), 0

    def create(self) -> Growing:
        """Begin the file anew."""
        self.path.write_bytes(self._head)
        return self

    def append(self, array: np.ndarray) -> None:
        """Add the numbers of an array, in their order."""
        content = bytes_of(array)
        if content:
            with self.path.open("ab", buffering=0) as file:
                left = content
                while left:
                    left = left[file.write(left) :]
            self._count(content)

    def count(self, array: np.ndarray) -> None:
        """Count the numbers of an array as if they had been added; nothing is written."""
        self._count(bytes_of(array))

    @property
    def checksums(self) -> list[int]:
        """The checksums of all blocks; the last one may be short."""
        open_block = self._block_bytes is None or self.size % self._block_bytes
        return [*self._complete, self._running] if open_block and self.size else list(self._complete)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`continued` needs."""
        return {"size": self.size, "checksums": self.checksums}

    def continued(self, state: dict[str, Any]) -> Growing:
        """Go back to a state, after what is there was verified.

        Raises
        ------
        Changed
            If the file does not hold what it did.
        """
        size = state["size"]
        try:
            with self.path.open("r+b") as file:
                if file.read(len(self._head)) != self._head:
                    raise Changed(f"{self.path} begins with other bytes")
                while self.size < size and (piece := file.read(min(PIECE, size - self.size))):
                    self._count(memoryview(piece))
                file.truncate(len(self._head) + self.size)
        except FileNotFoundError:
            raise Changed(f"{self.path} is missing") from None
        if self.state() != state:
            raise Changed(f"{self.path} is damaged")
        return self

    def finish(self, head: bytes) -> None:
        """Write the head anew, and see that all bytes are on the disk."""
        with self.path.open("r+b") as file:
            file.write(head)
            file.flush()
            os.fsync(file.fileno())

    def _count(self, content: memoryview) -> None:
        while content:
            room = len(content) if self._block_bytes is None else self._block_bytes - self.size % self._block_bytes
            part, content = content[:room], content[room:]
            self._running = zlib.crc32(part, self._running)
            self.size += len(part)
            if self._block_bytes is not None and self.size % self._block_bytes == 0:
                self._complete.append(self._running)
                self._running = 0


def bytes_of(array: np.ndarray) -> memoryview:
    """Return the bytes of the numbers of an array, in their order; without a copy if it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
