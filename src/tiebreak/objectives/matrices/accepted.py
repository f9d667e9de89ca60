"""What users may give as a matrix of data, and how it is stored."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from tiebreak.engine import checks
from tiebreak.objectives.matrices.csr import CSR
from tiebreak.objectives.matrices.dense import Dense
from tiebreak.rows.maps import unlocked
from tiebreak.rows.store import SparseRows, VerifiedRows


def as_matrix(value: Any, name: str) -> Dense | CSR:
    """Return a validated matrix. Float arrays in C order are not copied, and float32 stays float32."""
    if isinstance(value, (Dense, CSR)):
        return value
    if isinstance(value, VerifiedRows):
        return _stored(value, name)
    if scipy.sparse.issparse(value):
        sparse = _rows_of(value, name)
        if not sparse.has_canonical_format:  # duplicates would be read as two features
            sparse = sparse.copy()
            sparse.sum_duplicates()
        shape, entries = sparse.shape, _floats(sparse.data, name)
        matrix: Dense | CSR = CSR(entries, sparse.indices, sparse.indptr, int(shape[-1]))
    else:
        entries = _floats(value, name)
        shape, matrix = entries.shape, Dense(entries)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"`{name}` must be a non-empty matrix (samples × features), got an array of shape {shape}")
    checks.data(entries, name)
    return matrix


def _rows_of(value: Any, name: str) -> scipy.sparse.csr_array:
    """Return a sparse matrix row by row, its indices checked first: SciPy would follow wrong ones out of its arrays."""
    if value.ndim != 2:
        raise ValueError(f"`{name}` must be a non-empty matrix (samples × features), got an array of shape {value.shape}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # SciPy warns of indices that are no integers, and then takes them
            if value.format == "coo":
                for indices, size in zip(value.coords, value.shape, strict=True):
                    if indices.min(initial=0) < 0 or indices.max(initial=0) >= size:
                        raise ValueError("its indices must lie within its shape")
            elif value.format in ("csc", "bsr"):
                getattr(scipy.sparse, f"{value.format}_array")(value).check_format(full_check=True)
            rows = scipy.sparse.csr_array(value)
            rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, UserWarning) as error:
        raise ValueError(f"`{name}` must be a valid sparse matrix, and it is not: {error}") from None
    return rows


def _floats(value: Any, name: str) -> np.ndarray:
    array = checks.numbers(value, name)
    if array.ndim == 0:
        raise ValueError(f"`{name}` must be a non-empty matrix (samples × features), got a single number")
    kind = np.float32 if array.dtype == np.float32 else np.float64
    return unlocked(np.ascontiguousarray(np.asarray(array), dtype=kind))


def _stored(value: VerifiedRows, name: str) -> Dense | CSR:
    """Return the matrix of a store in place: its numbers were looked at when they were stored."""
    checks.extent(value.largest, name)
    if not isinstance(value.rows, SparseRows):
        return Dense(unlocked(np.asarray(value.rows)))
    data, columns, starts = map(np.asarray, value.rows)
    if data.size < 2**31:  # as SciPy has them: compiled code is the same then
        starts = starts.astype(columns.dtype)
    return CSR(unlocked(data), unlocked(columns), unlocked(starts), value.shape[1])
