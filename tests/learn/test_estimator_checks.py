"""Every estimator keeps scikit-learn's rules."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tiebreak.learn import (
    ContinualDictionaryLearning,
    MinNormClassifier,
    MinNormRegressor,
    TieBreakClassifier,
    TieBreakClassifierCV,
    TieBreakRegressor,
    TieBreakRegressorCV,
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:.*and so is their noise:UserWarning")
@pytest.mark.filterwarnings("ignore:.*separate the classes:UserWarning")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@parametrize_with_checks(
    [
        TieBreakRegressor(max_iter=100),
        TieBreakRegressorCV(radii=2, keeps=[0.99, 0.9], cv=2),
        TieBreakClassifier(max_iter=100),
        TieBreakClassifierCV(radii=2, keeps=0.99, cv=2),
        MinNormRegressor(constraint="l1", max_iter=100),  # the set of the others: compiled once
        MinNormClassifier(keep=0.9, penalize_intercept=True),
        ContinualDictionaryLearning(n_components=2, max_iter=5),
    ]
)
def test_an_estimator_keeps_the_rules_of_scikit_learn(estimator, check):
    check(estimator)
