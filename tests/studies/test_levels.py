"""The study of near ties: what gaps are measured from, how claims are judged, and a whole quick run."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tiebreak import METHODS
from tiebreak.cli import app
from tiebreak.studies import levels
from tiebreak.studies.claims import Verdict
from tiebreak.studies.study import Outcome, Plan, Runs, Source

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN
COUNTS = np.random.default_rng(0).poisson(5.0, size=(45, 60))


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "bus.json"
    path.write_text(json.dumps({"nodes": [{"y": row} for row in COUNTS.tolist()]}))
    return path


VARIANTS = {"auto", "sbcgi-m", "sbcgf-m", "dbgd-storm", "dbgd-spider"}  # of methods that are run


def test_every_method_that_takes_near_ties_is_run():
    able = {name for name, method in METHODS.items() if method.near_ties and method.finite}
    assert set(levels.METHODS.values()) == able - VARIANTS


def finished(proven, within, error, seeds=10):
    """Runs that end with a proven bound, within or not, and with a test error."""
    arrays = {"proven": np.array([1.0, proven]), "error": np.array([1.0, error])}
    return {seed: Outcome(arrays, {"within": within}) for seed in range(seeds)}


def judged(exact_run, cutting, others, exact_error=0.5, seeds=10):
    each = {levels.EXACT: exact_run, **dict.fromkeys(levels.FIRST_ORDER, others), **dict.fromkeys(levels.CUTTING, cutting)}
    found = levels.claims(dict.fromkeys(levels.SHARES, each), dict.fromkeys(range(seeds), exact_error))
    return [claim.verdict for claim in found]


def test_what_near_ties_should_show_is_recognised():
    rough = finished(1e-2, True, 0.3)
    assert judged(finished(1e-7, True, 0.25), rough, finished(2e-2, None, 0.4)) == [HOLDS] * 5


def test_each_claim_can_fail():
    assert judged(finished(1e-5, None, 0.75), finished(1e-4, None, 0.3), finished(1e-3, True, 0.3)) == [FAILS] * 5


def test_one_good_rival_is_enough_to_deny_the_lead():
    found = judged(finished(1e-7, True, 0.25), finished(1e-2, True, 0.3), finished(1e-5, True, 0.3))
    assert found == [HOLDS, HOLDS, FAILS, HOLDS, HOLDS]


def test_gaps_are_measured_from_the_largest_floor_of_both_budgets():
    plan = Plan(seeds=1)
    record = {"upper_floor": 1.0, "lower_floor": 0.5, "upper_at_zero": 10.0, "test_at_zero": 4.0, "epsilon": 0.1}
    better = {**record, "upper_floor": 1.5, "lower_floor": 0.75}
    arrays = {name: np.array([9.0, last]) for name, last in
              (("upper", 2.0), ("lower", 1.0), ("upper_gap_bound", 1.0), ("test", 2.0))}  # fmt: skip
    made = {
        task.key: (task, Outcome(arrays, own))
        for task, own in ((levels.task(plan, 0, "sbcgf", 1e-3), record), (levels.task(plan, 0, "dbgd", 1e-3, 1.0), better))
    }
    found = levels.with_gaps(Runs(made), 1e-3, [None, 1.0])
    ends = {column: found["SBCGF", None][0].arrays[column][-1] for column in ("gap", "proven", "excess", "error")}
    assert ends == pytest.approx({"gap": 0.05, "proven": 0.1, "excess": 2.5, "error": 0.5})
    assert found["SBCGF", 1.0] == {}


def test_the_exact_answer_is_within_and_has_the_least_f_of_all_that_are(counts):
    source = Source("montevideo", str(counts))._asdict()
    runs = {m: levels.run(0, m, 1e-3, 60_000, None, source).record for m in ("active-set", "sbcgf", "pb-apg")}
    best = runs["active-set"]
    assert best["within"] is True
    assert best["status"] == "SOLVED"
    assert best["epsilon"] == pytest.approx(1e-3 * best["lower_at_zero"])
    assert best["upper_gap_bound"] <= 1e-6 * best["upper_at_zero"]
    for record in runs.values():
        assert record["upper_floor"] <= best["upper"]
        assert not record["within"] or record["upper"] >= best["upper_floor"]


def test_the_study_is_done_quickly_with_a_file_of_counts(tmp_path, counts):
    out = tmp_path / "out"
    arguments = ["reproduce", "near-ties", "--quick", "--seeds", "1", "--jobs", "1", "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--data", f"montevideo:{counts}"])
    assert done.exit_code == 0, done.output
    assert "61 runs" in done.output
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "montevideo (bus.json)" in page
    assert "ε = 0.0001 g(0), equal time: median (range) over seeds" in page
    with (out / "summary.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    solved = [row for row in rows if row["method"] == "active-set" and row["run"].endswith("active-set")]
    assert [row["status"] for row in solved] == ["SOLVED"] * 4
    assert [row["within"] for row in solved[1:]] == ["True"] * 3
    assert len(list((out / "figures").glob("near-ties-*.png"))) == 4
