"""The best lower bound that several linear minorants give, by Kelley's cutting-plane method in their weights.

Lines φ_i + ⟨a_i, s − x⟩ lie below f on Z, and lines γ_j + ⟨c_j, s − x⟩ are at most 0 at the points s of Z that count. For
any weights μ ≥ 0 of sum 1 and λ ≥ 0,

    h(μ, λ) = Σ μ_i φ_i + Σ λ_j γ_j + min_{s ∈ Z} ⟨Σ μ_i a_i + Σ λ_j c_j, s − x⟩

is a lower bound of f over these points, by one linear minimisation. h is concave and known from above by the atoms s that
earlier weights gave; a linear program in the weights, of one row per atom, proposes the next ones. Its dual is the best
point that is a mean of these atoms.

Kelley, The cutting-plane method for solving convex programs, 1960; Dantzig and Wolfe, Decomposition principle for linear
programs, 1960.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose parts are loaded when they are used

from tiebreak.domains import least_value, lmo, spread
from tiebreak.engine.rounding import UNIT
from tiebreak.objectives.surveys import FEW_OPERATIONS

MAX_ATOMS = 60  # linear minimisations for one bound, and atoms that the next one begins with
AFTER_ATOMS = 6  # linear minimisations for a bound that only proposes a point
ACCURACY = 1e-3  # error of the bound, relative to how far it lies below f's highest line at x
LEAST_VARIATION = 1e-200  # relative variation of a line on a set that is a point, for all that can be seen
LARGEST_WEIGHT = 1e7  # bound on the weight of a line of g, in units in which lines vary by about 1 on Z


class Lines(NamedTuple):
    """Linear functions by their values at x and their gradients."""

    values: np.ndarray  # (k,)
    gradients: np.ndarray  # (k, d)

    @classmethod
    def none(cls, dimension: int) -> Lines:
        """Return no lines."""
        return cls(np.zeros(0), np.zeros((0, dimension)))

    @classmethod
    def of(cls, x: np.ndarray, tangents: list[tuple[np.ndarray, float, np.ndarray, float]]) -> Lines:
        """Return tangents, each given by its point, value, gradient and doubt, as lines that are below them for certain."""
        # Once for what the tangent is in doubt by, once for its value at x, whose roundings are of that size.
        values = [value + float(gradient @ (x - y)) - 2.0 * doubt for y, value, gradient, doubt in tangents]
        return cls(np.array(values), np.array([gradient for _, _, gradient, _ in tangents]))

    def below(self, level: float) -> Lines:
        """Return the lines that are at most 0 where these are at most a level; none if that is infinite."""
        return Lines(self.values - level, self.gradients) if math.isfinite(level) else Lines.none(self.gradients.shape[1])

    def first(self) -> Lines:
        """Return the first line alone."""
        return Lines(self.values[:1], self.gradients[:1])


class Bound(NamedTuple):
    """A lower bound and what proves it."""

    value: float  # h(μ, λ)
    upper: np.ndarray  # μ
    lower: np.ndarray  # λ
    point: np.ndarray  # a point of Z at which the lines of f are nearly as low as the lines of g allow
    atoms: tuple[np.ndarray, ...] = ()  # the last ones that it was made of


def best_bound(
    domain: Any, x: np.ndarray, upper: Lines, lower: Lines, atoms: Sequence[np.ndarray] = (), most: int = MAX_ATOMS
) -> Bound:
    """Return the best lower bound that the lines of f (``upper``) and of g (``lower``) give.

    ``atoms`` of Z that earlier bounds have found save most of the linear minimisations, of which there are at most so many.
    """
    p, k = upper.values.size, lower.values.size
    highest = float(upper.values.max())
    heights = upper.values - highest
    unit = float(max(sizes(domain, x, Lines(heights, upper.gradients))))
    units = sizes(domain, x, lower)
    values = np.concatenate([heights / unit, lower.values / units])
    gradients = np.vstack([upper.gradients / unit, lower.gradients / units[:, None]])
    relative = (2 * x.size + p + k + FEW_OPERATIONS) * UNIT  # of sums over lines and over variables

    if not (np.isfinite(values).all() and np.isfinite(gradients).all()):  # too large to say anything
        return Bound(-math.inf, np.eye(p)[0], np.zeros(k), x)
    best, best_weights = -math.inf, np.zeros(p + k)
    weights = np.r_[np.eye(p)[0], np.zeros(k)]
    found_atoms = list(atoms)
    rows = [gradients @ (atom - x) for atom in found_atoms]
    shares = np.zeros(0)
    if rows and (program := _program(values, np.array(rows), p)).x is not None:
        weights, shares = _cleaned(program.x[:-1], p), np.maximum(-program.ineqlin.marginals, 0.0)
    for _ in range(most):
        direction = weights @ gradients
        atom = np.empty_like(x)
        lmo(domain, direction, atom)
        # No line has a value or varies by more than 1 in these units: what rounding adds to a sum of multiples is relative
        # to their weights, though the lines may cancel.
        rounding = 2.0 * relative * float(weights.sum())
        reach = float(least_value(domain, direction, atom) - direction @ x)
        if (found := float(values @ weights) + reach - rounding) > best:
            best, best_weights = found, weights
        found_atoms.append(atom)
        rows.append(gradients @ (atom - x))
        program = _program(values, np.array(rows), p)
        if program.x is None:
            break
        weights, shares = _cleaned(program.x[:-1], p), np.maximum(-program.ineqlin.marginals, 0.0)
        if -program.fun - best <= ACCURACY * (values[:p].max() - best):
            break
    point = np.average(found_atoms[: shares.size], axis=0, weights=shares) if shares.sum() > 0.0 else x
    bound = highest + best * unit, best_weights[:p], best_weights[p:] * unit / units, point
    return Bound(*bound, tuple(found_atoms[-MAX_ATOMS:]))


def sizes(domain: Any, x: np.ndarray, lines: Lines) -> np.ndarray:
    """Return how large each line is on Z, its value at x and what it varies by, whatever the units of x."""
    found = []
    for value, gradient in zip(lines.values, np.abs(lines.gradients), strict=True):
        variation = float(spread(domain, gradient) + gradient @ np.abs(x))
        found.append(max(abs(value), variation, LEAST_VARIATION * gradient.max()) or 1.0)
    return np.array(found)


def _program(values: np.ndarray, rows: np.ndarray, p: int) -> Any:
    """Maximise values · w + θ over weights w and θ ≤ rows · w."""
    k = values.size - p
    return scipy.optimize.linprog(
        np.r_[-values, -1.0],
        A_ub=np.column_stack([-rows, np.ones(len(rows))]),
        b_ub=np.zeros(len(rows)),
        A_eq=[np.r_[np.ones(p), np.zeros(k + 1)]],
        b_eq=[1.0],
        bounds=[(0.0, None)] * p + [(0.0, LARGEST_WEIGHT)] * k + [(None, None)],
        method="highs",
    )


def _cleaned(weights: np.ndarray, p: int) -> np.ndarray:
    """Return weights that are what they should be exactly, not only to a solver's tolerance."""
    weights = np.maximum(weights, 0.0)
    total = weights[:p].sum()
    weights[:p] = weights[:p] / total if total > 0.0 else np.eye(p)[0]
    return weights
