"""Linear models at one point with sums in twice the precision: surveys whose errors are those of one rounding.

Proofs multiply what rounding leaves in doubt by large numbers: near an exact tie by λ, 10⁶ and more. A plain sum over d
variables is in doubt by d u Σ|a_j x_j|. Here each factor is split into a part of 24 bits and the rest, a = a' + a''. The
products a' x' are exact; their sum carries its own error along (Knuth's TwoSum), and the other products are smaller by 2⁻²⁴,
so that their rounding hardly counts. What is left is the rounding of a result.

Knuth, The Art of Computer Programming, volume 2; Ogita, Rump and Oishi, Accurate sum and dot product, SIAM Journal on
Scientific Computing 2005.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.engine import generic, kernel
from tiebreak.engine.rounding import UNDERFLOW, UNIT
from tiebreak.objectives.losses import Square, curvature, loss
from tiebreak.objectives.matrices import CSR, Dense, Rows, WithOnes
from tiebreak.objectives.surveys import FEW_OPERATIONS, MARGIN, Sharp, Survey

if TYPE_CHECKING:
    from tiebreak.objectives.linear import LinearModel

HALF = 2.0**-22  # size of the smaller part of a number, relative to it, with room to spare
SMALLEST, LARGEST = 1e-37, 1e37  # range of numbers that single precision halves
SPLIT_RANGE = 1e-18, 1e30  # range of the largest number of some data that are split


def sharp_linear_model(model: LinearModel, x: np.ndarray, off: np.ndarray | None) -> Sharp:
    """Return the sharp survey of a linear model whose loss has a second derivative."""
    rows = model.rows
    n, d = rows.shape
    low, high = SPLIT_RANGE
    largest = rows.largest
    if not (low <= largest <= high and np.abs(x).max() <= high):
        return Sharp(model.survey(x, off), 0.0)  # its errors hold nearby too
    step, blocks = rows.blocks(3 * d)
    place = Place(
        x,
        np.asarray(x.astype(np.float32), dtype=np.float64),
        np.zeros_like(x) if off is None else off,
        _doubt(rows.longest_row),
        _doubt(step + blocks),
        SMALLEST * (float(np.abs(x).sum()) + rows.longest_row * largest),
        isinstance(model.scalar, Square),
    )

    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is looked at below
        total = rows.fold(_add_sharply, np.zeros((3, d + 3)), _sharply, model.scalar, place, width=3 * d)
        sums = (total[0] + total[1]) / n
        errors = (MARGIN * total[2] + UNIT * SMALLEST * total[2, d + 2]) / n + 4.0 * UNIT * np.abs(sums) + UNDERFLOW
    survey = Survey(float(sums[d]), sums[:d], float(errors[d]), errors[:d])
    if not survey.finite:  # halves overflow where the numbers themselves do not
        return Sharp(model.survey(x, off), 0.0)
    slopes = np.abs(survey.gradient) + survey.gradient_error
    return Sharp(survey, MARGIN * (float(slopes @ place.room) + float(errors[d + 1])))


def _sharply(rows: Rows, low: int, high: int, scalar: Any, place: Place) -> np.ndarray:
    out = np.zeros((3, place.x.size + 3))
    survey_sharply(Model(scalar, *rows), place, low, high, out)
    return out


def _add_sharply(total: np.ndarray, part: np.ndarray) -> np.ndarray:
    fresh = total[0] + part[0]
    back = fresh - total[0]
    total[1] += ((total[0] - (fresh - back)) + (part[0] - back)) + part[1]
    total[0] = fresh
    total[2] += part[2]
    return total


def _doubt(k: int) -> float:
    """Return the error of a sum of k products in twice the precision, relative to the sum of their sizes."""
    return (k + FEW_OPERATIONS) * UNIT * (HALF + 4.0 * (k + FEW_OPERATIONS) * UNIT)


@generic
def row_dot_sharp(matrix, i, x, big, room):
    """Return ⟨row i, x⟩ as a sum of two numbers, Σ |row_ij x_j| and Σ |row_ij| room_j; ``big`` is x in single precision."""


@generic
def add_row_sharp(matrix, i, weight, size, out):
    """Add weight · row i to out[0] + out[1], and size · |row i| to out[2]."""


class Model(NamedTuple):
    """Rows and their loss, as the kernels below see them."""

    scalar: Any
    matrix: Dense | CSR | WithOnes
    targets: np.ndarray
    weights: np.ndarray


class Place(NamedTuple):
    """Where a model is looked at, and what rounding does there."""

    x: np.ndarray
    big: np.ndarray  # x in single precision
    room: np.ndarray  # how far points nearby may be
    row_doubt: float  # error of a prediction, relative to the sum of the sizes of its products
    sum_doubt: float  # the same of a sum over rows
    reach: float  # what numbers that are too small to be split add to this, in roundings
    quadratic: bool  # whether the loss is a square


@kernel(inline=False)
def survey_sharply(model, place, start, stop, out):
    """Add gradients and, behind them, values of some rows to out[0] + out[1], and their errors to out[2].

    The last columns are for how much the slopes of values differ at points nearby, and for the sizes of slopes.
    """
    d = place.x.size
    bound = curvature(model.scalar)
    for i in range(start, stop):
        first, second, size, near = row_dot_sharp(model.matrix, i, place.x, place.big, place.room)
        prediction = first + second
        rest = (first - prediction) + second
        off = place.row_doubt * size + UNIT * place.reach  # of the prediction
        weight, target = model.weights[i], model.targets[i]
        at, slope = loss(model.scalar, prediction, target)
        if place.quadratic:  # the rest of the prediction counts, and is known
            at += rest * (slope + 0.5 * rest)
            slope += rest
        else:
            off += abs(rest)
        doubt = bound * off + FEW_OPERATIONS * UNIT * (abs(slope) + abs(rest))  # of the slope
        value = weight * at
        total = out[0, d] + value
        back = total - out[0, d]
        out[1, d] += (out[0, d] - (total - back)) + (value - back)
        out[0, d] = total
        error = FEW_OPERATIONS * UNIT * (abs(at) + abs(slope * rest)) + off * (abs(slope) + doubt)
        out[2, d] += weight * error + place.sum_doubt * abs(value)
        out[2, d + 1] += weight * bound * near * near
        share = weight * slope
        out[2, d + 2] += abs(share)
        add_row_sharp(model.matrix, i, share, weight * doubt + place.sum_doubt * abs(share) + UNIT * SMALLEST, out)


@kernel
def add_product(total, carried, a, x, big):
    """Return total + carried + a · x as a sum of two numbers; ``big`` is x in single precision."""
    half = np.float64(np.float32(a))
    product = half * big
    fresh = total + product
    back = fresh - total
    carried += (total - (fresh - back)) + (product - back)
    carried += half * (x - big) + (a - half) * x
    return fresh, carried


@row_dot_sharp.register(Dense)
def row_dot_sharp_dense(matrix, i, x, big, room):
    row = matrix.array[i]
    total = 0.0
    carried = 0.0
    size = 0.0
    near = 0.0
    for j in range(row.size):
        a = np.float64(row[j])
        total, carried = add_product(total, carried, a, x[j], big[j])
        size += abs(a * x[j])
        near += abs(a) * room[j]
    return total, carried, size, near


@add_row_sharp.register(Dense)
def add_row_sharp_dense(matrix, i, weight, size, out):
    row = matrix.array[i]
    big = np.float64(np.float32(weight))
    sums, carried, errors = out[0], out[1], out[2]
    for j in range(row.size):
        a = np.float64(row[j])
        sums[j], carried[j] = add_product(sums[j], carried[j], a, weight, big)
        errors[j] += size * abs(a)


@row_dot_sharp.register(CSR)
def row_dot_sharp_csr(matrix, i, x, big, room):
    total = 0.0
    carried = 0.0
    size = 0.0
    near = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        j = matrix.columns[k]
        a = np.float64(matrix.data[k])
        total, carried = add_product(total, carried, a, x[j], big[j])
        size += abs(a * x[j])
        near += abs(a) * room[j]
    return total, carried, size, near


@add_row_sharp.register(CSR)
def add_row_sharp_csr(matrix, i, weight, size, out):
    big = np.float64(np.float32(weight))
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        j = matrix.columns[k]
        a = np.float64(matrix.data[k])
        out[0, j], out[1, j] = add_product(out[0, j], out[1, j], a, weight, big)
        out[2, j] += size * abs(a)


@row_dot_sharp.register(WithOnes)
def row_dot_sharp_with_ones(matrix, i, x, big, room):
    total, carried, size, near = row_dot_sharp(matrix.features, i, x, big, room)
    j = matrix.last
    total, carried = add_product(total, carried, 1.0, x[j], big[j])
    return total, carried, size + abs(x[j]), near + room[j]


@add_row_sharp.register(WithOnes)
def add_row_sharp_with_ones(matrix, i, weight, size, out):
    add_row_sharp(matrix.features, i, weight, size, out)
    j = matrix.last
    out[0, j], out[1, j] = add_product(out[0, j], out[1, j], 1.0, weight, np.float64(np.float32(weight)))
    out[2, j] += size
