"""The one value that every method takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import Domain, Product, lmo
from tiebreak.engine import compilable
from tiebreak.engine.checks import all_finite, as_float, real, shown
from tiebreak.objectives import OnPart, Placed, Scaled, Sum, as_objective


class _Problem(NamedTuple):
    upper: Any  # f
    lower: Any  # g
    domain: Any  # Z
    tolerance: float = 0.0  # ε
    keep: float = 1.0  # k


class Problem(_Problem):
    """Among the minimisers of ``lower`` over ``domain``, find the one that is best for ``upper``.

    With a ``tolerance`` ε > 0, points that are nearly as good count as tied too: minimise f(x) over the points x of Z with
    g(x) ≤ g* + ε, g* the least value of g on Z. The least f over them is then what bounds call f*. ``keep`` says the same as
    a share: of what g can gain from the middle c of Z, ``keep=0.99`` keeps 99 %, so that ε = 0.01 (g(c) − g*).

    Over a :class:`Product`, an objective may depend on some parts only: on the first ones, if it has as many variables as
    they have together, or on the one that it names, ``OnPart(objective, "w")``.

    Parameters
    ----------
    upper : Objective
        The second criterion f, convex or not.
    lower : Objective
        The first criterion g, convex.
    domain : Domain
        The compact convex set Z.
    tolerance : float
        By how much g(x) may exceed g*, in units of g: ε ≥ 0. 0 stands for exact ties.
    keep : float
        In place of it: the share of g(c) − g* that is kept, from 0 to 1, c being ``problem.reference``. 1 stands for exact
        ties.

    Examples
    --------
    The solution of x₁ + x₂ = 1 of smallest norm:

    >>> from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm
    >>> Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0)).dimension
    2
    >>> print(Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0)))
    Problem of 2 variables
    upper   SquaredNorm()
    lower   LeastSquares 1 × 2
    domain  L1Ball(radius=2.0)

    Of the points that solve it up to g(x) ≤ 0.005, the one of smallest norm:

    >>> print(Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0), tolerance=0.005))
    Problem of 2 variables
    upper      SquaredNorm()
    lower      LeastSquares 1 × 2
    domain     L1Ball(radius=2.0)
    tolerance  0.005

    The same, as a share of g(0) − g* = 0.5:

    >>> Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0), keep=0.99).is_near
    True
    """

    __slots__ = ()

    def __new__(cls, upper: Any, lower: Any, domain: Any, tolerance: float = 0.0, keep: float = 1.0) -> Problem:
        for name, objective in (("upper", upper), ("lower", lower)):
            as_objective(objective, name)
        if lower.convex is False:
            raise ValueError("`lower` must be convex, and it says that it is not: its minimisers cannot be found then")
        if not isinstance(domain, Domain) or not lmo.supports(domain):
            raise ValueError(f"`domain` must be a set such as L1Ball(radius), got {type(domain).__name__}")
        levels = _placed(upper, "upper", domain), _placed(lower, "lower", domain)
        self = super().__new__(cls, *levels, domain, *_checked_level(tolerance, keep))
        known = {name: part.dimension for name, part in self._parts().items() if part.dimension is not None}
        if not known:
            raise ValueError("the dimension is unknown: `upper`, `lower` or `domain` must fix it")
        if len(set(known.values())) > 1:
            found = ", ".join(f"`{name}` has {dimension}" for name, dimension in known.items())
            raise ValueError(f"the number of variables must agree, but {found}")
        self.upper.check_dimension(self.dimension, "upper")
        self.lower.check_dimension(self.dimension, "lower")
        return self

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return next(int(part.dimension) for part in self[:3] if part.dimension is not None)

    @property
    def center(self) -> np.ndarray:
        """The middle of the domain, which is the centre of a symmetric set."""
        return self.domain.middle(self.dimension)

    @property
    def reference(self) -> np.ndarray:
        """The point from which ``keep`` measures what g gains: the middle of Z, on a simplex the mean of its corners."""
        return self.domain.centroid(self.dimension)

    @property
    def exact(self) -> Problem:
        """The same problem with exact ties: without tolerance."""
        return self._replace(tolerance=0.0, keep=1.0)

    @property
    def is_near(self) -> bool:
        """Whether g may exceed g*: there is a tolerance, or a share that need not be kept."""
        return self.tolerance > 0.0 or self.keep < 1.0

    @property
    def allowed(self) -> str:
        """What was said of how far g may exceed g*, as it was written; nothing for exact ties."""
        if self.keep < 1.0:
            return f"keep={self.keep:g}"
        return f"tolerance={self.tolerance:g}" if self.tolerance > 0.0 else ""

    def __str__(self) -> str:
        rows = self._parts()
        if self.is_near:
            name = "keep" if self.keep < 1.0 else "tolerance"
            rows[name] = getattr(self, name)
        width = 2 + max(map(len, rows))
        return "\n".join([f"Problem of {self.dimension} variables", *(f"{name:<{width}}{rows[name]!r}" for name in rows)])

    __repr__ = __str__

    def _parts(self) -> dict[str, Any]:
        """Return both objectives and the set, by name."""
        return {name: getattr(self, name) for name in ("upper", "lower", "domain")}

    @property
    def compiled(self) -> bool:
        """Whether whole loops run compiled: no part holds a Python callable."""
        return compilable(self)


def check_problem(problem: Any) -> None:
    """Raise if something is no problem, or data of an objective were changed to NaN or infinity since it was made."""
    if not isinstance(problem, Problem):
        raise ValueError(f"`problem` must be a Problem(upper, lower, domain), got {type(problem).__name__}")
    _checked_level(problem.tolerance, problem.keep)
    for level in ("upper", "lower"):
        for array in _arrays_in(getattr(problem, level)):
            if not all_finite(array):
                raise ValueError(
                    f"the data of `{level}` hold NaN or infinity, {int((~np.isfinite(array)).sum())} entries of an array of"
                    f" shape {array.shape}: they were changed after the objective was made; correct them and make it anew"
                )


def _checked_level(tolerance: Any, keep: Any) -> tuple[float, float]:
    """Return both ways to say how far g may exceed g*, or raise."""
    epsilon, share = real(tolerance, "tolerance", least=0.0) + 0.0, as_float(keep)  # −0 is 0
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"`keep` must be a share from 0 to 1, such as 0.99, got {shown(keep)}")
    if epsilon > 0.0 and share < 1.0:
        raise ValueError(
            f"`tolerance` and `keep` say the same in two ways, and both were given, {epsilon:g} and {share:g}: leave one out"
        )
    return epsilon, share + 0.0


def _arrays_in(part: Any) -> Iterator[np.ndarray]:
    """Yield all arrays of numbers in a named tuple of arrays and named tuples."""
    if isinstance(part, np.ndarray) and part.dtype.kind == "f":
        yield part
    elif isinstance(part, tuple):
        for entry in getattr(part, "lasting", part):
            yield from _arrays_in(entry)


def _placed(objective: Any, level: str, domain: Any) -> Any:
    """Return an objective as one of all variables of the domain, if it is one of some of its parts."""
    if isinstance(objective, Sum):
        return Sum(*(_placed(term, level, domain) for term in objective.terms))
    if isinstance(objective, Scaled):
        return Scaled(objective.factor, _placed(objective.objective, level, domain))
    if isinstance(objective, OnPart):
        return _on_part(objective, level, domain)
    size = objective.dimension
    stops = [where.stop for _, _, where in domain.named_parts()] if isinstance(domain, Product) else []
    return Placed(objective, 0, size, domain.dimension) if size in stops[:-1] else objective


def _on_part(part: OnPart, level: str, domain: Any) -> Placed:
    places = dict(_places(domain)) if isinstance(domain, Product) else {}
    if part.name not in places:
        names = ", ".join(places) if places else f"none, as {type(domain).__name__} is no Product"
        raise ValueError(f"`{level}` depends on the part {part.name!r}, but the parts of `domain` are {names}")
    low, high = places[part.name]
    if part.objective.dimension not in (None, high - low):
        found = f"but the part {part.name!r} has {high - low}, `{level}` has {part.objective.dimension} there"
        raise ValueError(f"the number of variables must agree, {found}")
    return Placed(part.objective, low, high, domain.dimension)


def _places(domain: Product, start: int = 0, prefix: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the names of all parts, with those of parts of parts, and from where to where they go."""
    for name, part, where in domain.named_parts():
        yield prefix + name, (start + where.start, start + where.stop)
        if isinstance(part, Product):
            yield from _places(part, start + where.start, f"{prefix}{name}.")
