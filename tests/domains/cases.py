"""The sets that the shared tests run on. A new set joins by being listed in ``CASES``, and so do columns and products of it.

A case says how to make a set of about a given size, and states the set a second time, independently of the library: its
support function, how far a point is outside, and its constraints for a solver.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy
import numpy as np
from scipy.optimize import linear_sum_assignment

from tiebreak import L1Ball
from tiebreak.domains import (
    Birkhoff,
    Box,
    CappedSimplex,
    Columns,
    GroupBall,
    Hull,
    KSparse,
    L2Ball,
    LInfBall,
    Polytope,
    Product,
    Simplex,
    UnitSimplex,
    WeightedL1Ball,
)
from tiebreak.domains.spectral import NuclearBall, Spectrahedron


class Case(NamedTuple):
    """One kind of set."""

    name: str
    make: Callable[[np.random.Generator, int], tuple[Any, int]]  # (rng, about how many variables) -> set, its dimension
    minimum: Callable[[Any, np.ndarray], float]  # min ⟨c, s⟩ over the set, in NumPy
    violation: Callable[[Any, np.ndarray], float]  # how far x is outside, relative to the size of the set; 0 inside
    constraints: Callable[[Any, cvxpy.Variable], list[Any]]  # the set for CVXPY
    linear: Callable[[Any, int], dict[str, Any]] | None = None  # in the words of SciPy's linprog, if it is a polytope
    largest: int = 12  # dimension in the property tests
    composed: bool = False  # whether it is another case inside columns or a product


def make_l2_ball(rng: np.random.Generator, d: int) -> tuple[L2Ball, int]:
    return L2Ball(rng.uniform(0.5, 3.0), rng.standard_normal(d) if rng.random() < 0.5 else None), d


def l2_center(z: L2Ball, d: int) -> np.ndarray:
    return z.center if z.center.size else np.zeros(d)


def make_group_ball(rng: np.random.Generator, d: int) -> tuple[GroupBall, int]:
    """All shapes: one group, single variables, and in between."""
    return GroupBall(rng.integers(0, rng.integers(1, d + 1), d), rng.uniform(0.5, 3.0)), d


def group_norms(z: GroupBall, x: np.ndarray) -> np.ndarray:
    return np.array([np.linalg.norm(x[group]) for group in z.groups])


def make_box(rng: np.random.Generator, d: int) -> tuple[Box, int]:
    """Some coordinates are fixed."""
    lower = rng.uniform(-2.0, 1.0, d)
    return Box(lower, lower + rng.uniform(0.1, 3.0, d) * (rng.random(d) < 0.8)), d


def make_k_sparse(rng: np.random.Generator, d: int) -> tuple[KSparse, int]:
    return KSparse(rng.integers(1, d + 1), rng.uniform(0.5, 3.0), d), d


def positive_and_negative_part(weights: np.ndarray, total: float, largest: float | None = None) -> dict[str, Any]:
    """The set {x : Σ w_i |x_i| ≤ total, |x_i| ≤ largest} for a linear program, by s = s⁺ − s⁻."""
    d = weights.size
    lift = np.hstack([np.eye(d), -np.eye(d)])
    return {"lift": lift, "A_ub": np.r_[weights, weights][None], "b_ub": np.array([total]), "bounds": (0, largest)}


def l1_columns(z: Any) -> dict[str, Any]:
    """Columns in an ℓ1 ball for a linear program, by s = s⁺ − s⁻."""
    sums = np.kron(np.eye(z.columns), np.ones(z.rows))
    lift = np.hstack([np.eye(z.dimension), -np.eye(z.dimension)])
    return {
        "lift": lift,
        "A_ub": np.hstack([sums, sums]),
        "b_ub": np.full(z.columns, z.set.radius),
        "bounds": (0, None),
    }


def outside_simplex(x: np.ndarray, scale: float, total: float) -> float:
    """How far x is from being non-negative with a given sum, relative to its scale."""
    return max(-x.min(), abs(x.sum() - total), 0.0) / scale


def make_capped_simplex(rng: np.random.Generator, d: int) -> tuple[Any, int]:
    d, cap = max(d, 2), rng.uniform(0.2, 2.0)
    total = cap * rng.choice([rng.uniform(0.1, d - 0.1), rng.integers(1, d)])
    return CappedSimplex(total, cap, d), d


def make_hull(rng: np.random.Generator, d: int) -> tuple[Any, int]:
    points = rng.standard_normal((rng.integers(2, 3 * d + 3), d))
    return Hull(np.vstack([points, points[:1]]) + rng.integers(0, 2)), d  # one point twice, and away from the origin


def make_birkhoff(rng: np.random.Generator, d: int) -> tuple[Any, int]:
    n = 2 + d // 6
    return Birkhoff(n), n * n


def best_matching(n: int, c: np.ndarray) -> float:
    rows, columns = linear_sum_assignment(c.reshape(n, n))
    return c.reshape(n, n)[rows, columns].sum()


def stochastic_rows(n: int) -> np.ndarray:
    """The sums of the rows and of the columns of a matrix."""
    return np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])


def make_polytope(rng: np.random.Generator, d: int) -> tuple[Any, int]:
    return polytope(int(rng.integers(12)), d), d


@functools.cache
def polytope(seed: int, d: int) -> Any:
    """Random rows around a point within a box; some with an equation, some of another size."""
    rng = np.random.default_rng(seed)
    unit = [1.0, 1.0, 1e-5, 1e5][seed % 4]
    inner, A = rng.uniform(-0.5, 0.5, d), rng.standard_normal((3, d))
    model = {"A_ub": A, "b_ub": unit * (A @ inner + rng.uniform(0.1, 1.0, 3)), "bounds": (-unit, unit * np.ones(d))}
    if d > 2 and seed % 3 == 0:
        model |= {"A_eq": np.ones((1, d)), "b_eq": [unit * inner.sum()]}
    made = Polytope(**model)
    POLYTOPES[made] = model, unit
    return made


POLYTOPES: dict[Any, Any] = {}


def polytope_slack(z: Any, x: np.ndarray) -> np.ndarray:
    """How much all inequalities leave, relative to the size of the set."""
    (model, unit), pair = POLYTOPES[z], []
    if "A_eq" in model:
        pair = [-abs(model["A_eq"] @ x - model["b_eq"])]
    return np.concatenate([model["b_ub"] - model["A_ub"] @ x, unit - x, x + unit, *pair]) / unit


def polytope_constraints(z: Any, s: cvxpy.Variable) -> list[Any]:
    model, unit = POLYTOPES[z]
    rows = [model["A_ub"] @ s <= model["b_ub"], s <= unit, s >= -unit]
    return [*rows, model["A_eq"] @ s == model["b_eq"]] if "A_eq" in model else rows


@functools.cache
def corners(z: Any) -> np.ndarray:
    """All vertices: where as many rows as there are variables are tight."""
    model, unit = POLYTOPES[z]
    d = z.dimension
    rows = np.vstack([model["A_ub"], np.eye(d), -np.eye(d)])
    sides = np.concatenate([model["b_ub"], np.full(2 * d, unit)])
    always, right = model.get("A_eq", np.empty((0, d))), model.get("b_eq", [])
    found = []
    for chosen in itertools.combinations(range(len(rows)), d - len(always)):
        matrix = np.vstack([rows[list(chosen)], always])
        if np.linalg.cond(matrix) < 1e8:
            x = np.linalg.solve(matrix, np.append(sides[list(chosen)], right))
            if polytope_slack(z, x).min() > -1e-9:
                found.append(x)
    return np.array(found)


def make_columns(rng: np.random.Generator, d: int, kind: str) -> tuple[Any, int]:
    """Matrices of one to three rows."""
    rows = int(rng.integers(1, min(d, 3) + 1))
    ball = L2Ball(rng.uniform(0.5, 3.0), rng.standard_normal(rows) if rng.random() < 0.5 else None)
    columns = Columns(ball if kind == "L2Ball" else L1Ball(rng.uniform(0.5, 3.0)), (rows, d // rows))
    return columns, columns.dimension


def make_product(rng: np.random.Generator, d: int) -> tuple[Any, int]:
    """A curved part, a polyhedral one, and a simplex, each of at least one variable."""
    first, second = 1 + d // 3, 1 + d // 4
    parts = {
        "D": Columns(L2Ball(rng.uniform(0.5, 2.0)), (1 + first % 2, first)),
        "w": (L1Ball(rng.uniform(0.5, 2.0)), second),
        "weights": (Simplex(rng.uniform(0.5, 2.0)), second),
    }
    product = Product(**parts)
    return product, product.dimension


def by_part(z: Any, x: Any) -> list[tuple[Case, Any, Any]]:
    """Return the case of each part of a product, the part, and its share of a vector."""
    return [(case_of(part), part, x[where]) for _, part, where in z.named_parts()]


def case_of(domain: Any) -> Case:
    """Return the case that states a set."""
    name = f"Columns{type(domain.set).__name__}" if isinstance(domain, Columns) else type(domain).__name__
    known = next((case for case in CASES if case.name == name), None)
    return known or columns_of(case_of(domain.set))


def columns_of(case: Case) -> Case:
    """Return the case of matrices with two columns in the set of another case."""

    def make(rng: np.random.Generator, d: int) -> tuple[Any, int]:
        inner, rows = case.make(rng, d)
        return Columns(inner, (rows, 2)), 2 * rows

    return Case(
        name=f"Columns({case.name})",
        make=make,
        minimum=lambda z, c: sum(case.minimum(z.set, own) for own in column_expressions(z, c)),
        violation=lambda z, x: max(case.violation(z.set, own) for own in column_expressions(z, x)),
        constraints=lambda z, s: [row for own in column_expressions(z, s) for row in case.constraints(z.set, own)],
        largest=min(case.largest, 4),
        composed=True,
    )


def product_of(case: Case) -> Case:
    """Return the case of products of the set of another case and a simplex."""

    def make(rng: np.random.Generator, d: int) -> tuple[Any, int]:
        inner, size = case.make(rng, d)
        return Product(first=(inner, size), second=(Simplex(rng.uniform(0.5, 2.0)), 2)), size + 2

    whole = next(case for case in CASES if case.name == "Product")
    return whole._replace(name=f"Product({case.name})", make=make, largest=min(case.largest, 4), composed=True)


def centre(z: Any) -> np.ndarray:
    """Return the centre of columns in a Euclidean ball, as a vector."""
    return np.tile(z.set.center, z.columns) if z.set.center.size else np.zeros(z.dimension)


def column_norms(z: Any, x: np.ndarray, order: int) -> np.ndarray:
    """Return the norm of each column."""
    return np.linalg.norm(x.reshape(z.columns, z.rows), ord=order, axis=1)


def column_expressions(z: Any, s: Any) -> list[Any]:
    """Return the columns for CVXPY."""
    return [s[j * z.rows : (j + 1) * z.rows] for j in range(z.columns)]


def make_nuclear(rng: np.random.Generator, d: int) -> tuple[Any, int]:
    """Matrices of one to three rows."""
    rows = int(rng.integers(1, min(d, 3) + 1))
    ball = NuclearBall((rows, d // rows), rng.uniform(0.5, 3.0))
    return ball, ball.dimension


def make_spectrahedron(rng: np.random.Generator, d: int) -> tuple[Any, int]:
    """Square matrices of about d entries."""
    n = max(1, round(d**0.5))
    return Spectrahedron(n, rng.uniform(0.5, 3.0)), n * n


def eigenvalues(n: int, x: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of the symmetric part."""
    X = x.reshape(n, n)
    return np.linalg.eigvalsh(X + X.T) / 2


def spectrahedron_violation(z: Any, x: np.ndarray) -> float:
    X = x.reshape(z.rows, z.rows)
    return max(np.abs(X - X.T).max(), -eigenvalues(z.rows, x)[0], abs(np.trace(X) - z.trace), 0.0) / z.trace


def spectrahedron_constraints(z: Any, s: cvxpy.Variable) -> list[Any]:
    X = cvxpy.reshape(s, (z.rows, z.rows), order="C")
    return [X == X.T, X >> 0, cvxpy.trace(X) == z.trace]


CASES = [
    Case(
        name="L1Ball",
        make=lambda rng, d: (L1Ball(rng.uniform(0.5, 3.0)), d),
        minimum=lambda z, c: -z.radius * np.abs(c).max(),
        violation=lambda z, x: max(np.abs(x).sum() / z.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm1(s) <= z.radius],
        linear=lambda z, d: positive_and_negative_part(np.ones(d), z.radius),
    ),
    Case(
        name="L2Ball",
        make=make_l2_ball,
        minimum=lambda z, c: c @ l2_center(z, c.size) - z.radius * np.linalg.norm(c),
        violation=lambda z, x: max(np.linalg.norm(x - l2_center(z, x.size)) / z.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm2(s - l2_center(z, s.size)) <= z.radius],
    ),
    Case(
        name="GroupBall",
        make=make_group_ball,
        minimum=lambda z, c: -z.radius * group_norms(z, c).max(),
        violation=lambda z, x: max(group_norms(z, x).sum() / z.radius - 1.0, 0.0),
        constraints=lambda z, s: [sum(cvxpy.norm2(s[group]) for group in z.groups) <= z.radius],
    ),
    Case(
        name="Box",
        make=make_box,
        minimum=lambda z, c: np.minimum(c * z.lower, c * z.upper).sum(),
        violation=lambda z, x: np.maximum(np.maximum(z.lower - x, x - z.upper), 0.0).max(),
        constraints=lambda z, s: [s >= z.lower, s <= z.upper],
        linear=lambda z, d: {"bounds": np.c_[z.lower, z.upper]},
    ),
    Case(
        name="LInfBall",
        make=lambda rng, d: (LInfBall(rng.uniform(0.5, 3.0), d), d),
        minimum=lambda z, c: -z.radius * np.abs(c).sum(),
        violation=lambda z, x: max(np.abs(x).max() / z.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm_inf(s) <= z.radius],
        linear=lambda z, d: {"bounds": (-z.radius, z.radius)},
    ),
    Case(
        name="KSparse",
        make=make_k_sparse,
        minimum=lambda z, c: -z.radius * np.sort(np.abs(c))[-z.k :].sum(),
        violation=lambda z, x: max(np.abs(x).max() / z.radius - 1.0, np.abs(x).sum() / (z.k * z.radius) - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm_inf(s) <= z.radius, cvxpy.norm1(s) <= z.k * z.radius],
        linear=lambda z, d: positive_and_negative_part(np.ones(d), z.k * z.radius, z.radius),
    ),
    Case(
        name="WeightedL1Ball",
        make=lambda rng, d: (WeightedL1Ball(10.0 ** rng.uniform(-1.0, 1.0, d), rng.uniform(0.5, 3.0)), d),
        minimum=lambda z, c: -z.radius * np.abs(c / z.weights).max(),
        violation=lambda z, x: max(np.abs(z.weights * x).sum() / z.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm1(cvxpy.multiply(z.weights, s)) <= z.radius],
        linear=lambda z, d: positive_and_negative_part(z.weights, z.radius),
    ),
    Case(
        name="Simplex",
        make=lambda rng, d: (Simplex(rng.uniform(0.5, 3.0)), d),
        minimum=lambda z, c: z.scale * c.min(),
        violation=lambda z, x: outside_simplex(x, z.scale, z.scale),
        constraints=lambda z, s: [s >= 0, cvxpy.sum(s) == z.scale],
        linear=lambda z, d: {"A_eq": np.ones((1, d)), "b_eq": [z.scale], "bounds": (0, None)},
    ),
    Case(
        name="UnitSimplex",
        make=lambda rng, d: (UnitSimplex(rng.uniform(0.5, 3.0)), d),
        minimum=lambda z, c: z.scale * min(c.min(), 0.0),
        violation=lambda z, x: outside_simplex(x, z.scale, min(x.sum(), z.scale)),
        constraints=lambda z, s: [s >= 0, cvxpy.sum(s) <= z.scale],
        linear=lambda z, d: {"A_ub": np.ones((1, d)), "b_ub": np.array([z.scale]), "bounds": (0, None)},
    ),
    Case(
        name="CappedSimplex",
        make=make_capped_simplex,
        minimum=lambda z, c: np.sort(c) @ np.clip(z.total - z.cap * np.arange(c.size), 0.0, z.cap),
        violation=lambda z, x: max(outside_simplex(x, z.total, z.total), x.max() / z.cap - 1.0),
        constraints=lambda z, s: [s >= 0, s <= z.cap, cvxpy.sum(s) == z.total],
        linear=lambda z, d: {"A_eq": np.ones((1, d)), "b_eq": [z.total], "bounds": (0, z.cap)},
    ),
    Case(
        name="Hull",
        make=make_hull,
        minimum=lambda z, c: (z.points @ c).min(),
        violation=lambda z, x: 0.0 if z.contains(x, 1e-13) else 1.0,
        constraints=lambda z, s: [
            s == z.points.T @ (weights := cvxpy.Variable(len(z.points), nonneg=True)),
            cvxpy.sum(weights) == 1,
        ],
        linear=lambda z, d: {"lift": z.points.T, "A_eq": np.ones((1, len(z.points))), "b_eq": [1.0], "bounds": (0, None)},
        largest=8,
    ),
    Case(
        name="Birkhoff",
        make=make_birkhoff,
        minimum=lambda z, c: best_matching(z.rows, c),
        violation=lambda z, x: max(-x.min(), np.abs(stochastic_rows(z.rows) @ x - 1.0).max(), 0.0),
        constraints=lambda z, s: [s >= 0, stochastic_rows(z.rows) @ s == 1],
        linear=lambda z, d: {"A_eq": stochastic_rows(z.rows), "b_eq": np.ones(2 * z.rows), "bounds": (0, None)},
    ),
    Case(
        name="Polytope",
        make=make_polytope,
        minimum=lambda z, c: (corners(z) @ c).min(),
        violation=lambda z, x: max(-polytope_slack(z, x).min(), 0.0),
        constraints=polytope_constraints,
        linear=lambda z, d: {**POLYTOPES[z][0], "bounds": [(-POLYTOPES[z][1], POLYTOPES[z][1])] * d},
        largest=4,
    ),
    Case(
        name="ColumnsL2Ball",
        make=lambda rng, d: make_columns(rng, d, "L2Ball"),
        minimum=lambda z, c: c @ centre(z) - z.set.radius * column_norms(z, c, 2).sum(),
        violation=lambda z, x: max(column_norms(z, x - centre(z), 2).max() / z.set.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm2(x) <= z.set.radius for x in column_expressions(z, s - centre(z))],
    ),
    Case(
        name="ColumnsL1Ball",
        make=lambda rng, d: make_columns(rng, d, "L1Ball"),
        minimum=lambda z, c: -z.set.radius * column_norms(z, c, np.inf).sum(),
        violation=lambda z, x: max(column_norms(z, x, 1).max() / z.set.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.norm1(x) <= z.set.radius for x in column_expressions(z, s)],
        linear=lambda z, d: l1_columns(z),
    ),
    Case(
        name="Product",
        make=make_product,
        minimum=lambda z, c: sum(case.minimum(part, own) for case, part, own in by_part(z, c)),
        violation=lambda z, x: max(case.violation(part, own) for case, part, own in by_part(z, x)),
        constraints=lambda z, s: [row for case, part, own in by_part(z, s) for row in case.constraints(part, own)],
    ),
    Case(
        name="NuclearBall",
        make=make_nuclear,
        minimum=lambda z, c: -z.radius * np.linalg.norm(c.reshape(z.rows, z.columns), ord=2),
        violation=lambda z, x: max(np.linalg.norm(x.reshape(z.rows, z.columns), ord="nuc") / z.radius - 1.0, 0.0),
        constraints=lambda z, s: [cvxpy.normNuc(cvxpy.reshape(s, (z.rows, z.columns), order="C")) <= z.radius],
    ),
    Case(
        name="Spectrahedron",
        make=make_spectrahedron,
        minimum=lambda z, c: z.trace * eigenvalues(z.rows, c)[0],
        violation=spectrahedron_violation,
        constraints=spectrahedron_constraints,
    ),
]
COMPOSED = [inside(case) for case in CASES for inside in (columns_of, product_of)]
