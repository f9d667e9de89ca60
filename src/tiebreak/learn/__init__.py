"""Estimators with scikit-learn's interface: ``fit``, ``predict`` or ``transform``, ``score``. One file per family."""

from tiebreak.learn.dictionary import ContinualDictionaryLearning
from tiebreak.learn.fair import FairClassifier
from tiebreak.learn.linear import TieBreakClassifier, TieBreakRegressor
from tiebreak.learn.min_norm import MinNormRegressor

__all__ = [
    "ContinualDictionaryLearning",
    "FairClassifier",
    "MinNormRegressor",
    "TieBreakClassifier",
    "TieBreakRegressor",
]
