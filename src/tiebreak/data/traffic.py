"""Counts of places × time: visits of pages, passengers at bus stops.

Wikipedia Math Essential and Montevideo Bus: Rozemberczki et al., PyTorch Geometric Temporal: spatiotemporal signal
processing with neural machine learning models, CIKM 2021.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.data.files import downloaded, existing, naming, parsed
from tiebreak.engine import cache_folder, checks

WIKIMATH_URL = (
    "https://raw.githubusercontent.com/benedekrozemberczki/pytorch_geometric_temporal/master/"
    "dataset/wikivital_mathematics.json"
)
WIKIMATH_BLOB = "28aefd607de34627e194f40a80fb50cf549904f4"  # git's id of the file

PAGES, DAYS, TOPICS = 1068, 731, 8  # sizes of the data that are generated
WEEK = np.array([-0.26, -0.15, 0.10, 0.13, 0.12, 0.08, -0.02])  # log visits from Saturday to Friday


def pageviews(seed: int = 0) -> np.ndarray:
    """Generate counts that behave like two years of daily visits of Wikipedia's mathematics pages.

    The mean of page p on day t is exp(popularity + season + topic + trend) · (1 + burst), where

    - the popularity of a page is log-normal: 1 % of the pages get about a fifth of all visits;
    - the season is a week, as strong as the page is used at work, plus the academic year (quiet from July to August and at
      the end of December), as strong as the page's topic is taught; day 0 is Saturday, 16 March;
    - a page belongs to one of 8 topics, and follows the slow common course of its topic (autoregressive, remembering about
      a month) more or less closely;
    - the trend is a parabola of the page's own, some ten per cent over the two years;
    - a burst comes about every third year to a page, is Pareto-tailed (at most 40 times the usual visits), and decays
      within days.

    Counts are negative binomial around that mean: Poisson, whose rate varies by a further 15 % from day to day.

    A third of the rows is fewer samples than features, and still makes no tie in the paper's ℓ1 ball of radius 10: one model
    has the least training error there.

    Parameters
    ----------
    seed : int
        Same seed, same matrix, within one version of NumPy.

    Returns
    -------
    ndarray of shape (1068, 731)
        Visits of page p on day t, whole numbers ≥ 0.

    Examples
    --------
    >>> pageviews(seed=1).shape
    (1068, 731)
    """
    rng = np.random.default_rng(checks.whole(seed, "seed", least=0))
    days = np.arange(DAYS)
    topic = rng.integers(TOPICS, size=PAGES)

    log_mean = rng.normal(np.log(100.0), 1.65, size=(PAGES, 1)) + np.zeros(DAYS)
    log_mean += rng.gamma(4.0, 0.25, size=(PAGES, 1)) * WEEK[days % 7]
    taught = rng.uniform(0.2, 1.4, size=TOPICS)[topic] * rng.uniform(0.7, 1.3, size=PAGES)
    log_mean += taught[:, None] * _academic_year(days)

    course = rng.normal(0.0, 0.04, size=(DAYS, TOPICS))
    for today in range(1, DAYS):
        course[today] += 0.97 * course[today - 1]
    log_mean += rng.gamma(4.0, 0.25, size=(PAGES, 1)) * course.T[topic]

    time = np.linspace(-1.0, 1.0, DAYS)
    log_mean += rng.normal(0.0, 0.12, size=(PAGES, 1)) * time + rng.normal(0.0, 0.08, size=(PAGES, 1)) * time**2

    bursts = rng.poisson(0.7 * PAGES)
    age = days - rng.integers(DAYS, size=(bursts, 1))
    height = np.minimum(1.0 + rng.pareto(1.5, size=(bursts, 1)), 40.0)
    decay = np.exp(-np.maximum(age, 0) / rng.uniform(1.0, 6.0, size=(bursts, 1)))
    boost = np.ones((PAGES, DAYS))
    np.add.at(boost, rng.integers(PAGES, size=bursts), np.where(age >= 0, height * decay, 0.0))

    shape = 0.15**-2
    rate = np.exp(log_mean) * boost * rng.gamma(shape, 1.0 / shape, size=(PAGES, DAYS))
    return rng.poisson(rate).astype(np.float64)


def wikimath(path: str | os.PathLike[str] | None = None) -> np.ndarray:
    """Load Wikipedia Math Essential: visits of 1068 mathematics pages on the 731 days from 16 March 2019.

    Parameters
    ----------
    path : path, optional
        The file ``wikivital_mathematics.json``, or another of its form: an object with the keys ``"0"``, ``"1"``, …, one per
        day, each an object whose ``"y"`` lists the visits of all pages, and ``"time_periods"``, the number of days (all
        that are there, if missing). By default the file is downloaded once into the cache folder of this user, which
        ``TIEBREAK_CACHE`` names, and verified at each use.

    Returns
    -------
    ndarray of shape (1068, 731)
        Visits of page p on day t; other files give pages × days.

    Raises
    ------
    ConnectionError
        If the download fails.
    OSError
        If what was downloaded is not the expected file, or there is no file at ``path`` (FileNotFoundError).
    ValueError
        If the file has another form, or counts that are negative or not finite.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "visits.json")
    ...     size = path.write_text(json.dumps({"0": {"y": [5, 0]}, "1": {"y": [7, 1]}, "time_periods": 2}))
    ...     wikimath(path)
    array([[5., 7.],
           [0., 1.]])
    """
    file = cache_folder() / "data" / WIKIMATH_URL.rpartition("/")[2] if path is None else existing(path)
    content = parsed(downloaded(file, WIKIMATH_URL, WIKIMATH_BLOB) if path is None else file.read_bytes(), file)
    counted = max(1, sum(key.isdecimal() for key in content))
    with naming(file):
        periods = checks.whole(content.get("time_periods", counted), "time_periods")
        missing = next((t for t in range(periods) if str(t) not in content), None)
        if missing is not None:
            raise ValueError(
                f'must have the key "{missing}", one per time period, got the keys {checks.shown(list(content))}'
            )
    return np.ascontiguousarray(_stacked([content[str(t)] for t in range(periods)], file, "time period").T)


def montevideo(path: str | os.PathLike[str]) -> np.ndarray:
    """Load Montevideo Bus: passengers who board at 675 bus stops in each of 744 hours.

    Parameters
    ----------
    path : path
        The file ``montevideo_bus.json`` of PyTorch Geometric Temporal, or another of its form: an object whose ``"nodes"``
        lists objects, each with its counts over time as ``"y"``.

    Returns
    -------
    ndarray of shape (675, 744)
        Passengers at stop i in hour t; other files give nodes × times.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file has another form, or counts that are negative or not finite.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "bus.json")
    ...     size = path.write_text(json.dumps({"nodes": [{"y": [0, 2, 1]}, {"y": [3, 0, 0]}]}))
    ...     montevideo(path)
    array([[0., 2., 1.],
           [3., 0., 0.]])
    """
    file = existing(path)
    nodes = parsed(file.read_bytes(), file).get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise ValueError(f'{file} must have a non-empty list "nodes", got {checks.shown(nodes)}')
    return _stacked(nodes, file, "node")


def _stacked(entries: list[Any], file: Path, kind: str) -> np.ndarray:
    """Return the counts ``"y"`` of the entries as rows."""
    rows: list[np.ndarray] = []
    for i, entry in enumerate(entries):
        with naming(f"{file}: {kind} {i}"):
            if not isinstance(entry, dict) or not isinstance(entry.get("y"), list):
                raise ValueError(f'must be an object with a list "y", got {checks.shown(entry)}')
            row = checks.vector(entry["y"], "y", rows[0].size if rows else None)
            if row.min() < 0.0:
                raise ValueError(f"`y` must hold counts ≥ 0, got {row.min():g} at [{row.argmin()}]")
        rows.append(row)
    return np.stack(rows)


def _academic_year(days: np.ndarray) -> np.ndarray:
    """Return the log of visits relative to term time, for days counted from 16 March."""

    def dip(centre: float, width: float) -> np.ndarray:
        distance = (days + 75 - centre + 182.625) % 365.25 - 182.625
        return np.exp(-((distance / width) ** 2))

    return -0.5 * dip(210.0, 35.0) - 0.5 * dip(360.0, 8.0)
