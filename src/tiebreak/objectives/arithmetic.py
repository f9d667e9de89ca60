"""Objectives and their arithmetic: multiples and sums of objectives are objectives."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import checks
from tiebreak.engine.randomness import branch, uniform
from tiebreak.objectives.base import Function, accumulate, draw
from tiebreak.objectives.batches import batches_of_terms, encode
from tiebreak.objectives.surveys import Sharp, Survey


class Objective(Function):
    """The common part of all objectives: what users ask them from Python.

    Objectives can be added, and multiplied and divided by numbers: ``f + 0.1 * g`` and ``f / 2`` are objectives. ``f - g``
    and ``-f`` are, where what is known of f and g tells whether the result is convex.

    Attributes
    ----------
    dimension : int or None
        Number of variables; None if any number will do.
    n_samples : int or ∞
        Number of terms of the mean. An objective that is known exactly counts as one sample, a stream has infinitely many.
    lipschitz : float
        A constant L with ‖∇F(x) − ∇F(y)‖ ≤ L ‖x − y‖; NaN if it is not known.
    convex : bool or None
        Whether the objective is convex; None if it is not known.
    strong_convexity : float
        A constant μ such that F − ½ μ ‖x‖² is convex; 0 if none is known.
    floor : float
        A number that the objective is never below; −∞ if none is known.
    accuracy : float
        The relative error of a value and of each entry of a gradient, where :meth:`survey` knows no better.

    Examples
    --------
    >>> from tiebreak import SquaredNorm
    >>> f, g = SquaredNorm([1.0, 0.0]), SquaredNorm()
    >>> (f / 2 + 3 * g).value([1.0, 0.0])
    1.5
    >>> (3 * f - f).value([0.0, 0.0])
    1.0
    """

    __slots__ = ()

    # Not a tuple for operators: 2 * f is a multiple, not a repetition, and NumPy's numbers leave it to us.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Any:
        return Sum(self, added(other))

    def __radd__(self, other: Any) -> Any:
        return self if type(other) is int and other == 0 else self + other  # Python's `sum` starts with 0

    def __sub__(self, other: Any) -> Any:
        return difference(self, added(other))

    def __rsub__(self, other: Any) -> Any:
        return added(other) - self

    def __neg__(self) -> Any:
        if not (self.convex or is_concave(self)):
            raise ValueError(
                f"whether the negative of {checks.shown(self)} is convex is not known, as the objective itself does not say"
                " that it is convex: write -1.0 * f for an objective of which nothing is known"
            )
        return Scaled(-1.0, self)

    def __mul__(self, factor: Any) -> Any:
        return Scaled(multiplier(factor, "multiplied"), self)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        number = multiplier(divisor, "divided")
        if number == 0:
            raise ZeroDivisionError(f"an objective can be divided by a real number other than 0, got {divisor!r}")
        return Scaled(1.0 / number, self)


def added(other: Any) -> Any:
    """Return what is added to an objective or subtracted from it, or raise."""
    if isinstance(other, Objective):
        return other
    number = math.isfinite(checks.as_float(other))
    hint = ": a constant changes no minimiser, leave it out" if number else ""
    raise TypeError(f"only an objective can be added to an objective or subtracted, got {checks.shown(other)}{hint}")


def multiplier(factor: Any, verb: str) -> float:
    """Return a number that an objective is multiplied or divided by, or raise."""
    if isinstance(factor, (bool, np.bool_)) or not isinstance(factor, (int, float, np.integer, np.floating)):
        product = ": products of objectives have no unbiased samples; write the product as a FiniteSum"
        hint = product if isinstance(factor, Objective) else ""
        raise TypeError(f"an objective can be {verb} by a real number, got {checks.shown(factor)}{hint}")
    return checks.real(factor, "factor")


def difference(first: Any, second: Any) -> Any:
    """Return first − second, if it is known whether it is convex."""
    (p, f), (q, g) = ((each.factor, each.objective) if isinstance(each, Scaled) else (1.0, each) for each in (first, second))
    if f is g:
        return Scaled(p - q, f)
    if is_concave(second) or (is_concave(first) and second.convex):
        return Sum(first, Scaled(-1.0, second))
    raise ValueError(
        f"whether {checks.shown(first)} − {checks.shown(second)} is convex is not known: an objective can be subtracted from"
        " a multiple of itself, and a negative multiple of a convex one from any. Write f + (-1.0) * g for a sum that counts"
        " as not convex, or FiniteSum(n, dimension, value_and_grad, convex=True) if you know that the difference is convex"
    )


def is_concave(objective: Any) -> bool:
    """Whether an objective is known to be concave, as negative multiples of convex ones are, and their sums."""
    return all(isinstance(term, Scaled) and term.factor <= 0.0 and term.objective.convex is True for term in objective.terms)


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
    def dimension(self) -> int | None:
        return self.objective.dimension

    @property
    def n_samples(self) -> int:
        return self.objective.n_samples

    @property
    def lipschitz(self) -> float:
        return abs(self.factor) * self.objective.lipschitz if self.factor != 0.0 else 0.0

    @property
    def sample_lipschitz(self) -> float:
        return abs(self.factor) * self.objective.sample_lipschitz if self.factor != 0.0 else 0.0

    @property
    def convex(self) -> bool | None:
        if self.factor == 0.0:
            return True
        if self.factor > 0.0:
            return self.objective.convex
        if is_concave(self.objective):
            return True
        return False if self.objective.convex else None  # a linear one would be, and is not told apart

    @property
    def names_part(self) -> bool:
        return self.objective.names_part

    @property
    def terms(self) -> list[Any]:
        inner = self.objective.terms
        return [Scaled(self.factor, term) for term in inner] if len(inner) > 1 else [self]

    @property
    def strong_convexity(self) -> float:
        return max(self.factor, 0.0) * self.objective.strong_convexity

    @property
    def known_convexity(self) -> float:
        return max(self.factor, 0.0) * self.objective.known_convexity

    @property
    def floor(self) -> float:
        if self.factor == 0.0:
            return 0.0
        return rounded_down(self.factor * self.objective.floor) if self.factor > 0.0 else -math.inf

    def hessian(self) -> np.ndarray | float | None:
        inner = self.objective.hessian()
        return None if inner is None else self.factor * inner

    def evened(self) -> Scaled:
        return self._replace(objective=self.objective.evened())

    @property
    def in_blocks(self) -> bool:
        return self.objective.in_blocks

    def pass_over(self, x: np.ndarray, out: np.ndarray) -> float:
        gradient = np.zeros_like(x)
        value = self.objective.pass_over(x, gradient)
        out += self.factor * gradient
        return self.factor * value

    def rehearsal(self) -> Scaled:
        return self._replace(objective=self.objective.rehearsal())

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        return self.objective.survey(x, off).scaled(self.factor)

    def sharp(self, x: np.ndarray, off: np.ndarray | None = None) -> Sharp:
        return self.objective.sharp(x, off).scaled(self.factor)

    def check_dimension(self, dimension: int, name: str) -> None:
        self.objective.check_dimension(dimension, name)

    def __repr__(self) -> str:
        inner = f"({self.objective!r})" if isinstance(self.objective, Sum) else repr(self.objective)
        return f"{self.factor:g} * {inner}"


@draw.register(Scaled)
def draw_scaled(objective, moment, batch):
    return draw(objective.objective, moment, batch)


@accumulate.register(Scaled)
def accumulate_scaled(objective, batch, x, w, y, v, out):
    factor = objective.factor
    value_x, value_y = accumulate(objective.objective, batch, x, factor * w, y, factor * v, out)
    return factor * value_x, factor * value_y


class _Sum(NamedTuple):
    first: Any
    second: Any  # the other term, or the Sum of all others
    n_first: int  # samples of the first; 0 if it is known exactly
    n_second: int
    only: np.ndarray  # the batch of an objective that is known exactly


def check_codes(populations: list[int]) -> None:
    """Raise if the codes of samples of a sum, which double with each term that is sampled, would not fit 64 bits."""
    sampled = [n for n in populations if n > 0]
    if len(sampled) > 1 and max(sampled) * (max(sampled) + 1) << len(sampled) >= 2**62:  # a sample may be a pair of rows
        raise ValueError(
            f"`objectives` must be fewer terms that are sampled, got {len(sampled)} of up to {max(sampled):,} samples: put"
            " the rows of like terms into one objective, with sample weights"
        )


class Sum(Objective, _Sum):
    """The sum of objectives, also written ``f + g``; the sum of one objective is that objective.

    Terms of one sample, such as ``SquaredNorm()``, are known exactly and always evaluated. The samples of all other terms
    follow one another: N = n_1 + n_2 + …, and a sample of term k counts N / n_k times, so that the mean of all is
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
            terms += as_objective(value, f"objectives[{k}]").terms
        found = sorted({term.dimension for term in terms if term.dimension is not None})
        if len(found) > 1:
            raise ValueError(
                f"`objectives` must agree on the number of variables, got {', '.join(map(str, found))}; "
                f"an objective of a part of them is written OnPart(objective, name)"
            )
        if any(term.endless for term in terms) and sum(population(term) > 0 for term in terms) > 1:
            raise ValueError(
                "a stream can be added to objectives that are known exactly, such as SquaredNorm(), and not to sampled ones:"
                " let one stream draw for all of them"
            )
        check_codes([population(term) for term in terms if not term.endless])
        terms.sort(key=lambda term: population(term) > 0)  # first what is known exactly, so that no batch can do without it
        total = terms[-1]
        for term in reversed(terms[:-1]):
            total = super().__new__(cls, term, total, population(term), population(total), np.zeros(1, dtype=np.int64))
        return total

    @property
    def terms(self) -> list[Any]:
        """The objectives that are added; first those that are known exactly."""
        return [self.first, *(self.second.terms if isinstance(self.second, Sum) else [self.second])]

    @property
    def names_part(self) -> bool:
        return any(term.names_part for term in self.terms)

    @property
    def dimension(self) -> int | None:
        return next((term.dimension for term in self.terms if term.dimension is not None), None)

    @property
    def n_samples(self) -> int:
        return max(self.n_first + self.n_second, 1)

    @property
    def lipschitz(self) -> float:
        return math.fsum(term.lipschitz for term in self.terms)

    @property
    def sample_lipschitz(self) -> float:
        if self.n_first == 0:
            return self.first.lipschitz + self.second.sample_lipschitz
        total = self.n_first + self.n_second
        counts = (self.n_first, self.first), (self.n_second, self.second)
        return float(np.max([total / n * term.sample_lipschitz for n, term in counts]))  # not known if one is not

    @property
    def convex(self) -> bool | None:
        """Whether all terms are; if one is not the sum counts as not convex, though others may make up for it."""
        known = [term.convex for term in self.terms]
        return False if False in known else True if all(known) else None

    @property
    def strong_convexity(self) -> float:
        return math.fsum(term.strong_convexity for term in self.terms) if self.convex else 0.0

    @property
    def known_convexity(self) -> float:
        return math.fsum(term.known_convexity for term in self.terms) if self.convex else 0.0

    @property
    def floor(self) -> float:
        return rounded_down(math.fsum(term.floor for term in self.terms))

    def hessian(self) -> np.ndarray | float | None:
        inner = [term.hessian() for term in self.terms]
        if any(each is None for each in inner):
            return None
        multiple = math.fsum(each for each in inner if isinstance(each, float))  # of the identity
        full = [each for each in inner if isinstance(each, np.ndarray)]
        return sum(full) + multiple * np.eye(full[0].shape[0]) if full else multiple

    def evened(self) -> Sum:
        return self._replace(first=self.first.evened(), second=self.second.evened())

    @property
    def in_blocks(self) -> bool:
        return any(term.in_blocks for term in self.terms)

    def pass_over(self, x: np.ndarray, out: np.ndarray) -> float:
        return math.fsum(term.pass_over(x, out) for term in self.terms)

    def rehearsal(self) -> Sum:
        return self._replace(first=self.first.rehearsal(), second=self.second.rehearsal())

    def survey(self, x: np.ndarray, off: np.ndarray | None = None) -> Survey:
        first, *others = (term.survey(x, off) for term in self.terms)
        return functools.reduce(Survey.plus, others, first)

    def sharp(self, x: np.ndarray, off: np.ndarray | None = None) -> Sharp:
        first, *others = (term.sharp(x, off) for term in self.terms)
        return functools.reduce(Sharp.plus, others, first)

    def check_dimension(self, dimension: int, name: str) -> None:
        for term in self.terms:
            term.check_dimension(dimension, name)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))


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
def accumulate_sum(objective, batch, x, w, y, v, out):
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


def as_objective(value: Any, name: str) -> Any:
    """Return an objective, or raise."""
    if not isinstance(value, Objective) or not (accumulate.supports(value) or value.names_part):
        hint = "; a function goes into FiniteSum(n, dimension, value_and_grad)" if callable(value) else ""
        raise ValueError(f"`{name}` must be an objective such as LeastSquares(A, b), got {type(value).__name__}{hint}")
    return value


def rounded_down(value: float) -> float:
    """Return a number that a product or a sum, rounded to this value, is not below; 0 is what it is."""
    return math.nextafter(value, -math.inf) if value != 0.0 else 0.0


def population(objective: Function) -> Any:
    """Return the number of samples that batches are drawn from, 0 if the objective is known exactly."""
    return objective.n_samples if objective.n_samples > 1 else 0
