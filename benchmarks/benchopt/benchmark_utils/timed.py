"""Solvers whose processor time is kept beside the time by the clock, which means little on a machine that others use."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from benchopt import BaseSolver


class TimedSolver(BaseSolver):
    """A solver that leaves its answer in ``x``; a subclass has ``solve`` in place of benchopt's ``run``."""

    x: np.ndarray
    processor_seconds: float

    def solve(self, stop_val: Any) -> None:
        """Set ``x``, with the effort that benchopt's sampling strategy asks for."""
        raise NotImplementedError

    def run(self, stop_val: Any) -> None:
        began = time.process_time()
        self.solve(stop_val)
        self.processor_seconds = time.process_time() - began

    def get_result(self) -> dict[str, Any]:
        return {"x": self.x, "processor_seconds": self.processor_seconds}
