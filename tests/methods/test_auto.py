"""Parameters from the problem and the budget: units do not matter, and what is decided is told."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import linear_data

from tiebreak import (
    FISTA,
    PAVR,
    PBAPG,
    SBCGF,
    SBCGI,
    ActiveSet,
    Auto,
    Birkhoff,
    Box,
    CGBiO,
    FiniteSum,
    KSparse,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    Problem,
    SquaredCovariance,
    SquaredNorm,
    minimize,
)
from tiebreak.engine.randomness import keys_of
from tiebreak.methods.base import Budget
from tiebreak.methods.cut_rules import model_at

AUTOMATIC = [SBCGF(preset="auto"), SBCGI(preset="auto"), CGBiO(preset="auto"), Auto()]


def regression(upper=1.0, lower=1.0, data=1.0, variable=1.0):
    """A problem in other units: f and g times numbers, the data times one, the variable times one."""
    (A, a), (B, b) = linear_data(2), linear_data(1)
    f = np.sqrt(upper) * data * B / variable, np.sqrt(upper) * data * b
    g = np.sqrt(lower) * data * A / variable, np.sqrt(lower) * data * a
    return Problem(LeastSquares(*f), LeastSquares(*g), L1Ball(4.0 * variable))


@pytest.mark.parametrize("method", AUTOMATIC, ids=lambda method: method.name)
@pytest.mark.parametrize(
    "units", [{"upper": 4.0**10}, {"upper": 4.0**-10}, {"lower": 4.0**10}, {"lower": 4.0**-10}, {"data": 2.0**20},
              {"data": 2.0**-20}, {"variable": 2.0**10}, {"variable": 2.0**-10}], ids=str
)  # fmt: skip
def test_units_do_not_matter(method, units):
    plain = minimize(regression(), method, max_queries=30_000)
    other = minimize(regression(**units), method, max_queries=30_000)
    np.testing.assert_allclose(other.x / units.get("variable", 1.0), plain.x, rtol=1e-6, atol=1e-9)
    factor = units.get("data", 1.0) ** 2
    rounding = 1e-9 * other.problem.lower.value(np.zeros(other.x.size))  # g* is 0
    assert other.upper == pytest.approx(plain.upper * units.get("upper", 1.0) * factor, rel=1e-6)
    assert other.lower == pytest.approx(plain.lower * units.get("lower", 1.0) * factor, rel=1e-6, abs=rounding)


def test_what_is_decided_is_told():
    result = minimize(regression(), SBCGF(preset="auto"), max_queries=30_000)
    assert result.method.step.value == pytest.approx(4.0 / result.iterations, rel=0.05)
    assert result.method.curvature == regression().upper.lipschitz
    assert result.method.margin == result.settings["parameters"]["margin"] == 3.0
    assert result.method.initial.name == "fista"
    assert [phase.name for phase in result.settings["phases"]] == ["fista", "sbcgf", "fista"]
    assert isinstance(minimize(regression(), max_queries=30_000).method, ActiveSet)
    assert isinstance(minimize(regression()._replace(domain=L2Ball(4.0)), max_queries=30_000).method, PBAPG)


def test_the_choice_follows_the_problem_and_the_budget():
    def chosen(problem, **budget):
        return Auto().for_problem(problem, Budget(**budget)).name

    rng = np.random.default_rng(0)
    large = LeastSquares(rng.standard_normal((400, 4)), rng.standard_normal(400))
    assert chosen(Problem(large, large, L1Ball(1.0))) == "active-set"
    assert chosen(Problem(large, large, L1Ball(1.0)), passes=5.0) == "active-set"  # squares are summed once
    assert chosen(Problem(large, large, Birkhoff(2))) == "active-set"
    wide = LeastSquares(rng.standard_normal((40, 60)), rng.standard_normal(40))
    assert chosen(Problem(wide, wide, L1Ball(1.0)), queries=800) == "active-set"
    assert chosen(Problem(wide, wide, L1Ball(1.0)), queries=400) == "pb-apg"  # 5 passes are too few
    ball = Problem(large, large, L2Ball(1.0))  # it has no corners
    assert chosen(ball) == "pb-apg"
    assert chosen(ball, queries=2_400) == "pavr"  # three passes
    assert chosen(ball, queries=1_200) == chosen(ball, passes=1.5) == "sbcgf"  # too few, also by the clock
    tall = LeastSquares(rng.standard_normal((2000, 4)), rng.standard_normal(2000))
    assert chosen(Problem(large, tall, L2Ball(1.0)), queries=5 * 2400) == "pavr"
    assert chosen(Problem(large, tall, L2Ball(1.0))) == "pavr"
    assert chosen(Problem(large, tall, L2Ball(1.0), keep=0.9)) == "pb-apg"  # g is known to be well conditioned …
    flat = LeastSquares(tall.matrix.array * [1.0, 1.0, 1.0, 0.01], tall.targets)
    assert chosen(Problem(large, flat, L2Ball(1.0), keep=0.9)) == "pavr"  # … and is not
    assert chosen(Problem(large, tall, L2Ball(1.0)), queries=2400) == "sbcgf"
    assert chosen(Problem(SquaredNorm(), tall, L1Ball(1.0)), queries=3 * 2001) == "active-set"  # squares of many rows
    rows = rng.standard_normal((6000, 4))
    labels = Logistic(rows, np.sign(rows[:, 0] + 0.1))
    assert chosen(Problem(SquaredNorm(), labels, L1Ball(1.0))) == "pavr"  # a loss of many rows that cannot be summed up
    assert chosen(Problem(SquaredNorm(), labels, L1Ball(1.0), keep=0.9)) == "active-set"
    assert chosen(Problem(SquaredNorm(), Logistic(tall.matrix.array[:500], np.sign(tall.targets[:500])), L1Ball(1.0))) == (
        "active-set"
    )
    assert chosen(Problem(large, tall, KSparse(2, 1.0, 4))) == "pavr"  # a set of many corners
    plain, few = (FiniteSum(n, 4, large.value_and_gradient, convex=True) for n in (400, 4))  # no curvature is known
    assert chosen(Problem(SquaredNorm(), plain, L1Ball(1.0))) == "pb-apg"  # which begins with an estimate
    assert chosen(Problem(plain, large, Birkhoff(2))) == "sbcgf"  # no projection
    assert chosen(Problem(SquaredNorm(), few, Birkhoff(2))) == "cg-bio"  # few samples
    for n, by_cuts in ((500, "cg-bio"), (5000, "sbcgf")):
        rough = FiniteSum(n, 4, lambda x, i: large.value_and_gradient(x, i % 400), convex=False)
        assert chosen(Problem(rough, large, L1Ball(1.0))) == "pb-apg"
        assert chosen(Problem(rough, large, L1Ball(1.0), keep=0.9)) == by_cuts
        assert chosen(Problem(rough, large, Birkhoff(2))) == by_cuts


def test_steps_with_projections_come_before_an_active_set_that_takes_long():
    rng = np.random.default_rng(0)
    wide = LeastSquares(rng.standard_normal((40, 300)), rng.standard_normal(40))
    box = Problem(SquaredNorm(), wide, Box(-1.0, 1.0, 300))

    def first(problem, **budget):
        method = Auto().for_problem(problem, Budget(**budget))
        assert isinstance(method, ActiveSet)
        return method.initial

    assert isinstance(first(box), PAVR)
    assert isinstance(first(box, queries=240 * 41), PAVR)
    assert first(box, queries=200 * 41) is None  # they would take more than a tenth
    assert first(box._replace(tolerance=0.1)) is None
    assert first(box._replace(domain=L1Ball(1.0))) is None


@pytest.mark.parametrize("method", AUTOMATIC, ids=lambda method: method.name)
def test_convexity_is_asked_for_where_it_is_not_known(method):
    unknown = FiniteSum(12, 18, lambda x, indices: (0.0, np.zeros(18)))
    with pytest.raises(ValueError, match="whether the upper objective is convex, and that is not known: say so where it is"):
        minimize(Problem(unknown, regression().lower, L1Ball(1.0)), method)


@pytest.mark.parametrize("kind", [SBCGF, SBCGI, CGBiO])
def test_a_run_without_a_counted_end_has_steps_that_shrink(kind):
    method = kind(preset="auto").for_problem(regression(), Budget())
    steps = method.given("step")(np.array([0, 1000, 1_000_000]))
    assert (np.diff(steps) < 0.0).all()


def test_where_f_is_not_convex_steps_fall_to_zero_and_its_estimate_is_renewed_faster():
    T = np.array([0, 500, 1000])
    rough = Problem(FiniteSum(12, 18, regression().upper.value_and_gradient, convex=False), *regression()[1:])
    method = SBCGI(preset="auto").for_problem(rough, Budget(iterations=1000.0))
    step, momentum, upper_momentum = (method.given(name)(T) for name in ("step", "momentum", "upper_momentum"))
    np.testing.assert_allclose(step, 0.5 * 1000 ** (-2 / 3) * np.array([1.0, 0.5, 0.0]))
    assert (upper_momentum > momentum).all()
    for kind in (SBCGF, CGBiO):
        step = kind(preset="auto").for_problem(rough, Budget(iterations=1000.0)).given("step")(T)
        np.testing.assert_allclose(step, 0.5 / np.sqrt(1000) * np.array([1.0, 0.5, 0.0]))


def test_the_estimates_of_both_levels_have_one_momentum_unless_told_otherwise():
    for method in (SBCGI(momentum=0.3), SBCGI(preset="paper", momentum=0.3)):
        plan = method.for_problem(regression()).plan(regression())
        np.testing.assert_array_equal(plan.upper.momentum(np.arange(3)), plan.lower.momentum(np.arange(3)))
    plan = SBCGI(momentum=0.3, upper_momentum=0.1).plan(regression())
    assert plan.lower.momentum(np.arange(1))[0] == 0.3 and plan.upper.momentum(np.arange(1))[0] == 0.1


@pytest.mark.parametrize("kind", [SBCGI, SBCGF])
def test_a_constant_that_is_added_to_g_changes_nothing(kind):
    lower, upper = regression().lower, regression().upper

    def shifted(x, indices):
        value, gradient = lower.value_and_gradient(x, indices)
        return value + 1000.0, gradient

    ends = []
    for function in (lower.value_and_gradient, shifted):
        problem = Problem(upper, FiniteSum(12, 18, function, convex=True), L1Ball(4.0))
        ends.append(minimize(problem, kind(preset="auto"), x0=np.zeros(18), max_queries=3000).x)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-6)


def test_an_expensive_first_iteration_is_counted_once():
    rng = np.random.default_rng(0)
    large = LeastSquares(rng.standard_normal((50_000, 2)), np.zeros(50_000))
    problem = Problem(large, large, L1Ball(1.0))
    horizon = SBCGI(preset="auto").horizon(problem, Budget(queries=1_000_000.0))
    assert horizon == pytest.approx(900_000 / 8, rel=0.01)


def test_sums_of_python_functions_need_no_parameters():
    rough = FiniteSum(12, 18, regression().upper.value_and_gradient, convex=True, lipschitz=regression().upper.lipschitz)
    problem = Problem(rough + 0.1 * SquaredNorm(), regression().lower, L1Ball(4.0))
    assert minimize(problem, max_queries=20_000).method.name == "pb-apg"


@pytest.mark.parametrize("kind", [SBCGI, SBCGF])
def test_three_standard_errors_keep_a_minimiser_of_g_in_the_cut_where_none_loses_it(kind):
    (A, a), noise = linear_data(2), np.tile([1.0, -1.0], 12)  # rows twice, with different targets: terms disagree at x_0
    problem = regression()._replace(lower=LeastSquares(np.repeat(A, 2, axis=0), np.repeat(a, 2) + noise))
    x0 = minimize(problem, FISTA(level="lower"), max_queries=200_000).x
    method = kind(preset="auto", step=1e-4, **({"momentum": 0.02} if kind is SBCGI else {})).for_problem(problem)
    plan, keys = method.plan(problem), keys_of([0])
    state = method.start(problem, plan, x0)
    excess, errors = [], []
    for _ in range(600):
        before = state.x.copy()
        method.advance(problem, state, plan, 1, keys)
        excess.append(model_at(state.lower, x0, before) - state.anchor[0])  # > 0: x_0 is cut off without slack
        errors.append(np.sqrt(state.variance[0]))
    excess, errors = np.array(excess), np.array(errors)
    assert (excess > 0.0).mean() > 0.1
    assert (excess > 3.0 * errors).mean() < 0.02


@pytest.mark.parametrize("kind", [CGBiO, SBCGF])
def test_g_does_not_rise_far_though_the_set_is_much_larger_than_what_matters(kind):
    rng = np.random.default_rng(5)
    A = np.column_stack([rng.random((400, 8)), np.ones(400)])
    groups = (A[:, 0] + 0.5 * rng.random(400) > 0.75).astype(float)
    labels = np.sign(A[:, 0] + A[:, 1] - 1.0 + 0.4 * rng.standard_normal(400))
    problem = Problem(SquaredCovariance(A, groups), Logistic(A, labels), L1Ball(100.0))
    plain = minimize(problem, FISTA(level="lower"), max_queries=2_000_000)
    runs = [minimize(problem, kind(preset="auto", allowance=a), max_queries=1_000_000) for a in (None, 0.0)]
    limited, free = ([row for row in result.history.records if row.phase == 1][-1] for result in runs)
    assert runs[0].method.allowance == pytest.approx(1e-3 * np.log(2.0))
    assert limited.lower - plain.lower < 0.6 * (free.lower - plain.lower)
    assert limited.upper < 0.5 * plain.upper
    assert runs[0].lower < plain.lower + 1e-3 * np.log(2.0)  # whatever the steps were
