"""What a run proves at its records: from full passes over the data, or from fresh samples where a level is a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tiebreak.engine import checks
from tiebreak.engine.randomness import Moments
from tiebreak.objectives import EndOfStream
from tiebreak.problem import Problem
from tiebreak.proofs.certificate import Certificate
from tiebreak.proofs.exact import Look, conclude, examine, tighten, with_ceiling
from tiebreak.proofs.floors import NOTHING, Floors, known
from tiebreak.proofs.fresh import FRESH, Fresh, Take
from tiebreak.proofs.gradients import Watched
from tiebreak.proofs.sampled import certify_sampled

KEPT_LOOKS, KEPT_BYTES = 8, 64_000_000  # records whose gradients are kept for the bounds, and the memory for them
TIGHTEN_FROM = 10.0  # multiple of the tolerances from which on several half-spaces are tried
TIGHTEN_GROWTH = 1.5  # factor by which queries have grown when they are tried again
SAMPLES_SHARE = 0.15  # fresh samples of a stream for a record, as a share of the queries so far
LEAST_SAMPLES, MOST_SAMPLES = 256, 100_000  # range of their number
LEAST_FINAL_SAMPLES = 2048  # fresh samples for the result, at least

Excess = Callable[[Certificate], float]  # factor by which bounds exceed the tolerances; infinite if there are none
Hint = tuple[float, np.ndarray | None]  # a multiplier that is worth trying, and where; None stands for x itself
Arrays = dict[str, np.ndarray]


class Prover(ABC):
    """Makes the certificates of a run, and remembers what they need.

    Attributes
    ----------
    certain : bool
        Whether the bounds of a record hold whatever was decided by earlier ones.
    """

    certain: bool

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.check = False  # whether gradients of streams are to be held against values, on the first samples drawn

    @property
    def identity(self) -> dict[str, Any]:
        """What a run that continues from a checkpoint must share."""
        return {}

    @property
    def errors(self) -> tuple[float, float]:
        """How far the values of f and g in the last record may be off by rounding, where it is of all samples."""
        return 0.0, 0.0

    @abstractmethod
    def cost(self, queries: int) -> int:
        """Return how many samples a record takes after this many queries."""

    @abstractmethod
    def examine(
        self, x: np.ndarray, origin: np.ndarray | None, queries: int, excess: Excess, hints: Sequence[Hint] = ()
    ) -> Certificate:
        """Return the certificate of a record at x.

        ``origin`` is a point that g may be compared with. ``hints`` are multipliers that are worth trying, at x or
        elsewhere; where a level is a stream they are not used.
        """

    def confirm(self, x: np.ndarray, origin: np.ndarray | None, queries: int) -> Certificate:
        """Return one that holds even if records chose this moment, for provers that are not certain."""
        raise NotImplementedError

    def last(
        self, x: np.ndarray, origin: np.ndarray | None, queries: int, excess: Excess, hints: Sequence[Hint] = ()
    ) -> Certificate:
        """Return the certificate of the result."""
        return self.examine(x, origin, queries, excess, hints)

    def improved(self, certificate: Certificate) -> Certificate:
        """Return the last certificate with bounds as good as what is remembered allows."""
        return certificate

    def bounded_above(self, certificate: Certificate) -> Certificate:
        """Return the last certificate with a ceiling of f*, if there is a way to prove one."""
        return certificate

    @abstractmethod
    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """Return what is remembered, for a checkpoint."""

    @abstractmethod
    def restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        """Remember what :meth:`stored` returned."""


def prover_of(problem: Problem, floors: Floors, confidence: float, seed: list[int], sequential: bool) -> Prover:
    """Return the prover for a problem: ``floors`` are known already, ``confidence`` and ``seed`` are for streams.

    ``sequential`` tells whether proofs may end the run.
    """
    if problem.upper.endless or problem.lower.endless:
        return SampledProver(problem, confidence, Moments(seed[0], FRESH + 1, *seed[1:]), sequential)
    return ExactProver(problem, floors)


class ExactProver(Prover):
    """Full passes over the data: bounds that hold for certain, tightened with the gradients of the last records."""

    certain = True

    def __init__(self, problem: Problem, floors: Floors = NOTHING) -> None:
        super().__init__(problem)
        self.floors = known(problem, floors)
        self.looks: list[Look] = []  # the last records with their gradients, the newest first
        self.tightened_at = 0  # the queries when all of these were last used together
        self.full = problem.upper.n_samples + problem.lower.n_samples

    @property
    def errors(self) -> tuple[float, float]:
        return (self.looks[0].f_error, self.looks[0].g_error) if self.looks else (0.0, 0.0)

    def cost(self, queries: int) -> int:
        return self.full

    def examine(
        self, x: np.ndarray, origin: np.ndarray | None, queries: int, excess: Excess, hints: Sequence[Hint] = ()
    ) -> Certificate:
        for multiplier, witness in hints:
            if witness is not None:
                self.floors = examine(self.problem, witness, self.floors, [multiplier])[1].floors
        # Answers to near ties may stay where they are for many steps.
        again = self.problem.is_near and bool(self.looks) and not hints and np.array_equal(x, self.looks[0].x)
        if again:
            certificate = conclude(self.problem, self.looks[0], self.floors)
        else:
            look, certificate = examine(self.problem, x, self.floors, [multiplier for multiplier, _ in hints])
            if not look.finite:  # its gradients prove nothing
                return certificate
            kept = max(1, min(KEPT_LOOKS, KEPT_BYTES // (3 * x.nbytes)))
            self.looks = [look, *self.looks[: kept - 1]]
        # Several half-spaces, for which LPs are solved, may prove the tolerances where one does not.
        if 1.0 < excess(certificate) <= TIGHTEN_FROM and queries >= TIGHTEN_GROWTH * self.tightened_at:
            certificate = tighten(self.problem, self.looks, certificate, len(self.looks))
            self.tightened_at = queries
        self.floors = certificate.floors
        return certificate

    def improved(self, certificate: Certificate) -> Certificate:
        if len(self.looks) < 2:
            return certificate
        return tighten(self.problem, self.looks, certificate, len(self.looks))

    def bounded_above(self, certificate: Certificate) -> Certificate:
        return with_ceiling(self.problem, certificate)

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        looks = {f"looks.{name}": np.array([getattr(look, name) for look in self.looks]) for name in Look._fields}
        return {"floors": self.floors._asdict(), "tightened_at": self.tightened_at}, looks

    def restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        self.floors, self.tightened_at = Floors(**meta["floors"]), meta["tightened_at"]
        columns = {name: arrays[f"looks.{name}"] for name in Look._fields}
        for k in range(len(columns["x"])):
            row: dict[str, Any] = {
                name: column[k] if column.ndim > 1 else float(column[k]) for name, column in columns.items()
            }
            self.looks.append(Look(**row))


class SampledProver(Prover):
    """Fresh samples of a stream: bounds of the result that hold with a given confidence, proven or approximate."""

    certain = False

    def __init__(self, problem: Problem, confidence: float, moments: Moments, sequential: bool) -> None:
        super().__init__(problem)
        self.confidence, self.moments, self.sequential = confidence, moments, sequential
        self.delta = checks.failure_probability(confidence)
        self.claims = 0  # how often the tolerances seemed to be reached, and bounds were made to prove it
        self.recent: tuple[Fresh, int] | None = None  # the samples of the last record, and their number
        self.resumed = False

    @property
    def identity(self) -> dict[str, Any]:
        return {"confidence": self.confidence}

    def cost(self, queries: int) -> int:
        samples = self._samples(queries)
        return sum(samples if level.endless else level.n_samples for level in (self.problem.upper, self.problem.lower))

    def examine(
        self, x: np.ndarray, origin: np.ndarray | None, queries: int, excess: Excess, hints: Sequence[Hint] = ()
    ) -> Certificate:
        fresh, samples = Fresh(self.moments), self._samples(queries)
        take = Watched(fresh, self.problem, x) if self.check else fresh
        try:
            certificate = self._certify(x, take, samples, self.delta, origin)
        except EndOfStream as end:
            certificate = self._from_recent(end, x, origin, self.delta)
        else:
            self.recent = (fresh, samples)
        self.check = False
        return certificate

    def _from_recent(self, end: EndOfStream, x: np.ndarray, origin: np.ndarray | None, delta: float) -> Certificate:
        """Return bounds from the samples of the last record, which know nothing of the steps since then; raise if none."""
        fresh, samples = self.recent or (None, 0)
        take = fresh and fresh.again()
        if take is None:
            raise end
        return self._certify(x, take, samples, delta, origin)

    def confirm(self, x: np.ndarray, origin: np.ndarray | None, queries: int) -> Certificate:
        """Return the bounds of other fresh samples.

        The samples of the records chose this moment, so that their bounds are not to be trusted. The k-th such proof may
        fail with probability δ / (k (k + 1)), which makes δ for all of them.
        """
        self.claims += 1
        delta = self.delta / (self.claims * (self.claims + 1))
        return self._certify(x, Fresh(self.moments), max(self._samples(queries), LEAST_FINAL_SAMPLES), delta, origin)

    def last(
        self, x: np.ndarray, origin: np.ndarray | None, queries: int, excess: Excess, hints: Sequence[Hint] = ()
    ) -> Certificate:
        """Return bounds that no decision depended on, from as many samples as are due."""
        delta = self.delta / ((self.claims + 1) * (self.claims + 2)) if self.sequential else self.delta
        try:
            return self._certify(x, Fresh(self.moments), max(self._samples(queries), LEAST_FINAL_SAMPLES), delta, origin)
        except EndOfStream as end:
            return self._from_recent(end, x, origin, delta)

    def _samples(self, queries: int) -> int:
        """Return how many fresh samples a record takes at a level."""
        return int(min(max(SAMPLES_SHARE * queries, LEAST_SAMPLES), MOST_SAMPLES))

    def _certify(self, x: np.ndarray, take: Take, samples: int, delta: float, origin: np.ndarray | None) -> Certificate:
        """Return bounds that fail with probability ``delta``; the confidence is that of all from which they are chosen."""
        points = [] if origin is None else [origin]
        certificate = certify_sampled(self.problem, x, take, samples, delta, points, self.resumed)
        return certificate._replace(confidence=self.confidence)

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        return {"fresh_moments": self.moments.count, "claims": self.claims}, {}

    def restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        self.moments.count, self.claims = meta["fresh_moments"], meta["claims"]
        self.resumed = True
