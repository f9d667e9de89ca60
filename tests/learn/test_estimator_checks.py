"""Every estimator keeps scikit-learn's rules."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tiebreak.learn import ContinualDictionaryLearning, MinNormRegressor, TieBreakClassifier, TieBreakRegressor

# A split is drawn among the samples that are there, so that a sample of weight 2 is not the same as two samples.
SPLITS = {
    "check_sample_weight_equivalence_on_dense_data": "the split differs",
    "check_sample_weight_equivalence_on_sparse_data": "the split differs",
}


def expected(estimator):
    return SPLITS if getattr(estimator, "secondary", None) == "validation" else {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        TieBreakRegressor(max_iter=100),
        TieBreakRegressor(secondary="validation", max_iter=100),
        TieBreakClassifier(max_iter=100),
        MinNormRegressor(constraint="l1", max_iter=100),
        ContinualDictionaryLearning(n_components=2, max_iter=5),
    ],
    expected_failed_checks=expected,
)
def test_an_estimator_keeps_the_rules_of_scikit_learn(estimator, check):
    check(estimator)
