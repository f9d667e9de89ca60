"""Proven bounds against problems whose solution is known without rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator

import tiebreak
from campaign.exact import DOUBT, dot
from campaign.planted import Planted, plant
from campaign.recipes import text
from campaign.sets import SETS
from campaign.trials import Round, kind

PROBLEMS = 5  # problems per round
BUNDLES = 0.02  # share of the problems with several half-spaces at one point, which takes a thousand times as long
KEPT = 0.2  # share of the certificates whose floors the next ones start from
MOVED = 1e-6  # distance, relative to the point, by which a certificate may move it into the set
FURTHEST = 2.0**-10  # distance outside, relative to the point, at which the search for the edge of what is accepted begins


@kind("proofs", each=SETS, weight=25.0)
def proofs_at_points(trial: Round, name: str) -> None:
    """Certify points of planted problems, and compare each claim with the truth."""
    for _ in range(PROBLEMS):
        planted = plant(trial.rng, name)
        try:
            problem = planted.make()
        except Exception as error:
            trial.failed("the problem cannot be made:", error, str(planted))
            continue
        floors, script = tiebreak.Floors(), f"{planted}\nfloors = tiebreak.Floors()"
        for x, bundle in points(trial.rng, planted, problem):
            script += f"\nx = {text(x)}\nc = tiebreak.certify(problem, x, bundle={bundle}, floors=floors, check=False)"
            try:
                certificate = tiebreak.certify(problem, x, bundle=bundle, floors=floors, check=False)
            except Exception as error:
                trial.failed("certify raised", error, script)
                continue
            judge(trial, planted, x, certificate, script)
            if trial.rng.random() < KEPT:
                floors = certificate.floors
                script += "\nfloors = c.floors"


def points(rng: Generator, planted: Planted, problem: Any) -> Iterator[tuple[np.ndarray, int]]:
    """Yield points of the domain and how many half-spaces to ask for: the default start, atoms, the optimum, others."""
    domain, d, best = problem.domain, problem.dimension, planted.x
    atoms = [domain.lmo(rng.standard_normal(d) / planted.units) for _ in range(2)]
    toward = 0.5 * (atoms[0] + atoms[1])
    near = [best + 10.0 ** rng.uniform(-15.0, 0.0) * (toward - best) for _ in range(3)]
    edge = [at_the_edge(rng, planted, domain) for _ in range(3)]
    found = [problem.center, best, *atoms, toward, *near, *(x for x in edge if x is not None)]
    several = rng.integers(len(found)) if rng.random() < BUNDLES else -1
    for k, x in enumerate(found):
        if domain.contains(x):
            yield x, int(rng.choice([2, 3, 5, 20])) if k == several else 1


def at_the_edge(rng: Generator, planted: Planted, domain: Any) -> np.ndarray | None:
    """Return a point as far outside as ``contains`` accepts, in some direction from the optimum."""
    match rng.integers(3):
        case 0:
            direction = planted.normal
        case 1:
            direction = planted.x.copy()
        case _:
            direction = np.zeros(planted.x.size)
            j = rng.integers(direction.size)
            direction[j] = rng.choice([-1.0, 1.0]) * planted.units[j]
    if not direction.any():
        return None
    share = FURTHEST
    while share > 2.0**-52:
        x = planted.x + share * direction
        if domain.contains(x):
            return x
        share *= 0.5
    return None


def judge(trial: Round, planted: Planted, given: np.ndarray, certificate: Any, script: str) -> None:
    """Count a certificate of a point, as wrong if any of its claims is; the point that they are about is near."""
    false = list(falsehoods(planted, certificate.x, certificate))
    size = 1.0 + float(np.abs(given / planted.units).max())
    if (moved := float(np.abs((certificate.x - given) / planted.units).max())) > MOVED * size:
        false.append(f"x was moved by {moved!r} of its units, {moved / size:.1e} of its size")
    silent = not math.isfinite(certificate.upper_gap_bound) or not math.isfinite(certificate.lower_gap_bound)
    trial.tried(silent=int(silent))
    if false:
        truth = f"# truth: f* = {float(planted.upper_least)!r}, g* = {float(planted.lower_least)!r}, at {text(planted.x)}"
        trial.wrong("; ".join(false), f"{script}\n{truth}\nprint(c, c.floors)")


def falsehoods(planted: Planted, x: np.ndarray, certificate: Any) -> Iterator[str]:
    """Yield each claim of a certificate of x that is false, for the tolerance that it is for."""
    truth, g_least = planted.truth(certificate.floors.tolerance, certificate.floors.keep), planted.lower_least
    f, g = planted.upper.value(x), planted.lower.value(x)
    floors, level = certificate.floors, truth.level
    most = [  # claims that something is at most this
        ("lower_gap_bound", certificate.lower_gap_bound, g - g_least, abs(g) + abs(g_least)),
        ("floors.best_lower", floors.best_lower, g_least, abs(g_least)),
    ]
    least = [("floors.lower", floors.lower, g_least), ("aim", floors.aim, level)]
    most.append(("level", floors.level, level, abs(level)))
    if below(-certificate.tolerance, g_least - level, abs(level) + abs(g_least)):
        yield shown("tolerance", certificate.tolerance, ">", level - g_least, abs(level) + abs(g_least))
    if truth.most is not None:
        most.append(("upper_gap_bound", certificate.upper_gap_bound, f - truth.most, abs(f) + abs(truth.most)))
        least.append(("floors.upper", floors.upper, truth.most))
    if truth.least is not None:
        most.append(("ceiling", certificate.ceiling, truth.least, abs(truth.least)))
    for what, claimed, true, size in most:
        if below(claimed, true, size):
            yield shown(what, claimed, "<", true, size)
    for what, claimed, true in least:
        if below(-claimed, -true, abs(true)):
            yield shown(what, claimed, ">", true, abs(true))
    doubt = DOUBT * (abs(g) + abs(level))
    if (certificate.within is True and g > level + doubt) or (certificate.within is False and g <= level - doubt):
        yield f"within is {certificate.within}, and g − g* − ε is {float(g - level)!r}"
    for k, (normal, offset) in enumerate(certificate.cuts):
        for point in truth.within:
            reach = dot(normal, point)
            if below(offset, reach, abs(reach)):
                yield shown(f"half-space {k} excludes {text(point)}: its offset", offset, "<", reach, abs(reach))


def below(claimed: float, true: Fraction, size: Fraction) -> bool:
    """Whether a claimed upper bound is false, beyond the error with which the truth is known."""
    if math.isnan(claimed) or claimed == math.inf:
        return False
    return claimed == -math.inf or Fraction(claimed) < true - DOUBT * size


def shown(what: str, claimed: float, relation: str, true: Fraction, size: Fraction) -> str:
    """Return a false claim in words."""
    off = abs(Fraction(claimed) - true) if math.isfinite(claimed) else Fraction(0)
    relative = f", off by {float(off / size):.1e} of the values" if size else ""
    return f"{what} {float(claimed)!r} {relation} {float(true)!r}{relative}"
