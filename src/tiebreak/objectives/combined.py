"""Objectives made of objectives: multiples, sums, and objectives of a part of the variables."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks, kernel
from tiebreak.engine.randomness import branch, uniform
from tiebreak.objectives.base import Objective, accumulate, draw
from tiebreak.objectives.surveys import Survey


class _Scaled(NamedTuple):
    factor: float
    objective: Any


class Scaled(Objective, _Scaled):
    """A multiple of an objective, also written ``factor * objective``.

    Parameters
    ----------
    factor : float
        Any finite number. The number of samples turns a mean into a sum.
    objective : Objective
        What is multiplied.

    Examples
    --------
    >>> from tiebreak import SquaredNorm
    >>> (2.0 * SquaredNorm()).value([3.0, 4.0])
    25.0
    """

    __slots__ = ()

    def __new__(cls, factor: Any, objective: Any) -> Scaled:
        factor, objective = checks.real(factor, "factor"), as_objective(objective, "objective")
        if isinstance(objective, Scaled):
            factor, objective = factor * objective.factor, objective.objective
        return super().__new__(cls, checks.real(factor, "factor"), objective)

    @property
    def dimension(self) -> int | None:  # type: ignore[override]
        return self.objective.dimension

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self.objective.n_samples

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return abs(self.factor) * self.objective.lipschitz if self.factor != 0.0 else 0.0

    @property
    def convex(self) -> bool | None:  # type: ignore[override]
        if self.factor == 0.0:
            return True
        if self.factor > 0.0:
            return self.objective.convex
        return False if self.objective.convex else None  # a linear one would be, and is not told apart

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        return max(self.factor, 0.0) * self.objective.strong_convexity

    @property
    def floor(self) -> float:  # type: ignore[override]
        if self.factor == 0.0:
            return 0.0
        return rounded_down(self.factor * self.objective.floor) if self.factor > 0.0 else -math.inf

    def hessian(self) -> np.ndarray | float | None:
        inner = self.objective.hessian()
        return None if inner is None else self.factor * inner

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        return self.objective.survey(x, off).scaled(self.factor)

    def check_dimension(self, dimension: int, name: str) -> None:
        self.objective.check_dimension(dimension, name)

    def __repr__(self) -> str:
        return f"Scaled({self.factor:g}, {self.objective!r})"


@draw.register(Scaled)
def draw_scaled(objective, moment, batch):
    return draw(objective.objective, moment, batch)


@accumulate.register(Scaled)
def _(objective, batch, x, w, y, v, out):
    factor = objective.factor
    value_x, value_y = accumulate(objective.objective, batch, x, factor * w, y, factor * v, out)
    return factor * value_x, factor * value_y


class _Sum(NamedTuple):
    first: Any
    second: Any  # the other term, or the Sum of all others
    n_first: int  # samples of the first; 0 if it is known exactly
    n_second: int
    only: np.ndarray  # the batch of an objective that is known exactly


class Sum(Objective, _Sum):
    """The sum of objectives, also written ``f + g``; the sum of one objective is that objective.

    Terms of one sample, such as ``SquaredNorm()``, are known exactly and evaluated always. The samples of all other terms
    are put one after the other: N = n_1 + n_2 + …, and a sample of term k counts N / n_k times, so that the mean of all is
    the sum of the terms' means. Of a batch of B samples term k gets B n_k / N, rounded up or down at random so that this is
    its mean, and draws them itself: batches are unbiased, all samples together are exact, and B samples are B queries.

    Parameters
    ----------
    *objectives : Objective
        The terms, at least one. Those that have a dimension must have the same. To a stream only terms that are known
        exactly can be added.

    Examples
    --------
    >>> from tiebreak import LeastSquares, SquaredNorm
    >>> ridge = LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0]) + 0.5 * SquaredNorm()
    >>> ridge.value([1.0, 0.0])
    1.25
    >>> ridge.n_samples, ridge.convex
    (2, True)
    """

    __slots__ = ()

    def __new__(cls, *objectives: Any) -> Any:
        if not objectives:
            raise ValueError("`objectives` must be at least one objective, got none")
        terms: list[Any] = []
        for k, value in enumerate(objectives):
            terms += terms_of(as_objective(value, f"objectives[{k}]"))
        found = sorted({term.dimension for term in terms if term.dimension is not None})
        if len(found) > 1:
            raise ValueError(
                f"`objectives` must agree on the number of variables, got {', '.join(map(str, found))}; "
                f"an objective of a part of them is written OnPart(objective, name)"
            )
        if any(term.endless for term in terms) and sum(sampled(term) > 0 for term in terms) > 1:
            raise ValueError(
                "a stream can be added to objectives that are known exactly, such as SquaredNorm(), and not to sampled ones:"
                " let one stream draw for all of them"
            )
        terms.sort(key=lambda term: sampled(term) > 0)  # first what is known exactly, so that no batch can do without it
        total = terms[-1]
        for term in reversed(terms[:-1]):
            total = super().__new__(cls, term, total, sampled(term), sampled(total), np.zeros(1, dtype=np.int64))
        return total

    @property
    def terms(self) -> list[Any]:
        """The objectives that are added; first those that are known exactly."""
        return [self.first, *(self.second.terms if isinstance(self.second, Sum) else [self.second])]

    @property
    def dimension(self) -> int | None:  # type: ignore[override]
        return next((term.dimension for term in self.terms if term.dimension is not None), None)

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return max(self.n_first + self.n_second, 1)

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return math.fsum(term.lipschitz for term in self.terms)

    @property
    def convex(self) -> bool | None:  # type: ignore[override]
        """Whether all terms are; if one is not the sum counts as not convex, though others may make up for it."""
        known = [term.convex for term in self.terms]
        return False if False in known else True if all(known) else None

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        return math.fsum(term.strong_convexity for term in self.terms) if self.convex else 0.0

    @property
    def floor(self) -> float:  # type: ignore[override]
        return rounded_down(math.fsum(term.floor for term in self.terms))

    def hessian(self) -> np.ndarray | float | None:
        inner = [term.hessian() for term in self.terms]
        if any(each is None for each in inner):
            return None
        multiple = math.fsum(each for each in inner if isinstance(each, float))  # of the identity
        full = [each for each in inner if isinstance(each, np.ndarray)]
        return sum(full) + multiple * np.eye(full[0].shape[0]) if full else multiple

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        first, *others = (term.survey(x, off) for term in self.terms)
        return functools.reduce(Survey.plus, others, first)

    def check_dimension(self, dimension: int, name: str) -> None:
        for term in self.terms:
            term.check_dimension(dimension, name)

    def __repr__(self) -> str:
        return f"Sum({', '.join(map(repr, self.terms))})"


def rounded_down(value: float) -> float:
    """Return a number that a product or a sum, rounded to this value, is not below; 0 is what it is."""
    return math.nextafter(value, -math.inf) if value != 0.0 else 0.0


def sampled(objective: Objective) -> int:
    """Return the number of samples, 0 if the objective is known exactly."""
    return objective.n_samples if objective.n_samples > 1 else 0


def terms_of(objective: Any) -> list[Any]:
    """Return the terms that an objective is the sum of; multiples and parts of sums are taken apart."""
    if isinstance(objective, Sum):
        return objective.terms
    inner: list[Any] = []
    if isinstance(objective, Scaled):
        inner = [Scaled(objective.factor, term) for term in terms_of(objective.objective)]
    elif isinstance(objective, (OnPart, Placed)):
        inner = [objective._replace(objective=term) for term in terms_of(objective.objective)]
    return inner if len(inner) > 1 else [objective]


# A batch of a Sum holds indices below N, as in the batch of all samples; or N + 2 c for a sample c that the first term drew
# and N + 2 c + 1 for one that the second drew, in whatever way they code their samples. If one term alone is sampled, its
# batch is that of the sum.


@draw.register(Sum)
def draw_sum(objective, moment, batch):
    n, m = objective.n_first, objective.n_second
    if n == 0:  # what is known exactly comes first
        return draw(objective.second, moment, batch)
    count = int(batch.size * (n / (n + m)) + uniform(moment))
    encode(draw(objective.first, branch(moment, 1), batch[:count]), 2, n + m, batch[:count])
    encode(draw(objective.second, branch(moment, 2), batch[count:]), 2, n + m + 1, batch[count:])
    return batch


@accumulate.register(Sum)
def _(objective, batch, x, w, y, v, out):
    # One call for each term, whichever of them are sampled: their code becomes part of this one.
    first, second, share, other = batches_of_terms(objective, batch)
    value_x = 0.0
    value_y = 0.0
    if share > 0.0:
        at_x, at_y = accumulate(objective.first, first, x, share * w, y, share * v, out)
        value_x += share * at_x
        value_y += share * at_y
    if other > 0.0:
        at_x, at_y = accumulate(objective.second, second, x, other * w, y, other * v, out)
        value_x += other * at_x
        value_y += other * at_y
    return value_x, value_y


@kernel
def batches_of_terms(objective, batch):
    """Return the batches of both terms, in their own codes, and what the means over them count in the mean over all."""
    n, m = objective.n_first, objective.n_second
    if n == 0 or m == 0:
        return batch if n > 0 else objective.only, batch if m > 0 else objective.only, 1.0, 1.0
    ordered = np.empty_like(batch)
    count = decode(batch, n, n + m, ordered)
    scale = (n + m) / batch.size
    return ordered[:count], ordered[count:], (count / n) * scale, ((batch.size - count) / m) * scale


@kernel
def encode(drawn, unit, start, out):
    """Set the batch of a sum to samples that a term drew."""
    for k in range(out.size):
        out[k] = start + unit * drawn[k]


@kernel
def decode(batch, n, total, out):
    """Sort a batch by term, in the terms' own codes: first those of the first term, whose number is returned."""
    count = 0
    for k in range(batch.size):
        code = batch[k]
        if code < n:
            out[count] = code
            count += 1
        elif code >= total and (code - total) % 2 == 0:
            out[count] = (code - total) // 2
            count += 1
    place = count
    for k in range(batch.size):
        code = batch[k]
        if n <= code < total:
            out[place] = code - n
            place += 1
        elif code >= total and (code - total) % 2 == 1:
            out[place] = (code - total) // 2
            place += 1
    return count


class OfSome(Objective):
    """The common part of objectives that are another one, of some of the variables."""

    __slots__ = ()
    objective: Any

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self.objective.n_samples

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return self.objective.lipschitz

    @property
    def convex(self) -> bool | None:  # type: ignore[override]
        return self.objective.convex

    @property
    def floor(self) -> float:  # type: ignore[override]
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

    def __new__(cls, objective: Any, name: str) -> OnPart:
        if not isinstance(name, str):
            raise ValueError(f"`name` must be the name of a part of a Product, got {checks.shown(name)}")
        if _names_a_part(as_objective(objective, "objective")):
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
    def dimension(self) -> int:  # type: ignore[override]
        return self.size

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        own = slice(self.start, self.stop)
        return self.objective.survey(x[own], None if off is None else off[own]).placed(self.start, self.size)

    def check_dimension(self, dimension: int, name: str) -> None:
        self.objective.check_dimension(self.stop - self.start, name)


@draw.register(Placed)
def draw_placed(objective, moment, batch):
    return draw(objective.objective, moment, batch)


@accumulate.register(Placed)
def _(objective, batch, x, w, y, v, out):
    low, high = objective.start, objective.stop
    return accumulate(objective.objective, batch, x[low:high], w, y[low:high], v, out[low:high])


def holds(objective: Any, other: Any) -> bool:
    """Return whether an objective is another one or made of it."""
    if objective is other:
        return True
    inner = objective.terms if isinstance(objective, Sum) else [getattr(objective, "objective", None)]
    return any(each is not None and holds(each, other) for each in inner)


def _names_a_part(objective: Any) -> bool:
    if isinstance(objective, Scaled):
        return _names_a_part(objective.objective)
    if isinstance(objective, Sum):
        return any(map(_names_a_part, objective.terms))
    return isinstance(objective, OnPart)


def as_objective(value: Any, name: str) -> Any:
    """Return an objective, or raise."""
    if not isinstance(value, Objective) or not (accumulate.supports(value) or isinstance(value, OnPart)):
        raise ValueError(f"`{name}` must be an objective such as LeastSquares(A, b), got {type(value).__name__}")
    return value
