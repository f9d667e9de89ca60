"""The code of the README and the pages of the documentation runs."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from typer.testing import CliRunner

from tiebreak.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(set(DOCS.glob("*.md")) - {DOCS / "index.md"})]  # the last one includes the first


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert blocks, f"{page.name} has no code"
    for package in ("jax", "torch"):
        if any(f"import {package}" in block for block in blocks):
            pytest.importorskip(package)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks:
        exec(compile(block, page.name, "exec"), module.__dict__)


SHOWN = [page for page in PAGES if "```text\n" in page.read_text(encoding="utf-8")]
SHOWN_BLOCK = r"^```python\n(?P<code>.*?)^```\n+(?:```text\n(?P<output>.*?)^```)?"


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.name)
def test_the_output_that_a_page_shows_is_what_its_code_prints(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = list(re.finditer(SHOWN_BLOCK, page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL))
    last = max(k for k, block in enumerate(found) if block["output"])
    names: dict[str, object] = {}
    for block in found[: last + 1]:
        capsys.readouterr()
        exec(compile(block["code"], page.name, "exec"), names)
        if block["output"]:
            printed, shown = capsys.readouterr().out.split(), block["output"].split()
            assert len(printed) == len(shown)
            assert all(agree(one, other) for one, other in zip(printed, shown, strict=True))


def agree(printed: str, shown: str) -> bool:
    """Whether two words are the same; numbers may differ by what rounding can do, and counts by a factor of two."""
    try:
        one, other = float(printed), float(shown)
    except ValueError:
        return printed == shown
    share = 0.5 if printed.isdigit() and shown.isdigit() else 0.01
    return one == other or abs(one - other) <= share * max(abs(one), abs(other)) + 1e-13


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def test_every_environment_variable_that_is_read_has_a_line():
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([A-Z_]+)", page, flags=re.MULTILINE))
    named = re.compile(r"\bTIEBREAK_[A-Z_]+\b")
    everywhere = {name for folder in ("src", "tests", "benchmarks", "campaign") for name in found(named, folder)}
    assert everywhere == {name for name in listed if name.startswith("TIEBREAK_")}
    assert found(re.compile(r"(?:environ\.get\(|environ\[|getenv\()\"(\w+)\""), "src") <= listed


def found(pattern: re.Pattern[str], folder: str) -> set[str]:
    """Return what a pattern matches in the Python files of a folder."""
    return {match for path in (ROOT / folder).rglob("*.py") for match in pattern.findall(path.read_text(encoding="utf-8"))}


def test_the_notes_on_the_paper_name_files_and_tests_that_exist():
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    tests, files = re.findall(r"`(tests/\S+\.py)::(\w+)`", page), re.findall(r"`([a-z_/]+\.py)`", page)
    assert len(tests) > 25 and len(files) > 25
    missing = [name for file, name in tests if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")]
    assert missing == []
    assert [file for file in files if not (ROOT / "src" / "tiebreak" / file).exists()] == []


def test_the_figure_of_the_first_page_is_what_its_program_draws(tmp_path):
    committed, drawn = DOCS / "_static" / "tiebreak.png", tmp_path / "drawn.png"
    subprocess.run([sys.executable, DOCS / "figure.py", drawn], check=True)
    before, now = (plt.imread(path) for path in (committed, drawn))
    assert before.shape == now.shape
    assert np.abs(before - now).mean() < 0.02  # fonts and lines may be drawn a little differently


def test_the_table_of_methods_is_what_is_registered():
    printed = CliRunner().invoke(app, ["methods", "--markdown"]).output
    assert printed in (DOCS / "methods.md").read_text()
