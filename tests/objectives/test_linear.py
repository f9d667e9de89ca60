"""Linear models against plain NumPy and finite differences."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from checking import check_uniform_draw
from conftest import make_objective
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from tiebreak import Huber, LeastSquares, Logistic, SquaredNorm
from tiebreak.engine import interpreted
from tiebreak.objectives import LinearModel, accumulate, linear_model
from tiebreak.objectives.losses import HuberLoss, LogLoss, Square

NAMES = ["least-squares", "logistic", "huber", "squared-norm"]
KINDS = ["dense", "csr"]


def reference_value(name, objective, x, indices=None):
    if name == "squared-norm":
        return 0.5 * np.sum((x - objective.center) ** 2)
    A = objective.matrix.array if hasattr(objective.matrix, "array") else objective.matrix.to_scipy().toarray()
    b, w = objective.targets, objective.weights
    if indices is not None:
        A, b, w = A[indices], b[indices], w[indices]
    margin = A @ x
    match name:
        case "least-squares":
            terms = 0.5 * (margin - b) ** 2
        case "logistic":
            terms = np.logaddexp(0.0, -b * margin)
        case "huber":
            r, delta = np.abs(margin - b), objective.scalar.delta
            terms = np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta))
    return np.mean(w * terms)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_the_formula_and_gradients_are_finite_differences(name, kind):
    objective = make_objective(name, kind)
    rng = np.random.default_rng(3)
    for indices in (None, rng.integers(0, objective.n_samples, 5)):
        x = rng.standard_normal(18)
        value, gradient = objective.value_and_gradient(x, indices)
        assert value == pytest.approx(reference_value(name, objective, x, indices), rel=1e-12)
        differences = approx_fprime(x, lambda z: reference_value(name, objective, z, indices), 1e-7)
        np.testing.assert_allclose(gradient, differences, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_accumulate_adds_the_weighted_gradients_of_both_points(name, kind):
    objective = make_objective(name, kind)
    rng = np.random.default_rng(4)
    x, y, out = rng.standard_normal((3, 18))
    batch = rng.integers(0, objective.n_samples, 7)
    fx, gx = objective.value_and_gradient(x, batch)
    fy, gy = objective.value_and_gradient(y, batch)
    expected = out + 0.7 * gx - 0.4 * gy
    for run in range(2):
        result = out.copy()
        if run:
            with interpreted():
                values = accumulate(objective, batch, x, 0.7, y, -0.4, result)
        else:
            values = accumulate(objective, batch, x, 0.7, y, -0.4, result)
        np.testing.assert_allclose(values, (fx, fy), rtol=1e-12)
        np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13)


def test_samples_are_drawn_uniformly_and_alike_compiled_and_interpreted():
    check_uniform_draw(make_objective("least-squares"))


def test_sample_weights_act_as_repeated_rows():
    rng = np.random.default_rng(0)
    A, b, x = rng.standard_normal((4, 3)), rng.standard_normal(4), rng.standard_normal(3)
    times = np.array([1, 3, 0, 2])
    weighted = LeastSquares(A, b, sample_weight=10.0 * times).value_and_gradient(x)
    repeated = LeastSquares(np.repeat(A, times, axis=0), np.repeat(b, times)).value_and_gradient(x)
    assert weighted[0] == pytest.approx(repeated[0], rel=1e-13)
    np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-12)


def test_labels_may_be_zero_and_one():
    A = np.random.default_rng(0).standard_normal((5, 3))
    y = np.array([0, 1, 1, 0, 1])
    x = np.array([0.3, -2.0, 0.1])
    assert Logistic(A, y).value(x) == Logistic(A, 2 * y - 1).value(x)
    assert Logistic(A, y.astype(bool)).value(x) == Logistic(A, y).value(x)


@given(st.floats(-1e6, 1e6), st.sampled_from([-1.0, 1.0]))
def test_the_logistic_loss_neither_overflows_nor_loses_its_tail(prediction, label):
    value, gradient = Logistic([[1.0]], [label]).value_and_gradient([prediction])
    assert value == pytest.approx(np.logaddexp(0.0, -label * prediction), rel=1e-13)
    assert np.isfinite(gradient).all()
    assert -1.0 <= label * gradient[0] <= 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_the_smoothness_constant_is_the_largest_curvature(name, kind):
    objective = make_objective(name, kind)
    if name == "squared-norm":
        assert objective.lipschitz == 1.0
        return
    A = objective.matrix.array if kind == "dense" else objective.matrix.to_scipy().toarray()
    top = np.linalg.eigvalsh(A.T @ (objective.weights[:, None] * A) / len(A))[-1]
    assert objective.lipschitz == pytest.approx(top * (0.25 if name == "logistic" else 1.0), rel=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_smoothness_constant_exists_in_few_dimensions(d):
    A = np.arange(1.0, 2 * d + 1).reshape(2, d)
    assert LeastSquares(A, [0.0, 0.0]).lipschitz == pytest.approx(np.linalg.norm(A, 2) ** 2 / 2, rel=1e-8)


def test_a_constant_of_zero_data_is_zero():
    assert LeastSquares(np.zeros((3, 4)), np.zeros(3)).lipschitz == 0.0


def test_float_data_in_c_order_are_not_copied_and_other_data_are_converted():
    A, b, x = np.random.default_rng(0).standard_normal((4, 3)), np.zeros(4), np.ones(3)
    value = LeastSquares(A, b).value(x)
    assert LeastSquares(A, b).matrix.array is A
    single = A.astype(np.float32)
    assert LeastSquares(single, b).matrix.array is single
    assert LeastSquares(single, b).value(x) == pytest.approx(value, rel=1e-5)
    assert LeastSquares(np.asfortranarray(A), b).value(x) == value
    assert LeastSquares([[1, 2]], [3]).value([1, 1]) == 0.0


def test_read_only_and_memory_mapped_data_work(tmp_path):
    A = np.random.default_rng(0).standard_normal((4, 3))
    np.save(tmp_path / "A.npy", A)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    assert LeastSquares(mapped, np.zeros(4)).value(np.ones(3)) == LeastSquares(A, np.zeros(4)).value(np.ones(3))


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
def test_other_sparse_forms_and_duplicates_are_understood(form):
    rows, columns, values = [0, 0, 1, 1], [0, 2, 1, 1], [1.0, 2.0, 3.0, 4.0]
    sparse = form(scipy.sparse.coo_array((values, (rows, columns)), shape=(2, 3)))
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 7.0, 0.0]])
    x = np.array([1.0, -2.0, 0.5])
    assert LeastSquares(sparse, [1.0, 2.0]).value(x) == LeastSquares(dense, [1.0, 2.0]).value(x)


def broken_csr():
    return scipy.sparse.csr_matrix((np.ones(2), np.array([0, 30_000_000]), np.array([0, 1, 2])), shape=(2, 3))


def test_values_survive_copies_and_pickles():
    for objective in (LeastSquares([[1.0, 2.0]], [1.0]), SquaredNorm(), SquaredNorm([1.0])):
        for copied in (pickle.loads(pickle.dumps(objective)), copy.deepcopy(objective)):
            assert type(copied) is type(objective)
            x = np.ones(objective.dimension or 2)
            assert copied.value(x) == objective.value(x)


A = np.ones((3, 2))
BAD = [
    (lambda: LeastSquares(np.ones(3), np.ones(3)), "`A` must be a non-empty matrix.*shape \\(3,\\)"),
    (lambda: LeastSquares(np.ones((0, 2)), []), "`A` must be a non-empty matrix"),
    (lambda: LeastSquares(scipy.sparse.csr_array((0, 2)), []), "`A` must be a non-empty matrix"),
    (lambda: LeastSquares(A, np.ones(2)), "`b` must have one entry for each of the 3 rows of `A`, got 2"),
    (lambda: LeastSquares(A, np.ones((3, 1))), "`b` must be a non-empty vector.*\\(3, 1\\)"),
    (lambda: LeastSquares(np.array([[1.0, np.nan]]), [1.0]), "`A` must hold finite numbers, got nan at \\[0, 1\\]"),
    (lambda: LeastSquares(scipy.sparse.csr_array([[1.0, np.inf]]), [1.0]), "`A` must hold finite numbers, got inf"),
    (lambda: LeastSquares(A, [1.0, np.inf, 0.0]), "`b` must hold finite numbers, got inf at \\[1\\]"),
    (lambda: LeastSquares([["a", "b"]], [1.0]), "`A` must hold real numbers"),
    (lambda: LeastSquares(3.0, [1.0]), "`A` must be a non-empty matrix"),
    (lambda: LeastSquares(broken_csr(), [1.0, 1.0]), "`A` must be a valid sparse matrix"),
    (lambda: LeastSquares(A * 1j, np.ones(3)), "`A` must hold real numbers"),
    (lambda: LeastSquares(A, np.ones(3), sample_weight=[1, 2]), "`sample_weight` must be a vector of 3 numbers"),
    (lambda: LeastSquares(A, np.ones(3), sample_weight=[1, -2, 0]), "`sample_weight` must be non-negative"),
    (lambda: LeastSquares(A, np.ones(3), sample_weight=[0, 0, 0]), "`sample_weight` must be non-negative and not all zero"),
    (lambda: Logistic(A, [0, 1, 2]), "`y` must hold labels −1 and 1, or 0 and 1, got 0, 1, 2"),
    (lambda: Logistic(A, [-1, 0, 1]), "`y` must hold labels"),
    (lambda: Huber(A, np.ones(3), delta=0.0), "`delta` must be a finite number > 0, got 0.0"),
    (lambda: Huber(A, np.ones(3), delta=np.nan), "`delta` must be a finite number > 0, got nan"),
    (lambda: LeastSquares(A, np.ones(3)).value([1.0]), "`x` must be a vector of 2 numbers"),
    (lambda: LeastSquares(A, np.ones(3)).value([1.0, 1.0], [3]), "`indices` must be .* from 0 to 2"),
    (lambda: LeastSquares(A, np.ones(3)).value([1.0, 1.0], []), "`indices` must be a non-empty list"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_weights_that_are_too_small_to_have_digits_are_refused():
    with pytest.raises(
        ValueError, match="`sample_weight` must be 0 or at least 1e-140 of the largest, got 1e-300 beside 0.9"
    ):
        LeastSquares(np.ones((3, 1)), np.ones(3), sample_weight=[0.9, 1e-300, 0.0])
    assert LeastSquares(np.ones((2, 1)), np.ones(2), sample_weight=[1.0, 0.0]).weights.tolist() == [2.0, 0.0]


def test_losses_of_linear_models_are_types_that_say_their_size():
    A, b = np.eye(4, 3), np.array([1.0, -1.0, 1.0, -1.0])
    for kind, scalar in ((LeastSquares, Square()), (Logistic, LogLoss()), (Huber, HuberLoss(1.0))):
        for objective in (kind(A, b), linear_model(scalar, A, b), copy.copy(kind(A, b)), kind(A, b)._replace(targets=b)):
            assert type(objective) is kind
            assert isinstance(objective, LinearModel)
            assert repr(objective) == f"{kind.__name__} 4 × 3"
        assert repr(kind(scipy.sparse.csr_array(A), b)) == f"{kind.__name__} 4 × 3 sparse"
