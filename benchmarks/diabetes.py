"""Test errors on scikit-learn's diabetes data with polynomial features: TieBreakRegressor and its CV against LassoCV.

All models see the same splits. Whatever is chosen is chosen by cross-validation within the training part; the test part is
looked at once, for the numbers below.

- "l1": the coefficients of least training error in an ℓ1 ball, which are those of the lasso, and of these the ones of least
  Euclidean norm. The radius is chosen.
- "weighted l1": the same with products of features counting more in the norm than the features themselves. How much more is
  chosen with the radius, so that the grid is that of "l1" and more.
- "validation": as "l1", but a quarter of the training part is held out, and of the best fits the one with the least error
  there is taken.
- "near ties": TieBreakRegressorCV as it is, which chooses a radius and a share of the fit to keep.

With ``--cubic`` products of up to three features are taken, nearly as many as there are samples, and the models are LassoCV,
"near ties" and "default", TieBreakRegressor() as it is, which fits the noise and warns of it.

Run ``python benchmarks/diabetes.py``, with a number for as many splits of the samples, with ``--quick`` for two.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from timing import Size, arguments

import tiebreak
from tiebreak.learn import TieBreakRegressor, TieBreakRegressorCV

FEATURES = 10
RADII = np.geomspace(30.0, 300.0, 13)  # radii for targets with a standard deviation of 77, and features with one of 1
PRODUCTS = (1.0, 1.5, 2.0, 3.0)  # weights of a product of features, where a feature counts 1


class Products(NamedTuple):
    """The ℓ1 ball in which products of features count as much as it says; a value, so that it can be copied and pickled."""

    count: float
    radius: float

    def __call__(self, dimension: int) -> tiebreak.WeightedL1Ball:
        weights = np.full(dimension, self.count)
        weights[:FEATURES] = 1.0
        return tiebreak.WeightedL1Ball(weights, self.radius)


class Grids(NamedTuple):
    """What is searched, and on how much of the data."""

    radii: np.ndarray
    products: tuple[float, ...]
    folds: int
    samples: int | None  # all if not given
    degree: int  # of the polynomials
    passes: int  # max_iter of each fit


FULL = Grids(RADII, PRODUCTS, folds=5, samples=None, degree=2, passes=1000)
CUBIC = FULL._replace(degree=3)
TINY = Grids(RADII[6:7], PRODUCTS[1:2], folds=2, samples=24, degree=1, passes=5)


def searched(folds: KFold, grid: dict[str, Any], **options: Any) -> GridSearchCV:
    model = TieBreakRegressor(random_state=0, **options)
    return GridSearchCV(model, grid, cv=folds, scoring="neg_mean_squared_error")


def models(seed: int, grids: Grids) -> dict[str, Any]:
    folds = KFold(grids.folds, shuffle=True, random_state=seed)
    sets = [Products(count, radius) for count in grids.products for radius in grids.radii]
    radii, passes = {"radius": grids.radii}, {"max_iter": grids.passes}
    near_ties = {"near ties": TieBreakRegressorCV(cv=folds)}
    if grids.degree == 3:
        return {"LassoCV": LassoCV(cv=folds), **near_ties, "default": TieBreakRegressor()}
    return {
        "LassoCV": LassoCV(cv=folds, max_iter=100_000),
        "l1": searched(folds, radii, **passes),
        "weighted l1": searched(folds, {"constraint": sets}, **passes),
        "validation": searched(folds, radii, secondary="validation", **passes),
        **near_ties,
    }


def main(n_splits: int, grids: Grids) -> None:
    X, y = (part[: grids.samples] for part in load_diabetes(return_X_y=True))
    errors: dict[str, list[float]] = {}
    scores: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for seed, (train, test) in enumerate(ShuffleSplit(n_splits, test_size=0.25, random_state=0).split(X)):
        for name, model in models(seed, grids).items():
            pipeline = make_pipeline(PolynomialFeatures(grids.degree, include_bias=False), StandardScaler(), model)
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # of LassoCV, for its smallest penalties
                warnings.filterwarnings("ignore", ".*and so is their noise", UserWarning)
                pipeline.fit(X[train], y[train])
            seconds.setdefault(name, []).append(time.perf_counter() - start)
            scores.setdefault(name, []).append(pipeline.score(X[test], y[test]))
            errors.setdefault(name, []).append(mean_squared_error(y[test], pipeline.predict(X[test])))
    base = np.array(errors["LassoCV"])
    told = f"{n_splits} splits of {X.shape[0]} samples, {pipeline[0].n_output_features_} features"
    print(f"{told}: mean squared test error, ratio to that of LassoCV")
    for name, found in errors.items():
        ratios = np.array(found) / base
        better = f"lower in {np.count_nonzero(ratios < 1.0)} of {n_splits}" if name != "LassoCV" else ""
        spread = ratios.std(ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.nan
        times = np.median(np.array(seconds[name]) / np.array(seconds["LassoCV"]))
        print(
            f"  {name:12} {np.mean(found):7.1f}   mean ratio {ratios.mean():.4f} ± {spread:.4f}"
            f"   R² {np.mean(scores[name]):6.3f}   time {times:5.1f} × LassoCV's   {better}"
        )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("splits", type=int, nargs="?", help="how many splits of the samples")
    parser.add_argument("--cubic", action="store_true", help="take products of up to three features")
    asked = parser.parse_args()
    size: Size = asked.size
    with size.engine():
        main(asked.splits or size.pick(20, 2, 1), size.pick(*[CUBIC if asked.cubic else FULL] * 2, TINY))
