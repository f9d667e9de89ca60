"""Results that are written to a file and read again."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import QUICK, callable_copy

import tiebreak
from tiebreak import (
    SBCGF,
    Columns,
    L1Ball,
    L2Ball,
    LeastSquares,
    Problem,
    Product,
    Result,
    SquaredNorm,
    Status,
    Stream,
    certify,
    minimize,
)
from tiebreak.driver import checkpoint
from tiebreak.driver.saved import RESULT
from tiebreak.engine import interpreted

SCALARS = ("upper", "lower", "upper_gap_bound", "lower_gap_bound", "stationarity", "iterations", "empty_cuts", "seconds")


def round_trip(result, tmp_path, problem=None):
    result.save(tmp_path / "result.npz")
    return Result.load(tmp_path / "result.npz", problem)


def bits(numbers):
    return np.array(numbers, dtype=float).tobytes()  # NaN is equal to itself here


def same(loaded, result):
    assert loaded.x.tobytes() == result.x.tobytes()
    assert bits([getattr(loaded, name) for name in SCALARS]) == bits([getattr(result, name) for name in SCALARS])
    assert (loaded.queries, loaded.evaluations) == (result.queries, result.evaluations)
    assert (loaded.status, loaded.message, loaded.success) == (result.status, result.message, result.success)
    for name in tiebreak.Record._fields:
        one, other = getattr(loaded.history, name), getattr(result.history, name)
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
    one, other = loaded.certificate, result.certificate
    numbers = [name for name in one._fields if name not in ("floors", "cuts", "multipliers", "x")]
    assert bits([getattr(one, name) for name in numbers]) == bits([getattr(other, name) for name in numbers])
    assert bits(one.floors) == bits(other.floors)
    assert [(a.normal.tobytes(), a.offset) for a in one.cuts] == [(b.normal.tobytes(), b.offset) for b in other.cuts]
    assert one.multipliers.tobytes() == other.multipliers.tobytes()
    assert one.x.tobytes() == other.x.tobytes()
    assert loaded.method.name == result.method.name
    assert repr(loaded.method) == repr(result.method)
    assert loaded.parts.keys() == result.parts.keys()
    for name, part in result.parts.items():
        np.testing.assert_array_equal(loaded.parts[name], part)
        assert np.shares_memory(loaded.parts[name], loaded.x)
    assert str(loaded) == str(result)


@pytest.mark.parametrize("method", ["auto", "sbcgi", SBCGF(step=lambda t: 0.1 / (t + 2)), "ir-fscg", "bi-fista"])
def test_a_result_comes_back_as_it_was(problem, tmp_path, method):
    with interpreted():
        result = minimize(problem, method, max_queries=400, seed=3)
    loaded = round_trip(result, tmp_path)
    same(loaded, result)
    assert loaded.problem is None
    assert {name: loaded.settings[name] for name in ("seed", "part", "tol")} == {"seed": 3, "part": 0, "tol": None}
    assert [phase.name for phase in loaded.settings["phases"]] == [phase.name for phase in result.settings["phases"]]
    again = round_trip(loaded, tmp_path)  # over the file that is there
    same(again, result)
    assert again.settings == loaded.settings


def test_parameters_come_back_as_plain_data_and_schedules_as_text(problem, tmp_path):
    with interpreted():
        result = minimize(problem, SBCGF(step=1e-2, slack=1e-6, upper_batch_size=3), max_queries=400, tol=(1e-9, 1e-9))
    loaded = round_trip(result, tmp_path)
    assert loaded.method.parameters["step"] == "constant(value=0.01)"
    assert loaded.method.parameters["upper_batch_size"] == 3
    assert loaded.settings["parameters"] == loaded.method.parameters
    assert loaded.settings["tol"] == (1e-9, 1e-9)
    assert not loaded.success


def test_the_result_of_a_stream_comes_back_with_its_confidence(tmp_path):
    def draw(rng, size):
        return rng.standard_normal((size, 3))

    def squares(x, rows):
        residual = rows @ x - 1.0
        return 0.5 * np.mean(residual**2), residual @ rows / len(rows)

    problem = Problem(SquaredNorm(), Stream(draw, squares, 3, convex=True), L1Ball(1.0))
    result = minimize(problem, max_queries=2000)
    loaded = round_trip(result, tmp_path, problem)
    same(loaded, result)
    assert loaded.certificate.confidence == 0.95
    assert loaded.problem is problem


def test_named_parts_are_views_of_the_point_again(tmp_path):
    domain = Product(D=Columns(L2Ball(1.0), (2, 3)), w=(L1Ball(1.0), 2))
    lower = LeastSquares(np.random.default_rng(0).standard_normal((4, 8)), np.ones(4))
    with interpreted():
        result = minimize(Problem(SquaredNorm(), lower, domain), QUICK, max_queries=300)
    loaded = round_trip(result, tmp_path)
    assert loaded.parts["D"].shape == (2, 3)
    same(loaded, result)


def test_a_failed_run_comes_back_with_its_error(problem, tmp_path):
    calls = []

    def failing(x, indices):
        calls.append(x)
        if len(calls) > 100:
            raise OSError("the disk is gone")
        return problem.lower.value_and_gradient(x, indices)

    broken = tiebreak.FiniteSum(12, 18, failing, convex=True)
    with pytest.warns(RuntimeWarning, match="the disk is gone"):
        result = minimize(problem._replace(lower=broken), QUICK, max_queries=3000)
    loaded = round_trip(result, tmp_path)
    same(loaded, result)
    assert loaded.status is Status.FAILED
    assert isinstance(loaded.error, RuntimeError)
    assert str(loaded.error) == f"OracleError: {result.error}"


def test_a_run_goes_on_from_a_loaded_result_with_its_proofs_if_the_problem_is_the_same(problem, tmp_path):
    result = minimize(problem, QUICK, max_queries=3000)
    loaded = round_trip(result, tmp_path)
    more, expected = (minimize(problem, QUICK, x0=start, max_queries=2000) for start in (loaded, result))
    assert more.x.tobytes() == expected.x.tobytes()
    assert more.certificate.floors == expected.certificate.floors
    assert certify(problem, loaded).floors == certify(problem, result).floors
    other = problem._replace(lower=LeastSquares(np.eye(18), np.zeros(18)))  # g* = 0: the floor of the first would be wrong
    assert certify(other, loaded).floors == certify(other, result.x).floors


def test_a_problem_of_python_functions_is_told_by_its_values(problem, callable_problem, tmp_path):
    result = minimize(callable_problem, QUICK, max_queries=2000)
    loaded = round_trip(result, tmp_path, callable_problem)
    assert certify(callable_problem, loaded).floors == certify(callable_problem, result).floors
    unknown = round_trip(result, tmp_path)
    assert certify(callable_problem, unknown).floors == certify(callable_problem, result.x).floors
    other = callable_problem._replace(lower=callable_copy(problem.upper, 12, 18))  # the same code on other data
    with pytest.raises(ValueError, match="`problem` must be the one of the result in .*result.npz, and it is another"):
        Result.load(tmp_path / "result.npz", other)


def test_another_problem_is_refused(problem, tmp_path):
    with interpreted():
        result = minimize(problem, QUICK, max_queries=300)
    for other in (problem._replace(domain=L1Ball(5.0)), Problem(SquaredNorm(), LeastSquares([[1.0]], [1.0]), L1Ball(1.0))):
        with pytest.raises(ValueError, match="`problem` must be the one of the result"):
            round_trip(result, tmp_path, other)
    with pytest.raises(ValueError, match="`problem` must be a Problem"):
        round_trip(result, tmp_path, "this one")
    assert round_trip(result, tmp_path, problem).problem is problem


def test_a_file_that_is_no_result_is_neither_read_nor_written_over(problem, tmp_path):
    with interpreted():
        result = minimize(problem, QUICK, max_queries=300, checkpoint=tmp_path / "run.npz")
    mine = tmp_path / "mine.npz"
    np.savez(mine, A=np.eye(3))
    content = mine.read_bytes()
    with pytest.raises(ValueError, match="mine.npz is no saved result, .*; it is not overwritten: give another path"):
        result.save(mine)
    assert mine.read_bytes() == content
    with pytest.raises(ValueError, match="mine.npz is no saved result, .*; give the path of a file that Result.save wrote"):
        Result.load(mine)
    with pytest.raises(ValueError, match="run.npz is no saved result but a checkpoint"):
        Result.load(tmp_path / "run.npz")
    result.save(tmp_path / "result.npz")
    with pytest.raises(tiebreak.CheckpointError, match="is no checkpoint but a saved result"):
        minimize(problem, QUICK, max_queries=300, checkpoint=tmp_path / "result.npz")
    with pytest.raises(FileNotFoundError, match="there is no .*absent.npz"):
        Result.load(tmp_path / "absent.npz")
    with pytest.raises(ValueError, match="`path` must be a file in an existing folder"):
        result.save(tmp_path / "absent" / "result.npz")


def test_a_damaged_result_is_refused(problem, tmp_path):
    with interpreted():
        result = minimize(problem, QUICK, max_queries=300)
    path = tmp_path / "result.npz"
    result.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    content = path.read_bytes()
    for size in (0, 10, 500, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match="is no saved result, or a damaged one"):
            Result.load(path)
    np.savez(path, **{name: array for name, array in arrays.items() if name != "history.upper"})
    with pytest.raises(ValueError, match="is damaged .*history.upper"):
        Result.load(path)
    np.savez(path, **{**arrays, "x": np.zeros(1)})
    with pytest.raises(ValueError, match="is damaged"):
        Result.load(path)
    path.unlink()
    checkpoint.save(path, RESULT._replace(format=0), {}, {})
    with pytest.raises(ValueError, match="has format 0, not 3: another version of tiebreak wrote it"):
        Result.load(path)
