"""Test errors on scikit-learn's diabetes data with polynomial features: TieBreakRegressor against LassoCV.

All models see the same splits. Whatever is chosen is chosen by cross-validation within the training part; the test part is
looked at once, for the numbers below.

- "l1": the coefficients of least training error in an ℓ1 ball, which are those of the lasso, and of these the ones of least
  Euclidean norm. The radius is chosen.
- "weighted l1": the same with products of features counting more in the norm than the features themselves. How much more is
  chosen with the radius, so that the grid is that of "l1" and more.
- "validation": as "l1", but a quarter of the training part is held out, and of the best fits the one with the least error
  there is taken.

Run: python benchmarks/diabetes.py [number of splits]
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import tiebreak
from tiebreak.learn import TieBreakRegressor

FEATURES = 10
RADII = np.geomspace(30.0, 300.0, 13)  # the targets have a standard deviation of 77, the features one of 1
PRODUCTS = (1.0, 1.5, 2.0, 3.0)  # what a product of features counts, where a feature counts 1


class Products(NamedTuple):
    """The ℓ1 ball in which products of features count as much as it says; a value, so that it can be copied and pickled."""

    count: float
    radius: float

    def __call__(self, dimension: int) -> tiebreak.WeightedL1Ball:
        weights = np.full(dimension, self.count)
        weights[:FEATURES] = 1.0
        return tiebreak.WeightedL1Ball(weights, self.radius)


def searched(folds: KFold, grid: dict[str, Any], **options: Any) -> GridSearchCV:
    model = TieBreakRegressor(random_state=0, **options)
    return GridSearchCV(model, grid, cv=folds, scoring="neg_mean_squared_error")


def models(seed: int) -> dict[str, Any]:
    folds = KFold(5, shuffle=True, random_state=seed)
    sets = [Products(count, radius) for count in PRODUCTS for radius in RADII]
    return {
        "LassoCV": LassoCV(cv=folds, max_iter=100_000),
        "l1": searched(folds, {"radius": RADII}),
        "weighted l1": searched(folds, {"constraint": sets}),
        "validation": searched(folds, {"radius": RADII}, secondary="validation"),
    }


def main(n_splits: int = 20) -> None:
    X, y = load_diabetes(return_X_y=True)
    errors: dict[str, list[float]] = {}
    for seed, (train, test) in enumerate(ShuffleSplit(n_splits, test_size=0.25, random_state=0).split(X)):
        for name, model in models(seed).items():
            pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), model)
            pipeline.fit(X[train], y[train])
            errors.setdefault(name, []).append(mean_squared_error(y[test], pipeline.predict(X[test])))
    base = np.array(errors["LassoCV"])
    print(f"{n_splits} splits of {X.shape[0]} samples, 65 features: mean squared test error, ratio to that of LassoCV")
    for name, found in errors.items():
        ratios = np.array(found) / base
        better = f"lower in {np.count_nonzero(ratios < 1.0)} of {n_splits}" if name != "LassoCV" else ""
        spread = ratios.std(ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.nan
        print(f"  {name:12} {np.mean(found):7.1f}   mean ratio {ratios.mean():.4f} ± {spread:.4f}   {better}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
