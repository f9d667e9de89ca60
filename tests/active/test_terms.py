"""What objectives are to the active set: values, gradients and curvature of their terms are those of the objective."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

from tiebreak import (
    FiniteSum,
    Huber,
    L1Ball,
    LeastSquares,
    Logistic,
    OnPart,
    Problem,
    Product,
    Simplex,
    SquaredNorm,
    minimize,
)
from tiebreak.active import terms as module
from tiebreak.active.levels import Level, Place
from tiebreak.active.terms import terms_of
from tiebreak.domains.atoms import Atom, atom_of
from tiebreak.engine import interpreted
from tiebreak.objectives import ConvexLoss, curvature, linear_model, loss


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


RNG = np.random.default_rng(0)
A, a = RNG.standard_normal((3, 4)), RNG.standard_normal(3)
MANY, many = RNG.standard_normal((60, 4)), RNG.standard_normal(60)
WEIGHT = RNG.random(3) + 0.5
OBJECTIVES = {
    "squares": LeastSquares(A, a),
    "weighted squares": LeastSquares(A, a, sample_weight=WEIGHT),
    "squares of many rows": LeastSquares(MANY, many),
    "sums alone": LeastSquares(MANY, many).summed(),
    "csr": LeastSquares(scipy.sparse.csr_array(np.where(A > 0.0, A, 0.0)), a),
    "float32": LeastSquares(A.astype(np.float32), a),
    "huber": Huber(A, a, delta=0.4, sample_weight=WEIGHT),
    "logistic": Logistic(scipy.sparse.csr_array(A), a > 0.0),
    "norm": SquaredNorm(),
    "norm with a centre": SquaredNorm([1.0, -1.0, 0.0, 2.0]),
    "sum": LeastSquares(A, a) + 0.3 * SquaredNorm(np.ones(4)) + Logistic(A, a > 0.0),
    "multiple of a multiple": 3.0 * (0.5 * Huber(A, a)),
    "sum in a multiple": 1e6 * (LeastSquares(MANY, many) + 1e-3 * Logistic(A, a > 0.0)),
    "nothing": 0.0 * LeastSquares(A, a),
}


def corners(d: int) -> list[Atom]:
    """Atoms of all kinds: with one entry, with none, and with all."""
    return [
        atom_of(2.0 * np.eye(d)[0]),
        atom_of(-np.eye(d)[d - 1]),
        atom_of(np.zeros(d)),
        atom_of(np.linspace(-1.0, 1.0, d)),
    ]


def level_of(objective, d: int) -> Level:
    level = Level(terms_of(objective, d))
    level.add(corners(d)[:2])
    level.add(corners(d)[2:])
    return level


def points(d: int) -> np.ndarray:
    return np.array([atom.point(d) for atom in corners(d)])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_value_gradient_and_curvature_are_those_of_the_objective(name):
    objective, V = OBJECTIVES[name], points(4)
    level, rng = level_of(objective, 4), np.random.default_rng(1)
    for _ in range(3):
        weights = rng.dirichlet(np.ones(4))
        x = weights @ V
        gradient = np.zeros(4)
        value = level.look(x, weights, gradient)
        expected, slope = objective.value_and_gradient(x)
        size = abs(expected) + np.abs(slope).max()
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12 * size)
        step = 1e-5  # whose square is small, and beside which rounding is
        changes = [
            (objective.value_and_gradient(x + step * v)[1] - objective.value_and_gradient(x - step * v)[1]) / (2.0 * step)
            for v in V
        ]
        np.testing.assert_allclose(level.curvature(), V @ np.array(changes).T, atol=1e-4 * max(1.0, size))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_values_and_slopes_along_a_line_are_those_of_the_objective(name):
    objective, V = OBJECTIVES[name], points(4)
    level = level_of(objective, 4)
    first, last = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.1, 0.4, 0.5])
    start, end = (Place(w @ V, level.image(w)) for w in (first, last))
    way = start.towards(end)
    for step in (0.0, 0.3, 1.0):
        value, slope = level.along(start, way, step)
        expected, gradient = objective.value_and_gradient(start.x + step * way.x)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-15)
        assert slope == pytest.approx(float(gradient @ way.x), rel=1e-9, abs=1e-12 * (1.0 + abs(expected)))


def test_sums_of_squares_replace_many_rows_and_take_one_pass():
    rows, sums = level_of(LeastSquares(A, a), 4), level_of(LeastSquares(MANY, many), 4)
    assert rows.terms[0].size == 3
    assert sums.terms[0].size == 4
    assert (rows.first_passes, rows.passes) == (0, 1)
    assert (sums.first_passes, sums.passes) == (1, 0)
    assert sums.quadratic


@pytest.mark.parametrize("passes", [1, 2, 3, 10])
def test_what_is_known_exactly_costs_no_passes_over_the_rows_beside_it(passes):
    rng = np.random.default_rng(0)
    squares = LeastSquares(rng.standard_normal((500, 8)), rng.standard_normal(500))
    counted = [
        minimize(Problem(SquaredNorm(), lower, L1Ball(0.1)), "active-set", max_queries=500 * passes + 100).queries.lower
        for lower in (squares, squares + 0.1 * SquaredNorm())
    ]
    assert max(counted) <= 500 * passes
    assert min(counted) >= 500


def test_sums_are_refined_by_the_rows_where_these_are_at_hand():
    far = LeastSquares(MANY, many + 1e7)
    x = np.linspace(-1.0, 1.0, 4)
    level, alone = level_of(far, 4), level_of(far.summed(), 4)
    weights, expected = np.array([0.0, 0.0, 0.0, 1.0]), far.value_and_gradient(x)[1]
    rough, fine, rest = np.zeros((3, 4))
    level.look(x, weights, rough)
    assert level.refine()
    assert not level.refine()  # there is no closer look
    assert level.passes == 1
    level.look(x, weights, fine)
    np.testing.assert_allclose(fine, expected, rtol=1e-14)
    assert level.refined
    assert not alone.refine()
    assert not alone.refined
    alone.look(x, weights, rest)
    np.testing.assert_array_equal(rest, rough)


def test_sums_are_not_made_where_they_would_take_more_memory_than_may_be(monkeypatch):
    monkeypatch.setattr(module, "MOST_SIDE", 3)
    assert terms_of(LeastSquares(MANY, many), 4)[0].size == 60


def test_only_squares_have_the_same_curvature_everywhere():
    curved = {"huber", "logistic", "sum", "multiple of a multiple", "sum in a multiple"}
    assert curved < OBJECTIVES.keys()
    for name, objective in OBJECTIVES.items():
        assert level_of(objective, 4).quadratic is (name not in curved)


def test_images_that_are_kept_stay_in_place_when_others_are_forgotten():
    level = level_of(LeastSquares(A, a), 4)
    before = [image.copy() for image in level.images]
    gradient = np.zeros(4)
    level.look(points(4).mean(axis=0), np.full(4, 0.25), gradient)
    gram = level.curvature().copy()
    level.keep(np.array([0, 3]))
    assert level.known == 2
    np.testing.assert_array_equal(level.images[0], before[0][:, [0, 3]])
    np.testing.assert_array_equal(level.curvature(), gram[np.ix_([0, 3], [0, 3])])
    level.add(corners(4)[1:2])
    np.testing.assert_array_equal(level.images[0][:, 2], before[0][:, 1])


def test_an_objective_of_a_part_has_its_terms_there():
    domain = Product(v=(Simplex(1.0), 3), w=(Simplex(2.0), 4))
    problem = Problem(SquaredNorm(), OnPart(LeastSquares(A, a), "w"), domain)
    level, V = level_of(problem.lower, 7), points(7)
    weights = np.full(4, 0.25)
    gradient, x = np.zeros(7), weights @ V
    assert level.look(x, weights, gradient) == pytest.approx(problem.lower.value(x), rel=1e-13)
    np.testing.assert_allclose(gradient, problem.lower.value_and_gradient(x)[1], atol=1e-13)
    np.testing.assert_array_equal(gradient[:3], 0.0)


# What has no curvature that is known


class Quartic(ConvexLoss, NamedTuple("Quartic", [])):
    """ℓ(p, t) = (p − t)⁴, without a second derivative."""


@loss.register(Quartic)
def loss_quartic(scalar, prediction, target):
    return (prediction - target) ** 4, 4.0 * (prediction - target) ** 3


@curvature.register(Quartic)
def curvature_quartic(scalar):
    return 100.0


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (FiniteSum(1, 4, lambda x, i: (0.0, np.zeros(4)), convex=True), "^FiniteSum$"),
        (LeastSquares(A, a) + FiniteSum(1, 4, lambda x, i: (0.0, np.zeros(4)), convex=True), "^FiniteSum$"),
        (-1.0 * LeastSquares(A, a), "^-1 times LeastSquares$"),
        (linear_model(Quartic(), A, a), "^LinearModel of Quartic$"),
    ],
    ids=["function", "function in a sum", "negative", "loss without a second derivative"],
)
def test_other_objectives_are_refused_by_name(objective, message):
    with pytest.raises(TypeError, match=message):
        terms_of(objective, 4)
