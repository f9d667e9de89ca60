"""Figures of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tiebreak.driver.result import STAGES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from tiebreak.driver.result import Result

# Ten colours that readers with any kind of colour blindness tell apart: Petroff (2021), Accessible color sequences for
# data visualization, arXiv:2107.02270.
COLOURS = ["#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadb"]
LEGEND_LINE, LEGEND_LETTER = 0.6, 0.09  # inches of a legend's entry: its line and the gap after it, and one letter
WIDTH = 10.0  # inches
DASHES = (":", "-", "--")  # of the phases of a run
UNEVEN = 10.0  # ratio of the longest to the shortest run from which on samples have a logarithmic axis
FEW_DECADES = 50.0  # ratio of the ends of an axis that has less than two powers of ten between them
LABEL_SHARE = 0.08  # share of an axis that the label of a tick takes
TICKS = 6  # labels along an axis for signed numbers, about


def plot_results(results: Mapping[str, Result]) -> Figure:
    """Draw both objectives and the bounds of both gaps against queries, one line per result."""
    return plot_groups({name: (result,) for name, result in results.items()})


def plot_groups(groups: Mapping[str, Sequence[Result]]) -> Figure:
    """Draw the same of groups of results, one colour per group."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(WIDTH, 6.4), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    approximate = any(result.certificate.approximate for group in groups.values() for result in group)
    kind = "approximate" if approximate else "proven"
    panels = [
        (axes[0, 0], "lower", "lower objective g(x)", "log"),
        (axes[0, 1], "upper", "upper objective f(x)", "log"),
        (axes[1, 0], "lower_gap_bound", f"{kind}: g(x) − g* is at most", "log"),
        (axes[1, 1], "upper_gap_bound", f"{kind}: f(x) − f* is at most", "symlog"),
    ]
    for panel, column, title, scale in panels:
        for colour, (name, group) in zip(COLOURS * len(groups), groups.items(), strict=False):
            for k, result in enumerate(group):
                _draw(panel, result, column, name if k == 0 else "_" + name, colour)  # one entry of the legend per group
        _scale(panel, scale)
        label_sparsely(panel)
        panel.set_title(title, fontsize=10, loc="left")
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    runs = [result for group in groups.values() for result in group]
    for panel in axes[1]:
        panel.set_xlabel("samples drawn (both levels)")
        _scale_samples(panel, [result.history.queries for result in runs])
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    stages = _stages(runs)
    labels = [*labels, *stages]
    columns = legend_columns(labels, WIDTH)
    figure.legend([*handles, *stages.values()], labels, loc="outside upper right", ncols=columns, frameon=False)
    return figure


def legend_columns(labels: Sequence[str], width: float) -> int:
    """Return how many entries fit into one row of a legend of so many inches."""
    entry = LEGEND_LINE + LEGEND_LETTER * max(map(len, labels))
    return max(min(len(labels), int(width / entry)), 1)


def _stages(runs: Sequence[Result]) -> dict[str, Line2D]:
    """Return what the dotted and dashed parts of the lines stand for, as entries of a legend; those that there are."""
    from matplotlib.lines import Line2D

    seen = {int(phase) for result in runs for phase in result.history.phase}
    return {
        f"while {stage}": Line2D([], [], color="#555555", linestyle=DASHES[phase], linewidth=1.4)  # type: ignore[arg-type]
        for phase, stage in enumerate(STAGES)
        if stage and phase in seen
    }


def _scale_samples(panel: Axes, queries: Sequence[np.ndarray]) -> None:
    """Scale the axis of samples: logarithmic where a run is much shorter than another one, and would be a mere stroke."""
    ends = [float(each[-1]) for each in queries]
    firsts = [float(each[each > 0][0]) for each in queries if (each > 0).any()]
    if firsts and max(ends) > UNEVEN * max(min(ends), 1.0):
        panel.set_xscale("log")
        panel.set_xlim(min(firsts), 1.1 * max(ends))
    else:
        panel.set_xlim(left=0)


def _draw(panel: Axes, result: Result, column: str, name: str, colour: str) -> None:
    """Draw one column of a history: dotted while the first point is sought, dashed while g is lowered at the end."""
    history = result.history
    queries, values, phases = history.queries, getattr(history, column), history.phase
    for phase, dashes in enumerate(DASHES):
        part = phases == phase
        if phase > 0 and part.any():
            part[max(int(part.argmax()) - 1, 0)] = True  # the lines join
        label = name if phase == 1 else None
        panel.plot(queries[part], values[part], color=colour, linestyle=dashes, label=label, linewidth=1.6)
    panel.plot(queries[-1:], values[-1:], "o", color=colour, markersize=3.5)


def _scale(panel: Axes, scale: str) -> None:
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in panel.lines])
    values = values[np.isfinite(values)]
    if (values > 0.0).all():
        panel.set_yscale("log")
    elif scale == "symlog" and (values != 0.0).any():
        set_signed_scale(panel, values)


def label_sparsely(axes: Axes) -> None:
    """Label each logarithmic axis at powers of ten, or where there are too few of them at 1, 2 and 5 times these."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log":
            axis.set_minor_formatter(NullFormatter())
            if high < FEW_DECADES * low:
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def set_signed_scale(axes: Axes, values: np.ndarray, axis: str = "y") -> None:
    """Give an axis a scale for numbers of both signs: logarithmic away from zero, with room for the labels around it.

    Parameters
    ----------
    axes : Axes
    values : array
        Finite numbers, not all of them zero.
    axis : "x" or "y"
    """
    sizes = np.abs(values[values != 0.0])
    largest = np.log10(sizes.max())
    first = np.floor(np.log10(max(np.percentile(sizes, 10), sizes.max() * 1e-6)))  # the first decade away from zero
    decades = sum(largest - first for sign in (-1.0, 1.0) if (sign * values > 10.0**first).any())
    room = max(1.0, LABEL_SHARE / (1.0 - 2.0 * LABEL_SHARE) * decades)  # decades that zero is apart from its neighbours
    getattr(axes, f"set_{axis}scale")("symlog", linthresh=float(10.0**first), linscale=float(room))
    getattr(axes, f"{axis}axis").get_major_locator().set_params(numticks=TICKS)
