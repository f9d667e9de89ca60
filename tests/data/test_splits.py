"""Regression tasks cut from a matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.data import pageviews, split


@pytest.fixture(scope="module")
def visits():
    return pageviews()


def numbered(rows: int, columns: int) -> np.ndarray:
    """A matrix whose entries tell their row and column."""
    return np.arange(rows)[:, None] + np.arange(columns) / 1000.0


@settings(deadline=None, max_examples=50)
@given(rows=st.integers(4, 40), columns=st.integers(2, 12), seed=st.integers(0, 100))
def test_a_split_cuts_all_rows_in_thirds_and_takes_the_target_out(rows, columns, seed):
    task = split(numbered(rows, columns), seed, scaling=None)
    parts = [task.train, task.validation, task.test]
    sizes = [part.A.shape[0] for part in parts]
    assert max(sizes) - min(sizes) <= 1
    targets = np.concatenate([part.b for part in parts])
    np.testing.assert_array_equal(np.sort(targets), numbered(rows, columns)[:, task.target])  # each row once
    others = np.delete(np.arange(columns), task.target)
    for part in parts:
        assert part.b.shape == (part.A.shape[0],)
        row = np.floor(part.b).astype(int)
        np.testing.assert_array_equal(part.A, numbered(rows, columns)[np.ix_(row, others)])


def test_rows_are_shuffled():
    rows = split(numbered(60, 3), scaling="none").train.b.astype(int)
    assert not np.array_equal(rows, np.sort(rows))
    assert rows.max() > 20


def test_a_split_depends_on_the_seed_alone(visits):
    first, again = split(visits, 3), split(visits, 3)
    assert first.target == again.target
    np.testing.assert_array_equal(first.test.A, again.test.A)
    others = [split(visits, seed) for seed in range(4, 8)]
    assert len({first.target, *(task.target for task in others)}) > 1
    assert all(not np.array_equal(first.train.b, task.train.b) for task in others)


def test_columns_divided_by_their_maximum_lie_between_zero_and_one(visits):
    task = split(visits)
    features = np.concatenate([part.A for part in task[:3]])
    targets = np.concatenate([part.b for part in task[:3]])
    assert features.min() >= 0
    np.testing.assert_array_equal(features.max(axis=0), 1)
    assert (targets.min() >= 0, targets.max()) == (True, 1)


def test_columns_divided_by_their_deviation_have_deviation_one_and_are_not_shifted(visits):
    task = split(visits, scaling="std")
    features = np.concatenate([part.A for part in task[:3]])
    np.testing.assert_allclose(features.std(axis=0), 1)
    assert features.min() >= 0
    assert features.mean() > 0.1


@pytest.mark.parametrize("scaling", ["column-max", "std"])
def test_constant_columns_are_scaled_without_division_by_zero(scaling):
    A = np.column_stack([np.zeros(30), np.full(30, 0.1), np.full(30, -4e6), np.arange(30.0)])
    task = split(A, scaling=scaling)
    assert task.target == 3
    np.testing.assert_allclose(task.test.A, np.tile([0.0, 1.0, -1.0], (10, 1)))


@pytest.mark.parametrize("seed", range(10))
def test_a_target_that_is_nearly_constant_on_the_training_third_is_passed_over(seed):
    A = np.ones((30, 8))
    A[:, 2] += 1e-12 * np.arange(30)
    A[:, 5] = np.arange(30)
    assert split(A, seed).target == 5


def test_a_target_that_varies_only_outside_the_training_third_is_passed_over():
    rows = np.arange(30.0)
    training = split(np.column_stack([rows, rows]), scaling=None).train.b.astype(int)
    outside = np.setdiff1d(np.arange(30), training)
    A = np.zeros((30, 2))
    A[outside, 0] = outside
    A[:, 1] = rows
    assert split(A).target == 1
    with pytest.raises(ValueError, match="`A` must have a column that varies on the training third"):
        split(A[:, [0, 0]])


def test_the_data_are_not_changed():
    A = numbered(12, 4)
    task = split(A, scaling=None)
    task.train.A[:] = -1
    np.testing.assert_array_equal(A, numbered(12, 4))


def test_whole_numbers_and_lists_are_accepted():
    assert split([[1, 2], [3, 4], [5, 6], [7, 8]]).train.A.shape == (2, 1)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones(9), r"`A` must be a matrix of at least 4 rows and 2 columns, got an array of shape \(9,\)"),
        (np.ones((3, 5)), "at least 4 rows"),
        (np.ones((9, 1)), "2 columns"),
        (np.ones((9, 2, 2)), "`A` must be a matrix"),
        (np.full((9, 2), np.nan), "`A` must hold finite numbers, got nan"),
        (np.full((9, 2), "x"), "`A` must hold real numbers"),
        (np.full((9, 2), 3.0), "`A` must have a column that varies on the training third"),
        (np.zeros((9, 2)), "`A` must have a column that varies on the training third"),
    ],
)
def test_a_matrix_that_makes_no_task_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        split(A)


def test_an_unknown_scaling_or_seed_is_refused():
    with pytest.raises(ValueError, match='`scaling` must be "column-max", "std", "none" or None, got \'max\''):
        split(numbered(9, 3), scaling="max")
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        split(numbered(9, 3), seed=-2)
