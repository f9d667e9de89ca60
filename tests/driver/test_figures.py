"""Figures: labels that can be read, lines that can be told apart, and a legend that says what is drawn."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from conftest import QUICK
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tiebreak import minimize
from tiebreak.driver.figures import COLOURS, label_sparsely, plot_results, set_signed_scale

# What people without one kind of cone see, in linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.
SIGHTS = {
    "all cones": np.eye(3),
    "no red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue cones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
TOLD_APART = 15.0  # distance of two colours in CIELAB


def lab(colour, sight):
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
        np.asarray(sight) @ linear, 0.0, 1.0
    )
    x, y, z = np.cbrt(xyz / np.array([0.9505, 1.0, 1.089]))
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_can_be_told_apart(sight):
    seen = [lab(colour, SIGHTS[sight]) for colour in COLOURS]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > TOLD_APART


@pytest.mark.parametrize(
    "values",
    [
        np.array([-1e-5, -1e-9, 1e-9, 3e-9, 1e-3]),
        np.array([-1.0, 1e-6, 1.0]),
        np.geomspace(1e-12, 1e3, 40) * np.where(np.arange(40) % 2, 1.0, -1.0),
        np.array([-2e-8, -1e-8, 0.0, 1e-8]),
        -np.geomspace(1e-9, 1.0, 20),
    ],
)
def test_labels_of_a_signed_axis_do_not_overlap(values):
    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(values.size), values)
    set_signed_scale(axes, values)
    figure.canvas.draw()
    low, high = axes.get_ylim()
    shown = [label for label in axes.get_yticklabels() if low <= label.get_position()[1] <= high and label.get_text()]
    boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.y0)
    assert len(boxes) >= 2
    assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))


@pytest.mark.parametrize(("low", "high"), [(250.0, 4000.0), (0.3, 0.7), (1e-4, 1e-2), (1e-12, 1.0)])
def test_labels_of_a_logarithmic_axis_do_not_overlap(low, high):
    figure = Figure(figsize=(4.4, 3.3), layout="constrained")
    axes = figure.subplots()
    axes.loglog([low, high], [1.0, 1000.0])
    label_sparsely(axes)
    figure.canvas.draw()
    left, right = axes.get_xlim()
    labels = [each for minor in (False, True) for each in axes.get_xticklabels(minor=minor)]
    shown = [each for each in labels if left <= each.get_position()[0] <= right and each.get_text()]
    boxes = sorted((each.get_window_extent() for each in shown), key=lambda box: box.x0)
    assert len(boxes) >= 2 or high < 5.0 * low
    assert all(before.x1 <= after.x0 for before, after in pairwise(boxes))


def test_the_legend_names_the_phases_that_are_drawn(problem):
    results = {"one": minimize(problem, QUICK, max_queries=3000)}
    figure = plot_results(results)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names[:2] == ["one", "while a first point is sought"]
    styles = {line.get_linestyle() for line in figure.axes[0].lines}
    assert ("while g is lowered at the end" in names) == (2 in results["one"].history.phase)
    assert {":", "-"} <= styles


def test_a_legend_of_many_names_stays_within_the_figure(problem):
    result = minimize(problem, QUICK, max_queries=3000)
    figure = plot_results({f"a method with a long name, number {k}": result for k in range(7)})
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0.0 and box.x1 <= figure.bbox.x1


def test_a_short_run_beside_a_long_one_is_more_than_a_stroke(problem):
    runs = {str(most): minimize(problem, QUICK, max_queries=most) for most in (1000, 40_000)}
    assert plot_results(runs).axes[2].get_xscale() == "log"
    assert plot_results({"1000": runs["1000"]}).axes[2].get_xscale() == "linear"
