"""The problems of the bank by name, and which of them belong to the paper and to other publications."""

from __future__ import annotations

from collections.abc import Callable

from bank import Case, entries

PAPER = {"regression": "page-views", "dictionary": "dictionary"}
PUBLISHED = ("a1a", "breast-cancer", "phillips", "foxgood", "baart")
ELSEWHERE = {*PAPER.values(), *PUBLISHED}


def makers() -> dict[str, Callable[[], Case]]:
    """Return the functions that make the problems of the bank, by name."""
    return {entry.name: entry.make for entry in entries()}
