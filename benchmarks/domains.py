"""Every set at three sizes: its cut against its plain linear minimisation, against a solver, and as the size grows.

Run ``python benchmarks/domains.py``, with ``--quick`` for a shorter run. All cuts are active, the expensive ones. The solver
is HiGHS where the set is a polytope and Clarabel through CVXPY elsewhere, with the model kept between solves; it is asked at
the smallest size of each set only, because it takes long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cvxpy
import numpy as np
from banks import Bank, cut_all, lmo_all
from scipy.optimize import linprog
from timing import Size, counted, seconds, short, show_table, size_asked, take_turns

import tiebreak
from tiebreak.domains.base import ACTIVE
from tiebreak.engine import compilable

sys.path.append(str(Path(__file__).parents[1] / "tests" / "domains"))
from cases import CASES, POLYTOPES, Case

INSTANCES = 6
STATEMENTS = {case.name: case for case in CASES}


class Contender(NamedTuple):
    """A set at three sizes, and how many plain linear minimisations its cut may cost at most."""

    name: str
    make: Callable[[int], Any]  # of a size
    sizes: tuple[int, int, int]
    limit: float | None
    closed_form: bool = True  # then a solver should take 100 times as long at least


VECTORS, MATRICES = (1_000, 10_000, 100_000), (16, 32, 64)
TINY_VECTORS, TINY_OTHERS = (50, 75, 100), (3, 4, 5)
RNG = np.random.default_rng(0)
CONTENDERS = [
    Contender("L1Ball", lambda d: tiebreak.L1Ball(1.0), VECTORS, 12),
    Contender("WeightedL1Ball", lambda d: tiebreak.WeightedL1Ball(RNG.uniform(0.5, 2.0, d), 1.0), VECTORS, 12),
    Contender("L2Ball", lambda d: tiebreak.L2Ball(1.0), VECTORS, 8),
    Contender("LInfBall", lambda d: tiebreak.LInfBall(1.0, d), VECTORS, 12),
    Contender("Box", lambda d: tiebreak.Box(-RNG.random(d), RNG.random(d)), VECTORS, 12),
    Contender("Simplex", lambda d: tiebreak.Simplex(), VECTORS, 12),
    Contender("UnitSimplex", lambda d: tiebreak.UnitSimplex(), VECTORS, 12),
    Contender("CappedSimplex", lambda d: tiebreak.CappedSimplex(d / 10, 1.0, d), VECTORS, 12, closed_form=False),
    Contender("KSparse", lambda d: tiebreak.KSparse(d // 10, 1.0, d), VECTORS, 12, closed_form=False),
    Contender("GroupBall", lambda d: tiebreak.GroupBall(np.arange(d) // 10, 1.0), VECTORS, 8),
    Contender("Columns of L2Ball", lambda d: tiebreak.Columns(tiebreak.L2Ball(1.0), (25, d // 25)), VECTORS, 8),
    Contender("Columns of L1Ball", lambda d: tiebreak.Columns(tiebreak.L1Ball(1.0), (25, d // 25)), VECTORS, 8, False),
    Contender("Product", lambda d: dictionary(d), VECTORS, 8, False),
    Contender("NuclearBall", lambda n: tiebreak.NuclearBall((n, n), 1.0), MATRICES, None, False),
    Contender("Spectrahedron", lambda n: tiebreak.Spectrahedron(n), MATRICES, None, False),
    Contender("Birkhoff", lambda n: tiebreak.Birkhoff(n), (8, 16, 32), 12, False),
    Contender("Hull", lambda d: tiebreak.Hull(RNG.standard_normal((500, d))), (10, 100, 1_000), 12),
    Contender("Polytope", lambda d: random_polytope(d), (10, 30, 100), None, False),
]


def dictionary(d: int) -> tiebreak.Product:
    """Columns in Euclidean balls, cut, beside columns in l1 balls that the cut does not touch."""
    D = tiebreak.Columns(tiebreak.L2Ball(1.0), (25, max(d // 50, 1)))
    return tiebreak.Product(D=D, X=tiebreak.Columns(tiebreak.L1Ball(3.0), (25, max(d // 50, 1))))


def random_polytope(d: int) -> tiebreak.Polytope:
    """Rows at random within a box; its statement for a solver is kept with those of the tests."""
    model = {"A_ub": RNG.standard_normal((2 * d, d)), "b_ub": np.ones(2 * d), "bounds": (-np.ones(d), np.ones(d))}
    made = tiebreak.Polytope(**model)
    POLYTOPES[made] = model, 1.0
    return made


def active_bank(name: str, domain: Any, d: int) -> Bank:
    """Draw cuts that lie between the least value of ⟨a, s⟩ and its value at the minimiser of ⟨c, s⟩."""
    bank = Bank(np.empty((INSTANCES, d)), np.empty((INSTANCES, d)), np.empty(INSTANCES))
    for k in range(INSTANCES):
        while True:
            c, a = RNG.standard_normal(d), RNG.standard_normal(d)
            if name == "Product":
                a[domain.parts(np.zeros(d))["D"].size :] = 0.0
            c += RNG.uniform(-0.5, 0.5) * a
            low, free = a @ domain.lmo(a), a @ domain.lmo(c)
            b = low + RNG.uniform(0.2, 0.9) * (free - low)
            if domain.cut_lmo(c, a, b).status == ACTIVE:
                break
        bank.c[k], bank.a[k], bank.b[k] = c, a, b
    return bank


def measure(contender: Contender, rounds: int) -> dict[int, tuple[float, float, int]]:
    """Return, by size, the median times of a cut and of a linear minimisation, and the dimension."""
    found = {}
    for size in contender.sizes:
        domain = contender.make(size)
        d = domain.dimension or size
        bank, out = active_bank(contender.name, domain, d), np.empty(d)
        loops = {"cut": cut_all, "lmo": lmo_all}
        began = time.perf_counter()
        for loop in loops.values():
            loop(domain, bank, out, 1)
        if compilable(domain):
            began = time.perf_counter()
            cut_all(domain, bank, out, 1)
        repeats = max(1, int(0.02 / max(time.perf_counter() - began, 1e-7)))
        turns = {name: partial(seconds, loop, domain, bank, out, repeats) for name, loop in loops.items()}
        times = take_turns(turns, rounds, f"{contender.name}, size {size}")
        found[size] = (*(float(np.median(times[name])) / repeats / INSTANCES for name in loops), d)
    return found


def solver_seconds(contender: Contender, case: Case) -> tuple[str, float]:
    """Return which solver states the set, and its median time for a cut at the smallest size."""
    domain = contender.make(contender.sizes[0])
    d = domain.dimension or contender.sizes[0]
    bank = active_bank(contender.name, domain, d)
    if case.linear is not None:
        model = case.linear(domain, d)
        lift = model.pop("lift", np.eye(d))
        rows, bounds = model.pop("A_ub", np.empty((0, lift.shape[1]))), model.pop("b_ub", np.empty(0))

        def solve(k: int) -> None:
            cut = np.vstack([rows, bank.a[k] @ lift])
            linprog(bank.c[k] @ lift, A_ub=cut, b_ub=np.append(bounds, bank.b[k]), method="highs", **model)

        name = "HiGHS"
    else:
        s, c, a, b = cvxpy.Variable(d), cvxpy.Parameter(d), cvxpy.Parameter(d), cvxpy.Parameter()
        stated = cvxpy.Problem(cvxpy.Minimize(c @ s), [*case.constraints(domain, s), a @ s <= b])

        def solve(k: int) -> None:
            c.value, a.value, b.value = bank.c[k], bank.a[k], bank.b[k]
            stated.solve(solver=cvxpy.CLARABEL)

        name = "Clarabel"
    solve(0)
    return name, float(np.median([seconds(solve, k) for k in range(1, 4)]))


def tiny(contender: Contender) -> Contender:
    """Return a set at sizes that take no time."""
    return contender._replace(sizes=TINY_VECTORS if contender.sizes == VECTORS else TINY_OTHERS)


def main(size: Size) -> None:
    rounds = size.pick(15, 5, 1)
    lines = []
    for contender in counted(CONTENDERS, "sets"):
        if size is Size.TINY:
            contender = tiny(contender)
        found = measure(contender, rounds)
        small, *_, large = contender.sizes
        ratios = [cut / plain for cut, plain, _ in found.values()]
        growth = (found[large][0] / found[large][2]) / (found[small][0] / found[small][2])
        solver, solver_time = solver_seconds(contender, STATEMENTS[contender.name.replace(" of ", "")])
        speedup = solver_time / found[small][0]
        verdicts = []
        if contender.limit is not None:
            verdicts.append(max(ratios) <= contender.limit)
        if contender.closed_form:
            verdicts.append(speedup >= 100)
        lines.append(
            [
                contender.name,
                " / ".join(f"{d:,}" for *_, d in found.values()),
                *(f"{short(ratio)} x" for ratio in ratios),
                "" if contender.limit is None else f"≤ {contender.limit:g}",
                f"{short(speedup)} x {solver}",
                "≥ 100" if contender.closed_form else "",
                f"{short(growth)} x",
                "" if not verdicts else "met" if all(verdicts) else "missed",
            ]
        )
    head = ["set", "dimensions", "cut / lmo", "", "", "target", "faster than", "target", "growth per entry", ""]
    show_table("A cut in units of a linear minimisation at three sizes, against a solver, and as the set grows", head, lines)


if __name__ == "__main__":
    asked = size_asked(__doc__)
    with asked.engine():
        main(asked)
