"""Objectives: what can be sampled. One file per family."""

from tiebreak.engine.randomness import uniform_indices
from tiebreak.objectives.adapters.callables import Computed, EndOfStream, FiniteSum, NonFiniteError, Oracle, OracleError
from tiebreak.objectives.adapters.jax_losses import from_jax
from tiebreak.objectives.adapters.streams import AssumptionError, Stream
from tiebreak.objectives.adapters.torch_losses import from_torch
from tiebreak.objectives.arithmetic import Objective, Scaled, Sum, as_objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.cones import ConeDistance, project_cone
from tiebreak.objectives.dictionary import DictionaryLoss, JointDictionaryLoss
from tiebreak.objectives.fairness import SquaredCovariance
from tiebreak.objectives.linear import Huber, LeastSquares, LinearModel, Logistic, linear_model
from tiebreak.objectives.losses import ConvexLoss, HuberLoss, bend, curvature, loss
from tiebreak.objectives.norms import SquaredNorm
from tiebreak.objectives.parts import OnPart, Placed, holds
from tiebreak.objectives.summed import SummedSquares

__all__ = [
    "AssumptionError",
    "Computed",
    "ConeDistance",
    "ConvexLoss",
    "DictionaryLoss",
    "EndOfStream",
    "FiniteSum",
    "Huber",
    "HuberLoss",
    "JointDictionaryLoss",
    "LeastSquares",
    "LinearModel",
    "Logistic",
    "NonFiniteError",
    "Objective",
    "OnPart",
    "Oracle",
    "OracleError",
    "Placed",
    "Scaled",
    "SquaredCovariance",
    "SquaredNorm",
    "Stream",
    "Sum",
    "SummedSquares",
    "accumulate",
    "as_objective",
    "bend",
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
