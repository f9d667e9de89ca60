"""Objectives: what can be sampled. One file a family."""

from tiebreak.objectives.base import Objective, accumulate, draw
from tiebreak.objectives.callables import FiniteSum, NonFiniteError, OracleError
from tiebreak.objectives.cones import ConeDistance, project_cone
from tiebreak.objectives.dictionary import Dictionary, JointDictionary
from tiebreak.objectives.fairness import Covariance
from tiebreak.objectives.linear import Huber, LeastSquares, LinearModel, Logistic, curvature, linear_model, loss
from tiebreak.objectives.norms import SquaredNorm

__all__ = [
    "ConeDistance",
    "Covariance",
    "Dictionary",
    "FiniteSum",
    "Huber",
    "JointDictionary",
    "LeastSquares",
    "LinearModel",
    "Logistic",
    "NonFiniteError",
    "Objective",
    "OracleError",
    "SquaredNorm",
    "accumulate",
    "curvature",
    "draw",
    "linear_model",
    "loss",
    "project_cone",
]
