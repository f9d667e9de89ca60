"""The studies: what they run, and what they conclude from runs."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from tiebreak import data
from tiebreak.cli import app
from tiebreak.studies import ablation, dictionary, regression, rivals
from tiebreak.studies.catalogue import STUDIES
from tiebreak.studies.claims import Verdict
from tiebreak.studies.references import optimum, solve
from tiebreak.studies.study import Outcome, Plan, Runs, Source
from tiebreak.studies.ties import Minimisers

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def traces(ends: dict[str, dict[str, float]], seeds: int = 10, **record):
    """Runs whose columns go from 1 to given ends, a little different from seed to seed."""
    made = {}
    for label, columns in ends.items():
        made[label] = {}
        for seed in range(seeds):
            arrays = {"queries": np.array([0, 50, 100]), "seconds": np.array([0.0, 1.0, 2.0]), "phase": np.array([0, 0, 1])}
            for name, end in columns.items():
                arrays[name] = np.array([1.0, (1.0 + end) / 2, end]) * (1.0 + 0.001 * seed)
            made[label][seed] = Outcome(arrays, {"empty_cuts": 0, "iterations": 10, **record})
    return made


def verdicts(claims) -> dict[str, Verdict]:
    return {claim.text: claim.verdict for claim in claims}


def test_the_papers_regression_is_recognised():
    gaps = {
        "SBCGI": (1e-2, 1e-2, 0.1),
        "SBCGF": (1e-3, 1e-3, 0.1),
        "aR-IP-SeG": (0.9, 0.9, 0.9),
        "DBGD-sto": (0.5, 0.1, 0.15),
    }
    found = verdicts(
        regression.claims(traces({m: dict(zip(("lower_gap", "upper_gap", "test"), v)) for m, v in gaps.items()}))
    )
    assert list(found.values()) == [HOLDS] * 9 + [FAILS]  # nothing rises after the first point


def test_a_regression_with_the_methods_in_other_places_is_told_apart():
    gaps = {
        "SBCGI": (1e-3, 1e-2, 0.1),
        "SBCGF": (1e-2, 1e-3, 0.5),
        "aR-IP-SeG": (0.1, 0.9, 0.2),
        "DBGD-sto": (0.5, 0.1, 0.1),
    }
    found = verdicts(
        regression.claims(traces({m: dict(zip(("lower_gap", "upper_gap", "test"), v)) for m, v in gaps.items()}))
    )
    texts = {text: verdict for text, verdict in found.items() if verdict is FAILS}
    assert len(texts) == 6
    assert "SBCGI has the second-smallest lower-level gap" in texts  # it has the smallest
    assert "SBCGF keeps a smaller lower-level gap than all others" in texts
    assert "aR-IP-SeG is worst at both levels" in texts
    assert found["SBCGF has the smallest upper-level gap (signed)"] is HOLDS


def test_too_few_seeds_decide_nothing():
    gaps = {m: {"lower_gap": 0.1, "upper_gap": 0.1, "test": 0.1} for m in regression.METHODS}
    assert set(verdicts(regression.claims(traces(gaps, seeds=2))).values()) == {OPEN}


def columns(lower, upper, rate):
    return {"lower_gap": lower, "upper": upper, "recovery": rate, "raw_recovery": rate}


def test_the_papers_dictionary_is_recognised():
    ends = {
        "SBCGI": columns(1e-4, 0.02, 0.94),
        "SBCGF": columns(1e-6, 0.02, 0.94),
        "aR-IP-SeG": columns(1e-3, 1.1, 0.76),
        "DBGD-sto": columns(3e-3, 0.02, 0.96),
    }
    first = {seed: Outcome({}, {"recovery": 0.77, "upper": 1.2}) for seed in range(10)}
    assert set(verdicts(dictionary.claims(traces(ends), first)).values()) == {HOLDS}
    ends["aR-IP-SeG"] = columns(1e-5, 0.01, 0.9)
    found = verdicts(dictionary.claims(traces(ends), first))
    assert found["aR-IP-SeG is poor at the lower level, compared with SBCGI and SBCGF"] is FAILS
    assert found["aR-IP-SeG is worst at the upper level"] is FAILS
    assert found["aR-IP-SeG recovers no more atoms than the first point has"] is FAILS


def test_the_smallest_gap_is_not_the_second_smallest():
    ends = dict.fromkeys(dictionary.METHODS, columns(3e-3, 0.02, 0.94)) | {"SBCGI": columns(1e-6, 0.02, 0.94)}
    first = {seed: Outcome({}, {"recovery": 0.77, "upper": 1.2}) for seed in range(10)}
    found = verdicts(dictionary.claims(traces(ends), first))
    assert found["SBCGI has the second-smallest lower-level gap"] is FAILS


def test_the_papers_ablation_is_recognised():
    ends = {label: columns(1e-4, 0.02, 0.94) for label in ("SBCGI", "SBCGF")}
    ends |= {label: columns(1e-5, 0.05, 0.8) for label in ("SBCGI-M", "SBCGF-M")}
    ends |= {label: columns(1.0, 0.01, 0.3) for label in ("STORM-FW", "SPIDER-FW")}
    runs = traces(ends)
    found = verdicts(ablation.claims(runs))
    assert list(found.values()) == [FAILS, HOLDS, FAILS, HOLDS, HOLDS]
    for label in ("SBCGI-M", "SBCGF-M"):
        for outcome in runs[label].values():
            outcome.record["empty_cuts"] = 7
            outcome.arrays["upper"][1:] = [0.1, 0.5]
    found = verdicts(ablation.claims(runs))
    assert set(found.values()) == {HOLDS}


def test_rises_are_counted_after_the_beginning():
    outcome = Outcome({"queries": np.arange(0, 110, 10), "upper": np.array([9.0, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1])}, {})
    assert ablation.roughness({3: outcome}) == {3: 2.0}


def test_rivals_are_compared_with_their_likes():
    ends = {label: {"lower_gap": 0.1, "upper_gap": -0.2, "upper": 0.1} for label in rivals.METHODS}
    ends["IR-SCG"] = {"lower_gap": 0.01, "upper_gap": -0.3, "upper": 0.01}
    runs = traces(ends)
    found = verdicts(rivals.claims(runs, runs))
    assert found["IR-SCG has a smaller lower gap than SBCGI at equal time, regression"] is HOLDS
    assert found["IR-SCG has a smaller upper gap (signed) than SBCGI at equal time, regression"] is HOLDS
    assert found["IR-FSCG has a smaller lower gap than SBCGF at equal time, dictionary"] is FAILS
    assert len(found) == 10


def test_gaps_of_rivals_at_equal_samples_and_at_equal_time_have_one_reference():
    plan = Plan(seeds=1, quick=True)
    column = {"lower_gap": 0.0, "lower": 1.0, "upper": 3.0, "test": 1.0, "recovery": 1.0, "raw_recovery": 1.0}
    made = {}
    for task in STUDIES["rivals"].tasks(plan):
        record = {"lower_floor": 0.5, "upper_floor": 1.0, "best_lower": 1.0, "parameters": "", "status": "TIME"}
        record |= {"seconds": 1.0, "lower": 1.0, "upper": 2.0, "solver": "one", "rival": None}
        if task.name == "regression/ir-scg-0.2s":  # it proves that the reference is wrong
            record["upper_floor"] = 2.5
        (outcome,) = traces({"": column}, seeds=1, **record)[""].values()
        made[task.key] = (task, outcome)
    section = STUDIES["rivals"].section(plan, Runs(made))
    samples, time = (figure.panels[1].lines for figure in section.figures[:2])
    assert {float(line.y[-1]) for line in (*samples, *time)} == {0.5}
    assert section.tables[-1].title.startswith("Reference values")  # without CVXPY there is no table of what it finds
    assert section.tables[-1].rows[0][3:5] == ["2.5", "2.5"]
    assert any("worse than what runs prove" in note for note in section.notes)


def counted(dimensions):
    """Runs that found so many dimensions, by seed."""
    tasks = [regression.counting_tasks(Plan(), seed)[0] for seed in range(len(dimensions))]
    found = [Minimisers(k, 1.0, 0.0) for k in dimensions]
    records = [{**each._asdict(), "words": each.words} for each in found]
    return Runs({task.key: (task, Outcome({}, record)) for task, record in zip(tasks, records, strict=True)})


@pytest.mark.parametrize(
    ("dimensions", "verdict", "sentence"),
    [
        ([0] * 10, FAILS, "has one minimiser on 10 of 10 seeds."),
        ([3] * 9 + [0], HOLDS, "has one minimiser on 1 of 10 seeds and many on 9 of 10 seeds."),
        ([None, 0, 0], OPEN, "has one minimiser on 2 of 3 seeds and an unknown number of them on 1 of 3 seeds."),
    ],
)
def test_the_papers_premise_of_many_minimisers_is_judged(dimensions, verdict, sentence):
    section = STUDIES["regression"].section(Plan(seeds=len(dimensions)), counted(dimensions))
    assert f"The training loss of pageviews {sentence}" in section.text
    assert section.claims[0].verdict is verdict
    assert "several models have the least training error" in section.claims[0].text


def test_studies_share_runs():
    plan = Plan(seeds=1)
    keys = {name: {task.key for task in study.tasks(plan)} for name, study in STUDIES.items()}
    assert len(keys["dictionary"] & keys["ablation"]) == 3  # the first point, SBCGI and SBCGF
    assert len(keys["regression"] & keys["rivals"]) == 3
    quick = {task.key for task in STUDIES["regression"].tasks(Plan(seeds=1, quick=True))}
    assert {key.split("-seed")[0] for key in quick & keys["regression"]} == {  # which have no budget
        "regression/minimisers",
        "regression/planted-minimisers",
        "regression/reference",
    }


@pytest.mark.parametrize("name", list(STUDIES))
def test_a_study_without_any_finished_run_still_has_a_section(name):
    section = STUDIES[name].section(Plan(seeds=2), Runs({}))
    assert section.claims
    assert {claim.verdict for claim in section.claims} == {OPEN}


def small_parts(seed=0):
    rng = np.random.default_rng(seed)
    return data.split(rng.poisson(5.0, size=(30, 40)).astype(float), seed)


def test_a_reference_is_proven_and_cvxpy_agrees():
    pytest.importorskip("cvxpy")
    parts = small_parts()
    record = solve(parts.train, parts.validation, 1.5).record
    assert record["solver"] == "active-set, solved"
    assert record["lower_floor"] <= record["lower"] <= record["lower_floor"] + 1e-14
    assert 0.0 <= record["lower_gap_bound"] < 1e-12
    assert abs(record["upper_gap_bound"]) < 1e-6 * record["upper"]
    assert record["upper_floor"] <= record["upper"]
    assert record["rival"].startswith("Clarabel")
    assert record["rival_lower"] == pytest.approx(record["lower"], abs=1e-9)
    assert record["rival_upper"] == pytest.approx(record["upper"], rel=1e-5)
    assert abs(record["rival_gap"]) < 1e-6 * record["rival_upper"]


def test_without_cvxpy_the_reference_is_the_same_and_nothing_is_beside_it(monkeypatch):
    parts = small_parts()
    monkeypatch.setitem(sys.modules, "cvxpy", None)  # as if it were not installed
    record = solve(parts.train, parts.validation, 1.5).record
    assert record["solver"] == "active-set, solved"
    assert abs(record["upper_gap_bound"]) < 1e-6 * record["upper"]
    assert {value for name, value in record.items() if name.startswith("rival")} == {None}
    json.dumps(record, allow_nan=False)


def test_what_cvxpy_finds_is_shown_beside_the_reference():
    task = regression.reference_task(Plan(seeds=1), 0)
    record = {"lower_floor": 1.0, "upper_floor": 2.0, "best_lower": 1.0, "lower": 1.0, "upper": 2.0, "solver": "one"}
    record |= {"seconds": 0.5, "upper_at_zero": 4.0, "rival": "another", "rival_lower": 1.25, "rival_upper": 1.5}
    runs = Runs({task.key: (task, Outcome({}, {**record, "rival_gap": 0.1, "rival_seconds": 10.0}))})
    _, beside = regression.reference_tables(runs, regression.with_gaps(runs, {})[1])
    assert beside.rows == [[0, 0.25, -0.5, -0.125, 0.1, "another", 10.0, "20.0"]]


def test_a_certificate_takes_the_place_of_a_reference_that_is_worse():
    reference = Outcome({}, {"lower": 1.0, "upper": 2.0, "lower_floor": 0.5, "upper_floor": 1.0, "best_lower": 1.0})
    fine = optimum(reference, [{"lower_floor": 0.9, "upper_floor": 1.5, "best_lower": 1.1}])
    assert (fine.lower, fine.upper, fine.lower_from, fine.upper_from) == (1.0, 2.0, "reference", "reference")
    assert fine.lower_accuracy == pytest.approx(0.1)
    better = optimum(reference, [{"lower_floor": 0.7, "upper_floor": 2.5, "best_lower": 0.8}])
    assert (better.lower, better.upper, better.lower_from, better.upper_from) == (0.7, 2.5, "certificate", "certificate")


def test_frank_wolfe_with_line_search_fits_atoms():
    rng = np.random.default_rng(0)
    codes, truth = rng.standard_normal((3, 40)), rng.standard_normal((5, 3))
    truth /= 2 * np.linalg.norm(truth, axis=0)
    found = dictionary.line_search_frank_wolfe(truth @ codes, codes, np.zeros((5, 3)), 3000)
    np.testing.assert_allclose(found, truth, atol=2e-2)
    assert (np.linalg.norm(found, axis=0) <= 1.0).all()
    pulled = dictionary.line_search_frank_wolfe(10 * truth @ codes, codes, np.zeros((5, 3)), 3000)
    np.testing.assert_allclose(np.linalg.norm(pulled, axis=0), 1.0, atol=1e-6)


# The command


def test_an_unknown_study_is_refused_with_the_known_ones():
    done = CliRunner().invoke(app, ["reproduce", "regresion"], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert "there is no study 'regresion'" in done.output
    assert ", ".join(STUDIES) in done.output


@pytest.mark.parametrize("place", ["file", "file/below/it"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, place):
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["reproduce", "regression", "--out", str(tmp_path / place)], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert "--out" in done.output
    assert "--data" not in done.output
    assert str(tmp_path / place) in done.output


def test_data_that_need_a_package_name_it(tmp_path, monkeypatch):
    def fetch(*args, **arguments):
        raise ImportError("no pandas")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)  # as it fails where pandas is not installed
    arguments = ["reproduce", "fairness", "--data", "adult", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert "--data" in done.output
    assert "tiebreak[pandas]" in done.output


@pytest.mark.parametrize(("option", "value"), [("--jobs", "0"), ("--seeds", "0")])
def test_numbers_of_nothing_are_refused(option, value):
    assert CliRunner().invoke(app, ["reproduce", "regression", option, value]).exit_code == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("montevideo:/absent/bus.json", "/absent/bus.json"),
        ("montevideo", "montevideo:PATH"),
        ("pageviews:file.json", "are generated"),
        ("buses", "there are pageviews, wikimath, montevideo"),
    ],
)
def test_bad_data_are_refused_before_anything_is_run(given, said, tmp_path):
    arguments = ["reproduce", "regression", "--data", given, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "out").exists()


def test_a_file_of_another_form_is_named_with_what_was_expected(tmp_path):
    (tmp_path / "bus.json").write_text(json.dumps({"stops": []}))
    arguments = ["reproduce", "rivals", "--data", f"montevideo:{tmp_path / 'bus.json'}", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert "bus.json" in done.output
    assert '"nodes"' in done.output


def test_the_regression_is_reproduced_quickly_with_a_file_of_counts(tmp_path):
    counts = np.random.default_rng(0).poisson(5.0, size=(45, 60)).tolist()
    (tmp_path / "bus.json").write_text(json.dumps({"nodes": [{"y": row} for row in counts]}))
    out = tmp_path / "out"
    arguments = ["reproduce", "regression", "--quick", "--seeds", "1", "--jobs", "1", "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--data", f"montevideo:{tmp_path / 'bus.json'}"])
    assert done.exit_code == 0, done.output
    assert "11 runs" in done.output
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "montevideo (bus.json)" in page
    assert "The training loss of montevideo (bus.json) has many on 1 of 1 seeds." in page
    assert "many minimisers, a face of dimension 374" in page  # of the planted target
    (stored,) = (out / "runs/regression").glob("sbcgf-seed0-*.json")
    settings = json.loads(stored.read_text())["identity"]["settings"]
    assert settings["max_queries"] == regression.QUICK_QUERIES
    assert Source(**settings["source"]).digest is not None
    again = CliRunner().invoke(app, [*arguments, "--data", f"montevideo:{tmp_path / 'bus.json'}"])
    assert "0 runs" in again.output
    assert "11 found from before" in again.output
