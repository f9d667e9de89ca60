"""SBCGI: stochastic bilevel conditional gradient for streams, and for finite sums too large to pass over.

Cao, Jiang, Abolfazli, Yazdandoost Hamedani and Mokhtari, Projection-free methods for stochastic simple bilevel
optimization with convex lower-level problem, NeurIPS 2023, Algorithm 1.

    ∇f̂_t = (1 − α_t) ∇f̂_{t−1} + ∇f~(x_t, θ_t) − (1 − α_t) ∇f~(x_{t−1}, θ_t)         and ∇ĝ_t, ĝ_t likewise
    s_t  = argmin ⟨∇f̂_t, s⟩  over  s ∈ Z, ⟨∇ĝ_t, s − x_t⟩ ≤ g(x_0) − ĝ_t + K_t
    x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t

In the paper: γ_{t+1} is ``step(t)``, K_t is ``slack(t)``, β_t = ρ_t is ``momentum(t)``, α_t is ``upper_momentum(t)``, which
is the same if it is not given, g(x_0) is ``anchor``. Of a stream g(x_0) is the mean over a large batch, and its error
becomes part of K_t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.randomness import moment_of
from tiebreak.estimates import LEAST_DRAWS, First, first_estimate, storm, storm_cost
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
from tiebreak.objectives.base import everything
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power


class Constants(NamedTuple):
    """What SBCGI's loop takes besides its schedules."""

    upper: First  # what ∇f̂_0 is made of
    lower: First  # what ∇ĝ_0 and g(x_0) are made of
    careful: bool  # whether the first estimates are made of these, not of one batch
    curvature: float  # L_f; 0: steps are not shortened
    margin: float  # standard errors by which the cut is moved outwards; if any, the first estimate is exact
    allowance: float  # by which g may rise before steps are shortened; 0: they are not
    watch: int  # the iteration from which the point of least stationarity is kept; 0: it is not


MARGIN = 3.0  # standard errors of g(x_0) of a stream, where no margin is given
SHARE = 0.05  # of the queries, for the first estimate of one level of a stream
MOST = 100_000  # samples for it, whatever the budget
AT_ONCE = 500  # of them


@kernel
def advance(problem, state, constants, step, slack, momentum, upper_momentum, keys):
    """Take one step of Algorithm 1 for each entry of the schedules."""
    f, g, domain = problem
    x, previous, _, upper, lower, anchor, origin, variance, t, _, _, _, unused = state
    _, _, _, curvature, margin, allowance, watch = constants
    for k in range(step.size):
        if t[0] == 0 and constants.careful:
            first_estimate(f, upper, constants.upper, moment_of(keys.upper, 0), x)
            error, left = first_estimate(g, lower, constants.lower, moment_of(keys.lower, 0), x)
            unused[0] = left * constants.lower.batch.size
            variance[0] = error * error
            errors = margin if margin > 0.0 else MARGIN
            anchor[0] = lower.value[0] + errors * error + ROUNDING * size_of_terms(lower, x)
        else:
            keep = 1.0 - momentum[k] if t[0] > 0 else 0.0
            before = model_at(lower, origin, x) if margin > 0.0 else 0.0
            storm(f, upper, moment_of(keys.upper, t[0]), x, previous, 1.0 - upper_momentum[k] if t[0] > 0 else 0.0)
            storm(g, lower, moment_of(keys.lower, t[0]), x, previous, keep)
            if margin > 0.0:
                innovation = model_at(lower, origin, x) - before
                variance[0] = keep * keep * variance[0] + innovation * innovation
        outcome = cut_and_move(domain, state, slack[k], margin, step[k], curvature, allowance, watch)
        if outcome != DONE:
            return outcome
    return DONE


@dataclass(frozen=True)
class SBCGI(Method):
    """Stochastic bilevel conditional gradient with STORM estimates.

    Parameters
    ----------
    step : number or function of t, optional
        The weight of s_t in x_{t+1}, between 0 and 1.
    slack : number or function of t, optional
        K_t, by which the cut is moved outwards to allow for noise, in units of g.
    momentum : number or function of t, optional
        The weight of a fresh sample in the estimates; at t = 0 it is 1 whatever is given here.
    upper_momentum : number or function of t, optional
        The same for the estimate of ∇f, if it is to be another.
    batch_size : int, optional
        Samples drawn at each level in an iteration.
    margin : float, optional
        By how many standard errors of its estimate the cut is moved outwards besides; they are watched during the run. If it
        is positive, the first estimates are exact.
    curvature : float, optional
        A smoothness constant of f. If it is positive, a step is shortened to the one that lowers f most at that curvature,
        but to no less than a twentieth of it. 0: steps are not shortened.
    allowance : float, optional
        By how much g may exceed g(x_0) and ``slack`` before steps become shorter, in units of g; 0: they never do. If not
        given, ``preset="auto"`` takes 0.001 of g at the centre of Z, above its known floor, where f is not convex.
    initial : Method, optional
        What finds the first point, which should nearly minimise g, if none is given to ``minimize``.
    anchor_samples : int, optional
        Of a stream: samples for the first estimates of each level, g(x_0) among them, at most. If not given: a twentieth of
        the budget, 100,000, or what all iterations draw, whichever is least.
    anchor_error : float, optional
        Of a stream: the standard error of g(x_0) at which no more samples are drawn for it. If not given, a twelfth of the
        lower tolerance, where there is one. Three times the error that it has, or ``margin`` times, becomes part of K_t.
    preset : str
        Where parameters that are not given come from. ``"paper"``: the constants of the paper's regression experiment;
        ``"paper-dictionary"``: those of its dictionary experiment, for means of 250 samples; ``"auto"``: steps and momentum
        from the budget, no slack but a margin of three standard errors, and a first point by accelerated projected
        gradients where the domain has a projection; ``"theory"``: steps, momentum and slack of the paper's Theorems 4.4 and
        4.5, and for f not convex the answer is the point of least stationarity in the second half of the run.
    theory : Theory, optional
        The constants for ``preset="theory"``; those that are not given are estimated from the data.

    Examples
    --------
    >>> SBCGI(slack=0.0, batch_size=8).step
    power(scale=0.01, exponent=1.0, shift=2.0)
    """

    step: ScheduleLike | None = None
    slack: ScheduleLike | None = None
    momentum: ScheduleLike | None = None
    upper_momentum: ScheduleLike | None = None
    batch_size: int | None = None
    margin: float | None = None
    curvature: float | None = None
    allowance: float | None = None
    initial: Method | None = None
    preset: str = "paper"
    theory: Theory | None = None
    anchor_samples: int | None = None
    anchor_error: float | None = None

    name = "sbcgi"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Algorithm 1"
    setting = "stream or finite sum"
    streams = True
    needs = "linear minimisation over a half-space"
    rates = "t^-1/2; t^-1/2 (f convex), t^-1/3; t^-1/3 (f not convex)"
    loop = advance
    counts = ("batch_size", "anchor_samples")
    reals: ClassVar = {
        "margin": {"least": 0.0},
        "curvature": {"least": 0.0},
        "allowance": {"least": 0.0},
        "anchor_error": {"least": 0.0},
    }
    limits: ClassVar = {"step": 1.0, "slack": np.inf, "momentum": 1.0, "upper_momentum": 1.0}
    presets: ClassVar = {
        "paper": {
            "step": power(0.01, 1.0, shift=2.0),
            "slack": power(1e-4, 0.5),
            "momentum": power(1.0, 1.0),
            "batch_size": 1,
            "margin": 0.0,
            "curvature": 0.0,
            "allowance": 0.0,
        },
        "paper-dictionary": {
            "step": power(0.1, 2 / 3, shift=2.0),
            "slack": power(4e-5, 1 / 3),
            "momentum": power(1.0, 2 / 3),
            "batch_size": 8,
            "margin": 0.0,
            "curvature": 0.0,
            "allowance": 0.0,
        },
        "auto": {"slack": constant(0.0), "batch_size": 4, "margin": 3.0},
        "theory": {"batch_size": 1, "margin": 0.0, "curvature": 0.0, "allowance": 0.0},
    }

    def check(self, problem: Problem) -> None:
        Method.check(self, problem)
        if self.anchor_samples is not None and self.anchor_samples < LEAST_DRAWS:
            raise ValueError(
                f"`anchor_samples` must be at least {LEAST_DRAWS}, for the error of g(x_0), got {self.anchor_samples}"
            )

    def __post_init__(self) -> None:
        check_theory(self.theory)
        Method.__post_init__(self)

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        return Method.for_problem(with_theory(self, problem, budget), problem, budget)

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        found: dict[str, Callable[[], Any]] = {}
        sized = self
        if problem.upper.endless or problem.lower.endless:
            samples = self.anchor_samples or self._affordable(budget)
            error = budget.lower_gap / (4.0 * MARGIN)
            found = {"anchor_samples": lambda: samples, "anchor_error": lambda: error}
            sized = replace(self, anchor_samples=samples)
        if self.theory is not None:
            return {**found, **lazily(self.theory.storm(known_convexity(problem, self), problem.dimension), problem)}
        horizon = sized.horizon(problem, budget)
        slow = power(1.0, 1.0, shift=1000.0) if math.isinf(horizon) else constant(1.0 / horizon)
        paper = self.preset != "auto" and not problem.lower.endless
        return {
            **found,
            "step": lambda: fitting_step(problem, self, horizon, exponent=2 / 3),
            "momentum": lambda: slow,
            # f not convex moves far from where its estimate was exact; g, held by the cut, does not
            "upper_momentum": lambda: self.momentum or (slow if problem.upper.convex else power(1.0, 2 / 3)),
            "curvature": lambda: curvature_of(problem),
            "allowance": lambda: allowance_of(problem),
            "initial": lambda: SpiderFW(level="lower") if paper else first_points(problem),
        }

    def schedule_values(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        return Method.schedule_values(replace(self, upper_momentum=self.upper_momentum or self.momentum), t)

    def constants(self, problem: Problem) -> Constants:
        margin = self.margin or 0.0
        upper, lower = self._first(problem.upper, 0.0), self._first(problem.lower, self.anchor_error or 0.0)
        watch = self.theory.watch if self.theory is not None and not problem.upper.convex else 0
        careful = margin > 0.0 or problem.lower.endless
        return Constants(upper, lower, careful, self.curvature or 0.0, margin, self.allowance or 0.0, watch)

    def _affordable(self, budget: Budget) -> int:
        """Return how many samples of a stream the first estimate of a level may take."""
        drawn = budget.iterations * (self.batch_size or 1)  # by all iterations
        return int(max(min(SHARE * budget.queries, MOST, drawn), 2 * LEAST_DRAWS))

    def _first(self, objective: Any, error: float) -> First:
        if not objective.endless:
            return First(everything(objective), 0, 0.0)
        samples = self.anchor_samples or LEAST_DRAWS
        at_once = max(min(AT_ONCE, samples // (2 * LEAST_DRAWS)), 1)
        return First(np.zeros(at_once, dtype=np.int64), samples // at_once, error)

    def answer(self, state: State) -> np.ndarray:
        return offered(state)

    def start(self, problem: Problem, constants: Constants, x: np.ndarray) -> State:
        assert self.batch_size is not None
        state = start_state(problem, x, self.batch_size, self.batch_size)
        if not constants.careful:
            state.anchor[0] = problem.lower.value(x)
        return state

    def cost(self, problem: Problem, constants: Constants, t: np.ndarray) -> Cost:
        assert self.batch_size is not None
        queries, evaluations = storm_cost(t, self.batch_size)
        if constants.careful:
            first = (each.batch.size * max(each.draws, 1) for each in (constants.upper, constants.lower))
            upper, lower = (np.where(t == 0, n, queries) for n in first)
            return Cost(upper, lower, np.where(t == 0, upper, evaluations), np.where(t == 0, lower, evaluations))
        anchor = np.where(t == 0, problem.lower.n_samples, 0)  # the full pass for g(x_0)
        return Cost(queries, queries + anchor, evaluations, evaluations + anchor)

    def unspent(self, state: State) -> np.ndarray:
        unused = int(state.unused[0])
        return np.array([0, unused, 0, unused])


@dataclass(frozen=True)
class SBCGIM(SBCGI):
    """SBCGI with a cut that is not moved outwards: K_t = 0. The paper's ablation; its cut is often empty.

    Where the cut is empty, the paper prints s_t = ∇ĝ_t, which need not lie in Z; the point of Z that violates the cut least
    is taken, s_t = argmin ⟨∇ĝ_t, s⟩.

    Examples
    --------
    >>> SBCGIM().slack
    constant(value=0.0)
    """

    name = "sbcgi-m"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Appendix"
    rates = "none known"
    presets: ClassVar = without_slack(SBCGI.presets)
