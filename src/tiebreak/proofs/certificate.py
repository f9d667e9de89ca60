"""What a certificate is: values at a point of the domain, bounds on both gaps, and what proves them.

``exact.py`` makes certificates from full gradients, ``sampled.py`` from fresh samples of streams; ``certify.py`` chooses.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tiebreak.engine import foreign_classes
from tiebreak.engine.digest import digest
from tiebreak.problem import Problem
from tiebreak.proofs.floors import NOTHING, Floors

APPROXIMATE = "approximate: assumes that batch means are nearly normal; value_range and gradient_bound make it proven"
NO_LESS = 1e-6  # share of f(x) by which f may be less on all of Z where a level is said not to bind …
LEAST_DOUBT = 1e-290  # … and what rounding leaves in doubt of zeros


class HalfSpace(NamedTuple):
    """The points s with ⟨normal, s⟩ ≤ offset: every s of Z with g(s) ≤ g* + ε, and so every minimiser of g, among them."""

    normal: np.ndarray
    offset: float


class Certificate(NamedTuple):
    """Values at a point and what they prove: exact ones, or with a stream at a level those of fresh samples.

    Attributes
    ----------
    upper, lower : float
        f(x) and g(x), exact on all samples; for a stream the mean over fresh ones.
    upper_gap_bound : float
        f(x) − f* is at most this, f* the least f over the points of Z with g ≤ g* + ε. It may be negative: then f(x) < f*,
        because g(x) > g* + ε. NaN if nothing bounds f* from below: f is not known to be convex, and has no ``floor``.
    lower_gap_bound : float
        g(x) − g* is at most this; it is never negative. NaN if nothing bounds g* from below: g is not known to be convex
        (``convex=True`` says so), and has no ``floor``.
    stationarity : float
        The largest decrease of f's linear model at x over the points of Z in the half-space of x. For f not convex it
        measures how far x is from stationary, and is no gap.
    multiplier : float
        λ of that half-space.
    floors : Floors
        The lower bounds of f* and g*, and an upper bound of g*, from this point and all before; and the tolerance ε that f*
        is for.
    cuts : tuple of HalfSpace
        The half-spaces that were used, all of which contain every point of Z with g ≤ g* + ε.
    multipliers : array
        Their weights in the proof of the bound on f*.
    upper_error, lower_error : float
        By how much f(x) and g(x) may differ from the values given here.
    confidence : float
        The probability with which both bounds and both errors hold, all together: 1 without a stream.
    samples : int
        Fresh samples drawn for it at each level that is a stream.
    approximate : bool
        Whether that probability rests on batch means of a stream being nearly normal, which is not proven; it is False where
        each stream has a ``value_range`` and a ``gradient_bound``.
    x : array, (d,)
        The point that all this is about: the one that was given, or the point of Z to which it was moved because it was
        outside by more than rounding.
    within : bool or None
        Whether g(x) ≤ g* + ε: True if it is proven, False if the contrary is, None if neither is. For exact ties, ε = 0, it
        is hardly ever True: that takes g(x) at a proven floor of g*.
    ceiling : float
        f* is at most this; infinite unless a point with g ≤ g* + ε is proven to be at x or, for exact ties, near it.
    unique : bool or None
        Whether g has one minimiser, so that there is no tie: True if it is proven, False if the contrary is, None if neither
        is, or it was not asked, as for near ties.
    """

    upper: float
    lower: float
    upper_gap_bound: float
    lower_gap_bound: float
    stationarity: float
    multiplier: float
    floors: Floors
    cuts: tuple[HalfSpace, ...] = ()
    multipliers: np.ndarray = np.zeros(0)
    upper_error: float = 0.0
    lower_error: float = 0.0
    confidence: float = 1.0
    samples: int = 0
    approximate: bool = False
    x: np.ndarray = np.zeros(0)
    within: bool | None = None
    ceiling: float = math.inf
    unique: bool | None = None

    @property
    def tolerance(self) -> float:
        """ε of the problem: by how much g(x) may exceed g*. With ``keep`` it is known up to g*: ε is at least this."""
        return self.floors.epsilon

    @property
    def is_near(self) -> bool:
        """Whether it is of a near tie."""
        return self.floors.allowance.is_positive

    @property
    def inactive(self) -> bool:
        """Whether the level does not matter: x keeps it, and f is proven to be hardly less anywhere on Z."""
        alone = self.is_near and self.within is True and self.multiplier == 0.0
        return alone and self.stationarity <= NO_LESS * abs(self.upper) + LEAST_DOUBT

    @property
    def verdict(self) -> str:
        """What is known of g(x) ≤ g* + ε, in words; nothing for exact ties."""
        if not self.is_near:
            return ""
        place = {True: "within", False: "beyond", None: "perhaps within"}[self.within]
        # A share of what g can gain is known as well as g* is, and a point may be within it though its bound exceeds this.
        about = " of at least" if self.within and self.lower_gap_bound > self.tolerance else ""
        text = f"{place} the tolerance{about} {self.tolerance:g}: {'not ' if self.within is None else ''}proven"
        return f"{text}; it does not bind" if self.inactive else text

    @property
    def finite(self) -> bool:
        """Whether both values are finite."""
        return math.isfinite(self.upper) and math.isfinite(self.lower)

    def __str__(self) -> str:
        rows = [("upper f(x)", self.upper), ("  f(x) − f* ≤", self.upper_gap_bound), ("  stationarity", self.stationarity)]
        if math.isnan(self.upper_gap_bound):
            rows.pop(1)
        rows += [("lower g(x)", self.lower), ("  g(x) − g* ≤", self.lower_gap_bound)]
        if self.confidence < 1.0:
            rows.append(("confidence", self.confidence))
        lines = [f"{name:<16}{value:.6g}" for name, value in rows]
        if self.verdict:
            lines.append(f"  {self.verdict}")
        return "\n".join([*lines, APPROXIMATE] if self.approximate else lines)

    def __repr__(self) -> str:
        return str(self)


def proven(result: Any, problem: Problem) -> Floors:
    """Return what a result proves about a problem: nothing if it is of another one, or of samples.

    A result of the same problem with another tolerance counts: what is returned says for which tolerance it holds.
    """
    first = result.problem
    if first is not None and all(part is other for part, other in zip(first[:3], problem[:3], strict=True)):
        same = True
    elif not problem.compiled or foreign_classes(problem):  # code that was written elsewhere is not told apart for certain
        same = False
    elif first is None:  # as of a result that was read from a file
        same = result.settings.get("problem") == digest(problem.exact)
    else:
        same = first.compiled and digest(first.exact) == digest(problem.exact)
    return result.certificate.floors if same and result.certificate.confidence == 1.0 else NOTHING


def packed(certificate: Certificate) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a certificate as plain data by the names of its fields, and its half-spaces as arrays: what a file can hold."""
    values = {name: getattr(certificate, name) for name in Certificate._fields if name not in ("cuts", "multipliers", "x")}
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    arrays = {
        "certificate.normals": np.array([cut.normal for cut in certificate.cuts]),
        "certificate.offsets": np.array([cut.offset for cut in certificate.cuts]),
        "certificate.multipliers": np.asarray(certificate.multipliers),
        "certificate.x": np.asarray(certificate.x),
    }
    return {**plain, "floors": certificate.floors._asdict()}, arrays


def unpacked(values: dict[str, Any], arrays: dict[str, np.ndarray]) -> Certificate:
    """Return the certificate of which :func:`packed` returned these."""
    normals, offsets = arrays["certificate.normals"], arrays["certificate.offsets"].tolist()
    named = {
        **values,
        "floors": Floors(**values["floors"]),
        "cuts": tuple(HalfSpace(normal, offset) for normal, offset in zip(normals, offsets, strict=True)),
        "multipliers": arrays["certificate.multipliers"],
        "x": arrays["certificate.x"],
    }
    return Certificate(**named)
