"""How a frontier is followed: the tolerances from the smallest to the largest one, each from the last, and both ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.active.scope import fits
from tiebreak.driver import checkpoint as checkpoints
from tiebreak.driver.frontier import Frontier, FrontierEnd, keeping
from tiebreak.driver.frontier_store import FRONTIER, Store
from tiebreak.driver.limits import checked_tol, default_queries, start_of
from tiebreak.driver.minimize import minimize
from tiebreak.driver.progress import Progress, is_wanted
from tiebreak.driver.result import Result, Status
from tiebreak.driver.storing import problem_digest
from tiebreak.engine import checks
from tiebreak.engine.digest import digest
from tiebreak.methods.active_set import ActiveSet
from tiebreak.objectives import Objective
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs import NOTHING, certify

LEAST_SHARE, LARGEST_SHARE = 1e-6, 0.3  # tolerances that are followed by default, as shares of g(centre) − g*
ROUNDING_SHARE = 1e-12  # share of g(centre) below which g(centre) − g* is taken for rounding
ENDS = 2  # g alone and f alone

Measure = Callable[[np.ndarray], float]


def frontier(
    problem: Problem,
    tolerances: Sequence[float] | None = None,
    *,
    points: int = 12,
    tol: tuple[float, float] | None = None,
    max_queries: int | None = None,
    also: Objective | Callable[[np.ndarray], float] | None = None,
    x0: Any = None,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Frontier:
    """Compute the least f for several tolerances of g: what a little of g buys of f.

    Each point is the answer of :func:`minimize` for one tolerance, from the smallest to the largest one, and each continues
    from the last. It comes with what is proven of f*(ε), the least f over the points of Z with g ≤ g* + ε: a floor and a
    ceiling. Where ``active-set`` takes the problem (squares, Huber and logistic losses of linear models over sets with
    atoms) they meet, and a dozen of points costs less than four single ones.

    Parameters
    ----------
    problem : Problem
        Its own tolerance is left aside.
    tolerances : list of float, optional
        Values of ε ≥ 0, in units of g. If not given: 0, the exact tie, and shares of g(centre) − g* on a logarithmic grid
        from 1e-6 to 0.3, g(centre) the value of g at the middle of the domain.
    points : int
        How many of these shares, at least 2; for ``tolerances`` that are given it has no meaning.
    tol : (float, float), optional
        A point is done as soon as f(x) − f*(ε) and g(x) − g* − ε are proven to be within these.
    max_queries : int, optional
        Samples that may be drawn at both levels for all points and both ends together. If not given: no limit where
        ``active-set`` takes the problem, which ends by itself, and those of :func:`minimize` for each of them elsewhere.
    also : Objective or function of x, optional
        What to evaluate beside f and g, such as a test loss.
    x0 : array or Result, optional
        Where to begin.
    seed : int
        Same seed, same points, bit for bit.
    progress : bool, optional
        Whether to show a progress bar; if not given, only in a terminal. Ctrl-C keeps the points that are done.
    checkpoint : path, optional
        File to which each point is saved when it is done. If it exists, the frontier continues from there, and ends bit for
        bit where an uninterrupted one does. The run under way is saved beside it, every few seconds, in a file of its own
        that is removed at its end. ``also`` is evaluated anew.

    Returns
    -------
    Frontier

    Raises
    ------
    ValueError
        If an argument is not valid, or no method takes the problem; CheckpointError, a kind of it, if ``checkpoint`` is a
        file that is none, of another frontier, or in use.

    Examples
    --------
    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 3.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> front = tiebreak.frontier(problem, [0.005, 0.02, 0.08])
    >>> [round(point.upper, 6) for point in front.points]  # (1 − √2ε)² / 20
    [0.0405, 0.032, 0.018]
    >>> front.at(0.05).tolerance
    0.02
    """
    check_problem(problem)
    problem = problem.exact
    chosen = None if tolerances is None else _checked_tolerances(tolerances)
    count = checks.whole(points, "points", least=2)
    measure = None if also is None else _measure(also, problem.center)
    total = count + 1 if chosen is None else len(chosen)
    budget = _Budget(problem, total + ENDS, tol, max_queries, checks.whole(seed, "seed", least=0))
    visible = is_wanted(progress)
    path = None if checkpoint is None else checkpoints.place(checkpoint, "checkpoint")
    with checkpoints.held(path, FRONTIER) as stored, Progress((total + ENDS,), ("runs",), visible) as bar:
        identity = {} if path is None else _identity(problem, chosen or count, budget, x0)
        return _Walk(problem, budget, measure, Store(path, identity, stored), bar).go(chosen, count, x0)


def _identity(problem: Problem, tolerances: list[float] | int, budget: _Budget, x0: Any) -> dict[str, Any]:
    """Return what makes a frontier the one it is, as plain data."""
    memory = x0.memory if isinstance(x0, Result) else None
    remembered = () if memory is None else (memory.method, *sorted(memory.arrays.items()))
    start = start_of(problem, x0.x if isinstance(x0, Result) else x0)
    return {
        "x0": digest((start, x0 is None, *remembered)),
        "problem": problem_digest(problem, start),
        "tolerances": tolerances,
        **budget.identity,
    }


class _Budget:
    """What each of the runs may spend."""

    def __init__(self, problem: Problem, runs: int, tol: Any, max_queries: Any, seed: int) -> None:
        self.left = None if max_queries is None else checks.whole(max_queries, "max_queries")
        self.unlimited = self.left is None
        self._runs, self._ends_by_itself = runs, fits(problem, math.inf)
        self._default = default_queries(problem)
        self._tol = None if tol is None else checked_tol(tol)
        self._seed = seed
        self.identity = {"tol": self._tol and list(self._tol), "max_queries": self.left, "seed": seed}

    def next(self) -> dict[str, Any]:
        """Return the arguments of the next run: what is left is shared among all that are still to come."""
        limits: dict[str, Any] = {"tol": self._tol, "seed": self._seed, "progress": False}
        if self.left is not None:
            limits["max_queries"] = max(self.left // max(self._runs, 1), 1)
        elif self._ends_by_itself:
            limits["max_iterations"] = 10**12
        else:
            limits["max_queries"] = self._default
        return limits

    def spend(self, result: Result) -> None:
        """Count what a run has drawn."""
        self._runs -= 1
        if self.left is not None:
            self.left = max(self.left - result.queries.total, 0)


class _Walk:
    """A frontier under way."""

    def __init__(self, problem: Problem, budget: _Budget, measure: Measure | None, store: Store, bar: Progress) -> None:
        self._problem, self._budget, self._measure, self._store, self._bar = problem, budget, measure, store, bar
        self._exact = not (problem.upper.endless or problem.lower.endless)
        self._fits = fits(problem, math.inf)
        self._results: list[Result] = []
        self._others: list[float] = []
        self._lower_alone: FrontierEnd | None = None
        self._upper_alone: FrontierEnd | None = None
        self._done = 0  # runs
        self._last: Any = None  # what the next run begins with

    def go(self, tolerances: list[float] | None, count: int, x0: Any) -> Frontier:
        """Find the answers for all tolerances, and minimisers of each level alone; stop at Ctrl-C with what is done."""
        self._last = x0
        if not self._fits:
            self._last = self._minimise_lower().certificate.x
        self._add(0.0 if tolerances is None else tolerances[0])
        status, total = "ended: all tolerances are done", count + 1 if tolerances is None else len(tolerances)
        try:
            if self._lower_alone is None:
                self._minimise_lower()
            for epsilon in (_grid(self._gain, count) if tolerances is None else tolerances)[1:]:
                self._add(epsilon)
            self._minimise_upper()
            self._bar.show((math.inf,))
        except KeyboardInterrupt:
            done = len(self._results)
            which = ", the smallest ones" if done < total else "; f alone is not"
            status = f"interrupted: Ctrl-C was pressed; {done} of {total} tolerances are done{which}"
        self._exchange()
        others = () if self._measure is None else tuple(self._others)
        ends = self._lower_alone, self._upper_alone
        return Frontier(self._problem, tuple(self._results), others, *ends, self._gain, status)

    def _add(self, epsilon: float) -> None:
        """Find the answer for a tolerance."""
        x0, lowest = self._last, self._lower_alone
        if lowest is not None and isinstance(x0, Result) and x0.memory is None and not x0.lower_gap_bound <= epsilon:
            x0 = lowest.certificate.x  # a first point is to keep the level, and the last answer may not
        found = self._run(f"ε {epsilon:.3g}", self._problem._replace(tolerance=epsilon), x0)
        self._others.append(math.nan if self._measure is None else self._measure(found.x))
        self._results.append(replace(found, memory=None))  # it may be large, and serves the next run alone
        self._last = found

    def _exchange(self) -> None:
        """Let an answer give way to another point that is known, keeps its tolerance too, and is better."""
        if not self._exact:
            return
        ends = [end.certificate for end in (self._lower_alone, self._upper_alone) if end is not None]
        known = [each for each in (*(result.certificate for result in self._results), *ends) if each.within]
        for k, result in enumerate(self._results):
            fitting = [each for each in known if each.tolerance <= result.tolerance and each.upper < result.upper]
            if result.tolerance > 0.0 and fitting:
                best = min(fitting, key=lambda each: each.upper)
                near, floors = self._problem._replace(tolerance=result.tolerance), result.certificate.floors
                found = certify(near, best.x.copy(), floors=floors, check=False)
                if found.within:
                    self._results[k] = result.moved_to(found)
                    self._others[k] = math.nan if self._measure is None else self._measure(found.x)

    def _minimise_lower(self) -> FrontierEnd:
        """Find a minimiser of g alone, if the first answer was not found by way of one."""
        first, problem = self._last, self._problem
        if isinstance(first, Result) and first.memory is not None:
            self._lower_alone = self._end(first.memory.arrays["minimiser"], first.certificate.floors.lower)
        else:
            x0 = first.x if isinstance(first, Result) else first
            found = self._run("g alone", problem._replace(upper=problem.lower), x0)
            self._lower_alone = self._end(found.x, found.certificate.floors.lower)
        return self._lower_alone

    def _minimise_upper(self) -> None:
        """Find a minimiser of f alone, if f may be convex."""
        problem = self._problem
        if problem.upper.convex is not False:
            # The last answer need not be near a minimiser of f, as other methods want of their first point.
            x0 = self._last.x if self._last.memory is not None else None
            found = self._run("f alone", problem._replace(upper=problem.lower, lower=problem.upper), x0)
            self._upper_alone = self._end(found.x, found.certificate.floors.lower)

    def _end(self, x: np.ndarray, least: float) -> FrontierEnd:
        """Return what is known of a point that minimises one level alone."""
        if self._exact:
            certificate = keeping(self._problem, x, self._results[-1].certificate.floors if self._results else NOTHING)
        else:
            certificate = certify(self._problem, x, check=False)
        return FrontierEnd(certificate, least, math.nan if self._measure is None else self._measure(x))

    @cached_property
    def _gain(self) -> float:
        """g(centre) − g*; zero if it is not more than rounding."""
        center, lower = self._problem.reference, self._problem.lower
        value = certify(self._problem, center, check=False).lower if lower.endless else lower.value(center)
        certificates = [result.certificate for result in self._results]
        if self._lower_alone is not None:
            certificates.append(self._lower_alone.certificate)
        gain = value - min(each.floors.best_lower if self._exact else each.lower for each in certificates)
        return gain if gain > ROUNDING_SHARE * abs(value) else 0.0

    def _run(self, name: str, problem: Problem, x0: Any) -> Result:
        """Return the result of one run, or raise what went wrong."""
        self._bar.show((self._done,), name)
        found = self._store.recalled(problem)
        if found is None:
            level = "both" if problem.upper is self._problem.upper else "lower"
            method = ActiveSet(level=level) if self._fits and self._budget.unlimited else "auto"
            found = minimize(problem, method, x0=x0, checkpoint=self._store.under_way, **self._budget.next())
            if found.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if found.status.failed:
                raise found.error if found.error is not None else ArithmeticError(found.message)
            self._store.add(found)
        self._budget.spend(found)
        self._done += 1
        return found


def _grid(gain: float, count: int) -> list[float]:
    """Return the tolerances that are taken if none are given."""
    if not gain > 0.0:
        raise ValueError(
            "`tolerances` must be given: by default they are shares of g(centre) − g*, and here the middle of the domain"
            " minimises g"
        )
    return [0.0, *(np.geomspace(LEAST_SHARE, LARGEST_SHARE, count) * gain).tolist()]


def _checked_tolerances(tolerances: Any) -> list[float]:
    """Return the tolerances in increasing order, each once, or raise."""
    if np.ndim(tolerances) == 0 and isinstance(tolerances, (int, float)):
        raise ValueError(f"`tolerances` must be a vector of them, got {tolerances!r}; for a number of points say points=…")
    values = checks.vector(tolerances, "tolerances")
    if values.min() < 0.0:
        raise ValueError(f"`tolerances` must be numbers ≥ 0, got {checks.shown(tolerances)}")
    return sorted(set((values + 0.0).tolist()))


def _measure(also: Any, x: np.ndarray) -> Measure:
    """Return the third objective as a function that gives finite numbers, tried at one point, or raise."""
    if not isinstance(also, Objective) and not callable(also):
        raise ValueError(f"`also` must be an objective or a function of x, got {checks.shown(also)}")
    if isinstance(also, Objective):
        if also.endless:
            raise ValueError("`also` must not be a stream: give a function of x that takes the mean over some samples")
        if also.dimension not in (None, x.size):
            raise ValueError(f"`also` must have {x.size} variables, as `problem` has, got {also.dimension}")

    def value(x: np.ndarray) -> float:
        found = also.value(x) if isinstance(also, Objective) else also(x.copy())
        number = checks.as_float(found)
        if not math.isfinite(number):
            raise ValueError(f"`also` must return a finite number, got {checks.shown(found)}")
        return number

    value(x)
    return value
