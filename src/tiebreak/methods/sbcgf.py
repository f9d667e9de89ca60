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

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tiebreak.domains.base import EMPTY
from tiebreak.engine import kernel
from tiebreak.estimators import Sampling, spider, spider_cost, spider_sampling
from tiebreak.methods.base import DONE, Cost, Method
from tiebreak.methods.cutting import State, cut_and_move, start_state
from tiebreak.methods.fw import SpiderFW
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power


class Constants(NamedTuple):
    """What SBCGF's loop takes besides its schedules."""

    upper: Sampling  # S and q of f
    lower: Sampling  # S and q of g


@kernel
def advance(problem, state, constants, step, slack, rng):
    """Take one step of Algorithm 2 for each entry of the schedules."""
    f, g, domain = problem
    x, previous, target, upper, lower, anchor, t, empty_cuts = state
    for k in range(step.size):
        spider(f, upper, constants.upper, t[0], rng, x, previous)
        spider(g, lower, constants.lower, t[0], rng, x, previous)
        if t[0] == 0:
            anchor[0] = lower.value[0]
        status = cut_and_move(domain, x, previous, target, upper, lower, anchor[0], slack[k], step[k])
        if status < 0:
            return status
        if status == EMPTY:
            empty_cuts[0] += 1
        t[0] += 1
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
    initial : Method, optional
        What finds the first point, which should nearly minimise g, if none is given to ``minimize``.
    preset : str
        Where parameters that are not given come from. ``"paper"``: the constants of the paper's regression experiment;
        ``"paper-dictionary"``: those of its dictionary experiment, for means of 250 samples.

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
    initial: Method | None = None
    preset: str = "paper"

    name = "sbcgf"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Algorithm 2"
    setting = "finite sum"
    needs = "linear minimisation over a half-space"
    rates = "t^-1; t^-1, up to log t (f convex), t^-1/2; t^-1/2 (f not convex)"
    loop = advance
    counts = ("upper_batch_size", "lower_batch_size", "upper_period", "lower_period")
    limits: ClassVar = {"step": 1.0, "slack": np.inf}
    presets: ClassVar = {
        "paper": {"step": constant(1e-5), "slack": power(1e-4, 0.5), "initial": SpiderFW(level="lower")},
        "paper-dictionary": {"step": constant(1e-3), "slack": power(4e-5, 1 / 3), "initial": SpiderFW(level="lower")},
    }

    def constants(self, problem: Problem) -> Constants:
        return Constants(
            upper=spider_sampling(problem.upper, self.upper_batch_size, self.upper_period),
            lower=spider_sampling(problem.lower, self.lower_batch_size, self.lower_period),
        )

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
    presets: ClassVar = {name: {**preset, "slack": constant(0.0)} for name, preset in SBCGF.presets.items()}
