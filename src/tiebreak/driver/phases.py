"""The phases of a run: a search for the first point, if there is none, the method itself, and what lowers g at its end."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tiebreak.driver.limits import Clock, Task
from tiebreak.driver.result import Memory
from tiebreak.engine import compilable
from tiebreak.engine.digest import digest
from tiebreak.engine.randomness import keys_of
from tiebreak.methods import Method
from tiebreak.methods.base import SAMPLE, Budget
from tiebreak.methods.states import arrays_of
from tiebreak.schedules import ScheduleError, evaluated, evaluated_until, values_of

BLOCK = 8192  # iterations for which schedules are evaluated at once; always the same ones, however a run is cut in chunks
INITIAL_SHARE = 0.1  # share of the budget that goes to finding the first point …
NEAR_SHARE = 0.4  # … and the most for near ties, where it ends as soon as the point is good enough
SETTLING_SHARE = 0.1  # share of the budget that goes to lowering g at the end, if the method wants that
TIMED_PART, TIMED_ROWS = 16, 4096  # fraction of a pass that is timed to tell how long one takes, and rows of it at least
PROBE = np.concatenate([np.arange(16), 2 ** np.arange(5, 21)])  # iterations at which schedules are checked and compared


class Block(NamedTuple):
    """A fixed range of iterations with their schedules and costs."""

    start: int
    plan: Any  # with the values of its schedules, up to where one fails
    known: int  # iterations of which all schedules have values
    failure: ScheduleError | None  # what it fails with: only a run that gets there meets it
    cost: np.ndarray  # (4, BLOCK), in the order of Cost
    total: np.ndarray  # (BLOCK + 1,): queries at both levels before each iteration, from the start of the block


class Phases:
    """The methods of a run, one per phase, with all parameters.

    Attributes
    ----------
    methods : list of Method
    main : int
        The number of the phase whose method is the one that was asked for. Phases before it seek a first point, those after
        it lower g.
    """

    def __init__(self, task: Task, passes: float = math.inf) -> None:
        self.task, self._passes = task, passes
        self.methods, self.main = self.planned(task.limits.queries, task.limits.iterations)

    @property
    def method(self) -> Method:
        """The method that was asked for."""
        return self.methods[self.main]

    @property
    def settling_share(self) -> float:
        """The share of the budget that goes to lowering g at the end."""
        return SETTLING_SHARE if len(self.methods) > self.main + 1 else 0.0

    @property
    def _initial_share(self) -> float:
        return NEAR_SHARE if self.task.problem.is_near else INITIAL_SHARE

    def planned(self, queries: float, iterations: float) -> tuple[list[Method], int]:
        """Return the methods configured for a budget, and the place among them of the one that was asked for."""
        problem, limits = self.task.problem, self.task.limits
        wanted = limits.tol[1] if limits.tol is not None else 0.0
        seeking = self._initial_share if self.task.seek else 0.0
        ends = math.isfinite(queries) or math.isfinite(iterations) or math.isfinite(limits.seconds)
        # Which methods come before and after is not known before the method is: they take their shares if it has them.
        budget = Budget((1.0 - seeking) * queries, iterations, wanted, self._passes)
        asked = self.task.method.chosen(problem, Budget(queries, iterations, wanted, self._passes))
        method = asked.for_problem(problem, budget)
        initial = method.seeks_with if self.task.seek else None
        settle = method.settles_with if ends and not problem.is_near else None
        if settle is not None:
            less = budget._replace(queries=budget.queries - SETTLING_SHARE * queries)
            planned = asked.for_problem(problem, less)
            if (settle := planned.settles_with) is not None:
                method = planned
        # The first point is to minimise g, whatever the tolerance.
        before = [] if initial is None else [initial.for_problem(problem.exact)]
        after = [] if settle is None else [settle.for_problem(problem)]
        return [*before, method, *after], len(before)

    def query_limit(self, number: int, queries_before: int) -> float:
        """Return how many queries the run may have made by the end of a phase that began after so many."""
        if number < self.main:
            return self._seeking_limit()
        if number == self.main:
            return (1.0 - self.settling_share) * self.task.limits.queries
        return min(self.task.limits.queries, queries_before + self._worth_of_iterations(SETTLING_SHARE))

    def _seeking_limit(self) -> float:
        """Return how many queries the search for the first point may make."""
        share = self._initial_share
        return min(self.task.limits.queries * share, self._worth_of_iterations(share))

    def _worth_of_iterations(self, share: float) -> float:
        """Return the queries of a phase that is worth this share of a run of which the iterations are limited."""
        iterations = self.task.limits.iterations
        if math.isinf(iterations):
            return math.inf
        cost = self.method.cost(self.method.plan(self.task.problem), np.arange(min(int(iterations), BLOCK)))
        each = float(np.mean(cost.upper_queries + cost.lower_queries))
        return each * iterations * share / (1.0 - share)

    def check(self) -> None:
        """Raise if the budget allows no iteration, or a schedule is wrong, before anything is computed."""
        self._check_budget()
        self._check_schedules()

    def _check_budget(self) -> None:
        """Raise if the queries do not pay for one iteration: nothing would be done, and pass for an answer."""
        first = self.method.cost(self.method.plan(self.task.problem), np.zeros(1, dtype=np.int64))
        needed, given = int(first.upper_queries[0] + first.lower_queries[0]), self.task.limits.queries
        share, what = (1.0 - self._initial_share, " and a first point") if self.main > 0 else (1.0, "")
        share -= self.settling_share
        if needed > share * given:
            least = math.ceil(needed / share)
            raise ValueError(
                f"`max_queries` must be at least {least:,} for one iteration of {self.method.name!r}{what} on this problem,"
                f" got {int(given):,}"
            )

    def _check_schedules(self) -> None:
        """Raise if a schedule is wrong at an iteration that the budget reaches."""
        problem, limits = self.task.problem, self.task.limits
        seeking = self._initial_share if self.task.seek else 0.0
        main = Budget((1.0 - seeking - self.settling_share) * limits.queries, limits.iterations)
        budgets = [main] if self.main == 0 else [Budget(self._seeking_limit()), main]
        for method, budget in zip(self.methods, budgets, strict=False):  # what lowers g has schedules of this library
            reached = method.horizon(problem, budget)
            if reached <= SAMPLE or reached == budget.iterations < math.inf:
                last = math.ceil(reached) - 1
                probe = np.append(PROBE[last > PROBE], last)
            else:  # an estimate
                probe = PROBE[0.9 * reached > PROBE]
            evaluated(method.plan(problem), probe)

    def configuration(self, methods: list[Method], main: int) -> dict[str, str]:
        """Return what identifies a method and all its parameters, and those of the search for its first point."""
        schedules = (values_of(method.plan(self.task.problem), PROBE) for method in methods)
        return {"method": methods[main].name, "parameters": digest((methods[main], *schedules), code=False)}


class Phase:
    """A phase under way. It knows the insides of no state: it asks its method.

    Attributes
    ----------
    number : int
        0 for the first phase of the run.
    seeking : bool
        Whether it only seeks the first point.
    settling : bool
        Whether it lowers g after the method has ended.
    earlier : (int, int)
        There: the iterations and the empty cuts of the method.
    queries_before : int
        Queries that the run had made when it began.
    began : float
        Seconds that the run had counted then.
    pace : float
        Seconds per iteration in its last chunk.

    Parameters
    ----------
    phases, number, x, queries_before, clock
        Which phase it is, where it begins, and after how many queries.
    stored : dict of arrays, optional
        What a checkpoint kept of its state, to continue from.
    """

    def __init__(
        self,
        phases: Phases,
        number: int,
        x: np.ndarray,
        queries_before: int,
        clock: Clock,
        earlier: tuple[int, int] = (0, 0),
        stored: dict[str, np.ndarray] | None = None,
    ) -> None:
        self._problem = problem = phases.task.problem
        self._limit_after = partial(phases.query_limit, number)
        self.number, self.method = number, phases.methods[number]
        self.seeking, self.settling = number < phases.main, number > phases.main
        self.kept_share = phases.settling_share if number == phases.main else 0.0  # of a time limit, for what comes after
        self.earlier = earlier
        self.plan = self.method.plan(problem)
        memory = phases.task.memory
        if stored is not None:
            self.state = self.method.restored(problem, self.plan, x, stored)
        elif memory is not None and memory.method == self.method.name:
            self.state = self.method.recalled(problem, self.plan, x, memory.arrays)
        else:
            self.state = self.method.start(problem, self.plan, x)  # may call a user's function
        self.keys = keys_of([phases.task.seed, phases.task.part, number])
        self.pace = 0.0
        self.continue_from(queries_before, clock.counted)
        self._block: Block | None = None

    def continue_from(self, queries_before: int, began: float) -> None:
        """Take note of after how many queries of the run, and when, it began."""
        self.queries_before, self.began = queries_before, began
        self.query_limit = self._limit_after(queries_before)

    @property
    def iteration(self) -> int:
        """Iterations made so far."""
        return int(self.state.iteration[0])

    @property
    def iterations_of_method(self) -> int:
        """The same of the method that was asked for."""
        return 0 if self.seeking else self.earlier[0] if self.settling else self.iteration

    @property
    def place(self) -> tuple[int, int]:
        """The first two fields of a record made now."""
        return 0 if self.seeking else 2 if self.settling else 1, self.iteration

    @property
    def answer(self) -> np.ndarray:
        """The point that it offers; it changes with the next iteration."""
        return self.method.answer(self.state)

    @property
    def origin(self) -> np.ndarray | None:
        """The method's first point, if it keeps it and has left it."""
        return self.method.origin(self.state) if self.iteration > 0 else None

    @property
    def finished(self) -> bool:
        """Whether its method can improve nothing further."""
        return self.method.finished(self.state)

    @property
    def wants_record(self) -> bool:
        """Whether its method asks for a record, or has come to its end, which is recorded too."""
        return self.finished or self.method.wants_record(self.state)

    def allow(self, level: float, rise: float) -> None:
        """Tell its method how large g may be, for near ties."""
        self.method.allow(self.state, level, rise)

    def conclude(self) -> None:
        """Let its method make an answer of what there is, if it has none yet."""
        self.method.conclude(self.state)

    @property
    def has_answer(self) -> bool:
        """Whether its point is worth a record."""
        return self.method.has_answer(self.state)

    @property
    def hints(self) -> tuple[Any, ...]:
        """Multipliers that its method has for the proof of a bound on f*."""
        return self.method.hints(self.state)

    @property
    def remark(self) -> str:
        """What its method has to say beside why the run ended."""
        return self.method.remark(self._problem, self.state)

    def stored(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps of its state."""
        return self.method.stored(self.state)

    def kept(self) -> dict[str, np.ndarray] | None:
        """Return a copy of the state, from which :meth:`restore` goes on, where its loop may be cut short: else None."""
        if not compilable(self.state) or not any(level.in_blocks for level in self._problem[:2]):
            return None
        return {name: array.copy() for name, array in arrays_of(self.state).items()}

    def restore(self, kept: dict[str, np.ndarray]) -> None:
        """Go back to the state of which :meth:`kept` returned a copy."""
        for name, array in arrays_of(self.state).items():
            array[...] = kept[name]

    @property
    def memory(self) -> Memory | None:
        """What its method keeps for a run that continues from its answer."""
        arrays = None if self.seeking or self.settling else self.method.memory(self.state)
        return None if arrays is None else Memory(self.method.name, arrays)

    @property
    def empty_cuts(self) -> int:
        """How often the cut left nothing of the domain; methods without a cut do not count it."""
        return self.earlier[1] if self.settling else self.method.empty_cuts(self.state)

    @property
    def spent(self) -> np.ndarray:
        """What its iterations have spent, in the order of Cost."""
        return self.method.spent(self.state)

    def block(self) -> Block:
        """Return the block of the next iteration."""
        start = self.iteration // BLOCK * BLOCK
        if self._block is None or self._block.start != start:
            iterations = np.arange(start, start + BLOCK)
            cost = np.array(self.method.cost(self.plan, iterations))
            total = np.concatenate([[0], np.cumsum(cost[0] + cost[1])])
            self._block = Block(start, *evaluated_until(self.plan, iterations), cost, total)
        return self._block


def passes_in_time(task: Task, clock: Clock) -> float:
    """Return how many passes over the data of both levels a time limit allows, by timing a part of one."""
    levels = task.problem[:2]
    if math.isinf(task.limits.seconds) or any(level.endless for level in levels):
        return math.inf
    for level in levels:
        level.value_and_gradient(task.x, [0])  # compiled or loaded
    needed = 0.0
    for level in levels:
        part = np.arange(min(level.n_samples, max(level.n_samples // TIMED_PART, TIMED_ROWS)))
        began = clock.counted
        level.value_and_gradient(task.x, part)
        needed += (clock.counted - began) * level.n_samples / part.size
    return task.limits.seconds / max(needed, 1e-9)
