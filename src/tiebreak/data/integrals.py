"""Integral equations of the first kind, made into linear equations: Phillips, Foxgood and Baart.

The test problems of Hansen, Regularization Tools: a Matlab package for analysis and solution of discrete ill-posed problems,
Numerical Algorithms 6, 1994. The papers on simple bilevel optimisation take them since Beck and Sabach, A first order method
for finding minimal norm-like solutions of convex optimization problems, Mathematical Programming 147, 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tiebreak.engine import checks


class Equation(NamedTuple):
    """Linear equations A x = b, and a solution that is known."""

    A: np.ndarray  # n × n
    b: np.ndarray  # A x
    x: np.ndarray  # the values of the function that solves the integral equation, none of them negative


class _Integral(NamedTuple):
    """∫ kernel(s, t) solution(t) dt = right side(s)."""

    kernel: Callable[[np.ndarray, np.ndarray], np.ndarray]
    solution: Callable[[np.ndarray], np.ndarray]
    s: tuple[float, float]
    t: tuple[float, float]


def integral_equation(name: str, n: int = 1000) -> Equation:
    r"""Return one of three integral equations of the first kind, :math:`\int K(s, t)\, x(t)\, dt = b(s)`, as n equations.

    Singular values fall quickly. With n = 1000, 30 (``foxgood``) and 10 (``baart``) are above rounding, so that many x solve
    the equations up to rounding; those of ``phillips`` fall to 6e-11 of the largest. Usually the solution of least norm is
    asked for, with x ≥ 0.

    ============ ============================ ======== ================== ===========
    name         K(s, t)                      x(t)     s                  t
    ============ ============================ ======== ================== ===========
    ``phillips`` φ(s − t)                     φ(t)     [−6, 6]            [−6, 6]
    ``foxgood``  √(s² + t²)                   t        [0, 1]             [0, 1]
    ``baart``    exp(s cos t)                 sin t    [0, π/2]           [0, π]
    ============ ============================ ======== ================== ===========

    Here φ(u) = 1 + cos(π u / 3) for \|u\| < 3, and 0 elsewhere.

    Kernels, solutions and intervals are those of Hansen's Regularization Tools. The discretisation is the midpoint rule for
    all three, A_ij = K(s_i, t_j) h with h the distance of the t_j, and b = A x, so that x solves the equations exactly.
    Hansen's ``foxgood`` has the same A. His ``phillips`` and ``baart`` are Galerkin's method with orthonormal box functions,
    whose A are, up to O(h²), this one and this one divided by √2, and whose x and b are multiplied by the roots of the
    distances. His b are values, or means over intervals, of the function b(s), so that x solves his equations but for the
    error of the discretisation.

    Parameters
    ----------
    name : {"phillips", "foxgood", "baart"}
    n : int
        Equations, and unknowns; 2 or more.

    Returns
    -------
    Equation
        ``A``, ``b`` and ``x``.

    Raises
    ------
    ValueError
        If there is no equation of that name.

    Examples
    --------
    >>> A, b, x = integral_equation("baart", n=100)
    >>> bool((A @ x == b).all()), int(np.linalg.matrix_rank(A, rtol=1e-6))
    (True, 6)
    """
    if not isinstance(name, str) or name not in INTEGRALS:
        raise ValueError(f"`name` must be one of {', '.join(INTEGRALS)}, got {checks.shown(name)}")
    checks.whole(n, "n", least=2)
    integral = INTEGRALS[name]
    s, t = _midpoints(*integral.s, n), _midpoints(*integral.t, n)
    A = integral.kernel(s[:, None], t[None, :]) * (t[1] - t[0])
    x = integral.solution(t)
    return Equation(A, A @ x, x)


def _bump(u: np.ndarray) -> np.ndarray:
    return np.where(np.abs(u) < 3.0, 1.0 + np.cos(np.pi * u / 3.0), 0.0)


def _midpoints(low: float, high: float, n: int) -> np.ndarray:
    """Return the midpoints of equal parts of an interval."""
    return low + (np.arange(n) + 0.5) * (high - low) / n


INTEGRALS = {
    "phillips": _Integral(lambda s, t: _bump(s - t), _bump, (-6.0, 6.0), (-6.0, 6.0)),
    "foxgood": _Integral(lambda s, t: np.sqrt(s**2 + t**2), lambda t: t, (0.0, 1.0), (0.0, 1.0)),
    "baart": _Integral(lambda s, t: np.exp(s * np.cos(t)), np.sin, (0.0, np.pi / 2.0), (0.0, np.pi)),
}
