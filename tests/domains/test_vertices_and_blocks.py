"""What every set answers a method that keeps a point as a mean of few atoms, on every set listed in ``cases.py``."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from cases import CASES, COMPOSED, Case
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import tiebreak
from tiebreak.domains import (
    Atom,
    Birkhoff,
    Block,
    Box,
    CappedSimplex,
    Columns,
    GroupBall,
    Hull,
    KSparse,
    L1Ball,
    L2Ball,
    LInfBall,
    Polytope,
    Product,
    Simplex,
    UnitSimplex,
    WeightedL1Ball,
    blocks,
    decomposed,
    has_vertices,
    vertices,
)
from tiebreak.domains.atoms import least
from tiebreak.engine import interpreted

EVERYWHERE = pytest.mark.parametrize("case", CASES + COMPOSED, ids=lambda case: case.name)
CURVED = ("L2Ball", "GroupBall", "NuclearBall", "Spectrahedron")


@pytest.fixture
def way(case):
    """Columns and products of every set run interpreted: compiling each of them takes long."""
    with interpreted() if case.composed else nullcontext():
        yield


def made(case: Case, seed: int):
    """Yield sets of one to some variables with a generator of random numbers."""
    rng = np.random.default_rng(seed)
    for size in range(1, (3 if case.composed else min(case.largest, 8)) + 1):
        yield *case.make(rng, size), rng


def directions(rng: np.random.Generator, d: int):
    """Yield random, tied, zero and one-hot vectors, and some of other sizes."""
    yield rng.standard_normal(d)
    yield rng.integers(-1, 2, d).astype(float)
    yield np.zeros(d)
    yield np.ones(d)
    yield np.eye(d)[rng.integers(d)] * rng.choice([-1.0, 1.0])
    yield rng.standard_normal(d) * 1e8
    yield rng.standard_normal(d) * 1e-8


def check_atom(atom: Atom, domain: Any, d: int) -> np.ndarray:
    """Check what an atom promises, and return its point."""
    assert atom.where.dtype == np.int64
    assert atom.values.dtype == np.float64
    assert atom.where.shape == atom.values.shape
    assert (np.diff(atom.where) > 0).all()
    assert (atom.values != 0.0).all()
    point = atom.point(d)
    assert domain.contains(point, 1e-9 if isinstance(domain, Polytope) else 1e-12)
    return point


def check_vertices(domain: Any, c: np.ndarray, count: int) -> list[np.ndarray]:
    """Check what the vertices promise, and return them."""
    atoms = vertices(domain, c, count)
    points = [check_atom(atom, domain, c.size) for atom in atoms]
    values = np.array(points) @ c
    best = domain.lmo(c)
    doubt = 1e-12 * (max(map(np.linalg.norm, points)) * np.linalg.norm(c) + 1e-300)
    assert 1 <= len(atoms) <= count
    assert abs(values[0] - c @ best) <= doubt
    assert (np.diff(values) >= -doubt).all()
    assert len({point.tobytes() for point in np.array(points) + 0.0}) == len(points)
    if isinstance(domain, Polytope) is False or domain.warm_start is False:
        assert [atom.key() for atom in vertices(domain, c, count)] == [atom.key() for atom in atoms]
    return points


def check_mean(domain: Any, x: np.ndarray) -> list[tuple[float, Atom]]:
    """Check what a decomposition promises, and return it."""
    found = decomposed(domain, x)
    points = np.array([check_atom(atom, domain, x.size) for _, atom in found])
    weights = np.array([weight for weight, _ in found])
    assert (weights > 0.0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert len({atom.key() for _, atom in found}) == len(found)
    np.testing.assert_allclose(weights @ points, x, rtol=0.0, atol=1e-12 * max(np.abs(points).max(), np.abs(x).max()))
    return found


@EVERYWHERE
def test_blocks_hold_every_variable_once_and_minimise_one_by_one(case, way):
    for domain, d, rng in made(case, 0):
        parts = blocks(domain, d)
        assert sorted(np.concatenate([part.where for part in parts]).tolist()) == list(range(d))
        assert all(part.where.dtype == np.int64 and part.domain.dimension in (None, part.where.size) for part in parts)
        inside = domain.random_point(rng, d)
        assert all(part.domain.contains(inside[part.where]) for part in parts)
        for c in directions(rng, d):
            s = np.empty(d)
            for where, own in parts:
                s[where] = own.lmo(c[where])
            assert domain.contains(s)
            assert c @ s == pytest.approx(c @ domain.lmo(c), abs=1e-10 * np.abs(c).sum() * np.abs(s).max())


@EVERYWHERE
def test_blocks_are_not_split_further(case, way):
    for domain, d, _ in made(case, 1):
        for where, own in blocks(domain, d):
            again = blocks(own, where.size)
            assert len(again) == 1
            assert type(again[0].domain) is type(own)
            assert not isinstance(own, Columns | Product)


@EVERYWHERE
def test_vertices_are_different_points_of_the_set_in_order_and_the_first_is_a_minimiser(case, way):
    for domain, d, rng in made(case, 2):
        for c, (where, own) in itertools.product(directions(rng, d), blocks(domain, d)):
            for count in (1, 3, 20):
                check_vertices(own, c[where], count)


@EVERYWHERE
def test_decompositions_are_means_of_points_of_the_set(case, way):
    for domain, d, rng in made(case, 3):
        points = [domain.random_point(rng, d), domain.middle(d), domain.lmo(rng.standard_normal(d)), domain.lmo(np.zeros(d))]
        for x, (where, own) in itertools.product(points, blocks(domain, d)):
            check_mean(own, x[where])


@EVERYWHERE
def test_the_whole_set_answers_too_if_it_is_not_split(case, way):
    for domain, d, rng in made(case, 4):
        check_vertices(domain, rng.standard_normal(d), 5)
        check_mean(domain, domain.random_point(rng, d))


@EVERYWHERE
def test_a_set_says_whether_it_has_vertices(case, way):
    for domain, d, _ in made(case, 5):
        parts = blocks(domain, d)
        assert has_vertices(domain) == all(has_vertices(part.domain) for part in parts)
        assert has_vertices(domain) == all(type(part.domain).__name__ not in CURVED for part in parts)


@pytest.mark.parametrize("case", [case for case in CASES if case.linear], ids=lambda case: case.name)
def test_vertices_are_extreme(case):
    """At each of them some linear function is least, and stays so if it changes a little: no other point does as well."""
    for domain, d, rng in made(case, 6):
        if isinstance(
            domain, Hull | Polytope
        ):  # not all points of a hull are extreme, and of a polytope there is one vertex
            continue
        for where, own in blocks(domain, d):
            for point in check_vertices(own, rng.standard_normal(where.size), 12):
                c = supporting(own, point) + 1e-6 * rng.standard_normal(where.size)
                np.testing.assert_allclose(own.lmo(c), point, atol=1e-12)


def supporting(domain: Any, point: np.ndarray) -> np.ndarray:
    """Return a linear function that is least at this vertex of a set alone."""
    if isinstance(domain, Box):
        return np.where(point <= domain.lower, 1.0, -1.0)
    if isinstance(domain, CappedSimplex):
        return -point / domain.cap
    return -np.sign(point) if point.any() else np.ones(point.size)  # the origin, of a simplex


def test_users_sets_are_one_block_with_one_vertex_and_say_nothing_of_vertices():
    class Disk(tiebreak.Domain):
        dimension = 2

    @tiebreak.domains.lmo.register(Disk)
    def lmo_disk(domain, c, out):
        out[:] = [0.0, -1.0]

    disk = Disk()
    assert not has_vertices(disk)
    assert [part.where.tolist() for part in blocks(disk, 2)] == [[0, 1]]
    (atom,) = vertices(disk, np.array([0.0, 1.0]), 5)
    assert (atom.where.tolist(), atom.values.tolist()) == ([1], [-1.0])
    ((weight, atom),) = decomposed(disk, np.array([0.5, 0.0]))
    assert (weight, atom.where.tolist(), atom.values.tolist()) == (1.0, [0], [0.5])


def test_columns_and_products_split_all_the_way_down():
    inner = Product(w=(L1Ball(1.0), 2), box=Box(-1.0, [1.0, 2.0]))
    domain = Product(X=Columns(inner, (4, 2)), s=(Simplex(1.0), 3))
    parts = blocks(domain, 11)
    assert [part.where.tolist() for part in parts] == [[0, 1], [2], [3], [4, 5], [6], [7], [8, 9, 10]]
    assert [type(part.domain) for part in parts] == [L1Ball, Box, Box, L1Ball, Box, Box, Simplex]
    assert parts[5].domain.upper.tolist() == [2.0]
    assert has_vertices(domain)
    assert not has_vertices(Product(X=domain, b=(L2Ball(1.0), 3)))


def test_sets_in_disguise_become_the_simpler_set():
    assert blocks(GroupBall([0, 1, 2], 2.0), 3)[0].domain == L1Ball(2.0)
    assert blocks(KSparse(1, 2.0, 3), 3)[0].domain == L1Ball(2.0)
    assert [part.domain.upper.tolist() for part in blocks(KSparse(3, 2.0, 3), 3)] == [[2.0]] * 3
    assert isinstance(blocks(GroupBall([0, 1, 1], 2.0), 3)[0].domain, GroupBall)
    assert has_vertices(GroupBall([0, 1, 2], 2.0))
    assert not has_vertices(GroupBall([0, 1, 1], 2.0))


def shown(atoms: list[Atom], d: int) -> list[list[float]]:
    return [atom.point(d).tolist() for atom in atoms]


def test_ties_go_to_the_first_coordinate_and_zero_slopes_to_the_positive_side():
    c = np.array([0.0, -1.0, 1.0, -1.0, 0.0])
    assert [(atom.where[0], atom.values[0]) for atom in vertices(L1Ball(2.0), c, 9)] == [
        (1, 2.0),
        (2, -2.0),
        (3, 2.0),
        (0, 2.0),
        (4, 2.0),
    ]
    assert [atom.where[0] for atom in vertices(Simplex(1.0), c, 4)] == [1, 3, 0, 4]


def test_the_origin_is_a_vertex_of_the_unit_simplex_in_its_place():
    simplex = UnitSimplex(2.0)
    assert shown(vertices(simplex, np.array([1.0, -1.0]), 5), 2) == [[0.0, 2.0], [0.0, 0.0], [2.0, 0.0]]
    assert shown(vertices(simplex, np.array([1.0, 0.0]), 2), 2) == [[0.0, 0.0], [0.0, 2.0]]
    assert shown(vertices(simplex, np.array([-1.0, -2.0]), 2), 2) == [[0.0, 2.0], [2.0, 0.0]]


def test_exchanges_are_the_next_best_vertices():
    rng = np.random.default_rng(7)
    for _ in range(20):
        c = rng.standard_normal(6)
        every = np.sort([s @ c for s in set(itertools.permutations([0.5, 0.5, 0.2, 0.0, 0.0, 0.0]))])
        found = [point @ c for point in check_vertices(CappedSimplex(1.2, 0.5, 6), c, 40)]
        assert len(found) == 1 + 2 + 3 + 6
        np.testing.assert_allclose(found[:2], every[:2])
        patterns = [np.array(s) for s in itertools.product([-1.0, 0.0, 1.0], repeat=6) if np.abs(s).sum() == 2]
        every = np.sort([s @ c for s in patterns])
        found = [point @ c for point in check_vertices(KSparse(2, 1.0, 6), c, 40)]
        assert len(found) == 1 + 2 * 4 + 2
        np.testing.assert_allclose(found[:2], every[:2])


def test_a_total_of_whole_caps_has_no_vertices_that_differ_by_rounding():
    for total, cap, count in [(0.3, 0.1, 3 * 2), (1.0, 0.2, 0), (0.7, 0.1, 0)]:
        d = 5 if total < 1.0 and count else round(total / cap)
        points = np.array(check_vertices(CappedSimplex(total, cap, d), np.arange(d) - 1.5, 100))
        assert len(points) == 1 + count
        distances = np.abs(points[:, None] - points).max(axis=2)
        assert (distances[~np.eye(len(points), dtype=bool)] > 0.05).all()


def test_neighbours_of_an_assignment_exchange_two_rows():
    rng = np.random.default_rng(8)
    c = rng.standard_normal(16)
    points = check_vertices(Birkhoff(4), c, 50)
    every = sorted(sum(c[i * 4 + j] for i, j in enumerate(p)) for p in itertools.permutations(range(4)))
    assert len(points) == 1 + 6
    assert points[0] @ c == pytest.approx(every[0])
    assert shown(vertices(Birkhoff(1), np.ones(1), 5), 1) == [[1.0]]


def test_a_hull_gives_each_point_once_and_its_means_by_its_points():
    hull = Hull([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    assert shown(vertices(hull, np.array([1.0, 1.0]), 9), 2) == [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    found = check_mean(hull, np.array([0.25, 1.0]))
    assert sorted(atom.point(2).tolist() for _, atom in found) == [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0]]
    assert shown(vertices(Hull([[3.0, 0.0]]), np.zeros(2), 4), 2) == [[3.0, 0.0]]


def test_intervals_are_means_of_their_ends():
    assert [(w, shown([a], 1)[0][0]) for w, a in check_mean(Box(-1.0, 3.0, 1), np.array([0.0]))] == [
        (0.75, -1.0),
        (0.25, 3.0),
    ]
    assert [(w, shown([a], 1)[0][0]) for w, a in check_mean(Box(-1.0, 3.0, 1), np.array([3.0]))] == [(1.0, 3.0)]
    assert [(w, shown([a], 1)[0][0]) for w, a in check_mean(Box(2.0, 2.0, 1), np.array([2.0]))] == [(1.0, 2.0)]
    assert [w for w, _ in check_mean(LInfBall(1.7e308, 1), np.array([0.0]))] == [0.5, 0.5]
    assert shown(vertices(Box(2.0, 2.0, 1), np.zeros(1), 2), 1) == [[2.0]]
    assert shown(vertices(Box(0.0, 2.0, 1), np.ones(1), 2), 1) == [[0.0], [2.0]]


def test_points_a_little_outside_get_weights_of_sum_one():
    for domain in (L1Ball(1.0), WeightedL1Ball([1.0, 1.0, 1.0], 1.0), UnitSimplex(1.0), Simplex(1.0)):
        for excess in (1e-15, 1e-12, -1e-15):
            x = np.array([0.25, 0.75 + excess, -0.0])
            found = decomposed(domain, x)
            assert [atom.where.tolist() for _, atom in found] == [[0], [1]]
            assert sum(weight for weight, _ in found) == pytest.approx(1.0, abs=1e-15)
    found = decomposed(Simplex(1.0), np.array([1.0, -1e-17]))
    assert [weight for weight, _ in found] == [1.0]


def test_atoms_that_underflow_are_the_origin():
    ball = WeightedL1Ball([1.0, 1e200, 1e220], 1e-150)
    assert [atom.where.tolist() for atom in vertices(ball, np.array([1.0, 1.0, 1.0]), 5)] == [[0], []]
    assert sum(weight for weight, _ in decomposed(ball, np.array([1e-151, 0.0, 0.0]))) == pytest.approx(1.0)


def test_large_sets_are_answered_without_a_loop_over_their_variables():
    d = 100_000
    c = np.random.default_rng(9).standard_normal(d)
    for domain in (L1Ball(1.0), WeightedL1Ball(np.full(d, 2.0), 1.0), Simplex(1.0), UnitSimplex(1.0)):
        atoms = vertices(domain, c, 20)
        order = np.argsort(c if "Simplex" in type(domain).__name__ else -np.abs(c), kind="stable")
        assert [atom.where[0] for atom in atoms] == order[:20].tolist()
    parts = blocks(Box(-1.0, 1.0, d), d)
    assert len(parts) == d
    assert isinstance(parts[-1], Block)
    assert (parts[-1].where.tolist(), parts[-1].domain.dimension) == ([d - 1], 1)


NUMBERS = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e150, -1e150]), st.floats(-1e150, 1e150))


@given(arrays(float, st.integers(1, 12), elements=NUMBERS), st.integers(0, 15))
def test_the_least_keys_are_those_of_a_stable_sort(keys, count):
    assert least(keys, count).tolist() == np.argsort(keys, kind="stable")[:count].tolist()


@st.composite
def axis_sets(draw):
    """One of the sets whose vertices lie on the axes, with its number of variables."""
    d, size = draw(st.integers(1, 8)), draw(st.sampled_from([1.0, 0.3, 1e-8, 1e8, 7.0]))
    weights = draw(arrays(float, d, elements=st.floats(1e-6, 1e6)))
    return draw(st.sampled_from([L1Ball(size), WeightedL1Ball(weights, size), Simplex(size), UnitSimplex(size)])), d


@given(axis_sets(), st.data())
def test_sets_with_vertices_on_the_axes_keep_their_promises_on_any_numbers(sized, data):
    domain, d = sized
    c = data.draw(arrays(float, d, elements=NUMBERS))
    points = check_vertices(domain, c, data.draw(st.integers(1, 12)))
    shares = data.draw(arrays(float, len(points), elements=st.one_of(st.just(0.0), st.floats(0.0, 1.0))))
    if shares.sum() > 0.0:
        x = (shares / shares.sum()) @ np.array(points)
        found = check_mean(domain, x)
        assert len(found) <= np.count_nonzero(x) + 1
    for point in points:
        assert [weight for weight, _ in check_mean(domain, point)] == [1.0]
