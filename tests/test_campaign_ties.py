"""The campaign of near ties, paths, surveys and streams of rows can fail, and what it takes for the truth is true."""

from __future__ import annotations

import importlib
import time
from fractions import Fraction

import numpy as np
import pytest

import tiebreak
from campaign import everything, near, ties
from campaign.exact import Exact
from campaign.near import plant_near
from campaign.oracles import CASES
from campaign.sets import SETS
from campaign.streams import Population
from campaign.surveys import Rows
from campaign.trials import Tally, round_of
from tiebreak.engine import interpreted
from tiebreak.proofs import Allowance, exact

CERTIFY, PATH = (importlib.import_module(name) for name in ("tiebreak.proofs.certify", "tiebreak.driver.path"))


@pytest.fixture(autouse=True)
def without_compiling():
    with interpreted():
        yield


def tried(name: str, rounds: int = 3) -> Tally:
    tally = Tally()
    for number in range(rounds):
        round_of(everything.KINDS[name], tally, seed=1, number=number)
    return tally


def findings(tally: Tally) -> str:
    return "\n".join(finding.what for _, finding in tally.findings)


@pytest.mark.parametrize("name", SETS)
def test_no_point_within_the_planted_tolerance_is_better_than_the_planted_one(name):
    rng, case = np.random.default_rng(1), next(case for case in CASES if case.name == name)
    compared = 0
    for _ in range(5):
        planted = plant_near(rng, name)
        problem = planted.make()
        level = planted.lower_least + planted.epsilon
        assert planted.lower.value(planted.x) == level > planted.lower_least
        assert Fraction(problem.tolerance) >= planted.epsilon >= Fraction(np.nextafter(problem.tolerance, 0.0))
        for point in (planted.x, *planted.others):
            assert problem.domain.contains(point)
            if name != "Polytope":
                assert case.violation(problem.domain, point) <= 1e-15 * np.abs(point).max()
        for _ in range(40):
            other = problem.domain.random_point(rng, problem.dimension)
            g = planted.lower.value(other)
            assert g >= planted.lower_least - Fraction(1e-12) * abs(planted.lower_least)
            if g > level:  # go towards a minimiser of g, until it is within
                share = float((level - planted.lower_least) / (g - planted.lower_least)) * (1.0 - 1e-9)
                other = planted.others[0] + share * (other - planted.others[0])
            if planted.lower.value(other) <= level:
                compared += 1
                f = planted.upper.value(other)
                assert f >= planted.upper_least - Fraction(1e-9) * (abs(f) + abs(planted.upper_least))
    assert compared > 20


def test_gradients_are_those_of_the_values():
    rng = np.random.default_rng(0)
    for _ in range(60):
        planted = plant_near(rng, "Box")
        x, step = planted.x, planted.units * 2.0**-40
        slope = [float(entry) for entry in near.slope_of(planted.lower, x, planted.units)]
        for total in [planted.lower] if planted.kinds[1] != "Logistic" else []:
            for j in range(x.size):
                ahead, behind = x.copy(), x.copy()
                ahead[j] += step[j]
                behind[j] -= step[j]
                ends = Exact.of(ahead - behind).fractions()[j]
                found = float((total.value(ahead) - total.value(behind)) / ends) * planted.units[j]
                assert found == pytest.approx(slope[j], rel=1e-6, abs=1e-6 * max(map(abs, slope)))


def test_a_minimum_that_is_too_high_is_counted_as_wrong(monkeypatch):
    assert tried("near ties: L1Ball").well
    true = exact.least_value
    monkeypatch.setattr(exact, "least_value", lambda *args: (1.0 - 1e-6) * true(*args))
    broken = tried("near ties: L1Ball")
    assert broken.wrong > 0
    assert "floors." in findings(broken)


def test_a_tolerance_that_is_left_out_of_a_proof_is_counted_as_wrong(monkeypatch):
    monkeypatch.setattr(tiebreak.Floors, "level", property(lambda floors: floors.best_lower))
    broken = tried("near ties: Box", rounds=6)
    assert "floors.upper" in findings(broken) or "half-space" in findings(broken)


def test_a_share_of_which_g_has_more_to_gain_is_counted_as_wrong(monkeypatch):
    monkeypatch.setattr(ties, "SHARES", 1.0)
    assert tried("near ties: Simplex").well
    true = Allowance.least
    monkeypatch.setattr(Allowance, "least", lambda self, lower: 1.001 * true(self, lower))
    assert "tolerance" in findings(tried("near ties: Simplex"))
    monkeypatch.setattr(Allowance, "least", true)
    monkeypatch.setattr(Allowance, "level", lambda self, best_lower: best_lower + 0.999 * true(self, best_lower))
    assert "level" in findings(tried("near ties: Simplex"))


def test_a_ceiling_that_is_too_low_is_counted_as_wrong(monkeypatch):
    def lower(problem, certificate):
        return certificate._replace(ceiling=certificate.floors.upper - abs(certificate.floors.upper) - 1e-300)

    monkeypatch.setattr(CERTIFY, "with_ceiling", lower)
    assert "ceiling" in findings(tried("near ties: Simplex"))
    assert "ceiling" in findings(tried("proofs: Simplex"))


def test_that_a_point_is_within_its_tolerance_is_counted_as_wrong_if_it_is_not(monkeypatch):
    monkeypatch.setattr(exact, "is_within", lambda *args: True)
    assert "within is True" in findings(tried("near ties: Simplex"))
    monkeypatch.setattr(exact, "is_within", lambda *args: False)
    assert "within is False" in findings(tried("near ties: Simplex"))


def test_a_floor_of_a_path_that_is_too_high_is_counted_as_wrong(monkeypatch):
    assert tried("paths: Simplex", rounds=6).well
    true = PATH.least_on_line
    monkeypatch.setattr(PATH, "least_on_line", lambda *args: true(*args) + 1e-6 * abs(true(*args)))
    broken = tried("paths: Simplex", rounds=12)
    assert "floor of f + λ g" in findings(broken) or "path.floor" in findings(broken)


def test_a_path_that_does_not_end_is_counted_as_lost(monkeypatch):
    monkeypatch.setattr(ties, "SECONDS", 1)
    monkeypatch.setattr(tiebreak, "path", lambda *args: time.sleep(30))
    broken = tried("paths: Simplex", rounds=1)
    assert broken.lost == 1
    assert "it has not ended after 1 seconds" in findings(broken)


def test_near_ties_are_tried_with_each_method_that_takes_them():
    assert "active-set" in ties.METHODS
    for method in ties.METHODS:
        assert tried(f"runs of near ties: {method}", rounds=2).well


@pytest.mark.parametrize("form", ["SummedSquares", "weighted sums", "LeastSquares"])
def test_a_survey_that_forgets_rounding_is_counted_as_wrong(form, monkeypatch):
    assert tried(f"surveys: {form}", rounds=1).well
    kind = type(Rows(np.random.default_rng(0), form).make())
    survey = kind.survey

    def careless(self, x, off=None):
        found = survey(self, x, off)
        return found._replace(value_error=1e-6 * found.value_error, gradient_error=1e-6 * found.gradient_error)

    monkeypatch.setattr(kind, "survey", careless)
    assert tried(f"surveys: {form}", rounds=1).wrong > 0


def test_the_expectation_of_a_stream_of_rows_is_least_where_it_is_said_to_be():
    rng = np.random.default_rng(0)
    for seed in range(20):
        population = Population(seed)
        assert np.abs(population.best).sum() <= 1.0
        assert not population.lower.value_and_gradient(population.best)[1].any()
        slope = population.upper.value_and_gradient(population.best)[1]
        flat = np.linalg.lstsq(population.A.T, slope, rcond=None)[0]
        np.testing.assert_allclose(population.A.T @ flat, slope, atol=1e-12)
        problem = population.problem()
        x = problem.domain.random_point(rng, problem.dimension)
        certificate = tiebreak.certify(problem, x, samples=400, seed=seed)
        assert not certificate.approximate
        assert not population.missed(certificate._replace(lower_gap_bound=1e3, upper_gap_bound=1e3, lower_error=1e3))
        assert population.missed(certificate._replace(upper_gap_bound=-1e3))
        assert population.missed(certificate._replace(lower_gap_bound=-1e-3))
