"""Errors of rounding that surveys state, against rational arithmetic: any data, of any size, near a point of any size."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse
from numpy.random import Generator

import tiebreak
from campaign.exact import Exact
from campaign.recipes import text
from campaign.trials import Round, kind

TRIES = 20  # objectives per round
MOST_ROWS = 40
FORMS = ("LeastSquares", "sparse", "Scaled", "SummedSquares", "weighted sums", "SquaredNorm")


class Rows:
    """Rows of numbers with all their digits, and the mean of squares over them."""

    def __init__(self, rng: Generator, form: str) -> None:
        n, d = int(rng.integers(1, MOST_ROWS)), int(rng.integers(1, 9))
        self.form, self.factor = form, 10.0 ** rng.uniform(-9.0, 9.0)
        columns = 10.0 ** (rng.uniform(-9.0, 9.0, d) if rng.random() < 0.5 else np.full(d, rng.uniform(-9.0, 9.0)))
        if form == "SquaredNorm":
            n, self.A = d, np.eye(d)
        else:
            self.A = rng.standard_normal((n, d)) * columns * (rng.random((n, d)) < 0.8)
        self.weights = 10.0 ** rng.uniform(-6.0, 6.0, n) if form == "weighted sums" else np.ones(n)
        self.x = rng.standard_normal(d) / columns
        noise = 10.0 ** rng.uniform(-18.0, 3.0)  # from data that fit but for rounding to data that do not
        self.b = self.A @ self.x + noise * rng.standard_normal(n)
        self.cuts = sorted(rng.integers(1, n + 1, 2).tolist())

    @property
    def blocks(self) -> list[tuple[np.ndarray, ...]]:
        """The rows as they come, in up to three blocks."""
        columns = (self.A, self.b, self.weights) if self.form == "weighted sums" else (self.A, self.b)
        ends = sorted({*self.cuts, len(self.b)})
        return [tuple(column[a:b] for column in columns) for a, b in zip([0, *ends], ends, strict=False)]

    def make(self) -> Any:
        """Return them as an objective."""
        match self.form:
            case "SquaredNorm":
                return tiebreak.SquaredNorm(self.b)
            case "SummedSquares" | "weighted sums":
                return tiebreak.SummedSquares(self.blocks)
            case "sparse":
                return tiebreak.LeastSquares(scipy.sparse.csr_array(self.A), self.b)
        objective = tiebreak.LeastSquares(self.A, self.b)
        return self.factor * objective if self.form == "Scaled" else objective

    def true(self, x: np.ndarray) -> tuple[Fraction, list[Fraction]]:
        """Return value and gradient at x."""
        residuals = ((Exact.of(self.A) @ Exact.of(x)) - Exact.of(self.b)).fractions()
        weights = [Fraction(weight) for weight in self.weights]
        share = (Fraction(self.factor) if self.form == "Scaled" else Fraction(1)) / (
            1 if self.form == "SquaredNorm" else sum(weights)
        )
        pulls = [share * weight * r for weight, r in zip(weights, residuals, strict=True)]
        columns = [Exact.of(column).fractions() for column in self.A.T]
        value = sum((pull * r for pull, r in zip(pulls, residuals, strict=True)), Fraction(0)) / 2
        return value, [sum((p * a for p, a in zip(pulls, column, strict=True)), Fraction(0)) for column in columns]


@kind("surveys", each=FORMS, weight=2.0)
def surveys(trial: Round, form: str) -> None:
    """Survey objectives at points and around them, and compare each number with the truth."""
    for _ in range(TRIES):
        state = trial.rng.bit_generator.state
        for false in one_survey(trial.rng, form):
            script = f"""
import numpy as np
from campaign.surveys import one_survey
rng = np.random.default_rng()
rng.bit_generator.state = {state!r}
print(*one_survey(rng, {form!r}), sep="\\n")
"""
            trial.wrong(false, script)
        trial.tried()


def one_survey(rng: Generator, form: str) -> Iterator[str]:
    """Survey one objective; yield what is false."""
    rows = Rows(rng, form)
    objective = rows.make()
    x = rows.x * (1.0 + 10.0 ** rng.uniform(-17.0, 1.0) * rng.standard_normal(rows.x.size))
    off = np.abs(x) * 10.0 ** rng.uniform(-17.0, -6.0)
    moved = x + rng.choice([-0.9, 0.0, 0.9], x.size) * off
    near = np.where([abs(Fraction(a) - Fraction(b)) <= Fraction(c) for a, b, c in zip(moved, x, off, strict=True)], moved, x)
    yield from false_numbers("survey(x)", objective.survey(x), rows.true(x), x)
    around = objective.survey(x, off)
    for point in (x, near):
        yield from false_numbers("survey(x, off)", around, rows.true(point), point)
    sharp = objective.sharp(x, off)
    yield from false_numbers("sharp(x, off)", sharp.survey, rows.true(x), x)
    value = rows.true(near)[0]
    if abs(Fraction(sharp.survey.value) - value) > Fraction(sharp.survey.value_error) + Fraction(sharp.drift):
        yield f"sharp(x, off) is off by more than its error and drift at {text(near)}"


def false_numbers(what: str, found: Any, true: tuple[Fraction, list[Fraction]], x: np.ndarray) -> Iterator[str]:
    """Yield each number that is wrong by more than is said of it."""
    named = [("value", found.value, found.value_error, true[0])]
    numbers = zip(found.gradient.tolist(), found.gradient_error.tolist(), true[1], strict=True)
    named += [(f"gradient[{j}]", *number) for j, number in enumerate(numbers)]
    for name, claimed, error, right in named:
        off = abs(Fraction(claimed) - right)
        if off > Fraction(error):
            yield f"the {name} of {what} is off by {float(off)!r} at {text(x)}, and its error is said to be {error!r}"
