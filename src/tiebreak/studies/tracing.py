"""Runs of methods as outcomes: the history of a run, with measures of one's own at each record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tiebreak
from tiebreak.studies.study import Outcome

COLUMNS = ("queries", "seconds", "phase", "lower", "upper", "lower_gap_bound", "upper_gap_bound", "empty_cuts")


def solved(problem: tiebreak.Problem, method: str | tiebreak.Method, **arguments: Any) -> tiebreak.Result:
    """Run a method to the end that was asked for, without a bar: what ends before it is an error, and must not be stored.

    Parameters
    ----------
    problem, method, **arguments
        As ``minimize`` takes them.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C was pressed, which ``minimize`` takes as an end.
    RuntimeError
        If the run failed.

    Examples
    --------
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> solved(problem, "sbcgf", max_queries=5000).status.name
    'QUERIES'
    """
    result = tiebreak.minimize(problem, method, progress=False, **arguments)
    if result.status is tiebreak.Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.status.failed:
        raise RuntimeError(result.message)
    return result


def followed(problem: tiebreak.Problem, **arguments: Any) -> tiebreak.Path:
    """Follow the path of a problem to its end, without a bar; an interrupted one must not be stored.

    Parameters
    ----------
    problem, **arguments
        As ``path`` takes them.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C was pressed, which ``path`` takes as an end.
    """
    found = tiebreak.path(problem, progress=False, **arguments)
    if found.status.startswith("interrupted"):
        raise KeyboardInterrupt
    return found


def trace(
    problem: tiebreak.Problem,
    method: str | tiebreak.Method,
    *,
    measures: Mapping[str, Callable[[np.ndarray], float]] | None = None,
    **arguments: Any,
) -> Outcome:
    """Run a method and return its history as arrays, and its end as a record: its last point, not the best of all records.

    Parameters
    ----------
    problem, method
        As ``minimize`` takes them.
    measures : dict of functions, optional
        What else to measure at each record: functions of the point. The clock is stopped meanwhile.
    **arguments
        All others of ``minimize``.

    Examples
    --------
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> outcome = trace(problem, "sbcgf", measures={"first": lambda x: float(x[0])}, max_queries=5000)
    >>> outcome.arrays["queries"].shape == outcome.arrays["first"].shape
    True
    """
    measures = measures or {}
    seen: list[list[float]] = []

    def watch(snapshot: tiebreak.Snapshot) -> None:
        seen.append([measure(snapshot.x) for measure in measures.values()])

    result = solved(problem, method, callback=watch, **arguments)
    history, end = result.history, result.history.records[-1]
    last = [measure(result.last) for measure in measures.values()]
    columns = {name: np.asarray(getattr(history, name)) for name in COLUMNS}
    # The last record is made without a callback, unless it fell on the end.
    table = np.array([*seen, *[last] * (len(history) - len(seen))], dtype=float).reshape(len(history), len(measures))
    arrays = {**columns, **dict(zip(measures, table.T, strict=True))}
    floors = result.certificate.floors
    record = {
        "method": result.method.name,
        "parameters": str(result.method),
        "status": result.status.name,
        "message": result.message,
        "iterations": result.iterations,
        "queries": result.queries.total,
        "seconds": result.seconds,
        "lower": end.lower,
        "upper": end.upper,
        "lower_gap_bound": end.lower_gap_bound,
        "upper_gap_bound": end.upper_gap_bound,
        "within": result.within,
        "stationarity": result.stationarity,
        "empty_cuts": result.empty_cuts,
        "lower_floor": floors.lower,
        "upper_floor": floors.upper,
        "best_lower": floors.best_lower,
        **{name: float(value) for name, value in zip(measures, last, strict=True)},
    }
    return Outcome(arrays, {name: _plain(value) for name, value in record.items()})


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
