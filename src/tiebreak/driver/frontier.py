"""The frontier of near ties: how far f falls as g may exceed its minimum, with a proven band around the true curve."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.driver.band import Band, Bound, Tangent
from tiebreak.driver.result import Result
from tiebreak.engine import checks
from tiebreak.engine.printing import named
from tiebreak.problem import Problem
from tiebreak.proofs import APPROXIMATE, Certificate, Floors, certify
from tiebreak.proofs.exact import examine, least_on_line, look_at
from tiebreak.proofs.floors import known

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        Proven: f*(ε), the least f over the points of Z with g ≤ g* + ε, lies between them; infinite where nothing bounds it.
        With a stream at a level they are those of the answer's own certificate, and hold with its confidence.
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

    def __repr__(self) -> str:
        return named("FrontierPoint", self._asdict())


class FrontierEnd(NamedTuple):
    """A point that minimises one level alone.

    Attributes
    ----------
    certificate : Certificate
        Of the point, for the least tolerance that it is proven to keep, where there is one.
    least : float
        Proven: this level is nowhere in Z below it; −∞ if nothing bounds it.
    also : float
        The third objective there; NaN if there is none.
    """

    certificate: Certificate
    least: float
    also: float = math.nan

    def __repr__(self) -> str:
        values = {"upper": self.certificate.upper, "lower": self.certificate.lower}
        return named("FrontierEnd", {**values, "least": self.least, "also": self.also})


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
    lower_alone, upper_alone : FrontierEnd or None
        At a minimiser of g alone, and of f alone; None if it was not sought, as where f is not convex, or not reached.
    gain : float
        g(centre) − g*, up to rounding: what shares are of.
    status : str
        Whether all tolerances are done, and why not.
    """

    problem: Problem
    results: tuple[Result, ...]
    others: tuple[float, ...]
    lower_alone: FrontierEnd | None
    upper_alone: FrontierEnd | None
    gain: float
    status: str

    @cached_property
    def band(self) -> Band:
        """The band in which f*(ε) lies: ``band.floor(ε)`` and ``band.ceiling(ε)`` for every ε ≥ 0."""
        certificates = [result.certificate for result in self.results]
        floors = tuple(Bound(each.tolerance, each.floors.upper) for each in certificates)
        ends = [end.certificate for end in (self.lower_alone, self.upper_alone) if end is not None]
        exact = [
            keeping(self.problem, each.x, each.floors)
            for each in certificates
            if each.tolerance == 0.0 and not _sampled(self.problem)
        ]
        ceilings = tuple(Bound(each.tolerance, ceiling_of(each)) for each in (*certificates, *exact, *ends))
        convex = bool(self.problem.upper.convex and self.problem.lower.convex)
        return Band(floors, ceilings, self.least_upper, self._tangents() if convex else (), convex)

    def _tangents(self) -> tuple[Tangent, ...]:
        """Return a line below the curve at each answer: that of its multiplier, which any tolerance may use."""
        if _sampled(self.problem):
            return ()
        found = []
        least_seen = min(result.certificate.floors.best_lower for result in self.results)
        for result in self.results:
            weight = result.certificate.multiplier
            if result.tolerance > 0.0 and math.isfinite(weight):
                least = least_on_line(self.problem, look_at(self.problem, result.x.copy()), weight)
                found.append(Tangent(weight, least, least_seen))
        return tuple(found)

    @property
    def least_upper(self) -> float:
        """Proven: f is nowhere in Z below this; −∞ if nothing bounds it."""
        least = known(self.problem).upper
        return least if self.upper_alone is None else max(least, self.upper_alone.least)

    @cached_property
    def points(self) -> tuple[FrontierPoint, ...]:
        """One point per tolerance that is done, in growing order."""
        others = self.others or (math.nan,) * len(self.results)
        return tuple(self._point(result, other) for result, other in zip(self.results, others, strict=True))

    def _point(self, result: Result, other: float) -> FrontierPoint:
        epsilon = result.tolerance
        share = epsilon / self.gain if self.gain > 0.0 else math.nan
        if _sampled(self.problem):  # bounds of several points do not hold together as surely as each of them does
            bounds = result.certificate.floors.upper, ceiling_of(result.certificate)
        else:
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

    def rows(self) -> list[dict[str, Any]]:
        """Return the lines of the table as dictionaries: g alone, one per point, and f alone, where it is known."""
        names = ("tolerance", "share", "upper", "lower", "lower_gap_bound", "floor", "ceiling", "also")
        lines = [{"name": "", **{name: getattr(point, name) for name in names}} for point in self.points]
        first, last = self.lower_alone, self.upper_alone
        if first is not None:
            lines.insert(0, _end_row("g alone", first, math.nan, math.nan))
        if last is not None:
            lines.append(_end_row("f alone", last, last.least, ceiling_of(last.certificate)))
        return lines

    def table(self) -> str:
        """Return one line per point, between those of g alone and of f alone."""
        rows: list[tuple[str, ...]] = [(*HEAD, "also")]
        for row in self.rows():
            share = f"{100.0 * row['share']:.3g} %" if math.isfinite(row["share"]) else "–"
            numbers = [row[name] for name in ("upper", "lower_gap_bound", "floor", "ceiling", "also")]
            rows.append((row["name"] or f"{row['tolerance']:.3g}", share, *_number_cells(*numbers)))
        if not self.others:
            rows = [row[:-1] for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, self.status, *self._notes()])

    def _notes(self) -> list[str]:
        """Return what is to be said of answers that may exceed their tolerance, and of bounds that rest on samples."""
        certificates = [result.certificate for result in self.results if result.certificate.confidence < 1.0]
        if not certificates:
            near = [result.certificate for result in self.results if result.tolerance > 0.0]
            beyond = sum(each.within is not True for each in near)
            more = "a larger `max_queries` brings them nearer"
            return [f"{beyond} of {len(near)} answers are not proven to keep their tolerance: {more}"] if beyond else []
        kind = APPROXIMATE if any(each.approximate for each in certificates) else "proven"
        return [f"each bound holds with probability {certificates[0].confidence:g}, {kind}"]

    __str__ = __repr__ = table

    def plot(self) -> Figure:
        """Draw f against ε with the proven band, the values at both ends, and the third objective below, if there is one."""
        from tiebreak.driver.frontier_figure import draw

        return draw(self)


def keeping(problem: Problem, x: np.ndarray, floors: Floors) -> Certificate:
    """Return the certificate of a point for the least tolerance that it is proven to keep, up to some digits."""
    found = examine(problem, x.copy(), floors._replace(upper=-math.inf))[1]
    if not math.isfinite(found.lower_gap_bound):
        return found
    epsilon = ROOM * found.lower_gap_bound + sys.float_info.min
    near = problem._replace(tolerance=epsilon)
    return certify(near, found.x, floors=found.floors._replace(upper=-math.inf), check=False)


def ceiling_of(certificate: Certificate) -> float:
    """Return a number that f* is not above: f at a point that keeps the tolerance, which samples say up to an error."""
    if certificate.confidence < 1.0 and certificate.within:
        return certificate.upper + certificate.upper_error
    return certificate.ceiling


def _sampled(problem: Problem) -> bool:
    return bool(problem.upper.endless or problem.lower.endless)


def _end_row(name: str, end: FrontierEnd, floor: float, ceiling: float) -> dict[str, Any]:
    found = end.certificate
    values: Sequence[float] = (math.nan, math.nan, found.upper, found.lower, found.lower_gap_bound, floor, ceiling, end.also)
    keys = ("tolerance", "share", "upper", "lower", "lower_gap_bound", "floor", "ceiling", "also")
    return {"name": name, **dict(zip(keys, values, strict=True))}


def _number_cells(upper: float, lower_gap: float, *others: float) -> list[str]:
    """Return numbers as cells of a table; those that are not finite are left out."""
    texts = [f"{upper:.6g}", f"{lower_gap:.2g}", *(f"{number:.6g}" for number in others)]
    return [text if math.isfinite(number) else "–" for text, number in zip(texts, (upper, lower_gap, *others), strict=True)]
