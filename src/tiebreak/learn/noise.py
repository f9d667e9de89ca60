"""Does a fit follow the noise of its samples? An estimate from the training data alone."""

from __future__ import annotations

import numpy as np

from tiebreak.learn.base import Fit
from tiebreak.learn.fitting import Task

FEW = 3.0  # samples per coefficient beyond which little noise is fitted
MOST_SAMPLES = 2000  # samples that are left out one by one
JITTER = 1e-10  # share of the diagonal that is added to it, for samples that are there twice


def fits_noise(fit: Fit, intercept: bool) -> bool:
    """Return whether the model of a fit that no set binds is expected to predict no better than a constant.

    With k < n coefficients, generalised cross-validation expects 1/(1 − k/n)² times the training loss on new samples. With
    more, samples are left out one by one, and predicted by the least-squares fit of smallest norm to all others.
    """
    task, problem = fit.task, fit.problem
    n, k = task.lower.n_samples, np.count_nonzero(fit.model[0])
    if FEW * k < n:
        return False
    if k < n:
        return bool(fit.result.lower >= (1.0 - k / n) ** 2 * problem.lower.value(problem.center))
    if n > MOST_SAMPLES or task.data.in_place:
        return True
    targets, weights = task.data.targets, task.data.weights
    errors = left_out_errors(task, intercept)
    middle = np.average(targets, weights=weights) if intercept else 0.0
    return bool(np.average(errors**2, weights=weights) >= np.average((targets - middle) ** 2, weights=weights))


def left_out_errors(task: Task, intercept: bool) -> np.ndarray:
    """Return by how much each target is missed by the interpolation of smallest norm of all others.

    These are α_i / (A⁻¹)_ii, with α the multipliers of the interpolation of all samples: A (α, c) = (targets, 0), A the
    products of the samples with each other, and with a row and a column of ones for the intercept c.
    """
    n, rows = task.data.weights.size, task.rows[:, : task.data.X.shape[1]]
    products = rows @ rows.T
    matrix = np.zeros((n + intercept, n + intercept))
    matrix[:n, :n] = products if isinstance(products, np.ndarray) else products.toarray()
    matrix[range(n), range(n)] += JITTER * np.trace(matrix) / n
    matrix[n:, :n] = 1.0
    matrix[:n, n:] = 1.0
    inverse = np.linalg.inv(matrix)[:n, :n]
    return (inverse @ task.data.targets) / np.diag(inverse)
