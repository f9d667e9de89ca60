"""Regression tasks: a matrix cut into a target and features, and into thirds of its rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks

NEARLY_CONSTANT = 1e-9  # spread of a column that counts as none, relative to its largest absolute value


class Fold(NamedTuple):
    """One third of the rows."""

    A: np.ndarray  # rows × features
    b: np.ndarray  # one target per row


class Split(NamedTuple):
    """A regression task: three disjoint sets of rows, and which column of the data is the target."""

    train: Fold
    validation: Fold
    test: Fold
    target: int


def split(A: Any, seed: int = 0, scaling: str | None = "column-max") -> Split:
    """Make a regression task of a matrix: one random column is the target, the others are the features.

    Rows are shuffled and cut in thirds, whose sizes differ by at most one. Columns are scaled by statistics of *all* rows,
    because the features of all rows are known beforehand, and heavy-tailed counts scaled by a third of the rows would leave
    huge values in the other thirds. No column is shifted, so that zeros stay zeros.

    Parameters
    ----------
    A : array_like of shape (n, d)
        The data, n ≥ 4 and d ≥ 2.
    seed : int
        Chooses the target and the rows. A column that is constant on the training third, up to rounding, is passed over.
    scaling : {"column-max", "std", "none"} or None
        Divide each column, the target too, by its largest absolute value, so that counts come to lie in [0, 1]; or by its
        standard deviation; or by nothing. A column of zeros stays as it is, and one without deviation, up to rounding, is
        divided by its largest absolute value.

    Returns
    -------
    Split
        ``train``, ``validation`` and ``test``, each with its ``A`` and ``b``, and the index of the ``target``.

    Raises
    ------
    ValueError
        If ``A`` is not a finite matrix of that size, or every column is constant on the training third.

    Examples
    --------
    >>> from tiebreak.data import pageviews
    >>> task = split(pageviews())
    >>> task.train.A.shape, task.train.b.shape
    ((356, 730), (356,))
    """
    array = np.asarray(checks.numbers(A, "A"), dtype=np.float64)
    if array.ndim != 2 or array.shape[0] < 4 or array.shape[1] < 2:
        raise ValueError(f"`A` must be a matrix of at least 4 rows and 2 columns, got an array of shape {array.shape}")
    checks.finite(array, "A")
    scaled = scaled_columns(array, scaling)
    rng = np.random.default_rng(checks.whole(seed, "seed", least=0))
    thirds = np.array_split(rng.permutation(array.shape[0]), 3)
    candidates = rng.permutation(array.shape[1])
    target = next((int(j) for j in candidates if _varies(array[thirds[0], j])), None)
    if target is None:
        raise ValueError("`A` must have a column that varies on the training third, got none; try another `seed`")
    features, b = np.delete(scaled, target, axis=1), scaled[:, target]
    train, validation, test = (Fold(features[rows], b[rows]) for rows in thirds)
    return Split(train, validation, test, target)


def scaled_columns(array: np.ndarray, scaling: str | None) -> np.ndarray:
    """Return a matrix with each column divided by its largest absolute value, its deviation or nothing."""
    if scaling is None or scaling == "none":
        return array
    if scaling not in ("column-max", "std"):
        raise ValueError(f'`scaling` must be "column-max", "std", "none" or None, got {checks.shown(scaling)}')
    peak = np.abs(array).max(axis=0)
    unit = array / np.where(peak > 0.0, peak, 1.0)
    if scaling == "column-max":
        return unit
    deviation = unit.std(axis=0)
    return unit / np.where(deviation > NEARLY_CONSTANT, deviation, 1.0)


def _varies(column: np.ndarray) -> bool:
    peak = np.abs(column).max()
    return bool(peak > 0.0 and np.ptp(column / peak) > NEARLY_CONSTANT)
