"""Objectives of a part of the variables: of one that has a name in a product, and of some places of a vector."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks
from tiebreak.objectives.arithmetic import Objective, Sum, as_objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.surveys import Sharp, Survey


class OfSome(Objective):
    """The common part of objectives that are another one, of some of the variables."""

    __slots__ = ()
    objective: Any
    _replace: Any

    @property
    def terms(self) -> list[Any]:
        inner = self.objective.terms
        return [self._replace(objective=term) for term in inner] if len(inner) > 1 else [self]

    @property
    def n_samples(self) -> int:
        return self.objective.n_samples

    @property
    def lipschitz(self) -> float:
        return self.objective.lipschitz

    @property
    def sample_lipschitz(self) -> float:
        return self.objective.sample_lipschitz

    def evened(self) -> Any:
        return self._replace(objective=self.objective.evened())

    @property
    def convex(self) -> bool | None:
        return self.objective.convex

    @property
    def floor(self) -> float:
        return self.objective.floor


class _OnPart(NamedTuple):
    objective: Any
    name: str


class OnPart(OfSome, _OnPart):
    """An objective of one named part of the variables; a :class:`Problem` over a :class:`Product` finds its place.

    The first parts of a product need no name: an objective as large as they are acts on them.

    Parameters
    ----------
    objective : Objective
        What depends on the part.
    name : str
        The name that the part has in the product; ``"outer.inner"`` for a part of a part.

    Examples
    --------
    >>> from tiebreak import L1Ball, L2Ball, LeastSquares, Problem, Product, SquaredNorm
    >>> both = Product(u=(L1Ball(1.0), 3), w=(L2Ball(1.0), 2))
    >>> problem = Problem(SquaredNorm(), OnPart(LeastSquares([[1.0, 2.0]], [1.0]), "w"), both)
    >>> problem.lower.value([9.0, 9.0, 9.0, 1.0, 0.0])
    0.0
    """

    __slots__ = ()
    dimension = None
    names_part = True

    def __new__(cls, objective: Any, name: str) -> OnPart:
        if not isinstance(name, str):
            raise ValueError(f"`name` must be the name of a part of a Product, got {checks.shown(name)}")
        if as_objective(objective, "objective").names_part:
            raise ValueError(
                f"`objective` must not name a part itself, got {checks.shown(objective)}; use one OnPart per term"
            )
        return super().__new__(cls, objective, name)

    def check_dimension(self, dimension: int, name: str) -> None:
        raise ValueError(
            f"`{name}` has {dimension} variables, and which of them are the part {self.name!r} is known only in a "
            f"Problem(upper, lower, Product(...)): its `upper` and `lower` have values"
        )


class _Placed(NamedTuple):
    objective: Any
    start: int
    stop: int
    size: int  # of the whole vector


class Placed(OfSome, _Placed):
    """An objective of the variables from ``start`` to ``stop`` of a longer vector; problems make it of parts."""

    __slots__ = ()

    @property
    def dimension(self) -> int:
        return self.size

    @property
    def in_blocks(self) -> bool:
        return self.objective.in_blocks

    def pass_over(self, x: np.ndarray, out: np.ndarray) -> float:
        own = slice(self.start, self.stop)
        return self.objective.pass_over(x[own], out[own])

    def rehearsal(self) -> Placed:
        return self._replace(objective=self.objective.rehearsal())

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        own = slice(self.start, self.stop)
        return self.objective.survey(x[own], None if off is None else off[own]).placed(self.start, self.size)

    def sharp(self, x: np.ndarray, off: np.ndarray | None = None) -> Sharp:
        own = slice(self.start, self.stop)
        return self.objective.sharp(x[own], None if off is None else off[own]).placed(self.start, self.size)

    def check_dimension(self, dimension: int, name: str) -> None:
        self.objective.check_dimension(self.stop - self.start, name)


@draw.register(Placed)
def draw_placed(objective, moment, batch):
    return draw(objective.objective, moment, batch)


@accumulate.register(Placed)
def accumulate_placed(objective, batch, x, w, y, v, out):
    low, high = objective.start, objective.stop
    return accumulate(objective.objective, batch, x[low:high], w, y[low:high], v, out[low:high])


def holds(objective: Any, other: Any) -> bool:
    """Return whether an objective is another one or made of it."""
    if objective is other:
        return True
    inner = objective.terms if isinstance(objective, Sum) else [getattr(objective, "objective", None)]
    return any(each is not None and holds(each, other) for each in inner)
