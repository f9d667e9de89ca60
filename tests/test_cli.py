"""The command, run as users run it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import tiebreak
from tiebreak.cli import app
from tiebreak.studies.catalogue import STUDIES


def test_the_demo_prints_tables_and_writes_figures(tmp_path):
    out = tmp_path / "demo.png"
    done = CliRunner().invoke(app, ["demo", "--out", str(out), "--max-queries", "60000"])
    assert done.exit_code == 0, done.output
    near, methods = done.stdout.split("2. The exact tie")
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
    assert max(map(len, done.stdout.replace(str(tmp_path), "").splitlines())) <= 120
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


def tables(folder, classes=False):
    """Write tables of three samples of one linear model, two as CSV and one as Parquet."""
    rng = np.random.default_rng(0)
    paths = []
    for name, n in (("train.csv", 40), ("validation.parquet", 20), ("test.csv", 60)):
        frame = pandas.DataFrame(rng.standard_normal((n, 6)), columns=list("abcdef"))
        y = frame["a"] - 0.5 * frame["b"] + 0.3 * rng.standard_normal(n)
        frame.insert(2, "y", (y > 0).astype(int) if classes else y)
        path = folder / name
        frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("loss", ["squares", "logistic", "huber"])
def test_the_frontier_of_files_is_that_of_their_losses(loss, tmp_path):
    train, validation, test = tables(tmp_path, classes=loss == "logistic")
    out, table, kept = (tmp_path / name for name in ("frontier.svg", "frontier.csv", "frontier.npz"))
    arguments = ["frontier", "--lower", train, "--upper", validation, "--also", test, "--target", "y", "--loss", loss]
    arguments += ["--radius", "1", "--points", "3", "--out", str(out), "--table", str(table), "--checkpoint", str(kept)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "40 rows, 6 features" in done.stdout
    frames = [pandas.read_csv(train), pandas.read_parquet(validation), pandas.read_csv(test)]
    kind = {"squares": tiebreak.LeastSquares, "logistic": tiebreak.Logistic, "huber": tiebreak.Huber}[loss]
    lower, upper, also = (kind(frame.drop(columns="y").to_numpy(), frame["y"].to_numpy(dtype=float)) for frame in frames)
    front = tiebreak.frontier(tiebreak.Problem(upper, lower, tiebreak.L1Ball(1.0)), points=3, also=also)
    rows = pandas.read_csv(table)
    assert rows["name"].tolist()[0] == "g alone"
    assert rows["name"].tolist()[-1] == "f alone"
    np.testing.assert_allclose(rows["upper"][1:-1], [point.upper for point in front.points], rtol=1e-12)
    np.testing.assert_allclose(rows["also"][1:-1], [point.also for point in front.points], rtol=1e-12)
    assert (rows["floor"][1:-1] <= rows["upper"][1:-1] * (1 + 1e-6)).all()
    assert out.read_text().startswith("<?xml")
    again = CliRunner().invoke(app, arguments)  # is read from the checkpoint
    assert again.stdout == done.stdout


def test_the_frontier_of_files_says_what_is_wrong_with_them(tmp_path):
    train, validation, test = tables(tmp_path)
    (tmp_path / "words.csv").write_text("a,b,y,c,d,e,f\n1,2,3,4,5,6,red\n")
    (tmp_path / "fewer.csv").write_text("a,y\n1,2\n")
    (tmp_path / "empty.csv").write_text("a,b,y,c,d,e,f\n1,2,3,4,5,6,\n")
    both = ["--lower", train, "--upper", validation]
    for arguments, message in [
        ([*both], "must be given with the others"),
        (["--lower", train, "--target", "y"], "must be given with the others"),
        (["--also", test], "must be given with the others"),
        ([*both, "--target", "y", "--data", "pageviews"], "either this or files"),
        ([*both, "--target", "z"], "must have a column 'z'"),
        ([*both, "--target", "y", "--loss", "hinge"], "--loss"),
        ([*both, "--target", "y", "--loss", "logistic"], "column 'y': `y` must hold labels"),
        ([*both, "--target", "y", "--loss", "huber", "--delta", "-1"], "`delta`"),
        ([*both, "--target", "y", "--also", str(tmp_path / "absent.csv")], "must name an existing file"),
        ([*both, "--target", "y", "--also", str(tmp_path / "words.csv")], "'f' is 'red' in row 1"),
        ([*both, "--target", "y", "--also", str(tmp_path / "fewer.csv")], "lacks 'b', 'c', 'd', 'e', 'f'"),
        ([*both, "--target", "y", "--also", str(tmp_path / "empty.csv")], "'f' is missing or NaN in row 1"),
        ([*both, "--target", "y", "--table", train], "is read, and would be overwritten"),
        ([*both, "--target", "y", "--table", str(tmp_path / "no" / "t.csv")], "there is no folder"),
    ]:
        out = str(tmp_path / "frontier.png")
        done = CliRunner().invoke(app, ["frontier", "--out", out, *arguments], env={"COLUMNS": "400"})
        assert done.exit_code == 2, (arguments, done.output)
        assert message in done.output, (arguments, done.output)


def test_the_help_says_what_is_done_about_an_intercept():
    done = CliRunner().invoke(app, ["frontier", "--help"], env={"COLUMNS": "400"})
    assert "no intercept is added" in done.stdout
    assert "nothing is centred, scaled or encoded" in done.stdout


def test_a_store_is_made_of_a_file_and_said_again_it_is_there(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n3,4\n")
    command = ["store", str(tmp_path / "t.csv"), str(tmp_path / "rows"), "--target", "y"]
    for _ in range(2):
        done = CliRunner().invoke(app, command, env={"COLUMNS": "400"})
        assert done.exit_code == 0 and "Store 2 × 1 float64, columns 'y', shuffled by seed 0" in done.stdout
    done = CliRunner().invoke(app, [*command, "--in-order"])
    assert done.exit_code == 1 and "Error: " in done.output and "another store already" in done.output
    done = CliRunner().invoke(app, ["store", str(tmp_path / "absent.csv"), str(tmp_path / "other")])
    assert done.exit_code == 1 and "must name existing files" in done.output


def test_the_help_of_reproduce_lists_the_studies():
    done = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for name, study in STUDIES.items():
        assert f"{name}: {study.title} ({study.reference})" in done.stdout
