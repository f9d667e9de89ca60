"""Data matrices, dense and sparse, as the losses see them: one row at a time."""

from __future__ import annotations

import math
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.linalg import eigvalsh_tridiagonal
from scipy.optimize import brentq

from tiebreak.engine import checks, generic, kernel
from tiebreak.objectives.passes import over_blocks

EXACT_SIDE, EXACT_PRODUCTS = 400, 1e8  # of Gram matrices whose largest eigenvalue is cheaper than ten passes
BLOCK_NUMBERS = 1 << 19  # of data that are turned into float64 at once
HURRIED_STEPS = 2  # that are made even if there is no time
LANCZOS_STEPS = 9  # each a pass over the data; another one finds the trace
FAILURE = 0.01  # the probability that a bound of the largest curvature is too small, and then by little
CLOSED = 1e-13  # relative to the largest Ritz value: what rounding leaves of nothing
SAMPLED = 512  # numbers per array by which changed data are noticed


class Dense(NamedTuple):
    """A matrix stored row by row."""

    array: np.ndarray  # (n, d), C order

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape

    @property
    def longest_row(self) -> int:
        return self.array.shape[1]

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        return self.array.size

    @property
    def largest(self) -> float:
        return float(max(self.array.max(), -self.array.min()))

    @property
    def row_norms(self) -> np.ndarray:
        return np.linalg.norm(self.array, axis=1)


class CSR(NamedTuple):
    """A matrix of which only the non-zeros are stored, row by row."""

    data: np.ndarray  # (nnz,)
    columns: np.ndarray  # (nnz,)
    starts: np.ndarray  # (n + 1,): row i is data[starts[i]:starts[i + 1]]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.starts.size - 1, self.n_columns

    @property
    def longest_row(self) -> int:
        return int(np.diff(self.starts).max())

    def to_scipy(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array((self.data, self.columns, self.starts), shape=self.shape)

    def scaled(self, factors: np.ndarray) -> scipy.sparse.csr_array:
        """Return the matrix with row i multiplied by factors[i], in float64."""
        data = self.data * np.repeat(factors, np.diff(self.starts))
        return scipy.sparse.csr_array((data, self.columns, self.starts), shape=self.shape)

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        return self.data.size

    @property
    def largest(self) -> float:
        return float(max(self.data.max(initial=0.0), -self.data.min(initial=0.0)))

    @property
    def row_norms(self) -> np.ndarray:
        return scipy.sparse.linalg.norm(self.to_scipy(), axis=1)


def as_matrix(value: Any, name: str) -> Dense | CSR:
    """Return a validated matrix. Float arrays in C order are not copied, and float32 stays float32."""
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


def gram(matrix: Dense | CSR, weights: np.ndarray) -> np.ndarray:
    """Return Aᵀ diag(weights) A in one pass over A, in float64."""
    roots = np.sqrt(weights)
    if isinstance(matrix, CSR):
        scaled = matrix.scaled(roots)
        return (scaled.T @ scaled).toarray()
    n, d = matrix.shape
    total, rows = np.zeros((d, d)), max(1, BLOCK_NUMBERS // d)
    for low in range(0, n, rows):
        block = roots[low : low + rows, None] * matrix.array[low : low + rows]
        total += block.T @ block
    return total


def _smaller_gram(matrix: Dense | CSR, weights: np.ndarray, unit: float) -> np.ndarray:
    """Return the smaller one of Aᵀ W² A and W A Aᵀ W, which share their largest eigenvalue, with W = diag(√weights) / unit.

    Its upper triangle may be missing. It is compiled: the threads of a library would wait for each other on a busy machine
    longer than so small a matrix takes.
    """
    roots = np.sqrt(weights)
    n, d = matrix.shape
    if isinstance(matrix, CSR):
        scaled = matrix.scaled(roots / unit)
        return (scaled.T @ scaled if d <= n else scaled @ scaled.T).toarray()
    array = matrix.array if unit == 1.0 else matrix.array / unit
    if d > n:
        out = np.zeros((n, n))
        multiply_rows(array, roots, out)
        return out

    def run(low: int, high: int) -> np.ndarray:
        out = np.zeros((d, d))
        add_outer_products(array, roots, low, high, out)
        return out

    return np.add.reduce(over_blocks(n, matrix.numbers, run))


def largest_curvature(
    matrix: Dense | CSR, weights: np.ndarray, hurry: Callable[[], bool] = lambda: False
) -> tuple[float, int]:
    """Return λ_max(Aᵀ diag(weights) A), or a number slightly above it, and the passes over A that it took: at most ten.

    Where a Gram matrix is cheap its largest eigenvalue is exact. Else it is bounded by :func:`lanczos_bound`.
    """
    n, d = matrix.shape
    side = min(n, d)
    if side <= EXACT_SIDE and matrix.numbers * side <= EXACT_PRODUCTS:
        with np.errstate(over="ignore", invalid="ignore"):
            found, unit = _smaller_gram(matrix, weights, 1.0), 1.0
        if not 1e-300 < np.trace(found) < math.inf:  # squares overflow or vanish
            unit = matrix.largest or 1.0
            found = _smaller_gram(matrix, weights, unit)
        return float(max(np.linalg.eigvalsh(found)[-1], 0.0)) * unit * unit, 1
    trace, unit = math.fsum(over_blocks(n, matrix.numbers, partial(squares, matrix, weights, 1.0))), 1.0
    if not 1e-100 < trace < 1e100:  # squares of products overflow or vanish
        unit = matrix.largest or 1.0
        trace = math.fsum(over_blocks(n, matrix.numbers, partial(squares, matrix, weights, unit)))

    def product(x: np.ndarray) -> np.ndarray:
        def run(low: int, high: int) -> np.ndarray:
            out = np.zeros(d)
            add_products(matrix, weights, low, high, x / unit, out)
            return out

        return np.add.reduce(over_blocks(n, matrix.numbers, run)) / unit

    value, steps = lanczos_bound(product, d, trace, hurry) if trace > 0.0 else (0.0, 0)
    return value * unit * unit, 1 + steps


def lanczos_bound(
    product: Callable[[np.ndarray], np.ndarray], d: int, trace: float, hurry: Callable[[], bool] = lambda: False
) -> tuple[float, int]:
    """Return a bound of the largest eigenvalue of a positive semidefinite matrix H, and how many products it took.

    After k steps of Lanczos' recursion from a random unit vector v the next vector is p(H) v, with p(s) = Π (s − θ_i) /
    Π β_i for the Ritz values θ and the off-diagonal entries β. It has length 1, so that |γ p(λ)| ≤ 1 for the component γ of
    v along the eigenvector of the largest eigenvalue λ. But for a probability ε, |γ| ≥ ε √(π / 2d): then λ is at most the
    number right of all θ at which p reaches √(2d / π) / ε. (Van Dorsselaer, Hochstenbach and van der Vorst, Numerische
    Mathematik 2000.)

    Parameters
    ----------
    product : callable
        Returns H x.
    d : int
        The side of H.
    trace : float
        That of H, which is a bound as well.
    hurry : callable
        Whether few steps must do, whose bound is larger.
    """
    basis = np.empty((min(LANCZOS_STEPS, d) + 1, d))
    start = np.random.default_rng(0).standard_normal(d)  # fixed: the result must not depend on a hidden state
    basis[0] = start / np.linalg.norm(start)
    diagonal: list[float] = []
    beside: list[float] = []
    for k in range(len(basis) - 1):
        image = product(basis[k])
        diagonal.append(float(basis[k] @ image))
        for _ in range(2):  # once leaves what rounding makes of it
            image -= (basis[: k + 1] @ image) @ basis[: k + 1]
        ritz = eigvalsh_tridiagonal(diagonal, beside) if beside else np.array(diagonal)
        length = float(np.linalg.norm(image))
        if length <= CLOSED * ritz[-1]:  # all that H makes of v is known
            return min(float(max(ritz[-1], 0.0)), trace), k + 1
        beside.append(length)
        basis[k + 1] = image / length
        if k + 1 >= HURRIED_STEPS and hurry():
            break
    goal = math.log(math.sqrt(2.0 * d / math.pi) / FAILURE) + float(np.log(beside).sum())

    def excess(t: float) -> float:
        return float(np.log(t - ritz).sum()) - goal

    low = float(np.nextafter(ritz[-1], math.inf))
    if trace <= low or excess(trace) <= 0.0:
        return trace, len(diagonal)
    return float(brentq(excess, low, trace, rtol=1e-9)) if excess(low) < 0.0 else low, len(diagonal)


class Bill:
    """What the constants of objectives cost one run: each is charged once, however often it is asked for.

    Attributes
    ----------
    hurry : callable
        Whether there is no more time for constants. What is found then is known to this run alone: no other one may depend
        on its clock.
    hurried : dict
        What was found so.
    """

    def __init__(self, hurry: Callable[[], bool] = lambda: False) -> None:
        self.hurry, self.hurried = hurry, dict[Any, Any]()
        self._charged: set[Any] = set()
        self._open: list[tuple[Any, int, float]] = []

    def add(self, key: Any, objective: Any, evaluations: int, seconds: float) -> None:
        """Charge gradients of an objective and the time that they took."""
        if key not in self._charged:
            self._charged.add(key)
            self._open.append((objective, evaluations, seconds))

    def settle(self) -> list[tuple[Any, int, float]]:
        """Return objectives, evaluations and seconds charged since the last time."""
        charged, self._open = self._open, []
        return charged


_bill: ContextVar[Bill | None] = ContextVar("bill", default=None)


@contextmanager
def charging(hurry: Callable[[], bool] = lambda: False) -> Iterator[Bill]:
    """Charge the constants of objectives that are asked for in this block to a bill.

    A constant that an earlier run has found is charged with its evaluations too, so that the same call has the same counts
    whatever was called before, but with no time.
    """
    bill = Bill(hurry)
    token = _bill.set(bill)
    try:
        yield bill
    finally:
        _bill.reset(token)


class _Known(NamedTuple):
    arrays: tuple[weakref.ref[np.ndarray], ...]
    seen: bytes  # some of their numbers, by which a change is noticed
    found: Any
    passes: int


_known: dict[Any, _Known] = {}


def curvature_of(objective: Any, matrix: Dense | CSR, weights: np.ndarray) -> float:
    """Return the largest curvature of the matrix of an objective, which is found once."""
    bill = _bill.get()

    def find() -> tuple[float, int]:
        return largest_curvature(matrix, weights, bill.hurry) if bill else largest_curvature(matrix, weights)

    add_products(matrix, weights, 0, 0, weights[:0], weights[:0])  # all kernels are compiled before the clock starts
    squares(matrix, weights, 1.0, 0, 0)
    if isinstance(matrix, Dense):
        add_outer_products(matrix.array, weights, 0, 0, np.zeros((0, 0)))
        multiply_rows(matrix.array[:0], weights, np.zeros((0, 0)))
    return remembered(objective, "curvature", find)


def remembered(objective: Any, what: str, find: Callable[[], tuple[Any, int]]) -> Any:
    """Return something found in passes over the data of an objective, and remember it as long as the data live.

    Data must not change while they are in use. If all of them were replaced or scaled, that is noticed; if a few numbers
    were, it is not.

    Parameters
    ----------
    objective : value
        Its arrays are the data.
    what : str
        What is found.
    find : callable
        Finds it; returns it and the number of passes that it took.
    """
    arrays = tuple(_arrays(objective))
    key = (what, type(objective), *(id(array) for array in arrays))
    seen, bill = b"".join(map(_sample, arrays)), _bill.get()
    known, elapsed = _known.get(key) or (bill.hurried.get(key) if bill else None), 0.0
    if known is None or known.seen != seen:
        began = time.perf_counter()
        found, passes = find()
        elapsed = time.perf_counter() - began
        forget = partial(_forget, key)
        known = _Known(tuple(weakref.ref(array, forget) for array in arrays), seen, found, passes)
        (bill.hurried if bill and bill.hurry() else _known)[key] = known
    if bill is not None:
        bill.add((key, seen), objective, known.passes * int(objective.n_samples), elapsed)
    return known.found


def _forget(key: Any, _: Any) -> None:
    _known.pop(key, None)


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """Yield the arrays of a value, at any depth."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)


def _sample(array: np.ndarray) -> bytes:
    flat = array.reshape(-1)
    return flat[:: max(1, flat.size // SAMPLED)].tobytes()


def _floats(value: Any, name: str) -> np.ndarray:
    array = checks.numbers(value, name)
    if array.ndim == 0:
        raise ValueError(f"`{name}` must be a non-empty matrix (samples × features), got a single number")
    kind = np.float32 if array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(np.asarray(array), dtype=kind)


@generic(reorder=True)
def row_dots(matrix, i, x, y):
    """Return ⟨row i, x⟩ and ⟨row i, y⟩."""


@generic(reorder=True)
def row_dot(matrix, i, x):
    """Return ⟨row i, x⟩."""


@generic(reorder=True)
def add_row(matrix, i, weight, out):
    """Set out ← out + weight · row i."""


@generic(reorder=True)
def row_dot_and_size(matrix, i, x, y):
    """Return ⟨row i, x⟩ and Σ_j |row_ij| y_j."""


@generic(reorder=True)
def add_row_and_size(matrix, i, weight, size, out):
    """Set out[0] ← out[0] + weight · row i and out[1] ← out[1] + size · |row i|."""


@generic(reorder=True)
def row_square(matrix, i, unit):
    """Return ‖row i / unit‖²."""


@kernel(reorder=True)
def add_products(matrix, weights, low, high, x, out):
    """Add Σ weights_i ⟨row i, x⟩ row i over the rows from low to high to ``out``: each is read once."""
    for i in range(low, high):
        add_row(matrix, i, weights[i] * row_dot(matrix, i, x), out)


@kernel(reorder=True)
def add_outer_products(array, roots, low, high, out):
    """Add Σ (roots_i row i) (roots_i row i)ᵀ over the rows from low to high to the lower triangle of ``out``."""
    for i in range(low, high):
        row = array[i]
        for j in range(row.size):
            factor = roots[i] * roots[i] * row[j]
            target = out[j]
            for k in range(j + 1):
                target[k] += factor * row[k]


@kernel(reorder=True)
def multiply_rows(array, roots, out):
    """Set the lower triangle of ``out`` to the products ⟨roots_i row i, roots_j row j⟩."""
    for i in range(array.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(array.shape[1]):
                total += float(array[i, k]) * array[j, k]
            out[i, j] = roots[i] * roots[j] * total


@kernel(reorder=True)
def squares(matrix, weights, unit, low, high):
    """Return Σ weights_i ‖row i / unit‖² over the rows from low to high."""
    total = 0.0
    for i in range(low, high):
        total += weights[i] * row_square(matrix, i, unit)
    return total


@row_dots.register(Dense)
def _(matrix, i, x, y):
    row = matrix.array[i]
    at_x = 0.0
    at_y = 0.0
    for j in range(row.size):
        at_x += row[j] * x[j]
        at_y += row[j] * y[j]
    return at_x, at_y


@row_dot.register(Dense)
def _(matrix, i, x):
    row = matrix.array[i]
    total = 0.0
    for j in range(row.size):
        total += row[j] * x[j]
    return total


@row_square.register(Dense)
def _dense_row_square(matrix, i, unit):
    row = matrix.array[i]
    total = 0.0
    for j in range(row.size):
        entry = row[j] / unit
        total += entry * entry
    return total


@add_row.register(Dense)
def _(matrix, i, weight, out):
    row = matrix.array[i]
    for j in range(row.size):
        out[j] += weight * row[j]


@row_dot_and_size.register(Dense)
def row_dot_and_size_dense(matrix, i, x, y):
    """One look at the row for both sums."""
    row = matrix.array[i]
    total = 0.0
    size = 0.0
    for j in range(row.size):
        total += row[j] * x[j]
        size += abs(row[j]) * y[j]
    return total, size


@add_row_and_size.register(Dense)
def add_row_and_size_dense(matrix, i, weight, size, out):
    """One look at the row for both sums."""
    row = matrix.array[i]
    sums, sizes = out[0], out[1]
    for j in range(row.size):
        sums[j] += weight * row[j]
        sizes[j] += size * abs(row[j])


@row_dots.register(CSR)
def _(matrix, i, x, y):
    at_x = 0.0
    at_y = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        at_x += matrix.data[k] * x[matrix.columns[k]]
        at_y += matrix.data[k] * y[matrix.columns[k]]
    return at_x, at_y


@row_dot.register(CSR)
def _(matrix, i, x):
    total = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        total += matrix.data[k] * x[matrix.columns[k]]
    return total


@row_square.register(CSR)
def _sparse_row_square(matrix, i, unit):
    total = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        entry = matrix.data[k] / unit
        total += entry * entry
    return total


@add_row.register(CSR)
def _(matrix, i, weight, out):
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        out[matrix.columns[k]] += weight * matrix.data[k]


@row_dot_and_size.register(CSR)
def row_dot_and_size_csr(matrix, i, x, y):
    """One look at the row for both sums."""
    total = 0.0
    size = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        total += matrix.data[k] * x[matrix.columns[k]]
        size += abs(matrix.data[k]) * y[matrix.columns[k]]
    return total, size


@add_row_and_size.register(CSR)
def add_row_and_size_csr(matrix, i, weight, size, out):
    """One look at the row for both sums."""
    sums, sizes = out[0], out[1]
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        sums[matrix.columns[k]] += weight * matrix.data[k]
        sizes[matrix.columns[k]] += size * abs(matrix.data[k])
