"""Samples drawn in proportion to how much they bend: the same mean, and estimates of smaller variance.

A loss whose curvature is M_i is drawn with a probability p_i in proportion to M_i and counts 1 / (n p_i) times, so that all
curvatures become their mean. Zhao and Zhang, Stochastic optimization with importance sampling, ICML 2015.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import kernel
from tiebreak.engine.randomness import Moment, fraction, philox
from tiebreak.objectives.arithmetic import Objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.constants import remembered

LEAST_SHARE = 1e-200  # share of the mean curvature below which a sample does not count
EVEN = 2.0  # ratio of the largest curvature to the mean up to which samples are drawn evenly


class _Uneven(NamedTuple):
    objective: Any  # whose samples count 1 / (n p_i) times
    chances: np.ndarray  # of staying with the sample that was drawn; empty if the objective itself draws unevenly
    others: np.ndarray  # the sample that is taken instead
    constant: float  # the smoothness constant of all samples, as they count


class Uneven(Objective, _Uneven):
    """An objective whose samples are not equally likely: for estimates alone, as its plain mean is another one."""

    __slots__ = ()

    @property
    def dimension(self) -> int | None:
        return self.objective.dimension

    @property
    def n_samples(self) -> int:
        return self.objective.n_samples

    @property
    def sample_lipschitz(self) -> float:
        return self.constant


@draw.register(Uneven)
def draw_unevenly(objective, moment, batch):
    if objective.others.size == 0:
        return draw(objective.objective, moment, batch)
    return uneven_indices(objective.chances, objective.others, moment, batch)


@accumulate.register(Uneven)
def accumulate_uneven(objective, batch, x, w, y, v, out):
    return accumulate(objective.objective, batch, x, w, y, v, out)


@kernel
def uneven_indices(chances, others, moment, out):
    """Fill an array with samples drawn from tables, and return it."""
    n = others.size
    for k in range(0, out.size, 2):
        a, b, c, d = philox(moment, k >> 1)
        out[k] = chosen(chances, others, fraction(a, b) * n)
        if k + 1 < out.size:
            out[k + 1] = chosen(chances, others, fraction(c, d) * n)
    return out


@kernel
def uneven_batches(chances, others, moment, size, out):
    """Set an array to the samples of successive iterations."""
    for k in range(0, out.size, size):
        later = Moment(moment.key, moment.iteration + k // size, moment.turn, moment.path)
        uneven_indices(chances, others, later, out[k : k + size])


@kernel
def chosen(chances, others, place):
    """Return the sample at a place in [0, n): its whole part, or by the rest of it the other one that stands there."""
    i = int(place)
    return i if place - i < chances[i] else others[i]


def unevenly(objective: Any, sizes: np.ndarray, factor: float) -> Any:
    """Return an objective with weights, drawn in proportion to the curvatures of its samples, unless they are alike.

    Parameters
    ----------
    objective : value
        Its arrays are the data that the tables to draw from belong to.
    sizes : array, (n,)
        What the curvatures are in proportion to.
    factor : float
        The curvatures divided by the sizes.
    """
    tables = remembered(objective, "tables of uneven draws", lambda: (_tables(sizes), 0), charged=False)
    if tables is None:
        return objective
    drawn, chances, others = objective.drawn_by(tables.shares, tables.chances, tables.others)
    return Uneven(drawn, chances, others, factor * tables.mean)


class _Tables(NamedTuple):
    mean: float  # of the sizes of all samples
    shares: np.ndarray  # sizes, divided by their mean
    chances: np.ndarray
    others: np.ndarray


def _tables(sizes: np.ndarray) -> _Tables | None:
    """Return the tables to draw samples from, or None if all may be equally likely."""
    mean = math.fsum(sizes) / sizes.size
    if not 0.0 < mean < math.inf or sizes.max() <= EVEN * mean:
        return None
    shares = sizes / mean
    return _Tables(mean, shares, *aliases(shares))


def shared(weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the weights of samples that are drawn in proportion to their shares."""
    return np.divide(weights, shares, out=np.zeros(shares.size), where=shares > LEAST_SHARE)


def aliases(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return tables from which samples are drawn at once, in proportion to their shares, which are ≥ 0 and of mean 1.

    Walker, An efficient method for generating discrete random variables with general distributions, ACM Transactions on
    Mathematical Software 1977.
    """
    chances, others = shares.astype(np.float64), np.arange(shares.size)
    pair(chances, others, np.empty(shares.size, dtype=np.int64))
    return chances, others


@kernel
def pair(chances, others, waiting):
    """Fill up each place whose share is below 1 with a sample that has more than that."""
    n = chances.size
    small, large = 0, n  # samples with too little wait at the beginning, those with too much at the end
    for i in range(n):
        if chances[i] < 1.0:
            waiting[small] = i
            small += 1
        else:
            large -= 1
            waiting[large] = i
    while small > 0 and large < n:
        small -= 1
        low, high = waiting[small], waiting[large]
        others[low] = high
        chances[high] -= 1.0 - chances[low]
        if chances[high] < 1.0:
            large += 1
            waiting[small] = high
            small += 1
    for k in range(small):  # left by rounding
        chances[waiting[k]] = 1.0
    for k in range(large, n):
        chances[waiting[k]] = 1.0
