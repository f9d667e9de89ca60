"""Real data, from the folder that ``TIEBREAK_DATA`` names; a problem whose data are not there is left out."""

from __future__ import annotations

import os
from pathlib import Path


class MissingDataError(FileNotFoundError):
    """Data that a problem needs are not in the folder."""


def found(name: str) -> Path:
    """Return the path of a file, or raise."""
    file = Path(os.environ.get("TIEBREAK_DATA", "")) / name
    if not file.is_file():
        raise MissingDataError(f"{name} is not in the folder that TIEBREAK_DATA names")
    return file
