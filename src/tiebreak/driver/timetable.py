"""What fits into a time limit. Without one no clock decides anything, so that the same seed gives the same bits."""

from __future__ import annotations

import math

import numpy as np

from tiebreak.domains import lmo
from tiebreak.driver.limits import Clock
from tiebreak.driver.phases import INITIAL_SHARE, Phase
from tiebreak.problem import Problem
from tiebreak.proofs import Prover
from tiebreak.proofs.bundle import MAX_ATOMS

PROGRAM_SECONDS = 0.003  # seconds that one linear program of a bundle takes on a slow machine
IMPROVING_SHARE = 0.15  # share of a time limit that is kept for better bounds at the end
IMPROVING_RESERVE = 1.2  # multiple of the time foreseen for better bounds that is kept


class Timetable:
    """How long records and the bounds at the end take, and so what there is still time for."""

    def __init__(self, limit: float, clock: Clock, prover: Prover) -> None:
        self._limit, self._clock, self._prover = limit, clock, prover
        self._record_seconds = 0.0  # seconds that the last record took …
        self._record_cost = 1  # … and the samples that it was made of
        self._improving_seconds = 0.0  # seconds that better bounds at the end take, about

    @property
    def limited(self) -> bool:
        """Whether there is a time limit."""
        return math.isfinite(self._limit)

    def note_record(self, began: float, queries: int) -> None:
        """Take note of how long a record took that began at a time of the clock."""
        self._record_seconds, self._record_cost = self._clock.counted - began, self._prover.cost(queries)

    def foresee(self, problem: Problem) -> None:
        """Estimate how long a bundle takes at most: linear programs, with one linear minimisation for each."""
        if self.limited and self._prover.certain and self._improving_seconds == 0.0:
            began = self._clock.counted
            lmo(problem.domain, np.ones(problem.dimension), np.empty(problem.dimension))
            self._improving_seconds = 2 * MAX_ATOMS * (PROGRAM_SECONDS + self._clock.counted - began)

    def fitting(self, phase: Phase, evaluations: np.ndarray, queries: int) -> int:
        """Return how many of the next iterations, with this many evaluations each, can be made in time."""
        each = self._record_seconds / self._record_cost
        needed = np.maximum(phase.pace * np.arange(1, evaluations.size + 1), each * np.cumsum(evaluations))
        left = self._left(queries, self._clock.counted - phase.began)
        if phase.seeking and phase.iteration > 0:  # one step towards a first point is worth more than its share
            share = INITIAL_SHARE * (self._limit - phase.began)
            left = min(left, phase.began + share - self._clock.counted)
        left -= phase.kept_share * (self._limit - phase.began)
        return int(np.searchsorted(needed, left, side="right")) if left > 0.0 else 0

    def _left(self, queries: int, used: float) -> float:
        """Return the seconds until the last record must begin; better bounds get no more time than steps have had."""
        improving = min(IMPROVING_RESERVE * self._improving_seconds, IMPROVING_SHARE * self._limit, used)
        record = self._record_seconds * max(1.0, self._prover.cost(queries) / self._record_cost)
        return self._limit - self._clock.counted - record - improving

    def allows_improving(self) -> bool:
        """Return whether there is time for better bounds."""
        return not self.limited or self._limit - self._clock.counted >= self._improving_seconds
