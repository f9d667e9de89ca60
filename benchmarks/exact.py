"""Exact answers: the active set against CVXPY, scikit-learn's Lasso and LSQR; its path; and bounds against the truth.

Run ``python benchmarks/exact.py``, with ``--quick`` for fewer cases. Set ``TIEBREAK_DATA`` to a folder with
``montevideo_bus.json`` and ``a1a.npz`` to include these data.

1. Exact ties and near ties of the regressions of the paper, and of larger random ones: the time of CVXPY with Clarabel, as a
   user would write it, divided by that of ``minimize(problem)``; and what that call proves. For exact ties a user minimises
   g, then f over the points of the same fit; for near ties f where g is at most its minimum and ε.
2. g alone, at the gap that ``minimize`` proves: scikit-learn's Lasso at the same ℓ1 norm, and LSQR where the ball is slack.
3. The path of f + λ g: its table, and its time.
4. Bounds of ``certify(problem, x, bundle=20)`` at exact and at rough points, against the true gaps.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cvxpy
import numpy as np
import scipy.sparse
from methods import two_stages
from scipy.sparse.linalg import lsqr
from sklearn.linear_model import Lasso
from timing import Size, show_table, size_asked

from tiebreak import ActiveSet, L1Ball, LeastSquares, Logistic, Method, Problem, SquaredNorm, certify, data, minimize, path

RADIUS = 10.0
NEAR = 1e-3  # ε of near ties, relative to g at zero
PATIENCE = 480.0  # seconds after which a solver is stopped
PLANTED = 200  # random problems whose bounds are held against the truth


class Case(NamedTuple):
    """A problem, and how to make it again in another process."""

    name: str
    make: Callable[..., Problem]
    arguments: tuple[Any, ...]

    @property
    def problem(self) -> Problem:
        return self.make(*self.arguments)


def regression(kind: str, tolerance: float = 0.0) -> Problem:
    """Return validation loss over the minimisers of training loss, of the page views or of Montevideo."""
    matrix = data.pageviews(0) if kind == "page views" else data.montevideo(folder() / "montevideo_bus.json")
    parts = data.split(matrix, 0)
    lower = LeastSquares(*parts.train)
    epsilon = tolerance * lower.value(np.zeros(lower.dimension))
    return Problem(LeastSquares(*parts.validation), lower, L1Ball(RADIUS), tolerance=epsilon)


def census() -> Problem:
    """Return the problem of the literature: least norm over the minimisers of a logistic loss of a thousand rows of a1a."""
    stored = np.load(folder() / "a1a.npz")
    rows = scipy.sparse.csr_array((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
    A = np.column_stack([rows[:1000].toarray(), np.ones(1000)])
    return Problem(SquaredNorm(), Logistic(A, stored["labels"][:1000]), L1Ball(RADIUS))


def rank_deficient(n: int, d: int, seed: int = 0) -> Problem:
    """Return random regressions at both levels, of half the possible rank; the ball binds, so that g* > 0."""
    rng = np.random.default_rng(seed)
    rank = min(n, d) // 2
    mixing = rng.standard_normal((rank, d)) / np.sqrt(rank)
    truth = rng.standard_normal(d) * (rng.random(d) < 0.05)
    levels = []
    for _ in range(2):
        A = rng.standard_normal((n, rank)) @ mixing
        levels.append(LeastSquares(A, A @ truth + rng.standard_normal(n)))
    return Problem(*levels, L1Ball(0.8 * np.abs(truth).sum()))


def folder() -> Path:
    return Path(os.environ.get("TIEBREAK_DATA", ""))


def cases(size: Size) -> Iterator[Case]:
    """Yield the problems that are solved by both."""
    if size is Size.TINY:
        yield Case("8 x 16", rank_deficient, (8, 16))
        return
    kinds = ["page views", *(["Montevideo"] if (folder() / "montevideo_bus.json").is_file() else [])]
    for kind in kinds:
        yield Case(f"{kind}, exact tie", regression, (kind, 0.0))
        yield Case(f"{kind}, ε = {NEAR:g} g(0)", regression, (kind, NEAR))
    if size is Size.FULL:
        yield Case("2000 x 4000", rank_deficient, (2000, 4000))
        yield Case("20000 x 2000", rank_deficient, (20_000, 2000))


# 1. Against a modelling language


def within(problem: Problem) -> float:
    """Solve a near tie as a user would: minimise g, then f where g is at most that and ε; return f."""
    (A, a), (B, b) = ((level.matrix.array, level.targets) for level in (problem.lower, problem.upper))
    x = cvxpy.Variable(A.shape[1])
    ball = cvxpy.norm1(x) <= problem.domain.radius
    lower, upper = (cvxpy.sum_squares(M @ x - t) / (2 * t.size) for M, t in ((A, a), (B, b)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a solution may be inaccurate
        least = cvxpy.Problem(cvxpy.Minimize(lower), [ball]).solve(solver=cvxpy.CLARABEL)
        found = cvxpy.Problem(cvxpy.Minimize(upper), [ball, lower <= least + problem.tolerance])
        return float(found.solve(solver=cvxpy.CLARABEL))


def solve(sender: Any, case: Case) -> None:
    problem = case.problem
    began = time.perf_counter()
    upper = within(problem) if problem.tolerance > 0.0 else two_stages(problem).upper
    sender.send((time.perf_counter() - began, upper))


def time_of_solver(case: Case, limit: float) -> tuple[float, float | None]:
    """Return the seconds of the solver in a process of its own, and its f; the limit and None if it takes longer."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=solve, args=(sender, case))
    process.start()
    try:
        return receiver.recv() if receiver.poll(limit) else (limit, None)
    except EOFError:
        return limit, None
    finally:
        process.kill()
        process.join()


def time_of_call(problem: Problem, method: str | Method = "auto", rounds: int = 3) -> tuple[float, Any]:
    """Return the fastest of some calls, and the result."""
    minimize(problem, method, max_iterations=1, max_queries=None, progress=False)  # compiled and loaded
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        result = minimize(problem, method, progress=False)
        times.append(time.perf_counter() - began)
    return min(times), result


def compare_solvers(size: Size) -> None:
    """Divide the time of CVXPY by that of an answer with its proof."""
    lines = []
    for case in cases(size):
        problem = case.problem
        zero = np.zeros(problem.dimension)
        units = problem.upper.value(zero), problem.lower.value(zero)
        ours, result = time_of_call(problem)
        theirs, upper = time_of_solver(case, size.pick(PATIENCE, 60.0, 60.0))
        ratio = f"{'≥ ' if upper is None else ''}{theirs / ours:.0f} x"
        g = f"{(result.lower_gap_bound - problem.tolerance) / units[1]:.1e}"
        f = f"{abs(result.upper_gap_bound) / units[0]:.1e}"
        apart = "–" if upper is None else f"{(upper - result.upper) / units[0]:+.1e}"
        lines.append([case.name, result.method.name, f"{ours:.2f} s", g, f, f"{theirs:.1f} s", ratio, apart])
    show_table(
        "CVXPY with Clarabel / minimize(problem); what is proven, relative to values at zero (targets: ≥ 20 x on the paper's"
        " data, < 10 s on the others)",
        ["", "method", "ours", "g(x) − g* − ε ≤", "|f(x) − floor| ≤", "CVXPY", "ratio", "its f − ours"],
        lines,
    )


# 2. One level


def lasso_at(problem: Problem, gap: float) -> tuple[float, float]:
    """Return the seconds and the gap of scikit-learn's Lasso whose ℓ1 norm is the radius: its penalty is the multiplier."""
    A, a = problem.lower.matrix.array, problem.lower.targets
    exact = minimize(problem, ActiveSet(level="lower"), progress=False).x
    penalty = float(np.abs(problem.lower.value_and_gradient(exact)[1]).max())
    best = (np.inf, np.inf)
    for tol in 10.0 ** -np.arange(4.0, 16.0, 2.0):
        model = Lasso(alpha=penalty, fit_intercept=False, tol=tol, max_iter=1_000_000)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it did not converge
            model.fit(A, a)
        elapsed = time.perf_counter() - began
        x = model.coef_ * min(1.0, problem.domain.radius / max(np.abs(model.coef_).sum(), 1e-300))
        reached = certify(problem, problem.domain.project(x), bundle=20).lower_gap_bound
        best = elapsed, reached
        if reached <= gap or elapsed > 60.0:
            break
    return best


def one_level(what: str, ours: float, gap: float, rival: str, theirs: float, reached: float) -> list[str]:
    """Return one line of the table."""
    return [what, f"{ours:.3f} s", f"{gap:.0e}", rival, f"{theirs:.3f} s", f"{reached:.0e}", f"{ours / theirs:.2f} x"]


def compare_one_level(size: Size) -> None:
    """Compare g alone with scikit-learn's Lasso, and with LSQR where the ball is slack."""
    lines = []
    shapes = size.pick([(1000, 2000), (2000, 4000), (20_000, 500)], [(500, 1000)], [(8, 16)])
    for n, d in shapes:
        problem = rank_deficient(n, d)
        gap = 1e-10 * problem.lower.value(np.zeros(d))
        ours, result = time_of_call(problem, ActiveSet(level="lower"))
        theirs, reached = lasso_at(problem, max(result.lower_gap_bound, gap))
        unit = problem.lower.value(np.zeros(d))
        lines.append(
            one_level(f"{n} x {d}, the ball binds", ours, result.lower_gap_bound / unit, "Lasso", theirs, reached / unit)
        )
    for n, d in size.pick([(20_000, 100), (200_000, 100), (20_000, 1000)], [(5000, 100)], [(20, 5)]):
        rng = np.random.default_rng(0)
        A = rng.standard_normal((n, d))
        a = A[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(n)
        problem = Problem(SquaredNorm(), LeastSquares(A, a), L1Ball(1000.0))
        unit = problem.lower.value(np.zeros(d))
        ours, result = time_of_call(problem, ActiveSet(level="lower"))
        began = time.perf_counter()
        x = lsqr(A, a, atol=1e-14, btol=1e-14, iter_lim=10_000)[0]
        theirs = time.perf_counter() - began
        reached = certify(problem, x, bundle=20).lower_gap_bound
        lines.append(
            one_level(f"{n} x {d}, the ball is slack", ours, result.lower_gap_bound / unit, "LSQR", theirs, reached / unit)
        )
    show_table(
        "g alone: ActiveSet(level='lower') / others (target ≤ 2 x); gaps relative to g at zero",
        ["", "ours", "proven gap", "", "theirs", "its gap", "ratio"],
        lines,
    )


# 3. The path


def show_paths(size: Size) -> None:
    """Print the path of the paper's regressions."""
    for case in cases(size):
        if "exact" in case.name or size is Size.TINY:
            problem = case.problem
            path(problem, weights=[1.0])  # compiled and loaded
            began = time.perf_counter()
            found = path(problem)
            print(f"\nThe path of {case.name.split(',')[0]}, in {time.perf_counter() - began:.2f} s\n{found}")


# 4. Bounds against the truth


def planted(seed: int) -> Problem:
    """Return a small random problem, of squares or logistic losses, wide or tall, with a tolerance or without."""
    rng = np.random.default_rng(seed)
    n, m, d = rng.integers(5, 40), rng.integers(5, 40), rng.integers(3, 40)
    A, B, x = rng.standard_normal((n, d)), rng.standard_normal((m, d)), rng.standard_normal(d) * (rng.random(d) < 0.4)
    radius = float(rng.uniform(0.3, 2.0) * max(np.abs(x).sum(), 0.1))
    lower = (
        Logistic(A, np.where(A @ x + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0))
        if seed % 3 == 0
        else LeastSquares(A, A @ x + 0.1 * rng.standard_normal(n))
    )
    upper = SquaredNorm() if seed % 2 else LeastSquares(B, B @ x + 0.1 * rng.standard_normal(m))
    epsilon = [0.0, 1e-3][seed // 2 % 2] * lower.value(np.zeros(d))
    return Problem(upper, lower, L1Ball(radius), tolerance=epsilon)


def excesses(problem: Problem) -> Iterator[tuple[str, float, float, float]]:
    """Yield points with how far the bounds of f and g are from the true gaps, in units of what is allowed, and seconds."""
    zero = np.zeros(problem.dimension)
    best = minimize(problem, progress=False)
    f, g = best.certificate.floors.upper, best.certificate.floors.lower
    units = max(problem.upper.value(zero), best.upper), problem.lower.value(zero)
    rough = minimize(problem._replace(tolerance=0.0), "cg-bio", max_iterations=200, progress=False).x
    for name, x in (("exact", best.x), ("rough", rough)):
        began = time.perf_counter()
        found = certify(problem, x, bundle=20)
        elapsed = time.perf_counter() - began
        upper, lower = found.upper - f, found.lower - g
        above = abs(found.upper_gap_bound - upper) / (10.0 * max(abs(upper), 1e-6 * units[0]))
        below = found.lower_gap_bound / (10.0 * lower + 1e-10 * units[1])
        yield name, above, below, elapsed


def hold_bounds(size: Size) -> None:
    """Print how far bounds are from the truth: 1 is what is allowed."""
    named: dict[str, list[Problem]] = {}
    if size is not Size.TINY:
        named["page views"] = [regression("page views"), regression("page views", NEAR)]
        if (folder() / "montevideo_bus.json").is_file():
            named["Montevideo"] = [regression("Montevideo"), regression("Montevideo", NEAR)]
        if (folder() / "a1a.npz").is_file():
            named["a1a"] = [census(), census()._replace(tolerance=1e-3)]
    named["planted"] = [planted(seed) for seed in range(size.pick(PLANTED, 20, 2))]
    lines = []
    for name, problems in named.items():
        found = [each for problem in problems for each in excesses(problem)]
        for kind in ("exact", "rough"):
            some = np.array([numbers for which, *numbers in found if which == kind])
            within_both = int(((some[:, 0] <= 1.0) & (some[:, 1] <= 1.0)).sum())
            worst = some.max(axis=0)
            lines.append(
                [f"{name}, {kind} points", f"{within_both} of {len(some)}", f"{worst[0]:.2g}", f"{worst[1]:.2g}",
                 f"{np.median(some[:, 2]):.3f} s"]
            )  # fmt: skip
    show_table(
        "Bounds of certify(problem, x, bundle=20), in units of what is allowed: |bound − gap| ≤ 10 max(|gap|, 1e-6 f(0)) for"
        " f, bound ≤ 10 gap + 1e-10 g(0) for g",
        ["", "within both", "worst for f", "worst for g", "time"],
        lines,
    )


def main(size: Size) -> None:
    compare_solvers(size)
    compare_one_level(size)
    show_paths(size)
    hold_bounds(size)


if __name__ == "__main__":
    asked = size_asked(__doc__)
    with asked.engine():
        main(asked)
