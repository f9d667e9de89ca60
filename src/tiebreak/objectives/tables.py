"""Data of linear models that are named by a file or a store: tables, mapped arrays, rows on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from tiebreak.engine import checks
from tiebreak.rows.maps import mapped
from tiebreak.rows.store import SparseRows, Store, open_store

COPIED_BYTES = 1 << 28  # of data on disk that may be copied into memory where they cannot be used in place
AT_ONCE = 1 << 22  # bytes that are copied together


def data_of(
    A: Any, targets: Any, sample_weight: Any, name: str, target: str | None, columns: Sequence[str] | None
) -> tuple[Any, Any, Any]:
    """Return matrix, targets and weights: those that were given, or those of the file or store that ``A`` names.

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
    is_path = isinstance(A, (str, os.PathLike))
    if is_path and Path(A).expanduser().is_dir():
        A, is_path = open_store(A), False
    if not isinstance(A, Store) and not (is_path and not _is_npy(A)):
        for argument, value in (("target", target), ("columns", columns)):
            if value is not None:
                raise ValueError(
                    f"`{argument}` is for tables, whose file `A` names, got {checks.shown(value)} with an array"
                )
        if targets is None:
            raise ValueError(f"`{name}` must be given with an array `A`: one target per row")
        return _array(A, "A"), _array(targets, name), _array(sample_weight, "sample_weight")
    if targets is not None:
        raise ValueError(
            f"`{name}` must be left out if `A` is a file or a store: `target` names its column, got {checks.shown(targets)}"
        )
    if isinstance(A, Store) and target is None:
        target = A.target
    if not isinstance(target, str):
        place = A.folder if isinstance(A, Store) else os.fspath(A)
        raise ValueError(f"`target` must be the name of a column of {place}, got {checks.shown(target)}")
    if isinstance(sample_weight, str) and sample_weight == target:
        raise ValueError(f"`sample_weight` must be another column than `target`, got {target!r} for both")
    if columns is not None:
        columns = _checked(columns, target)
    return (_stored if isinstance(A, Store) else _read)(A, target, sample_weight, columns)


def _checked(columns: Any, target: str) -> list[str]:
    named = isinstance(columns, (list, tuple)) and all(isinstance(each, str) for each in columns)
    if not named or not columns or len(set(columns)) < len(columns) or target in columns:
        raise ValueError(
            f"`columns` must be a list of different names of features, without the target, got {checks.shown(columns)}"
        )
    return list(columns)


def _is_npy(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and Path(value).suffix.lower() == ".npy"


def _array(value: Any, name: str) -> Any:
    """Return a value, or the array in the .npy file that it names, mapped; raise if it could only be used as a copy."""
    if not _is_npy(value):
        return value
    path = Path(value).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"`{name}` must name an existing file, got {str(path)!r}")
    array = mapped(path)
    in_place = array.flags.c_contiguous and array.dtype in (np.dtype(np.float32), np.dtype(np.float64))
    if not in_place and array.ndim != 1 and array.nbytes > COPIED_BYTES:
        raise ValueError(
            f"`{name}` must be in C order and float32 or float64 to be used in place, and {path} is not: it is of type"
            f" {array.dtype}; tiebreak.data.store writes it so"
        )
    return array


def _read(path: Any, target: str, sample_weight: Any, columns: list[str] | None) -> tuple[Any, Any, Any]:
    from tiebreak.data.tables import read, split_target

    weights = [sample_weight] if isinstance(sample_weight, str) else []
    table = read(path, None if columns is None else list(dict.fromkeys([*columns, target, *weights])))
    if weights:
        sample_weight = table.column(weights[0])
        others = tuple(each for each in table.names if each not in weights)
        table = table._replace(names=others, values=table.columns(others))
    return *split_target(table, target, None if columns is None else tuple(columns)), sample_weight


def _stored(store: Store, target: str, sample_weight: Any, columns: list[str] | None) -> tuple[Any, Any, Any]:
    """Return data of a store, whose checksums are verified first; the matrix in place, unless columns are left out."""
    names = store.names or ()
    for name in columns or ():
        if name not in names:
            raise ValueError(f"{store.folder} must have a column {name!r} in its matrix, and has {checks.shown(names)}")
    wanted = columns if columns is not None else [name for name in names if name not in (target, sample_weight)]
    if names and not wanted:
        raise ValueError(f"{store.folder} has no column besides {target!r}: there is nothing to predict it from")
    matrix: Any = store.matrix()  # everything is verified before any of it is used
    if names and tuple(wanted) != names:
        matrix = _chosen(store, [names.index(name) for name in wanted])
    weights = store.column(sample_weight) if isinstance(sample_weight, str) else _array(sample_weight, "sample_weight")
    return matrix, store.column(target), weights


def _chosen(store: Store, places: list[int]) -> Any:
    """Return a copy of some columns of the matrix of a store, if it is small."""
    rows, (n, width) = store.rows, store.shape
    if isinstance(rows, SparseRows):
        needed = rows.data.nbytes + rows.columns.nbytes
    else:
        needed = n * len(places) * store.dtype.itemsize
    if needed > COPIED_BYTES:
        raise ValueError(
            f"{store.folder} holds more columns than are wanted, and a copy without them would take {needed:,} bytes of"
            " memory; make the store again with target=..., sample_weight=... and columns=..., which keep them apart"
        )
    if isinstance(rows, SparseRows):
        return scipy.sparse.csr_array(tuple(rows), shape=store.shape)[:, places]
    out, step = np.empty((n, len(places)), store.dtype), max(1, AT_ONCE // (width * store.dtype.itemsize))
    for low in range(0, n, step):
        out[low : low + step] = rows[low : low + step][:, places]
    return out
