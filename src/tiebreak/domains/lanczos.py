"""The eigenvector of the largest eigenvalue of a symmetric operator, by products with it alone.

This is the Lanczos iteration with full reorthogonalisation (Golub and Van Loan, Matrix Computations, chapter 10). It knows
only the directions that its start has a part in. If the space that it spans is invariant, it continues with a new vector
orthogonal to that space. Its start depends on the matrix, so that no matrix made of earlier atoms hides a direction from it.
Still, what it finds is no proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import abs_argmax, copy, dot, fill, magnitude, scale

BASIS = 300  # vectors kept at most, before Lanczos begins again with the best of them
RESTARTS = 20  # restarts at most
RESIDUAL = 1e-13  # residual of a good eigenpair, relative to the largest eigenvalue; it bounds the error of the value
CLOSED = 1e-15  # relative size of what is left of a vector across the basis, at which the space is invariant
STIR = 0.01  # share of a random vector in a start from the last answer, which may lack the next one's direction
EARLY = 12  # steps before which an answer may be that of an invariant space with a bit of rounding
AGAIN = 3  # new vectors at most across an invariant space; one has a part in all directions left


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
def apply_gram(operator, x, out):
    fill(operator.work, 0.0)
    for i in range(x.size):
        subtract(-x[i], operator.matrix[i], operator.work)
    for i in range(x.size):
        out[i] = dot(operator.matrix[i], operator.work)


@apply.register(Negative)
def apply_negative(operator, x, out):
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
        closed = beside[k] <= CLOSED * size  # the space is invariant
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
