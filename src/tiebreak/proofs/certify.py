"""The public entry of this room: what can be proven about a point."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tiebreak.active.scope import fits
from tiebreak.active.solver import TooManyAtomsError
from tiebreak.engine import checks
from tiebreak.engine.randomness import Moments
from tiebreak.problem import Problem, check_problem
from tiebreak.proofs.along import follow
from tiebreak.proofs.certificate import Certificate, proven
from tiebreak.proofs.exact import Look, examine, tighten, with_ceiling
from tiebreak.proofs.floors import NOTHING, Floors, known
from tiebreak.proofs.fresh import FRESH, Fresh, Take
from tiebreak.proofs.gradients import Watched, check_gradients
from tiebreak.proofs.sampled import LEAST_SAMPLES, certify_sampled

DEFAULT_SAMPLES = 20_000  # fresh samples per stream if their number is not given
DEFAULT_CONFIDENCE = 0.95  # probability with which the bounds of a stream hold if it is not given


def certify(
    problem: Problem,
    x: Any,
    *,
    bundle: int = 1,
    points: Iterable[Any] = (),
    floors: Floors = NOTHING,
    samples: int | None = None,
    confidence: float | None = None,
    seed: int = 0,
    check: bool = True,
) -> Certificate:
    """Return what full gradients, or fresh samples of a stream, say about a point of the domain.

    Full gradients prove it. On a stream it is proven with probability ``confidence`` if the stream has a ``value_range``
    and a ``gradient_bound``; else it is approximate, and ``certificate.approximate`` says so.

    Parameters
    ----------
    problem : Problem
    x : array, (d,), or Result
        A point of the domain, or a result: if it is of the same problem, what its run proved is kept, and may only become
        better; with another ``tolerance``, what still holds is kept. A point that is outside by no more than the tolerance
        of ``contains`` is moved into the domain first; values and bounds are those of the point ``certificate.x`` that it is
        moved to.
    bundle : int
        The most half-spaces to use: that of x, those of ``points``, and further ones at points of its own choice. Each costs
        one pass over the data of both levels. More make the bounds tighter: some tens often by a factor of ten.
    points : arrays, optional
        Other points of the domain at which to evaluate both levels. Each may lower the least g that is known and gives one
        more half-space.
    floors : Floors, optional
        What is proven already, such as ``certificate.floors`` of another point. They may be of another tolerance, which
        they tell: a floor of f* for a smaller one is not used.
    samples : int, optional
        With a stream: how many fresh samples to draw at each level that is one; 20,000 if not given. One half of them
        chooses how to bound, the other half bounds.
    confidence : float, optional
        With a stream: the probability with which the bounds hold; 0.95 if not given. ``bundle`` and ``floors`` are for
        problems without a stream; ``points`` may lower the least g that is known.
    seed : int
        With a stream: the seed of the fresh samples.
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
    f(x) − f* ≤ 2.5e-07
    f(x) − f* ≤ 2.5e-13
    """
    bundle = checks.whole(bundle, "bundle")
    check_problem(problem)
    if not isinstance(floors, Floors) or not all(isinstance(value, (int, float)) for value in floors):
        raise ValueError(f"`floors` must be the `floors` of a certificate, got {checks.shown(floors)}")
    if not isinstance(points, Iterable):
        raise ValueError(f"`points` must be a list of points, got {checks.shown(points)}")
    if check:
        check_gradients(problem, _inside(problem, _point_of(x), "x"))
    if problem.upper.endless or problem.lower.endless:
        if floors != NOTHING:
            raise ValueError("`floors` must be left out for a stream: its bounds are made of fresh samples alone")
        if bundle != 1:
            raise ValueError(f"`bundle` must be 1 for a stream, whose half-spaces are not known exactly, got {bundle}")
        return _certify_stream(problem, x, points, samples, confidence, seed, check)
    for name, value in (("samples", samples), ("confidence", confidence)):
        if value is not None:
            raise ValueError(f"`{name}` is for streams, and all samples of this problem are known: its bounds are certain")
    return _certify_exact(problem, x, bundle, points, floors)


def _certify_exact(problem: Problem, x: Any, bundle: int, points: Iterable[Any], floors: Floors) -> Certificate:
    floors = known(problem, floors, *([proven(x, problem)] if hasattr(x, "certificate") else []))
    others = [_looked_at(problem, point, floors, "points") for point in points]
    for _, certificate in others:
        floors = certificate.floors
    look, certificate = _looked_at(problem, _point_of(x), floors, "x")
    if bundle > 1 and fits(problem, math.inf):
        with contextlib.suppress(TooManyAtomsError):
            return with_ceiling(problem, follow(problem, look, certificate, bundle - 1 - len(others)))
    looks = [look, *(other for other, _ in others)]
    if bundle > 1 or len(looks) > 1:
        certificate = tighten(problem, looks, certificate, bundle)
    return with_ceiling(problem, certificate)


def _certify_stream(
    problem: Problem, x: Any, points: Iterable[Any], samples: Any, confidence: Any, seed: Any, check: bool
) -> Certificate:
    samples = checks.whole(DEFAULT_SAMPLES if samples is None else samples, "samples", least=LEAST_SAMPLES)
    confidence = checks.confidence(DEFAULT_CONFIDENCE if confidence is None else confidence)
    point = _inside(problem, _point_of(x), "x")
    others = [_inside(problem, other, "points") for other in points]
    take: Take = Fresh(Moments(checks.whole(seed, "seed", least=0), FRESH))
    take = Watched(take, problem, point) if check else take
    certificate = certify_sampled(problem, point, take, samples, checks.failure_probability(confidence), others)
    return certificate._replace(confidence=confidence)


def _point_of(x: Any) -> Any:
    """Return the point of a result, or a point itself."""
    return x.x if hasattr(x, "certificate") else x


def _looked_at(problem: Problem, point: Any, floors: Floors, name: str) -> tuple[Look, Certificate]:
    look, certificate = examine(problem, _inside(problem, point, name), floors)
    if not look.finite:
        raise ValueError(f"an objective is not finite at `{name}`: f = {look.f}, g = {look.g}")
    return look, certificate


def _inside(problem: Problem, point: Any, name: str) -> np.ndarray:
    x = checks.vector(point, name, problem.dimension).copy()
    if not problem.domain.contains(x):
        raise ValueError(f"`{name}` must lie in the domain, for bounds to hold, and it does not")
    return x
