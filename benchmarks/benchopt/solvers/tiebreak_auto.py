"""What `tiebreak.minimize(problem)` does by itself."""

from __future__ import annotations

from benchmark_utils.minimizing import MinimizingSolver


class Solver(MinimizingSolver):
    """`minimize(problem)`: the method is chosen for the problem and the budget."""

    name = "minimize"
    method = "auto"
