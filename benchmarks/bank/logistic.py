"""Logistic losses at the lower level, over ℓ1 balls."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from bank.cases import Case, Reference, planted, problem
from bank.files import found
from bank.planting import Spot, fitted, inside_l1, labelled, nearest, on_l1, paired_sparse
from tiebreak import L1Ball, L2Ball, Logistic, Problem, SquaredNorm, data

A1A = Reference(0.327942572541972980732, 4.941753473894483, 1e-16, 1e-14, "Newton's method in 40 digits")
RADIUS = 10.0


@problem(30, 300, 1500)
def a1a() -> Case:
    """The first thousand rows of a1a.t and a column of ones; the answer of least norm."""
    return Case(Problem(SquaredNorm(), Logistic(*data.a1a(found("a1a.npz"))), L1Ball(RADIUS)), A1A)


@problem(100)
def breast_cancer() -> Case:
    """All products of up to three of ten features."""
    X, y = load_breast_cancer(return_X_y=True)
    cubic = PolynomialFeatures(3, include_bias=False).fit_transform(StandardScaler().fit_transform(X[:, :10]))
    A = np.column_stack([StandardScaler().fit_transform(cubic), np.ones(y.size)])
    return Case(Problem(SquaredNorm(), Logistic(A, 2.0 * y - 1.0), L1Ball(RADIUS)))


@problem(300)
def separable() -> Case:
    """Labels that a model tells without an error, so that only the ball keeps it from growing."""
    rng = np.random.default_rng(31)
    A = rng.standard_normal((300, 20)) @ rng.standard_normal((20, 60)) / 5.0
    return Case(Problem(SquaredNorm(), Logistic(A, np.sign(A @ rng.standard_normal(60))), L1Ball(RADIUS)))


@problem(10, 30, 100)
def tall_logistic() -> Case:
    rng = np.random.default_rng(32)
    spot = inside_l1(rng, 100, RADIUS)
    lower, A = labelled(rng, 20_000, 100, 60, spot.x)
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)


@problem(10, 60)
def tall_logistic_on_a_ball() -> Case:
    rng = np.random.default_rng(36)
    x = rng.standard_normal(100)
    x *= 3.0 / np.linalg.norm(x)
    spot = Spot(L2Ball(3.0), x, x / 3.0)
    lower, A = labelled(rng, 20_000, 100, 60, x)
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), x)


@problem(10, 60)
def sparse_logistic() -> Case:
    """Each row with both labels, weighted by their probabilities at the solution."""
    rng = np.random.default_rng(37)
    A, spot = paired_sparse(rng, 20_000, 1000, 5), inside_l1(rng, 1000, 300.0)
    labels = np.repeat([1.0, -1.0], A.shape[0] // 2)
    order = rng.permutation(labels.size)
    lower = Logistic(A[order], labels[order], sample_weight=expit(labels * (A @ spot.x))[order])
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)


@problem(30)
def scaled_logistic() -> Case:
    """Columns of lengths from 0.3 to 3, and squares above."""
    rng = np.random.default_rng(33)
    spot = on_l1(rng, 80, RADIUS, 20)
    lower, A = labelled(rng, 10_000, 80, 40, spot.x, 10.0 ** rng.uniform(-0.5, 0.5, 80))
    return planted(Problem(fitted(rng, 1000, A, spot), lower, spot.domain), spot.x)


@problem(300, 3000)
def small_logistic() -> Case:
    rng = np.random.default_rng(34)
    spot = on_l1(rng, 40, RADIUS, 10)
    lower, A = labelled(rng, 200, 40, 20, spot.x)
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)


@problem(100)
def wide_logistic() -> Case:
    rng = np.random.default_rng(35)
    spot = on_l1(rng, 1000, RADIUS, 30)
    lower, A = labelled(rng, 400, 1000, 100, spot.x)
    return planted(Problem(nearest(rng, A, spot), lower, spot.domain), spot.x)
