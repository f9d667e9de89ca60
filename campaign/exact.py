"""Arithmetic without rounding on arrays of floating-point numbers: each is an integer times a power of two."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

DIGITS = 60  # digits of logarithms and exponentials, which alone are not exact
DOUBT = Fraction(1, 10**50)  # relative error that they may have
CONTEXT = decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


class Exact(NamedTuple):
    """An array of integers and the power of two that they are multiplied by."""

    integers: np.ndarray  # of Python's integers
    exponent: int

    @classmethod
    def of(cls, x: Any) -> Exact:
        """Return the numbers of an array as they are."""
        mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
        integers = (mantissa * 2.0**53).astype(np.int64)
        low = int(exponent[integers != 0].min()) if integers.any() else 0
        shifts = np.where(integers != 0, exponent - low, 0)
        return cls(np.left_shift(integers.astype(object), shifts.astype(object)), low - 53)

    def __matmul__(self, other: Exact) -> Exact:
        return Exact(np.asarray(self.integers @ other.integers, dtype=object), self.exponent + other.exponent)

    def __sub__(self, other: Exact) -> Exact:
        low = min(self.exponent, other.exponent)
        first, second = (each.integers * 2 ** (each.exponent - low) for each in (self, other))
        return Exact(np.asarray(first - second, dtype=object), low)

    def fractions(self) -> list[Fraction]:
        """Return the numbers as fractions."""
        return [shifted(integer, self.exponent) for integer in np.atleast_1d(self.integers)]


def shifted(integer: int, exponent: int) -> Fraction:
    """Return integer · 2^exponent."""
    return Fraction(int(integer) << exponent) if exponent >= 0 else Fraction(int(integer), 1 << -exponent)


def dot(a: Any, x: Any) -> Fraction:
    """Return ⟨a, x⟩."""
    return (Exact.of(a) @ Exact.of(x)).fractions()[0]


def log_loss(margin: Fraction) -> Fraction:
    """Return log(1 + exp(−margin)) to many digits."""
    with decimal.localcontext(CONTEXT):
        number = decimal.Decimal(margin.numerator) / decimal.Decimal(margin.denominator)
        decay = (-abs(number)).exp()
        # log(1 + decay): where decay is tiny the sum would lose it
        value = (
            (1 + decay).ln() if decay > decimal.Decimal(10) ** (-DIGITS // 3) else decay - decay * decay / 2 + decay**3 / 3
        )
        return Fraction(value + max(-number, decimal.Decimal(0)))
