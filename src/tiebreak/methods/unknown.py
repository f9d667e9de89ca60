"""Smoothness constants that objectives do not know: where accelerated methods begin, found in a few gradients.

Gradients at two points show a lower bound of a constant, ‖∇F(x) − ∇F(y)‖ / ‖x − y‖ ≤ L. The largest of some is an estimate:
methods begin with it, and raise it where their own points show more (``accelerated.py``). It is no fact. It stays with the
method, and the objective, of which proofs are made, does not learn of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import project
from tiebreak.engine import checks
from tiebreak.engine.randomness import Moments
from tiebreak.objectives.adapters.callables import NonFiniteError
from tiebreak.objectives.base import accumulate, draw, everything
from tiebreak.objectives.constants import current_bill
from tiebreak.problem import Problem

ROWS = 1024  # samples, at most, whose mean stands for that of all
SINGLE = 16  # samples, at most, that are looked at one by one
ROUNDS = 3  # gradients near the first point, each where the one before it shows the steepest change
STRIDE = 1e-3  # how near they are, as a share of the diameter of Z
NOISE = 8.0  # changes of a gradient that are no larger than as many of its errors show nothing
# The least constants are those of gradients that change by a share of their length across Z. It is larger above: L_f / L_g
# is the first weight of g, and that of a linear f must not be 0, while a large L_f makes no step on f + w g much shorter.
STRAIGHT = {"upper": 1.0, "lower": 1e-2}


class Smoothness(NamedTuple):
    """What is known or estimated of the smoothness of one objective."""

    whole: float  # L, of the mean over all samples
    sample: float  # the same of single samples
    estimated: bool  # whether L is an estimate


def knows_smoothness(objective: Any) -> bool:
    """Return whether an objective knows a constant that steps can be made of."""
    return math.isfinite(objective.lipschitz) and float(objective.lipschitz) > 0.0


def beginning(problem: Problem) -> tuple[float, float]:
    """Return L_f and L_g to begin with: those that the objectives know, and estimates where they know none."""
    upper, lower = (smoothness_of(problem, level, single=False).whole for level in ("upper", "lower"))
    return upper, lower


def smoothness_of(problem: Problem, level: str, single: bool = True) -> Smoothness:
    """Return the constants of a level's objective, estimated where it knows none.

    An estimate takes gradients of at most some thousand samples, which are counted as drawn, once in a run.

    Parameters
    ----------
    problem : Problem
        Its set has a projection.
    level : str
    single : bool
        Whether the constant of single samples is wanted; it is NaN else.
    """
    objective = getattr(problem, level)
    whole, sample = float(objective.lipschitz), float(objective.sample_lipschitz) if single else math.nan
    known = knows_smoothness(objective)
    if not known:
        whole = _once(problem, level, "whole")
    if single and not math.isfinite(sample):
        sample = whole if objective.n_samples == 1 else max(_once(problem, level, "sample"), whole)
    return Smoothness(whole, sample, not known)


def say_estimated(level: str) -> str:
    """Return what the message of a result says of an estimate."""
    return (
        f"; steps follow an estimate of the smoothness of the {level} objective, which knows no constant: lipschitz=..., if"
        " you know one, makes them safe"
    )


def checked_constants(value: Any, name: str) -> tuple[float, ...]:
    """Return four numbers ≥ 0, the first two of them positive, or raise a ValueError that names what they are for."""
    if not (isinstance(value, (tuple, list)) and len(value) == 4):
        raise ValueError(f"`{name}` must be four numbers, L_f, L_g, M_f and M_g, got {checks.shown(value)}")
    return (*checked_pair(value[:2], name), *(checks.real(each, name, least=0.0) for each in value[2:]))


def checked_pair(value: Any, name: str) -> tuple[float, float]:
    """Return two positive numbers, or raise a ValueError that names what they are for."""
    if not (isinstance(value, (tuple, list)) and len(value) == 2):
        raise ValueError(f"`{name}` must be a pair of positive numbers, of f and of g, got {checks.shown(value)}")
    upper, lower = (checks.real(each, name, above=0.0) for each in value)
    return upper, lower


def _once(problem: Problem, level: str, what: str) -> float:
    """Return an estimate, which is made, and paid for, once in a run."""
    objective, bill = getattr(problem, level), current_bill()
    key = ("smoothness", level, what)
    if bill is not None and key in bill.estimates:
        return bill.estimates[key]
    began, spent, drawn, found = time.perf_counter(), 0, 0, 0.0
    for batch, rounds in _batches(objective, what):
        taken, shown = _shown(problem, level, batch, rounds)
        spent += taken * batch.size
        drawn += batch.size if what == "sample" or objective.n_samples > ROWS else taken * batch.size  # each pass counts
        found = max(found, shown)
    found = found or 1.0  # nothing was seen to change at all
    if bill is not None:
        bill.estimates[key] = found
        bill.add(key, objective, spent, time.perf_counter() - began, drawn)
    return found


def _batches(objective: Any, what: str) -> Iterator[tuple[np.ndarray, int]]:
    """Yield the batches that are looked at, and how closely."""
    n, moments = int(objective.n_samples), Moments(0)
    if what == "sample":
        for _ in range(min(n, SINGLE)):
            yield draw(objective, next(moments), np.zeros(1, dtype=np.int64)), 1
    elif n <= ROWS:
        yield everything(objective), ROUNDS
    else:
        yield draw(objective, next(moments), np.zeros(ROWS, dtype=np.int64)), ROUNDS


def _shown(problem: Problem, level: str, batch: np.ndarray, rounds: int) -> tuple[int, float]:
    """Return how many gradients it took, and the largest constant that they show.

    The first two are far apart, so that it is seen where a function changes that is flat around x. The others are a power
    iteration around x. What is not finite shows nothing: the run itself will tell, if it gets there.
    """
    domain, x, objective = problem.domain, problem.center, getattr(problem, level)
    width = float(domain.diameter)
    far, near = domain.random_point(np.random.default_rng(0), problem.dimension), np.empty_like(x)
    here, there = _gradient(objective, batch, x), _gradient(objective, batch, far)
    longest = max(_length(here), _length(there))
    least = NOISE * float(objective.accuracy) * longest
    if not width > 0.0:
        return 2, 0.0
    found = max(STRAIGHT[level] * longest / width, _ratio(there - here, far - x, least))
    way = here if rounds == 1 else there - here  # the loss of one row changes most along its gradient
    for _ in range(rounds):
        if not _length(way) > least:
            way = far - x
        way = way / np.abs(way).max()
        project(domain, x - (STRIDE * width / _length(way)) * way, near)
        way = _gradient(objective, batch, near) - here
        found = max(found, _ratio(way, near - x, least))
    return 2 + rounds, found


def _gradient(objective: Any, batch: Any, x: np.ndarray) -> np.ndarray:
    """Return the gradient at x, or NaN where it, or the value, is not finite."""
    gradient = np.zeros_like(x)
    try:
        value, _ = accumulate(objective, batch, x, 1.0, x, 0.0, gradient)
    except NonFiniteError:
        value = math.nan
    return gradient if math.isfinite(value) else np.full_like(x, math.nan)


def _length(x: np.ndarray) -> float:
    """Return ‖x‖, and 0 if it is not finite."""
    length = float(np.linalg.norm(x))
    return length if math.isfinite(length) else 0.0


def _ratio(changed: np.ndarray, moved: np.ndarray, least: float) -> float:
    """Return ‖changed‖ / ‖moved‖, and 0 if that is rounding or not finite."""
    change, way = _length(changed), _length(moved)
    return change / way if change > least and way > 0.0 else 0.0
