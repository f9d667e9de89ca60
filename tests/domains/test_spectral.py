"""The nuclear-norm ball and the spectrahedron against full decompositions."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import CutStatus
from tiebreak.domains.cut import next_atom
from tiebreak.domains.spectral import BASIS, NuclearBall, Spectrahedron
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
        (lambda: Spectrahedron(0), "`n` must be a whole number ≥ 1, got 0"),
        (lambda: Spectrahedron(2, 0.0), "`trace` must be a finite number > 0, got 0.0"),
        (lambda: Spectrahedron(2).lmo(np.ones(3)), "`c` must be a vector of 4 numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
