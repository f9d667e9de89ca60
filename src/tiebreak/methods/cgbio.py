"""CG-BiO: conditional gradient for simple bilevel optimisation, with exact gradients.

Jiang, Abolfazli, Mokhtari and Yazdandoost Hamedani, A conditional gradient-based method for simple bilevel optimization with
convex lower-level problem, AISTATS 2023.

    s_t = argmin ⟨∇f(x_t), s⟩  over  s ∈ Z, ⟨∇g(x_t), s − x_t⟩ ≤ g(x_0) − g(x_t) + K_t
    x_{t+1} = (1 − γ_t) x_t + γ_t s_t

In the paper: γ_t is ``step(t)``, g(x_0) is ``anchor``, and K_t = 0. It stops when ⟨∇f(x_t), x_t − s_t⟩ ≤ ε_f and
g(x_t) − g(x_0) ≤ ε_g / 2; here ``tol`` of ``minimize`` does that, with bounds that are proven.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.estimates import gradient_at
from tiebreak.methods.base import DONE, Budget, Cost, Method
from tiebreak.methods.cutting import (
    ROUNDING,
    State,
    allowance_of,
    curvature_of,
    cut_and_move,
    first_points,
    fitting_step,
    size_of_terms,
    start_state,
)
from tiebreak.methods.projecting import Full, full, full_cost
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power


class Constants(NamedTuple):
    """What CG-BiO's loop takes besides its schedules."""

    full: Full  # all samples
    curvature: float  # L_f; 0: steps are not shortened
    allowance: float  # by which g may rise before steps are shortened; 0: they are not
    rounding: float  # by which the cut is moved outwards, relative to its terms at x_0


@kernel
def advance(problem, state, constants, step, slack, keys):
    """Take one step for each entry of the schedules."""
    f, g, domain = problem
    x, _, _, upper, lower, anchor, _, _, t, _, _, _, _ = state
    for k in range(step.size):
        upper.value[0] = gradient_at(f, constants.full.upper, x, upper.direction)
        lower.value[0] = gradient_at(g, constants.full.lower, x, lower.direction)
        if t[0] == 0:
            anchor[0] = lower.value[0] + constants.rounding * size_of_terms(lower, x)
        outcome = cut_and_move(domain, state, slack[k], 0.0, step[k], constants.curvature, constants.allowance, 0)
        if outcome != DONE:
            return outcome
    return DONE


@dataclass(frozen=True)
class CGBiO(Method):
    """Conditional gradient for simple bilevel optimisation, with exact gradients.

    Parameters
    ----------
    step : number or function of t, optional
        γ_t, the weight of s_t in x_{t+1}, between 0 and 1; 2 / (t + 2) if not given.
    slack : number or function of t, optional
        K_t, by which the cut is moved outwards, in units of g. If not given, by what rounding makes of it: 1e-12 of its
        terms.
    curvature : float, optional
        A smoothness constant of f. If it is positive, a step is shortened to the one that lowers f most at that curvature,
        but to no less than a twentieth of it. 0: steps are not shortened.
    allowance : float, optional
        By how much g may exceed g(x_0) and ``slack`` before steps become shorter, in units of g; 0: they never do. If not
        given, ``preset="auto"`` takes 0.001 of g at the centre of Z, above its known floor, where f is not convex.
    initial : Method, optional
        What finds the first point, which should nearly minimise g, if none is given to ``minimize``.
    preset : str
        Where a step that is not given comes from: the paper's regression (``"paper"``) or its dictionary experiment
        (``"paper-dictionary"``), whose step is 0.3 / √(t + 1), or the budget (``"auto"``).

    Examples
    --------
    >>> CGBiO(step=lambda t: 2 / (t + 2), slack=0.0).slack
    constant(value=0.0)
    """

    step: ScheduleLike | None = None
    slack: ScheduleLike | None = None
    curvature: float | None = None
    allowance: float | None = None
    initial: Method | None = None
    preset: str = "paper"

    name = "cg-bio"
    citation = "Jiang, Abolfazli, Mokhtari, Yazdandoost Hamedani (2023)"
    setting = "exact gradients"
    needs = "linear minimisation over a half-space"
    rates = "t^-1; t^-1 (f convex), t^-1/2 (f not convex)"
    loop = advance
    reals: ClassVar = {"curvature": {"least": 0.0}, "allowance": {"least": 0.0}}
    limits: ClassVar = {"step": 1.0, "slack": np.inf}
    presets: ClassVar = {
        "paper": {"step": power(2.0, 1.0, shift=2.0), "curvature": 0.0, "allowance": 0.0},
        "paper-dictionary": {"step": power(0.3, 0.5), "curvature": 0.0, "allowance": 0.0},
        "auto": {},
    }

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            "step": lambda: fitting_step(problem, self, self.horizon(problem, budget), exponent=0.5),
            "curvature": lambda: curvature_of(problem),
            "allowance": lambda: allowance_of(problem),
            "initial": lambda: first_points(problem),
        }

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        if self.slack is None:
            return replace(self, slack=constant(0.0)).schedule_values(t)
        return super().schedule_values(t)

    def constants(self, problem: Problem) -> Constants:
        rounding = ROUNDING if self.slack is None else 0.0
        return Constants(full(problem), self.curvature or 0.0, self.allowance or 0.0, rounding)

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        return start_state(problem, x, 1, 1)

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        return full_cost(constants.full, t)
