"""Linear models of tables: a file instead of arrays."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from tiebreak import Huber, L1Ball, LeastSquares, Logistic, Problem, minimize
from tiebreak.data import tables

RNG = np.random.default_rng(0)
FRAME = pandas.DataFrame(RNG.standard_normal((30, 3)), columns=["a", "b", "c"]).assign(
    y=RNG.standard_normal(30), label=(RNG.random(30) < 0.5).astype(float), weight=RNG.random(30)
)
NUMBERS, X = ["a", "b", "c"], np.array([0.5, -1.0, 2.0])


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    place = tmp_path / f"train.{request.param}"
    if request.param == "csv":
        FRAME.to_csv(place, index=False)
    else:
        FRAME.to_parquet(place)
    return place


@pytest.mark.parametrize(
    ("make", "target", "more"), [(LeastSquares, "y", {}), (Huber, "y", {"delta": 0.5}), (Logistic, "label", {})]
)
def test_a_file_is_the_same_objective_as_its_arrays(make, target, more, path):
    found = make(path, target=target, columns=NUMBERS, **more)
    expected = make(FRAME[NUMBERS].to_numpy(), FRAME[target].to_numpy(), **more)
    assert repr(found) == repr(expected)
    assert found.value(X) == pytest.approx(expected.value(X), rel=1e-14)
    weighted = make(str(path), target=target, columns=["c", "a"], sample_weight="weight", **more)
    expected = make(FRAME[["c", "a"]].to_numpy(), FRAME[target].to_numpy(), sample_weight=FRAME["weight"].to_numpy(), **more)
    assert weighted.value(X[:2]) == pytest.approx(expected.value(X[:2]), rel=1e-14)


def test_all_other_columns_are_features(path):
    assert LeastSquares(path, target="y").dimension == 5
    assert LeastSquares(path, target="y", sample_weight="weight").dimension == 4
    assert LeastSquares(path, target="y", sample_weight=np.ones(30)).dimension == 5


def test_other_columns_may_hold_text(tmp_path):
    frame = FRAME.assign(name="x y")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert LeastSquares(tmp_path / name, target="y", columns=["a", "b"]).dimension == 2
        with pytest.raises(ValueError, match=f"{name} must hold numbers, and .*name"):
            LeastSquares(tmp_path / name, target="y")


def test_files_are_solved(path):
    problem = Problem(
        LeastSquares(path, target="y", columns=NUMBERS), LeastSquares(path, target="label", columns=NUMBERS), L1Ball(1.0)
    )
    assert minimize(problem).method.name == "active-set"


def test_long_files_are_read_in_blocks_and_rows_counted_through(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 7)
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(tables.read(tmp_path / "t.csv").values, FRAME.to_numpy())
    text = (tmp_path / "t.csv").read_text().splitlines()
    text[20] = text[20].replace(text[20].split(",")[1], "blue")
    (tmp_path / "t.csv").write_text("\n".join(text))
    with pytest.raises(ValueError, match="'b' is 'blue' in row 20"):
        LeastSquares(tmp_path / "t.csv", target="y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`target` must be the name of a column of .*train"),
        ({"target": "z"}, "train.* must have a column 'z', and has 'a', 'b'"),
        ({"target": "y", "columns": ["a", "z"]}, "train.* must have a column 'z'"),
        ({"target": "y", "columns": "a"}, "`columns` must be a list of different names"),
        ({"target": "y", "columns": ["a", "a"]}, "`columns` must be a list of different names"),
        ({"target": "y", "columns": ["a", "y"]}, "`columns` must be a list of different names of features, without"),
        ({"target": "y", "b": np.ones(30)}, "`b` must be left out if `A` is a file"),
        ({"target": "y", "sample_weight": "z"}, "train.* must have a column 'z'"),
        ({"target": "y", "sample_weight": "y"}, "`sample_weight` must be another column than `target`"),
    ],
)
def test_wrong_names_are_told_with_the_file(arguments, message, path):
    with pytest.raises(ValueError, match=message):
        LeastSquares(path, **arguments)


def test_files_that_are_not_there_and_arguments_for_arrays():
    with pytest.raises(FileNotFoundError, match="nowhere.csv"):
        LeastSquares("nowhere.csv", target="y")
    with pytest.raises(ValueError, match="`target` is for tables"):
        LeastSquares(np.eye(2), np.ones(2), target="y")
    with pytest.raises(ValueError, match="`b` must be given with an array `A`"):
        LeastSquares(np.eye(2))
    with pytest.raises(ValueError, match="`y` must be given with an array `A`"):
        Logistic(np.eye(2))


def test_columns_of_a_data_frame_may_have_several_types():
    mixed = pandas.get_dummies(pandas.DataFrame({"size": [1.0, 2.0, 3.0], "place": ["x", "y", "x"], "count": [1, 2, 3]}))
    found = LeastSquares(mixed, [1.0, 2.0, 3.0])
    expected = LeastSquares([[1.0, 1, 1, 0], [2.0, 2, 0, 1], [3.0, 3, 1, 0]], [1.0, 2.0, 3.0])
    assert found.value(np.arange(4.0)) == expected.value(np.arange(4.0))


def test_a_column_of_a_data_frame_that_is_no_number_is_named():
    frame = pandas.DataFrame({"size": [1.0, 2.0], "place": ["x", "y"]})
    with pytest.raises(ValueError, match=r"`A` must hold real numbers, got a table with the column 'place' .*get_dummies"):
        LeastSquares(frame, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"`b` .* shape \(2, 1\); its ravel\(\) is a vector"):
        LeastSquares(frame[["size"]], frame[["size"]])
    with pytest.raises(ValueError, match="`A` must hold finite numbers"):
        LeastSquares(frame[["size"]].assign(more=pandas.array([1, None], dtype="Int64")), [1.0, 2.0])
