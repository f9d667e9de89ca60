"""The cut on an ℓ1 ball against an LP solver, against passes over the data, and as the dimension grows.

Run ``python benchmarks/cut.py``, with ``--quick`` for a shorter run. All times are of active cuts, the expensive ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from banks import Bank, cut_all
from scipy.optimize import linprog
from timing import Row, Size, Target, seconds, short, show, show_table, size_asked, take_turns

from tiebreak import L1Ball
from tiebreak.domains.base import ACTIVE, FREE, cut_lmo
from tiebreak.domains.cuts.search import MAX_PASSES, dual_search
from tiebreak.engine import kernel
from tiebreak.engine.vectors import abs_argmax

DIMENSION = 730  # variables of the regression problem
BANK_SIZE = 24  # instances that together stay in a core's cache, as the vectors of a run do
GROWTH = (10**3, 10**4, 10**5, 10**6, 10**7)
BALL = L1Ball(1.0)


def active_bank(dimension: int, size: int, rng: np.random.Generator) -> Bank:
    """Draw correlated Gaussian gradients and cuts through points of the ball, and keep those whose cut is active."""
    bank = Bank(rng.standard_normal((size, dimension)), rng.standard_normal((size, dimension)), np.empty(size))
    out = np.empty(dimension)
    for k, (c, a) in enumerate(zip(bank.c, bank.a, strict=True)):
        c += rng.uniform(-2.0, 2.0) * a
        status = FREE
        while status != ACTIVE:
            a *= -1.0  # the cut binds on one side only
            bank.b[k] = value_at_random_point(a, rng) + 0.01 * rng.random()
            status, _ = cut_lmo(BALL, c, a, bank.b[k], out)
    return bank


def value_at_random_point(a: np.ndarray, rng: np.random.Generator) -> float:
    """Return ⟨a, x⟩ for a random point x of the ball with a random number of non-zeros, as iterates have."""
    support = rng.integers(a.size, size=rng.integers(1, min(a.size, 1000)))
    weights = rng.exponential(size=support.size) * rng.choice([-1.0, 1.0], size=support.size)
    return float(a[support] @ weights) / float(np.abs(weights).sum()) * rng.random()


# What is timed, in compiled loops over a bank


@kernel
def search_all(domain, bank, out, repeats):
    total = 0.0
    for _ in range(repeats):
        for k in range(bank.b.size):
            _, multiplier = dual_search(domain, bank.c[k], bank.a[k], bank.b[k], out)
            total += multiplier
    return total


@kernel
def scan_all(domain, bank, out, repeats):
    total = 0.0
    for _ in range(repeats):
        for k in range(bank.b.size):
            total += largest(bank.c[k])
    return total


@kernel
def fast_scan_all(domain, bank, out, repeats):
    total = 0
    for _ in range(repeats):
        for k in range(bank.b.size):
            total += abs_argmax(bank.c[k])
    return total


@kernel
def largest(c):
    """Return max |c_i| as anyone would write it."""
    found = 0.0
    for i in range(c.size):
        if abs(c[i]) > found:
            found = abs(c[i])
    return found


def per_instance(loop: Callable[..., float], bank: Bank, elements: int) -> Callable[[], float]:
    """Return a contender: the time of one instance in a loop over about as many elements."""
    repeats = max(1, elements // bank.c.size)
    out = np.empty(bank.c.shape[1])
    return lambda: seconds(loop, BALL, bank, out, repeats) / (repeats * bank.b.size)


def solve_lp(bank: Bank, k: int) -> float:
    """Return the least ⟨c, s⟩ of one instance by HiGHS, with s = s⁺ − s⁻."""
    c, a, b = bank.c[k], bank.a[k], bank.b[k]
    rows = np.stack([np.concatenate([a, -a]), np.ones(2 * a.size)])
    answer = linprog(np.concatenate([c, -c]), A_ub=rows, b_ub=[b, BALL.radius], bounds=(0, None), method="highs")
    return float(answer.fun)


def solve_some(bank: Bank, rng: np.random.Generator, count: int = 3) -> float:
    """Measure the LP solver on instances chosen at random."""
    return sum(seconds(solve_lp, bank, int(k)) for k in rng.integers(bank.b.size, size=count)) / count


def largest_difference(bank: Bank) -> float:
    """Return by how much, relatively, the optimal values of the cut and of the LP solver differ at most."""
    cut = np.array([c @ BALL.cut_lmo(c, a, b).point for c, a, b in zip(*bank, strict=True)])
    lp = np.array([solve_lp(bank, k) for k in range(bank.b.size)])
    return float(np.max(np.abs(cut - lp) / np.abs(lp)))


def minimisations(bank: Bank) -> np.ndarray:
    """Return how many linear minimisations each instance takes."""
    return np.array([count_minimisations(c, a, b) for c, a, b in zip(*bank, strict=True)])


def count_minimisations(c: np.ndarray, a: np.ndarray, b: float) -> int:
    """Solve an active cut of the ball in plain NumPy, with the search of the compiled one, and count."""

    def atom(direction: np.ndarray) -> tuple[float, float]:
        k = int(np.argmax(np.abs(direction)))
        sign = -np.sign(direction[k])
        return sign * c[k], sign * a[k]

    outside, inside = atom(c), atom(a)
    for count in range(3, MAX_PASSES):
        new = atom(c + (inside[0] - outside[0]) / (outside[1] - inside[1]) * a)
        if new in (outside, inside):
            return count
        if new[1] > b:
            outside = new
        else:
            inside = new
    return MAX_PASSES


def compare(size: Size, rng: np.random.Generator) -> None:
    """Compare the cut with all else at one dimension."""
    bank = active_bank(DIMENSION, size.pick(BANK_SIZE, BANK_SIZE, 2), rng)
    elements = size.pick(2_000_000, 2_000_000, 1)
    times = take_turns(
        {
            "cut": per_instance(cut_all, bank, elements),
            "search": per_instance(search_all, bank, elements),
            "scan": per_instance(scan_all, bank, elements),
            "fast scan": per_instance(fast_scan_all, bank, elements),
            "lp": partial(solve_some, bank, rng),
        },
        size.pick(150, 15, 1),
        "cut",
    )
    cut, counts = times["cut"], minimisations(bank)
    show(
        f"Active cut of an ℓ1 ball, d = {DIMENSION}: {np.median(cut) * 1e6:.2f} µs",
        [
            Row("LP solver (HiGHS) / cut", times["lp"], cut, target=Target(2000, at_least=True)),
            Row("cut / plain pass max|c|", cut, times["scan"], target=Target(12)),
            Row("cut / vectorised pass abs_argmax(c)", cut, times["fast scan"]),
            Row("cut / search for any set", cut, times["search"]),
        ],
    )
    print(f"  linear minimisations in a cut: {counts.mean():.1f} in the mean, {counts.max()} at most")
    print(f"  largest relative difference from the LP solver's optimal value: {largest_difference(bank):.1e}")


def grow(size: Size, rng: np.random.Generator) -> None:
    """Compare times per element over the dimensions."""
    dimensions, elements = size.pick(GROWTH, GROWTH[:-1], GROWTH[:2]), size.pick(2_000_000, 2_000_000, 1)
    banks = {d: active_bank(d, 24 if d <= 10**4 else 4 if d <= 10**6 else 2, rng) for d in dimensions}
    contenders = {}
    for d, bank in banks.items():
        contenders[f"cut {d}"] = per_instance(cut_all, bank, elements)
        contenders[f"scan {d}"] = per_instance(scan_all, bank, elements)
    times = take_turns(contenders, size.pick(60, 5, 1), "growth")
    first = dimensions[0]
    lines = []
    for d, bank in banks.items():
        cut, scan = (times[f"{name} {d}"] / d for name in ("cut", "scan"))
        first_cut, first_scan = (times[f"{name} {first}"] / first for name in ("cut", "scan"))
        growth = [
            np.median(cut / first_cut),
            cut.min() / first_cut.min(),
            np.median(scan / first_scan),
            np.median(cut / scan),
        ]
        lines.append([f"d = 10^{round(np.log10(d))}", *map(short, growth), f"{minimisations(bank).mean():.1f}"])
    head = ["", "cut", "of fastest", "plain pass max|c|", "cut / plain pass", "minimisations"]
    show_table(
        f"Time per element / that of d = {first}: 1 is linear growth, memory adds what it does to a plain pass", head, lines
    )


def main() -> None:
    size, rng = size_asked(__doc__), np.random.default_rng(0)
    compare(size, rng)
    grow(size, rng)


if __name__ == "__main__":
    main()
