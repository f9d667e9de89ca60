"""Rows with labels ±1, prepared as papers on simple bilevel optimisation take them: a1a, and breast cancer.

a1a: LIBSVM's binary coding of Adult (Platt 1998; Chang and Lin, LIBSVM data). Breast cancer: Wolberg, Mangasarian, Street,
UCI machine learning repository, 1995.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tiebreak.data.census import NUMERIC, adult_like
from tiebreak.data.files import existing, naming
from tiebreak.engine import checks

A1A_FEATURES = 123
ARRAYS = ("data", "indices", "indptr", "shape", "labels")  # of an .npz file
SPLIT_SEED, TEST_SHARE = 42, 0.2  # of the published split of breast cancer


class Labelled(NamedTuple):
    """Rows and their labels."""

    A: np.ndarray  # rows × features; the last column is of ones
    y: np.ndarray  # 1 or −1, one per row


def a1a(path: str | os.PathLike[str], rows: int | None = 1000) -> Labelled:
    r"""Load a1a, LIBSVM's coding of Adult with 123 binary features, and append a column of ones.

    The first 1000 rows of the file ``a1a.t`` make a problem of Chen, Shi, Jiang and Wang, Penalty-based methods for simple
    bilevel optimization under Hölderian error bounds, NeurIPS 2024: the least norm of all minimisers of the logistic loss in
    an ℓ1 ball of radius 10. Features are 0 or 1, so that their scaling to [0, 1] changes nothing.

    Parameters
    ----------
    path : path
        The file ``a1a.t`` of LIBSVM's data, or another of its text format with indices from 1 to 123 (also compressed, as
        ``.gz`` or ``.bz2``); or an ``.npz`` file with a CSR matrix as ``data``, ``indices``, ``indptr`` and ``shape``, and
        ``labels``.
    rows : int, optional
        How many rows to keep, from the first; None: all.

    Returns
    -------
    Labelled
        ``A`` (rows × 124) and ``y`` (±1).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file has another form, or fewer rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a1a.t")
    ...     size = path.write_text("-1 1:1 5:1\n+1 2:1 123:1\n")
    ...     A, y = a1a(path, rows=2)
    >>> A.shape, A[1].nonzero()[0].tolist(), y.tolist()
    ((2, 124), [1, 122, 123], [-1.0, 1.0])
    """
    file = existing(path, "a file in LIBSVM's format, or an .npz file")
    with naming(file):
        matrix, labels = (_arrays if file.suffix == ".npz" else _text)(file)
        keep = max(labels.size, 1) if rows is None else checks.whole(rows, "rows")
        if labels.size < keep:
            raise ValueError(f"must have at least {keep} rows, got {labels.size}")
        y = checks.vector(labels[:keep], "labels", keep)
        wrong = y[np.abs(y) != 1.0]
        if wrong.size:
            raise ValueError(f"must have the labels 1 and −1 only, got {wrong[0]:g}")
        X = np.asarray(matrix[:keep].toarray(), dtype=np.float64)
        checks.finite(X, "data")
    return Labelled(np.column_stack([X, np.ones(keep)]), y)


def a1a_like(seed: int = 0, rows: int = 1000) -> Labelled:
    """Generate rows that resemble those of :func:`a1a`: binary features that exclude each other in groups, and an intercept.

    They are the people of :func:`~tiebreak.data.adult_like`, with what is counted about them cut at its quintiles. In each
    group the columns sum to the column of ones, so that the rank is less than the number of columns.

    Parameters
    ----------
    seed : int
        Same seed, same rows, within one version of NumPy.
    rows : int
        At most 10,000.

    Returns
    -------
    Labelled

    Examples
    --------
    >>> A, y = a1a_like()
    >>> A.shape, bool(np.isin(A, (0.0, 1.0)).all())
    ((1000, 71), True)
    """
    X, y, _ = adult_like(seed)
    keep = checks.whole(rows, "rows")
    if keep > y.size:
        raise ValueError(f"`rows` must be at most {y.size}, got {keep}")
    counted = X.shape[1] - len(NUMERIC)
    parts = [X[:keep, :counted]]
    for column in X[:, counted:].T:
        group = np.searchsorted(np.quantile(column, (0.2, 0.4, 0.6, 0.8)), column[:keep])
        parts.append(np.eye(5)[group])
    return Labelled(np.column_stack([*parts, np.ones(keep)]), y[:keep])


def breast_cancer(degree: int = 3) -> Labelled:
    """Return scikit-learn's breast cancer data with all products of up to three features, and a column of ones.

    As Boţ, Chenchene, Csetnek and Hulett take them, Accelerating diagonal methods for bilevel optimization: unified
    convergence via continuous-time dynamics, 2025: products are made of the raw features, 80 % of the rows are kept (the
    training part of a stratified split), and columns are then shifted and scaled to mean 0 and standard deviation 1.
    Many columns are nearly the same, and a model tells all labels without an error.

    Parameters
    ----------
    degree : int
        How many features a product may have: 1, 2 or 3.

    Returns
    -------
    Labelled
        ``A`` (455 rows × 5456) and ``y``: 1 for benign, −1 for malignant.

    Examples
    --------
    >>> A, y = breast_cancer(degree=1)
    >>> A.shape, int((y == 1).sum())
    ((455, 31), 285)
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    if checks.whole(degree, "degree") > 3:
        raise ValueError(f"`degree` must be 1, 2 or 3, got {degree}")
    X, target = load_breast_cancer(return_X_y=True)
    train, _, y, _ = train_test_split(X, target, test_size=TEST_SHARE, random_state=SPLIT_SEED, stratify=target)
    products = PolynomialFeatures(degree, include_bias=False).fit_transform(train)
    A = np.column_stack([StandardScaler().fit_transform(products), np.ones(y.size)])
    return Labelled(A, np.where(y == 1, 1.0, -1.0))


def _text(file: Path) -> tuple[Any, np.ndarray]:
    """Read LIBSVM's text format."""
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(str(file), n_features=A1A_FEATURES, zero_based=False)
    except (ValueError, OSError, EOFError, OverflowError) as error:
        raise ValueError(f"must be in LIBSVM's text format, with indices from 1 to {A1A_FEATURES}: {error}") from None


def _arrays(file: Path) -> tuple[Any, np.ndarray]:
    """Read a CSR matrix and labels from an .npz file."""
    try:
        with file.open("rb") as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as stored:
            found = {name: stored[name] for name in ARRAYS if name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"must be an .npz file: {error}") from None
    missing = [name for name in ARRAYS if name not in found]
    if missing:
        raise ValueError(f"must have the arrays {', '.join(ARRAYS)}, got none called {missing[0]}")
    if found["data"].dtype.kind not in "fiub":
        raise ValueError(f"`data` must hold real numbers, got an array of type {found['data'].dtype}")
    for name in ("indices", "indptr"):
        if found[name].dtype.kind not in "iu":
            raise ValueError(f"`{name}` must hold whole numbers, got an array of type {found[name].dtype}")
    shape = checks.matrix_shape(found["shape"].tolist())
    matrix = sp.csr_matrix((found["data"], found["indices"], found["indptr"]), shape=shape)
    if shape != (found["labels"].size, A1A_FEATURES):
        raise ValueError(f"must have {A1A_FEATURES} features and a label per row, got {shape} and {found['labels'].size}")
    matrix.check_format()
    return matrix, found["labels"]
