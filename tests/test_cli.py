"""The command, run as users run it."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

import tiebreak
from tiebreak.cli import app


def test_the_demo_prints_tables_and_writes_figures(tmp_path):
    out = tmp_path / "demo.png"
    done = CliRunner().invoke(app, ["demo", "--out", str(out), "--max-queries", "60000"])
    assert done.exit_code == 0, done.output
    near, methods = done.stdout.split("2. The paper's methods")
    assert "g has one minimiser (proven): f has nothing to choose." in near
    assert "Keeping 99.99 % of what g can gain would let f fall by 98.8 %" in near
    assert "The test loss is least where 99.9" in near
    assert "f alone" in near
    rows = {line.split()[0]: line.split()[1:] for line in methods.splitlines() if line.strip().startswith("sbcg")}
    assert set(rows) == {"sbcgi", "sbcgf"}
    for cells in rows.values():
        lower, lower_gap, upper, upper_gap, test = map(float, cells[:5])
        assert 0 < lower < 1e-3
        assert upper_gap > 0
        assert lower_gap > 0
        assert 0 < upper < test < 1e-2
    for figure in (out, tmp_path / "demo-methods.png"):
        assert figure.read_bytes().startswith(b"\x89PNG")
        assert str(figure) in methods


def test_the_demo_says_where_it_cannot_write(tmp_path):
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "absent" / "demo.png")])
    assert done.exit_code == 2
    assert "there is no folder" in done.output


def test_the_demo_says_at_once_what_it_cannot_draw(tmp_path):
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo.xyz")])
    assert done.exit_code == 2
    assert ".png, .pdf or .svg" in done.output


def test_all_methods_are_listed():
    done = CliRunner().invoke(app, ["methods"], env={"COLUMNS": "400"})
    assert done.exit_code == 0
    head, _, *rows = done.stdout.splitlines()
    assert head.split("  ")[0] == "name"
    assert [row.split("  ")[0] for row in rows] == list(tiebreak.METHODS)
    for row, cls in zip(rows, tiebreak.METHODS.values(), strict=True):
        assert all(cell in row for cell in (cls.setting, cls.needs, cls.rates, cls.citation))


def test_the_table_of_methods_fits_a_terminal():
    done = CliRunner().invoke(app, ["methods"], env={"COLUMNS": "100"})
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert "Giang-Tran, Shafiee, Ho-Nguyen (2025)" not in done.stdout  # it is wrapped


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "tiebreak", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tiebreak.__version__


def test_the_frontier_is_printed_and_drawn(tmp_path):
    out = tmp_path / "frontier.png"
    done = CliRunner().invoke(app, ["frontier", "--out", str(out), "--points", "3"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if " % " in line and "knee" not in line]
    assert len(rows) == 4
    for _, _, _, upper, _, floor, ceiling, test in rows:
        assert 0.0 < float(floor) <= float(ceiling) * (1 + 1e-5)
        assert float(floor) * (1 - 1e-3) <= float(upper)
        assert float(test) > 0.0
    assert "f alone" in done.stdout
    assert out.read_bytes().startswith(b"\x89PNG")


def test_the_frontier_says_what_it_cannot_take(tmp_path):
    out = str(tmp_path / "frontier.png")
    for arguments, message in [
        (["--out", str(tmp_path / "absent" / "a.png")], "there is no folder"),
        (["--out", str(tmp_path / "a.xyz")], ".png, .pdf or .svg"),
        (["--out", out, "--data", "buses"], "there are no data of the kind"),
        (["--out", out, "--data", "montevideo"], "are read from a file"),
        (["--out", out, "--radius", "-1"], "must be a positive number"),
        (["--out", out, "--points", "1"], "--points"),
    ]:
        done = CliRunner().invoke(app, ["frontier", *arguments], env={"COLUMNS": "300"})
        assert done.exit_code == 2
        assert message in done.output
