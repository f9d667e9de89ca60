"""The progress bar: what it counts, and when it is silent."""

from __future__ import annotations

import math

import pytest

from tiebreak.driver.progress import Progress, is_wanted

UNITS = ("samples", "iterations", "s")


@pytest.mark.parametrize(
    ("totals", "spent", "words"),
    [
        ((2_000_000, 50, 9.0), (500_000, 7, 1.0), "500k/2.00M samples"),
        ((2000, math.inf, math.inf), (500, 7, 1.0), "500/2000 samples"),
        ((math.inf, 50, 9.0), (500_000, 7, 1.0), "7/50 iterations"),
        ((math.inf, math.inf, 9.0), (500_000, 7, 1.25), "1.25/9.00 s"),
        ((math.inf, math.inf, math.inf), (500_000, 7, 1.0), "500k samples"),
    ],
)
def test_a_bar_counts_the_first_limit_in_its_own_unit(totals, spent, words, capsys):
    with Progress(totals, UNITS, visible=True) as bar:
        bar.describe("sbcgi")
        bar.show(spent, "f 1")
    last = capsys.readouterr().err.split("\r")[-1]
    assert last.startswith("sbcgi: ")
    assert words in last
    assert "f 1" in last
    assert "it/s" not in last


def test_a_bar_does_not_pass_its_end(capsys):
    with Progress((10,), ("runs",), visible=True) as bar:
        bar.show((math.inf,))
    assert "10/10 runs" in capsys.readouterr().err


def test_a_bar_that_is_finished_early_is_full(capsys):
    with Progress((2_000_000,), ("samples",), visible=True) as bar:
        bar.show((480,))
        bar.finish()
    assert "100%" in capsys.readouterr().err.split("\r")[-1]


def test_a_bar_that_is_not_wanted_writes_nothing(capsys):
    with Progress((10,), ("runs",), visible=False) as bar:
        bar.describe("sbcgi")
        bar.show((5,))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_wanted_in_a_terminal_or_where_it_is_asked_for(terminal, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert is_wanted(None) is terminal
    assert is_wanted(True)
    assert not is_wanted(False)
    with pytest.raises(ValueError, match="`progress` must be True or False"):
        is_wanted("yes")
