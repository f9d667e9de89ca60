"""Scalar losses ℓ(prediction, target) of linear models; they know nothing of matrices.

A scalar loss is a value with two generic functions, :func:`loss` and :func:`curvature`; a third one, :func:`bend`, lets
methods that use second derivatives take it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tiebreak.engine import generic

LINE_SHARE = 1e-7  # curvature of a line, as a share of that of the parabola of the origin that touches it


@generic
def loss(scalar, prediction, target):
    """Return ℓ(prediction, target) and its derivative with respect to the prediction."""


@generic
def curvature(scalar):
    """Return the largest second derivative of ℓ with respect to the prediction."""


@generic
def bend(scalar, prediction, target):
    """Return the second derivative of ℓ with respect to the prediction; where ℓ has none, a number that replaces it."""


class ConvexLoss:
    """The common part of scalar losses that are convex in the prediction and never negative."""

    __slots__ = ()
    convex = True
    floor = 0.0


class _Square(NamedTuple):
    pass


class Square(ConvexLoss, _Square):
    """ℓ(p, t) = ½ (p − t)²."""

    __slots__ = ()


@loss.register(Square)
def loss_square(scalar, prediction, target):
    residual = prediction - target
    return 0.5 * residual * residual, residual


@curvature.register(Square)
def curvature_square(scalar):
    return 1.0


@bend.register(Square)
def bend_square(scalar, prediction, target):
    return 1.0


class _LogLoss(NamedTuple):
    pass


class LogLoss(ConvexLoss, _LogLoss):
    """ℓ(p, t) = log(1 + exp(−t p)) for t = ±1."""

    __slots__ = ()


@loss.register(LogLoss)
def loss_log(scalar, prediction, target):
    margin = target * prediction
    decay = math.exp(-abs(margin))
    value = math.log1p(decay) + max(-margin, 0.0)
    wrong = decay if margin > 0.0 else 1.0  # exp(−margin), divided by exp(−margin) where that is large
    return value, -target * wrong / (1.0 + decay)


@curvature.register(LogLoss)
def curvature_log(scalar):
    return 0.25


@bend.register(LogLoss)
def bend_log(scalar, prediction, target):
    decay = math.exp(-abs(prediction))
    return decay / ((1.0 + decay) * (1.0 + decay))


class _HuberLoss(NamedTuple):
    delta: float


class HuberLoss(ConvexLoss, _HuberLoss):
    """ℓ(p, t) = ½ r² for |r| ≤ δ and δ (|r| − ½ δ) beyond, r = p − t."""

    __slots__ = ()


@loss.register(HuberLoss)
def loss_huber(scalar, prediction, target):
    residual = prediction - target
    clipped = min(max(residual, -scalar.delta), scalar.delta)
    return clipped * (residual - 0.5 * clipped), clipped


@curvature.register(HuberLoss)
def curvature_huber(scalar):
    return 1.0


@bend.register(HuberLoss)
def bend_huber(scalar, prediction, target):
    residual = abs(prediction - target)
    # Beyond δ the loss is a line. A little of the curvature of the parabola that touches it keeps steps finite.
    return 1.0 if residual <= scalar.delta else LINE_SHARE * scalar.delta / residual
