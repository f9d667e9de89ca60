"""What was drawn of streams, and the run of another method on the problem of their means: the work of sample-average."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak.active.gathering import LEVELS, Gathering
from tiebreak.domains import lmo
from tiebreak.engine.randomness import Keys, key_of
from tiebreak.methods.base import DONE, Budget, Method
from tiebreak.objectives.adapters.keeping import Keeping
from tiebreak.problem import Problem

if TYPE_CHECKING:
    from tiebreak.methods.sample_average import SampleAverage

FIRST_SHARE, NEAR_SHARE = 0.1, 0.4  # share of the passes that find a minimiser of g; and for near ties
LEAST_WORK = 100_000  # samples looked at, at least, if there are few: they are cheap
SUMMED_PASSES = 3000  # steps where all rows are summed up, or known exactly
LEAST_QUERIES = 2000  # samples of the finite problem that an iteration looks at, at least
MOST_STEPS = 4096  # steps of the other method in an iteration
MOST_PASSES = 5  # passes over a level that one step of a method takes at most
LAST_PASSES = 10  # iterations that make an answer of what was drawn, where a run ends before
RECORD_BLOCKS = tuple(4**k for k in range(1, 12))  # blocks after which fresh samples are put aside for a proof
NEAR_ROOM = 0.5  # share of a tolerance that g may rise by whatever is proven


class Average:
    """What was drawn of streams, and the run of another method on the problem of the means.

    Parameters
    ----------
    problem : Problem
    method : SampleAverage
    x : array
        The first point.

    Attributes
    ----------
    answer : array
    finished : bool
        Whether all passes are made, or the other method can improve nothing further.
    telling : bool
        Whether there is something to record.
    keys : Keys
        Those of the run.
    """

    keys: Keys

    def __init__(self, problem: Problem, method: SampleAverage, x: np.ndarray) -> None:
        self._problem, self._method = problem, method
        self._gathering = Gathering(problem, method.samples or 1, collect=method.collector(problem))
        self.answer, self._first = x.copy(), x.copy()
        self.finished = self.telling = False
        self._methods: list[Method] = []  # what finds a first point, if one is needed, and the method itself
        self._number = 0  # which of them it is at
        self._state: Any = None  # its state
        self._before = np.zeros(4, dtype=np.int64)  # what those before it spent
        self._remembered: dict[str, np.ndarray] = {}  # what a checkpoint kept, until samples are drawn again

    @property
    def gathers(self) -> bool:
        """Whether samples are still to be drawn."""
        return not self._methods

    # Samples

    def draw(self) -> int:
        """Draw one block; the last one sets up the other method."""
        self._gathering.draw(self.keys)
        self.telling = self._gathering.blocks in RECORD_BLOCKS and not self._gathering.done
        if self._gathering.done:
            self._set_out()
        return DONE

    def recollect(self) -> None:
        """Draw again what a run that is read from disk had drawn, and continue where it was.

        A source that is not a function of its random numbers yields others: the solution begins anew then, at the answer.
        """
        if not self._remembered or self.finished:
            return
        arrays, self._remembered = self._remembered, {}
        blocks, number, _, gathers = arrays["average.numbers"].tolist()
        while self._gathering.blocks < blocks and not self._gathering.done:
            self._gathering.draw(self.keys)
        if gathers:
            return
        self._gathering.settle()
        self._set_out()
        if self._digest == arrays["average.digest"].tobytes().decode():
            self._enter(number, arrays["average.first"])
            start = "average.inner."
            inner = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
            self._state = self._current.restored(self._own_problem, self._plan, self._first, inner)
            self._before = arrays["average.before"]

    def _set_out(self) -> None:
        """Choose the method for the problem of the means, and begin."""
        self._finite = finite = self._gathering.problem
        sizes = [getattr(finite, name).n_samples for name in LEVELS]
        self._per_step = max(sum(sizes), LEAST_QUERIES)
        least = SUMMED_PASSES if max(sizes) == 1 else LEAST_WORK / sum(sizes)
        passes = max(float(self._method.passes), least)
        share = NEAR_SHARE if finite.is_near else FIRST_SHARE
        limit = passes * sum(sizes)
        main = (self._method.solver or default_solver()).for_problem(finite, Budget((1.0 - share) * limit))
        first = main.seeks_with
        self._methods = [main] if first is None else [first.for_problem(finite.exact), main]
        self._limits = [limit] if first is None else [share * passes * finite.lower.n_samples, limit]
        self._digest_of_samples = ""
        self._enter(0, self.answer)

    def _enter(self, number: int, x: np.ndarray) -> None:
        self._number, self._first = number, x.copy()
        self._plan = self._current.plan(self._own_problem)
        self._state = self._current.start(self._own_problem, self._plan, x)
        if number == len(self._methods) - 1 and self._finite.is_near:
            self._current.allow(self._state, *level_of(self._finite, x))

    @property
    def _current(self) -> Method:
        return self._methods[self._number]

    @property
    def _own_problem(self) -> Problem:
        """The problem of the method that is at work: without tolerance while a minimiser of g is sought."""
        return self._finite if self._number == len(self._methods) - 1 else self._finite.exact

    # Passes

    def step(self) -> int:
        """Make about one pass over the samples with the other method."""
        method, state = self._current, self._state
        outcome = method.advance(self._own_problem, state, self._plan, self._steps(), self._own_keys)
        if outcome != DONE:
            return outcome
        spent = self._inner_spent[:2].sum()
        over = method.finished(state) or spent >= self._limits[self._number]
        if over:
            method.conclude(state)
        last = self._number == len(self._methods) - 1
        self.answer = method.answer(state).copy()
        if over and not last:
            self._before = self._inner_spent
            self._enter(self._number + 1, self.answer)
        self.finished = self.telling = over and last
        return DONE

    @property
    def _own_keys(self) -> Keys:
        """Keys of the other method, apart from those of what was drawn."""
        return Keys(*(key_of(key.low, key.high, 1 + self._number) for key in self.keys))

    def _steps(self) -> int:
        """Return how many steps of the other method make about one pass; always the same ones, however a run is cut."""
        t = int(self._state.iteration[0])
        cost = self._current.cost(self._plan, np.arange(t, t + MOST_STEPS))
        counts = [np.searchsorted(np.cumsum(cost.upper_queries + cost.lower_queries), self._per_step, side="right")]
        for name, queries in zip(LEVELS, cost[:2], strict=True):
            if name not in self._gathering.collected:
                counts.append(np.searchsorted(np.cumsum(queries), self._most(name), side="right"))
        return max(int(min(counts)), 1)

    def _most(self, name: str) -> float:
        samples = getattr(self._problem, name).n_samples
        return most_queries(int(samples)) if samples > 1 else math.inf

    def make_do(self) -> None:
        """Make an answer of what was drawn where a run ends before there is one."""
        if self._remembered or self.finished:
            return
        if self.gathers:
            if not (self._gathering.collected and self._gathering.settle()):
                return
            self._set_out()
        if any(self._counts):  # whose budget is spent
            return
        self._limits = [limit * min(LAST_PASSES / self._method.passes, 1.0) for limit in self._limits]
        while not self.finished and self._inner_spent[:2].sum() < self._limits[-1] and self.step() == DONE:
            pass

    # What is spent, and said

    @property
    def _inner_spent(self) -> np.ndarray:
        return self._before + (0 if self._state is None else self._current.spent(self._state))

    @property
    def spent(self) -> np.ndarray:
        """Samples drawn and evaluations; passes over what was drawn draw nothing."""
        if self._remembered:
            return self._remembered["average.spent"]
        inner = self._inner_spent
        return np.concatenate([self._gathering.drawn + inner[:2] * self._counts, inner[2:]])

    @property
    def _counts(self) -> list[bool]:
        """Of which levels a pass counts as so many queries: of finite data."""
        return [1 < getattr(self._problem, name).n_samples < math.inf for name in LEVELS]

    @property
    def remark(self) -> str:
        """What was kept, and which method made an answer of it."""
        if self.gathers:
            return ""
        parts = self._gathering.collected.values()
        rows = " and ".join(f"{part.rows:,}" for part in parts)
        kept = math.fsum(part.bytes for part in parts if isinstance(part, Keeping)) / 1e6
        how = f"kept in {max(kept, 0.1):,.1f} MB" if kept else "summed up"
        why = ", all that came," if self._gathering.exhausted else ""
        if any(part.rows >= part.capacity for part in parts):
            why = f", all that fit into {self._method.memory_limit / 1e6:,.1f} MB,"
        return f"; for the mean of {rows} samples{why} {how}, by {self._methods[-1].name!r}"

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps: not the samples, which are drawn again, but a hash that tells them."""
        if self._remembered:
            return self._remembered
        kept = {
            "average.numbers": np.array([self._gathering.blocks, self._number, self.finished, self.gathers], dtype=np.int64),
            "average.spent": self.spent,
            "average.before": self._before,
            "average.answer": self.answer,
            "average.first": self._first,
            "average.digest": np.frombuffer(("" if self.gathers else self._digest).encode(), dtype=np.uint8).copy(),
        }
        inner = {} if self.gathers else self._current.stored(self._state)
        return {**kept, **{f"average.inner.{name}": array for name, array in inner.items()}}

    @property
    def _digest(self) -> str:
        """A hash of all samples, found once."""
        if not self._digest_of_samples:
            self._digest_of_samples = " ".join(part.digest for part in self._gathering.collected.values())
        return self._digest_of_samples

    def remember(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned; the samples themselves are drawn again before the next step."""
        self._remembered = arrays
        self.answer, self.finished = arrays["average.answer"], bool(arrays["average.numbers"][2])


def default_solver() -> Method:
    """Return the method that chooses a method: which may choose this one, for streams."""
    from tiebreak.methods.auto import Auto

    return Auto()


def level_of(problem: Problem, x: np.ndarray) -> tuple[float, float]:
    """Return the level of g of a near tie, and how far above g(x) that is, from what g at x says of g*.

    Nothing is proven by it: fresh samples tell whether the answer keeps the level.
    """
    value, gradient = problem.lower.value_and_gradient(x)
    corner = np.empty_like(x)
    lmo(problem.domain, gradient, corner)
    floor = max(value - float(gradient @ (x - corner)), problem.lower.floor)
    epsilon = problem.tolerance
    if problem.keep < 1.0:
        epsilon = (1.0 - problem.keep) * (problem.lower.value(problem.reference) - floor)
    rise = max(floor + epsilon - value, NEAR_ROOM * epsilon)
    return value + rise, rise


def most_queries(samples: int) -> int:
    """Return how many samples of a level of finite data an iteration may look at."""
    return MOST_PASSES * samples
