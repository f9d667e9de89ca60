"""Active set: exact minimisers of f + λ g over sets with atoms, and the λ that leads to the answer.

x is a mean of few atoms of Z. An iteration makes one pass over the data: it prices all atoms with the gradient, and
minimises the quadratic model of f + λ g, exact for squares and Newton's for other losses, over the means of the active atoms
and the cheapest others (``active/solver.py``). It begins at the minimiser of f, if that is known without passes over data.
First g alone is minimised; then λ goes where the problem asks for (``active/course.py``). Each x_λ proves a floor of f* that
it meets itself, up to rounding.

Wolfe, Finding the nearest point in a polytope, Mathematical Programming 1976: one level, squares. For Newton's method on an
active set of atoms see Halbey, Deza, Zimmer, Roux, Stellato and Pokutta, Efficient quadratic corrections for Frank-Wolfe
algorithms, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tiebreak.active.course import Course
from tiebreak.active.gathering import LEVELS, rows_before
from tiebreak.active.scope import nearest, refusal
from tiebreak.active.terms import is_summed
from tiebreak.engine.randomness import Keys
from tiebreak.methods.base import DONE, LOWER_NOT_FINITE, UPPER_NOT_FINITE, Budget, Cost, Method, initial
from tiebreak.methods.parameters import declared, option, whole
from tiebreak.problem import Problem

# Passes over the data of a level that an iteration may take: a look; at the first one the curvature along a line; and where
# g alone has been minimised three more, to see how both levels vary. Of rows that are summed up it is that, or a look.
FIRST_PASSES, MOST_PASSES = 5, 4
SEEKING_PASSES = 24  # passes over both levels, at most, of another method that finds the first point
LAST_CYCLES = 200  # cycles, at most, that make an answer of what was gathered of a stream when its run ends
MOST_SAMPLES = 1_000_000  # samples of a stream where nothing limits them
KEPT_PASSES, KEPT_SHARE = 50, 0.02  # passes over other levels, and share of the budget, that are not spent on streams


class State(NamedTuple):
    """The state of the active set."""

    x: np.ndarray  # the best point so far
    course: Course  # the active atoms, and where they are on their way
    iteration: np.ndarray  # passes over the data, one number


class Plan(NamedTuple):
    """What the loop goes by, besides the problem."""

    samples: np.ndarray  # (2,): how many a pass takes, by level; those to draw of a stream
    endless: np.ndarray  # (2,) bool: which levels are streams
    summed: np.ndarray  # (2,) bool: of which one pass sums all rows up


def advance(problem: Problem, state: State, plan: Plan, iterations: int, keys: Keys) -> int:
    """Make this many passes, or fewer if nothing is left to improve."""
    course = state.course
    if iterations == 0 and course.under_way:
        course.solver.rehearse()
    for _ in range(iterations):
        if course.finished:
            break
        if not course.under_way:
            course.gather(keys)
            state.iteration[0] += 1
            continue
        course.cycle()
        seen = course.solver.seen
        if not (np.isfinite(seen.g) and np.isfinite(seen.g_gradient).all()):
            return LOWER_NOT_FINITE
        if not (np.isfinite(seen.f) and np.isfinite(seen.f_gradient).all()):
            return UPPER_NOT_FINITE
        state.x[:] = course.answer
        state.iteration[0] += 1
        if course.arrived:
            break
    return DONE


@declared
class ActiveSet(Method):
    """Exact answers for losses of linear models over sets with atoms, in few passes: an active set of atoms.

    It takes LeastSquares, Huber, Logistic, SquaredNorm, their sums and multiples, over ℓ1 balls, simplices, boxes, hulls,
    polytopes, matchings and products of them. It finds the answer to rounding, with a floor of f* that meets it, and stops
    by itself. It takes exact and near ties. Of a stream of rows and squares,
    ``Stream.of_rows``, it draws samples, sums them up and finds the answer for their mean; bounds are of fresh samples.

    Examples
    --------
    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 3.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> tiebreak.minimize(problem, "active-set").x.round(6)
    array([0.1, 0.3])
    """

    level: str = option(
        'Which objectives to minimise: both, or "lower" for g alone, as other methods want of their first point.',
        "both",
        ("both", "lower"),
    )

    initial: Method | None = initial()

    samples: int | None = whole(
        "For streams: how many samples to draw of each; as many as the budget allows, a million without one, if not given."
    )

    name = "active-set"
    citation = "Wolfe (1976), for one level"
    setting = "exact gradients and curvature, or a stream of squares"
    needs = "losses of linear models, a set with atoms"
    rates = "finite; finite (squares), quadratic (others)"
    loop = staticmethod(advance)  # type: ignore[assignment]
    state = State
    convex = True
    near_ties = True
    streams = True

    @property
    def levels(self) -> tuple[str, ...]:
        return ("lower",) if self.level == "lower" else ("upper", "lower")

    def seeks_for(self, problem: Problem) -> float:
        return SEEKING_PASSES * float(sum(getattr(problem, name).n_samples for name in self.levels))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if reason := refusal(problem, self.levels):
            endless = any(getattr(problem, name).endless for name in self.levels)
            others = "take 'sbcgi' or 'ir-scg'" if endless else "take 'pb-apg' or 'cg-bio'"
            raise ValueError(f"the method {self.name!r} needs {reason}: {others}")

    def defaults(self, problem: Problem, budget: Budget) -> Mapping[str, Callable[[], Any]]:
        levels = [getattr(problem, name) for name in self.levels]
        streams = sum(level.endless for level in levels)
        if not streams:
            return {}
        finite = sum(level.n_samples for level in levels if not level.endless)
        kept = max(KEPT_PASSES * finite, KEPT_SHARE * budget.queries) if math.isfinite(budget.queries) else 0.0
        share = min((budget.queries - kept) / streams, MOST_SAMPLES)
        return {"samples": lambda: max(int(share), 1)}

    def plan(self, problem: Problem) -> Plan:
        levels = [getattr(problem, name) for name in LEVELS]
        used = [name in self.levels for name in LEVELS]
        samples = [(self.samples or 1) if level.endless else level.n_samples for level in levels]
        summed = [not level.endless and is_summed(level) for level in levels]
        return Plan(
            np.array(samples, dtype=np.int64) * used, np.array([level.endless for level in levels]), np.array(summed)
        )

    def start(self, problem: Problem, plan: Any, x: np.ndarray) -> State:
        begins_at = nearest(problem) if self.level == "both" and np.array_equal(x, problem.center) else None
        course = self._course(problem, x if begins_at is None else begins_at)
        return State(x.copy(), course, np.zeros(1, dtype=np.int64))

    def _course(self, problem: Problem, x: np.ndarray) -> Course:
        return Course(problem, x, self.level == "lower", self.samples or 1)

    def finished(self, state: State) -> bool:
        return state.course.finished

    def has_answer(self, state: State) -> bool:
        return state.course.under_way

    def conclude(self, state: State) -> None:
        """Solve the problem of the means of what was drawn of streams, where that takes no more passes over data."""
        course = state.course
        if not course.gathering.collected or course.stages > 0 or not (course.under_way or course.make_do()):
            return
        for _ in range(LAST_CYCLES if course.needs_no_data else 0):
            if course.finished:
                break
            course.cycle()
        state.x[:] = course.answer

    def wants_record(self, state: State) -> bool:
        return state.course.telling

    def hints(self, state: State) -> tuple[tuple[float, np.ndarray | None], ...]:
        return state.course.hints

    def cost(self, plan: Plan, t: np.ndarray) -> Cost:
        draws = rows_before(t) < plan.samples[plan.endless].max(initial=0)  # whether streams are drawn from

        def queries(samples: int, endless: bool, summed: bool) -> np.ndarray:
            if endless:
                return np.maximum(np.minimum(rows_before(t + 1), samples) - rows_before(t), 0)
            passes = 1 if summed and samples > 1 else np.where((t == 0) | plan.endless.any(), FIRST_PASSES, MOST_PASSES)
            return samples * np.where(draws, 0, passes)

        upper, lower = (queries(*each) for each in zip(*plan, strict=True))
        return Cost(upper, lower, upper, lower)

    def spent(self, state: State) -> np.ndarray:
        queries = state.course.queries
        return np.concatenate([queries, queries])

    def stored(self, state: State) -> dict[str, np.ndarray]:
        return {"x": state.x, "iteration": state.iteration, **state.course.stored()}

    def memory(self, state: State) -> dict[str, np.ndarray] | None:
        found = state.course.memory if self.level == "both" else None
        return found and {**found, "minimiser": state.course.minimiser}

    def recalled(self, problem: Problem, plan: Plan, x: np.ndarray, memory: Mapping[str, np.ndarray]) -> State:
        if self.level == "lower":
            return self.start(problem, plan, x)
        course = self._course(problem, problem.center)  # the atoms of x are remembered
        course.recall(memory)
        return State(course.answer.copy(), course, np.zeros(1, dtype=np.int64))

    def restored(self, problem: Problem, plan: Plan, x: np.ndarray, arrays: Mapping[str, np.ndarray]) -> State:
        course = self._course(problem, arrays["x"])
        course.restore(arrays)
        return State(arrays["x"], course, arrays["iteration"])
