"""Sparse rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bank.cases import Case, planted, problem
from bank.planting import inside_l1, nearest, on_l1, paired_sparse, squares
from tiebreak import L1Ball, LeastSquares, Problem


@problem(10, 60)
def sparse_tall() -> Case:
    rng = np.random.default_rng(21)
    A, spot = paired_sparse(rng, 50_000, 2000, 5), inside_l1(rng, 2000, 300.0)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x, 0.3), spot.domain), spot.x)


@problem(100)
def sparse_wide() -> Case:
    rng = np.random.default_rng(22)
    A, spot = paired_sparse(rng, 2000, 8000, 10), on_l1(rng, 8000, 300.0, 300)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x, 0.3), spot.domain), spot.x)


@problem(20)
def sparse_with_rare_columns() -> Case:
    """Columns whose numbers of entries differ by factors of hundreds."""
    rng = np.random.default_rng(23)
    n, d, per_row = 20_000, 1000, 8
    places = np.minimum((d // 2 * rng.random((n // 2, per_row)) ** 3).astype(int), d // 2 - 1)
    rows = sp.csr_matrix((rng.standard_normal(places.size), places.ravel(), np.arange(0, places.size + 1, per_row)))
    rows.resize(n // 2, d // 2)
    rows.sum_duplicates()
    A = sp.vstack([sp.hstack([rows, rows])] * 2).tocsr()
    spot = inside_l1(rng, d, 300.0)
    return planted(Problem(nearest(rng, A, spot), squares(rng, A, spot.x, 0.3), spot.domain), spot.x)


@problem(30)
def sparse_consistent() -> Case:
    """Equations that a sparse point solves, and no noise."""
    rng = np.random.default_rng(24)
    A, spot = paired_sparse(rng, 10_000, 1000, 5), on_l1(rng, 1000, 20.0, 100)
    return planted(Problem(nearest(rng, A, spot), LeastSquares(A, A @ spot.x), L1Ball(20.0)), spot.x)
