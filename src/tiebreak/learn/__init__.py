"""Estimators with scikit-learn's interface: ``fit``, ``predict`` or ``transform``, ``score``. One file per family."""

from tiebreak.learn.cross_validation import TieBreakClassifierCV, TieBreakRegressorCV
from tiebreak.learn.dictionary import ContinualDictionaryLearning
from tiebreak.learn.fair import FairClassifier
from tiebreak.learn.linear import TieBreakClassifier, TieBreakRegressor
from tiebreak.learn.min_norm import MinNormClassifier, MinNormRegressor

__all__ = [
    "ContinualDictionaryLearning",
    "FairClassifier",
    "MinNormClassifier",
    "MinNormRegressor",
    "TieBreakClassifier",
    "TieBreakClassifierCV",
    "TieBreakRegressor",
    "TieBreakRegressorCV",
]
