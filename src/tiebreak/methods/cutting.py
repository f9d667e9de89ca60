"""The rule that cuts: a step towards the minimiser of f's linear model over Z and a half-space around argmin g.

    s_t = argmin ⟨∇f̂_t, s⟩  over  s ∈ Z, ⟨∇ĝ_t, s − x_t⟩ ≤ g(x_0) − ĝ_t + K_t
    x_{t+1} = (1 − γ_{t+1}) x_t + γ_{t+1} s_t

In the papers: γ_{t+1} is ``step(t)``, K_t is ``slack(t)``, g(x_0) is ``anchor``. For near ties the level that g may reach
takes the place of g(x_0). With exact estimates the rule is CG-BiO:
Jiang, Abolfazli, Mokhtari and Yazdandoost Hamedani, A conditional gradient-based method for simple bilevel optimization with
convex lower-level problem, AISTATS 2023. There K_t = 0, and it stops when ⟨∇f(x_t), x_t − s_t⟩ ≤ ε_f and g(x_t) − g(x_0) ≤
ε_g / 2: here ``tol`` of ``minimize`` does that, with proven bounds. With STORM's estimates it is SBCGI
(``sbcgi.py``), with SPIDER's SBCGF (``sbcgf.py``).

If the cut is empty, s_t is the point of Z that violates it least: the direction that lowers g most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from tiebreak.domains.base import EMPTY, INVALID
from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment
from tiebreak.engine.vectors import copy, dot
from tiebreak.estimates import Memory, Once, estimate, exact
from tiebreak.methods import cut_rules as rules
from tiebreak.methods import step_rules as steps
from tiebreak.methods.base import (
    DONE,
    LOWER_NOT_FINITE,
    UPPER_NOT_FINITE,
    Budget,
    Method,
    check_initial,
    initial,
    preset,
)
from tiebreak.methods.cut_rules import margin, set_anchor, watch_error, watch_move
from tiebreak.methods.fitting import allowance_of, curvature_of, first_points, fitting_step, settling
from tiebreak.methods.parameters import declared, other, real, schedule
from tiebreak.methods.states import Count, Number, Point, Room
from tiebreak.methods.step_rules import go_towards, guarded
from tiebreak.problem import Problem
from tiebreak.schedules import Given, ScheduleLike, constant, power

ROUNDING_OF_CUT = 1e-12  # share of the cut's terms: without any slack it is empty by rounding in every tenth iteration
AS_GIVEN: dict[str, Any] = {"curvature": 0.0, "allowance": 0.0}  # parameters with which steps are never shortened


Limitless = Annotated[np.ndarray, lambda x: np.full(1, np.inf)]  # one number, infinite at first


class State(NamedTuple):
    """The state of a method that cuts."""

    x: Point  # x_t
    previous: Point  # x_{t−1}
    target: Room  # room for s_t
    upper: Memory  # ∇f̂_t
    lower: Memory  # ∇ĝ_t and ĝ_t
    anchor: Number  # g(x_0), one number
    rise: Number  # how far the level is above that, for near ties
    origin: Point  # x_0
    model: Number  # m'_{t−1}, one number, if the error is watched
    variance: Number  # V_t, one number
    best: Point  # the point of least stationarity, if it is watched
    least: Limitless  # ⟨∇f̂, x − s⟩ there, one number
    empty_cuts: Count  # how often the cut left nothing of Z, one number
    iteration: Count  # t, one number


class Plan(NamedTuple):
    """What the loop uses."""

    upper: Any  # how ∇f̂ is estimated
    lower: Any  # how ∇ĝ and ĝ are
    anchor: Any  # what g(x_0) is made of: FromEstimate or FromAll
    slack: Any  # K_t: Fixed or Watched
    step: Any  # γ_t: Plain, Fitted or Watching
    guard: Any  # what shortens steps when g has risen: Unguarded or Guarded


@kernel
def advance(problem, state, plan, iterations, keys):
    """Take this many steps."""
    # All in one kernel: another one that took the state would count references to its arrays in every iteration.
    x, previous, upper, lower = state.x, state.previous, state.upper, state.lower
    for k in range(iterations):
        t = state.iteration[0]
        moment = Moment(keys.lower, t, 0, 0)
        estimate(plan.upper, problem.upper, upper, x, previous, k, Moment(keys.upper, t, 0, 0))
        estimate(plan.lower, problem.lower, lower, x, previous, k, moment)
        if t == 0:
            set_anchor(plan.anchor, problem.lower, state)
        watch_error(plan.slack, plan.lower, state, k, moment)
        slack, risen = plan.slack.values[k], lower.value[0] - state.anchor[0] - state.rise[0]
        room = slack + margin(plan.slack, state) - risen
        bound = room / lower.factor[0] + dot(lower.direction, x)
        copy(x, previous)
        if not math.isfinite(bound):
            return LOWER_NOT_FINITE
        if not math.isfinite(upper.value[0]):
            return UPPER_NOT_FINITE
        step = guarded(plan.guard, plan.step.values[k], risen, slack)
        status = go_towards(plan.step, problem.domain, state, bound, step)
        if status == INVALID:
            return UPPER_NOT_FINITE
        watch_move(plan.slack, state)
        if status == EMPTY:
            state.empty_cuts[0] += 1
        state.iteration[0] += 1
    return DONE


@declared
class Cutting(Method):
    """The common part of the methods that cut."""

    step: ScheduleLike | None = schedule("γ_{t+1}, the weight of s_t in x_{t+1}, between 0 and 1.", largest=1.0)
    slack: ScheduleLike | None = schedule("K_t, by which the cut is moved outwards to allow for noise, in units of g.")
    curvature: float | None = real(
        "A smoothness constant of f. If it is positive, a step is shortened to the one that lowers f most at that curvature,"
        " but to no less than a twentieth of it. 0: steps are not shortened.",
        least=0.0,
    )
    allowance: float | None = real(
        "By how much g may exceed g(x_0) and ``slack`` before steps become shorter, in units of g; 0: they never do. If not"
        ' given, ``preset="auto"`` takes 0.001 of g at the centre of Z, above its known floor, where f is not convex.',
        least=0.0,
    )
    initial: Method | None = initial()
    settle: Method | bool | None = other(
        "Method or False",
        None,
        "What lowers g with the last tenth of the budget, from the point that the cut led to, on finite data and for exact"
        " ties; False: nothing does. If it is not given, it is found where the steps are, unless a slack is given; if steps"
        " are given, there is none.",
        lambda value, name: value if value is False else check_initial(value, name),
    )

    needs = "linear minimisation over a half-space"
    loop = advance
    state = State
    near_ties = True

    def allow(self, state: State, level: float, rise: float) -> None:
        state.rise[0] = rise

    def defaults(self, problem: Problem, budget: Budget) -> dict[str, Callable[[], Any]]:
        return {
            "step": lambda: fitting_step(problem, self, self.horizon(problem, budget), exponent=0.5),
            "curvature": lambda: curvature_of(problem),
            "allowance": lambda: allowance_of(problem),
            "initial": lambda: first_points(problem),
            "settle": lambda: settling(problem) if self.step is None and self.slack in (None, constant(0.0)) else None,
        }

    def step_and_guard(self, problem: Problem) -> dict[str, Any]:
        """Return the rules for the step."""
        step = self.given("step")
        return {
            "step": steps.Fitted(step, self.curvature) if self.curvature else steps.Plain(step),
            "guard": steps.Guarded(self.allowance) if self.allowance else steps.Unguarded(),
        }

    def estimates(self, plan: Plan) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        anchor = (Once(plan.anchor.plan),) if isinstance(plan.anchor, rules.FromAll) else ()
        return (plan.upper,), (plan.lower, *anchor)

    def answer(self, state: State) -> np.ndarray:
        return state.best if np.isfinite(state.least[0]) else state.x

    def origin(self, state: State) -> np.ndarray:
        return state.origin

    def empty_cuts(self, state: State) -> int:
        return int(state.empty_cuts[0])


@declared
class CGBiO(Cutting):
    """Conditional gradient for simple bilevel optimisation, with exact gradients.

    If no slack is given, the cut is moved outwards by what rounding makes of it, 1e-12 of its terms.

    Examples
    --------
    >>> CGBiO(step=lambda t: 2 / (t + 2), slack=0.0).slack
    constant(value=0.0)
    """

    preset: str = preset(
        '``"auto"``: steps from the budget; ``"paper"`` and ``"paper-dictionary"``: the regression and the dictionary'
        " experiment of Cao et al. (2023), whose steps are 2 / (t + 2) and 0.3 / √(t + 1)."
    )

    name = "cg-bio"
    citation = "Jiang, Abolfazli, Mokhtari, Yazdandoost Hamedani (2023)"
    setting = "exact gradients"
    rates = "t^-1; t^-1 (f convex), t^-1/2 (f not convex)"
    presets: ClassVar = {
        "auto": {},
        "paper": {"step": power(2.0, 1.0, shift=2.0), **AS_GIVEN},
        "paper-dictionary": {"step": power(0.3, 0.5), **AS_GIVEN},
    }

    def plan(self, problem: Problem) -> Plan:
        return Plan(
            upper=exact(problem.upper),
            lower=exact(problem.lower),
            anchor=rules.FromEstimate(0.0, ROUNDING_OF_CUT if self.slack is None else 0.0),
            slack=rules.Fixed(Given(constant(0.0), "slack") if self.slack is None else self.given("slack")),
            **self.step_and_guard(problem),
        )
