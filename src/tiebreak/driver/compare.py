"""Several methods on one problem, side by side."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from tiebreak.driver.figures import plot_groups
from tiebreak.driver.limits import LIMIT_ARGUMENTS, limits_of, start_of
from tiebreak.driver.minimize import minimize
from tiebreak.driver.progress import Progress, is_wanted
from tiebreak.driver.result import Result, Status, preset_of
from tiebreak.engine import checks
from tiebreak.methods import Method, as_method
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs import ContradictionError

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

OPTIONS = (*LIMIT_ARGUMENTS, "x0", "confidence", "check")  # arguments of minimize that are passed on
NUMBERS = ("upper", "lower", "upper_gap_bound", "lower_gap_bound", "queries", "seconds")  # columns that have a median
HEAD = ("method", "preset", "f", "g", "f − f* ≤", "g − g* ≤", "queries", "seconds", "status")


def compare(
    problem: Problem,
    methods: Iterable[str | Method] | Mapping[str, str | Method],
    *,
    seeds: int = 1,
    progress: bool | None = None,
    **budget: Any,
) -> MethodTable:
    """Run several methods on one problem, each with the same budget.

    A method that refuses the problem or the budget has a row with its reason. Ctrl-C ends the comparison and keeps the runs
    that are done.

    Parameters
    ----------
    problem : Problem
    methods : list or dict
        Names and configured methods, or a dict from labels to them.
    seeds : int
        How many runs to make of each method, with the seeds 0, 1, …; the table shows medians.
    progress : bool, optional
        Whether to show a progress bar over all runs; if not given, only in a terminal.
    **budget
        ``max_queries``, ``max_iterations``, ``time_limit``, ``tol``, ``x0``, ``confidence`` and ``check`` of each run, as
        :func:`minimize` takes them.

    Returns
    -------
    MethodTable

    Raises
    ------
    ValueError
        If an argument is not valid.
    OracleError
        If a function of the problem fails at the very first point.

    Examples
    --------
    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> table = tiebreak.compare(problem, ["cg-bio", "ir-cg"], max_queries=2000)
    >>> [row.method for row in table.rows]
    ['cg-bio', 'ir-cg']
    >>> table.results["cg-bio"][0].queries.total <= 2000
    True
    """
    configured, seeds = _labelled(methods), checks.whole(seeds, "seeds")
    _check_budget(problem, budget)
    visible = is_wanted(progress)
    results: dict[str, tuple[Result, ...]] = {}
    refusals: dict[str, str] = {}
    with Progress((len(configured) * seeds,), ("runs",), visible) as bar:
        for done, (label, seed) in enumerate(product(configured, range(seeds))):
            bar.describe(label)
            bar.show((done,))
            if label in refusals:
                continue
            try:
                result = minimize(problem, configured[label], seed=seed, progress=False, **budget)
            except KeyboardInterrupt:
                if not (results or refusals):
                    raise
                break
            except ContradictionError:  # the problem is wrong, not the method
                raise
            except ValueError as error:
                refusals[label] = str(error)
                continue
            results[label] = (*results.get(label, ()), result)
            if result.status is Status.INTERRUPTED:
                break
        else:
            bar.show((len(configured) * seeds,))
    return MethodTable(configured, results, refusals)


class Row(NamedTuple):
    """One run of a comparison, or a method that refused: its numbers are NaN then.

    Attributes
    ----------
    method : str
        Its label, with the method that ``auto`` chose.
    preset : str
        The preset of its parameters, empty if it has none.
    seed : int
    upper, lower : float
        f(x) and g(x).
    upper_gap_bound, lower_gap_bound : float
        As in :class:`Result`.
    queries : float
        Samples drawn at both levels.
    seconds : float
        Time of the method.
    status : str
        The name of a :class:`Status`, or the reason of a refusal.
    """

    method: str
    preset: str
    seed: int
    upper: float
    lower: float
    upper_gap_bound: float
    lower_gap_bound: float
    queries: float
    seconds: float
    status: str


@dataclass(frozen=True, eq=False, repr=False)
class MethodTable:
    """What :func:`compare` found; it prints as a table.

    Attributes
    ----------
    methods : dict
        The methods by label, as they were asked for.
    results : dict
        By label, the results of the runs that were made, one per seed.
    refusals : dict
        By label, why a method did not run.
    """

    methods: dict[str, Method]
    results: dict[str, tuple[Result, ...]]
    refusals: dict[str, str]

    @property
    def rows(self) -> list[Row]:
        """All runs and refusals, in the order of the methods."""
        return [row for label in self.methods for row in self._rows_of(label)]

    def table(self) -> str:
        """Return one line per method: medians over seeds, with all ways in which its runs ended."""
        groups = [rows for label in self.methods if (rows := self._rows_of(label))]
        lines = [list(HEAD), *map(_cells, groups)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD) - 1)]
        text = [_aligned(line, widths) for line in lines]
        most = max((len(each) for each in self.results.values()), default=1)
        return "\n".join([*text, f"medians of {most} seeds"] if most > 1 else text)

    __str__ = __repr__ = table

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame of one row per run or refusal."""
        try:
            import pandas
        except ImportError:
            raise ImportError("a DataFrame needs pandas: pip install 'tiebreak[pandas]'") from None
        return pandas.DataFrame(self.rows, columns=Row._fields)

    def plot(self) -> Figure:
        """Draw both objectives and the bounds of both gaps against queries, one colour per method and one line per run."""
        if not self.results:
            raise ValueError("there is nothing to draw: every method refused the problem; print the table to see why")
        return plot_groups({self._legend(label): results for label, results in self.results.items()})

    def _legend(self, label: str) -> str:
        first = self._rows_of(label)[0]
        return f"{first.method} (preset {first.preset})" if first.preset else first.method

    def _rows_of(self, label: str) -> list[Row]:
        if label in self.refusals:
            nan = math.nan
            return [Row(label, preset_of(self.methods[label]), 0, nan, nan, nan, nan, nan, nan, self.refusals[label])]
        return [
            Row(
                method=label if r.method.name == self.methods[label].name else f"{label}: {r.method.name}",
                preset=preset_of(r.method),
                seed=r.settings["seed"],
                upper=r.upper,
                lower=r.lower,
                upper_gap_bound=r.upper_gap_bound,
                lower_gap_bound=r.lower_gap_bound,
                queries=r.queries.total,
                seconds=r.seconds,
                status=r.status.name,
            )
            for r in self.results.get(label, ())
        ]


def _labelled(methods: Any) -> dict[str, Method]:
    """Return configured methods by label; in a list, methods of one name are numbered."""
    if isinstance(methods, Mapping):
        found = {str(label): as_method(method) for label, method in methods.items()}
        if len(found) < len(methods):
            raise ValueError(f"`methods` must have labels that differ as texts, got {checks.shown(list(methods))}")
    elif isinstance(methods, Iterable) and not isinstance(methods, (str, bytes)):
        found = {}
        for method in map(as_method, methods):
            same = sum(each.name == method.name for each in found.values())
            found[method.name if same == 0 else f"{method.name} ({same + 1})"] = method
    else:
        raise ValueError(
            "`methods` must be a list of names and configured methods, or a dict from labels to them,"
            f" got {checks.shown(methods)}"
        )
    if not found:
        raise ValueError("`methods` must name at least one method, got none")
    return found


def _check_budget(problem: Problem, budget: dict[str, Any]) -> None:
    """Raise if what all runs share is wrong: what :func:`minimize` refuses afterwards, a method refuses."""
    for name in budget:
        if name not in OPTIONS:
            raise ValueError(
                f"`{name}` must be left out: compare passes on {', '.join(f'`{each}`' for each in OPTIONS)} only"
            )
    check_problem(problem)
    limits_of(**{name: budget[name] for name in LIMIT_ARGUMENTS if name in budget})
    x0 = budget.get("x0")
    start_of(problem, x0.x if isinstance(x0, Result) else x0)
    if "confidence" in budget:
        checks.confidence(budget["confidence"])
    if "check" in budget:
        checks.flag(budget["check"], "check")


def _cells(rows: list[Row]) -> list[str]:
    """Return one line of the table."""
    first = rows[0]
    if math.isnan(first.queries):
        return [first.method, first.preset, *("–" for _ in NUMBERS), f"refused: {first.status}"]
    middle = {name: statistics.median(getattr(row, name) for row in rows) for name in NUMBERS}
    numbers = [_shown(middle[name], ",.0f" if name == "queries" else ".3g") for name in NUMBERS]
    ends = ", ".join(dict.fromkeys(row.status for row in rows))
    methods = ", ".join(dict.fromkeys(row.method for row in rows))
    return [methods, first.preset, *numbers, ends]


def _shown(number: float, form: str) -> str:
    return "–" if math.isnan(number) else f"{number:{form}}"


def _aligned(cells: list[str], widths: list[int]) -> str:
    """Return cells in columns: words on the left, numbers on the right, the last one as long as it is."""
    words = [f"{cell:<{width}}" for cell, width in zip(cells[:2], widths[:2], strict=True)]
    numbers = [f"{cell:>{width}}" for cell, width in zip(cells[2:-1], widths[2:], strict=True)]
    return "  ".join([*words, *numbers, cells[-1]])
