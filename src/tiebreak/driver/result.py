"""What a run returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.engine import checks
from tiebreak.proofs import APPROXIMATE, Certificate

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from tiebreak.problem import Problem


STAGES = ("a first point is sought", "", "g is lowered at the end")  # what the phases of a record are, beside the method


class Status(Enum):
    """Why a run ended, as a sentence."""

    CERTIFIED = "certified: the bounds of both gaps (for f not convex, the lower one and the stationarity) are within `tol`"
    SOLVED = "solved: the method can improve nothing further, up to rounding"
    QUERIES = "budget spent: `max_queries` samples were drawn"
    ITERATIONS = "budget spent: `max_iterations` were made"
    TIME = "budget spent: `time_limit` has passed"
    ENDED = "ended: a stream has no more samples; x is the point that they led to"
    CALLBACK = "stopped by the callback"
    INTERRUPTED = "interrupted: Ctrl-C was pressed"
    NOT_FINITE = "stopped: an objective returned NaN or infinity; x is the last point before it"
    FAILED = "stopped by an error; x is the last point before it"

    @property
    def failed(self) -> bool:
        """Whether something went wrong: an objective raised an error, or returned NaN or infinity."""
        return self in (Status.NOT_FINITE, Status.FAILED)


class Counts(NamedTuple):
    """Something counted at both levels."""

    upper: int
    lower: int

    @property
    def total(self) -> int:
        """Both levels together."""
        return self.upper + self.lower


class Memory(NamedTuple):
    """What a run that continues from another one of the same problem can use beside its point."""

    method: str  # that can use it, by its name
    arrays: dict[str, np.ndarray]


class Record(NamedTuple):
    """One row of a history: exact values on the full data, evaluated with the clock stopped."""

    phase: int  # 0 while the first point is sought, 1 afterwards, 2 while g is lowered at the end
    iteration: int  # of the phase
    upper_queries: int
    lower_queries: int
    seconds: float
    upper: float
    lower: float
    upper_gap_bound: float
    lower_gap_bound: float
    empty_cuts: int


class History:
    """The records of a run as columns: ``history.queries``, ``history.upper``, …

    Every field of :class:`Record` is an array of one entry per record, and ``queries`` is the sum over both levels.
    """

    def __init__(self, records: list[Record]) -> None:
        self.records = tuple(records)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        columns = f"columns: queries, {', '.join(Record._fields)}"
        return f"History of {len(self)} records up to {int(self.queries[-1]) if self.records else 0:,} samples; {columns}"

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
    lower_gap_bound : float
        A bound: g(x) − g* is at most this. NaN if nothing bounds g* from below, as g is not known to be convex
        (``convex=True`` says so) and has no ``floor``.
    upper_gap_bound : float
        A bound: f(x) − f* is at most this, f* the least f over the points of Z with g ≤ g* + ε, ε the tolerance of the
        problem. It may be negative: x is only nearly optimal for g, so that f(x) < f* is possible. NaN if nothing bounds f*
        from below, as f is not known to be convex and has no ``floor``.
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
        Time of the method, with the constants that it needs, without compilation and the evaluations for the history: to
        compare methods.
    wall_seconds : float
        Time from the call to the result, with everything, including earlier parts of the run before a checkpoint.
    bytes_moved : int
        Bytes that went to and came from Dask workers, in this process; 0 if the data are here.
    seconds_waited : float
        Seconds of ``wall_seconds`` in which the run waited for them.
    history : History
    problem : Problem or None
        What was solved; None if the result was read from a file without it.
    method : Method
        The method with all its parameters.
    settings : dict
        What was asked for (``tol``, ``seed``) and decided on the way (``phases``, ``parameters``, …).
    error : Exception or None
        What a function of the problem raised.
    memory : Memory or None
        What the method keeps for a run that continues from this result, ``minimize(problem, x0=result)``, with the same
        ``tolerance`` or another one; a file does not hold it.
    last : array or None
        The point at which the run ended. It is x, unless a point with a record was better at both levels; a file does not
        hold it.
    """

    x: np.ndarray
    parts: dict[str, np.ndarray]
    upper: float
    lower: float
    upper_gap_bound: float
    lower_gap_bound: float
    stationarity: float
    certificate: Certificate
    status: Status
    message: str
    iterations: int
    queries: Counts
    evaluations: Counts
    empty_cuts: int
    seconds: float
    wall_seconds: float
    history: History
    problem: Any
    method: Any
    settings: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    memory: Memory | None = None
    last: Any = None
    bytes_moved: int = 0
    seconds_waited: float = 0.0

    def moved_to(self, found: Certificate) -> Result:
        """Return the same result at another point, with what is proven there."""
        return replace(
            self,
            x=found.x,
            parts={} if self.problem is None else self.problem.domain.parts(found.x),
            upper=found.upper,
            lower=found.lower,
            upper_gap_bound=found.upper_gap_bound,
            lower_gap_bound=found.lower_gap_bound,
            stationarity=found.stationarity,
            certificate=found,
        )

    @property
    def tolerance(self) -> float:
        """ε of the problem that was solved: by how much g(x) may exceed g*. With ``keep``, ε is at least this."""
        return self.certificate.tolerance

    @property
    def within(self) -> bool | None:
        """Whether g(x) ≤ g* + ε: True if it is proven, False if the contrary is, None if neither is."""
        return self.certificate.within

    @property
    def unique(self) -> bool | None:
        """Whether g has one minimiser, so that f has nothing to choose: True or False if proven, None if neither is.

        :func:`~tiebreak.ties` tells more.
        """
        return self.certificate.unique

    @property
    def success(self) -> bool:
        """Whether what was asked for was reached.

        With ``tol``: both tolerances are proven, the status is ``CERTIFIED``. Without: the run came to its planned end. That
        is a budget that is spent, a method that can improve nothing further, a callback that stopped it, or a stream that
        was read to its end, if the method has made an iteration by then and did not only seek its first point. An error,
        NaN or Ctrl-C is never a success.
        """
        if self.settings.get("tol") is not None:
            return self.status is Status.CERTIFIED
        if self.status is Status.ENDED:
            return self.iterations > 0
        return not self.status.failed and self.status is not Status.INTERRUPTED

    def __str__(self) -> str:
        rows = [
            ("method", titled(self.method)),
            ("status", self.message),
            ("upper f(x)", f"{self.upper:.6g}"),
            *self._bound_rows("f", self.upper_gap_bound),
            *self._optimum_rows(),
            ("lower g(x)", f"{self.lower:.6g}"),
            *self._bound_rows("g", self.lower_gap_bound),
            *([] if self.unique is None else [("  minimisers", f"{'one' if self.unique else 'several'}, proven")]),
            *([("confidence", f"{confidence:g}")] if (confidence := self.certificate.confidence) < 1.0 else []),
            *([(APPROXIMATE, "")] if self.certificate.approximate else []),
            ("iterations", f"{self.iterations:,}"),
            ("queries", f"{self.queries.upper:,} upper, {self.queries.lower:,} lower"),
            ("empty cuts", f"{self.empty_cuts:,}"),
            ("seconds", f"{self.seconds:.3g} of the method, {self.wall_seconds:.3g} in all"),
        ]
        return "\n".join(f"{name:<14}{value}" for name, value in rows)

    __repr__ = __str__

    def _bound_rows(self, level: str, bound: float) -> list[tuple[str, str]]:
        note = f", {self.certificate.verdict}" if level == "g" and self.certificate.is_near else ""
        rows = [] if math.isnan(bound) else [(f"  {level}(x) − {level}* ≤", f"{bound:.3g}{note}")]
        if level == "f" and not self.settings.get("convex", bool(rows)):  # the bound is that of a floor, if there is one
            rows.append(("  stationarity", f"  {self.stationarity:.3g}"))
        if level == "g" and not rows:
            rows.append(("  g(x) − g*", "  unknown: say convex=True of `lower`, if it is"))
        return rows

    def _optimum_rows(self) -> list[tuple[str, str]]:
        """Return what is proven of f* itself, where both sides are."""
        floor, ceiling = self.certificate.floors.upper, self.certificate.ceiling
        if not (math.isfinite(floor) and math.isfinite(ceiling)):
            return []
        return [("  f* between", f"{floor:.9g} and {ceiling:.9g}")]

    def save(self, path: str | Path) -> None:
        """Write this result to a file, whole or not at all: numbers bit for bit, without the problem and its data.

        A saved result that is there is replaced; any other file is not.

        Parameters
        ----------
        path : path
            The file, by custom a name that ends in ``.npz``: it is one of NumPy's.

        Examples
        --------
        >>> import tempfile, tiebreak
        >>> lower = tiebreak.LeastSquares([[1.0, 1.0]], [1.0])
        >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), lower, tiebreak.L1Ball(2.0))
        >>> result = tiebreak.minimize(problem, max_queries=5000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/result.npz")
        ...     loaded = tiebreak.Result.load(f"{folder}/result.npz")
        >>> str(loaded) == str(result)
        True
        """
        from tiebreak.driver.saved import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path, problem: Problem | None = None) -> Result:
        """Read a result that :meth:`save` wrote.

        All numbers are what they were. ``method`` has its ``name`` and its ``parameters`` as plain data, schedules as text,
        and cannot be run; an ``error`` comes back as a RuntimeError with its text. A run can continue from the result,
        ``minimize(problem, x0=loaded)``: what was proven counts if the problem is known to be the same one, by a digest of
        all its data. Python functions have none: give their problem here.

        Parameters
        ----------
        path : path
        problem : Problem, optional
            What was solved, for ``problem`` of the result, which is None else.

        Raises
        ------
        ValueError
            If the file is no saved result or a damaged one, or the problem another one.
        FileNotFoundError
        """
        from tiebreak.driver.saved import load

        return load(path, problem)

    def plot(self, **named: Result) -> Figure:
        """Draw both objectives and the bounds of both gaps against queries.

        Parameters
        ----------
        **named : Result
            Other results to draw beside this one, by the name they get in the legend.
        """
        from tiebreak.driver.figures import plot_results

        for name, other in named.items():
            if not isinstance(other, Result):
                raise ValueError(
                    f"`{name}` must be a Result to draw beside this one, got {checks.shown(other)}; the figure that is"
                    " returned can be changed and saved"
                )
        own = titled(self.method)
        return plot_results({own if own not in named else f"{own} (this)": self, **named})


def preset_of(method: Any) -> str:
    """Return the preset of a method's parameters; nothing if it has none."""
    return str(getattr(method, "preset", None) or "")


def titled(method: Any) -> str:
    """Return how a method is called where its results are shown: by its name and its preset."""
    preset = preset_of(method)
    return f"{method.name} (preset {preset})" if preset else method.name
