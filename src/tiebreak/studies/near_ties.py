"""The frontier of near ties, of the paper's data or of files: what a little of one loss buys of another."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tiebreak
from tiebreak.data.tables import read, split_target
from tiebreak.engine.files import write_atomically
from tiebreak.studies.sources import count_matrix
from tiebreak.studies.study import Source

SOURCES = ("pageviews", "wikimath", "montevideo")
LOSSES: dict[str, Callable[[Any, Any, float], Any]] = {
    "squares": lambda A, b, delta: tiebreak.LeastSquares(A, b),
    "logistic": lambda A, y, delta: tiebreak.Logistic(A, y),
    "huber": tiebreak.Huber,
}


class Losses(NamedTuple):
    """The losses of a frontier: g, f, and the one that is evaluated along it, if there is one."""

    lower: Any
    upper: Any
    also: Any
    title: str  # what they are, as lines of text


def of_source(source: Source, seed: int) -> Losses:
    """Return the losses of the paper's regression: training, validation and test data."""
    parts = tiebreak.data.split(count_matrix(source, seed), seed)
    train, validation, test = (tiebreak.LeastSquares(*part) for part in (parts.train, parts.validation, parts.test))
    n, d = parts.train.A.shape
    title = (
        f"The least validation loss f of all models whose training loss g ({n} samples, {d} features) exceeds its\n"
        "minimum by no more than ε; `also` is the test loss."
    )
    return Losses(train, validation, test, title)


def of_files(lower: Path, upper: Path, also: Path | None, target: str, loss: str, delta: float = 1.0) -> Losses:
    """Return the losses of linear models on tables in files, whose columns must agree."""
    first = read(lower)
    features = tuple(name for name in first.names if name != target)
    A, b = split_target(first, target)
    tables = [(first.path, A, b)]
    for path in (upper, also):
        if path is not None:
            table = read(path)
            tables.append((table.path, *split_target(table, target, features)))
    made = []
    for place, X, y in tables:
        try:
            made.append(LOSSES[loss](X, y, delta))
        except ValueError as error:
            raise ValueError(f"{place}, column {target!r}: {error}") from None
    title = (
        f"The least f, the {loss} loss on {upper.name} ({made[1].n_samples:,} rows), of all linear models whose g, that on\n"
        f"{lower.name} ({made[0].n_samples:,} rows, {len(features):,} features), exceeds its minimum by no more than ε"
        + (f"; `also` is that on {also.name}." if also is not None else ".")
    )
    return Losses(made[0], made[1], made[2] if also is not None else None, title)


def run(
    losses: Losses,
    points: int,
    radius: float,
    echo: Callable[[str], None],
    *,
    out: Path | None,
    table: Path | None = None,
    checkpoint: Path | None = None,
) -> tiebreak.Frontier:
    """Compute the frontier over an ℓ1 ball, print it, and write a figure and a table."""
    echo(f"Linear models in an l1 ball of radius {radius:g}.\n{losses.title}\n")
    problem = tiebreak.Problem(upper=losses.upper, lower=losses.lower, domain=tiebreak.L1Ball(radius))
    front = tiebreak.frontier(problem, points=points, also=losses.also, checkpoint=checkpoint)
    echo(front.table())
    if (knee := front.knee) is not None:
        echo(f"\nThe knee: {100.0 * knee.share:.2g} % of what g can gain brings f to {knee.upper:.4g}.")
    if table is not None:
        write_table(front, table)
        echo(f"\nThe table is in {table}.")
    if out is not None:
        front.plot().savefig(out, dpi=150)
        echo(f"\nThe figure is in {out}. The bounds f* ≥ and f* ≤ are proven, not estimated.")
    return front


def write_table(front: tiebreak.Frontier, path: Path) -> None:
    """Write a frontier as CSV, one line per point, with those of both ends; what is not known is empty."""
    rows = front.rows()
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: "" if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        )
    write_atomically(path, text.getvalue().encode())
