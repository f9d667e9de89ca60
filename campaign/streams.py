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
