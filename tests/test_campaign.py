"""The campaign can fail: what is broken on purpose is counted as wrong, and what it takes for the truth is true."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tiebreak
from campaign import everything, faults, killing, oracles, proofs, trials, users
from campaign.__main__ import main
from campaign.exact import Exact, dot, log_loss
from campaign.oracles import CASES
from campaign.planted import plant
from campaign.recipes import text
from campaign.sets import SETS
from campaign.trials import Tally, round_of
from tiebreak.engine import interpreted
from tiebreak.engine.digest import digest
from tiebreak.proofs import exact


@pytest.fixture(autouse=True)
def without_compiling():
    with interpreted():
        yield


def tried(name: str, number: int = 0) -> Tally:
    tally = Tally()
    round_of(everything.KINDS[name], tally, seed=1, number=number)
    return tally


def test_a_minimum_that_is_too_high_by_a_millionth_is_counted_as_wrong(monkeypatch):
    assert tried("proofs: L1Ball").well
    true = exact.least_value
    monkeypatch.setattr(exact, "least_value", lambda *args: (1.0 - 1e-6) * true(*args))
    broken = tried("proofs: L1Ball")
    assert broken.wrong > 0
    assert "floors." in broken.findings[0][1].what


def test_a_point_that_is_not_moved_into_the_set_is_counted_as_wrong(monkeypatch):
    def trusting(domain, x, off):
        off.fill(0.0)
        return True

    monkeypatch.setattr(exact, "settle", trusting)
    assert sum(tried("proofs: Box", number).wrong for number in range(4)) > 0


def test_a_cut_that_gives_a_worse_point_is_counted_as_wrong(monkeypatch):
    cut = tiebreak.L1Ball.cut_lmo
    monkeypatch.setattr(tiebreak.L1Ball, "cut_lmo", lambda self, c, a, b: cut(self, c + 0.1 * np.abs(c).max(), a, b))
    assert tried("cuts: L1Ball").wrong > 0


def test_an_exception_from_inside_is_counted_as_lost(monkeypatch):
    def failing(*args, **kwargs):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(tiebreak, "certify", failing)
    tally = tried("proofs: Simplex")
    assert tally.lost == tally.tried > 0
    assert "ZeroDivisionError: inside" in tally.findings[0][1].what


def test_a_fault_that_passes_in_silence_is_counted_as_wrong(monkeypatch):
    assert tried("faults: cg-bio").well
    monkeypatch.setitem(faults.FAULTS, "no fault", lambda value, gradient: (value, gradient))
    tally = Tally()
    faults.one_fault(trials.Round(np.random.default_rng(0), tally, 0), "cg-bio", "lower", "no fault", 2, False)
    assert tally.wrong == 1


def test_the_exit_code_tells_whether_all_is_well_and_a_finding_says_how_to_repeat_it(monkeypatch, capsys):
    arguments = ["--only", "g of unknown convexity", "--seed", "1", "--round", "0"]
    assert main(arguments) == 0
    monkeypatch.setattr(users, "true_wells", lambda x: Fraction(10))
    assert main(arguments) == 1
    printed = capsys.readouterr().out
    assert "WRONG: lower_gap_bound" in printed
    assert "again: python -m campaign --seed 1 --only 'g of unknown convexity' --round 0" in printed


def test_a_kind_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "nonsense"])
    assert "--only must be the beginning of a kind's name, got 'nonsense'; --list shows them" in capsys.readouterr().err


def test_every_set_and_every_method_is_tried():
    assert set(SETS) == {case.name for case in CASES}
    for name in SETS:
        assert {f"{kind}: {name}" for kind in ("proofs", "minima", "settling", "cuts", "cuts against solvers")} <= set(
            everything.KINDS
        )
    for method in (name for name, cls in tiebreak.METHODS.items() if cls.finite):
        assert {f"runs: {method}", f"faults: {method}"} <= set(everything.KINDS)


@pytest.mark.parametrize("case", [case for case in CASES if case.name != "Polytope"], ids=lambda case: case.name)
def test_what_is_called_normal_is_normal_by_the_support_function(case):
    rng = np.random.default_rng(0)
    for _ in range(40):
        place = SETS[case.name](rng, int(rng.integers(1, 9)))
        domain = place.domain(np.ones(place.x.size)).make()
        assert case.violation(domain, place.x) <= 1e-15
        normal = place.normal(rng)
        assert -case.minimum(domain, -normal) <= normal @ place.x + 1e-13 * np.abs(normal).sum() * (
            1 + np.abs(place.x).max()
        )


@pytest.mark.parametrize("name", SETS)
def test_a_planted_problem_is_the_one_that_is_written_down_and_its_solution_is_one(name):
    rng = np.random.default_rng(1)
    for _ in range(4):
        planted = plant(rng, name)
        problem = planted.make()
        for level, total in ((problem.upper, planted.upper), (problem.lower, planted.lower)):
            for x in (planted.x, problem.center):
                assert level.value(x) == pytest.approx(float(total.value(x)), rel=1e-9, abs=1e-300)
        assert problem.domain.contains(planted.x)
        written: dict = {}
        exec(f"{planted}\nx = {text(planted.x)}", written)
        assert written["x"].tobytes() == planted.x.tobytes()
        if problem.compiled:
            assert digest(written["problem"]) == digest(problem)
        # no point of the set that fits as well is better for f
        lower = planted.lower_least
        for _ in range(20):
            other = problem.domain.random_point(rng, problem.dimension)
            assert planted.lower.value(other) >= lower - Fraction(1e-12) * abs(lower)


def test_exact_arithmetic_is_exact():
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(6) * 10.0 ** rng.integers(-300, 300, 6) for _ in range(2))
    x[0], y[1] = 0.0, 5e-324
    assert Exact.of(x).fractions() == [Fraction(number) for number in x]
    products = [Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True)]
    assert dot(x, y) == sum(products)
    assert float(log_loss(Fraction(-3))) == pytest.approx(math.log1p(math.exp(3.0)), rel=1e-15)
    assert float(log_loss(Fraction(100))) == pytest.approx(math.exp(-100.0), rel=1e-15)
    assert proofs.below(1.0, Fraction(1.0) + Fraction(1, 10**40), Fraction(1))
    assert not proofs.below(math.nan, Fraction(1), Fraction(1))
    assert not proofs.below(math.inf, Fraction(1), Fraction(1))


def test_two_results_differ_if_one_bit_does(tmp_path):
    first, second, third = (tmp_path / f"{k}.npz" for k in range(3))
    np.savez(first, x=np.zeros(3), numbers=np.ones(4))
    np.savez(second, x=np.zeros(3), numbers=np.ones(4))
    np.savez(third, x=np.array([0.0, 5e-324, 0.0]), numbers=np.ones(4))
    assert killing.same(first, second) == ""
    assert killing.same(first, third) == "x"


def test_what_underflow_may_change_is_small():
    rng = np.random.default_rng(0)
    found = next(oracles.spots(trials.Round(rng, Tally(), 0), "L1Ball"))
    assert 0 < oracles.underflow(found) < 1e-200
