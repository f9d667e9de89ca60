"""How the weight w of g changes from stage to stage, in methods that minimise f + w g.

For exact ties w grows by a factor. For near ties the w at which the minimiser of f + w g has their level is sought: w grows
eightfold while g is beyond the level at the end of a stage, falls while g keeps it, and lies between the nearest two of
these then. A stage that was too short may have put its w on the wrong side: after three stages on one side, the end on the
other one is looked at again, and is given up if it was wrong. The answer is the point between both ends at which the chord
of g has the level: g, being convex, is no larger there. x_0, whose g keeps the level, is the first of the ends.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import copy, move
from tiebreak.methods.states import Count, Number, Point

LARGEST = 1e10  # w in units of the first one, at which f is lost in rounding
LEAST = 1e-8  # the same at which g does not count any more
JUMP = 8.0  # factor of w while one end is missing
SIDE = 0.05  # distance of a new w from the ends, as a share of the distance of both, in logarithms
SUSPICIOUS = 3  # stages in a row on one side of the level, after which the end on the other side is looked at again
GIVEN_UP = -1.0  # w of an end whose point is still beyond the level, but was not the minimiser for its w

Pair = Annotated[np.ndarray, lambda x: np.zeros(2)]  # two numbers


class Ends(NamedTuple):
    """The nearest points on either side of the level: the last one that keeps it and the last beyond it."""

    inside: Point  # x_0 at first
    outside: Point
    weights: Pair  # w of both, ∞ and 0 if there are none yet; both 0 where no level is sought
    values: Pair  # g of both
    row: Count  # how many stages in a row ended within the level, or how many beyond it as a negative number
    anchor: Number  # g(x_0), one number
    rise: Number  # how far the level is above that, one number
    best: Point  # the answer


class Growing(NamedTuple):
    """w grows from stage to stage."""

    factor: float


class Sought(NamedTuple):
    """w changes from stage to stage, so that g comes to the level of a near tie."""


@generic(light=True)
def begin(change, ends, value):
    """Begin at x_0, where g has this value."""


@generic(light=True)
def changed(change, ends, x, value, weight, first):
    """Return the weight of the next stage; the last one, of another weight, has led to x, where g has this value.

    ``first`` is the weight of the first stage.
    """


@begin.register(Growing)
def begin_to_grow(change, ends, value):
    pass


@changed.register(Growing)
def grown(change, ends, x, value, weight, first):
    return weight * change.factor if weight < LARGEST * first else weight


@begin.register(Sought)
def begin_to_seek(change, ends, value):
    begin_search(ends, value)


@changed.register(Sought)
def found(change, ends, x, value, weight, first):
    note_end(ends, x, value, weight)
    return next_weight(ends, weight, first)


@kernel
def begin_search(ends, value):
    """Begin at x_0, where g has this value."""
    ends.weights[0] = np.inf
    ends.anchor[0] = ends.values[0] = value


@kernel
def note_end(ends, x, value, weight):
    """Let x, the minimiser for a weight, and its g become an end, and make the answer of both."""
    level = ends.anchor[0] + ends.rise[0]
    if value <= level:
        ends.weights[0], ends.values[0] = weight, value
        ends.weights[1] = ends.weights[1] if ends.weights[1] < weight else GIVEN_UP
        ends.row[0] = max(ends.row[0], 0) + 1
        copy(x, ends.inside)
    else:
        ends.weights[1], ends.values[1] = weight, value
        ends.weights[0] = ends.weights[0] if ends.weights[0] > weight else np.inf
        ends.row[0] = min(ends.row[0], 0) - 1
        copy(x, ends.outside)
    low, high = ends.values[0], ends.values[1]
    copy(ends.inside, ends.best)
    if ends.weights[1] != 0.0 and low < level < high:
        move(ends.best, ends.outside, (level - low) / (high - low))


@kernel
def next_weight(ends, weight, first):
    """Return the weight of the next stage; ``first`` is that of the first one."""
    high, low, level = ends.weights[0], ends.weights[1], ends.anchor[0] + ends.rise[0]
    if low <= 0.0:
        return max(weight / JUMP, LEAST * first)
    if high == np.inf:
        return min(weight * JUMP, LARGEST * first)
    if abs(ends.row[0]) >= SUSPICIOUS:
        again = low if ends.row[0] > 0 else high
        ends.row[0] = 0
        return again
    share = (ends.values[1] - level) / (ends.values[1] - ends.values[0]) if ends.values[1] > ends.values[0] else 0.5
    share = min(max(share, SIDE), 1.0 - SIDE)
    return low * (high / low) ** share


@kernel
def jumps(ends):
    """Return whether a level is sought and no point is known on one of its sides: the weight is not known even roughly."""
    return ends.weights[0] > 0.0 and not 0.0 < ends.weights[1] < ends.weights[0] < np.inf
