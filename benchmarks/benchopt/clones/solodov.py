"""An example of code from elsewhere: iteratively regularised gradients (Solodov 2007, An explicit descent method)."""

from __future__ import annotations

from typing import Any

import numpy as np


def solve(problem: dict[str, Any], budget: int) -> np.ndarray:
    """Take projected gradient steps on g + f / (t + 1)."""
    lower, upper, ball = problem["lower"], problem["upper"], problem["set"]
    if (lower["loss"], upper["loss"], ball["kind"]) != ("squares", "distance", "L2Ball") or ball["center"].size:
        raise NotImplementedError("it takes squares, a distance and a Euclidean ball around the origin")
    A, b, weights = lower["A"], lower["b"], lower["weights"] / lower["b"].size
    lipschitz = np.linalg.norm(np.sqrt(weights)[:, None] * A, 2) ** 2
    x = problem["x0"]
    for t in range(budget):
        share = 1.0 / (t + 1)
        slope = A.T @ (weights * (A @ x - b)) + share * (x - upper["center"])
        x = x - slope / (lipschitz + share)
        x = x * min(1.0, ball["radius"] / max(np.linalg.norm(x), 1e-300))
    return x
