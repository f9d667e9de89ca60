"""The regression of the paper at full size: of the models that fit the training data best, the one that predicts best.

Cao et al. (2023), section 5: 1068 × 730, thirds for training (lower level), validation (upper level) and test, ℓ1 ball of
radius 10. The data are generated, see :func:`tiebreak.data.pageviews`; whether several models fit best is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import tiebreak
from tiebreak.driver.figures import plot_results
from tiebreak.studies.ties import Minimisers, minimisers

RADIUS = 10.0


def run(out: Path, max_queries: int, seed: int, echo: Callable[[str], None]) -> dict[str, tiebreak.Result]:
    """Solve the problem with the method that is chosen for it and with the paper's, print a table and write a figure."""
    parts = tiebreak.data.split(tiebreak.data.pageviews(seed), seed)
    train, validation, test = (tiebreak.LeastSquares(*part) for part in (parts.train, parts.validation, parts.test))
    problem = tiebreak.Problem(upper=validation, lower=train, domain=tiebreak.L1Ball(RADIUS))
    n, d = parts.train.A.shape
    echo(
        f"Of the linear models in an l1 ball of radius {RADIUS:g} with the least training loss ({n} samples, {d} features),"
    )
    echo(f"find the one with the least validation loss. Each method may draw {max_queries:,} samples.")
    echo(f"{tie(minimisers(*parts.train, RADIUS))}\n")

    results = {
        name: tiebreak.minimize(problem, name, max_queries=max_queries, seed=seed) for name in ("auto", "sbcgi", "sbcgf")
    }

    columns = (
        "method",
        "training g",
        "g - g* at most",
        "validation f",
        "f - f* at most",
        "test loss",
        "iterations",
        "seconds",
    )
    echo(row_of(columns))
    start = np.zeros(d)
    echo(_row("x = 0", [train.value(start), np.nan, validation.value(start), np.nan, test.value(start), 0, 0]))
    for name, r in results.items():
        values = [r.lower, r.lower_gap_bound, r.upper, r.upper_gap_bound, test.value(r.x), r.iterations, r.seconds]
        echo(_row(name if name == r.method.name else f"{name}: {r.method.name}", values))
    plot_results(results).savefig(out, dpi=150)
    echo(f"\nThe figure is in {out}. The bounds are proven, not estimated.")
    return results


def tie(found: Minimisers) -> str:
    """Say whether there is a choice among the models that fit best."""
    said = f"The training loss has {found.words}"
    if found.dimension == 0:
        return (
            f"{said}, although there are more features than samples: the ball binds.\n"
            f"So f* is the validation loss of one model, and what a method finds below f* fits the training data less well."
        )
    return f"{said}." if found.dimension is None else f"{said}: there is a tie to break."


def _row(name: str, values: list[float]) -> str:
    shown = ["" if np.isnan(v) else f"{v:,}" if isinstance(v, int) and v else f"{v:.4g}" for v in values]
    return row_of([name, *shown])


def row_of(cells: Sequence[str]) -> str:
    """Return one line of the table, the name of a method first."""
    return "  ".join([f"{cells[0]:>16}", *(f"{cell:>14}" for cell in cells[1:])])
