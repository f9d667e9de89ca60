"""Sample average: draw the samples of streams once, keep them, and solve the problem of their means.

    x = argmin f_n over the minimisers of g_n,   F_n(x) = (1/n) Σ F(x, ξ_i),   ξ_1 … ξ_n drawn once

Of squares of rows only sums are kept, AᵀA and Aᵀb, whatever their number. Other samples are kept themselves, as many as
there is room for. The finite problem is solved by a method for finite data, in a number of passes that draw nothing. What
is proven of x comes from fresh samples, as for every method on streams: x is as good as its samples are, and their error
falls with 1 / √n.

The ties that are broken are those of g_n. Points that are tied in the expectation alone, and not sample by sample, are not
tied in a mean of samples: noise chooses among them, and f does not. A tolerance wider than the noise leaves f the choice.

Kleywegt, Shapiro and Homem-de-Mello, The sample average approximation method for stochastic discrete optimization, SIAM
Journal on Optimization 2002; for one level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tiebreak.active.gathering import LEVELS, Sums, is_summable, rows_before
from tiebreak.engine.checks import shown
from tiebreak.engine.randomness import Keys
from tiebreak.methods.averages import MOST_PASSES, Average, most_queries
from tiebreak.methods.base import DONE, Budget, Cost, Method
from tiebreak.methods.parameters import declared, other, real, whole
from tiebreak.objectives import Stream
from tiebreak.objectives.adapters.keeping import Keeping, stream_in
from tiebreak.objectives.adapters.row_losses import RowLoss
from tiebreak.objectives.adapters.streams import KEEP_HELP
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square
from tiebreak.objectives.summed import MOST_SIDE
from tiebreak.problem import Problem

GIBIBYTE = 2.0**30
NUMBER = 8  # bytes of a number
MOST_SAMPLES = 1_000_000  # samples of a stream where nothing limits them
STREAMS_SHARE = 0.5  # share of the queries for streams, at least, where passes over another level are queries, too


class State(NamedTuple):
    """The state of the method."""

    x: np.ndarray  # the answer so far
    average: Average  # what was drawn, and the method that solves the problem of its means
    iteration: np.ndarray  # draws of a block, and passes over all of them, one number


class Plan(NamedTuple):
    """What the loop goes by, besides the problem."""

    samples: np.ndarray  # (2,): those to draw of a stream, by level, or those of finite data; 0 if known exactly
    endless: np.ndarray  # (2,) bool: which levels are streams


def advance(problem: Problem, state: State, plan: Plan, iterations: int, keys: Keys) -> int:
    """Draw this many blocks, or make as many passes; fewer where there is something to record, or nothing left to do."""
    average = state.average
    average.keys = keys
    for _ in range(iterations):
        average.recollect()
        if average.finished:
            break
        outcome = average.draw() if average.gathers else average.step()
        if outcome != DONE:
            return outcome
        state.x[:] = average.answer
        state.iteration[0] += 1
        if average.telling:
            break
    return DONE


@declared
class SampleAverage(Method):
    """Keep the samples of streams and solve the problem of their means, with a method for finite data.

    Rows and squares, ``Stream.of_rows``, are summed up. Of any other stream the samples are kept, as many as fit into
    ``memory_limit``: batches must be arrays whose first axis counts samples, tuples or dicts of them, or lists of samples.
    Bounds are of fresh samples. Ties must be ties of the samples, as those of rows are; where noise breaks them, give the
    problem a ``tolerance``.

    Examples
    --------
    >>> import numpy as np, tiebreak
    >>> def draw(rng, size):
    ...     A = rng.standard_normal((size, 2))
    ...     return A, A @ [1.0, -1.0] + 0.1 * rng.standard_normal(size)
    >>> stream = tiebreak.Stream.of_rows(draw, 2, "huber")
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), stream, tiebreak.L2Ball(2.0))
    >>> tiebreak.minimize(problem, "sample-average", max_queries=20_000).x.round(1)
    array([ 1., -1.])
    """

    samples: int | None = whole(
        "How many samples to draw of each stream; as many as the budget allows, a million without one, if not given."
    )
    memory_limit: float = real(
        "Bytes that kept samples may take, of all streams together; by default 1 GiB.", GIBIBYTE, above=0.0
    )
    passes: int = whole("Passes over what was drawn, at most; more if it is little.", 50)
    solver: Method | None = other(
        "Method",
        None,
        "The method for the problem of the means; what ``auto`` chooses if not given.",
        lambda given, name: checked_solver(given, name),
    )

    name = "sample-average"
    citation = "Kleywegt, Shapiro, Homem-de-Mello (2002), for one level"
    setting = "stream"
    needs = "samples that can be kept"
    rates = "those of the method that it takes, up to the error of sampling, n^-1/2"
    loop = staticmethod(advance)  # type: ignore[assignment]
    state = State
    near_ties = True
    streams = True
    finite = False

    def check(self, problem: Problem) -> None:
        super().check(problem)
        levels = {name: getattr(problem, name) for name in LEVELS}
        if not any(level.endless for level in levels.values()):
            raise ValueError(f"the method {self.name!r} is for streams, and all samples are known: take 'auto'")
        if problem.upper.convex is None:
            raise ValueError(
                f"the method {self.name!r} needs to know whether the upper objective is convex: say so where it is made,"
                " convex=True or convex=False"
            )
        for name, level in levels.items():
            if level.endless and (reason := stream_in(level).why_not_kept):
                raise ValueError(
                    f"the method {self.name!r} keeps samples, and those of the {name} objective cannot be kept: {reason};"
                    f" {KEEP_HELP}, or take 'sbcgi'"
                )

    def defaults(self, problem: Problem, budget: Budget) -> Mapping[str, Callable[[], Any]]:
        streams = sum(getattr(problem, name).endless for name in LEVELS)
        queries = budget.queries
        if math.isfinite(queries):  # passes over other data are queries
            others = sum(level.n_samples for level in (problem.upper, problem.lower) if 1 < level.n_samples < math.inf)
            queries = max(queries - MOST_PASSES * self.passes * others, STREAMS_SHARE * queries)
        draws = max(int(min(budget.iterations / 2, MOST_SAMPLES)), 1)
        found = min(queries / streams, MOST_SAMPLES, float(rows_before(np.array(draws))))
        return {"samples": lambda: max(int(found), 1)}

    def plan(self, problem: Problem) -> Plan:
        levels = [getattr(problem, name) for name in LEVELS]
        finite = [0 if level.endless or level.n_samples == 1 else level.n_samples for level in levels]
        samples = [(self.samples or 1) if level.endless else n for level, n in zip(levels, finite, strict=True)]
        return Plan(np.array(samples, dtype=np.int64), np.array([level.endless for level in levels]))

    def start(self, problem: Problem, plan: Plan, x: np.ndarray) -> State:
        return State(x.copy(), Average(problem, self, x), np.zeros(1, dtype=np.int64))

    def finished(self, state: State) -> bool:
        return state.average.finished

    def has_answer(self, state: State) -> bool:
        return not state.average.gathers or state.average.telling

    def wants_record(self, state: State) -> bool:
        return state.average.telling

    def conclude(self, state: State) -> None:
        """Solve the problem of what was drawn, if the run ends before, in few passes."""
        state.average.make_do()
        state.x[:] = state.average.answer

    def remark(self, problem: Problem, state: State) -> str:
        return state.average.remark

    def cost(self, plan: Plan, t: np.ndarray) -> Cost:
        draws = rows_before(t) < plan.samples[plan.endless].max(initial=0)
        queries, evaluations = [], []
        for samples, endless in zip(plan.samples.tolist(), plan.endless.tolist(), strict=True):
            drawn = np.maximum(np.minimum(rows_before(t + 1), samples) - rows_before(t), 0)
            looked_at = np.where(draws, 0, most_queries(samples))
            queries.append(drawn if endless else looked_at if samples else np.zeros_like(t))
            evaluations.append(np.where(draws, drawn if endless else 0, max(samples, 1)))
        return Cost(*queries, *evaluations)

    def spent(self, state: State) -> np.ndarray:
        return state.average.spent

    def stored(self, state: State) -> dict[str, np.ndarray]:
        return {"x": state.x, "iteration": state.iteration, **state.average.stored()}

    def restored(self, problem: Problem, plan: Plan, x: np.ndarray, arrays: Mapping[str, np.ndarray]) -> State:
        average = Average(problem, self, x)
        average.remember({**arrays})
        return State(arrays["x"], average, arrays["iteration"])

    def collector(self, problem: Problem) -> Callable[[Stream], Any]:
        """Return what makes of a stream that which takes its batches."""
        streams = sum(getattr(problem, name).endless for name in LEVELS)

        def collect(stream: Stream) -> Any:
            samples = self.samples or 1
            if is_summable(stream) and stream.dimension <= min(samples, MOST_SIDE):
                return Sums(stream)
            return Keeping(stream, samples, self.memory_limit / streams)

        return collect


def checked_solver(value: Any, name: str) -> Method:
    """Return a method that looks at both levels, or raise."""
    if not isinstance(value, Method) or value.levels != LEVELS or isinstance(value, SampleAverage):
        raise ValueError(f"`{name}` must be a configured method for finite data, such as PAVR(), got {shown(value)}")
    return value


def keeps(problem: Problem, queries: float, memory: float = GIBIBYTE) -> bool:
    """Return whether the mean of samples has the ties of the expectation, and the samples can be kept.

    A tenth of what a budget allows is enough. A sample of a stream other than rows is taken to be about as large as a row.
    """
    streams = [stream_in(level) for level in (problem.upper, problem.lower) if level.endless]
    if problem.upper.convex is None or not problem.lower.convex or not keeps_ties(problem):
        return False
    room, wanted = memory / len(streams), 0.1 * min(queries, MOST_SAMPLES) / len(streams)
    for stream in streams:
        if is_summable(stream) and stream.dimension <= MOST_SIDE:
            continue
        if NUMBER * (stream.dimension + 1) * wanted > room or stream.why_not_kept:
            return False
    return True


def keeps_ties(problem: Problem) -> bool:
    """Return whether points that are tied in the expectation of g are tied in means over samples, as far as is known.

    Noise breaks ties in general. A loss of rows that is strictly convex in the prediction is flat, in the mean, only where
    it is flat for every row. Where g is strongly convex there are no ties, and a tolerance is wider than noise.
    """
    lower = problem.lower
    if not lower.endless or problem.is_near or lower.strong_convexity > 0.0:
        return True
    oracle = stream_in(lower).value_and_grad
    return isinstance(oracle, RowLoss) and isinstance(oracle.scalar, (Square, LogLoss, HuberLoss))
