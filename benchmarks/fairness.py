"""Fair classifiers on Adult: FairClassifier against fairlearn's ExponentiatedGradient and ThresholdOptimizer.

All see the same splits of the people: seven of ten to train, the others to test. Sex is the sensitive attribute, and no
feature. The base of fairlearn's classifiers is the logistic regression of the first row. FairClassifier treats people of the
same features alike. A decision of ExponentiatedGradient is random, one of ThresholdOptimizer random and a function of sex.

1. On people that were not seen: accuracy; the p-rule, the smaller ratio of the shares of positive decisions in both groups;
   the difference of these shares; the larger one of the differences of true and of false positive rates. Means over splits,
   with their standard errors. Time of the processor to fit on one thread, divided by that of the logistic regression in
   the same split: the median.
2. What is promised of the training people, what is delivered there, and what is left of it on people not seen: the worst of
   all splits. FairClassifier promises how much the loss may increase; what it delivers is proven, and on people not seen it
   is the loss beside that of the plain model. fairlearn promises how far the positive rate of a group may be from that of
   all, for equalised odds within each class; rates are expected ones, free of the luck of random decisions.
3. Age, as a number, in place of sex, and age no feature. fairlearn takes groups, here the quarters of the training people.
   The correlation of decisions with age, and the largest difference of positive rates between two quarters of the ages.

Run ``python benchmarks/fairness.py``, with a number for as many splits, with ``--quick`` for two. Set ``TIEBREAK_DATA`` to a
folder with ``adult.mat``; without it people are generated. fairlearn is compared where it is installed
(``pip install fairlearn``).
"""

from __future__ import annotations

import importlib.util
import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from timing import Size, arguments, counted, show_table

import tiebreak
from tiebreak.learn import FairClassifier
from tiebreak.studies.fairness import p_rule

PARITY, ODDS = "demographic_parity", "equalized_odds"
SHORT = {PARITY: "parity", ODDS: "odds"}
INCREASES = {"score": (0.01, 0.05, 0.2), "probability": (0.01, 0.05, 0.1)}  # of the loss, which FairClassifier may take
LARGE_INCREASE = 0.3  # the same, of which features that tell of age take more
BOUNDS = (0.05, 0.01)  # on the difference between groups, which ExponentiatedGradient is to keep
SHARE = 0.7  # of the people, to train
YOUNGEST = 17.0 / 90.0  # age of the youngest person of Adult, in units of that of the oldest
HAS_FAIRLEARN = importlib.util.find_spec("fairlearn") is not None


class People(NamedTuple):
    """Features, labels 0 and 1, and the sensitive attribute: a group, or a number."""

    X: np.ndarray
    y: np.ndarray
    sensitive: np.ndarray

    def rows(self, which: np.ndarray) -> People:
        return People(*(part[which] for part in self))


class Fitted(NamedTuple):
    """A classifier with what it promised."""

    decide: Callable[[People], np.ndarray]
    model: Any
    promised: float = math.nan  # of the loss, or of the deviation of groups
    constraint: str = ""  # which deviation that is


class Contender(NamedTuple):
    """A way to fit a classifier."""

    name: str
    fit: Callable[[People, int], Fitted]


# Contenders


def plain(base: Any) -> Contender:
    def fit(train: People, seed: int) -> Fitted:
        model = clone(base).fit(train.X, train.y)
        return Fitted(lambda people: model.predict(people.X), model)

    return Contender("logistic regression", fit)


def fair(increase: float, criterion: str, measure: str) -> Contender:
    def fit(train: People, seed: int) -> Fitted:
        model = FairClassifier(increase, criterion, measure=measure)
        model.fit(train.X, train.y, sensitive_features=train.sensitive)
        return Fitted(lambda people: model.predict(people.X), model, increase)

    return Contender(f"FairClassifier, {SHORT[criterion]}, {measure}, {100 * increase:g} %", fit)


def fair_ones(criterion: str, size: Size) -> list[Contender]:
    kinds = [(increase, measure) for measure, increases in INCREASES.items() for increase in increases]
    return [fair(increase, criterion, measure) for increase, measure in size.pick(kinds, kinds, kinds[::3])]


def reduced(base: Any, bound: float, criterion: str, max_iter: int) -> Contender:
    def fit(train: People, seed: int) -> Fitted:
        from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient

        constraint = {PARITY: DemographicParity, ODDS: EqualizedOdds}[criterion](difference_bound=bound)
        model = ExponentiatedGradient(clone(base), constraint, max_iter=max_iter)
        model.fit(train.X, train.y, sensitive_features=train.sensitive)
        return Fitted(lambda people: model.predict(people.X, random_state=seed), model, bound, criterion)

    return Contender(f"ExponentiatedGradient, {SHORT[criterion]}, {bound:g}", fit)


def reduced_ones(base: Any, criterion: str, size: Size) -> list[Contender]:
    return [reduced(base, bound, criterion, size.pick(50, 50, 2)) for bound in size.pick(BOUNDS, BOUNDS, BOUNDS[:1])]


def shifted(base: Any, criterion: str) -> Contender:
    def fit(train: People, seed: int) -> Fitted:
        from fairlearn.postprocessing import ThresholdOptimizer

        model = ThresholdOptimizer(estimator=clone(base), constraints=criterion, predict_method="predict_proba")
        model.fit(train.X, train.y, sensitive_features=train.sensitive)
        decide = lambda people: model.predict(people.X, sensitive_features=people.sensitive, random_state=seed)  # noqa: E731
        return Fitted(decide, model, 0.0, criterion)

    return Contender(f"ThresholdOptimizer, {SHORT[criterion]}", fit)


def contenders(size: Size) -> list[Contender]:
    base = LogisticRegression(C=100.0, max_iter=5000)
    found = [plain(base)]
    for criterion in (PARITY, ODDS):
        found += fair_ones(criterion, size)
        if HAS_FAIRLEARN:
            found += reduced_ones(base, criterion, size)
            found.append(shifted(base, criterion))
    return found


# Measures


def positive_rates(decided: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.array([decided[groups == each].mean() for each in np.unique(groups)])


def parts_of(people: People, criterion: str) -> list[np.ndarray]:
    """Return the people that are compared with each other."""
    return [np.ones(people.y.size, dtype=bool)] if criterion == PARITY else [people.y == 0, people.y == 1]


def difference(decided: np.ndarray, people: People, criterion: str) -> float:
    """Return the difference of positive rates between groups; for equalised odds the larger one of both classes."""
    rates = (positive_rates(decided[part], people.sensitive[part]) for part in parts_of(people, criterion))
    return max(float(np.ptp(each)) for each in rates)


def deviation(model: Any, people: People, criterion: str) -> float:
    """Return how far the expected positive rate of a group is from that of all; for equalised odds within a class."""
    asked = {"sensitive_features": people.sensitive} if type(model).__name__ == "ThresholdOptimizer" else {}
    chances = model._pmf_predict(people.X, **asked)[:, 1]
    found = [
        np.abs(positive_rates(chances[part], people.sensitive[part]) - chances[part].mean()).max()
        for part in parts_of(people, criterion)
    ]
    return float(max(found))


def log_loss(X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> float:
    return float(np.logaddexp(0.0, np.where(y == 1, -1.0, 1.0) * (X @ coef[0] + intercept)).mean())


class Seen(NamedTuple):
    """What was measured of a contender in one split."""

    accuracy: float
    p_rule: float
    parity: float
    odds: float
    seconds: float
    promised: float
    delivered: float  # on the people that it was fitted to
    unseen: float  # on others


def measured(contender: Contender, train: People, test: People, seed: int) -> Seen:
    began = time.process_time()
    fitted = contender.fit(train, seed)
    seconds = time.process_time() - began
    decided = fitted.decide(test)
    delivered = unseen = math.nan
    if isinstance(fitted.model, FairClassifier):
        model = fitted.model
        delivered = model.loss_increase_
        own = log_loss(test.X, test.y, model.coef_, model.intercept_)
        unseen = own / log_loss(test.X, test.y, model.plain_coef_, model.plain_intercept_) - 1.0
    elif fitted.constraint:
        delivered, unseen = (deviation(fitted.model, people, fitted.constraint) for people in (train, test))
    return Seen(
        float((decided == test.y).mean()),
        p_rule(2.0 * decided - 1.0, test.sensitive),
        difference(decided, test, PARITY),
        difference(decided, test, ODDS),
        seconds,
        fitted.promised,
        delivered,
        unseen,
    )


# Tables


def with_error(values: np.ndarray) -> str:
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return f"{values.mean():.3f} ± {error:.3f}"


def show_sex(people: People, splits: int, size: Size) -> None:
    rivals = contenders(size)
    seen: dict[str, list[Seen]] = {each.name: [] for each in rivals}
    for seed, (train, test) in enumerate(counted(list(split(people, splits)), "splits", "sex")):
        for each in rivals:
            seen[each.name].append(measured(each, train, test, seed))
    base = np.array([each.seconds for each in seen["logistic regression"]])
    lines, promises = [], []
    for name, found in seen.items():
        columns = Seen(*np.array(found).T)
        cells = [with_error(column) for column in columns[:4]]
        lines.append([name, *cells, f"{np.median(columns.seconds / base):.2g} x"])
        if math.isfinite(found[0].promised):
            what = "loss ≤ +" if name.startswith("Fair") else "deviation ≤ "
            promised, *shown = (f"{round(100 * max(column), 4):.3g} %" for column in columns[5:])
            promises.append([name, what + promised, *shown])
    head = ["", "accuracy", "p-rule", "difference", "of odds", "time"]
    show_table(f"1. Sex: {splits} splits of {people.y.size:,} people, those not seen", head, lines)
    show_table("2. Promised and delivered: the worst split", ["", "promised", "trained on", "not seen"], promises)


def show_age(people: People, splits: int, size: Size) -> None:
    """Compare on a number, of which fairlearn takes the quarters."""
    base = LogisticRegression(C=100.0, max_iter=5000)
    ways = [plain(base), *fair_ones(PARITY, size), fair(LARGE_INCREASE, PARITY, "probability")]
    if HAS_FAIRLEARN:
        ways += reduced_ones(base, PARITY, size)
    seen: dict[str, list[list[float]]] = {each.name: [] for each in ways}
    for seed, (train, test) in enumerate(counted(list(split(people, splits)), "splits", "age")):
        cuts = np.quantile(train.sensitive, [0.25, 0.5, 0.75])
        quarters = [each._replace(sensitive=np.digitize(each.sensitive, cuts)) for each in (train, test)]
        for way in ways:
            began = time.process_time()
            decided = way.fit(train if way.name.startswith("Fair") else quarters[0], seed).decide(test)
            seconds = time.process_time() - began
            related = abs(np.corrcoef(decided, test.sensitive)[0, 1]) if np.ptp(decided) else 0.0
            rates = positive_rates(decided, quarters[1].sensitive)
            seen[way.name].append([float((decided == test.y).mean()), related, float(np.ptp(rates)), seconds])
    times = np.array(seen["logistic regression"])[:, 3]
    lines = []
    for name, found in seen.items():
        *columns, seconds = np.array(found).T
        lines.append([name, *(with_error(column) for column in columns), f"{np.median(seconds / times):.2g} x"])
    head = ["", "accuracy", "correlation", "quarters", "time"]
    show_table(f"3. Age, a number: {splits} splits, those not seen", head, lines)


# Data


def split(people: People, splits: int) -> Any:
    """Yield people to train and to test."""
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(people.y.size)
        first = int(SHARE * people.y.size)
        yield people.rows(order[:first]), people.rows(order[first:])


def census(size: Size) -> tuple[str, People]:
    path = Path(os.environ.get("TIEBREAK_DATA", ""), "adult.mat")
    real = path.is_file() and size is not Size.TINY
    found = tiebreak.data.adult(path) if real else tiebreak.data.adult_like()
    people = People(found.X, (found.y > 0.0).astype(int), found.sensitive)
    return ("Adult" if real else "generated people"), people.rows(np.arange(size.pick(10_000, 10_000, 60)))


def by_age(people: People) -> People:
    """Return the people with their age as the attribute: the column whose least value is that of the youngest."""
    column = int(np.argmin(np.abs(people.X.min(axis=0) - YOUNGEST)))
    return People(np.delete(people.X, column, axis=1), people.y, 90.0 * people.X[:, column])


def main(splits: int, size: Size) -> None:
    if not HAS_FAIRLEARN:
        print("fairlearn is not installed: only FairClassifier is shown (pip install fairlearn)")
    name, people = census(size)
    print(f"{name}: {people.y.size:,} people, {people.X.shape[1]} features")
    with warnings.catch_warnings(), threadpool_limits(1):  # threads that wait for each other would count
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="fairlearn")  # with recent versions of pandas
        warnings.filterwarnings("ignore", category=FutureWarning, module="fairlearn")
        if size is Size.TINY:
            warnings.filterwarnings("ignore", category=ConvergenceWarning)
        show_sex(people, splits, size)
        show_age(by_age(people), splits, size)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("splits", type=int, nargs="?", help="how many splits of the people")
    asked = parser.parse_args()
    with asked.size.engine():
        main(asked.splits or asked.size.pick(5, 2, 1), asked.size)
