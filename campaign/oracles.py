"""Linear minimisation, cuts and the oracles for proofs: against answers known without rounding, and against solvers.

A vector ν that is normal to Z at x* makes x* a minimiser of ⟨−ν, s⟩. With λ ≥ 0 and the cut ⟨a, s⟩ ≤ ⟨a, x*⟩ it is one of
⟨−ν − λ a, s⟩ where the cut holds, and the cut ⟨−ν, s⟩ ≤ ⟨−ν, x*⟩ touches Z: anything less misses it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from campaign.exact import dot
from campaign.planted import units_for
from campaign.recipes import Recipe, text
from campaign.sets import NO_UNITS, SETS, Place
from campaign.trials import Round, kind
from tiebreak import CutStatus
from tiebreak.domains import least_value, lmo, settle, spread

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "domains"))  # where the sets are stated for solvers
from cases import CASES
from solvers import stated

FEASIBLE, OPTIMAL = 1e-10, 1e-9  # relative accuracy of a cut that docs/sets.md promises
PLANTED, ASKED = 40, 25  # trials per round
SOLVER = 1e-6  # relative error that a solver may leave
EXTREMES = (0, 0, 0, 27, -27, 300, -300, 980, -1040)  # powers of two that c and a are multiplied by
BEGIN = "import numpy as np, tiebreak, tiebreak.domains\n"  # beginning of a script that repeats a finding
STATED = {case.name: case for case in CASES}


class Spot(NamedTuple):
    """A set in some units, a point of it, and what is normal there, in these units."""

    recipe: Recipe
    domain: Any
    x: np.ndarray
    place: Place
    units: np.ndarray

    def normal(self, rng: Generator) -> np.ndarray:
        """Return a vector ν with ⟨ν, s⟩ ≤ ⟨ν, x⟩ on the set."""
        return self.place.normal(rng) / self.units


def spots(trial: Round, name: str) -> Iterator[Spot]:
    """Yield random sets of a kind, of one dimension now and then."""
    rng = trial.rng
    for _ in range(PLANTED):
        place = SETS[name](rng, 1 if rng.random() < 0.1 else int(rng.integers(1, 13)))
        units, _ = units_for(rng, name, place)
        if name not in NO_UNITS and rng.random() < 0.05:
            units = units * 2.0 ** rng.choice([-300, 300])
        recipe = place.domain(units)
        try:
            domain = recipe.make()
        except Exception as error:
            trial.failed("the set cannot be made:", error, f"{BEGIN}Z = {recipe}")
            continue
        yield Spot(recipe, domain, units * place.x, place, units)


@kind("minima", each=SETS, weight=2.0)
def minima(trial: Round, name: str) -> None:
    """Linear functions with a known minimiser: what ``lmo`` attains, ``least_value`` proves and ``spread`` bounds."""
    for found in spots(trial, name):
        c = scaled(-found.normal(trial.rng), trial.rng)
        if c is None:
            continue
        trial.tried()
        script = f"{BEGIN}Z = {found.recipe}\nc = {text(c)}\natom = Z.lmo(c)\n"
        least = dot(c, found.x)
        atom = np.empty_like(c)
        lmo(found.domain, c, atom)
        size = size_of(found, c)
        if not found.domain.contains(atom, FEASIBLE):
            trial.wrong("lmo gives a point outside the set", script + "print(Z.contains(atom, 1e-10))")
        elif Fraction(dot(c, atom)) - least > Fraction(1e-12) * size + underflow(found):
            excess = float((dot(c, atom) - least) / size) if size else math.inf
            trial.wrong(f"lmo is not optimal: off by {excess:.1e}", script + f"print(c @ atom, 'is not', {float(least)!r})")
        proven = least_value(found.domain, c, atom)
        check = "print(tiebreak.domains.least_value(Z, c, atom))"
        if math.isnan(proven) or proven == math.inf or (proven > -math.inf and Fraction(proven) > least):
            trial.wrong(f"least_value {proven!r} > {float(least)!r}, the minimum", script + check)
        elif proven == -math.inf:
            trial.tried(0, silent=1)
        elif least - Fraction(proven) > Fraction(1e-6) * size + Fraction(1e-290) * (
            1 + Fraction(spread(found.domain, np.ones(c.size)))
        ):
            trial.wrong(f"least_value {proven!r} is far below {float(least)!r}, the minimum", script + check)
        e = np.abs(c)
        bound, reach = spread(found.domain, e), dot(e, np.abs(found.x))
        if math.isnan(bound) or (math.isfinite(bound) and Fraction(bound) < reach):
            trial.wrong(
                f"spread {bound!r} < {float(reach)!r}, at {text(found.x)}",
                script + "print(tiebreak.domains.spread(Z, abs(c)))",
            )


@kind("settling", each=SETS, weight=1.0)
def settling(trial: Round, name: str) -> None:
    """Points at the edge of what ``contains`` accepts: is there a point of Z as near as ``settle`` says?"""
    rng = trial.rng
    for found in spots(trial, name):
        x = pushed(rng, found)
        if x is None or not found.domain.contains(x):
            continue
        moved, off = x.copy(), np.empty_like(x)
        settled = settle(found.domain, moved, off)
        trial.tried(silent=int(not settled))
        script = f"{BEGIN}Z = {found.recipe}\nx = {text(x)}\noff = np.empty_like(x)\n"
        script += "print(tiebreak.domains.settle(Z, x, off), x, off)"
        if not settled:
            if np.isfinite(off).any():
                trial.wrong("settle says that nothing is known, and `off` is finite", script)
            continue
        for _ in range(8):
            nu = found.normal(rng)
            nearest = dot(nu, moved) - dot(np.abs(nu), off)
            if nearest > dot(nu, found.x):
                trial.wrong(f"no point of the set is as near as `off` says: look along {text(nu)}", script)
                break


def pushed(rng: Generator, found: Spot) -> np.ndarray | None:
    """Return a point outside, by rounding or by up to what is accepted."""
    direction = found.normal(rng) * found.units**2 if rng.random() < 0.7 else rng.standard_normal(found.x.size) * found.units
    if not direction.any() or not np.isfinite(direction).all():
        return found.x.copy()
    share = 2.0 ** -rng.integers(20, 54)
    while share > 2.0**-60 and not found.domain.contains(found.x + share * direction):
        share *= 0.5
    return found.x + share * direction


@kind("cuts", each=SETS, weight=2.0)
def planted_cuts(trial: Round, name: str) -> None:
    """Cuts whose solution is known: binding, touching, missing the set by a hair, in all units."""
    rng = trial.rng
    for found in spots(trial, name):
        nu, a = found.normal(rng), found.normal(rng)
        touching = rng.random() < 0.3
        a = -a if touching else direction(rng, found)
        weight = 2.0 ** int(rng.integers(-4, 5)) if rng.random() < 0.8 else 0.0
        c = -nu - weight * a
        if not exact_sum(c, nu, weight, a):
            continue
        c, a = scaled(c, rng), scaled(a, rng)
        if c is None or a is None:
            continue
        b = rounded(dot(a, found.x))
        if b is None:
            continue
        size_a, size_c = size_of(found, a), size_of(found, c)
        # Where a is orthogonal to all of Z, as an antisymmetric matrix is to symmetric ones, a hair is nothing.
        empty = touching and size_a > 0 and rng.random() < 0.5
        if empty:
            b -= float(max(size_a * Fraction(1e-8), 2 * underflow(found)))
        script = f"{BEGIN}Z = {found.recipe}\nc, a, b = {text(c)}, {text(a)}, {b!r}\n"
        script += "print(cut := Z.cut_lmo(c, a, b), c @ cut.point)\n"
        try:
            cut = found.domain.cut_lmo(c, a, b)
        except Exception as error:
            trial.failed("cut_lmo raised", error, script)
            continue
        trial.tried()
        said = wrong_cut(found, c, a, b, cut, None if empty else dot(c, found.x), size_c, size_a)
        if said:
            known = "no point satisfies it" if empty else f"the least is {float(dot(c, found.x))!r} at {text(found.x)}"
            trial.wrong(said, f"{script}# known: {known}")


def wrong_cut(
    found: Spot, c: np.ndarray, a: np.ndarray, b: float, cut: Any, least: Fraction | None, size_c: Fraction, size_a: Fraction
) -> str:
    """Return what is wrong with the answer to a cut whose least value is known, or None if no point satisfies it."""
    if not found.domain.contains(cut.point, FEASIBLE):
        return "the point lies outside the set"
    reach, hair = dot(a, cut.point) - Fraction(b), Fraction(FEASIBLE) * size_a + underflow(found)
    if least is None:
        return "" if cut.status is CutStatus.EMPTY else f"no point satisfies the cut, and its status is {cut.status.name}"
    if cut.status is CutStatus.EMPTY:
        return "" if reach <= hair else "the cut touches the set, and its point is elsewhere"
    if reach > hair:
        return f"the point violates the cut by {float(reach / size_a) if size_a else math.inf:.1e}"
    value, multiplier = dot(c, cut.point), cut.multiplier
    if not multiplier >= 0.0:
        return f"the multiplier is {multiplier}"
    allowed = Fraction(OPTIMAL) * size_c + underflow(found)
    if math.isfinite(multiplier):
        allowed += Fraction(multiplier) * (Fraction(OPTIMAL) * size_a + underflow(found))
    if value - least > allowed and math.isfinite(multiplier):
        return f"the point is not optimal: its value exceeds the least by {float((value - least) / allowed) * OPTIMAL:.1e}"
    return ""


@kind("cuts against solvers", each=STATED, weight=2.0)
def cuts_against_solvers(trial: Round, name: str) -> None:
    """Random cuts: feasible, optimal by weak duality, and as good as HiGHS or Clarabel say."""
    case, rng = STATED[name], trial.rng
    for _ in range(3):
        domain, d = case.make(rng, int(rng.integers(1, case.largest + 1)))
        model = stated(case, domain, d)
        for _ in range(ASKED // 3):
            c, a = vector(rng, d), vector(rng, d)
            low, high = case.minimum(domain, a), -case.minimum(domain, -a)
            b = low + float(rng.choice([rng.uniform(-0.2, 1.2), 0.0, 1.0])) * (high - low)
            trial.tried()
            cut, solved = domain.cut_lmo(c, a, b), model.solve(c, a, b)
            said = against(case, domain, c, a, b, cut, solved)
            if said:
                trial.wrong(
                    said, f"Z = tiebreak.{domain!r}\nc, a, b = {text(c)}, {text(a)}, {b!r}\nprint(Z.cut_lmo(c, a, b))"
                )


def against(case: Any, domain: Any, c: np.ndarray, a: np.ndarray, b: float, cut: Any, solved: Any) -> str:
    """Return in what an answer to a cut differs from a solver's, beyond the solver's own doubt."""
    size_a, size_c = (max(abs(case.minimum(domain, v)), abs(case.minimum(domain, -v))) for v in (a, c))
    low = case.minimum(domain, a)
    hair = 1e-7 * size_a + 1e-9  # what a solver may allow itself where nothing or little is left
    if case.violation(domain, cut.point) > FEASIBLE:
        return "the point lies outside the set"
    if cut.status is CutStatus.EMPTY:
        return "" if b <= low + 1e-10 * size_a else "the cut is called empty, and it is not"
    if a @ cut.point > b + 1e-10 * size_a + 1e-300:
        return "the point violates the cut"
    # c may be the same on all of the set, and then its size there is 0, but for rounding.
    rounding = float(np.abs(c) @ np.abs(cut.point)) * 1e-14
    allowed = OPTIMAL * (size_c + cut.multiplier * size_a) + rounding
    value = c @ cut.point
    if (
        math.isfinite(cut.multiplier)
        and value - (case.minimum(domain, c + cut.multiplier * a) - cut.multiplier * b) > allowed
    ):
        return "the multiplier does not prove that the point is optimal"
    if solved is None:
        return "" if b <= low + hair else "a solver finds no point, and the cut has one"
    if value > solved.value + solved.doubt + allowed:
        return f"a solver finds {solved.value!r}, less than {value!r}"
    # The point is feasible: what it is better by is the solver's own error.
    lowest = SOLVER * (size_c + solved.multiplier * size_a) + solved.doubt + rounding
    return "" if value >= solved.value - lowest else f"a solver finds {solved.value!r}, more than {value!r}"


def vector(rng: Generator, d: int) -> np.ndarray:
    """Return a random vector, with ties and zeros now and then."""
    match rng.integers(4):
        case 0:
            return rng.integers(-2, 3, d).astype(float)
        case 1:
            return rng.standard_normal(d) * (rng.random(d) < 0.5)
        case _:
            return rng.standard_normal(d)


def direction(rng: Generator, found: Spot) -> np.ndarray:
    """Return a vector of few digits in the units of a normal vector."""
    return rng.integers(-8, 9, found.x.size) / 8.0 / found.units


def exact_sum(c: np.ndarray, nu: np.ndarray, weight: float, a: np.ndarray) -> bool:
    """Whether c = −ν − weight · a without rounding."""
    return all(
        Fraction(p) == -Fraction(q) - Fraction(weight) * Fraction(r)
        for p, q, r in zip(c.tolist(), nu.tolist(), a.tolist(), strict=True)
    )


def scaled(c: np.ndarray, rng: Generator) -> np.ndarray | None:
    """Return a vector in another unit, near the ends of what numbers can be now and then; None if it is rounded there."""
    power = int(rng.choice(EXTREMES))
    found = np.ldexp(c, power)
    return found if np.isfinite(found).all() and np.array_equal(np.ldexp(found, -power), c) else None


def rounded(number: Fraction) -> float | None:
    """Return a number as a float, or None if it is not one."""
    try:
        return float(number) if Fraction(float(number)) == number else None
    except OverflowError:
        return None


def size_of(found: Spot, c: np.ndarray) -> Fraction:
    """Return about how large ⟨c, s⟩ gets on the set."""
    found_atoms = (found.domain.lmo(np.sign(c) * sign / found.units) for sign in (-1.0, 1.0))
    points = [found.x, *found_atoms]
    return max(dot(np.abs(c), np.abs(x)) for x in points)


def underflow(found: Spot) -> Fraction:
    """Return how much ⟨c, s⟩ changes if each entry of c does by the smallest number there is."""
    return 4 * Fraction(5e-324) * (found.x.size + 8 + Fraction(spread(found.domain, np.ones(found.x.size))))
