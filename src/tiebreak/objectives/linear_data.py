"""What linear models accept as data: a matrix, targets or labels, and weights, in memory or on Dask workers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tiebreak.engine import checks
from tiebreak.objectives.feeds import fed
from tiebreak.objectives.matrices import CSR, Dense, WithOnes, as_matrix
from tiebreak.objectives.matrices.distant import Distant
from tiebreak.objectives.matrices.rows import smallest_size
from tiebreak.rows.maps import unlocked
from tiebreak.rows.partitions import check_weights, is_dask


def signs_of(y: Any) -> np.ndarray:
    """Return labels as −1 and 1, or raise."""
    labels = checks.vector(y, "y")
    factor, shift = coding_of(np.unique(labels))
    return labels if factor == 1.0 else factor * labels + shift


def coding_of(found: Any) -> tuple[float, float]:
    """Return a factor and a shift that make −1 and 1 of the labels that were found, or raise."""
    if np.isin(found, (-1.0, 1.0)).all():
        return 1.0, 0.0
    if np.isin(found, (0.0, 1.0)).all():
        return 2.0, -1.0
    shown = ", ".join(f"{label:g}" for label in found[:5]) + (", …" if len(found) > 5 else "")
    raise ValueError(f"`y` must hold labels −1 and 1, or 0 and 1, got {shown}; encode the two classes so")


def checked_data(
    A: Any, targets: Any, sample_weight: Any, name: str, client: Any = None, labels: bool = False, ones: bool = False
) -> tuple[Dense | CSR | WithOnes | Distant, np.ndarray, np.ndarray]:
    """Return matrix, targets and weights of mean 1, or raise; ``name`` is what users call the targets.

    Rows of a Dask array stay on its workers. Labels become −1 and 1. With ``ones`` the matrix has
    a column of ones behind its own, which is not stored.
    """
    if is_dask(A):
        return fed(A, targets, sample_weight, name, client, coding_of if labels else None, ones)
    if client is not None:
        raise ValueError(f"`client` is for Dask arrays, got {checks.shown(client)} with data in memory")
    targets = signs_of(targets) if labels else targets
    matrix: Any = as_matrix(A, "A")
    n = matrix.shape[0]
    targets = checks.vector(targets, name)
    checks.data(targets, name)
    if targets.size != n:
        raise ValueError(f"`{name}` must have one entry for each of the {n} rows of `A`, got {targets.size}")
    targets = unlocked(targets)
    matrix = WithOnes(matrix, matrix.shape[1]) if ones else matrix
    return matrix, targets, np.ones(n) if sample_weight is None else checked_weights(sample_weight, n)


def checked_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return weights of mean 1, or raise."""
    weights = checks.vector(sample_weight, "sample_weight", n)
    checks.data(weights, "sample_weight")
    check_weights(float(weights.min()), float(weights.max()), smallest_size(weights))
    return weights / (math.fsum(weights) / n)  # whose error does not grow with n
