"""People of Adult: read from files, prepared from a table, generated."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from tiebreak.data import adult, adult_like, census


def people(folder, **changes):
    """A file of three people, with some of its variables replaced, or left out if they are None."""
    content = {"X": np.array([[1.0, 20.0], [0.0, 40.0], [1.0, 10.0]]), "y": [1, -1, 1], "x_control": [0, 1, 1]} | changes
    scipy.io.savemat(folder / "made.mat", {name: value for name, value in content.items() if value is not None})
    return folder / "made.mat"


def test_adult_reads_people_with_columns_between_0_and_1(tmp_path):
    found = adult(people(tmp_path))
    np.testing.assert_array_equal(found.X, [[1, 0.5], [0, 1], [1, 0.25]])
    np.testing.assert_array_equal(found.y, [1, -1, 1])
    np.testing.assert_array_equal(found.sensitive, [0, 1, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": None}, "made.mat: must have the variables X, y and x_control, got .* without X"),
        ({"x_control": None}, "without x_control"),
        ({"y": [1, 0, 1]}, "made.mat: `y` must hold -1 and 1 only, got 0"),
        ({"x_control": [0, 1, 2]}, "`x_control` must hold 0 and 1 only, got 2"),
        ({"y": [1, -1]}, "`y` must be a vector of 3 numbers"),
        ({"X": [[1.0, np.nan]] * 3}, "`X` must hold finite numbers"),
        ({"X": [[1.0, -2.0]] * 3}, "`X` must hold numbers ≥ 0, got -2"),
        ({"X": np.zeros((0, 2))}, "`X` must be a matrix of people × features"),
    ],
)
def test_adult_says_what_is_wrong_in_which_file(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        adult(people(tmp_path, **changes))


def test_adult_names_a_file_that_is_not_matlabs_or_not_there(tmp_path):
    (tmp_path / "text.mat").write_text("age, income, and so on; a text that is no MATLAB file at all. " * 10)
    with pytest.raises(ValueError, match="text.mat must be a MATLAB file with the variables X, y and x_control"):
        adult(tmp_path / "text.mat")
    (tmp_path / "empty.mat").touch()
    with pytest.raises(ValueError, match="empty.mat must be a MATLAB file with the variables X, y and x_control"):
        adult(tmp_path / "empty.mat")
    with pytest.raises(FileNotFoundError, match="absent.mat"):
        adult(tmp_path / "absent.mat")
    with pytest.raises(ValueError, match="`path` must be the path of a MATLAB file, got 7"):
        adult(7)


@pytest.mark.parametrize("damage", [lambda content: content[:300], lambda content: content[:200] + b"\x55" * 80])
def test_adult_names_a_damaged_file(tmp_path, damage):
    rng = np.random.default_rng(0)
    content = {"X": rng.random((40, 3)), "y": rng.choice([-1, 1], 40), "x_control": rng.integers(2, size=40)}
    path = tmp_path / "made.mat"
    scipy.io.savemat(path, content, do_compression=True)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="made.mat must be a MATLAB file with the variables X, y and x_control"):
        adult(path)


def test_adult_reads_the_real_file():
    path = Path(os.environ.get("TIEBREAK_DATA", ""), "adult.mat")
    if "TIEBREAK_DATA" not in os.environ or not path.is_file():
        pytest.skip("TIEBREAK_DATA names no folder that holds adult.mat")
    found = adult(path)
    assert found.X.shape == (10_000, 50)
    assert found.X.max() == 1.0
    assert (found.y == 1).mean() == pytest.approx(0.245, abs=0.001)


def table(**changes):
    pandas = pytest.importorskip("pandas")
    rows = {
        "age": [30, 60, 20, 50], "workclass": ["Private", "?", "State-gov", None],
        "fnlwgt": [1, 2, 3, 4], "education": ["5th-6th", "HS-grad", "Preschool", "HS-grad"], "education-num": [3, 9, 1, 9],
        "marital-status": ["Divorced"] * 4, "occupation": ["Sales", "Sales", "Tech-support", "Sales"],
        "relationship": ["Husband"] * 4, "race": ["White"] * 4, "sex": ["Male", "Male", "Female", "Male"],
        "capital-gain": [0, 0, 100, 0], "capital-loss": [0, 0, 0, 0], "hours-per-week": [40, 40, 20, 40],
        "native-country": ["United-States", "Cuba", "Cuba", "Cuba"], "class": [">50K", "<=50K", "<=50K", "<=50K"],
    }  # fmt: skip
    return pandas.DataFrame(rows)


def test_the_table_of_adult_is_prepared_with_one_column_a_value(monkeypatch):
    monkeypatch.setattr(census, "_fetched", table)
    found = adult()
    np.testing.assert_array_equal(found.y, [1, -1])  # two people lack their work
    np.testing.assert_array_equal(found.sensitive, [1, 0])
    # Work (2), school (1: neither went on after the 8th year), family, occupation (2), relationship, country; then numbers.
    np.testing.assert_allclose(
        found.X, [[1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1], [0, 1, 1, 1, 0, 1, 1, 0, 2 / 3, 1 / 3, 1, 0, 0.5]]
    )


def test_a_download_of_adult_that_fails_says_what_to_do(monkeypatch):
    import sklearn.datasets

    def fails(*arguments, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fails)
    with pytest.raises(ConnectionError, match="could not download Adult from OpenML \\(no route to host\\); .* as `path`"):
        adult()


def test_generated_people_resemble_those_of_adult():
    found = adult_like(3)
    assert found.X.shape == (10_000, 50)
    assert found.X.min() == 0.0
    assert found.X.max() == 1.0
    np.testing.assert_array_equal(found.X, adult_like(3).X)
    assert (found.X != adult_like(4).X).any()
    large = found.y == 1
    assert large.mean() == pytest.approx(0.245, abs=0.002)
    assert large[found.sensitive == 1].mean() > 1.5 * large[found.sensitive == 0].mean()
    assert found.sensitive.mean() == pytest.approx(0.675, abs=0.02)
    with pytest.raises(ValueError, match="`seed`"):
        adult_like(-1)
