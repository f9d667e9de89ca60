"""Files that are whole or not there at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO


def write_atomically(path: Path, content: bytes | Callable[[BinaryIO], Any], mark: str = "") -> None:
    """Write a file under another name and move it to its place: a crash at any moment leaves the old file or the new one.

    Parameters
    ----------
    path : Path
    content : bytes or callable
        What the file holds, or a function that writes it into an open file.
    mark : str
        Part of the other name. Without one it is always the same, so that what a killed process leaves is overwritten;
        processes that write one file at the same time need different marks.
    """
    temporary = path.with_name(f"{path.name}{mark}.part")
    try:
        with temporary.open("wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
