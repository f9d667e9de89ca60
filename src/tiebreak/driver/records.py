"""The records of a run: when to make one, and what the last one proves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose parts are loaded when they are used

from tiebreak.driver.limits import Spent
from tiebreak.driver.phases import Phase
from tiebreak.driver.result import STAGES, History, Record
from tiebreak.objectives import NonFiniteError
from tiebreak.proofs import NOTHING, Certificate, Prover, packed, unpacked

RECORD_GROWTH = 0.15  # growth of the queries of a phase from one record to the next …
RECORD_SPACING = 8  # … and multiple of a record's cost between two of them; the first records of a phase are closer
WELL_WITHIN = 1e-6  # share of the tolerance at which a first point is good enough
RETREAT = 1e-9  # share of the tolerance by which answers aim below the level, so that rounding does not carry them beyond
UNPROVEN_SHARE = 0.5  # share of the tolerance above the least g seen that is taken for tied where nothing is proven to be
STREAM_SHARE = 0.5  # share of the tolerance by which g may rise on a stream, whatever is proven of its first point
NEAR_ENOUGH = 1e-9  # share of the tolerance from the level at which a way back to it ends, about
SHORTEST_STEP = 1e-15  # … and share of the way itself
SMALL_RISE = 1e-3  # share of what g had gained at the first point by which it may end above that, where this is promised
KEPT_BYTES = 64_000_000  # memory for points to which a run may go back


class Snapshot:
    """What a callback sees: a copy of the point and the record made at it, with the record's fields as attributes.

    Attributes
    ----------
    x : array, (d,), read-only
    record : Record
    """

    def __init__(self, x: np.ndarray, record: Record) -> None:
        self.x = x.copy()
        self.x.flags.writeable = False
        self.record = record

    def __repr__(self) -> str:
        row = self.record
        stage = f", while {STAGES[row.phase]}" if STAGES[row.phase] else ""
        return (
            f"Snapshot after {row.upper_queries + row.lower_queries:,} samples, iteration {row.iteration:,}{stage}:"
            f" f {row.upper:.4g}, g {row.lower:.4g}, f − f* ≤ {row.upper_gap_bound:.2g}, g − g* ≤ {row.lower_gap_bound:.2g}"
        )

    def __getattr__(self, name: str) -> Any:
        if name not in Record._fields:  # `record` itself among them, while a copy is made
            raise AttributeError(f"a snapshot has no {name!r}; it has x, record, {', '.join(Record._fields)}")
        return getattr(self.record, name)


class Candidate(NamedTuple):
    """A point with a record, to which the run may go back."""

    x: np.ndarray
    upper: float
    lower: float

    def matches(self, other: Candidate) -> bool:
        """Return whether it is as good as another one at both levels."""
        return self.upper <= other.upper and self.lower <= other.lower


class Records:
    """The rows of a history, and the last point with what is proven there.

    Parameters
    ----------
    prover : Prover
    tol : (float, float), optional
        What is to be proven.
    convex : bool
        Whether f is known to be convex.
    given : bool
        Whether the first point was given.

    Attributes
    ----------
    rows : list of Record
    x, certificate : array and Certificate
        Of the last row, or of the point that was gone back to.
    last : array or None
        The point of the last row, if another one was gone back to.
    confirmed : bool
        Whether its bounds hold though records chose their moment.
    """

    x: np.ndarray
    certificate: Certificate

    def __init__(self, prover: Prover, tol: tuple[float, float] | None, convex: bool, given: bool) -> None:
        self.prover, self._tol, self._convex, self._given = prover, tol, convex, given
        self.rows: list[Record] = []
        self.confirmed = False
        self.last: np.ndarray | None = None
        self._lowest, self._least = np.zeros(0), math.inf
        self._front: list[Candidate] = []  # records with no other one that is as good at both levels, least g first
        self._kept: tuple[np.ndarray, Certificate, Record] | None = None  # the best record of a point within the level

    def __bool__(self) -> bool:
        return bool(self.rows)

    def made_at(self, phase: Phase) -> bool:
        """Return whether the last record is of the current point."""
        return bool(self.rows) and self.rows[-1][:2] == phase.place

    def add(self, x: np.ndarray, certificate: Certificate, phase: Phase, spent: Spent) -> None:
        """Add a row, in place of the last one if that is of the same point; raise if a value is not finite."""
        if not certificate.finite:
            level = "upper" if not math.isfinite(certificate.upper) else "lower"
            raise NonFiniteError(f"the {level} objective is NaN or infinite at iteration {phase.iteration}")
        number, iteration = phase.place
        row = Record(
            phase=number,
            iteration=iteration,
            upper_queries=spent.queries.upper,
            lower_queries=spent.queries.lower,
            seconds=spent.seconds,
            upper=certificate.upper,
            lower=certificate.lower,
            upper_gap_bound=certificate.upper_gap_bound,
            lower_gap_bound=certificate.lower_gap_bound,
            empty_cuts=phase.empty_cuts,
        )
        earlier = self.rows[:-1] if self.made_at(phase) else self.rows
        self.rows, self.x, self.certificate, self.confirmed = [*earlier, row], x, certificate, False
        if certificate.lower < self._least:
            self._lowest, self._least = x, certificate.lower
        if self.prover.certain:
            self._keep(Candidate(x, certificate.upper, certificate.lower))
        if certificate.is_near and certificate.within and (self._kept is None or certificate.upper <= self._kept[1].upper):
            self._kept = x, certificate, row

    # What is returned

    def _keep(self, new: Candidate) -> None:
        """Keep a record, and forget those that it matches; beyond some memory those of largest g."""
        if any(kept.matches(new) and not new.matches(kept) for kept in self._front):
            return
        front = sorted([new, *(kept for kept in self._front if not new.matches(kept))], key=lambda kept: kept.lower)
        self._front = front[: max(2, KEPT_BYTES // new.x.nbytes)]

    def better(self) -> np.ndarray | None:
        """Return a point with a record that is as good as the last one at both levels, and better than rounding at one.

        Of several it is the one of least g; for near ties, where they all keep the level if the last one does, of least f.
        """
        last = Candidate(self.x, self.certificate.upper, self.certificate.lower)
        found = [kept for kept in self._front if kept.matches(last) and not last.matches(kept)]
        if not found:
            return None
        upper, lower = (2.0 * error for error in self.prover.errors)
        found = [kept for kept in found if kept.upper < last.upper - upper or kept.lower < last.lower - lower]
        if not found:
            return None
        near = self.certificate.is_near
        return min(found, key=lambda kept: kept.upper if near else kept.lower).x

    def go_back(self, x: np.ndarray, certificate: Certificate) -> None:
        """Offer another point than that of the last row; the history stays as it is."""
        self.last, self.x, self.certificate = self.x, x, certificate

    # Levels of g

    def largest_rise(self) -> float:
        """Return how large g may be at the end of a run that promises to keep it near g at its first point.

        It may rise by half of the lower tolerance, or by a small share of what g has gained there, compared with the centre
        of the domain or the worst record.
        """
        first = self._first.lower
        worst = max(self.prover.problem.lower.value(self.prover.problem.center), *(row.lower for row in self.rows))
        return first + max(0.5 * self._tol[1] if self._tol else 0.0, SMALL_RISE * (worst - first))

    @property
    def _first(self) -> Record:
        """The record of the method's first point."""
        return next((row for row in reversed(self.rows) if row.phase == 0), self.rows[0])

    def allowed(self) -> tuple[float, float]:
        """Return the level that g is proven to keep, and how far above g at the method's first point g may be.

        If no point is known to keep the level, it may be as large as the least g seen. On a stream, where bounds on g − g*
        are loose, half of the tolerance is used in any case: a first point that is better than its bound leaves room for it.
        """
        floors = self.certificate.floors
        first = self._first
        if not self.prover.certain:  # values of different samples are not compared: g − g* at the first point has a bound
            return floors.aim, max(floors.room - first.lower_gap_bound, STREAM_SHARE * floors.epsilon)
        level = floors.aim - RETREAT * floors.room if floors.lower > -math.inf else -math.inf
        return level, max(level, floors.best_lower) - first.lower

    def retreat(self, promised: bool) -> np.ndarray | None:
        """Return the last point between that of least g and the last one where g keeps a level, in some passes over g.

        For near ties it is the level of these. Where no point is known to keep it, and the last one is known not to, half of
        the tolerance above the least g will do. For exact ties it is that of :meth:`largest_rise`, if that is ``promised``.
        None if there is no need of another point.
        """
        certificate, lowest = self.certificate, self._lowest
        if not self.prover.certain or certificate.within or not (certificate.is_near or promised):
            return None
        floors, objective, kept = certificate.floors, self.prover.problem.lower, 0.0
        if certificate.is_near:
            level, room = floors.aim - RETREAT * floors.room, floors.room
            if certificate.within is False and not self._least <= level:
                level = self._least + UNPROVEN_SHARE * floors.epsilon
        else:
            level = self.largest_rise() if certificate.lower > self._first.lower else math.inf
            room = level - self._least
        if not self._least <= level < certificate.lower:
            return None
        level -= 2.0 * max(objective.survey(self.x).value_error, self.prover.errors[1])

        def excess(share: float) -> float:
            nonlocal kept
            value = objective.value(lowest + share * (self.x - lowest))
            if value <= level:
                kept = max(kept, share)
            return value - level

        # g is convex, and so no larger than the chord: where that has the level, g keeps it. It is near if little is to go.
        rise = certificate.lower - self._least
        chord, width = (level - self._least) / rise, max(NEAR_ENOUGH * room / rise, SHORTEST_STEP)
        start = chord if excess(chord) < 0.0 else 0.0  # rounding may carry it beyond the level
        if 1.0 - start > width and excess(start) < 0.0 < excess(1.0):
            scipy.optimize.brentq(excess, start, 1.0, xtol=width, disp=False)
        return lowest + kept * (self.x - lowest)

    def return_to_level(self) -> None:
        """Make the best record of a point within the level the last one, if the last point is not within it."""
        if self.certificate.is_near and not self.certificate.within and self._kept is not None:
            self.x, self.certificate, row = self._kept
            shown = {name: getattr(row, name) for name in ("upper", "lower", "upper_gap_bound", "lower_gap_bound")}
            self.rows[-1] = self.rows[-1]._replace(**shown)

    # When to record

    def next_queries(self, phase: Phase, queries: int) -> float:
        """Return the queries at which the next record is made: ever fewer records, which cost a small part of the run."""
        last = self.rows[-1]
        made = last.upper_queries + last.lower_queries
        growth = RECORD_GROWTH * (made - phase.queries_before)
        return made + max(growth, self._spacing(phase) * self.prover.cost(queries))

    def _spacing(self, phase: Phase) -> int:
        """Return how many full evaluations a run is worth between two records: 1, 2, 4 and then always 8; for a stream 1."""
        if not self.prover.certain:
            return 1
        number, _ = phase.place
        before = sum(row.phase == number for row in self.rows[-RECORD_SPACING:-1])
        return min(2**before, RECORD_SPACING)

    # What is proven

    def within_tolerance(self, phase: Phase) -> bool:
        """Return whether the bounds at the current point are within the tolerances.

        For near ties, the search for a first point ends where it is well within the level, or at a given one within it.
        """
        if not self.made_at(phase):
            return False
        if phase.seeking and self.certificate.is_near:
            enough = 1.0 if self._given and len(self.rows) == 1 else WELL_WITHIN
            return self.certificate.lower_gap_bound <= enough * self.certificate.floors.room
        return self.excess(self.certificate, phase) <= 1.0

    def excess(self, certificate: Certificate, phase: Phase) -> float:
        """Return by how much the bounds exceed the tolerances, as a factor; it is infinite without tolerances."""
        if self._tol is None:
            return math.inf
        upper, lower = self._tol
        below = _times(certificate.lower_gap_bound, certificate.tolerance + lower)
        if phase.seeking:
            return 2.0 * below
        above = _times(certificate.upper_gap_bound, upper)
        if not self._convex:
            above = min(above, _times(certificate.stationarity, upper))
        return max(above, below)

    def improve(self) -> None:
        """Make the bounds of the last record as good as they can be."""
        self.certificate = self.prover.improved(self.certificate)
        if self.last is None:
            bounds = {name: getattr(self.certificate, name) for name in ("upper_gap_bound", "lower_gap_bound")}
            self.rows[-1] = self.rows[-1]._replace(**bounds)

    def bound_above(self) -> None:
        """Find a ceiling of f*, if there is one."""
        self.certificate = self.prover.bounded_above(self.certificate)

    def withdraw(self) -> None:
        """Take back all bounds: they rest on something that was found to be false."""
        upper = math.inf if self._convex else math.nan
        self.rows = [row._replace(upper_gap_bound=upper, lower_gap_bound=math.inf) for row in self.rows]
        self.certificate = self.certificate._replace(
            upper_gap_bound=upper,
            lower_gap_bound=math.inf,
            stationarity=math.inf,
            floors=NOTHING.at(self.certificate.floors.allowance),
            upper_error=math.inf,
            lower_error=math.inf,
            confidence=0.0,
            within=None,
            ceiling=math.inf,
            unique=None,
        )

    # On disk

    def stored(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all of this, for a checkpoint."""
        proofs, gradients = self.prover.stored()
        certificate, half_spaces = packed(self.certificate)
        history = {f"history.{name}": getattr(History(self.rows), name) for name in Record._fields}
        meta = {"confirmed": self.confirmed, "certificate": certificate, "proofs": proofs}
        lowest = {"lowest": self._lowest, "least": np.array([self._least])}
        front = {f"front.{name}": np.array([getattr(kept, name) for kept in self._front]) for name in Candidate._fields}
        return meta, {**history, **gradients, **half_spaces, **lowest, **front, "evaluated": self.x}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        self.prover.restore(meta["proofs"], arrays)
        self.confirmed = meta["confirmed"]
        columns = [arrays[f"history.{name}"].tolist() for name in Record._fields]
        self.rows = [Record(*row) for row in zip(*columns, strict=True)]
        self.x, self.certificate = arrays["evaluated"], unpacked(meta["certificate"], arrays)
        self._lowest, self._least = arrays["lowest"], float(arrays["least"][0])
        values = zip(arrays["front.upper"].tolist(), arrays["front.lower"].tolist(), strict=True)
        self._front = [Candidate(x, *each) for x, each in zip(arrays["front.x"], values, strict=True)]


def _times(bound: float, tolerance: float) -> float:
    """Return how many times a tolerance a bound is; ∞ if there is no bound."""
    return math.inf if math.isnan(bound) else bound / tolerance
