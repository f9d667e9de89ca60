"""What a method may tell its run: that it is finished, that it wants a record, multipliers, and what a checkpoint keeps."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from test_checkpoint import same

from tiebreak import (
    FISTA,
    SBCGF,
    CheckpointError,
    FiniteSum,
    L1Ball,
    LeastSquares,
    Problem,
    Result,
    SquaredNorm,
    Status,
    minimize,
)
from tiebreak.methods.base import DONE, Cost, Method
from tiebreak.methods.parameters import declared, flag, other, real, whole
from tiebreak.proofs import prover

PROBLEM = Problem(SquaredNorm(), LeastSquares([[1.0, 1.0]], [1.0]), L1Ball(2.0))
TIE = np.full(2, 0.5)  # the minimiser of g of smallest norm


class Walking:
    """A state that grows."""

    def __init__(self, x: np.ndarray, trail: list[np.ndarray], iteration: int = 0, stop: int = 0) -> None:
        self.x, self.trail, self.iteration, self.stop = x, trail, np.array([iteration]), stop


class Nothing(NamedTuple):
    pass


def walk(problem, state, plan, iterations, keys):
    for _ in range(iterations):
        if state.iteration[0] == state.stop:
            return DONE
        state.trail.append(state.x.copy())
        state.x += 0.5 * (problem.domain.middle(2) + state.target - state.x)
        state.iteration[0] += 1
        if state.pause and state.iteration[0] % state.pause == 0:
            return DONE
    return DONE


@declared
class Walk(Method):
    """Go half of the way to a point, again and again."""

    steps: int = whole("Steps after which it is finished.", 6, least=0)
    pause: int = whole("A record is wanted after each so many steps; 0: never.", 0, least=0)
    target: float = real("Both coordinates of the point that it goes to.", 0.5)
    lazy: bool = flag("Whether it forgets to count.", False)
    initial: Any = other("Method", None, "What seeks its first point.", lambda given, name: given)

    name = "walk"
    citation = setting = needs = rates = "none"
    near_ties = True
    loop: ClassVar[Any] = staticmethod(walk)

    def plan(self, problem):
        return Nothing()

    def start(self, problem, plan, x):
        return self.made(Walking(x.copy(), []))

    def made(self, state):
        state.stop, state.pause, state.target = 0 if self.lazy else self.steps, self.pause, self.target
        return state

    def finished(self, state):
        return not self.lazy and int(state.iteration[0]) == self.steps

    def wants_record(self, state):
        return self.pause > 0 and int(state.iteration[0]) % self.pause == 0

    def hints(self, state):
        return (float(state.iteration[0]), None), (0.75, None)

    def stored(self, state):
        return {"x": state.x, "iteration": state.iteration, "trail": np.array(state.trail)}

    def restored(self, problem, plan, x, arrays):
        return self.made(Walking(arrays["x"], list(arrays["trail"]), int(arrays["iteration"][0])))

    def cost(self, plan, t):
        return Cost(*np.ones((4, t.size), dtype=np.int64))

    def spent(self, state):
        return np.full(4, state.iteration[0])


# The end of a run


def test_a_method_that_is_finished_ends_the_run_with_a_record():
    result = minimize(PROBLEM, Walk(), max_iterations=1000, x0=np.zeros(2))
    assert result.status is Status.SOLVED
    assert result.message == "solved: the method can improve nothing further, up to rounding"
    assert result.success
    assert result.iterations == result.history.iteration[-1] == 6
    assert len(set(result.history.iteration)) == len(result.history)
    np.testing.assert_array_equal(result.x, TIE * (1 - 2.0**-6))


def test_a_method_that_has_nothing_to_do_ends_the_run_at_its_first_point():
    result = minimize(PROBLEM, Walk(steps=0), max_iterations=1000, x0=TIE)
    assert result.status is Status.SOLVED
    assert result.iterations == 0
    assert len(result.history) == 1


def test_a_budget_that_ends_first_is_what_ended_the_run():
    assert minimize(PROBLEM, Walk(), max_iterations=5, x0=np.zeros(2)).status is Status.ITERATIONS
    assert minimize(PROBLEM, Walk(), max_queries=11, x0=np.zeros(2)).status is Status.QUERIES
    stopped = minimize(PROBLEM, Walk(), max_queries=100, x0=np.zeros(2), callback=lambda snapshot: snapshot.iteration == 6)
    assert stopped.status is Status.CALLBACK


def test_a_finished_run_is_certified_where_its_tolerances_are_reached():
    reached = minimize(PROBLEM, Walk(steps=30), tol=(0.3, 1e-3), x0=np.zeros(2))
    assert reached.status is Status.CERTIFIED
    missed = minimize(PROBLEM, Walk(steps=8), tol=(1e-9, 1e-9), x0=np.zeros(2))
    assert missed.status is Status.SOLVED
    assert not missed.success


def test_a_loop_that_does_not_count_is_an_error_still():
    with pytest.warns(RuntimeWarning, match="the loop of 'walk' must count each iteration"):
        assert minimize(PROBLEM, Walk(lazy=True), max_iterations=9, x0=np.zeros(2)).status is Status.FAILED


def test_a_search_for_a_first_point_ends_when_its_method_is_finished():
    result = minimize(PROBLEM, SBCGF(step=1e-3, slack=1e-6, initial=Walk(steps=3)), max_queries=2000)
    assert result.history.iteration[result.history.phase == 0].max() == 3
    assert result.iterations > 0
    assert result.status is Status.QUERIES


def test_a_first_point_for_near_ties_is_sought_by_a_method_for_exact_ones():
    method = Walk(steps=4, target=0.45, initial=FISTA(level="lower"))
    result = minimize(PROBLEM._replace(tolerance=0.1), method, max_queries=100)
    assert (result.history.phase == 0).any()
    assert result.status is Status.SOLVED


# Records


def test_a_record_is_made_where_a_method_wants_one_and_once():
    result = minimize(PROBLEM, Walk(steps=100, pause=7), max_iterations=1000, x0=np.zeros(2))
    iterations = result.history.iteration.tolist()
    assert set(range(0, 101, 7)) | {100} <= set(iterations)
    assert len(set(iterations)) == len(iterations)
    plain = minimize(PROBLEM, Walk(steps=100), max_iterations=1000, x0=np.zeros(2))
    assert len(plain.history) < len(result.history)
    assert plain.x.tobytes() == result.x.tobytes()


def test_the_multipliers_of_a_method_are_tried_at_each_record(monkeypatch):
    tried, examine = [], prover.examine

    def spied(problem, x, floors, multipliers=()):
        tried.append(tuple(multipliers))
        return examine(problem, x, floors, multipliers)

    monkeypatch.setattr(prover, "examine", spied)
    result = minimize(PROBLEM, Walk(), max_iterations=4, x0=np.zeros(2))
    assert tried == [(float(t), 0.75) for t in result.history.iteration]
    tried.clear()
    minimize(PROBLEM, "cg-bio", max_iterations=4, x0=np.zeros(2))
    assert set(tried) == {()}


# Tolerances


@pytest.mark.parametrize(
    ("epsilon", "lower", "status"),
    [(0.0, 0.02, "SOLVED"), (0.0, 0.04, "CERTIFIED"), (0.02, 0.002, "SOLVED"), (0.02, 0.02, "CERTIFIED")],
)
def test_the_tolerance_of_the_problem_is_added_to_that_of_the_lower_gap(epsilon, lower, status):
    problem, end = PROBLEM._replace(tolerance=epsilon), 0.5 * (1.0 - math.sqrt(0.06))  # where g is 0.03
    result = minimize(problem, Walk(steps=40, target=end), tol=(1.0, lower), x0=np.zeros(2))
    assert result.status is Status[status]
    assert (result.lower_gap_bound <= epsilon + lower) is (status == "CERTIFIED")


def test_a_result_tells_its_tolerance_and_whether_it_is_kept():
    epsilon = 0.01
    end = 0.5 * (1.0 - math.sqrt(2 * 0.9 * epsilon))
    result = minimize(PROBLEM._replace(tolerance=epsilon), Walk(steps=60, target=end), max_queries=1000, x0=TIE)
    assert result.tolerance == epsilon
    assert result.within is True
    assert "g(x) − g* ≤ 0.009, within the tolerance 0.01: proven" in " ".join(str(result).split())
    assert "tolerance" not in str(minimize(PROBLEM, Walk(), max_queries=1000, x0=TIE))
    far = minimize(PROBLEM._replace(tolerance=epsilon), Walk(target=0.0), tol=(1.0, 1.0), x0=[0.01, 0.01])
    assert far.within is None
    assert "perhaps within the tolerance 0.01: not proven" in str(far)


@pytest.mark.parametrize("allowed", [{"tolerance": 0.01}, {"keep": 0.98}])
def test_a_run_that_goes_beyond_the_level_steps_back_to_it(allowed):
    problem = PROBLEM._replace(**allowed)
    result = minimize(problem, Walk(target=0.0), max_queries=1000, x0=TIE)
    assert result.within is True
    assert result.lower_gap_bound == pytest.approx(0.01, rel=0.011)
    assert result.history.lower[-1] == result.lower == PROBLEM.lower.value(result.x)


def test_a_run_that_never_came_to_the_level_stays_near_the_least_g_that_it_saw():
    start, epsilon = np.full(2, 0.1), 0.01  # g* is 0, which its gradients at the start do not show
    lower = FiniteSum(1, 2, PROBLEM.lower.value_and_gradient, convex=True)
    problem = Problem(SquaredNorm(), lower, L1Ball(2.0), tolerance=epsilon)
    result = minimize(problem, Walk(target=0.0), max_queries=1000, x0=start)
    least = lower.value(start)
    assert result.certificate.floors.aim < least
    assert result.lower == pytest.approx(least + 0.5 * epsilon, abs=1e-3 * epsilon)
    assert result.lower <= least + 0.5 * epsilon
    assert result.within is None


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-20, 1e-15])
def test_the_way_back_allows_for_rounding_however_small_the_tolerance_is(epsilon):
    result = minimize(PROBLEM._replace(tolerance=epsilon), Walk(target=0.0), max_queries=1000, x0=TIE)
    assert result.status is Status.SOLVED
    assert result.lower <= epsilon
    assert result.within is not False
    assert result.upper <= 0.25


def test_bounds_that_are_taken_back_leave_the_tolerance():
    hill = FiniteSum(1, 2, lambda x, indices: (-0.5 * float(x @ x), -x), convex=True)  # which it is not
    problem = Problem(SquaredNorm(), hill, L1Ball(1.0), tolerance=0.1)
    with pytest.warns(RuntimeWarning, match="it is not convex"):
        result = minimize(problem, Walk(), max_queries=100, x0=[0.01, 0.01])
    assert result.status is Status.FAILED
    assert result.within is None
    assert result.tolerance == 0.1
    assert result.certificate.floors.upper == -math.inf


# On disk


def test_a_state_that_grows_is_kept_in_a_checkpoint(tmp_path):
    whole_run = minimize(PROBLEM, Walk(steps=50, pause=7), max_queries=1000, x0=np.zeros(2))
    arguments = {"max_queries": 1000, "x0": np.zeros(2), "checkpoint": tmp_path / "run.npz"}
    stopped = minimize(PROBLEM, Walk(steps=50, pause=7), callback=lambda snapshot: snapshot.iteration >= 20, **arguments)
    assert stopped.status is Status.CALLBACK
    assert 20 <= stopped.iterations < 50
    for _ in range(2):  # the second time, a finished run is just read
        again = minimize(PROBLEM, Walk(steps=50, pause=7), **arguments)
        assert again.status is Status.SOLVED
        same(again, whole_run)


def test_a_checkpoint_of_another_tolerance_is_refused(tmp_path):
    arguments = {"max_queries": 1000, "x0": np.zeros(2), "checkpoint": tmp_path / "run.npz"}
    minimize(PROBLEM, Walk(), **arguments)
    with pytest.raises(CheckpointError, match="its `tolerance` is 0.0, this one's is 0.1"):
        minimize(PROBLEM._replace(tolerance=0.1), Walk(), **arguments)


def test_a_saved_result_keeps_its_tolerance_and_what_it_proves_for_others(tmp_path):
    near, path = PROBLEM._replace(tolerance=0.1), tmp_path / "result.npz"
    result = minimize(near, Walk(steps=20, target=0.28), max_queries=1000, x0=TIE)
    result.save(path)
    loaded = Result.load(path)
    assert (loaded.tolerance, loaded.within, loaded.certificate.floors) == (0.1, True, result.certificate.floors)
    assert str(loaded) == str(result)
    assert Result.load(path, near).problem is near
    with pytest.raises(ValueError, match="`problem` must be the one of the result"):
        Result.load(path, PROBLEM)
    floors = result.certificate.floors
    assert floors.upper > 0.0
    for tolerance, kept in ((0.0, True), (0.05, True), (0.2, False)):
        more = minimize(PROBLEM._replace(tolerance=tolerance), Walk(steps=0), x0=loaded, max_queries=100)
        assert more.certificate.floors.best_lower <= floors.best_lower
        assert (more.certificate.floors.upper >= floors.upper) is kept
