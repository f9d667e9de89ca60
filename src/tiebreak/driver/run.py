"""The loop of a run: phases, chunks of iterations and records, until something ends it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak.driver.limits import COUNTED, Clock, Spent, Task
from tiebreak.driver.phases import BLOCK, Block, Phase, Phases
from tiebreak.driver.progress import Progress
from tiebreak.driver.records import Records, Snapshot
from tiebreak.driver.result import History, Result, Status
from tiebreak.driver.timetable import Timetable
from tiebreak.engine.callouts import take_failure
from tiebreak.engine.randomness import keys_of
from tiebreak.methods.base import DONE, UPPER_NOT_FINITE
from tiebreak.objectives import AssumptionError, EndOfStream, NonFiniteError, OracleError, holds
from tiebreak.objectives.constants import Charge
from tiebreak.objectives.traffic import Traffic, alone, traffic_of
from tiebreak.proofs import APPROXIMATE, Certificate, ContradictionError, Prover
from tiebreak.schedules import evaluated_until, part_of

if TYPE_CHECKING:
    from tiebreak.driver.storing import Checkpoint

CHUNK_SECONDS = 0.05  # seconds between two looks at the clock
CHUNK_GROWTH = 4  # factor by which a chunk may be longer than the last one
CHECKPOINT_SECONDS = 5.0  # seconds from one checkpoint to the next

REACHED = (Status.CERTIFIED, Status.CALLBACK)  # ends of a run that do not depend on what is left of its budget


class Run:
    """One run. What changes is in its phase, in what is spent and in the records; a checkpoint stores these.

    Parameters
    ----------
    task : Task
    phases : Phases
    prover : Prover
    clock : Clock
    charges : callable
        Returns what the constants of objectives took since the last call.

    Attributes
    ----------
    callback : callable or None
        Sees each record.
    progress : Progress
    checkpoint : Checkpoint or None
        Where the run is saved.
    """

    def __init__(
        self, task: Task, phases: Phases, prover: Prover, clock: Clock, charges: Callable[[], list[Charge]]
    ) -> None:
        self.task, self.phases, self.clock = task, phases, clock
        self.spent = Spent()
        self.records = Records(prover, task.limits.tol, bool(task.problem.upper.convex), task.given)
        self.callback: Callable[[Snapshot], Any] | None = None
        self.progress = Progress(task.limits.countable, COUNTED, visible=False)
        self.checkpoint: Checkpoint | None = None
        self.ended: Status | None = None  # why the method ended, while g is lowered after it
        self.traffic = traffic_of(*task.problem[:2])  # before the run
        self._prover, self._charges = prover, charges
        self._timetable = Timetable(task.limits.seconds, clock, prover)
        self._chunk = 1  # iterations of the next chunk
        self._clean = True  # whether the state is that of a completed iteration
        self.enter(0, task.x)

    def enter(
        self, number: int, x: np.ndarray, earlier: tuple[int, int] = (0, 0), stored: dict[str, np.ndarray] | None = None
    ) -> None:
        """Begin a phase at a point, or continue it from what is stored of its state; if that fails, nothing has changed."""
        self.phase = Phase(self.phases, number, x, self.spent.total_queries, self.clock, earlier, stored)
        for charge in self._charges():
            level = "upper" if holds(self.task.problem.upper, charge.objective) else "lower"
            self.spent.charge(level, charge.evaluations, charge.seconds, charge.queries)

    def complete(self) -> Result:
        """Run all phases and return the result."""
        self._compile()
        result = self._finish(*self._go())
        if result.status in (Status.SOLVED, Status.CERTIFIED):
            self.progress.finish()
        return result

    def _compile(self) -> None:
        """Compile all that this run will call, or load it from disk, before the clock starts and anything can be lost."""
        self.progress.describe("compiling, for the first run of its kind")
        problem = self.task.problem
        # A problem of library values needs no iteration for that. Python functions are replaced, and two iterations made:
        # an exact one and a sampled one.
        steps, began = 0 if problem.compiled else 2, self.clock.counted
        x = problem.center if problem.compiled else self.task.x
        rehearsal = problem._replace(upper=problem.upper.rehearsal(), lower=problem.lower.rehearsal())
        take_failure()  # of a run that was cut short before it could
        for method in self.phases.methods:
            plan = method.plan(rehearsal)
            with contextlib.suppress(OracleError):  # the run itself will meet it
                state = method.start(rehearsal, plan, x)
                method.loop(rehearsal, state, evaluated_until(plan, np.arange(steps))[0], steps, keys_of([0]))
        if not problem.compiled:  # other compilers may have been at work
            self.clock.excuse(began)

    def _go(self) -> tuple[Status, Exception | None]:
        """Run all phases; return why it ended and what was raised, if anything was."""
        try:
            while True:
                phase = self.phase
                purpose = " for a first point" if phase.seeking else " for g" if phase.settling else ""
                self.progress.describe(phase.method.name + purpose)
                status = self._run_phase()
                if self._is_last(status):
                    return status if self.ended is None or status in REACHED else self.ended, None
                if not self.records.made_at(phase):
                    reached = self._record()
                    if reached is not None and self._is_last(reached):
                        return reached, None
                if not phase.seeking:
                    self.ended = status
                self.enter(phase.number + 1, phase.answer, (phase.iterations_of_method, phase.empty_cuts))
                self._allow()
        except (KeyboardInterrupt, Exception) as error:
            if not self.records:  # there is nothing to lose yet
                raise
            return (Status.INTERRUPTED, None) if isinstance(error, KeyboardInterrupt) else (_status_of(error), error)

    def _is_last(self, status: Status) -> bool:
        """Return whether no other phase follows one that ended like this."""
        if status is Status.CALLBACK or (status is Status.CERTIFIED and not self.phase.seeking):
            return True
        return self.phase.number == len(self.phases.methods) - 1

    def _run_phase(self) -> Status:
        """Run one phase to its end, and return why it ended."""
        status = self._certified()  # a run that is read from disk may be at its end
        while status is None:
            if not self.records or self._record_due():
                status = self._record()
            else:
                status = Status.SOLVED if self.phase.finished else self._step()
        return status

    # Chunks

    def _step(self) -> Status | None:
        """Run one chunk of iterations; return why the phase or the run must end, if it must."""
        phase = self.phase
        t, block = phase.iteration, phase.block()
        low = t - block.start
        high, status = self._end_of_chunk(block, low)
        if status is not None:
            return status
        plan = part_of(phase.plan, block.plan, low, high)
        spent, loop, began = phase.spent, phase.method.loop, self.clock.counted
        before, failure = phase.kept(), None
        try:
            self._clean = False  # only now: Ctrl-C before the loop changes nothing
            with alone(*self.task.problem[:2]):
                outcome = loop(self.task.problem, phase.state, plan, high - low, phase.keys)
        finally:
            elapsed = self.clock.counted - began
            self.spent.seconds += elapsed
            failure = take_failure()
            if failure is not None and before is not None:  # in a pass over the data: what was built on it is dropped
                phase.restore(before)
                self._clean = True
            done = phase.iteration - t
            self.spent.costs += phase.spent - spent
            self._clean |= done == high - low  # Ctrl-C during compiled code is raised when the chunk is complete
        if failure is not None:
            raise failure
        if outcome != DONE:
            level = "upper" if outcome == UPPER_NOT_FINITE else "lower"
            raise NonFiniteError(f"the {level} objective became NaN or infinite at iteration {t + done}")
        if done == 0 and not phase.finished:
            raise RuntimeError(
                f"the loop of {phase.method.name!r} must count each iteration in `state.iteration`, and did not"
            )
        self._clean = True  # though it may have taken fewer steps: it is finished, or wants a record
        phase.pace = elapsed / max(done, 1)
        self._chunk = max(1, min(CHUNK_GROWTH * self._chunk, BLOCK, int(done * CHUNK_SECONDS / max(elapsed, 1e-9))))
        self._show()
        self._save(CHECKPOINT_SECONDS)
        return None

    def _end_of_chunk(self, block: Block, low: int) -> tuple[int, Status | None]:
        """Return where in its block the chunk that begins at ``low`` ends, or which limit allows no further iteration."""
        phase, limits, queries = self.phase, self.task.limits, self.spent.total_queries
        left = min(phase.query_limit - queries, int(block.total[-1]))
        affordable = int(np.searchsorted(block.total, block.total[low] + left, side="right")) - 1
        if affordable <= low:
            return low, Status.QUERIES
        size = block.total.size - 1
        allowed = size if phase.seeking or phase.settling else int(min(limits.iterations - block.start, size))
        if allowed <= low:
            return low, Status.ITERATIONS
        if block.failure is not None and block.known <= low:
            raise block.failure
        until_record = self.records.next_queries(phase, queries) - queries
        to_record = int(np.searchsorted(block.total, block.total[low] + until_record, side="left"))
        high = max(low + 1, min(low + self._chunk, affordable, allowed, block.known, to_record))
        if self._timetable.limited:
            high = min(high, low + self._timetable.fitting(phase, block.cost[2:, low:high].sum(axis=0), queries))
        return (high, None) if high > low else (low, Status.TIME)

    # Records

    def _record_due(self) -> bool:
        """Return whether a record is to be made before the next iteration."""
        phase, queries = self.phase, self.spent.total_queries
        due = phase.wants_record or queries >= self.records.next_queries(phase, queries)
        return due and phase.has_answer and not self.records.made_at(phase)

    def _record(self) -> Status | None:
        """Evaluate the current point in full; return why the phase or the run must end, if it must."""
        phase, queries = self.phase, self.spent.total_queries
        x, began = phase.answer.copy(), self.clock.counted
        certificate = self._prover.examine(x, phase.origin, queries, self._excess, phase.hints)
        self._timetable.note_record(began, queries)
        self._add_record(x, certificate)
        self._timetable.foresee(self.task.problem)
        if self.callback is not None and self.callback(Snapshot(x, self.records.rows[-1])):
            return Status.CALLBACK
        return self._certified()

    def _certified(self) -> Status | None:
        """Return the status of a run that has reached its tolerances; on a stream, if other samples say so too."""
        phase, records = self.phase, self.records
        if records.within_tolerance(phase) and not (self._prover.certain or phase.seeking or records.confirmed):
            x = phase.answer.copy()
            self._add_record(x, self._prover.confirm(x, phase.origin, self.spent.total_queries))
            records.confirmed = True
        return Status.CERTIFIED if records.within_tolerance(phase) else None

    def _excess(self, certificate: Certificate) -> float:
        return self.records.excess(certificate, self.phase)

    def _add_record(self, x: np.ndarray, certificate: Certificate) -> None:
        self.records.add(x, certificate, self.phase, self.spent)
        self._allow()
        self._show()

    def _allow(self) -> None:
        """Tell the method how large g may be, for near ties."""
        if self.task.problem.is_near and not self.phase.seeking:
            self.phase.allow(*self.records.allowed())

    def _show(self) -> None:
        """Bring the progress bar up to date."""
        last = self.records.certificate
        note = f"f {last.upper:.4g}, g {last.lower:.4g}, g − g* ≤ {last.lower_gap_bound:.2g}"
        if moved := self._moved().bytes_moved:
            note += f", {moved / 1e6:.0f} MB moved"
        self.progress.show((self.spent.total_queries, self.phase.iterations_of_method, self.clock.counted), note)

    def _moved(self) -> Traffic:
        """Return what was moved and waited for so far."""
        return traffic_of(*self.task.problem[:2]).since(self.traffic)

    def _save(self, interval: float) -> None:
        """Write a checkpoint if there is a place for it and the last one is older than some seconds."""
        if self.checkpoint is not None:
            self.checkpoint.save(interval)

    # The end

    def _finish(self, status: Status, error: Exception | None) -> Result:
        """Return the result at the last point, or at the last one that can be evaluated if this one cannot."""
        self.callback = None
        if self._clean:
            self._save(0.0)  # without the record below, which a longer run would not make
        try:
            self._make_last_record(status)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except Exception as last:
            if error is None:
                status, error = _status_of(last), last
        if isinstance(error, (AssumptionError, ContradictionError)):
            self.records.withdraw()
        if self._within_tolerance_at_last(status):
            status = Status.CERTIFIED
        message = self._message(status, error)
        if error is not None and status is not Status.ENDED:
            with contextlib.suppress(RuntimeWarning):  # where warnings are errors the result must not be lost
                warnings.warn(message, RuntimeWarning, stacklevel=4)  # of whoever called minimize
        return self._result(status, message, None if status is Status.ENDED else error)

    def _make_last_record(self, status: Status) -> None:
        """Evaluate the last point, if that is still to be done, and improve its bounds, where they prove too little."""
        phase = self.phase
        phase.conclude()
        x = phase.answer.copy()
        if self._needs_record(x, status):
            queries = self.spent.total_queries
            self._add_record(x, self._prover.last(x, phase.origin, queries, self._excess, phase.hints))
        if status is not Status.CERTIFIED and not phase.seeking:
            self._retreat()
        self._go_back(status)
        # A method that knows its multipliers, or that it is finished, has nothing to gain from more half-spaces.
        sharp = phase.finished or bool(phase.hints)
        if self._excess(self.records.certificate) > 1.0 and not sharp and self._timetable.allows_improving():
            self.records.improve()
        if "upper" in phase.method.levels and self._timetable.allows_improving():
            self.records.bound_above()

    def _retreat(self) -> None:
        """Step back to the level of a near tie, or to the largest rise of g, if the last point exceeds it.

        Without time for that, step back to the best point of a near tie with a record that keeps the level.
        """
        phase = self.phase
        if not self._timetable.allows_improving():
            self.records.return_to_level()
        elif (nearer := self.records.retreat(self.phases.settling_share > 0.0)) is not None:
            queries = self.spent.total_queries
            self._add_record(nearer, self._prover.last(nearer, phase.origin, queries, self._excess, phase.hints))

    def _go_back(self, status: Status) -> None:
        """Go back to a point with a record that is better than the last one at both levels, if there is one."""
        phase = self.phase
        if self._prover.certain and (better := self.records.better()) is not None:
            certificate = self._prover.last(better, phase.origin, self.spent.total_queries, self._excess, phase.hints)
            proven = self._excess(certificate) <= 1.0  # it may not be stationary, for f not convex
            if proven or status is not Status.CERTIFIED:
                self.records.go_back(better, certificate)

    def _needs_record(self, x: np.ndarray, status: Status) -> bool:
        """Return whether the last point must be evaluated, or its bounds be made of samples that decided nothing."""
        certain = self._prover.certain
        if status is Status.TIME and certain and np.array_equal(x, self.records.x):
            return False
        return not self.records.made_at(self.phase) or not (certain or status is Status.CERTIFIED)

    def _within_tolerance_at_last(self, status: Status) -> bool:
        """Return whether a run that has spent its budget, or came to its end, has reached its tolerances with that."""
        ended = status in (Status.QUERIES, Status.ITERATIONS, Status.TIME, Status.SOLVED)
        return ended and self._prover.certain and not self.phase.seeking and self.records.within_tolerance(self.phase)

    def _message(self, status: Status, error: Exception | None) -> str:
        message = self.task.limits.sentence(status) if error is None else f"{status.value}. {self._blame(error)}"
        if status is Status.CERTIFIED and self.records.certificate.approximate:
            message = f"{message}; {APPROXIMATE}"
        if status is Status.TIME and self.phase.iterations_of_method == 0:
            message += " before a step of the method could be made; x is the point to begin with"
        return message if error is not None else message + self.phase.remark

    def _blame(self, error: Exception) -> str:
        """Return an error's text, with the level whose objective it came from and the iteration."""
        objective, problem = getattr(error, "objective", None), self.task.problem
        level = next((f"{name}: " for name in ("upper", "lower") if holds(getattr(problem, name), objective)), "")
        text = str(error) if isinstance(error, OracleError) else f"{type(error).__name__}: {error}"
        return f"{level}{text} (after iteration {self.phase.iteration} of {self.phase.method.name})"

    def _result(self, status: Status, message: str, error: Exception | None) -> Result:
        task, method, certificate = self.task, self.phases.method, self.records.certificate
        return Result(
            x=self.records.x,
            last=self.records.x if self.records.last is None else self.records.last,
            parts=task.problem.domain.parts(self.records.x),
            upper=certificate.upper,
            lower=certificate.lower,
            upper_gap_bound=certificate.upper_gap_bound,
            lower_gap_bound=certificate.lower_gap_bound,
            stationarity=certificate.stationarity,
            certificate=certificate,
            status=status,
            message=message,
            iterations=self.phase.iterations_of_method,
            queries=self.spent.queries,
            evaluations=self.spent.evaluations,
            empty_cuts=self.phase.empty_cuts,
            seconds=self.spent.seconds,
            wall_seconds=self.clock.wall,
            history=History(self.records.rows),
            problem=task.problem,
            method=method,
            settings={
                "compiled": task.problem.compiled,
                "convex": bool(task.problem.upper.convex),
                "phases": self.phases.methods,
                "parameters": {field.name: getattr(method, field.name) for field in fields(method)},
                "tol": task.limits.tol,
                "seed": task.seed,
                "part": task.part,
            },
            error=error,
            **self._moved()._asdict(),
            memory=self.phase.memory if self._clean and self.records.last is None and not status.failed else None,
        )


def _status_of(error: Exception) -> Status:
    if isinstance(error, EndOfStream):
        return Status.ENDED
    return Status.NOT_FINITE if isinstance(error, NonFiniteError) else Status.FAILED
