"""Every method against its published update rule, written down independently in plain NumPy.

The samples are those of the library: ⌊n · u⌋ for u uniform on [0, 1), the upper level drawn before the lower. A reference
yields the point and the answer after each iteration; both are compared in each of them.
"""

from __future__ import annotations

import contextlib
import itertools

import cvxpy
import numpy as np
import pytest
from conftest import Draws, linear_data, make_objective
from scipy.optimize import brentq, linprog

from tiebreak import (
    Columns,
    DictionaryLoss,
    FiniteSum,
    JointDictionaryLoss,
    L1Ball,
    L2Ball,
    LeastSquares,
    Problem,
    Product,
    SquaredNorm,
    minimize,
    power,
)
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import keys_of
from tiebreak.methods import (
    AIRG,
    DBGD,
    FISTA,
    IRCG,
    IRFSCG,
    IRSCG,
    MNG,
    PBAPG,
    SBCGFM,
    SBCGIM,
    AGMBiO,
    ARIPSeG,
    BiFISTA,
    BiGSAM,
    BisecBiO,
    CGBiO,
    DBGDSto,
    FCBiO,
    SpiderFW,
    StormFW,
    SwitchingGradient,
)

ROUNDS, RADIUS = 40, 2.0


def follow(method, problem, x0, seed):
    """Yield the point and the answer of the library's method after each iteration."""
    method = method.for_problem(problem)
    plan, keys = method.plan(problem), keys_of([seed])
    state = method.start(problem, plan, x0)
    while True:
        assert method.advance(problem, state, plan, 1, keys) == 0
        yield state.x.copy(), method.answer(state).copy()


def assert_same(method, problem, x0, reference, seed=3, rounds=ROUNDS, atol=1e-9):
    """Compare two sequences of points and answers; neither may stay where it begins."""
    steps = zip(range(rounds), follow(method, problem, x0, seed), reference, strict=False)
    for t, found, expected in steps:
        np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=atol, err_msg=f"x after iteration {t}")
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=atol, err_msg=f"answer after iteration {t}")
    assert np.abs(found[0] - x0).max() > 1e-2
    return found


# The problem: two least-squares losses with fewer samples than variables.


@pytest.fixture(params=[L1Ball(RADIUS), L2Ball(0.7)], ids=["l1-compiled", "l2-interpreted"])
def domain(request):
    """One set for each way to run."""
    with contextlib.nullcontext() if isinstance(request.param, L1Ball) else interpreted():
        yield request.param


@pytest.fixture
def problem(domain):
    return Problem(make_objective("least-squares", seed=1), make_objective("least-squares", seed=2), domain)


@pytest.fixture
def x0(problem):
    return problem.domain.project(np.random.default_rng(5).standard_normal(problem.dimension))


@pytest.fixture
def strong(problem):
    """The same with a strongly convex quadratic upper objective."""
    A, b = linear_data(3, n=30)
    return problem._replace(upper=LeastSquares(A, b))


def at(objective, x, indices=slice(None)):
    """Return the value and the gradient of ½ Σ w_i (⟨a_i, x⟩ − b_i)² / n over some samples, or of ½ ‖x‖²."""
    if isinstance(objective, SquaredNorm):
        return 0.5 * x @ x, x
    A, b, w = objective.matrix.array[indices], objective.targets[indices], objective.weights[indices]
    residual = A @ x - b
    return 0.5 * np.mean(w * residual**2), A.T @ (w * residual) / len(b)


def l1_vertex(c):
    s = np.zeros_like(c)
    i = int(np.argmax(np.abs(c)))
    s[i] = -RADIUS * np.sign(c[i])
    return s


def minimiser(domain, c):
    """Return the minimiser of ⟨c, s⟩ over one of the two balls."""
    return l1_vertex(c) if isinstance(domain, L1Ball) else -domain.radius * c / np.linalg.norm(c)


def cut_minimiser(c, a, b):
    """Return the minimiser of ⟨c, s⟩ over the ℓ1 ball where ⟨a, s⟩ ≤ b, or of ⟨a, s⟩ if there is no such point."""
    rows = np.vstack([np.r_[a, -a], np.ones(2 * c.size)])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(np.r_[c, -c], A_ub=rows, b_ub=[b, RADIUS], bounds=(0, None), method="highs", options=tight)
    return l1_vertex(a) if solved.status == 2 else solved.x[: c.size] - solved.x[c.size :]


# Frank-Wolfe on one level.


class Storm:
    """The recursion of Cutkosky and Orabona, for the value and the gradient."""

    def __init__(self, objective, batch):
        self.objective, self.batch, self.estimate = objective, batch, None

    def __call__(self, draws, x, previous, t, momentum):
        batch = draws.indices(self.objective, t, self.batch)
        new, old = at(self.objective, x, batch), at(self.objective, previous, batch)
        if self.estimate is None:
            self.estimate = new
        else:
            self.estimate = tuple((1 - momentum) * (h - o) + n for h, n, o in zip(self.estimate, new, old, strict=True))
        return self.estimate


class Spider:
    """The recursion of Fang, Li, Lin and Zhang, for the value and the gradient."""

    def __init__(self, objective, batch, period):
        self.objective, self.batch, self.period = objective, batch, period

    def __call__(self, draws, x, previous, t):
        if t % self.period == 0:
            self.estimate = at(self.objective, x)
        else:
            batch = draws.indices(self.objective, t, self.batch)
            new, old = at(self.objective, x, batch), at(self.objective, previous, batch)
            self.estimate = tuple(h + n - o for h, n, o in zip(self.estimate, new, old, strict=True))
        return self.estimate


def storm_fw(problem, level, x, step, momentum, batch, seed=3):
    draws, storm, previous = Draws(problem, seed), Storm(getattr(problem, level), batch), x
    for t in itertools.count():
        _, gradient = storm(draws, x, previous, t, momentum(t))
        previous, x = x, (1 - step(t)) * x + step(t) * minimiser(problem.domain, gradient)
        yield x, x


def spider_fw(problem, level, x, step, batch, period, seed=3):
    draws, spider, previous = Draws(problem, seed), Spider(getattr(problem, level), batch, period), x
    for t in itertools.count():
        _, gradient = spider(draws, x, previous, t)
        previous, x = x, (1 - step(t)) * x + step(t) * minimiser(problem.domain, gradient)
        yield x, x


@pytest.mark.parametrize("level", ["upper", "lower"])
def test_storm_fw(problem, x0, level):
    step, momentum = power(0.5, 0.7, shift=2.0), power(0.7, 0.6)  # the first sample has all weight
    method = StormFW(step=step, momentum=momentum, batch_size=3, level=level)
    assert_same(method, problem, x0, storm_fw(problem, level, x0, step, momentum, 3))


@pytest.mark.parametrize("level", ["upper", "lower"])
def test_spider_fw(problem, x0, level):
    step = power(0.5, 0.7, shift=2.0)
    method = SpiderFW(step=step, batch_size=2, period=5, level=level)
    assert_same(method, problem, x0, spider_fw(problem, level, x0, step, 2, 5))


# The baselines of Cao et al. (2023).


def arip_seg(problem, x, step, penalty, power_of_weight, batch, seed=3):
    f, g, Z = problem[:3]
    draws = Draws(problem, seed)
    points, weights = [], []

    def sampled(z, t):
        theta, xi = draws.indices(f, t, batch), draws.indices(g, t, batch)
        return at(f, z, theta)[1] + penalty(t) * at(g, z, xi)[1]

    for t in itertools.count():
        y = Z.project(x - step(t) * sampled(x, t))
        x = Z.project(x - step(t) * sampled(y, t))
        points.append(y)
        weights.append((step(t) * penalty(t)) ** power_of_weight)
        yield x, np.average(points, axis=0, weights=weights)


@pytest.mark.parametrize(("batch", "power_of_weight"), [(1, 0.5), (4, 0.8)])
def test_arip_seg(problem, x0, batch, power_of_weight):
    step, penalty = power(0.1, 0.75), power(2.0, -0.25)
    method = ARIPSeG(step=step, penalty=penalty, batch_size=batch, average_power=power_of_weight)
    reference = arip_seg(problem, x0, step, penalty, power_of_weight, batch)
    x, answer = assert_same(method, problem, x0, reference)
    assert np.abs(x - answer).max() > 1e-3
    last = ARIPSeG(step=step, penalty=penalty, batch_size=batch, average=False)
    plain = ((x, x) for x, _ in arip_seg(problem, x0, step, penalty, power_of_weight, batch))
    assert_same(last, problem, x0, plain)


def dbgd(problem, x, step, alpha, beta, floor, batch=None, seed=3, met=None):
    f, g, Z = problem[:3]
    draws = Draws(problem, seed)
    for t in itertools.count():
        theta = slice(None) if batch is None else draws.indices(f, t, batch)
        xi = slice(None) if batch is None else draws.indices(g, t, batch)
        (_, df), (value, dg) = at(f, x, theta), at(g, x, xi)
        phi = min(alpha * (value - floor), beta * dg @ dg)
        lam = max((phi - df @ dg) / (dg @ dg), 0.0)
        if met is not None:
            met.add(("value" if phi < beta * dg @ dg else "gradient", bool(lam > 0.0)))
        x = Z.project(x - step(t) * (df + lam * dg))
        yield x, x


@pytest.mark.parametrize(("beta", "kind"), [(0.3, "value"), (0.1, "gradient")])
def test_dbgd(problem, x0, beta, kind):
    step, met = power(0.3, 0.3), set()
    method = DBGD(step=step, alpha=0.6, beta=beta, floor=-0.05)
    assert_same(method, problem, x0, dbgd(problem, x0, step, 0.6, beta, -0.05, met=met))
    assert (kind, True) in met


@pytest.mark.parametrize(("batch", "beta"), [(1, 0.03), (4, 0.07)])
def test_dbgd_sto(problem, x0, batch, beta):
    step, met = power(0.1, 0.5), set()
    method = DBGDSto(step=step, alpha=0.9, beta=beta, floor=0.0, batch_size=batch)
    assert_same(method, problem, x0, dbgd(problem, x0, step, 0.9, beta, 0.0, batch, met=met))
    assert met >= {("value", True), ("gradient", True), ("gradient", False)}


def without_slack(problem, x, estimates, step, anchor, seed=3):
    """SBCGI-M and SBCGF-M: the cut with K_t = 0, and the minimiser of ⟨∇ĝ, s⟩ where it is empty."""
    draws, previous = Draws(problem, seed), x
    for t in itertools.count():
        (_, f_hat), (value, g_hat) = (estimate(draws, x, previous, t) for estimate in estimates)
        s = cut_minimiser(f_hat, g_hat, anchor - value + g_hat @ x)
        previous, x = x, (1 - step(t)) * x + step(t) * s
        yield x, x


@pytest.mark.parametrize("domain", [L1Ball(RADIUS)], indirect=True, ids=["l1-compiled"])
def test_the_variants_without_slack(problem, x0):
    step, momentum = power(0.2, 0.7, shift=2.0), power(1.0, 0.8)
    anchor = at(problem.lower, x0)[0]
    storms = [Storm(objective, 3) for objective in problem[:2]]
    stormy = [lambda draws, x, previous, t, storm=storm: storm(draws, x, previous, t, momentum(t)) for storm in storms]
    spiders = [Spider(objective, 2, 4) for objective in problem[:2]]
    one = SBCGIM(preset="paper", step=step, momentum=momentum, batch_size=3)
    other = SBCGFM(preset="paper", step=step, upper_batch_size=2, lower_batch_size=2, upper_period=4, lower_period=4)
    assert_same(one, problem, x0, without_slack(problem, x0, stormy, step, anchor), atol=1e-8)
    assert_same(other, problem, x0, without_slack(problem, x0, spiders, step, anchor), atol=1e-8)


# The conditional gradient methods of the field.


def cg_bio(problem, x, step, slack, allowance=np.inf):
    f, g = problem[:2]
    anchor = at(g, x)[0]
    for t in itertools.count():
        (_, df), (value, dg) = at(f, x), at(g, x)
        s = cut_minimiser(df, dg, dg @ x + anchor - value + slack(t))
        allowed, risen = allowance + slack(t), value - anchor
        gamma = step(t) * (max(allowed / risen, 0.01) if risen > allowed else 1.0)
        x = (1 - gamma) * x + gamma * s
        yield x, x


@pytest.mark.parametrize("domain", [L1Ball(RADIUS)], indirect=True, ids=["l1-compiled"])
def test_cg_bio(problem, x0):
    # From a point that nearly minimises g, so that the cut matters. The slack is above the rounding of the LP solver.
    for _, x0 in itertools.islice(spider_fw(problem, "lower", x0, power(2.0, 1.0, shift=2.0), 1, 1), 200):
        pass
    step, slack = power(2.0, 1.0, shift=4.0), power(1e-5, 0.5)
    assert_same(CGBiO(preset="paper", step=step, slack=slack), problem, x0, cg_bio(problem, x0, step, slack), atol=1e-8)
    for allowance in (1e-4, 1e-2):
        method = CGBiO(preset="paper", step=step, slack=slack, allowance=allowance)
        assert_same(method, problem, x0, cg_bio(problem, x0, step, slack, allowance), atol=1e-8)


def mean_of_points(points, sigma, first=1):
    """z_t by its formula, from all points x_0 … x_t, with weights from i = first on."""
    t = len(points) - 1
    weights = [(i + 1) * i * (sigma(i - 1) - sigma(i)) if i >= first else 0.0 for i in range(t + 1)]
    weights[t] += (t + 1) * t * sigma(t)
    return np.average(points, axis=0, weights=weights)


def ir_cg(problem, x, estimates, step, sigma, first=1, seed=3):
    draws, points = Draws(problem, seed), [x]
    for t in itertools.count():
        x, previous = points[-1], points[max(t - 1, 0)]
        (_, f_hat), (_, g_hat) = (estimate(draws, x, previous, t) for estimate in estimates)
        v = minimiser(problem.domain, sigma(t) * f_hat + g_hat)
        points.append(x + step(t) * (v - x))
        yield points[-1], mean_of_points(points, sigma, first)


SIGMAS = {"falling": power(0.5, 0.5), "constant": lambda t: 0.3 + 0.0 * t, "in-steps": lambda t: 1.0 / (1 + t // 7)}


@pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
def test_ir_cg(problem, x0, sigma):
    step = power(2.0, 1.0, shift=2.0)
    exact = [lambda draws, x, previous, t, objective=objective: at(objective, x) for objective in problem[:2]]
    assert_same(IRCG(step=step, regularization=sigma), problem, x0, ir_cg(problem, x0, exact, step, sigma))


def test_ir_scg(problem, x0):
    step, sigma, momentum = power(2.0, 1.0, shift=2.0), power(2.0, 0.25), power(0.6, 0.8)
    storms = [Storm(objective, 3) for objective in problem[:2]]
    stormy = [lambda draws, x, previous, t, storm=storm: storm(draws, x, previous, t, momentum(t)) for storm in storms]
    method = IRSCG(step=step, regularization=sigma, momentum=momentum, batch_size=3, average=True)
    x, answer = assert_same(method, problem, x0, ir_cg(problem, x0, stormy, step, sigma))
    assert np.abs(x - answer).max() > 1e-3


def test_ir_scg_with_the_published_schedules(problem, x0):
    step, sigma = (lambda t: 2 / (t + 2)), (lambda t: 10 * (t + 1) ** -0.25)
    storms = [Storm(objective, 1) for objective in problem[:2]]
    stormy = [lambda draws, x, previous, t, storm=storm: storm(draws, x, previous, t, step(t)) for storm in storms]
    assert_same(IRSCG(preset="paper"), problem, x0, ir_cg(problem, x0, stormy, step, sigma))


@pytest.mark.parametrize("q", [1, 3, 7])
def test_ir_fscg_with_the_published_schedules(problem, x0, q):
    opening = min(np.log(q) / q, 1.0) if q > 1 else 1.0
    step, sigma = (lambda t: opening if t < q else 2 / (t + 2)), (lambda t: 10 * (max(t, q) + 1) ** -0.5)
    spiders = [Spider(objective, 2, q) for objective in problem[:2]]
    sizes = {"upper_batch_size": 2, "lower_batch_size": 2, "upper_period": q, "lower_period": q}
    reference = ir_cg(problem, x0, spiders, step, sigma, first=q + 1)
    assert_same(IRFSCG(preset="paper", **sizes), problem, x0, reference)


def test_ir_fscg_with_the_published_schedules_for_f_not_convex(problem, x0):
    q = 3
    step = lambda t: np.log(q + 1) / (q + 1) if t <= q else (t + 1) ** -0.75  # noqa: E731
    sigma = lambda t: 0.1 * (max(t, q + 1) + 1) ** -0.5  # noqa: E731
    upper = FiniteSum(12, 18, lambda x, indices: at(problem.upper, x, indices), convex=False)
    spiders = [Spider(objective, 2, q) for objective in problem[:2]]
    sizes = {"upper_batch_size": 2, "lower_batch_size": 2, "upper_period": q, "lower_period": q}
    reference = ((x, x) for x, _ in ir_cg(problem, x0, spiders, step, sigma))
    assert_same(IRFSCG(preset="paper-dictionary", **sizes), problem._replace(upper=upper), x0, reference)


# The projected methods of the field.


def big_sam(problem, x, step, upper_step, mixing):
    f, g, Z = problem[:3]
    for t in itertools.count():
        y = Z.project(x - step(t) * at(g, x)[1])
        z = x - upper_step(t) * at(f, x)[1]
        x = mixing(t) * z + (1 - mixing(t)) * y
        yield x, y


def test_big_sam(problem, x0):
    step, upper_step, mixing = power(0.2, 0.0), power(0.3, 0.1), power(0.8, 0.6)
    method = BiGSAM(step=step, upper_step=upper_step, mixing=mixing)
    assert_same(method, problem, x0, big_sam(problem, x0, step, upper_step, mixing))


def test_big_sam_with_the_published_constants(strong, x0):
    hessian = strong.upper.matrix.array.T @ strong.upper.matrix.array / strong.upper.n_samples
    low, high = np.linalg.eigvalsh(hessian)[[0, -1]]
    s = 2 / (high + low)
    beta = np.sqrt(1 - 2 * s * low * high / (low + high))
    A, w = strong.lower.matrix.array, strong.lower.weights
    t_step = 1 / np.linalg.eigvalsh(A.T @ (w[:, None] * A) / len(w))[-1]
    mixing = lambda t: min(2 / ((1 - beta) * (t + 1)), 1.0)  # noqa: E731 - k from 1
    reference = big_sam(strong, x0, lambda t: t_step, lambda t: s, mixing)
    assert_same(BiGSAM(), strong, x0, reference, rounds=80)


def a_irg(problem, x, step, regularization, r):
    f, g, Z = problem[:3]
    points = [x]
    for t in itertools.count():
        x = Z.project(x - step(t) * (at(g, x)[1] + regularization(t) * at(f, x)[1]))
        points.append(x)
        yield x, np.average(points, axis=0, weights=[step(k) ** r for k in range(t + 2)])


@pytest.mark.parametrize("r", [0.5, -1.0])
def test_a_irg(problem, x0, r):
    step, regularization = power(0.3, 0.5), power(0.7, 0.25)
    method = AIRG(step=step, regularization=regularization, average_power=r)
    x, answer = assert_same(method, problem, x0, a_irg(problem, x0, step, regularization, r))
    assert np.abs(x - answer).max() > 1e-3


def accelerated(problem, x, step, upper_weight, lower_weight, momentum):
    """Projected gradient steps on a weighted sum, each from a point extrapolated by ``momentum(t)``."""
    f, g, Z = problem[:3]
    previous = x
    for t in itertools.count():
        y = x + momentum(t) * (x - previous)
        gradient = upper_weight(t) * at(f, y)[1] + lower_weight(t) * at(g, y)[1]
        previous, x = x, Z.project(y - step(t) * gradient)
        yield x, x


def restarted(objective, domain, x, step):
    """Accelerated projected gradient steps, whose momentum starts anew where a step goes against it."""
    previous, momentum = x, 0
    while True:
        y = x + momentum / (momentum + 3) * (x - previous)
        previous, x = x, domain.project(y - step * at(objective, y)[1])
        momentum = 0 if (y - x) @ (x - previous) > 0.0 else momentum + 1
        yield x, x


@pytest.mark.parametrize("level", ["upper", "lower"])
def test_fista(problem, x0, level):
    reference = restarted(getattr(problem, level), problem.domain, x0, 0.3)
    assert_same(FISTA(step=0.3, level=level), problem, x0, reference)


@pytest.mark.parametrize("alpha", [4.0, 3.0])
def test_bi_fista(problem, x0, alpha):
    sigma_t, sigma_e = alpha - 1, 0.0
    regularization = lambda t: 0.8 * (t + sigma_e + 1) ** -1.4  # noqa: E731
    momentum = lambda t: 1 - alpha / (t + sigma_t + 1)  # noqa: E731
    reference = accelerated(problem, x0, power(0.2, 0.0), regularization, lambda t: 1.0, momentum)
    assert_same(BiFISTA(step=0.2, regularization=regularization, inertia=alpha), problem, x0, reference)


def pb_apg(problem, x, stages):
    """Solve a sequence of penalised problems by accelerated projected gradient, each begun where the last one ended."""
    f, g, Z = problem[:3]
    for penalty, step, length in stages:
        previous = x
        for k in range(1, length + 1):
            y = x + (k - 1) / (k + 2) * (x - previous)
            previous, x = x, Z.project(y - step * (at(f, y)[1] + penalty * at(g, y)[1]))
            yield x, x


def test_pb_apg(problem, x0):
    stages = [(0.5, 0.2, 6), (2.0, 0.08, 15), (9.0, 0.02, 30)]
    ends = np.cumsum([length for *_, length in stages])
    stage = lambda t: np.searchsorted(ends, t, side="right")  # noqa: E731
    penalty = lambda t: np.array([p for p, _, _ in stages])[np.minimum(stage(t), 2)]  # noqa: E731
    step = lambda t: np.array([s for _, s, _ in stages])[np.minimum(stage(t), 2)]  # noqa: E731
    assert_same(PBAPG(step=step, penalty=penalty), problem, x0, pb_apg(problem, x0, stages))


def staged_pb_apg(problem, x, growth):
    """The same, with stages that end when the projected slope is a share of the gradient of f, and with restarts."""
    f, g, Z = problem[:3]
    upper, lower = f.lipschitz, g.lipschitz
    penalty, share = upper / lower, 0.3
    while True:
        previous, momentum, slope, steepness = x, 0, np.inf, 1.0
        while slope > share * steepness:
            y = x + momentum / (momentum + 3) * (x - previous)
            ascent = at(f, y)[1]
            smoothness = upper + penalty * lower
            previous, x = x, Z.project(y - (ascent + penalty * at(g, y)[1]) / smoothness)
            slope, steepness = smoothness * np.linalg.norm(y - x), np.linalg.norm(ascent)
            momentum = 0 if (y - x) @ (x - previous) > 0.0 else momentum + 1
            yield x, x
        penalty, share = growth * penalty, share / np.sqrt(growth)


@pytest.mark.parametrize("growth", [3.0, 20.0])
def test_pb_apg_without_a_penalty(problem, x0, growth):
    assert_same(PBAPG(growth=growth), problem, x0, staged_pb_apg(problem, x0, growth))


def test_pb_apg_ends_with_the_largest_weight(problem):
    well = Problem(SquaredNorm(), LeastSquares(np.eye(18), 0.1 * np.ones(18)), problem.domain)
    method = PBAPG().for_problem(well)
    plan = method.plan(well)
    state = method.start(well, plan, np.zeros(18))
    method.advance(well, state, plan, 300, keys_of([0]))
    assert 1e10 <= state.penalty[0] * well.lower.lipschitz / well.upper.lipschitz < 2e11
    np.testing.assert_allclose(state.x, 0.1, rtol=1e-9)


def switching(problem, x, step, slack, branches):
    f, g, Z = problem[:3]
    limit = at(g, x)[0]
    points, weights = [], []
    for t in itertools.count():
        value, direction = at(g, x)
        branches.append("f" if value <= limit + slack(t) else "g")
        if branches[-1] == "f":
            points.append(x)
            weights.append(step(t))
            direction = at(f, x)[1]
        x = Z.project(x - step(t) * direction / np.linalg.norm(direction))
        yield x, np.average(points, axis=0, weights=weights)


def nearer_to_the_lower_minimum(problem, x, steps):
    for _ in range(steps):
        x = problem.domain.project(x - 0.3 * at(problem.lower, x)[1])
    return x


def test_switching_gradient(problem, x0):
    step, slack, branches = power(0.2, 0.5), power(0.05, 0.5), []
    x0 = nearer_to_the_lower_minimum(problem, x0, 60)
    method = SwitchingGradient(step=step, slack=slack)
    assert_same(method, problem, x0, switching(problem, x0, step, slack, branches))
    assert min(branches.count("f"), branches.count("g")) >= 5


TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def ball(domain, x):
    return cvxpy.norm(x, 1 if isinstance(domain, L1Ball) else 2) <= domain.radius


class HalfSpaces:
    """The minimiser of a least-squares loss over two half-spaces, by a conic solver."""

    def __init__(self, objective):
        A, b, w = objective.matrix.array, objective.targets, objective.weights
        self.x, self.normals, self.bounds = cvxpy.Variable(A.shape[1]), cvxpy.Parameter((2, A.shape[1])), cvxpy.Parameter(2)
        loss = cvxpy.sum_squares(np.sqrt(w / len(b))[:, None] * A @ self.x - np.sqrt(w / len(b)) * b)
        self.problem = cvxpy.Problem(cvxpy.Minimize(loss), [self.normals @ self.x >= self.bounds])

    def __call__(self, *rows):
        """Minimise where ⟨normal, x⟩ ≥ bound for the rows (normal, bound); a normal of 0 is none."""
        lengths = [np.linalg.norm(normal) for normal, _ in rows]
        scales = [1 / length if length > 1e-12 else 0.0 for length in lengths]
        self.normals.value = np.array([scale * normal for scale, (normal, _) in zip(scales, rows, strict=True)])
        self.bounds.value = np.array([scale * bound for scale, (_, bound) in zip(scales, rows, strict=True)])
        self.problem.solve(**TIGHT)
        return self.x.value


def mng(problem, M):
    """Return x_0 and the step: the next x, and y.

    Each step is made from the library's last point, as the solver's errors would grow from step to step.
    """
    f, g, Z = problem[:3]
    solve = HalfSpaces(f)
    root = np.sqrt(f.weights)
    first = np.linalg.lstsq(root[:, None] * f.matrix.array, root * f.targets, rcond=None)[0]

    def step(x):
        y = Z.project(x - at(g, x)[1] / M)
        G, df = M * (x - y), at(f, x)[1]
        return solve((-G, 3 / (4 * M) * G @ G - G @ x), (df, df @ x)), y

    return first, step


@pytest.mark.parametrize("seed", range(4))
def test_mng(problem, x0, seed):
    A, b = linear_data(seed + 10, n=30)
    problem = problem._replace(upper=LeastSquares(A, b, sample_weight=np.random.default_rng(seed).random(30) + 0.5))
    M = 1.1 * problem.lower.lipschitz
    x, step = mng(problem, M)
    for found, answer in itertools.islice(follow(MNG(step=1 / M), problem, x0, 0), 25):
        expected, y = step(x)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        np.testing.assert_allclose(answer, y, rtol=0, atol=1e-9)
        x = found


class LargerModel:
    """The minimiser over Z of the larger of two linear functions + L/2 ‖x − y‖², by a conic solver."""

    def __init__(self, domain, dimension, lipschitz):
        self.x, self.slopes = cvxpy.Variable(dimension), cvxpy.Parameter((2, dimension))
        self.constants, self.y = cvxpy.Parameter(2), cvxpy.Parameter(dimension)
        larger = cvxpy.max(self.slopes @ self.x + self.constants)
        whole = larger + lipschitz / 2 * cvxpy.sum_squares(self.x - self.y)
        self.problem = cvxpy.Problem(cvxpy.Minimize(whole), [ball(domain, self.x)])

    def __call__(self, y, *models):
        """Minimise for the models (value at y, slope)."""
        self.y.value, self.slopes.value = y, np.array([slope for _, slope in models])
        self.constants.value = np.array([value - slope @ y for value, slope in models])
        self.problem.solve(**TIGHT)
        return self.x.value


def larger_model(problem, d):
    """The steps of FC-BiO, and the least that f can be, from its value and slope at x."""
    f, g, Z = problem[:3]
    solve = LargerModel(Z, d, f.lipschitz)
    weight = f.lipschitz / g.lipschitz

    def step(y, tau, limit, f_y, df, g_y, dg):
        return solve(y, (f_y - tau, df), (weight * (g_y - limit), weight * dg))

    return step, lambda x, value, slope: value + slope @ (minimiser(Z, slope) - x)


def level_sets(problem, d):
    """The steps of Bisec-BiO for f = ½ ‖x‖², and the least that f can be: projections by a root of one variable."""
    g, Z = problem.lower, problem.domain

    def step(y, tau, limit, f_y, df, g_y, dg):
        point, radius = y - dg / g.lipschitz, np.sqrt(2.0 * tau)

        def excess(share):
            return np.linalg.norm(Z.project((1.0 - share) * point)) - radius

        return Z.project(point if excess(0.0) <= 0.0 else (1.0 - brentq(excess, 0.0, 1.0, xtol=1e-15, rtol=1e-15)) * point)

    return step, lambda x, value, slope: 0.5 * np.sum(Z.project(np.zeros(d)) ** 2)


def bisected(problem, x, tolerance, steps, decisions, kind):
    f, g, Z = problem[:3]
    L, weight = f.lipschitz, f.lipschitz / g.lipschitz
    step, least = kind(problem, x.size)
    (value, slope), limit = at(f, x), at(g, x)[0]
    low, first = least(x, value, slope), value
    known, high, epsilon, best, trial, failed, done = low, first, tolerance * (first - low), x, None, False, 0
    while True:
        tau, previous, impossible = (low + high) / 2, x, False
        for k in range(steps):
            y = x + k / (k + 3) * (x - previous)
            (f_y, df), (g_y, dg) = at(f, y), at(g, y)
            previous, x = x, step(y, tau, limit, f_y, df, g_y, dg)
            yield x, best
            model = max(f_y - tau + df @ (x - y), weight * (g_y - limit + dg @ (x - y)))
            moved = np.linalg.norm(x - y)
            impossible = model - L * moved * Z.diameter > 0
            if impossible or model + L / 2 * moved**2 <= epsilon / 2:
                break
        reached = max(at(f, x)[0] - tau, weight * (at(g, x)[0] - limit)) <= epsilon / 2
        decisions.append((reached, "early" if k < steps - 1 else "late"))
        if reached:
            high, trial = tau, x
            best = x if done == 0 else best
        else:
            low, failed, known = tau, True, max(known, tau) if impossible else known
        if high - low <= epsilon and trial is None and first - low > epsilon:
            high = first
            decisions.append("wider")
        elif high - low <= epsilon and not failed and low - known > epsilon:
            low = known
            decisions.append("lower")
        elif high - low <= epsilon:
            best = best if trial is None else trial
            high, epsilon, steps, trial, failed = min(high + 4 * epsilon, first), epsilon / 4, 2 * steps, None, False
            done += 1
            decisions.append("anew")


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # than 1e-10
@pytest.mark.parametrize("unit", [1.0, 8.0])
def test_fc_bio(problem, x0, unit):
    decisions = []
    x0 = nearer_to_the_lower_minimum(problem, x0, 20)
    A, b, w = problem.lower.matrix.array, problem.lower.targets, problem.lower.weights
    problem = problem._replace(lower=LeastSquares(unit * A, unit * b, sample_weight=w))
    method = FCBiO(tolerance=0.1, inner_iterations=4)
    assert_same(method, problem, x0, bisected(problem, x0, 0.1, 4, decisions, larger_model), rounds=60, atol=1e-6)
    assert "anew" in decisions
    assert {each[0] for each in decisions if len(each) == 2} == {True, False}
    assert "early" in {each[1] for each in decisions}


def nearest_in_cut(Z, x, a, b):
    """The projection onto Z where ⟨a, s⟩ ≤ b, by a root of one variable."""

    def excess(multiplier):
        return a @ Z.project(x - multiplier * a) - b

    largest = 1.0
    while excess(0.0) > 0.0 and excess(largest) > 0.0 and largest < 1e8:
        largest *= 2.0
    if excess(0.0) <= 0.0 or excess(largest) > 0.0:
        return Z.project(x if excess(0.0) <= 0.0 else x - largest * a)
    return Z.project(x - brentq(excess, 0.0, largest, xtol=1e-15 * largest, rtol=1e-15) * a)


def agm_bio(problem, x, gamma):
    """Algorithm 1, with the least known g for g_k; steps on g alone are those of the same form."""
    f, g, Z = problem[:3]
    z, best, anchor, weights, level = x, x, x, 0.0, np.inf
    for k in itertools.count():
        y = (k * best + 2 * anchor) / (k + 2)
        value, slope = at(g, y)
        level = min(level, value)
        anchor = Z.project(anchor - (k + 1) / (2 * g.lipschitz) * slope)
        best = (k * best + 2 * anchor) / (k + 2)
        a = gamma(k) * (k + 1) / (4 * f.lipschitz)
        y = (weights * x + a * z) / (weights + a)
        (_, ascent), (value, slope) = at(f, y), at(g, y)
        level = min(level, value)
        z = nearest_in_cut(Z, z - a * ascent, slope, level - value + slope @ y)
        x = (weights * x + a * z) / (weights + a)
        weights += a
        yield x, x


@pytest.mark.parametrize(("step", "gamma"), [(None, lambda k: 0.5 * (k + 1) ** (-2 / 3)), (0.7, lambda k: 0.7)])
def test_agm_bio(problem, x0, step, gamma):
    assert_same(AGMBiO(step=step), problem, x0, agm_bio(problem, x0, gamma), atol=1e-6)


def test_bisec_bio(problem, x0):
    decisions = []
    problem = problem._replace(upper=SquaredNorm())
    x0 = nearer_to_the_lower_minimum(problem, x0, 3)
    method = BisecBiO(tolerance=0.1, inner_iterations=4)
    assert_same(method, problem, x0, bisected(problem, x0, 0.1, 4, decisions, level_sets), rounds=60, atol=1e-6)
    assert "anew" in decisions
    assert {each[0] for each in decisions if len(each) == 2} == {True, False}


@pytest.mark.parametrize("name", ["fc-bio", "bisec-bio"])
def test_bisections_find_better_answers_in_more_iterations(name):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((10, 20))
    b = A @ rng.standard_normal(20)
    nearest = np.linalg.pinv(A) @ b
    problem = Problem(SquaredNorm(), LeastSquares(A, b), L1Ball(40.0))
    with interpreted():
        limits = [{"max_queries": None, "max_iterations": n} for n in (100, 200, 500, 1000)]
        runs = [minimize(problem, name, progress=False, **limit) for limit in limits]
    errors = [np.linalg.norm(run.x - nearest) for run in runs]
    values = [run.lower / problem.lower.value(np.zeros(20)) for run in runs]
    assert errors == sorted(errors, reverse=True)
    assert values == sorted(values, reverse=True)
    assert values[-1] <= 1e-5


# CG-BiO on dictionary learning, as published: sums of squares, and matrices.


def published_cg_bio(A_old, A_new, codes, D, X, delta, gamma0, rounds):
    """Yield D and X after each iteration.

    f = ½ ‖A_new − D X‖² over both, g = ½ ‖A_old − D codes‖² over D alone; columns of D in unit balls, of X in ℓ1 balls of
    radius δ.
    """
    anchor = 0.5 * np.sum((A_old - D @ codes) ** 2)
    for k in range(1, rounds + 1):
        residual, old = D @ X - A_new, D @ codes - A_old
        df_D, df_X, dg = residual @ X.T, D.T @ residual, old @ codes.T
        room = anchor - 0.5 * np.sum(old**2)

        def columns(multiplier, df_D=df_D, dg=dg):
            directions = df_D + multiplier * dg
            return -directions / np.linalg.norm(directions, axis=0)

        def excess(multiplier, D=D, dg=dg, room=room, columns=columns):
            return np.sum(dg * (columns(multiplier) - D)) - room

        largest = 1.0
        while excess(0.0) > 0.0 and excess(largest) > 0.0:
            largest *= 2.0
        multiplier = 0.0 if excess(0.0) <= 0.0 else brentq(excess, 0.0, largest, xtol=1e-14 * largest, rtol=1e-15)
        atoms, rows = np.zeros_like(X), np.abs(df_X).argmax(axis=0)
        atoms[rows, np.arange(X.shape[1])] = -delta * np.sign(df_X[rows, np.arange(X.shape[1])])
        gamma = gamma0 / np.sqrt(k)
        D, X = (1 - gamma) * D + gamma * columns(multiplier), (1 - gamma) * X + gamma * atoms
        yield D, X


def dictionary_problem(A_old, A_new, codes, delta):
    """The same as means over the columns of the data, of one vector."""
    (m, n), p = A_new.shape, codes.shape[0]

    def parts(x):
        return x[: m * p].reshape(p, m).T, x[m * p :].reshape(n, p).T

    def upper(x, indices):
        D, X = parts(x)
        gradient_D, gradient_X = np.zeros((m, p)), np.zeros((p, n))
        residual = D @ X[:, indices] - A_new[:, indices]
        gradient_D += residual @ X[:, indices].T / len(indices)
        np.add.at(gradient_X.T, indices, (D.T @ residual / len(indices)).T)
        return 0.5 * np.sum(residual**2) / len(indices), np.r_[gradient_D.T.ravel(), gradient_X.T.ravel()]

    def lower(x, indices):
        residual = parts(x)[0] @ codes[:, indices] - A_old[:, indices]
        gradient = residual @ codes[:, indices].T / len(indices)
        return 0.5 * np.sum(residual**2) / len(indices), np.r_[gradient.T.ravel(), np.zeros(p * n)]

    domain = Product(D=Columns(L2Ball(1.0), (m, p)), X=Columns(L1Ball(delta), (p, n)))
    size = m * p + p * n
    return Problem(FiniteSum(n, size, upper, convex=False), FiniteSum(A_old.shape[1], size, lower, convex=True), domain)


@pytest.mark.parametrize("kind", ["functions", "means", "sums"])
def test_cg_bio_on_dictionary_learning_as_published(kind):
    m, p, n, delta, gamma0, rounds = 6, 9, 20, 3.0, 0.3, 60
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((m, p))
    truth /= np.linalg.norm(truth, axis=0)
    codes = rng.standard_normal((p, n)) * (rng.random((p, n)) < 0.3)
    A_old = truth @ codes + 0.01 * rng.standard_normal((m, n))
    A_new = truth @ (rng.standard_normal((p, n)) * (rng.random((p, n)) < 0.3))
    D = truth + 0.05 * rng.standard_normal((m, p))
    D /= 1.01 * np.linalg.norm(D, axis=0)
    X = rng.standard_normal((p, n))
    X *= delta / np.abs(X).sum(axis=0)

    problem = dictionary_problem(A_old, A_new, codes, delta)
    if kind != "functions":
        upper, lower = JointDictionaryLoss(A_new, sums=kind == "sums"), DictionaryLoss(A_old, codes, sums=kind == "sums")
        problem = Problem(upper, lower, problem.domain)
    published = published_cg_bio(A_old, A_new, codes, D, X, delta, gamma0, rounds)
    reference = ((flat, flat) for flat in (np.r_[D.T.ravel(), X.T.ravel()] for D, X in published))
    method = CGBiO(preset="paper", step=lambda t: gamma0 / np.sqrt(t + 1), slack=0.0)
    with interpreted():
        assert_same(method, problem, np.r_[D.T.ravel(), X.T.ravel()], reference, rounds=rounds, atol=1e-7)
