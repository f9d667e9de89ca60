"""The arithmetic of active atoms, against a conic solver and dense linear algebra."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stated import solve

from tiebreak.active import corral
from tiebreak.engine import interpreted


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


def made(W: np.ndarray, q: np.ndarray, block: list[int], start: np.ndarray) -> corral.Corral:
    """Make a corral of atoms with images W, one per column, and prices at the point with some weights."""
    c = corral.empty(W.shape[1], max(block) + 1)
    c.gram[:], c.prices[:], c.block[:], c.weights[:] = W.T @ W, q, block, start
    c.counts[1] = W.shape[1]
    for b in range(max(block) + 1):
        c.base[b] = next(j for j in np.argsort(-start) if block[j] == b)
    corral.rebuild(c)
    return c


def reduced(c: corral.Corral) -> np.ndarray:
    """Return the reduced curvature of the atoms in the factor."""
    order = c.order[: c.counts[0]]
    bases = c.base[c.block[order]]
    G = c.gram
    return G[np.ix_(order, order)] - G[np.ix_(order, bases)] - G[np.ix_(bases, order)] + G[np.ix_(bases, bases)]


def check_factor(c: corral.Corral) -> None:
    """Assert that the factor is that of the active atoms that are no base, each once."""
    m = c.counts[0]
    L = np.tril(c.factor[:m, :m])
    wanted = reduced(c)
    np.testing.assert_allclose(L @ L.T, wanted, atol=1e-9 * max(1.0, np.abs(wanted).max(initial=0.0)))
    order = c.order[:m].tolist()
    assert len(set(order)) == m
    assert not set(order) & set(c.base.tolist())
    active = set(np.flatnonzero(c.weights > 0.0).tolist())
    assert active <= set(order) | set(c.base.tolist())


def check_weights(c: corral.Corral) -> None:
    assert (c.weights >= 0.0).all()
    np.testing.assert_allclose(np.bincount(c.block, c.weights), 1.0, rtol=1e-12)


def least(c: corral.Corral, start: np.ndarray) -> float:
    """Return the least value of the model over all weights, by a conic solver."""
    w = cvxpy.Variable(start.size, nonneg=True)
    sums = [cvxpy.sum(w[np.flatnonzero(c.block == b)]) == 1 for b in range(c.base.size)]
    move = w - start
    values, vectors = np.linalg.eigh(c.gram)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    solve(c.prices @ move + 0.5 * cvxpy.sum_squares(root @ move), sums)
    return model(c, w.value - start)


def model(c: corral.Corral, move: np.ndarray) -> float:
    return float(c.prices @ move + 0.5 * move @ c.gram @ move)


BLOCKS = {"one": [0] * 7, "two": [0, 1, 0, 1, 0, 1, 1], "single atoms": [0, 1, 2, 2, 2, 2, 3]}


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("rank", [1, 3, 9])
@pytest.mark.parametrize("seed", range(4))
def test_letting_all_atoms_in_minimises_the_model(seed, rank, blocks):
    rng, block = np.random.default_rng(seed), BLOCKS[blocks]
    W = rng.standard_normal((rank, 7))
    start = np.zeros(7)
    for b in set(block):
        start[block.index(b)] = 1.0
    c = made(W, W.T @ rng.standard_normal(rank), block, start)
    best = least(c, start)
    for _ in range(20):  # each turn lets in the atoms that are cheaper now
        corral.improve(c, np.array([j for j in range(7) if c.weights[j] == 0.0]), np.full(c.base.size, 1e-12))
        check_factor(c)
        check_weights(c)
    np.testing.assert_allclose(c.weights, start + c.moved, atol=1e-12)
    assert model(c, c.moved) == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_settling_goes_no_further_than_weights_stay_positive_and_never_up(seed):
    rng = np.random.default_rng(seed)
    start = rng.dirichlet(np.ones(6))
    c = made(rng.standard_normal((8, 6)), 3.0 * rng.standard_normal(6), [0] * 6, start)
    corral.settle(c)
    check_factor(c)
    check_weights(c)
    assert model(c, c.moved) < 0.0
    prices = c.prices + c.gram @ c.moved
    active = np.flatnonzero(c.weights > 0.0)
    np.testing.assert_allclose(prices[active], prices[active[0]], atol=1e-9)  # the active ones cost the same


def test_copies_of_an_atom_do_not_enter_beside_it():
    W = np.array([[1.0, 1.0, -1.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    start = np.array([0.5, 0.0, 0.5, 0.0])
    c = made(W, W.T @ np.array([1.0, 1.0]), [0] * 4, start)
    assert c.counts[0] == 1
    best = least(c, start)
    corral.improve(c, np.array([1, 3]), np.zeros(1))
    check_factor(c)
    check_weights(c)
    assert min(c.weights[0], c.weights[1]) == 0.0
    assert model(c, c.moved) == pytest.approx(best, abs=1e-9)


def test_atoms_that_depend_on_each_other_are_thinned_out_when_a_factor_is_made():
    W = np.array([[1.0, -1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]])  # five points of a line
    start = np.full(5, 0.2)
    c = made(W, np.array([3.0, -3.0, 0.0, 1.5, 0.0]), [0] * 5, start)
    check_factor(c)
    check_weights(c)
    assert c.counts[0] <= 1
    corral.settle(c)
    check_weights(c)
    assert model(c, c.moved) == pytest.approx(least(c, start), abs=1e-9)


def test_without_curvature_the_cheapest_atom_remains():
    start = np.full(4, 0.25)
    c = made(np.zeros((2, 4)), np.array([2.0, 1.0, -5.0, 3.0]), [0] * 4, start)
    corral.improve(c, np.flatnonzero(c.weights == 0.0), np.zeros(1))
    check_weights(c)
    np.testing.assert_allclose(c.weights, [0.0, 0.0, 1.0, 0.0], atol=1e-15)


@given(st.integers(0, 10**6))
def test_a_factor_survives_any_order_of_coming_and_going(seed):
    rng = np.random.default_rng(seed)
    size, blocks = int(rng.integers(2, 9)), int(rng.integers(1, 3))
    block = [*range(blocks), *(int(b) for b in rng.integers(0, blocks, size - blocks))]
    W = rng.standard_normal((size + 1, size))
    start = np.zeros(size)
    for b in range(blocks):
        own = [j for j in range(size) if block[j] == b]
        start[own] = rng.dirichlet(np.ones(len(own)))
    c = made(W, rng.standard_normal(size), block, start)
    for _ in range(6):
        candidates = list(range(c.counts[0]))
        candidates += [c.counts[0] + b for b in range(blocks) if corral.has_others(c, b)]
        if candidates and rng.random() < 0.6:
            corral.leave(c, int(rng.choice(candidates)))
        else:
            outside = [j for j in range(size) if c.weights[j] == 0.0 and j not in c.base]
            if outside:
                slot = int(rng.choice(outside))
                assert corral.extend(c, slot)
                c.weights[slot] = 0.1
        check_factor(c)
        assert corral.factor_error(c) <= 1e-10


def test_a_factor_that_is_wrong_is_seen():
    rng = np.random.default_rng(0)
    c = made(rng.standard_normal((6, 4)), rng.standard_normal(4), [0] * 4, np.full(4, 0.25))
    assert corral.factor_error(c) <= 1e-14
    c.factor[1, 1] *= 1.0 + 1e-6
    assert corral.factor_error(c) >= 1e-7


def test_more_room_keeps_what_is_known():
    rng = np.random.default_rng(1)
    c = made(rng.standard_normal((6, 4)), rng.standard_normal(4), [0] * 4, np.full(4, 0.25))
    wider = corral.empty(9, 1)
    corral.copy(c, wider)
    wider.block[:4], wider.weights[:4] = c.block, c.weights
    wider.counts[1] = 4
    check_factor(wider)
    np.testing.assert_array_equal(wider.gram[:4, :4], c.gram)
    assert wider.base.tolist() == c.base.tolist()
