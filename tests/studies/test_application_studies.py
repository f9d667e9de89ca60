"""Fair classification and the paper's examples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io

from tiebreak.studies import examples, fairness
from tiebreak.studies.claims import Verdict
from tiebreak.studies.comparing import at_first_point
from tiebreak.studies.fairness import p_rule
from tiebreak.studies.sources import chosen
from tiebreak.studies.study import Outcome

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def ending(seeds: int = 10, **columns):
    """Runs whose columns go from a first point, at the second record, to an end."""
    made = {}
    for seed in range(seeds):
        arrays = {"queries": np.array([0, 50, 100]), "phase": np.array([0, 0, 1])}
        arrays |= {name: np.array([first, first, end]) * (1 + 0.001 * seed) for name, (first, end) in columns.items()}
        made[seed] = Outcome(arrays, {})
    return made


def test_the_p_rule_is_the_same_for_both_groups_exchanged():
    predicted, sensitive = np.array([1, 1, -1, -1, 1, -1]), np.array([0, 0, 0, 1, 1, 1])
    assert p_rule(predicted, sensitive) == p_rule(predicted, 1 - sensitive) == pytest.approx(0.5)
    assert p_rule(predicted, np.array([0, 0, 1, 1, 0, 1])) == 0.0


def test_there_is_no_p_rule_of_an_empty_group_or_where_nobody_is_positive():
    assert np.isnan(p_rule(-np.ones(6), np.array([0, 0, 0, 1, 1, 1])))
    assert np.isnan(p_rule(np.ones(6), np.ones(6)))


def test_a_run_without_a_p_rule_wins_no_claim():
    columns = {"upper": (1e-3, 1e-4), "accuracy": (0.85, 0.84), "lower_gap_bound": (1e-3, 1e-3)}
    known, unknown = ending(p_rule=(0.4, 0.9), **columns), ending(p_rule=(0.4, np.nan), **columns)
    nobody = ending(p_rule=(np.nan, 0.9), **columns)
    for first, last in ((known, unknown), (nobody, known)):
        traces = {"SBCGI": known, "SBCGF": first, "CG-BiO": known, "DBGD": known}
        found = fairness.claims({**traces, "CG-BiO": last}, dict.fromkeys(fairness.TOLERANCES, last))
        assert found[0].verdict is not HOLDS
        assert found[3].verdict is not HOLDS
    assert found[5].verdict is HOLDS  # of runs that have one


def people(folder, n, groups):
    rng = np.random.default_rng(0)
    path = folder / "few.mat"
    scipy.io.savemat(
        path, {"X": rng.random((n, 2)), "y": rng.choice([-1, 1], n), "x_control": rng.integers(2 - groups, 2, size=n)}
    )
    return path


@pytest.mark.parametrize(
    ("n", "groups", "message"), [(2999, 2, "at least 3000 people.*got 2999"), (3000, 1, "people of both groups.*got 1 only")]
)
def test_too_few_people_or_a_single_group_are_refused_by_the_name_of_their_file(tmp_path, n, groups, message):
    with pytest.raises(ValueError, match=f"few.mat must have {message}"):
        chosen(f"adult:{people(tmp_path, n, groups)}", fairness.Fairness.sources)


def test_what_fairness_gains_is_told_apart_from_what_it_loses():
    gained = ending(p_rule=(0.4, 0.5), upper=(1e-3, 1e-4), accuracy=(0.85, 0.84), lower_gap_bound=(1e-3, 1e-3))
    dbgd = ending(p_rule=(0.0, 0.5), upper=(1e-3, 1e-4), accuracy=(0.8, 0.8), lower_gap_bound=(1e-1, 1e-1))
    fair = ending(p_rule=(0.4, 0.9), upper=(1e-3, 1e-6), accuracy=(0.85, 0.84), lower_gap_bound=(1e-3, 1e-1))
    traces = {"SBCGI": gained, "SBCGF": gained, "CG-BiO": gained, "DBGD": dbgd}
    assert {c.verdict for c in fairness.claims(traces, dict.fromkeys(fairness.TOLERANCES, fair))} == {HOLDS}
    lost = ending(p_rule=(0.4, 0.3), upper=(1e-3, 1e-2), accuracy=(0.85, 0.7), lower_gap_bound=(1e-3, 1.0))
    traces = {"SBCGI": gained, "SBCGF": lost, "CG-BiO": gained, "DBGD": dbgd}
    assert {c.verdict for c in fairness.claims(traces, dict.fromkeys(fairness.TOLERANCES, lost))} == {FAILS}


def test_a_classifier_is_learned_from_a_file_of_people(tmp_path):
    rng = np.random.default_rng(0)
    sensitive = rng.integers(2, size=3000)
    X = np.column_stack([rng.random((3000, 2)), 0.5 * sensitive + rng.random(3000)])
    y = np.where(2 * X[:, 0] + X[:, 2] + 0.3 * rng.standard_normal(3000) > 1.8, 1, -1)
    scipy.io.savemat(tmp_path / "people.mat", {"X": X, "y": y, "x_control": sensitive})
    source = chosen(f"adult:{tmp_path / 'people.mat'}", fairness.Fairness.sources)
    outcome = fairness.run(0, "cg-bio", 0.0, 4_000_000, source._asdict())
    plain = {name: at_first_point({0: outcome}, name)[0] for name in ("accuracy", "p_rule", "upper")}
    assert plain["accuracy"] > 0.85
    assert outcome.record["accuracy"] > 0.75
    assert 0.0 < plain["p_rule"] < outcome.record["p_rule"] <= 1.0
    assert outcome.record["upper"] < 0.5 * plain["upper"]


# Examples


def test_the_point_that_is_inside_meets_all_cones_and_the_reference_is_better():
    pytest.importorskip("cvxpy")
    problem, inside = examples.conic_problem(0)
    assert problem.lower.value(inside) == 0.0
    best, solver = examples.conic_reference(problem)
    assert solver == "Clarabel (optimal)"
    assert 0.0 < best < problem.upper.value(inside)


def test_a_new_task_is_learned_and_the_old_ones_are_remembered():
    record = examples.lifelong(0, "sbcgf", 2_000_000).record
    assert record["before_memory"] < 1e-12
    assert record["upper"] < 0.9 * record["before_new"]
    assert record["memory"] < 0.1 * record["forgetful_memory"]


def test_the_examples_are_judged_by_what_is_known():
    record = {"before_new": 1.0, "forgetful_memory": 1.0}
    lifelong = {s: o._replace(record=record) for s, o in ending(upper=(1.0, 0.5), memory=(0.0, 1e-3)).items()}
    found = {
        "norm": {"SBCGF": ending(distance=(1.0, 1e-3))},
        "lifelong": {"SBCGI": lifelong, "SBCGF": lifelong},
        "conic": {"SBCGF": ending(violation=(1.0, -0.1), excess=(1.0, 1e-3))},
    }
    assert {claim.verdict for claim in examples.claims(found)} == {HOLDS}
    forgets = {s: o._replace(record={"before_new": 0.1, "forgetful_memory": 0.01}) for s, o in lifelong.items()}
    found = {
        "norm": {"SBCGF": ending(distance=(1.0, 0.1))},
        "lifelong": {"SBCGI": lifelong, "SBCGF": forgets},
        "conic": {"SBCGF": ending(violation=(1.0, 0.1), excess=(1.0, np.nan))},
    }
    assert [claim.verdict for claim in examples.claims(found)] == [FAILS] * 4 + [OPEN]
