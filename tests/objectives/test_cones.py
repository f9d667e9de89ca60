"""Distances to cones against a conic solver, finite differences and the optimality conditions of a projection."""

from __future__ import annotations

from typing import NamedTuple

import cvxpy
import numpy as np
import pytest
from checking import check_accumulate, check_uniform_draw
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from tiebreak import SBCGF, ConeDistance, L1Ball, Problem, SquaredNorm, minimize
from tiebreak.objectives import project_cone
from tiebreak.objectives.cones import Orthant, SecondOrder, Semidefinite

ROWS = {"orthant": 3, "second-order": 4, "semidefinite": 9}
CONES = {"orthant": Orthant(), "second-order": SecondOrder(), "semidefinite": Semidefinite(3)}
NAMES = list(ROWS)


def make(name, seed=0, n=5, d=4):
    rng = np.random.default_rng(seed)
    return ConeDistance(rng.standard_normal((n, ROWS[name], d)), rng.standard_normal((n, ROWS[name])), name)


def solver_distance(name, point):
    """½ dist²(point, −K) by Clarabel."""
    if name == "semidefinite":
        k = int(np.sqrt(point.size))
        target = cvxpy.Variable((k, k), symmetric=True)
        M = point.reshape(k, k)
        limits, gap = [target << 0], target - 0.5 * (M + M.T)
    else:
        target = cvxpy.Variable(point.size)
        limits = [target <= 0] if name == "orthant" else [cvxpy.SOC(-target[0], target[1:])]
        gap = target - point
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(gap)), limits)
    return problem.solve(solver=cvxpy.CLARABEL)


@pytest.mark.parametrize("name", NAMES)
def test_the_distance_is_that_of_a_conic_solver(name):
    objective = make(name)
    x = np.random.default_rng(1).standard_normal(4)
    points = objective.matrices @ x + objective.offsets
    expected = np.array([solver_distance(name, point) for point in points])
    found = np.array([objective.value(x, [i]) for i in range(5)])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert found.max() > 0.1
    assert objective.value(x) == pytest.approx(found.mean(), rel=1e-13)


@pytest.mark.parametrize("indices", [None, [4, 1, 1]])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_differences(name, indices):
    objective = make(name)
    x = np.random.default_rng(1).standard_normal(4)
    _, gradient = objective.value_and_gradient(x, indices)
    differences = approx_fprime(x, lambda z: objective.value(z, indices), 1e-7)
    np.testing.assert_allclose(gradient, differences, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_both_points_are_added_compiled_and_interpreted(name):
    check_accumulate(make(name), 4)


def test_constraints_are_drawn_uniformly():
    check_uniform_draw(make("orthant"))


@pytest.mark.parametrize("name", NAMES)
def test_a_point_that_satisfies_all_constraints_has_value_and_gradient_zero(name):
    objective = make(name)
    interior = {"orthant": np.ones(3), "second-order": np.array([2.0, 0.5, 0.5, 0.5]), "semidefinite": np.eye(3).ravel()}[
        name
    ]
    x = np.random.default_rng(1).standard_normal(4)
    satisfied = ConeDistance(objective.matrices, -(objective.matrices @ x) - interior, name)
    value, gradient = satisfied.value_and_gradient(x)
    assert value == 0.0
    assert not gradient.any()


@given(st.integers(0, 10_000), st.sampled_from(NAMES))
def test_a_projection_splits_a_point_into_two_orthogonal_members(seed, name):
    rng = np.random.default_rng(seed)
    point = rng.standard_normal(ROWS[name]) * rng.choice([0.0, 1e-8, 1.0, 1e8], ROWS[name])
    if name == "semidefinite":
        point = (point.reshape(3, 3) + point.reshape(3, 3).T).ravel()
    inside, twice, other = np.empty((3, point.size))
    project_cone(CONES[name], point, inside)
    project_cone(CONES[name], inside, twice)
    project_cone(CONES[name], inside - point, other)  # inside − point lies in K too
    size = np.linalg.norm(point)
    np.testing.assert_allclose(twice, inside, atol=1e-13 * size)
    np.testing.assert_allclose(other, inside - point, atol=1e-13 * size)
    assert abs(inside @ (point - inside)) <= 1e-13 * size**2


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ([2.0, 1.0, 0.0], [2.0, 1.0, 0.0]),
        ([-2.0, 1.0, 0.0], [0.0, 0.0, 0.0]),
        ([0.0, 3.0, 4.0], [2.5, 1.5, 2.0]),
        ([-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([-5.0, 3.0, 4.0], [0.0, 0.0, 0.0]),
    ],
)
def test_the_second_order_cone_has_its_height_first(point, expected):
    out = np.empty(3)
    project_cone(SecondOrder(), np.array(point), out)
    np.testing.assert_allclose(out, expected, atol=1e-15)


def test_of_a_matrix_the_symmetric_part_counts():
    skewed = ConeDistance([[[1.0], [5.0], [-5.0], [1.0]]], [[0.0, 0.0, 0.0, 0.0]], "semidefinite")
    assert skewed.value([2.0]) == pytest.approx(4.0)  # ½ ‖2 I‖²
    assert skewed.value([-2.0]) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_the_smoothness_constant_is_that_of_the_stacked_matrices(name):
    objective = make(name)
    top = np.linalg.eigvalsh(np.einsum("nri,nrj->ij", objective.matrices, objective.matrices) / 5)[-1]
    assert objective.lipschitz == pytest.approx(top, rel=1e-8)


def test_the_feasible_point_of_smallest_norm_is_found_compiled():
    A, feasible = np.random.default_rng(0).standard_normal((6, 4)), np.full(4, 0.3)
    lower = ConeDistance(-A[:, None, :], (A @ feasible - 0.1)[:, None], "orthant")  # A x ≥ A · feasible − 0.1
    problem = Problem(SquaredNorm(), lower, L1Ball(2.0))
    assert problem.compiled
    result = minimize(problem, SBCGF(step=1e-3, slack=1e-6), max_queries=20_000, x0=feasible)
    assert result.upper < 0.8 * problem.upper.value(feasible)
    assert result.lower < 0.1 * lower.value(np.zeros(4))


class HalfLine(NamedTuple):
    """Numbers that are at most zero, in each entry: the negative orthant."""


def test_another_cone_can_be_registered():
    @project_cone.register(HalfLine)
    def project_half_line(cone, point, out):
        for i in range(point.size):
            out[i] = min(point[i], 0.0)

    H, h = np.random.default_rng(0).standard_normal((5, 3, 4)), np.zeros((5, 3))
    x = np.ones(4)
    assert ConeDistance(H, h, HalfLine()).value(x) == pytest.approx(ConeDistance(-H, h, "orthant").value(x), rel=1e-13)
    check_accumulate(ConeDistance(H, h, HalfLine()), 4)


H, h = np.ones((2, 3, 4)), np.ones((2, 3))
BAD = [
    (lambda: ConeDistance(np.ones((3, 4)), h, "orthant"), "`matrices` must be a non-empty array of shape \\(n, r, d\\)"),
    (lambda: ConeDistance(H, np.ones(3), "orthant"), "`offsets` must be an array of shape \\(2, 3\\).*got one of \\(3,\\)"),
    (lambda: ConeDistance(H, h * np.inf, "orthant"), "`offsets` must hold finite numbers"),
    (lambda: ConeDistance(H * np.nan, h, "orthant"), "`matrices` must hold finite numbers, got nan at \\[0, 0, 0\\]"),
    (lambda: ConeDistance(H, h, "cube"), '`cone` must be "orthant", "second-order", "semidefinite" or .*, got \'cube\''),
    (lambda: ConeDistance(H, h, "semidefinite"), "`matrices` must have a square number r = k² of rows.*got 3"),
    (lambda: ConeDistance(H, h, Semidefinite(2)), "`cone` must have side² = 3, the rows of `matrices`"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
