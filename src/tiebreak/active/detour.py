"""A way to the minimisers of g along x_λ, the minimisers of f + λ g, for growing λ.

Where g is nearly flat between many points, cycles on g alone exchange atoms and hardly lower it. f decides which of these
points matter: the way along x_λ is short, and g alone, from its end, arrives soon. It is taken once the number of active
atoms has not grown for some cycles. λ begins where both levels vary alike. What x_λ lacks of the answer falls about like
1 / λ, and no x_λ is made more accurate than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tiebreak.active.solver import Solver

PATIENCE = 6  # cycles on g alone that leave the number of atoms as it is, or nearly so
NEARLY = 1.01  # factor of that number that is no growth
ROUGH = 0.01  # gap of g alone, as a share of the first one, with which the detour may begin
GROWTH = 100.0  # factor of λ from one stage to the next
SHARE = 0.1  # gap of f + λ g at the end of a stage, as a share of what x_λ lacks of the answer, about
LITTLE = 1e-7  # what it lacks of the answer, as a share of how f varies, at which the detour ends

NUMBERS = ("possible", "taken", "back", "stalled", "atoms", "first_gap", "first", "last", "fall", "unit", "weight", "sharp")


class Detour:
    """Whether the detour is taken, and how far it has come.

    Parameters
    ----------
    possible : bool
        Whether it may be taken at all: for exact ties.

    Attributes
    ----------
    taken : bool
        Whether it is under way.
    back : bool
        Whether g alone is to be minimised next.
    kept : dict of arrays, optional
        The solver at its end, while g alone is minimised from there.
    weight : float
        λ of its last stage.
    sharp : bool
        Whether f could be told from rounding there.
    """

    def __init__(self, possible: bool) -> None:
        self.possible, self.taken, self.back = possible, False, False
        self.stalled = self.atoms = 0
        self.first_gap = self.first = self.last = math.nan  # of g: the first gap, its first value, and the last at an x_λ
        self.fall = self.unit = self.weight = math.nan  # how f varies, the λ at which both vary alike, and that of a stage
        self.sharp = False
        self.kept: dict[str, np.ndarray] | None = None

    def watch(self, solver: Solver) -> None:
        """Take note of a cycle on g alone; if there were enough, let it end early."""
        if not self.possible:
            return
        if math.isnan(self.first_gap):
            self.first_gap, self.first = solver.gap, solver.seen.g
        before, self.atoms = self.atoms, solver.atoms
        self.stalled += self.atoms <= NEARLY * before
        if self.stalled >= PATIENCE:
            solver.enough = ROUGH * self.first_gap

    def begin(self, fall: float, g: float) -> None:
        """Begin at a point with this g from which f may fall by so much, or do without."""
        gain = self.first - g
        self.possible, self.taken = False, 0.0 < fall < math.inf and 0.0 < gain < math.inf
        self.back = not self.taken
        if self.taken:
            self.fall, self.unit = fall, fall / gain

    def next_weight(self) -> float:
        """Begin the next stage, and return its λ."""
        self.weight = self.unit if math.isnan(self.weight) else GROWTH * self.weight
        return self.weight

    @property
    def enough(self) -> float:
        """The gap of f + λ g with which a stage ends."""
        return SHARE * self.fall * self.unit / self.weight

    def arrive(self, solver: Solver, noise: float) -> None:
        """Take note of x_λ, of which rounding blurs f + λ g by so much; be done if it lacks little of the answer."""
        lacks = (self.last - solver.seen.g) * self.weight / GROWTH**2
        self.last, self.sharp = solver.seen.g, noise <= LITTLE * self.fall
        if lacks <= LITTLE * self.fall or not self.sharp:
            self.taken, self.back, self.kept = False, True, solver.stored()

    def end(self, solver: Solver) -> float:
        """Go back to the x_λ at its end, if there is one, and return λ; else, or where rounding blurs it, 0."""
        if self.kept is None:
            return 0.0
        passes = solver.passes.copy()
        solver.restore(self.kept)
        solver.passes[:], self.kept = passes, None
        return self.weight if self.sharp else 0.0

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return all of this as arrays."""
        kept = {f"detour.{name}": array for name, array in (self.kept or {}).items()}
        return {**kept, "detour.numbers": np.array([float(getattr(self, name)) for name in NUMBERS])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        for name, value in zip(NUMBERS, arrays["detour.numbers"].tolist(), strict=True):
            setattr(self, name, type(getattr(self, name))(value))
        start = "detour.solver."
        found = {name.removeprefix("detour."): array for name, array in arrays.items() if name.startswith(start)}
        self.kept = found or None
