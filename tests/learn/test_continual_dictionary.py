"""ContinualDictionaryLearning: new points are learned and old ones are kept."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tiebreak
from tiebreak.learn import ContinualDictionaryLearning
from tiebreak.learn.dictionary import Memory


@pytest.fixture(scope="module")
def atoms():
    return tiebreak.data.dictionary(shape=(10, 14), old_atoms=8, new_atoms=7, shared=1, n_old=60, n_new=50, sparsity=2)


@pytest.fixture(scope="module")
def first(atoms):
    learner = ContinualDictionaryLearning(8, n_new_components=6, transform_n_nonzero_coefs=2, random_state=0, max_iter=500)
    return learner.partial_fit(atoms.old.T)


@pytest.fixture
def second(atoms, first):
    return pickle.loads(pickle.dumps(first)).partial_fit(atoms.new.T)


def test_a_task_is_learned_and_the_one_before_is_kept(atoms, first, second):
    assert first.score(atoms.old.T) > 0.9
    assert 1.0 - second.score(atoms.new.T) < 0.4 * (1.0 - first.score(atoms.new.T))
    assert second.errors_[1] == pytest.approx(first.errors_[0], rel=1e-3)  # with the codes that are held
    assert second.score(atoms.old.T) > first.score(atoms.old.T) - 0.02  # with codes of all atoms
    assert second.certificate_.lower_gap_bound < 1e-3 * first.errors_[0]
    assert second.n_tasks_ == 2


def test_atoms_have_norm_one_and_codes_their_number(atoms, second):
    assert second.components_.shape == (14, 10)
    np.testing.assert_allclose(np.linalg.norm(second.components_, axis=1), 1.0)
    codes = second.transform(atoms.new.T)
    assert codes.shape == (50, 14)
    assert np.count_nonzero(codes, axis=1).max() <= 2
    explained = 1.0 - np.sum((atoms.new.T - second.inverse_transform(codes)) ** 2) / np.sum(atoms.new**2)
    assert second.score(atoms.new.T) == pytest.approx(explained)
    assert list(second.get_feature_names_out())[:2] == ["continualdictionarylearning0", "continualdictionarylearning1"]


def test_a_third_task_and_a_new_beginning(atoms, second):
    kept = second.memory_.error(second.components_)
    third = second.partial_fit(-atoms.new.T[:20])
    assert third.components_.shape == (20, 10)
    assert third.errors_[1] <= kept * (1.0 + 1e-2)  # the atoms are refitted to all points seen
    assert third.memory_.n == 130
    assert third.fit(atoms.old.T).n_tasks_ == 1
    assert third.components_.shape == (8, 10)


def test_mixtures_of_points_have_the_error_of_all_points():
    rng = np.random.default_rng(0)
    points, codes, more, more_codes = (rng.standard_normal(shape) for shape in ((30, 4), (30, 3), (20, 4), (20, 5)))
    memory = Memory(np.zeros((0, 4)), np.zeros((0, 3)), 0.0, 0).add(points, codes).add(more, more_codes)
    assert memory.points.shape == (5, 4)
    prolonged = np.pad(codes, ((0, 0), (0, 2)))
    for _ in range(3):
        atoms = rng.standard_normal((5, 4))
        total = np.sum((points - prolonged @ atoms) ** 2) + np.sum((more - more_codes @ atoms) ** 2)
        assert memory.error(atoms) == pytest.approx(total / 100)
        assert memory.objective(5).value(atoms.ravel()) + memory.rest / 50 == pytest.approx(total / 100)


def test_a_tolerance_is_for_later_tasks_and_warns_if_it_is_not_reached(atoms):
    learner = ContinualDictionaryLearning(2, n_new_components=1, tol=1e-9, max_iter=5, random_state=0).partial_fit(
        atoms.old.T
    )
    with pytest.warns(ConvergenceWarning, match="`tol` after 5 passes"):
        learner.partial_fit(atoms.new.T)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "`n_components` must be a whole number ≥ 1"),
        ({"alpha": 0.0}, "`alpha` must be a finite number > 0"),
        ({"transform_algorithm": "magic"}, '`transform_algorithm` must be one of "lasso_lars"'),
    ],
)
def test_an_error_of_the_first_task_names_the_argument(options, message, atoms):
    with pytest.raises(ValueError, match=message):
        ContinualDictionaryLearning(**options).fit(atoms.old.T)


@pytest.mark.parametrize(("name", "value"), [("n_new_components", -1), ("code_radius", 0.0)])
def test_an_error_of_a_later_task_names_the_argument_and_loses_nothing(name, value, atoms, first):
    learner = pickle.loads(pickle.dumps(first)).set_params(**{name: value})
    before, result = learner.components_, learner.result_
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        learner.partial_fit(atoms.new.T)
    assert learner.components_ is before
    assert learner.result_ is result
    assert learner.n_tasks_ == 1
