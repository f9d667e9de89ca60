"""The regression that loops are timed on, the bare work of their iterations, and contenders made of both."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Size, seconds

from tiebreak import L1Ball, LeastSquares, Method, Problem, SpiderFW, minimize, power
from tiebreak.engine import Kernel, kernel
from tiebreak.engine.randomness import Moment, keys_of
from tiebreak.objectives.base import accumulate, draw
from tiebreak.schedules import evaluated

SAMPLES, DIMENSION = 356, 730  # samples and variables of a level of the paper's regression
NO_CUT = 1e9  # slack that leaves the cut inactive
KEYS = keys_of([0])


def level(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets of a random regression on ten of the features, other ones for another seed."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    return A, 0.5 * A[:, rng.choice(d, 10, replace=False)].sum(axis=1) + 0.1 * rng.standard_normal(n)


def shape_of(size: Size) -> tuple[int, int]:
    """Return how many samples and variables a level has."""
    return size.pick((SAMPLES, DIMENSION), (SAMPLES, DIMENSION), (12, 20))


def regression(n: int = SAMPLES, d: int = DIMENSION) -> Problem:
    """Return a problem with random data at both levels."""
    return Problem(LeastSquares(*level(n, d, 0)), LeastSquares(*level(n, d, 1)), L1Ball(5.0))


def first_point(problem: Problem, queries: int = 1_000_000) -> np.ndarray:
    """Return a point that nearly minimises g, from which f can only be lowered along an active cut."""
    method = SpiderFW(level="lower", step=power(2.0, 1.0, shift=2.0))
    return minimize(problem, method, max_queries=queries, progress=False).x


# The bare work of iterations: they draw the samples of a method, evaluate their gradients, and do nothing else


@kernel
def bare_storm(problem, state, plan, iterations, keys):
    """Do what SBCGI and IR-SCG need."""
    f, g = problem[:2]
    for t in range(iterations):
        upper = draw(f, Moment(keys.upper, t, 0, 0), state.upper.batch)
        lower = draw(g, Moment(keys.lower, t, 0, 0), state.lower.batch)
        accumulate(f, upper, state.x, 1.0, state.previous, -0.5, state.upper.direction)
        accumulate(g, lower, state.x, 1.0, state.previous, -0.5, state.lower.direction)


@kernel
def bare_spider(problem, state, plan, iterations, keys):
    """Do what SBCGF and IR-FSCG need."""
    for t in range(iterations):
        spider_level(problem.upper, plan.upper, state.upper, state, Moment(keys.upper, t, 0, 0))
        spider_level(problem.lower, plan.lower, state.lower, state, Moment(keys.lower, t, 0, 0))


@kernel
def bare_exact(problem, state, plan, iterations, keys):
    """Do what CG-BiO needs."""
    f, g = problem[:2]
    for _ in range(iterations):
        accumulate(f, plan.upper.whole.samples, state.x, 1.0, state.x, 0.0, state.upper.direction)
        accumulate(g, plan.lower.whole.samples, state.x, 1.0, state.x, 0.0, state.lower.direction)


@kernel
def bare_gradients(problem, state, plan, iterations, keys):
    """Do what DBGD-sto needs: one batch at each level, at one point."""
    f, g = problem[:2]
    for t in range(iterations):
        upper = draw(f, Moment(keys.upper, t, 0, 0), state.upper.batch)
        lower = draw(g, Moment(keys.lower, t, 0, 0), state.lower.batch)
        accumulate(f, upper, state.x, 1.0, state.x, 0.0, state.upper.direction)
        accumulate(g, lower, state.x, 1.0, state.x, 0.0, state.lower.direction)


@kernel
def bare_extra_gradients(problem, state, plan, iterations, keys):
    """Do so twice, as an extra-gradient method does."""
    bare_gradients(problem, state, plan, 2 * iterations, keys)


@kernel
def bare_storm_upper(problem, state, plan, iterations, keys):
    """Do what STORM-FW needs."""
    for t in range(iterations):
        batch = draw(problem.upper, Moment(keys.upper, t, 0, 0), state.memory.batch)
        accumulate(problem.upper, batch, state.x, 1.0, state.previous, -0.5, state.memory.direction)


@kernel
def bare_spider_upper(problem, state, plan, iterations, keys):
    """Do what SPIDER-FW needs."""
    for t in range(iterations):
        spider_level(problem.upper, plan.estimate, state.memory, state, Moment(keys.upper, t, 0, 0))


@kernel
def spider_level(objective, plan, memory, state, moment):
    if moment.iteration % plan.period == 0:
        accumulate(objective, plan.whole.samples, state.x, 1.0, state.x, 0.0, memory.direction)
    else:
        batch = draw(objective, moment, memory.batch)
        accumulate(objective, batch, state.x, 1.0, state.previous, -1.0, memory.direction)


# Contenders: each call measures the seconds of an iteration


def time_of_bare(
    bare: Kernel,
    problem: Problem,
    method: Method,
    x: np.ndarray,
    iterations: int,
    clock: Callable[[], float] = time.thread_time,
) -> Callable[[], float]:
    """Return a contender: the bare work of an iteration of a method, compiled, on the method's own vectors."""
    return time_of_loop(problem, method, x, iterations, clock, loop=bare.compiled)


def time_of_loop(
    problem: Problem,
    method: Method,
    x: np.ndarray,
    iterations: int,
    clock: Callable[[], float] = time.thread_time,
    loop: Callable[..., Any] | None = None,
) -> Callable[[], float]:
    """Return a contender: an iteration of a method's loop, or of another one in its place, from a fresh state."""
    plan = method.plan(problem)
    values = evaluated(plan, np.arange(iterations))

    def measure() -> float:
        state: Any = method.start(problem, plan, x)
        return seconds(loop or method.loop, problem, state, values, iterations, KEYS, clock=clock) / iterations

    return measure


def time_in_driver(problem: Problem, method: Method, x: np.ndarray, iterations: int) -> Callable[[], float]:
    """Return a contender: an iteration as `minimize` reports it."""

    def measure() -> float:
        result = minimize(problem, method, x0=x, max_iterations=iterations, progress=False)
        return result.seconds / result.iterations

    return measure
