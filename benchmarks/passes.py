"""Few passes over many rows: PAVR against the other methods of finite sums, at equal samples and at equal seconds.

Run ``python benchmarks/passes.py``, with ``--quick`` for smaller data. Both gaps at the end of runs of 5, 10, 20 and 50
passes: g − g* and, in brackets, f − f*; f = ½‖x‖² unless said otherwise. A rival is ahead, marked ▲, if both of its gaps are
smaller, that of f in size; △ if one of them is. At equal seconds a rival gets as many samples as it works through in the
time that PAVR took. References are those of ``active-set``, or of LSQR where the set does not bind; a bound on what is left
in doubt of g* is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from timing import Size, counted, show_table, size_asked

from tiebreak import L1Ball, LeastSquares, Logistic, Problem, Simplex, SquaredNorm, minimize

RIVALS = "bi-fista", "pb-apg", "sbcgf", "ir-fscg"
SPARSE_ROW = 10  # non-zeros per row


class Case(NamedTuple):
    """A problem and its reference."""

    name: str
    problem: Problem
    upper: float  # f*
    lower: float  # g*
    doubt: float  # by how much g* may be smaller


def rows(n: int, d: int, seed: int = 0) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Return normal rows whose first and last columns are equal, and what a sparse truth makes of them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A[:, -1] = A[:, 0]
    truth = np.zeros(d)
    truth[:10] = rng.standard_normal(10)
    return rng, A, truth


def squares(n: int, d: int, radius: float = 10.0, columns: float = 0.0, long: float = 1.0) -> Problem:
    """Return least squares with columns scaled by up to 10^±columns and one row in a hundred ``long`` times as long."""
    rng, A, truth = rows(n, d)
    scales = 10.0 ** rng.uniform(-columns, columns, d)
    scales[-1] = scales[0]
    A *= scales
    A[rng.random(n) < 0.01] *= long
    return Problem(SquaredNorm(), LeastSquares(A, A @ (truth / scales) + 0.5 * rng.standard_normal(n)), L1Ball(radius))


def validated(n: int, d: int) -> Problem:
    """Return a validation loss of a tenth as many rows over the training loss."""
    rng, A, truth = rows(n + n // 10, d)
    b = A @ truth + 0.5 * rng.standard_normal(A.shape[0])
    A[:, -1] = np.where(np.arange(A.shape[0]) < n, A[:, 0], A[:, 1])  # what is tied below is not above
    return Problem(LeastSquares(A[n:], b[n:]), LeastSquares(A[:n], b[:n]), L1Ball(10.0))


def logistic(n: int, d: int) -> Problem:
    """Return a logistic loss with columns scaled by up to 10^±½."""
    rng, A, truth = rows(n, d)
    A *= 10.0 ** rng.uniform(-0.5, 0.5, d)
    A[:, -1] = A[:, 0]
    labels = np.where(A @ truth + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return Problem(SquaredNorm(), Logistic(A, labels), L1Ball(20.0))


def on_simplex(n: int, d: int) -> Problem:
    """Return least squares over shares, most of which are zero."""
    rng, A, truth = rows(n, d)
    return Problem(SquaredNorm(), LeastSquares(A, A @ truth + 0.5 * rng.standard_normal(n)), Simplex())


def sparse(n: int, d: int) -> Case:
    """Return least squares of few non-zeros per row, over a ball that does not bind: LSQR has the least solution."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, d, (n, SPARSE_ROW))
    values = rng.standard_normal((n, SPARSE_ROW))
    A = scipy.sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, n * SPARSE_ROW + 1, SPARSE_ROW)), (n, d))
    A.sum_duplicates()
    truth = rng.standard_normal(d) * (rng.random(d) < 0.05)
    b = A @ truth + 0.5 * rng.standard_normal(n)
    x = scipy.sparse.linalg.lsqr(A, b, atol=1e-15, btol=1e-15, iter_lim=2000)[0]
    problem = Problem(SquaredNorm(), LeastSquares(A, b), L1Ball(1.1 * float(np.abs(x).sum())))
    slope = problem.lower.value_and_gradient(x)[1]
    doubt = float(np.abs(slope).max()) * 2.0 * problem.domain.radius  # g(x) − g* is no larger, as g is convex
    return Case(f"CSR {n:,} × {d:,}, {SPARSE_ROW} per row", problem, problem.upper.value(x), problem.lower.value(x), doubt)


def proven(name: str, problem: Problem) -> Case:
    """Return a problem with the answer of the active set."""
    best = minimize(problem, "active-set", max_queries=10**12, progress=False)
    return Case(name, problem, best.upper, best.lower, best.certificate.lower_gap_bound)


def cases(size: Size) -> Iterator[Callable[[], Case]]:
    """Yield what makes each problem."""
    n, many = size.pick(20_000, 5_000, 60), size.pick(200_000, 20_000, 80)
    d = size.pick(100, 50, 12)
    wide = size.pick((50_000, 200), (10_000, 60), (60, 12))
    yield lambda: proven(f"squares, {n:,} × {d}", squares(n, d))
    yield lambda: proven(f"squares, {many:,} × {d}", squares(many, d))
    yield lambda: proven(f"validation loss of {n // 10:,} rows over {n:,} × {d}", validated(n, d))
    yield lambda: proven(f"columns scaled by 10^±1, {n:,} × {d}", squares(n, d, 100.0, columns=1.0))
    yield lambda: proven(f"one row in 100 is 10 × as long, {n:,} × {d}", squares(n, d, long=10.0))
    yield lambda: proven("logistic, columns scaled by 10^±½, {:,} × {}".format(*wide), logistic(*wide))
    yield lambda: proven(f"simplex, {n:,} × {d}", on_simplex(n, d))
    yield lambda: sparse(*size.pick((1_000_000, 100_000), (50_000, 5_000), (60, 12)))


class End(NamedTuple):
    """Where a run ended."""

    lower: float
    upper: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.lower:.0e} ({self.upper:+.0e})"

    def mark(self, other: End) -> str:
        """Return how this run compares with another one: ▲ ahead, △ at one level, or nothing."""
        ahead = (self.lower < other.lower) + (abs(self.upper) < abs(other.upper))
        return " △▲"[ahead].strip()


def run(case: Case, method: str, queries: int) -> End:
    """Run a method."""
    result = minimize(case.problem, method, progress=False, check=False, max_queries=queries)
    return End(max(result.lower - case.lower, 0.0), result.upper - case.upper, result.seconds)


def compare(case: Case, budgets: tuple[int, ...]) -> list[list[str]]:
    """Return one line per number of passes and kind of budget."""
    samples = int(case.problem.upper.n_samples + case.problem.lower.n_samples)
    lines = []
    for method in ("pavr", *RIVALS):
        run(case, method, 2 * samples)  # compiled, and constants found, before anything is measured
    for passes in budgets:
        queries = passes * samples
        own = run(case, "pavr", queries)
        equal = [run(case, rival, queries) for rival in RIVALS]
        timed = [
            run(case, rival, max(int(queries * own.seconds / other.seconds), 2 * samples))
            for rival, other in zip(RIVALS, equal, strict=True)
        ]
        for kind, others in ((f"{passes} passes", equal), (f"{own.seconds:.3g} s", timed)):
            lines.append([kind, str(own), *(f"{other} {other.mark(own)}".rstrip() for other in others)])
    return lines


def main() -> None:
    """Print a table per problem."""
    size = size_asked(__doc__)
    with size.engine():
        for make in counted(list(cases(size)), "problems"):
            case = make()
            title = f"{case.name}: f* = {case.upper:.4g}, g* = {case.lower:.4g}, in doubt by {case.doubt:.0e}"
            show_table(title, ["", "pavr", *RIVALS], compare(case, size.pick((5, 10, 20, 50), (5, 10, 20, 50), (5,))))


if __name__ == "__main__":
    main()
