"""Arrays that are mapped from files and read in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def mapped(path: Path) -> np.ndarray:
    """Return the array of a ``.npy`` file as a memory map, of which nothing is read yet."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} must be a .npy file with an array of numbers, and it is not: {error}") from None
    return array


def is_mapped(array: Any) -> bool:
    """Return whether the numbers of an array are those of a file that is mapped."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def unlocked(array: np.ndarray) -> np.ndarray:
    """Return a view of an array that does not say whether it may be written to.

    Compiled code knows arrays that may not be written to as another type, and would be compiled once more for it. The view
    is for code that only reads: to write through it into a map that is open for reading ends the process.
    """
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


class _Unlocked:
    """The memory of an array, kept alive by it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface = dict(self._array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        return interface
