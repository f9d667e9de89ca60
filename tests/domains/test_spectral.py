"""The nuclear-norm ball and the spectrahedron against full decompositions."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import Columns, CutStatus, LeastSquares, Problem, Product, SquaredNorm, minimize
from tiebreak.domains import NuclearBall, Spectrahedron
from tiebreak.domains.cuts.search import next_atom
from tiebreak.domains.lanczos import BASIS, Negative, top_vector
from tiebreak.domains.spectral import DENSE
from tiebreak.engine import interpreted


def rotation(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2), (8, 8), (40, 25), (25, 40), (60, BASIS + 20)])
def test_the_top_singular_pair_has_the_right_value(shape):
    C = np.random.default_rng(0).standard_normal(shape)
    ball = NuclearBall(shape, 2.0)
    S = ball.parts(ball.lmo(C.ravel()))["x"]
    assert np.sum(C * S) == pytest.approx(-2.0 * np.linalg.norm(C, 2), rel=1e-12)
    assert np.linalg.matrix_rank(S) == 1
    assert np.linalg.norm(S) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 40, BASIS + 20])
def test_the_least_eigenpair_has_the_right_value(n):
    C = np.random.default_rng(1).standard_normal((n, n))
    cone = Spectrahedron(n, 3.0)
    S = cone.parts(cone.lmo(C.ravel()))["x"]
    value = 3.0 * np.linalg.eigvalsh((C + C.T) / 2)[0]
    assert np.sum(C * S) == pytest.approx(value, rel=1e-12)
    assert np.trace(S) == pytest.approx(3.0, rel=1e-12)
    np.testing.assert_array_equal(S, S.T)


@pytest.mark.parametrize("spread", [0.0, 1e-14, 1e-9, 1e-5])
def test_clustered_values_leave_the_vector_open_but_not_the_value(spread):
    rng = np.random.default_rng(2)
    n = 30
    values = np.r_[5.0 + spread * np.arange(6), np.linspace(-2.0, 4.0, n - 6)]
    left, right = rotation(rng, n), rotation(rng, n)
    C = (left * values) @ right.T
    assert C.ravel() @ NuclearBall((n, n), 1.0).lmo(C.ravel()) == pytest.approx(-values.max(), rel=1e-11)
    C = (left * -values) @ left.T
    assert C.ravel() @ Spectrahedron(n).lmo(C.ravel()) == pytest.approx(-values.max(), rel=1e-11)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_huge_and_tiny_matrices_do_not_overflow(size):
    rng = np.random.default_rng(3)
    C = rng.standard_normal((4, 4))
    for domain, value in (
        (NuclearBall((4, 4), 1.0), -np.linalg.norm(C, 2)),
        (Spectrahedron(4), np.linalg.eigvalsh((C + C.T) / 2)[0]),
    ):
        assert C.ravel() @ domain.lmo(size * C.ravel()) == pytest.approx(value, rel=1e-11)


def test_a_start_from_an_atom_without_the_new_direction_finds_it():
    # An atom on the first axis is an eigenvector of each diagonal matrix, so that an iteration from it goes nowhere.
    diagonal = np.diag([1.0, 3.0, 2.0]).ravel()
    atom = np.zeros(9)
    atom[0] = 1.0
    for domain, sign in ((NuclearBall((3, 3), 1.0), 1.0), (Spectrahedron(3), -1.0)):
        out = atom.copy()
        next_atom(domain, sign * diagonal, diagonal, out)
        assert abs(out[4]) == pytest.approx(1.0, rel=1e-12)


def test_crossing_eigenvalues_are_met_by_a_mean_of_two_atoms():
    # Over the diagonal the spectrahedron is a simplex, where the answer is known.
    cone = Spectrahedron(3)
    c, a = np.diag([-1.0, 0.0, 1.0]).ravel(), np.diag([1.0, -1.0, 0.0]).ravel()
    cut = cone.cut_lmo(c, a, 0.0)
    assert cut.status is CutStatus.ACTIVE
    assert cut.multiplier == pytest.approx(0.5, rel=1e-9)
    np.testing.assert_allclose(np.diag(cut.point.reshape(3, 3)), [0.5, 0.5, 0.0], atol=1e-9)


@pytest.mark.parametrize("domain", [NuclearBall((20, 12), 2.0), Spectrahedron(16, 2.0)], ids=["nuclear", "spectrahedron"])
def test_cuts_of_larger_matrices_are_optimal(domain):
    rng = np.random.default_rng(4)
    for share in (0.01, 0.1, 0.4):
        c, a = rng.standard_normal((2, domain.dimension))
        low, high = a @ domain.lmo(a), a @ domain.lmo(-a)
        b = low + share * (high - low)
        cut = domain.cut_lmo(c, a, b)
        assert cut.status is CutStatus.ACTIVE
        assert domain.contains(cut.point, 1e-11)
        assert a @ cut.point <= b + 1e-11
        blend = c + cut.multiplier * a
        gap = c @ cut.point - (blend @ domain.lmo(blend) - cut.multiplier * b)
        assert gap <= 1e-11 * (abs(c @ domain.lmo(c)) + cut.multiplier * abs(low))


def test_projection_keeps_the_vectors_and_moves_the_values():
    rng = np.random.default_rng(5)
    left, right = rotation(rng, 4), rotation(rng, 4)
    X = (left * [4.0, 3.0, 1.0, 0.5]) @ right.T
    ball = NuclearBall((4, 4), 3.0)
    np.testing.assert_allclose(ball.project(X.ravel()).reshape(4, 4), (left * [2.0, 1.0, 0.0, 0.0]) @ right.T, atol=1e-12)
    inside = 0.1 * X.ravel()
    np.testing.assert_array_equal(ball.project(inside), inside)
    X = (left * [4.0, 3.0, -1.0, -9.0]) @ left.T
    twisted = X + np.triu(np.ones((4, 4)), 1) - np.tril(np.ones((4, 4)), -1)
    expected = (left * [2.0, 1.0, 0.0, 0.0]) @ left.T
    np.testing.assert_allclose(Spectrahedron(4, 3.0).project(twisted.ravel()).reshape(4, 4), expected, atol=1e-12)


def test_membership_looks_at_norm_symmetry_trace_and_sign():
    ball = NuclearBall((2, 3), 2.0)
    assert ball.contains([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    assert not ball.contains([1.0, 0.0, 0.0, 0.0, 1.1, 0.0])
    cone = Spectrahedron(2)
    assert cone.contains([0.5, 0.5, 0.5, 0.5])
    assert not cone.contains([0.5, 0.5, 0.4, 0.5])
    assert not cone.contains([0.5, 0.6, 0.6, 0.5])
    assert not cone.contains([0.5, 0.0, 0.0, 0.4])


def test_sizes_and_views():
    ball, cone = NuclearBall((2, 3), 1.5), Spectrahedron(2, 3.0)
    assert (ball.dimension, cone.dimension) == (6, 4)
    assert ball.diameter == 3.0
    assert cone.diameter == pytest.approx(3.0 * np.sqrt(2.0))
    assert ball.parts(np.arange(6.0))["x"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_plain_python_finds_the_same_atom():
    C = np.random.default_rng(6).standard_normal(20)
    compiled = NuclearBall((4, 5), 1.0).lmo(C)
    with interpreted():
        np.testing.assert_allclose(NuclearBall((4, 5), 1.0).lmo(C), compiled, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NuclearBall(3, 1.0), "`shape` must be two whole numbers ≥ 1, got 3"),
        (lambda: NuclearBall((2, 0), 1.0), "`shape\\[1\\]` must be a whole number ≥ 1, got 0"),
        (lambda: NuclearBall((2, 2), -1.0), "`radius` must be a finite number > 0, got -1.0"),
        (lambda: Spectrahedron(0), "`rows` must be a whole number ≥ 1, got 0"),
        (lambda: Spectrahedron(2, 0.0), "`trace` must be a finite number > 0, got 0.0"),
        (lambda: Spectrahedron(2).lmo(np.ones(3)), "`c` must be a vector of 4 numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_matrix_made_of_earlier_atoms_hides_no_direction():
    for n in (4, DENSE + 10):
        cone = Spectrahedron(n)
        atoms = [cone.lmo(np.zeros(n * n))]
        for _ in range(3):
            c = np.sum(atoms, axis=0)
            s = cone.lmo(c)
            assert c @ s == pytest.approx(np.linalg.eigvalsh(c.reshape(n, n))[0], abs=1e-12)
            assert c @ cone.lmo(-c) == pytest.approx(np.linalg.eigvalsh(c.reshape(n, n))[-1], rel=1e-12)
            atoms.append(s)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_lanczos_leaves_an_invariant_space_that_its_start_lies_in(steps):
    """The start lies in the span of some eigenvectors, none of them the top one, up to a bit of rounding."""
    n = 40
    values = -np.arange(n, dtype=float)
    matrix = np.diag(-values)  # the operator is its negative
    for rounding in (0.0, 1e-15):
        v = np.full(n, rounding)
        v[-steps:] = 1.0
        v /= np.linalg.norm(v)
        with interpreted():
            top_vector(Negative(matrix, 1.0), v)
        assert v[0] ** 2 == pytest.approx(1.0, abs=1e-12)


def test_a_multiple_of_the_identity_and_zero_have_atoms():
    n = DENSE + 1
    for factor in (0.0, 1.0, -2.0):
        c = (factor * np.eye(n)).ravel()
        assert c @ Spectrahedron(n, 3.0).lmo(c) == pytest.approx(3.0 * factor, rel=1e-12)
        assert c @ NuclearBall((n, n), 3.0).lmo(c) == pytest.approx(-3.0 * abs(factor), rel=1e-12)


def test_the_middle_of_spectral_sets_is_the_middle():
    np.testing.assert_array_equal(Spectrahedron(2, 3.0).middle(4), [1.5, 0.0, 0.0, 1.5])
    np.testing.assert_array_equal(NuclearBall((2, 1), 3.0).middle(2), [0.0, 0.0])
    both = Product(S=Spectrahedron(2), C=Columns(Spectrahedron(1, 2.0), (1, 2)))
    np.testing.assert_array_equal(both.middle(6), [0.5, 0.0, 0.0, 0.5, 2.0, 2.0])
    problem = Problem(SquaredNorm(), LeastSquares(np.zeros((1, 4)), [0.0]), Spectrahedron(2))
    np.testing.assert_array_equal(problem.center, [0.5, 0.0, 0.0, 0.5])


def test_bounds_over_the_spectrahedron_hold_from_the_default_start():
    """The least norm is that of I/4, 1/8, with the diagonal given or free; atoms alone have the norm 1/2."""
    diagonal = np.zeros((4, 16))
    diagonal[range(4), np.arange(4) * 5] = 1.0
    for lower in (LeastSquares(diagonal, np.full(4, 0.25)), LeastSquares(np.zeros((1, 16)), [0.0])):
        result = minimize(Problem(SquaredNorm(), lower, Spectrahedron(4)), max_queries=20_000)
        assert result.upper_gap_bound >= result.upper - 0.125 - 1e-12
        assert result.upper == pytest.approx(0.125, abs=1e-3)
