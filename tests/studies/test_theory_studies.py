"""Rates and coverage: the problem of which everything is known, slopes, and what cuts keep."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiebreak.studies import coverage, rates
from tiebreak.studies.claims import Verdict
from tiebreak.studies.known import RADIUS, known, polygon
from tiebreak.studies.rates import SETTINGS, in_bounds, no_slower, power_of, slopes, to_reach
from tiebreak.studies.study import Outcome

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


# The problem


@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_whole_polygon_minimises_g_and_touches_the_ball(seed, convex):
    case = known(seed, convex)
    inside = np.random.default_rng(0).dirichlet(np.ones(len(case.vertices)), 20) @ case.vertices
    for x in (*case.vertices, *inside):
        assert abs(case.lower_gap(x)) < 1e-12
        np.testing.assert_allclose(case.problem.lower.value_and_gradient(x)[1], 0.0, atol=1e-10)
    np.testing.assert_allclose(np.abs(case.vertices).sum(axis=1), RADIUS)
    assert case.problem.domain.contains(case.x0)


@pytest.mark.parametrize("seed", range(4))
def test_f_star_is_the_least_value_on_the_polygon(seed):
    case = known(seed)
    rng = np.random.default_rng(1)
    corners = [case.vertices[np.sort(rng.choice(len(case.vertices), 3, replace=False))] for _ in range(300)]
    gaps = [case.upper_gap(w @ c) for c in corners for w in rng.dirichlet(np.full(3, 0.5), 20)]
    gaps += [case.upper_gap((1 - w) * a + w * b) for a, b in zip(case.vertices, np.roll(case.vertices, -1, axis=0))
             for w in np.linspace(0.0, 1.0, 200)]  # fmt: skip
    assert min(gaps) >= -1e-12
    assert min(gaps) < 0.02 * max(gaps)


def test_a_polygon_has_the_corners_of_a_section():
    corners = polygon(np.array([0.0, 0.0, 0.5]), np.eye(3)[:2], 1.0)
    expected = {(0.5, 0.0, 0.5), (-0.5, 0.0, 0.5), (0.0, 0.5, 0.5), (0.0, -0.5, 0.5)}
    assert {tuple(np.round(corner, 9) + 0.0) for corner in corners} == expected


# Rates


def falling(exponent: float, upper: float = -1.0, seeds: int = 10):
    """Runs whose lower gap falls like a power of T, and whose upper gap does so with a sign."""
    horizons, noise = np.array([1e3, 1e4, 1e5]), np.random.default_rng(0)
    made = {}
    for seed in range(seeds):
        gap = horizons**exponent * np.exp(0.05 * noise.standard_normal(3))
        arrays = {"horizon": horizons, "lower_gap": gap, "upper_gap": upper * gap}
        made[seed] = Outcome(arrays, {"last_slack": 5.0, "largest_lower_gap": 1.0, "first_upper_gap": 1.2 * gap[0]})
        made[seed].record["last_upper_gap"] = upper * gap[-1]
    return made


def test_slopes_are_those_of_powers():
    assert np.mean(list(slopes(falling(-0.5), "lower_gap").values())) == pytest.approx(-0.5, abs=0.02)
    assert np.mean(list(slopes(falling(-0.5), "upper_gap").values())) == pytest.approx(-0.5, abs=0.02)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([-0.5] * 10, HOLDS), ([-0.2] * 10, FAILS), ([-0.5] * 4, OPEN), ([-0.9, 0.1] * 5, OPEN), ([-1.0] * 10, HOLDS)],
)
def test_confidence_intervals_decide_on_a_slope(values, verdict):
    assert no_slower(dict(enumerate(values)), -0.45).verdict is verdict


def test_an_upper_gap_may_be_as_negative_as_it_likes_but_not_fall_too_slowly():
    (setting,) = (s for s in SETTINGS if s.label == "SBCGF, f convex")
    assert max(in_bounds(setting, falling(-0.2)).values()) < 0.0
    assert max(in_bounds(setting, falling(-1.5, upper=1.0)).values()) < 1.0
    assert max(in_bounds(setting, falling(-1.5, upper=1.0)).values()) > 0.8
    assert min(in_bounds(setting, falling(-0.2, upper=1.0)).values()) > 1.0


def race(power: float, offset: float = 0.0):
    queries = np.geomspace(1e2, 1e6, 200)
    gap = np.minimum(1.1 * (queries / 100.0) ** (-1.0 / power), 1.0) + offset
    return {seed: Outcome({"queries": queries, "lower_gap": gap, "upper_gap": gap}, {}) for seed in range(10)}


def test_samples_to_reach_an_accuracy_are_counted_from_where_it_stays():
    arrays = {"queries": np.arange(5.0), "upper_gap": np.array([1.0, 0.1, 0.3, 0.1, 0.1]), "lower_gap": np.zeros(5)}
    assert to_reach(Outcome(arrays, {}), 0.2) == 3.0
    assert to_reach(Outcome(arrays, {}), 0.05) == math.inf
    assert power_of(race(2.0)[0]) == pytest.approx(2.0, abs=0.3)
    assert power_of(race(2.0, offset=0.9)[0]) == math.inf


def test_the_papers_rates_are_recognised_and_others_are_not():
    ours = {s.label: falling(s.rate) for s in SETTINGS}
    racing = {"SBCGI": race(2.0), "aR-IP-SeG": race(4.0)}
    found = [claim.verdict for claim in rates.claims(ours, ours, racing)]
    assert found == [HOLDS] * 8 + [FAILS] + [HOLDS] * 3  # all but a slack of 5 where g is at most 1
    slow = {s.label: falling(s.rate / 2, upper=1.0) for s in SETTINGS}
    racing = {"SBCGI": race(4.0), "aR-IP-SeG": race(2.0)}
    assert {claim.verdict for claim in rates.claims(slow, slow, racing)} == {FAILS}


@pytest.mark.parametrize(
    ("sbcgi", "others", "expected"),
    [
        (0.0, 0.9, [HOLDS, HOLDS]),  # aR-IP-SeG never gets there
        (0.9, 0.0, [OPEN, FAILS]),
        (0.9, 0.9, [OPEN, OPEN]),
    ],
)
def test_runs_that_reach_too_little_are_not_left_out(sbcgi, others, expected):
    ours = {s.label: falling(s.rate) for s in SETTINGS}
    racing = {"SBCGI": race(2.0, offset=sbcgi), "aR-IP-SeG": race(2.0, offset=others)}
    found = [claim.verdict for claim in rates.claims(ours, ours, racing)]
    assert found[-2:] == expected
    racing["SBCGI"] = {**race(2.0), 3: race(2.0, offset=0.9)[3]}  # one seed is enough
    assert rates.claims(ours, ours, racing)[-2].verdict is OPEN


def test_a_share_of_the_slack_is_what_the_lower_gap_follows():
    outcome = rates.run(0, "sbcgf", convex=True, share=rates.SHARE, horizons=[250, 4000], repeats=1)
    assert outcome.arrays["slack"][1] < 0.2 * outcome.arrays["slack"][0]
    assert outcome.arrays["lower_gap"][1] < 0.3 * outcome.arrays["lower_gap"][0]
    assert outcome.record["largest_lower_gap"] > 10.0 * outcome.arrays["slack"][0]


# Coverage


@pytest.fixture(scope="module")
def looked():
    sizes = {"iterations": 60, "repeats": 4}
    return {(m, s): {1: coverage.run(1, m, s, **sizes)} for m in ("sbcgi", "sbcgf") for s in coverage.SLACKS}


@pytest.mark.parametrize("method", ["sbcgi", "sbcgf"])
def test_a_cut_without_slack_loses_minimisers_that_others_keep(looked, method):
    kept = {slack: looked[method, slack][1].record["kept"] for slack in coverage.SLACKS}
    assert kept["theory"] == 1.0
    assert kept["none"] < kept["auto"]
    assert kept["none"] < kept["share"]
    assert looked[method, "none"][1].record["kept_always"] < 1.0


@pytest.mark.parametrize("method", ["sbcgi", "sbcgf"])
def test_errors_are_within_their_bounds_and_not_all_zero(looked, method):
    record = looked[method, "theory"][1].record
    for name in coverage.ERRORS:
        assert 0.0 < record[f"{name}_ratio"] < 1.0
        assert record[f"{name}_within"] == 1.0
    first = looked[method, "theory"][1].arrays["lower_gradient"][0]
    assert (first < 1e-12) == (method == "sbcgf")  # SPIDER begins with all samples, STORM with one


def test_coverage_is_judged_by_all_iterations():
    def outcomes(kept, within=1.0, ratio=0.01):
        record = {"kept_always": kept, "kept": kept}
        record |= {
            f"{name}_{entry}": value for name in coverage.ERRORS for entry, value in (("within", within), ("ratio", ratio))
        }
        return {seed: Outcome({}, record) for seed in range(10)}

    good = {"theory": outcomes(1.0), "share": outcomes(0.95), "auto": outcomes(0.92), "none": outcomes(0.1)}
    found = coverage.claims({(m, s): good[s] for m in ("sbcgi", "sbcgf") for s in coverage.SLACKS})
    assert [claim.verdict for claim in found] == [HOLDS] * 5 + [FAILS]
    bad = {
        "theory": outcomes(0.5, within=0.5, ratio=0.5),
        "share": outcomes(0.2),
        "auto": outcomes(0.2),
        "none": outcomes(0.3),
    }
    found = coverage.claims({(m, s): bad[s] for m in ("sbcgi", "sbcgf") for s in coverage.SLACKS})
    assert [claim.verdict for claim in found] == [FAILS] * 5 + [HOLDS]


def test_the_share_that_was_chosen_by_these_runs_is_told_and_not_judged():
    record = {"kept_always": 0.925, "kept": 0.99} | {f"{name}_ratio": 0.1 for name in coverage.ERRORS}
    record |= {f"{name}_within": 1.0 for name in coverage.ERRORS}
    found = {(m, s): {0: Outcome({}, record)} for m in ("sbcgi", "sbcgf") for s in coverage.SLACKS}
    assert not [claim.text for claim in coverage.claims(found) if "1/3000" in claim.text]
    assert ["SBCGI, 1/3000 of it", "92.5%", "92%", "99.00%"] in coverage.kept_table(found).rows
    assert coverage.share_kept(found) == "92.5% of the runs of SBCGI keep all, 92.5% of the runs of SBCGF keep all"
    assert coverage.share_kept({key: {} for key in found}) == "no runs"
