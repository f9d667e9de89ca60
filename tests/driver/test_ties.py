"""Is there a tie? How f varies over the minimisers of g, against linear programs and corners."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from cases import CASES
from scipy.optimize import linprog

from tiebreak import (
    Box,
    FiniteSum,
    Huber,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    Problem,
    Simplex,
    SquaredNorm,
    Stream,
    Ties,
    certify,
    data,
    minimize,
    ties,
)
from tiebreak.domains.atoms import has_vertices
from tiebreak.engine import interpreted
from tiebreak.proofs.faces import Extent
from tiebreak.studies import regression

POLYTOPES = [case for case in CASES if case.linear is not None and has_vertices(case.make(np.random.default_rng(0), 4)[0])]
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
FEW = {"max_queries": 3000}  # where a method is not the point


@pytest.fixture
def in_python():
    """Small problems over many sets would take long to compile."""
    with interpreted():
        yield


def linear(c: np.ndarray) -> FiniteSum:
    return FiniteSum(1, c.size, lambda x, indices: (float(c @ x), c.copy()), convex=True, lipschitz=0.0)


def least_of(case, domain, A, fit, c) -> np.ndarray:
    """Minimise ⟨c, s⟩ over the points of a set with A s = fit, by HiGHS."""
    model = case.linear(domain, c.size)
    lift = model.get("lift", np.eye(c.size))
    always = ([model["A_eq"]], [model["b_eq"]]) if "A_eq" in model else ([], [])
    found = linprog(
        lift.T @ c,
        A_ub=model.get("A_ub"),
        b_ub=model.get("b_ub"),
        A_eq=np.vstack([*always[0], A @ lift]),
        b_eq=np.concatenate([*always[1], fit]),
        bounds=model["bounds"],
        method="highs",
        options=TIGHT,
    )
    assert found.x is not None, found.message
    return lift @ found.x


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("case", POLYTOPES, ids=lambda case: case.name)
def test_of_a_linear_f_the_largest_is_that_of_a_linear_program(case):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        domain, d = case.make(rng, min(case.largest, 8))
        A, c = rng.integers(-2, 3, (max(d // 3, 1), d)).astype(float), rng.standard_normal(d)
        fit = A @ (0.5 * domain.middle(d) + 0.5 * domain.lmo(rng.standard_normal(d)))
        found = ties(Problem(linear(c), LeastSquares(A, fit), domain), **FEW)
        size = np.linalg.norm(c) * domain.diameter
        assert found.exact
        assert found.largest.upper == pytest.approx(c @ least_of(case, domain, A, fit, -c), abs=1e-6 * size)
        assert found.floor <= c @ least_of(case, domain, A, fit, c) + 1e-9 * size


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("case", POLYTOPES, ids=lambda case: case.name)
def test_of_a_convex_f_no_corner_in_a_few_random_directions_is_much_larger(case):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        domain, d = case.make(rng, min(case.largest, 6))
        A, B = rng.integers(-2, 3, (max(d // 3, 1), d)).astype(float), rng.standard_normal((d + 2, d))
        fit = A @ (0.5 * domain.middle(d) + 0.5 * domain.lmo(rng.standard_normal(d)))
        upper = LeastSquares(B, B @ domain.lmo(rng.standard_normal(d)))
        found = ties(Problem(upper, LeastSquares(A, fit), domain))
        corners = [least_of(case, domain, A, fit, rng.standard_normal(d)) for _ in range(10)]
        values, unit = [upper.value(corner) for corner in corners], upper.value(domain.middle(d))
        assert found.largest.upper >= 0.9 * max(values) - 1e-9 * unit
        assert found.floor <= min(values) + 1e-9 * unit
        assert found.largest.lower_gap_bound <= 1e-10 * (found.problem.lower.value(domain.middle(d)) + domain.diameter**2)
        assert found.spread >= 0.0
        assert found.largest.x.shape == (d,)


def test_a_square_has_its_largest_norm_at_a_corner():
    """All points of the box minimise g."""
    center = np.array([0.2, -0.1, 0.3])
    found = ties(Problem(SquaredNorm(center), LeastSquares([[0.0, 0.0, 0.0]], [1.0]), Box(-1.0, 1.0, 3)))
    assert found.dimension == 3
    assert found.unique is False
    assert found.largest.upper == pytest.approx(0.5 * (1.2**2 + 1.1**2 + 1.3**2), rel=1e-9)
    assert found.least.upper == pytest.approx(0.0, abs=1e-20)
    assert found.near is None
    assert "The middle of the set minimises g" in str(found)


def test_a_planted_face_has_its_corners(in_python):
    """Four features are equal, and the target is out of reach: the minimisers are the means of four corners."""
    rng = np.random.default_rng(0)
    A = 0.1 * rng.standard_normal((3, 8))
    A[:, :4] = rng.standard_normal((3, 1))
    lower, center = LeastSquares(A, 5.0 * A[:, 0]), rng.standard_normal(8)
    found = ties(Problem(SquaredNorm(center), lower, L1Ball(2.0)))
    assert (found.dimension, found.unique, found.exact) == (3, False, False)
    corners = 2.0 * np.eye(8)[:4]
    assert found.largest.upper == pytest.approx(max(0.5 * np.sum((corner - center) ** 2) for corner in corners), rel=1e-9)
    pairs = itertools.pairwise(corners)
    assert all(lower.value(first) == pytest.approx(lower.value(second)) for first, second in pairs)
    first, second, _ = found.sentences.splitlines()
    assert first == "g has several minimisers: a set of dimension 3, to rounding."
    assert second.startswith("f is ")
    assert second.endswith(" at the worst that was found.")
    assert found.floor <= found.least.upper <= found.largest.upper


def test_generated_page_views_have_no_tie():
    parts = data.split(data.pageviews(0), 0)
    problem = Problem(LeastSquares(*parts.validation), LeastSquares(*parts.train), L1Ball(10.0))
    found = ties(problem)
    assert isinstance(found, Ties)
    assert (found.dimension, found.unique, found.exact) == (0, True, True)
    assert found.spread == 0.0
    assert found.floor <= found.least.upper <= found.ceiling <= found.floor + 1e-4 * found.least.upper
    assert found.near.within
    assert found.fall / found.least.upper == pytest.approx(0.988, abs=1e-3)
    said = found.sentences.splitlines()
    assert said[0].startswith("g has one minimiser (")
    assert said[0].endswith("): f has nothing to choose.")
    assert said[1] == "Keeping 99.99 % of what g can gain would let f fall by 98.8 %, from 0.0002327 to 2.762e-06."
    assert [row.split("  ")[0] for row in found.table().splitlines()] == ["", "least f", "keeping 99.99 %"]
    assert str(found) == f"{found.sentences}\n\n{found.table()}" == repr(found)


def test_planted_page_views_have_a_tie():
    planted = regression.planted(0)
    problem = Problem(SquaredNorm(), LeastSquares(*planted.train), L1Ball(10.0))
    found = ties(problem, starts=0)
    assert (found.dimension, found.unique) == (730 - 356, False)
    assert found.largest.upper > 2.0 * found.least.upper
    assert "largest f found" in found.table()


def test_where_more_corners_are_free_than_there_are_rows_several_minimisers_are_proven():
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((3, 8)), np.full(8, 0.1)
    found = ties(Problem(SquaredNorm(x), LeastSquares(A, A @ x), L1Ball(1.0)))
    assert (found.dimension, found.unique, found.proven) == (5, False, True)
    assert found.least.unique is False
    assert str(found).startswith("g has several minimisers (proven): a set of dimension 5, to rounding.\nf is ")


def test_sentences_say_what_is_known():
    """As of other extents: those that rounding leaves open are hard to plant."""
    found = ties(Problem(SquaredNorm(), LeastSquares([[1.0, 3.0]], [1.0]), L1Ball(2.0)), starts=0)
    for extent, dimension, unique, words in (
        (Extent(0, 2), None, None, "It is not known how many minimisers g has: they may be a set of dimension 0 to 2."),
        (Extent(1, 2), None, False, "g has several minimisers: a set of dimension 1 to 2, to rounding."),
        (None, None, None, "It is not known how many minimisers g has."),
    ):
        other = dataclasses.replace(found, extent=extent, proven=False)
        assert (other.dimension, other.unique) == (dimension, unique)
        assert other.sentences.splitlines()[0] == words
    same = dataclasses.replace(found, largest=found.least.certificate)
    assert same.spread == 0.0
    assert "f is 0.05 at all that were found." in same.sentences
    assert "at the worst." in dataclasses.replace(found, exact=True).sentences
    assert "leaves f as it is" in dataclasses.replace(found, near=found.least).sentences


def test_the_near_tie_is_that_of_minimize(in_python):
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((n, 9)), rng.standard_normal(n)) for n in (20, 5))
    problem = Problem(upper, lower, L1Ball(1.0))
    found = ties(problem, keep=0.9)
    gain = lower.value(np.zeros(9)) - minimize(problem).lower
    known = minimize(problem._replace(tolerance=0.1 * gain))
    assert found.near.upper == pytest.approx(known.upper, rel=1e-6)
    assert found.fall == pytest.approx(found.least.upper - known.upper, rel=1e-6)
    assert found.keep == 0.9
    assert "Keeping 90 % of what g can gain" in str(found)
    given = ties(problem._replace(tolerance=0.1 * gain), keep=0.9)  # its own tolerance is left aside
    assert given.least.upper == found.least.upper
    assert given.problem.tolerance == 0.0


@pytest.mark.parametrize("lower", [SquaredNorm(np.array([3.0, 0.0])), LeastSquares(np.eye(2), [3.0, 0.0])])
def test_a_strongly_convex_g_has_one_minimiser_for_certain(lower):
    found = ties(Problem(LeastSquares([[1.0, 1.0]], [1.0]), lower, L1Ball(1.0)))
    assert (found.unique, found.proven, found.exact, found.spread) == (True, True, True, 0.0)
    assert str(found).startswith("g has one minimiser (proven): f has nothing to choose.")
    assert found.largest.upper == found.least.upper


def test_where_f_is_no_loss_of_a_linear_model_one_minimiser_is_taken_as_it_is():
    c = np.array([1.0, 2.0, 3.0])
    found = ties(Problem(linear(c), LeastSquares([[1.0, 0.0, 0.0]], [9.0]), L1Ball(1.0)), **FEW)
    assert (found.unique, found.exact) == (True, True)
    np.testing.assert_array_equal(found.least.x, [1.0, 0.0, 0.0])
    assert found.least.upper == found.largest.upper == 1.0


def test_f_need_not_be_convex(in_python):
    upper = FiniteSum(1, 2, lambda x, indices: (float(np.sin(x).sum()), np.cos(x)), convex=False)
    found = ties(Problem(upper, LeastSquares([[1.0, 1.0]], [1.0]), Box(0.0, 1.0, 2)), **FEW)
    assert found.dimension == 1
    assert found.largest.upper >= np.sin(1.0) - 1e-9  # at a corner; in the middle it is 2 sin ½
    assert not found.exact


def test_what_a_small_budget_finds_is_not_called_the_least_f():
    rng = np.random.default_rng(3)
    A, B = (rng.standard_normal((10, 12)) * np.logspace(0, 2, 12) for _ in range(2))
    problem = Problem(LeastSquares(B, rng.standard_normal(10)), LeastSquares(A, rng.standard_normal(10)), L2Ball(5.0))
    sentences = ties(problem, max_queries=3000, keep=0.9).sentences
    assert "The least f over them is at least 0 (proven)" in sentences
    assert "What a near tie buys was not found: raise `max_queries`." in sentences


def test_other_sets_have_a_least_f_and_no_dimension():
    problem = Problem(SquaredNorm(np.ones(3)), LeastSquares([[1.0, 1.0, 1.0]], [1.0]), L2Ball(2.0))
    found = ties(problem, max_queries=20_000)
    assert (found.dimension, found.unique, found.largest, found.extent) == (None, None, None, None)
    assert np.isnan(found.spread)
    assert found.least.upper == pytest.approx(2.0 / 3.0, abs=0.05)
    assert str(found).startswith("It is not known how many minimisers g has.\nThe least f over them is")


def test_losses_of_all_kinds(in_python):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((4, 6)), rng.standard_normal(4)
    for lower in (Logistic(A, np.sign(b)), Huber(A, b), 3.0 * LeastSquares(A, b) + Huber(A, b)):
        for domain in (L1Ball(1.0), Simplex(1.0), L1Ball(100.0)):
            found = ties(Problem(Huber(A[:, ::-1], b), lower, domain))
            assert found.unique is not None
            assert found.floor <= found.least.upper + 1e-6
            assert found.largest.lower_gap_bound <= 1e-9
            assert certify(found.problem, found.largest.x).upper == found.largest.upper


@pytest.mark.parametrize("keep", [0.0, 1.0, 1.5, -1.0, np.nan, "much", None])
def test_a_share_to_keep_is_between_0_and_1(keep):
    problem = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0))
    with pytest.raises(ValueError, match="`keep` must be a share above 0 and below 1"):
        ties(problem, keep=keep)


@pytest.mark.parametrize(("name", "value"), [("starts", -1), ("max_queries", 0), ("seed", 0.5), ("progress", "yes")])
def test_arguments_that_are_not_valid_are_named(name, value):
    problem = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0))
    with pytest.raises(ValueError, match=f"`{name}` must"):
        ties(problem, **{name: value})


def test_streams_are_refused():
    stream = Stream.of_rows(lambda rng, n: (rng.standard_normal((n, 2)), rng.standard_normal(n)), 2)
    for problem in (
        Problem(SquaredNorm(), stream, L1Ball(1.0)),
        Problem(stream, LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(1.0)),
    ):
        with pytest.raises(ValueError, match="`problem` must not be one of a stream"):
            ties(problem)
    with pytest.raises(ValueError, match="`problem` must be a Problem"):
        ties(SquaredNorm())
