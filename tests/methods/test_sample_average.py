"""Streams whose samples are kept: the problem of their means is solved, and proven on fresh samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import tiebreak
from tiebreak import (
    PAVR,
    SBCGF,
    Box,
    L1Ball,
    L2Ball,
    LeastSquares,
    OnPart,
    OracleError,
    Problem,
    Product,
    Record,
    SampleAverage,
    Simplex,
    SquaredNorm,
    Status,
    Stream,
    minimize,
    sources,
)
from tiebreak.active.gathering import ROWS_PER_DRAW, rows_before
from tiebreak.methods.base import Budget
from tiebreak.objectives.adapters.keeping import Keeping
from tiebreak.objectives.losses import HuberLoss, loss

TRUTH = np.array([1.0, 0.0, -1.0, 0.5])
NOISE = 0.3


def rows(rng, size):
    A = rng.standard_normal((size, 4))
    return A, A @ TRUTH + NOISE * rng.standard_normal(size)


def labelled(rng, size):
    A = rng.standard_normal((size, 4))
    return A, np.where(rng.random(size) < 1.0 / (1.0 + np.exp(-A @ TRUTH)), 1.0, -1.0)


def squares(x, batch):
    A, b = batch
    residual = A @ x - b
    return 0.5 * np.mean(residual**2), residual @ A / b.size


def gap(x):
    """E of the squares at x, less that at the truth."""
    return 0.5 * np.sum((x - TRUTH) ** 2)


class Cubic(NamedTuple):
    """A scalar loss of one's own: whether it is strictly convex nobody says."""

    scale: float


@loss.register(Cubic)
def cubic(scalar, prediction, target):
    size = abs(prediction - target)
    return scalar.scale * size**3, 3.0 * scalar.scale * size * (prediction - target)


BY_HAND = Stream(rows, squares, 4, convex=True, floor=0.0)
STREAMS = {
    "squares": Stream.of_rows(rows, 4),
    "huber": Stream.of_rows(rows, 4, "huber"),
    "logistic": Stream.of_rows(labelled, 4, "logistic"),
    "by hand": BY_HAND,
}
BALL = L2Ball(3.0)
PROBLEM = Problem(SquaredNorm(), BY_HAND, BALL)


class Few:
    """A source that ends after some rows."""

    def __init__(self, count):
        self.left = count

    def __call__(self, rng, size):
        size = min(size, self.left)
        self.left -= size
        return rows(rng, size)


def same(a, b):
    """Assert that two runs have the same bits."""
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.queries, a.evaluations, a.iterations, a.status) == (b.queries, b.evaluations, b.iterations, b.status)
    assert (a.upper_gap_bound, a.lower_gap_bound) == (b.upper_gap_bound, b.lower_gap_bound)
    for column in set(Record._fields) - {"seconds"}:
        assert getattr(a.history, column).tobytes() == getattr(b.history, column).tobytes()


# Answers


@pytest.mark.parametrize("domain", [L1Ball(6.0), BALL, Box(-2.0, 2.0, 4)], ids=lambda domain: type(domain).__name__)
@pytest.mark.parametrize("name", STREAMS)
def test_answers_are_as_near_as_those_of_ordinary_estimates_on_as_many_samples(name, domain):
    ours, theirs = [], []
    for seed in range(2):
        problem = Problem(SquaredNorm(), STREAMS[name], domain)
        result = minimize(problem, "sample-average" if name == "by hand" else "auto", max_queries=10_000, seed=seed)
        A, b = (labelled if name == "logistic" else rows)(np.random.default_rng(100 + seed), 10_000)
        model = tiebreak.Logistic(A, b) if name == "logistic" else LeastSquares(A, b)
        whole = minimize(Problem(SquaredNorm(), model, L1Ball(6.0)), "active-set").x
        assert result.queries.total <= 10_000
        ours.append(np.linalg.norm(result.x - TRUTH))
        theirs.append(np.linalg.norm(whole - TRUTH))
    assert np.mean(ours) <= 3.0 * np.mean(theirs)


def test_it_says_what_it_kept():
    result = minimize(PROBLEM, "sample-average", max_queries=10_000)
    assert result.method == SampleAverage(samples=9000)
    assert result.status is Status.SOLVED
    assert result.message.endswith("for the mean of 9,000 samples kept in 0.4 MB, by 'pavr'")
    assert result.certificate.confidence == 0.95
    assert result.queries == (0, 9000)
    assert result.evaluations.lower >= 50 * 9000
    summed = minimize(Problem(SquaredNorm(), STREAMS["squares"], BALL), max_queries=10_000)
    assert summed.message.endswith("for the mean of 9,000 samples summed up, by 'pb-apg'")


def test_auto_takes_it_where_ties_survive_sampling():
    chosen = {
        "sample-average": [
            Problem(SquaredNorm(), STREAMS["huber"], BALL),
            Problem(SquaredNorm(), 2.0 * STREAMS["logistic"], BALL),
            PROBLEM._replace(tolerance=0.1),
            Problem(SquaredNorm(), Stream(rows, squares, 4, convex=True, strong_convexity=0.5), BALL),
            Problem(BY_HAND, LeastSquares(np.eye(4), TRUTH), BALL),
        ],
        "active-set": [Problem(SquaredNorm(), STREAMS["squares"], L1Ball(3.0))],
        "sbcgi": [PROBLEM, Problem(SquaredNorm(), Stream.of_rows(rows, 4, Cubic(1.0), convex=True), BALL)],
    }
    for name, problems in chosen.items():
        for problem in problems:
            assert tiebreak.Auto().chosen(problem, Budget(queries=10_000)).name == name
    assert "'sample-average' comes much nearer for Stream.of_rows" in minimize(PROBLEM, max_queries=1000).message


def test_a_tolerance_wider_than_noise_lets_f_choose():
    def values(rng, size):
        return 1.0 + rng.standard_normal((size, 4)) * 0.1 + [0.0, 0.0, 0.0, 1.0]

    noisy = Stream(values, lambda x, v: (v.mean(axis=0) @ x, v.mean(axis=0)), 4, convex=True)
    problem = Problem(SquaredNorm(), noisy, Simplex(1.0))
    even = minimize(problem._replace(tolerance=0.01), max_queries=5000)
    assert even.method.name == "sample-average"
    np.testing.assert_allclose(even.x, [1 / 3, 1 / 3, 1 / 3, 0.0], atol=0.05)


def test_the_answer_is_that_of_the_kept_samples():
    kept = []

    def remembered(rng, size):
        kept.append(rows(rng, size))
        return kept[-1]

    method = SampleAverage(samples=3000, solver=PAVR(), passes=200)
    plan = method.plan(PROBLEM)
    problem = Problem(SquaredNorm(), Stream(remembered, squares, 4, convex=True), L1Ball(1.0))
    state = method.start(problem, plan, problem.center)
    while not method.finished(state):
        method.advance(problem, state, plan, 10, tiebreak.engine.randomness.keys_of([0]))
    A, b = (np.concatenate(column) for column in zip(*kept, strict=True))
    assert b.size == 3000
    best = minimize(Problem(SquaredNorm(), LeastSquares(A, b), L1Ball(1.0)), "active-set")
    np.testing.assert_allclose(state.x, best.x, atol=1e-3)


def test_bounds_of_many_runs_fail_no_more_often_than_is_said():
    failures = 0
    for seed in range(200):
        result = minimize(
            Problem(SquaredNorm(), STREAMS["squares"], BALL), SampleAverage(passes=1), max_queries=600, seed=seed
        )
        failures += not (
            gap(result.x) <= result.lower_gap_bound and result.upper - result.upper_gap_bound <= 0.5 * TRUTH @ TRUTH
        )
    assert failures <= 20  # 10 are expected at most: more than 20 have a probability below 0.1 %


def test_near_ties_are_solved_for_the_means():
    epsilon = 0.05
    for domain in (BALL, L1Ball(5.0)):
        for stream in (BY_HAND, STREAMS["squares"]):
            exact, near = (
                minimize(Problem(SquaredNorm(), stream, domain, tolerance=tolerance), "sample-average", max_queries=40_000)
                for tolerance in (0.0, epsilon)
            )
            assert near.upper < exact.upper
            assert gap(near.x) == pytest.approx(epsilon, rel=0.25)
    kept = minimize(Problem(SquaredNorm(), BY_HAND, BALL, keep=0.95), "sample-average", max_queries=40_000)
    assert gap(kept.x) == pytest.approx(0.05 * gap(np.zeros(4)), rel=0.25)


def test_both_levels_may_be_streams_or_the_upper_one_alone():
    flat = Stream.of_rows(lambda rng, size: (np.tile([1.0, 1.0, 0.0, 0.0], (size, 1)), np.ones(size)), 4, "huber")
    for lower in (flat, LeastSquares([[1.0, 1.0, 0.0, 0.0]] * 30, np.ones(30))):
        result = minimize(Problem(BY_HAND, lower, BALL), "sample-average", max_queries=20_000)
        np.testing.assert_allclose(result.x, TRUTH, atol=0.05)
        assert result.queries.total <= 20_000
        assert result.queries.upper > 0
        assert result.queries.lower > 0


def test_streams_in_sums_multiples_and_parts_are_found():
    mixed = 2.0 * BY_HAND + 0.5 * SquaredNorm()
    result = minimize(Problem(SquaredNorm(), mixed, BALL), "sample-average", max_queries=10_000)
    np.testing.assert_allclose(result.x, TRUTH * 2.0 / 2.5, atol=0.03)
    both = Product(u=(L1Ball(1.0), 2), w=(BALL, 4))
    placed = Problem(SquaredNorm(), OnPart(STREAMS["huber"], "w"), both)
    result = minimize(placed, "sample-average", max_queries=10_000)
    np.testing.assert_allclose(result.parts["w"], TRUTH, atol=0.05)
    np.testing.assert_allclose(result.parts["u"], 0.0, atol=1e-3)


def test_a_set_without_projection_and_another_solver():
    corners = tiebreak.Hull(np.vstack([3.0 * np.eye(4), -3.0 * np.eye(4)]))
    result = minimize(Problem(SquaredNorm(), STREAMS["huber"], corners), "sample-average", max_queries=10_000)
    np.testing.assert_allclose(result.x, TRUTH, atol=0.05)
    result = minimize(PROBLEM, SampleAverage(solver=SBCGF(), samples=2000))
    assert "'sbcgf'" in result.message


# Budgets, seeds and checkpoints


def test_the_seed_makes_the_run():
    first, second, other = (minimize(PROBLEM, "sample-average", max_queries=3000, seed=seed) for seed in (3, 3, 4))
    same(first, second)
    assert first.x.tobytes() != other.x.tobytes()


@pytest.mark.parametrize("stop", [1, 3, 6, 8])
@pytest.mark.parametrize("name", ["squares", "by hand"])
def test_a_run_that_is_stopped_resumes_bit_for_bit(name, stop, tmp_path):
    problem, method = Problem(SquaredNorm(), STREAMS[name], BALL), SampleAverage(samples=ROWS_PER_DRAW + 5000, passes=5)
    arguments = {"seed": 2, "max_queries": 50_000}
    whole = minimize(problem, method, **arguments)
    part = minimize(problem, method, max_iterations=stop, checkpoint=tmp_path / "run.npz", **arguments)
    assert part.status is Status.ITERATIONS
    resumed = minimize(problem, method, checkpoint=tmp_path / "run.npz", **arguments)
    same(resumed, whole)
    same(minimize(problem, method, checkpoint=tmp_path / "run.npz", **arguments), whole)  # a finished run is just read


def test_a_source_that_is_read_further_leads_to_other_samples_and_a_new_solution(tmp_path):
    rng = np.random.default_rng(0)
    problem = Problem(SquaredNorm(), Stream(lambda _, size: rows(rng, size), squares, 4, convex=True), BALL)
    method, arguments = SampleAverage(samples=3000, passes=20), {"checkpoint": tmp_path / "run.npz", "max_queries": 9000}
    minimize(problem, method, max_iterations=8, **arguments)
    result = minimize(problem, method, **arguments)
    assert result.status is Status.SOLVED
    np.testing.assert_allclose(result.x, TRUTH, atol=0.05)


def test_limits_of_iterations_and_time_leave_an_answer_of_what_was_drawn():
    for limits in ({"max_iterations": 3}, {"max_iterations": 8}, {"time_limit": 0.3}):
        result = minimize(PROBLEM, "sample-average", **limits)
        assert result.status in (Status.ITERATIONS, Status.TIME, Status.SOLVED)
        assert gap(result.x) <= 0.05


def test_a_tolerance_ends_the_run_when_fresh_samples_prove_it():
    result = minimize(PROBLEM, "sample-average", tol=(3.0, 0.5), max_queries=200_000)
    assert result.status is Status.CERTIFIED
    assert result.lower_gap_bound <= 0.5


def test_a_run_continues_from_a_result_with_other_samples():
    first = minimize(PROBLEM, "sample-average", max_queries=5000)
    second = minimize(PROBLEM, "sample-average", max_queries=5000, x0=first)
    assert gap(second.x) <= 0.01
    assert second.x.tobytes() != first.x.tobytes()


def test_a_source_that_ends_is_used_up_and_its_fresh_samples_prove_the_answer():
    for count in (700, 40_000):
        problem = Problem(SquaredNorm(), Stream(Few(count), squares, 4, convex=True), BALL)
        result = minimize(problem, "sample-average", max_queries=100_000)
        assert result.status is Status.SOLVED
        assert "all that came" in result.message
        assert result.queries.lower < count
        assert gap(result.x) <= result.lower_gap_bound < np.inf
        assert gap(result.x) <= 60.0 * NOISE**2 / count
        assert result.certificate.samples >= (200 if count < 1000 else 500)


def test_files_are_solved_by_one_method_from_beginning_to_end(tmp_path):
    pandas = pytest.importorskip("pandas")
    A, b = rows(np.random.default_rng(0), 5000)
    pandas.DataFrame(A, columns=list("abcd")).assign(y=b).to_csv(tmp_path / "rows.csv", index=False)
    stream = Stream.of_rows(sources.csv(tmp_path / "rows.csv", target="y"), 4, "huber")
    result = minimize(Problem(SquaredNorm(), stream, BALL), max_queries=5000)
    assert gap(result.x) <= 1e-3


# What is kept


def test_no_more_is_kept_than_fits():
    result = minimize(PROBLEM, SampleAverage(memory_limit=40.0 * 1000), max_queries=20_000)
    assert result.queries.lower == 1000
    assert "1,000 samples, all that fit into 0.0 MB, kept" in result.message
    big = Stream.of_rows(rows, 10**7, "huber")
    assert tiebreak.Auto().chosen(Problem(SquaredNorm(), big, L2Ball(1.0)), Budget()).name == "sbcgi"


@pytest.mark.parametrize("form", ["array", "tuple", "dict", "nested", "list"])
def test_batches_of_every_form_are_kept_and_given_back(form):
    def shaped(A, b):
        return {
            "array": np.column_stack([A, b]),
            "tuple": (A, b),
            "dict": {"A": A, "b": b},
            "nested": ({"A": A}, b),
            "list": [np.append(a, target) for a, target in zip(A, b, strict=True)],
        }[form]

    def of_form(x, batch):
        if form == "nested":
            batch = (batch[0]["A"], batch[1])
        elif form == "dict":
            batch = (batch["A"], batch["b"])
        elif form != "tuple":
            table = np.array(batch)
            batch = (table[:, :4], table[:, 4])
        return squares(x, batch)

    stream = Stream(lambda rng, size: shaped(*rows(rng, size)), of_form, 4, convex=True)
    kept, blocks = Keeping(stream, 50, 1e9), []
    for size in (20, 30):
        A, b = rows(np.random.default_rng(size), size)
        blocks.append((A, b))
        kept.take(shaped(A, b), size)
    A, b = (np.concatenate(column) for column in zip(*blocks, strict=True))
    x = np.array([0.3, -0.1, 0.0, 2.0])
    for indices in (None, [3, 3, 49, 0], [10, 11, 12]):
        value, gradient = kept.mean().value_and_gradient(x, indices)
        expected = LeastSquares(A, b).value_and_gradient(x, indices)
        assert value == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(gradient, expected[1], atol=1e-12)


def test_numbers_of_another_type_do_not_lose_digits():
    stream = Stream(rows, squares, 4, convex=True)
    kept = Keeping(stream, 4, 1e9)
    kept.take((np.ones((2, 4), dtype=np.int64), np.zeros(2, dtype=np.float32)), 2)
    kept.take((np.full((2, 4), 0.5), np.full(2, 0.1)), 2)
    assert kept.mean().value_and_gradient(np.ones(4))[0] == pytest.approx(0.5 * (16.0 + 1.9**2) / 2.0, rel=1e-15)


def test_rows_become_linear_models():
    for name, kind in (("huber", tiebreak.Huber), ("logistic", tiebreak.Logistic)):
        kept = Keeping(STREAMS[name], 10, 1e9)
        kept.take(STREAMS[name].draw(np.random.default_rng(0), 10), 10)
        assert type(kept.mean()) is kind
    half = Keeping(Stream.of_rows(rows, 4, HuberLoss(0.5)), 10, 1e9)
    half.take(rows(np.random.default_rng(0), 10), 10)
    assert half.mean().scalar == HuberLoss(0.5)


class Opaque:
    """A batch that cannot be taken apart."""

    def __init__(self, rng, size):
        self.batch = rows(rng, size)


def test_where_samples_cannot_be_kept_sbcgi_runs_and_says_what_would_help():
    opaque = Stream(Opaque, lambda x, batch: squares(x, batch.batch), 4, convex=True)
    problem = Problem(SquaredNorm(), opaque, BALL)
    result = minimize(problem, max_queries=2000)
    assert result.method.name == "sbcgi"
    assert "draw arrays whose first axis counts samples, or rows for Stream.of_rows" in result.message
    with pytest.raises(
        ValueError, match="keeps samples, and those of the lower objective cannot be kept: a batch holds Opaque"
    ):
        minimize(problem, "sample-average", max_queries=2000)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (lambda rng, size: (rng.random((size, 4)), rng.random(2)), "a batch of 3 samples holds an array of other length"),
        (lambda rng, size: [object()] * size, "a batch holds a list of objects of unknown size"),
        (lambda rng, size: 7, "a batch holds int"),
    ],
)
def test_reasons_why_samples_cannot_be_kept(batch, reason):
    assert Stream(batch, squares, 4, convex=True).why_not_kept.startswith(reason)


def test_samples_of_varying_shape_are_named_when_they_come():
    stream = Stream(rows, squares, 4, convex=True)
    kept = Keeping(stream, 10, 1e9)
    kept.take(rows(np.random.default_rng(0), 3), 3)
    with pytest.raises(OracleError, match=r"arrays of shapes \(4,\) and \(5,\) came per sample"):
        kept.take((np.ones((3, 5)), np.ones(3)), 3)


def test_problems_that_it_does_not_take_are_refused():
    finite = Problem(SquaredNorm(), LeastSquares(np.eye(4), TRUTH), BALL)
    with pytest.raises(ValueError, match="'sample-average' is for streams, and all samples are known: take 'auto'"):
        minimize(finite, "sample-average")
    unknown = Problem(Stream(rows, squares, 4), BY_HAND, BALL)
    with pytest.raises(ValueError, match="needs to know whether the upper objective is convex"):
        minimize(unknown, "sample-average")


def test_simplices_and_losses_of_jax_and_torch():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(4, 1, bias=False, dtype=torch.float64)
    model = torch.nn.Sequential(layer, torch.nn.Flatten(0))

    def tensors(rng, size):
        A, b = rows(rng, size)
        return torch.tensor(A), torch.tensor(b)

    stream = tiebreak.from_torch(model, torch.nn.functional.mse_loss, tensors, convex=True)
    for domain, best in ((BALL, TRUTH), (Simplex(1.0), np.array([0.75, 0.0, 0.0, 0.25]))):
        result = minimize(Problem(SquaredNorm(), stream, domain), "sample-average", max_queries=4000)
        np.testing.assert_allclose(result.x, best, atol=0.05)


def test_blocks_and_costs_agree():
    method = SampleAverage(samples=20_000)
    plan = method.plan(PROBLEM)
    cost = method.cost(plan, np.arange(10))
    assert cost.lower_queries.sum() == 20_000
    assert cost.lower_queries.tolist()[:3] == np.diff(rows_before(np.arange(4))).tolist()
    assert cost.upper_queries.sum() == 0
