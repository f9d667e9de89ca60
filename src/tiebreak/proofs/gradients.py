"""Whether gradients are those of the values: what a run and its bounds take for granted of functions that users write.

Along a line p + t v the gradient at p gives the slope ⟨∇F(p), v⟩ of the mean F over some samples, and values give the slopes
(F(p + h v) − F(p)) / h and (F(p) − F(p − h v)) / h on either side. At a kink of a convex function a subgradient lies between
these two, and where F is smooth they differ by h times the curvature. So the gradient fits at a step h if its slope lies
between them, up to a hundredth of its size and the rounding of the values over h. It is right along the line if it fits at
one of several steps, and wrong if it fits at none of those at which rounding is small enough to tell, and the values of two
steps next to each other agree on a slope: else they are noisy, or vary too fast, and nothing can be told. The lines lead
from x to other points, of the domain if there is one, and p is on the way: x itself may be a point at which nothing can be
told, such as a minimiser, or a kink of a function that is not convex.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import Domain
from tiebreak.engine import checks
from tiebreak.engine.randomness import Moments
from tiebreak.objectives import AssumptionError, Computed, Oracle, OracleError, Placed, Scaled, Sum, as_objective
from tiebreak.objectives.base import accumulate, draw
from tiebreak.problem import Problem
from tiebreak.proofs.fresh import Take

CHECKING = 0xC4EC  # part of the seed that sets the random numbers of a check apart from those of runs
SAMPLES = 32  # samples on which gradients are compared with values
PLACES = (0.5, 0.1, 0.5, 0.01)  # places of p on the way from x to another point of the domain, one per line
STEPS = (1e-3, 1e-4, 1e-2, 1e-5, 1e-6)  # steps h, relative to the way from x to p; most functions fit at the first one
NEAR = 0.1  # length of a line from x, relative to x, where no domain is given
CLEAR = 0.01  # relative difference below which the reason may be another one than a wrong gradient
VALUE_ULPS = 16.0  # units in the last place by which a value may be wrong
AGREEING = 0.1  # relative difference up to which slopes of values at two steps are called the same
TELLING = 0.1  # largest share of a slope that rounding may have at a step that counts


class GradientError(OracleError):
    """A function returned a gradient that is not that of its values."""


class Comparison(NamedTuple):
    """The slope of a function along one line.

    Attributes
    ----------
    function : str
        Whose slope it is.
    slope : float
        That of the gradient, ⟨∇F(p), v⟩.
    difference : float
        That of the values, (F(p + h v) − F(p − h v)) / 2h.
    told : bool
        Whether the rounding of the values is small enough to tell a right gradient from a wrong one.
    """

    function: str
    slope: float
    difference: float
    told: bool


class GradientReport(NamedTuple):
    """What :func:`check_gradient` found where it found nothing wrong.

    Attributes
    ----------
    comparisons : tuple of Comparison
        One for each line and each term of the objective.
    """

    comparisons: tuple[Comparison, ...]

    def __str__(self) -> str:
        lines = [f"{'slope of gradient':>20}{'of values':>14}  function"]
        lines += [f"{each.slope:>20.6g}{each.difference:>14.6g}  {each.function}" for each in self.comparisons]
        return "\n".join(lines)


def check_gradient(
    objective: Any, x: Any, *, domain: Domain | None = None, samples: int = SAMPLES, seed: int = 0
) -> GradientReport:
    """Compare the gradients of an objective with differences of its values; raise if they clearly disagree.

    :func:`minimize` and :func:`certify` do so for both levels, where a ``FiniteSum`` or a ``Stream`` holds a function that
    computes its gradient itself. This function takes any objective.

    Parameters
    ----------
    objective : Objective
        Each term of a sum is checked by itself.
    x : array, (d,)
        The point near which to compare.
    domain : Domain, optional
        If it is given, the objective is evaluated at points of it alone, on the way from x to random points of it; else at
        points that differ from x by up to a twentieth of its length.
    samples : int
        How many samples to compare on. A stream draws as many.
    seed : int
        The seed of the samples and the lines.

    Returns
    -------
    GradientReport

    Raises
    ------
    GradientError
        A kind of OracleError. It names the function and both slopes.

    Examples
    --------
    >>> import numpy as np
    >>> import tiebreak
    >>> def squares(x, indices):
    ...     return 0.5 * float(x @ x), -x
    >>> tiebreak.check_gradient(tiebreak.FiniteSum(1, 2, squares), [3.0, 4.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tiebreak.proofs.gradients.GradientError: the gradient of `squares` is not that of its values: ...
    """
    objective = as_objective(objective, "objective")
    x = checks.vector(x, "x", objective.dimension)
    objective.check_dimension(x.size, "x")
    if domain is not None and not (isinstance(domain, Domain) and domain.contains(x)):
        raise ValueError(f"`domain` must be a set that holds `x`, got {checks.shown(domain)}")
    samples, rng = checks.whole(samples, "samples"), _generator(seed)
    found: list[Comparison] = []
    for term, where in terms(objective, slice(0, x.size)):
        function = Function(term, batch_of(term, samples, rng))
        found += [function.compare(*line) for line in lines_through(function, x, where, domain, rng)]
    return GradientReport(tuple(found))


def check_gradients(problem: Problem, x: np.ndarray) -> None:
    """Raise a :class:`GradientError` if a function of a problem that is no stream has a wrong gradient near x.

    Functions that fail are left to the run, which meets them itself.
    """
    for name, level in (("upper", problem.upper), ("lower", problem.lower)):
        for term, where in terms(level, slice(0, x.size)):
            if own_gradient(term) and not term.endless:
                rng = _generator(0)
                check_term(term, batch_of(term, SAMPLES, rng), x, where, problem.domain, rng, name)


class Watched:
    """A source of samples that checks the gradients of a stream on the first batch drawn of it, and so draws none itself."""

    def __init__(self, take: Take, problem: Problem, x: np.ndarray) -> None:
        self.take, self.problem, self.x = take, problem, x
        self.seen: list[Any] = []

    def __call__(self, objective: Any, size: int) -> Any:
        batch = self.take(objective, size)
        if not any(objective is each for each in self.seen):
            self.seen.append(objective)
            name = "upper" if objective is self.problem.upper else "lower"
            for term, where in terms(objective, slice(0, self.x.size)):
                if own_gradient(term) and term.endless:
                    check_term(term, batch, self.x, where, self.problem.domain, _generator(0), name)
        return batch


def check_term(
    term: Any, batch: Any, x: np.ndarray, where: slice, domain: Domain, rng: np.random.Generator, level: str
) -> None:
    """Raise if the gradient of a term of some of the variables is wrong on a batch."""
    function = Function(term, batch, f"{level}: ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run has its own
        for line in lines_through(function, x, where, domain, rng):
            with leaving_failures():
                function.compare(*line)


@contextlib.contextmanager
def leaving_failures() -> Iterator[None]:
    """Ignore that a function fails: the run meets it itself, or does without that point. What is found is no failure."""
    try:
        yield
    except (GradientError, AssumptionError):
        raise
    except OracleError:
        pass


def own_gradient(term: Any) -> bool:
    """Return whether a user computes the gradient: where a library derives it from the values it is right by itself."""
    return isinstance(term, Computed) and not isinstance(term.value_and_grad, Oracle)


def terms(objective: Any, where: slice) -> Iterator[tuple[Any, slice]]:
    """Yield the objectives that one is made of, each with the place of its variables."""
    if isinstance(objective, Sum):
        for term in objective.terms:
            yield from terms(term, where)
    elif isinstance(objective, Scaled):
        yield from terms(objective.objective, where)
    elif isinstance(objective, Placed):
        yield from terms(objective.objective, slice(where.start + objective.start, where.start + objective.stop))
    else:
        yield objective, where


def batch_of(term: Any, samples: int, rng: np.random.Generator) -> Any:
    """Return a batch of different samples; of a stream, of fresh ones."""
    if term.endless:
        return draw(term, next(Moments(int(rng.integers(2**32)))), np.zeros(samples, dtype=np.int64))
    return np.sort(rng.choice(term.n_samples, min(samples, term.n_samples), replace=False)).astype(np.int64)


class Function:
    """The mean of an objective over one batch, as a function of the point."""

    def __init__(self, objective: Any, batch: Any, prefix: str = "") -> None:
        self.objective, self.batch, self.prefix = objective, batch, prefix
        self.name = getattr(objective, "_name", type(objective).__name__)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.zeros_like(x)
        value, _ = accumulate(self.objective, self.batch, np.ascontiguousarray(x), 1.0, x, 0.0, gradient)
        return float(value), gradient

    def compare(self, p: np.ndarray, v: np.ndarray, reach: float) -> Comparison:
        """Return both slopes along a line that may be followed so far in both directions; raise if they disagree."""
        value, gradient = self(p)
        slope, size = float(gradient @ v), float(np.abs(gradient) @ np.abs(p))
        told: dict[float, float] = {}  # slopes of values at steps that count
        difference = math.nan
        for step in STEPS:
            h = reach * step
            before, after = self(p - h * v)[0], self(p + h * v)[0]
            difference = (after - before) / (2.0 * h)
            largest = max(abs(slope), abs(difference))
            error = VALUE_ULPS * unit_of((before, value, after)) * (max(map(abs, (before, value, after))) + size) / h
            if not error <= TELLING * largest:
                continue
            told[step] = difference
            sides = (value - before) / h, (after - value) / h
            if min(sides) - CLEAR * largest - error <= slope <= max(sides) + CLEAR * largest + error:
                return Comparison(self.name, slope, difference, True)
        agreed = agreed_slope([told[step] for step in sorted(told, reverse=True)])
        if agreed == 0.0 and self(p + reach * v)[0] != value:  # not constant: a value of few digits at short steps
            agreed = None
        if agreed is not None and self(p)[0] == value:  # of a function that is random nothing can be told
            self._accuse(slope, agreed)
        return Comparison(self.name, slope, difference, False)

    def _accuse(self, slope: float, difference: float) -> None:
        ratio = f", {slope / difference:.3g} times as much" if difference != 0.0 else ""
        raise GradientError(
            f"{self.prefix}the gradient of `{self.name}` is not that of its values: along a line the values have the slope "
            f"{difference:.6g}, and the gradient says {slope:.6g}{ratio}. No bound would hold. Correct its sign, its factor "
            "(value and gradient are both means over the batch) or its entries; `check=False` of minimize and certify "
            "leaves this comparison out",
            self.objective,
        )


def agreed_slope(slopes: list[float]) -> float | None:
    """Return a slope that two of several steps, the longest first, agree on; None if there is none.

    Values of few digits have the slope 0 at short steps, whatever they have at long ones.
    """
    if slopes and not any(slopes):
        return 0.0
    return next((a for a, b in pairwise(slopes) if a != 0.0 and abs(a - b) <= AGREEING * max(abs(a), abs(b))), None)


def lines_through(
    function: Function, x: np.ndarray, where: slice, domain: Domain | None, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Yield points p, directions v and how far steps may go: within a domain if there is one, else near x."""
    part = x[where]
    for place in PLACES:
        if domain is not None:
            way = (0.5 * (domain.random_point(rng, x.size) + domain.random_point(rng, x.size)) - x)[where]
        else:
            way = rng.standard_normal(part.size)
            way *= NEAR * length_near(function, part) / float(np.linalg.norm(way))
        yield part + place * way, way, place


def length_near(function: Function, x: np.ndarray) -> float:
    """Return a length that a point and a function suggest: that of x; at 0, that along which the function would vanish."""
    norm = float(np.linalg.norm(x))
    if norm > 0.0:
        return norm
    value, gradient = function(x)
    slope = float(np.linalg.norm(gradient))
    return abs(value) / slope if value != 0.0 and slope > 0.0 else 1.0


def unit_of(values: tuple[float, ...]) -> float:
    """Return the relative precision that values seem to have: that of float32 if they all are such numbers."""
    with np.errstate(over="ignore"):
        single = all(float(np.float32(value)) == value for value in values)
    return float(np.finfo(np.float32 if single else np.float64).eps)


def _generator(seed: Any) -> np.random.Generator:
    return np.random.default_rng([checks.whole(seed, "seed", least=0), CHECKING])
