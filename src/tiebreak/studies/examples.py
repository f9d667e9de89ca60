"""The examples that motivate simple bilevel problems: solutions of least norm, lifelong learning, many conic constraints.

Cao et al. (2023), section 2 and appendix A.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import tiebreak
from tiebreak.studies.claims import Claim, Judgement, fewer, together, within
from tiebreak.studies.comparing import Measure, Traces, at, compare, parameters, table
from tiebreak.studies.study import Outcome, Plan, Runs, Section, Study, Task
from tiebreak.studies.tracing import trace

QUERIES, QUICK_QUERIES = 20_000_000, 40_000
NORM_SIZE = (40, 100)  # samples and variables of the lexicographic example
MEMORY, NEW, VARIABLES = 60, 200, 100  # samples of old tasks, of the new one, and variables
OLD_TASKS = 3
CONSTRAINTS, ROWS, COORDINATES, TERMS = 500, 4, 10, 300  # sizes of the conic example; samples of its objective
CONIC_RADIUS = 6.0  # radius of its ℓ1 ball
BOTH = {"SBCGI": "sbcgi", "SBCGF": "sbcgf"}
KINDS = {"sbcgi": tiebreak.SBCGI, "sbcgf": tiebreak.SBCGF}
LEXICOGRAPHIC = (Measure("distance", "distance to A⁺b, relative"), Measure("lower", "training loss g(x)"))
LIFELONG = (Measure("memory", "loss on the memory, g(x)"), Measure("upper", "loss on the new task, f(x)"))
CONIC = (
    Measure("violation", "largest violation of a constraint", "symlog"),
    Measure("violated", "share of constraints violated by more than 0.001", "linear"),
    Measure("excess", "(f(x) − f*) / f*, signed", "symlog"),
)


def lexicographic(seed: int, method: str, max_queries: int) -> Outcome:
    """Find the least-squares solution of least norm, which the pseudo-inverse gives."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(NORM_SIZE) / np.sqrt(NORM_SIZE[1])
    b = A @ rng.standard_normal(NORM_SIZE[1])
    least = np.linalg.pinv(A) @ b
    size = float(np.linalg.norm(least))
    problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares(A, b), tiebreak.L2Ball(2.0 * size))
    measures = {"distance": lambda x: float(np.linalg.norm(x - least)) / size}
    return trace(problem, KINDS[method](preset="auto"), measures=measures, seed=seed, max_queries=max_queries)


def lifelong(seed: int, method: str, max_queries: int) -> Outcome:
    """Learn a new task without forgetting those of which a memory is kept; and the same with no memory."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(VARIABLES)
    tasks = [shared + 0.5 * rng.standard_normal(VARIABLES) for _ in range(OLD_TASKS + 1)]
    A = rng.standard_normal((MEMORY, VARIABLES)) / np.sqrt(VARIABLES)
    old = np.concatenate([part @ task for part, task in zip(np.array_split(A, OLD_TASKS), tasks, strict=False)])
    B = rng.standard_normal((NEW, VARIABLES)) / np.sqrt(VARIABLES)
    new = B @ tasks[-1] + 0.05 * rng.standard_normal(NEW)
    before = np.linalg.pinv(A) @ old  # what was learned so far
    forgetful = before + np.linalg.pinv(B) @ (new - B @ before)  # what the new task alone makes of it
    radius = 2.0 * max(float(np.abs(x).sum()) for x in (before, forgetful))
    problem = tiebreak.Problem(tiebreak.LeastSquares(B, new), tiebreak.LeastSquares(A, old), tiebreak.L1Ball(radius))
    outcome = trace(
        problem, KINDS[method](preset="auto"), measures={"memory": problem.lower.value}, seed=seed, max_queries=max_queries
    )
    known = {
        f"{name}_{level}": float(objective.value(x))
        for name, x in (("before", before), ("forgetful", forgetful))
        for level, objective in (("memory", problem.lower), ("new", problem.upper))
    }
    return Outcome(outcome.arrays, {**outcome.record, **known})


def conic(seed: int, method: str, max_queries: int) -> Outcome:
    """Minimise a loss under many second-order cone constraints ‖P_i x + q_i‖ ≤ ⟨r_i, x⟩ + s_i."""
    problem, inside = conic_problem(seed)
    H, h = problem.lower.matrices, problem.lower.offsets

    def violations(x: np.ndarray) -> np.ndarray:
        points = H @ x + h
        return np.linalg.norm(points[:, 1:], axis=1) + points[:, 0]

    best, solver = conic_reference(problem)
    measures = {
        "violation": lambda x: float(violations(x).max()),
        "violated": lambda x: float((violations(x) > 1e-3).mean()),
        "excess": lambda x: (problem.upper.value(x) - best) / best,
    }
    outcome = trace(problem, KINDS[method](preset="auto"), measures=measures, seed=seed, max_queries=max_queries)
    return Outcome(
        outcome.arrays, {**outcome.record, "f_star": best, "solver": solver, "f_inside": problem.upper.value(inside)}
    )


def conic_problem(seed: int) -> tuple[tiebreak.Problem, np.ndarray]:
    """Return the problem with the constraints in its lower level, and a point that meets them all."""
    rng = np.random.default_rng(seed)
    inside = 0.3 * rng.standard_normal(COORDINATES)
    P = rng.standard_normal((CONSTRAINTS, ROWS - 1, COORDINATES)) / np.sqrt(COORDINATES)
    q = 0.1 * rng.standard_normal((CONSTRAINTS, ROWS - 1))
    r = 0.3 * rng.standard_normal((CONSTRAINTS, COORDINATES))
    room = rng.uniform(0.2, 1.0, CONSTRAINTS)
    s = np.linalg.norm(P @ inside + q, axis=1) + room - r @ inside
    H, h = np.concatenate([-r[:, None, :], P], axis=1), np.column_stack([-s, q])
    B = rng.standard_normal((TERMS, COORDINATES))
    target = B @ (inside + 2.0 * rng.standard_normal(COORDINATES)) + 0.1 * rng.standard_normal(TERMS)
    return tiebreak.Problem(
        tiebreak.LeastSquares(B, target), tiebreak.ConeDistance(H, h, "second-order"), tiebreak.L1Ball(CONIC_RADIUS)
    ), inside


def conic_reference(problem: tiebreak.Problem) -> tuple[float, str]:
    """Return f* and what solved for it; NaN without CVXPY."""
    try:
        import cvxpy
    except ImportError:
        return float("nan"), "none"
    x = cvxpy.Variable(problem.dimension)
    f, g, domain = problem[:3]
    A, b = f.matrix.array, f.targets
    height, *others = (g.matrices[:, k] @ x + g.offsets[:, k] for k in range(g.offsets.shape[1]))
    cones = cvxpy.SOC(-height, cvxpy.vstack(others), axis=0)
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(A @ x - b)), [cones, cvxpy.norm1(x) <= domain.radius])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is inaccurate is said by its status
        program.solve(solver=cvxpy.CLARABEL)
    return f.value(problem.domain.project(x.value)), f"Clarabel ({program.status})"


EXAMPLES: Mapping[str, tuple[Any, dict[str, str]]] = {
    "norm": (lexicographic, {"SBCGF": "sbcgf"}),
    "lifelong": (lifelong, BOTH),
    "conic": (conic, {"SBCGF": "sbcgf"}),
}


class Examples(Study):
    """Section 2 and appendix A."""

    name = "examples"
    title = "Examples: least norm, lifelong learning, conic constraints"
    reference = "Cao et al. (2023), Section 2 and Appendix A"

    def tasks(self, plan: Plan) -> list[Task]:
        budget = {"max_queries": QUICK_QUERIES if plan.quick else QUERIES}
        return [
            Task(f"examples/{name}-{method}", seed, function, {"method": method, **budget})
            for seed in range(plan.seeds)
            for name, (function, methods) in EXAMPLES.items()
            for method in methods.values()
        ]

    def section(self, plan: Plan, runs: Runs) -> Section:
        found: dict[str, Traces] = {
            name: {label: runs.of(f"examples/{name}-{method}") for label, method in methods.items()}
            for name, (_, methods) in EXAMPLES.items()
        }
        seeds = f"Mean and range over {plan.seeds} seeds."
        end = "at the end of the budget: median (range) over seeds"
        return Section(
            "Three problems that are simple bilevel problems. Least norm: of all models that fit 40 samples in 100 "
            "dimensions, the one of least ℓ2 norm, which the pseudo-inverse gives. Lifelong learning: a model learns a new "
            "task among those that are best on a memory of three old ones. Conic constraints: a loss is minimised under 500 "
            "second-order cone constraints, whose squared violation is the lower level.",
            [
                compare("norm", f"Least norm. {seeds}", found["norm"], LEXICOGRAPHIC),
                compare("lifelong", f"Lifelong learning. {seeds}", found["lifelong"], LIFELONG),
                compare("conic", f"Conic constraints. {seeds}", found["conic"], CONIC),
            ],
            [
                table(f"Least norm, {end}", found["norm"], LEXICOGRAPHIC),
                table(f"Lifelong learning, {end}", found["lifelong"], LIFELONG),
                table(f"Conic constraints, {end}", found["conic"], CONIC),
            ],
            claims(found),
            {
                "budget": f"{QUICK_QUERIES if plan.quick else QUERIES:,} samples, first point included; preset auto",
                **{f"{name}, {label}": text for name in found for label, text in parameters(found[name]).items()},
            },
        )


def claims(found: Mapping[str, Traces]) -> list[Claim]:
    """Judge whether the examples are solved."""
    learned = {label: each for label, each in found["lifelong"].items() if each}

    def known(label: str, entry: str) -> dict[int, float]:
        return {seed: float(o.record[entry]) for seed, o in learned[label].items()}

    def each(judge: Any) -> Judgement:
        return together(**{label: judge(label) for label in learned})

    return [
        Claim("The solution of least norm is found: within 1 % of the pseudo-inverse's", "Appendix A.1",
              *within(at(found["norm"]["SBCGF"], "distance"), 0.0, 0.01)),
        Claim("A new task is learned: its loss is below that of the old model", "Appendix A.2",
              *each(lambda label: fewer(at(learned[label], "upper"), known(label, "before_new")))),
        Claim("Nothing is forgotten: the loss on the memory is below a hundredth of that of a model that learns the new "
              "task alone", "Appendix A.2",
              *each(lambda label: fewer(at(learned[label], "memory"), known(label, "forgetful_memory"), 0.01))),
        Claim("Many conic constraints are met: none is violated by more than 0.01", "Appendix A",
              *within(at(found["conic"]["SBCGF"], "violation"), -np.inf, 0.01)),
        Claim("… and f is within 1 % of f*", "Appendix A",
              *within(_numbers(at(found["conic"]["SBCGF"], "excess")), -0.01, 0.01)),
    ]  # fmt: skip


def _numbers(values: Mapping[int, float]) -> dict[int, float]:
    """Leave out what has no reference."""
    return {seed: value for seed, value in values.items() if not np.isnan(value)}
