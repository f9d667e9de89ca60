"""The frontier of near ties on the paper's regression: what a little of the training loss buys of the validation loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import tiebreak
from tiebreak.studies.sources import count_matrix
from tiebreak.studies.study import Source

SOURCES = ("pageviews", "wikimath", "montevideo")


def run(source: Source, out: Path, points: int, radius: float, seed: int, echo: Callable[[str], None]) -> tiebreak.Frontier:
    """Compute the frontier, print it with the test loss along it, and write a figure."""
    parts = tiebreak.data.split(count_matrix(source, seed), seed)
    train, validation, test = (tiebreak.LeastSquares(*part) for part in (parts.train, parts.validation, parts.test))
    n, d = parts.train.A.shape
    echo(f"Linear models in an l1 ball of radius {radius:g}: the least validation loss f of all whose training loss g")
    echo(f"({n} samples, {d} features) exceeds its minimum by no more than ε; `also` is the test loss.\n")
    front = tiebreak.frontier(
        tiebreak.Problem(upper=validation, lower=train, domain=tiebreak.L1Ball(radius)), points=points, also=test
    )
    echo(front.table())
    if (knee := front.knee) is not None:
        echo(f"\nThe knee: {100.0 * knee.share:.2g} % of what the training loss can gain brings f to {knee.upper:.4g}.")
    front.plot().savefig(out, dpi=150)
    echo(f"\nThe figure is in {out}. The bounds f* ≥ and f* ≤ are proven, not estimated.")
    return front
