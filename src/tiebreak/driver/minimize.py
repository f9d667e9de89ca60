"""The one function that runs methods: what it takes, and what it checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiebreak.driver import checkpoint as checkpoints
from tiebreak.driver.limits import COUNTED, Clock, Limits, Task, limits_of, start_of
from tiebreak.driver.phases import Phases, passes_in_time
from tiebreak.driver.progress import Progress, is_wanted
from tiebreak.driver.records import Snapshot
from tiebreak.driver.result import Result
from tiebreak.driver.run import Run
from tiebreak.driver.storing import Checkpoint
from tiebreak.engine import checks
from tiebreak.methods import Method, as_method
from tiebreak.objectives.constants import charging
from tiebreak.objectives.traffic import traffic_of
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs import NOTHING, check_gradients, proven, prover_of

CONSTANTS_SHARE = 0.2  # share of a time limit after which the constants of objectives are found less exactly


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

    For near ties, ``Problem(..., tolerance=ε)`` or ``keep=``, all points with g ≤ g* + ε count as minimisers. Methods for
    exact ties refuse such a problem.

    Parameters
    ----------
    problem : Problem
        What to solve.
    method : str or Method
        A name (see ``tiebreak methods``) or a configured method such as ``SBCGI(batch_size=8)``. By default one is chosen
        for the problem and the budget; the result tells which.
    max_queries : int or None
        Samples that may be drawn at both levels together, with those for the first point. If neither this nor
        ``max_iterations``, ``time_limit`` or ``tol`` is given, a million, or thirty passes over data that are larger than a
        thirtieth of that; else there is no limit that is not given.
    max_iterations : int, optional
        Steps that the method may take after the first point is found.
    time_limit : float, optional
        Seconds from the call to the result, with all evaluations for the history and the bounds; only compilation is not
        counted. Bounds for which there is no time are left out. What is computed in a given time differs from run to run.
    tol : (float, float), optional
        (ε_f, ε_g): stop when the bounds prove f(x) − f* ≤ ε_f and g(x) − g* ≤ ε_g; they are computed with each record. For
        near ties f* is the least f where g ≤ g* + ε, and the second one is g(x) − g* ≤ ε + ε_g.
    x0 : array or Result, optional
        A point of the domain to start from, or a result to continue from, with what was proven on the way to it; of a result
        of the same problem with another ``tolerance``, what still holds is kept, and ``active-set`` continues with all that
        it knew. The methods that cut keep g near g(x0), so it should nearly minimise g. If it is not given, a tenth of the
        budget goes to finding such a point, for near ties up to 0.4 of it. Near ties on finite data begin with this search
        even if x0 is given, unless x0 is proven to be tied.
    seed : int
        Same seed, same result, bit for bit; over a ``Polytope``, if it has ``warm_start=False``.
    callback : callable, optional
        Called with a :class:`Snapshot` at each record; the run stops if it returns something true.
    progress : bool, optional
        Whether to show a progress bar; if not given, only in a terminal.
    checkpoint : path, optional
        File to which the run is saved every few seconds and at its end. If it exists, the run continues from there and
        ends bit for bit where an uninterrupted one does. A run of another problem, with other functions, data or ``x0``, is
        refused, and so is a second run at the same time. On a stream the bits are the same if the samples are a function of
        ``rng``. Any other source is read further from where it is, so that the run continues with other samples. A larger
        ``max_queries`` or ``max_iterations`` extends a run, unless its method plans for the whole budget; the search for its
        first point stays as long as it was. No other file is ever overwritten.
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
    clock = Clock()
    check_problem(problem)
    traffic = traffic_of(*problem[:2])
    limits = limits_of(max_queries, max_iterations, time_limit, tol, problem)
    if callback is not None and not callable(callback):
        raise ValueError(f"`callback` must be a function of one snapshot, got {callback!r}")
    visible = is_wanted(progress)
    path = None if checkpoint is None else checkpoints.place(checkpoint, "checkpoint")
    floors, part, memory, given = NOTHING, 0, None, x0 is not None
    if isinstance(x0, Result):
        floors, part = proven(x0, problem), x0.settings.get("part", 0) + 1
        memory, x0 = x0.memory if floors is not NOTHING else None, x0.x
    _check_provable(problem, limits)
    check = checks.flag(check, "check")
    start, seed = start_of(problem, x0), checks.whole(seed, "seed", least=0)
    prover = prover_of(problem, floors, checks.confidence(confidence), [seed, part], sequential=limits.tol is not None)
    hurried = CONSTANTS_SHARE * limits.seconds
    with checkpoints.held(path) as stored, charging(lambda: clock.counted > hurried) as bill:
        # A point that was given may not keep the level of a near tie.
        seek = not given or (problem.is_near and not problem.lower.endless)
        task = Task(problem, as_method(method), limits, start, given, seek, seed, part, memory)
        phases = Phases(task, _passes(task, clock, path))
        phases.check()
        run = Run(task, phases, prover, clock, bill.settle)
        run.callback, run.traffic = callback, traffic  # constants of objectives have been asked for already
        if path is not None:
            run.checkpoint = Checkpoint(path, run)
            if stored is not None:
                run.checkpoint.resume(*stored)
        if check and not run.records:  # a run that continues was checked when it began
            check_gradients(problem, start)
            prover.check = True
        with Progress(limits.countable, COUNTED, visible) as run.progress:
            return run.complete()


def _check_provable(problem: Problem, limits: Limits) -> None:
    """Raise if tolerances are to be proven where nothing can be."""
    if limits.tol is not None and not problem.lower.convex and problem.lower.floor == -math.inf:
        raise ValueError(
            "`tol` asks for a proof, and nothing bounds g* from below: say convex=True of `lower`, if it is, or give it a"
            " `floor`"
        )


def _passes(task: Task, clock: Clock, path: Path | None) -> float:
    """Return how many passes over the data there is time for, if the method asks for it.

    Runs with a checkpoint are not asked: they must choose the same method each time.
    """
    return passes_in_time(task, clock) if task.method.asks_for_passes and path is None else math.inf
