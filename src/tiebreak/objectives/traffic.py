"""What is moved, and waited for, where data are on other machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tiebreak.objectives.matrices.distant import Distant
from tiebreak.rows.partitions import Partitions


class Traffic(NamedTuple):
    """Bytes that came and went, and seconds in which this process had nothing else to do than wait for them."""

    bytes_moved: int
    seconds_waited: float

    def since(self, before: Traffic) -> Traffic:
        """Return what came on top of that."""
        return Traffic(self.bytes_moved - before.bytes_moved, self.seconds_waited - before.seconds_waited)


def traffic_of(*objectives: Any) -> Traffic:
    """Return what some objectives have moved and waited for since they were made; nothing if their data are here."""
    distant = {id(each): each for each in _partitions_in(objectives)}.values()
    return Traffic(sum(each.bytes_moved for each in distant), sum((each.seconds_waited for each in distant), 0.0))


def _partitions_in(value: Any) -> Iterator[Partitions]:
    if isinstance(value, Distant):
        yield value.partitions
    elif isinstance(value, tuple):
        for part in value:
            yield from _partitions_in(part)
