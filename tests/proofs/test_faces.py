"""The dimension of the set of minimisers, against linear programs that find its extent in every direction."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from cases import CASES, COMPOSED, case_of
from scipy.optimize import linprog

from tiebreak import (
    ActiveSet,
    Box,
    Columns,
    FiniteSum,
    Huber,
    Hull,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    OnPart,
    Problem,
    Product,
    Simplex,
    SquaredNorm,
    SummedSquares,
    UnitSimplex,
    minimize,
)
from tiebreak.domains.atoms import has_vertices
from tiebreak.engine import interpreted
from tiebreak.proofs.faces import Extent, extent_of

SETS = [case for case in [*CASES, *COMPOSED] if has_vertices(case.make(np.random.default_rng(0), 4)[0])]
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@pytest.fixture(autouse=True)
def in_python():
    """Small problems over many sets and losses would take long to compile."""
    with interpreted():
        yield


def lowest(lower, domain) -> Problem:
    return Problem(SquaredNorm(), lower, domain)


def extent(lower, domain) -> Extent | None:
    problem = lowest(lower, domain)
    return extent_of(problem, [minimize(problem, ActiveSet(level="lower"), max_iterations=10**9).x])


class Program:
    """The points of a set, as its case states it, with some equations and inequalities more."""

    def __init__(self, domain, d):
        if isinstance(domain, (Columns, Product)):
            inner = [(domain.set, domain.rows)] * domain.columns if isinstance(domain, Columns) else None
            inner = inner or [(part, where.stop - where.start) for _, part, where in domain.named_parts()]
            parts = [Program(*each) for each in inner]
            self.lift, self.upper, self.equal = (
                scipy.linalg.block_diag(*(getattr(part, name) for part in parts)) for name in ("lift", "upper", "equal")
            )
            self.most, self.sides = (np.concatenate([getattr(part, name) for part in parts]) for name in ("most", "sides"))
            self.bounds = np.vstack([part.bounds for part in parts])
            return
        model = case_of(domain).linear(domain, d)
        self.lift = model.get("lift", np.eye(d))
        count = self.lift.shape[1]
        self.upper, self.equal = (np.reshape(model.get(name, []), (-1, count)) for name in ("A_ub", "A_eq"))
        self.most, self.sides = (np.asarray(model.get(name, []), dtype=float) for name in ("b_ub", "b_eq"))
        self.bounds = np.array(np.broadcast_to(np.array(model["bounds"], dtype=object), (count, 2)), dtype=float)

    def where(self, equal, sides, upper=None, most=()) -> Program:
        self.equal, self.sides = np.vstack([self.equal, equal @ self.lift]), np.concatenate([self.sides, sides])
        if upper is not None:
            self.upper, self.most = np.vstack([self.upper, upper @ self.lift]), np.concatenate([self.most, most])
        return self

    def least(self, c) -> np.ndarray:
        found = linprog(
            self.lift.T @ c,
            A_ub=self.upper,
            b_ub=self.most,
            A_eq=self.equal,
            b_eq=self.sides,
            bounds=self.bounds,
            method="highs",
            options=TIGHT,
        )
        assert found.x is not None, found.message
        return self.lift @ found.x

    def dimension(self, rng, size) -> int:
        """Look in random directions across those in which it is known to extend."""
        basis = np.zeros((self.lift.shape[0], 0))
        while basis.shape[1] < len(basis):
            c = rng.standard_normal(len(basis))
            for _ in range(2):
                c -= basis @ (basis.T @ c)
            way = self.least(-c) - self.least(c)
            if c @ way <= 1e-6 * size * np.linalg.norm(c):
                break
            way -= basis @ (basis.T @ way)
            basis = np.column_stack([basis, way / np.linalg.norm(way)])
        return basis.shape[1]


def targets(A, domain, kind, rng) -> np.ndarray:
    """Predictions of a point inside, of the middle of a face, or out of reach."""
    d, n = A.shape[1], len(A)
    if kind == "inside":
        return A @ (0.5 * domain.middle(d) + 0.5 * domain.lmo(rng.standard_normal(d)))
    if kind == "face":
        return A @ np.mean([domain.lmo(rng.integers(-1, 2, d).astype(float)) for _ in range(2)], axis=0)
    return A @ domain.lmo(rng.integers(-1, 2, d).astype(float)) + domain.diameter * rng.integers(-3, 4, n)


@pytest.mark.parametrize("kind", ["inside", "face", "outside"])
@pytest.mark.parametrize("case", SETS, ids=lambda case: case.name)
def test_over_every_set_it_is_that_of_linear_programs(case, kind):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        domain, d = case.make(rng, min(case.largest, 8))
        A = rng.integers(-2, 3, (int(rng.integers(1, d + 2)), d)).astype(float)
        problem = lowest(LeastSquares(A, targets(A, domain, kind, rng)), domain)
        x = minimize(problem, ActiveSet(level="lower"), max_iterations=10**9).x
        known = Program(domain, d).where(A, A @ x).dimension(rng, domain.diameter)
        assert extent_of(problem, [x]) == Extent(known, known), seed


@pytest.mark.parametrize("make", [L1Ball, Simplex, lambda size: Box(-size, size, 7)])
def test_of_logistic_losses_and_sums_it_is_too(make):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A, B = (rng.integers(-1, 2, (n, 7)).astype(float) for n in (3, 2))
        domain = make(0.7)
        sums = Logistic(A, rng.choice([-1.0, 1.0], 3)) + 2.0 * LeastSquares(
            scipy.sparse.csr_array(B), rng.standard_normal(2)
        )
        problem = lowest(sums, domain)
        x = minimize(problem, ActiveSet(level="lower"), max_iterations=10**9).x
        known = Program(domain, 7).where(np.vstack([A, B]), np.vstack([A, B]) @ x).dimension(rng, domain.diameter)
        assert extent_of(problem, [x]) == Extent(known, known), seed


def test_rows_far_away_leave_a_huber_loss_more_to_choose():
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A, domain = rng.integers(-2, 3, (5, 6)).astype(float), L1Ball(1.5)
        b = 4.0 * rng.standard_normal(5)
        problem = lowest(Huber(A, b, delta=0.5), domain)
        x = minimize(problem, ActiveSet(level="lower"), max_iterations=10**9).x
        residual, gradient = A @ x - b, problem.lower.value_and_gradient(x)[1]
        if np.abs(np.abs(residual) - 0.5).min() < 1e-4:
            continue
        far, signs = np.abs(residual) > 0.5, np.sign(residual)
        program = Program(domain, 6).where(
            np.vstack([A[~far], gradient]),
            np.append((A @ x)[~far], gradient @ x),
            -signs[far, None] * A[far],
            -0.5 - signs[far] * b[far],
        )
        known = program.dimension(rng, domain.diameter)
        assert extent_of(problem, [x]) == Extent(known, known), seed
        found.append(known)
    assert 0 in found
    assert max(found) > 0
    # One row, far away: only its sign counts, and all of the face of ±e that it points to minimises g.
    assert extent(Huber([[1.0, 1.0, 0.0]], [9.0], delta=0.5), L1Ball(1.0)) == Extent(1, 1)


def test_a_row_at_the_end_of_its_line_is_not_told():
    problem = lowest(Huber([[1.0, 0.0]], [1.0], delta=1.0), L1Ball(2.0))
    assert extent_of(problem, [np.array([1.0, 0.0])]) == Extent(1, 1)
    at_the_end = lowest(Huber([[1.0, 0.0], [1.0, 0.0]], [1.0, -1.0], delta=1.0), L1Ball(2.0))  # g is flat from −0 to 0
    found = extent_of(at_the_end, [np.zeros(2)])
    assert found.least <= 1 <= found.most


@pytest.mark.parametrize(
    ("lower", "domain", "dimension"),
    [
        (LeastSquares([[1.0, 1.0]], [5.0]), Hull([[1.0, 2.0]]), 0),
        (LeastSquares([[1.0, 1.0]], [5.0]), Box([1.0, 2.0], [1.0, 2.0]), 0),
        (LeastSquares([[0.0, 0.0]], [5.0]), L1Ball(1.0), 2),  # g is the same everywhere
        (LeastSquares([[0.0, 0.0]], [5.0]), Simplex(1.0), 1),
        (LeastSquares([[0.0, 0.0]], [5.0]), Hull([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [1.0, 1.0]]), 1),
        (LeastSquares([[1.0]], [0.5]), L1Ball(1.0), 0),
        (LeastSquares([[0.0]], [0.5]), L1Ball(1.0), 1),
        (LeastSquares([[1.0, 1.0, 1.0]], [1.0]), L1Ball(1.0), 2),  # the whole face
        (LeastSquares([[1.0, 1.0, -1.0]], [1.0]), UnitSimplex(1.0), 1),
        (LeastSquares([[1.0, 0.0], [0.0, 1e-9]], [9.0, 0.0]), Box(-1.0, 1.0, 2), 0),  # badly scaled, not singular
        (LeastSquares([[1.0, 0.0, 0.0]], [0.0]), Simplex(1.0), 1),  # a face of the simplex
        (SquaredNorm(np.ones(3)), L1Ball(1.0), 0),
    ],
)
def test_sets_of_one_point_zeros_and_whole_faces(lower, domain, dimension):
    assert extent(lower, domain) == Extent(dimension, dimension)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_units_do_not_matter(size, unit):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 7))
    A[:, 5] = A[:, 4]
    for reach in (0.1, 1.0, 10.0):
        plain, scaled = (
            extent(LeastSquares(u * A, u * s * np.ones(4)), L1Ball(s * reach)) for u, s in ((1, 1), (unit, size))
        )
        assert scaled == plain
        assert plain.known is not None


def test_losses_of_some_parts_and_sums_of_rows_are_known():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((3, 5)), rng.standard_normal(3)
    both = Product(w=(L1Ball(50.0), 5), v=(Box(0.0, 1.0, 2), 2))
    assert extent(OnPart(LeastSquares(A, b), "w"), both) == Extent(4, 4)  # two of w, and all of v
    assert extent(OnPart(LeastSquares(A, b), "w") + OnPart(SquaredNorm(), "v"), both) == Extent(2, 2)
    sums = SummedSquares([(A, b)])
    assert extent(sums, L1Ball(50.0)) == Extent(2, 2)
    many = np.vstack([A] * 4)
    assert extent(LeastSquares(many, np.tile(b, 4), sample_weight=np.r_[np.ones(11), 0.0]), L1Ball(50.0)) == Extent(2, 2)


def test_a_point_that_is_nearly_a_minimiser_adds_what_it_knows():
    problem = lowest(LeastSquares([[1.0, 1.0, 1.0]], [1.0]), L1Ball(1.0))
    corner, middle = np.array([1.0, 0.0, 0.0]), np.array([0.3, 0.3, 0.4 - 1e-9])
    assert extent_of(problem, [corner, middle]) == Extent(2, 2)


def test_what_is_not_known_has_none():
    steep = FiniteSum(1, 3, lambda x, indices: (0.5 * float(x @ x), x.copy()), convex=True)
    for lower, domain in ((steep, L1Ball(1.0)), (LeastSquares(np.eye(2, 3), np.ones(2)), L2Ball(1.0))):
        assert extent_of(lowest(lower, domain), [np.zeros(3)]) is None
    steep = FiniteSum(1, 3, steep.value_and_grad, convex=True, strong_convexity=1.0)
    assert extent_of(lowest(steep, L2Ball(1.0)), [np.zeros(3)]) == Extent(0, 0)


def test_the_extent_says_what_is_known():
    assert Extent(0, 0).known == 0
    assert Extent(1, 3).known is None
