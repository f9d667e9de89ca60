"""Results on disk: one `.npz` file of plain arrays and a JSON text, written atomically and read without pickle."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.driver import checkpoint
from tiebreak.driver.result import Counts, History, Record, Result, Status
from tiebreak.engine.digest import digest
from tiebreak.methods import Method
from tiebreak.problem import Problem
from tiebreak.proofs import packed, unpacked

RESULT = checkpoint.Kind("saved result", 3, ValueError, "give the path of a file that Result.save wrote")
PLAIN = (
    *("upper", "lower", "upper_gap_bound", "lower_gap_bound", "stationarity"),
    *("message", "iterations", "empty_cuts", "seconds", "wall_seconds"),
)
LATER = ("bytes_moved", "seconds_waited")  # what older files do not have
SAME = 1e-9  # relative difference of values of the same functions from one machine to another


class SavedMethod(NamedTuple):
    """What is kept of a method: its name, its parameters as plain data, and how it was printed."""

    name: str
    parameters: dict[str, Any]
    text: str

    @property
    def preset(self) -> str | None:
        """The preset of its parameters, if it has one."""
        return self.parameters.get("preset")

    def __repr__(self) -> str:
        return self.text


def save(result: Result, path: Any) -> None:
    """Write a result to a file; see :meth:`Result.save`."""
    place = checkpoint.place(path, "path")
    if place.exists():
        checkpoint.load(place, RESULT._replace(advice="it is not overwritten: give another path"))
    checkpoint.save(place, RESULT, *plain(result))


def plain(result: Result) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a result as plain data and arrays: what a file can hold."""
    certificate, half_spaces = packed(result.certificate)
    meta = {
        **{name: _plain(getattr(result, name)) for name in (*PLAIN, *LATER)},
        "status": result.status.name,
        "queries": result.queries._asdict(),
        "evaluations": result.evaluations._asdict(),
        "certificate": certificate,
        "method": _plain(result.method),
        "settings": _plain({**result.settings, "problem": _digest(result)}),
        "parts": {name: _layout(part, result.x) for name, part in result.parts.items()},
        "error": None if result.error is None else f"{type(result.error).__name__}: {result.error}",
    }
    history = {f"history.{name}": getattr(result.history, name) for name in Record._fields}
    return meta, {"x": result.x, **history, **half_spaces}


def load(path: Any, problem: Problem | None) -> Result:
    """Read a result from a file; see :meth:`Result.load`."""
    place = checkpoint.place(path, "path")
    if not place.exists():
        raise FileNotFoundError(f"`path` must be a file that Result.save wrote, and there is no {place}")
    meta, arrays = checkpoint.load(place, RESULT)
    try:
        result = rebuilt(meta, arrays, problem)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"the saved result {place} is damaged ({type(error).__name__}: {error})") from error
    if problem is not None:
        _check_problem(problem, result, place)
    return result


def rebuilt(meta: dict[str, Any], arrays: dict[str, np.ndarray], problem: Problem | None) -> Result:
    """Return the result of which :func:`plain` returned these."""
    x, settings = arrays["x"], dict(meta["settings"])
    settings["phases"] = [SavedMethod(**phase) for phase in settings["phases"]]
    settings["tol"] = settings["tol"] and tuple(settings["tol"])
    columns = [arrays[f"history.{name}"].tolist() for name in Record._fields]
    return Result(
        x=x,
        parts={name: np.ndarray(buffer=x, dtype=x.dtype, **layout) for name, layout in meta["parts"].items()},
        certificate=unpacked(meta["certificate"], arrays),
        status=Status[meta["status"]],
        queries=Counts(**meta["queries"]),
        evaluations=Counts(**meta["evaluations"]),
        history=History([Record(*row) for row in zip(*columns, strict=True)]),
        problem=problem,
        method=SavedMethod(**meta["method"]),
        settings=settings,
        error=None if meta["error"] is None else RuntimeError(meta["error"]),
        **{name: meta[name] for name in PLAIN},
        **{name: meta[name] for name in LATER if name in meta},
    )


def _check_problem(problem: Any, result: Result, path: Path) -> None:
    """Raise if a problem is not the one of a result: what was proven of it would be said of another."""
    if not isinstance(problem, Problem):
        raise ValueError(f"`problem` must be a Problem(upper, lower, domain) or None, got {type(problem).__name__}")
    stored = result.settings["problem"]
    same = problem.dimension == result.x.size and (problem.tolerance, problem.keep) == result.certificate.floors[3:5]
    same = same and stored in (None, digest(problem.exact))
    if same and (stored is None or not problem.compiled):  # functions are known by their names alone: by their values too
        levels = ((problem.upper, result.upper), (problem.lower, result.lower))
        same = all(level.endless or math.isclose(level.value(result.x), value, rel_tol=SAME) for level, value in levels)
    if not same:
        raise ValueError(
            f"`problem` must be the one of the result in {path}, and it is another: leave it out, or give that one"
        )


def _digest(result: Result) -> str | None:
    """Return what tells the problem of a result, but for its tolerance, from others, as far as it is known."""
    return result.settings.get("problem") if result.problem is None else digest(result.problem.exact)


def _layout(part: np.ndarray, x: np.ndarray) -> dict[str, Any]:
    """Return where a view of x begins in its memory, and its strides."""
    start = part.__array_interface__["data"][0] - x.__array_interface__["data"][0]
    return {"shape": list(part.shape), "offset": start, "strides": list(part.strides)}


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: a method as its name, parameters and text; what else is no data as its text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, (Method, SavedMethod)):
        named = (
            value.parameters if isinstance(value, SavedMethod) else {f.name: getattr(value, f.name) for f in fields(value)}
        )
        return {"name": value.name, "parameters": _plain(named), "text": repr(value)}
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return repr(value)
