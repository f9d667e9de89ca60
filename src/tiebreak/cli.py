"""The `tiebreak` command."""

from __future__ import annotations

import itertools
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Break the tie among equally good models.")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The figure to write.")] = Path("demo.png"),
    max_queries: Annotated[int, typer.Option(help="Samples that each method may draw.", min=1000)] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Seed of the data, the split and the methods.", min=0)] = 0,
) -> None:
    """Solve the paper's regression with a method that is chosen, SBCGI and SBCGF; print a table, write a figure."""
    from tiebreak.experiments.demo import run

    if out.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(f"a figure is written as .png, .pdf or .svg, not {out.name}", param_hint="--out")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {out.parent}", param_hint="--out")
    run(out, max_queries, seed, typer.echo)


@app.command()
def methods() -> None:
    """List the methods: what each is for, what it needs, its rates at the upper and the lower level, where it is from."""
    from tiebreak.methods import METHODS

    head = ("name", "setting", "needs", "rates: upper; lower", "citation")
    rows = [(cls.name, cls.setting, cls.needs, cls.rates, cls.citation) for cls in METHODS.values()]
    typer.echo(_table(head, rows, shutil.get_terminal_size((160, 24)).columns))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Return a table whose cells are wrapped, those of the widest column first, so that it fits a width."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > 15:
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in (head, ["─" * w for w in widths], *rows):
        cells = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
        lines += [
            "  ".join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip()
            for parts in itertools.zip_longest(*cells, fillvalue="")
        ]
    return "\n".join(lines)


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Break the tie among equally good models."""
    if version:
        from tiebreak import __version__

        typer.echo(__version__)
        raise typer.Exit
