"""The published problems: what is run on them, how methods stand, and what is concluded."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tiebreak
from tiebreak.cli import app
from tiebreak.studies import conic, published
from tiebreak.studies.claims import Verdict
from tiebreak.studies.standings import CVXPY, OURS, Standing, times_table
from tiebreak.studies.study import Outcome, Plan, Runs, Source

HOLDS, FAILS = Verdict.HOLDS, Verdict.FAILS
GENERATED = Source("a1a-like")._asdict()
REFERENCE = {
    "lower": 1.0, "upper": 10.0, "lower_floor": 1.0, "upper_floor": 10.0, "ceiling": math.inf, "upper_error": 0.0,
    "lower_unit": 2.0, "upper_unit": 10.0, "answer_lower": 1.0, "seconds": 0.1, "norm": math.sqrt(20.0),
}  # fmt: skip


def trace(*records: tuple[float, float, float], method: str = "some", status: str = "SOLVED", **record) -> Outcome:
    """A run with records of seconds, g and f."""
    seconds, lower, upper = np.array(records).T
    arrays = {"seconds": seconds, "lower": lower, "upper": upper, "distance": np.abs(upper - 10.0) / 10.0}
    end = {"lower": float(lower[-1]), "upper": float(upper[-1]), "seconds": float(seconds[-1])}
    return Outcome(arrays, {"method": method, "status": status, **end, **record})


def standing(reference=REFERENCE, name: str = "foxgood", **runs: Outcome) -> Standing:
    return Standing(name, name, reference, {label: {0: run} for label, run in runs.items()})


QUICK_THEN_EXACT = trace((0.1, 1.0 + 1e-5, 9.95), (0.5, 1.0, 10.0))
COARSE = trace((0.04, 1.0 + 1e-3, 9.95), (0.2, 1.0 + 1e-5, 9.995))


# How methods stand


def test_a_method_is_there_at_the_first_record_where_both_gaps_are_small():
    found = standing(a=QUICK_THEN_EXACT, b=COARSE)
    assert [found.seconds("a", level) for level in (1e-2, 1e-3, 1e-4)] == [0.1, 0.5, 0.5]
    assert [found.seconds("b", level) for level in (1e-2, 1e-3, 1e-4)] == [0.04, 0.2, math.inf]
    assert found.fastest(1e-3) == ("b", 0.2)
    assert found.ranked == ["a", "b"]


def test_a_point_that_is_better_than_f_star_does_not_count_unless_by_little():
    far_below = standing(a=trace((0.1, 1.0, 5.0)))
    assert far_below.seconds("a", 1e-2) == math.inf
    assert far_below.error("a") == pytest.approx(0.5)


def test_a_reference_decides_what_it_is_accurate_enough_for_and_hides_what_is_below():
    rough = standing({**REFERENCE, "upper_error": 4e-3}, a=QUICK_THEN_EXACT)
    assert rough.levels == [1e-2, 1e-3]
    assert rough.error("a") == pytest.approx(4e-4)
    row = dict(zip(rough.table().head, rough.table().rows[0], strict=True))
    assert row["f − f*, relative, signed"] == "≲ 4e-04"
    assert row["‖x − x*‖ / ‖x*‖"] == "≲ 2e-02"  # ½‖x − x*‖² ≤ f(x) − f*
    assert row["s to ε = 0.0001"] == "?"
    assert row["s to ε = 0.001"] == "0.5"


def test_the_median_over_seeds_is_what_counts():
    seeds = {0: trace((0.1, 1.0, 10.0)), 1: trace((0.3, 1.0, 10.0)), 2: trace((9.0, 1.0, 10.0))}
    found = Standing("foxgood", "Foxgood", REFERENCE, {"a": seeds, "none": {}})
    assert found.seconds("a", 1e-4) == 0.3
    assert "none" not in found.runs


def test_times_are_given_as_ratios_with_cvxpy_where_it_was_run():
    rows = times_table({"one": standing(**{OURS: QUICK_THEN_EXACT, "b": COARSE, CVXPY: trace((5.0, 1.0, 10.0))})}).rows
    assert [row[1:] for row in rows] == [
        ["0.01", "0.1", "b", "0.04", "2.5", "5", "50"],
        ["0.001", "0.5", "b", "0.2", "2.5", "5", "10"],
        ["0.0001", "0.5", CVXPY, "5", "0.1", "5", "10"],
    ]
    assert times_table({"one": standing(**{OURS: COARSE, "a": QUICK_THEN_EXACT})}).rows[2][-3:] == ["∞", "", ""]


def test_a_method_whose_rivals_have_no_runs_or_never_get_there_has_none_to_lose_to():
    assert standing(**{OURS: QUICK_THEN_EXACT}).fastest(1e-2) == ("none", math.inf)
    assert standing(**{OURS: QUICK_THEN_EXACT, "b": COARSE}).fastest(1e-4) == ("none", math.inf)
    assert published.time_claims({"one": standing(**{OURS: QUICK_THEN_EXACT})}) == []


def test_figures_begin_after_second_0_which_a_logarithmic_clock_does_not_reach():
    panels = standing(**{OURS: trace((0.0, 3.0, 0.0), (0.1, 1.0, 10.0))}).figure().panels
    assert {panel.xscale for panel in panels} == {"log"}
    assert [line.x.tolist() for panel in panels for line in panel.lines] == [[0.1]] * 3


# What is concluded


def verdicts(claims) -> list[Verdict]:
    return [claim.verdict for claim in claims]


def test_the_default_must_be_within_twice_the_fastest_at_every_level():
    near = trace((0.06, 1.0, 9.95), (0.3, 1.0, 10.0))
    assert verdicts(published.time_claims({"one": standing(**{OURS: near, "b": COARSE})})) == [HOLDS]
    assert verdicts(published.time_claims({"one": standing(**{OURS: QUICK_THEN_EXACT, "b": COARSE})})) == [FAILS]
    assert verdicts(published.time_claims({"one": standing(**{OURS: COARSE, "b": near})})) == [FAILS]  # it never gets there
    slow = trace((0.2, 1.0, 10.0))
    assert verdicts(published.time_claims({"one": standing(**{OURS: near, CVXPY: slow})})) == [HOLDS, FAILS]


def test_the_default_must_end_as_near_as_any():
    assert verdicts(published.end_claims({"one": standing(**{OURS: QUICK_THEN_EXACT, "b": COARSE})})) == [HOLDS]
    assert verdicts(published.end_claims({"one": standing(**{OURS: COARSE, "b": QUICK_THEN_EXACT})})) == [FAILS]
    assert verdicts(published.end_claims({"one": standing(b=COARSE)})) == [Verdict.OPEN]  # it was not run


def test_the_papers_claims_are_judged_where_their_methods_were_run():
    ends = {label: trace((1.0, 1.1, 9.0)) for label in published.BEATEN} | {"pb-apg": trace((1.0, 1.01, 9.0))}
    assert verdicts(published.paper_claims({"a1a": standing(name="a1a", **ends)})) == [HOLDS]
    ends["cg-bio"] = trace((1.0, 1.001, 9.0))
    assert verdicts(published.paper_claims({"a1a": standing(name="a1a", **ends)})) == [FAILS]
    assert published.paper_claims({"a1a": standing(name="a1a", a=COARSE), "baart": standing(**ends)}) == []


def test_what_is_known_of_a1a_is_held_against_what_is_proven():
    digits = published.A1A
    proven = REFERENCE | {
        "lower": digits["lower"] + 1e-14, "lower_floor": digits["lower"] - 1e-14, "answer_lower": digits["lower"],
        "upper": digits["upper"] - 1e-6, "upper_floor": digits["upper"] - 3e-6,
    }  # fmt: skip
    assert verdicts(published.a1a_claims(Runs({}), standing(proven))) == [HOLDS, HOLDS]
    wrong = proven | {"lower_floor": digits["lower"] + 1e-15, "upper_floor": digits["upper"] + 1e-9}
    assert verdicts(published.a1a_claims(Runs({}), standing(wrong))) == [FAILS, FAILS]
    task = next(t for t in published.Published().tasks(Plan(1, sources=(Source("a1a", "p", "d"),))) if "authors" in t.name)
    for lower, upper, verdict in ((1e-8, -3e-3, HOLDS), (1e-7, -3e-3, FAILS), (1e-8, -4e-3, FAILS)):
        end = trace((1.0, digits["lower"] + lower, digits["upper"] + upper), iterations=1470)
        assert published.a1a_claims(Runs({task.key: (task, end)}), standing(proven))[2].verdict is verdict


# What is run


def test_every_method_for_two_levels_and_finite_data_is_run_on_every_problem():
    names = {task.name for task in published.Published().tasks(Plan(seeds=10))}
    for problem in published.PROBLEMS:
        for method in ("auto", "active-set", "pb-apg", "mng", "sbcgi", "bisec-bio", "reference"):
            assert f"published/{problem}/{method}" in names
    assert not any("fista" in name.split("/") or "sample-average" in name for name in names)
    assert not any("authors" in name for name in names)  # of the real a1a only
    assert max(task.seed for task in published.Published().tasks(Plan(seeds=10))) == published.REPEATS - 1


def test_the_reference_of_an_integral_equation_brackets_f_at_the_known_solution():
    record = published.reference(0, "foxgood", True, GENERATED).record
    x = tiebreak.data.integral_equation("foxgood", 200).x
    assert record["ceiling"] == pytest.approx(0.5 * x @ x)
    assert record["upper_floor"] <= record["upper"] <= record["ceiling"]
    assert record["upper_error"] <= 1e-6 * record["upper"]
    assert record["lower"] <= 1e-30


@pytest.mark.parametrize("problem", ["a1a", "phillips"])
def test_cvxpy_and_the_active_set_agree(problem):
    pytest.importorskip("cvxpy")
    reference = published.reference(0, problem, True, GENERATED)
    record, best = published.rival(0, problem, True, GENERATED, reference).record, reference.record
    assert record["lower"] - best["lower"] <= 1e-8
    assert record["upper"] == pytest.approx(best["upper"], rel=1e-2)


def test_a_solver_that_fails_leaves_the_point_of_the_stage_before(monkeypatch):
    cvxpy = pytest.importorskip("cvxpy")
    A, y = tiebreak.data.a1a_like(rows=30)
    problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.Logistic(A, y), tiebreak.L1Ball(1.0))

    def fails(*arguments, **options):
        raise cvxpy.error.SolverError("no")

    monkeypatch.setattr(cvxpy.Problem, "solve", fails)
    x, said, _ = conic.two_stages(A, y, True, problem)
    np.testing.assert_array_equal(x, 0.0)
    assert said == "failed, then failed"


def test_the_digits_of_a1a_are_proven_on_the_real_file():
    path = Path(os.environ.get("TIEBREAK_DATA", ""), "a1a.npz")
    if "TIEBREAK_DATA" not in os.environ or not path.is_file():
        pytest.skip("TIEBREAK_DATA names no folder that holds a1a.npz")
    found = published.reference(0, "a1a", False, Source("a1a", str(path))._asdict())
    reference = {**found.record, "norm": 1.0}
    assert verdicts(published.a1a_claims(Runs({}), Standing("a1a", "a1a", reference, {}))) == [HOLDS, HOLDS]


def test_a_quick_study_writes_its_page_and_decides_all_claims(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "PROBLEMS", {"a1a": "a1a", "foxgood": "Foxgood"})
    monkeypatch.setattr(published, "FEW", ("auto", "pb-apg"))
    out = tmp_path / "out"
    arguments = ["reproduce", "published", "--quick", "--seeds", "1", "--jobs", "1", "--out", str(out)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    page = (out / "report.html").read_text()
    assert "a1a-like" in page
    assert "not decidable</span> —" not in page
    assert page.count('<li class="holds">') + page.count('<li class="fails">') >= 3  # one seed decides on fixed problems
    assert len(list((out / "figures").glob("published-*.png"))) == 2


def test_a1a_is_read_from_a_file_and_refused_without_one(tmp_path):
    shown = CliRunner().invoke(app, ["reproduce", "published", "--data", "a1a", "--out", str(tmp_path / "out")])
    assert shown.exit_code == 2
    assert "a1a.t" in shown.output
