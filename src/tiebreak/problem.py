"""The one value that every method takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from tiebreak.domains import Domain, lmo
from tiebreak.engine import compilable
from tiebreak.objectives import Objective, accumulate


class _Problem(NamedTuple):
    upper: Any  # f
    lower: Any  # g
    domain: Any  # Z


class Problem(_Problem):
    """Among the minimisers of ``lower`` over ``domain``, find the one that is best for ``upper``.

    Parameters
    ----------
    upper : Objective
        The second criterion f, convex or not.
    lower : Objective
        The first criterion g, convex.
    domain : Domain
        The compact convex set Z.

    Examples
    --------
    The solution of x₁ + x₂ = 1 of smallest norm:

    >>> from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm
    >>> Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0)).dimension
    2
    """

    __slots__ = ()

    def __new__(cls, upper: Any, lower: Any, domain: Any) -> Problem:
        for name, objective in (("upper", upper), ("lower", lower)):
            if not isinstance(objective, Objective) or not accumulate.supports(objective):
                raise ValueError(f"`{name}` must be an objective such as LeastSquares(A, b), got {type(objective).__name__}")
        if lower.convex is False:
            raise ValueError("`lower` must be convex, and it says that it is not: its minimisers cannot be found then")
        if not isinstance(domain, Domain) or not lmo.supports(domain):
            raise ValueError(f"`domain` must be a set such as L1Ball(radius), got {type(domain).__name__}")
        self = super().__new__(cls, upper, lower, domain)
        known = {name: part.dimension for name, part in self._asdict().items() if part.dimension is not None}
        if not known:
            raise ValueError("the dimension is unknown: `upper`, `lower` or `domain` must fix it")
        if len(set(known.values())) > 1:
            found = ", ".join(f"`{name}` has {dimension}" for name, dimension in known.items())
            raise ValueError(f"the number of variables must agree, but {found}")
        return self

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return next(int(part.dimension) for part in self if part.dimension is not None)

    @property
    def compiled(self) -> bool:
        """Whether whole loops run compiled: no part holds a Python callable."""
        return compilable(self)
