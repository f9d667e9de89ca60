"""SBCGF: stochastic bilevel conditional gradient for finite sums, with SPIDER estimates.

Cao, Jiang, Abolfazli, Yazdandoost Hamedani and Mokhtari, Projection-free methods for stochastic simple bilevel
optimization with convex lower-level problem, NeurIPS 2023, Algorithm 2.

The rule is in ``cutting.py``, the estimate in ``estimates.py``. In the paper: γ_{t+1} is ``step(t)``, K_t is ``slack(t)``, S
is a ``batch_size``, q a ``period``. The two levels have their own S and q, and refresh independently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from tiebreak.estimates import spider
from tiebreak.methods import cut_rules as rules
from tiebreak.methods import step_rules as steps
from tiebreak.methods.base import NO_BUDGET, Budget, Method, preset
from tiebreak.methods.cutting import AS_GIVEN, ROUNDING_OF_CUT, Cutting, Plan
from tiebreak.methods.fitting import first_points, known_convexity
from tiebreak.methods.frank_wolfe import SpiderFW
from tiebreak.methods.parameters import declared, real, value, whole
from tiebreak.methods.theory import Theory
from tiebreak.problem import Problem
from tiebreak.schedules import Schedule, constant, power


@declared
class SBCG(Cutting):
    """The common part of SBCGI and SBCGF: a slack that may follow the error of the estimate, and theory."""

    margin: float | None = real(
        "By how many standard errors of its estimate the cut is also moved outwards; they are watched during the run.",
        least=0.0,
    )
    theory: Theory | None = value(
        Theory,
        "Theory(horizon=1000)",
        'The constants for ``preset="theory"``; those that are not given are estimated from the data.',
    )
    preset: str = preset(
        '``"auto"``: steps from the budget, no slack but a margin of three standard errors, and a first point by accelerated'
        ' projected gradients where the domain has a projection; ``"paper"``: the constants of the paper\'s regression'
        ' experiment; ``"paper-dictionary"``: those of its dictionary experiment, for means of 250 samples; ``"theory"``:'
        " those of the paper's theorems, and for f not convex the answer is the point of least stationarity in the second"
        " half of the run."
    )

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.theory is not None and self.preset != "theory":
            raise ValueError(f'`theory` is for preset="theory" only, and the preset is {self.preset!r}')
        if self.preset == "theory" and self.curvature and not problem.upper.convex:
            raise ValueError(
                f'`curvature` must be 0 with preset="theory" where f is not convex, got {self.curvature:g}: leave it out'
            )

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        self.check(problem)
        if self.preset != "theory":
            return super().for_problem(problem, budget)
        given = self.theory or Theory()
        horizon = self.horizon(problem, budget) if given.horizon is None else given.horizon
        return Cutting.for_problem(replace(self, theory=given.for_problem(problem, horizon)), problem, budget)

    def step_and_guard(self, problem: Problem) -> dict[str, Any]:
        found = super().step_and_guard(problem)
        if self.theory is not None and not problem.upper.convex:
            found["step"] = steps.Watching(self.given("step"), self.theory.watch)
        return found

    def slack_rule(self) -> Any:
        """Return the rule for the slack."""
        return rules.Watched(self.given("slack"), self.margin) if self.margin else rules.Fixed(self.given("slack"))

    def by_theory(self, schedules: dict[str, Schedule], problem: Problem) -> dict[str, Callable[[], Any]]:
        """Return the schedules of a theorem as defaults, and what finds the first point."""
        found: dict[str, Callable[[], Any]] = {name: partial(schedules.get, name) for name in schedules}
        return {**found, "initial": lambda: first_points(problem)}


@declared
class SBCGF(SBCG):
    """Stochastic bilevel conditional gradient with SPIDER estimates.

    Examples
    --------
    >>> SBCGF(preset="paper", lower_period=10).step
    constant(value=1e-05)
    """

    upper_batch_size: int | None = whole("S, the samples of f drawn in an iteration; ⌊√n⌋ of that level's n if not given.")
    lower_batch_size: int | None = whole("The same for g.")
    upper_period: int | None = whole("q, the iterations from one exact gradient of f to the next; ⌊√n⌋ if not given.")
    lower_period: int | None = whole("The same for g.")

    name = "sbcgf"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Algorithm 2"
    setting = "finite sum"
    rates = "t^-1; t^-1, up to log t (f convex), t^-1/2; t^-1/2 (f not convex)"
    presets: ClassVar = {
        "auto": {"slack": constant(0.0), "margin": 3.0},
        "paper": {
            "step": constant(1e-5),
            "slack": power(1e-4, 0.5),
            "margin": 0.0,
            "initial": SpiderFW(level="lower", preset="paper"),
            **AS_GIVEN,
        },
        "paper-dictionary": {
            "step": constant(1e-3),
            "slack": power(4e-5, 1 / 3),
            "margin": 0.0,
            "initial": SpiderFW(level="lower", preset="paper"),
            **AS_GIVEN,
        },
        "theory": {"margin": 0.0, **AS_GIVEN},
    }

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        if self.theory is None:
            return super().defaults(problem, budget)
        lower = spider(problem.lower, self.lower_batch_size, self.lower_period)
        if lower.period > lower.batch_size:
            raise ValueError(
                f"theory needs a `lower_period` of at most `lower_batch_size`, got {lower.period} and {lower.batch_size}"
            )
        step: Any = self.step
        return self.by_theory(self.theory.spider(known_convexity(problem, self), lower.period, step), problem)

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            upper=spider(problem.upper, self.upper_batch_size, self.upper_period),
            lower=spider(problem.lower, self.lower_batch_size, self.lower_period),
            anchor=rules.FromEstimate(0.0, ROUNDING_OF_CUT if self.margin else 0.0),
            slack=self.slack_rule(),
            **self.step_and_guard(problem),
        )


def without_slack(presets: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the presets of a method for its ablation with K_t = 0, of which no theory is known."""
    return {name: {**each, "slack": constant(0.0), "margin": 0.0} for name, each in presets.items() if name != "theory"}


@declared
class SBCGFM(SBCGF):
    """SBCGF with a cut that is not moved outwards: K_t = 0. The paper's ablation; its cut may be empty.

    Examples
    --------
    >>> SBCGFM().slack
    constant(value=0.0)
    """

    name = "sbcgf-m"
    citation = "Cao, Jiang, Abolfazli, Yazdandoost Hamedani, Mokhtari (2023), Appendix"
    rates = "none known"
    presets: ClassVar = without_slack(SBCGF.presets)
