"""Penalised accelerated variance reduction: against plain NumPy, and against rivals at equal samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import make_objective

from tiebreak import PAVR, FiniteSum, Huber, L1Ball, L2Ball, LeastSquares, Problem, SquaredNorm, minimize
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import Moment, keys_of
from tiebreak.objectives.base import draw

LENGTHS = [1 / 8, 1 / 4, 1 / 2, 1 / 4, 1 / 4, 1 / 2, 1 / 2]  # of the first epochs
PARTIAL = 3  # of which begin with a part of the samples that is as large


def tall(n=4000, d=20, seed=0, loss=LeastSquares):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A[:, -1] = A[:, 0]  # two columns that f must choose between
    truth = np.zeros(d)
    truth[:3] = 1.0, -0.5, 0.5
    noise = 0.1 * rng.standard_normal(n)
    return loss(A, A @ truth + noise) if loss is LeastSquares else loss(A, np.where(A @ truth + noise > 0.0, 1.0, -1.0))


def shares_of(level):
    """Return n p_i: how often a row is drawn, relative to the mean."""
    if level.n_samples == 1:
        return np.ones(1)
    squares = level.weights * (level.matrix.array**2).sum(axis=1)
    return squares / squares.mean() if squares.max() > 2.0 * squares.mean() else np.ones(level.n_samples)


def reference(problem, x, batch, weight, growth, seed):
    """Yield x̃ after each step, as the formulas of the method say."""
    f, g = problem.upper, problem.lower
    period = 8 * math.ceil(g.n_samples / (8 * batch))
    sizes = math.ceil(f.n_samples / period), batch
    shares = shares_of(f), shares_of(g)
    noises = []
    for level, share, size in zip((f, g), shares, sizes, strict=True):
        own = 0.0 if level.n_samples == 1 else (level.weights * (level.matrix.array**2).sum(axis=1) / share).max()
        noises.append(own / size)
    constants = [level.lipschitz + noise for level, noise in zip((f, g), noises, strict=True)]
    mix = max(0.05, 0.25 * max(noise / constant for noise, constant in zip(noises, constants, strict=True)))
    keys, t, epoch, settled = keys_of([seed]), 0, 0, 0.3

    def slope(w):
        L = constants[0] / w + constants[1]
        gradient = exact[0] / w + exact[1]
        return L * np.linalg.norm(x - problem.domain.project(x - gradient / L))

    def drawn(level, key, turn, size):
        return draw(level.evened(), Moment(key, t, turn, 0), np.empty(size, dtype=np.int64))

    def mean(level, share, rows, point):
        """Return the mean of the gradients of rows, each divided by how often it is drawn."""
        return sum(level.value_and_gradient(point, [i])[1] / share[i] for i in rows) / len(rows)

    def snapshot(level, key, share, k):
        size = math.ceil(LENGTHS[k] * level.n_samples) if k < PARTIAL else level.n_samples
        if size == level.n_samples:
            return level.value_and_gradient(x)[1]
        return mean(level, share, drawn(level, key, 1, size), x)

    for k in range(10**6):
        exact = [snapshot(*each, k) for each in zip((f, g), keys, shares, strict=True)]
        if k > 0 and slope(weight) <= settled * np.linalg.norm(exact[0]) / weight:
            weight, epoch, settled = growth * weight, 0, 0.7 * settled
        if epoch == 0:
            y, z = x, x
        epoch += 1
        theta, L = min(0.5, 2.0 / (epoch + 3.0)), constants[0] / weight + constants[1]
        total, steps = np.zeros_like(x), round(period * (LENGTHS[k] if k < len(LENGTHS) else 1))
        for _ in range(steps):
            point = theta * z + mix * x + (1.0 - mix - theta) * y
            estimates = []
            for level, key, size, share, whole in zip((f, g), keys, sizes, shares, exact, strict=True):
                rows = drawn(level, key, 0, size)
                estimates.append(whole + mean(level, share, rows, point) - mean(level, share, rows, x))
            v = estimates[0] / weight + estimates[1]
            y = problem.domain.project(point - v / (1.5 * L))
            z, t = problem.domain.project(z - v / (1.5 * theta * L)), t + 1
            total += y
            yield x
        x = total / steps


@pytest.mark.parametrize("upper", ["squared-norm", "least-squares"])
@pytest.mark.parametrize("longest", [1.0, 10.0])
@pytest.mark.parametrize("domain", [L1Ball(1.5), L2Ball(0.7)], ids=["l1", "l2"])
def test_the_steps_are_those_of_the_formulas(upper, longest, domain):
    rows = make_objective("least-squares", seed=2).matrix.array.copy()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[0] *= longest
    lower = LeastSquares(rows, make_objective("least-squares", seed=2).targets)
    assert (lower.evened() is lower) == (longest == 1.0)
    problem = Problem(make_objective(upper, seed=1), lower, domain)
    x0 = domain.project(np.random.default_rng(5).standard_normal(problem.dimension))
    method = PAVR(batch_size=3, growth=5.0).for_problem(problem)
    plan, keys = method.plan(problem), keys_of([3])
    expected = reference(problem, x0, 3, method.weight, 5.0, 3)
    with interpreted():
        state = method.start(problem, plan, x0)
        for t in range(120):
            assert method.advance(problem, state, plan, 1, keys) == 0
            np.testing.assert_allclose(method.answer(state), next(expected), rtol=0, atol=1e-9, err_msg=f"after {t}")
    assert state.weight[0] > method.weight  # several stages
    assert np.abs(state.x - x0).max() > 1e-2


@pytest.mark.parametrize("loss", [LeastSquares, Huber])
def test_few_passes_are_worth_many_of_a_full_gradient(loss):
    problem = Problem(SquaredNorm(), tall(loss=loss), L1Ball(5.0))
    best = minimize(problem, "active-set")
    passes = 4001 * 20
    found = minimize(problem, "pavr", max_queries=passes)
    assert found.queries.upper + found.queries.lower <= passes
    for rival in ("bi-fista", "pb-apg", "sbcgf"):
        other = minimize(problem, rival, max_queries=passes)
        assert found.lower - best.lower < 0.3 * (other.lower - best.lower), rival
        assert abs(found.upper - best.upper) < abs(other.upper - best.upper), rival


def test_the_epoch_that_a_budget_cuts_short_is_not_lost():
    problem = Problem(SquaredNorm(), tall(), L2Ball(3.0))
    begun, ended = (minimize(problem, "pavr", max_queries=int(4001 * passes)).lower for passes in (0.15, 0.24))
    first = problem.lower.value(np.zeros(20))
    assert begun == pytest.approx(first)  # a small part of an epoch says little
    assert ended < 0.2 * first


def test_the_first_steps_do_not_wait_for_all_samples():
    problem = Problem(SquaredNorm(), tall(), L1Ball(5.0))
    best = minimize(problem, "active-set")
    first = problem.lower.value(np.zeros(20)) - best.lower
    assert minimize(problem, "pavr", max_queries=4001).lower - best.lower < 0.05 * first


def test_it_needs_no_constants_of_single_samples():
    known = tall()
    lower = FiniteSum(
        known.n_samples, 20, lambda x, i: known.value_and_gradient(x, i), convex=True, lipschitz=known.lipschitz, floor=0.0
    )
    assert math.isnan(lower.sample_lipschitz)
    problem = Problem(SquaredNorm(), lower, L2Ball(3.0))
    best = minimize(problem._replace(lower=known), "pavr", max_queries=4001 * 60)
    found = minimize(problem, "pavr", max_queries=4001 * 60, check=False)
    assert found.lower - best.lower < 1e-4 * known.value(np.zeros(20))


def test_constants_of_single_samples_bound_them_all():
    for name in ("least-squares", "logistic", "huber"):
        objective = make_objective(name, seed=4)
        rng = np.random.default_rng(0)
        for i in range(objective.n_samples):
            x, y = rng.standard_normal((2, objective.dimension))
            change = objective.value_and_gradient(x, [i])[1] - objective.value_and_gradient(y, [i])[1]
            assert np.linalg.norm(change) <= (1.0 + 1e-12) * objective.sample_lipschitz * np.linalg.norm(x - y)
        assert (3.0 * objective).sample_lipschitz == pytest.approx(3.0 * objective.sample_lipschitz)


@pytest.mark.parametrize("flat", ["upper", "lower"])
def test_an_objective_without_curvature_is_taken(flat):
    levels = {"upper": LeastSquares(np.eye(3), np.ones(3)), "lower": LeastSquares(np.eye(3), np.ones(3))}
    levels[flat] = LeastSquares(np.zeros((3, 3)), np.ones(3))
    result = minimize(Problem(*levels.values(), L2Ball(1.0)), "pavr", max_queries=3000)
    np.testing.assert_allclose(result.x, np.full(3, 3**-0.5), atol=1e-4 if flat == "upper" else 0.1)


# g alone


def test_g_alone_is_minimised_without_a_look_at_f():
    lower = tall()

    def fail(x, i):
        raise AssertionError

    problem = Problem(FiniteSum(7, 20, fail, convex=False), lower, L2Ball(0.7))
    found = PAVR(level="lower").for_problem(problem)
    plan = found.plan(problem)
    with interpreted():
        state = found.start(problem, plan, np.zeros(20))
        assert found.advance(problem, state, plan, 400, keys_of([0])) == 0
    best = minimize(Problem(SquaredNorm(), lower, L2Ball(0.7)), "pb-apg", max_queries=4001 * 400)
    assert lower.value(state.x) - best.lower < 1e-5 * lower.value(np.zeros(20))
    assert found.spent(state)[0] == found.spent(state)[2] == 0
    np.testing.assert_array_equal(found.spent(state), np.sum(found.cost(plan, np.arange(400)), axis=1))


def test_steps_on_g_alone_are_the_same_compiled():
    problem = Problem(SquaredNorm(), make_objective("least-squares", seed=2), L1Ball(1.5))
    method = PAVR(batch_size=3, level="lower").for_problem(problem)
    plan, keys = method.plan(problem), keys_of([3])
    state = method.start(problem, plan, np.zeros(problem.dimension))
    assert method.advance(problem, state, plan, 100, keys) == 0
    with interpreted():
        other = method.start(problem, plan, np.zeros(problem.dimension))
        assert method.advance(problem, other, plan, 100, keys) == 0
    np.testing.assert_allclose(state.x, other.x, rtol=0, atol=1e-12)
    assert np.abs(state.x).max() > 1e-2


def test_near_ties_of_many_rows_begin_with_steps_on_g_alone_unless_it_is_round():
    lower = tall()  # two equal columns: g does not bend between them
    problem = Problem(SquaredNorm(), lower, L2Ball(3.0), keep=0.99)
    assert PAVR().for_problem(problem).initial == PAVR(level="lower")
    round_ = LeastSquares(lower.matrix.array[:, :-1], lower.targets)
    for other in (problem._replace(lower=round_), problem._replace(lower=tall(n=400))):
        assert PAVR().for_problem(other).initial.name == "fista"
    assert PAVR().for_problem(problem._replace(keep=1.0)).initial is None
    assert minimize(problem, "pavr", max_queries=4001 * 40).within is True
