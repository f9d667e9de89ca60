"""People of a census: who earns much, and an attribute that should not matter.

Adult: Becker and Kohavi, UCI machine learning repository, 1996; prepared as by Zafar et al., Fairness constraints:
mechanisms for fair classification, AISTATS 2017.
"""

from __future__ import annotations

import http.client
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data.files import existing, naming
from tiebreak.data.splits import scaled_columns
from tiebreak.engine import checks

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
PEOPLE = 10_000  # people that are generated
LABELS = {"y": (-1.0, 1.0), "x_control": (0.0, 1.0)}  # values of the variables of Adult's MATLAB file


class Census(NamedTuple):
    """People, one per row: what is known of them, whether they earn much, and an attribute that should not matter."""

    X: np.ndarray  # people × features, each between 0 and 1
    y: np.ndarray  # 1 for a large income, −1 for others
    sensitive: np.ndarray  # 0 or 1


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
        per value: 50 in all.

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
    file = existing(path, "a MATLAB file")
    content = _matlab(file)
    with naming(file):
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
    return Census(scaled_columns(X, "column-max"), y, sensitive)


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
    X = scaled_columns(np.column_stack([*columns, age, school, gain, loss, hours]), "column-max")
    return Census(X, np.where(income > np.quantile(income, 0.755), 1.0, -1.0), group)


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
    """Return the table of all people of Adult, with one column per variable."""
    from sklearn.datasets import fetch_openml

    try:
        return fetch_openml("adult", version=2, as_frame=True, parser="auto").frame
    except ImportError as error:
        raise ImportError("Adult from OpenML needs pandas: install tiebreak[pandas], or pass a file as `path`") from error
    except (OSError, http.client.HTTPException) as error:
        reason, remedy = str(error) or type(error).__name__, "get the data by other means and pass a file as `path`"
        raise ConnectionError(f"could not download Adult from OpenML ({reason}); {remedy}") from error


def _prepared(table: Any) -> Census:
    """Return the people of OpenML's table of Adult without missing values, with one column per value."""
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
    X = scaled_columns(np.column_stack(columns).astype(np.float64), "column-max")
    return Census(X, income, (texts["sex"] == "Male").astype(float))
