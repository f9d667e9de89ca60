"""The samples of a task: those to fit, and those that a second criterion needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.learn.fitting import Data
from tiebreak.learn.places import is_in_place, on_blocks

FAR = 5.0  # ratio of two scales from which on they differ grossly
SURE = 3.0  # standard errors that a ratio must be away from 1
ROUNDING = 1e-12  # variance of a feature that does not vary, relative to its squared mean


class Samples(NamedTuple):
    """What a model is fitted to, and what the second criterion needs."""

    train: Data
    validation: Data | None = None  # if it is the loss there
    all: Data | None = None  # if it is fairness
    groups: np.ndarray | None = None  # of all these

    def against_others(self, label: Any) -> Samples:
        """Return the samples with 1 as the target of a class and −1 as that of all others."""

        def signed(data: Data) -> Data:
            return data._replace(targets=against_others(data.targets, label))

        validation = None if self.validation is None else signed(self.validation)
        return self._replace(train=signed(self.train), validation=validation)


def against_others(labels: Any, label: Any) -> Any:
    """Return 1 for a class and −1 for all others."""
    return on_blocks(_signs, labels, label)


def _signs(labels: np.ndarray, label: Any) -> np.ndarray:
    return np.where(labels == label, 1.0, -1.0)


def named(name: str, check: Callable[[Any], Any], value: Any) -> Any:
    """Return what a check makes of an argument; if it raises, say of which."""
    try:
        return check(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}`: {error}") from error


def groups_of(sensitive_features: Any, n: int) -> np.ndarray:
    """Return the group of each sample, as a text."""
    array = np.asarray(sensitive_features)
    if array.ndim not in (1, 2) or array.shape[0] != n:
        raise ValueError(
            f"`sensitive_features` must have one row for each of the {n} samples, got an array of shape {array.shape}"
        )
    return np.array([", ".join(map(str, row)) for row in array.reshape(n, -1)])


def held_out(strata: np.ndarray, fraction: float, rng: np.random.RandomState) -> np.ndarray:
    """Return which samples are held out: a fraction of each stratum, but never a whole one, and at least one of all."""
    if fraction >= 1.0:
        raise ValueError(f"`validation_fraction` must be below 1, got {fraction:g}")
    members = [np.flatnonzero(strata == each) for each in np.unique(strata)]
    taken = np.array([min(round(fraction * each.size), each.size - 1) for each in members])
    largest = max(range(len(members)), key=lambda k: members[k].size)
    if not taken.any():
        if members[largest].size == 1:
            raise ValueError("`X_val` and `y_val` must be given: no class has two samples, of which one could be held out")
        taken[largest] = 1
    held = np.zeros(strata.size, dtype=bool)
    for each, count in zip(members, taken, strict=True):
        held[rng.permutation(each)[:count]] = True
    return held


def warn_if_far(X: Any, X_val: Any) -> None:
    """Warn if most features have another scale in the validation data: they were not transformed as those of ``fit`` were.

    A feature is far if its mean squared distance from the mean of ``X`` is grossly more, or less, than in ``X``, and by more
    than chance makes it in so many rows. Features that rarely differ from a constant, as those of rare words, tell nothing.
    Nor are features looked at that are so many that they stay in place.
    """
    if is_in_place(X) or is_in_place(X_val):
        return
    mean, variance, fourth = _moments(X)
    mean_val, variance_val, _ = _moments(X_val)
    varying = variance > ROUNDING * mean**2
    unit = np.where(varying, variance, 1.0)
    ratio = (variance_val + (mean_val - mean) ** 2) / unit
    chance = np.sqrt(fourth / (unit**2 * X_val.shape[0]))  # standard error of the ratio
    gross = (ratio > FAR**2) | (ratio < 1.0 / FAR**2)
    far = (gross & (np.abs(ratio - 1.0) > SURE * chance))[varying]
    if far.size and far.mean() > 0.5:
        warnings.warn(
            f"`X_val` has another scale than `X`: in {far.sum()} of {far.size} features, distances from the mean of `X` are"
            f" {FAR:g} times larger or smaller. In a Pipeline the steps before the estimator transform `X` alone, unless it"
            ' is made with transform_input=["X_val"]; outside of one, transform `X_val` as `X` was',
            UserWarning,
            stacklevel=3,
        )


def _moments(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the variance and the fourth central moment of each column."""
    if not scipy.sparse.issparse(X):
        squares = (X - X.mean(axis=0)) ** 2
        return X.mean(axis=0), squares.mean(axis=0), (squares**2).mean(axis=0)
    first, second, third, fourth = (np.asarray(X.power(k).mean(axis=0)).ravel() for k in (1, 2, 3, 4))
    central = fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
    return first, np.maximum(second - first**2, 0.0), np.maximum(central, 0.0)
