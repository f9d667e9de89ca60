"""Least squares that were summed up block by block: the numbers of the rows, and errors that rounding does not exceed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from checking import check_accumulate, check_same_draw

import tiebreak
from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm, SummedSquares, minimize
from tiebreak.engine import interpreted
from tiebreak.objectives import linear, summed

KINDS = ("dense", "csr", "float32")


def as_kind(A, kind):
    """The same numbers, in another matrix."""
    return {"dense": A, "csr": scipy.sparse.csr_array(A), "float32": A.astype(np.float32)}[kind]


def data(seed, kind="dense", n=None, d=None, cancel=False):
    """Rows, targets and weights of sizes that differ by many powers of ten; some rows have no weight."""
    rng = np.random.default_rng(seed)
    n, d = n or int(rng.integers(1, 12)), d or int(rng.integers(1, 7))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-4, 4, d) * (rng.random((n, d)) < 0.8)
    A = A.astype(np.float32).astype(float) if kind == "float32" else A
    x = rng.standard_normal(d)
    b = A @ x if cancel else A @ x + rng.standard_normal(n)
    weights = rng.random(n) * (rng.random(n) < 0.8)
    weights[rng.integers(n)] = 1.0
    return A, b, weights, x


def in_blocks(rng, *arrays, kind="dense"):
    """Yield all rows in some blocks."""
    n = arrays[1].size
    cuts = np.sort(rng.choice(n + 1, min(3, n)))
    for rows in np.split(np.arange(n), cuts):
        if rows.size:
            yield as_kind(arrays[0][rows], kind), *(array[rows] for array in arrays[1:])


def exact(array):
    """The same numbers without rounding."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=float))


def truth(A, b, weights, x):
    """The weighted mean of ½ (⟨a, x⟩ − b)² and its gradient, without rounding."""
    A, b, w, x = map(exact, (A, b, weights, x))
    rest = A @ x - b
    return sum(w * rest * rest) / (2 * sum(w)), A.T @ (w * rest) / sum(w)


def check_survey(survey, value, gradient):
    """Assert that errors are no larger than they are said to be."""
    assert abs(Fraction(survey.value) - value) <= Fraction(survey.value_error)
    for found, wanted, error in zip(survey.gradient, gradient, survey.gradient_error, strict=True):
        assert abs(Fraction(found) - wanted) <= Fraction(error)


# Values


@pytest.mark.parametrize("cancel", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_within_their_bounds_even_where_all_cancels(kind, cancel):
    for seed in range(25):
        A, b, weights, x = data(seed, kind, cancel=cancel)
        rng = np.random.default_rng(seed)
        weighted = SummedSquares(in_blocks(rng, A, b, weights, kind=kind))
        plain = SummedSquares(in_blocks(rng, A, b, kind=kind))
        for point in (x, np.zeros_like(x), 1e6 * x, rng.standard_normal(x.size)):
            check_survey(weighted.survey(point), *truth(A, b, weights, point))
            check_survey(plain.survey(point), *truth(A, b, np.ones(b.size), point))


def test_errors_hold_at_every_point_within_what_is_granted():
    A, b, weights, x = data(3, n=6, d=3)
    objective, off = SummedSquares([(A, b, weights)]), np.array([1e-9, 0.0, 1e-3])
    survey = objective.survey(x, off)
    for signs in np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3)).reshape(3, -1).T:
        check_survey(survey, *truth(A, b, weights, x + 0.999 * signs * off))


def test_errors_are_no_larger_than_rounding_makes_them():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((5000, 8)), rng.standard_normal(5000)
    objective, x = SummedSquares(in_blocks(rng, A, b)), rng.standard_normal(8)
    survey = objective.survey(x)
    assert survey.value == pytest.approx(0.5 * np.mean((A @ x - b) ** 2), rel=1e-12)
    assert 0.0 < survey.value_error <= 1e-9 * survey.value
    assert (survey.gradient_error <= 1e-9 * np.abs(survey.gradient).max()).all()


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_weights_are_those_of_least_squares(kind):
    for seed in range(10):
        A, b, weights, x = data(seed, kind)
        rows = LeastSquares(as_kind(A, kind), b, sample_weight=weights)
        for objective in (SummedSquares(in_blocks(np.random.default_rng(seed), A, b, weights, kind=kind)), rows.summed()):
            sizes = np.sqrt(np.diag(objective.hessian()))
            unit = sizes @ np.abs(x) + math.sqrt(2.0 * rows.value(np.zeros(x.size)))
            value, gradient = objective.value_and_gradient(x)
            assert value == pytest.approx(rows.value(x), abs=1e-13 * unit * unit)
            np.testing.assert_array_less(np.abs(gradient - rows.value_and_gradient(x)[1]), 1e-13 * unit * sizes + 1e-300)
            assert (objective.rows, objective.dimension, objective.n_samples) == (b.size, x.size, 1)
            assert objective.lipschitz == pytest.approx(rows.lipschitz, rel=1e-6)
            assert objective.lipschitz == np.linalg.eigvalsh(objective.hessian())[-1]


def test_only_ratios_of_weights_matter_and_all_blocks_share_them():
    A, b, weights, x = data(1, n=9, d=3)
    A /= np.abs(A).max(axis=0)
    one = SummedSquares([(A[:4], b[:4], weights[:4]), (A[4:], b[4:], weights[4:])])
    scaled = SummedSquares([(A[:4], b[:4], 8.0 * weights[:4]), (A[4:], b[4:], 8.0 * weights[4:])])
    assert scaled.value(x) == one.value(x)
    # A block without weights counts each row once.
    mixed = SummedSquares([(A[:4], b[:4]), (A[4:], b[4:], np.full(5, 2.0))])
    assert mixed.value(x) == pytest.approx(float(truth(A, b, np.r_[np.ones(4), np.full(5, 2.0)], x)[0]), rel=1e-12)
    without = SummedSquares([(A[:4], b[:4], np.zeros(4)), (A[4:], b[4:])])
    assert without.value(x) == pytest.approx(SummedSquares([(A[4:], b[4:])]).value(x), rel=1e-12)


def test_blocks_are_read_once_and_one_at_a_time():
    alive = []

    def blocks():
        for k in range(5):
            alive.append(k)
            yield np.full((2, 1), float(k)), [0.0, 0.0]
            alive.remove(k)

    objective = SummedSquares(blocks())
    assert alive == []
    assert objective.value([1.0]) == pytest.approx(0.5 * np.mean(np.arange(5.0) ** 2))
    assert repr(objective) == "SummedSquares 10 × 1"


def test_it_is_accumulated_like_every_objective():
    A, b, weights, _ = data(2, n=9, d=4)
    objective = SummedSquares([(A / np.abs(A).max(axis=0), b, weights)])
    check_accumulate(objective, 4)
    assert (check_same_draw(objective, 10) == 0).all()
    x = np.ones(4)
    with interpreted():
        plain = objective.value_and_gradient(x, [0])
    value, gradient = objective.value_and_gradient(x, [0, 0])
    assert plain[0] == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(plain[1], gradient, rtol=1e-12)


# Curvature


def least_eigenvalue_is_at_least(H, bound):
    """Return whether H − bound I has no negative eigenvalue, by elimination without rounding."""
    rows = [list(row) for row in H - np.diag([Fraction(bound)] * len(H))]
    for k, pivot in enumerate(rows):
        if pivot[k] < 0 or (pivot[k] == 0 and any(pivot[k + 1 :])):
            return False
        for other in rows[k + 1 :]:
            factor = other[k] / pivot[k] if pivot[k] else Fraction(0)
            other[:] = [a - factor * b for a, b in zip(other, pivot, strict=True)]
    return True


def test_strong_convexity_is_proven_and_close():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 6))
        A, b = rng.integers(-9, 10, (d + int(rng.integers(0, 4)), d)), rng.standard_normal(d + 9)
        b, weights = b[: len(A)], rng.random(len(A)) + 0.1
        w = exact(weights)
        H = exact(A).T @ (w[:, None] * exact(A)) / sum(w)
        computed = np.linalg.eigvalsh(H.astype(float))
        for objective in (SummedSquares([(A, b, weights)]), LeastSquares(A, b, sample_weight=weights)):
            modulus = objective.strong_convexity
            assert least_eigenvalue_is_at_least(H, modulus)
            assert 0.0 <= modulus <= computed[0] * (1.0 + 1e-9) + 1e-12
            assert modulus >= 0.99 * computed[0] - 1e-10 * computed[-1]


def test_rows_that_leave_a_direction_free_are_not_strongly_convex():
    A = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.1, 0.2, 0.3], [1.0, 0.0, 0.0]])
    assert SummedSquares([(A, np.ones(4))]).strong_convexity == 0.0
    assert LeastSquares(A, np.ones(4)).strong_convexity == 0.0
    assert LeastSquares(A[:2], np.ones(2)).strong_convexity == 0.0  # fewer rows than columns: no pass


def test_convexity_of_rows_is_known_where_sums_are_cheap(monkeypatch):
    rng = np.random.default_rng(1)
    rows = LeastSquares(rng.standard_normal((30, 3)), rng.standard_normal(30))
    both = 2.0 * rows + 0.5 * SquaredNorm()
    with monkeypatch.context() as dear:
        dear.setattr(linear, "CHEAP_SIDE", 2)
        dear.setattr(linear, "CHEAP_PRODUCTS", 10.0)
        assert rows.known_convexity == 0.0
        assert both.known_convexity == 0.5
    modulus = rows.strong_convexity
    assert rows.known_convexity == modulus > 0.0
    assert both.known_convexity == pytest.approx(2.0 * modulus + 0.5)
    assert both.known_convexity == both.strong_convexity
    assert (-1.0 * rows).known_convexity == 0.0
    assert SummedSquares([(rows.matrix.array, rows.targets)]).known_convexity > 0.0
    assert rows.summed() is rows.summed()


# In runs


@pytest.mark.parametrize("method", ["sbcgf", "pb-apg", "active-set"])
def test_methods_find_the_answer_of_the_rows(method):
    rng = np.random.default_rng(5)
    A, b, domain = rng.standard_normal((60, 4)), rng.standard_normal(60), L1Ball(0.4)
    A[:, 3] = A[:, 0]  # g has many minimisers
    f = SquaredNorm([0.1, 0.0, 0.0, 0.3])
    g = SummedSquares(in_blocks(rng, A, b))
    best = minimize(Problem(f, LeastSquares(A, b), domain), "active-set")
    result = minimize(Problem(f, g, domain), method, max_queries=20_000)
    sharp = method == "active-set"
    assert result.lower == pytest.approx(g.value(result.x), rel=1e-12)
    assert result.lower - best.lower <= (1e-12 if sharp else 1e-4)
    assert result.upper == pytest.approx(best.upper, abs=1e-7 if sharp else 0.02)
    assert result.lower_gap_bound >= result.lower - best.lower - best.lower_gap_bound
    assert Problem(f, g, domain).compiled


def test_both_levels_may_be_summed():
    rng = np.random.default_rng(6)
    A, B = rng.standard_normal((3, 5)), rng.standard_normal((40, 5))
    a, b = rng.standard_normal(3), rng.standard_normal(40)
    rows = Problem(LeastSquares(B, b), LeastSquares(A, a), L1Ball(3.0))
    sums = Problem(SummedSquares([(B, b)]), SummedSquares([(A[:1], a[:1]), (A[1:], a[1:])]), L1Ball(3.0))
    first, second = (minimize(problem, "active-set") for problem in (rows, sums))
    np.testing.assert_allclose(second.x, first.x, atol=1e-5)
    assert second.upper == pytest.approx(first.upper, rel=1e-5)
    assert second.lower_gap_bound <= 1e-10 * rows.lower.value(np.zeros(5))


# What is refused


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (3, "`blocks` must be an iterable of \\(A, b\\), got 3"),
        ([], "`blocks` must hold at least one block of rows, got none"),
        ([np.ones((2, 2))], "each of `blocks` must be \\(A, b\\) or \\(A, b, sample_weight\\), got"),
        ([(np.ones((2, 2)),)], "each of `blocks` must be"),
        ([(np.ones((2, 2)), np.ones(3))], "`b` must"),
        ([(np.ones((2, 2)), np.ones(2)), (np.ones((2, 3)), np.ones(2))], "same number of columns, got 3 after 2"),
        ([(np.ones((2, 2)), [1.0, math.nan])], "`b`"),
        ([(np.array([[1.0, math.inf]]), [1.0])], "`A`"),
        ([(np.ones((2, 2)), np.ones(2), np.ones(3))], "`sample_weight`"),
        ([(np.ones((2, 2)), np.ones(2), [1.0, -1.0])], "`sample_weight` must be non-negative, got a minimum of -1"),
        ([(np.ones((2, 2)), np.ones(2), [math.nan, 1.0])], "`sample_weight`"),
        ([(np.ones((2, 2)), np.ones(2), np.zeros(2))], "`sample_weight` must be positive somewhere"),
        ([(np.ones((1, 5001)), np.ones(1))], "at most 5,000 variables.*got 5,001: keep the rows, as LeastSquares"),
    ],
)
def test_bad_blocks_are_refused_by_name(blocks, message):
    with pytest.raises(ValueError, match=message):
        SummedSquares(blocks)


def test_sums_are_stored_and_restored_bit_for_bit():
    A, b, weights, x = data(7, n=9, d=3)
    first, second = summed.Summation(), summed.Summation()
    first.add(LeastSquares(A[:5], b[:5]).matrix, b[:5], weights[:5])
    second.restore(first.stored())
    for sums in (first, second):
        sums.add(LeastSquares(A[5:], b[5:]).matrix, b[5:])
    assert first.mean().survey(x).value == second.mean().survey(x).value
    assert first.mean().quadratic.tobytes() == second.mean().quadratic.tobytes()
    assert first.mean().survey(x).value_error == second.mean().survey(x).value_error
    empty = summed.Summation()
    empty.restore(summed.Summation().stored())
    assert empty.rows == 0


def test_the_public_name_is_there():
    assert tiebreak.SummedSquares is SummedSquares
    assert "SummedSquares" in tiebreak.__all__
