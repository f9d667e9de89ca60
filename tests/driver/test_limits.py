"""What ends a run: queries, iterations, time and tolerances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import QUICK

import tiebreak
from tiebreak import SBCGF, SBCGI, FiniteSum, L1Ball, L2Ball, LeastSquares, Problem, SquaredNorm, Status, minimize
from tiebreak.driver import limits
from tiebreak.driver.limits import limits_of
from tiebreak.engine import interpreted
from tiebreak.proofs.prover import ExactProver


def test_each_budget_ends_the_run(problem):
    assert minimize(problem, QUICK, max_iterations=7).iterations == 7
    assert minimize(problem, QUICK, max_iterations=7).status is Status.ITERATIONS
    only = minimize(problem, QUICK, max_iterations=2000, max_queries=None)
    seeking = only.history.phase == 0
    assert only.history.queries[seeking][-1] == pytest.approx(only.queries.total / 10, rel=0.1)
    timed = minimize(problem, QUICK, time_limit=2.0)
    assert timed.status is Status.TIME
    assert timed.iterations > 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_queries": 3000}, "max_queries=3,000 samples were drawn"),
        ({"max_iterations": 1200}, "max_iterations=1,200 were made"),
        ({"tol": (10.0, 20.0)}, "within tol=(10, 20)"),
    ],
)
def test_the_message_names_the_limit_that_was_given(problem, given, words):
    result = minimize(problem, QUICK, **given)
    assert words in result.message
    assert words in str(result)


def test_the_message_says_that_the_default_budget_is_spent(problem, monkeypatch):
    monkeypatch.setattr(limits, "DEFAULT_QUERIES", 2000)
    monkeypatch.setattr(limits, "DEFAULT_PASSES", 1)
    result = minimize(problem, QUICK)
    assert result.message == "budget spent: 2,000 samples were drawn, the default; `max_queries` can be larger"


def test_every_limit_has_a_sentence_of_its_own():
    given = limits_of(max_queries=5, max_iterations=6, time_limit=7.5, tol=(0.1, 0.2))
    sentences = [given.sentence(status) for status in Status]
    assert not any("`tol`" in each or "`max" in each or "`time" in each for each in sentences)
    assert given.sentence(Status.SOLVED) == Status.SOLVED.value


def test_a_tolerance_ends_the_run_when_it_is_proven(problem):
    result = minimize(problem, SBCGF(step=1e-4, slack=1e-9), tol=(0.1, 0.01), max_queries=10_000_000)
    assert result.status is Status.CERTIFIED
    assert result.queries.total < 10_000_000
    assert result.upper_gap_bound <= 0.1
    assert result.lower_gap_bound <= 0.01


def test_limits_may_be_beyond_all_measure(problem):
    assert minimize(problem, QUICK, max_queries=10**30, max_iterations=50).iterations == 50
    many = minimize(problem, QUICK, max_iterations=10**15, time_limit=0.5)
    assert many.status is Status.TIME


def test_a_million_queries_are_the_limit_only_if_no_other_end_is_given():
    assert limits_of().queries == 1_000_000
    large = Problem(SquaredNorm(), LeastSquares(np.ones((50_000, 1)), np.ones(50_000)), L1Ball(1.0))
    assert limits_of(problem=large).queries == 30 * 50_001
    assert limits_of(max_queries=10, problem=large).queries == 10
    assert limits_of(max_queries=10).queries == 10
    for given in ({"max_iterations": 5}, {"time_limit": 5.0}, {"tol": (1.0, 1.0)}):
        assert limits_of(**given).queries == math.inf
        assert limits_of(**given, max_queries=10).queries == 10


class Hours:
    """A clock of which every look takes some time."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def perf_counter(self):
        self.now += self.tick
        return self.now


def test_a_time_limit_is_wall_time_and_leaves_out_bounds_that_there_is_no_time_for(problem, monkeypatch):
    minimize(problem, QUICK, max_queries=2000)  # nothing is left to compile
    monkeypatch.setattr(limits, "time", hours := Hours(0.01))
    proofs = []
    monkeypatch.setattr(ExactProver, "improved", lambda self, certificate: proofs.append(certificate) or certificate)
    short = minimize(problem, QUICK, time_limit=2.0)
    assert short.status is Status.TIME
    assert short.iterations > 0
    assert not proofs  # 120 looks at an oracle that takes 0.01 s
    assert 1.7 <= short.wall_seconds <= 2.2
    assert hours.now <= 2.3
    monkeypatch.setattr(limits, "time", Hours(0.01))
    long = minimize(problem, QUICK, time_limit=20.0)
    assert len(proofs) == 1
    assert 17.5 <= long.wall_seconds <= 20.5  # the mock takes no time, which was kept for it


@pytest.mark.parametrize(
    ("domain", "tick", "chosen"),
    [
        (L2Ball(1.0), 30.0, "sbcgf"),
        (L2Ball(1.0), 1.0, "pb-apg"),
        (L1Ball(1.0), 30.0, "sbcgf"),
        (L1Ball(1.0), 10.0, "pb-apg"),
        (L1Ball(1.0), 0.1, "active-set"),
    ],
)
def test_the_choice_of_a_method_goes_by_the_passes_that_a_time_limit_allows(domain, tick, chosen, monkeypatch):
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((40, 50)), rng.standard_normal(40)) for _ in range(2))
    monkeypatch.setattr(limits, "time", Hours(tick))
    with interpreted():
        result = minimize(Problem(upper, lower, domain), time_limit=50.0, max_iterations=2000)
    assert result.method.name == chosen


def test_a_run_without_time_for_a_step_says_so(problem, monkeypatch):
    minimize(problem, QUICK, max_queries=2000)  # nothing is left to compile
    monkeypatch.setattr(limits, "time", Hours(1.0))
    result = minimize(problem, QUICK, time_limit=0.5)
    assert result.iterations == 0
    assert result.message == (
        "budget spent: time_limit=0.5 s has passed before a step of the method could be made; x is the point to begin with"
    )
    assert len(result.history) == 1
    assert result.lower_gap_bound >= 0.0


def test_no_clock_decides_anything_without_a_time_limit(problem, monkeypatch):
    plain = minimize(problem, "pb-apg", max_queries=20_000)
    monkeypatch.setattr(limits, "time", Hours(1.0))
    slow = minimize(problem, "pb-apg", max_queries=20_000)
    assert slow.x.tobytes() == plain.x.tobytes()
    assert slow.evaluations == plain.evaluations
    for name in ("iteration", "upper", "lower", "upper_gap_bound", "lower_gap_bound"):
        assert getattr(slow.history, name).tobytes() == getattr(plain.history, name).tobytes()


def test_both_clocks_are_shown_and_the_wall_has_all(problem):
    result = minimize(problem, QUICK, max_queries=3000)
    assert result.wall_seconds > result.seconds > 0.0
    assert f"{result.seconds:.3g} of the method, {result.wall_seconds:.3g} in all" in str(result)


def test_time_spent_compiling_is_not_counted(callable_problem):
    result = minimize(callable_problem, QUICK, time_limit=1.0, x0=np.zeros(18))
    assert result.iterations > 20


def test_a_million_may_be_written_as_a_float(problem):
    assert minimize(problem, QUICK, max_queries=1e3).queries.total <= 1000


@pytest.mark.parametrize(
    ("method", "least"), [("auto", 750), ("sbcgf", 750), (SBCGI(preset="paper"), 336), ("bi-fista", 600)]
)
def test_a_budget_below_one_iteration_is_an_error(method, least):
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((300, 5)), rng.standard_normal(300)) for _ in range(2))
    problem = Problem(upper, lower, L1Ball(1.0))
    with interpreted():
        with pytest.raises(ValueError, match=f"^`max_queries` must be at least {least} for one iteration of '"):
            minimize(problem, method, max_queries=least - 1)
        assert minimize(problem, method, max_queries=least).iterations >= 1


def test_bounds_that_only_the_last_record_proves_are_certified():
    rng = np.random.default_rng(0)
    upper, lower = (LeastSquares(rng.standard_normal((12, 20)), rng.standard_normal(12)) for _ in range(2))
    problem = Problem(upper, lower, L1Ball(2.0))
    reached = minimize(problem, "bi-fista", max_iterations=100)
    tol = 1.0001 * reached.upper_gap_bound, 1.0001 * reached.lower_gap_bound
    result = minimize(problem, "bi-fista", max_iterations=100, tol=tol)
    assert result.iterations == 100
    assert result.upper_gap_bound <= tol[0]
    assert result.lower_gap_bound <= tol[1]
    assert result.status is Status.CERTIFIED


def test_a_time_limit_holds_where_nothing_is_proven_of_g():
    waves = FiniteSum(1, 2, lambda x, i: (float(np.cos(x.sum())), -np.sin(x.sum()) * np.ones(2)), lipschitz=2.0)
    with interpreted():
        result = minimize(Problem(tiebreak.SquaredNorm(), waves, L1Ball(2.0)), QUICK, time_limit=0.3)
    assert result.status is Status.TIME
    assert result.iterations > 0
