"""What is moved, and waited for, where data are on other machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from tiebreak.engine.callouts import answering
from tiebreak.objectives.feeds import Feed
from tiebreak.objectives.matrices.distant import Distant


class Traffic(NamedTuple):
    """Bytes that came and went, and seconds in which this process had nothing else to do than wait for them."""

    bytes_moved: int
    seconds_waited: float

    def since(self, before: Traffic) -> Traffic:
        """Return what came on top of that."""
        return Traffic(self.bytes_moved - before.bytes_moved, self.seconds_waited - before.seconds_waited)


def traffic_of(*objectives: Any) -> Traffic:
    """Return what some objectives have moved and waited for since they were made; nothing if their data are here."""
    distant = {id(feed.partitions): feed.partitions for feed in _feeds_in(objectives)}.values()
    return Traffic(sum(each.bytes_moved for each in distant), sum((each.seconds_waited for each in distant), 0.0))


@contextmanager
def alone(*objectives: Any) -> Iterator[None]:
    """Let no other thread draw from the same objectives meanwhile: those whose rows are fetched have one buffer each."""
    locks = {id(feed): feed.lock for feed in _feeds_in(objectives)}
    with ExitStack() as stack:
        for _, lock in sorted(locks.items(), key=lambda item: item[0]):  # in one order: none waits for the other
            stack.enter_context(lock)
        yield


def _feeds_in(value: Any) -> Iterator[Feed]:
    if isinstance(value, Distant):
        yield answering(value.handle)
    elif isinstance(value, tuple):
        for part in value:
            yield from _feeds_in(part)
