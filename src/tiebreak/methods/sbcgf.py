"""SBCGF: stochastic bilevel conditional gradient for finite sums.

Cao, Jiang, Abolfazli, Yazdandoost Hamedani and Mokhtari, Projection-free methods for stochastic simple bilevel
optimization with convex lower-level problem, NeurIPS 2023, Algorithm 2.

    t mod q = 0:  ∇f̂_t = ∇f(x_t), ∇ĝ_t = ∇g(x_t), ĝ_t = g(x_t)
    otherwise:    ∇f̂_t = ∇f̂_{t−1} + ∇f_S(x_t) − ∇f_S(x_{t−1})                         and ∇ĝ_t, ĝ_t likewise
    s_t  = argmin ⟨∇f̂_t, s⟩  over  s ∈ Z, ⟨∇ĝ_t, s − x_t⟩ ≤ g(x_0) − ĝ_t + K_t
    x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t

In the paper: γ_{t+1} is ``step(t)``, K_t is ``slack(t)``, S is a ``batch_size``, q a ``period``, g(x_0) is ``anchor``. The
two levels have their own S and q, and refresh independently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.randomness import moment_of
from tiebreak.estimates import Sampling, spider, spider_cost, spider_sampling
from tiebreak.methods.base import DONE, NO_BUDGET, Budget, Cost, Method
from tiebreak.methods.cutting import (
    ROUNDING,
    State,
    allowance_of,
    check_theory,
    curvature_of,
    cut_and_move,
    first_points,
    fitting_step,
    known_convexity,
    lazily,
    model_at,
    offered,
    size_of_terms,
    start_state,
    with_theory,
    without_slack,
)
from tiebreak.methods.fw import SpiderFW
from tiebreak.methods.theory import Theory
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power


class Constants(NamedTuple):
    """What SBCGF's loop takes besides its schedules."""

    upper: Sampling  # S and q of f
    lower: Sampling  # S and q of g
    curvature: float  # L_f; 0: steps are not shortened
    margin: float  # standard errors by which the cut is moved outwards
    allowance: float  # by which g may rise before steps are shortened; 0: they are not
    watch: int  # the iteration from which the point of least stationarity is kept; 0: it is not


@kernel
def advance(problem, state, constants, step, slack, keys):
    """Take one step of Algorithm 2 for each entry of the schedules."""
    f, g, domain = problem
    x, previous, _, upper, lower, anchor, origin, variance, t, _, _, _, _ = state
    _, _, curvature, margin, allowance, watch = constants
    for k in range(step.size):
        spider(f, upper, constants.upper, t[0], moment_of(keys.upper, t[0]), x, previous)
        before = model_at(lower, origin, x) if margin > 0.0 else 0.0
        spider(g, lower, constants.lower, t[0], moment_of(keys.lower, t[0]), x, previous)
        if t[0] == 0:
            anchor[0] = lower.value[0]
        if margin > 0.0:
            if t[0] == 0:
                anchor[0] += ROUNDING * size_of_terms(lower, x)
            innovation = model_at(lower, origin, x) - before
            variance[0] = 0.0 if t[0] % constants.lower.period == 0 else variance[0] + innovation * innovation
        outcome = cut_and_move(domain, state, slack[k], margin, step[k], curvature, allowance, watch)
        if outcome != DONE:
            return outcome
    return DONE


@dataclass(frozen=True)
class SBCGF(Method):
    """Stochastic bilevel conditional gradient with SPIDER estimates.

    Parameters
    ----------
    step : number or function of t, optional
        The weight of s_t in x_{t+1}, between 0 and 1.
    slack : number or function of t, optional
        K_t, by which the cut is moved outwards to allow for noise, in units of g.
    upper_batch_size, lower_batch_size : int, optional
        S, the samples drawn at a level in an iteration; ⌊√n⌋ of that level's n if not given.
    upper_period, lower_period : int, optional
        q, the iterations from one exact gradient of a level to the next; ⌊√n⌋ if not given.
    margin : float, optional
        By how many standard errors of its estimate the cut is moved outwards besides; they are watched during the run.
    curvature : float, optional
        A smoothness constant of f. If it is positive, a step is shortened to the one that lowers f most at that curvature,
        but to no less than a twentieth of it. 0: steps are not shortened.
    allowance : float, optional
        By how much g may exceed g(x_0) and ``slack`` before steps become shorter, in units of g; 0: they never do. If not
        given, ``preset="auto"`` takes 0.001 of g at the centre of Z, above its known floor, where f is not convex.
    initial : Method, optional
        What finds the first point, which should nearly minimise g, if none is given to ``minimize``.
    preset : str
        Where parameters that are not given come from. ``"paper"``: the constants of the paper's regression experiment;
        ``"paper-dictionary"``: those of its dictionary experiment, for means of 250 samples; ``"auto"``: steps from the
        budget, no slack but a margin of three standard errors, and a first point by accelerated projected gradients where
        the domain has a projection; ``"theory"``: steps and slack of the paper's Theorems 4.6 and 4.7, and for f not convex
        the answer is the point of least stationarity in the second half of the run.
    theory : Theory, optional
        The constants for ``preset="theory"``; those that are not given are estimated from the data.

    Examples
    --------
    >>> SBCGF(lower_period=10).step
    constant(value=1e-05)
    """

    step: ScheduleLike | None = None
    slack: ScheduleLike | None = None
    upper_batch_size: int | None = None
    lower_batch_size: int | None = None
    upper_period: int | None = None
    lower_period: int | None = None
    margin: float | None = None
    curvature: float | None = None
    allowance: float | None = None
    initial: Method | None = None
    preset: str = "paper"
    theory: Theory | None = None

    name = "sbcgf"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Algorithm 2"
    setting = "finite sum"
    needs = "linear minimisation over a half-space"
    rates = "t^-1; t^-1, up to log t (f convex), t^-1/2; t^-1/2 (f not convex)"
    loop = advance
    counts = ("upper_batch_size", "lower_batch_size", "upper_period", "lower_period")
    reals: ClassVar = {"margin": {"least": 0.0}, "curvature": {"least": 0.0}, "allowance": {"least": 0.0}}
    limits: ClassVar = {"step": 1.0, "slack": np.inf}
    presets: ClassVar = {
        "paper": {
            "step": constant(1e-5),
            "slack": power(1e-4, 0.5),
            "margin": 0.0,
            "curvature": 0.0,
            "allowance": 0.0,
            "initial": SpiderFW(level="lower"),
        },
        "paper-dictionary": {
            "step": constant(1e-3),
            "slack": power(4e-5, 1 / 3),
            "margin": 0.0,
            "curvature": 0.0,
            "allowance": 0.0,
            "initial": SpiderFW(level="lower"),
        },
        "auto": {"slack": constant(0.0), "margin": 3.0},
        "theory": {"margin": 0.0, "curvature": 0.0, "allowance": 0.0},
    }

    def __post_init__(self) -> None:
        check_theory(self.theory)
        Method.__post_init__(self)

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        return Method.for_problem(with_theory(self, problem, budget), problem, budget)

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        if self.theory is not None:
            sampling = spider_sampling(problem.lower, self.lower_batch_size, self.lower_period)
            if sampling.period > sampling.batch_size:
                raise ValueError(
                    "theory needs a `lower_period` of at most `lower_batch_size`, got"
                    f" {sampling.period} and {sampling.batch_size}"
                )
            schedules = self.theory.spider(known_convexity(problem, self), sampling.period, self.step)  # type: ignore[arg-type]
            return lazily(schedules, problem)
        return {
            "step": lambda: fitting_step(problem, self, self.horizon(problem, budget), exponent=0.5),
            "curvature": lambda: curvature_of(problem),
            "allowance": lambda: allowance_of(problem),
            "initial": lambda: first_points(problem),
        }

    def constants(self, problem: Problem) -> Constants:
        return Constants(
            upper=spider_sampling(problem.upper, self.upper_batch_size, self.upper_period),
            lower=spider_sampling(problem.lower, self.lower_batch_size, self.lower_period),
            curvature=self.curvature or 0.0,
            margin=self.margin or 0.0,
            allowance=self.allowance or 0.0,
            watch=self.theory.watch if self.theory is not None and not problem.upper.convex else 0,
        )

    def answer(self, state: State) -> np.ndarray:
        return offered(state)

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        return start_state(problem, x, constants.upper.batch_size, constants.lower.batch_size)

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        upper, lower = spider_cost(t, constants.upper), spider_cost(t, constants.lower)
        return Cost(upper[0], lower[0], upper[1], lower[1])


@dataclass(frozen=True)
class SBCGFM(SBCGF):
    """SBCGF with a cut that is not moved outwards: K_t = 0. The paper's ablation; see :class:`SBCGIM`.

    Examples
    --------
    >>> SBCGFM().slack
    constant(value=0.0)
    """

    name = "sbcgf-m"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Appendix"
    rates = "none known"
    presets: ClassVar = without_slack(SBCGF.presets)
