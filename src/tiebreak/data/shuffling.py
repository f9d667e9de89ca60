"""A shuffle of rows that do not fit into memory.

Row i of the source gets a number of 63 random bits, a function of the seed and of i alone (Philox), and the rows are stored
in the order of these numbers; of two rows with the same number, the one that comes first in the source. So all orders are
equally likely, and the order depends on nothing but the seed and the number of rows. To sort them, rows are scattered into
buckets by the leading bits of their numbers; a bucket that does not fit into memory is scattered once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.data.blocks import Form, Packed
from tiebreak.data.growing import Changed, Growing
from tiebreak.engine.randomness import key_of, numbers_of_places

KEY_BITS = 63
MOST_BITS = 8  # leading bits that are looked at together: up to 256 buckets at once
STREAM = 0x726F7773  # sets these random numbers apart from those of methods


def keys_of_rows(seed: int, first: int, count: int) -> np.ndarray:
    """Return the random numbers of some rows, each at least 0 and below 2⁶³; the rows are stored in their order.

    Parameters
    ----------
    seed : int
    first, count : int
        The number of the first row in the source, from 0, and how many.
    """
    return numbers_of_places(key_of(seed, STREAM), first, np.empty(count, dtype=np.int64))


class Bucket:
    """Rows whose numbers begin with the same bits, in a file of heads and one of bodies.

    Attributes
    ----------
    name : str
        The leading bits, one figure each.
    rows : int
    """

    def __init__(self, folder: Path, name: str, form: Form) -> None:
        self.folder, self.name, self.form = folder, name, form
        self._heads, self._body = (Growing(folder / f"bucket-{name}.{kind}") for kind in ("heads", "body"))

    def create(self) -> Bucket:
        """Begin it anew."""
        self._heads.create()
        self._body.create()
        return self

    @property
    def rows(self) -> int:
        return self._heads.size // self.form.heads.itemsize

    @property
    def nbytes(self) -> int:
        return self._heads.size + self._body.size

    def append(self, some: Packed) -> None:
        """Add rows."""
        self._heads.append(some.heads)
        self._body.append(some.body)

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on."""
        return {"name": self.name, "heads": self._heads.state(), "body": self._body.state()}

    def continued(self, state: dict[str, Any]) -> Bucket:
        """Go back to a state."""
        self._heads.continued(state["heads"])
        self._body.continued(state["body"])
        return self

    def pieces(self, most: int) -> Iterator[Packed]:
        """Yield the rows as they came, in pieces of about so many bytes at most; raise if the files are damaged."""
        step = max(1, self.rows * most // max(self.nbytes, 1))
        again = [Growing(self._heads.path), Growing(self._body.path)]
        with self._heads.path.open("rb") as heads_file, self._body.path.open("rb") as body_file:
            for low in range(0, self.rows, step):
                heads = np.fromfile(heads_file, self.form.heads, min(step, self.rows - low))
                body = np.fromfile(body_file, self.form.bodies, int(heads["length"].sum()))
                again[0].count(heads)
                again[1].count(body)
                yield Packed(heads, body)
        if [each.state() for each in again] != [self._heads.state(), self._body.state()]:
            raise Changed(f"{self._heads.path} or {self._body.path} is damaged")

    def ordered(self, most: int) -> Iterator[Packed]:
        """Yield the rows in the order of their numbers, in pieces; all of them are in memory meanwhile."""
        parts = list(self.pieces(max(self.nbytes, 1)))
        if parts:
            order = np.argsort(parts[0].heads["key"], kind="stable")
            step = max(1, self.rows * most // max(self.nbytes, 1))
            for low in range(0, self.rows, step):
                yield parts[0].taken(order[low : low + step], self.form.sparse)

    def remove(self) -> None:
        """Remove the files."""
        self._heads.path.unlink(missing_ok=True)
        self._body.path.unlink(missing_ok=True)


def bits_for(size: float, most: int) -> int:
    """Return by how many bits rows of so many bytes are scattered: few buckets will have more than ``most`` bytes."""
    return min(MOST_BITS, max(0, math.ceil(math.log2(max(2.0 * size / most, 1.0)))))


def new_buckets(folder: Path, prefix: str, bits: int, form: Form) -> list[Bucket]:
    """Return empty buckets for all ways in which some bits may go on."""
    tails = [format(k, f"0{bits}b") for k in range(1 << bits)] if bits else [""]
    return [Bucket(folder, prefix + tail, form).create() for tail in tails]


def scatter(some: Packed, buckets: list[Bucket], used: int, sparse: bool) -> None:
    """Append rows to buckets by the bits of their numbers after those that were ``used``."""
    bits = len(buckets).bit_length() - 1
    place = (some.heads["key"] >> (KEY_BITS - used - bits)) & (len(buckets) - 1)
    order = np.argsort(place, kind="stable")
    sorted_rows = some.taken(order, sparse)
    edges = np.searchsorted(place[order], np.arange(len(buckets) + 1))
    ends = np.concatenate([[0], np.cumsum(sorted_rows.heads["length"])])
    for bucket, low, high in zip(buckets, edges[:-1], edges[1:], strict=True):
        bucket.append(Packed(sorted_rows.heads[low:high], sorted_rows.body[ends[low] : ends[high]]))


def split(bucket: Bucket, most: int, piece: int) -> list[Bucket]:
    """Return the rows of a bucket in smaller ones, which are created anew."""
    found = new_buckets(bucket.folder, bucket.name, max(1, bits_for(bucket.nbytes, most)), bucket.form)
    for some in bucket.pieces(piece):
        scatter(some, found, len(bucket.name), bucket.form.sparse)
    return found
