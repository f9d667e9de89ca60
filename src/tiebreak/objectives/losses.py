"""Scalar losses ℓ(prediction, target) of linear models; they know nothing of matrices.

A scalar loss is a value with two generic functions, :func:`loss` and :func:`curvature`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tiebreak.engine import generic


@generic
def loss(scalar, prediction, target):
    """Return ℓ(prediction, target) and its derivative with respect to the prediction."""


@generic
def curvature(scalar):
    """Return the largest second derivative of ℓ with respect to the prediction."""


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
