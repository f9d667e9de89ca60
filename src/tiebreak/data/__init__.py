"""Loaders and generators of data sets: counts of places × time, the regression task made from them; dictionaries; people.

Wikipedia Math Essential and Montevideo Bus: Rozemberczki et al., PyTorch Geometric Temporal: spatiotemporal signal
processing with neural machine learning models, CIKM 2021. Adult: Becker and Kohavi, UCI machine learning repository, 1996;
prepared as by Zafar et al., Fairness constraints: mechanisms for fair classification, AISTATS 2017.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import cache_folder, checks
from tiebreak.engine.files import write_atomically

WIKIMATH_URL = (
    "https://raw.githubusercontent.com/benedekrozemberczki/pytorch_geometric_temporal/master/"
    "dataset/wikivital_mathematics.json"
)
WIKIMATH_BLOB = "28aefd607de34627e194f40a80fb50cf549904f4"  # git's id of the file
TIMEOUT = 60.0  # seconds without a byte from the server

PAGES, DAYS, TOPICS = 1068, 731, 8
WEEK = np.array([-0.26, -0.15, 0.10, 0.13, 0.12, 0.08, -0.02])  # log visits from Saturday to Friday
# Adult: what is counted, and the values of what is not, with how common they are among people.
NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORIES = {
    "workclass": (0.74, 0.08, 0.04, 0.03, 0.07, 0.04, 0.0005),
    "education": (0.04, 0.11, 0.32, 0.22, 0.03, 0.04, 0.17, 0.05, 0.02, 0.01),
    "marital-status": (0.46, 0.14, 0.33, 0.03, 0.03, 0.012, 0.001),
    "occupation": (0.13, 0.13, 0.13, 0.12, 0.12, 0.11, 0.07, 0.05, 0.05, 0.04, 0.03, 0.02, 0.005, 0.0005),
    "relationship": (0.41, 0.26, 0.15, 0.11, 0.05, 0.03),
}
SCHOOL = {  # levels of education that are taken together
    "prim-middle-school": ("Preschool", "1st-4th", "5th-6th", "7th-8th"),
    "high-school": ("9th", "10th", "11th", "12th"),
}
PEOPLE = 10_000  # that are generated
NEARLY_CONSTANT = 1e-9  # relative to the largest absolute value of a column


class Part(NamedTuple):
    """One third of the rows."""

    A: np.ndarray  # rows × features
    b: np.ndarray  # one target a row


class Atoms(NamedTuple):
    """Points of two times, made of the atoms of one dictionary; in all matrices one point or atom is a column."""

    old: np.ndarray  # m × n_old, ≈ dictionary @ old_codes
    new: np.ndarray  # m × n_new, ≈ dictionary @ new_codes
    dictionary: np.ndarray  # m × p, columns of norm 1
    old_atoms: np.ndarray  # which columns of the dictionary the old points use
    new_atoms: np.ndarray
    old_codes: np.ndarray  # p × n_old
    new_codes: np.ndarray  # p × n_new


class Census(NamedTuple):
    """People, one a row: what is known of them, whether they earn much, and an attribute that should not matter."""

    X: np.ndarray  # people × features, each between 0 and 1
    y: np.ndarray  # 1 for a large income, −1 for others
    sensitive: np.ndarray  # 0 or 1


class Split(NamedTuple):
    """A regression task: three disjoint sets of rows, and which column of the data is the target."""

    train: Part
    validation: Part
    test: Part
    target: int


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


def dictionary(
    seed: int = 0,
    *,
    shape: tuple[int, int] = (25, 50),
    old_atoms: int = 40,
    new_atoms: int = 20,
    shared: int = 10,
    n_old: int = 250,
    n_new: int = 250,
    sparsity: int = 5,
    noise: float = 0.01,
) -> Atoms:
    """Generate the data of a dictionary that has to be renewed: points of old atoms, then of new ones and some of the old.

    The atoms are Gaussian vectors scaled to norm 1. Each point is a sum of a few atoms of its time, with coefficients of
    random signs and absolute values uniform in [0.2, 1], and Gaussian noise. The sizes are by default those of Cao et al.,
    Projection-free methods for stochastic simple bilevel optimization with convex lower-level problem, NeurIPS 2023, after
    Jiang et al., A conditional gradient-based method for simple bilevel optimization with convex lower-level problem,
    AISTATS 2023.

    Parameters
    ----------
    seed : int
        Same seed, same data, within one version of NumPy.
    shape : (int, int)
        Length m of an atom and number p of all atoms.
    old_atoms, new_atoms : int
        How many atoms the old and the new points are made of.
    shared : int
        How many of these are the same; old_atoms + new_atoms − shared is at most p.
    n_old, n_new : int
        Numbers of points.
    sparsity : int
        Atoms in each point.
    noise : float
        Standard deviation of the noise in each entry.

    Returns
    -------
    Atoms
        ``old`` and ``new`` points, the true ``dictionary``, and which atoms and codes they are made of.

    Examples
    --------
    >>> task = dictionary()
    >>> task.old.shape, task.new.shape, task.dictionary.shape
    ((25, 250), (25, 250), (25, 50))
    >>> len(set(task.old_atoms) & set(task.new_atoms))
    10
    """
    rng = np.random.default_rng(checks.whole(seed, "seed", least=0))
    m, p = checks.matrix_shape(shape)
    n_old, n_new = checks.whole(n_old, "n_old"), checks.whole(n_new, "n_new")
    old_atoms, new_atoms, shared = _overlap(old_atoms, new_atoms, shared, p)
    sparsity = checks.whole(sparsity, "sparsity")
    if sparsity > min(old_atoms, new_atoms):
        raise ValueError(f"`sparsity` must be at most {min(old_atoms, new_atoms)}, the number of atoms, got {sparsity}")
    noise = checks.real(noise, "noise", least=0.0)

    truth = rng.standard_normal((m, p))
    truth /= np.linalg.norm(truth, axis=0)
    order = rng.permutation(p)
    old, new = order[:old_atoms], order[old_atoms - shared : old_atoms - shared + new_atoms]
    old_codes, new_codes = _sparse_codes(rng, p, old, n_old, sparsity), _sparse_codes(rng, p, new, n_new, sparsity)
    old_points = truth @ old_codes + noise * rng.standard_normal((m, n_old))
    new_points = truth @ new_codes + noise * rng.standard_normal((m, n_new))
    return Atoms(old_points, new_points, truth, np.sort(old), np.sort(new), old_codes, new_codes)


def wikimath(path: str | os.PathLike[str] | None = None) -> np.ndarray:
    """Load Wikipedia Math Essential: visits of 1068 mathematics pages on the 731 days from 16 March 2019.

    Parameters
    ----------
    path : path, optional
        The file ``wikivital_mathematics.json``, or another of its form: an object with the keys ``"0"``, ``"1"``, …, one a
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
    file = cache_folder() / "data" / WIKIMATH_URL.rpartition("/")[2] if path is None else _existing(path)
    content = _parsed(_downloaded(file) if path is None else file.read_bytes(), file)
    counted = max(1, sum(key.isdecimal() for key in content))
    with _naming(file):
        periods = checks.whole(content.get("time_periods", counted), "time_periods")
        missing = next((t for t in range(periods) if str(t) not in content), None)
        if missing is not None:
            raise ValueError(f'must have the key "{missing}", one a time period, got the keys {checks.shown(list(content))}')
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
    file = _existing(path)
    nodes = _parsed(file.read_bytes(), file).get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise ValueError(f'{file} must have a non-empty list "nodes", got {checks.shown(nodes)}')
    return _stacked(nodes, file, "node")


def adult(path: str | os.PathLike[str] | None = None) -> Census:
    """Load Adult, a sample of the census of 1994: who earns more than 50,000 a year, with sex as the sensitive attribute.

    Columns are divided by their largest value, so that all lie between 0 and 1.

    Parameters
    ----------
    path : path, optional
        A MATLAB file (to version 7.2) with ``X`` (people × features, none negative), ``y`` (±1) and ``x_control`` (0 or 1,
        the sensitive attribute), such as the ``adult.mat`` of Jiang et al., A conditional gradient-based method for simple
        bilevel optimization with convex lower-level problem, AISTATS 2023, with 10,000 people and 50 features. By default
        all people come from OpenML, through scikit-learn, which keeps what it downloads; this needs the extra
        ``tiebreak[pandas]``. They are prepared alike: those with missing values are left out, low levels of education taken
        together, countries are the United States or others, race and sex are no features, and the others become one column
        a value: 50 in all.

    Returns
    -------
    Census

    Raises
    ------
    ConnectionError
        If the download fails.
    FileNotFoundError
        If there is no file at ``path``.
    ValueError
        If the file has another form.

    Examples
    --------
    >>> import pathlib, scipy.io, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "adult.mat")
    ...     scipy.io.savemat(path, {"X": [[1.0, 20.0], [0.0, 40.0]], "y": [1, -1], "x_control": [0, 1]})
    ...     adult(path).X
    array([[1. , 0.5],
           [0. , 1. ]])
    """
    if path is None:
        return _prepared(_fetched())
    file = _existing(path, "a MATLAB file")
    content = _matlab(file)
    with _naming(file):
        missing = [name for name in ("X", "y", "x_control") if name not in content]
        if missing:
            names = [name for name in content if not name.startswith("__")]
            raise ValueError(f"must have the variables X, y and x_control, got {checks.shown(names)} without {missing[0]}")
        X = np.asarray(checks.numbers(content["X"], "X"), dtype=np.float64)
        if X.ndim != 2 or X.size == 0:
            raise ValueError(f"`X` must be a matrix of people × features, got an array of shape {X.shape}")
        checks.finite(X, "X")
        if X.min() < 0.0:
            raise ValueError(f"`X` must hold numbers ≥ 0, got {X.min():g}")
        y, sensitive = (_labels(content[name], name, X.shape[0], pair) for name, pair in LABELS.items())
    return Census(_scaled(X, "column-max"), y, sensitive)


def adult_like(seed: int = 0) -> Census:
    """Generate people that resemble those of :func:`adult`: 10,000 with 50 features, and an income that depends on sex.

    Two thirds are of the sensitive group 1. What is counted (age, years of school, gains, losses, hours) and what is one of
    several values (work, school, family, occupation, relationship, country) is about as common as in Adult; some values
    are more common in one group, and all follow a standing that is not seen, more or less closely. A quarter has a large
    income: about 30 % of group 1 and 13 % of group 0, in part because of what goes with the group.

    Parameters
    ----------
    seed : int
        Same seed, same people, within one version of NumPy.

    Returns
    -------
    Census

    Examples
    --------
    >>> people = adult_like()
    >>> people.X.shape, float(people.X.min()), float(people.X.max())
    ((10000, 50), 0.0, 1.0)
    """
    rng = np.random.default_rng(checks.whole(seed, "seed", least=0))
    group = (rng.random(PEOPLE) < 0.675).astype(float)
    standing = rng.standard_normal(PEOPLE)
    income = 1.1 * standing + 0.8 * (group - group.mean())
    columns: list[np.ndarray] = []
    for shares in CATEGORIES.values():
        base = np.log(np.array(shares))
        by_standing, by_group = rng.normal(0.0, 0.7, base.size), rng.normal(0.0, 0.7, base.size)
        scores = base + np.outer(standing, by_standing) + np.outer(group, by_group) + rng.gumbel(size=(PEOPLE, base.size))
        value = scores.argmax(axis=1)
        income += 0.5 * by_standing[value] + 0.5 * by_group[value]
        columns += list((value[:, None] == np.arange(base.size)).T.astype(float))
    columns.append((rng.random(PEOPLE) < 0.91).astype(float))
    age = np.clip(rng.gamma(6.0, 5.0, PEOPLE) + 10.0, 17.0, 90.0)
    school = np.clip(np.rint(10.0 + 2.5 * (0.6 * standing + 0.8 * rng.standard_normal(PEOPLE))), 1.0, 16.0)
    hours = np.clip(np.rint(38.0 + 4.0 * group + 11.0 * rng.standard_normal(PEOPLE)), 1.0, 99.0)
    gain = np.where(
        rng.random(PEOPLE) < 0.08 + 0.04 * (standing > 1.0), np.minimum(2000.0 * rng.pareto(1.2, PEOPLE), 99999.0), 0.0
    )
    loss = np.where(rng.random(PEOPLE) < 0.047, rng.normal(1870.0, 350.0, PEOPLE).clip(150.0), 0.0)
    income += 0.03 * (age - age.mean()) + 0.25 * (school - 10.0) + 0.02 * (hours - 40.0) + 0.3 * np.log1p(gain)
    income += rng.logistic(0.0, 1.0, PEOPLE)
    X = _scaled(np.column_stack([*columns, age, school, gain, loss, hours]), "column-max")
    return Census(X, np.where(income > np.quantile(income, 0.755), 1.0, -1.0), group)


def split(A: Any, seed: int = 0, scaling: str | None = "column-max") -> Split:
    """Make a regression task of a matrix: one random column is the target, the others are the features.

    Rows are shuffled and cut in thirds, whose sizes differ by at most one. Columns are scaled by statistics of *all* rows,
    because the features of all rows are known beforehand, and heavy-tailed counts scaled by a third of the rows would leave
    huge values in the other thirds. No column is shifted, so that zeros stay zeros.

    Parameters
    ----------
    A : array_like of shape (n, d)
        The data, n ≥ 4 and d ≥ 2.
    seed : int
        Chooses the target and the rows. A column that is constant on the training third, up to rounding, is passed over.
    scaling : {"column-max", "std", "none"} or None
        Divide each column, the target too, by its largest absolute value, so that counts come to lie in [0, 1]; or by its
        standard deviation; or by nothing. A column of zeros stays as it is, and one without deviation, up to rounding, is
        divided by its largest absolute value.

    Returns
    -------
    Split
        ``train``, ``validation`` and ``test``, each with its ``A`` and ``b``, and the index of the ``target``.

    Raises
    ------
    ValueError
        If ``A`` is not a finite matrix of that size, or every column is constant on the training third.

    Examples
    --------
    >>> task = split(pageviews())
    >>> task.train.A.shape, task.train.b.shape
    ((356, 730), (356,))
    """
    array = np.asarray(checks.numbers(A, "A"), dtype=np.float64)
    if array.ndim != 2 or array.shape[0] < 4 or array.shape[1] < 2:
        raise ValueError(f"`A` must be a matrix of at least 4 rows and 2 columns, got an array of shape {array.shape}")
    checks.finite(array, "A")
    scaled = _scaled(array, scaling)
    rng = np.random.default_rng(checks.whole(seed, "seed", least=0))
    thirds = np.array_split(rng.permutation(array.shape[0]), 3)
    candidates = rng.permutation(array.shape[1])
    target = next((int(j) for j in candidates if _varies(array[thirds[0], j])), None)
    if target is None:
        raise ValueError("`A` must have a column that varies on the training third, got none; try another `seed`")
    features, b = np.delete(scaled, target, axis=1), scaled[:, target]
    train, validation, test = (Part(features[rows], b[rows]) for rows in thirds)
    return Split(train, validation, test, target)


def _overlap(old_atoms: Any, new_atoms: Any, shared: Any, p: int) -> tuple[int, int, int]:
    old_atoms, new_atoms = checks.whole(old_atoms, "old_atoms"), checks.whole(new_atoms, "new_atoms")
    for name, size in (("old_atoms", old_atoms), ("new_atoms", new_atoms)):
        if size > p:
            raise ValueError(f"`{name}` must be at most {p}, the number of all atoms, got {size}")
    shared = checks.whole(shared, "shared", least=0)
    least, most = max(old_atoms + new_atoms - p, 0), min(old_atoms, new_atoms)
    if not least <= shared <= most:
        sizes = f"{old_atoms} old and {new_atoms} new of {p} atoms"
        raise ValueError(f"`shared` must be from {least} to {most} for {sizes}, got {shared}")
    return old_atoms, new_atoms, shared


def _sparse_codes(rng: np.random.Generator, p: int, atoms: np.ndarray, n: int, sparsity: int) -> np.ndarray:
    """Return a p × n matrix with as many non-zeros in each column, in rows of these atoms."""
    codes = np.zeros((p, n))
    for i in range(n):
        chosen = rng.choice(atoms, sparsity, replace=False)
        codes[chosen, i] = rng.uniform(0.2, 1.0, sparsity) * rng.choice([-1.0, 1.0], sparsity)
    return codes


def _academic_year(days: np.ndarray) -> np.ndarray:
    """Return the log of visits relative to term time, for days counted from 16 March."""

    def dip(centre: float, width: float) -> np.ndarray:
        distance = (days + 75 - centre + 182.625) % 365.25 - 182.625
        return np.exp(-((distance / width) ** 2))

    return -0.5 * dip(210.0, 35.0) - 0.5 * dip(360.0, 8.0)


def _varies(column: np.ndarray) -> bool:
    peak = np.abs(column).max()
    return bool(peak > 0.0 and np.ptp(column / peak) > NEARLY_CONSTANT)


def _scaled(array: np.ndarray, scaling: str | None) -> np.ndarray:
    if scaling is None or scaling == "none":
        return array
    if scaling not in ("column-max", "std"):
        raise ValueError(f'`scaling` must be "column-max", "std", "none" or None, got {checks.shown(scaling)}')
    peak = np.abs(array).max(axis=0)
    unit = array / np.where(peak > 0.0, peak, 1.0)
    if scaling == "column-max":
        return unit
    deviation = unit.std(axis=0)
    return unit / np.where(deviation > NEARLY_CONSTANT, deviation, 1.0)


def _downloaded(file: Path) -> bytes:
    """Return the content of the cached file; where it is missing or damaged, download it anew."""
    try:
        content = file.read_bytes()
    except OSError:
        content = b""
    if _blob(content) == WIKIMATH_BLOB:
        return content
    remedy = f"get {file.name} by other means and pass its place as `path`"
    try:
        with urllib.request.urlopen(WIKIMATH_URL, timeout=TIMEOUT) as response:
            content = bytes(response.read())
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"could not download {WIKIMATH_URL} ({error or type(error).__name__}); {remedy}") from error
    if _blob(content) != WIKIMATH_BLOB:
        raise OSError(
            f"{WIKIMATH_URL} must have the git blob id {WIKIMATH_BLOB}, got {_blob(content)} ({len(content)} bytes): "
            f"it was changed there or damaged on the way; try again, or {remedy}"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content, f".{os.getpid()}")
    return content


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


LABELS = {"y": (-1.0, 1.0), "x_control": (0.0, 1.0)}  # of Adult


def _matlab(file: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        return loadmat(file)
    except NotImplementedError as error:  # version 7.3, which is HDF5
        raise ValueError(f"{file} must be a MATLAB file to version 7.2 (saved with -v7), got a newer one: {error}") from None
    except Exception as error:  # a damaged file may fail in any way
        raise ValueError(f"{file} must be a MATLAB file with the variables X, y and x_control: {error}") from None


def _labels(values: Any, name: str, people: int, pair: tuple[float, float]) -> np.ndarray:
    labels = checks.vector(np.ravel(values), name, people)
    wrong = labels[~np.isin(labels, pair)]
    if wrong.size:
        raise ValueError(f"`{name}` must hold {pair[0]:g} and {pair[1]:g} only, got {wrong[0]:g}")
    return labels


def _fetched() -> Any:
    """Return the table of all people of Adult, with a column a variable."""
    from sklearn.datasets import fetch_openml

    try:
        return fetch_openml("adult", version=2, as_frame=True, parser="auto").frame
    except ImportError as error:
        raise ImportError("Adult from OpenML needs pandas: install tiebreak[pandas], or pass a file as `path`") from error
    except (OSError, http.client.HTTPException) as error:
        remedy = "get the data by other means and pass a file as `path`"
        raise ConnectionError(f"could not download Adult from OpenML ({error or type(error).__name__}); {remedy}") from error


def _prepared(table: Any) -> Census:
    """Return the people of OpenML's table of Adult without missing values, with one column a value."""
    table = table.replace("?", np.nan).dropna()
    texts = {
        name: np.char.strip(np.asarray(table[name], dtype=str)) for name in (*CATEGORIES, "native-country", "sex", "class")
    }
    for together, levels in SCHOOL.items():
        texts["education"] = np.where(np.isin(texts["education"], levels), together, texts["education"])
    columns = [texts[name] == value for name in CATEGORIES for value in np.unique(texts[name])]
    columns.append(texts["native-country"] == "United-States")
    columns += [np.asarray(table[name], dtype=np.float64) for name in NUMERIC]
    income = np.where(np.char.startswith(texts["class"], ">"), 1.0, -1.0)
    X = _scaled(np.column_stack(columns).astype(np.float64), "column-max")
    return Census(X, income, (texts["sex"] == "Male").astype(float))


def _existing(path: Any, kind: str = "a JSON file") -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"`path` must be the path of {kind}, got {checks.shown(path)}")
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"`path` must name an existing file, got {str(file)!r}")
    return file


def _parsed(content: bytes, file: Path) -> dict[str, Any]:
    with _naming(file):
        parsed = json.loads(content)
        if not isinstance(parsed, dict):
            raise ValueError(f"must hold a JSON object, got {checks.shown(parsed)}")
    return parsed


def _stacked(entries: list[Any], file: Path, kind: str) -> np.ndarray:
    """Return the counts ``"y"`` of the entries as rows."""
    rows: list[np.ndarray] = []
    for i, entry in enumerate(entries):
        with _naming(f"{file}: {kind} {i}"):
            if not isinstance(entry, dict) or not isinstance(entry.get("y"), list):
                raise ValueError(f'must be an object with a list "y", got {checks.shown(entry)}')
            row = checks.vector(entry["y"], "y", rows[0].size if rows else None)
            if row.min() < 0.0:
                raise ValueError(f"`y` must hold counts ≥ 0, got {row.min():g} at [{row.argmin()}]")
        rows.append(row)
    return np.stack(rows)


@contextmanager
def _naming(place: str | Path) -> Iterator[None]:
    """Say in each ValueError which place of which file it is about."""
    try:
        yield
    except (ValueError, RecursionError) as error:  # JSON nested without end
        raise ValueError(f"{place}: {error}") from None
