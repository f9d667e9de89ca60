"""Figures of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tiebreak.driver.result import Result

COLOURS = ["#2a6fbb", "#d1642b", "#3a8f5c", "#8a5aa8", "#b0892d", "#c2486d", "#4b9fb3", "#6b6b6b", "#1d2f5e", "#93a832"]
LEGEND_COLUMNS = 6  # entries per row of a legend


def plot_results(results: Mapping[str, Result]) -> Figure:
    """Draw both objectives and the bounds of both gaps against queries, one line per result."""
    return plot_groups({name: (result,) for name, result in results.items()})


def plot_groups(groups: Mapping[str, Sequence[Result]]) -> Figure:
    """Draw the same of groups of results, one colour per group."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(10, 6.4), layout="constrained")
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
        panel.set_title(title, fontsize=10, loc="left")
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in axes[1]:
        panel.set_xlabel("samples drawn (both levels)")
        panel.set_xlim(left=0)
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=min(len(labels), LEGEND_COLUMNS), frameon=False)
    return figure


def _draw(panel: Axes, result: Result, column: str, name: str, colour: str) -> None:
    """Draw one column of a history: dotted while the first point is sought, solid afterwards."""
    history = result.history
    queries, values = history.queries, getattr(history, column)
    seeking = history.phase == 0
    main = ~seeking
    main[max(int(seeking.sum()) - 1, 0)] = True  # the lines join
    panel.plot(queries[seeking], values[seeking], color=colour, linestyle=":", linewidth=1.2)
    panel.plot(queries[main], values[main], color=colour, label=name, linewidth=1.6)


def _scale(panel: Axes, scale: str) -> None:
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in panel.lines])
    finite = np.abs(values[np.isfinite(values) & (values != 0.0)])
    if scale == "log" and (values[np.isfinite(values)] > 0.0).all():
        panel.set_yscale("log")
    elif scale == "symlog" and finite.size > 0:
        panel.set_yscale("symlog", linthresh=max(float(np.percentile(finite, 10)), 1e-300))
