"""Is there a tie at all? How many minimisers a least-squares loss has over an ℓ1 ball.

More features than samples do not make many minimisers. Where ∇g does not vanish at them, all lie on a face of the ball that
mostly has fewer corners than there are samples, and one point of it alone has the best fit. Where it vanishes, as it must if
g* = 0, every point of the ball of that fit is a minimiser, and there are many if A has a kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tiebreak
from tiebreak.proofs.faces import extent_of
from tiebreak.studies.tracing import solved


class Minimisers(NamedTuple):
    """The set of all minimisers of g."""

    dimension: int | None  # 0: there is one; None: it cannot be told at this accuracy
    lower: float  # g*
    gap: float  # proven: it is less by at most this

    @property
    def words(self) -> str:
        """What is found, in words."""
        if self.dimension is None:
            return "an unknown number of minimisers: it cannot be told at this accuracy"
        return "one minimiser" if self.dimension == 0 else f"many minimisers, a face of dimension {self.dimension}"


def minimisers(A: np.ndarray, b: np.ndarray, radius: float) -> Minimisers:
    """Return how many minimisers ‖A x − b‖² / 2n has over the ℓ1 ball.

    Examples
    --------
    One sample and two features: the target is out of reach of the first ball, and not of the second.

    >>> A, b = np.array([[2.0, 1.0]]), np.array([4.0])
    >>> minimisers(A, b, radius=1.0).words
    'one minimiser'
    >>> minimisers(A, b, radius=3.0).words
    'many minimisers, a face of dimension 1'
    """
    problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares(A, b), tiebreak.L1Ball(radius))
    found = solved(problem, tiebreak.ActiveSet(level="lower"))
    extent = extent_of(problem, [found.x])
    return Minimisers(None if extent is None else extent.known, float(found.lower), float(found.lower_gap_bound))
