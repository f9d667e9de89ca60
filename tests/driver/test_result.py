"""What a run returns can be read, drawn and turned into a table."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import QUICK

from tiebreak import SBCGI, Record, Status, minimize
from tiebreak.engine import interpreted


@pytest.fixture
def result(problem):
    return minimize(problem, QUICK, max_queries=3000)


def test_a_result_prints_as_a_summary(result):
    text = str(result)
    for words in (
        "sbcgf (preset auto)",
        "budget spent",
        "upper f(x)",
        "lower g(x)",
        "g(x) − g* ≤",
        "queries",
        "empty cuts",
        "seconds",
    ):
        assert words in text
    assert f"{result.lower:.6g}" in text
    assert repr(result) == text


def test_every_status_is_a_sentence():
    for status in Status:
        assert len(status.value.split()) >= 3


def test_a_history_is_a_table(result):
    frame = result.history.to_frame()
    assert list(frame.columns) == list(Record._fields)
    np.testing.assert_array_equal(frame["upper"], result.history.upper)
    np.testing.assert_array_equal(result.history.queries, frame["upper_queries"] + frame["lower_queries"])
    with pytest.raises(AttributeError, match="a history has no column 'gap'; it has queries, phase"):
        result.history.gap


def test_a_missing_extra_names_the_command(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install 'tiebreak\\[pandas\\]'"):
        result.history.to_frame()


def test_a_plot_shows_every_result_in_every_panel(problem, result, tmp_path):
    other = minimize(problem, SBCGI(step=1e-2, slack=1e-3), max_queries=3000)
    figure = result.plot(other=other)
    assert len(figure.axes) == 4
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "lower objective g(x)"
    for axes, column in zip(figure.axes, ("lower", "upper", "lower_gap_bound", "upper_gap_bound"), strict=True):
        solid = [line for line in axes.lines if line.get_linestyle() == "-"]
        assert [line.get_label() for line in solid] == ["sbcgf (preset auto)", "other"]
        ends = [line.get_ydata()[-1] for line in axes.lines if line.get_marker() == "o"]
        assert ends == [getattr(result, column), getattr(other, column)]
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_a_run_with_a_tolerance_is_a_success_only_if_it_is_proven(problem):
    missed = minimize(problem, QUICK, max_queries=3000, tol=(1e-9, 1e-9))
    assert missed.status is Status.QUERIES
    assert not missed.success
    reached = minimize(problem, QUICK, tol=(5.0, 0.05))
    assert reached.status is Status.CERTIFIED
    assert reached.success
    stopped = minimize(problem, QUICK, max_queries=3000, tol=(1e-9, 1e-9), callback=lambda snapshot: True)
    assert stopped.status is Status.CALLBACK
    assert not stopped.success


def test_a_run_without_a_tolerance_is_a_success_if_it_ended_as_planned(problem):
    assert minimize(problem, QUICK, max_queries=None, max_iterations=5).success
    assert minimize(problem, QUICK, max_queries=3000, callback=lambda snapshot: True).success
    callback = Raises(KeyboardInterrupt(), after=3)
    interrupted = minimize(problem, QUICK, max_queries=3000, callback=callback)
    assert interrupted.status is Status.INTERRUPTED
    assert not interrupted.success


def test_a_stream_that_ends_before_the_first_iteration_is_no_success(problem):
    result = minimize(problem, QUICK, max_queries=3000)
    ended = replace(result, status=Status.ENDED)
    assert ended.success
    assert not replace(ended, iterations=0).success


class Raises:
    """A callback that raises an error at its n-th call."""

    def __init__(self, error: BaseException, after: int):
        self.error, self.left = error, after

    def __call__(self, snapshot):
        self.left -= 1
        if self.left == 0:
            raise self.error


@pytest.mark.parametrize(("method", "title"), [(SBCGI(preset="paper"), "sbcgi (preset paper)"), ("pb-apg", "pb-apg")])
def test_a_result_tells_the_preset_of_its_method_if_there_is_one(problem, method, title):
    with interpreted():
        result = minimize(problem, method, max_iterations=2)
    assert str(result).splitlines()[0].split(maxsplit=1) == ["method", title]
