"""A search along the line from one mean of atoms to another one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SEARCH_STEPS = 100  # evaluations of a search along a line, at most
LONGEST = 1e6  # step of a search
SHORTER = 1e-3  # factor of the longest step that may do, when no shorter one is known to be too short
SUFFICIENT = 0.1  # slope at the end of a full step, relative to that at its start, that is small enough


def least_along(slope: Callable[[float], float], start: np.ndarray, moves: np.ndarray, noise: float) -> float:
    """Return the step along the moves of some weights at which a convex objective is least, as far as they stay positive.

    Parameters
    ----------
    slope : callable
        The slope of the objective after a step.
    start, moves : arrays
        The weights at the start, and how a step of 1 changes them.
    noise : float
        What rounding does to a slope.
    """
    begin, high, high_slope = slope(0.0), 1.0, slope(1.0)
    if max(abs(begin), abs(high_slope)) <= noise:  # what the objective gains or loses is rounding
        return high
    if not begin < 0.0:
        return 0.0
    low, low_slope = 0.0, begin
    if high_slope < -SUFFICIENT * abs(begin):  # as in the tail of an exponential function
        low, low_slope = high, high_slope
        high = float(np.min(start[moves < 0.0] / -moves[moves < 0.0], initial=LONGEST))
        high_slope = slope(high)
    if high_slope <= SUFFICIENT * abs(begin):
        return high
    for k in range(SEARCH_STEPS):
        share = min(max(low_slope / (low_slope - high_slope), 0.1), 0.9)
        if k % 3 == 2:  # slopes may jump, and where they do may be near 0
            share = 0.5 if low > 0.0 else SHORTER
        step = low + share * (high - low)
        now = slope(step)
        if abs(now) <= SUFFICIENT * abs(begin):
            return step
        if now < 0.0:
            low, low_slope = step, now
        else:
            high, high_slope = step, now
    return low
