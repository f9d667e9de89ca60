"""Runs of SBCGF and SBCGI on the paper's regression against the same runs whose cut goes through an LP solver.

Run ``python benchmarks/reproduce.py``, with ``--quick`` for a shorter run. The subproblem is put to HiGHS as the paper has
it, s = s⁺ − s⁻ with s⁺, s⁻ ≥ 0, by :class:`tiebreak.Polytope`: cold (each LP from the same vertex, ``warm_start=False``) and
warm (from where the last one ended). The runs by HiGHS are cut short after some iterations and extrapolated to all of them.
"""

from __future__ import annotations

import numpy as np
from timing import Row, Size, show, size_asked

from tiebreak import SBCGF, SBCGI, Domain, L1Ball, LeastSquares, Polytope, Problem, SpiderFW, data, minimize
from tiebreak.domains import contains, cut_lmo, diameter, lmo

RADIUS = 10.0


class BallByLP(Domain):
    """The ℓ1 ball as a polytope of twice as many variables, s⁺ and s⁻."""

    def __init__(self, radius: float, dimension: int, warm_start: bool):
        self.ball, self.dimension = L1Ball(radius), dimension
        rows, sides = np.ones((1, 2 * dimension)), [radius]
        self.polytope = Polytope(rows, sides, bounds=(0.0, np.full(2 * dimension, radius)), warm_start=warm_start)


@lmo.register(BallByLP)
def lmo_by_lp(domain: BallByLP, c: np.ndarray, out: np.ndarray) -> None:
    split = domain.polytope.lmo(np.concatenate([c, -c]))
    np.subtract(split[: c.size], split[c.size :], out=out)


@cut_lmo.register(BallByLP)
def cut_lmo_by_lp(domain: BallByLP, c: np.ndarray, a: np.ndarray, b: float, out: np.ndarray) -> tuple[int, float]:
    split = np.empty(2 * c.size)
    answer = cut_lmo(domain.polytope, np.concatenate([c, -c]), np.concatenate([a, -a]), b, split)
    np.subtract(split[: c.size], split[c.size :], out=out)
    return answer


@diameter.register(BallByLP)
def diameter_by_lp(domain: BallByLP) -> float:
    return diameter(domain.ball)


@contains.register(BallByLP)
def contains_by_lp(domain: BallByLP, x: np.ndarray, tol: float) -> bool:
    return contains(domain.ball, x, tol)


def main(size: Size) -> None:
    rounds, sample, queries = size.pick((5, 60, 1_000_000), (2, 20, 1_000_000), (1, 3, 10_000))
    parts = data.split(data.pageviews(0)[:, : size.pick(None, None, 20)], 0)
    upper, lower = LeastSquares(*parts.validation), LeastSquares(*parts.train)
    problem = Problem(upper, lower, L1Ball(RADIUS))
    x0 = minimize(problem, SpiderFW(level="lower", preset="paper"), max_queries=queries // 10, progress=False).x
    sets = {name: BallByLP(RADIUS, problem.dimension, name == "warm") for name in ("cold", "warm")}

    for method in (SBCGF(preset="paper"), SBCGI(preset="paper")):
        whole: list[float] = []
        sampled: dict[str, list[float]] = {name: [] for name in sets}
        for _ in range(rounds):
            run = minimize(problem, method, x0=x0, max_queries=queries - queries // 10, progress=False)
            first = minimize(problem, method, x0=x0, max_queries=None, max_iterations=sample, progress=False)
            whole.append(run.seconds)
            for name, ball in sets.items():
                by_lp = Problem(upper, lower, ball)
                slow = minimize(by_lp, method, x0=x0, max_queries=None, max_iterations=sample, progress=False)
                assert np.abs(slow.x - first.x).max() < 1e-6, "the runs differ"
                sampled[name].append(slow.seconds * run.iterations / sample)
        show(
            f"One run of {method.name}, {run.iterations:,} iterations ({queries:,} samples), d = {problem.dimension}",
            [
                Row("the cut of the library", np.array(whole), unit="s"),
                *(Row(f"HiGHS {name}, extrapolated", np.array(sampled[name]), unit="s") for name in sets),
                *(Row(f"HiGHS {name} / the cut of the library", np.array(sampled[name]), np.array(whole)) for name in sets),
            ],
        )


if __name__ == "__main__":
    main(size_asked(__doc__))
