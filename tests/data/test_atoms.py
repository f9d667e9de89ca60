"""Points made of the atoms of a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.data import dictionary


def test_a_dictionary_has_the_sizes_of_the_paper():
    task = dictionary()
    assert task.old.shape == task.new.shape == (25, 250)
    assert task.old_codes.shape == task.new_codes.shape == (50, 250)
    assert (task.old_atoms.size, task.new_atoms.size) == (40, 20)
    assert np.intersect1d(task.old_atoms, task.new_atoms).size == 10
    np.testing.assert_allclose(np.linalg.norm(task.dictionary, axis=0), np.ones(50), rtol=1e-14)


@pytest.mark.parametrize("time", ["old", "new"])
def test_points_are_few_atoms_of_their_time_and_noise(time):
    task = dictionary(seed=3, noise=0.02)
    points, codes, atoms = (getattr(task, name) for name in (time, f"{time}_codes", f"{time}_atoms"))
    np.testing.assert_array_equal(np.flatnonzero(codes.any(axis=1)), atoms)
    assert (np.count_nonzero(codes, axis=0) == 5).all()
    sizes = np.abs(codes[codes != 0.0])
    assert 0.2 <= sizes.min() < 0.22
    assert 0.98 < sizes.max() <= 1.0
    assert 0.45 < np.mean(codes[codes != 0.0] > 0.0) < 0.55
    assert np.std(points - task.dictionary @ codes) == pytest.approx(0.02, rel=0.05)


def test_a_dictionary_depends_on_the_seed_alone():
    for first, again, other in zip(dictionary(1), dictionary(1), dictionary(2), strict=True):
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 6), st.integers(1, 4))
def test_sizes_of_a_dictionary_are_free_as_long_as_they_fit(old, new, shared, sparsity):
    if max(old + new - 8, 0) <= shared <= min(old, new) and sparsity <= min(old, new):
        sizes = {"old_atoms": old, "new_atoms": new, "shared": shared, "sparsity": sparsity}
        task = dictionary(shape=(3, 8), n_old=5, n_new=7.0, noise=0.0, **sizes)
        assert (task.old_atoms.size, task.new_atoms.size) == (old, new)
        assert np.intersect1d(task.old_atoms, task.new_atoms).size == shared
        np.testing.assert_array_equal(task.new, task.dictionary @ task.new_codes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "`seed` must be a whole number"),
        ({"shape": 3}, "`shape` must be two whole numbers"),
        ({"shape": (25, 0)}, r"`shape\[1\]` must be a whole number ≥ 1, got 0"),
        ({"old_atoms": 51}, "`old_atoms` must be at most 50, the number of all atoms, got 51"),
        ({"shared": 9}, "`shared` must be from 10 to 20 for 40 old and 20 new of 50 atoms, got 9"),
        ({"shared": 21}, "`shared` must be from 10 to 20"),
        ({"sparsity": 21}, "`sparsity` must be at most 20, the number of atoms, got 21"),
        ({"n_old": 0}, "`n_old` must be a whole number"),
        ({"noise": -0.1}, "`noise` must be a finite number ≥ 0, got -0.1"),
    ],
)
def test_a_dictionary_that_cannot_be_made_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dictionary(**arguments)
