"""Objectives: what can be sampled. One file a family."""

from tiebreak.objectives.base import Objective, accumulate, draw
from tiebreak.objectives.callables import FiniteSum, NonFiniteError, OracleError
from tiebreak.objectives.combined import Part, Placed, Scaled, Sum, as_objective, holds
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
    "Part",
    "Placed",
    "Scaled",
    "SquaredNorm",
    "Sum",
    "accumulate",
    "as_objective",
    "curvature",
    "draw",
    "holds",
    "linear_model",
    "loss",
    "project_cone",
]
