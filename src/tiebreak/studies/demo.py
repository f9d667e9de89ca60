"""The regression of the paper at full size: what a little of the training loss buys, and then the paper's methods.

Cao et al. (2023), section 5: 1068 × 730, thirds for training (lower level), validation (upper level) and test, ℓ1 ball of
radius 10. The data are generated, see :func:`tiebreak.data.pageviews`. First it is asked whether there is a tie to break,
and how far the validation loss falls if the training loss may be a little above its minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import tiebreak
from tiebreak.driver.figures import plot_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADIUS = 10.0
POINTS = 12  # of the frontier
METHODS = ("auto", "sbcgi", "sbcgf")
COLUMNS = ("method", "training g", "g − g* ≤", "validation f", "f − f* ≤", "test loss", "iterations", "seconds")


def run(out: Path, max_queries: int, seed: int, echo: Callable[[str], None]) -> dict[str, tiebreak.Result]:
    """Show near ties, then the methods for the exact tie; print tables and write two figures."""
    parts = tiebreak.data.split(tiebreak.data.pageviews(seed), seed)
    train, validation, test = (tiebreak.LeastSquares(*part) for part in (parts.train, parts.validation, parts.test))
    problem = tiebreak.Problem(upper=validation, lower=train, domain=tiebreak.L1Ball(RADIUS))
    n, d = parts.train.A.shape
    echo(f"Linear models in an l1 ball of radius {RADIUS:g}: g is their loss on {n} training samples of {d} features,")
    echo(
        f"f that on {parts.validation.b.size} validation samples. At x = 0 the test loss is {test.value(np.zeros(d)):.4g}.\n"
    )

    echo("1. Is there a tie to break, and what does a little of g buy?\n")
    found = tiebreak.ties(problem)
    echo(f"{found.sentences}\n")
    front = tiebreak.frontier(problem, points=POINTS, also=test)
    echo(f"{front.table()}\n")
    echo("In each line: the model with the least f where g exceeds its minimum by at most ε, and its test loss (also).")
    echo(gain_in_prediction(front))
    drawn(front).savefig(out, dpi=150)

    echo("\n2. The exact tie, ε = 0: by the method that minimize chooses for it (auto), and by two methods of the paper.")
    echo(f"Each may draw {max_queries:,} samples.\n")
    results = {name: tiebreak.minimize(problem, name, max_queries=max_queries, seed=seed) for name in METHODS}
    echo(table_of(results, test))
    second = out.with_stem(f"{out.stem}-methods")
    plot_results(results).savefig(second, dpi=150)
    if found.unique:
        f_star = results["auto"].upper
        echo(f"\nf* is the f of one model, {f_star:.4g}. A model with a smaller f fits the training data less well.")
    echo(f"\nThe figures are {out} (section 1) and {second} (section 2). All bounds are proven, not estimated.")
    return results


def gain_in_prediction(front: tiebreak.Frontier) -> str:
    """Say where on the frontier the test loss is least, and what it is at the exact tie."""
    exact, *near = front.points
    best = min(near, key=lambda point: point.also)
    if best.also >= exact.also:
        return f"The test loss is least at the exact tie, {exact.also:.4g}."
    kept = f"{100.0 * (1.0 - best.share):.5g} %"
    least, tied = f"{best.also:.3g}", f"{exact.also:.3g}"
    return f"The test loss is least where {kept} of what g can gain is kept: {least}, against {tied} at the exact tie."


def drawn(front: tiebreak.Frontier) -> Figure:
    """Draw the frontier, with names for what f and the third objective are here."""
    figure = front.plot()
    for panel in figure.axes:
        panel.set_ylabel({"f": "validation loss f", "also": "test loss"}.get(panel.get_ylabel(), panel.get_ylabel()))
        legend = panel.get_legend()
        for entry in legend.get_texts() if legend is not None else ():
            entry.set_text(entry.get_text().replace("also, at", "test loss of"))
    return figure


def table_of(results: Mapping[str, tiebreak.Result], test: tiebreak.LeastSquares) -> str:
    """Return one line per result, the name of its method first."""
    rows: list[tuple[str, ...]] = [COLUMNS]
    for name, r in results.items():
        values = [r.lower, r.lower_gap_bound, r.upper, r.upper_gap_bound, test.value(r.x)]
        method = name if name == r.method.name else f"{name}: {r.method.name}"
        rows.append((method, *(f"{v:.4g}" for v in values), f"{r.iterations:,}", f"{r.seconds:.2g}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
