"""What a study is: runs to do, and what is said of them afterwards.

To add a study, write one file with a subclass of :class:`Study` and list it in ``catalogue.py``. A study gives

- ``name`` (the word of the command), ``title``, ``reference`` (figures and tables of which paper);
- :meth:`Study.tasks`, the runs for a :class:`Plan` (how many seeds, quick or not, which data). A :class:`Task` names a
  function *of a module* (workers import it) that is called as ``function(seed, **settings, **needs)`` and returns an
  :class:`Outcome`: arrays and a record of plain numbers and texts. It must depend on nothing but its arguments.
  ``needs`` are tasks whose outcomes it is given, such as a first point that all methods share. Tasks of the same name, seed
  and settings are one, also between studies: what one has run the other finds stored;
- :meth:`Study.section`, the part of the report: figures, tables and claims, from the outcomes that are there. Some may be
  missing, where a run failed.

Everything else is done for it: workers, progress, storage, resuming, ``summary.csv`` (one row per run, from the records),
figures as files and the page. ``tracing.trace`` runs a method and returns its history as an outcome, ``drawing.band`` makes
a line with a band of outcomes, and ``claims.py`` judges by how many seeds speak for a claim. A whole study:

>>> import numpy as np
>>> from tiebreak.studies.claims import fewer
>>> from tiebreak.studies.drawing import Figure, Panel, band
>>> def walk(seed, steps, drift):
...     path = np.cumsum(np.random.default_rng(seed).standard_normal(steps) + drift)
...     return Outcome({"t": np.arange(steps), "path": path}, {"end": float(path[-1])})
>>> class Walks(Study):
...     name, title, reference = "walks", "Random walks", "none"
...
...     def tasks(self, plan):
...         drifts = {"still": 0.0, "driven": 1.0}
...         return [Task(f"walks/{case}", seed, walk, {"steps": 50 if plan.quick else 5000, "drift": drift})
...                 for seed in range(plan.seeds) for case, drift in drifts.items()]
...
...     def section(self, plan, runs):
...         still, driven = runs.of("walks/still"), runs.of("walks/driven")
...         lines = [band("still", still, "t", "path"), band("driven", driven, "t", "path")]
...         figure = Figure("walks", "Mean and range over seeds.", [Panel("position", lines, "step")])
...         verdict, numbers = fewer({s: o.record["end"] for s, o in still.items()},
...                                  {s: o.record["end"] for s, o in driven.items()})
...         return Section(self.title, figures=[figure], claims=[Claim("drift wins", "here", verdict, numbers)])
>>> plan = Plan(seeds=6, quick=True)
>>> tasks = Walks().tasks(plan)
>>> section = Walks().section(plan, Runs({task.key: (task, task.outcome()) for task in tasks}))
>>> section.claims[0].verdict
<Verdict.HOLDS: 'holds'>
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tiebreak
from tiebreak.engine import hash_of_sources
from tiebreak.studies.claims import Claim
from tiebreak.studies.drawing import Figure


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


SOLVERS = {name: _version(name) for name in ("cvxpy", "clarabel")}  # versions of the reference solvers that are installed
SOURCES = hash_of_sources()  # hash of all code: a version is too coarse while it is worked on


class Source(NamedTuple):
    """Where data come from."""

    kind: str  # a name such as "pageviews"
    path: str | None = None  # of a file, for the kinds that have one
    digest: str | None = None  # of its content

    def __str__(self) -> str:
        return self.kind if self.path is None else f"{self.kind} ({Path(self.path).name})"


@dataclass(frozen=True)
class Plan:
    """What was asked for.

    Parameters
    ----------
    seeds : int
        Seeds 0, 1, … of all studies.
    quick : bool
        Whether budgets are small: everything is done, and little of it means anything.
    sources : tuple of Source
        The data that were chosen.
    """

    seeds: int = 10
    quick: bool = False
    sources: tuple[Source, ...] = ()

    def source(self, *kinds: str) -> Source:
        """Return the chosen one of some kinds of data; the first of them if none was."""
        return next((source for source in self.sources if source.kind in kinds), Source(kinds[0]))


class Outcome(NamedTuple):
    """What a run leaves."""

    arrays: dict[str, np.ndarray]
    record: dict[str, Any]  # numbers and texts: a row of the summary


@dataclass(frozen=True)
class Task:
    """One run: a function, its seed and its settings.

    Parameters
    ----------
    name : str
        What is run, such as ``"regression/sbcgf"``: the place where it is stored, and how a study finds it.
    seed : int
    function : callable
        ``function(seed, **settings, **needs)`` returns an :class:`Outcome`.
    settings : dict
        Numbers, texts, lists and dicts of them: all that the outcome depends on besides.
    needs : dict of Task, optional
        Tasks whose outcomes are passed under these names.
    """

    name: str
    seed: int
    function: Callable[..., Outcome]
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, Task] = field(default_factory=dict)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return what makes a stored run this one."""
        return {
            "name": self.name,
            "seed": self.seed,
            "settings": _contents(json.loads(json.dumps(self.settings))),
            "needs": {name: task.key for name, task in self.needs.items()},
            "version": tiebreak.__version__,
            "sources": SOURCES,
            "solvers": SOLVERS,
        }

    @cached_property
    def key(self) -> str:
        """Return a name for files, different for all tasks that differ in anything."""
        digest = hashlib.blake2b(json.dumps(self.identity, sort_keys=True).encode(), digest_size=5).hexdigest()
        return f"{self.name}-seed{self.seed}-{digest}"

    @property
    def depth(self) -> int:
        """Return how many tasks must be done one after the other before this one."""
        return 1 + max((task.depth for task in self.needs.values()), default=-1)

    def outcome(self, **needs: Outcome) -> Outcome:
        """Run it, here and now."""
        return self.function(self.seed, **self.settings, **needs)


class Runs:
    """The outcomes of a study: ``runs.of("regression/sbcgf")`` are those of a name, by seed.

    Parameters
    ----------
    outcomes : dict
        Pairs of a task and its outcome, by the key of the task.
    """

    def __init__(self, outcomes: Mapping[str, tuple[Task, Outcome]]) -> None:
        self._outcomes = dict(outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def of(self, name: str) -> dict[int, Outcome]:
        """Return the outcomes of all tasks of a name, by seed; none if there are none."""
        return {task.seed: outcome for task, outcome in self._outcomes.values() if task.name == name}

    def values(self, name: str, entry: str) -> dict[int, float]:
        """Return one entry of the records of a name, by seed."""
        return {seed: float(outcome.record[entry]) for seed, outcome in self.of(name).items()}


class Table(NamedTuple):
    """Rows of numbers and texts under a head."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Section:
    """What a study says in the report.

    Parameters
    ----------
    text : str
        What was done, in a few sentences; an empty line begins a new paragraph.
    figures, tables, claims : list
    settings : dict
        What a reader must know to do it again: budgets, constants, data.
    notes : list of str
        Where results are to be taken with care.
    unjudged : str
        How many claims are left out, and why; nothing if none is. It is found for the study.
    """

    text: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unjudged: str = ""


class Study(ABC):
    """A part of a paper that can be done again."""

    name: str
    title: str
    reference: str
    sources: tuple[str, ...] = ()  # the kinds of data that it can use, the first by default

    @abstractmethod
    def tasks(self, plan: Plan) -> list[Task]:
        """Return all runs of the study."""

    @abstractmethod
    def section(self, plan: Plan, runs: Runs) -> Section:
        """Return what the outcomes show."""


def _contents(settings: Any) -> Any:
    """Leave out the paths of files whose content is known by a digest: a file that was moved is the same."""
    if not isinstance(settings, dict):
        return settings
    known = settings.get("digest") is not None
    return {name: _contents(value) for name, value in settings.items() if not (known and name == "path")}
