"""Columns and products: their parts, their cuts in closed form, and who is asked how often."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak import CutStatus, Domain, L1Ball, LeastSquares, Problem, SpiderFW, SquaredNorm, minimize
from tiebreak.domains import Birkhoff, Columns, L2Ball, Product, Simplex, contains, diameter, lmo, projects
from tiebreak.domains.cuts.search import dual_search
from tiebreak.engine import compilable, interpreted


class CountingBox(Domain):
    """The cube [−1, 1]^d as a user would write it in Python, counting the questions."""

    def __init__(self, dimension):
        self.dimension = dimension
        self.asked = 0


@lmo.register(CountingBox)
def lmo_counting_box(domain, c, out):
    domain.asked += 1
    out[:] = -np.sign(c)


@diameter.register(CountingBox)
def diameter_counting_box(domain):
    return 2.0 * math.sqrt(domain.dimension)


@contains.register(CountingBox)
def contains_counting_box(domain, x, tol):
    return bool(np.abs(x).max() <= 1.0 + tol)


def dictionary(rng):
    """The dictionary problem's set: D with columns in unit balls, X with columns in ℓ1 balls."""
    return Product(D=Columns(L2Ball(1.0), (4, 3)), X=Columns(L1Ball(3.0), (3, 5))), *rng.standard_normal((2, 27))


def gap_of(domain, c, a, b, cut):
    """The duality gap of a cut's answer, relative."""
    low_c, low_a = c @ domain.lmo(c), a @ domain.lmo(a)
    dual = (c + cut.multiplier * a) @ domain.lmo(c + cut.multiplier * a) - cut.multiplier * b
    return (c @ cut.point - dual) / (abs(low_c) + cut.multiplier * abs(low_a))


def test_columns_are_contiguous_and_shown_as_a_matrix():
    x = np.arange(6.0)
    matrix = Columns(L1Ball(1.0), (2, 3)).parts(x)["x"]
    assert matrix.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    matrix[0, 1] = 9.0
    assert x[2] == 9.0


def test_columns_of_balls_are_minimised_projected_and_measured_column_by_column():
    columns = Columns(L2Ball(2.0), (2, 2))
    assert columns.lmo([3.0, -4.0, 0.0, 1.0]) == pytest.approx([-1.2, 1.6, 0.0, -2.0])
    assert columns.project([6.0, 8.0, 0.5, 0.0]) == pytest.approx([1.2, 1.6, 0.5, 0.0])
    assert columns.diameter == pytest.approx(4.0 * math.sqrt(2.0))
    assert columns.contains([2.0, 0.0, 0.0, -2.0])
    assert not columns.contains([2.0, 0.1, 0.0, 0.0])


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6])
def test_the_closed_form_of_ball_columns_is_the_kkt_formula_and_agrees_with_the_search(share):
    rng = np.random.default_rng(0)
    domain = Columns(L2Ball(1.0), (25, 50))
    c, a = rng.standard_normal((2, domain.dimension))
    c -= 0.5 * a
    low = a @ domain.lmo(a)
    b = low * (1.0 - share)
    cut = domain.cut_lmo(c, a, b)
    assert cut.status is CutStatus.ACTIVE
    assert a @ cut.point == pytest.approx(b, rel=1e-12)
    blend = domain.parts(c + cut.multiplier * a)["x"]
    np.testing.assert_allclose(domain.parts(cut.point)["x"], -blend / np.linalg.norm(blend, axis=0), atol=1e-6)
    assert gap_of(domain, c, a, b, cut) <= 1e-13
    out = np.empty_like(c)
    status, multiplier = dual_search(domain, c, a, b, out)
    assert status == CutStatus.ACTIVE
    assert multiplier == pytest.approx(cut.multiplier, rel=1e-5)
    assert c @ out == pytest.approx(c @ cut.point, rel=1e-12)


def test_a_jump_of_the_slope_is_met_by_a_mean_of_both_sides():
    # At λ = 1 the first column of c + λ a is zero, and any point of its ball will do there.
    domain = Columns(L2Ball(1.0), (2, 2))
    c, a = np.array([1.0, 2.0, 1.0, 0.0]), np.array([-1.0, -2.0, 0.0, 1.0])
    free = a @ domain.lmo(c + a)
    for b in (free - 0.5, free, free + 0.5):
        cut = domain.cut_lmo(c, a, b)
        assert cut.multiplier == pytest.approx(1.0, rel=1e-9)
        assert a @ cut.point == pytest.approx(b, abs=1e-12)
        assert cut.point[2:] == pytest.approx([-math.sqrt(0.5), -math.sqrt(0.5)], abs=1e-7)
        assert cut.point[1] == pytest.approx(2.0 * cut.point[0])


def test_nearly_parallel_columns_lose_no_digits():
    rng = np.random.default_rng(1)
    domain = Columns(L2Ball(1.0), (3, 4))
    for tilt in 10.0 ** -np.arange(0.0, 18.0, 2.0):
        c = rng.standard_normal(12)
        a = -c + tilt * rng.standard_normal(12)
        b = 0.3 * (a @ domain.lmo(a))
        cut = domain.cut_lmo(c, a, b)
        assert a @ cut.point <= b + 1e-12
        assert domain.contains(cut.point, 1e-12)
        assert gap_of(domain, c, a, b, cut) <= 1e-12


def test_columns_that_do_not_matter_to_an_empty_cut_are_still_the_best():
    domain = Columns(L2Ball(1.0), (1, 2))
    cut = domain.cut_lmo([1.0, -3.0], [2.0, 0.0], -5.0)
    assert cut.status is CutStatus.EMPTY
    assert cut.point.tolist() == [-1.0, 1.0]


def test_huge_and_tiny_numbers_do_not_overflow():
    rng = np.random.default_rng(2)
    for domain in (
        Columns(L2Ball(1.0), (3, 2)),
        Columns(L1Ball(1.0), (3, 2)),
        Product(u=(L2Ball(1.0), 3), v=(L1Ball(1.0), 3)),
    ):
        c, a = rng.standard_normal((2, 6))
        b = 0.5 * (a @ domain.lmo(a))
        plain = domain.cut_lmo(c, a, b)
        for size_c, size_a in [(1e200, 1e200), (1e-200, 1e200), (1e200, 1e-200), (1e-300, 1.0)]:
            cut = domain.cut_lmo(c * size_c, a * size_a, b * size_a)
            assert cut.status is plain.status
            assert c @ cut.point == pytest.approx(c @ plain.point, rel=1e-9)
            assert a @ cut.point <= b + 1e-10


def test_a_product_gives_named_views_of_one_vector():
    domain, _, _ = dictionary(np.random.default_rng(0))
    x = np.arange(27.0)
    parts = domain.parts(x)
    assert domain.dimension == 27
    assert {name: part.shape for name, part in parts.items()} == {"D": (4, 3), "X": (3, 5)}
    assert parts["D"][:, 1].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert parts["X"][:, 0].tolist() == [12.0, 13.0, 14.0]
    parts["X"][:] = 0.0
    assert x[12:].tolist() == [0.0] * 15


def test_products_nest_and_name_the_parts_of_parts():
    inner = Product(u=(L1Ball(1.0), 2), v=(L1Ball(1.0), 1))
    domain = Product(first=inner, last=(L1Ball(1.0), 3))
    assert {name: part.size for name, part in domain.parts(np.zeros(6)).items()} == {"first.u": 2, "first.v": 1, "last": 3}
    assert domain.lmo([1.0, 2.0, -3.0, 0.0, -1.0, 0.0]).tolist() == [0.0, -1.0, 1.0, 0.0, 1.0, 0.0]


def test_a_product_of_one_part_is_that_part_with_a_name():
    domain = Product(w=(L1Ball(2.0), 3))
    cut = domain.cut_lmo([1.0, -3.0, 0.0], [0.0, 1.0, 0.0], 1.0)
    assert cut.point.tolist() == L1Ball(2.0).cut_lmo([1.0, -3.0, 0.0], [0.0, 1.0, 0.0], 1.0).point.tolist()
    assert list(domain.parts(cut.point)) == ["w"]


def test_a_cut_through_curved_and_polyhedral_parts_is_optimal():
    rng = np.random.default_rng(3)
    for share in (0.05, 0.3, 0.7):
        domain, c, a = dictionary(rng)
        b = (1.0 - share) * (a @ domain.lmo(a))
        cut = domain.cut_lmo(c, a, b)
        assert a @ cut.point <= b + 1e-12
        assert domain.contains(cut.point, 1e-12)
        assert gap_of(domain, c, a, b, cut) <= 1e-12


def test_a_cut_on_one_part_is_that_part_alone():
    rng = np.random.default_rng(4)
    domain, c, a = dictionary(rng)
    a[12:] = 0.0
    part = Columns(L2Ball(1.0), (4, 3))
    b = 0.6 * (a[:12] @ part.lmo(a[:12]))
    cut, alone = domain.cut_lmo(c, a, b), part.cut_lmo(c[:12], a[:12], b)
    assert cut.point[:12].tolist() == alone.point.tolist()
    assert cut.multiplier == alone.multiplier
    assert cut.point[12:].tolist() == Columns(L1Ball(3.0), (3, 5)).lmo(c[12:]).tolist()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_part_that_is_not_in_the_cut_is_asked_once(place):
    rng = np.random.default_rng(5)
    boxes = [CountingBox(4) for _ in range(3)]
    domain = Product(u=boxes[0], v=boxes[1], w=boxes[2])
    c, a = rng.standard_normal((2, 12))
    a[4 * place : 4 * place + 4] = 0.0
    cut = domain.cut_lmo(c, a, -0.6 * np.abs(a).sum())
    assert cut.status is CutStatus.ACTIVE
    assert [box.asked for k, box in enumerate(boxes) if k == place] == [1]
    assert min(box.asked for k, box in enumerate(boxes) if k != place) > 2


def test_a_part_in_plain_python_works_beside_compiled_ones():
    domain = Product(box=CountingBox(2), D=Columns(L2Ball(1.0), (2, 2)))
    assert not compilable(domain)
    assert compilable(Product(D=Columns(L2Ball(1.0), (2, 2)), x=(L1Ball(1.0), 2)))
    rng = np.random.default_rng(6)
    c, a = rng.standard_normal((2, 6))
    b = 0.5 * (a @ domain.lmo(a))
    cut = domain.cut_lmo(c, a, b)
    assert gap_of(domain, c, a, b, cut) <= 1e-12
    problem = Problem(SquaredNorm(), LeastSquares(a[None], [0.1]), domain)
    result = minimize(problem, SpiderFW(step=0.05, level="lower"), max_queries=200)
    assert set(result.parts) == {"box", "D"}
    assert domain.contains(result.x)


def test_a_part_without_projection_is_named():
    with pytest.raises(NotImplementedError, match="CountingBox has no `project`"):
        Product(x=(L1Ball(1.0), 2), box=CountingBox(2)).project(np.zeros(4))
    with pytest.raises(NotImplementedError, match="CountingBox has no `project`"):
        Columns(CountingBox(2), (2, 3)).project(np.zeros(6))


def test_the_diameter_of_a_product_adds_squares():
    assert Product(u=(L1Ball(1.5), 2), v=(L1Ball(2.0), 2)).diameter == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Columns(3.0, (2, 2)), "`set` must be a set such as L1Ball\\(radius\\), got 3.0"),
        (lambda: Columns(L1Ball(1.0), 4), "`shape` must be two whole numbers ≥ 1, got 4"),
        (lambda: Columns(L1Ball(1.0), (2, 3, 4)), "`shape` must be two whole numbers"),
        (lambda: Columns(L1Ball(1.0), (0, 3)), "`shape\\[0\\]` must be a whole number ≥ 1, got 0"),
        (lambda: Columns(L2Ball(1.0, [0.0, 1.0]), (3, 2)), "`shape` must have 2 rows, the dimension of `set`"),
        (lambda: Product(), "`parts` must name at least one set"),
        (lambda: Product(x=L1Ball(1.0)), "`x` must have a dimension, and L1Ball fits any: pass x="),
        (lambda: Product(x=(L1Ball(1.0), 0)), "`x\\[1\\]` must be a whole number ≥ 1, got 0"),
        (lambda: Product(x=(L2Ball(1.0, [0.0, 1.0]), 3)), "`x` has dimension 2, got 3"),
        (lambda: Product(x="ball"), "`x` must be a set, or a set and its dimension, got 'ball'"),
        (lambda: Product(**{"a b": (L1Ball(1.0), 2)}), "the name of a part must be an identifier"),
        (lambda: Product(x=(L1Ball(1.0), 2)).lmo([1.0]), "`c` must be a vector of 2 numbers"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_cut_that_touches_a_product_takes_the_best_point_of_the_face():
    """The curved part nears its end with 1/λ², while ties of the other part are broken at any λ."""
    product = Product(D=Columns(L2Ball(1.0), (2, 1)), w=(Simplex(1.0), 3))
    c, a = np.array([1.0, 0.5, 0.0, -0.2, -2.0]), np.array([0.3, -0.7, 1.0, 0.0, 0.0])
    with interpreted():
        cut = product.cut_lmo(c, a, a @ product.lmo(a))
    assert cut.point[2:].tolist() == [0.0, 0.0, 1.0]


def test_a_set_of_sets_projects_if_all_of_them_do():
    good, bad = Columns(L1Ball(1.0), (4, 2)), Columns(Birkhoff(2), (4, 2))
    assert projects(good)
    assert projects(Product(D=good, w=(L2Ball(1.0), 3)))
    assert not projects(bad)
    assert not projects(Columns(bad, (8, 2)))
    assert not projects(Product(D=good, inner=Product(w=(L2Ball(1.0), 3), P=bad)))
    with pytest.raises(NotImplementedError, match="Birkhoff has no `project`"):
        Product(D=good, P=bad).project(np.zeros(16))


def test_columns_in_l1_balls_agree_with_the_search_for_any_set():
    rng = np.random.default_rng(0)
    for k in range(60):
        domain = Columns(L1Ball(1.5), (1 + k % 5, 1 + k % 40))
        c, a = rng.standard_normal((2, domain.dimension))
        c[: domain.rows] *= k % 3 > 0  # a column of zeros
        a[-domain.rows :] *= k % 4 > 0
        free, low = a @ domain.lmo(c), a @ domain.lmo(a)
        b = low + rng.uniform(0.0, 1.0) * (free - low)
        cut, out = domain.cut_lmo(c, a, b), np.empty(domain.dimension)
        dual_search(domain, c, a, b, out)
        assert c @ cut.point == pytest.approx(c @ out, rel=1e-11, abs=1e-11)
        assert a @ cut.point <= b + 1e-12 * np.abs(a).sum()
        assert domain.contains(cut.point, 1e-12)
