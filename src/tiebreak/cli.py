"""The `tiebreak` command."""

from __future__ import annotations

import itertools
import math
import shutil
import textwrap
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from tiebreak.methods import Method
    from tiebreak.studies.near_ties import Losses


FRONTIER_HELP = (
    "Show what a little of the training loss buys of the validation loss; print a table and write a figure.\n\n"
    "For data of your own: --lower train.csv --upper validation.csv --target y. Columns are taken as they are: nothing is"
    " centred, scaled or encoded, and no intercept is added. For an intercept, add a column of ones to all files; its"
    " coefficient counts for the radius as the others do."
)


class Loss(StrEnum):
    """A loss of a linear model."""

    squares = "squares"
    logistic = "logistic"
    huber = "huber"


app = typer.Typer(add_completion=False, no_args_is_help=True, help="Break the tie among equally good models.")


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="The figure of near ties to write; that of the methods gets its name and -methods.")
    ] = Path("demo.png"),
    max_queries: Annotated[int, typer.Option(help="Samples that each method may draw.", min=1000)] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Seed of the data, the split and the methods.", min=0)] = 0,
) -> None:
    """Show what a little of the training loss buys in the paper's regression, then its methods: tables and two figures."""
    from tiebreak.studies.demo import run

    _check_figure(out)
    run(out, max_queries, seed, typer.echo)


@app.command(help=FRONTIER_HELP)
def frontier(
    data: Annotated[
        str | None,
        typer.Option(help="pageviews (by default), montevideo:PATH, wikimath or wikimath:PATH.", metavar="KIND[:PATH]"),
    ] = None,
    lower: Annotated[Path | None, typer.Option(help="In place of --data: a CSV or Parquet file with the data of g.")] = None,
    upper: Annotated[Path | None, typer.Option(help="A file with the data of f, and the same columns.")] = None,
    also: Annotated[Path | None, typer.Option(help="A file on which the loss is evaluated along the curve.")] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict; all others are features.")] = None,
    loss: Annotated[Loss, typer.Option(help="The loss of both files; logistic: targets are -1 and 1, or 0 and 1.")] = (
        Loss.squares
    ),
    delta: Annotated[
        float, typer.Option(help="Residual from which on the Huber loss is linear, in units of the target.")
    ] = 1.0,
    out: Annotated[Path, typer.Option(help="The figure to write.")] = Path("frontier.png"),
    table: Annotated[Path | None, typer.Option(help="A CSV file to write the table to.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="A file to save points to, and to continue from.")] = None,
    points: Annotated[int, typer.Option(help="How many tolerances above 0.", min=2)] = 12,
    radius: Annotated[float, typer.Option(help="Radius of the l1 ball of models.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Seed of the data and the split; for --data alone.", min=0)] = 0,
) -> None:
    """Show what a little of the training loss buys of the validation loss; print a table and write a figure."""
    from tiebreak.studies.near_ties import run

    _check_figure(out)
    for file, option in ((out, "--out"), (table, "--table"), (checkpoint, "--checkpoint")):
        if file is not None and not file.parent.is_dir():
            raise typer.BadParameter(f"there is no folder {file.parent}", param_hint=option)
        if file is not None and any(read is not None and _same_file(file, read) for read in (lower, upper, also)):
            raise typer.BadParameter(f"{file} is read, and would be overwritten", param_hint=option)
    if not 0.0 < radius < math.inf:
        raise typer.BadParameter(f"must be a positive number, got {radius}", param_hint="--radius")
    files = {"--lower": lower, "--upper": upper, "--also": also, "--target": target}
    if any(value is not None for value in files.values()):
        losses = _losses_of_files(data, files, loss, delta)
    else:
        losses = _losses_of_source(data or "pageviews", seed)
    try:
        run(losses, points, radius, typer.echo, out=out, table=table, checkpoint=checkpoint)
    except KeyboardInterrupt:
        typer.echo("Interrupted before the first point was done.", err=True)
        raise typer.Exit(130) from None
    except ValueError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None


def _same_file(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _losses_of_source(data: str, seed: int) -> Losses:
    from tiebreak.studies.near_ties import SOURCES, of_source
    from tiebreak.studies.sources import chosen

    try:
        return of_source(chosen(data, SOURCES), seed)
    except (ValueError, OSError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint="--data") from None


def _losses_of_files(data: str | None, files: dict[str, Any], loss: str, delta: float) -> Losses:
    from tiebreak.studies.near_ties import of_files

    if data is not None:
        raise typer.BadParameter("either this or files are given, --lower and --upper", param_hint="--data")
    for option in ("--lower", "--upper", "--target"):
        if files[option] is None:
            raise typer.BadParameter("must be given with the others: --lower, --upper and --target", param_hint=option)
    try:
        return of_files(files["--lower"], files["--upper"], files["--also"], files["--target"], loss, delta)
    except (ValueError, OSError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint="--lower, --upper or --also") from None


def _check_figure(out: Path) -> None:
    """Raise if a figure cannot be written to a file of this name."""
    if out.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(f"a figure is written as .png, .pdf or .svg, not {out.name}", param_hint="--out")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {out.parent}", param_hint="--out")


class ListsStudies(TyperCommand):
    """A command whose help ends with the studies that there are, which are not imported for anything else."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from tiebreak.studies.catalogue import STUDIES

        listed = [f"{name}: {study.title} ({study.reference})" for name, study in STUDIES.items()]
        self.epilog = "\n\n".join(["Studies:", *listed])
        super().format_help(ctx, formatter)


@app.command(cls=ListsStudies)
def reproduce(
    names: Annotated[list[str], typer.Argument(help="Studies, of those below, or all of them: all.", metavar="NAME...")],
    seeds: Annotated[
        int | None, typer.Option(help="Seeds of each run: 10, or 5 with --quick; fewer decide no claim.", min=1)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small budgets: see that everything works.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes; -1: as many as there are cores.")] = -1,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Data to use, such as montevideo:bus.json; may be repeated.", metavar="KIND[:PATH]"),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write to. What is finished there is not run again.")] = Path(
        "reproduction"
    ),
) -> None:
    """Run the papers' experiments again; write figures, a summary and a report that says which claims hold."""
    from tiebreak.studies.catalogue import STUDIES
    from tiebreak.studies.reproduce import reproduce as run
    from tiebreak.studies.sources import chosen
    from tiebreak.studies.store import StoreError
    from tiebreak.studies.study import Plan

    unknown = [name for name in names if name not in (*STUDIES, "all")]
    if unknown:
        raise typer.BadParameter(
            f"there is no study {unknown[0]!r}; there are {', '.join(STUDIES)}, and all", param_hint="NAME"
        )
    if jobs == 0 or jobs < -1:
        raise typer.BadParameter(f"must be a number of processes, or -1 for all cores, got {jobs}", param_hint="--jobs")
    studies = [study for name, study in STUDIES.items() if name in names or "all" in names]
    try:
        sources = tuple(chosen(text, (kind for study in studies for kind in study.sources)) for text in data or ())
    except (ValueError, OSError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint="--data") from None
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"the folder {out} cannot be made: {error}", param_hint="--out") from None
    plan = Plan(seeds or (5 if quick else 10), quick, sources)
    try:
        report = run(studies, plan, out, jobs, typer.echo)
    except StoreError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. Finished runs are kept in {out / 'runs'}: the same command continues there.", err=True)
        raise typer.Exit(130) from None
    if report.failed:
        raise typer.Exit(1)


@app.command()
def store(
    source: Annotated[Path, typer.Argument(help="A Parquet, CSV, Arrow or .npy file, or a folder of such tables.")],
    folder: Annotated[Path, typer.Argument(help="The folder to make. The same command continues one that was interrupted.")],
    target: Annotated[str | None, typer.Option(help="The column to predict, or for .npy another .npy file.")] = None,
    sample_weight: Annotated[str | None, typer.Option(help="The column of weights, if there is one.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order of the rows.", min=0)] = 0,
    in_order: Annotated[bool, typer.Option("--in-order", help="Keep the order of the rows: do not shuffle them.")] = False,
    chunk_bytes: Annotated[int, typer.Option(help="Memory to use, about.", min=4096)] = 1 << 28,
) -> None:
    """Write data that may be larger than memory to a folder from which objectives read them in place."""
    from tiebreak.data import store as write

    try:
        made = write(
            source,
            folder,
            target=target,
            sample_weight=sample_weight,
            seed=None if in_order else seed,
            chunk_bytes=chunk_bytes,
        )
    except KeyboardInterrupt:
        typer.echo("Interrupted. What was done is kept: the same command continues there.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(made)


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="A method, to list its parameters.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown, as the pages have it.")] = False,
) -> None:
    """List the methods: what each is for, what it needs, its rates at the upper and the lower level, where it is from."""
    from tiebreak.methods import METHODS

    if name is not None:
        if name.lower() not in METHODS:
            raise typer.BadParameter(f"there is no method {name!r}; there are {', '.join(METHODS)}", param_hint="NAME")
        typer.echo(_parameters(METHODS[name.lower()]))
        return
    head = ("name", "setting", "needs", "rates: upper; lower", "citation")
    rows = [(cls.name, cls.setting, cls.needs, cls.rates, cls.citation) for cls in METHODS.values()]
    if markdown:
        needs, origins = [(0, 2, 3), (0, 1, 4)]  # the columns of two tables, each narrow enough for a page
        typer.echo("\n\n".join(_markdown([head, *rows], columns) for columns in (needs, origins)))
    else:
        typer.echo(_table(head, rows, _width()))


def _markdown(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> str:
    """Return some columns of a table as Markdown; the first row is its head, the first column are names of methods."""
    cells = [[row[k].replace("*", "\\*") for k in columns] for row in rows]
    body = [[f"`{name}`", *others] for name, *others in cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in (cells[0], ["---"] * len(columns), *body))


def _parameters(cls: type[Method]) -> str:
    """Return what a method is and its parameters, as a text."""
    from tiebreak.methods.parameters import parameters_of

    head = ("parameter", "kind", "default", "meaning")
    rows = [
        (each.name, each.kind, "" if each.default is None else repr(each.default), each.meaning)
        for each in parameters_of(cls)
    ]
    first = f"{cls.__name__}: {cls.citation}; {cls.setting}; needs {cls.needs}"
    return "\n".join(
        [
            first,
            *([f"Presets: {', '.join(cls.presets)}"] if cls.presets else []),
            "",
            _table(head, rows, _width()) if rows else "",
        ]
    ).rstrip()


def _width() -> int:
    return shutil.get_terminal_size((160, 24)).columns


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
