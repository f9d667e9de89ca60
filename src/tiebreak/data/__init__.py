"""Loaders and generators of data sets: counts of places × time, regression tasks made from them; dictionaries; people.

The problems of other papers: rows with labels, and integral equations.

And stores on disk, for data larger than memory.
"""

from tiebreak.data.atoms import Atoms, dictionary
from tiebreak.data.census import Census, adult, adult_like
from tiebreak.data.integrals import Equation, integral_equation
from tiebreak.data.labelled import Labelled, a1a, a1a_like, breast_cancer
from tiebreak.data.splits import Fold, Split, split
from tiebreak.data.storing import store
from tiebreak.data.traffic import montevideo, pageviews, wikimath
from tiebreak.rows.store import Store, StoreError, open_store

__all__ = [
    "Atoms",
    "Census",
    "Equation",
    "Fold",
    "Labelled",
    "Split",
    "Store",
    "StoreError",
    "a1a",
    "a1a_like",
    "adult",
    "adult_like",
    "breast_cancer",
    "dictionary",
    "integral_equation",
    "montevideo",
    "open_store",
    "pageviews",
    "split",
    "store",
    "wikimath",
]
