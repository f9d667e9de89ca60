"""The code of the README and the pages of the documentation runs."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiebreak.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


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


def test_the_table_of_methods_is_what_is_registered():
    printed = CliRunner().invoke(app, ["methods", "--markdown"]).output
    assert printed in (ROOT / "docs" / "methods.md").read_text()
