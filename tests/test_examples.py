"""Each program of the gallery runs and draws a figure."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
OPTIONAL = ("fairlearn", "jax", "pyarrow")


def test_there_are_examples():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_draws_one_figure_with_labels(example, tmp_path, monkeypatch, capsys):
    code = example.read_text(encoding="utf-8")
    for package in OPTIONAL:
        if re.search(rf"^(import|from) {package}\b", code, flags=re.MULTILINE):
            pytest.importorskip(package)
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)  # which warns where there is no screen
    plt.close("all")
    try:
        runpy.run_path(str(example))
        assert len(plt.get_fignums()) == 1
        figure = plt.gcf()
        figure.savefig("figure.png", dpi=50)
        assert any(panel.get_xlabel() or panel.get_ylabel() for panel in figure.axes)
    finally:
        plt.close("all")
    assert not [file for file in tmp_path.iterdir() if file.name != "figure.png"], "an example leaves no files behind"
