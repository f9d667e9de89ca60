"""Lines over seeds, and axes that fit what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from tiebreak.studies.drawing import Figure, Line, Panel, band, band_of, draw, draw_panel, images
from tiebreak.studies.study import Outcome


def test_a_band_is_the_mean_and_the_range_over_seeds():
    outcomes = {seed: Outcome({"t": np.arange(3), "v": np.full(3, float(seed))}, {}) for seed in (0, 1, 5)}
    line = band("v", outcomes, "t", "v", scale=2.0)
    assert line.y.tolist() == [4.0, 4.0, 4.0]
    assert line.low.tolist() == [0.0, 0.0, 0.0]
    assert line.high.tolist() == [10.0, 10.0, 10.0]


def test_curves_on_different_grids_are_interpolated_where_all_are_known():
    grids = [np.linspace(0.0, 1.0, 7), np.linspace(0.2, 2.0, 400), np.linspace(0.1, 1.5, 11)]
    line = band_of("x", [(x, 3.0 * x) for x in grids])
    assert line.x[0] >= 0.2
    assert line.x[-1] <= 1.0
    assert 10 < line.x.size <= 240
    np.testing.assert_allclose(line.y, 3.0 * line.x)
    np.testing.assert_allclose(line.high - line.low, 0.0, atol=1e-12)


def test_values_that_are_not_finite_are_left_out():
    x = np.arange(4.0)
    line = band_of("x", [(x, np.array([1.0, np.nan, 3.0, 4.0])), (x, np.full(4, np.inf))])
    assert line.y.tolist() == [1.0, 3.0, 4.0]
    assert band_of("nothing", []).x.size == 0


@pytest.mark.parametrize(
    ("values", "scale", "expected"),
    [
        ([1.0, 10.0], "log", "log"),
        ([-1.0, 10.0], "log", "symlog"),
        ([0.0, 0.0], "log", "linear"),
        ([1.0, 2.0], "linear", "linear"),
        ([1e-18, 1.0, 2.0, 3.0, 4.0, 5.0], "log", "log"),
    ],
)
def test_a_logarithmic_axis_is_symmetric_for_signed_numbers(values, scale, expected):
    ax = Canvas().subplots()
    draw_panel(ax, Panel("t", [Line("a", np.arange(float(len(values))), np.array(values))], "x", yscale=scale), {"a": "red"})
    assert ax.get_yscale() == expected


def test_a_label_has_one_colour_in_all_panels_and_one_place_in_the_legend():
    a, b = (Line(label, np.arange(2.0), np.ones(2)) for label in "ab")
    figure = Figure("f", "", [Panel("first", [a, b], "x"), Panel("second", [b], "x"), Panel("none", [], "x")])
    assert list(figure.colours) == ["a", "b"]
    canvas = draw(figure)
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["a", "b"]
    assert [ax.lines[-1].get_color() for ax in canvas.axes[:2]] == [figure.colours["b"]] * 2
    assert [title for title, _ in images(figure)] == ["first", "second", "none"]


def test_a_legend_of_many_long_labels_stays_within_the_figure():
    labels = [f"a method with a long name {k}" for k in range(10)]
    lines = [Line(label, np.arange(2.0), np.full(2, float(k))) for k, label in enumerate(labels)]
    figure = Figure("f", "", [Panel("first", lines, "x"), Panel("second", lines, "x")])
    assert len(set(figure.colours.values())) == 10
    canvas = draw(figure)
    canvas.draw_without_rendering()
    box = canvas.legends[0].get_window_extent()
    assert 0.0 <= box.x0 < box.x1 <= canvas.bbox.x1


def test_a_first_gap_of_zero_does_not_squeeze_the_others():
    ax = Canvas().subplots()
    values = np.array([0.0, 1e-18, *np.geomspace(1.0, 1e-4, 40)])
    draw_panel(ax, Panel("t", [Line("a", np.arange(42.0), values)], "x", yscale="log"), {"a": "red"})
    assert ax.get_yscale() == "log"
    assert 1e-6 < ax.get_ylim()[0] < 1e-4


def test_a_small_line_is_drawn_whole_beside_large_ones():
    ax = Canvas().subplots()
    small = np.array([0.0, *np.geomspace(1e-4, 1e-11, 40)])
    lines = [
        Line(label, np.arange(41.0), values) for label, values in (("a", small), *((k, np.ones(41)) for k in "bcdefgh"))
    ]
    draw_panel(ax, Panel("t", lines, "x", yscale="log"), dict.fromkeys("abcdefgh", "red"))
    assert ax.get_yscale() == "log"
    assert 1e-12 < ax.get_ylim()[0] < 1e-11


def test_ranges_are_bars_at_places_of_their_own():
    x = np.arange(200.0)
    lines = [Line(label, x, y := np.full(200, k + 1.0), y - 0.5, y + 0.5) for k, label in enumerate("abc")]
    figure = Figure("ranges", "", [Panel("value", lines, "t")])
    canvas = draw(figure)
    bars = canvas.axes[0].collections
    places = [{segment[0][0] for segment in each.get_segments()} for each in bars]
    assert len(places) == 3 and all(len(each) == 6 for each in places)
    assert len(set.union(*places)) == 18
    assert [tuple(each.get_segments()[0][:, 1]) for each in bars] == [(0.5, 1.5), (1.5, 2.5), (2.5, 3.5)]
