"""The data that studies can use, chosen on the command line as KIND or KIND:PATH."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak
from tiebreak.studies.study import Source

TRAIN, TEST = 2000, 1000  # people of fair classification


def chosen(text: str, kinds: Iterable[str]) -> Source:
    """Return the data that a text such as ``montevideo:bus.json`` names, read once to see that they are there.

    Parameters
    ----------
    text : str
        KIND or KIND:PATH.
    kinds : list of str
        What the studies can use.

    Raises
    ------
    ValueError
        If the kind is not one of these, or the file is not what it should be.
    OSError
        If there is no such file, or it cannot be downloaded.

    Examples
    --------
    >>> chosen("pageviews", ["pageviews", "montevideo"])
    Source(kind='pageviews', path=None, digest=None)
    >>> chosen("buses:b.json", ["pageviews", "montevideo"])
    Traceback (most recent call last):
    ValueError: there are no data of the kind 'buses' here; there are pageviews, montevideo
    """
    kind, _, path = text.partition(":")
    kinds = list(dict.fromkeys(kinds))
    if kind not in kinds:
        raise ValueError(f"there are no data of the kind {kind!r} here; there are {', '.join(kinds) or 'none to choose'}")
    if path and kind in GENERATED:
        raise ValueError(f"{kind} are generated: they are read from no file, and {path!r} was given")
    if not path and kind in FILES:
        raise ValueError(f"{kind} are read from a file: write {kind}:PATH, with the path of {FILES[kind]}")
    source = Source(kind, str(Path(path).expanduser().resolve())) if path else Source(kind)
    LOADERS[kind](source)
    if source.path is None:
        return source
    return source._replace(digest=hashlib.blake2b(Path(source.path).read_bytes(), digest_size=8).hexdigest())


def count_matrix(source: Source, seed: int = 0) -> np.ndarray:
    """Return a matrix of counts; generated ones differ from seed to seed."""
    return LOADERS[source.kind](source) if source.kind != "pageviews" else tiebreak.data.pageviews(seed)


def people(source: Source, seed: int = 0) -> tiebreak.data.Census:
    """Return people; generated ones differ from seed to seed."""
    return LOADERS[source.kind](source) if source.kind != "adult-like" else tiebreak.data.adult_like(seed)


def rows_with_labels(source: Source) -> tiebreak.data.Labelled:
    """Return the rows of a1a, or generated ones like them."""
    return LOADERS[source.kind](source) if source.kind != "a1a-like" else tiebreak.data.a1a_like()


@lru_cache(maxsize=1)
def _adult(source: Source) -> tiebreak.data.Census:
    census = tiebreak.data.adult(source.path)
    place, found = source.path or "Adult from OpenML", census.y.size
    if found < TRAIN + TEST:
        raise ValueError(
            f"{place} must have at least {TRAIN + TEST} people, {TRAIN} to train and {TEST} to test, got {found}"
        )
    if np.unique(census.sensitive).size < 2:
        raise ValueError(f"{place} must have people of both groups, x_control = 0 and 1, got {census.sensitive[0]:g} only")
    return census


@lru_cache(maxsize=1)
def _wikimath(source: Source) -> np.ndarray:
    return tiebreak.data.wikimath(source.path)


@lru_cache(maxsize=1)
def _montevideo(source: Source) -> np.ndarray:
    assert source.path is not None
    return tiebreak.data.montevideo(source.path)


@lru_cache(maxsize=1)
def _a1a(source: Source) -> tiebreak.data.Labelled:
    assert source.path is not None
    return tiebreak.data.a1a(source.path)


# How a kind is read; those that are generated need no reading before a study begins.
LOADERS: dict[str, Callable[[Source], Any]] = {
    "pageviews": lambda source: np.zeros(0),
    "wikimath": _wikimath,
    "montevideo": _montevideo,
    "adult-like": lambda source: None,
    "adult": _adult,
    "a1a-like": lambda source: None,
    "a1a": _a1a,
}
GENERATED = ("pageviews", "adult-like", "a1a-like")
FILES = {  # kinds that cannot do without one
    "montevideo": "montevideo_bus.json of PyTorch Geometric Temporal",
    "a1a": "a1a.t of LIBSVM's data",
}
