"""Bilevel problems whose solution is known without rounding.

At a point x* of Z with normal vectors ν, ν′ let g have −∇g(x*) = ν, and let its rows A determine g, so that x minimises g
over Z if and only if A x = A x*. Then g* = g(x*). Let f be convex with −∇f(x*) = ν′ + Aᵀμ: for every minimiser x of g,
f(x) ≥ f(x*) + ⟨∇f(x*), x − x*⟩ ≥ f(x*), because ⟨Aᵀμ, x − x*⟩ = 0 and ⟨ν′, x − x*⟩ ≤ 0. So f* = f(x*).

A loss of a linear model has this gradient if one of its rows is the vector wanted, with a residual of the right sign, and
all others fit. Sums of such functions are such functions.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.random import Generator

import tiebreak
from campaign import exact
from campaign.exact import Exact
from campaign.recipes import Recipe, text
from campaign.sets import NO_UNITS, OWN_UNITS, PARTS, SETS, grid

POWERS = (0, 0, 27, -27)  # powers of two that are units: about 10^±8
LOSSES = ("LeastSquares", "Huber", "Logistic", "ConeDistance")
KINDS = (*LOSSES, "SquaredNorm", "sparse", "weighted", "Scaled", "Sum", "FiniteSum", "SummedSquares")
ONE_UNIT = ("SquaredNorm", "Sum")  # objectives that can be planted where all coordinates have one unit
TALL = 0.25  # share of the linear models with more rows than variables, which often are strongly convex


class NotExact(Exception):
    """Numbers had too many digits: another problem is to be drawn."""


class Term(NamedTuple):
    """A function of which value and minimisers are known: factor · (the mean of a loss over rows)."""

    recipe: Recipe
    loss: str
    rows: Exact
    targets: Exact
    weights: list[int]
    divisor: Fraction
    delta: Fraction
    matrix: np.ndarray  # whose product with x is the same at all minimisers

    def value(self, x: np.ndarray) -> Fraction:
        """Return the function at x."""
        residuals = (self.rows @ Exact.of(x)) - self.targets
        if self.loss == "Square":
            total = sum(weight * r * r for weight, r in zip(self.weights, residuals.integers, strict=True))
            return exact.shifted(int(total), 2 * residuals.exponent) / (2 * self.divisor)
        numbers = zip(self.weights, residuals.fractions(), strict=True)
        return sum((weight * self._loss(r) for weight, r in numbers), Fraction(0)) / self.divisor

    def _loss(self, residual: Fraction) -> Fraction:
        if self.loss == "Logistic":
            return exact.log_loss(residual)
        if self.loss == "Orthant":
            return max(residual, Fraction(0)) ** 2 / 2
        clipped = min(max(residual, -self.delta), self.delta)
        return clipped * (residual - clipped / 2)


class Total(NamedTuple):
    """A positive combination of such functions."""

    recipe: Any
    terms: tuple[tuple[Fraction, Term], ...]

    def value(self, x: np.ndarray) -> Fraction:
        """Return the function at x."""
        return sum((factor * term.value(x) for factor, term in self.terms), Fraction(0))

    @property
    def matrix(self) -> np.ndarray:
        """The rows of all terms."""
        return np.vstack([term.matrix for _, term in self.terms])


class Combination(Recipe):
    """factor · first + …, as an expression."""

    def __init__(self, factors: list[float], recipes: list[Recipe]) -> None:
        super().__init__("Sum")
        self.factors, self.recipes = factors, recipes

    def make(self) -> Any:
        return sum(factor * recipe.make() for factor, recipe in zip(self.factors, self.recipes, strict=True))

    def __str__(self) -> str:
        return " + ".join(f"{factor!r} * {recipe}" for factor, recipe in zip(self.factors, self.recipes, strict=True))


class Sparse(Recipe):
    """A least-squares loss of a sparse matrix."""

    def make(self) -> Any:
        return tiebreak.LeastSquares(scipy.sparse.csr_array(self.args[0]), self.args[1])

    def __str__(self) -> str:
        return f"tiebreak.LeastSquares(scipy.sparse.csr_array({text(self.args[0])}), {text(self.args[1])})"


class Summed(Recipe):
    """The same loss of rows that are summed up, in two blocks if there are as many rows, and with weights or without."""

    @property
    def blocks(self) -> list[tuple[np.ndarray, ...]]:
        """The rows as they come."""
        half = (len(self.args[1]) + 1) // 2
        whole = [tuple(column[rows] for column in self.args) for rows in (slice(half), slice(half, None))]
        return [block for block in whole if len(block[1])]

    def make(self) -> Any:
        return tiebreak.SummedSquares(self.blocks)

    def __str__(self) -> str:
        return f"tiebreak.SummedSquares([{', '.join(map(text, self.blocks))}])"


class Rounded:
    """The mean squared error as a Python function whose numbers are right to the last digit.

    That is what proofs assume of functions that they cannot look into: a relative error of each number.
    """

    def __init__(self, A: np.ndarray, b: np.ndarray) -> None:
        self.A, self.b = A, b

    def __call__(self, x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        rows, count = self.A[indices], len(indices)
        residuals = (Exact.of(rows) @ Exact.of(x)) - Exact.of(self.b[indices])
        value = sum(r * r for r in residuals.fractions()) / (2 * count)
        gradient = (Exact.of(rows.T) @ residuals).fractions()
        return float(value), np.array([float(entry / count) for entry in gradient])


class InPython(Recipe):
    """A least-squares loss of dense rows, computed by a Python function."""

    def make(self) -> Any:
        A, b = self.args
        return tiebreak.FiniteSum(*A.shape, Rounded(A, b), convex=True)

    def __str__(self) -> str:
        A, b = self.args
        return f"tiebreak.FiniteSum(*{A.shape}, campaign.planted.Rounded({text(A)}, {text(b)}), convex=True)"


class Truth(NamedTuple):
    """What is known of f*(ε) for a tolerance ε."""

    most: Fraction | None  # f*(ε) is at most this; None if nothing is known
    least: Fraction | None  # f*(ε) is at least this
    level: Fraction  # g* + ε
    within: tuple[np.ndarray, ...]  # points with g ≤ g* + ε


class Planted(NamedTuple):
    """A problem with its solution."""

    domain: Recipe
    upper: Total
    lower: Total
    x: np.ndarray
    upper_least: Fraction  # f*
    lower_least: Fraction  # g*
    units: np.ndarray
    kinds: tuple[str, str]
    normal: np.ndarray  # an outward direction at x, in the units of x; may be zero
    others: tuple[np.ndarray, ...] = ()  # further points of the set, in the same exact numbers
    epsilon: Fraction = Fraction(0)  # f* is that of g ≤ g* + ε for this ε

    @property
    def tolerance(self) -> float:
        """ε, rounded up."""
        rounded = float(self.epsilon)
        return rounded if Fraction(rounded) >= self.epsilon else float(np.nextafter(rounded, np.inf))

    def make(self) -> tiebreak.Problem:
        """Return it as a problem of the library."""
        return tiebreak.Problem(self.upper.recipe.make(), self.lower.recipe.make(), self.domain.make(), self.tolerance)

    @property
    def gain(self) -> Fraction:
        """How much larger than its minimum g is where shares are measured from."""
        return self.lower.value(self.domain.make().centroid(self.x.size)) - self.lower_least

    def truth(self, tolerance: float, keep: float = 1.0) -> Truth:
        """Return what is known for any tolerance, or share: points that are within it are not better than f* of it."""
        epsilon = Fraction(tolerance) if keep == 1.0 else (1 - Fraction(keep)) * max(self.gain, Fraction(0))
        level = self.lower_least + epsilon
        within = tuple(point for point in (self.x, *self.others) if self.lower.value(point) <= level)
        most = min((self.upper.value(point) for point in within), default=None)
        return Truth(most, self.upper_least if epsilon <= self.epsilon else None, level, within)

    def __str__(self) -> str:
        parts = [f"upper={self.upper.recipe}", f"lower={self.lower.recipe}", f"domain={self.domain}"]
        parts += [f"tolerance={self.tolerance!r}"] if self.epsilon else []
        head = "import numpy as np, scipy.sparse, tiebreak, campaign.planted\n"
        return head + "problem = tiebreak.Problem(\n    " + ",\n    ".join(parts) + ",\n)"


def plant(rng: Generator, name: str, largest: int = 9, kinds: tuple[str, ...] = KINDS) -> Planted:
    """Return a random problem on a set, of some kinds of objectives."""
    found = None
    while found is None:
        with contextlib.suppress(NotExact):
            found = _plant(rng, name, int(rng.integers(1, largest + 1)), kinds)
    return found


def _plant(rng: Generator, name: str, size: int, kinds: tuple[str, ...]) -> Planted:
    place = SETS[name](rng, size)
    units, mixed = units_for(rng, name, place)
    x = units * place.x
    wanted = place.normal(rng)
    possible = [kind for kind in kinds if not (mixed and kind in ONE_UNIT)]
    lower_kind, upper_kind = (str(rng.choice(possible)) for _ in range(2))
    if place.parts and rng.random() < 0.3:
        lower_kind = "Parts"
    if place.parts and rng.random() < 0.3:
        upper_kind = "Parts"
    lower = function(rng, lower_kind, place.x, wanted, units, place.parts)
    own = lower.matrix * units  # its rows, as those of a problem in units of one
    # few digits, as numbers that no product rounds must have
    scale = np.abs(own).max(axis=1, keepdims=True)
    rows = own / 2.0 ** np.ceil(np.log2(np.where(scale > 0.0, scale, 1.0)))
    pull = place.normal(rng)
    if upper_kind != "Parts":  # each of which has a factor of its own, which a normal vector can have
        pull = pull + rng.integers(-2, 3, len(rows)) @ rows
    upper = function(rng, upper_kind, place.x, pull, units, place.parts)
    outward = place.normal(rng) * units
    return Planted(
        place.domain(units),
        upper,
        lower,
        x,
        upper.value(x),
        lower.value(x),
        units,
        (upper_kind, lower_kind),
        outward,
    )


def units_for(rng: Generator, name: str, place: Any) -> tuple[np.ndarray, bool]:
    """Return the unit of each coordinate, and whether they differ."""
    d = place.x.size
    if name in NO_UNITS:
        return np.ones(d), False
    if name in OWN_UNITS and rng.random() < 0.4:
        return 2.0 ** rng.integers(-27, 28, d), d > 1
    if place.parts and rng.random() < 0.4:
        return np.repeat(2.0 ** rng.integers(-27, 28, len(place.parts)), place.parts), True
    return np.full(d, 2.0 ** rng.choice(POWERS)), False


def function(
    rng: Generator, kind: str, x: np.ndarray, wanted: np.ndarray, units: np.ndarray, parts: tuple[int, ...] = ()
) -> Total:
    """Return a function F with −∇F(x) a positive multiple of the vector wanted, or zero; x and it in units of one."""
    factor = 2.0 ** int(rng.choice(POWERS))
    match kind:
        case "SquaredNorm":
            term = squared_norm(x, wanted, units)
            return Total(term.recipe, ((Fraction(1), term),))
        case "Scaled":
            term = linear(rng, "LeastSquares", x, wanted, units, factor=1.0)
            return Total(Combination([factor], [term.recipe]), ((Fraction(factor), term),))
        case "Sum":
            first = linear(rng, "LeastSquares", x, wanted, units, factor=1.0)
            second, share = squared_norm(x, wanted, units), factor / float(units[0]) ** 2
            recipe = Combination([factor, share], [first.recipe, second.recipe])
            return Total(recipe, ((Fraction(factor), first), (Fraction(share), second)))
        case "Parts":
            return of_parts(rng, x, wanted, units, parts)
        case "FiniteSum":
            term = linear(rng, "LeastSquares", x, wanted, units, factor)
            return Total(InPython("FiniteSum", *term.recipe.args), ((Fraction(1), term),))
    term = linear(rng, kind, x, wanted, units, factor)
    return Total(term.recipe, ((Fraction(1), term),))


def of_parts(rng: Generator, x: np.ndarray, wanted: np.ndarray, units: np.ndarray, parts: tuple[int, ...]) -> Total:
    """Return a sum of functions of one part of a product each."""
    stops = np.cumsum(parts)
    terms, recipes = [], []
    for name, start, stop in zip(PARTS, stops - parts, stops, strict=True):
        own = slice(start, stop)
        term = linear(rng, "LeastSquares", x[own], wanted[own], units[own], factor=1.0)
        rows = np.zeros((len(term.matrix), x.size))
        rows[:, own] = term.matrix
        terms.append((Fraction(1), term._replace(rows=Exact.of(rows), matrix=rows)))
        recipes.append(Recipe("OnPart", term.recipe, name))
    return Total(Combination([1.0] * len(recipes), recipes), tuple(terms))


def squared_norm(x: np.ndarray, wanted: np.ndarray, units: np.ndarray) -> Term:
    """Return ½ ‖x − c‖² with c − x the vector wanted, in units of x."""
    d = x.size
    center = units * (x + wanted)
    ensure(center / units - x == wanted)
    identity = np.eye(d)
    return Term(
        Recipe("SquaredNorm", center),
        "Square",
        Exact.of(identity),
        Exact.of(center),
        [1] * d,
        Fraction(1),
        Fraction(0),
        identity,
    )


def linear(rng: Generator, kind: str, x: np.ndarray, wanted: np.ndarray, units: np.ndarray, factor: float) -> Term:
    """Return the mean of a loss over rows: the first is the vector wanted, the others fit."""
    if kind == "Logistic":
        return logistic(rng, x, wanted, units)
    if kind == "ConeDistance":
        return orthant(rng, x, wanted, units, factor)
    d = x.size
    n = int(rng.integers(d, 2 * d + 2) if rng.random() < TALL else rng.integers(1, max(2, d)))
    rows = np.vstack([wanted if wanted.any() else grid(rng, d), grid(rng, (n - 1, d)) * (rng.random((n - 1, d)) < 0.8)])
    excess = 2.0 ** int(rng.integers(-8, 9)) if wanted.any() else 0.0
    if n > 1 and rng.random() < 0.2:  # two rows that are the same, or opposite ones
        rows[-1] = rng.choice([-1.0, 1.0]) * rows[-1 - int(rng.integers(1, n))] if n > 2 else 0.0
    targets = product_of(rows, x) + np.r_[excess, np.zeros(n - 1)]
    ensure(targets - np.r_[excess, np.zeros(n - 1)] == product_of(rows, x))
    order = rng.permutation(n)
    A = factor * rows[order] / units
    b = factor * targets[order]
    weights, divisor = [1] * n, Fraction(n)
    delta, loss, name = Fraction(0), "Square", "LeastSquares"
    recipe = Recipe(name, A, b)
    if kind == "sparse":
        recipe = Sparse(name, A, b)
    elif kind == "Huber":
        width = factor * 2.0 ** int(rng.integers(-8, 9))
        recipe, loss, delta = Recipe("Huber", A, b, width), "Huber", Fraction(width)
    elif kind == "SummedSquares" and rng.random() < 0.5:
        recipe = Summed(kind, A, b)
    elif kind in ("weighted", "SummedSquares"):
        # pairs around 2, so that their mean is a power of two
        odd = rng.integers(0, 2, n // 2)
        weights = [*(2 - odd).tolist(), *(2 + odd).tolist(), *([2] * (n % 2))]
        given = (A, b, np.array(weights, dtype=float))
        recipe = Recipe(name, *given) if kind == "weighted" else Summed(kind, *given)
        divisor = Fraction(2 * n)
    return Term(recipe, loss, Exact.of(A), Exact.of(b), weights, divisor, delta, A)


def logistic(rng: Generator, x: np.ndarray, wanted: np.ndarray, units: np.ndarray) -> Term:
    """Return a mean logistic loss: the vector wanted of label 1, and rows orthogonal to x that come with both labels."""
    rows = [wanted] if wanted.any() else []
    labels = [1.0] * len(rows)
    for _ in range(int(rng.integers(0 if rows else 1, 3))):
        i, j = rng.integers(x.size, size=2)
        row = np.zeros(x.size)
        if i != j:
            row[i], row[j] = x[j], -x[i]
        rows += [row, row]
        labels += [1.0, -1.0]
    A, y = np.array(rows), np.array(labels)
    ensure(product_of(A[1:] if wanted.any() else A, x) == 0.0)
    size = np.abs(A @ x).max()
    A = A / 2.0 ** max(0, int(np.ceil(np.log2(size))) - 5 if size > 0.0 else 0) / units  # margins up to 32
    order = rng.permutation(len(y))
    A, y = A[order], y[order]
    signed = Exact.of(y[:, None] * A)
    return Term(
        Recipe("Logistic", A, y),
        "Logistic",
        signed,
        Exact.of(np.zeros(len(y))),
        [1] * len(y),
        Fraction(len(y)),
        Fraction(0),
        A,
    )


def orthant(rng: Generator, x: np.ndarray, wanted: np.ndarray, units: np.ndarray, factor: float) -> Term:
    """Return the distance to constraints: one is violated and pulls along the vector wanted, the others hold."""
    n, d = int(rng.integers(1, 4)), x.size
    rows = np.vstack([-wanted, grid(rng, (n, d))])
    excess = np.r_[2.0 ** int(rng.integers(-8, 9)), -rng.integers(0, 2, n) / 4.0]  # some of the others are tight
    if not wanted.any():
        rows, excess = rows[1:], excess[1:]
    offsets = excess - product_of(rows, x)
    ensure(offsets - excess == -product_of(rows, x))
    H, h = factor * rows / units, factor * offsets
    recipe = Recipe("ConeDistance", H[:, None, :], h[:, None], "orthant")
    count = len(h)
    fixed = H[:1] if wanted.any() else np.zeros((1, d))  # at minimisers the others need not be what they are at x
    return Term(recipe, "Orthant", Exact.of(H), Exact.of(-h), [1] * count, Fraction(count), Fraction(0), fixed)


def product_of(rows: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return A x, or raise if it has to be rounded."""
    whole = (Exact.of(rows) @ Exact.of(x)).fractions()
    rounded = np.array([float(number) for number in whole])
    ensure([Fraction(number) == other for number, other in zip(rounded, whole, strict=True)])
    return rounded


def ensure(exactly: Any) -> None:
    """Raise if something that must be exact is not."""
    if not np.all(exactly):
        raise NotExact
