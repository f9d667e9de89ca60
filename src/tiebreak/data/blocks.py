"""Blocks of rows on their way into a store: numbers of the matrix, and of the columns that are kept apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse


class Block(NamedTuple):
    """Some rows as a source has them."""

    rows: Any  # (m, d): an array, or a SciPy matrix in CSR form
    columns: np.ndarray  # (m, c): the columns that are kept apart

    @property
    def nbytes(self) -> int:
        entries = self.rows.data.size if scipy.sparse.issparse(self.rows) else self.rows.size
        width = self.rows.dtype.itemsize + (8 if scipy.sparse.issparse(self.rows) else 0)
        return entries * width + self.columns.nbytes + 16 * len(self.columns)

    def pieces(self, most: int) -> Iterator[Block]:
        """Yield the rows in pieces of about so many bytes at most."""
        count = len(self.columns)
        step = max(1, count * most // max(self.nbytes, 1))
        for low in range(0, count, step):
            yield Block(self.rows[low : low + step], self.columns[low : low + step])


class Form(NamedTuple):
    """What all rows of a store have in common."""

    width: int  # d
    dtype: np.dtype  # of the matrix
    sparse: bool
    kept: int  # columns that are kept apart

    @property
    def heads(self) -> np.dtype:
        """What is kept of a row besides its numbers: where it goes, how many numbers it has, other columns."""
        return np.dtype([("key", "<i8"), ("length", "<i8"), ("columns", "<f8", (self.kept,))])

    @property
    def bodies(self) -> np.dtype:
        """One entry of a body: a row, or a non-zero of one."""
        if self.sparse:
            index = "<i4" if self.width < 2**31 else "<i8"
            return np.dtype([("column", index), ("value", self.dtype)])
        return np.dtype((np.void, self.width * self.dtype.itemsize))


class Packed(NamedTuple):
    """Rows as they are written to files: heads of one length each, and a body."""

    heads: np.ndarray  # (m,)
    body: np.ndarray  # one entry per row, or one per non-zero

    def taken(self, order: np.ndarray, sparse: bool) -> Packed:
        """Return some rows, in an order."""
        heads = self.heads[order]
        if not sparse:
            return Packed(heads, self.body[order])
        begin = np.cumsum(self.heads["length"]) - self.heads["length"]
        lengths = heads["length"]
        shift = begin[order] - (np.cumsum(lengths) - lengths)
        return Packed(heads, self.body[np.repeat(shift, lengths) + np.arange(lengths.sum())])


def packed(block: Block, form: Form, keys: np.ndarray) -> Packed:
    """Return rows as they are written to files."""
    heads = np.empty(len(keys), form.heads)
    heads["key"], heads["columns"] = keys, block.columns
    if form.sparse:
        heads["length"] = np.diff(block.rows.indptr)
        body = np.empty(block.rows.data.size, form.bodies)
        body["column"], body["value"] = block.rows.indices, block.rows.data
        return Packed(heads, body)
    heads["length"] = 1
    return Packed(heads, np.ascontiguousarray(block.rows).reshape(-1).view(form.bodies))


def canonical(rows: Any) -> scipy.sparse.csr_array:
    """Return a sparse matrix row by row, with the columns of each row in order and each of them once; or raise."""
    found = scipy.sparse.csr_array(rows)
    found.check_format(full_check=True)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def largest_of(block: Block, names: tuple[str, ...] | None, kept: tuple[str, ...], first: int, source: str) -> float:
    """Return the size of the largest number of some rows; raise if one is not finite.

    Parameters
    ----------
    block : Block
    names, kept : tuple of str
        The columns of the matrix, if they have names, and those that are kept apart.
    first : int
        The number of the first row.
    source : str
        Where the rows are from, for errors.
    """
    numbers = block.rows.data if scipy.sparse.issparse(block.rows) else block.rows
    size = max(float(numbers.max(initial=0.0)), -float(numbers.min(initial=0.0)))
    if math.isfinite(size) and np.isfinite(block.columns).all():
        return size
    if not np.isfinite(block.columns).all():
        row, place = (int(i) for i in np.argwhere(~np.isfinite(block.columns))[0])
        column: Any = kept[place]
    else:
        entry = np.argwhere(~np.isfinite(numbers))[0]
        if scipy.sparse.issparse(block.rows):
            row = int(np.searchsorted(block.rows.indptr, entry[0], side="right")) - 1
            place = int(block.rows.indices[entry[0]])
        else:
            row, place = map(int, entry)
        column = place if names is None else names[place]
    raise ValueError(
        f"{source} must hold finite numbers, and the column {column!r} is missing, NaN or infinite in row {first + row + 1}:"
        " remove such rows, or fill them in"
    )
