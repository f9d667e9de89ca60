"""The frontier of near ties: how far f falls as g may exceed its minimum, with a proven band around the true curve."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.driver.band import Band, Bound
from tiebreak.driver.minimize import minimize
from tiebreak.driver.path import Path, path
from tiebreak.driver.progress import Progress
from tiebreak.driver.result import Result, Status
from tiebreak.engine import checks
from tiebreak.methods.active_set import ActiveSet
from tiebreak.objectives import Objective
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs import Certificate, Floors, certify

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_SHARE, LARGEST_SHARE = 1e-6, 0.3  # tolerances that are followed by default, as shares of g(centre) − g*
UNLIMITED: dict[str, Any] = {"max_iterations": 10**12, "progress": False}  # the active set ends by itself
ROUNDING_SHARE = 1e-12  # share of g(centre) below which g(centre) − g* is taken for rounding
ROOM = 1.0 + 1e-9  # factor by which a tolerance that a point is to keep exceeds its bound on g − g*
HEAD = ("ε", "share", "f(x)", "g − g* ≤", "f* ≥", "f* ≤")


class FrontierPoint(NamedTuple):
    """One point of a frontier.

    Attributes
    ----------
    tolerance : float
        ε, in units of g.
    share : float
        ε as a share of g(centre) − g*; NaN if the middle of the domain minimises g.
    upper, lower : float
        f and g at the answer for ε.
    lower_gap_bound : float
        Proven: g(x) − g* is at most this.
    floor, ceiling : float
        Proven: f*(ε), the least f over the points of Z with g ≤ g* + ε, lies between them.
    also : float
        The third objective at the answer; NaN if there is none.
    result : Result
        The answer, of the problem with this tolerance.
    """

    tolerance: float
    share: float
    upper: float
    lower: float
    lower_gap_bound: float
    floor: float
    ceiling: float
    also: float
    result: Result


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """What :func:`frontier` found. It prints as a table.

    Attributes
    ----------
    problem : Problem
        The problem without tolerance.
    results : tuple of Result
        The answers, in the order of growing tolerances.
    others : tuple of float
        The third objective at them; empty if there is none.
    path : Path
        The minimisers of f + λ g, which bound f* between the tolerances.
    lower_alone, upper_alone : Certificate
        At a minimiser of g alone, and of f alone.
    least_upper : float
        Proven: f is nowhere in Z below this.
    gain : float
        g(centre) − g*, up to rounding: what shares are of.
    status : str
        Whether all tolerances are done, and why not.
    """

    problem: Problem
    results: tuple[Result, ...]
    others: tuple[float, ...]
    path: Path
    lower_alone: Certificate
    upper_alone: Certificate
    least_upper: float
    gain: float
    status: str

    @cached_property
    def band(self) -> Band:
        """The band in which f*(ε) lies: ``band.floor(ε)`` and ``band.ceiling(ε)`` for every ε ≥ 0."""
        certificates = [result.certificate for result in self.results]
        floors = tuple(Bound(each.tolerance, each.floors.upper) for each in certificates)
        ends = [self.lower_alone, self.upper_alone]
        exact = [_keeping(self.problem, each) for each in certificates if each.tolerance == 0.0]
        ceilings = tuple(Bound(each.tolerance, each.ceiling) for each in (*certificates, *exact, *ends))
        return Band(floors, ceilings, self.least_upper, self.path.floor)

    @cached_property
    def points(self) -> tuple[FrontierPoint, ...]:
        """One point per tolerance that is done, in growing order."""
        others = self.others or (math.nan,) * len(self.results)
        return tuple(self._point(result, other) for result, other in zip(self.results, others, strict=True))

    def _point(self, result: Result, other: float) -> FrontierPoint:
        epsilon = result.tolerance
        share = epsilon / self.gain if self.gain > 0.0 else math.nan
        bounds = self.band.floor(epsilon), self.band.ceiling(epsilon)
        return FrontierPoint(epsilon, share, result.upper, result.lower, result.lower_gap_bound, *bounds, other, result)

    @property
    def knee(self) -> FrontierPoint | None:
        """The point farthest below the chord of f against log ε: beyond it more of g buys little.

        None if no point lies below the chord of the first and the last one, or there is none between them.
        """
        points = [point for point in self.points if point.tolerance > 0.0]
        if len(points) < 3:
            return None
        at = np.log([point.tolerance for point in points])
        upper = np.array([point.upper for point in points])
        chord = upper[0] + (upper[-1] - upper[0]) * (at - at[0]) / (at[-1] - at[0])
        below = chord - upper
        best = int(np.argmax(below))
        return points[best] if below[best] > 0.0 else None

    def at(self, tolerance: float | None = None, *, keep: float | None = None) -> Result:
        """Return the answer of the largest computed tolerance that is not above this one.

        Parameters
        ----------
        tolerance : float
            ε, in units of g.
        keep : float
            In place of it: the share of g(centre) − g* to keep, so that ε is 1 − keep of it.

        Raises
        ------
        ValueError
            If not one of both is given, or all tolerances that were computed are larger.
        """
        if (tolerance is None) == (keep is None):
            raise ValueError("either `tolerance` or `keep` must be given")
        name = "tolerance" if keep is None else "keep"
        most = checks.real(tolerance, "tolerance", least=0.0) if keep is None else self._tolerance_of(keep)
        kept = [result for result in self.results if result.tolerance <= most]
        if not kept:
            least = self.results[0].tolerance
            raise ValueError(
                f"`{name}` asks for a tolerance of at most {most:g}, and the smallest that was computed is {least:g}:"
                f" compute it, frontier(problem, [{most:g}])"
            )
        return kept[-1]

    def _tolerance_of(self, keep: Any) -> float:
        """Return the tolerance that keeps a share of what g gains."""
        number = checks.as_float(keep)
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"`keep` must be a share between 0 and 1, such as 0.99, got {checks.shown(keep)}")
        if not self.gain > 0.0:
            raise ValueError("`keep` needs a g that is larger at the middle of the domain than g*: give `tolerance`")
        return checks.failure_probability(number) * self.gain

    def table(self) -> str:
        """Return one line per point, between those of g alone and of f alone."""
        first, last = self.lower_alone, self.upper_alone
        rows: list[tuple[str, ...]] = [
            (*HEAD, "also"),
            ("g alone", "–", *_number_cells(first.upper, first.lower_gap_bound, math.nan, math.nan, math.nan)),
        ]
        for point in self.points:
            share = f"{100.0 * point.share:.3g} %" if math.isfinite(point.share) else "–"
            cells = _number_cells(point.upper, point.lower_gap_bound, point.floor, point.ceiling, point.also)
            rows.append((f"{point.tolerance:.3g}", share, *cells))
        cells = _number_cells(last.upper, last.lower_gap_bound, self.least_upper, last.ceiling, math.nan)
        rows.append(("f alone", "–", *cells))
        if not self.others:
            rows = [row[:-1] for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, self.status])

    __str__ = __repr__ = table

    def plot(self) -> Figure:
        """Draw f against ε with the proven band, the values at both ends, and the third objective below, if there is one."""
        from tiebreak.driver.frontier_figure import draw

        return draw(self)


def frontier(
    problem: Problem,
    tolerances: Sequence[float] | None = None,
    *,
    points: int = 12,
    also: Objective | Callable[[np.ndarray], float] | None = None,
    x0: Any = None,
    progress: bool | None = None,
) -> Frontier:
    """Compute the least f for several tolerances of g: what a little of g buys of f.

    Each point is the answer of the active set for one tolerance, from the largest to the smallest one. It comes with a
    proven floor and a proven ceiling of f*(ε), the least f over the points of Z with g ≤ g* + ε.

    Parameters
    ----------
    problem : Problem
        Its own tolerance is left aside. The active set must take it: squares, Huber and logistic losses of linear models
        over sets with atoms.
    tolerances : list of float, optional
        Values of ε ≥ 0, in units of g. If not given: 0, the exact tie, and shares of g(centre) − g* on a logarithmic grid
        from 1e-6 to 0.3, g(centre) the value of g at the middle of the domain.
    points : int
        How many of these shares, at least 2; for ``tolerances`` that are given it has no meaning.
    also : Objective or function of x, optional
        What to evaluate beside f and g, such as a test loss.
    x0 : array or Result, optional
        Where to begin.
    progress : bool, optional
        Whether to show a progress bar; if not given, only in a terminal. Ctrl-C keeps the points that are done.

    Returns
    -------
    Frontier

    Raises
    ------
    ValueError
        If an argument is not valid, or the active set does not take the problem.

    Examples
    --------
    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 3.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> front = tiebreak.frontier(problem, [0.005, 0.02, 0.08])
    >>> [round(point.upper, 6) for point in front.points]  # (1 − √2ε)² / 20
    [0.0405, 0.032, 0.018]
    >>> front.at(0.05).tolerance
    0.02
    """
    check_problem(problem)
    problem = problem.exact
    _check_taken(problem)
    chosen = None if tolerances is None else _checked_tolerances(tolerances)
    count = checks.whole(points, "points", least=2)
    measure = None if also is None else _measure(also, problem.center)
    visible = sys.stderr.isatty() if progress is None else checks.flag(progress, "progress")
    total = count + 1 if chosen is None else len(chosen)
    with Progress((total + 2,), visible, unit="ε") as bar:
        bar.show((0,), "g alone")
        walked = path(problem, x0=x0, progress=False)
        _stop_if_pressed(walked.status)
        gain = _gain(problem, walked)
        chosen = _grid(gain, count) if chosen is None else chosen
        bar.show((1,), "f alone")
        lower_alone, (upper_alone, least_upper) = _lower_alone(walked), _upper_alone(walked)
        results, others, status = _answers(walked, chosen, measure, bar)
    return Frontier(problem, tuple(results), tuple(others), walked, lower_alone, upper_alone, least_upper, gain, status)


def _answers(
    walked: Path, tolerances: list[float], measure: Callable[[np.ndarray], float] | None, bar: Progress
) -> tuple[list[Result], list[float], str]:
    """Return the answers in the order of growing tolerances, the third objective at them, and why there are no more."""
    results: list[Result] = []
    others: list[float] = []
    status = "ended: all tolerances are done"
    last: Any = walked.points[-1].x
    try:
        # From large to small: a floor of f* for a tolerance is one for all smaller ones.
        for done, epsilon in enumerate(reversed(tolerances)):
            bar.show((done + 2,), f"ε {epsilon:.3g}")
            found = _checked(minimize(_near(walked.problem, epsilon), "active-set", x0=last, **UNLIMITED))
            if measure is not None:
                others.append(measure(found.x))
            results.append(found)
            last = found
    except KeyboardInterrupt:
        if not results:
            raise
        status = (
            f"interrupted: Ctrl-C was pressed; {len(results)} of {len(tolerances)} tolerances are done, the largest ones"
        )
    return results[::-1], others[: len(results)][::-1], status


def _near(problem: Problem, tolerance: float) -> Problem:
    return problem._replace(tolerance=tolerance)


def _lower_alone(walked: Path) -> Certificate:
    """Return the certificate of the minimiser of g alone, for the tolerance that it is proven to keep."""
    return _keeping(walked.problem, certify(walked.problem, walked.points[-1].x, floors=walked.floors))


def _upper_alone(walked: Path) -> tuple[Certificate, float]:
    """Return the certificate of a minimiser of f alone, for the tolerance that it is proven to keep, and a floor of f."""
    problem = walked.problem
    reversed_problem = problem._replace(upper=problem.lower, lower=problem.upper)
    found = _checked(minimize(reversed_problem, ActiveSet(level="lower"), x0=walked.points[0].x, **UNLIMITED))
    certificate = certify(problem, found.x, floors=walked.floors)
    return _keeping(problem, certificate), found.certificate.floors.lower


def _keeping(problem: Problem, certificate: Certificate) -> Certificate:
    """Return the certificate of the same point for the least tolerance that it is proven to keep, up to some digits."""
    epsilon = ROOM * certificate.lower_gap_bound + sys.float_info.min
    floors: Floors = certificate.floors._replace(upper=-math.inf)
    return certify(_near(problem, epsilon), certificate.x, floors=floors)


def _checked(result: Result) -> Result:
    """Return a result that is complete; raise what went wrong else."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.status.failed:
        raise result.error if result.error is not None else ArithmeticError(result.message)
    return result


def _stop_if_pressed(status: str) -> None:
    """Raise if Ctrl-C ended a path: there is no point of the frontier yet."""
    if status.startswith("interrupted"):
        raise KeyboardInterrupt


def _gain(problem: Problem, walked: Path) -> float:
    """Return g(centre) − g*; zero if it is not more than rounding."""
    value = problem.lower.value(problem.center)
    gain = value - walked.floors.best_lower
    return gain if gain > ROUNDING_SHARE * abs(value) else 0.0


def _grid(gain: float, count: int) -> list[float]:
    """Return the tolerances that are taken if none are given."""
    if not gain > 0.0:
        raise ValueError(
            "`tolerances` must be given: by default they are shares of g(centre) − g*, and here the middle of the domain"
            " minimises g"
        )
    return [0.0, *(np.geomspace(LEAST_SHARE, LARGEST_SHARE, count) * gain).tolist()]


def _check_taken(problem: Problem) -> None:
    """Raise if the active set does not take a problem."""
    if problem.upper.endless or problem.lower.endless:
        raise ValueError("`problem` must not be one of a stream: sum its rows up first, SummedSquares(blocks)")
    try:
        ActiveSet().check(problem)
    except ValueError as error:
        reason = str(error).rpartition(": ")[0] or str(error)
        raise ValueError(
            f"`problem` has no frontier that can be computed: {reason}. Minimise f + λ g for several λ instead, such as"
            " minimize(Problem(upper + 10.0 * lower, lower, domain), 'fista')"
        ) from None


def _checked_tolerances(tolerances: Any) -> list[float]:
    """Return the tolerances in increasing order, each once, or raise."""
    values = checks.vector(tolerances, "tolerances")
    if values.min() < 0.0:
        raise ValueError(f"`tolerances` must be numbers ≥ 0, got {checks.shown(tolerances)}")
    return sorted(set((values + 0.0).tolist()))


def _measure(also: Any, x: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return the third objective as a function that gives finite numbers, tried at one point, or raise."""
    if not isinstance(also, Objective) and not callable(also):
        raise ValueError(f"`also` must be an objective or a function of x, got {checks.shown(also)}")
    if isinstance(also, Objective):
        if also.endless:
            raise ValueError("`also` must not be a stream: give a function of x that takes the mean over some samples")
        if also.dimension not in (None, x.size):
            raise ValueError(f"`also` must have {x.size} variables, as `problem` has, got {also.dimension}")

    def value(x: np.ndarray) -> float:
        found = also.value(x) if isinstance(also, Objective) else also(x.copy())
        number = checks.as_float(found)
        if not math.isfinite(number):
            raise ValueError(f"`also` must return a finite number, got {checks.shown(found)}")
        return number

    value(x)
    return value


def _number_cells(upper: float, lower_gap: float, *others: float) -> list[str]:
    """Return numbers as cells of a table; those that are not finite are left out."""
    texts = [f"{upper:.6g}", f"{lower_gap:.2g}", *(f"{number:.6g}" for number in others)]
    return [text if math.isfinite(number) else "–" for text, number in zip(texts, (upper, lower_gap, *others), strict=True)]
