"""Every method of tiebreak that looks at both levels."""

from __future__ import annotations

from benchmark_utils.minimizing import MinimizingSolver

from race import two_level_methods  # isort: skip  (benchmark_utils says where it is)


class Solver(MinimizingSolver):
    """`minimize(problem, method)` with the defaults of the method."""

    name = "tiebreak"
    parameters = {"method": [name for name in two_level_methods() if name != "auto"]}  # noqa: RUF012
    parameter_template = "{method}"
