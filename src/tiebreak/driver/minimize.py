"""The only driver: budgets, chunks, recording, stopping, checkpoints."""

from __future__ import annotations

import contextlib
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import lmo, projects
from tiebreak.driver import checkpoint as checkpoints
from tiebreak.driver.progress import Progress
from tiebreak.driver.result import Counts, History, Record, Result, Status
from tiebreak.engine import checks, compile_seconds
from tiebreak.engine.digest import digest, lasting, outline
from tiebreak.engine.randomness import keys_of
from tiebreak.methods import Method, as_method
from tiebreak.methods.base import DONE, SAMPLE, UPPER_NOT_FINITE, Budget
from tiebreak.objectives import AssumptionError, EndOfStream, NonFiniteError, OracleError, holds
from tiebreak.objectives.constants import Bill, charging
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs import (
    APPROXIMATE,
    NOTHING,
    Certificate,
    ContradictionError,
    Prover,
    check_gradients,
    packed,
    proven,
    prover_of,
    unpacked,
)
from tiebreak.proofs.bundle import MAX_ATOMS
from tiebreak.schedules import ScheduleError, evaluated, evaluated_until, part_of, values_of

BLOCK = 8192  # iterations for which schedules are evaluated at once; always the same ones, however a run is cut in chunks
CHUNK_SECONDS = 0.05  # between two looks at the clock
INITIAL_SHARE = 0.1  # of the budget, to find the first point
RECORD_GROWTH = 0.15  # of the queries of a phase, from one record to the next …
RECORD_SPACING = 8  # … and as many times what a record costs, but for the first records of a phase, which are closer
TIMED_PART, TIMED_ROWS = 16, 4096  # one of as many parts of a pass, of so many rows at least, tells how long a pass takes
CONSTANTS_SHARE = 0.2  # of a time limit; after it the constants of objectives are found less exactly
DEFAULT_QUERIES = 1_000_000  # that may be made if no end is given
PROGRAM_SECONDS = 0.003  # that one linear program of a bundle takes, on a slow machine
IMPROVING_SHARE = 0.15  # of a time limit, that is kept for better bounds at the end
CHECKPOINT_SECONDS = 5.0  # from one checkpoint to the next
BUDGETS = ("max_queries", "max_iterations")  # what a stored run may be given more of
PROBE = np.concatenate([np.arange(16), 2 ** np.arange(5, 21)])  # iterations at which schedules are checked and compared


def minimize(
    problem: Problem,
    method: str | Method = "auto",
    *,
    max_queries: int | None = None,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    tol: tuple[float, float] | None = None,
    x0: Any = None,
    seed: int = 0,
    callback: Callable[[Snapshot], Any] | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    confidence: float = 0.95,
    check: bool = True,
) -> Result:
    """Find, among the minimisers of the lower objective over the domain, the one that is best for the upper objective.

    Parameters
    ----------
    problem : Problem
        What to solve.
    method : str or Method
        A name (see ``tiebreak methods``) or a configured method such as ``SBCGI(batch_size=8)``. By default one is chosen
        for the problem and the budget; the result tells which.
    max_queries : int or None
        Samples that may be drawn at both levels together, with those for the first point. If neither this nor
        ``max_iterations``, ``time_limit`` or ``tol`` is given, a million; else there is no limit that is not given.
    max_iterations : int, optional
        Steps that the method may take after the first point is found.
    time_limit : float, optional
        Seconds from the call to the result, with all evaluations for the history and the bounds; only compilation is not
        counted. Bounds for which there is no time are left out. What is computed in a given time differs from run to run.
    tol : (float, float), optional
        (ε_f, ε_g): stop when the bounds prove f(x) − f* ≤ ε_f and g(x) − g* ≤ ε_g; they are looked at with each record.
    x0 : array or Result, optional
        A point of the domain to start from, or a result to go on from, with what was proven on the way to it. The methods
        that cut keep g near g(x0), so it should nearly minimise g. If it is not given, a tenth of the budget goes to
        finding such a point.
    seed : int
        Same seed, same result, bit for bit; over a ``Polytope``, if it has ``warm_start=False``.
    callback : callable, optional
        Called with a :class:`Snapshot` at each record; the run stops if it returns something true.
    progress : bool, optional
        Whether to show a progress bar; if not given, only in a terminal.
    checkpoint : path, optional
        File to which the run is saved every few seconds and at its end. If it exists, the run goes on from there and ends
        bit for bit where an uninterrupted one does; a run of another problem, with other functions, data or ``x0``, is
        refused, and so is a second run at the same time. A run of a stream is resumed so if the samples are a function of
        ``rng``; any other source is read on from where it is, so that the run goes on with other samples. With a larger
        ``max_queries`` or ``max_iterations`` a run goes on too, unless its method plans for the whole budget; the search for
        its first point stays as long as it was. No other file is ever written over.
    confidence : float
        With a stream at a level: the probability with which the bounds of the result hold. They come from fresh samples,
        which are not counted as queries: 0.15 of the samples drawn so far for a record, 256 to 100,000. They are proven if
        the stream has a ``value_range`` and a ``gradient_bound``. Else they are approximate, as
        ``result.certificate.approximate`` says, and so is it that ``tol`` is reached.
    check : bool
        Whether to compare gradients with differences of values first, as :func:`check_gradient` does, where a ``FiniteSum``
        or a ``Stream`` computes them with a function of its own. It takes some tens of calls on at most 32 samples (a
        stream's on the first batch of the first record) at points of the domain near the first one, which are not counted
        as queries, and no random numbers of the run. Gradients that JAX or PyTorch derives are taken for right.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        If an argument is not valid; CheckpointError, a kind of it, if ``checkpoint`` is a file that is none, of another run,
        or in use.
    OracleError
        If a function of the problem fails at the very first point. Later failures end the run with a status and a result.
        GradientError, a kind of it, if its gradient is not that of its values.

    Examples
    --------
    The least-squares solution of smallest norm:

    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> result = tiebreak.minimize(problem, tiebreak.SBCGF(step=1e-3, slack=0.0), max_queries=20_000)
    >>> result.x.round(2)
    array([0.5, 0.5])
    """
    clock, limits = Clock(), _limits(max_queries, max_iterations, time_limit, tol)
    check_problem(problem)
    if callback is not None and not callable(callback):
        raise ValueError(f"`callback` must be a function of one snapshot, got {callback!r}")
    visible = sys.stderr.isatty() if progress is None else checks.flag(progress, "progress")
    path = None if checkpoint is None else checkpoints.place(checkpoint, "checkpoint")
    floors, part = NOTHING, 0
    if isinstance(x0, Result):
        floors, part = proven(x0, problem), x0.settings.get("part", 0) + 1
        x0 = x0.x
    if limits.tol is not None and not problem.lower.convex and problem.lower.floor == -math.inf:
        raise ValueError(
            "`tol` asks for a proof, and nothing bounds g* from below: say convex=True of `lower`, if it is, or give it a"
            " `floor`"
        )
    if not isinstance(check, (bool, np.bool_)):
        raise ValueError(f"`check` must be True or False, got {checks.shown(check)}")
    start, seed = _start(problem, x0), checks.whole(seed, "seed", least=0)
    prover = prover_of(problem, floors, checks.confidence(confidence), [seed, part], sequential=limits.tol is not None)
    hurried = CONSTANTS_SHARE * limits.seconds
    with checkpoints.held(path) as stored, charging(lambda: clock.counted > hurried) as bill:
        run = _Run(problem, as_method(method), limits, start, prover, x0 is None, seed, part, clock, bill, path is not None)
        run.callback = callback
        if path is not None:
            run.open_checkpoint(path, stored)
        if check and not run.records:  # one that goes on was checked when it began
            check_gradients(problem, start)
            prover.check = True
        with Progress(limits.countable, visible) as run.progress:
            return run.finish(*run.go())


class Snapshot:
    """What a callback sees: a copy of the point and the record made at it, with the record's fields as attributes.

    Attributes
    ----------
    x : array, (d,), read-only
    record : Record
    """

    def __init__(self, x: np.ndarray, record: Record):
        self.x = x.copy()
        self.x.flags.writeable = False
        self.record = record

    def __getattr__(self, name: str) -> Any:
        if name not in Record._fields:  # `record` itself among them, while a copy is made
            raise AttributeError(f"a snapshot has no {name!r}; it has x, record, {', '.join(Record._fields)}")
        return getattr(self.record, name)


class Limits(NamedTuple):
    """When to stop; infinite where there is no limit."""

    queries: float
    iterations: float
    seconds: float
    tol: tuple[float, float] | None

    @property
    def countable(self) -> tuple[float, float, float]:
        """The limits that are spent little by little."""
        return self.queries, self.iterations, self.seconds


class Clock:
    """The time of a run since the call; what is spent compiling does not count against limits."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._compiled_before = compile_seconds()
        self._excused = 0.0
        self._earlier = (0.0, 0.0)

    @property
    def wall(self) -> float:
        """Seconds since the call, and those of the runs that this one goes on from."""
        return time.perf_counter() - self._began + self._earlier[0]

    @property
    def counted(self) -> float:
        """The same without compilation."""
        compiled = compile_seconds() - self._compiled_before
        return time.perf_counter() - self._began - compiled - self._excused + self._earlier[1]

    def excuse(self, counted: float) -> None:
        """Do not count what was spent since ``counted`` was read."""
        self._excused += self.counted - counted

    def go_on_from(self, wall: float, counted: float) -> None:
        """Add what an earlier run spent."""
        self._earlier = (wall, counted)


def _limits(max_queries: Any, max_iterations: Any, time_limit: Any, tol: Any) -> Limits:
    if max_queries is max_iterations is time_limit is tol is None:
        max_queries = DEFAULT_QUERIES
    limits = Limits(
        queries=math.inf if max_queries is None else checks.whole(max_queries, "max_queries"),
        iterations=math.inf if max_iterations is None else checks.whole(max_iterations, "max_iterations"),
        seconds=math.inf if time_limit is None else checks.real(time_limit, "time_limit", above=0.0),
        tol=None,
    )
    if tol is not None:
        if not isinstance(tol, (tuple, list, np.ndarray)) or len(tol) != 2:
            raise ValueError(f"`tol` must be a pair (ε_f, ε_g) of tolerances for the upper and the lower gap, got {tol!r}")
        upper, lower = (checks.real(value, "tol", above=0.0) for value in tol)
        limits = limits._replace(tol=(upper, lower))
    return limits


def _start(problem: Problem, x0: Any) -> np.ndarray:
    if x0 is None:
        return problem.center
    x = checks.vector(x0, "x0", problem.dimension)
    if not problem.domain.contains(x):
        hint = "; `problem.domain.project(x0)` is the nearest point" if projects(problem.domain) else ""
        raise ValueError(f"`x0` must lie in the domain, and it does not{hint}")
    return x


class _Block(NamedTuple):
    """A fixed range of iterations with their schedules and costs."""

    start: int
    plan: Any  # with the values of its schedules, up to where one fails
    known: int  # iterations of which all schedules have values
    failure: ScheduleError | None  # what it fails with: only a run that gets there meets it
    cost: np.ndarray  # (4, BLOCK), in the order of Cost
    total: np.ndarray  # (BLOCK + 1,): queries at both levels before each iteration, from the start of the block


class _Run:
    """One run: everything that changes, most of it as it is stored in a checkpoint."""

    def __init__(
        self,
        problem: Problem,
        method: Method,
        limits: Limits,
        x: np.ndarray,
        prover: Prover,
        seek: bool,
        seed: int,
        part: int,
        clock: Clock,
        bill: Bill,
        stored: bool,
    ):
        self.clock, self.bill = clock, bill
        self.problem, self.limits, self.prover, self.seed = problem, limits, prover, seed
        self.part = part  # how many runs it goes on from, each of which has samples of its own
        self.asked, self.first_x, self.seek = method, x, seek
        self.passes = self._passes_in_time() if method.asks_for_passes and not stored else math.inf
        self.phases = self._planned(limits.queries, limits.iterations)
        self.method = self.phases[-1]
        self._check_budget()
        self._check_schedules(INITIAL_SHARE if seek else 0.0)
        self.counts = np.zeros(4, dtype=np.int64)  # in the order of Cost
        self.seconds = 0.0
        self.records: list[Record] = []
        self.evaluated: tuple[np.ndarray, Certificate] | None = None  # the last point recorded, and what is proven there
        self.confirmed = False  # whether the last record is of bounds that hold though records chose their moment
        self.chunk = 1
        self.pace = 0.0  # seconds per iteration in the last chunk
        self.record_seconds = 0.0  # that the last record took …
        self.record_cost = 1  # … and the samples that it was made of
        self.improving_seconds = 0.0  # that better bounds at the end take, about
        self.clean = True  # whether the state is that of a completed iteration
        self.callback: Callable[[Snapshot], Any] | None = None
        self.path: Path | None = None
        self.progress = Progress(limits.countable, wanted=False)
        self.saved_at = time.monotonic()
        self.enter(0, x)

    def _planned(self, queries: float, iterations: float) -> list[Method]:
        """Return the methods of the phases, configured for a budget."""
        share = INITIAL_SHARE if self.seek else 0.0
        wanted = self.limits.tol[1] if self.limits.tol is not None else 0.0
        method = self.asked.for_problem(self.problem, Budget((1.0 - share) * queries, iterations, wanted, self.passes))
        initial = method.seeks_with if self.seek else None
        return [method] if initial is None else [initial.for_problem(self.problem), method]

    def _passes_in_time(self) -> float:
        """Return how many passes over the data of both levels a time limit allows, by timing a part of one.

        Runs with a checkpoint are not asked for it: they must choose the same method each time.
        """
        levels = self.problem[:2]
        if math.isinf(self.limits.seconds) or any(level.endless for level in levels):
            return math.inf
        for level in levels:
            level.value_and_gradient(self.first_x, [0])  # compiled or loaded
        needed = 0.0
        for level in levels:
            part = np.arange(min(level.n_samples, max(level.n_samples // TIMED_PART, TIMED_ROWS)))
            began = self.clock.counted
            level.value_and_gradient(self.first_x, part)
            needed += (self.clock.counted - began) * level.n_samples / part.size
        return self.limits.seconds / max(needed, 1e-9)

    def _check_budget(self) -> None:
        """Raise if the queries do not pay for one iteration: nothing would be done, and pass for an answer."""
        first = self.method.cost(self.method.plan(self.problem), np.zeros(1, dtype=np.int64))
        needed = int(first.upper_queries[0] + first.lower_queries[0])
        share, what = (1.0 - INITIAL_SHARE, " and a first point") if len(self.phases) > 1 else (1.0, "")
        if needed > share * self.limits.queries:
            least = math.ceil(needed / share)
            raise ValueError(
                f"`max_queries` must be at least {least:,} for one iteration of {self.method.name!r}{what} on this problem,"
                f" got {int(self.limits.queries):,}"
            )

    def _check_schedules(self, share: float) -> None:
        """Raise if a schedule is wrong at an iteration that the budget reaches, before anything is computed."""
        main = Budget((1.0 - share) * self.limits.queries, self.limits.iterations)
        budgets = [main] if len(self.phases) == 1 else [Budget(self._seeking_limit()), main]
        for method, budget in zip(self.phases, budgets, strict=True):
            reached = method.horizon(self.problem, budget)
            if reached <= SAMPLE or reached == budget.iterations < math.inf:
                last = math.ceil(reached) - 1
                probe = np.append(PROBE[last > PROBE], last)
            else:  # an estimate
                probe = PROBE[0.9 * reached > PROBE]
            evaluated(method.plan(self.problem), probe)

    # Phases

    def enter(self, phase: int, x: np.ndarray) -> None:
        """Begin a phase at a point."""
        current = self.phases[phase]
        plan = current.plan(self.problem)
        state = current.start(self.problem, plan, x)  # may call a user's function: if it fails, nothing has changed
        self.phase, self.current, self.plan, self.state = phase, current, plan, state
        self.keys = keys_of([self.seed, self.part, phase])
        self.phase_queries, self.phase_began, self.pace = self.queries, self.clock.counted, 0.0
        self._charge()
        self.block: _Block | None = None
        self.query_limit = self._query_limit()

    def _charge(self) -> None:
        """Count what the constants of the objectives took: gradients at their level, and time."""
        for objective, evaluations, seconds in self.bill.settle():
            self.counts[2 if holds(self.problem.upper, objective) else 3] += evaluations
            self.seconds += seconds

    @property
    def seeking(self) -> bool:
        """Whether this phase only seeks the first point."""
        return self.phase < len(self.phases) - 1

    @property
    def answer(self) -> np.ndarray:
        """The point that the current phase offers."""
        return self.current.answer(self.state)

    @property
    def empty_cuts(self) -> int:
        """How often the cut left nothing of the domain; methods without a cut do not count it."""
        return self.current.empty_cuts(self.state)

    @property
    def queries(self) -> int:
        return int(self.counts[:2].sum())

    def compile(self) -> None:
        """Compile all that this run will call, or load it from disk, before the clock starts and anything can be lost."""
        self.progress.describe("compiling (once for each combination of methods, objectives and sets)")
        # A problem of library values needs no iteration for that. Python functions are replaced, and two iterations made:
        # an exact one and a sampled one.
        steps, began = 0 if self.problem.compiled else 2, self.clock.counted
        rehearsal = Problem(self.problem.upper.rehearsal(), self.problem.lower.rehearsal(), self.problem.domain)
        for method in self.phases:
            plan = method.plan(rehearsal)
            with contextlib.suppress(OracleError):  # the run itself will meet it
                state = method.start(rehearsal, plan, self.first_x)
                method.loop(rehearsal, state, evaluated_until(plan, np.arange(steps))[0], steps, keys_of([0]))
        if not self.problem.compiled:  # other compilers may have been at work
            self.clock.excuse(began)

    def go(self) -> tuple[Status, Exception | None]:
        """Run all phases; return why it ended and what was raised, if anything was."""
        self.compile()
        try:
            while True:
                self.progress.describe(f"{self.current.name} for a first point" if self.seeking else self.current.name)
                status = self.run_phase()
                if not self.seeking or status is Status.CALLBACK:
                    return status, None
                if not self._recorded() and self.record() is Status.CALLBACK:
                    return Status.CALLBACK, None
                self.enter(self.phase + 1, self.answer)
        except (KeyboardInterrupt, Exception) as error:
            if self.evaluated is None:  # there is nothing to lose yet
                raise
            return (Status.INTERRUPTED, None) if isinstance(error, KeyboardInterrupt) else (_status_of(error), error)

    def run_phase(self) -> Status:
        """Run one phase to its end, and return why it ended."""
        status = self._certified()  # a run that is read from disk may be at its end
        while status is None:
            status = self.record() if not self.records or self.due() else self.step()
        return status

    # Chunks

    def step(self) -> Status | None:
        """Run one chunk of iterations; return why the phase or the run must end, if it must."""
        t = int(self.state.iteration[0])
        block = self._block_of(t)
        low = t - block.start
        high, status = self._end_of_chunk(block, low)
        if status is not None:
            return status
        spent = self.current.spent(self.state)
        plan = part_of(self.plan, block.plan, low, high)
        loop, began, compiled = self.current.loop, time.perf_counter(), compile_seconds()
        try:
            self.clean = False  # only now: Ctrl-C before the loop changes nothing
            outcome = loop(self.problem, self.state, plan, high - low, self.keys)
        finally:
            elapsed = time.perf_counter() - began - (compile_seconds() - compiled)
            self.seconds += elapsed
            done = int(self.state.iteration[0]) - t
            self.counts += self.current.spent(self.state) - spent
            self.clean = done == high - low  # Ctrl-C during compiled code is raised when the chunk is complete
        if outcome != DONE:
            level = "upper" if outcome == UPPER_NOT_FINITE else "lower"
            raise NonFiniteError(f"the {level} objective became NaN or infinite at iteration {t + done}")
        self.pace = elapsed / max(done, 1)
        self.chunk = max(1, min(4 * self.chunk, BLOCK, int(done * CHUNK_SECONDS / max(elapsed, 1e-9))))
        self.show()
        self.save(CHECKPOINT_SECONDS)
        return None

    def _block_of(self, t: int) -> _Block:
        start = t // BLOCK * BLOCK
        if self.block is None or self.block.start != start:
            iterations = np.arange(start, start + BLOCK)
            cost = np.array(self.current.cost(self.plan, iterations))
            total = np.concatenate([[0], np.cumsum(cost[0] + cost[1])])
            self.block = _Block(start, *evaluated_until(self.plan, iterations), cost, total)
        return self.block

    def _end_of_chunk(self, block: _Block, low: int) -> tuple[int, Status | None]:
        """Return where in its block the chunk that begins at ``low`` ends, or which limit allows no further iteration."""
        left = min(self.query_limit - self.queries, int(block.total[-1]))
        affordable = int(np.searchsorted(block.total, block.total[low] + left, side="right")) - 1
        if affordable <= low:
            return low, Status.QUERIES
        allowed = BLOCK if self.seeking else int(min(self.limits.iterations - block.start, BLOCK))
        if allowed <= low:
            return low, Status.ITERATIONS
        if block.failure is not None and block.known <= low:
            raise block.failure
        to_record = int(np.searchsorted(block.total, block.total[low] + self.next_record - self.queries, side="left"))
        high = max(low + 1, min(low + self.chunk, affordable, allowed, block.known, to_record))
        if math.isfinite(self.limits.seconds):
            high = min(high, low + self._fitting(block.cost[2:, low:high].sum(axis=0)))
        return (high, None) if high > low else (low, Status.TIME)

    # Time. Without a limit no clock decides anything, so that the same seed gives the same bits.

    @property
    def time_left(self) -> float:
        """Seconds until the last record must begin."""
        improving = min(1.2 * self.improving_seconds, IMPROVING_SHARE * self.limits.seconds)  # and something to spare
        return self.limits.seconds - self.clock.counted - self._next_record_seconds - improving

    @property
    def _next_record_seconds(self) -> float:
        return self.record_seconds * max(1.0, self.prover.cost(self.queries) / self.record_cost)

    def _foresee_improving(self) -> None:
        """Estimate how long a bundle takes at most: linear programs, with one linear minimisation for each."""
        if self.prover.certain:
            began = self.clock.counted
            lmo(self.problem.domain, np.ones(self.problem.dimension), np.empty(self.problem.dimension))
            self.improving_seconds = 2 * MAX_ATOMS * (PROGRAM_SECONDS + self.clock.counted - began)

    def _fitting(self, evaluations: np.ndarray) -> int:
        """Return how many of the next iterations, with so many evaluations each, can be made in time."""
        each = self.record_seconds / self.record_cost
        needed = np.maximum(self.pace * np.arange(1, evaluations.size + 1), each * np.cumsum(evaluations))
        left = self.time_left
        if self.seeking and self.state.iteration[0] > 0:  # one step towards a first point is worth more than its share
            left = min(
                left, self.phase_began + INITIAL_SHARE * (self.limits.seconds - self.phase_began) - self.clock.counted
            )
        return int(np.searchsorted(needed, left, side="right")) if left > 0.0 else 0

    def _query_limit(self) -> float:
        """Return how many queries the run may have made by the end of this phase."""
        return self._seeking_limit() if self.seeking else self.limits.queries

    def _seeking_limit(self) -> float:
        """Return how many queries the search for the first point may make."""
        limit = self.limits.queries * INITIAL_SHARE
        if math.isfinite(self.limits.iterations):
            first = np.arange(min(int(self.limits.iterations), BLOCK))
            cost = self.method.cost(self.method.plan(self.problem), first)
            each = float(np.mean(cost.upper_queries + cost.lower_queries))
            limit = min(limit, each * self.limits.iterations * INITIAL_SHARE / (1.0 - INITIAL_SHARE))
        return limit

    # Records

    def due(self) -> bool:
        """Whether a record is to be made before the next iteration."""
        return self.queries >= self.next_record and not self._recorded()

    def _recorded(self) -> bool:
        """Whether the last record is of the current point."""
        return self.records[-1][:2] == (int(not self.seeking), int(self.state.iteration[0]))

    def record(self) -> Status | None:
        """Evaluate the current point in full; return why the phase or the run must end, if it must."""
        x, began = self.answer.copy(), self.clock.counted
        certificate = self.prover.examine(x, self._origin, self.queries, self._excess)
        self.record_seconds, self.record_cost = self.clock.counted - began, self.prover.cost(self.queries)
        self._enter_record(x, certificate)
        if math.isfinite(self.limits.seconds) and self.improving_seconds == 0.0:
            self._foresee_improving()
        if self.callback is not None and self.callback(Snapshot(x, self.records[-1])):
            return Status.CALLBACK
        return self._certified()

    def _certified(self) -> Status | None:
        """Return the status of a run that has reached its tolerances; on a stream, if other samples say so too."""
        if self._within_tolerance() and not (self.prover.certain or self.seeking or self.confirmed):
            x = self.answer.copy()
            self._enter_record(x, self.prover.confirm(x, self._origin, self.queries))
            self.confirmed = True
        return Status.CERTIFIED if self._within_tolerance() else None

    @property
    def _origin(self) -> np.ndarray | None:
        """The method's first point, if it keeps it and has left it."""
        return self.current.origin(self.state) if int(self.state.iteration[0]) > 0 else None

    def _enter_record(self, x: np.ndarray, certificate: Certificate) -> None:
        """Add a row to the history, in place of the last one if that is of the same point."""
        if not certificate.finite:
            level = "upper" if not math.isfinite(certificate.upper) else "lower"
            raise NonFiniteError(f"the {level} objective is NaN or infinite at iteration {self.state.iteration[0]}")
        if self.records and self._recorded():
            self.records.pop()
        self.evaluated, self.confirmed = (x, certificate), False
        record = Record(
            phase=int(not self.seeking),
            iteration=int(self.state.iteration[0]),
            upper_queries=int(self.counts[0]),
            lower_queries=int(self.counts[1]),
            seconds=self.seconds,
            upper=certificate.upper,
            lower=certificate.lower,
            upper_gap_bound=certificate.upper_gap_bound,
            lower_gap_bound=certificate.lower_gap_bound,
            empty_cuts=self.empty_cuts,
        )
        self.records.append(record)
        self.show()

    @property
    def next_record(self) -> float:
        """The queries at which the next record is made: ever fewer records, which cost a small part of the run."""
        last = self.records[-1]
        made = last.upper_queries + last.lower_queries
        return made + max(RECORD_GROWTH * (made - self.phase_queries), self._record_spacing * self.prover.cost(self.queries))

    @property
    def _record_spacing(self) -> int:
        """How many full evaluations a run is worth between two records: 1, 2, 4 and then always 8; for a stream 1."""
        if not self.prover.certain:
            return 1
        phase = int(not self.seeking)
        before = sum(record.phase == phase for record in self.records[-RECORD_SPACING:-1])
        return min(2**before, RECORD_SPACING)

    def _within_tolerance(self) -> bool:
        return self.evaluated is not None and self._recorded() and self._excess(self.evaluated[1]) <= 1.0

    def _excess(self, certificate: Certificate) -> float:
        """Return by how much the bounds exceed the tolerances, as a factor; it is infinite without tolerances."""
        if self.limits.tol is None:
            return math.inf
        upper, lower = self.limits.tol
        below = _times(certificate.lower_gap_bound, lower)
        if self.seeking:
            return 2.0 * below
        above = _times(certificate.upper_gap_bound, upper)
        if not self.problem.upper.convex:
            above = min(above, _times(certificate.stationarity, upper))
        return max(above, below)

    # The end

    def finish(self, status: Status, error: Exception | None) -> Result:
        """Return the result at the last point, or at the last one that can be evaluated if this one cannot."""
        self.callback = None
        if self.clean:
            self.save(0.0)  # without the record below, which a longer run would not make
        try:
            x = self.answer.copy()
            if self._needs_record(x, status):
                self._enter_record(x, self.prover.last(x, self._origin, self.queries, self._excess))
            self._improve()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except Exception as last:
            if error is None:
                status, error = _status_of(last), last
        if isinstance(error, (AssumptionError, ContradictionError)):
            self._withdraw()
        assert self.evaluated is not None
        x, certificate = self.evaluated
        spent = status in (Status.QUERIES, Status.ITERATIONS, Status.TIME)
        if spent and self.prover.certain and not self.seeking and self._within_tolerance():
            status = Status.CERTIFIED
        message = status.value if error is None else f"{status.value}. {self._blame(error)}"
        if status is Status.CERTIFIED and certificate.approximate:
            message = f"{message}; {APPROXIMATE}"
        if status is Status.TIME and (self.seeking or self.state.iteration[0] == 0):
            message += " before a step of the method could be made; x is the point to begin with"
        if error is not None and status is not Status.ENDED:
            with contextlib.suppress(RuntimeWarning):  # where warnings are errors the result must not be lost
                warnings.warn(message, RuntimeWarning, stacklevel=3)
        return Result(
            x=x,
            parts=self.problem.domain.parts(x),
            upper=certificate.upper,
            lower=certificate.lower,
            upper_gap_bound=certificate.upper_gap_bound,
            lower_gap_bound=certificate.lower_gap_bound,
            stationarity=certificate.stationarity,
            certificate=certificate,
            status=status,
            message=message,
            iterations=0 if self.seeking else int(self.state.iteration[0]),
            queries=Counts(int(self.counts[0]), int(self.counts[1])),
            evaluations=Counts(int(self.counts[2]), int(self.counts[3])),
            empty_cuts=self.empty_cuts,
            seconds=self.seconds,
            wall_seconds=self.clock.wall,
            history=History(self.records),
            problem=self.problem,
            method=self.method,
            settings={
                "compiled": self.problem.compiled,
                "convex": bool(self.problem.upper.convex),
                "phases": self.phases,
                "parameters": {field.name: getattr(self.method, field.name) for field in fields(self.method)},
                "tol": self.limits.tol,
                "seed": self.seed,
                "part": self.part,
            },
            error=None if status is Status.ENDED else error,
        )

    def _withdraw(self) -> None:
        """Take back all bounds: they rest on something that was found to be false."""
        assert self.evaluated is not None
        x, certificate = self.evaluated
        upper = math.inf if self.problem.upper.convex else math.nan
        self.records = [record._replace(upper_gap_bound=upper, lower_gap_bound=math.inf) for record in self.records]
        withdrawn = certificate._replace(
            upper_gap_bound=upper,
            lower_gap_bound=math.inf,
            stationarity=math.inf,
            floors=NOTHING,
            upper_error=math.inf,
            lower_error=math.inf,
            confidence=0.0,
        )
        self.evaluated = (x, withdrawn)

    def _needs_record(self, x: np.ndarray, status: Status) -> bool:
        """Whether the last point is still to be evaluated, or its bounds to be made by samples that decided nothing."""
        assert self.evaluated is not None
        if status is Status.TIME and self.prover.certain and np.array_equal(x, self.evaluated[0]):
            return False
        return not self._recorded() or not (self.prover.certain or status is Status.CERTIFIED)

    def _improve(self) -> None:
        """Make the bounds of the last record as good as they can be, where they prove too little."""
        assert self.evaluated is not None
        x, certificate = self.evaluated
        if self._excess(certificate) > 1.0 and self._time_to_improve():
            certificate = self.prover.improved(certificate)
            bounds = {name: getattr(certificate, name) for name in ("upper_gap_bound", "lower_gap_bound")}
            self.records[-1] = self.records[-1]._replace(**bounds)
            self.evaluated = (x, certificate)

    def _time_to_improve(self) -> bool:
        return math.isinf(self.limits.seconds) or self.limits.seconds - self.clock.counted >= self.improving_seconds

    def _blame(self, error: Exception) -> str:
        """Return an error's text, with the level whose objective it came from and the iteration."""
        objective = getattr(error, "objective", None)
        level = next((f"{name}: " for name in ("upper", "lower") if holds(getattr(self.problem, name), objective)), "")
        text = str(error) if isinstance(error, OracleError) else f"{type(error).__name__}: {error}"
        return f"{level}{text} (after iteration {self.state.iteration[0]} of {self.current.name})"

    # Checkpoints

    def identity(self) -> dict[str, Any]:
        """Return what makes this run the one it is: whatever its course depends on."""
        return {
            "x0": digest((self.first_x, self.seek)),  # first: other functions are compared there
            "problem": digest(self.problem) if self.problem.compiled else self._probe(),
            **_configuration(self.phases, self.problem),
            "seed": self.seed,
            "part": self.part,
            **self.prover.identity,
            "max_queries": self.limits.queries,
            "max_iterations": self.limits.iterations,
            "tol": self.limits.tol and list(self.limits.tol),
        }

    def _probe(self) -> str:
        """Return a hash of a problem with Python functions in it: of what they give at the first point."""
        finite = [objective for objective in self.problem[:2] if not objective.endless]
        values = [objective.value_and_gradient(self.first_x) for objective in finite]
        before = outline(self.problem)
        for objective in finite:
            objective.value_and_gradient(self.first_x, [0])
        return digest((lasting(before, outline(self.problem)), *values))

    def open_checkpoint(self, path: Path, stored: tuple[dict[str, Any], dict[str, np.ndarray]] | None) -> None:
        """Save the run here from now on, and go on from what is stored here, if anything is."""
        self.path, self.same = path, self.identity()
        if stored is None:
            return
        meta, arrays = stored
        try:
            self._check_same_run(meta["identity"])
            self._restore(meta, arrays)
        except checkpoints.CheckpointError:
            raise
        except (KeyError, ValueError, TypeError) as error:
            message = f"the checkpoint {path} is damaged ({error}); give another path, or delete it to start anew"
            raise checkpoints.CheckpointError(message) from error

    def _check_same_run(self, stored: dict[str, Any]) -> None:
        """Raise if a stored run cannot become this one, which may differ from it by a larger budget alone."""
        assert self.path is not None
        configured = ("method", "parameters")
        others = [name for name in self.same if name not in (*configured, *BUDGETS)]
        checkpoints.check_identity(self.path, stored, self.same, others)
        differing = [name for name in BUDGETS if stored[name] != self.same[name]]
        if differing and (reason := self._planned_for(stored)):
            raise checkpoints.CheckpointError(
                f"the checkpoint {self.path} is of a run with {_budget(stored, differing)}, which cannot be extended to"
                f" {_budget(self.same, differing)}: {reason}; give that budget to finish it, or another path; x0=result"
                f" goes on from a result"
            )
        checkpoints.check_identity(self.path, stored, self.same, configured)
        if less := [name for name in differing if self.same[name] < stored[name]]:
            raise checkpoints.CheckpointError(
                f"the checkpoint {self.path} is of a run with {_budget(stored, less)}, and a run can be given more, not"
                f" less: got {_budget(self.same, less)}; give at least that budget, or another path"
            )

    def _planned_for(self, stored: dict[str, Any]) -> str:
        """Return why the stored run and this one differ, if their budgets are the reason: some parameter depends on it."""
        phases = self._planned(*(stored[name] for name in BUDGETS))
        before, now = _configuration(phases, self.problem), _configuration(self.phases, self.problem)
        if before == now or any(stored[name] != value for name, value in before.items()):
            return ""
        if before["method"] != now["method"]:
            return f"the method is chosen for the budget: {before['method']!r} for that one, {now['method']!r} for this one"
        names = [field.name for field in fields(self.method) if _differs(phases[-1], self.method, field.name)]
        return f"{before['method']!r} plans for the whole budget: {', '.join(f'`{name}`' for name in names)}"

    def save(self, interval: float) -> None:
        """Write a checkpoint if there is a place for it and the last one is older than some seconds."""
        if self.path is None or time.monotonic() - self.saved_at < interval:
            return
        proofs, gradients = self.prover.stored()
        certificate, half_spaces = (None, {}) if self.evaluated is None else packed(self.evaluated[1])
        meta = {
            "identity": self.same,
            "phase": self.phase,
            "phase_queries": self.phase_queries,
            "phase_began": self.phase_began,
            "seconds": self.seconds,
            "wall_seconds": self.clock.wall,
            "counted_seconds": self.clock.counted,
            "confirmed": self.confirmed,
            "certificate": certificate,
            "proofs": proofs,
        }
        history = {f"history.{name}": getattr(History(self.records), name) for name in Record._fields}
        point = self.answer if self.evaluated is None else self.evaluated[0]
        arrays = {**checkpoints.flatten(self.state), **history, **gradients, **half_spaces}
        arrays |= {"counts": self.counts, "evaluated": point}
        try:
            checkpoints.save(self.path, checkpoints.CHECKPOINT, meta, arrays)
        except OSError as error:  # the run is worth more than its checkpoint
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(f"the checkpoint {self.path} could not be written: {error}", RuntimeWarning, stacklevel=2)
        self.saved_at = time.monotonic()

    def _restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.enter(meta["phase"], self.first_x)
        self.counts[:] = arrays["counts"]
        for name, array in checkpoints.flatten(self.state).items():
            array[...] = arrays[name]
        self.phase_queries, self.phase_began = meta["phase_queries"], meta["phase_began"]
        self.seconds = meta["seconds"]
        self.clock.go_on_from(meta["wall_seconds"], meta["counted_seconds"])
        self.prover.restore(meta["proofs"], arrays)
        self.confirmed = meta["confirmed"]
        columns = [arrays[f"history.{name}"].tolist() for name in Record._fields]
        self.records = [Record(*row) for row in zip(*columns, strict=True)]
        if meta["certificate"] is not None:
            self.evaluated = (arrays["evaluated"], unpacked(meta["certificate"], arrays))

    def show(self) -> None:
        """Bring the progress bar up to date."""
        assert self.evaluated is not None
        iterations = 0 if self.seeking else int(self.state.iteration[0])
        _, last = self.evaluated
        note = f"f {last.upper:.4g}, g {last.lower:.4g}, g − g* ≤ {last.lower_gap_bound:.2g}"
        self.progress.show((self.queries, iterations, self.clock.counted), note)


def _times(bound: float, tolerance: float) -> float:
    """Return how many times a tolerance a bound is; ∞ if there is no bound."""
    return math.inf if math.isnan(bound) else bound / tolerance


def _configuration(phases: list[Method], problem: Problem) -> dict[str, str]:
    """Return what identifies the method of a run and all parameters, of the search for its first point too."""
    schedules = (values_of(method.plan(problem), PROBE) for method in phases)
    return {"method": phases[-1].name, "parameters": digest((phases[-1], *schedules), code=False)}


def _differs(first: Method, second: Method, name: str) -> bool:
    return digest(getattr(first, name)) != digest(getattr(second, name))


def _budget(identity: dict[str, Any], names: list[str]) -> str:
    """Return some budgets of a run as they are written in a call."""
    return ", ".join(f"{name}={None if math.isinf(identity[name]) else int(identity[name])}" for name in names)


def _status_of(error: Exception) -> Status:
    if isinstance(error, EndOfStream):
        return Status.ENDED
    return Status.NOT_FINITE if isinstance(error, NonFiniteError) else Status.FAILED
