"""The benchmark for benchopt: its numbers are the library's, its arrays are the problems, and a small run works."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("benchopt.runner", reason="benchopt is not installed")  # the folder of the same name is no package

from bank import entries
from benchopt.benchmark import Benchmark
from benchopt.runner import run_benchmark

from tiebreak import Birkhoff, Hull, L1Ball
from tiebreak.engine import interpreted

FOLDER = Path(__file__).parents[1] / "benchmarks" / "benchopt"
PROBLEMS = {entry.name: entry.make for entry in entries()}


@pytest.fixture
def benchmark():
    return Benchmark(FOLDER)


def objective_of(benchmark, name):
    objective = benchmark.get_benchmark_objective().get_instance()
    objective.set_data(make=PROBLEMS[name])
    return objective


# The objective


@pytest.mark.parametrize("name", ["least-norm", "small-logistic", "near-wide-by-share"])
def test_gaps_are_those_of_the_library_with_their_signs(benchmark, name):
    objective, case = objective_of(benchmark, name), PROBLEMS[name]()
    x = 0.3 * case.problem.domain.lmo(np.arange(1.0, case.problem.dimension + 1))
    told = objective.evaluate_result(x)
    assert told["upper_gap"] == case.problem.upper.value(x) - case.reference.upper
    assert told["lower_gap"] == case.problem.lower.value(x) - case.reference.lower - case.tolerance
    center = case.problem.center
    unit = case.problem.lower.value(center) - case.reference.lower
    assert told["lower_gap_relative"] == pytest.approx(told["lower_gap"] / unit, rel=1e-12)
    assert np.sign(told["upper_gap_relative"]) == np.sign(told["upper_gap"])
    assert told["outside"] == 0.0
    errors = abs(told["upper_gap_relative"]), told["lower_gap_relative"]
    assert told["value"] == pytest.approx(max(*errors, 0.0), rel=1e-12)


def test_a_planted_answer_has_no_error_and_the_middle_of_the_set_has_error_one(benchmark):
    objective, problem = objective_of(benchmark, "least-norm"), PROBLEMS["least-norm"]().problem
    answer = np.linalg.lstsq(problem.lower.matrix.array, problem.lower.targets, rcond=None)[0]
    assert objective.evaluate_result(answer)["value"] < 1e-13
    assert objective.evaluate_result(**objective.get_one_result())["value"] == 1.0


def test_a_point_outside_of_the_set_is_no_answer_however_small_its_gaps(benchmark):
    objective, problem = objective_of(benchmark, "least-norm"), PROBLEMS["least-norm"]().problem
    A, radius = problem.lower.matrix.array, problem.domain.radius
    answer = np.linalg.lstsq(A, problem.lower.targets, rcond=None)[0]
    way = np.linalg.svd(A)[2][-1]  # along it, g does not change
    told = objective.evaluate_result(answer + 10.0 * radius * way)
    assert told["lower_gap_relative"] < 1e-9
    assert told["outside"] > radius
    assert told["value"] >= told["outside"] / problem.domain.diameter


def test_what_is_no_point_is_refused_and_what_is_not_finite_has_no_value(benchmark):
    objective = objective_of(benchmark, "small-ball")
    with pytest.raises(ValueError, match="40 entries in one row, got shape"):
        objective.evaluate_result(np.zeros((40, 1)))
    assert np.isnan(objective.evaluate_result(np.full(40, np.nan))["value"])


@pytest.mark.parametrize(
    ("domain", "x", "expected"),
    [
        (L1Ball(1.0), np.array([2.0, 0.0]), 1.0),
        (Hull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0]), 0.5**0.5),
        (Hull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0.2, 0.3]), 0.0),
        (Birkhoff(2), np.array([2.0, -1.0, -1.0, 2.0]), 2.0),
    ],
)
def test_the_distance_to_a_set_is_known_with_and_without_a_projection(benchmark, domain, x, expected):
    from benchmark_utils.measuring import distance

    with interpreted():
        assert distance(domain, x) == pytest.approx(expected, abs=1e-9)


def test_data_that_are_missing_are_skipped_with_a_reason(benchmark, monkeypatch, tmp_path):
    monkeypatch.setenv("TIEBREAK_DATA", str(tmp_path))
    skipped, reason = benchmark.get_benchmark_objective().get_instance().skip(make=PROBLEMS["a1a"])
    assert skipped
    assert "TIEBREAK_DATA" in reason


# Problems as arrays


def value_of(level, x):
    """Return the value of a level from its arrays alone."""
    if level["loss"] == "distance":
        return 0.5 * np.sum((x - level["center"]) ** 2)
    fit = level["A"] @ x
    if level["loss"] == "logistic":
        return np.mean(level["weights"] * np.logaddexp(0.0, -level["b"] * fit))
    size = np.abs(fit - level["b"])
    near = np.minimum(size, level.get("delta", np.inf))
    return np.mean(level["weights"] * near * (size - near / 2))


@pytest.mark.parametrize("name", ["least-norm", "small-logistic", "huber", "sparse-consistent", "sparse-logistic"])
def test_arrays_say_what_the_problem_says(benchmark, name):
    from benchmark_utils.arrays import as_arrays

    problem = PROBLEMS[name]().problem
    arrays, x = as_arrays(problem), np.random.default_rng(0).standard_normal(problem.dimension)
    for level in ("upper", "lower"):
        assert value_of(arrays[level], x) == pytest.approx(getattr(problem, level).value(x), rel=1e-12)
    assert arrays["set"] == {"kind": "L1Ball", "radius": problem.domain.radius}


def test_what_arrays_cannot_say_is_skipped_with_a_reason(benchmark):
    solver = solver_of(benchmark, "cvxpy")
    assert solver.skip(make=PROBLEMS["quantile"]) == (
        True,
        "an objective is a FiniteSum, not a loss of a linear model or a distance",
    )


# The solvers


def solver_of(benchmark, name, **parameters):
    return next(found for found in benchmark.get_solvers() if found.name == name).get_instance(**parameters)


def test_least_squares_are_for_problems_whose_answer_they_have(benchmark):
    solver = solver_of(benchmark, "lstsq", package="scipy")
    assert solver.skip(make=PROBLEMS["least-norm"]) == (False, None)
    reasons = {name: solver.skip(make=PROBLEMS[name])[1] for name in ("small-ball", "small-logistic", "near-tall")}
    assert reasons["small-ball"] == "the least-squares solution of least norm lies outside of the set"
    assert set(reasons.values()) == {reasons["small-ball"], "it is no least-squares problem of least norm with exact ties"}


def test_methods_that_refuse_a_problem_are_skipped_with_their_reason(benchmark):
    skipped, reason = solver_of(benchmark, "tiebreak", method="sample-average").skip(make=PROBLEMS["small-ball"])
    assert skipped
    assert "for streams" in reason


@pytest.mark.parametrize("name", ["least-norm", "small-logistic", "near-wide-by-share", "hull"])
def test_two_convex_programs_find_planted_answers(benchmark, name):
    pytest.importorskip("cvxpy")
    solver = solver_of(benchmark, "cvxpy")
    assert solver.skip(make=PROBLEMS[name]) == (False, None)
    solver.set_objective(make=PROBLEMS[name])
    solver.run(1e-10)
    assert objective_of(benchmark, name).evaluate_result(**solver.get_result())["value"] < 1e-4


def test_calls_go_on_until_they_reach_the_level_or_have_used_up_their_seconds(benchmark):
    from benchmark_utils.stopping import SolvedOrSpent

    solver = solver_of(benchmark, "minimize")
    solver._objective = objective_of(benchmark, "small-ball")
    solver._objective.seconds = 3.0

    def stops(*values):
        criterion = SolvedOrSpent(level=1e-3).get_runner_instance(max_runs=100, solver=solver)
        curve = [{"objective_value": value, "objective_processor_seconds": 1.0} for value in values]
        return [criterion.should_stop(k, curve[: k + 1])[0] for k in range(len(values))]

    assert stops(1.0, 1e-4) == [False, True]
    assert stops(0.5, 0.6, 0.5) == [False, False, True]


# Runs


def test_a_small_run_works_with_code_of_others(tmp_path):
    file = FOLDER / "clones" / "solodov.py"
    solvers = ["minimize", "tiebreak[method=pb-apg]", "lstsq[package=numpy]", "ridge[solver=svd]", f"clone[file={file}]"]
    written = run_benchmark(
        FOLDER,
        solver_names=solvers,
        dataset_names=["bank[problem=[small-ball,least-norm]]"],
        max_runs=10,
        timeout=60,
        plot_result=False,
        no_cache=True,
        show_progress=False,
        output_file=str(tmp_path / "run.parquet"),
    )
    calls = pd.read_parquet(written)
    ends = calls.groupby(["dataset_name", "solver_name"])["objective_value"].min()
    assert ends["bank[small-ball]"].index.tolist() == [f"clone[file={file}]", "minimize", "tiebreak[pb-apg]"]
    assert ends["bank[least-norm]"].index.tolist() == ["lstsq[numpy]", "minimize", "ridge[svd]", "tiebreak[pb-apg]"]
    assert ends.drop(f"clone[file={file}]", level=1).max() < 1e-6
    assert ends["bank[small-ball]", f"clone[file={file}]"] < 0.1
    assert (calls["objective_processor_seconds"] >= 0.0).all()


def calls_of(*rows):
    found = pd.DataFrame(rows, columns=["data", "solver", "seconds", "value"])
    return found.assign(uncertainty=1e-7, file="tiebreak_auto")


def test_tables_compare_the_fastest_calls_that_got_there(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import results

    mine = [("one", "minimize", seconds, value) for seconds, value in ((4.0, 1e-5), (1.0, 1e-3), (3.0, 1e-7))]
    calls = calls_of(*mine, ("one", "cvxpy", 2.0, 1e-5))
    first = "| one | minimize, 1 s | 1.0 | cvxpy, 2 s | 1.5 | minimize, 3 s | 1.0 |"
    assert results.winners(calls).splitlines()[-1] == first
    assert results.ratios(calls, 1e-4).splitlines()[2:] == ["| `cvxpy` | 1.0 |", "| `minimize` | 1.5 |"]
    assert "lstsq" in results.missing(calls)
    assert results.outcome(calls.assign(uncertainty=1e-6), "one", 1e-6).decided is False
