"""Sets of matrices defined by their singular values or eigenvalues: the nuclear-norm ball and the spectrahedron.

An atom is an outer product of one pair of vectors. Up to some hundred rows LAPACK finds it, in no more time than anything
else; beyond, the Lanczos iteration with full reorthogonalisation (Golub and Van Loan, Matrix Computations, chapter 10), by
products with the matrix alone.

Lanczos knows only the directions that its start has a part in. If the space that it spans is invariant, it goes on with a
new vector across that space; and where it starts depends on the matrix, so that no matrix made of earlier atoms hides a
direction from it. What it finds still is no proof: :func:`least_value` has its own.
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
from tiebreak.domains.products import matrix_shape
from tiebreak.domains.rounding import (
    SUBNORMAL,
    UNIT,
    eigenvalue_floor,
    gauge_rounding,
    least_or_nothing,
    norm_ceiling,
    quiet,
    raised,
    settle_by_gauge,
    singular_value_ceiling,
)
from tiebreak.engine import checks, generic, kernel
from tiebreak.engine.vectors import abs_argmax, copy, dot, fill, magnitude, scale

DENSE = 200  # rows (of the smaller side) up to which a full decomposition takes no longer
BASIS = 300  # vectors kept at most, then Lanczos begins again with the best of them
RESTARTS = 20
RESIDUAL = 1e-13  # of an eigenpair, relative to the largest eigenvalue: a bound on the error of the value
ROUNDING = 1e-15
STIR = 0.01  # share of a random vector in a start from the last answer, which may lack the next one's direction
EARLY = 12  # steps: an answer that comes sooner may be that of an invariant space with a bit of rounding
AGAIN = 3  # times at most a new vector is taken across an invariant space: one has a part in all directions left


class _NuclearBall(NamedTuple):
    rows: int
    columns: int
    radius: float


class NuclearBall(Domain, _NuclearBall):
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
        return super().__new__(cls, *matrix_shape(shape), checks.real(radius, "radius", above=0.0))

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return self.rows * self.columns

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": x.reshape(self.rows, self.columns)}

    def middle(self, dimension: int) -> np.ndarray:
        return np.zeros(dimension)


class _Spectrahedron(NamedTuple):
    n: int
    trace: float


class Spectrahedron(Domain, _Spectrahedron):
    """The symmetric positive semidefinite n × n matrices of a given trace; its atoms have rank one.

    Its diameter is √2 · trace; for n = 1, where the set is a point, that is an upper bound.
    A point is a vector that holds the matrix row by row; :meth:`parts` shows it as the matrix.

    Parameters
    ----------
    n : int
    trace : float, positive

    Examples
    --------
    >>> Spectrahedron(2).lmo([1.0, 0.0, 0.0, -1.0]).round(9) + 0.0
    array([0., 0., 0., 1.])
    """

    __slots__ = ()

    def __new__(cls, n: Any, trace: Any = 1.0) -> Spectrahedron:
        return super().__new__(cls, checks.whole(n, "n"), checks.real(trace, "trace", above=0.0))

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return self.n * self.n

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": x.reshape(self.n, self.n)}

    def middle(self, dimension: int) -> np.ndarray:
        return (np.eye(self.n) * (self.trace / self.n)).ravel()


@lmo.register(NuclearBall)
def _(domain, c, out):
    top_pair(domain, c, False, out)


@next_atom.register(NuclearBall)
def _(domain, c, a, out):
    top_pair(domain, c, True, out)


@lmo.register(Spectrahedron)
def _(domain, c, out):
    least_pair(domain, c, False, out)


@next_atom.register(Spectrahedron)
def _(domain, c, a, out):
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
    v = np.empty(domain.n)
    if domain.n <= DENSE:
        _, vectors = np.linalg.eigh(symmetric_part(c / (size if size > 0.0 else 1.0), domain.n))
        for i in range(v.size):
            v[i] = vectors[i, 0]
    else:
        begin(c, warm, out, domain.n, True, v)
        top_vector(Negative(c.reshape(domain.n, domain.n), size if size > 0.0 else 1.0), v)
    fill_outer(domain.trace, v, v, out)


@kernel
def fill_outer(factor, u, v, out):
    """Set out ← factor · u vᵀ, row by row."""
    for i in range(u.size):
        for j in range(v.size):
            out[i * v.size + j] = factor * (u[i] * v[j])


@kernel
def stir(v, share, seed):
    """Set v to share · v plus a pseudo-random vector (Park and Miller's generator), of norm one."""
    state = 1 + seed % 2_147_483_646
    for _ in range(3):  # seeds next to each other begin alike
        state = state * 48_271 % 2_147_483_647
    for i in range(v.size):
        state = state * 48_271 % 2_147_483_647
        v[i] = (share * v[i] if share > 0.0 else 0.0) + (state / 2_147_483_647.0 - 0.5)
    scale(1.0 / math.sqrt(dot(v, v)), v)


@kernel
def begin(c, warm, atom, columns, along_rows, v):
    """Set v to where Lanczos begins: a random vector that depends on c, with most of the last atom if there is one."""
    share = 0.0
    if warm:
        i = abs_argmax(atom)
        largest = abs(atom[i])
        for j in range(v.size):
            entry = atom[i // columns * columns + j] if along_rows else atom[j * columns + i % columns]
            v[j] = entry / largest if largest > 0.0 else 0.0
        share = math.sqrt(v.size) / STIR
    stir(v, share, seed_of(c))


@kernel
def seed_of(x):
    """Return a whole number ≥ 0 that depends on all bits of x."""
    seed = 0
    for i in range(x.size):
        bits = magnitude(x[i])
        seed = (31 * seed + (bits >> 31) + (bits & 0x7FFF_FFFF)) % 2_147_483_647
    return seed


class Gram(NamedTuple):
    """The operator x → MMᵀ x."""

    matrix: np.ndarray
    work: np.ndarray  # room for Mᵀx


class Negative(NamedTuple):
    """The operator x → −(M + Mᵀ) x / 2 for M = matrix / size."""

    matrix: np.ndarray
    size: float


@generic
def apply(operator, x, out):
    """Set out to the operator's value at x."""


@apply.register(Gram)
def _(operator, x, out):
    fill(operator.work, 0.0)
    for i in range(x.size):
        subtract(-x[i], operator.matrix[i], operator.work)
    for i in range(x.size):
        out[i] = dot(operator.matrix[i], operator.work)


@apply.register(Negative)
def _(operator, x, out):
    fill(out, 0.0)
    for i in range(x.size):
        row = operator.matrix[i]
        half = 0.5 * x[i]
        for j in range(out.size):
            out[j] -= half * (row[j] / operator.size)
        out[i] -= 0.5 * (dot(row, x) / operator.size)


@kernel(inline=False)
def top_vector(operator, v):
    """Set v, a unit vector to start from, to an eigenvector of the largest eigenvalue of a symmetric operator."""
    steps = min(v.size, BASIS)
    basis = np.empty((steps, v.size))
    diagonal, beside = np.empty(steps), np.empty(steps)
    for _ in range(RESTARTS):
        if lanczos(operator, basis, diagonal, beside, v):
            break


@kernel
def lanczos(operator, basis, diagonal, beside, v):
    """Replace v by the best eigenvector in the Krylov space of v, as large as needed; return whether it is good enough."""
    steps = basis.shape[0]
    rest = np.empty(v.size)
    look, size = 1, 0.0
    since, again = 0, 0  # where the last vector across an invariant space came in, and how many did
    copy(v, basis[0])
    for k in range(steps):
        apply(operator, basis[k], rest)
        diagonal[k] = dot(rest, basis[k])
        beside[k] = remove_basis(basis, k + 1, rest)
        size = max(size, abs(diagonal[k]), beside[k])
        closed = beside[k] <= ROUNDING * size  # the space is invariant
        if k + 1 == look or k + 1 == steps or closed:
            values, vectors = np.linalg.eigh(tridiagonal(diagonal, beside, k + 1))
            residual = beside[k] * abs(vectors[k, k])
            good = closed or residual <= RESIDUAL * max(abs(values[0]), abs(values[k]))
            early = good and k - since < EARLY and again < AGAIN and k + 1 < steps
            if (good or k + 1 == steps) and not early:
                fill(v, 0.0)
                for j in range(k + 1):
                    subtract(-vectors[j, k], basis[j], v)
                scale(1.0 / math.sqrt(dot(v, v)), v)
                return good or steps == v.size
            if early:
                again += 1
                since = k + 1
                stir(rest, 0.0, 1_000_003 * again + k)
                remove_basis(basis, k + 1, rest)
                scale(1.0 / math.sqrt(dot(rest, rest)), rest)
                remove_basis(basis, k + 1, rest)
                beside[k] = 0.0
            if k + 1 >= look:
                look += max(1, look // 4)
        norm = math.sqrt(dot(rest, rest))
        for i in range(v.size):
            basis[k + 1, i] = rest[i] / norm
    return True


@kernel
def remove_basis(basis, count, rest):
    """Remove from a vector what it has in the directions of a basis, and return the norm of what is left."""
    for _ in range(2):  # once leaves what rounding lost, twice is enough
        for j in range(count):
            subtract(dot(basis[j], rest), basis[j], rest)
    return math.sqrt(dot(rest, rest))


@kernel
def subtract(factor, x, out):
    """Set out ← out − factor · x."""
    for i in range(x.size):
        out[i] -= factor * x[i]


@kernel
def tridiagonal(diagonal, beside, k):
    """Return the symmetric k × k matrix with these numbers on and beside its diagonal."""
    matrix = np.zeros((k, k))
    for i in range(k):
        matrix[i, i] = diagonal[i]
        if i + 1 < k:
            matrix[i, i + 1] = matrix[i + 1, i] = beside[i]
    return matrix


# Off the loops of the conditional-gradient methods a full decomposition is affordable.


@project.register(NuclearBall)
def _(domain, x, out):
    left, values, right = np.linalg.svd(x.reshape(domain.rows, domain.columns), False)
    if values.sum() <= domain.radius:
        copy(x, out)
        return
    level = cutoff(values, domain.radius)
    fill_product(left, values, level, right, out)


@project.register(Spectrahedron)
def _(domain, x, out):
    values, vectors = np.linalg.eigh(symmetric_part(x, domain.n))
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
def _(domain):
    return 2.0 * domain.radius


@diameter.register(Spectrahedron)
def _(domain):
    return math.sqrt(2.0) * domain.trace


@contains.register(NuclearBall)
def _(domain, x, tol):
    _, values, _ = np.linalg.svd(x.reshape(domain.rows, domain.columns), False)
    return values.sum() <= domain.radius * (1.0 + tol)


@contains.register(Spectrahedron)
def _(domain, x, tol):
    n, room = domain.n, tol * domain.trace
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
def _least_value_over_nuclear_ball(domain: NuclearBall, c: np.ndarray, atom: np.ndarray) -> float:
    return least_or_nothing(-raised(domain.radius * singular_value_ceiling(c.reshape(domain.rows, domain.columns)), 1))


@least_value.register(Spectrahedron)
@quiet
def _least_value_over_spectrahedron(domain: Spectrahedron, c: np.ndarray, atom: np.ndarray) -> float:
    matrix = c.reshape(domain.n, domain.n)
    half = 0.5 * matrix + 0.5 * matrix.T  # halves are exact, and their sum is rounded, entry by entry
    rounding = raised(UNIT * norm_ceiling(half.ravel()), 1) + 2 * domain.n * SUBNORMAL
    least = eigenvalue_floor(half) - rounding
    return least_or_nothing(math.nextafter(math.nextafter(least, -math.inf) * domain.trace, -math.inf))


spread.register(NuclearBall)(spread_by_signs)
spread.register(Spectrahedron)(spread_by_signs)


@settle.register(NuclearBall)
@quiet
def _settle_in_nuclear_ball(domain: NuclearBall, x: np.ndarray, off: np.ndarray) -> bool:
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
def _settle_in_spectrahedron(domain: Spectrahedron, x: np.ndarray, off: np.ndarray) -> bool:
    n, trace = domain.n, domain.trace
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
