"""What runs prove of their results, method by method, on problems whose solution is known without rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

import tiebreak
from campaign.planted import Planted, plant
from campaign.proofs import judge
from campaign.recipes import text
from campaign.sets import SETS
from campaign.trials import Round, kind
from tiebreak.engine import interpreted

BUDGET = 400  # queries: more would only bring the point nearer to where `proofs` looks anyway
COMPILED = ("L1Ball", "Box", "Simplex")  # sets for which the loop of the default method is compiled


@kind("runs", each=[name for name, method in tiebreak.METHODS.items() if method.finite], weight=4.0)
def planted_runs(trial: Round, method: str) -> None:
    """Run a method on a random set, interpreted, and compare what the result proves with the truth."""
    name = str(trial.rng.choice(list(SETS)))
    with interpreted():
        one_run(trial, plant(trial.rng, name, largest=6), method, BUDGET)


@kind("compiled runs", each=COMPILED, weight=1.0)
def compiled_runs(trial: Round, name: str) -> None:
    """Run the default method, compiled, on objectives of one type: each pair of types would be compiled separately."""
    one_run(trial, plant(trial.rng, name, largest=6, kinds=("LeastSquares",)), "auto", 20 * BUDGET)


def one_run(trial: Round, planted: Planted, method: str, budget: int, keep: float | None = None) -> None:
    """Run a method on a planted problem, or with a share; what it refuses by a ValueError it does not claim."""
    seed = int(trial.rng.integers(2**31))
    script, start = str(planted), None
    try:
        problem = planted.make()
        if keep is not None:
            problem = problem._replace(tolerance=0.0, keep=keep)
            script += f"\nproblem = problem._replace(tolerance=0.0, keep={keep!r})"
        start = start_of(trial.rng, planted, problem)
        script += f"\nresult = tiebreak.minimize(problem, {method!r}, max_queries={budget}, seed={seed}, x0={text(start)})"
        script += "\nx, c = result.x, result.certificate"
        result = tiebreak.minimize(problem, method, max_queries=budget, seed=seed, x0=start)
    except ValueError:  # a method may need what the problem has not, and says so
        trial.tried(silent=1)
        return
    except Exception as error:
        trial.failed("minimize raised", error, script)
        return
    judge(trial, planted, result.x, result.certificate, script)
    if not np.array_equal(result.x, result.certificate.x):
        trial.wrong("the certificate of the result is of another point", f"{script}\nprint(x - c.x)")
    if not result.success:
        trial.lost(f"the run ended with {result.message}", script)
    continued(trial, planted, problem, result, script)


def start_of(rng: Generator, planted: Planted, problem: Any) -> np.ndarray | None:
    """Return where a run starts: where it likes to, at the optimum, at an atom, or at the centre."""
    match rng.integers(5):
        case 0:
            return planted.x
        case 1:
            return problem.domain.lmo(rng.standard_normal(problem.dimension) / planted.units)
        case 2:
            return problem.center
    return None


def continued(trial: Round, planted: Any, problem: Any, result: Any, script: str) -> None:
    """Let a certificate start from what a run proved; it may move the point by a rounding, and speaks of that one."""
    certificate = tiebreak.certify(problem, result)
    judge(trial, planted, result.x, certificate, f"{script}\nc = tiebreak.certify(problem, result)")
