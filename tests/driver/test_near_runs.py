"""Runs of near ties that are said as a share: as with the tolerance that it stands for, resumed, saved, on streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import make_objective

from tiebreak import (
    FISTA,
    METHODS,
    CheckpointError,
    FiniteSum,
    L1Ball,
    L2Ball,
    LeastSquares,
    Problem,
    Result,
    SquaredNorm,
    Status,
    Stream,
    certify,
    minimize,
)
from tiebreak.driver.timetable import Timetable
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import keys_of
from tiebreak.schedules import evaluated

OTHERS = {"bisec-bio"}  # for a squared distance above
NEAR = [name for name, method in METHODS.items() if method.near_ties and method.finite and name not in OTHERS]
STEPPING = [name for name in NEAR if name not in ("auto", "active-set")]  # with a loop that is compiled
FIRST_ORDER = [name for name in STEPPING if name != "sbcgi-m"]  # without slack, its cuts depend on the last digit
rng = np.random.default_rng(2)
UPPER, LOWER = (LeastSquares(rng.standard_normal((n, 5)), rng.standard_normal(n)) for n in (7, 4))
PROBLEM = Problem(UPPER, LOWER, L1Ball(0.8))
LEAST = minimize(PROBLEM, "active-set").certificate.floors.lower  # g*, to twelve digits
GAIN = LOWER.value(np.zeros(5)) - LEAST


# One tolerance, said in two ways


@pytest.mark.parametrize("name", ["auto", "active-set", *FIRST_ORDER])
def test_a_share_is_the_tolerance_that_it_stands_for(name):
    with interpreted():
        share, number = (
            minimize(PROBLEM._replace(**allowed), name, max_queries=3000)
            for allowed in ({"keep": 0.9}, {"tolerance": 0.1 * GAIN})
        )
    assert share.within is number.within is True
    assert share.tolerance == pytest.approx(number.tolerance, rel=1e-4)
    assert share.upper == pytest.approx(number.upper, rel=1e-2)
    assert share.lower == pytest.approx(number.lower, rel=1e-2)
    assert share.lower <= LEAST + 0.1 * GAIN * (1.0 + 1e-9)
    assert "within the tolerance" in str(share)


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ({"keep": 1.1}, "^`keep` must be a share from 0 to 1, such as 0.99, got 1.1$"),
        ({"keep": -1e-9}, "^`keep` must be a share from 0 to 1, .* got -1e-09$"),
        ({"keep": math.nan}, "^`keep` must be a share from 0 to 1, .* got nan$"),
        ({"keep": "most"}, "^`keep` must be a share from 0 to 1, .* got 'most'$"),
        ({"keep": None}, "^`keep` must be a share from 0 to 1, .* got None$"),
        ({"keep": True}, "^`keep` must be a share from 0 to 1, .* got True$"),
        ({"tolerance": -0.1}, "^`tolerance` must be a finite number ≥ 0, got -0.1$"),
        ({"tolerance": math.nan}, "^`tolerance` must be a finite number ≥ 0, got nan$"),
        ({"tolerance": math.inf}, "^`tolerance` must be a finite number ≥ 0, got inf$"),
        ({"tolerance": 0.1, "keep": 0.9}, "say the same in two ways, and both were given, 0.1 and 0.9: leave one out$"),
    ],
)
def test_what_is_no_allowance_is_named(allowed, message):
    with pytest.raises(ValueError, match=message):
        Problem(UPPER, LOWER, L1Ball(0.8), **allowed)
    with pytest.raises(ValueError, match=message):  # where a field was replaced, nothing was checked
        minimize(PROBLEM._replace(**allowed))


def test_neither_of_them_leaves_an_exact_tie():
    for allowed in ({"keep": 1.0}, {"keep": 1}, {"tolerance": 0.0}, {"tolerance": 0.0, "keep": np.float64(1.0)}):
        problem = Problem(UPPER, LOWER, L1Ball(0.8), **allowed)
        assert not problem.is_near
        assert problem.allowed == ""
        assert problem == PROBLEM
    near = Problem(UPPER, LOWER, L1Ball(0.8), keep=0.99)
    assert (near.is_near, near.allowed, near.exact) == (True, "keep=0.99", PROBLEM)
    assert str(near).endswith("keep    0.99")
    assert near._replace(keep=1.0, tolerance=0.25).allowed == "tolerance=0.25"


def test_a_tolerance_beyond_what_g_varies_by_is_no_error_and_the_result_says_so():
    upper = SquaredNorm(np.full(5, 3.0))  # least at a point of the boundary
    with interpreted():
        for method in ("auto", "pb-apg"):
            result = minimize(Problem(upper, LOWER, L1Ball(0.8), tolerance=1e3), method, max_queries=20_000)
            assert result.upper == pytest.approx(upper.value(np.full(5, 0.16)), rel=1e-6)
            assert "within the tolerance 1000: proven; it does not bind" in str(result)


# Interrupted, resumed, read


@pytest.mark.parametrize("name", NEAR)
def test_a_run_that_was_interrupted_ends_with_the_same_bits(name, tmp_path):
    problem, arguments = PROBLEM._replace(keep=0.95), {"max_queries": 1500, "checkpoint": tmp_path / "run.npz"}
    with interpreted():
        whole = minimize(problem, name, max_queries=1500)
        for _ in range(3):
            seen = []

            def press_ctrl_c(snapshot, seen=seen):
                seen.append(snapshot)
                if len(seen) == 4:
                    raise KeyboardInterrupt

            stopped = minimize(problem, name, callback=press_ctrl_c, **arguments)
        again = minimize(problem, name, **arguments)
    assert stopped.status in (Status.INTERRUPTED, whole.status)
    assert again.x.tobytes() == whole.x.tobytes()
    assert again.certificate.floors == whole.certificate.floors
    assert (again.status, again.within) == (whole.status, whole.within)
    for column in ("upper", "lower", "upper_gap_bound", "lower_gap_bound", "upper_queries"):
        np.testing.assert_array_equal(getattr(again.history, column), getattr(whole.history, column))


def test_a_checkpoint_of_another_share_is_refused(tmp_path):
    arguments = {"max_queries": 1000, "checkpoint": tmp_path / "run.npz"}
    with interpreted():
        minimize(PROBLEM._replace(keep=0.9), "cg-bio", **arguments)
        with pytest.raises(CheckpointError, match="its `keep` is 0.9, this one's is 0.8"):
            minimize(PROBLEM._replace(keep=0.8), "cg-bio", **arguments)
        with pytest.raises(CheckpointError, match=r"its `tolerance` is 0.0, this one's is 0.1"):
            minimize(PROBLEM._replace(tolerance=0.1), "cg-bio", **arguments)


def test_a_saved_result_keeps_its_share_and_what_it_proves_for_others(tmp_path):
    problem, path = PROBLEM._replace(keep=0.9), tmp_path / "result.npz"
    with interpreted():
        result = minimize(problem, "active-set")
        result.save(path)
        loaded = Result.load(path, problem)
        assert loaded.certificate.floors == result.certificate.floors
        assert (loaded.within, loaded.tolerance, str(loaded)) == (True, result.tolerance, str(result))
        for other in (PROBLEM, PROBLEM._replace(keep=0.8), PROBLEM._replace(tolerance=0.1 * GAIN)):
            with pytest.raises(ValueError, match="`problem` must be the one of the result"):
                Result.load(path, other)
        floors = result.certificate.floors
        tighter, looser = (certify(PROBLEM._replace(keep=keep), loaded) for keep in (0.95, 0.85))
        smaller, larger = (certify(PROBLEM._replace(tolerance=share * GAIN), loaded) for share in (0.09, 0.11))
        for kept in (tighter, smaller):
            assert kept.floors.upper >= floors.upper
            assert kept.within is False
        for lost in (looser, larger):
            assert lost.floors.upper < floors.upper
            assert lost.within is True
        for found in (tighter, looser, smaller, larger):
            assert found.floors.lower >= floors.lower
            assert found.floors.best_lower <= floors.best_lower


def test_tolerances_of_a_run_are_added_to_what_a_share_allows():
    problem = PROBLEM._replace(keep=0.9)
    with interpreted():
        result = minimize(problem, "cg-bio", tol=(0.05, 0.01 * GAIN))
    assert result.status is Status.CERTIFIED
    assert result.upper_gap_bound <= 0.05
    assert result.lower_gap_bound <= result.tolerance + 0.01 * GAIN
    assert result.tolerance <= 0.1 * GAIN * (1.0 + 1e-9)


@pytest.mark.parametrize("name", NEAR)
def test_a_time_limit_leaves_an_answer(name):
    with interpreted():
        result = minimize(PROBLEM._replace(keep=0.9), name, time_limit=0.1)
    assert result.success or result.status is Status.TIME
    assert math.isfinite(result.upper)
    assert PROBLEM.domain.contains(result.x)


def test_python_functions_and_an_f_that_is_not_convex_have_near_ties_too():
    python = FiniteSum(4, 5, LOWER.value_and_gradient, convex=True, lipschitz=float(LOWER.lipschitz), floor=0.0)
    saddle = np.diag([1.0, -0.5, 1.0, -0.5, 1.0])
    bent = FiniteSum(1, 5, lambda x, i: (0.5 * float(x @ saddle @ x) + float(x.sum()), saddle @ x + 1.0), convex=False)
    for upper, method in ((UPPER, "auto"), (UPPER, "pb-apg"), (bent, "auto"), (bent, "sbcgf"), (bent, "cg-bio")):
        with interpreted():
            result = minimize(Problem(upper, python, L1Ball(0.8), keep=0.9), method, max_queries=4000)
            exact = minimize(Problem(upper, python, L1Ball(0.8)), method, max_queries=4000)
        assert result.within is True
        assert result.lower <= LEAST + 0.1 * GAIN
        assert result.upper < exact.upper
        assert math.isfinite(result.stationarity)


# Compiled


@pytest.mark.parametrize("name", STEPPING)
def test_compiled_and_interpreted_steps_to_a_level_are_the_same(name):
    problem = Problem(make_objective("squared-norm", seed=1), make_objective("least-squares", seed=2), L2Ball(1.5), keep=0.9)
    method = METHODS[name]().for_problem(problem)
    plan, x0 = method.plan(problem), minimize(problem.exact, FISTA(level="lower"), max_queries=2000).x
    steps = 600 if name == "pavr" else 60  # it looks at the level after some epochs
    values, least = evaluated(plan, np.arange(steps)), problem.lower.value(x0)
    epsilon = 0.1 * (problem.lower.value(problem.reference) - least)

    def run() -> np.ndarray:
        state = method.start(problem, plan, x0)
        method.allow(state, least + epsilon, epsilon)
        assert method.loop(problem, state, values, steps, keys_of([7])) == 0
        return np.concatenate([state.x, method.answer(state)])

    compiled, exact = run(), method.start(problem, plan, x0)
    with interpreted():
        found = run()
        method.loop(problem, exact, values, steps, keys_of([7]))
    np.testing.assert_allclose(found, compiled, rtol=1e-10, atol=1e-10)
    assert np.abs(found[: x0.size] - exact.x).max() > 1e-5  # the level makes a difference


# Streams


def stream(bounded: bool) -> tuple[Stream, LeastSquares]:
    """Return a stream of rows of a table, and the mean over all of them."""
    random = np.random.default_rng(1)
    A = random.uniform(-1.0, 1.0, (40, 3))
    a = np.clip(A @ [0.2, -0.1, 0.3] + random.uniform(-0.3, 0.3, 40), -1.0, 1.0)

    def value_and_grad(x, batch):
        residual = batch[0] @ x - batch[1]
        return 0.5 * float(np.mean(residual**2)), batch[0].T @ residual / residual.size

    def draw(rng, size):
        rows = rng.integers(40, size=size)
        return A[rows], a[rows]

    said = {"value_range": (0.0, 2.0), "gradient_bound": 2.0 * math.sqrt(3.0)} if bounded else {}
    return Stream(draw, value_and_grad, 3, convex=True, lipschitz=3.0, floor=0.0, **said), LeastSquares(A, a)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_bounds_of_a_stream_with_a_share_hold_as_often_as_they_should(bounded, keep):
    """The truth is that of the table; with a confidence of 0.8, of 45 certificates 9 may be wrong, and 16 hardly ever."""
    drawn, table = stream(bounded)
    upper, domain = SquaredNorm(np.full(3, 0.5)), L1Ball(1.0)
    exact = minimize(Problem(upper, table, domain, keep=keep), "active-set")
    floors, slack = exact.certificate.floors, 1e-9
    epsilon = (1.0 - keep) * (table.value(np.zeros(3)) - floors.lower)
    lowest = minimize(Problem(upper, table, domain), "active-set").x
    wrong = 0
    for seed in range(45):
        x = (exact.x, lowest, 0.5 * exact.x)[seed % 3]
        found = certify(
            Problem(upper, drawn, domain, keep=keep), x, samples=400, seed=seed, confidence=0.8, points=[lowest][: seed % 2]
        )
        assert found.approximate is not bounded
        g = table.value(x)
        true = (
            found.floors.upper <= exact.upper + slack,
            upper.value(x) - exact.upper <= found.upper_gap_bound + slack,
            g - floors.lower <= found.lower_gap_bound + slack,
            abs(found.lower - g) <= found.lower_error + slack,
            found.tolerance <= epsilon + slack,
            found.within is not True or g <= floors.lower + epsilon + slack,
            found.within is not False or g > floors.lower + epsilon - slack,
        )
        wrong += not all(true)
    assert wrong <= (0 if bounded else 16)


@pytest.mark.parametrize("name", ["auto", "sbcgi", "dbgd-storm"])  # the noise of DBGD-sto remains
def test_a_run_on_a_stream_uses_what_a_share_allows(name):
    drawn, table = stream(bounded=False)
    upper, domain = SquaredNorm(np.full(3, 0.5)), L1Ball(1.0)
    best = minimize(Problem(upper, table, domain, keep=0.8), "active-set")
    tied = minimize(Problem(upper, table, domain), "active-set")
    result = minimize(Problem(upper, drawn, domain, keep=0.8), name, max_queries=20_000, check=False)
    assert result.certificate.approximate
    assert result.tolerance <= best.tolerance * 1.01
    bought = tied.upper - best.upper
    assert result.upper <= tied.upper - 0.15 * bought
    assert table.value(result.x) <= table.value(tied.x) + 2.0 * best.tolerance


def test_without_time_for_a_way_back_the_best_point_within_the_level_is_returned(monkeypatch):
    problem = Problem(SquaredNorm([1.0, 1.0]), LeastSquares([[1.0, 1.0]], [0.5]), L1Ball(4.0), tolerance=0.01)
    monkeypatch.setattr(Timetable, "allows_improving", lambda self: False)
    result = minimize(problem, "switching-gradient", max_iterations=40)
    assert result.within is True
    assert result.lower == result.history.lower[-1] == problem.lower.value(result.x)
    assert result.upper_gap_bound == result.history.upper_gap_bound[-1]
