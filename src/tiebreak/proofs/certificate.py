"""Two-sided bounds on both gaps from full gradients at points of the domain.

Lower level: g is convex, so that for any points y_j of Z

    g* ≥ min over s ∈ Z of max_j g(y_j) + ⟨∇g(y_j), s − y_j⟩;

with x alone that is the Frank-Wolfe gap, g(x) − g* ≤ max over s ∈ Z of ⟨∇g(x), x − s⟩.

Upper level: with ḡ the least g seen at any point, the half-spaces g(y_j) + ⟨∇g(y_j), s − y_j⟩ ≤ ḡ contain every minimiser
of g. If f is convex, f* is at least the least value, over the points of Z in all of them, of max_i f(y_i) + ⟨∇f(y_i), s −
y_i⟩. One half-space, that of x, has its best multiplier from the cut oracle; for several see ``bundle.py``, for streams
``sampled.py``.

Rounding is part of every proof. Each value and gradient comes with a bound of its error (``Objective.survey``), each linear
minimisation with a number that is proven not to exceed its minimum (``least_value``), and each point with how far it may be
from Z (``settle``); all of these widen the bounds. Where g is not known to be convex its tangents prove nothing. What the
objectives know of themselves (``floor``) holds always.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tiebreak.domains import cut_lmo, least_value, lmo, settle, spread
from tiebreak.domains.rounding import quiet
from tiebreak.engine import checks, foreign_classes
from tiebreak.engine.digest import digest
from tiebreak.engine.randomness import Moments
from tiebreak.objectives.surveys import FEW_OPERATIONS, UNIT, Survey
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs.bundle import Lines, best_bound

CONTRADICTION = 1e-6  # relative: by how much g may be below its proven floor before something is said to be wrong
FRESH = 0xF1E5  # sets the samples of certificates apart from those of runs with the same seed
APPROXIMATE = "approximate: assumes that batch means are nearly normal; value_range and gradient_bound make it proven"
STRIDES = (0.2, 0.5)  # from x towards the point that a bundle proposes, where its next half-space is taken, in turns


class Floors(NamedTuple):
    """The best that is proven so far about the optimal values."""

    upper: float = -math.inf  # ≤ f*
    lower: float = -math.inf  # ≤ g*
    best_lower: float = math.inf  # ≥ g*: the least g seen, and its rounding


NOTHING = Floors()


class ContradictionError(ValueError):
    """A point of the domain is better than what was proven to be possible: something that was said of g is not true."""


def known(problem: Problem) -> Floors:
    """Return what the objectives of a problem know of themselves."""
    upper, lower = (float(level.floor) for level in (problem.upper, problem.lower))
    return Floors(upper - FEW_OPERATIONS * UNIT * abs(upper), lower - FEW_OPERATIONS * UNIT * abs(lower))


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
    upper_gap_bound : float
        f(x) − f* is at most this. It may be negative: then f(x) < f*, because g(x) > g*. NaN if nothing bounds f* from
        below: f is not known to be convex, and has no ``floor``.
    lower_gap_bound : float
        g(x) − g* is at most this; it is never negative. NaN if nothing bounds g* from below: g is not known to be convex
        (``convex=True`` says so), and has no ``floor``.
    stationarity : float
        The largest decrease of f's linear model at x over the points of Z in the half-space of x. For f not convex it
        measures how far x is from stationary, and is no gap.
    multiplier : float
        λ of that half-space.
    floors : Floors
        The lower bounds of f* and g*, and an upper bound of g*, from this point and all before.
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
    approximate : bool
        Whether that probability rests on batch means of a stream being nearly normal, which is not proven; it is False where
        each stream has a ``value_range`` and a ``gradient_bound``.
    x : array, (d,)
        The point of which all this is said: the one that was given, or the point of Z that it was moved to, if it was
        outside by more than rounding.
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
            rows.append(("with probability", self.confidence))
        lines = [f"{name:<16}{value:.6g}" if len(name) < 16 else f"{name} {value:.6g}" for name, value in rows]
        return "\n".join([*lines, APPROXIMATE] if self.approximate else lines)


class Look(NamedTuple):
    """A point of Z with the values and gradients of both levels, and what rounding leaves in doubt.

    For every s of Z, f(s) ≥ f + ⟨∇f, s − x⟩ − f_doubt if f is convex, as computed, and likewise g.
    """

    x: np.ndarray
    f: float
    f_gradient: np.ndarray
    f_error: float  # |f − f(x)| is at most this
    f_doubt: float
    g: float
    g_gradient: np.ndarray
    g_error: float
    g_doubt: float
    ceiling: float  # ≥ g*, as x is near enough to a point of Z

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        gradients = np.isfinite(self.f_gradient).all() and np.isfinite(self.g_gradient).all()
        return bool(math.isfinite(self.f) and math.isfinite(self.g) and gradients)


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
    check: bool = True,
) -> Certificate:
    """Return what full gradients, or fresh samples of a stream, say about a point of the domain.

    Full gradients prove it. On a stream it is proven, up to a probability of δ, if the stream has a ``value_range`` and a
    ``gradient_bound``; else it is approximate, and ``certificate.approximate`` says so.

    Parameters
    ----------
    problem : Problem
    x : array, (d,), or Result
        A point of the domain, or a result: if it is of the same problem, what its run proved is kept, and may only become
        better. A point that is outside by no more than the tolerance of ``contains`` is moved into the domain first; values
        and bounds are those of the point ``certificate.x`` that it is moved to.
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
    check : bool
        Whether to compare gradients that a ``FiniteSum`` or a ``Stream`` computes with differences of values first, as
        :func:`check_gradient` does: with wrong ones nothing would hold.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If a point does not lie in the domain, or an objective is not finite at it.
    GradientError
        If a function's gradient is not that of its values.
    AssumptionError
        If a sample contradicts the ``value_range`` or the ``gradient_bound`` of a stream.

    Examples
    --------
    >>> import tiebreak
    >>> problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(2.0))
    >>> for bundle in (1, 5, 20):
    ...     print(f"f(x) − f* ≤ {tiebreak.certify(problem, [0.5, 0.5], bundle=bundle).upper_gap_bound:.1e}")
    f(x) − f* ≤ 2.5e-01
    f(x) − f* ≤ 9.4e-04
    f(x) − f* ≤ 1.3e-07
    """
    bundle = checks.whole(bundle, "bundle")
    check_problem(problem)
    if not isinstance(floors, Floors) or not all(isinstance(value, (int, float)) for value in floors):
        raise ValueError(f"`floors` must be the `floors` of a certificate, got {checks.shown(floors)}")
    if not isinstance(points, Iterable):
        raise ValueError(f"`points` must be a list of points, got {checks.shown(points)}")
    if check:
        _check_gradients(problem, x)
    if problem.upper.endless or problem.lower.endless:
        if floors != NOTHING:
            raise ValueError("`floors` must be left out for a stream: its bounds are made of fresh samples alone")
        return _certify_stream(problem, x, bundle, points, samples, delta, seed, check)
    for name, value in (("samples", samples), ("delta", delta)):
        if value is not None:
            raise ValueError(f"`{name}` is for streams, and all samples of this problem are known: its bounds are certain")
    floors = joined(floors, known(problem))
    if hasattr(x, "certificate"):
        x, floors = x.x, joined(proven(x, problem), floors)
    looks = [_looked_at(problem, x, "x"), *(_looked_at(problem, point, "points") for point in points)]
    for look in looks[1:]:
        floors = conclude(problem, look, floors).floors
    certificate = conclude(problem, looks[0], floors)
    return certificate if bundle == 1 and len(looks) == 1 else tighten(problem, looks, certificate, bundle)


def _certify_stream(
    problem: Problem, x: Any, bundle: int, points: Iterable[Any], samples: Any, delta: Any, seed: Any, check: bool
) -> Certificate:
    from tiebreak.proofs import sampled  # which makes certificates
    from tiebreak.proofs.fresh import Fresh
    from tiebreak.proofs.gradients import Watched

    if bundle != 1:
        raise ValueError(f"`bundle` must be 1 for a stream, whose half-spaces are not known exactly, got {bundle}")
    samples = checks.whole(20_000 if samples is None else samples, "samples", least=sampled.LEAST_SAMPLES)
    delta = confidence_level(0.05 if delta is None else delta)
    point = _inside(problem, x.x if hasattr(x, "certificate") else x, "x")
    others = [_inside(problem, other, "points") for other in points]
    take: Any = Fresh(Moments(checks.whole(seed, "seed", least=0), FRESH))
    take = Watched(take, problem, point) if check else take
    return sampled.evaluate(problem, point, take, samples, delta, others)


def _check_gradients(problem: Problem, x: Any) -> None:
    from tiebreak.proofs.gradients import check_gradients

    check_gradients(problem, _inside(problem, x.x if hasattr(x, "certificate") else x, "x"))


def confidence_level(delta: Any) -> float:
    """Return a probability of failure, or raise."""
    value = checks.real(delta, "delta", above=0.0)
    if value >= 1.0:
        raise ValueError(f"`delta` must be a probability below 1, such as 0.05, got {checks.shown(delta)}")
    return value


def evaluate(problem: Problem, x: np.ndarray, floors: Floors = NOTHING) -> Certificate:
    """Return the certificate of a point of the domain; what was proven at other points is in ``floors``."""
    return conclude(problem, look_at(problem, x), joined(floors, known(problem)))


@quiet
def look_at(problem: Problem, x: np.ndarray) -> Look:
    """Evaluate both levels in full at a point that is moved into Z, in place, if it is outside by more than rounding."""
    off = np.empty_like(x)
    settled = settle(problem.domain, x, off)
    f, g = (level.survey(x, off if settled else None) for level in (problem.upper, problem.lower))
    f_doubt, g_doubt = (doubt_of(problem, x, survey) for survey in (f, g))
    ceiling = g.value + g.value_error + FEW_OPERATIONS * UNIT * abs(g.value) if settled else math.inf
    return Look(x, f.value, f.gradient, f.value_error, f_doubt, g.value, g.gradient, g.value_error, g_doubt, ceiling)


def doubt_of(problem: Problem, x: np.ndarray, survey: Survey) -> float:
    """Return by how much the tangent of an objective at x may be too high on Z, inner products with it included."""
    error = survey.gradient_error + (2 * x.size + FEW_OPERATIONS) * UNIT * np.abs(survey.gradient)
    value_error = survey.value_error + FEW_OPERATIONS * UNIT * abs(survey.value)
    return value_error + float(spread(problem.domain, error) + error @ np.abs(x))


@quiet
def conclude(problem: Problem, look: Look, floors: Floors) -> Certificate:
    """Return what one point proves, with its own half-space."""
    if not look.finite:
        return Certificate(look.f, look.g, math.nan, math.nan, math.nan, math.nan, floors, x=look.x)
    floors = floors._replace(best_lower=min(floors.best_lower, look.ceiling))
    if problem.lower.convex:
        lower = look.g - look.g_doubt + min(minimum(problem, look.g_gradient, look.x), 0.0)
        floors = floors._replace(lower=max(floors.lower, lower))
    check_consistent(floors)
    room = floors.best_lower - look.g + look.g_doubt  # ⟨∇g(x), s − x⟩ is at most this at all minimisers s of g
    offset = float(look.g_gradient @ look.x) + room
    multiplier = 0.0
    if math.isfinite(room):
        multiplier = cut_lmo(problem.domain, look.f_gradient, look.g_gradient, offset, np.empty_like(look.x))[1]
    stationarity = decrease(problem, look, multiplier, room)
    if problem.upper.convex:
        # Where g is not known to be convex its half-space proves nothing, but f* is no less than the least f on all of Z.
        proof = stationarity if problem.lower.convex else decrease(problem, look, 0.0, room)
        floors = floors._replace(upper=max(floors.upper, look.f - proof))
    return Certificate(
        upper=look.f,
        lower=look.g,
        upper_gap_bound=gap(look.f, look.f_error, floors.upper),
        lower_gap_bound=max(gap(look.g, look.g_error, floors.lower), 0.0),
        stationarity=stationarity,
        multiplier=float(multiplier),
        floors=floors,
        cuts=(HalfSpace(look.g_gradient, offset),) if problem.lower.convex and math.isfinite(offset) else (),
        multipliers=np.array([multiplier], dtype=np.float64),
        x=look.x,
    )


def gap(value: float, error: float, floor: float) -> float:
    """Return a bound on how far a value is above an optimal one that has a floor; NaN if it has none."""
    return value + error - floor if floor > -math.inf else math.nan


def decrease(problem: Problem, look: Look, multiplier: float, room: float) -> float:
    """Return a bound on how far f's tangent falls on Z, if a multiple of what g's tangent exceeds its room by is added."""
    if math.isinf(multiplier):
        return math.inf
    direction = look.f_gradient + multiplier * look.g_gradient if multiplier > 0.0 else look.f_gradient
    allowance = multiplier * room if multiplier > 0.0 else 0.0
    return look.f_doubt + allowance - minimum(problem, direction, look.x)


def check_consistent(floors: Floors) -> None:
    """Raise if g was seen clearly below what was proven of its minimum."""
    scale = max(abs(floors.lower), abs(floors.best_lower))
    if floors.best_lower < floors.lower - CONTRADICTION * scale:
        raise ContradictionError(
            f"`lower` takes the value {floors.best_lower:g} in the domain, though its gradients or its `floor` prove that it"
            f" is at least {floors.lower:g}: it is not convex, its gradient is wrong, its `floor` is too high, or its data"
            " were changed"
        )


@quiet
def tighten(problem: Problem, looks: list[Look], certificate: Certificate, bundle: int) -> Certificate:
    """Return a certificate of the first of some points from the half-spaces of all, and of further ones up to a number."""
    first, floors = looks[0], certificate.floors
    x, looks, convex = first.x, list(looks), bool(problem.upper.convex)
    while True:
        upper = Lines.of(x, [(look.x, look.f, look.f_gradient, look.f_doubt) for look in looks])
        lower = Lines.of(x, [(look.x, look.g, look.g_gradient, look.g_doubt) for look in looks])
        if problem.lower.convex:
            found = best_bound(problem.domain, x, lower, Lines.none(x.size)).value
            floors = floors._replace(lower=max(floors.lower, found))
        allowed = lower.below(floors.best_lower) if problem.lower.convex else Lines.none(x.size)
        bound = best_bound(problem.domain, x, upper if convex else upper.first(), allowed)
        if convex:
            floors = floors._replace(upper=max(floors.upper, bound.value))
        check_consistent(floors)
        if len(looks) >= bundle:
            break
        stride = STRIDES[len(looks) % len(STRIDES)]
        look = look_at(problem, x + stride * (bound.point - x))
        if not look.finite:
            break
        looks.append(look)
        floors = conclude(problem, look, floors).floors
    return certificate._replace(
        upper_gap_bound=gap(first.f, first.f_error, floors.upper),
        lower_gap_bound=max(gap(first.g, first.g_error, floors.lower), 0.0),
        stationarity=certificate.stationarity if convex else min(certificate.stationarity, certificate.upper - bound.value),
        floors=floors,
        cuts=tuple(HalfSpace(a, float(a @ x - value)) for value, a in zip(allowed.values, allowed.gradients, strict=True)),
        multipliers=bound.lower,
    )


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


def proven(result: Any, problem: Problem) -> Floors:
    """Return what a result proves about a problem: nothing if it is of another one, or of samples."""
    first = result.problem
    if first is problem:
        same = True
    elif not problem.compiled or foreign_classes(problem):  # code that was written elsewhere is not told apart for certain
        same = False
    elif first is None:  # as of a result that was read from a file
        same = result.settings.get("problem") == digest(problem)
    else:
        same = first.compiled and digest(first) == digest(problem)
    return result.certificate.floors if same and result.certificate.confidence == 1.0 else NOTHING


def joined(first: Floors, second: Floors) -> Floors:
    """Return all that is proven."""
    return Floors(max(first.upper, second.upper), max(first.lower, second.lower), min(first.best_lower, second.best_lower))


def _looked_at(problem: Problem, point: Any, name: str) -> Look:
    x = _inside(problem, point, name)
    look = look_at(problem, x)
    if not look.finite:
        raise ValueError(f"an objective is not finite at `{name}`: f = {look.f}, g = {look.g}")
    return look


def _inside(problem: Problem, point: Any, name: str) -> np.ndarray:
    x = checks.vector(point, name, problem.dimension).copy()
    if not problem.domain.contains(x):
        raise ValueError(f"`{name}` must lie in the domain, for bounds to hold, and it does not")
    return x


def minimum(problem: Problem, c: np.ndarray, x: np.ndarray) -> float:
    """Return a number that ⟨c, s − x⟩ is proven not to be below for any s of Z."""
    atom = np.empty_like(x)
    lmo(problem.domain, c, atom)
    return float(least_value(problem.domain, c, atom) - c @ x)
