"""The `tiebreak` command."""

from __future__ import annotations

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
    """Solve a bilevel regression at the paper's full size with SBCGI and SBCGF; print a table, write a figure."""
    from tiebreak.experiments.demo import run

    if out.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(f"a figure is written as .png, .pdf or .svg, not {out.name}", param_hint="--out")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {out.parent}", param_hint="--out")
    run(out, max_queries, seed, typer.echo)


@app.command()
def methods() -> None:
    """List the methods: what each is for, what it needs, how fast it converges in theory, where it is from."""
    from tiebreak.methods import METHODS

    for cls in METHODS.values():
        typer.echo(cls.name)
        for heading in ("setting", "needs", "rates", "citation"):
            typer.echo(f"  {heading:<10}{getattr(cls, heading)}")


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Break the tie among equally good models."""
    if version:
        from tiebreak import __version__

        typer.echo(__version__)
        raise typer.Exit
