"""Loaders and generators of data sets: counts of places × time, regression tasks made from them; dictionaries; people.

And stores on disk, for data larger than memory.
"""

from tiebreak.data.atoms import Atoms, dictionary
from tiebreak.data.census import Census, adult, adult_like
from tiebreak.data.splits import Fold, Split, split
from tiebreak.data.storing import store
from tiebreak.data.traffic import montevideo, pageviews, wikimath
from tiebreak.rows.store import Store, StoreError, open_store

__all__ = [
    "Atoms",
    "Census",
    "Fold",
    "Split",
    "Store",
    "StoreError",
    "adult",
    "adult_like",
    "dictionary",
    "montevideo",
    "open_store",
    "pageviews",
    "split",
    "store",
    "wikimath",
]
