"""Dictionary learning against plain NumPy and finite differences."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from checking import check_accumulate, check_uniform_draw
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from tiebreak import SBCGF, SBCGI, Columns, DictionaryLoss, JointDictionaryLoss, L1Ball, L2Ball, Problem, Product, minimize
from tiebreak.engine import interpreted

M, N, P = 4, 6, 3


def data(seed=0, m=M, n=N, p=P):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, n)), rng.standard_normal((p, n)) * (rng.random((p, n)) < 0.6)


def flat(*matrices):
    """Matrices column by column, one after the other."""
    return np.concatenate([matrix.ravel(order="F") for matrix in matrices])


def error(A, D, X, indices=None):
    columns = slice(None) if indices is None else indices
    return 0.5 * np.mean(np.sum((A - D @ X)[:, columns] ** 2, axis=0))


@pytest.mark.parametrize("indices", [None, [2, 0, 2, 5]])
@pytest.mark.parametrize("sums", [False, True])
def test_the_error_of_given_codes_is_the_formula(sums, indices):
    A, X = data()
    objective = DictionaryLoss(A, X, sums)

    def reference(x):
        return error(A, x.reshape((M, P), order="F"), X, indices) * (N if sums else 1)

    x = np.random.default_rng(1).standard_normal(M * P)
    value, gradient = objective.value_and_gradient(x, indices)
    assert value == pytest.approx(reference(x), rel=1e-13)
    np.testing.assert_allclose(gradient, approx_fprime(x, reference, 1e-7), atol=1e-5)


@pytest.mark.parametrize("indices", [None, [2, 0, 2, 5]])
@pytest.mark.parametrize("sums", [False, True])
def test_the_joint_error_is_the_formula(sums, indices):
    A, _ = data()
    objective = JointDictionaryLoss(A, sums)

    def reference(x):
        D, X = x[: M * P].reshape((M, P), order="F"), x[M * P :].reshape((P, N), order="F")
        return error(A, D, X, indices) * (N if sums else 1)

    x = np.random.default_rng(1).standard_normal(P * (M + N))
    value, gradient = objective.value_and_gradient(x, indices)
    assert value == pytest.approx(reference(x), rel=1e-13)
    np.testing.assert_allclose(gradient, approx_fprime(x, reference, 1e-7), atol=1e-5)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 5))
def test_both_errors_agree_where_the_codes_are_the_same(m, n, p, seed):
    A, X = data(seed, m, n, p)
    D = np.random.default_rng(seed).standard_normal((m, p))
    value, gradient = DictionaryLoss(A, X).value_and_gradient(flat(D))
    joint, joint_gradient = JointDictionaryLoss(A).value_and_gradient(flat(D, X))
    assert joint == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(joint_gradient[: m * p], gradient, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(joint_gradient[m * p :], flat(D.T @ (D @ X - A) / n), rtol=1e-11, atol=1e-13)


def test_a_sample_touches_its_own_codes_only():
    A, X = data()
    D = np.ones((M, P))
    _, gradient = JointDictionaryLoss(A).value_and_gradient(flat(D, X), [4])
    touched = gradient[M * P :].reshape((P, N), order="F").any(axis=0)
    assert touched.tolist() == [False, False, False, False, True, False]


@pytest.mark.parametrize(
    "objective", [DictionaryLoss(*data()), JointDictionaryLoss(data()[0], sums=True)], ids=["given", "joint"]
)
def test_both_points_are_added_compiled_and_interpreted(objective):
    check_accumulate(objective, objective.dimension or P * (M + N))
    check_uniform_draw(objective)


@pytest.mark.parametrize("p", [3, 9])
@pytest.mark.parametrize("sums", [False, True])
def test_the_smoothness_constant_is_the_largest_eigenvalue_of_the_codes(sums, p):
    A, X = data(p=p)
    top = np.linalg.eigvalsh(X @ X.T)[-1]
    assert DictionaryLoss(A, X, sums).lipschitz == pytest.approx(top if sums else top / N, rel=1e-12)
    assert np.isnan(JointDictionaryLoss(A).lipschitz)


def test_the_data_are_copied_so_that_later_changes_do_no_harm():
    A, X = data()
    objective = DictionaryLoss(A.copy(), X)
    before = objective.value(np.ones(M * P))
    X[:] = 0.0
    assert objective.value(np.ones(M * P)) == before


@pytest.mark.parametrize(
    ("method", "way"),
    [
        pytest.param(SBCGI(step=0.02, slack=1e-3, batch_size=2, preset="paper"), nullcontext, id="sbcgi-compiled"),
        pytest.param(SBCGF(step=0.02, slack=1e-3), interpreted, id="sbcgf-interpreted"),
    ],
)
def test_a_new_dictionary_is_learnt(method, way):
    (old, codes), (new, _) = data(0), data(1)
    domain = Product(D=Columns(L2Ball(1.0), (M, P)), X=Columns(L1Ball(3.0), (P, N)))
    problem = Problem(JointDictionaryLoss(new), DictionaryLoss(old, codes), domain)
    assert problem.compiled
    x0 = domain.random_point(np.random.default_rng(0))
    with way():
        result = minimize(problem, method, max_queries=2000, x0=x0)
    assert domain.contains(result.x)
    assert result.upper < 0.8 * problem.upper.value(x0)
    assert result.lower < 1.01 * problem.lower.value(x0)  # noise leaves up to 0.9 % over a dozen seeds
    D, X = result.parts["D"], result.parts["X"]
    assert result.upper == pytest.approx(error(new, D, X), rel=1e-12)
    assert result.lower == pytest.approx(error(old, D, codes), rel=1e-12)


A = np.ones((2, 3))
BAD = [
    (
        lambda: DictionaryLoss(np.ones(3), A),
        "`A` must be a non-empty matrix, one data point per column, got .* shape \\(3,\\)",
    ),
    (lambda: DictionaryLoss(A, np.ones((4, 2))), "`codes` must have one column for each of the 3 of `A`, got 2"),
    (lambda: DictionaryLoss(A, np.ones((0, 3))), "`codes` must be a non-empty matrix"),
    (lambda: DictionaryLoss(A, A * np.nan), "`codes` must hold finite numbers, got nan at \\[0, 0\\]"),
    (lambda: DictionaryLoss(A, A, sums="yes"), "`sums` must be True or False, got 'yes'"),
    (lambda: JointDictionaryLoss([["a"]]), "`A` must hold real numbers"),
    (lambda: JointDictionaryLoss([[1.0, 2.0], [3.0, np.inf]]), "`A` must hold finite numbers, got inf at \\[1, 1\\]"),
    (lambda: JointDictionaryLoss(A).value(np.ones(9)), "`x` must have p · 5 variables for p atoms.*shape \\(2, 3\\), got 9"),
    (lambda: DictionaryLoss(A, A).value(np.ones(3)), "`x` must be a vector of 4 numbers"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
