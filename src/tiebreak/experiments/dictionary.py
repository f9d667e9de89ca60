"""Continual dictionary learning: a dictionary learns new data and keeps what it knows of the old.

Cao et al. (2023), section 5 and appendix: a dictionary of 40 atoms and its codes are learned from old data; with these
codes held, the lower level is the error on the old data of a dictionary of 50 atoms, and the upper level its error on new
data with codes of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tiebreak
from tiebreak.data import Atoms

RADIUS = 3.0  # of the ℓ1 balls of codes
LEARNING = 10_000  # iterations of Frank-Wolfe that learn the old dictionary


class Study(NamedTuple):
    """The problem, and a point to start from."""

    problem: tiebreak.Problem
    x0: np.ndarray
    atoms: Atoms  # the data, and the true dictionary


def continual(seed: int = 0, size: int = 50, iterations: int = LEARNING) -> Study:
    """Return the problem of a dictionary of ``size`` atoms, and its start: the old dictionary and atoms of zero.

    The old dictionary is learned in two phases: Frank-Wolfe with steps 1/√(t + 1) on atoms and codes, then the best atoms
    for these codes, by accelerated projected gradients. The codes of the new data are random, of the largest norm.
    """
    atoms = tiebreak.data.dictionary(seed)
    rng = np.random.default_rng(seed)
    (m, n_old), n_new, known = atoms.old.shape, atoms.new.shape[1], atoms.old_atoms.size

    balls = tiebreak.Columns(tiebreak.L2Ball(1.0), (m, known))
    both = tiebreak.Product(D=balls, X=tiebreak.Columns(tiebreak.L1Ball(RADIUS), (known, n_old)))
    learning = tiebreak.Problem(tiebreak.JointDictionary(atoms.old), tiebreak.SquaredNorm(), both)
    frank_wolfe = tiebreak.SpiderFW(step=tiebreak.power(1.0, 0.5), period=1, batch_size=1)
    start = np.concatenate([_unit_columns(rng, m, known), RADIUS * _unit_columns(rng, known, n_old, order=1)])
    learned = tiebreak.minimize(learning, frank_wolfe, x0=start, max_queries=None, max_iterations=iterations, progress=False)
    codes = learned.parts["X"]

    fitting = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.Dictionary(atoms.old, codes), balls)
    fitted = tiebreak.minimize(
        fitting, tiebreak.FISTA(level="lower"), x0=learned.parts["D"].ravel("F"), max_queries=None, max_iterations=iterations
    )

    domain = tiebreak.Product(
        D=tiebreak.Columns(tiebreak.L2Ball(1.0), (m, size)), X=tiebreak.Columns(tiebreak.L1Ball(RADIUS), (size, n_new))
    )
    prolonged = np.vstack([codes, np.zeros((size - known, n_old))])
    problem = tiebreak.Problem(tiebreak.JointDictionary(atoms.new), tiebreak.Dictionary(atoms.old, prolonged), domain)
    x0 = np.concatenate([fitted.x, np.zeros(m * (size - known)), RADIUS * _unit_columns(rng, size, n_new, order=1)])
    return Study(problem, x0, atoms)


def recovery(D: np.ndarray, truth: np.ndarray, threshold: float = 0.9) -> float:
    """Return the share of true atoms to which some atom of D, normalised, has an inner product above a threshold."""
    lengths = np.linalg.norm(D, axis=0)
    products = np.abs(truth.T @ D[:, lengths > 0.0]) / lengths[lengths > 0.0]
    return float((products.max(axis=1, initial=0.0) > threshold).mean())


def _unit_columns(rng: np.random.Generator, rows: int, columns: int, order: int = 2) -> np.ndarray:
    """Return a random matrix whose columns have norm 1, column by column."""
    matrix = rng.standard_normal((rows, columns))
    return (matrix / np.linalg.norm(matrix, ord=order, axis=0)).ravel("F")
