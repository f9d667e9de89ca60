"""Bounds on streams: they may fail, but not more often than they say."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from scipy.stats import binom

import tiebreak
from campaign.trials import Round, kind
from tiebreak.engine import interpreted

TRIES, DELTA = 60, 0.05
SUSPICION = 1e-6  # probability with which a bound that keeps its promise may be called wrong
SAMPLES = 400
RARE = {"common": 0.5, "rare": 1e-2, "very rare": 1e-3}


class Source:
    """Samples u ∈ {0, 1/p}, 1/p with probability p: the mean of u ⟨h, x⟩ + ½ ‖x − c‖² is ⟨h, x⟩ + ½ ‖x − c‖²."""

    def __init__(self, p: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.p = p
        self.h = rng.choice([-0.25, 0.25, 0.125], 2)
        self.c = self.h + rng.choice([-0.25, 0.0, 0.25], 2)  # least at c − h, inside the box

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Return samples."""
        return (rng.random(size) < self.p) / self.p

    def value_and_grad(self, x: np.ndarray, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean over samples."""
        return float(u.mean() * (self.h @ x) + 0.5 * (x - self.c) @ (x - self.c)), u.mean() * self.h + x - self.c

    def true(self, x: np.ndarray) -> float:
        """Return the expectation."""
        return float(self.h @ x + 0.5 * (x - self.c) @ (x - self.c))

    def stream(self, ranges: bool) -> Any:
        """Return it as a stream, with what bounds its samples on the box if the library takes that."""
        known: dict[str, Any] = {"convex": True}
        if ranges and "value_range" in inspect.signature(tiebreak.Stream).parameters:
            most = float(np.abs(self.h).sum() / self.p)
            known |= {"value_range": (-most, most + 0.5 * float(((np.abs(self.c) + 1.0) ** 2).sum()))}
            known |= {"gradient_bound": float(np.linalg.norm(np.abs(self.h) / self.p + 1.0 + np.abs(self.c)))}
        return tiebreak.Stream(self.draw, self.value_and_grad, 2, **known)


@kind("streams", each=[(name, known) for name in RARE for known in ("ranges", "no ranges")], weight=2.0)
def coverage(trial: Round, name: str, known: str) -> None:
    """Certify points of a problem with known values many times, and count how often a bound fails."""
    seed = int(trial.rng.integers(2**31))
    source = Source(RARE[name], seed)
    best = source.c - source.h
    problem = tiebreak.Problem(tiebreak.SquaredNorm(), source.stream(known == "ranges"), tiebreak.LInfBall(1.0, 2))
    misses = claims = 0
    for k in range(TRIES):
        # Samples without the event make c seem to be the minimiser.
        x = (source.c, source.c, best, trial.rng.uniform(-1.0, 1.0, 2))[k % 4]
        with interpreted():
            certificate = tiebreak.certify(problem, x, samples=SAMPLES, confidence=1.0 - DELTA, seed=k)
        approximate = bool(getattr(certificate, "approximate", False))
        trial.tried(silent=int(approximate))
        claims += not approximate
        misses += not approximate and missed(source, x, best, certificate)
    if claims and binom.sf(misses - 1, claims, DELTA) < SUSPICION:
        script = f"""
import numpy as np, tiebreak
from campaign.streams import Source
source = Source({RARE[name]!r}, {seed})
problem = tiebreak.Problem(tiebreak.SquaredNorm(), source.stream({known == "ranges"}), tiebreak.LInfBall(1.0, 2))
for seed in range({TRIES}):
    found = tiebreak.certify(problem, source.c, samples={SAMPLES}, confidence={1.0 - DELTA}, seed=seed)
    print(found.lower_gap_bound, "against", source.true(source.c) - source.true(source.c - source.h))
"""
        trial.wrong(f"{misses} of {claims} bounds fail, each of which may with probability {DELTA}", script)


def missed(source: Source, x: np.ndarray, best: np.ndarray, certificate: Any) -> bool:
    """Whether any claim of a certificate is false; the truth is known up to rounding."""
    rounding = 1e-12
    lower_gap, upper_gap = source.true(x) - source.true(best), 0.5 * float(x @ x - best @ best)
    return (
        certificate.lower_gap_bound < lower_gap - rounding
        or certificate.upper_gap_bound < upper_gap - rounding
        or abs(certificate.lower - source.true(x)) > certificate.lower_error + rounding
    )


class Population:
    """Rows of few digits that are drawn with equal probability: the expectation is the mean over all of them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 5))
        half = rng.integers(-4, 5, (2 * d, d)) / 4
        self.best = rng.integers(-2, 3, d) / 16  # minimises g: residuals of equal rows are opposite
        off = rng.integers(0, 5, 2 * d) / 4
        self.A = np.vstack([half, half])
        self.b = np.concatenate([half @ self.best + off, half @ self.best - off])
        pull = rng.integers(-2, 3, 2 * d) @ half
        self.upper = tiebreak.SquaredNorm(self.best + pull)  # −∇f = Aᵀμ at the minimiser: no other one is better
        self.lower = tiebreak.LeastSquares(self.A, self.b)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows."""
        rows = rng.integers(len(self.b), size=size)
        return self.A[rows], self.b[rows]

    def problem(self) -> tiebreak.Problem:
        """Return the problem of the stream on an ℓ1 ball of radius 1, with what bounds its samples."""
        most = np.abs(self.A).max(axis=1) + np.abs(self.b)  # of residuals
        steepest = float((most * np.linalg.norm(self.A, axis=1)).max())
        known: dict[str, Any] = {"value_range": (0.0, 0.5 * float(most.max() ** 2)), "gradient_bound": steepest}
        stream = tiebreak.Stream.of_rows(self.draw, self.best.size, **known)
        return tiebreak.Problem(self.upper, stream, tiebreak.L1Ball(1.0))

    def missed(self, certificate: Any) -> bool:
        """Whether any claim of a certificate is false; the truth is known up to rounding."""
        rounding, x = 1e-12, certificate.x
        f, g = self.upper.value(self.best), self.lower.value(self.best)
        return (
            certificate.lower_gap_bound < self.lower.value(x) - g - rounding
            or certificate.upper_gap_bound < self.upper.value(x) - f - rounding
            or certificate.ceiling < f - rounding
            or abs(certificate.lower - self.lower.value(x)) > certificate.lower_error + rounding
        )


@kind("streams of rows", weight=1.0)
def coverage_of_rows(trial: Round) -> None:
    """Solve streams of rows by the active set, certify its answers and others, and count how often a bound fails."""
    misses = claims = 0
    first = int(trial.rng.integers(2**31))
    for k in range(TRIES // 4):
        population = Population(first + k)
        problem = population.problem()
        with interpreted():
            run = tiebreak.minimize(problem, "active-set", max_queries=5 * SAMPLES, confidence=1.0 - DELTA, seed=k)
            point = tiebreak.certify(problem, population.best, samples=SAMPLES, confidence=1.0 - DELTA, seed=k)
        for certificate in (run.certificate, point):
            trial.tried(silent=int(certificate.approximate))
            claims += not certificate.approximate
            misses += not certificate.approximate and population.missed(certificate)
    if claims and binom.sf(misses - 1, claims, DELTA) < SUSPICION:
        script = f"""
import tiebreak
from campaign.streams import Population
for k in range({TRIES // 4}):
    population = Population({first} + k)
    result = tiebreak.minimize(population.problem(), "active-set", max_queries={5 * SAMPLES}, seed=k)
    print(population.missed(result.certificate))
"""
        trial.wrong(f"{misses} of {claims} bounds fail, each of which may with probability {DELTA}", script)
