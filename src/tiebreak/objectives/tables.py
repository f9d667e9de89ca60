"""Data of linear models that are named by a file: a table in a CSV or Parquet file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tiebreak.engine import checks


def data_of(
    A: Any, targets: Any, sample_weight: Any, name: str, target: str | None, columns: Sequence[str] | None
) -> tuple[Any, Any, Any]:
    """Return matrix, targets and weights: those that were given, or the columns of the file that ``A`` names.

    Parameters
    ----------
    A, targets, sample_weight
        Arguments of a linear model; ``sample_weight`` may be the name of a column.
    name : str
        What users call the targets.
    target : str or None
        The column of the targets.
    columns : list of str or None
        Those of the features, in this order; all others if not given.
    """
    if not isinstance(A, (str, os.PathLike)):
        for argument, value in (("target", target), ("columns", columns)):
            if value is not None:
                raise ValueError(
                    f"`{argument}` is for tables, whose file `A` names, got {checks.shown(value)} with an array"
                )
        if targets is None:
            raise ValueError(f"`{name}` must be given with an array `A`: one target per row")
        return A, targets, sample_weight
    if targets is not None:
        raise ValueError(
            f"`{name}` must be left out if `A` is a file: `target` names its column, got {checks.shown(targets)}"
        )
    if not isinstance(target, str):
        raise ValueError(f"`target` must be the name of a column of {os.fspath(A)}, got {checks.shown(target)}")
    if columns is not None:
        columns = _checked(columns, target)
    return _read(A, target, sample_weight, columns)


def _checked(columns: Any, target: str) -> list[str]:
    named = isinstance(columns, (list, tuple)) and all(isinstance(each, str) for each in columns)
    if not named or not columns or len(set(columns)) < len(columns) or target in columns:
        raise ValueError(
            f"`columns` must be a list of different names of features, without the target, got {checks.shown(columns)}"
        )
    return list(columns)


def _read(path: Any, target: str, sample_weight: Any, columns: list[str] | None) -> tuple[Any, Any, Any]:
    from tiebreak.data.tables import read, split_target

    weights = [sample_weight] if isinstance(sample_weight, str) else []
    table = read(path, None if columns is None else list(dict.fromkeys([*columns, target, *weights])))
    if weights:
        sample_weight = table.column(weights[0])
        others = tuple(each for each in table.names if each not in weights)
        if target in weights:
            raise ValueError(f"`sample_weight` must be another column than `target`, got {target!r} for both")
        table = table._replace(names=others, values=table.columns(others))
    return *split_target(table, target, None if columns is None else tuple(columns)), sample_weight
