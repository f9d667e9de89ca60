"""The studies' problems are what the papers say."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.engine import interpreted
from tiebreak.studies.dictionary import RADIUS, continual, recovery


def test_a_dictionary_is_continued_from_what_was_learned():
    with interpreted():
        study = continual(seed=1, iterations=10)
        problem, x0, atoms = study
        assert problem.domain.contains(x0)
        parts = problem.domain.parts(x0)
        assert parts["D"].shape == (25, 50)
        assert parts["X"].shape == (50, 250)
        assert not parts["D"][:, 40:].any()
        np.testing.assert_allclose(np.abs(parts["X"]).sum(axis=0), RADIUS)
        assert 0.0 < problem.lower.value(x0) < problem.lower.value(np.zeros_like(x0))
        assert problem.lower.n_samples == problem.upper.n_samples == 250
        assert atoms.dictionary.shape == (25, 50)


def test_recovery_counts_true_atoms_up_to_sign_and_length():
    truth = np.eye(4)[:, :3]
    found = np.column_stack([-2.0 * truth[:, 0], np.zeros(4), [0.0, 0.5, 0.5, 0.0]])
    assert recovery(found, truth) == pytest.approx(1 / 3)
    assert recovery(found, truth, threshold=0.7) == pytest.approx(1.0)
