"""Ceilings of f*: points that are proven to be near a minimiser of g, whose f is then at least f*.

A floor of f* comes from multipliers. A ceiling needs a point with g = g*, which rounding never shows; but that there is one
near x can be proven for g(x) = ‖A x − b‖² / 2n and x = Σ w_j v_j, a mean of atoms. Let D be the differences of the atoms to
one of them per block, its base, and M = A D / √n.

- *An exact fit.* If M has full row rank, M u = (b − A x)/√n has a solution with ‖u‖ ≤ ‖b − A x‖ / (√n σ), σ the least
  singular value. If all weights are larger than that, x + D u is a point of Z with g = 0.
- *A face.* If M has full column rank, the minimiser over the affine hull of the atoms is x + D u, ‖u‖ ≤ ‖Dᵀ∇g(x)‖ / σ². If
  all weights are larger, it is in Z; if all other atoms are dearer there, by more than prices change on the way, no point of
  Z is better.
- *Strong convexity.* If g is strongly convex with modulus μ, its minimiser is as near as √(2 (g(x) − g*) / μ).

In the last two cases g has no other minimiser; in the first it has many, if there are more differences than rows and these
are independent.

In each case f* ≤ f(x) + ‖Dᵀ∇f(x)‖ ‖u‖ + ½ L ‖D‖² ‖u‖². The point is first moved to where these numbers are least. All errors
are bounded: of the singular value by a Cholesky factorisation that ends (``eigenvalue_floor``), and of sums as in surveys.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from tiebreak.active.threads import single_thread
from tiebreak.domains import L1Ball, Simplex, settle
from tiebreak.domains.atoms import Atom, blocks, decomposed, has_vertices
from tiebreak.domains.rounding import eigenvalue_floor, norm_ceiling, quiet, raised
from tiebreak.engine.rounding import UNDERFLOW, UNIT
from tiebreak.objectives import LeastSquares, LinearModel, Placed, Scaled, SquaredNorm, Sum, SummedSquares
from tiebreak.objectives.losses import curvature
from tiebreak.objectives.matrices import CSR
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN
from tiebreak.problem import Problem
from tiebreak.proofs.floors import gap

MOST_ATOMS, MOST_NUMBERS = 1500, 2e6  # atoms, and numbers of the data, with which a proof is tried
LEAST_WEIGHT = 1e-12  # weight of an atom below which it is left out


class Mean(NamedTuple):
    """A point of Z as a mean of atoms: one per block is its base, D are the differences of the others to their bases."""

    weights: np.ndarray  # (k,): of all atoms but the bases
    of: np.ndarray  # (k,) int: block of each
    atoms: np.ndarray  # (d, k)
    bases: np.ndarray  # (d, b)
    image: np.ndarray  # (n, k): M
    image_error: float  # ‖M − exact M‖ is at most this

    @property
    def spare(self) -> np.ndarray:
        """The weights of the bases, each rounded once."""
        blocks = range(self.bases.shape[1])
        return np.array([math.fsum([1.0, *(-self.weights[self.of == b])]) for b in blocks])

    @property
    def ways(self) -> np.ndarray:
        """D, without rounding where atoms have the same numbers or none in a place."""
        return self.atoms - self.bases[:, self.of]

    @property
    def way_sizes(self) -> np.ndarray:
        """Numbers that |D| does not exceed, transposed."""
        return (np.abs(self.atoms) + np.abs(self.bases[:, self.of])).T

    @property
    def point(self) -> np.ndarray:
        return self.atoms @ self.weights + self.bases @ self.spare

    @property
    def off(self) -> np.ndarray:
        """By how much each variable of the computed point may differ from that of the exact one."""
        sizes = np.abs(self.atoms) @ np.abs(self.weights) + np.abs(self.bases) @ np.abs(self.spare)
        terms = (self.atoms != 0.0).sum(axis=1) + (self.bases != 0.0).sum(axis=1)
        return MARGIN * (terms + 4) * UNIT * sizes + UNDERFLOW

    @property
    def used(self) -> np.ndarray | None:
        """Which variables its atoms have, if each has one alone; None if not."""
        corners = np.column_stack([self.bases, self.atoms]) != 0.0
        return corners.any(axis=1) if (corners.sum(axis=0) == 1).all() else None

    @property
    def is_independent(self) -> bool:
        """Whether D is known to have full column rank: each atom but the origin has a variable that no other one has.

        Where the origin is one of the atoms of a block, its base must have such a variable too.
        """
        points = np.column_stack([self.atoms, self.bases]) != 0.0
        alone = ((points.sum(axis=1) == 1)[:, None] & points).any(axis=0)
        k, origins = self.weights.size, ~points.any(axis=0)
        of_origins = self.of[origins[:k]]
        at_most_one = np.unique(of_origins).size == of_origins.size
        return bool((alone | origins)[:k].all() and at_most_one and alone[k:][of_origins].all())

    def moved(self, way: np.ndarray) -> Mean:
        return self._replace(weights=self.weights + way)

    def holds(self, reach: float) -> bool:
        """Return whether weights stay positive as far as this in any direction."""
        k = self.weights.size
        rounding = (k + FEW_OPERATIONS) * UNIT
        return bool(self.weights.min(initial=1.0) > reach and self.spare.min() > math.sqrt(k) * reach + rounding)


class Nearby(NamedTuple):
    """What is proven of the minimisers of g near a point."""

    ceiling: float = math.inf  # ≥ f*
    unique: bool | None = None  # whether there is one; None if neither is proven


def ceiling_of(problem: Problem, x: np.ndarray, lower_floor: float) -> float:
    """Return a number that f* of an exact tie is proven not to exceed: infinite if no minimiser is proven to be near x."""
    return nearby(problem, x, lower_floor).ceiling


@quiet
def nearby(problem: Problem, x: np.ndarray, lower_floor: float) -> Nearby:
    """Return a ceiling of f* of an exact tie, and whether g has one minimiser, as far as both are proven.

    ``lower_floor`` is a floor of g*.
    """
    if problem.is_near:
        return Nearby()
    bound = smooth_ceiling(problem.upper)
    smoothness = bound if math.isfinite(bound) else 0.0
    strong = by_strong_convexity(problem, x, lower_floor, smoothness)
    found = Nearby(strong, True if float(problem.lower.known_convexity) > 0.0 else None)
    model = _least_squares(problem.lower)
    if model is not None and has_vertices(problem.domain) and model.matrix.numbers <= MOST_NUMBERS:
        with single_thread(0.0):
            found = _by_atoms(problem, model, x, smoothness, found)
    return found if math.isfinite(bound) else found._replace(ceiling=math.inf)


def _by_atoms(problem: Problem, model: LeastSquares, x: np.ndarray, smoothness: float, found: Nearby) -> Nearby:
    """Return what the atoms of x prove besides."""
    mean = mean_of(problem, model, x)
    if mean is None:
        return found
    n, k = mean.image.shape
    if k >= n and (fit := by_exact_fit(problem, model, mean, smoothness)) < math.inf:
        found = Nearby(min(fit, found.ceiling), False if k > n and mean.is_independent else found.unique)
    if k <= n and (face := by_face(problem, model, mean, smoothness)) < math.inf:
        found = Nearby(min(face, found.ceiling), True)
    return found


def by_strong_convexity(problem: Problem, x: np.ndarray, lower_floor: float, smoothness: float) -> float:
    """Return the ceiling for a strongly convex g: all of this is about a point of Z, which x is but for rounding."""
    modulus = (1.0 - 1e-12) * float(problem.lower.known_convexity)
    point, off = x.copy(), np.empty_like(x)
    if not modulus > 0.0 or not settle(problem.domain, point, off):
        return math.inf
    f, g = (level.survey(point, off) for level in (problem.upper, problem.lower))
    excess = gap(g.value, g.value_error + FEW_OPERATIONS * UNIT * abs(g.value), lower_floor)
    if not excess >= 0.0:
        return math.inf
    reach = raised(math.sqrt(2.0 * excess / modulus), 4)
    slope = norm_ceiling(f.gradient) + norm_ceiling(f.gradient_error)
    return _summed_up(f.value + f.value_error, slope * reach, 0.5 * smoothness * reach * reach)


def by_exact_fit(problem: Problem, model: LeastSquares, mean: Mean, smoothness: float) -> float:
    """Return the ceiling where a point of Z near x fits all rows exactly."""
    root = np.sqrt(model.weights / model.n_samples)
    # Rows that no atom has an entry in are the same everywhere on the face.
    idle = ~_touched(model, np.column_stack([mean.atoms, mean.bases]))
    if idle.all():
        return math.inf if model.targets.any() else _at(problem, mean, 0.0, smoothness)
    least = _least_singular_value(mean.image[~idle].T, mean.image_error)
    if not least > 0.0 or model.targets[idle].any():
        return math.inf
    busy = mean.image[~idle]
    factor = scipy.linalg.cho_factor(busy @ busy.T)
    for _ in range(2):
        residual = (root * (_product(model, mean.point) - model.targets))[~idle]
        mean = mean.moved(-busy.T @ scipy.linalg.cho_solve(factor, residual))
    point, off = mean.point, mean.off
    sizes = _sizes(model, np.abs(point)) + np.abs(model.targets)
    error = (model.matrix.longest_row + FEW_OPERATIONS) * UNIT * sizes + _sizes(model, off) + UNDERFLOW * ~idle
    residual = np.abs(_product(model, point) - model.targets) + MARGIN * error
    reach = raised(norm_ceiling(root * residual) / least, 4)
    return _at(problem, mean, reach, smoothness) if mean.holds(reach) else math.inf


def by_face(problem: Problem, model: LeastSquares, mean: Mean, smoothness: float) -> float:
    """Return the ceiling where the minimiser over the face of the atoms of x is one over Z."""
    dearest, ways = _prices_of(problem.domain), mean.ways
    least = _least_singular_value(mean.image, mean.image_error) if mean.weights.size else math.inf
    if dearest is None or not least > 0.0:
        return math.inf
    factor = scipy.linalg.cho_factor(mean.image.T @ mean.image) if mean.weights.size else None
    for _ in range(2 if mean.weights.size else 0):
        mean = mean.moved(-scipy.linalg.cho_solve(factor, ways.T @ model.value_and_gradient(mean.point)[1]))
    gradient, errors = _gradient_near(model, mean)
    doubt = mean.way_sizes @ (errors + (mean.off.size + FEW_OPERATIONS) * UNIT * np.abs(gradient))
    prices = norm_ceiling(np.abs(ways.T @ gradient) + MARGIN * doubt)
    reach = raised(prices / (least * least), 4)
    if not mean.holds(reach):
        return math.inf
    # On the way the gradient changes by Aᵀ (M u) / √n, and ‖M u‖ is at most ‖Dᵀ∇g(x)‖ / σ.
    changed = raised(_column_norms(model) * prices / least, 4)
    if not dearest(mean, gradient, raised(errors + changed, 2)):
        return math.inf
    return _at(problem, mean, reach, smoothness)


def _gradient_near(model: LeastSquares, mean: Mean) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of g at the exact mean, and its errors: those at the computed one, and what lies between them."""
    survey, off = model.sharp(mean.point).survey, mean.off
    between = np.sqrt(model.weights / model.n_samples) * _sizes(model, off)
    return survey.gradient, raised(survey.gradient_error + _column_norms(model) * norm_ceiling(between), 8)


def mean_of(problem: Problem, model: LeastSquares, x: np.ndarray) -> Mean | None:
    """Return x as a mean of the atoms that count, or None if there are too many."""
    d, found = problem.dimension, []
    for b, block in enumerate(blocks(problem.domain, d)):
        parts = [
            (weight, Atom(block.where[atom.where], atom.values))
            for weight, atom in decomposed(block.domain, x[block.where])
            if weight > LEAST_WEIGHT
        ]
        parts.sort(key=lambda part: -part[0])
        found.append((b, parts))
        if sum(len(each) for _, each in found) > MOST_ATOMS:
            return None
    bases = np.array([parts[0][1].point(d) for _, parts in found]).T
    others = [(weight, b, atom.point(d)) for b, parts in found for weight, atom in parts[1:]]
    points = np.array([point for _, _, point in others]).reshape(-1, d)
    weights, of = np.array([weight for weight, _, _ in others]), np.array([b for _, b, _ in others], dtype=np.int64)
    mean = Mean(weights, of, points.T, bases, np.zeros((0, 0)), 0.0)
    root = np.sqrt(model.weights / model.n_samples)[:, None]
    sizes = root * _sizes(model, mean.way_sizes.T)
    error = norm_ceiling((model.matrix.longest_row + FEW_OPERATIONS) * UNIT * sizes.ravel())
    return mean._replace(image=root * _product(model, mean.ways), image_error=MARGIN * error)


def _least_singular_value(matrix: np.ndarray, error: float) -> float:
    """Return a number that is no larger than the least singular value of a tall matrix that is known up to an error."""
    gram = matrix.T @ matrix
    if scipy.linalg.lapack.dpotrf(gram)[1] != 0:  # what is singular need not be told apart from nearly so
        return 0.0
    rounding = raised((matrix.shape[0] + FEW_OPERATIONS) * UNIT * float((matrix * matrix).sum()), matrix.size)
    square = eigenvalue_floor(0.5 * (gram + gram.T)) - rounding
    return (1.0 - 8.0 * UNIT) * math.sqrt(square) - error if square > 0.0 else 0.0


def _at(problem: Problem, mean: Mean, reach: float, smoothness: float) -> float:
    """Return the largest f as far from a mean of atoms as this, in units of its weights."""
    survey = problem.upper.survey(mean.point, mean.off)
    roundings = (mean.off.size + FEW_OPERATIONS) * UNIT
    doubt = mean.way_sizes @ (survey.gradient_error + roundings * np.abs(survey.gradient))
    slope = norm_ceiling(np.abs(mean.ways.T @ survey.gradient) + MARGIN * doubt)
    length = norm_ceiling(mean.way_sizes.ravel()) * reach
    return _summed_up(survey.value + survey.value_error, slope * reach, 0.5 * smoothness * length * length)


def _summed_up(value: float, first: float, second: float) -> float:
    return value + raised(first + second, 8) + FEW_OPERATIONS * UNIT * abs(value) + UNDERFLOW


def _least_squares(objective: Any) -> LeastSquares | None:
    """Return the least-squares loss that an objective is a positive multiple of, if it is one with rows."""
    while isinstance(objective, Scaled) and objective.factor > 0.0:
        objective = objective.objective
    return objective if isinstance(objective, LeastSquares) and objective.in_memory else None


def _product(model: LeastSquares, x: np.ndarray) -> np.ndarray:
    matrix = model.matrix
    return matrix.to_scipy() @ x if isinstance(matrix, CSR) else matrix.array @ x


def _sizes(model: LeastSquares, x: np.ndarray) -> np.ndarray:
    """Return |A| x."""
    matrix = model.matrix
    return abs(matrix.to_scipy()) @ x if isinstance(matrix, CSR) else np.abs(matrix.array) @ x


def _touched(model: LeastSquares, atoms: np.ndarray) -> np.ndarray:
    """Return which rows have an entry that is not 0 where an atom has one."""
    used, matrix = (atoms != 0.0).any(axis=1), model.matrix
    if isinstance(matrix, CSR):
        return (matrix.to_scipy() != 0.0)[:, used].sum(axis=1) > 0
    return (matrix.array[:, used] != 0.0).any(axis=1)


def _column_norms(model: LeastSquares) -> np.ndarray:
    """Return numbers that are at least the norms of the columns of √(W/n) A."""
    shares, matrix = model.weights / model.n_samples, model.matrix
    if isinstance(matrix, CSR):
        squares = matrix.to_scipy().astype(np.float64).power(2).T @ shares
    else:
        squares = shares @ np.square(matrix.array, dtype=np.float64)
    return np.sqrt(raised(squares, model.n_samples)) * (1.0 + 4.0 * UNIT)


# What is known of other atoms than those of a face


def _prices_of(domain: Any) -> Any:
    """Return the function that compares their prices; None where it is not known which these are."""
    known: dict[Any, Any] = {L1Ball: _are_dearer_in_ball, Simplex: _are_dearer_in_simplex}
    return known.get(type(domain))


def _are_dearer_in_ball(mean: Mean, gradient: np.ndarray, doubts: np.ndarray) -> bool:
    """Return whether all corners ±r e_i but those of the mean are dearer, at gradients that are in doubt by this much.

    All corners of the mean have the same price p at the minimiser over their face. Their opposites have −p.
    """
    used = mean.used
    if used is None:
        return False
    radius, price = float(np.abs(mean.bases).max()), _price_ceiling(mean, gradient, doubts)
    others = float((np.abs(gradient) + doubts)[~used].max(initial=0.0))
    return price < 0.0 and raised(radius * others, 4) < -price


def _are_dearer_in_simplex(mean: Mean, gradient: np.ndarray, doubts: np.ndarray) -> bool:
    """Return whether all corners r e_i but those of the mean are dearer, at gradients that are in doubt by this much."""
    used = mean.used
    if used is None:
        return False
    scale, price = float(mean.bases.max()), _price_ceiling(mean, gradient, doubts)
    others = scale * float((gradient - doubts)[~used].min(initial=math.inf))
    return price < others - FEW_OPERATIONS * UNIT * abs(others)


def _price_ceiling(mean: Mean, gradient: np.ndarray, doubts: np.ndarray) -> float:
    """Return a number that the price of the base does not exceed: of all atoms of the face, at its minimiser."""
    base = mean.bases[:, 0]
    doubt = float(doubts @ np.abs(base)) + (base.size + FEW_OPERATIONS) * UNIT * float(np.abs(gradient) @ np.abs(base))
    return float(gradient @ base) + raised(doubt, 8)


# How smooth f is, for certain


def smooth_ceiling(objective: Any) -> float:
    """Return a number that is at least the smoothness constant of an objective; infinite where none is proven."""
    if isinstance(objective, Sum):
        return raised(math.fsum(smooth_ceiling(term) for term in objective.terms), 2)
    if isinstance(objective, Scaled):
        return raised(abs(objective.factor) * smooth_ceiling(objective.objective), 2)
    if isinstance(objective, Placed):
        return smooth_ceiling(objective.objective)
    if isinstance(objective, SquaredNorm):
        return 1.0
    if isinstance(objective, SummedSquares):
        return 2.0 * float(np.trace(objective.quadratic))
    if isinstance(objective, LinearModel):
        squares = float(objective.squares().sum()) / objective.n_samples
        return raised(float(curvature(objective.scalar)) * squares, objective.matrix.numbers)
    return math.inf
