"""Functions of users that fail, at every call of a short run of each method: a result or a clear error, never silence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tiebreak
from campaign.trials import Round, kind
from tiebreak.engine import interpreted

ITERATIONS = 2


def raising(value: float, gradient: np.ndarray) -> Any:
    """Fail as a bug in a user's code does."""
    raise ZeroDivisionError("division by zero in a user's function")


FAULTS: dict[str, Callable[[float, np.ndarray], Any]] = {
    "raises": raising,
    "value NaN": lambda value, gradient: (math.nan, gradient),
    "gradient NaN": lambda value, gradient: (value, np.where(np.arange(gradient.size) == 0, math.nan, gradient)),
    "value infinite": lambda value, gradient: (math.inf, gradient),
    "wrong shape": lambda value, gradient: (value, gradient[:-1]),
    "two dimensions": lambda value, gradient: (value, gradient[None]),
    "no pair": lambda value, gradient: value,
    "text": lambda value, gradient: ("1.0 or so", gradient),
    "nothing": lambda value, gradient: None,
    "complex": lambda value, gradient: (value, gradient + 1j),
}


class Faulty:
    """A least-squares function that fails at one call, or from then on."""

    def __init__(self, at: int, fault: str, lasting: bool) -> None:
        rng = np.random.default_rng(7)
        self.A, self.b = rng.standard_normal((3, 4)), rng.standard_normal(3)
        self.at, self.fault, self.lasting, self.calls = at, fault, lasting, 0

    def __call__(self, x: np.ndarray, indices: np.ndarray) -> Any:
        residual = self.A[indices] @ x - self.b[indices]
        value, gradient = 0.5 * float(np.mean(residual**2)), self.A[indices].T @ residual / len(indices)
        self.calls += 1
        fails = self.calls >= self.at if self.lasting else self.calls == self.at
        return FAULTS[self.fault](value, gradient) if fails else (value, gradient)

    @property
    def failed(self) -> bool:
        """Whether it has come to the fault."""
        return self.calls >= self.at


def problem_with(upper: Faulty | None = None, lower: Faulty | None = None) -> tiebreak.Problem:
    """Return a problem one of whose levels is a Python function that knows all that any method asks for, and may fail."""

    def known(function: Faulty) -> Any:
        lipschitz = float(np.linalg.norm(function.A, 2) ** 2 / 3)
        return tiebreak.FiniteSum(3, 4, function, convex=True, lipschitz=lipschitz, floor=0.0)

    return tiebreak.Problem(
        tiebreak.SquaredNorm() if upper is None else known(upper) + tiebreak.SquaredNorm(),
        tiebreak.LeastSquares(np.eye(2, 4), np.ones(2)) if lower is None else known(lower),
        tiebreak.L2Ball(2.0),
    )


@kind("faults", each=[name for name, method in tiebreak.METHODS.items() if method.finite], weight=4.0)
def faults(trial: Round, method: str) -> None:
    """Let one level fail in one way, once or for good, at every call of a run."""
    fault = str(trial.rng.choice(list(FAULTS)))
    level = str(trial.rng.choice(["upper", "lower"]))
    lasting = bool(trial.rng.random() < 0.5)
    with interpreted():
        at = 1
        while (at <= 3 or not trial.over) and one_fault(trial, method, level, fault, at, lasting):
            at += 1


def one_fault(trial: Round, method: str, level: str, fault: str, at: int, lasting: bool) -> bool:
    """Make one run with a fault; return whether it came to it.

    The check of gradients leaves single failures to the run, which meets them if they last.
    """
    function = Faulty(at, fault, lasting)
    problem = problem_with(**{level: function})
    script = f"""
import tiebreak
from campaign.faults import Faulty, problem_with
from tiebreak.engine import interpreted
with interpreted():
    problem = problem_with({level}=Faulty({at}, {fault!r}, {lasting}))
    print(tiebreak.minimize(problem, {method!r}, max_iterations={ITERATIONS}, max_queries=None, check={lasting}))
"""
    try:
        result = tiebreak.minimize(problem, method, max_iterations=ITERATIONS, max_queries=None, check=lasting)
    except tiebreak.OracleError:
        trial.tried()
        return True
    except ValueError as error:  # the method needs what the problem has not, which no fault may bring about
        trial.tried(silent=1)
        if function.failed:
            trial.lost(f"the fault {fault!r} at call {at} ends in a ValueError: {error}", script)
        return False
    except Exception as error:
        trial.tried()
        trial.lost(f"{type(error).__name__} from inside: {error}", script)
        return True
    if not function.failed:
        return False
    trial.tried()
    if result.success or result.error is None:
        trial.wrong(f"the fault {fault!r} at call {at} passed in silence: {result.message}", script)
    elif not np.isfinite(result.x).all() or not problem.domain.contains(result.x):
        trial.wrong(f"the point of the result is {result.x}", script)
    elif not (math.isfinite(result.upper) and math.isfinite(result.lower)):
        trial.wrong(f"the values of the result are {result.upper} and {result.lower}", script)
    return True
