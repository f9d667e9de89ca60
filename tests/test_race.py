"""The race of methods: its arithmetic, that it continues where it ended, and that the answers of its bank are true."""

from __future__ import annotations

import math
import warnings

import cvxpy
import numpy as np
import pytest
from bank import Reference, entries
from bank.nonconvex import least_on_polygon
from cases import CASES
from judging import (
    HALVES,
    Contest,
    Run,
    Yardstick,
    contests,
    first_solved,
    halves,
    judge,
    profile,
    with_shared_times,
)
from race import Store, chosen_entries, hired, race, results, tasks_of, two_level_methods
from reporting import write
from timing import Size

from tiebreak import Logistic
from tiebreak.studies.known import known

YARDSTICK = Yardstick(Reference(1.0, 10.0, 0.0, 0.0, "planted"), start=(0.0, 3.0), tolerance=0.0)
PROBLEMS = {entry.name: entry for entry in entries()}


def run_of(method: str, *rows: tuple[float, float, float, float], entry: str = "one") -> Run:
    return Run(entry, method, "queries", method, np.array(rows, dtype=float).reshape(-1, 4))


# Arithmetic


def test_a_run_has_solved_an_entry_at_the_first_record_where_both_gaps_are_small():
    run = run_of("a", (10, 1.0, 10.0, 1.03), (20, 2.0, 9.95, 1.015), (30, 3.0, 10.0, 1.0))
    assert first_solved(run, YARDSTICK, 1e-2) == {"seconds": 2.0, "samples": 20.0}
    assert first_solved(run, YARDSTICK, 1e-4) == {"seconds": 3.0, "samples": 30.0}
    assert first_solved(run_of("b", (10, 1.0, 10.2, 1.0)), YARDSTICK, 1e-2)["seconds"] == math.inf
    assert first_solved(run_of("refused"), YARDSTICK, 1e-2)["samples"] == math.inf


def test_very_few_seconds_and_samples_count_as_a_hundredth_of_a_second_and_a_pass():
    run = run_of("a", (3, 1e-5, 10.0, 1.0))
    assert first_solved(run, YARDSTICK._replace(one_pass=50), 1e-2) == {"seconds": 0.01, "samples": 50.0}


def test_near_ties_may_use_their_tolerance_and_no_more():
    near = YARDSTICK._replace(tolerance=0.5)
    assert first_solved(run_of("a", (10, 1.0, 10.0, 1.5)), near, 1e-6)["samples"] == 10.0
    assert first_solved(run_of("a", (10, 1.0, 10.0, 1.53)), near, 1e-2)["samples"] == math.inf


def test_a_reference_decides_only_what_it_is_accurate_enough_for():
    rough = YARDSTICK._replace(reference=YARDSTICK.reference._replace(upper_error=1e-4))
    assert [rough.decides(level) for level in (1e-2, 1e-4, 1e-6)] == [True, True, False]
    run = run_of("a", (10, 1.0, 10.0, 1.0))
    assert [contest.level for contest in contests([run], {"one": rough}, "samples")] == [1e-2, 1e-4]


def test_the_same_work_has_the_same_times_and_other_work_keeps_its_own():
    slow, fast = ((10, 2.0, 5.0, 1.0), (20, 4.0, 6.0, 1.0)), ((10, 1.0, 5.0, 1.0), (20, 3.0, 6.0, 1.0))
    other = ((10, 0.5, 5.0, 1.1), (20, 1.0, 6.0, 1.0))
    runs = [run_of("auto", *slow), run_of("same", *fast), run_of("other", *other), run_of("auto", *slow, entry="two")]
    seconds = {(run.entry, run.method): run.records[:, 1].tolist() for run in with_shared_times(runs)}
    assert seconds["one", "auto"] == seconds["one", "same"] == [1.0, 3.0]
    assert seconds["one", "other"] == [0.5, 1.0]
    assert seconds["two", "auto"] == [2.0, 4.0]


def test_profiles_are_shares_of_contests_within_a_factor_of_the_best():
    held = [
        Contest("one", 1e-2, {"a": 1.0, "b": 3.0}),
        Contest("two", 1e-2, {"a": 8.0, "b": 2.0}),
        Contest("three", 1e-2, {"a": math.inf, "b": 5.0}),
    ]
    assert profile(held, "a", np.array([1.0, 3.9, 4.0, 1e9])).tolist() == [1 / 3, 1 / 3, 2 / 3, 2 / 3]
    assert profile(held, "b", np.array([1.0, 3.0])).tolist() == [2 / 3, 1.0]
    assert profile(held, "never there", np.array([1e9])).tolist() == [0.0]


def test_what_another_method_solved_and_the_default_did_not_is_its_worst_loss():
    held = [
        Contest("one", 1e-2, {"auto": 1.0, "b": 3.0}),
        Contest("two", 1e-2, {"auto": 6.0, "b": 2.0}),
        Contest("three", 1e-2, {"auto": math.inf, "b": 5.0}),
        Contest("four", 1e-2, {"auto": 2.0, "b": 1.0}),
    ]
    verdict = judge(held, "auto")
    assert (verdict.contests, verdict.best, verdict.close, verdict.beyond) == (4, 0.25, 0.5, 1)
    assert verdict.worst == math.inf
    assert [contest.entry for contest in verdict.losses] == ["three", "two"]
    assert [contest.best for contest in verdict.losses] == ["b", "b"]


def test_the_halves_are_about_as_large_and_part_no_problem():
    place = halves(entries())
    assert set(place) == set(PROBLEMS)
    count = [sum(half == own for own in place.values()) for half in HALVES]
    assert abs(count[0] - count[1]) <= 3
    for kind in {entry.kind for entry in entries()}:
        assert {place[entry.name] for entry in entries() if entry.kind == kind} == set(HALVES)


# Running


def test_a_race_continues_where_it_ended(tmp_path):
    chosen, methods, file = chosen_entries(["small-ball/30"], Size.TINY), ["bi-fista", "a-irg"], tmp_path / "runs.jsonl"
    assert race(chosen, methods, Store(file), seconds=0.0, jobs=1, tiny=True) == 3
    store = Store(file)
    assert race(chosen, methods, store, seconds=60.0, jobs=1, tiny=True) == 0
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 3
    file.write_text("".join(lines[:2]) + lines[2][:50])  # as if it had been interrupted while writing
    again = Store(file)
    assert [(entry.label, method) for entry, method in tasks_of(chosen, methods, again)] == [("small-ball/30", "a-irg")]
    again.add(store.outcomes["small-ball/30", "a-irg"])
    assert Store(file).outcomes == store.outcomes
    again.forget(["bi-fista"], ["small-ball/30"])
    assert [method for _, method in tasks_of(chosen, methods, Store(file))] == ["bi-fista"]
    runs, yardsticks = results(chosen, store)
    assert {run.method for run in runs} == set(methods)
    seconds, samples = runs[0].records[:, 1], runs[0].records[:, 0]
    assert (np.diff(seconds) >= 0.0).all()
    assert (np.diff(samples) >= 0.0).all()
    write(tmp_path, chosen, runs, yardsticks)
    assert "small-ball/30" in (tmp_path / "race.md").read_text()
    assert len((tmp_path / "race.csv").read_text().splitlines()) == 3
    assert (tmp_path / "profiles.svg").stat().st_size > 0


def test_a_run_that_takes_too_long_is_stopped_and_a_method_that_does_not_fit_refuses():
    with hired(tiny=True) as worker:
        assert worker.ask("hull/30", "pb-apg", 60.0)["status"] == "refused"
        assert worker.ask("least-norm/3000", "sbcgi", 0.5)["status"] == "killed"


def test_methods_of_one_level_do_not_race():
    assert "auto" in two_level_methods()
    assert "fista" not in two_level_methods()


# The bank


def test_the_bank_has_forty_problems_and_more_with_budgets_from_3_to_3000_passes():
    assert len(PROBLEMS) >= 40
    passes = [entry.passes for entry in entries()]
    assert (min(passes), max(passes)) == (3, 3000)
    assert len({entry.label for entry in entries()}) == len(passes)


CHECKED = ("least-norm", "box", "simplex", "groups", "hull", "birkhoff", "spectrahedron", "small-logistic")
TIGHT = {"solver": cvxpy.CLARABEL, "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def least(objective, constraints) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a solution may be inaccurate: it is compared below
        return float(cvxpy.Problem(cvxpy.Minimize(objective), constraints).solve(**TIGHT))


def stated(lower, fit):
    """Return a loss of a linear model for CVXPY, as a function of A x = U fit with orthonormal columns U."""
    A, targets = lower.matrix.array, lower.targets
    left = np.linalg.svd(A, full_matrices=False)[0][:, : fit.size]
    if isinstance(lower, Logistic):
        return cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(targets, left @ fit))) / targets.size
    rest = targets - left @ (left.T @ targets)
    return 0.5 * (cvxpy.sum_squares(fit - left.T @ targets) + float(rest @ rest)) / targets.size


@pytest.mark.parametrize("name", [*CHECKED, "near-wide-by-share"])
def test_planted_answers_are_those_of_a_conic_solver(name):
    case = PROBLEMS[name].make()
    problem, reference = case.problem, case.reference
    kind = next(kind for kind in CASES if kind.name == type(problem.domain).__name__)
    x = cvxpy.Variable(problem.dimension)
    inside = kind.constraints(problem.domain, x)
    _, values, right = np.linalg.svd(problem.lower.matrix.array, full_matrices=False)
    rank = int((values > 1e-9 * values[0]).sum())
    loss = stated(problem.lower, cvxpy.multiply(values[:rank], right[:rank] @ x))
    start = problem.center
    unit = problem.lower.value(start) - reference.lower
    assert least(loss, inside) == pytest.approx(reference.lower, abs=1e-6 * unit)
    same_fit = right[:rank] @ x == right[:rank] @ x.value
    tied = same_fit if case.tolerance == 0.0 else loss <= reference.lower + case.tolerance
    center = problem.upper.center if problem.upper.center.size else np.zeros(problem.dimension)
    unit = max(abs(problem.upper.value(start) - reference.upper), abs(reference.upper))
    assert least(0.5 * cvxpy.sum_squares(x - center), [*inside, tied]) == pytest.approx(reference.upper, abs=1e-4 * unit)


def test_the_least_f_on_a_polygon_is_that_of_a_closed_form_where_f_is_convex():
    case = known(3)
    upper, error = least_on_polygon(case.problem.upper, case.vertices)
    assert 0.0 <= error <= 1e-5 * upper
    assert upper - error <= case.upper * (1.0 + 1e-12)
    assert case.upper <= upper * (1.0 + 1e-12)
