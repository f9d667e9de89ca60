"""What users get wrong: objectives below that are not convex, and gradients that are none."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import tiebreak
from campaign.exact import Exact
from campaign.trials import Round, kind
from tiebreak.engine import interpreted

DIMENSION = 3


def wells(x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean of (x_j² − 1)²: not convex, least at all corners of the cube, and flat at the origin."""
    return float(np.mean((x**2 - 1.0) ** 2)), 4.0 * x * (x**2 - 1.0) / x.size


def true_wells(x: np.ndarray) -> Fraction:
    """The same without rounding."""
    return sum(((number * number - 1) ** 2 for number in Exact.of(x).fractions()), Fraction(0)) / x.size


@kind("g of unknown convexity", weight=0.5)
def unknown_convexity(trial: Round) -> None:
    """Certify points of a problem whose g has two wells in each coordinate, and has not said that it is convex."""
    lower = tiebreak.FiniteSum(1, DIMENSION, wells, floor=0.0)
    problem = tiebreak.Problem(tiebreak.SquaredNorm(), lower, tiebreak.LInfBall(1.0, DIMENSION))
    least = Fraction(DIMENSION, 2)  # ½ ‖x‖² at the corners
    for k in range(10):
        x = np.zeros(DIMENSION) if k == 0 else trial.rng.uniform(-1.0, 1.0, DIMENSION)
        with interpreted():
            certificate = tiebreak.certify(problem, x)
        trial.tried()
        f = sum((number * number for number in Exact.of(x).fractions()), Fraction(0)) / 2
        claims = [
            ("upper_gap_bound", certificate.upper_gap_bound, f - least),
            ("lower_gap_bound", certificate.lower_gap_bound, true_wells(x)),
        ]
        for what, claimed, true in claims:
            if np.isfinite(claimed) and Fraction(claimed) < true:
                script = (
                    "import numpy as np, tiebreak\nfrom campaign.users import wells\n"
                    "g = tiebreak.FiniteSum(1, 3, wells, floor=0.0)\n"
                    "problem = tiebreak.Problem(tiebreak.SquaredNorm(), g, tiebreak.LInfBall(1.0, 3))\n"
                    f"print(tiebreak.certify(problem, np.array({x.tolist()})))"
                )
                trial.wrong(f"{what} {claimed} < {float(true)}, though g is not known to be convex", script)


WRONG: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sign": lambda gradient: -gradient,
    "factor two": lambda gradient: 2.0 * gradient,
    "sum for mean": lambda gradient: 5.0 * gradient,
    # by as much as the others have: a check of some slopes, to a hundredth, sees nothing of an entry that hardly matters
    "one coordinate": lambda gradient: gradient + np.linalg.norm(gradient) * (np.arange(gradient.size) == 1),
    "zero": lambda gradient: 0.0 * gradient,
}


def wrong_gradient(seed: int, mistake: str, unit: float) -> Any:
    """Return a least-squares function whose gradient is wrong."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((5, DIMENSION)), rng.standard_normal(5) + 3.0

    def value_and_grad(x: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        residual = unit * (A[indices] @ x - b[indices])
        return 0.5 * float(np.mean(residual**2)), WRONG[mistake](unit * A[indices].T @ residual / len(indices))

    return value_and_grad


@kind("wrong gradients", each=WRONG, weight=0.5)
def wrong_gradients(trial: Round, mistake: str) -> None:
    """Give a function with a wrong gradient: it is an error, or nothing is said to be proven."""
    rng = trial.rng
    seed, unit = int(rng.integers(2**31)), float(10.0 ** rng.integers(-4, 5))
    level = str(rng.choice(["upper", "lower"]))
    wrong = tiebreak.FiniteSum(5, DIMENSION, wrong_gradient(seed, mistake, unit), convex=True)
    right = tiebreak.LeastSquares([[1.0, 0.5, 0.25]], [1.0])
    script = (
        f"import tiebreak\nfrom campaign.users import wrong_gradient\n"
        f"wrong = tiebreak.FiniteSum(5, 3, wrong_gradient({seed}, {mistake!r}, {unit!r}), convex=True)\n"
        f"right = tiebreak.LeastSquares([[1.0, 0.5, 0.25]], [1.0])\n"
        f"problem = tiebreak.Problem(**{{{level!r}: wrong, {'lower' if level == 'upper' else 'upper'!r}: right}}, "
        f"domain=tiebreak.L2Ball(1.0))\n"
    )
    parts = {"upper": right, "lower": right, level: wrong}
    problem = tiebreak.Problem(**parts, domain=tiebreak.L2Ball(1.0))
    for call, run in (
        ("certify(problem, [0.5, 0.0, 0.0])", lambda: tiebreak.certify(problem, [0.5, 0.0, 0.0])),
        ("minimize(problem, max_iterations=2)", lambda: tiebreak.minimize(problem, "cg-bio", max_iterations=2)),
    ):
        trial.tried()
        try:
            with interpreted():
                run()
        except (ValueError, tiebreak.OracleError):
            continue
        trial.wrong(f"a gradient that is wrong ({mistake}) passes for a proof", f"{script}print(tiebreak.{call})")
