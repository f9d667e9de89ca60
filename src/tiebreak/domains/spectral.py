"""Sets of matrices defined by their singular values or eigenvalues: the nuclear-norm ball and the spectrahedron.

An atom is an outer product of one pair of vectors. LAPACK finds it for up to some hundred rows, as fast as anything
else, and ``lanczos.py`` for more. What either finds is no proof: :func:`least_value` has its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains.base import (
    Domain,
    contains,
    diameter,
    least_value,
    lmo,
    project,
    settle,
    spread,
    spread_by_signs,
    unsettled,
)
from tiebreak.domains.cuts.search import next_atom
from tiebreak.domains.lanczos import Gram, Negative, begin, subtract, top_vector
from tiebreak.domains.rounding import (
    eigenvalue_floor,
    gauge_rounding,
    least_or_nothing,
    norm_ceiling,
    quiet,
    raised,
    settle_by_gauge,
    singular_value_ceiling,
)
from tiebreak.engine import checks, kernel
from tiebreak.engine.rounding import SUBNORMAL, UNIT
from tiebreak.engine.vectors import abs_argmax, copy, dot, fill

DENSE = 200  # rows (of the smaller side) up to which a full decomposition takes no longer


class _NuclearBall(NamedTuple):
    rows: int
    columns: int
    radius: float


class NuclearBall(_NuclearBall, Domain):
    """The matrices whose singular values sum to at most ``radius``; its atoms have rank one.

    A point is a vector that holds the matrix row by row; :meth:`parts` shows it as the matrix.

    Parameters
    ----------
    shape : (int, int)
    radius : float, positive

    Examples
    --------
    >>> NuclearBall((2, 2), 3.0).lmo([0.0, 2.0, -1.0, 0.0]).round(9) + 0.0
    array([ 0., -3.,  0.,  0.])
    """

    __slots__ = ()

    def __new__(cls, shape: Any, radius: Any) -> NuclearBall:
        return super().__new__(cls, *checks.matrix_shape(shape), checks.real(radius, "radius", above=0.0))

    @property
    def dimension(self) -> int:
        return self.rows * self.columns

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": x.reshape(self.rows, self.columns)}

    def middle(self, dimension: int) -> np.ndarray:
        return np.zeros(dimension)


class _Spectrahedron(NamedTuple):
    rows: int
    trace: float


class Spectrahedron(_Spectrahedron, Domain):
    """The symmetric positive semidefinite matrices of a given trace; its atoms have rank one.

    Its diameter is √2 · trace; for one row, where the set is a point, that is an upper bound.
    A point is a vector that holds the matrix row by row; :meth:`parts` shows it as the matrix.

    Parameters
    ----------
    rows : int
        Number of rows and of columns.
    trace : float, positive

    Examples
    --------
    >>> Spectrahedron(2).lmo([1.0, 0.0, 0.0, -1.0]).round(9) + 0.0
    array([0., 0., 0., 1.])
    """

    __slots__ = ()

    def __new__(cls, rows: Any, trace: Any = 1.0) -> Spectrahedron:
        return super().__new__(cls, checks.whole(rows, "rows"), checks.real(trace, "trace", above=0.0))

    @property
    def dimension(self) -> int:
        return self.rows * self.rows

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": x.reshape(self.rows, self.rows)}

    def middle(self, dimension: int) -> np.ndarray:
        return (np.eye(self.rows) * (self.trace / self.rows)).ravel()


@lmo.register(NuclearBall)
def lmo_nuclear_ball(domain, c, out):
    top_pair(domain, c, False, out)


@next_atom.register(NuclearBall)
def next_atom_nuclear_ball(domain, c, a, out):
    top_pair(domain, c, True, out)


@lmo.register(Spectrahedron)
def lmo_spectrahedron(domain, c, out):
    least_pair(domain, c, False, out)


@next_atom.register(Spectrahedron)
def next_atom_spectrahedron(domain, c, a, out):
    least_pair(domain, c, True, out)


@kernel(inline=False)
def top_pair(domain, c, warm, out):
    """Set out to −radius u vᵀ for the top singular pair of c; ``warm`` if out holds an atom to start from."""
    size = abs(c[abs_argmax(c)])
    if size == 0.0:
        fill(out, 0.0)
        return
    matrix = c.reshape(domain.rows, domain.columns) / size
    tall = domain.rows > domain.columns
    if tall:
        matrix = matrix.T.copy()
    u = np.empty(matrix.shape[0])
    if u.size <= DENSE:
        _, vectors = np.linalg.eigh(np.dot(matrix, matrix.T))
        for i in range(u.size):
            u[i] = vectors[i, u.size - 1]
    else:
        begin(c, warm, out, domain.columns, tall, u)
        top_vector(Gram(matrix, np.empty(matrix.shape[1])), u)
    v = np.zeros(matrix.shape[1])
    for i in range(u.size):
        subtract(-u[i], matrix[i], v)
    norm = math.sqrt(dot(v, v))
    factor = -domain.radius / norm if norm > 0.0 else 0.0
    if tall:
        fill_outer(factor, v, u, out)
    else:
        fill_outer(factor, u, v, out)


@kernel(inline=False)
def least_pair(domain, c, warm, out):
    """Set out to trace · v vᵀ for the eigenvector v of the smallest eigenvalue of (c + cᵀ)/2; ``warm`` as above."""
    size = abs(c[abs_argmax(c)])
    v = np.empty(domain.rows)
    if domain.rows <= DENSE:
        _, vectors = np.linalg.eigh(symmetric_part(c / (size if size > 0.0 else 1.0), domain.rows))
        for i in range(v.size):
            v[i] = vectors[i, 0]
    else:
        begin(c, warm, out, domain.rows, True, v)
        top_vector(Negative(c.reshape(domain.rows, domain.rows), size if size > 0.0 else 1.0), v)
    fill_outer(domain.trace, v, v, out)


@kernel
def fill_outer(factor, u, v, out):
    """Set out ← factor · u vᵀ, row by row."""
    for i in range(u.size):
        for j in range(v.size):
            out[i * v.size + j] = factor * (u[i] * v[j])


# Off the loops of the conditional-gradient methods a full decomposition is affordable.


@project.register(NuclearBall)
def project_nuclear_ball(domain, x, out):
    left, values, right = np.linalg.svd(x.reshape(domain.rows, domain.columns), False)
    if values.sum() <= domain.radius:
        copy(x, out)
        return
    level = cutoff(values, domain.radius)
    fill_product(left, values, level, right, out)


@project.register(Spectrahedron)
def project_spectrahedron(domain, x, out):
    values, vectors = np.linalg.eigh(symmetric_part(x, domain.rows))
    values = values[::-1].copy()
    vectors = vectors[:, ::-1].copy()
    fill_product(vectors, values, cutoff(values, domain.trace), vectors.T.copy(), out)


@kernel
def cutoff(values, total):
    """Return the level such that the parts of falling values above it sum to the total (Held, Wolfe and Crowder 1974)."""
    excess, level = -total, 0.0
    for k in range(values.size):
        excess += values[k]
        if k == 0 or values[k] > excess / (k + 1):
            level = excess / (k + 1)
        else:
            break
    return level


@kernel
def fill_product(left, values, level, right, out):
    """Set out to the matrix left · max(values − level, 0) · right, row by row."""
    fill(out, 0.0)
    columns = right.shape[1]
    for k in range(values.size):
        weight = values[k] - level
        if weight > 0.0:
            for i in range(left.shape[0]):
                for j in range(columns):
                    out[i * columns + j] += weight * (left[i, k] * right[k, j])


@kernel
def symmetric_part(x, n):
    """Return (X + Xᵀ)/2 for the n × n matrix X stored in x."""
    matrix = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = 0.5 * x[i * n + j] + 0.5 * x[j * n + i]
    return matrix


@diameter.register(NuclearBall)
def diameter_nuclear_ball(domain):
    return 2.0 * domain.radius


@diameter.register(Spectrahedron)
def diameter_spectrahedron(domain):
    return math.sqrt(2.0) * domain.trace


@contains.register(NuclearBall)
@kernel
def contains_nuclear_ball(domain, x, tol):
    _, values, _ = np.linalg.svd(x.reshape(domain.rows, domain.columns), False)
    return values.sum() <= domain.radius * (1.0 + tol)


@contains.register(Spectrahedron)
@kernel
def contains_spectrahedron(domain, x, tol):
    n, room = domain.rows, tol * domain.trace
    total = 0.0
    for i in range(n):
        total += x[i * n + i]
        for j in range(i):
            if abs(x[i * n + j] - x[j * n + i]) > room:
                return False
    values, _ = np.linalg.eigh(symmetric_part(x, n))
    return abs(total - domain.trace) <= room and values[0] >= -room


# Proofs, by factorisations that exist whatever an iteration has found


@least_value.register(NuclearBall)
@quiet
def least_value_nuclear_ball(domain: NuclearBall, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(-raised(domain.radius * singular_value_ceiling(c.reshape(domain.rows, domain.columns)), 1))


@least_value.register(Spectrahedron)
@quiet
def least_value_spectrahedron(domain: Spectrahedron, c: np.ndarray, atom: np.ndarray) -> float:
    matrix = c.reshape(domain.rows, domain.rows)
    half = 0.5 * matrix + 0.5 * matrix.T  # halves are exact, and their sum is rounded, entry by entry
    rounding = raised(UNIT * norm_ceiling(half.ravel()), 1) + 2 * domain.rows * SUBNORMAL
    least = eigenvalue_floor(half) - rounding
    return least_or_nothing(math.nextafter(math.nextafter(least, -math.inf) * domain.trace, -math.inf))


spread.register(NuclearBall)(spread_by_signs)
spread.register(Spectrahedron)(spread_by_signs)


@settle.register(NuclearBall)
@quiet
def settle_nuclear_ball(domain: NuclearBall, x: np.ndarray, off: np.ndarray) -> bool:
    size = float(np.abs(x).max())
    if size == 0.0:
        off.fill(0.0)
        return True
    gauge = nuclear_ceiling(x.reshape(domain.rows, domain.columns) / size) * size / domain.radius
    least = min(domain.rows, domain.columns)
    return settle_by_gauge(x, 0.0, gauge, 8.0 * least * gauge_rounding(x.size, domain.radius), off)


def nuclear_ceiling(matrix: np.ndarray) -> float:
    """Return a number that is at least the sum of the singular values of a matrix with entries up to 1.

    Whatever U, s and V are, M = U s V + E has at most the sum of s times ‖U‖ ‖V‖, and √k ‖E‖ for what is left.
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    k, unit = values.size, 4.0 * (max(matrix.shape) + 8) * UNIT
    across = np.abs(left) @ (values[:, None] * np.abs(right))
    rest = float(np.linalg.norm(np.abs(matrix - left @ (values[:, None] * right)) + unit * (np.abs(matrix) + across)))
    norms = 1.0
    for basis in (left.T, right):
        defect = float(np.linalg.norm(np.abs(basis @ basis.T - np.eye(k)) + unit * (np.abs(basis) @ np.abs(basis).T)))
        norms *= math.sqrt(1.0 + raised(defect, k * k))
    return raised(float(values.sum()) * norms + math.sqrt(k) * rest, matrix.size + k + 8)


@settle.register(Spectrahedron)
@quiet
def settle_spectrahedron(domain: Spectrahedron, x: np.ndarray, off: np.ndarray) -> bool:
    n, trace = domain.rows, domain.trace
    if trace < 1e-290:
        return unsettled(off)
    X = x.reshape(n, n)
    room = 32.0 * (n + 8) ** 2 * UNIT * trace  # what rounding and its proof come to
    shift, doubt = defects(X, trace)
    if shift > room or doubt > room or np.abs(X - X.T).max() > room:
        X[:] = 0.5 * X + 0.5 * X.T
        X[np.diag_indices(n)] += max(-float(np.linalg.eigvalsh(X)[0]), 0.0)
        X *= trace / float(np.trace(X))
        shift, doubt = defects(X, trace)
    # z = (S + shift · I) · trace / (trace S + n · shift) for S = (X + Xᵀ)/2.
    change = raised(doubt + n * shift, 2) / trace
    if not change < 0.5:
        return unsettled(off)
    distance = raised(np.abs(X - X.T), 1) + 4.0 * UNIT * np.abs(X)
    moved = np.abs(X) + distance
    moved[np.diag_indices(n)] += shift
    distance += raised(moved * (change / (1.0 - change)), 4)
    distance[np.diag_indices(n)] += shift
    off[:] = raised(distance, 8).ravel()
    return True


def defects(matrix: np.ndarray, trace: float) -> tuple[float, float]:
    """Return by how much the least eigenvalue may be below zero, and by how much the trace may be wrong."""
    n = matrix.shape[0]
    half = 0.5 * matrix + 0.5 * matrix.T
    below = max(-eigenvalue_floor(half), 0.0) + raised(UNIT * norm_ceiling(half.ravel()), 1) + 2 * n * SUBNORMAL
    diagonal = np.diagonal(matrix)
    doubt = abs(float(diagonal.sum()) - trace) + (n + 8) * 2.0 * UNIT * (float(np.abs(diagonal).sum()) + trace)
    return raised(below, 4), raised(doubt, 4)
