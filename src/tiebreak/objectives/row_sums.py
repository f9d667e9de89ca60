"""Sums of values and gradients over rows of a linear model: those of a batch, and those between two numbers."""

from __future__ import annotations

from tiebreak.engine import kernel
from tiebreak.objectives.losses import curvature, loss
from tiebreak.objectives.matrices.rows import add_row, add_row_and_size, row_dot, row_dot_and_size, row_dots


@kernel
def accumulate_rows(model, codes, first, share, values, x, w, y, v, out):
    """Add shares of w ∇F_i(x) + v ∇F_i(y) of some rows i to ``out``, and those of their values to ``values``.

    A kernel of its own, so that only sums within a row are reordered, not products of weights and slopes: how compilers
    order these depends on where rows are, and last bits would too.
    """
    scalar, matrix, targets, weights = model
    value_x, value_y = values
    for k in range(codes.size):
        i = max(codes[k] - first, 0)
        target = targets[i]
        weight = share * weights[i]
        if v == 0.0:
            at_x, slope = loss(scalar, row_dot(matrix, i, x), target)
            slope *= w
        else:
            prediction_x, prediction_y = row_dots(matrix, i, x, y)
            at_x, slope_x = loss(scalar, prediction_x, target)
            at_y, slope_y = loss(scalar, prediction_y, target)
            value_y += weight * at_y
            slope = w * slope_x + v * slope_y
        value_x += weight * at_x
        add_row(matrix, i, weight * slope, out)
    return value_x, value_y


@kernel(inline=False, reorder=True)
def add_rows(objective, start, stop, share, x, out):
    """Add the gradients of some rows, each times a share, to ``out``, and return the sum of their values."""
    value = 0.0
    for i in range(start, stop):
        weight = share * objective.weights[i]
        at, slope = loss(objective.scalar, row_dot(objective.matrix, i, x), objective.targets[i])
        value += weight * at
        add_row(objective.matrix, i, weight * slope, out)
    return value


@kernel(inline=False, reorder=True)
def survey_rows(objective, start, stop, x, room, over_rows, relative, out):
    """Add the gradients of some rows to out[0] and bounds of their errors to out[1]; return the same for their values.

    The prediction of a row is in doubt by Σ |a_ij| room_j, and by a bounded bend of the loss its value and slope are.
    """
    bend = curvature(objective.scalar)
    value = 0.0
    value_error = 0.0
    for i in range(start, stop):
        target = objective.targets[i]
        prediction, doubt = row_dot_and_size(objective.matrix, i, x, room)
        doubt += relative * (abs(prediction) + abs(target))  # a loss may well be one of their difference
        at, slope = loss(objective.scalar, prediction, target)
        weight = objective.weights[i]
        value += weight * at
        value_error += weight * (over_rows * abs(at) + doubt * (abs(slope) + bend * doubt))
        add_row_and_size(objective.matrix, i, weight * slope, weight * (over_rows * abs(slope) + bend * doubt), out)
    return value, value_error
