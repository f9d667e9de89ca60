"""What is proven of near ties: at points, of runs, and along paths."""

from __future__ import annotations

import contextlib
import math
import signal
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator

import tiebreak
from campaign.near import plant_near
from campaign.planted import KINDS, LOSSES, Planted, plant
from campaign.proofs import below, judge, points, shown
from campaign.recipes import text
from campaign.runs import BUDGET, one_run
from campaign.sets import SETS
from campaign.trials import Round, kind
from tiebreak.engine import interpreted

PROBLEMS = 4  # problems per round
KEPT = 0.3  # share of the certificates whose floors the next ones start from, often of another tolerance
SHARES = 0.3  # share of the points at which a share is said in place of a tolerance
BUNDLES = 0.01  # share of the points that are known with several half-spaces
SECONDS = 20  # after which a path on a handful of variables is said not to end
METHODS = [name for name, method in tiebreak.METHODS.items() if method.near_ties and method.finite]
CORNERS = ("L1Ball", "Box", "LInfBall", "KSparse", "WeightedL1Ball", "Simplex", "UnitSimplex", "CappedSimplex", "Hull")
CORNERS += ("Birkhoff", "Polytope", "ColumnsL1Ball")  # sets that the active set takes
PATHS = (*LOSSES[:3], "SquaredNorm", "sparse", "weighted", "Scaled", "Sum", "SummedSquares")  # and the objectives


@kind("near ties", each=SETS, weight=8.0)
def proofs_at_points(trial: Round, name: str) -> None:
    """Certify points of planted problems for the planted tolerance and others, and compare each claim with the truth."""
    rng = trial.rng
    for _ in range(PROBLEMS):
        planted = plant_near(rng, name)
        try:
            made = planted.make()
        except Exception as error:
            trial.failed("the problem cannot be made:", error, str(planted))
            continue
        floors, script = tiebreak.Floors(), f"{planted}\nmade, floors = problem, tiebreak.Floors()"
        for x, bundle in candidates(rng, planted, made):
            allowed = {"tolerance": a_tolerance(rng, planted), "keep": 1.0}
            if rng.random() < SHARES:
                allowed = {"tolerance": 0.0, "keep": a_share(rng, planted)}
            problem = made._replace(**allowed)
            script += f"\nproblem, x = made._replace(**{allowed}), {text(x)}"
            script += f"\nc = tiebreak.certify(problem, x, bundle={bundle}, floors=floors, check=False)"
            try:
                with interpreted():
                    certificate = tiebreak.certify(problem, x, bundle=bundle, floors=floors, check=False)
            except Exception as error:
                trial.failed("certify raised", error, script)
                continue
            judge(trial, planted, x, certificate, script)
            if rng.random() < KEPT:
                floors = certificate.floors
                script += "\nfloors = c.floors"


def candidates(rng: Generator, planted: Planted, problem: Any) -> Iterator[tuple[np.ndarray, int]]:
    """Yield points, and how many half-spaces to ask for at each: those of exact ties, and the points that are known."""
    for x in planted.others:
        yield x, int(rng.choice([5, 20])) if rng.random() < BUNDLES else 1
    yield from points(rng, planted, problem)


def a_tolerance(rng: Generator, planted: Planted) -> float:
    """Return mostly the planted one, and else one that is smaller or larger, by a lot or by a rounding."""
    planned = planted.tolerance
    match rng.integers(12):
        case 0:
            return 0.0
        case 1:
            return planned * 2.0 ** int(rng.integers(-20, 21))
        case 2:
            return float(np.nextafter(planned, rng.choice([0.0, math.inf])))
    return planned


def a_share(rng: Generator, planted: Planted) -> float:
    """Return mostly the share that stands for the planted tolerance, up to a rounding, and else any."""
    planned = 1.0 - float(planted.epsilon / planted.gain) if planted.gain >= planted.epsilon else 0.5
    match rng.integers(8):
        case 0:
            return float(rng.random())
        case 1:
            return float(rng.choice([0.0, 1e-20, 0.5, 0.999999999, np.nextafter(1.0, 0.0)]))
        case 2 | 3:
            return float(min(np.nextafter(planned, rng.choice([0.0, 1.0])), 1.0))
    return planned


@kind("runs of near ties", each=METHODS, weight=3.0)
def planted_runs(trial: Round, method: str) -> None:
    """Run a method on a planted problem, interpreted, and compare what the result proves with the truth."""
    name = str(trial.rng.choice(CORNERS if method == "active-set" else list(SETS)))
    kinds = PATHS if method == "active-set" else KINDS
    with interpreted():
        planted = plant_near(trial.rng, name, largest=6, kinds=kinds)
        one_run(trial, planted, method, BUDGET, a_share(trial.rng, planted) if trial.rng.random() < SHARES else None)


@kind("paths", each=CORNERS, weight=3.0)
def planted_paths(trial: Round, name: str) -> None:
    """Follow the path of a planted problem, of exact or near ties, and compare each of its floors with the truth."""
    rng = trial.rng
    planted = (plant if rng.random() < 0.4 else plant_near)(rng, name, 6, PATHS)
    weights = None if rng.random() < 0.4 else (10.0 ** rng.uniform(-12.0, 12.0, 3)).tolist()
    script = f"{planted}\nfound = tiebreak.path(problem, {weights})"
    try:
        with interpreted(), deadline(SECONDS):
            found = tiebreak.path(planted.make(), weights)
    except Exception as error:
        trial.failed("path raised", error, script)
        return
    trial.tried(len(found.points))
    for false in false_along(rng, planted, found):
        trial.wrong(false, f"{script}\nprint(found, found.floors)")


@contextlib.contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Raise in what takes longer, where the system has an alarm."""

    def ring(*_: Any) -> None:
        raise TimeoutError(f"it has not ended after {seconds} seconds")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def false_along(rng: Generator, planted: Planted, found: Any) -> Iterator[str]:
    """Yield each claim of a path that is false."""
    g_least = planted.lower_least
    values = [(planted.upper.value(x), planted.lower.value(x)) for x in (planted.x, *planted.others)]
    for point in found.points:
        excess = planted.lower.value(point.x) - g_least
        if below(point.lower_gap_bound, excess, abs(excess) + abs(g_least)):
            yield shown("lower_gap_bound", point.lower_gap_bound, "<", excess, abs(excess) + abs(g_least))
        if math.isfinite(point.weight):
            sums = [f + Fraction(point.weight) * g for f, g in values]
            size = max(f + Fraction(point.weight) * abs(g) for f, g in values)
            if below(-point.floor, -min(sums), size):
                yield shown(f"the floor of f + λ g for λ = {point.weight!r}", point.floor, ">", min(sums), size)
    for tolerance in [0.0, planted.tolerance, *(a_tolerance(rng, planted) for _ in range(4))]:
        most = planted.truth(tolerance).most
        if most is not None and below(-found.floor(tolerance), -most, abs(most)):
            yield shown(f"path.floor({tolerance!r})", found.floor(tolerance), ">", most, abs(most))
    for what, claimed, true in (
        ("floors.lower", found.floors.lower, g_least),
        ("-floors.best_lower", -found.floors.best_lower, -g_least),
    ):
        if below(-claimed, -true, abs(true)):
            yield shown(what, claimed, ">", true, abs(true))
