"""Anybody's code, from a clone that you have: a Python file with a function ``solve(problem, budget)``.

Nothing foreign is kept here. ``problem`` is a dictionary of arrays (see ``benchmark_utils/arrays.py``). ``budget`` is a
number of iterations, 1, 2, 4, 8, …, whatever an iteration is. The answer is a point. Where the code cannot do a problem, it
raises ``NotImplementedError`` with the reason, and the problem is skipped. The file may call other programs, such as Matlab.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_utils.arrays import NotInArraysError, as_arrays
from benchmark_utils.timed import TimedSolver

EXAMPLE = Path(__file__).parents[1] / "clones" / "solodov.py"


class Solver(TimedSolver):
    """The function `solve` of a file: the environment's BENCHMARK_CLONE, or `-s "clone[file=...]"`."""

    name = "clone"
    parameters = {"file": [os.environ.get("BENCHMARK_CLONE", "")]}  # noqa: RUF012
    sampling_strategy = "iteration"
    test_config = {"file": str(EXAMPLE), "dataset": {"name": "bank", "problem": "small-ball"}}  # noqa: RUF012

    def skip(self, make: Callable[[], Any]) -> tuple[bool, str | None]:
        if not self.file:
            return True, 'no file is named: set BENCHMARK_CLONE, or say -s "clone[file=solver.py]"'
        if not Path(self.file).is_file():
            return True, f"{self.file} is no file"
        try:
            self._load()(as_arrays(make().problem), 1)
        except (NotInArraysError, NotImplementedError) as error:
            return True, str(error)
        return False, None

    def set_objective(self, make: Callable[[], Any]) -> None:
        self.make, self.function = make, self._load()

    def get_next(self, budget: int) -> int:
        return 2 * budget or 1

    def pre_run_hook(self, budget: int) -> None:
        self.arrays = as_arrays(self.make().problem)

    def solve(self, budget: int) -> None:
        found = self.function(self.arrays, budget) if budget else self.arrays["x0"]
        self.x = np.asarray(found, dtype=float)

    def _load(self) -> Callable[[dict[str, Any], int], Any]:
        """Return the function of the file, whose folder is where it finds its own modules."""
        found = runpy.run_path(self.file)
        if "solve" not in found:
            raise ValueError(f"{self.file} must have a function solve(problem, budget)")
        return found["solve"]
