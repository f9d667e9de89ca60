"""Objectives: what can be sampled. One file a family."""

from tiebreak.engine.randomness import uniform_indices
from tiebreak.objectives.adapters.callables import Computed, EndOfStream, FiniteSum, NonFiniteError, Oracle, OracleError
from tiebreak.objectives.adapters.jax_losses import from_jax
from tiebreak.objectives.adapters.streams import AssumptionError, Stream
from tiebreak.objectives.adapters.torch_losses import from_torch
from tiebreak.objectives.base import Objective, accumulate, draw
from tiebreak.objectives.combined import Part, Placed, Scaled, Sum, as_objective, holds
from tiebreak.objectives.cones import ConeDistance, project_cone
from tiebreak.objectives.dictionary import Dictionary, JointDictionary
from tiebreak.objectives.fairness import Covariance
from tiebreak.objectives.linear import ConvexLoss, Huber, LeastSquares, LinearModel, Logistic, curvature, linear_model, loss
from tiebreak.objectives.norms import SquaredNorm

__all__ = [
    "AssumptionError",
    "Computed",
    "ConeDistance",
    "ConvexLoss",
    "Covariance",
    "Dictionary",
    "EndOfStream",
    "FiniteSum",
    "Huber",
    "JointDictionary",
    "LeastSquares",
    "LinearModel",
    "Logistic",
    "NonFiniteError",
    "Objective",
    "Oracle",
    "OracleError",
    "Part",
    "Placed",
    "Scaled",
    "SquaredNorm",
    "Stream",
    "Sum",
    "accumulate",
    "as_objective",
    "curvature",
    "draw",
    "from_jax",
    "from_torch",
    "holds",
    "linear_model",
    "loss",
    "project_cone",
    "uniform_indices",
]
