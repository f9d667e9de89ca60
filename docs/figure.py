"""Draw the figure of the README and of the first page: ``python docs/figure.py`` writes ``docs/_static/tiebreak.png``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, scale

import tiebreak

FILE = Path(__file__).parent / "_static" / "tiebreak.png"
BLUE, GREEN, RED, ORANGE = "#2a6fbb", "#2f7d4f", "#c2486d", "#d1642b"


def draw() -> Figure:
    """Return the figure: a tie in two dimensions, and the frontier of a regression."""
    with plt.rc_context({"font.size": 12, "axes.titlesize": 13}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.4), width_ratios=[4, 5], layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12)
        draw_tie(left)
        draw_frontier(right)
    return figure


def draw_tie(panel: Axes) -> None:
    """Show a disc, the minimisers of g in it, the level lines of f, and the point that ``minimize`` finds."""
    slope, offset = np.array([0.5, 1.0]), 0.1
    factor, centre = np.array([[1.0, 0.4], [-0.3, 0.8]]), np.array([-0.3, 0.9])
    f, g = tiebreak.LeastSquares(factor, factor @ centre), tiebreak.LeastSquares(slope[None], [offset])
    answer = tiebreak.minimize(tiebreak.Problem(upper=f, lower=g, domain=tiebreak.L2Ball(1.0)), progress=False).x

    grid = np.linspace(-1.1, 1.1, 201)
    points = np.stack(np.meshgrid(grid, grid), axis=-1)
    values = 0.25 * np.sum(((points - centre) @ factor.T) ** 2, axis=-1)
    disc = plt.Circle((0.0, 0.0), 1.0, facecolor="#eef3fa", edgecolor=BLUE, linewidth=1.5)
    panel.add_patch(disc)
    panel.contour(grid, grid, values, levels=14, colors=ORANGE, linewidths=0.9, alpha=0.8).set_clip_path(disc)
    foot = offset * slope / (slope @ slope)
    along = np.array([-slope[1], slope[0]]) / np.linalg.norm(slope) * np.sqrt(1.0 - foot @ foot)
    panel.plot(*np.stack([foot - along, foot + along]).T, color=GREEN, linewidth=3.5, solid_capstyle="butt")
    panel.plot(*answer, "*", color=RED, markersize=20, markeredgecolor="white")
    for text, place, colour in (
        ("all models", (0.0, -0.86), BLUE),
        ("the best fits", (0.56, 0.14), GREEN),
        ("lines of equal\nvalidation loss", (0.0, -0.42), ORANGE),
        ("the answer", (-0.42, 0.56), RED),
    ):
        box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.0}
        panel.text(*place, text, color=colour, ha="center", va="center", weight="bold", bbox=box)
    panel.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal", title="Many models fit best. Which one?")
    panel.axis("off")


def draw_frontier(panel: Axes) -> None:
    """Show what a share of the training fit buys on the diabetes data, with squares and products of all features."""
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(PolynomialFeatures(2, include_bias=False).fit_transform(scale(X))), scale(y)
    parts = np.array_split(np.random.default_rng(0).permutation(len(y)), 3)
    train, validation, test = (tiebreak.LeastSquares(X[rows], y[rows]) for rows in parts)
    problem = tiebreak.Problem(upper=validation, lower=train, domain=tiebreak.L1Ball(10.0))
    front = tiebreak.frontier(problem, points=16, also=test, progress=False)

    points = [point for point in front.points if point.tolerance > 0.0]
    shares = 100.0 * np.array([point.share for point in points])
    exact = front.points[0]
    for name, colour, losses, level in (
        ("test", RED, [point.also for point in points], exact.also),
        ("validation", BLUE, [point.upper for point in points], exact.upper),
    ):
        panel.plot(shares, losses, "o-", color=colour, markersize=4, linewidth=1.8, label=name)
        panel.axhline(level, color=colour, linestyle=":", linewidth=1.2)
    panel.text(shares[0], exact.upper + 0.006, "exact tie", color="0.35", va="bottom")
    panel.set(xscale="log", xlabel="share of the training fit given up, %", ylabel="loss / variance of the target")
    panel.set(ylim=(0.0, 0.46), title="What a little of the fit buys: the frontier")
    panel.set_xticks([1e-4, 1e-2, 1.0, 10.0], ["0.0001", "0.01", "1", "10"])
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, loc="lower left")


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if len(sys.argv) > 1 else FILE, dpi=130, metadata={"Software": None})
