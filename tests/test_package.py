"""The files that describe the package agree with each other."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import tiebreak

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == tiebreak.__version__


def test_extras_that_errors_and_pages_name_are_there():
    texts = [path.read_text(encoding="utf-8") for folder in ("src", "docs") for path in (ROOT / folder).rglob("*.[pm][yd]")]
    named = {extra for text in texts for extras in re.findall(r"tiebreak\[([\w,]+)\]", text) for extra in extras.split(",")}
    assert named
    assert named <= set(PROJECT["project"]["optional-dependencies"])


def test_the_makefile_installs_groups_and_extras_that_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"--group (\w+)", makefile)) <= set(PROJECT["dependency-groups"])
    extras = {
        extra for found in re.findall(r"\.\[([\w,]+)\]|EXTRAS := (\S+)", makefile) for extra in ",".join(found).split(",")
    }
    assert extras - {""} <= set(PROJECT["project"]["optional-dependencies"])


def test_the_files_that_a_wheel_must_hold_are_those_of_the_sources(tmp_path):
    spec = importlib.util.spec_from_file_location("package", ROOT / ".ci" / "package.py")
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    for name in ("one/a.py", "one/py.typed", "one/__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert package.sources(tmp_path) == {"one/a.py", "one/py.typed"}
    assert {"tiebreak/__init__.py", "tiebreak/py.typed"} <= package.sources(ROOT / "src")
