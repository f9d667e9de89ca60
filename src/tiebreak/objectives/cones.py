"""How far affine functions of x are from a cone: constraints as an objective.

By Moreau's decomposition the distance of h to −K is the norm of the projection of h onto the dual cone of K, and the
gradient of half its square is that projection. The orthant, the second-order cone and the semidefinite matrices are their
own duals.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks, generic, kernel
from tiebreak.engine.randomness import uniform_indices
from tiebreak.engine.rounding import UNDERFLOW, UNIT
from tiebreak.engine.vectors import dot, fill
from tiebreak.objectives.arithmetic import Objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.matrices import NO_TARGETS, Dense, Rows
from tiebreak.objectives.smoothness import curvature_of
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN, Survey, room_around


@generic
def project_cone(cone, point, out):
    """Set ``out`` to the projection of a point onto the dual cone of K, which for a self-dual cone is K."""


class Orthant(NamedTuple):
    """The vectors without negative entries."""


class SecondOrder(NamedTuple):
    """The vectors (t, z) with ‖z‖ ≤ t."""


class Semidefinite(NamedTuple):
    """The symmetric positive semidefinite matrices, row by row; of other matrices the symmetric part counts."""

    side: int


class _ConeDistance(NamedTuple):
    matrices: np.ndarray  # (n, r, d): H_i
    offsets: np.ndarray  # (n, r): h_i
    cone: Any  # K


class ConeDistance(Objective, _ConeDistance):
    """The mean of half the squared distances of H_i x + h_i to −K: zero where all constraints H_i x + h_i ∈ −K hold.

    Parameters
    ----------
    matrices : array, (n, r, d)
        H_i, one matrix per constraint.
    offsets : array, (n, r)
        h_i.
    cone : {"orthant", "second-order", "semidefinite"} or value
        K. The orthant: H_i x + h_i ≤ 0. The second-order cone {(t, z) : ‖z‖ ≤ t}. The positive semidefinite k × k matrices,
        r = k², row by row; of H_i x + h_i the symmetric part counts. Or a value for which ``project_cone`` is registered.

    Examples
    --------
    The constraints x₁ ≤ 1 and x₂ ≤ 2, of which the second is violated by 1:

    >>> g = ConeDistance(np.eye(2)[:, None, :], [[-1.0], [-2.0]], "orthant")
    >>> g.value([0.0, 3.0])
    0.25
    """

    __slots__ = ()
    convex = True
    floor = 0.0

    def __new__(cls, matrices: Any, offsets: Any, cone: Any) -> ConeDistance:
        H = np.ascontiguousarray(checks.numbers(matrices, "matrices"), dtype=np.float64)
        if H.ndim != 3 or H.size == 0:
            raise ValueError(f"`matrices` must be a non-empty array of shape (n, r, d), got one of shape {H.shape}")
        checks.data(H, "matrices")
        h = np.ascontiguousarray(checks.numbers(offsets, "offsets"), dtype=np.float64)
        if h.shape != H.shape[:2]:
            raise ValueError(
                f"`offsets` must be an array of shape {H.shape[:2]}, as `matrices` has it, got one of {h.shape}"
            )
        checks.data(h, "offsets")
        return super().__new__(cls, H, h, as_cone(cone, H.shape[1]))

    @property
    def dimension(self) -> int:
        return self.matrices.shape[2]

    @property
    def n_samples(self) -> int:
        return self.matrices.shape[0]

    @property
    def lipschitz(self) -> float:
        """λ_max(mean_i H_iᵀ H_i): a projection moves no two points apart."""
        n, r, d = self.matrices.shape
        return curvature_of(self, Rows(Dense(self.matrices.reshape(n * r, d)), NO_TARGETS, np.full(n * r, 1.0 / n)))

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        """A projection moves no two points apart, so that errors of H_i x + h_i do not grow; its own are a few roundings.

        A cone of a user's own is taken to be projected onto as accurately as the semidefinite matrices are.
        """
        n, r, d = self.matrices.shape
        relative = (d + FEW_OPERATIONS) * UNIT
        points = self.matrices @ x + self.offsets
        off_points = np.abs(self.matrices) @ room_around(x, off, relative) + relative * np.abs(self.offsets)
        outside = np.empty_like(points)
        for i in range(n):
            project_cone(self.cone, points[i], outside[i])
        lengths = np.linalg.norm(outside, axis=1)
        in_projection = FEW_OPERATIONS * (r + 1) * UNIT * np.linalg.norm(points, axis=1)
        doubts = np.linalg.norm(off_points, axis=1) + in_projection  # of each projection, as a vector
        over_all = (n * r + FEW_OPERATIONS) * UNIT
        spread = over_all * np.abs(outside) + doubts[:, None]
        value_error = float(np.mean(0.5 * over_all * lengths**2 + doubts * (lengths + doubts)))
        return Survey(
            0.5 * float(np.mean(np.sum(outside * outside, axis=1))),
            np.einsum("ik,ikj->j", outside, self.matrices) / n,
            MARGIN * value_error + UNDERFLOW,
            MARGIN * np.einsum("ik,ikj->j", spread, np.abs(self.matrices)) / n + UNDERFLOW,
        )

    def __repr__(self) -> str:
        n, r, d = self.matrices.shape
        return f"ConeDistance {n} × {r} × {d} to {self.cone!r}"


def as_cone(cone: Any, size: int) -> Any:
    """Return a cone of vectors of this size, by name or as it is."""
    if cone == "orthant":
        return Orthant()
    if cone == "second-order":
        return SecondOrder()
    if cone == "semidefinite":
        side = math.isqrt(size)
        if side * side != size:
            raise ValueError(f"`matrices` must have a square number r = k² of rows for k × k matrices, got {size}")
        return Semidefinite(side)
    if not project_cone.supports(cone):
        raise ValueError(
            f'`cone` must be "orthant", "second-order", "semidefinite" or a value with `project_cone`, '
            f"got {checks.shown(cone)}"
        )
    if isinstance(cone, Semidefinite) and cone.side**2 != size:
        raise ValueError(f"`cone` must have side² = {size}, the rows of `matrices`, got {cone!r}")
    return cone


@project_cone.register(Orthant)
def project_cone_orthant(cone, point, out):
    for i in range(point.size):
        out[i] = max(point[i], 0.0)


@project_cone.register(SecondOrder)
def project_cone_second_order(cone, point, out):
    height, length = point[0], math.sqrt(dot(point[1:], point[1:]))
    inside = length <= height
    top = 0.5 * (height + length)
    ratio = 1.0 if inside else max(top, 0.0) / length if length > 0.0 else 0.0
    out[0] = height if inside else max(top, 0.0)
    for i in range(1, point.size):
        out[i] = ratio * point[i]


@project_cone.register(Semidefinite)
def project_cone_semidefinite(cone, point, out):
    project_semidefinite(cone.side, point, out)


@kernel(inline=False)
def project_semidefinite(k, point, out):
    """Keep the eigenvectors with positive eigenvalues of the symmetric part."""
    symmetric = np.empty((k, k))
    total = 0.0
    for i in range(k):
        for j in range(k):
            symmetric[i, j] = 0.5 * (point[i * k + j] + point[j * k + i])
            total += symmetric[i, j]
    fill(out, 0.0 if math.isfinite(total) else math.nan)
    if math.isfinite(total):  # an eigendecomposition takes nothing else
        values, vectors = np.linalg.eigh(symmetric)
        for c in range(k):
            if values[c] > 0.0:
                for i in range(k):
                    for j in range(k):
                        out[i * k + j] += values[c] * (vectors[i, c] * vectors[j, c])


@draw.register(ConeDistance)
def draw_cone_distance(objective, moment, batch):
    return uniform_indices(moment, objective.offsets.shape[0], batch)


@accumulate.register(ConeDistance)
def accumulate_cone_distance(objective, batch, x, w, y, v, out):
    r = objective.offsets.shape[1]
    room = np.empty(2 * r)
    share = 1.0 / batch.size
    value_x = 0.0
    value_y = 0.0
    for k in range(batch.size):
        value_x += share * add_violation(objective, batch[k], x, share * w, room[:r], room[r:], out)
        if v != 0.0:
            value_y += share * add_violation(objective, batch[k], y, share * v, room[:r], room[r:], out)
    return value_x, value_y


@kernel
def add_violation(objective, i, x, weight, point, outside, out):
    """Add weight · H_iᵀ Π(H_i x + h_i) to ``out`` and return ½ ‖Π(H_i x + h_i)‖²."""
    matrix, offset = objective.matrices[i], objective.offsets[i]
    for k in range(offset.size):
        point[k] = offset[k] + dot(matrix[k], x)
    project_cone(objective.cone, point, outside)
    for k in range(offset.size):
        if outside[k] != 0.0:
            row = matrix[k]
            for j in range(row.size):
                out[j] += weight * outside[k] * row[j]
    return 0.5 * dot(outside, outside)
