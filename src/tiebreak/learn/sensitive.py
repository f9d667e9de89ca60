"""Sensitive attributes, and how much the scores or probabilities of a model tell of them.

Attributes come in all forms that fairlearn takes, and as numbers too. Columns of groups are taken together: each combination
of their values is a group, and membership in it is an attribute of 0 and 1. A column of numbers is an attribute as it is.

Scores or probabilities v_i are judged by their covariance with an attribute a that is centred and divided by its standard
deviation, mean_i v_i (a_i − ā) / σ: without unit but that of v, and the same if a constant is added to all v_i.
Zafar, Valera, Gomez Rodriguez and Gummadi, Fairness constraints: mechanisms for fair classification, AISTATS 2017, use it
for demographic parity. For equalised odds it is taken within each class, where means and deviations are those of the class;
Donini, Oneto, Ben-David, Shawe-Taylor and Pontil, Empirical risk minimization under fairness constraints, NeurIPS 2018, do
so for the positive class.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks

KINDS = ("auto", "groups", "continuous")
MOST_GROUPS = 20  # values of a column of whole numbers; more are rather numbers than groups
CONSTANT = 1e-12  # standard deviation of an attribute, relative to its largest value, that rounding may leave of none


class Column(NamedTuple):
    """A column of sensitive features."""

    name: str  # empty if it has none
    values: np.ndarray
    grouped: bool  # whether its values are groups


class Attribute(NamedTuple):
    """What scores should not tell of."""

    name: str
    values: np.ndarray  # one number per sample


class Contrasts(NamedTuple):
    """The covariances with all attributes, as a linear function: of values v, one per sample, they are ``rows @ v``."""

    names: list[str]
    rows: np.ndarray  # (number of covariances, n)


def attributes_of(sensitive_features: Any, kinds: Any, n: int) -> list[Attribute]:
    """Return the attributes of n samples, numbers before groups."""
    columns = list(_columns(sensitive_features, kinds, n))
    found = [Attribute(each.name or "attribute", each.values) for each in columns if not each.grouped]
    if grouped := [each for each in columns if each.grouped]:
        found += _memberships(grouped)
    return found


def contrasts(attributes: list[Attribute], weights: np.ndarray, strata: dict[str, np.ndarray]) -> Contrasts:
    """Return the covariances with each attribute within each stratum, where it is not the same for all.

    Parameters
    ----------
    attributes : list of Attribute
    weights : array, (n,)
        Of the samples.
    strata : dict of arrays of bools, (n,)
        The samples over which to take a covariance, by what is added to its name.
    """
    names, found = [], []
    for addition, members in strata.items():
        shares = np.where(members, weights, 0.0)
        shares /= shares.sum()
        for name, values in attributes:
            centred = values - shares @ values
            deviation = math.sqrt(float(shares @ centred**2))
            if deviation > CONSTANT * float(np.abs(values).max()):
                names.append(name + addition)
                found.append(shares * centred / deviation)
    if not names:
        where = " within a class of `y`" if len(strata) > 1 else ""
        raise ValueError(f"`sensitive_features` must differ between samples{where}: all covariances are 0 else")
    return Contrasts(names, np.stack(found))


# Forms


def _columns(sensitive_features: Any, kinds: Any, n: int) -> Iterator[Column]:
    if sensitive_features is None:
        raise ValueError(
            "`sensitive_features` must be given to `fit`, one row per sample: the attributes that predictions should not"
            " tell of"
        )
    checks.unmasked(sensitive_features, "sensitive_features")
    named = list(_named_columns(sensitive_features, n))
    asked = [kinds] * len(named) if isinstance(kinds, str) else _listed(kinds, len(named))
    for (name, values, categorical), kind in zip(named, asked, strict=True):
        if not (isinstance(kind, str) and kind in KINDS):
            names = ", ".join(f'"{each}"' for each in KINDS)
            raise ValueError(f"`sensitive_kind` must be one of {names}, or a list of these, got {checks.shown(kind)}")
        yield _column(name, values, "groups" if kind == "auto" and categorical else kind)


def _listed(kinds: Any, columns: int) -> list[Any]:
    if not isinstance(kinds, (list, tuple)) or len(kinds) != columns:
        raise ValueError(
            f"`sensitive_kind` must be a name, or a list of one for each of the {columns} columns of `sensitive_features`,"
            f" got {checks.shown(kinds)}"
        )
    return list(kinds)


def _named_columns(given: Any, n: int) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Yield name, values and whether they are said to be categories, of each column."""
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):  # a table, of pandas or of others
        labels = list(given.columns)
        each = [given.iloc[:, k] if hasattr(given, "iloc") else given[label] for k, label in enumerate(labels)]
        tables = [
            (str(label), np.asarray(column), _is_categorical(column)) for label, column in zip(labels, each, strict=True)
        ]
    elif hasattr(given, "dtype") and hasattr(given, "name"):  # a column of one
        tables = [("" if given.name is None else str(given.name), np.asarray(given), _is_categorical(given))]
    else:
        array = _array(given)
        tables = [("", column, False) for column in (array.T if array.ndim == 2 else [array])]
    if not tables or any(values.ndim != 1 or values.shape[0] != n for _, values, _ in tables):
        shape = getattr(given, "shape", None) or np.shape(_array(given))
        raise ValueError(
            f"`sensitive_features` must have one row for each of the {n} samples, got an array of shape {shape}"
        )
    several = len(tables) > 1
    for k, (name, values, categorical) in enumerate(tables):
        yield name or (f"column {k}" if several else ""), values, categorical


def _array(given: Any) -> np.ndarray:
    if isinstance(given, np.ndarray):
        return given
    rows = given if np.iterable(given) else []
    if len({len(row) if isinstance(row, (list, tuple, np.ndarray)) else -1 for row in rows}) > 1:
        raise ValueError(f"`sensitive_features` must have rows of one length each, got {checks.shown(given)}")
    return np.array(given, dtype=object)  # numbers stay numbers beside texts


def _is_categorical(column: Any) -> bool:
    return str(getattr(column, "dtype", "")) in ("category", "Categorical", "Enum")


# Kinds


def _column(name: str, values: np.ndarray, kind: str) -> Column:
    """Return a column of numbers, or of groups as texts."""
    missing = [k for k, value in enumerate(values.tolist()) if _is_missing(value)]
    if missing:
        raise ValueError(
            f"`sensitive_features` must have no missing values, got {len(missing)}, the first at [{missing[0]}]; remove"
            " these samples, or make a group of them"
        )
    numeric = _numbers(values)
    if kind == "auto":
        kind = "groups" if numeric is None or _looks_grouped(numeric) else "continuous"
    if kind == "groups":
        return Column(name, np.array([_text(value) for value in values.tolist()]), True)
    if numeric is None:
        raise ValueError(
            f'`sensitive_features` must hold numbers where `sensitive_kind` is "continuous", got {checks.shown(values[0])}'
        )
    checks.finite(numeric, "sensitive_features")
    return Column(name, numeric, False)


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value))


def _numbers(values: np.ndarray) -> np.ndarray | None:
    """Return the values as float64 if all of them are real numbers; truth values are none."""
    if values.dtype.kind in "fiu":
        return values.astype(np.float64)
    if values.dtype.kind != "O" or not all(
        isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) for value in values
    ):
        return None
    return values.astype(np.float64)


def _looks_grouped(values: np.ndarray) -> bool:
    """Return whether numbers are rather names of groups: two of them, or a few whole ones."""
    different = np.unique(values)
    return different.size <= 2 or (different.size <= MOST_GROUPS and bool(np.all(different == np.round(different))))


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _memberships(columns: list[Column]) -> list[Attribute]:
    """Return which samples are in which group; of two groups those in the second."""
    labels = [
        ", ".join(f"{each.name}={value}" if each.name else value for each, value in zip(columns, row, strict=True))
        for row in zip(*(column.values.tolist() for column in columns), strict=True)
    ]
    groups, members = np.unique(labels, return_inverse=True)
    chosen = range(groups.size) if groups.size != 2 else [1]
    return [Attribute(str(groups[k]), (members == k).astype(np.float64)) for k in chosen]
