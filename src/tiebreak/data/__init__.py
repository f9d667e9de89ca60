"""Loaders and generators of data sets: counts of places × time, regression tasks made from them; dictionaries; people."""

from tiebreak.data.atoms import Atoms, dictionary
from tiebreak.data.census import Census, adult, adult_like
from tiebreak.data.splits import Fold, Split, split
from tiebreak.data.traffic import montevideo, pageviews, wikimath

__all__ = [
    "Atoms",
    "Census",
    "Fold",
    "Split",
    "adult",
    "adult_like",
    "dictionary",
    "montevideo",
    "pageviews",
    "split",
    "wikimath",
]
