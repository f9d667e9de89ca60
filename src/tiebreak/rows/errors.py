"""What goes wrong with rows that are elsewhere."""

from __future__ import annotations


class RowsError(RuntimeError):
    """Rows could not be read where they are: a machine is gone, does not answer, or computing them failed."""
