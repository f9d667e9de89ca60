"""A bank of problems with known answers, to race methods on. Each module holds those of one kind."""

from bank import inverse, logistic, losses, near, nonconvex, regression, sets, sparse, streams
from bank.cases import Case, Entry, Reference, entries

__all__ = [
    "Case",
    "Entry",
    "Reference",
    "entries",
    "inverse",
    "logistic",
    "losses",
    "near",
    "nonconvex",
    "regression",
    "sets",
    "sparse",
    "streams",
]
