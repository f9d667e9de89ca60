"""Figures of studies: described by data, drawn in one way, as a whole for files and panel by panel for the page."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak.driver.figures import COLOURS, label_sparsely, legend_columns, set_signed_scale

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

GREY = "#777777"  # of lines without a label
RANGES = 6  # bars along a line that show its range
POINTS = 240  # points of a line that is interpolated
POSITIVE = 0.8  # share of numbers for a logarithmic axis that leaves out the others
NEARLY_ZERO = 1e-6  # distance below 0, relative to the largest size, of a number that is meant as 0
ZERO = 1e-14  # size, relative to the largest, of a number that is 0 but for rounding
PANEL_WIDTH = 4.3  # inches


@dataclass(frozen=True)
class Line:
    """A line, or points, with a range around it.

    Parameters
    ----------
    label : str
        Of the legend; lines of one label in a figure have one colour. Empty: not in the legend, and grey.
    x, y : array
    low, high : array, optional
        Limits of the range.
    style : str
        As Matplotlib has it: "-", "--", ":", or "o" for points.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    style: str = "-"


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Parameters
    ----------
    title : str
        What is drawn, and its unit.
    lines : list of Line
    xlabel : str
    xscale, yscale : "linear", "log" or "symlog"
        A logarithmic axis for signed numbers becomes a symmetric one; if only a few are zero, these are not drawn.
    """

    title: str
    lines: Sequence[Line]
    xlabel: str
    xscale: str = "linear"
    yscale: str = "linear"


@dataclass(frozen=True)
class Figure:
    """Some panels side by side.

    Parameters
    ----------
    name : str
        Of the files.
    caption : str
    panels : list of Panel
    """

    name: str
    caption: str
    panels: Sequence[Panel] = field(default_factory=list)

    @property
    def colours(self) -> dict[str, str]:
        """The colours of the labels, in the order in which they come."""
        labels = dict.fromkeys(line.label for panel in self.panels for line in panel.lines if line.label)
        return {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labels)}


def band(label: str, outcomes: Mapping[int, Any], x: str, y: str, scale: float = 1.0, style: str = "-") -> Line:
    """Return the mean of a column of outcomes over seeds, with a band from the least to the largest.

    Parameters
    ----------
    label : str
    outcomes : dict of Outcome
        By seed; ``x`` and ``y`` name arrays of theirs.
    x, y : str
    scale : float
        By which y is multiplied.
    style : str
    """
    curves = [
        (np.asarray(o.arrays[x], dtype=float), scale * np.asarray(o.arrays[y], dtype=float)) for o in outcomes.values()
    ]
    return band_of(label, curves, style)


def band_of(label: str, curves: Sequence[tuple[np.ndarray, np.ndarray]], style: str = "-") -> Line:
    """Return the mean of curves, pairs of x and y, with a band; where their x differ they are interpolated."""
    curves = [(x[keep], y[keep]) for x, y in curves for keep in [np.isfinite(y)] if keep.any()]
    if not curves:
        return Line(label, np.zeros(0), np.zeros(0), style=style)
    grid = curves[0][0]
    if any(x.shape != grid.shape or (x != grid).any() for x, _ in curves):
        start, end = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
        inside = np.unique(np.concatenate([x[(x >= start) & (x <= end)] for x, _ in curves]))
        grid = inside if inside.size <= POINTS else inside[np.linspace(0, inside.size - 1, POINTS).astype(int)]
    values = np.array([np.interp(grid, x, y) for x, y in curves])
    return Line(label, grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0), style)


def draw(figure: Figure) -> matplotlib.figure.Figure:
    """Draw all panels side by side, two or three per row, with one legend that is no wider than they are."""
    from matplotlib.figure import Figure as Canvas

    columns = 2 if len(figure.panels) == 4 else min(3, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    canvas = Canvas(figsize=(PANEL_WIDTH * columns, 3.3 * rows + 0.3), layout="constrained")
    axes = np.atleast_1d(canvas.subplots(rows, columns)).ravel()
    for panel, ax in zip(figure.panels, axes, strict=False):
        draw_panel(ax, panel, figure.colours)
    for ax in axes[len(figure.panels) :]:
        ax.set_axis_off()
    entries = [(label, handle) for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)]
    found = dict(sorted(entries, key=lambda entry: entry[1].get_linestyle() == "-"))  # a solid line stands for its label
    found = {label: found[label] for label, _ in entries}
    if found:
        fitting = legend_columns(list(found), PANEL_WIDTH * columns)
        canvas.legend(found.values(), found.keys(), loc="outside upper center", ncols=fitting, frameon=False)
    return canvas


def draw_panel(ax: Axes, panel: Panel, colours: Mapping[str, str]) -> None:
    """Draw one panel."""
    from matplotlib.ticker import EngFormatter

    for line in panel.lines:
        if not line.x.size:
            continue
        colour = colours.get(line.label, GREY)
        size = {"marker": "o", "linestyle": "", "markersize": 4.0} if line.style == "o" else {"linestyle": line.style}
        ax.plot(line.x, line.y, color=colour, linewidth=1.6, label=line.label or None, **size)
    ranged = [(line, line.low, line.high) for line in panel.lines if line.low is not None and line.high is not None]
    for line, *limits in ranged:
        for limit in limits:
            ax.update_datalim(np.column_stack([line.x, limit])[np.isfinite(limit)])
    ax.autoscale_view()
    _set_scale(ax, "y", panel.yscale, [v for line in panel.lines for v in (line.y, line.low, line.high) if v is not None])
    _set_scale(ax, "x", panel.xscale, [line.x for line in panel.lines])
    for k, (line, low, high) in enumerate(ranged):
        _draw_range(ax, line.x, low, high, colours.get(line.label, GREY), (k + 0.5) / len(ranged))
    if panel.xscale == "linear" and ax.dataLim.xmax >= 1e4:
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    label_sparsely(ax)
    ax.set_title(panel.title, fontsize=10, loc="left")
    ax.set_xlabel(panel.xlabel)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_range(ax: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, place: float) -> None:
    """Draw the range of a line as bars, at other places than those of the other lines of a panel: none covers another."""
    at = np.arange(x.size)
    if x.size > RANGES:
        shown = ax.transData.transform(np.column_stack([x, np.ones_like(x)]))[:, 0]  # as the axis is scaled
        wanted = shown[0] + (shown[-1] - shown[0]) * (np.arange(RANGES) + place) / RANGES
        at = np.unique([int(np.abs(shown - each).argmin()) for each in wanted])
    bottom, top = ax.get_ylim()
    ends = [np.clip(limit[at], bottom, top) for limit in (low, high)]  # a logarithmic axis does not reach 0
    ax.vlines(x[at], *ends, color=colour, linewidth=1.0)
    for end in ends:
        ax.plot(x[at], end, "_", color=colour, markersize=4.0, markeredgewidth=1.0)
    ax.set_ylim(bottom, top)


def images(figure: Figure) -> list[tuple[str, bytes]]:
    """Return each panel as a PNG image of its own, with its title."""
    from matplotlib.figure import Figure as Canvas

    drawn = []
    for panel in figure.panels:
        canvas = Canvas(figsize=(4.4, 3.3), layout="constrained")
        draw_panel(canvas.subplots(), panel, figure.colours)
        stream = io.BytesIO()
        canvas.savefig(stream, format="png", dpi=180)
        drawn.append((panel.title, stream.getvalue()))
    return drawn


def _set_scale(ax: Axes, axis: str, scale: str, values: Sequence[np.ndarray]) -> None:
    """Set the scale of an axis: logarithmic for numbers that are nearly all positive, symmetric for signed ones."""
    flat = np.concatenate([np.zeros(0), *(np.asarray(v, dtype=float).ravel() for v in values)])
    flat = flat[np.isfinite(flat)]
    sizes = np.abs(flat[flat != 0.0])
    if scale == "linear" or not sizes.size:
        return
    nearly_positive = (flat > 0.0).mean() >= POSITIVE and flat.min() >= -NEARLY_ZERO * sizes.max()
    if (scale == "log" and nearly_positive) or flat.min() > 0.0:
        getattr(ax, f"set_{axis}scale")("log", nonpositive="mask")
        if axis == "y" and flat.min() <= ZERO * sizes.max():  # what is 0 but for rounding must not squeeze the others
            ax.set_ylim(bottom=float(flat[flat > ZERO * sizes.max()].min()) / 2.0)
        return
    set_signed_scale(ax, flat, axis)
    if axis == "y":
        ax.axhline(0.0, color="#999999", linewidth=0.7)
