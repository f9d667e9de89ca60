"""An iteration on losses written in JAX and PyTorch against the bare gradient calls that it needs.

Run ``python benchmarks/adapters.py``, with ``--quick`` for a shorter run. A package that is not installed is left out.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from loops import NO_CUT, time_in_driver, time_of_loop
from timing import Row, Size, Target, seconds, show, size_asked, take_turns

from tiebreak import SBCGI, L1Ball, Problem, from_jax, from_torch

ROWS, BATCH = 64, 16
SHARE = 1.5  # time that an iteration may take, in units of the bare calls
CLOCK = time.process_time  # clock of all threads: gradients are computed by several


def level(seed: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of a random classification."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((ROWS, d)) / np.sqrt(d)
    return A, np.sign(A[:, :100].sum(axis=1) + 0.01 * rng.standard_normal(ROWS))


def time_of_bare(
    call: Callable[[int, np.ndarray], None], iterations: int, clock: Callable[[], float] = CLOCK
) -> Callable[[], float]:
    """Return a contender: the time of the gradients of an iteration, both points of both levels."""

    def repeat() -> None:
        rng = np.random.default_rng(0)
        for _ in range(iterations):
            for which in (0, 1):
                call(which, rng.integers(ROWS, size=BATCH))

    return lambda: seconds(repeat, clock=clock) / iterations


def jax_contenders(d: int, iterations: int) -> dict[str, Callable[[], float]]:
    """Return the bare calls and the iteration in JAX."""
    import jax
    import jax.numpy as jnp

    def loss(x: Any, batch: Any) -> Any:
        rows, labels = batch
        return jnp.logaddexp(0.0, -labels * (rows @ x)).mean()

    objectives = [from_jax(loss, np.zeros(d), level(seed, d), convex=True) for seed in (0, 1)]
    with jax.enable_x64(True):
        data = [tuple(map(jnp.asarray, level(seed, d))) for seed in (0, 1)]
        points = [jnp.zeros(d), jnp.full(d, 1e-3)]
        gradient = jax.jit(jax.value_and_grad(lambda x, data, batch: loss(x, (data[0][batch], data[1][batch]))))

    def bare(which: int, batch: np.ndarray) -> None:
        with jax.enable_x64(True):
            for x in points:
                jax.block_until_ready(gradient(x, data[which], batch))

    return contenders(objectives, bare, iterations, "JAX")


def torch_contenders(d: int, iterations: int) -> dict[str, Callable[[], float]]:
    """Return the bare calls and the iteration in PyTorch."""
    import torch

    class Linear(torch.nn.Module):
        """A linear model without an offset."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(d, dtype=torch.float64))

        def forward(self, rows: Any) -> Any:
            return rows @ self.weight

    def loss(outputs: Any, labels: Any) -> Any:
        return torch.nn.functional.softplus(-labels * outputs).mean()

    data = [tuple(map(torch.tensor, level(seed, d))) for seed in (0, 1)]
    objectives = [from_torch(Linear(), loss, each, convex=True) for each in data]
    modules = [Linear(), Linear()]
    with torch.no_grad():
        modules[1].weight.fill_(1e-3)

    def bare(which: int, batch: np.ndarray) -> None:
        index = torch.from_numpy(batch)
        rows, labels = (tensor[index] for tensor in data[which])
        for module in modules:
            value = loss(module(rows), labels)
            torch.autograd.grad(value, module.weight)
            value.item()

    return contenders(objectives, bare, iterations, "PyTorch")


def contenders(objectives: list[Any], bare: Any, iterations: int, name: str) -> dict[str, Callable[[], float]]:
    """Return who takes turns: the bare calls, the loop with the cut inactive, with steps of its own, and the driver."""
    problem, method = Problem(*objectives, L1Ball(5.0)), SBCGI(preset="paper", slack=NO_CUT, batch_size=BATCH)
    watched = SBCGI(preset="auto", batch_size=BATCH, step=1e-3, momentum=1e-2, curvature=0.0)
    x = np.zeros(problem.dimension)
    return {
        f"{name}, bare": time_of_bare(bare, iterations),
        f"{name}, cut inactive": time_of_loop(problem, method, x, iterations, CLOCK),
        f"{name}, preset auto": time_of_loop(problem, watched, x, iterations, CLOCK),
        f"{name}, bare by the wall clock": time_of_bare(bare, iterations, time.perf_counter),
        f"{name}, in minimize": time_in_driver(problem, method, x, iterations),
    }


def main(size: Size) -> None:
    d, iterations, rounds = size.pick((100_000, 40, 20), (100_000, 20, 5), (200, 3, 1))
    found = {"jax": jax_contenders, "torch": torch_contenders}
    for package, make in found.items():
        if importlib.util.find_spec(package) is None:
            print(f"\n{package} is not installed: left out")
            continue
        times = take_turns(make(d, iterations), rounds, package)
        name, bare = next(iter(times.items()))
        title = f"SBCGI / the bare gradient calls of its iteration ({np.median(bare) * 1e3:.2f} ms), {name.split(',')[0]}"
        inactive, auto, wall, driver = list(times.items())[1:]
        rows = [
            Row(*inactive, bare, target=Target(SHARE)),
            Row(*auto, bare, target=Target(SHARE)),
            Row(*driver, wall[1]),
        ]
        show(f"{title}, d = {d:,}, batches of {BATCH} rows", rows)


if __name__ == "__main__":
    asked = size_asked(__doc__)
    with asked.engine():
        main(asked)
