"""Near ties, g ≤ g* + ε, whose solution is known without rounding.

Let z be a point of Z where g has its least value, planted as for exact ties. Let x̂ be one with −∇f(x̂) = λ ∇g(x̂) + ν, λ ≥ 0
and ν normal to Z at x̂. Then x̂ minimises f + λ g over Z, and no point of Z with g ≤ g(x̂) has a smaller f: with ε = g(x̂) − g*,
f*(ε) = f(x̂). For other tolerances, points that are within them bound f* from above, and for smaller ones f(x̂) bounds it from
below. One of z and x̂ is the point of the set whose normal vectors are known; the other lies between it and a second point.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from campaign.exact import Exact
from campaign.others import another
from campaign.planted import KINDS, ONE_UNIT, NotExact, Planted, Term, Total, ensure, function, units_for
from campaign.sets import SETS

NEAREST = 20  # halvings of the way between the two points, at most


def plant_near(rng: Generator, name: str, largest: int = 9, kinds: tuple[str, ...] = KINDS) -> Planted:
    """Return a random problem with near ties on a set; ``planted.x`` is x̂, and its others are z and further points."""
    found = None
    while found is None:
        with contextlib.suppress(NotExact):
            found = _plant_near(rng, name, int(rng.integers(1, largest + 1)), kinds)
    return found


def _plant_near(rng: Generator, name: str, size: int, kinds: tuple[str, ...]) -> Planted:
    place = SETS[name](rng, size)
    units, mixed = units_for(rng, name, place)
    possible = [kind for kind in kinds if not (mixed and kind in ONE_UNIT)]
    upper_kind, lower_kind = (str(rng.choice(possible)) for _ in range(2))
    second = another(rng, place.domain(np.ones(place.x.size)), place.x)
    between = mean(place.x, second, 2.0 ** -int(rng.choice([0, 0, 1, 2, rng.integers(NEAREST + 1)])))
    inside = np.zeros(place.x.size)
    if rng.random() < 0.5:
        x, lowest, pull, wanted = place.x, between, place.normal(rng), inside
    else:
        x, lowest, pull, wanted = between, place.x, inside, place.normal(rng)
    lower = function(rng, lower_kind, lowest, wanted, units)
    slope = 2.0 ** int(rng.integers(-3, 4)) * few_digits(slope_of(lower, units * x, units))
    upper = function(rng, upper_kind, x, mean(2.0 * slope, 2.0 * pull, 0.5), units)
    outward = (place.normal(rng) if x is place.x else second - x) * units
    others = tuple(units * point for point in (lowest, second, mean(x, lowest, 0.5), place.x))
    x, f, g = units * x, upper.value(units * x), lower.value(units * lowest)
    epsilon = lower.value(x) - g
    ensure(epsilon > 0)
    return Planted(place.domain(units), upper, lower, x, f, g, units, (upper_kind, lower_kind), outward, others, epsilon)


def mean(x: np.ndarray, y: np.ndarray, share: float) -> np.ndarray:
    """Return (1 − share) x + share y, or raise if it has to be rounded."""
    found = x + share * (y - x)
    first, second, third = (Exact.of(each).fractions() for each in (x, y, found))
    ensure([c == a + Fraction(share) * (b - a) for a, b, c in zip(first, second, third, strict=True)])
    return found


def slope_of(total: Total, x: np.ndarray, units: np.ndarray) -> list[Fraction]:
    """Return ∇F(x) in units of one, or a positive multiple of it, which is all that is exact for logistic losses."""
    terms = [[factor * entry for entry in gradient_of(term, x)] for factor, term in total.terms]
    return [Fraction(unit) * sum(entries) for unit, *entries in zip(units.tolist(), *terms, strict=True)]


def gradient_of(term: Term, x: np.ndarray) -> list[Fraction]:
    """Return the gradient of one function, up to a positive factor if it is logistic."""
    residuals = (term.rows @ Exact.of(x)) - term.targets
    rows = [Exact(row, term.rows.exponent).fractions() for row in term.rows.integers]
    if term.loss == "Logistic":
        # The rows are one, and perhaps its opposite: the loss rises against it, or away from a margin of zero.
        ensure(all(row in (rows[0], [-entry for entry in rows[0]]) for row in rows))
        opposite = any(row != rows[0] for row in rows)
        ensure(not opposite or len(rows) == 2)
        margin = residuals.fractions()[0]
        sign = (margin > 0) - (margin < 0) if opposite else -1
        return [sign * entry for entry in rows[0]]
    pulls = [weight * derivative(term, r) for weight, r in zip(term.weights, residuals.fractions(), strict=True)]
    columns: Iterable[tuple[Fraction, ...]] = zip(*rows, strict=True)
    return [sum((p * a for p, a in zip(pulls, column, strict=True)), Fraction(0)) / term.divisor for column in columns]


def derivative(term: Term, residual: Fraction) -> Fraction:
    """Return that of a loss at a residual."""
    if term.loss == "Square":
        return residual
    return max(residual, Fraction(0)) if term.loss == "Orthant" else min(max(residual, -term.delta), term.delta)


def few_digits(numbers: list[Fraction]) -> np.ndarray:
    """Return a positive multiple of a vector as floating-point numbers of a size of about one, or raise if it has none."""
    whole = math.lcm(*(number.denominator for number in numbers))
    common = math.gcd(*(int(number * whole) for number in numbers)) or 1
    integers = [int(number * whole) // common for number in numbers]
    most = max(map(abs, integers))
    ensure(0 < most < 2**40)
    return np.array(integers, dtype=float) / 2.0 ** most.bit_length()
