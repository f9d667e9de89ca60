"""The constants that the convergence theorems of SBCGI and SBCGF are stated in, given or estimated from the data.

Cao, Jiang, Abolfazli, Yazdandoost Hamedani and Mokhtari (2023), Assumptions 2.1 to 2.3 and Theorems 4.4 to 4.7:

- L_f, L_g: the gradients of single samples, ∇f~(·, θ) and ∇g~(·, ξ), are Lipschitz with these constants;
- L_l: the values of single samples, g~(·, ξ), are;
- σ_f, σ_g, σ_l: the noise of ∇f~, ∇g~ and g~ is sub-Gaussian, E exp(‖noise‖²/σ²) ≤ e at every point of Z;
- D: the diameter of Z.

An estimate looks at single samples: at the curvature of each along its steepest direction (a power iteration on differences
of gradients), at its slope at the atoms of Z towards which it grows, and at the noise at atoms and at random points.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tiebreak.domains import lmo
from tiebreak.engine import checks
from tiebreak.engine.randomness import Moments
from tiebreak.objectives.base import accumulate, draw
from tiebreak.objectives.constants import current_bill
from tiebreak.problem import Problem
from tiebreak.schedules import Schedule, constant, logarithmic, power, spider_slack, storm_slack

SAMPLES = 256  # samples of each level, from which its constants are estimated
LEAST_SAMPLES, ROOM = 16, 2**25  # samples at least, and numbers that the gradients of all of them may hold
POINTS = 4  # random points, and as many atoms, at which noise is measured
POWER_ROUNDS = 3  # rounds that find the steepest direction of a sample; for a linear model one is enough
STRIDE = 1e-3  # share of the diameter over which gradients are compared


Number = Any  # a float, or None until it is estimated


@dataclass(frozen=True)
class Theory:
    """The constants of ``preset="theory"`` of SBCGI and SBCGF. Those that are not given are estimated from the data.

    Parameters
    ----------
    upper_smoothness, lower_smoothness : float, optional
        L_f and L_g, Lipschitz constants of the gradients of single samples.
    lower_slope : float, optional
        L_l, a Lipschitz constant of the values of single samples of g.
    upper_noise, lower_noise, value_noise : float, optional
        σ_f, σ_g and σ_l, the sub-Gaussian sizes of the noise in ∇f, ∇g and g.
    diameter : float, optional
        D of the domain.
    confidence : float
        The probability with which the guarantee holds, for all iterations together.
    c : float
        The absolute constant of the paper's Lemma 4.1, which it leaves open.
    horizon : float, optional
        T, the iterations that the guarantee is for. If it is not given, it comes from the budget. ``math.inf``: for any
        time, with steps and probabilities that shrink on the way.

    Examples
    --------
    >>> from tiebreak import L1Ball, LeastSquares, Problem, SquaredNorm
    >>> problem = Problem(SquaredNorm(), LeastSquares([[3.0, 4.0]], [1.0]), L1Ball(1.0))
    >>> known = Theory().for_problem(problem, horizon=100)
    >>> round(known.lower_smoothness, 6), round(known.lower_slope, 6), known.lower_noise
    (25.0, 25.0, 0.0)
    """

    upper_smoothness: Number = None
    lower_smoothness: Number = None
    lower_slope: Number = None
    upper_noise: Number = None
    lower_noise: Number = None
    value_noise: Number = None
    diameter: Number = None
    confidence: float = 0.9
    c: float = 1.0
    horizon: Number = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or (field.name == "horizon" and value == math.inf):
                continue
            if field.name == "confidence":
                object.__setattr__(self, field.name, checks.confidence(value))
                continue
            above = {"above": 0.0} if field.name in ("c", "horizon") else {"least": 0.0}
            object.__setattr__(self, field.name, checks.real(value, field.name, **above))

    def for_problem(self, problem: Problem, horizon: float, seed: int = 0) -> Theory:
        """Return these constants with those that are not given estimated, for a number of iterations."""
        rng = np.random.default_rng(seed)
        found: dict[str, float] = {"horizon": horizon, "diameter": problem.domain.diameter}
        for objective, wanted in (
            (problem.upper, ("upper_smoothness", None, "upper_noise", None)),
            (problem.lower, ("lower_smoothness", "lower_slope", "lower_noise", "value_noise")),
        ):
            if any(name is not None and getattr(self, name) is None for name in wanted):
                estimates = zip(wanted, _charged(objective, problem, rng, wanted[0]), strict=True)
                found.update({name: value for name, value in estimates if name is not None})
        return replace(self, **{name: value for name, value in found.items() if getattr(self, name) is None})

    def storm(self, convex: bool, dimension: int) -> dict[str, Schedule]:
        """Return SBCGI's schedules of Theorem 4.4 (f convex, ω = 1) or 4.5 (f not convex, ω = 2/3)."""
        exponent, D, T = 1.0 if convex else 2 / 3, self.diameter, self.horizon
        summed = 3.0**exponent / (3.0**exponent - 1.0)
        slack = storm_slack(
            value=self.c * (2.0 * self.lower_slope * D + summed * self.value_noise),
            gradient=self.c * D * (2.0 * self.lower_smoothness * D + summed * self.lower_noise),
            exponent=exponent,
            dimension=dimension,
            delta=self.failure_probability,
            horizon=T,
        )
        steady = not convex and math.isfinite(T)
        step = constant((T + 1.0) ** -exponent) if steady else power(1.0, exponent, shift=2.0)
        return {"step": step, "slack": slack, "momentum": power(1.0, exponent)}

    def spider(self, convex: bool, period: int, step: Schedule | None = None) -> dict[str, Schedule]:
        """Return SBCGF's schedules of Theorem 4.6 (f convex) or 4.7 (f not convex), the slack for a step if one is given."""
        D, T = self.diameter, self.horizon
        if step is None and math.isinf(T):
            step = logarithmic() if convex else power(1.0, 0.5)
        elif step is None:
            step = constant(math.log(max(T, 2.0)) / max(T, 2.0) if convex else 1.0 / math.sqrt(T))
        scale = 4.0 * D * (self.lower_slope + self.lower_smoothness * D)
        return {"step": step, "slack": spider_slack(scale, step, period, self.failure_probability, T)}

    @property
    def failure_probability(self) -> float:
        """The probability δ with which the guarantee may fail, 1 − ``confidence``."""
        return checks.failure_probability(self.confidence)

    @property
    def watch(self) -> int:
        """The iteration from which the point of least stationarity is kept, and begun again whenever t doubles."""
        return 1 if self.horizon is None or math.isinf(self.horizon) else max(1, math.ceil(self.horizon / 2))


def sub_gaussian(sizes: np.ndarray) -> float:
    """Return the least σ with mean exp(size²/σ²) ≤ e.

    Examples
    --------
    >>> sub_gaussian(np.array([2.0, 2.0]))
    2.0
    """
    largest = float(np.max(sizes, initial=0.0))
    if largest == 0.0:
        return 0.0
    squares = (sizes / largest) ** 2
    low, high = 0.0, 1.0  # of σ², in units of the largest: at 1 no term is above e
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if np.mean(np.exp(np.minimum(squares / middle - 1.0, 700.0))) <= 1.0 else (middle, high)
    return largest * math.sqrt(high)


def _charged(objective: Any, problem: Problem, rng: np.random.Generator, name: Any) -> tuple[float, ...]:
    """Return the estimates, and charge the gradients and the time that they take to the run."""
    began = time.perf_counter()
    evaluations, found = _estimates(objective, problem, rng)
    if (bill := current_bill()) is not None:
        bill.add(("theory", name), objective, evaluations, time.perf_counter() - began)
    return found


def _estimates(objective: Any, problem: Problem, rng: np.random.Generator) -> tuple[int, tuple[float, ...]]:
    """Return how many gradients it takes, and smoothness and slope of single samples, and noise of gradients and values."""
    domain, d = problem.domain, problem.dimension
    stride = STRIDE * (domain.diameter or 1.0)
    random = [domain.random_point(rng, d) for _ in range(POINTS)]
    points = [*random, *(domain.lmo(rng.standard_normal(d)) for _ in range(POINTS))]
    count = min(SAMPLES, max(LEAST_SAMPLES, ROOM // (len(points) * d)))
    if objective.n_samples <= count:
        batches: list[Any] = [np.array([i]) for i in range(int(objective.n_samples))]
    else:
        moments = Moments(int(rng.integers(2**32)))
        batches = [draw(objective, next(moments), np.zeros(1, dtype=np.int64)) for _ in range(count)]

    smoothness = slope = 0.0
    values, gradients = np.empty((len(batches), len(points))), np.empty((len(batches), len(points), d))
    atom = np.empty(d)
    for i, batch in enumerate(batches):
        for j, point in enumerate(points):
            values[i, j], gradients[i, j] = _sample(objective, batch, point)
        for sign in (1.0, -1.0):  # to where this sample grows, and falls, most
            lmo(domain, sign * gradients[i, 0], atom)
            slope = max(slope, float(np.linalg.norm(_sample(objective, batch, atom)[1])))
        smoothness = max(smoothness, _curvature(objective, batch, points[0], gradients[i, 0], points[1] - points[0], stride))
    slope = max(slope, float(np.linalg.norm(gradients, axis=2).max()))
    off = np.linalg.norm(gradients - gradients.mean(axis=0), axis=2), np.abs(values - values.mean(axis=0))
    noise, value_noise = (max(sub_gaussian(at_point) for at_point in sizes.T) for sizes in off)
    evaluations = len(batches) * (len(points) + 2 + POWER_ROUNDS)
    return evaluations, (smoothness, slope, noise, value_noise)


def _curvature(objective: Any, batch: Any, x: np.ndarray, gradient: np.ndarray, way: np.ndarray, stride: float) -> float:
    """Return the largest change of a sample's gradient for a change of x, by a power iteration from a direction."""
    found = 0.0
    for _ in range(POWER_ROUNDS):
        length = float(np.linalg.norm(way))
        if length == 0.0:
            break
        way = _sample(objective, batch, x + (stride / length) * way)[1] - gradient
        found = max(found, float(np.linalg.norm(way)) / stride)
    return found


def _sample(objective: Any, batch: Any, x: np.ndarray) -> tuple[float, np.ndarray]:
    gradient = np.zeros_like(x)
    value, _ = accumulate(objective, batch, x, 1.0, x, 0.0, gradient)
    return float(value), gradient
