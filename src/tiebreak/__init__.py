"""Break the tie among equally good models: stochastic simple bilevel optimisation.

Among all minimisers of one convex objective over a compact convex set, find the one that is best for a second objective,
when both are seen only through samples.
"""

from tiebreak import data
from tiebreak.certificate import Certificate
from tiebreak.checkpoint import CheckpointError
from tiebreak.domains import (
    Birkhoff,
    Box,
    CappedSimplex,
    Columns,
    Cut,
    CutStatus,
    Domain,
    GroupBall,
    Hull,
    KSparse,
    L1Ball,
    L2Ball,
    LInfBall,
    NuclearBall,
    Polytope,
    Product,
    Simplex,
    Spectrahedron,
    UnitSimplex,
    WeightedL1Ball,
)
from tiebreak.methods import METHODS, SBCGF, SBCGI, Method, SpiderFW
from tiebreak.minimize import Snapshot, minimize
from tiebreak.objectives import (
    ConeDistance,
    Covariance,
    Dictionary,
    FiniteSum,
    Huber,
    JointDictionary,
    LeastSquares,
    Logistic,
    NonFiniteError,
    Objective,
    OracleError,
    Part,
    Scaled,
    SquaredNorm,
    Sum,
)
from tiebreak.problem import Problem
from tiebreak.result import Counts, History, Record, Result, Status
from tiebreak.schedules import constant, power

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "SBCGF",
    "SBCGI",
    "Birkhoff",
    "Box",
    "CappedSimplex",
    "Certificate",
    "CheckpointError",
    "Columns",
    "ConeDistance",
    "Counts",
    "Covariance",
    "Cut",
    "CutStatus",
    "Dictionary",
    "Domain",
    "FiniteSum",
    "GroupBall",
    "History",
    "Huber",
    "Hull",
    "JointDictionary",
    "KSparse",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "LeastSquares",
    "Logistic",
    "Method",
    "NonFiniteError",
    "NuclearBall",
    "Objective",
    "OracleError",
    "Part",
    "Polytope",
    "Problem",
    "Product",
    "Record",
    "Result",
    "Scaled",
    "Simplex",
    "Snapshot",
    "Spectrahedron",
    "SpiderFW",
    "SquaredNorm",
    "Status",
    "Sum",
    "UnitSimplex",
    "WeightedL1Ball",
    "constant",
    "data",
    "minimize",
    "power",
]
