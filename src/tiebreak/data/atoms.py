"""Points made of the atoms of a dictionary that has to be renewed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks


class Atoms(NamedTuple):
    """Points of two times, made of the atoms of one dictionary; in all matrices one point or atom is a column."""

    old: np.ndarray  # m × n_old, ≈ dictionary @ old_codes
    new: np.ndarray  # m × n_new, ≈ dictionary @ new_codes
    dictionary: np.ndarray  # m × p, columns of norm 1
    old_atoms: np.ndarray  # which columns of the dictionary the old points use
    new_atoms: np.ndarray
    old_codes: np.ndarray  # p × n_old
    new_codes: np.ndarray  # p × n_new


def dictionary(
    seed: int = 0,
    *,
    shape: tuple[int, int] = (25, 50),
    old_atoms: int = 40,
    new_atoms: int = 20,
    shared: int = 10,
    n_old: int = 250,
    n_new: int = 250,
    sparsity: int = 5,
    noise: float = 0.01,
) -> Atoms:
    """Generate the data of a dictionary that has to be renewed: points of old atoms, then of new ones and some of the old.

    The atoms are Gaussian vectors scaled to norm 1. Each point is a sum of a few atoms of its time, with coefficients of
    random signs and absolute values uniform in [0.2, 1], and Gaussian noise. The sizes are by default those of Cao et al.,
    Projection-free methods for stochastic simple bilevel optimization with convex lower-level problem, NeurIPS 2023, after
    Jiang et al., A conditional gradient-based method for simple bilevel optimization with convex lower-level problem,
    AISTATS 2023.

    Parameters
    ----------
    seed : int
        Same seed, same data, within one version of NumPy.
    shape : (int, int)
        Length m of an atom and number p of all atoms.
    old_atoms, new_atoms : int
        How many atoms the old and the new points are made of.
    shared : int
        How many of these are the same; old_atoms + new_atoms − shared is at most p.
    n_old, n_new : int
        Numbers of points.
    sparsity : int
        Atoms in each point.
    noise : float
        Standard deviation of the noise in each entry.

    Returns
    -------
    Atoms
        ``old`` and ``new`` points, the true ``dictionary``, and which atoms and codes they are made of.

    Examples
    --------
    >>> task = dictionary()
    >>> task.old.shape, task.new.shape, task.dictionary.shape
    ((25, 250), (25, 250), (25, 50))
    >>> len(set(task.old_atoms) & set(task.new_atoms))
    10
    """
    rng = np.random.default_rng(checks.whole(seed, "seed", least=0))
    m, p = checks.matrix_shape(shape)
    n_old, n_new = checks.whole(n_old, "n_old"), checks.whole(n_new, "n_new")
    old_atoms, new_atoms, shared = _overlap(old_atoms, new_atoms, shared, p)
    sparsity = checks.whole(sparsity, "sparsity")
    if sparsity > min(old_atoms, new_atoms):
        raise ValueError(f"`sparsity` must be at most {min(old_atoms, new_atoms)}, the number of atoms, got {sparsity}")
    noise = checks.real(noise, "noise", least=0.0)

    truth = rng.standard_normal((m, p))
    truth /= np.linalg.norm(truth, axis=0)
    order = rng.permutation(p)
    old, new = order[:old_atoms], order[old_atoms - shared : old_atoms - shared + new_atoms]
    old_codes, new_codes = _sparse_codes(rng, p, old, n_old, sparsity), _sparse_codes(rng, p, new, n_new, sparsity)
    old_points = truth @ old_codes + noise * rng.standard_normal((m, n_old))
    new_points = truth @ new_codes + noise * rng.standard_normal((m, n_new))
    return Atoms(old_points, new_points, truth, np.sort(old), np.sort(new), old_codes, new_codes)


def _overlap(old_atoms: Any, new_atoms: Any, shared: Any, p: int) -> tuple[int, int, int]:
    old_atoms, new_atoms = checks.whole(old_atoms, "old_atoms"), checks.whole(new_atoms, "new_atoms")
    for name, size in (("old_atoms", old_atoms), ("new_atoms", new_atoms)):
        if size > p:
            raise ValueError(f"`{name}` must be at most {p}, the number of all atoms, got {size}")
    shared = checks.whole(shared, "shared", least=0)
    least, most = max(old_atoms + new_atoms - p, 0), min(old_atoms, new_atoms)
    if not least <= shared <= most:
        sizes = f"{old_atoms} old and {new_atoms} new of {p} atoms"
        raise ValueError(f"`shared` must be from {least} to {most} for {sizes}, got {shared}")
    return old_atoms, new_atoms, shared


def _sparse_codes(rng: np.random.Generator, p: int, atoms: np.ndarray, n: int, sparsity: int) -> np.ndarray:
    """Return a p × n matrix with as many non-zeros in each column, in rows of these atoms."""
    codes = np.zeros((p, n))
    for i in range(n):
        chosen = rng.choice(atoms, sparsity, replace=False)
        codes[chosen, i] = rng.uniform(0.2, 1.0, sparsity) * rng.choice([-1.0, 1.0], sparsity)
    return codes
