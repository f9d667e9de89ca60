"""Interpreted, mixed and compiled runs give the same iterates for every objective × matrix × method."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import callable_copy, make_objective

from tiebreak import FISTA, SBCGF, SBCGI, ActiveSet, Box, CGBiO, L1Ball, L2Ball, Problem, SpiderFW, minimize
from tiebreak import METHODS as ALL
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import keys_of
from tiebreak.schedules import evaluated

LINEAR = [(name, kind) for name in ("least-squares", "logistic", "huber") for kind in ("dense", "csr")]
PAIRS = [*zip(LINEAR, LINEAR[::-1], strict=True), (("squared-norm", ""), LINEAR[0]), (LINEAR[0], ("squared-norm", ""))]
PLAIN = [SBCGI(preset="paper", step=0.02, slack=1e-3, batch_size=2), SBCGF(preset="paper", step=0.02, slack=1e-4)]
ONE_LEVEL = [SpiderFW(step=0.02, level="lower"), SpiderFW(step=0.02, level="upper")]
METHODS = [*PLAIN, *ONE_LEVEL, SBCGF(step=0.02), SBCGI(step=0.02, batch_size=2), *ONE_LEVEL]
COVER = [(*pair, method) for pair, method in zip(PAIRS, METHODS, strict=True)]  # each pair once, each method twice

LEFT_OUT = (SBCGI, SBCGF, SpiderFW, ActiveSet)  # the last one is plain Python
OTHERS = [cls() for cls in ALL.values() if cls.finite and cls not in LEFT_OUT]


def check_all_ways(problem, method, mixed=False):
    """Run a method compiled and interpreted, and, as it takes long to compile, if asked with only its kernels compiled."""
    assert problem.compiled
    x0 = problem.domain.project(np.random.default_rng(0).standard_normal(problem.dimension))
    method = method.for_problem(problem)
    plan = method.plan(problem)
    values = evaluated(plan, np.arange(40))

    def run(loop):
        state = method.start(problem, plan, x0)
        assert loop(problem, state, values, 40, keys_of([7])) == 0
        assert state.iteration[0] == 40
        return np.concatenate([state.x, method.answer(state)])

    compiled = run(method.loop)
    accuracy = 1e-4 if method.name == "mng" else 1e-12  # MNG's two half-spaces become parallel, and amplify rounding
    with interpreted():
        np.testing.assert_allclose(run(method.loop), compiled, rtol=accuracy, atol=accuracy)
    if mixed:
        np.testing.assert_allclose(run(method.loop.python), compiled, rtol=accuracy, atol=accuracy)
    return np.abs(compiled[: x0.size] - x0).max()


@pytest.mark.parametrize(("upper", "lower", "method"), COVER)
def test_all_ways_to_run_give_the_same_iterates(upper, lower, method):
    problem = Problem(make_objective(*upper, seed=1), make_objective(*lower, seed=2), L1Ball(1.5))
    assert check_all_ways(problem, method, mixed=(upper, lower) == PAIRS[0]) > 1e-3


@pytest.mark.parametrize("method", OTHERS, ids=lambda m: m.name)
def test_every_method_gives_the_same_iterates_in_all_ways(method):
    problem = Problem(make_objective("squared-norm", seed=1), make_objective("least-squares", seed=2), L2Ball(1.5))
    assert check_all_ways(problem, method, mixed=method.name == "pb-apg") > 1e-6


def placed(state, gap):
    """The same state in one stretch of memory, with some numbers between its arrays; the other way round if negative."""
    room, place = np.zeros(4096), 2048

    def put(value):
        nonlocal place
        if isinstance(value, tuple):
            return type(value)(*map(put, value))
        if gap < 0:
            place -= value.size - gap
        array = room[place : place + value.size].view(value.dtype)
        array[:] = value
        if gap >= 0:
            place += value.size + gap
        return array

    return put(state)


@pytest.mark.parametrize("domain", [L1Ball(6.0), L2Ball(1.5), Box(-1.0, 1.0, 18)], ids=lambda domain: type(domain).__name__)
@pytest.mark.parametrize("method", [SBCGI(step=0.01, slack=1e-3), CGBiO()], ids=lambda method: method.name)
def test_no_bit_of_an_iterate_depends_on_where_the_arrays_lie(method, domain):
    problem = Problem(make_objective("squared-norm", seed=1), make_objective("least-squares", seed=2), domain)
    x0 = minimize(problem, FISTA(level="lower"), max_queries=20_000).x
    method = method.for_problem(problem)
    plan = method.plan(problem)
    values = evaluated(plan, np.arange(2000))

    def end(gap):
        state = placed(method.start(problem, plan, x0), gap)
        assert method.loop(problem, state, values, 2000, keys_of([7])) == 0
        return state.x.tobytes()

    assert len({end(gap) for gap in (0, 2, 8, 20, 60, -1, -2, -8, -20, -60)}) == 1


def test_cg_bio_cuts_alike_in_all_ways():
    problem = Problem(make_objective("logistic", "csr", seed=1), make_objective("huber", "dense", seed=2), L1Ball(1.5))
    assert check_all_ways(problem, CGBiO(step=0.05, slack=1e-3)) > 1e-3


@pytest.mark.parametrize("method", PLAIN, ids=lambda m: m.name)
def test_a_problem_of_python_functions_gives_the_iterates_of_the_compiled_one(problem, callable_problem, method):
    assert problem.compiled
    assert not callable_problem.compiled
    fast = minimize(problem, method, max_queries=2000)
    slow = minimize(callable_problem, method, max_queries=2000)
    np.testing.assert_allclose(slow.x, fast.x, rtol=1e-12, atol=1e-13)
    assert slow.queries == fast.queries
    np.testing.assert_allclose(slow.history.lower, fast.history.lower, rtol=1e-11)


def test_a_compiled_and_a_python_objective_go_together(problem):
    mixed = Problem(callable_copy(problem.upper, problem.upper.n_samples, problem.dimension), problem.lower, problem.domain)
    method = SBCGI(preset="paper", step=0.02, slack=1e-3)
    a, b = minimize(mixed, method, max_queries=600), minimize(problem, method, max_queries=600)
    np.testing.assert_allclose(a.x, b.x, rtol=1e-12, atol=1e-13)
