"""The path of minimisers of f + λ g: what a little of g buys of f, and at its end the exact tie."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.active.course import Course
from tiebreak.driver.figures import COLOURS
from tiebreak.driver.limits import checked_tol, start_of
from tiebreak.driver.progress import Progress, is_wanted
from tiebreak.driver.result import Result
from tiebreak.engine import checks
from tiebreak.engine.printing import named
from tiebreak.engine.rounding import UNIT
from tiebreak.methods.active_set import ActiveSet
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs.exact import conclude, examine, least_on_line, look_at
from tiebreak.proofs.floors import Floors, known

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST_DECADE, LAST_DECADE = -2, 12  # decades of λ that are followed, in units in which both levels vary alike
DEFAULT_TOL = 1e-6, 1e-10  # accuracy of f and g at the tie, relative to their values at the middle of the domain
HEAD = ("λ", "f", "g", "g − g* ≤", "f* ≥", "atoms", "passes")


class PathPoint(NamedTuple):
    """One point of a path.

    Attributes
    ----------
    weight : float
        λ; infinite where g alone is minimised.
    x : array, (d,)
    upper, lower : float
        f and g there, exact.
    lower_gap_bound : float
        Proven: g(x) − g* is at most this.
    floor : float
        Proven: f + λ g is nowhere below this; −∞ where g alone is minimised.
    atoms : int
        How many atoms x is a mean of.
    passes : int
        Passes over the data of g that the path has taken up to here.
    """

    weight: float
    x: np.ndarray
    upper: float
    lower: float
    lower_gap_bound: float
    floor: float
    atoms: int
    passes: int

    def __repr__(self) -> str:
        return named("PathPoint", self._asdict())


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """What :func:`path` found: points of the frontier of both levels, with proofs. It prints as a table.

    Attributes
    ----------
    problem : Problem
    points : tuple of PathPoint
        In the order of growing λ. The last one minimises g alone.
    floors : Floors
        The best that all of them prove together: of f* for the tolerance of the problem, and of g*.
    status : str
        Why the path ends where it does.
    """

    problem: Problem
    points: tuple[PathPoint, ...]
    floors: Floors
    status: str

    @property
    def weights(self) -> np.ndarray:
        """λ of each point."""
        return np.array([point.weight for point in self.points])

    @property
    def upper(self) -> np.ndarray:
        """F at each point."""
        return np.array([point.upper for point in self.points])

    @property
    def lower(self) -> np.ndarray:
        """G at each point."""
        return np.array([point.lower for point in self.points])

    @property
    def x(self) -> np.ndarray:
        """The points themselves, one per row."""
        return np.array([point.x for point in self.points])

    def floor(self, tolerance: float = 0.0) -> float:
        """Return a proven floor of f*(ε), the least f over the points of Z with g ≤ g* + ε: of f* itself for ε = 0."""
        epsilon = checks.real(tolerance, "tolerance", least=0.0)
        found = max((floor_from(point, self.floors.best_lower, epsilon) for point in self.points), default=-math.inf)
        return max(found, self.floors.upper) if epsilon == 0.0 else found

    def table(self) -> str:
        """Return one line per point; f* is that of the exact tie."""
        rows = [HEAD]
        for point in self.points:
            floor = floor_from(point, self.floors.best_lower)
            cells = f"{point.upper:.8g}", f"{point.lower:.8g}", f"{point.lower_gap_bound:.2g}", _shown(floor)
            rows.append((f"{point.weight:.3g}", *cells, f"{point.atoms:,}", f"{point.passes:,}"))
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEAD))]
        lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, self.status])

    __str__ = __repr__ = table

    def plot(self) -> Figure:
        """Draw f against g − g* along the path, and the proven floor of the least f for each g."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        axes = figure.subplots()
        shown = [point for point in self.points if math.isfinite(point.weight)]
        excess = np.array([point.lower - self.floors.lower for point in shown])
        above = excess[excess > 0.0]
        grid = np.geomspace(above.min(), above.max(), 200) if above.size else np.zeros(0)
        floors, values = [self.floor(epsilon) for epsilon in grid], [point.upper for point in shown]
        axes.plot(grid, floors, color=COLOURS[8], linewidth=1.4, label="proven: f is no less")
        axes.plot(excess, values, "o", color=COLOURS[0], markersize=5, label="f at the points of the path")
        axes.axhline(self.floor(), color=COLOURS[1], linewidth=1.4, linestyle="--", label="the same for the exact tie")
        axes.set_xscale("log")
        axes.set_xlabel("g(x) − g*")
        axes.set_ylabel("f")
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        return figure


def path(
    problem: Problem,
    weights: Sequence[float] | None = None,
    *,
    tol: tuple[float, float] | None = None,
    x0: Any = None,
    progress: bool | None = None,
) -> Path:
    """Follow the minimisers x_λ of f + λ g from small λ to the exact tie, each with its proofs.

    x_λ has the least f of all points whose g is no larger. The path is followed by the active set, warm from λ to λ, and so
    is for the problems that it solves: squares, Huber and logistic losses of linear models over sets with atoms.

    Parameters
    ----------
    problem : Problem
        Its tolerance is left aside; ``path.floor(ε)`` bounds f*(ε) for every ε.
    weights : list of float, optional
        The λ to stop at, positive; powers of ten, in units in which both levels vary alike, if not given.
    tol : (float, float), optional
        The path ends early where f(x_λ) is proven to be within the first number of f*, and g(x_λ) within the second of g*:
        a millionth of f and 1e-10 of g at the middle of the domain if not given. It also ends where rounding, multiplied by
        λ, outweighs what a larger λ gains.
    x0 : array or Result, optional
        Where to begin.
    progress : bool, optional
        Whether to show a progress bar; if not given, only in a terminal. Ctrl-C keeps the points that are done.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If an argument is not valid, or the active set does not take the problem.

    Examples
    --------
    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 3.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> found = tiebreak.path(problem, weights=[0.1, 1.0, 10.0])
    >>> found.upper.round(4)
    array([0.0125, 0.0413, 0.049 , 0.0556])
    >>> 0.0499 < tiebreak.path(problem).floor() <= 0.05
    True
    """
    check_problem(problem)
    problem = problem.exact
    if problem.upper.endless or problem.lower.endless:
        raise ValueError("`problem` must not be one of a stream: sum its rows up first, SummedSquares(blocks)")
    ActiveSet().check(problem)
    chosen = None if weights is None else _checked_weights(weights)
    visible = is_wanted(progress)
    start = start_of(problem, x0.x if isinstance(x0, Result) else x0)
    walk = _Walk(problem, start, None if tol is None else checked_tol(tol))
    total = len(chosen) if chosen is not None else LAST_DECADE - FIRST_DECADE + 1
    with Progress((total + 1,), ("weights",), visible) as bar:
        status = "ended: all weights are done"
        try:
            walk.go(math.inf)
            for done, weight in enumerate(chosen if chosen is not None else walk.decades()):
                bar.show((done + 1,), f"λ {weight:.3g}")
                walk.go(weight)
                if (end := walk.end()) is not None:
                    status = end
                    break
            bar.show((math.inf,))
        except KeyboardInterrupt:
            if not walk.points:
                raise
            status = "interrupted: Ctrl-C was pressed"
    return Path(problem, tuple(sorted(walk.points, key=lambda point: point.weight)), walk.floors, status)


class _Walk:
    """A path under way."""

    def __init__(self, problem: Problem, x: np.ndarray, tol: tuple[float, float] | None) -> None:
        self.problem, self.floors = problem, known(problem)
        self.course = Course(problem, x)
        self.points: list[PathPoint] = []
        self._tol = tol
        self._middle = problem.center
        self._improved, self._best = True, -math.inf  # whether the last λ raised the floor of f* that all λ prove, and that

    def go(self, weight: float) -> None:
        """Minimise f + λ g, and prove what that proves."""
        course, solver = self.course, self.course.solver
        course.aim(weight)
        while not course.stage():
            pass
        if math.isinf(weight):
            course.measure()
        x = solver.x
        if math.isinf(weight):
            look, certificate = examine(self.problem, x, self.floors)
            least = -math.inf
        else:
            look = look_at(self.problem, x, sharp=True)
            certificate = conclude(self.problem, look, self.floors, [weight])
            least = least_on_line(self.problem, look, weight)
        self.floors = certificate.floors
        passes = int(solver.passes[1])
        point = PathPoint(weight, look.x, look.f, look.g, certificate.lower_gap_bound, least, solver.atoms, passes)
        self.points.append(point)
        floor = floor_from(point, self.floors.best_lower)
        self._improved, self._best = floor > self._best, max(floor, self._best)

    def decades(self) -> Iterator[float]:
        """Yield λ by decades."""
        unit = self.course.unit
        for decade in range(FIRST_DECADE, LAST_DECADE + 1):
            yield unit * 10.0**decade

    def end(self) -> str | None:
        """Return why the path ends here, if it does."""
        if self._tol is None:
            sizes = (abs(level.value(self._middle)) for level in (self.problem.upper, self.problem.lower))
            upper, lower = (share * size for share, size in zip(DEFAULT_TOL, sizes, strict=True))
            self._tol = upper, lower
        last = self.points[-1]
        if abs(last.upper - self.floors.upper) <= self._tol[0] and last.lower_gap_bound <= self._tol[1]:
            return "solved: the exact tie is reached, up to the tolerance"
        if not self._improved and len(self.points) > 2:
            return "ended by rounding: a larger λ proves no more"
        return None


def floor_from(point: PathPoint, best_lower: float, epsilon: float = 0.0) -> float:
    """Return what one point proves, if g has been seen as low as this: f*(ε) ≥ min (f + λ g) − λ (ḡ + ε)."""
    if math.isinf(point.weight):
        return -math.inf
    spent = point.weight * (best_lower + epsilon)
    return point.floor - spent - 8.0 * UNIT * (abs(point.floor) + abs(spent) + point.weight * abs(epsilon))


def _checked_weights(weights: Any) -> list[float]:
    """Return the weights in increasing order, or raise."""
    values = checks.vector(weights, "weights")
    if values.size == 0 or values.min() <= 0.0:
        raise ValueError(f"`weights` must be positive numbers, got {checks.shown(weights)}")
    return sorted(set(values.tolist()))


def _shown(number: float) -> str:
    return f"{number:.8g}" if math.isfinite(number) else "–"
