"""Is there a tie? How much f varies over the minimisers of g, and what a near tie would buy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak.active.scope import refusal
from tiebreak.active.solver import TooManyAtomsError
from tiebreak.domains.programs import unit_vector
from tiebreak.driver.minimize import minimize
from tiebreak.driver.progress import Progress, is_wanted
from tiebreak.driver.result import Result, Status
from tiebreak.engine import checks
from tiebreak.methods.active_set import ActiveSet
from tiebreak.objectives import SquaredNorm
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs import Certificate, certify
from tiebreak.proofs.faces import Extent, extent_of
from tiebreak.proofs.minimisers import nearby

UNLIMITED: dict[str, Any] = {"max_iterations": 10**12, "progress": False}  # the active set ends by itself
FAR = 1e3  # how far away the point is that is projected, in units of the diameter of the domain
MOST_STEPS = 12  # steps from one start
WORTHWHILE = 1e-7  # share by which f must grow for another step
ROUNDING_SHARE = 1e-12  # share of g(centre) below which g(centre) − g* is taken for rounding
MET = 1e-9  # relative difference of f at which two points are taken for one
SAME = 1e-6  # relative difference at which two values of f are called the same
KNOWN = 0.01  # share of f up to which a least f counts as known


@dataclass(frozen=True, eq=False, repr=False)
class Ties:
    """What :func:`ties` found. It prints as sentences and a table.

    Attributes
    ----------
    problem : Problem
        The problem with exact ties.
    least : Result
        The minimiser of g with the least f: the answer of the problem.
    largest : Certificate or None
        At the minimiser of g with the largest f that was found; None if none was sought, as the active set does not take g.
    exact : bool
        Whether that is the largest f, not only the largest found: where g has one minimiser, or f is linear.
    extent : Extent or None
        What the dimension of the set of minimisers of g is at least and at most, to rounding; None if it is not known.
    proven : bool
        Whether it is proven that g has one minimiser, or that it has several.
    keep : float
        The share of g(centre) − g* that the near tie keeps.
    near : Result or None
        The answer of the near tie; None if g is the same in the middle of the domain.
    """

    problem: Problem
    least: Result
    largest: Certificate | None
    exact: bool
    extent: Extent | None
    proven: bool
    keep: float
    near: Result | None

    @property
    def dimension(self) -> int | None:
        """The dimension of the set of minimisers of g, to rounding: 0 if there is one; None if it is not known."""
        return None if self.extent is None else self.extent.known

    @property
    def unique(self) -> bool | None:
        """Whether g has one minimiser: True, False if it has several, both to rounding unless ``proven``, or None."""
        if self.extent is None or self.extent.least == 0 < self.extent.most:
            return None
        return self.extent.most == 0

    @property
    def floor(self) -> float:
        """Proven: f is nowhere below this where g is least."""
        return self.least.certificate.floors.upper

    @property
    def ceiling(self) -> float:
        """Proven: there is a minimiser of g whose f is at most this; infinite if that is not proven."""
        return self.least.certificate.ceiling

    @property
    def spread(self) -> float:
        """The largest f found less the least one; NaN if the former is not known."""
        return math.nan if self.largest is None else max(self.largest.upper - self.least.upper, 0.0)

    @property
    def fall(self) -> float:
        """By how much f falls from the exact tie to the near tie; NaN if there is none."""
        return math.nan if self.near is None else self.least.upper - self.near.upper

    @property
    def sentences(self) -> str:
        """What is found, in words, one sentence per line."""
        return "\n".join(filter(None, [self._of_minimisers(), self._of_f(), self._of_near_tie()]))

    @property
    def _is_known(self) -> bool:
        """Whether the least f over the minimisers of g is known to some digits."""
        return abs(self.least.upper - self.floor) <= KNOWN * abs(self.least.upper)

    def _of_minimisers(self) -> str:
        if self.unique:
            return f"g has one minimiser ({'proven' if self.proven else 'to rounding'}): f has nothing to choose."
        if self.unique is None or self.extent is None:
            most = "" if self.extent is None else f": they may be a set of dimension 0 to {self.extent.most}"
            return f"It is not known how many minimisers g has{most}."
        dimension = self.extent.least if self.dimension is not None else f"{self.extent.least} to {self.extent.most}"
        return f"g has several minimisers{' (proven)' if self.proven else ''}: a set of dimension {dimension}, to rounding."

    def _of_f(self) -> str:
        if self.unique:
            return ""
        if self.largest is None:
            if self._is_known:
                return f"The least f over them is {self.least.upper:.6g}."
            return f"The least f over them is at least {self.floor:.6g} (proven); {self.least.upper:.6g} was found nearby."
        if self.spread <= SAME * abs(self.largest.upper):
            return f"f is {self.least.upper:.6g} at all that were found."
        end = "" if self.exact else " that was found"
        return f"f is {self.least.upper:.6g} at the best of them, {self.largest.upper:.6g} at the worst{end}."

    def _of_near_tie(self) -> str:
        if self.near is None:
            return "The middle of the set minimises g: there is no share of g to give up."
        verb = "lets" if self.unique is False else "would let"
        subject = f"Keeping {100.0 * self.keep:.8g} % of what g can gain"
        before, after = self.least.upper, self.near.upper
        rounding = ROUNDING_SHARE * abs(self.problem.upper.value(self.problem.center))
        if not self.fall > max(SAME * abs(before), rounding):
            return (
                f"{subject} leaves f as it is."
                if self._is_known
                else "What a near tie buys was not found: raise `max_queries`."
            )
        share = f" by {_percent(self.fall / before)}" if before > 0.0 and float(self.problem.upper.floor) == 0.0 else ""
        found = "" if self._is_known else ", as far as answers were found: a larger `max_queries` finds better ones"
        return f"{subject} {verb} f fall{share}, from {before:.4g} to {after:.4g}{found}."

    def table(self) -> str:
        """Return one line per point."""
        rows = [("", "f(x)", "g − g* ≤", "f* ≥", "f* ≤"), _cells("least f", self.least.certificate)]
        if self.largest is not None and not self.unique:
            name = "largest f" if self.exact else "largest f found"
            rows.append((*_cells(name, self.largest)[:3], "–", "–"))
        if self.near is not None:
            rows.append(_cells(f"keeping {100.0 * self.keep:.8g} %", self.near.certificate))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        aligned = [
            [f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))]
            for row in rows
        ]
        return "\n".join("  ".join(cells).rstrip() for cells in aligned)

    def __str__(self) -> str:
        return f"{self.sentences}\n\n{self.table()}"

    __repr__ = __str__


def ties(
    problem: Problem,
    *,
    keep: float = 0.9999,
    starts: int = 2,
    max_queries: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Ties:
    """See whether g leaves f anything to choose: how f varies over the minimisers of g, and what a near tie would buy.

    If g has one minimiser, f has nothing to choose, however it is minimised. How many there are is found for losses of
    linear models over polytopes: the dimension of the set of all minimisers, by comparing prices and singular values with
    rounding.

    Parameters
    ----------
    problem : Problem
        Its own tolerance is left aside.
    keep : float
        For the near tie: the share of g(centre) − g* to keep, above 0 and below 1.
    starts : int
        The largest f is sought along its gradients, and in twice as many random directions as this; as many ways are
        followed to their ends, and one more. Maximising a convex f is hard: what is found may not be the largest, unless f
        is linear.
    max_queries : int, optional
        Samples that may be drawn for each answer, where the active set does not take the problem; those of
        :func:`minimize` if not given.
    seed : int
        Of the random directions and of the methods.
    progress : bool, optional
        Whether to show a progress bar; if not given, only in a terminal. Ctrl-C ends the search for the largest f, and keeps
        what was found.

    Returns
    -------
    Ties

    Raises
    ------
    ValueError
        If an argument is not valid, or a level is a stream.

    Examples
    --------
    All points of the ball with x₁ + 3 x₂ = 1 are minimisers of g, from (0.1, 0.3), the nearest to 0, to (1.75, −0.25):

    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 3.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> found = tiebreak.ties(problem, keep=0.99)
    >>> print(found.sentences)
    g has several minimisers (proven): a set of dimension 1, to rounding.
    f is 0.05 at the best of them, 1.5625 at the worst that was found.
    Keeping 99 % of what g can gain lets f fall by 19 %, from 0.05 to 0.0405.
    """
    check_problem(problem)
    problem = problem.exact
    if problem.upper.endless or problem.lower.endless:
        raise ValueError("`problem` must not be one of a stream: sum its rows up first, SummedSquares(blocks)")
    share = checks.as_float(keep)
    if not 0.0 < share < 1.0:
        raise ValueError(f"`keep` must be a share above 0 and below 1, such as 0.999, got {checks.shown(keep)}")
    starts = checks.whole(starts, "starts", least=0)
    limits = {"max_queries": None if max_queries is None else checks.whole(max_queries, "max_queries")}
    visible = is_wanted(progress)
    search = _Search(problem, starts, checks.whole(seed, "seed", least=0), limits)
    with Progress((4,), ("steps",), visible) as bar:
        return search.run(share, bar)


class _Search:
    """What :func:`ties` does."""

    def __init__(self, problem: Problem, starts: int, seed: int, limits: dict[str, Any]) -> None:
        self.problem, self.starts, self.seed, self.limits = problem, starts, seed, limits
        self.takes_lower = not refusal(problem, ("lower",))
        self.takes_both = bool(problem.upper.convex) and not refusal(problem)

    def run(self, keep: float, bar: Progress) -> Ties:
        """Return what is found."""
        problem = self.problem
        bar.show((0,), "g alone")
        lower = self._lower_alone() if self.takes_lower else None
        extent = extent_of(problem, [lower.x]) if lower is not None else self._known_extent()
        bar.show((1,), "the least f")
        unique = extent is not None and extent.most == 0
        known = lower if unique and not self.takes_both else None  # there is no other
        least = self._minimised(problem) if known is None else known
        if lower is not None and self.takes_both and extent is not None and extent.known is None:
            extent = extent_of(problem, [lower.x, least.x])
        bar.show((2,), "a near tie")
        gain = self._gain(least)
        near = self._minimised(problem._replace(keep=keep), least) if gain > 0.0 else None
        bar.show((3,), "the largest f")
        largest = least.certificate if unique else None
        if not unique and lower is not None:
            largest = self._largest([least.x, lower.x] if self.takes_both else [lower.x], least)
        proven = unique if lower is None else self._is_proven(unique, lower, least)
        bar.show((4,))
        return Ties(problem, least, largest, unique or self._is_linear, extent, proven, keep, near)

    def _is_proven(self, unique: bool, lower: Result, least: Result) -> bool:
        """Return whether it is proven that there is one minimiser, or that there are several, as was found."""
        found = nearby(self.problem, lower.x, lower.certificate.floors.lower).unique, least.certificate.unique
        return any(each is unique for each in found)

    def _known_extent(self) -> Extent | None:
        return Extent(0, 0) if float(self.problem.lower.known_convexity) > 0.0 else None

    @property
    def _is_linear(self) -> bool:
        """Whether f is known to be linear: then the largest one is found."""
        return float(self.problem.upper.lipschitz) == 0.0

    def _gain(self, least: Result) -> float:
        """Return g(centre) − g*; zero if it is not more than rounding."""
        value = self.problem.lower.value(self.problem.reference)
        gain = value - least.certificate.floors.best_lower
        return gain if gain > ROUNDING_SHARE * abs(value) else 0.0

    def _lower_alone(self) -> Result | None:
        """Return a minimiser of g, to rounding; None if it has too many atoms."""
        try:
            return _complete(minimize(self.problem, ActiveSet(level="lower"), seed=self.seed, **UNLIMITED))
        except TooManyAtomsError:
            self.takes_lower = self.takes_both = False
            return None

    def _minimised(self, problem: Problem, x0: Any = None) -> Result:
        """Return the answer of a problem: by the active set, if it takes it."""
        if self.takes_both:
            try:
                return _complete(minimize(problem, "active-set", x0=x0, seed=self.seed, **UNLIMITED))
            except TooManyAtomsError:
                self.takes_both = False
        return _complete(minimize(problem, seed=self.seed, progress=False, **self.limits))

    # The largest f

    def _largest(self, points: list[np.ndarray], least: Result) -> Certificate:
        """Return the certificate of the minimiser of g with the largest f that is found.

        Of the first steps in several directions the most promising are followed, one linear model of f after the other.
        """
        upper, found = self.problem.upper, list(points)
        try:
            found += (self._farthest(x, slope) for x, slope in self._beginnings(points) if slope.any())
            seen: list[float] = []  # f at all points that were followed: a way that meets another one has nothing new
            for x in sorted(found, key=upper.value, reverse=True)[: self.starts + 1]:
                way = self._followed(x, seen)
                seen += map(upper.value, way)
                found += way
        except KeyboardInterrupt:
            pass  # what was found so far is a minimiser as well
        best = max(found, key=upper.value)
        return certify(self.problem, best, floors=least.certificate.floors, check=False)

    def _followed(self, x: np.ndarray, seen: list[float]) -> list[np.ndarray]:
        """Return the points to which steps along the gradient of f lead, until it grows no more or meets an earlier way."""
        way = [x]
        for _ in range(MOST_STEPS):
            value, slope = self.problem.upper.value_and_gradient(way[-1])
            if not slope.any() or np.isclose(value, seen, rtol=MET, atol=0.0).any():
                break
            further = self._farthest(way[-1], slope)
            if not self.problem.upper.value(further) > value + WORTHWHILE * abs(value):
                break
            way.append(further)
        return way

    def _beginnings(self, points: list[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield points and directions to begin with: along the gradient, and along random ones, weighted by curvature."""
        upper, rng, x = self.problem.upper, np.random.default_rng(self.seed), points[0]
        slopes = [upper.value_and_gradient(point)[1] for point in points]
        yield from zip(points, slopes, strict=True)
        for _ in range(self.starts):
            direction = rng.standard_normal(x.size)
            reach = float(self.problem.domain.diameter) / float(np.linalg.norm(direction))
            bent = upper.value_and_gradient(x + reach * direction)[1] - slopes[0]
            way = bent if np.isfinite(bent).all() and bent.any() else direction
            yield x, way
            yield x, -way

    def _farthest(self, x: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return the minimiser of g that is nearest to a point far away in a direction.

        It maximises a linear function, or nearly so; and a convex f is no smaller there than at x.
        """
        way, _ = unit_vector(slope)  # so that squares do not underflow
        reach = FAR * float(self.problem.domain.diameter) / float(np.linalg.norm(way))
        distance = self.problem._replace(upper=SquaredNorm(x + reach * way))
        return _complete(minimize(distance, "active-set", x0=x, seed=self.seed, **UNLIMITED)).x


def _complete(result: Result) -> Result:
    """Return a result that is complete; raise what went wrong else."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.status.failed:
        raise result.error if result.error is not None else ArithmeticError(result.message)
    return result


def _percent(share: float) -> str:
    """Return a share with the digits that tell it from all."""
    digits = 3 if share < 0.9995 else 5
    return f"{100.0 * share:.{digits}g} %"


def _cells(name: str, certificate: Certificate) -> tuple[str, ...]:
    numbers = certificate.upper, certificate.lower_gap_bound, certificate.floors.upper, certificate.ceiling
    texts = f"{numbers[0]:.6g}", f"{numbers[1]:.2g}", f"{numbers[2]:.6g}", f"{numbers[3]:.6g}"
    return (name, *(text if math.isfinite(number) else "–" for text, number in zip(texts, numbers, strict=True)))
