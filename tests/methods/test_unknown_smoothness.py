"""Objectives that know no smoothness constant: methods begin with an estimate and raise it where gradients show more."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from conftest import make_objective

from tiebreak import (
    FISTA,
    PAVR,
    PBAPG,
    SBCGF,
    BiFISTA,
    Box,
    FiniteSum,
    Huber,
    L1Ball,
    L2Ball,
    LeastSquares,
    Problem,
    SquaredNorm,
    certify,
    from_jax,
    from_torch,
    minimize,
)
from tiebreak.engine import interpreted
from tiebreak.engine.randomness import keys_of
from tiebreak.methods.unknown import ROWS, SINGLE, smoothness_of
from tiebreak.objectives.constants import charging
from tiebreak.schedules import evaluated, power, stages

N, D, LEVEL, WIDTH = 300, 10, 0.8, 0.1  # rows, columns, the quantile, and how far its kink is rounded
NAMES = ["pb-apg", "bi-fista"]
LOOPS = ["pb-apg", "pb-apg-penalty", "bi-fista", "fista"]


def rows(seed=0, rank=6):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, rank)) @ rng.standard_normal((rank, D)) / math.sqrt(rank)
    return A, A @ rng.standard_normal(D) + rng.standard_normal(N)


A, B = rows()
CONSTANT = float(np.linalg.eigvalsh(A.T @ A / N)[-1]) / (4.0 * WIDTH)


def pinball(x, indices):
    """The loss of a quantile, with its kink rounded."""
    residual = B[indices] - A[indices] @ x
    slopes = LEVEL - 1.0 / (1.0 + np.exp(np.clip(residual / WIDTH, -700.0, 700.0)))
    value = LEVEL * residual + WIDTH * np.logaddexp(0.0, -residual / WIDTH)
    return float(value.mean()), -(slopes @ A[indices]) / indices.size


def as_function(**known):
    return FiniteSum(N, D, pinball, convex=True, floor=0.0, **known)


def as_jax(**known):
    jax = pytest.importorskip("jax")

    def loss(x, batch):
        residual = batch[1] - batch[0] @ x
        return (LEVEL * residual + WIDTH * jax.numpy.logaddexp(0.0, -residual / WIDTH)).mean()

    return from_jax(loss, np.zeros(D), (A, B), convex=True, floor=0.0, **known)


def as_torch(dtype="float64", **known):
    torch = pytest.importorskip("torch")

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(D, dtype=getattr(torch, dtype)))

        def forward(self, batch):
            return batch @ self.weight

    def loss(predicted, targets):
        residual = targets - predicted
        return (LEVEL * residual + WIDTH * torch.nn.functional.softplus(-residual / WIDTH)).mean()

    data = tuple(torch.tensor(each, dtype=getattr(torch, dtype)) for each in (A, B))
    return from_torch(Linear(), loss, data, convex=True, floor=0.0, dtype=dtype, **known)


@pytest.fixture(scope="module")
def best():
    """The values at the solution, from many passes."""
    result = minimize(Problem(SquaredNorm(), as_function(), L2Ball(5.0)), BiFISTA(), max_iterations=5000)
    assert result.lower_gap_bound < 1e-5
    return result.lower, result.upper


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("made", [as_function, as_jax, as_torch], ids=["function", "jax", "torch"])
def test_a_quantile_is_found_as_well_without_a_constant_as_with_it(made, name, best):
    known, unknown = (
        minimize(Problem(SquaredNorm(), made(**facts), L2Ball(5.0)), name, max_queries=200_000)
        for facts in ({"lipschitz": CONSTANT}, {})
    )
    assert sum(unknown.queries) <= 200_000
    assert unknown.lower - best[0] <= max(known.lower - best[0], 1e-6)
    assert abs(unknown.upper - best[1]) <= max(abs(known.upper - best[1]), 1e-3)


@pytest.mark.parametrize("domain", [L1Ball(5.0), Box(-0.5 * np.ones(D), 0.5 * np.ones(D))], ids=["l1-ball", "box"])
@pytest.mark.parametrize(
    "method", [PBAPG(penalty=stages(1.0, 10.0, 50)), BiFISTA(regularization=power(1.0, 1.5))], ids=NAMES
)
def test_it_is_so_on_other_sets_and_with_either_level_or_both_unknown(domain, method):
    upper = Huber(*rows(seed=1), delta=0.3)
    told = FiniteSum(N, D, upper.value_and_gradient, convex=True, floor=0.0, lipschitz=upper.lipschitz)
    told_nothing = FiniteSum(N, D, upper.value_and_gradient, convex=True, floor=0.0)
    known = minimize(Problem(told, as_function(lipschitz=CONSTANT), domain), method, max_iterations=200)
    for problem in (
        Problem(told_nothing, as_function(lipschitz=CONSTANT), domain),
        Problem(told, as_function(), domain),
        Problem(told_nothing, as_function(), domain),
    ):
        unknown = minimize(problem, method, max_iterations=200)
        assert unknown.lower <= known.lower + 1e-3
        assert "steps follow an estimate of the smoothness of the" in unknown.message


def test_the_message_names_the_level_and_says_what_would_help():
    unknown = minimize(Problem(SquaredNorm(), as_function(), L2Ball(5.0)), "pb-apg", max_iterations=20)
    assert unknown.message.endswith(
        "; steps follow an estimate of the smoothness of the lower objective, which knows no constant: lipschitz=..., if you"
        " know one, makes them safe"
    )
    known = minimize(Problem(SquaredNorm(), as_function(lipschitz=CONSTANT), L2Ball(5.0)), "pb-apg", max_iterations=20)
    assert known.message == "budget spent: max_iterations=20 were made"
    steps = BiFISTA(step=0.01, regularization=0.1)
    given = minimize(Problem(SquaredNorm(), as_function(), L2Ball(5.0)), steps, max_iterations=9)
    assert given.message == "budget spent: max_iterations=9 were made"


def test_what_an_estimate_takes_is_counted_as_drawn_and_once():
    problem = Problem(SquaredNorm(), as_function(), L2Ball(5.0))
    unknown = minimize(problem, "pb-apg", max_iterations=10)
    assert unknown.queries.lower == unknown.evaluations.lower == (5 + 10) * N
    assert unknown.queries.upper == 10
    near = minimize(Problem(SquaredNorm(), as_function(), L2Ball(5.0), tolerance=1e-2), "pb-apg", max_queries=60 * N)
    assert near.queries.lower <= 60 * N  # two phases, and one estimate for both
    assert [type(each) for each in near.settings["phases"]] == [FISTA, PBAPG]


def test_an_estimate_looks_at_some_rows_of_many():
    seen = []

    def squares(x, indices):
        seen.append(indices.size)
        return 0.5 * float(x @ x), x.copy()

    problem = Problem(SquaredNorm(), FiniteSum(10**6, D, squares, convex=True), L2Ball(5.0))
    with charging() as bill:
        found = smoothness_of(problem, "lower")
        assert found == smoothness_of(problem, "lower")
    assert max(seen) == ROWS and len(seen) < 100
    assert found.whole == pytest.approx(1.0) and found.sample == pytest.approx(1.0) and found.estimated
    charges = bill.settle()
    assert sum(charge.evaluations for charge in charges) == sum(seen)
    assert sum(charge.queries for charge in charges) == ROWS + SINGLE  # each row counts as drawn once
    assert math.isnan(problem.lower.lipschitz)


@pytest.mark.parametrize("kind", ["least-squares", "huber", "logistic"])
def test_estimates_are_at_most_the_constants_and_not_far_below(kind):
    objective = make_objective(kind, seed=2)
    asked = FiniteSum(12, 18, objective.value_and_gradient, convex=True)
    found = smoothness_of(Problem(SquaredNorm(), asked, L2Ball(2.0)), "lower")
    assert 0.2 * objective.lipschitz <= found.whole <= objective.lipschitz * (1.0 + 1e-9)
    assert 0.2 * objective.sample_lipschitz <= found.sample <= objective.sample_lipschitz * (1.0 + 1e-9)
    known = smoothness_of(Problem(SquaredNorm(), objective, L2Ball(2.0)), "lower")
    assert known == (objective.lipschitz, objective.sample_lipschitz, False)


def test_bounds_hold_and_are_those_of_the_same_point_with_the_constant():
    with_it, without = (Problem(SquaredNorm(), as_function(**facts), L2Ball(5.0)) for facts in ({"lipschitz": CONSTANT}, {}))
    result = minimize(without, "pb-apg", max_iterations=50)
    first, second = (certify(problem, result.x) for problem in (with_it, without))
    assert (first.lower_gap_bound, first.upper_gap_bound) == (second.lower_gap_bound, second.upper_gap_bound)
    assert math.isnan(result.problem.lower.lipschitz)


# Adversarial losses


def test_a_constant_that_varies_by_a_million_over_the_set_is_that_of_the_path():
    directions = 4.0 * A / np.linalg.norm(A, axis=1)[:, None]

    def exponential(x, indices):
        values = np.exp(directions[indices] @ x)
        return float(values.mean()), values @ directions[indices] / indices.size

    largest = float(np.linalg.eigvalsh(directions.T @ directions / N)[-1]) * math.exp(8.0)
    lowers = [FiniteSum(N, D, exponential, convex=True, **facts) for facts in ({"lipschitz": largest}, {})]
    known, unknown = (
        minimize(Problem(SquaredNorm(), lower, L2Ball(2.0)), "bi-fista", max_iterations=200) for lower in lowers
    )
    assert unknown.lower_gap_bound < 1e-2 * known.lower_gap_bound


@pytest.mark.parametrize("known", [{}, {"lipschitz": 0.0}], ids=["unknown", "zero"])
@pytest.mark.parametrize("name", NAMES)
def test_a_linear_objective_above_has_a_weight_of_its_own_length(known, name):
    c = np.random.default_rng(0).standard_normal(D)
    loss = LeastSquares(A, A @ np.full(D, 0.1))
    lower = FiniteSum(N, D, loss.value_and_gradient, convex=True, floor=0.0)
    upper = FiniteSum(1, D, lambda x, indices: (float(c @ x), c.copy()), convex=True, **known)
    result = minimize(Problem(upper, lower, L2Ball(2.0)), name, max_iterations=2000)
    least, free = np.linalg.pinv(A) @ loss.targets, np.linalg.svd(A)[2][6:]
    solution = c @ least - np.linalg.norm(free @ c) * math.sqrt(4.0 - least @ least)
    assert result.lower < 1e-5
    assert abs(result.upper - solution) < 0.02
    assert ("of the upper objective" in result.message) == (not known)


@pytest.mark.parametrize("name", NAMES)
def test_linear_and_constant_objectives_end_where_they_should(name):
    c = np.arange(1.0, D + 1.0)
    linear = FiniteSum(1, D, lambda x, indices: (float(c @ x), c.copy()), convex=True)
    constant = FiniteSum(1, D, lambda x, indices: (0.0, np.zeros(D)), convex=True)
    below = minimize(Problem(SquaredNorm(), linear, L2Ball(2.0)), name, max_iterations=500)
    np.testing.assert_allclose(below.x, -2.0 * c / np.linalg.norm(c), atol=1e-6)
    loss = FiniteSum(N, D, LeastSquares(A, A @ np.full(D, 0.1)).value_and_gradient, convex=True, floor=0.0)
    assert minimize(Problem(constant, loss, L2Ball(2.0)), name, max_iterations=1000).lower < 1e-10
    flat = minimize(Problem(SquaredNorm(), constant, L2Ball(2.0)), name, x0=np.full(D, 0.5), max_iterations=500)
    assert flat.upper < 1e-6 and "jump" not in flat.message


@pytest.mark.parametrize("name", NAMES)
def test_a_flat_start_hides_nothing(name):
    def flat(x, indices):
        beyond = np.maximum(np.abs(x - 0.4) - 0.5, 0.0)
        return 0.5 * float(beyond @ beyond), beyond * np.sign(x - 0.4)

    upper = FiniteSum(1, D, flat, convex=True, floor=0.0)
    loss = LeastSquares(A, A @ np.ones(D))
    lower = FiniteSum(N, D, loss.value_and_gradient, convex=True, floor=0.0)
    assert smoothness_of(Problem(upper, lower, L2Ball(5.0)), "upper").whole > 0.05
    assert minimize(Problem(upper, lower, L2Ball(5.0)), name, max_iterations=1000).lower < 1e-4


@pytest.mark.parametrize("name", [*NAMES, "fista"])
@pytest.mark.parametrize("known", [{}, {"lipschitz": 10.0}], ids=["unknown", "known"])
def test_a_function_is_asked_on_the_set_alone(name, known):
    def logarithm(x, indices):
        assert np.linalg.norm(x) <= 1.0 + 1e-12
        share = 1.0 + 0.9 * x.sum() / math.sqrt(D)
        return -math.log(share), np.full(D, -0.9 / math.sqrt(D) / share)

    lower = FiniteSum(1, D, logarithm, convex=True, **known)
    method = FISTA(level="lower") if name == "fista" else name
    result = minimize(Problem(SquaredNorm(), lower, L2Ball(1.0)), method, max_iterations=300, check=False)
    assert result.error is None
    assert result.lower == pytest.approx(-math.log(1.9), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_kinks_neither_stall_nor_diverge_and_are_named(name):
    targets = A @ np.full(D, 0.2) + 0.1 * np.sin(np.arange(N))

    def absolute(x, indices):
        residual = A[indices] @ x - targets[indices]
        return float(np.abs(residual).mean()), np.sign(residual) @ A[indices] / indices.size

    lower = FiniteSum(N, D, absolute, convex=True, floor=0.0)
    result = minimize(Problem(SquaredNorm(), lower, L2Ball(2.0)), name, max_iterations=2000)
    best = minimize(Problem(SquaredNorm(), Huber(A, targets, delta=1e-3), L2Ball(2.0)), "bi-fista", max_iterations=3000).x
    assert result.lower <= 1.2 * lower.value(best) < 0.5 * lower.value(np.zeros(D))
    assert "; the gradient of the lower objective seems to jump" in result.message
    assert "round its kinks" in result.message


@pytest.mark.parametrize("known", [{}, {"lipschitz": CONSTANT}], ids=["unknown", "known"])
def test_rounding_in_single_precision_raises_no_constant(known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that float32 keeps 7 digits
        lower = as_torch(dtype="float32", **known)
    problem = Problem(SquaredNorm(), lower, L2Ball(5.0))
    method = FISTA(level="lower").for_problem(problem)
    plan = method.plan(problem)
    state = method.start(problem, plan, np.full(D, 0.3))
    assert method.advance(problem, state, plan, 400, keys_of([0])) == 0
    assert state.curvature.smoothness[0] <= 2.2 * CONSTANT


def test_what_is_not_finite_shows_nothing():
    centre = np.zeros(D)

    def broken(x, indices):
        if np.linalg.norm(x - centre) > 0.1:
            return math.inf, x.copy()
        return 0.5 * float(x @ x), x.copy()

    lower = FiniteSum(1, D, broken, convex=True)
    found = smoothness_of(Problem(SquaredNorm(), lower, L2Ball(5.0)), "lower")
    assert found.whole == pytest.approx(1.0)
    centre += 10.0
    assert smoothness_of(Problem(SquaredNorm(), lower, L2Ball(5.0)), "lower").whole == 1.0
    squares = FiniteSum(1, D, lambda x, indices: (0.5 * float(x @ x), x.copy()), convex=True)
    assert smoothness_of(Problem(SquaredNorm(), squares, Box(np.ones(D), np.ones(D))), "lower").whole == 1.0


@pytest.mark.parametrize("tail", [1.0, 10.0], ids=["even", "uneven"])
def test_variance_reduction_finds_its_constants_too(tail):
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((4000, D))
    wide[::100] *= tail
    loss = Huber(wide, wide @ rng.standard_normal(D) + rng.standard_normal(4000), delta=0.1)
    asked = FiniteSum(4000, D, loss.value_and_gradient, convex=True, floor=0.0)
    best = minimize(Problem(SquaredNorm(), loss, L2Ball(5.0)), "bi-fista", max_iterations=3000).lower
    problem = Problem(SquaredNorm(), asked, L2Ball(5.0))
    result = minimize(problem, PAVR(), max_queries=20 * 4000)
    assert result.lower - best <= 1e-3 * (asked.value(np.zeros(D)) - best)
    assert sum(result.queries) <= 20 * 4000
    assert "steps follow an estimate of the smoothness of the lower objective" in result.message
    far_too_small = PAVR(smoothness=(1.0, 1e-3 * loss.lipschitz, 0.0, 1e-3 * loss.lipschitz))
    raised = minimize(problem, far_too_small, max_queries=20 * 4000)
    assert raised.lower - best <= 1e-2 * (asked.value(np.zeros(D)) - best)


def test_variance_reduction_raises_estimates_the_same_way_compiled_and_interpreted():
    problem = Problem(make_objective("huber", seed=1), make_objective("logistic", seed=2), L1Ball(6.0))
    method = PAVR(smoothness=(1e-3, 1e-3, 1e-3, 1e-3)).for_problem(problem)
    plan = method.plan(problem)

    def run():
        state = method.start(problem, plan, problem.center)
        assert method.loop(problem, state, plan, 60, keys_of([7])) == 0
        return np.append(state.x, state.raised)

    compiled = run()
    assert compiled[-1] > 10.0
    with interpreted():
        np.testing.assert_allclose(run(), compiled, rtol=1e-10, atol=1e-10)


# The loops


@pytest.mark.parametrize(
    "method", [PBAPG(), PBAPG(penalty=stages(1.0, 10.0, 10)), BiFISTA(), FISTA(level="lower")], ids=LOOPS
)
def test_estimates_are_raised_the_same_way_compiled_and_interpreted(method):
    problem = Problem(make_objective("huber", seed=1), make_objective("logistic", seed=2), L1Ball(6.0))
    method = method.for_problem(problem)
    plan = method.plan(problem)
    values = evaluated(plan, np.arange(60))

    def run():
        state = method.start(problem, plan, problem.center)
        known = state.curvature if isinstance(method, FISTA) else state.lower_curvature
        known.smoothness[0], known.width[0] = 1e-3 * problem.lower.lipschitz, problem.domain.diameter
        state.glide.inside[0] = 1
        assert method.loop(problem, state, values, 60, keys_of([7])) == 0
        return np.append(state.x, known.smoothness)

    compiled = run()
    assert 1e-2 * problem.lower.lipschitz < compiled[-1] <= 2.2 * problem.lower.lipschitz
    with interpreted():
        np.testing.assert_allclose(run(), compiled, rtol=1e-10, atol=1e-10)


def test_a_pair_of_constants_to_begin_with_can_be_given():
    problem = Problem(SquaredNorm(), as_function(), L2Ball(5.0))
    result = minimize(problem, PBAPG(smoothness=(1.0, 0.5)), max_iterations=10)
    assert result.queries.lower == 10 * N
    assert result.method.smoothness == (1.0, 0.5)
    for wrong in (1.0, (1.0,), (1.0, 0.0), (1.0, math.nan)):
        with pytest.raises(ValueError, match="^`smoothness` must be"):
            PBAPG(smoothness=wrong)


def test_the_search_for_a_first_point_is_accelerated_without_a_constant():
    result = minimize(Problem(SquaredNorm(), as_function(), L2Ball(5.0)), SBCGF(), max_queries=100_000)
    assert isinstance(result.settings["phases"][0], FISTA)


def test_a_run_that_continues_from_a_checkpoint_ends_with_the_same_bits(tmp_path):
    problem, path = Problem(SquaredNorm(), as_function(), L2Ball(5.0)), tmp_path / "run.npz"
    whole = minimize(problem, "pb-apg", max_iterations=60)
    minimize(problem, "pb-apg", max_iterations=25, checkpoint=path)
    parts = minimize(problem, "pb-apg", max_iterations=60, checkpoint=path)
    np.testing.assert_array_equal(parts.x, whole.x)
    assert parts.queries == whole.queries
