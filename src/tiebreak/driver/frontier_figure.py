"""The figure of a frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiebreak.driver.figures import COLOURS, label_sparsely

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tiebreak.driver.frontier import Frontier, FrontierEnd

GRID = 240  # tolerances at which the band is drawn
WIDE = 30.0  # ratio of the largest to the smallest value from which on an axis is logarithmic
DEEPEST = 1e-5  # share of the largest value at which a logarithmic axis ends: smaller ones are as good as 0
STROKES, GAPS = (0, (5, 5)), (5, (5, 5))  # dashes of two lines that are both seen where one lies on the other
MARGIN = 0.12  # room above and below, as a share of the range


def draw(front: Frontier) -> Figure:
    """Draw the band of f*(ε) and the answers, and below them the third objective, if there is one."""
    from matplotlib.figure import Figure

    positive = [point for point in front.points if point.tolerance > 0.0]
    if not positive:
        raise ValueError("there is nothing to draw: no tolerance above 0 is done")
    panels = 2 if front.others else 1
    figure = Figure(figsize=(9.6, 4.6 if panels == 1 else 6.8), layout="constrained")
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=[3, 2][:panels])[:, 0]
    _draw_band(axes[0], front)
    if front.others:
        _draw_other(axes[1], front)
    for panel in axes:
        panel.set_xscale("log")
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines["right"].set_visible(False)
        panel.spines["top"].set_visible(panel is axes[0] and front.gain > 0.0)
        label_sparsely(panel)
        _place_legend(panel)
    figure.align_ylabels(axes)
    axes[-1].set_xlabel("tolerance ε: g(x) ≤ g* + ε")
    if front.gain > 0.0:
        shares = axes[0].secondary_xaxis("top", functions=(lambda e: e / front.gain, lambda s: s * front.gain))
        shares.set_xlabel("ε as a share of g(centre) − g*")
    return figure


def _place_legend(axes: Axes) -> None:
    """Put the names of all lines beside a panel, where they lie on none of them."""
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _draw_band(axes: Axes, front: Frontier) -> None:
    """Draw f: the proven band, the answers, the knee, and f at both ends."""
    positive = [point for point in front.points if point.tolerance > 0.0]
    at = np.array([point.tolerance for point in positive])
    upper = np.array([point.upper for point in positive])
    exact = [point.upper for point in front.points if point.tolerance == 0.0]
    low, high = _scale(axes, np.array([*upper, *exact]))
    if (confidence := positive[0].result.certificate.confidence) < 1.0:
        floors = np.array([point.floor for point in positive])
        shown = floors > low
        label = f"f* ≥ this, with probability {confidence:g} each"
        axes.plot(at[shown], floors[shown], "^", color=COLOURS[0], markersize=5, fillstyle="none", label=label)
    else:
        grid = np.union1d(np.geomspace(at[0], at[-1], GRID) if at.size > 1 else at, at)
        bounds = (np.array([bound(each) for each in grid]) for bound in (front.band.floor, front.band.ceiling))
        floors, ceilings = (
            np.clip(bound, low, high) for bound in bounds
        )  # which may be infinite, or 0 on a logarithmic axis
        axes.fill_between(grid, floors, ceilings, color=COLOURS[0], alpha=0.25, linewidth=0.8, label="f* lies here: proven")
    axes.plot(at, upper, "o", color=COLOURS[0], markersize=4, label="f at the answers")
    if (knee := front.knee) is not None:
        axes.plot(knee.tolerance, knee.upper, "o", color=COLOURS[2], markersize=9, fillstyle="none", label="knee")
    if exact:
        axes.axhline(exact[0], color=COLOURS[1], linewidth=1.4, linestyle=STROKES, label=f"exact tie, ε = 0: {exact[0]:.3g}")
    for name, end, colour in _ends(front):
        _draw_level(axes, f"{name} alone", end.certificate.upper, colour, (low, high))
    axes.set_ylim(low, high)
    axes.set_ylabel("f")


def _ends(front: Frontier) -> list[tuple[str, FrontierEnd, str]]:
    """Return both ends, as far as they are known, with their names and colours."""
    ends = (("g", front.lower_alone, COLOURS[5]), ("f", front.upper_alone, COLOURS[8]))
    return [(name, end, colour) for name, end, colour in ends if end is not None]


def _draw_level(axes: Axes, name: str, value: float, colour: str, limits: tuple[float, float]) -> None:
    """Draw a line at a value, and name it with its value; one that is far away is only named."""
    low, high = limits
    where = "" if low <= value <= high else f", far {'above' if value > high else 'below'}"
    line = axes.axhline(value, color=colour, linewidth=1.4, linestyle=GAPS, label=f"{name}: {value:.3g}{where}")
    line.set_visible(not where)


def _scale(axes: Axes, values: np.ndarray) -> tuple[float, float]:
    """Give an axis a logarithmic scale, if values are positive and differ much; return the limits for them."""
    least, largest = float(values.min()), float(values.max())
    if least > 0.0 and largest > WIDE * least:
        axes.set_yscale("log")
        room = (largest / max(least, DEEPEST * largest)) ** MARGIN
        return max(least, DEEPEST * largest) / room, largest * room
    room = MARGIN * (largest - least) or max(abs(largest), 1e-300)
    return least - room, largest + room


def _draw_other(axes: Axes, front: Frontier) -> None:
    """Draw the third objective at the answers, and at both ends."""
    at, values = np.array([(point.tolerance, point.also) for point in front.points]).T
    limits = _scale(axes, values)
    axes.plot(
        at[at > 0.0], values[at > 0.0], "o-", color=COLOURS[4], markersize=4, linewidth=1.2, label="also, at the answers"
    )
    if at[0] == 0.0:
        label = f"exact tie, ε = 0: {values[0]:.3g}"
        axes.axhline(values[0], color=COLOURS[1], linewidth=1.4, linestyle=STROKES, label=label)
    for name, end, colour in _ends(front):
        _draw_level(axes, f"{name} alone", end.also, colour, limits)
    axes.set_ylabel("also")
    axes.set_ylim(*limits)
