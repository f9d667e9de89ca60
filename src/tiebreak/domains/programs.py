"""Linear programs: their checked rows and bounds, units for their variables, and what prices of their rows prove."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.domains.rounding import quiet, raised, sum_floor
from tiebreak.engine import checks
from tiebreak.engine.rounding import UNIT

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # numbers that HiGHS has for them


class Scaled(NamedTuple):
    """A polytope in the units of its variables and rows: powers of two, so that it is the same set, exactly."""

    rows: Any  # (m, d), sparse
    least: np.ndarray  # least ≤ rows @ z ≤ most
    most: np.ndarray
    lower: np.ndarray  # lower ≤ z ≤ upper
    upper: np.ndarray

    @quiet
    def floor(self, c: np.ndarray, prices: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
        """Return (value, left) with ⟨c, z⟩ ≥ value − left · max |z_j| for all z of the set, whatever the prices of the rows.

        Neumaier and Shcherbina, Safe bounds in linear and mixed-integer linear programming, 2004: ⟨c, z⟩ is ⟨c − Aᵀy, z⟩
        plus ⟨y, A z⟩, and both are bounded term by term. ``left`` is the sum of what c − Aᵀy has where ``lower`` or
        ``upper`` is infinite.
        """
        # A price needs a finite side.
        prices = np.where(prices > 0.0, np.where(np.isfinite(self.least), prices, 0.0), prices)
        prices = np.where(prices < 0.0, np.where(np.isfinite(self.most), prices, 0.0), prices)
        priced = prices != 0.0
        by_rows = prices[priced] * np.where(prices > 0.0, self.least, self.most)[priced]
        reduced = c - self.rows.T @ prices
        doubt = raised((len(prices) + 4) * UNIT * (np.abs(c) + abs(self.rows).T @ np.abs(prices)), 4)
        side = np.where(reduced > 0.0, lower, upper)
        known, size = np.isfinite(side), np.maximum(np.abs(lower), np.abs(upper))
        bounded = np.isfinite(size)
        terms = np.concatenate([by_rows, (reduced * side)[known]])
        margin = raised(UNIT * 4.0 * np.abs(terms).sum() + (doubt * size)[bounded].sum(), terms.size + 8)
        value = sum_floor(np.concatenate([np.nextafter(terms, -math.inf), [-margin]]))
        return value, float(raised(np.abs(reduced)[~known].sum() + doubt[~bounded].sum(), self.rows.shape[1] + 2))

    def doubt(self, c: np.ndarray, point: np.ndarray, prices: np.ndarray) -> float:
        """Return by how much a point violates the rows, or its value exceeds what the prices prove."""
        values = self.rows @ point
        violation = float(np.maximum(self.least - values, values - self.most).max(initial=0.0))
        size = max(float(np.abs(point).max()), 1.0)
        floor, left = self.floor(c, prices, self.lower, self.upper)
        return max(violation, float(c @ point) - floor - left * size) / size


def unit_vector(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return x divided by its largest entry, and that."""
    size = float(np.abs(x).max())
    return (x / size if size > 0.0 else x), size


def checked_rows(matrix: Any, side: Any, name: str) -> tuple[Any, np.ndarray]:
    """Return checked rows and right-hand sides."""
    if matrix is None or side is None:
        if matrix is not side:
            given, missing = ("A", "b") if side is None else ("b", "A")
            raise ValueError(f"`{given}_{name}` is given without `{missing}_{name}`; both or none are needed")
        return None, np.empty(0)
    rows = matrix if scipy.sparse.issparse(matrix) else checks.numbers(matrix, f"A_{name}")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"`A_{name}` must be a matrix with one column per variable, got an array of shape {rows.shape}")
    rows = scipy.sparse.csr_array(rows, dtype=np.float64)
    checks.finite(rows.data, f"A_{name}")
    if rows.shape[0] == 0 and np.size(side) == 0:
        return rows, np.empty(0)
    return rows, checks.vector(side, f"b_{name}", rows.shape[0])


def power_of_two(sizes: np.ndarray) -> np.ndarray:
    """Return the powers of two next to some sizes, as far as they and their reciprocals are numbers."""
    return np.ldexp(1.0, np.clip(np.frexp(sizes)[1], -1000, 1000))


def first_units(rows: Any, most: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return units for variables without bounds: with them a row's term of such a variable is as large as its others."""
    units = np.ones(known.size)
    size = np.abs(most)[:, None] + abs(rows) @ known[:, None]
    pattern = abs(rows).tocoo()
    for i, j, value in zip(pattern.row, pattern.col, pattern.data, strict=True):
        if value > 0.0 and size[i, 0] > 0.0:
            units[j] = max(units[j] if units[j] != 1.0 else 0.0, size[i, 0] / value)
    return power_of_two(units)


def common_dimension(upper_rows: Any, equal_rows: Any, bounds: Any) -> int:
    """Return the number of variables, on which all that is given must agree."""
    found = [(name, rows.shape[1]) for name, rows in (("A_ub", upper_rows), ("A_eq", equal_rows)) if rows is not None]
    if bounds is not None:
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise ValueError(f"`bounds` must be a pair (lower, upper), got {checks.shown(bounds)}")
        sides = [np.empty(()) if side is None else checks.numbers(side, "bounds") for side in bounds]
        found += [(f"bounds[{k}]", side.size) for k, side in enumerate(sides) if side.ndim > 0]
    if not found:
        raise ValueError("the dimension is unknown: `A_ub`, `A_eq` or a vector in `bounds` must fix it")
    if len({size for _, size in found}) > 1:
        sizes = ", ".join(f"`{name}` has {size}" for name, size in found)
        raise ValueError(f"the number of variables must agree, but {sizes}")
    return found[0][1]


def checked_bounds(bounds: Any, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds as two vectors."""
    sides = []
    for side, nothing in zip((None, None) if bounds is None else bounds, (-np.inf, np.inf), strict=True):
        array = checks.numbers(nothing if side is None else side, "bounds")
        sides.append(np.array(np.broadcast_to(array, dimension), dtype=np.float64))
    lower, upper = sides
    bad = ~((lower <= upper) & (lower < np.inf) & (upper > -np.inf))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"`bounds` must have lower ≤ upper everywhere, got ({lower[k]}, {upper[k]}) for variable {k}")
    return lower, upper


@functools.cache
def highs() -> Any:
    """HiGHS, imported when the first polytope is made: it takes a third of a second."""
    try:
        import highspy
    except ImportError:
        raise ImportError("a Polytope needs the HiGHS solver: pip install 'tiebreak[polytope]'") from None
    return highspy


def solved(solver: Any) -> Any:
    """Run HiGHS from where it is; where it is in doubt from nothing, then by its other simplex method; return its status."""
    status = highs().HighsModelStatus
    solver.run()
    for strategy in (DUAL_SIMPLEX, PRIMAL_SIMPLEX):
        if solver.getModelStatus() in (status.kOptimal, status.kInfeasible, status.kUnbounded):
            break
        solver.clearSolver()
        solver.setOptionValue("simplex_strategy", strategy)
        solver.run()
    solver.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
    return solver.getModelStatus()
