"""Two-sided bounds on both gaps from full gradients at points of the domain.

Lower level: g is convex, so that for any points y_j of Z

    g* ≥ min over s ∈ Z of max_j g(y_j) + ⟨∇g(y_j), s − y_j⟩;

with x alone that is the Frank-Wolfe gap, g(x) − g* ≤ max over s ∈ Z of ⟨∇g(x), x − s⟩.

Upper level: with ḡ the least g seen at any point, the half-spaces g(y_j) + ⟨∇g(y_j), s − y_j⟩ ≤ ḡ contain every minimiser
of g. If f is convex, f* is at least the least value, over the points of Z in all of them, of max_i f(y_i) + ⟨∇f(y_i), s −
y_i⟩. One half-space, that of x, has its best multiplier from the cut oracle; for several see ``bundle.py``, for streams
``sampled.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tiebreak import checkpoint, checks
from tiebreak.bundle import Lines, best_bound
from tiebreak.domains import cut_lmo, lmo
from tiebreak.objectives.base import Objective, accumulate, everything
from tiebreak.problem import Problem

ROUNDING = 1e-13  # relative: moves a cut outwards, so that rounding cannot cut off a minimiser
FRESH = 0xF1E5  # sets the samples of certificates apart from those of runs with the same seed
STRIDES = (0.2, 0.5)  # from x towards the point that a bundle proposes, where its next half-space is taken, in turns


class Floors(NamedTuple):
    """The best that is proven so far about the optimal values, and the smallest g seen."""

    upper: float = -math.inf  # ≤ f*
    lower: float = -math.inf  # ≤ g*
    best_lower: float = math.inf  # ≥ g*


NOTHING = Floors()


class HalfSpace(NamedTuple):
    """The points s with ⟨normal, s⟩ ≤ offset, every minimiser of g among them."""

    normal: np.ndarray
    offset: float


class Certificate(NamedTuple):
    """Values at a point and what they prove: exact ones, or with a stream at a level those of fresh samples.

    Attributes
    ----------
    upper, lower : float
        f(x) and g(x), exact on all samples; of a stream the mean over fresh ones.
    upper_bound_gap : float
        f(x) − f* is at most this. It may be negative: then f(x) < f*, because g(x) > g*. NaN if f is not known to be convex.
    lower_bound_gap : float
        g(x) − g* is at most this; it is never negative.
    stationarity : float
        The largest decrease of f's linear model at x over the points of Z in the half-space of x. For f not convex it
        measures how far x is from stationary, and is no gap.
    multiplier : float
        λ of that half-space.
    floors : Floors
        The lower bounds of f* and g*, and the least g seen, from this point and all before.
    cuts : tuple of HalfSpace
        The half-spaces that were used, all of which contain every minimiser of g.
    multipliers : array
        Their weights in the proof of the bound on f*.
    upper_error, lower_error : float
        By how much f(x) and g(x) may differ from the values given here.
    confidence : float
        The probability with which both bounds and both errors hold, all together: 1, or 1 − δ with a stream at a level.
    samples : int
        Fresh samples drawn for it at each level that is a stream.
    """

    upper: float
    lower: float
    upper_bound_gap: float
    lower_bound_gap: float
    stationarity: float
    multiplier: float
    floors: Floors
    cuts: tuple[HalfSpace, ...] = ()
    multipliers: np.ndarray = np.zeros(0)
    upper_error: float = 0.0
    lower_error: float = 0.0
    confidence: float = 1.0
    samples: int = 0

    @property
    def finite(self) -> bool:
        """Whether both values are finite."""
        return math.isfinite(self.upper) and math.isfinite(self.lower)

    def __str__(self) -> str:
        rows = [("upper f(x)", self.upper), ("  f(x) − f* ≤", self.upper_bound_gap), ("  stationarity", self.stationarity)]
        if math.isnan(self.upper_bound_gap):
            rows.pop(1)
        rows += [("lower g(x)", self.lower), ("  g(x) − g* ≤", self.lower_bound_gap)]
        if self.confidence < 1.0:
            rows.append(("with probability", self.confidence))
        return "\n".join(f"{name:<16}{value:.6g}" if len(name) < 16 else f"{name} {value:.6g}" for name, value in rows)


class Look(NamedTuple):
    """A point with both values and gradients."""

    x: np.ndarray
    f: float
    f_gradient: np.ndarray
    g: float
    g_gradient: np.ndarray

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        gradients = np.isfinite(self.f_gradient).all() and np.isfinite(self.g_gradient).all()
        return bool(math.isfinite(self.f) and math.isfinite(self.g) and gradients)

    @property
    def rounding(self) -> float:
        """By how much g's linear model may be wrong because of rounding."""
        return ROUNDING * (abs(self.g) + float(np.abs(self.g_gradient) @ np.abs(self.x)))


def certify(
    problem: Problem,
    x: Any,
    *,
    bundle: int = 1,
    points: Iterable[Any] = (),
    floors: Floors = NOTHING,
    samples: int | None = None,
    delta: float | None = None,
    seed: int = 0,
) -> Certificate:
    """Return what full gradients, or fresh samples of a stream, prove about a point of the domain.

    Parameters
    ----------
    problem : Problem
    x : array, (d,), or Result
        A point of the domain, or a result: if it is of the same problem, what its run proved is kept, and may only become
        better.
    bundle : int
        How many half-spaces to use at most, each for one pass over the data of both levels: that of x, those of ``points``,
        and further ones at points of its own choice. More make the bounds tighter: some tens often by a factor of ten.
    points : arrays, optional
        Other points of the domain at which to evaluate both levels. Each may lower the least g that is known and gives one
        more half-space.
    floors : Floors, optional
        What is proven already, such as ``certificate.floors`` of another point.
    samples : int, optional
        With a stream: how many fresh samples to draw at each level that is one; 20,000 if not given. One half of them
        chooses how to bound, the other half bounds.
    delta : float, optional
        With a stream: the probability that the bounds may fail with; 0.05 if not given. ``bundle`` and ``floors`` are for
        problems without a stream; ``points`` may lower the least g that is known.
    seed : int
        With a stream: of the fresh samples.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If a point does not lie in the domain, or an objective is not finite at it.

    Examples
    --------
    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> for bundle in (1, 5, 20):
    ...     print(f"f(x) − f* ≤ {tiebreak.certify(problem, [0.5, 0.5], bundle=bundle).upper_bound_gap:.1e}")
    f(x) − f* ≤ 1.5e+00
    f(x) − f* ≤ 9.4e-04
    f(x) − f* ≤ 6.8e-14
    """
    bundle = checks.whole(bundle, "bundle")
    if problem.upper.endless or problem.lower.endless:
        if floors != NOTHING:
            raise ValueError("`floors` must be left out for a stream: its bounds are made of fresh samples alone")
        return _certify_stream(problem, x, bundle, points, samples, delta, seed)
    for name, value in (("samples", samples), ("delta", delta)):
        if value is not None:
            raise ValueError(f"`{name}` is for streams, and all samples of this problem are known: its bounds are certain")
    if hasattr(x, "certificate"):
        x, floors = x.x, _joined(proven(x, problem), floors)
    looks = [_looked_at(problem, x, "x"), *(_looked_at(problem, point, "points") for point in points)]
    for look in looks[1:]:
        floors = conclude(problem, look, floors).floors
    certificate = conclude(problem, looks[0], floors)
    return certificate if bundle == 1 and len(looks) == 1 else tighten(problem, looks, certificate, bundle)


def _certify_stream(
    problem: Problem, x: Any, bundle: int, points: Iterable[Any], samples: Any, delta: Any, seed: Any
) -> Certificate:
    from tiebreak import sampled  # which makes certificates

    if bundle != 1:
        raise ValueError(f"`bundle` must be 1 for a stream, whose half-spaces are not known exactly, got {bundle}")
    samples = checks.whole(20_000 if samples is None else samples, "samples", least=sampled.LEAST_SAMPLES)
    delta = confidence_level(0.05 if delta is None else delta)
    point = _inside(problem, x.x if hasattr(x, "certificate") else x, "x")
    others = [_inside(problem, other, "points") for other in points]
    take = sampled.Fresh(np.random.default_rng([checks.whole(seed, "seed", least=0), FRESH]))
    return sampled.evaluate(problem, point, take, samples, delta, others)


def confidence_level(delta: Any) -> float:
    """Return a probability of failure, or raise."""
    value = checks.real(delta, "delta", above=0.0)
    if value >= 1.0:
        raise ValueError(f"`delta` must be a probability below 1, such as 0.05, got {checks.shown(delta)}")
    return value


def evaluate(problem: Problem, x: np.ndarray, floors: Floors = NOTHING) -> Certificate:
    """Return the certificate of a point of the domain; what was proven at other points is in ``floors``."""
    return conclude(problem, look_at(problem, x), floors)


def look_at(problem: Problem, x: np.ndarray) -> Look:
    """Evaluate both levels in full."""
    return Look(x, *_value_and_gradient(problem.upper, x), *_value_and_gradient(problem.lower, x))


def conclude(problem: Problem, look: Look, floors: Floors) -> Certificate:
    """Return what one point proves, with its own half-space."""
    x, f, f_gradient, g, g_gradient = look
    if not look.finite:
        return Certificate(f, g, math.nan, math.nan, math.nan, math.nan, floors)
    atom = np.empty_like(x)
    lower_floor = g + min(_minimum(problem, g_gradient, x, atom), 0.0)
    floors = Floors(floors.upper, max(floors.lower, lower_floor), min(floors.best_lower, g))

    offset = float(g_gradient @ x) + floors.best_lower - g + look.rounding
    _, multiplier = cut_lmo(problem.domain, f_gradient, g_gradient, offset, atom)
    if math.isfinite(multiplier):
        room = offset - float(g_gradient @ x)
        stationarity = multiplier * room - _minimum(problem, f_gradient + multiplier * g_gradient, x, atom)
    else:
        stationarity = math.inf
    convex = bool(problem.upper.convex)
    if convex:
        floors = floors._replace(upper=max(floors.upper, f - stationarity))
    return Certificate(
        upper=f,
        lower=g,
        upper_bound_gap=f - floors.upper if convex else math.nan,
        lower_bound_gap=g - floors.lower,
        stationarity=stationarity,
        multiplier=float(multiplier),
        floors=floors,
        cuts=(HalfSpace(g_gradient, offset),),
        multipliers=np.array([multiplier], dtype=np.float64),
    )


def tighten(problem: Problem, looks: list[Look], certificate: Certificate, bundle: int) -> Certificate:
    """Return a certificate of the first of some points from the half-spaces of all, and of further ones up to a number."""
    x, floors = looks[0].x, certificate.floors
    looks, convex = list(looks), bool(problem.upper.convex)
    while True:
        lower = Lines(
            np.array([look.g + look.g_gradient @ (x - look.x) - look.rounding for look in looks]),
            np.array([look.g_gradient for look in looks]),
        )
        upper = Lines(
            np.array([look.f + look.f_gradient @ (x - look.x) for look in looks]),
            np.array([look.f_gradient for look in looks]),
        )
        floors = floors._replace(lower=max(floors.lower, best_bound(problem.domain, x, lower, Lines.none(x.size)).value))
        allowed = Lines(lower.values - floors.best_lower, lower.gradients)
        used = upper if convex else Lines(upper.values[:1], upper.gradients[:1])
        bound = best_bound(problem.domain, x, used, allowed)
        if convex and bound.value > floors.upper:
            floors = floors._replace(upper=bound.value)
        if len(looks) >= bundle:
            break
        stride = STRIDES[len(looks) % len(STRIDES)]
        look = look_at(problem, x + stride * (bound.point - x))
        if not look.finite:
            break
        looks.append(look)
        floors = conclude(problem, look, floors).floors
    return certificate._replace(
        upper_bound_gap=certificate.upper - floors.upper if convex else math.nan,
        lower_bound_gap=certificate.lower - floors.lower,
        stationarity=min(certificate.stationarity, certificate.upper - bound.value)
        if not convex
        else certificate.stationarity,
        floors=floors,
        cuts=tuple(HalfSpace(a, float(a @ x - value)) for value, a in zip(*allowed, strict=True)),
        multipliers=bound.lower,
    )


def packed(certificate: Certificate) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a certificate as plain data by the names of its fields, and its half-spaces as arrays: what a file can hold."""
    values = {name: getattr(certificate, name) for name in Certificate._fields if name not in ("cuts", "multipliers")}
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    arrays = {
        "certificate.normals": np.array([cut.normal for cut in certificate.cuts]),
        "certificate.offsets": np.array([cut.offset for cut in certificate.cuts]),
        "certificate.multipliers": np.asarray(certificate.multipliers),
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
    }
    return Certificate(**named)


def proven(result: Any, problem: Problem) -> Floors:
    """Return what a result proves about a problem: nothing if it is of another one, or of samples."""
    first = result.problem
    if first is None:  # as of a result that was read from a file
        same = problem.compiled and result.settings.get("problem") == checkpoint.digest(problem)
    elif first is problem:
        same = True
    else:
        same = first.compiled and problem.compiled and checkpoint.digest(first) == checkpoint.digest(problem)
    return result.certificate.floors if same and result.certificate.confidence == 1.0 else NOTHING


def _joined(first: Floors, second: Floors) -> Floors:
    return Floors(max(first.upper, second.upper), max(first.lower, second.lower), min(first.best_lower, second.best_lower))


def _looked_at(problem: Problem, point: Any, name: str) -> Look:
    x = _inside(problem, point, name)
    look = look_at(problem, x)
    if not look.finite:
        raise ValueError(f"an objective is not finite at `{name}`: f = {look.f}, g = {look.g}")
    return look


def _inside(problem: Problem, point: Any, name: str) -> np.ndarray:
    x = checks.vector(point, name, problem.dimension)
    if not problem.domain.contains(x):
        raise ValueError(f"`{name}` must lie in the domain, for bounds to hold, and it does not")
    return x


def _value_and_gradient(objective: Objective, x: np.ndarray) -> tuple[float, np.ndarray]:
    gradient = np.zeros_like(x)
    value, _ = accumulate(objective, everything(objective), x, 1.0, x, 0.0, gradient)
    return float(value), gradient


def _minimum(problem: Problem, c: np.ndarray, x: np.ndarray, atom: np.ndarray) -> float:
    """Return min ⟨c, s − x⟩ over s ∈ Z."""
    lmo(problem.domain, c, atom)
    return float(c @ (atom - x))
