"""A process that times the iterations of whichever version of the package it finds, for ``versions.py``.

It reads the names of methods from standard input and answers each with the seconds of an iteration, as ``minimize`` reports
them. It uses only names that all versions have. Its arguments are the samples and variables of a level, and the
share of the usual iterations that it is to take.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import tiebreak

NO_CUT = 1e9  # slack that leaves the cut inactive
METHODS = {  # methods, and their iterations per measurement
    "SBCGI, cut inactive": (tiebreak.SBCGI(preset="paper", slack=NO_CUT), 50_000),
    "SBCGI, slack 0": (tiebreak.SBCGI(preset="paper", slack=0.0), 20_000),
    "SBCGF, cut inactive": (tiebreak.SBCGF(preset="paper", slack=NO_CUT), 2_000),
    "CG-BiO, cut inactive": (tiebreak.CGBiO(preset="paper", slack=NO_CUT), 300),
    "IR-SCG": (tiebreak.IRSCG(strength=10.0), 50_000),
}


def main(n: int, d: int, share: float) -> None:
    setattr(time, "perf_counter", time.thread_time)  # noqa: B010 (a busy machine must not count: see `timing.seconds`)
    rng = np.random.default_rng(0)
    levels = [tiebreak.LeastSquares(rng.standard_normal((n, d)), rng.standard_normal(n)) for _ in range(2)]
    problem = tiebreak.Problem(*levels, tiebreak.L1Ball(5.0))
    for line in sys.stdin:
        method, iterations = METHODS[line.strip()]
        limits = {"max_queries": None, "max_iterations": max(int(iterations * share), 2)}
        result = tiebreak.minimize(problem, method, x0=np.zeros(d), progress=False, **limits)
        print(result.seconds / result.iterations, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
