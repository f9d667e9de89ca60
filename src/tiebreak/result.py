"""What a run returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak import checks
from tiebreak.certificate import APPROXIMATE, Certificate

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


class Status(Enum):
    """Why a run ended, as a sentence."""

    CERTIFIED = "certified: both bounds (for f not convex, the lower bound and the stationarity) are within `tol`"
    QUERIES = "budget spent: `max_queries` samples were drawn"
    ITERATIONS = "budget spent: `max_iterations` were made"
    TIME = "budget spent: `time_limit` has passed"
    ENDED = "ended: a stream has no more samples; x is the point that they led to"
    CALLBACK = "stopped by the callback"
    INTERRUPTED = "interrupted: Ctrl-C was pressed"
    NOT_FINITE = "stopped: an objective returned NaN or infinity; x is the last point before it"
    FAILED = "stopped by an error; x is the last point before it"


class Counts(NamedTuple):
    """Something counted at both levels."""

    upper: int
    lower: int

    @property
    def total(self) -> int:
        """Both levels together."""
        return self.upper + self.lower


class Record(NamedTuple):
    """One row of a history: exact values on the full data, evaluated with the clock stopped."""

    phase: int  # 0 while the first point is sought, 1 afterwards
    iteration: int  # of the phase
    upper_queries: int
    lower_queries: int
    seconds: float
    upper: float
    lower: float
    upper_bound_gap: float
    lower_bound_gap: float
    empty_cuts: int


class History:
    """The records of a run as columns: ``history.queries``, ``history.upper``, …

    Every field of :class:`Record` is an array of one entry a record, and ``queries`` is the sum over both levels.
    """

    def __init__(self, records: list[Record]):
        self.records = tuple(records)

    def __len__(self) -> int:
        return len(self.records)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in Record._fields:
            raise AttributeError(f"a history has no column {name!r}; it has queries, {', '.join(Record._fields)}")
        return np.array([getattr(record, name) for record in self.records])

    @property
    def queries(self) -> np.ndarray:
        """Samples drawn at both levels together."""
        return self.upper_queries + self.lower_queries

    def to_frame(self) -> pandas.DataFrame:
        """Return the history as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise ImportError("a DataFrame needs pandas: pip install 'tiebreak[pandas]'") from None
        return pandas.DataFrame(self.records, columns=Record._fields)


@dataclass(frozen=True, eq=False)
class Result:
    """The answer of a run. All values are exact, recomputed on the full data at the returned point.

    With a stream at a level, values are means over fresh samples, and the bounds hold with probability
    ``certificate.confidence``. They are proven if the stream has a ``value_range`` and a ``gradient_bound``; else
    ``certificate.approximate`` is True. Without a stream all bounds are proven.

    Attributes
    ----------
    x : array, (d,)
        The point found.
    parts : dict of arrays
        The named parts of x, as views of it, where the domain has names for them; else ``{"x": x}``.
    upper, lower : float
        f(x) and g(x).
    lower_bound_gap : float
        A bound: g(x) − g* is at most this. NaN if nothing bounds g* from below, as g is not known to be convex
        (``convex=True`` says so) and has no ``floor``.
    upper_bound_gap : float
        A bound: f(x) − f* is at most this. It may be negative: x is only nearly optimal for g, so that f(x) < f* is
        possible. NaN if nothing bounds f* from below, as f is not known to be convex and has no ``floor``.
    stationarity : float
        The largest decrease of f's linear model over the points that g's cut at x leaves; for f not convex a measure of how
        far x is from stationary.
    certificate : Certificate
        These values and bounds, with the half-spaces that prove them; ``certify(problem, result, bundle=20)`` makes the
        bounds tighter.
    status : Status
    message : str
        The status as a sentence, with details where there are any.
    iterations : int
        Steps of the method, without those that sought the first point.
    queries, evaluations : Counts
        Samples drawn and gradients evaluated by level, with those of the first point.
    empty_cuts : int
        How often the estimated cut left nothing of the domain.
    seconds : float
        Computing time, without compilation and the evaluations for the history.
    history : History
    problem : Problem
        What was solved.
    method : Method
        The method with all its parameters.
    settings : dict
        What was decided on the way.
    error : Exception or None
        What a function of the problem raised.
    """

    x: np.ndarray
    parts: dict[str, np.ndarray]
    upper: float
    lower: float
    upper_bound_gap: float
    lower_bound_gap: float
    stationarity: float
    certificate: Certificate
    status: Status
    message: str
    iterations: int
    queries: Counts
    evaluations: Counts
    empty_cuts: int
    seconds: float
    history: History
    problem: Any
    method: Any
    settings: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None

    @property
    def success(self) -> bool:
        """Whether the run ended as it was asked to: nothing failed and nobody interrupted it."""
        return self.status not in (Status.NOT_FINITE, Status.FAILED, Status.INTERRUPTED)

    def __str__(self) -> str:
        rows = [
            ("method", self.method.name),
            ("status", self.message),
            ("upper f(x)", f"{self.upper:.6g}"),
            *self._bound_rows("f", self.upper_bound_gap),
            ("lower g(x)", f"{self.lower:.6g}"),
            *self._bound_rows("g", self.lower_bound_gap),
            *([("with probability", f" {confidence:g}")] if (confidence := self.certificate.confidence) < 1.0 else []),
            *([(APPROXIMATE, "")] if self.certificate.approximate else []),
            ("iterations", f"{self.iterations:,}"),
            ("queries", f"{self.queries.upper:,} upper, {self.queries.lower:,} lower"),
            ("empty cuts", f"{self.empty_cuts:,}"),
            ("seconds", f"{self.seconds:.3g}"),
        ]
        return "\n".join(f"{name:<14}{value}" for name, value in rows)

    __repr__ = __str__

    def _bound_rows(self, level: str, bound: float) -> list[tuple[str, str]]:
        if not math.isnan(bound):
            return [(f"  {level}(x) − {level}* ≤", f"{bound:.3g}")]
        if level == "f":
            return [("  stationarity", f"  {self.stationarity:.3g}")]
        return [("  g(x) − g*", "  unknown: say convex=True of `lower`, if it is")]

    def plot(self, **named: Result) -> Figure:
        """Draw both objectives and the bounds of both gaps against queries.

        Parameters
        ----------
        **named : Result
            Other results to draw beside this one, by the name they get in the legend.
        """
        from tiebreak.figures import plot_results

        for name, other in named.items():
            if not isinstance(other, Result):
                raise ValueError(
                    f"`{name}` must be a Result to draw beside this one, got {checks.shown(other)}; the figure that is"
                    " returned can be changed and saved"
                )
        own = self.method.name if self.method.name not in named else f"{self.method.name} (this)"
        return plot_results({own: self, **named})
