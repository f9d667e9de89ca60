"""Problems as plain arrays, for solvers that know nothing of tiebreak.

A problem is a dictionary:

- ``upper`` and ``lower``, the two levels, each a dictionary with a ``loss``:

  - ``"squares"``: mean of ½ w (⟨a, x⟩ − b)² over the rows a of ``A``, with ``b`` and weights w of mean 1, ``weights``;
  - ``"logistic"``: mean of w log(1 + exp(−b ⟨a, x⟩)), with labels b of −1 and 1;
  - ``"huber"``: mean of w h(⟨a, x⟩ − b), with h(r) = ½ r² up to |r| = ``delta`` and linear beyond;
  - ``"distance"``: ½ ‖x − ``center``‖²;

- ``set``, with the name of the set as ``kind``, such as ``"L1Ball"``, and its parameters, such as ``radius``;
- ``x0``, the middle of the set, from which all gaps are measured;
- ``tolerance``, by how much g may exceed g*, and ``keep``, the share of g(``from``) − g* that is kept: 0 and 1 for exact
  ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak import Huber, LeastSquares, Logistic, Objective, Problem, SquaredNorm
from tiebreak.objectives.matrices import CSR, Dense

LOSSES: dict[type, str] = {LeastSquares: "squares", Logistic: "logistic", Huber: "huber"}


class NotInArraysError(ValueError):
    """A problem is more than arrays can say."""


def as_arrays(problem: Problem) -> dict[str, Any]:
    """Return a problem as plain arrays, or raise NotInArraysError."""
    if not hasattr(problem.domain, "_asdict"):
        raise NotInArraysError(f"the set is a {type(problem.domain).__name__}")
    return {
        "upper": _level(problem.upper, problem.dimension),
        "lower": _level(problem.lower, problem.dimension),
        "set": {"kind": type(problem.domain).__name__, **problem.domain._asdict()},
        "x0": problem.center,
        "tolerance": problem.tolerance,
        "keep": problem.keep,
        "from": problem.reference,
    }


def _level(objective: Objective, dimension: int) -> dict[str, Any]:
    if isinstance(objective, SquaredNorm):
        return {"loss": "distance", "center": objective.center if objective.center.size else np.zeros(dimension)}
    loss = LOSSES.get(type(objective))
    if loss is None or not isinstance(objective.matrix, (Dense, CSR)):
        raise NotInArraysError(f"an objective is a {type(objective).__name__}, not a loss of a linear model or a distance")
    matrix = objective.matrix
    A = matrix.to_scipy() if isinstance(matrix, CSR) else matrix.array
    found = {"loss": loss, "A": A, "b": objective.targets, "weights": objective.weights}
    return {**found, "delta": objective.scalar.delta} if loss == "huber" else found


def least_norm_equations(problem: Problem) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return A, b and c of a problem whose answer is c + the least-squares solution of least norm of A y = b.

    It is so if f is the distance to c, g are squares, ties are exact, and that point lies in the set. NotInArraysError says
    what is missing.
    """
    arrays = as_arrays(problem)
    upper, lower = arrays["upper"], arrays["lower"]
    if (upper["loss"], lower["loss"]) != ("distance", "squares") or problem.is_near:
        raise NotInArraysError("it is no least-squares problem of least norm with exact ties")
    root = np.sqrt(lower["weights"])
    A = lower["A"].multiply(root[:, None]).tocsr() if hasattr(lower["A"], "tocsr") else lower["A"] * root[:, None]
    b, center = root * (lower["b"] - lower["A"] @ upper["center"]), upper["center"]
    dense = A.toarray() if hasattr(A, "toarray") else A
    if not problem.domain.contains(center + np.linalg.lstsq(dense, b, rcond=None)[0]):
        raise NotInArraysError("the least-squares solution of least norm lies outside of the set")
    return A, b, center
