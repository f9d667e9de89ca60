"""The best lower bound that several linear minorants give, by Kelley's cutting-plane method in their weights.

Lines φ_i + ⟨a_i, s − x⟩ lie below f on Z, and lines γ_j + ⟨c_j, s − x⟩ are at most 0 at the points s of Z that count. For
any weights μ ≥ 0 of sum 1 and λ ≥ 0,

    h(μ, λ) = Σ μ_i φ_i + Σ λ_j γ_j + min_{s ∈ Z} ⟨Σ μ_i a_i + Σ λ_j c_j, s − x⟩

is a lower bound of f over these points, by one linear minimisation. h is concave and known from above by the atoms s that
earlier weights gave; a linear program in the weights, of one row an atom, proposes the next ones. Its dual is the best point
that is a mean of these atoms.

Kelley, The cutting-plane method for solving convex programs, 1960; Dantzig and Wolfe, Decomposition principle for linear
programs, 1960.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from tiebreak.domains import lmo

MAX_ATOMS = 60
ACCURACY = 1e-3  # of the bound, relative to how far it lies below f's highest line at x
ROUNDING = 1e-14  # of the terms of a bound: what its computation may add to it
LARGEST = 1e7  # weight of a line of g, when all lines have gradients of norm 1: without a limit the first programs have none


class Lines(NamedTuple):
    """Linear functions by their values at x and their gradients."""

    values: np.ndarray  # (k,)
    gradients: np.ndarray  # (k, d)

    @classmethod
    def none(cls, dimension: int) -> Lines:
        """Return no lines."""
        return cls(np.zeros(0), np.zeros((0, dimension)))


class Bound(NamedTuple):
    """A lower bound and what proves it."""

    value: float  # h(μ, λ)
    upper: np.ndarray  # μ
    lower: np.ndarray  # λ
    point: np.ndarray  # a point of Z at which the lines of f are nearly as low as the lines of g allow


def best_bound(domain: Any, x: np.ndarray, upper: Lines, lower: Lines) -> Bound:
    """Return the best lower bound that the lines of f (``upper``) and of g (``lower``) give."""
    p, k = upper.values.size, lower.values.size
    unit = np.linalg.norm(upper.gradients, axis=1).max() or 1.0
    units = np.linalg.norm(lower.gradients, axis=1)
    units[units == 0.0] = 1.0
    values = np.concatenate([upper.values / unit, lower.values / units])
    gradients = np.vstack([upper.gradients / unit, lower.gradients / units[:, None]])

    best, best_weights = -math.inf, np.zeros(p + k)
    weights = np.r_[np.eye(p)[0], np.zeros(k)]
    rows: list[np.ndarray] = []  # of each atom s: ⟨gradients, s − x⟩
    atoms: list[np.ndarray] = []
    shares = np.zeros(0)
    for _ in range(MAX_ATOMS):
        direction = weights @ gradients
        atom = np.empty_like(x)
        lmo(domain, direction, atom)
        reach = float(direction @ (atom - x))
        rounding = ROUNDING * float(np.abs(values) @ weights + np.abs(direction) @ np.abs(atom - x))
        if (found := float(values @ weights) + reach - rounding) > best:
            best, best_weights = found, weights
        atoms.append(atom)
        rows.append(gradients @ (atom - x))
        program = _program(values, np.array(rows), p)
        if program.x is None:
            break
        weights, shares = _cleaned(program.x[:-1], p), np.maximum(-program.ineqlin.marginals, 0.0)
        if -program.fun - best <= ACCURACY * (values[:p].max() - best):
            break
    point = np.average(atoms[: shares.size], axis=0, weights=shares) if shares.sum() > 0.0 else x
    return Bound(best * unit, best_weights[:p], best_weights[p:] * unit / units, point)


def _program(values: np.ndarray, rows: np.ndarray, p: int) -> Any:
    """Maximise values · w + θ over weights w and θ ≤ rows · w."""
    k = values.size - p
    return linprog(
        np.r_[-values, -1.0],
        A_ub=np.column_stack([-rows, np.ones(len(rows))]),
        b_ub=np.zeros(len(rows)),
        A_eq=[np.r_[np.ones(p), np.zeros(k + 1)]],
        b_eq=[1.0],
        bounds=[(0.0, None)] * p + [(0.0, LARGEST)] * k + [(None, None)],
        method="highs",
    )


def _cleaned(weights: np.ndarray, p: int) -> np.ndarray:
    """Return weights that are what they should be exactly, not only to a solver's tolerance."""
    weights = np.maximum(weights, 0.0)
    total = weights[:p].sum()
    weights[:p] = weights[:p] / total if total > 0.0 else np.eye(p)[0]
    return weights
