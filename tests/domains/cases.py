"""The sets that the shared tests run on. A new set joins by being listed in ``CASES``.

A case says how to make a set of about a given size, and states the set a second time, independently of the library: its
support function, how far a point is outside, and its constraints for a solver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy
import numpy as np
from scipy.optimize import linprog

from tiebreak import L1Ball


class Case(NamedTuple):
    """One kind of set."""

    name: str
    make: Callable[[np.random.Generator, int], tuple[Any, int]]  # (rng, about how many variables) -> set, its dimension
    minimum: Callable[[Any, np.ndarray], float]  # min ⟨c, s⟩ over the set, in NumPy
    violation: Callable[[Any, np.ndarray], float]  # how far x is outside, relative to the size of the set; 0 inside
    constraints: Callable[[Any, cvxpy.Variable], list[Any]]  # the set for CVXPY
    linear: Callable[[Any, int], dict[str, Any]] | None = None  # the set for SciPy's linprog, if it is a polytope
    largest: int = 12  # dimension in the property tests


def solve(case: Case, domain: Any, c: np.ndarray, a: np.ndarray, b: float) -> float | None:
    """Return min ⟨c, s⟩ over the set and ⟨a, s⟩ ≤ b by HiGHS or Clarabel; None if it says that there is no such point."""
    if case.linear is not None:
        model = case.linear(domain, c.size)
        lift = model.pop("lift", np.eye(c.size))  # s = lift @ variables
        rows = np.vstack([model.pop("A_ub", np.empty((0, lift.shape[1]))), a @ lift])
        bounds = np.append(model.pop("b_ub", np.empty(0)), b)
        solved = linprog(c @ lift, A_ub=rows, b_ub=bounds, method="highs", **model)
        return None if solved.status == 2 else float(solved.fun)
    s = cvxpy.Variable(c.size)
    model = cvxpy.Problem(cvxpy.Minimize(c @ s), [*case.constraints(domain, s), a @ s <= b])
    model.solve(solver=cvxpy.CLARABEL)
    return None if model.status.startswith("infeasible") else float(model.value)


CASES = [
    Case(
        name="L1Ball",
        make=lambda rng, d: (L1Ball(rng.uniform(0.5, 3.0)), d),
        minimum=lambda z, c: -z.radius * np.abs(c).max(),
        violation=lambda z, x: max(np.abs(x).sum() / z.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm1(s) <= z.radius],
        linear=lambda z, d: {
            "lift": np.hstack([np.eye(d), -np.eye(d)]),
            "A_ub": np.ones((1, 2 * d)),
            "b_ub": np.array([z.radius]),
            "bounds": (0, None),
        },
    ),
]
