"""SBCGI: stochastic bilevel conditional gradient with STORM estimates, for streams and for very large finite sums.

Cao, Jiang, Abolfazli, Yazdandoost Hamedani and Mokhtari, Projection-free methods for stochastic simple bilevel
optimization with convex lower-level problem, NeurIPS 2023, Algorithm 1.

The rule is in ``cutting.py``, the estimate in ``estimates.py``. In the paper: γ_{t+1} is ``step(t)``, K_t is ``slack(t)``,
β_t = ρ_t is ``momentum(t)``, α_t is ``upper_momentum(t)``. On a stream g(x_0) is the mean over a large batch, and its error
becomes part of K_t. Where the cut of the ablation is empty, the paper prints s_t = ∇ĝ_t, which need not lie in Z. Here it is
the point of Z that violates the cut least, s_t = argmin ⟨∇ĝ_t, s⟩.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tiebreak.estimates import LEAST_DRAWS, Exact, OneBatch, Several, Storm, drawing_what_is_sampled, exact
from tiebreak.methods import cut_rules as rules
from tiebreak.methods.base import Budget
from tiebreak.methods.cutting import AS_GIVEN, ROUNDING_OF_CUT, Plan
from tiebreak.methods.fitting import first_points, fitting_step, known_convexity
from tiebreak.methods.frank_wolfe import SpiderFW
from tiebreak.methods.parameters import declared, real, schedule, whole
from tiebreak.methods.sbcgf import SBCG, without_slack
from tiebreak.objectives.adapters.streams import KEEP_HELP
from tiebreak.problem import Problem
from tiebreak.schedules import ScheduleLike, constant, power

ERRORS_OF_ANCHOR = 3.0  # standard errors of g(x_0) of a stream that become part of the slack, where no margin is given
FIRST_SHARE = 0.05  # share of the queries for the first estimate of one level of a stream
MOST_FIRST_SAMPLES = 100_000  # samples for this estimate at most, whatever the budget
ROWS_PER_DRAW = 500  # rows drawn together for the first estimate of a stream


@declared
class SBCGI(SBCG):
    """Stochastic bilevel conditional gradient with STORM estimates.

    With a margin, and on streams, first estimates are careful: exact for a finite sum, the mean over a large batch for a
    stream. Otherwise they are made of one batch.

    Examples
    --------
    >>> SBCGI(preset="paper", slack=0.0, batch_size=8).step
    power(scale=0.01, exponent=1.0, shift=2.0)
    """

    momentum: ScheduleLike | None = schedule(
        "The weight of a fresh sample in the estimates; at t = 0 it is 1 whatever is given here.", largest=1.0
    )
    upper_momentum: ScheduleLike | None = schedule(
        "The same for the estimate of ∇f; ``momentum`` if it is not given.", largest=1.0
    )
    batch_size: int | None = whole("Samples drawn at each level in an iteration.")
    anchor_samples: int | None = whole(
        "For a stream: the most samples for the first estimates of each level, g(x_0) among them. If not given: a twentieth"
        " of the budget, 100,000, or what all iterations draw, whichever is least."
    )
    anchor_error: float | None = real(
        "For a stream: the standard error of g(x_0) at which no more samples are drawn. If not given, a twelfth of the"
        " lower tolerance, if there is one. Three times the error of g(x_0), or ``margin`` times, becomes part of K_t.",
        least=0.0,
    )

    name = "sbcgi"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Algorithm 1"
    setting = "stream or finite sum"
    streams = True
    rates = "t^-1/2; t^-1/2 (f convex), t^-1/3; t^-1/3 (f not convex)"
    presets: ClassVar = {
        "auto": {"slack": constant(0.0), "batch_size": 4, "margin": 3.0},
        "paper": {
            "step": power(0.01, 1.0, shift=2.0),
            "slack": power(1e-4, 0.5),
            "momentum": power(1.0, 1.0),
            "batch_size": 1,
            "margin": 0.0,
            **AS_GIVEN,
        },
        "paper-dictionary": {
            "step": power(0.1, 2 / 3, shift=2.0),
            "slack": power(4e-5, 1 / 3),
            "momentum": power(1.0, 2 / 3),
            "batch_size": 8,
            "margin": 0.0,
            **AS_GIVEN,
        },
        "theory": {"batch_size": 1, "margin": 0.0, **AS_GIVEN},
    }

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.anchor_samples is not None and self.anchor_samples < LEAST_DRAWS:
            raise ValueError(
                f"`anchor_samples` must be at least {LEAST_DRAWS}, for the error of g(x_0), got {self.anchor_samples}"
            )

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        found: dict[str, Callable[[], Any]] = {}
        sized = self
        if problem.upper.endless or problem.lower.endless:
            samples = self.anchor_samples or self._affordable(budget)
            error = budget.lower_gap / (4.0 * ERRORS_OF_ANCHOR)
            found = {"anchor_samples": lambda: samples, "anchor_error": lambda: error}
            sized = replace(self, anchor_samples=samples)
        if self.theory is not None:
            theorem = self.theory.storm(known_convexity(problem, self), problem.dimension)
            return {**found, **self.by_theory(theorem, problem)}
        horizon = sized.horizon(problem, budget)
        slow = power(1.0, 1.0, shift=1000.0) if math.isinf(horizon) else constant(1.0 / horizon)
        paper = self.preset != "auto" and not problem.lower.endless
        return {
            **super().defaults(problem, budget),
            **found,
            "step": lambda: fitting_step(problem, self, horizon, exponent=2 / 3),
            "momentum": lambda: slow,
            # f not convex moves far from where its first estimate was made; g, held by the cut, does not
            "upper_momentum": lambda: self.momentum or (slow if problem.upper.convex else power(1.0, 2 / 3)),
            "initial": lambda: SpiderFW(level="lower", preset="paper") if paper else first_points(problem),
        }

    def plan(self, problem: Problem) -> Plan:
        assert self.batch_size is not None
        careful = bool(self.margin) or problem.lower.endless
        first_upper, first_lower = (
            self._first(problem.upper, 0.0) if careful else OneBatch(),
            self._first(problem.lower, self.anchor_error or 0.0) if careful else OneBatch(),
        )
        momentum, errors = self.given("momentum"), self.margin or ERRORS_OF_ANCHOR
        upper_momentum = momentum if self.upper_momentum is None else self.given("upper_momentum")
        upper, lower = drawing_what_is_sampled(
            problem,
            Storm(upper_momentum, self.batch_size, first_upper),
            Storm(momentum, self.batch_size, first_lower),
        )
        return Plan(
            upper=upper,
            lower=lower,
            anchor=rules.FromEstimate(errors, ROUNDING_OF_CUT) if careful else rules.FromAll(exact(problem.lower)),
            slack=self.slack_rule(),
            **self.step_and_guard(problem),
        )

    def remark(self, problem: Problem, state: Any) -> str:
        """Say what would help where samples are used once, and lost, though they might be kept."""
        if not problem.lower.endless:
            return ""
        return f"; 'sample-average' comes much nearer for Stream.of_rows, a strongly convex g or a tolerance: {KEEP_HELP}"

    def _affordable(self, budget: Budget) -> int:
        """Return how many samples of a stream the first estimate of a level may take."""
        drawn = budget.iterations * (self.batch_size or 1)  # by all iterations
        return int(max(min(FIRST_SHARE * budget.queries, MOST_FIRST_SAMPLES, drawn), 2 * LEAST_DRAWS))

    def _first(self, objective: Any, error: float) -> Exact | Several:
        if not objective.endless:
            return exact(objective)
        samples = self.anchor_samples or LEAST_DRAWS
        together = max(min(ROWS_PER_DRAW, samples // (2 * LEAST_DRAWS)), 1)
        return Several(np.zeros(together, dtype=np.int64), samples // together, error)


@declared
class SBCGIM(SBCGI):
    """SBCGI with a cut that is not moved outwards: K_t = 0. The paper's ablation; its cut may be empty.

    Examples
    --------
    >>> SBCGIM().slack
    constant(value=0.0)
    """

    name = "sbcgi-m"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Appendix"
    rates = "none known"
    presets: ClassVar = without_slack(SBCGI.presets)
