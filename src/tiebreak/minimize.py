"""The only driver: budgets, chunks, recording, stopping, checkpoints."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak import checkpoint as checkpoints
from tiebreak import checks
from tiebreak.certificate import APPROXIMATE, NOTHING, Certificate, Floors, confidence_level, proven
from tiebreak.digest import lasting, outline
from tiebreak.domains import projects
from tiebreak.engine import compilable
from tiebreak.gradients import check_gradients
from tiebreak.locks import Lock, Locked
from tiebreak.methods import Method, as_method
from tiebreak.methods.base import DONE, SAMPLE, UPPER_NOT_FINITE, Budget
from tiebreak.objectives import AssumptionError, EndOfStream, FiniteSum, NonFiniteError, OracleError, Stream, holds
from tiebreak.objectives.matrices import remembering
from tiebreak.problem import Problem, check_problem
from tiebreak.progress import Progress
from tiebreak.prover import Prover, prover_of
from tiebreak.result import Counts, History, Record, Result, Status
from tiebreak.schedules import ScheduleError

BLOCK = 8192  # iterations for which schedules are evaluated at once; always the same ones, however a run is cut in chunks
CHUNK_SECONDS = 0.05  # between two looks at the clock
INITIAL_SHARE = 0.1  # of the budget, to find the first point
RECORD_GROWTH = 0.15  # of the queries of a phase, from one record to the next
CHECKPOINT_SECONDS = 5.0  # from one checkpoint to the next
STORED = (*Certificate._fields[:7], "upper_error", "lower_error", "confidence", "samples", "approximate")  # of a certificate
PROBE = np.concatenate([np.arange(16), 2 ** np.arange(5, 21)])  # iterations at which schedules are checked and compared


def minimize(
    problem: Problem,
    method: str | Method = "auto",
    *,
    max_queries: int | None = 1_000_000,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    tol: tuple[float, float] | None = None,
    x0: Any = None,
    seed: int = 0,
    callback: Callable[[Snapshot], Any] | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    delta: float = 0.05,
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
        Samples that may be drawn at both levels together, with those for the first point. None: no limit.
    max_iterations : int, optional
        Steps that the method may take after the first point is found.
    time_limit : float, optional
        Seconds of computing; compilation and the evaluations for the history are not counted.
    tol : (float, float), optional
        (ε_f, ε_g): stop when the bounds prove f(x) − f* ≤ ε_f and g(x) − g* ≤ ε_g; they are looked at with each record.
    x0 : array or Result, optional
        A point of the domain to start from, or a result to go on from, with what was proven on the way to it. The methods
        that cut keep g near g(x0), so it should nearly minimise g. If it is not given, a tenth of the budget goes to
        finding such a point.
    seed : int
        Same seed, same result, bit for bit.
    callback : callable, optional
        Called with a :class:`Snapshot` at each record; the run stops if it returns something true.
    progress : bool, optional
        Whether to show a progress bar; if not given, only in a terminal.
    checkpoint : path, optional
        File to which the run is saved every few seconds and at its end. If it exists, the run goes on from there and ends
        bit for bit where an uninterrupted one does; a run of another problem, with other functions, data or ``x0``, is
        refused, and so is a second run at the same time. With a stream it does so if the samples are a function of
        ``rng``; any other source is read on from where it is, so that the run goes on with other samples.
    delta : float
        With a stream at a level: the probability that the bounds of the result may fail with. They come from fresh samples,
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
        If an argument is not valid; CheckpointError, a kind of it, if the checkpoint is damaged, of another run or in use.
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
    check_problem(problem)
    limits = _limits(max_queries, max_iterations, time_limit, tol)
    if callback is not None and not callable(callback):
        raise ValueError(f"`callback` must be a function of one snapshot, got {callback!r}")
    visible = sys.stderr.isatty() if progress is None else checks.flag(progress, "progress")
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
    prover = prover_of(problem, floors, confidence_level(delta), [seed, part], sequential=limits.tol is not None)
    with remembering():
        run = _Run(problem, as_method(method), limits, start, prover, x0 is None, seed, part)
        run.callback = callback
        try:
            if checkpoint is not None:
                run.open_checkpoint(checkpoint)
            if check and not run.records:  # one that goes on was checked when it began
                check_gradients(problem, start)
                prover.check = True
            with Progress(limits.countable, visible) as run.progress:
                return run.finish(*run.go())
        finally:
            if run.lock is not None:
                run.lock.release()


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


def _limits(max_queries: Any, max_iterations: Any, time_limit: Any, tol: Any) -> Limits:
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
    elif math.isinf(min(limits.countable)):
        raise ValueError("a run needs an end: give `max_queries`, `max_iterations`, `time_limit` or `tol`")
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
    schedules: tuple[np.ndarray, ...]  # up to where one fails
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
    ):
        self.problem, self.limits, self.prover, self.seed = problem, limits, prover, seed
        self.part = part  # how many runs it goes on from, each of which has samples of its own
        self.first_x = x
        share = INITIAL_SHARE if seek else 0.0
        wanted = limits.tol[1] if limits.tol is not None else 0.0
        self.method = method.for_problem(problem, Budget((1.0 - share) * limits.queries, limits.iterations, wanted))
        initial = self.method.seeks_with if seek else None
        self.phases = [self.method] if initial is None else [initial.for_problem(problem), self.method]
        self._check_budget()
        self._check_schedules(share)
        self.rng = np.random.default_rng([seed, part] if part else seed)
        self.counts = np.zeros(4, dtype=np.int64)  # in the order of Cost
        self.seconds = 0.0
        self.records: list[Record] = []
        self.evaluated: tuple[np.ndarray, Certificate] | None = None  # the last point recorded, and what is proven there
        self.confirmed = False  # whether the last record is of bounds that hold though records chose their moment
        self.chunk = 1
        self.clean = True  # whether the state is that of a completed iteration
        self.callback: Callable[[Snapshot], Any] | None = None
        self.path: Path | None = None
        self.lock: Lock | None = None
        self.progress = Progress(limits.countable, wanted=False)
        self.saved_at = time.monotonic()
        self.enter(0, x)

    def _check_budget(self) -> None:
        """Raise if the queries do not pay for one iteration: nothing would be done, and pass for an answer."""
        first = self.method.cost(self.problem, self.method.constants(self.problem), np.zeros(1, dtype=np.int64))
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
                method.schedule_values(np.append(PROBE[last > PROBE], last))
            else:  # an estimate
                method.schedule_values(PROBE[0.9 * reached > PROBE])

    # Phases

    def enter(self, phase: int, x: np.ndarray) -> None:
        """Begin a phase at a point."""
        current = self.phases[phase]
        constants = current.constants(self.problem)
        state = current.start(self.problem, constants, x)  # may call a user's function: if it fails, nothing has changed
        self.phase, self.current, self.constants, self.state = phase, current, constants, state
        self.phase_queries = self.queries
        self.block: _Block | None = None
        self.query_limit = self._query_limit()

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
        return int(self.state.empty_cuts[0]) if hasattr(self.state, "empty_cuts") else 0

    @property
    def queries(self) -> int:
        return int(self.counts[:2].sum())

    def compile(self) -> None:
        """Compile all that this run will call, or load it from disk, before the clock starts and anything can be lost."""
        self.progress.describe("compiling (once for each combination of methods, objectives and sets)")
        # A problem of library values needs no iteration for that. Python functions are replaced, and two iterations made:
        # an exact one and a sampled one.
        steps = np.arange(0 if self.problem.compiled else 2)
        rehearsal = Problem(_stand_in(self.problem.upper), _stand_in(self.problem.lower), self.problem.domain)
        for method in self.phases:
            constants = method.constants(rehearsal)
            with contextlib.suppress(OracleError):  # the run itself will meet it
                state = method.start(rehearsal, constants, self.first_x)
                method.loop(rehearsal, state, constants, *method.schedules_until(steps)[0], np.random.default_rng(0))

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
        unspent = self.current.unspent(self.state)
        schedules = [values[low:high] for values in block.schedules]
        loop, began = self.current.loop, time.perf_counter()
        try:
            self.clean = False  # only now: Ctrl-C before the loop changes nothing
            outcome = loop(self.problem, self.state, self.constants, *schedules, self.rng)
        finally:
            elapsed = time.perf_counter() - began
            self.seconds += elapsed
            done = int(self.state.iteration[0]) - t
            self.counts += block.cost[:, low : low + done].sum(axis=1) - (self.current.unspent(self.state) - unspent)
            self.clean = done == high - low  # Ctrl-C during compiled code is raised when the chunk is complete
        if outcome != DONE:
            level = "upper" if outcome == UPPER_NOT_FINITE else "lower"
            raise NonFiniteError(f"the {level} objective became NaN or infinite at iteration {t + done}")
        self.chunk = max(1, min(4 * self.chunk, BLOCK, int(done * CHUNK_SECONDS / max(elapsed, 1e-9))))
        self.show()
        self.save(CHECKPOINT_SECONDS)
        return None

    def _block_of(self, t: int) -> _Block:
        start = t // BLOCK * BLOCK
        if self.block is None or self.block.start != start:
            iterations = np.arange(start, start + BLOCK)
            cost = np.array(self.current.cost(self.problem, self.constants, iterations))
            total = np.concatenate([[0], np.cumsum(cost[0] + cost[1])])
            self.block = _Block(start, *self.current.schedules_until(iterations), cost, total)
        return self.block

    def _end_of_chunk(self, block: _Block, low: int) -> tuple[int, Status | None]:
        """Return where in its block the chunk that begins at ``low`` ends, or which limit allows no further iteration."""
        share = INITIAL_SHARE if self.seeking else 1.0
        if self.seconds >= self.limits.seconds * share:
            return low, Status.TIME
        left = min(self.query_limit - self.queries, int(block.total[-1]))
        affordable = int(np.searchsorted(block.total, block.total[low] + left, side="right")) - 1
        if affordable <= low:
            return low, Status.QUERIES
        allowed = BLOCK if self.seeking else int(min(self.limits.iterations - block.start, BLOCK))
        if allowed <= low:
            return low, Status.ITERATIONS
        known = BLOCK if block.failure is None else block.schedules[0].size
        if block.failure is not None and known <= low:
            raise block.failure
        to_record = int(np.searchsorted(block.total, block.total[low] + self.next_record - self.queries, side="left"))
        return max(low + 1, min(low + self.chunk, affordable, allowed, known, to_record)), None

    def _query_limit(self) -> float:
        """Return how many queries the run may have made by the end of this phase."""
        return self._seeking_limit() if self.seeking else self.limits.queries

    def _seeking_limit(self) -> float:
        """Return how many queries the search for the first point may make."""
        limit = self.limits.queries * INITIAL_SHARE
        if math.isfinite(self.limits.iterations):
            first = np.arange(min(int(self.limits.iterations), BLOCK))
            cost = self.method.cost(self.problem, self.method.constants(self.problem), first)
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
        x = self.answer.copy()
        self._enter_record(x, self.prover.examine(x, self._origin, self.queries, self._excess))
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
        return self.state.origin if hasattr(self.state, "origin") and int(self.state.iteration[0]) > 0 else None

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
            upper_bound_gap=certificate.upper_bound_gap,
            lower_bound_gap=certificate.lower_bound_gap,
            empty_cuts=self.empty_cuts,
        )
        self.records.append(record)
        self.show()

    @property
    def next_record(self) -> float:
        """The queries at which the next record is made: ever fewer, and at most one full evaluation for as many samples."""
        last = self.records[-1]
        made = last.upper_queries + last.lower_queries
        return made + max(RECORD_GROWTH * (made - self.phase_queries), self.prover.cost(self.queries))

    def _within_tolerance(self) -> bool:
        return self.evaluated is not None and self._recorded() and self._excess(self.evaluated[1]) <= 1.0

    def _excess(self, certificate: Certificate) -> float:
        """Return by how much the bounds exceed the tolerances, as a factor; it is infinite without tolerances."""
        if self.limits.tol is None:
            return math.inf
        upper, lower = self.limits.tol
        below = _times(certificate.lower_bound_gap, lower)
        if self.seeking:
            return 2.0 * below
        above = _times(certificate.upper_bound_gap, upper)
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
            if not self._recorded() or not (self.prover.certain or status is Status.CERTIFIED):
                x = self.answer.copy()
                self._enter_record(x, self.prover.last(x, self._origin, self.queries, self._excess))
            self._improve()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except Exception as last:
            if error is None:
                status, error = _status_of(last), last
        if isinstance(error, AssumptionError):
            self._withdraw()
        assert self.evaluated is not None
        x, certificate = self.evaluated
        spent = status in (Status.QUERIES, Status.ITERATIONS, Status.TIME)
        if spent and self.prover.certain and not self.seeking and self._within_tolerance():
            status = Status.CERTIFIED
        message = status.value if error is None else f"{status.value}. {self._blame(error)}"
        if status is Status.CERTIFIED and certificate.approximate:
            message = f"{message}; {APPROXIMATE}"
        if error is not None and status is not Status.ENDED:
            with contextlib.suppress(RuntimeWarning):  # where warnings are errors the result must not be lost
                warnings.warn(message, RuntimeWarning, stacklevel=3)
        return Result(
            x=x,
            parts=self.problem.domain.parts(x),
            upper=certificate.upper,
            lower=certificate.lower,
            upper_bound_gap=certificate.upper_bound_gap,
            lower_bound_gap=certificate.lower_bound_gap,
            stationarity=certificate.stationarity,
            certificate=certificate,
            status=status,
            message=message,
            iterations=0 if self.seeking else int(self.state.iteration[0]),
            queries=Counts(int(self.counts[0]), int(self.counts[1])),
            evaluations=Counts(int(self.counts[2]), int(self.counts[3])),
            empty_cuts=self.empty_cuts,
            seconds=self.seconds,
            history=History(self.records),
            problem=self.problem,
            method=self.method,
            settings={
                "compiled": self.problem.compiled,
                "phases": self.phases,
                "parameters": {field.name: getattr(self.method, field.name) for field in fields(self.method)},
                "seed": self.seed,
                "part": self.part,
            },
            error=None if status is Status.ENDED else error,
        )

    def _withdraw(self) -> None:
        """Take back all bounds: they rest on an assumption that a sample has contradicted."""
        assert self.evaluated is not None
        x, certificate = self.evaluated
        upper = math.inf if self.problem.upper.convex else math.nan
        self.records = [record._replace(upper_bound_gap=upper, lower_bound_gap=math.inf) for record in self.records]
        withdrawn = certificate._replace(
            upper_bound_gap=upper,
            lower_bound_gap=math.inf,
            stationarity=math.inf,
            floors=NOTHING,
            upper_error=math.inf,
            lower_error=math.inf,
            confidence=0.0,
        )
        self.evaluated = (x, withdrawn)

    def _improve(self) -> None:
        """Make the bounds of the last record as good as they can be, where they prove too little."""
        assert self.evaluated is not None
        x, certificate = self.evaluated
        if self._excess(certificate) > 1.0:
            certificate = self.prover.improved(certificate)
            bounds = {name: getattr(certificate, name) for name in ("upper_bound_gap", "lower_bound_gap")}
            self.records[-1] = self.records[-1]._replace(**bounds)
            self.evaluated = (x, certificate)

    def _blame(self, error: Exception) -> str:
        """Return an error's text, with the level whose objective it came from and the iteration."""
        objective = getattr(error, "objective", None)
        level = next((f"{name}: " for name in ("upper", "lower") if holds(getattr(self.problem, name), objective)), "")
        text = str(error) if isinstance(error, OracleError) else f"{type(error).__name__}: {error}"
        return f"{level}{text} (after iteration {self.state.iteration[0]} of {self.current.name})"

    # Checkpoints

    def identity(self) -> dict[str, Any]:
        """Return what makes this run the one it is: whatever its course depends on."""
        values = [method.schedules_until(PROBE)[0] for method in self.phases]
        return {
            "x0": checkpoints.digest((self.first_x, len(self.phases))),  # first: other functions are compared there
            "problem": checkpoints.digest(self.problem) if self.problem.compiled else self._probe(),
            "method": self.method.name,
            "parameters": checkpoints.digest((self.method, *values), code=False),
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
        return checkpoints.digest((lasting(before, outline(self.problem)), *values))

    def open_checkpoint(self, given: Any) -> None:
        """Save the run here from now on, and go on from what is saved here, if anything is."""
        if not isinstance(given, (str, os.PathLike)):
            raise ValueError(f"`checkpoint` must be the path of a file, got {given!r}")
        path = Path(given).expanduser()
        if not path.parent.is_dir():
            raise ValueError(f"`checkpoint` must be a file in an existing folder, and there is no folder {path.parent}")
        if path.is_dir():
            raise ValueError(f"`checkpoint` must be a file, and {path} is a folder")
        try:
            self.lock = Lock(path)
        except Locked as error:
            by = "another run" if error.holder in (None, os.getpid()) else f"process {error.holder}"
            message = f"the checkpoint {path} is in use by {by}: wait for its end, or use another path"
            raise checkpoints.CheckpointError(message) from None
        self.path, self.same = path, self.identity()
        if not path.exists():
            return
        meta, arrays = checkpoints.load(path)
        checkpoints.check_identity(path, meta["identity"], self.same)
        try:
            self._restore(meta, arrays)
        except (KeyError, ValueError, TypeError) as error:
            message = f"the checkpoint {path} is damaged ({error}); delete it to start anew"
            raise checkpoints.CheckpointError(message) from error

    def save(self, interval: float) -> None:
        """Write a checkpoint if there is a place for it and the last one is older than some seconds."""
        if self.path is None or time.monotonic() - self.saved_at < interval:
            return
        proofs, gradients = self.prover.stored()
        meta = {
            "identity": self.same,
            "phase": self.phase,
            "phase_queries": self.phase_queries,
            "seconds": self.seconds,
            "rng": self.rng.bit_generator.state,
            "confirmed": self.confirmed,
            "certificate": self.evaluated and {name: getattr(self.evaluated[1], name) for name in STORED},
            "proofs": proofs,
        }
        history = {f"history.{name}": getattr(History(self.records), name) for name in Record._fields}
        point = self.answer if self.evaluated is None else self.evaluated[0]
        arrays = {**checkpoints.flatten(self.state), **history, **gradients, "counts": self.counts, "evaluated": point}
        try:
            checkpoints.save(self.path, meta, arrays)
        except OSError as error:  # the run is worth more than its checkpoint
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(f"the checkpoint {self.path} could not be written: {error}", RuntimeWarning, stacklevel=2)
        self.saved_at = time.monotonic()

    def _restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.counts[:] = arrays["counts"]
        self.enter(meta["phase"], self.first_x)
        for name, array in checkpoints.flatten(self.state).items():
            array[...] = arrays[name]
        self.phase_queries = meta["phase_queries"]
        self.seconds = meta["seconds"]
        self.rng.bit_generator.state = meta["rng"]
        self.prover.restore(meta["proofs"], arrays)
        self.confirmed = meta["confirmed"]
        columns = [arrays[f"history.{name}"].tolist() for name in Record._fields]
        self.records = [Record(*row) for row in zip(*columns, strict=True)]
        if meta["certificate"] is not None:
            stored = {**meta["certificate"], "floors": Floors(*meta["certificate"]["floors"])}
            self.evaluated = (arrays["evaluated"], Certificate(**stored))

    def show(self) -> None:
        """Bring the progress bar up to date."""
        assert self.evaluated is not None
        iterations = 0 if self.seeking else int(self.state.iteration[0])
        _, last = self.evaluated
        note = f"f {last.upper:.4g}, g {last.lower:.4g}, g − g* ≤ {last.lower_bound_gap:.2g}"
        self.progress.show((self.queries, iterations, self.seconds), note)


def _times(bound: float, tolerance: float) -> float:
    """Return how many times a tolerance a bound is; ∞ if there is no bound."""
    return math.inf if math.isnan(bound) else bound / tolerance


def _stand_in(objective: Any) -> Any:
    """Return an objective itself if it is compiled or compiles something itself, else one of its size that does nothing."""
    if compilable(objective) or (isinstance(objective, FiniteSum) and getattr(objective.value_and_grad, "rehearses", False)):
        return objective
    d = objective.dimension

    def nothing(x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        return 0.0, np.zeros(d)

    if isinstance(objective, FiniteSum):
        return replace(objective, value_and_grad=nothing)  # with all that it knows of itself
    known = objective.convex, objective.lipschitz, objective.strong_convexity, objective.floor
    if objective.endless:
        return Stream(lambda rng, size: nothing, nothing, d, *known)
    return FiniteSum(objective.n_samples, d, nothing, *known)


def _status_of(error: Exception) -> Status:
    if isinstance(error, EndOfStream):
        return Status.ENDED
    return Status.NOT_FINITE if isinstance(error, NonFiniteError) else Status.FAILED
